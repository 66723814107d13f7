"""Models run on hidden features: what they do on a row is revealed only through paid answers.

A prediction is a total function of one row. A row on which a model fails, or returns something other than a prediction,
has the worst loss, and no error quotes it. Plain mistakes show up on made-up rows, which are the same for all data.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.models.labels import Kind, total_predictions
from afresh.models.predictions import run

if TYPE_CHECKING:
    from afresh.losses import Loss

MADE_UP = 64
_SEED = 2018
_TEXTS = ("", "a", "b", "0")

Predictions = tuple[NDArray[Any], NDArray[np.bool_]]
"""Valid predictions for all rows, and which of them replace an invalid one."""


def is_table(features: Any) -> bool:
    """Whether its rows can be selected here: an array, or a pandas or Polars frame."""
    return isinstance(features, np.ndarray) or hasattr(features, "iloc") or hasattr(features, "clear")


def predict(model: Any, loss: Loss, classes: tuple[Any, ...], features: Any) -> Predictions:
    """A model's predictions for every row. If it fails on many rows, each half of them is tried by itself."""

    def of(start: int, stop: int) -> list[Predictions]:
        part = features.iloc[start:stop] if hasattr(features, "iloc") else features[start:stop]
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):  # a warning would reveal rows
                warnings.simplefilter("ignore")
                return [total_predictions(run(model, loss, classes, part)[1], loss.kind, classes, stop - start)]
        except Exception:  # its message may quote a row
            if stop - start == 1:
                return [_none(loss.kind, classes)]
        middle = (start + stop) // 2
        return of(start, middle) + of(middle, stop)

    values, invalid = zip(*of(0, len(features)), strict=True)
    return np.concatenate(values), np.concatenate(invalid)


def _none(kind: Kind, classes: tuple[Any, ...]) -> Predictions:
    """The placeholder for one row's prediction: it is never read, so it only needs the right type."""
    missing: Any = [None] if kind == "classes" else [np.nan]
    if kind == "probabilities" and len(classes) > 2:
        missing = np.full((1, len(classes)), np.nan)
    return total_predictions(missing, kind, classes, 1)


def try_out(model: Any, loss: Loss, classes: tuple[Any, ...], features: Any) -> list[Any]:
    """A model's predictions for made-up rows, JSON-ready, to six digits; an error if it fails on all of them.

    Its message may quote them, as they are public.
    """
    rows = made_up(features)
    values, invalid = predict(model, loss, classes, rows)
    if invalid.all():
        why = _error(lambda: _strict(model, loss, classes, rows))
        raise InvalidArgument(
            f"the model fails on all of {MADE_UP} made-up rows{why} With "
            "hidden features a model must take any row of the right columns and types; nothing was charged."
        )
    shown = [[f"{value:.6g}" for value in np.atleast_1d(row)] for row in values]
    return [shown, [bool(each) for each in invalid]]


def _strict(model: Any, loss: Loss, classes: tuple[Any, ...], rows: Any) -> None:
    from afresh.models.labels import Labels, check_predictions

    labels = Labels(np.zeros(MADE_UP, dtype=np.int64), classes)
    check_predictions(run(model, loss, classes, rows)[1], loss.kind, labels)


def _error(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except Exception as error:
        return f": {type(error).__name__}: {str(error).rstrip('.')}."
    return "."


def made_up(features: Any) -> Any:
    """Rows with the same columns and types, independent of everything else in the features."""
    draw = random.Random(_SEED)
    if isinstance(features, np.ndarray):
        columns = [_values(draw, features.dtype.kind) for _ in range(features.shape[1])]
        return np.array(columns).T.astype(features.dtype)
    if hasattr(features, "iloc"):
        import pandas as pd

        return pd.DataFrame({name: _series(draw, features.dtypes[name]) for name in features.columns})
    import polars as pl

    return features.clear(MADE_UP).with_columns(
        pl.Series(name, values, dtype=kind)
        for name, kind in features.schema.items()
        if (values := _values(draw, _letter(kind))) is not None
    )


def _letter(kind: Any) -> str:
    """NumPy's letter for a Polars type."""
    if kind.is_numeric():
        return "f" if kind.is_float() or kind.is_decimal() else "i"
    return {"Boolean": "b", "String": "U"}.get(str(kind), "?")


def _series(draw: random.Random, kind: Any) -> Any:
    """A pandas column; missing values if its type has no well-known values."""
    import pandas as pd

    values = _values(draw, "U" if kind == object or isinstance(kind, pd.StringDtype) else kind.kind)  # noqa: E721
    if values is None or isinstance(kind, pd.CategoricalDtype):
        return pd.Series([None] * MADE_UP, dtype=object if values is not None else kind)
    return pd.Series(values).astype(kind)


def _values(draw: random.Random, kind: str) -> list[Any] | None:
    """Values of a type, by NumPy's letter for it; the first is zero."""
    makes: dict[str, Callable[[], Any]] = {
        "f": lambda: (2 * draw.random() - 1) * 2.0 ** draw.randint(-4, 8),
        "i": lambda: draw.randint(0, 100),
        "u": lambda: draw.randint(0, 100),
        "b": lambda: draw.random() < 0.5,
        "U": lambda: draw.choice(_TEXTS),
    }
    if kind not in makes:
        return None
    found = [makes[kind]() for _ in range(MADE_UP)]
    return [type(found[0])(), *found[1:]]
