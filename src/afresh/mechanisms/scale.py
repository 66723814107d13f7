"""The scale of a question's values, and limits from exact moments on it: differences of models lie in [-1, 1]."""

from __future__ import annotations

from afresh.moments import Moments
from afresh.theory.exact import Values, lower_limit, upper_limit

BY_SUM: tuple[Values, ...] = ("two-valued", "nearly two-valued")
"""The values whose limits use only the sum."""


def values_of(levels: int | None, unequal: bool) -> Values:
    """The possible values of a question, which decide its limits before any row is looked at."""
    if levels == 2:
        return "nearly two-valued" if unequal else "two-valued"
    return "three-valued" if levels == 3 else "number"


def to_native(value: float, values: Values) -> float:
    """Convert from [0, 1] to the scale of the values: differences lie in [-1, 1]."""
    return 2 * value - 1 if values == "three-valued" else value


def to_unit(ends: tuple[float, float], values: Values) -> tuple[float, float]:
    """Convert back to [0, 1]."""
    low, high = ends
    return ((low + 1) / 2, (high + 1) / 2) if values == "three-valued" else (low, high)


def counts_of(moments: Moments) -> tuple[int, int]:
    """How many of the values 0, 1/2 and 1 are 1, and how many are 0. Sums of halves are exact, up to 2^50 rows."""
    total, squares = 2 * moments.total - moments.n, 4 * moments.squares - 4 * moments.total + moments.n
    better = min(max(round((squares + total) / 2), 0), moments.n)
    return better, min(max(round((squares - total) / 2), 0), moments.n - better)


def sums_of(moments: Moments, values: Values) -> tuple[float, float]:
    """Sum and sum of squares on the scale of the values."""
    if values == "three-valued":
        better, worse = counts_of(moments)
        return float(better - worse), float(better + worse)
    return moments.total, moments.squares


def limits_of(moments: Moments, values: Values, nats: float, hint: float | None) -> tuple[float, float]:
    """Both limits at e^-nats each, on [0, 1]; a group without rows says nothing."""
    if not moments.n:
        return 0.0, 1.0
    n, (total, squares) = moments.n, sums_of(moments, values)
    low = float(lower_limit(values, n, total, squares, nats, hint=hint))
    high = float(upper_limit(values, n, total, squares, nats, hint=hint))
    return to_unit((low, high), values)


def hint_of(guessing: Moments, values: Values) -> float | None:
    """A variance from rows that do not check; for differences, the share of rows that differ."""
    if values == "three-valued":
        return min(sum(counts_of(guessing)) / guessing.n, 1.0)
    return min(guessing.variance, 0.25) if values == "number" else None
