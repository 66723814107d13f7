"""Variance, standard deviation, covariance, correlation.

For any number v, Var x = E (x - v)^2 - (E x - v)^2. With v the released mean the last term is at most the square of
that answer's error, and (x - v)^2 is small where the variance is, which makes its answer precise. In the same way
Cov(x, y) = E (x - v)(y - w) - (E x - v)(E y - w).

The answers still follow the bounds, because a few rows at the bounds, too few to be seen through noise, could carry a
moment larger than all others together (section 12 of the guarantees). With `within`, the bounds are found first: the
statistic is then that of numbers clipped to a few standard deviations around their released means. A correlation does
this unless told otherwise: it has no scale of its own, so bounds that are too far apart leave nothing of it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

from afresh import checks
from afresh.queries.text import number
from afresh.results.answer import Answer
from afresh.results.reading import Number
from afresh.statistics.around import LOOKS, Bounds, Column, Questions, ask_around, most_means, squares
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
from afresh.statistics.closer import WITHIN, other_plans, shown_spread, suggestion


def _check_within(within: float | None) -> float | None:
    must_be = "at least 1 standard deviation, or None"
    return None if within is None else checks.number("within", within, must_be, least=1)


def _within_text(within: float | None, each: str) -> str:
    return "" if within is None else f", {each}clipped around its mean (within={number(within)})"


def _clipped_to(sample: Sample) -> str:
    """The end of a statement about clipped numbers: the bounds that were found."""
    return ": " + " and ".join(f"[{number(low)}, {number(high)}]" for low, high in (x.bounds for x in sample.variables))


def _with_suggestion(answer: Answer, asker: Asker, sample: Sample, spread: float, kind: str, unit: float) -> Answer:
    told = suggestion(answer, asker.desk.plan.mechanism, spread, kind, unit, grouped=sample.group is not None)
    return replace(answer, instead=told)


def _squared(expression: str, bounds: Bounds, missing: float | None, schema: Schema) -> Variable:
    """A number whose square is one."""
    return variable(expression, checks.squared_bounds("bounds", bounds), missing, schema)


class _Spread(OfRows):
    """A mixin for statistics of numbers that may be clipped around their means."""

    __slots__ = ()
    within: float | None
    _name: ClassVar[str]

    @property
    @abstractmethod
    def ranges(self) -> tuple[Bounds, ...]:
        """The bounds of each number."""

    @property
    @abstractmethod
    def _clipped_means(self) -> int:
        """The number of means it needs of clipped numbers."""

    @property
    def _means(self) -> int:
        looks = 0 if self.within is None else 2 * LOOKS * len(self.ranges)
        return self._clipped_means + looks

    def _with_plans(self, answer: Answer, asker: Asker, sample: Sample, unit: float) -> Answer:
        """The answer for clipped numbers; if it says little, with the plans that would have told more."""
        if sample.group is not None or self.within is None:
            return answer
        mechanism = asker.desk.plan.mechanism
        told = other_plans(answer, mechanism, self.within, self._name, unit, self._means)
        return replace(answer, would_tell=told)

    def most(self, asker: Asker) -> int:
        """The means that it needs, and those that find closer bounds.

        Args:
            asker: How means are asked for.

        Returns:
            A number of means.
        """
        looks = 0 if self.within is None else most_means(asker, self._sample(asker.schema))
        return self._clipped_means + looks


@dataclass(frozen=True, slots=True)
class Variance(_Spread):
    """The variance of a number, over the rows that have it.

    Args:
        expression: A number, in SQL.
        bounds: What it is clipped to.
        where: A condition in SQL; only rows that satisfy it count.
        missing: What rows without the number count as; left out unless it is given.
        within: Clip the number to about so many standard deviations around its mean, as well as these are known.
            This takes one more answer in rounds, and at most six more; `Guard.price` shows how many.
    """

    expression: str
    bounds: tuple[float, float]
    where: str | None = None
    missing: float | None = None
    within: float | None = None
    _name: ClassVar[str] = "variance"

    def __post_init__(self) -> None:
        """Check how far numbers are clipped."""
        object.__setattr__(self, "within", _check_within(self.within))

    @property
    def _clipped_means(self) -> int:
        return 2

    @property
    def _grouped(self) -> bool:
        return grouped(self.where, self.missing)

    @property
    def ranges(self) -> tuple[Bounds, ...]:
        """Its bounds."""
        return (self.bounds,)

    def of(self, *numbers: str) -> Variance:
        """The same of another number, over all rows.

        Args:
            *numbers: The number, in SQL.

        Returns:
            A statistic with the same bounds.
        """
        (expression,) = numbers
        return replace(self, expression=expression, where=None, missing=self.bounds[0])

    def _sample(self, schema: Schema) -> Sample:
        given = _squared(self.expression, self.bounds, self.missing, schema)
        return Sample((given,), check_where(self.where, schema))

    def text(self, schema: Schema) -> str:
        """What is measured, in words."""
        x = self._sample(schema).variables[0]
        return f"{self._name} of {x.text}{where_text(self.where, schema)}{_within_text(self.within, '')}"

    def _most(self, width: float) -> float:
        return (width / 2) ** 2

    def measure(self, asker: Asker) -> Answer:
        """The mean, then the mean square around it."""
        text = self.text(asker.schema)  # before anything is charged: it checks the arguments as well
        asked = ask_around(asker, self._sample(asker.schema), self.within, squares)
        sample = asked.sample
        low, high = sample.variables[0].bounds
        parameters = {**asked.parameters("bounds"), **asker.parameters(sample)}
        stated = text if self.within is None else text + _clipped_to(sample)
        answer = asker.answer(stated, self._name, parameters, (0.0, self._most(high - low)), sample.about_missing)
        (column,), (square,) = asked.columns, asked.found
        unit = self._most(2 * column.centre.reach)
        if self.within is not None:
            return self._with_plans(answer, asker, sample, unit)
        return _with_suggestion(answer, asker, sample, shown_spread(square, column.centre.reach**2), self._name, unit)


class StandardDeviation(Variance):
    """The standard deviation of a number, over the rows that have it.

    Args:
        expression: A number, in SQL.
        bounds: What it is clipped to.
        where: A condition in SQL; only rows that satisfy it count.
        missing: What rows without the number count as; left out unless it is given.
        within: Clip the number to about so many standard deviations around its mean, as well as these are known.
            This takes one more answer in rounds, and at most six more; `Guard.price` shows how many.
    """

    __slots__ = ()
    _name = "standard deviation"

    def _most(self, width: float) -> float:
        return width / 2


@dataclass(frozen=True, slots=True)
class Covariance(_Spread):
    """The covariance of two numbers, over the rows that have both.

    Args:
        x: A number, in SQL.
        y: Another.
        bounds_x: What x is clipped to.
        bounds_y: What y is clipped to.
        where: A condition in SQL; only rows that satisfy it count.
        missing_x: What rows without x count as; left out unless it is given.
        missing_y: The same for y.
        within: Clip both numbers to about so many standard deviations around their means, as well as these are known.
            This takes two more answers in rounds, and at most twelve more; `Guard.price` shows how many.
    """

    x: str
    y: str
    bounds_x: tuple[float, float]
    bounds_y: tuple[float, float]
    where: str | None = None
    missing_x: float | None = None
    missing_y: float | None = None
    within: float | None = None
    _name: ClassVar[str] = "covariance"

    def __post_init__(self) -> None:
        """Check how far numbers are clipped."""
        object.__setattr__(self, "within", _check_within(self.within))

    @property
    def _clipped_means(self) -> int:
        return 4

    @property
    def _rule(self) -> str:
        return self._name

    @property
    def _grouped(self) -> bool:
        return grouped(self.where, self.missing_x, self.missing_y)

    @property
    def ranges(self) -> tuple[Bounds, ...]:
        """The bounds of both numbers."""
        return self.bounds_x, self.bounds_y

    def of(self, *numbers: str) -> Covariance:
        """The same of two other numbers, over all rows.

        Args:
            *numbers: Both numbers, in SQL.

        Returns:
            A statistic with the same bounds.
        """
        x, y = numbers
        return replace(self, x=x, y=y, where=None, missing_x=self.bounds_x[0], missing_y=self.bounds_y[0])

    def _sample(self, schema: Schema) -> Sample:
        x = _squared(self.x, self.bounds_x, self.missing_x, schema)
        y = _squared(self.y, self.bounds_y, self.missing_y, schema)
        return Sample((x, y), check_where(self.where, schema))

    def text(self, schema: Schema) -> str:
        """What is measured, in words."""
        x, y = self._sample(schema).variables
        clipped = _within_text(self.within, "each ")
        return f"{self._name} of {x.text} and {y.text}{where_text(self.where, schema)}{clipped}"

    def _most(self, *widths: float) -> float:
        return math.prod(width / 2 for width in widths)

    def _around(self, columns: list[Column]) -> Questions:
        """The questions for the positive and negative parts of (x - v)(y - w)."""
        x, y = columns
        product_of, scale = f"{x.centred} * {y.centred}", (0.0, x.centre.reach * y.centre.reach)
        return [
            {"expression": f"greatest({product_of}, 0)", "bounds": scale, "missing": 0.0},
            {"expression": f"greatest(-({product_of}), 0)", "bounds": scale, "missing": 0.0},
        ]

    def measure(self, asker: Asker) -> Answer:
        """Both means, then what is asked around them."""
        text = self.text(asker.schema)  # before anything is charged: it checks the arguments as well
        asked = ask_around(asker, self._sample(asker.schema), self.within, self._around)
        sample = asked.sample
        most = self._most(*(high - low for low, high in (x.bounds for x in sample.variables)))
        parameters = {**asked.parameters("x", "y"), **asker.parameters(sample)}
        stated = text if self.within is None else text + _clipped_to(sample)
        answer = asker.answer(stated, self._rule, parameters, (-most, most), sample.about_missing)
        reaches = [column.centre.reach for column in asked.columns]
        unit = self._most(*(2 * reach for reach in reaches))
        if self.within is not None:
            return self._with_plans(answer, asker, sample, unit)
        return _with_suggestion(answer, asker, sample, self._spread(asked.found, reaches), self._name, unit)

    def _spread(self, found: list[Number], reaches: list[float]) -> float:
        """About the standard deviation as a part of the farthest distance: E |uw| is 2/pi of the square of a spread."""
        both = [Number(each.value * math.pi / 2, each.low, each.high * math.pi / 2) for each in found]
        product = Number(both[0].value + both[1].value, 0.0, both[0].high + both[1].high)
        return shown_spread(product, math.prod(reaches))


@dataclass(frozen=True, slots=True)
class Correlation(Covariance):
    """The correlation of two numbers, over the rows that have both.

    Unless `within` says otherwise, both are clipped to three standard deviations around their means where that is
    closer than the bounds. So it hardly matters how far apart these are, and a few rows far away do not decide it.

    Args:
        x: A number, in SQL.
        y: Another.
        bounds_x: What x is clipped to.
        bounds_y: What y is clipped to.
        where: A condition in SQL; only rows that satisfy it count.
        missing_x: What rows without x count as; left out unless it is given.
        missing_y: The same for y.
        within: The number of standard deviations; None for the bounds as they are. That takes six answers, instead of
            seven in rounds and at most seventeen; `Guard.price` shows how many.
    """

    within: float | None = WITHIN
    _name: ClassVar[str] = "correlation"

    @property
    def _clipped_means(self) -> int:
        return 6 if self.within is None else 5  # by sums

    @property
    def _rule(self) -> str:
        return "correlation" if self.within is None else "correlation by sums"

    def _most(self, *widths: float) -> float:
        return 1.0

    def _spread(self, found: list[Number], reaches: list[float]) -> float:
        squares = zip(found[2:], reaches, strict=True)
        return math.sqrt(math.prod(shown_spread(square, reach**2) for square, reach in squares))

    def _around(self, columns: list[Column]) -> Questions:
        if self.within is None:
            return [*Covariance._around(self, columns), *squares(columns)]
        u, w = (column.unit for column in columns)  # of about the same spread, so their sum and difference tell most
        return [
            {"expression": f"({u} + {w}) * ({u} + {w}) / 4", "bounds": (0.0, 1.0), "missing": 0.0},
            {"expression": f"({u} - {w}) * ({u} - {w}) / 4", "bounds": (0.0, 1.0), "missing": 0.0},
            {"expression": f"({u} * {u} - {w} * {w}) / 2", "bounds": (-0.5, 0.5), "missing": 0.0},
        ]
