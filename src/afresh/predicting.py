"""From a model, a function or an array to predictions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InvalidArgument

if TYPE_CHECKING:
    from afresh.losses import Loss


@dataclass(frozen=True, eq=False, slots=True)
class Predicted:
    """A model's predictions, checked, with the name they have in questions."""

    name: str
    values: NDArray[Any]
    digest: str


def listed(models: Any, names: Any) -> tuple[list[Any], list[Any] | None]:
    """Models and their names, one for each, if they have any."""
    for what, given in {"models": models, "names": () if names is None else names}.items():
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            raise InvalidArgument(f"{what} of type {type(given).__name__}, must be a list, one for each model.")
    models, names = list(models), None if names is None else list(names)
    if names is not None and len(names) != len(models):
        raise InvalidArgument(f"there are {len(models)} models and {len(names)} names; each needs one.")
    return models, names


def is_model(candidate: Any) -> bool:
    """Whether it has to be handed features."""
    return hasattr(candidate, "predict") or hasattr(candidate, "predict_proba") or callable(candidate)


def run(model: Any, loss: Loss, classes: tuple[Any, ...], features: Any) -> tuple[str, Any]:
    """What a model is called, and its predictions."""
    if isinstance(model, type):
        raise InvalidArgument(f"{model.__name__} is a class; pass a model that was made from it and fitted.")
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
    """Columns in the order of the classes; a class that a model never saw has no chance."""
    from afresh.labels import encode

    known = getattr(model, "classes_", None)
    array = np.asarray(chances)
    if known is None or array.ndim != 2 or array.shape[1] != len(known):
        return chances
    places = encode(np.asarray(known), classes)
    if (places < 0).any():
        raise InvalidArgument(f"the model knows classes {list(known)!r}, not only {list(classes)!r}.")
    aligned = np.zeros((len(array), len(classes)))
    aligned[:, places] = array
    return aligned
