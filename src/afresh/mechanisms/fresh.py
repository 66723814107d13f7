"""Exact moments of rows kept fresh for the questions they answer: what is released, and its interval.

Rounds use them, and so does the exam of a guard whose other rows only check. `rows`, `total` and `squares` are the
count, the sum and the sum of squares of a question's values in [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from afresh.moments import Moments
from afresh.theory import exact

_ROUNDING = 1e-9  # of a sum, as a share of the number of rows: whole numbers are exact, others are sums of floats
NAMES = ("rows", "total", "squares")
OFF = 3e-8
"""Rounding hides smaller deviations of values in [0, 1]: they are differences of sums."""


def moments_released(moments: Moments) -> dict[str, float]:
    """Count, sum and sum of squares of values in [0, 1]; no noise is needed."""
    n = moments.n
    total = min(max(float(moments.total), 0.0), float(n))
    squares = min(max(float(moments.squares), total * total / max(n, 1)), total)
    return {"rows": float(n), "total": total, "squares": squares}


def moments_possible(released: Mapping[str, float], levels: int | None, most: int) -> bool:
    """Whether these are moments of no more rows than were opened; if there are few values, in their steps."""
    rows, total, squares = (released[name] for name in NAMES)
    room = _ROUNDING * max(rows, 1.0)
    if not (0 <= rows <= most and rows == math.floor(rows) and 0 <= total <= rows):
        return False
    if not total * total <= (squares + room) * max(rows, 1.0) or not squares <= total + room:
        return False
    step = None if levels is None else 1 / (levels - 1)
    return step is None or all(_whole(x) for x in (total / step, squares / step**2))


def mean_of(released: Mapping[str, float]) -> float:
    """The mean; the middle of the range if no row counted."""
    return released["total"] / released["rows"] if released["rows"] else 0.5


def deviation_of(released: Mapping[str, float]) -> float:
    """The standard deviation; the largest there is if no row counted."""
    n, mean = released["rows"], mean_of(released)
    return math.sqrt(max(released["squares"] / n - mean * mean, 0.0)) if n else 0.5


def interval_of(released: Mapping[str, float], share: float, levels: int | None) -> tuple[float, float]:
    """The interval at a share of the failure probability, by the possible values; rows need not be alike.

    Section 13. Rows are not alike if features are public, for example.
    """
    n, total, squares = (released[name] for name in NAMES)
    if not (n and share):
        return 0.0, 1.0
    if levels == 3:  # psi = (d + 1)/2 of d = -1, 0 or 1
        low, high = exact.interval("three-valued", n, 2 * total - n, 4 * (squares - total) + n, share)
        return max((float(low) + 1) / 2, 0.0), min((float(high) + 1) / 2, 1.0)
    values: exact.Values = "two-valued" if levels == 2 else "number"
    low, high = exact.interval(values, n, total, squares, share, unequal=True)
    return max(float(low), 0.0), min(float(high), 1.0)


def condition_width(rows: int, share: float, mean: float) -> float:
    """The half-width of the share of rows that satisfy a condition, from so many rows."""
    return float(exact.half_width("two-valued", rows, share, mean, unequal=True))


def number_width(rows: int, share: float, mean: float, deviation: float) -> float:
    """The half-width of the mean of a number with this standard deviation, both on [0, 1]."""
    return float(exact.half_width("number", rows, share, mean, deviation, unequal=True))


def difference_width(rows: int, share: float, disagreement: float) -> float:
    """The half-width of a difference of two models' 0/1 losses, from rows on this share of which they differ."""
    return float(exact.half_width("three-valued", rows, share, 0.0, math.sqrt(disagreement)))


def disagreement_of(released: Mapping[str, float]) -> float:
    """The mean of d^2, which is released with psi = (d + 1)/2."""
    n, total, squares = (released[name] for name in NAMES)
    return float(min(max(4 * (squares - total) / n + 1, 0.0), 1.0)) if n else 1.0


def _whole(x: float) -> bool:
    return abs(x - round(x)) <= 1e-6
