"""From a model, a function or an array to predictions."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.errors import InvalidArgument

if TYPE_CHECKING:
    from afresh.losses import Loss
    from afresh.models.labels import Labels
    from afresh.models.vectors import Rows, Values


class Made(NamedTuple):
    """Predictions that a model made elsewhere."""

    kind: str
    """The model's default name."""
    values: Any


class Predicted:
    """A model's checked predictions, with their name in questions. They are made when needed."""

    def __init__(
        self, name: str, digest: str, make: Callable[[], tuple[NDArray[Any], NDArray[np.bool_] | None]]
    ) -> None:
        """`make` gives the predictions, and which of them replace an invalid one; None if all are valid."""
        self.name, self.digest = name, digest
        self._make, self._lock = functools.cache(make), threading.Lock()

    def made(self) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """Predictions, and which of them are invalid. A model is called from one thread only."""
        with self._lock:
            return self._make()

    @property
    def values(self) -> NDArray[Any]:
        """The predictions."""
        return self.made()[0]

    def losses(self, loss: Loss, labels: Labels, rows: Rows) -> Values:
        """The losses of some rows; the largest loss if there is no prediction."""
        values, invalid = self.made()
        found = loss.rows(values, labels, rows)
        return found if invalid is None else np.where(invalid[rows], found.dtype.type(1), found)


def listed(models: Any, names: Any) -> tuple[list[Any], list[Any] | None]:
    """Models and their names, one per model, if given; a mapping's keys are the names."""
    if isinstance(models, Mapping):
        if names is not None:
            raise InvalidArgument("the keys of a dict of models are their names; leave out names=.")
        models, names = list(models.values()), list(models)
    for what, given in {"models": models, "names": () if names is None else names}.items():
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise InvalidArgument(f"{what} of type {type(given).__name__}, must be a list, one for each model.")
    models, names = list(models), None if names is None else list(names)
    if names is not None and len(names) != len(models):
        raise InvalidArgument(f"there are {len(models)} models and {len(names)} names; give one name per model.")
    check_names(names or ())
    return models, names


def check_names(names: Sequence[Any]) -> None:
    """Names that a record can hold."""
    for name in names:
        checks.text("name", name, "words")


def is_model(candidate: Any) -> bool:
    """Whether it needs features to predict from."""
    return hasattr(candidate, "predict") or hasattr(candidate, "predict_proba") or callable(candidate)


def run(model: Any, loss: Loss, classes: tuple[Any, ...], features: Any) -> tuple[str, Any]:
    """A model's name and its predictions."""
    if isinstance(model, type):
        raise InvalidArgument(f"{model.__name__} is a class; pass a fitted model made from it.")
    kind = type(model).__name__
    if loss.kind == "probabilities" and hasattr(model, "predict_proba"):
        return kind, _align(model, classes, model.predict_proba(features))
    if hasattr(model, "predict") and loss.kind != "probabilities":
        return kind, model.predict(features)
    if hasattr(model, "predict"):
        raise InvalidArgument(f"a {kind} has no predict_proba, and {loss.words} needs probabilities.")
    if not callable(model):
        raise InvalidArgument(f"a {kind} has no predict, and {loss.words} does not take probabilities.")
    return getattr(model, "__name__", kind), model(features)


def _align(model: Any, classes: tuple[Any, ...], chances: Any) -> Any:
    """Columns in the order of the classes; a class that a model never saw has probability 0."""
    from afresh.models.labels import encode

    known = getattr(model, "classes_", None)
    array = np.asarray(chances)
    if known is None or array.ndim != 2 or array.shape[1] != len(known):
        return chances
    places = encode(np.asarray(known), classes)
    if (places < 0).any():
        raise InvalidArgument(f"the model knows the classes {list(known)!r}, not only {list(classes)!r}.")
    aligned = np.zeros((len(array), len(classes)))
    aligned[:, places] = array
    return aligned
