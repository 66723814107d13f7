"""Variance, standard deviation, covariance, correlation.

For any number v, Var x = E (x - v)^2 - (E x - v)^2. With v the released mean the last term is at most the square of
that answer's error, and (x - v)^2 is small where the variance is, which makes its answer precise. In the same way
Cov(x, y) = E (x - v)(y - w) - (E x - v)(E y - w).

The answers still follow the bounds, because a few rows at the bounds, too few to be seen through noise, could carry a
moment larger than all others together (section 12 of the guarantees). With `within`, the bounds are found first: the
statistic is then that of numbers clipped to a few standard deviations around their released means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, ClassVar

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.queries.text import number
from afresh.results.answer import Answer
from afresh.results.reading import Number
from afresh.results.spreads import Centre
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
from afresh.statistics.closer import PER_DISTANCE, shown_spread, suggestion

_FARTHEST = 1e150  # the distance between bounds; its square, and that of its inverse, are still finite
_Bounds = tuple[float, float]
_Questions = list[dict[str, Any]]
_LEAST = 1e-9  # of the largest number between the bounds: numbers are never clipped closer than this
_EXACT = Context(prec=100)


@dataclass(frozen=True, slots=True)
class _Column:
    """A bounded number per row, and what was released about its mean."""

    variable: Variable
    centre: Centre

    @property
    def centred(self) -> str:
        """SQL for x - v, of the same length for every v."""
        return f"({self.variable.sql} - {_literal(self.centre.mean.value)})"

    @property
    def unit(self) -> str:
        """SQL for u = (x - v)/reach, which is in [-1, 1]."""
        return f"({self.centred} / {_literal(self.centre.reach)})"

    @property
    def distance(self) -> dict[str, Any]:
        """The question E |x - v|."""
        return {"expression": f"abs({self.centred})", "bounds": (0.0, self.centre.reach), "missing": 0.0}

    @property
    def square(self) -> dict[str, Any]:
        """The question E (x - v)^2."""
        reach = self.centre.reach
        return {"expression": f"{self.centred} * {self.centred}", "bounds": (0.0, reach * reach), "missing": 0.0}


def _literal(value: float) -> str:
    """A number in SQL, of the same length for every value."""
    return f"({value!r:>24})"


def _ask_around_means(
    asker: Asker, sample: Sample, around: Callable[[list[_Column]], _Questions], later: _Questions | None = None
) -> tuple[list[_Column], list[Number]]:
    """An answer for each mean, then those from `around` the means.

    Either all are charged or none, unless someone else spends the rest of the budget in between. `later` questions
    will be asked after these.
    """
    _check_one_truth(asker)
    given = sample.variables
    after = [question["expression"] for question in later or []]
    means = asker.ask(_means(sample), where=sample.group, later=[*_expressions(around(_unknown(sample))), *after])
    columns = [_Column(x, Centre(x.bounds, mean)) for x, mean in zip(given, means, strict=True)]
    return columns, asker.ask(around(columns), where=sample.group, later=after)


def _check_one_truth(asker: Asker) -> None:
    """Refuse to combine rounds whose true values differ: those of public features are about each round's own rows."""
    if asker.desk.plan.mechanism.batch is not None and asker.desk.scope.features == "public":
        raise InvalidArgument(
            "with public features every round is about the features of its own rows, and this statistic takes two "
            'rounds, which cannot be combined; declare features="hidden", or open the dataset without rounds. Nothing '
            "was charged."
        )


def _means(sample: Sample) -> _Questions:
    return [{"expression": x.sql, "bounds": x.bounds, "missing": x.bounds[0]} for x in sample.variables]


def _unknown(sample: Sample) -> list[_Column]:
    """Columns whose means are not known yet: what is asked about them is as long as it will be, or longer."""
    return [_Column(x, Centre(x.bounds, Number(-1.0, 0.0, 0.0))) for x in sample.variables]


def _expressions(questions: _Questions) -> list[str]:
    return [question["expression"] for question in questions]


def _clipped(asker: Asker, sample: Sample, within: float, around: Callable[[list[_Column]], _Questions]) -> Sample:
    """Find bounds `within` so many standard deviations of the means, at two answers for each number."""
    unknown = replace(sample, variables=tuple(_narrowed(x, x.bounds) for x in sample.variables))
    later = [*_means(unknown), *around(_unknown(unknown))]
    found = zip(
        *_ask_around_means(asker, sample, lambda columns: [each.distance for each in columns], later), strict=True
    )
    asker.set_aside()  # what follows is derived without these answers
    variables = [_narrowed(column.variable, _around(column, far, within)) for column, far in found]
    return replace(sample, variables=tuple(variables))


def _around(column: _Column, distance: Number, within: float) -> _Bounds:
    """Bounds around a released mean, in short numbers: they are part of what is asked and stated.

    A distance that drowns in noise is taken to be half of what it may be at most.
    """
    low, high = column.variable.bounds
    spread = PER_DISTANCE * max(distance.value, distance.high / 2)
    reach = Decimal(max(within * spread, _LEAST * max(-low, high)))
    step, middle = Decimal(1).scaleb(reach.adjusted() - 1), Decimal(column.centre.mean.value)
    least = _EXACT.subtract(middle, reach).quantize(step, ROUND_FLOOR, _EXACT)
    most = _EXACT.add(middle, reach).quantize(step, ROUND_CEILING, _EXACT)
    return max(low, float(least)), min(high, float(most))


def _narrowed(x: Variable, bounds: _Bounds) -> Variable:
    low, high = bounds
    return replace(x, sql=f"least(greatest({x.sql}, {_literal(low)}), {_literal(high)})", bounds=bounds)


def _check_within(within: float | None) -> float | None:
    must_be = "at least 1 standard deviation, or None"
    return None if within is None else checks.number("within", within, must_be, least=1)


def _within_text(within: float | None, each: str) -> str:
    return "" if within is None else f", {each}clipped within {number(within)} standard deviations of its mean"


def _clipped_to(sample: Sample) -> str:
    """The end of a statement about clipped numbers: the bounds that were found."""
    return ": " + " and ".join(f"[{number(low)}, {number(high)}]" for low, high in (x.bounds for x in sample.variables))


def _with_suggestion(answer: Answer, asker: Asker, sample: Sample, spread: float, kind: str, unit: float) -> Answer:
    told = suggestion(answer, asker.desk.plan.mechanism, spread, kind, unit, grouped=sample.group is not None)
    return replace(answer, instead=told)


def _squares(columns: list[_Column]) -> _Questions:
    return [column.square for column in columns]


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
        within: Clip the number to about so many standard deviations around its mean, which two more answers find.
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
    def _means(self) -> int:
        return 2 if self.within is None else 4

    @property
    def _grouped(self) -> bool:
        return grouped(self.where, self.missing)

    @property
    def ranges(self) -> tuple[_Bounds, ...]:
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
        sample, text = self._sample(asker.schema), self.text(asker.schema)
        if self.within is not None:
            sample = _clipped(asker, sample, self.within, _squares)
            text += _clipped_to(sample)
        (column,), (square,) = _ask_around_means(asker, sample, _squares)
        low, high = sample.variables[0].bounds
        parameters = {"bounds": [low, high], **asker.parameters(sample)}
        answer = asker.answer(text, self._name, parameters, (0.0, self._most(high - low)), sample.about_missing)
        if self.within is not None:
            return answer
        spread, unit = shown_spread(square, column.centre.reach**2), self._most(2 * column.centre.reach)
        return _with_suggestion(answer, asker, sample, spread, self._name, unit)


class StandardDeviation(Variance):
    """The standard deviation of a number, over the rows that have it.

    Args:
        expression: A number, in SQL.
        bounds: What it is clipped to.
        where: A condition in SQL; only rows that satisfy it count.
        missing: What rows without the number count as; left out unless it is given.
        within: Clip the number to about so many standard deviations around its mean, which two more answers find.
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
        within: Clip both numbers to about so many standard deviations around their means, which four more answers find.
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
    def _means(self) -> int:
        return 4 if self.within is None else 8

    @property
    def _rule(self) -> str:
        return self._name

    @property
    def _grouped(self) -> bool:
        return grouped(self.where, self.missing_x, self.missing_y)

    @property
    def ranges(self) -> tuple[_Bounds, ...]:
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
        if self.within is not None:
            sample = _clipped(asker, sample, self.within, self._around)
            text += _clipped_to(sample)
        columns, found = _ask_around_means(asker, sample, self._around)
        x, y = (each.bounds for each in sample.variables)
        most = self._most(x[1] - x[0], y[1] - y[0])
        parameters = {"x": list(x), "y": list(y), **asker.parameters(sample)}
        answer = asker.answer(text, self._rule, parameters, (-most, most), sample.about_missing)
        if self.within is not None:
            return answer
        reaches = [column.centre.reach for column in columns]
        unit = self._most(*(2 * reach for reach in reaches))
        return _with_suggestion(answer, asker, sample, self._spread(found, reaches), self._name, unit)

    def _spread(self, found: list[Number], reaches: list[float]) -> float:
        """About the standard deviation as a part of the farthest distance: E |uw| is 2/pi of the square of a spread."""
        both = [Number(each.value * math.pi / 2, each.low, each.high * math.pi / 2) for each in found]
        product = Number(both[0].value + both[1].value, 0.0, both[0].high + both[1].high)
        return shown_spread(product, math.prod(reaches))


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
        within: Clip both numbers to about so many standard deviations around their means, which four more answers find.
    """

    __slots__ = ()
    _name = "correlation"

    @property
    def _means(self) -> int:
        return 6 if self.within is None else 9

    @property
    def _rule(self) -> str:
        return "correlation" if self.within is None else "correlation by sums"

    def _most(self, *widths: float) -> float:
        return 1.0

    def _spread(self, found: list[Number], reaches: list[float]) -> float:
        squares = zip(found[2:], reaches, strict=True)
        return math.sqrt(math.prod(shown_spread(square, reach**2) for square, reach in squares))

    def _around(self, columns: list[_Column]) -> _Questions:
        if self.within is None:
            return [*Covariance._around(self, columns), *_squares(columns)]
        u, w = (column.unit for column in columns)  # of about the same spread, so their sum and difference tell most
        return [
            {"expression": f"({u} + {w}) * ({u} + {w}) / 4", "bounds": (0.0, 1.0), "missing": 0.0},
            {"expression": f"({u} - {w}) * ({u} - {w}) / 4", "bounds": (0.0, 1.0), "missing": 0.0},
            {"expression": f"({u} * {u} - {w} * {w}) / 2", "bounds": (-0.5, 0.5), "missing": 0.0},
        ]
