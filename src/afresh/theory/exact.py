"""Which interval for which question, from exact moments of rows that the question does not depend on (section 13).

The rule is fixed before the rows are looked at, by what the question's values can be:

- two-valued: Clopper and Pearson's exact binomial, with a different limit for a single hit where rows are unequal;
- three-valued (differences of 0/1 losses): bets settled exactly;
- number: two-point betting, which follows the standard deviation;
- nearly two-valued number (most values at the ends): Hoeffding and Bentkus's bound, up to a quarter narrower there.

Taking whichever came out narrower would need a share of the failure probability for each: `intersected`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from afresh.errors import InvalidArgument
from afresh.theory.betting import betting_lower, betting_upper, side_nats, three_valued_lower
from afresh.theory.binomial import (
    chernoff_lower,
    chernoff_upper,
    clopper_pearson_lower,
    clopper_pearson_upper,
    hoeffding_bentkus_lower,
    hoeffding_bentkus_upper,
    one_lower,
    one_upper,
    unequal_lower,
    unequal_upper,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    Limit = Callable[[ArrayLike, ArrayLike, ArrayLike], Floats]
else:
    from afresh.lazy import np


Values = Literal["two-valued", "three-valued", "number", "nearly two-valued"]
# From here on (alpha below 1e-130) the exact binomial gains less than a hundredth on Chernoff, and floats run out.
_FAR = 300.0
VALUES: tuple[Values, ...] = ("two-valued", "three-valued", "number", "nearly two-valued")


def lower_limit(
    values: Values,
    rows: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike,
    nats: ArrayLike,
    *,
    unequal: bool = False,
    hint: ArrayLike | None = None,
) -> Floats:
    """The truth is below it with probability at most e^-nats. Three-valued questions lie in [-1, 1], others in [0, 1].

    `unequal`: rows are independent but not alike, for example if features are public; the truth is then their average.
    `hint`: a variance (for three-valued questions, a share of rows that differ) known in advance; bets use it.
    """
    _check(values)
    if values == "three-valued":
        better, worse = _counts(total, squares)
        return three_valued_lower(rows, better, worse, nats, hint)
    if values == "number":
        return betting_lower(rows, total, squares, nats, hint)
    if values == "two-valued" and (one := _one(one_lower, total, rows, nats, unequal)) is not None:
        return one
    near: Limit = hoeffding_bentkus_lower
    if values == "two-valued":
        near = unequal_lower if unequal else clopper_pearson_lower
    return _near_or_far(near, chernoff_lower, total, rows, nats)


def upper_limit(
    values: Values,
    rows: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike,
    nats: ArrayLike,
    *,
    unequal: bool = False,
    hint: ArrayLike | None = None,
) -> Floats:
    """The truth is above it with probability at most e^-nats."""
    _check(values)
    if values == "three-valued":
        better, worse = _counts(total, squares)
        return -three_valued_lower(rows, worse, better, nats, hint)
    if values == "number":
        return betting_upper(rows, total, squares, nats, hint)
    if values == "two-valued" and (one := _one(one_upper, total, rows, nats, unequal)) is not None:
        return one
    near: Limit = hoeffding_bentkus_upper
    if values == "two-valued":
        near = unequal_upper if unequal else clopper_pearson_upper
    return _near_or_far(near, chernoff_upper, total, rows, nats)


def interval(
    values: Values,
    rows: ArrayLike,
    total: ArrayLike,
    squares: ArrayLike,
    alpha: ArrayLike,
    *,
    unequal: bool = False,
    hint: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Both limits, each at half of alpha."""
    level = side_nats(alpha)
    return (
        lower_limit(values, rows, total, squares, level, unequal=unequal, hint=hint),
        upper_limit(values, rows, total, squares, level, unequal=unequal, hint=hint),
    )


def half_width(
    values: Values,
    rows: ArrayLike,
    alpha: ArrayLike,
    mean: ArrayLike,
    deviation: ArrayLike | None = None,
    *,
    unequal: bool = False,
    hint: ArrayLike | None = None,
) -> Floats:
    """Half the interval's width if the rows turn out to have this mean and standard deviation: for planning.

    Without a deviation, the largest there can be. Counts need not be whole here.
    """
    if values == "two-valued" and isinstance(rows, float | int) and isinstance(mean, float | int):
        low, high = interval(values, rows, rows * mean, rows * mean, alpha, unequal=unequal)
        return (high - low) / 2
    n, mu = (np.asarray(x, dtype=np.float64) for x in (rows, mean))
    largest = 1 - mu * mu if values == "three-valued" else mu * (1 - mu)
    variance = largest if deviation is None else np.minimum(np.asarray(deviation, dtype=np.float64) ** 2, largest)
    second = variance + mu * mu
    if values == "three-valued":
        second = np.maximum(second, np.abs(mu))  # that many rows differ at least
    low, high = interval(values, n, n * mu, n * second, alpha, unequal=unequal, hint=hint)
    found: Floats = (high - low) / 2
    return found


def intersected(one: tuple[ArrayLike, ArrayLike], other: tuple[ArrayLike, ArrayLike]) -> tuple[Floats, Floats]:
    """The intersection of two intervals for one question, each with its own share; the first if it is empty."""
    low = np.maximum(one[0], other[0])
    high = np.minimum(one[1], other[1])
    empty = low > high
    return np.where(empty, one[0], low), np.where(empty, one[1], high)


def _one(limit: Callable[..., float | None], total: object, rows: object, nats: object, unequal: bool) -> Floats | None:
    """A limit from plain numbers, computed on plain numbers; None if there are arrays, or if it needs more."""
    if isinstance(total, float | int) and isinstance(rows, float | int) and isinstance(nats, float | int):
        return limit(total, rows, math.exp(-nats), unequal=unequal) if 0 < nats < _FAR else None  # type: ignore[return-value] # of plain numbers a plain number
    return None


def _near_or_far(near: Limit, far: Limit, total: ArrayLike, rows: ArrayLike, nats: ArrayLike) -> Floats:
    """A limit at e^-nats while floats can handle that, Chernoff's beyond."""
    level = np.asarray(nats, dtype=np.float64)
    if not (level > 0).all():
        raise InvalidArgument(f"nats contains {level[~(level > 0)].flat[0]}, must be > 0.")
    found = near(total, rows, np.exp(-np.minimum(level, _FAR)))
    return found if (level < _FAR).all() else np.where(level < _FAR, found, far(total, rows, level))


def _counts(total: ArrayLike, squares: ArrayLike) -> tuple[Floats, Floats]:
    """How many values are 1 and how many -1, from their sum and their sum of squares."""
    s1, s2 = np.asarray(total, dtype=np.float64), np.asarray(squares, dtype=np.float64)
    better: Floats = (s2 + s1) / 2
    worse: Floats = (s2 - s1) / 2
    return better, worse


def _check(values: str) -> None:
    if values not in VALUES:
        raise InvalidArgument(f"values == {values!r}, must be one of {', '.join(map(repr, VALUES))}.")
