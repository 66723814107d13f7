"""Labels and predictions as arrays: checks of predictions depend only on them and on public facts."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.models.threads import for_all, slices

Kind = Literal["classes", "probabilities", "numbers"]
Codes = NDArray[np.signedinteger[Any]]
_AT_ONCE = 1 << 18  # predictions checked at once
_FEW = 8  # classes up to which comparing with each is faster than searching
_BITS_OF_ONE = np.float64(1).view(np.uint64)  # those of -0.0, of negative numbers and of NaN are more
_SUM = 1e-6  # how far the probabilities of a row may be from adding up to one


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of a holdout. They never leave it except through answers."""

    values: Any = field(repr=False)
    """As passed; missing ones are masked, None or NaN. Not shown when someone prints the state of a process."""
    declared: tuple[Any, ...] | None = None
    """The declared classes, if any."""

    @property
    def rows(self) -> int:
        """The number of labels."""
        return len(self.values)

    def suit(self, kind: Kind) -> None:
        """Raise `InvalidArgument` unless they suit this kind of loss; reveals nothing but their type."""
        _ = self.numbers if kind == "numbers" else self.codes

    @cached_property
    def classes(self) -> tuple[Any, ...]:
        """The classes: the declared ones, the two of a boolean column, or the distinct values of the labels."""
        plain = _plain(self.values)
        if self.declared is not None:
            return self.declared
        if plain.dtype.kind == "b":
            return (False, True)
        if plain.dtype.kind == "f":
            raise InvalidArgument(
                "the labels are numbers, not classes; list the classes with classes=[...], or use a loss "
                "for numbers: afresh.losses.Squared(clip=...)."
            )
        present = ~_missing(self.values)
        return tuple(sorted({_python(value) for value in plain[present]}, key=lambda value: (str(type(value)), value)))

    @cached_property
    def codes(self) -> Codes:
        """The index of every row's class in `classes`; -1 for a label that is missing or not among them."""
        found = encode(_plain(self.values), self.classes)
        found[_missing(self.values)] = -1
        return found

    @cached_property
    def first(self) -> NDArray[np.float64]:
        """Of two classes, 1 for a label of the first and 0 for one of the second; NaN for a missing one."""
        return np.array([1.0, 0.0, math.nan])[self.codes]  # the code -1 finds the last

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The labels as numbers; a missing one is infinite, so its loss is always the worst."""
        plain = _plain(self.values)
        if plain.dtype.kind not in "biuf":
            raise InvalidArgument("the labels are not numbers; use a loss for classes, such as 'zero-one'.")
        numbers = plain.astype(np.float64)
        numbers[_missing(self.values) | ~np.isfinite(numbers)] = math.inf
        return numbers


def _code_type(classes: tuple[Any, ...]) -> type[np.signedinteger[Any]]:
    return np.int8 if len(classes) < 128 else np.int32


def _python(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _plain(values: Any) -> NDArray[Any]:
    return np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)


def _missing(values: Any) -> NDArray[np.bool_]:
    plain = _plain(values)
    missing = np.zeros(len(plain), dtype=np.bool_)
    if isinstance(values, np.ma.MaskedArray):
        missing |= np.ma.getmaskarray(values)
    if plain.dtype.kind == "f":
        missing |= np.isnan(plain)
    if plain.dtype.kind == "O":
        missing |= np.fromiter((v is None or v != v for v in plain), bool, len(plain))
    return missing


def check_classes(classes: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """Declared classes: at least two, all different."""
    if classes is None:
        return None
    found = tuple(map(_python, checks.listed("classes", classes, "a list of the labels' classes")))
    with suppress(Exception):  # an object whose own code fails
        # Also in the array in which labels are looked up: there 1 and '1' are one text.
        different = len(set(found)) == len(set(np.asarray(found).tolist())) == len(found) > 1
        if different and all(map(_is_scalar, found)):
            return found
    raise checks.wrong("classes", list(found), "at least two values of one type, all different")


def _is_scalar(value: Any) -> bool:
    return isinstance(value, Hashable) and not isinstance(value, tuple) and bool(value == value)  # not NaN


def encode(values: NDArray[Any], classes: tuple[Any, ...]) -> Codes:
    """The index of every value in `classes`, or -1. Codes of labels and of predictions have the same type."""
    return _encode(values, classes).astype(_code_type(classes), copy=False)


def _encode(values: NDArray[Any], classes: tuple[Any, ...]) -> NDArray[Any]:
    table = np.asarray(classes)
    numbers = values.dtype.kind in "biuf" and table.dtype.kind in "biuf"
    if not numbers and not (values.dtype.kind == table.dtype.kind == "U"):
        places = {value: place for place, value in enumerate(classes)}
        return np.fromiter((_place(places, value) for value in values), np.int32, len(values))
    if len(table) <= _FEW:
        codes: NDArray[Any] = np.full(len(values), -1, dtype=np.int8)
        for place, value in enumerate(table):
            codes += (place + 1) * (values == value).view(np.int8)
        return codes
    order = np.argsort(table)
    places_found: NDArray[Any] = order[np.searchsorted(table[order], values).clip(max=len(table) - 1)].astype(np.int32)
    places_found[table[places_found] != values] = -1
    return places_found


def _place(places: dict[Any, int], value: Any) -> int:
    try:
        return places.get(_python(value), -1)
    except TypeError:  # a list, for example, which is certainly not a class
        return -1


def check_predictions(predictions: Any, kind: Kind, labels: Labels) -> NDArray[Any]:
    """Predictions in the form that is hashed and scored, or an error that quotes nothing else."""
    array = _as_array(predictions)
    if len(array) != labels.rows:
        raise InvalidArgument(
            f"there are {labels.rows:,} rows and {len(array):,} predictions; there must be one per row."
        )
    if kind == "classes":
        return _check_codes(array, labels.classes)
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(f"predictions of type {array.dtype} are not numbers, which this loss needs.")
    array = np.ascontiguousarray(array, dtype=np.float64)
    return _check_numbers(array) if kind == "numbers" else _check_probabilities(array, labels.classes)


def total_predictions(
    predictions: Any, kind: Kind, classes: tuple[Any, ...], rows: int
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Predictions from hidden features: an invalid one is replaced and marked.

    An error says nothing about a row, only that the number of predictions or their type is wrong.
    """
    array = _as_array(predictions)
    if array.shape[0] != rows:
        raise InvalidArgument(f"there are {rows:,} rows and {len(array):,} predictions.")
    if kind == "classes":
        codes = encode(_one_column(array), classes)
        return np.maximum(codes, 0), codes < 0
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(f"predictions of type {array.dtype} are not numbers, which this loss needs.")
    array = array.astype(np.float64)
    if kind == "numbers":
        if array.ndim != 1:
            raise InvalidArgument(f"predictions have shape {array.shape}; this loss needs one number per row.")
        invalid = ~np.isfinite(array)
        return np.where(invalid, 0.0, array), invalid
    _check_width(array, classes)
    wide = array.reshape(rows, -1)
    invalid = ~((wide >= 0) & (wide <= 1)).all(axis=1)
    if array.ndim == 2:
        with np.errstate(invalid="ignore"):
            invalid |= ~(np.abs(array.sum(axis=1) - 1) <= _SUM)
    array[invalid] = 1 / len(classes)
    return np.ascontiguousarray(array[:, 1]) if array.shape[1:] == (2,) else array, invalid


def _as_array(predictions: Any) -> NDArray[Any]:
    try:
        array = np.asarray(predictions)
    except (ValueError, TypeError):  # lists of several lengths, say
        array = np.asarray(None)
    if array.ndim == 0:
        kind = type(predictions).__name__
        raise InvalidArgument(
            f"predictions of type {kind} are not an array; pass an array or a list with one prediction per row."
        )
    if np.ma.is_masked(predictions):  # numpy would use what is under the mask
        raise InvalidArgument("some predictions are masked; there must be one per row.")
    return array


def _one_column(array: NDArray[Any]) -> NDArray[Any]:
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InvalidArgument(f"predictions have shape {array.shape}; this loss needs one class per row.")
    return array


def _check_codes(array: NDArray[Any], classes: tuple[Any, ...]) -> NDArray[Any]:
    array = _one_column(array)
    codes = encode(array, classes)
    if codes.size and codes.min() < 0:
        place = int(np.argmin(codes))
        listed = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
        raise InvalidArgument(
            f"the prediction of row {place} is {_python(array[place])!r}, which is not one of the classes {listed}."
        )
    return codes


def _check_numbers(array: NDArray[np.float64]) -> NDArray[np.float64]:
    if array.ndim != 1:
        raise InvalidArgument(f"predictions have shape {array.shape}; this loss needs one number per row.")
    if not all(for_all(lambda part: _is_plain(array[part]), slices(len(array), _AT_ONCE))):
        _check_finite(array)
        array = array + 0.0
    return array


def _check_width(array: NDArray[np.float64], classes: tuple[Any, ...]) -> None:
    if array.shape[1:] not in ([(), (2,)] if len(classes) == 2 else [(len(classes),)]):
        wanted = "the probability of the second class, or of both" if len(classes) == 2 else "one probability per class"
        raise InvalidArgument(
            f"predictions have shape {array.shape}; for {len(classes)} classes a row needs {wanted}, in the order "
            f"of the classes {', '.join(map(repr, classes[:10]))}."
        )


def _check_probabilities(array: NDArray[np.float64], classes: tuple[Any, ...]) -> NDArray[np.float64]:
    _check_width(array, classes)
    plain = bool(array.view(np.uint64).max() <= _BITS_OF_ONE)
    if not plain:  # -0.0, which is the same prediction as 0.0, or no probability
        least, most = float(array.min()), float(array.max())
        if not (least >= 0 and most <= 1):  # both are NaN where any is
            _check_finite(array)
            raise InvalidArgument(f"a prediction is {least if least < 0 else most}, which is not a probability.")
    if array.ndim == 2:
        off = np.abs(sum(array.T) - 1)  # column by column, since numpy is slow to add up many short rows
        if off.max() > _SUM:
            place = int(np.argmax(off))
            raise InvalidArgument(f"the probabilities of row {place} add up to {array[place].sum():.6g}, not to 1.")
    array = np.ascontiguousarray(array[:, 1]) if array.shape[1:] == (2,) else array
    return array if plain else array + 0.0


def _check_finite(array: NDArray[np.float64]) -> None:
    finite = np.isfinite(array).reshape(len(array), -1).all(axis=1)
    if not finite.all():
        place = int(np.argmin(finite))
        raise InvalidArgument(f"the prediction of row {place} is {array[place]}; predictions must be finite numbers.")


def _is_plain(array: NDArray[np.float64]) -> bool:
    """Whether all are finite and none is -0.0, which is the same prediction as 0.0; also False if the sum overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(array.sum()) and not _has_negative_zero(array)


def _has_negative_zero(array: NDArray[np.float64]) -> bool:
    """Its bits are those of the least integer."""
    return bool(array.view(np.int64).min() == np.iinfo(np.int64).min)
