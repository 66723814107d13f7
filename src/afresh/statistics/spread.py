"""Variance, standard deviation, covariance, correlation.

For any number v, Var x = E (x - v)^2 - (E x - v)^2. With v the released mean the last term is at most the square of
that answer's error, and (x - v)^2 is small where the variance is, which makes its answer precise. In the same way
Cov(x, y) = E (x - v)(y - w) - (E x - v)(E y - w).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from afresh.answer import Answer, Interval
from afresh.difference import of_parts
from afresh.errors import InvalidArgument
from afresh.statistics.base import Asker, about_missing, check_bounds, clipped

_OUTWARD = 1e-14  # covers the rounding of a dozen operations on numbers of order one
_FARTHEST = 1e150  # between bounds; its square is still a number, as is that of its inverse
_Bounds = tuple[float, float]
_Questions = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Column:
    """A bounded number of a row, and what was released of its mean."""

    expression: str
    bounds: _Bounds
    mean: float
    error: float
    """How far the mean may be from what was released."""

    @property
    def centred(self) -> str:
        """SQL of x - v, as long for every v."""
        return f"({clipped(self.expression, self.bounds)} - ({self.mean!r:>24}))"

    @property
    def reach(self) -> float:
        """The largest |x - v|."""
        return max(self.bounds[1] - self.mean, self.mean - self.bounds[0])

    @property
    def square(self) -> dict[str, Any]:
        """The question E (x - v)^2."""
        return {"expression": f"{self.centred} * {self.centred}", "bounds": (0.0, self.reach * self.reach)}

    def variance(self, square: Answer) -> Interval:
        """From the answer of E (x - v)^2."""
        most, slack = ((self.bounds[1] - self.bounds[0]) / 2) ** 2, _OUTWARD * self.reach**2
        return Interval(min(max(square.low - self.error**2 - slack, 0.0), most), min(square.high + slack, most))


def _ask_around_means(
    asker: Asker, given: Sequence[tuple[str, _Bounds]], around: Callable[[list[_Column]], _Questions]
) -> tuple[list[_Column], list[Answer]]:
    """An answer for each mean, then those of `around` the means.

    All of them are charged, or none, unless somebody else spends the rest of the budget in between.
    """
    later = around([_Column(x, bounds, -1.0, 0.0) for x, bounds in given])  # longest with a sign
    means = asker.ask(
        [{"expression": clipped(x, bounds), "bounds": bounds} for x, bounds in given],
        later=[question["expression"] for question in later],
    )
    columns = [
        _Column(x, bounds, mean.value, max(mean.high - mean.value, mean.value - mean.low))
        for (x, bounds), mean in zip(given, means, strict=True)
    ]
    return columns, asker.ask(around(columns))


def _check_squared(bounds: _Bounds) -> _Bounds:
    low, high = check_bounds(bounds)
    if not 1 / _FARTHEST < high - low < _FARTHEST:
        raise InvalidArgument(
            f"bounds == {bounds!r} are too far apart or too near for the square of their distance to be a number; "
            "measure in other units."
        )
    return low, high


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of a number of a row."""

    expression: str
    bounds: tuple[float, float]
    price = 2

    def measure(self, asker: Asker) -> Answer:
        """The mean, then the mean square around it."""
        bounds = _check_squared(self.bounds)
        (column,), (square,) = _ask_around_means(
            asker, [(self.expression, bounds)], lambda columns: [column.square for column in columns]
        )
        scale = 0.0, ((bounds[1] - bounds[0]) / 2) ** 2
        interval = column.variance(square)
        return asker.answer(f"variance of {self.expression}", square.value, interval, scale, about_missing(bounds))


@dataclass(frozen=True, slots=True)
class StandardDeviation:
    """The standard deviation of a number of a row."""

    expression: str
    bounds: tuple[float, float]
    price = 2

    def measure(self, asker: Asker) -> Answer:
        """The square root of the variance."""
        bounds = _check_squared(self.bounds)
        found = Variance(self.expression, bounds).measure(asker)
        interval = Interval(math.sqrt(found.low), math.sqrt(found.high))
        scale = 0.0, (bounds[1] - bounds[0]) / 2
        name = f"standard deviation of {self.expression}"
        return asker.answer(name, math.sqrt(found.value), interval, scale, about_missing(bounds))


@dataclass(frozen=True, slots=True)
class _OfTwo:
    """A statistic of two numbers of a row."""

    x: str
    y: str
    bounds_x: tuple[float, float]
    bounds_y: tuple[float, float]

    def _ask(self, asker: Asker, around: Callable[[list[_Column]], _Questions]) -> tuple[list[_Column], list[Answer]]:
        given = [(self.x, _check_squared(self.bounds_x)), (self.y, _check_squared(self.bounds_y))]
        return _ask_around_means(asker, given, around)

    def _answer(self, asker: Asker, name: str, value: float, interval: Interval, most: float) -> Answer:
        missing = f"x: {about_missing(check_bounds(self.bounds_x))} y: {about_missing(check_bounds(self.bounds_y))}"
        return asker.answer(f"{name} of {self.x} and {self.y}", value, interval, (-most, most), missing)


class Covariance(_OfTwo):
    """The covariance of two numbers of a row."""

    __slots__ = ()
    price = 4

    def measure(self, asker: Asker) -> Answer:
        """Both means, then the positive and the negative part of the product around them."""
        (x, y), parts = self._ask(asker, _products)
        value, interval = _covariance(x, y, *parts)
        most = math.prod((column.bounds[1] - column.bounds[0]) / 2 for column in (x, y))
        return self._answer(asker, "covariance", value, interval, most)


class Correlation(_OfTwo):
    """The correlation of two numbers of a row."""

    __slots__ = ()
    price = 6

    def measure(self, asker: Asker) -> Answer:
        """The covariance over the root of both variances."""
        (x, y), (positive, negative, *squares) = self._ask(
            asker, lambda columns: [*_products(columns), *(column.square for column in columns)]
        )
        value, interval = _covariance(x, y, positive, negative)
        first, second = x.variance(squares[0]), y.variance(squares[1])
        roots = [math.sqrt(a) * math.sqrt(b) for a, b in ((first.low, second.low), (first.high, second.high))]
        ratios = [
            math.copysign(1.0, end) if abs(end) >= root else end / root
            for end, root in product((interval.low, interval.high), roots)
            if root > 0 or end != 0
        ] or [0.0]
        low, high = min(ratios) - _OUTWARD, max(ratios) + _OUTWARD
        if roots[0] == 0:  # no spread at all is possible: then nothing is said
            low, high = -1.0, 1.0
        middle = math.sqrt(squares[0].value) * math.sqrt(squares[1].value)
        return self._answer(asker, "correlation", value / middle if middle > 0 else 0.0, Interval(low, high), 1.0)


def _products(columns: list[_Column]) -> _Questions:
    """The questions of the positive and the negative part of (x - v)(y - w)."""
    x, y = columns
    product_of, scale = f"{x.centred} * {y.centred}", (0.0, x.reach * y.reach)
    return [
        {"expression": f"greatest({product_of}, 0)", "bounds": scale},
        {"expression": f"greatest(-({product_of}), 0)", "bounds": scale},
    ]


def _covariance(x: _Column, y: _Column, positive: Answer, negative: Answer) -> tuple[float, Interval]:
    around = of_parts(positive.interval, negative.interval)
    slack = x.error * y.error + _OUTWARD * x.reach * y.reach
    return positive.value - negative.value, Interval(around.low - slack, around.high + slack)
