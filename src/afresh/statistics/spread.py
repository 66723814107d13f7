"""Variance, standard deviation, covariance, correlation.

For any number v, Var x = E (x - v)^2 - (E x - v)^2. With v the released mean the last term is at most the square of
that answer's error, and (x - v)^2 is small where the variance is, which makes its answer precise. In the same way
Cov(x, y) = E (x - v)(y - w) - (E x - v)(E y - w).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from afresh import checks
from afresh.answer import Answer
from afresh.reading import Number
from afresh.rules import Centre
from afresh.statistics.base import Asker, about_missing, clipped

_FARTHEST = 1e150  # between bounds; its square is still a number, as is that of its inverse
_Bounds = tuple[float, float]
_Questions = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Column:
    """A bounded number of a row, and what was released of its mean."""

    expression: str
    centre: Centre

    @property
    def centred(self) -> str:
        """SQL of x - v, as long for every v."""
        return f"({clipped(self.expression, self.centre.bounds)} - ({self.centre.mean.value!r:>24}))"

    @property
    def square(self) -> dict[str, Any]:
        """The question E (x - v)^2."""
        reach = self.centre.reach
        return {"expression": f"{self.centred} * {self.centred}", "bounds": (0.0, reach * reach)}


def _ask_around_means(
    asker: Asker, given: Sequence[tuple[str, _Bounds]], around: Callable[[list[_Column]], _Questions]
) -> None:
    """An answer for each mean, then those of `around` the means.

    All of them are charged, or none, unless somebody else spends the rest of the budget in between.
    """
    later = around([_Column(x, Centre(bounds, Number(-1.0, 0.0, 0.0))) for x, bounds in given])  # longest with a sign
    means = asker.ask(
        [{"expression": clipped(x, bounds), "bounds": bounds} for x, bounds in given],
        later=[question["expression"] for question in later],
    )
    asker.ask(
        around(
            [
                _Column(x, Centre(bounds, Number(mean.value, mean.low, mean.high)))
                for (x, bounds), mean in zip(given, means, strict=True)
            ]
        )
    )


def _check_squared(bounds: _Bounds) -> _Bounds:
    low, high = checks.bounds("bounds", bounds)
    if not 1 / _FARTHEST < high - low < _FARTHEST:
        must_be = "neither too far apart nor too near for the square of their distance to be a number; use other units"
        raise checks.wrong("bounds", bounds, must_be)
    return low, high


@dataclass(frozen=True, slots=True)
class Variance:
    """The variance of a number of a row."""

    expression: str
    bounds: tuple[float, float]
    price = 2

    def measure(self, asker: Asker) -> Answer:
        """The mean, then the mean square around it."""
        bounds = _ask_square(asker, self.expression, self.bounds)
        scale = 0.0, ((bounds[1] - bounds[0]) / 2) ** 2
        parameters = {"bounds": list(bounds)}
        return asker.answer(f"variance of {self.expression}", "variance", parameters, scale, about_missing(bounds))


@dataclass(frozen=True, slots=True)
class StandardDeviation:
    """The standard deviation of a number of a row."""

    expression: str
    bounds: tuple[float, float]
    price = 2

    def measure(self, asker: Asker) -> Answer:
        """The square root of the variance."""
        bounds = _ask_square(asker, self.expression, self.bounds)
        scale = 0.0, (bounds[1] - bounds[0]) / 2
        name, parameters = f"standard deviation of {self.expression}", {"bounds": list(bounds)}
        return asker.answer(name, "standard deviation", parameters, scale, about_missing(bounds))


def _ask_square(asker: Asker, expression: str, bounds: _Bounds) -> _Bounds:
    checked = _check_squared(bounds)
    _ask_around_means(asker, [(expression, checked)], lambda columns: [column.square for column in columns])
    return checked


@dataclass(frozen=True, slots=True)
class _OfTwo:
    """A statistic of two numbers of a row."""

    x: str
    y: str
    bounds_x: tuple[float, float]
    bounds_y: tuple[float, float]

    def _measure(self, asker: Asker, name: str, around: Callable[[list[_Column]], _Questions]) -> Answer:
        x, y = _check_squared(self.bounds_x), _check_squared(self.bounds_y)
        _ask_around_means(asker, [(self.x, x), (self.y, y)], around)
        most = 1.0 if name == "correlation" else math.prod((high - low) / 2 for low, high in (x, y))
        missing = f"x: {about_missing(x)} y: {about_missing(y)}"
        parameters = {"x": list(x), "y": list(y)}
        return asker.answer(f"{name} of {self.x} and {self.y}", name, parameters, (-most, most), missing)


class Covariance(_OfTwo):
    """The covariance of two numbers of a row."""

    __slots__ = ()
    price = 4

    def measure(self, asker: Asker) -> Answer:
        """Both means, then the positive and the negative part of the product around them."""
        return self._measure(asker, "covariance", _products)


class Correlation(_OfTwo):
    """The correlation of two numbers of a row."""

    __slots__ = ()
    price = 6

    def measure(self, asker: Asker) -> Answer:
        """The covariance over the root of both variances."""
        return self._measure(
            asker, "correlation", lambda columns: [*_products(columns), *(column.square for column in columns)]
        )


def _products(columns: list[_Column]) -> _Questions:
    """The questions of the positive and the negative part of (x - v)(y - w)."""
    x, y = columns
    product_of, scale = f"{x.centred} * {y.centred}", (0.0, x.centre.reach * y.centre.reach)
    return [
        {"expression": f"greatest({product_of}, 0)", "bounds": scale},
        {"expression": f"greatest(-({product_of}), 0)", "bounds": scale},
    ]
