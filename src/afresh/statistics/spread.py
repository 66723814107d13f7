"""Variance, standard deviation, covariance, correlation.

For any number v, Var x = E (x - v)^2 - (E x - v)^2. With v the released mean the last term is at most the square of
that answer's error, and (x - v)^2 is small where the variance is, which makes its answer precise. In the same way
Cov(x, y) = E (x - v)(y - w) - (E x - v)(E y - w).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from afresh.answer import Answer, Interval
from afresh.difference import of_parts
from afresh.statistics.base import Asker, about_missing, check_bounds, clipped


@dataclass(frozen=True, slots=True)
class _Column:
    """A bounded number of a row, and what was released of its mean."""

    expression: str
    bounds: tuple[float, float]
    mean: float
    error: float
    """How far the mean may be from what was released."""

    @property
    def centred(self) -> str:
        """SQL of x - v."""
        return f"({clipped(self.expression, self.bounds)} - ({self.mean!r}))"

    @property
    def reach(self) -> float:
        """The largest |x - v|."""
        return max(self.bounds[1] - self.mean, self.mean - self.bounds[0])

    @property
    def square(self) -> dict[str, object]:
        """The question E (x - v)^2."""
        return {"expression": f"{self.centred} * {self.centred}", "bounds": (0.0, self.reach**2)}

    def variance(self, square: Answer) -> Interval:
        """From the answer of E (x - v)^2."""
        most = ((self.bounds[1] - self.bounds[0]) / 2) ** 2
        return Interval(min(max(square.low - self.error**2, 0.0), most), min(square.high, most))


def _columns(asker: Asker, given: list[tuple[str, tuple[float, float]]]) -> list[_Column]:
    """One answer each."""
    means = asker.ask([{"expression": clipped(x, bounds), "bounds": bounds} for x, bounds in given])
    return [
        _Column(x, bounds, mean.value, max(mean.high - mean.value, mean.value - mean.low))
        for (x, bounds), mean in zip(given, means, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of a number of a row."""

    expression: str
    bounds: tuple[float, float]
    price = 2

    def measure(self, asker: Asker) -> Answer:
        """The mean, then the mean square around it."""
        bounds = check_bounds(self.bounds)
        (column,) = _columns(asker, [(self.expression, bounds)])
        (square,) = asker.ask([column.square])
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
        bounds = check_bounds(self.bounds)
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

    def _columns(self, asker: Asker) -> list[_Column]:
        return _columns(asker, [(self.x, check_bounds(self.bounds_x)), (self.y, check_bounds(self.bounds_y))])

    def _answer(self, asker: Asker, name: str, value: float, interval: Interval, most: float) -> Answer:
        missing = f"x: {about_missing(check_bounds(self.bounds_x))} y: {about_missing(check_bounds(self.bounds_y))}"
        return asker.answer(f"{name} of {self.x} and {self.y}", value, interval, (-most, most), missing)


class Covariance(_OfTwo):
    """The covariance of two numbers of a row."""

    __slots__ = ()
    price = 4

    def measure(self, asker: Asker) -> Answer:
        """Both means, then the positive and the negative part of the product around them."""
        columns = self._columns(asker)
        value, interval = _covariance(asker, *columns)
        most = math.prod((column.bounds[1] - column.bounds[0]) / 2 for column in columns)
        return self._answer(asker, "covariance", value, interval, most)


class Correlation(_OfTwo):
    """The correlation of two numbers of a row."""

    __slots__ = ()
    price = 6

    def measure(self, asker: Asker) -> Answer:
        """The covariance over the root of both variances."""
        x, y = self._columns(asker)
        value, interval = _covariance(asker, x, y)
        squares = asker.ask([x.square, y.square])
        first, second = x.variance(squares[0]), y.variance(squares[1])
        roots = math.sqrt(first.low * second.low), math.sqrt(first.high * second.high)
        ratios = [
            math.copysign(1.0, end) if abs(end) >= root else end / root
            for end, root in product((interval.low, interval.high), roots)
            if root > 0 or end != 0
        ] or [0.0]
        low, high = min(ratios), max(ratios)
        if roots[0] == 0:  # no spread at all is possible: then nothing is said
            low, high = -1.0, 1.0
        middle = math.sqrt(squares[0].value * squares[1].value)
        return self._answer(asker, "correlation", value / middle if middle > 0 else 0.0, Interval(low, high), 1.0)


def _covariance(asker: Asker, x: _Column, y: _Column) -> tuple[float, Interval]:
    product_of = f"{x.centred} * {y.centred}"
    scale = (0.0, x.reach * y.reach)
    positive, negative = asker.ask(
        [
            {"expression": f"greatest({product_of}, 0)", "bounds": scale},
            {"expression": f"greatest(-({product_of}), 0)", "bounds": scale},
        ]
    )
    around, slack = of_parts(positive.interval, negative.interval), x.error * y.error
    return positive.value - negative.value, Interval(around.low - slack, around.high + slack)
