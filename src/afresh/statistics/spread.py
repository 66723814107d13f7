"""Variance, standard deviation, covariance, correlation.

For any number v, Var x = E (x - v)^2 - (E x - v)^2. With v the released mean the last term is at most the square of
that answer's error, and (x - v)^2 is small where the variance is, which makes its answer precise. In the same way
Cov(x, y) = E (x - v)(y - w) - (E x - v)(E y - w).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from afresh import checks
from afresh.results.answer import Answer
from afresh.results.reading import Number
from afresh.results.rules import Centre
from afresh.statistics.base import (
    Asker,
    OfRows,
    Sample,
    Schema,
    Variable,
    check_where,
    grouped,
    variable,
    where_text,
)

_FARTHEST = 1e150  # the distance between bounds; its square, and that of its inverse, are still finite
_Bounds = tuple[float, float]
_Questions = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Column:
    """A bounded number per row, and what was released about its mean."""

    variable: Variable
    centre: Centre

    @property
    def centred(self) -> str:
        """SQL for x - v, of the same length for every v."""
        return f"({self.variable.sql} - ({self.centre.mean.value!r:>24}))"

    @property
    def square(self) -> dict[str, Any]:
        """The question E (x - v)^2."""
        reach = self.centre.reach
        return {"expression": f"{self.centred} * {self.centred}", "bounds": (0.0, reach * reach), "missing": 0.0}


def _ask_around_means(asker: Asker, sample: Sample, around: Callable[[list[_Column]], _Questions]) -> None:
    """An answer for each mean, then those from `around` the means.

    Either all are charged or none, unless someone else spends the rest of the budget in between.
    """
    given = sample.variables
    later = around([_Column(x, Centre(x.bounds, Number(-1.0, 0.0, 0.0))) for x in given])  # longest with a sign
    means = asker.ask(
        [{"expression": x.sql, "bounds": x.bounds, "missing": x.bounds[0]} for x in given],
        where=sample.group,
        later=[question["expression"] for question in later],
    )
    columns = [_Column(x, Centre(x.bounds, mean)) for x, mean in zip(given, means, strict=True)]
    asker.ask(around(columns), where=sample.group)


def _squared(expression: str, bounds: _Bounds, missing: float | None, schema: Schema) -> Variable:
    """A number whose square is one."""
    low, high = checks.bounds("bounds", bounds)
    if not 1 / _FARTHEST < high - low < _FARTHEST:
        must_be = "neither so far apart nor so close that the square of their distance is not a number; use other units"
        raise checks.wrong("bounds", bounds, must_be)
    return variable(expression, (low, high), missing, schema)


@dataclass(frozen=True, slots=True)
class Variance(OfRows):
    """The variance of a number, over the rows that have it.

    Args:
        expression: A number, in SQL.
        bounds: What it is clipped to.
        where: A condition in SQL; only rows that satisfy it count.
        missing: What rows without the number count as; left out unless it is given.
    """

    expression: str
    bounds: tuple[float, float]
    where: str | None = None
    missing: float | None = None
    _name: ClassVar[str] = "variance"
    _means: ClassVar[int] = 2

    @property
    def _grouped(self) -> bool:
        return grouped(self.where, self.missing)

    def _sample(self, schema: Schema) -> Sample:
        given = _squared(self.expression, self.bounds, self.missing, schema)
        return Sample((given,), check_where(self.where, schema))

    def text(self, schema: Schema) -> str:
        """What is measured, in words."""
        return f"{self._name} of {self._sample(schema).variables[0].text}{where_text(self.where, schema)}"

    def _most(self, width: float) -> float:
        return (width / 2) ** 2

    def measure(self, asker: Asker) -> Answer:
        """The mean, then the mean square around it."""
        sample, text = self._sample(asker.schema), self.text(asker.schema)
        _ask_around_means(asker, sample, lambda columns: [column.square for column in columns])
        low, high = sample.variables[0].bounds
        parameters = {"bounds": [low, high], **asker.parameters(sample)}
        return asker.answer(text, self._name, parameters, (0.0, self._most(high - low)), sample.about_missing)


class StandardDeviation(Variance):
    """The standard deviation of a number, over the rows that have it.

    Args:
        expression: A number, in SQL.
        bounds: What it is clipped to.
        where: A condition in SQL; only rows that satisfy it count.
        missing: What rows without the number count as; left out unless it is given.
    """

    __slots__ = ()
    _name = "standard deviation"

    def _most(self, width: float) -> float:
        return width / 2


@dataclass(frozen=True, slots=True)
class Covariance(OfRows):
    """The covariance of two numbers, over the rows that have both.

    Args:
        x: A number, in SQL.
        y: Another.
        bounds_x: What x is clipped to.
        bounds_y: What y is clipped to.
        where: A condition in SQL; only rows that satisfy it count.
        missing_x: What rows without x count as; left out unless it is given.
        missing_y: The same for y.
    """

    x: str
    y: str
    bounds_x: tuple[float, float]
    bounds_y: tuple[float, float]
    where: str | None = None
    missing_x: float | None = None
    missing_y: float | None = None
    _name: ClassVar[str] = "covariance"
    _means: ClassVar[int] = 4

    @property
    def _grouped(self) -> bool:
        return grouped(self.where, self.missing_x, self.missing_y)

    def _sample(self, schema: Schema) -> Sample:
        x = _squared(self.x, self.bounds_x, self.missing_x, schema)
        y = _squared(self.y, self.bounds_y, self.missing_y, schema)
        return Sample((x, y), check_where(self.where, schema))

    def text(self, schema: Schema) -> str:
        """What is measured, in words."""
        x, y = self._sample(schema).variables
        return f"{self._name} of {x.text} and {y.text}{where_text(self.where, schema)}"

    def _most(self, *widths: float) -> float:
        return math.prod(width / 2 for width in widths)

    def _around(self, columns: list[_Column]) -> _Questions:
        """The questions for the positive and negative parts of (x - v)(y - w)."""
        x, y = columns
        product_of, scale = f"{x.centred} * {y.centred}", (0.0, x.centre.reach * y.centre.reach)
        return [
            {"expression": f"greatest({product_of}, 0)", "bounds": scale, "missing": 0.0},
            {"expression": f"greatest(-({product_of}), 0)", "bounds": scale, "missing": 0.0},
        ]

    def measure(self, asker: Asker) -> Answer:
        """Both means, then what is asked around them."""
        sample, text = self._sample(asker.schema), self.text(asker.schema)
        _ask_around_means(asker, sample, self._around)
        x, y = (each.bounds for each in sample.variables)
        most = self._most(x[1] - x[0], y[1] - y[0])
        parameters = {"x": list(x), "y": list(y), **asker.parameters(sample)}
        return asker.answer(text, self._name, parameters, (-most, most), sample.about_missing)


class Correlation(Covariance):
    """The correlation of two numbers, over the rows that have both.

    Args:
        x: A number, in SQL.
        y: Another.
        bounds_x: What x is clipped to.
        bounds_y: What y is clipped to.
        where: A condition in SQL; only rows that satisfy it count.
        missing_x: What rows without x count as; left out unless it is given.
        missing_y: The same for y.
    """

    __slots__ = ()
    _name = "correlation"
    _means = 6

    def _most(self, *widths: float) -> float:
        return 1.0

    def _around(self, columns: list[_Column]) -> _Questions:
        return [*Covariance._around(self, columns), *(column.square for column in columns)]
