"""Means, and means around their released values: what spreads are made of, of numbers clipped to closer bounds.

Closer bounds follow from the mean and the deviation of a number, which some methods release together; elsewhere the
mean distance from the mean is asked for. Noise follows the bounds, and may hide how close the numbers are. What it
cannot hide gives bounds that are closer than before, from which one can look again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, NamedTuple

from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.results.reading import Number
from afresh.results.spreads import Centre
from afresh.statistics.base import Asker, Sample, Variable
from afresh.statistics.closer import PER_DISTANCE

LOOKS = 3
"""How often closer bounds are looked for: each look finds about ten times closer ones where noise hides the rest."""
Bounds = tuple[float, float]
Questions = list[dict[str, Any]]
_LEAST = 1e-9  # of the largest number between the bounds: numbers are never clipped closer than this
_EXACT = Context(prec=100)


@dataclass(frozen=True, slots=True)
class Column:
    """A bounded number per row, and what was released about its mean."""

    variable: Variable
    centre: Centre

    @property
    def centred(self) -> str:
        """SQL for x - v, of the same length for every v."""
        return f"({self.variable.sql} - {_literal(self.centre.around)})"

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


Around = Callable[[list[Column]], Questions]
"""What to ask around the means of columns."""


def _literal(value: float) -> str:
    """A number in SQL, of the same length for every value."""
    return f"({value!r:>24})"


def _ask_around_means(
    asker: Asker, sample: Sample, around: Around, later: Questions | None = None
) -> tuple[list[Column], list[Number]]:
    """An answer for each mean, then those from `around` the means.

    Either all are charged or none, unless someone else spends the rest of the budget in between. `later` questions
    will be asked after these.
    """
    after = _expressions(later or [])
    around_them = _expressions(around(_unknown(sample)))
    means = asker.ask(mean_questions(sample), where=sample.group, later=[*around_them, *after])
    columns = [Column(x, Centre(x.bounds, mean, mean.value)) for x, mean in zip(sample.variables, means, strict=True)]
    return columns, asker.ask(around(columns), where=sample.group, later=after)


def _check_one_truth(asker: Asker) -> None:
    """Refuse to combine rounds whose true values differ: those of public features are about each round's own rows."""
    if _in_rounds(asker) and asker.desk.scope.features == "public":
        raise InvalidArgument(
            "with public features every round is about the features of its own rows, and this statistic takes two "
            'rounds, which cannot be combined; declare features="hidden", or open the dataset without rounds. Nothing '
            "was charged."
        )


def mean_questions(sample: Sample) -> Questions:
    """The questions E x."""
    return [{"expression": x.sql, "bounds": x.bounds, "missing": x.bounds[0]} for x in sample.variables]


def _unknown(sample: Sample) -> list[Column]:
    """Columns whose means are not known yet: what is asked about them is as long as it will be, or longer."""
    return [Column(x, Centre(x.bounds, Number(-1.0, 0.0, 0.0), -1.0)) for x in sample.variables]


def _expressions(questions: Questions) -> list[str]:
    return [question["expression"] for question in questions]


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule derives a spread from, once it was asked."""

    sample: Sample
    columns: list[Column]
    found: list[Number]
    """The answers from around the means."""
    around: list[float] | None = None
    """What they are from around, if that is not the released values of these means."""

    def parameters(self, *names: str) -> dict[str, Any]:
        """The bounds of each number under its name, and the rest of what the rule has to know."""
        bounds = {name: list(x.bounds) for name, x in zip(names, self.sample.variables, strict=True)}
        return bounds if self.around is None else {**bounds, "around": dict(zip(names, self.around, strict=True))}


def ask_around(asker: Asker, sample: Sample, within: float | None, around: Around) -> Found:
    """Ask for the means and from around them, of numbers clipped to bounds `within` so many deviations of the means."""
    _check_one_truth(asker)
    if within is None:
        return Found(sample, *_ask_around_means(asker, sample, around))
    unknown = replace(sample, variables=tuple(_narrowed(x, x.bounds) for x in sample.variables))
    later = [*mean_questions(unknown), *around(_unknown(unknown))]
    releases = asker.releases_deviations(mean_questions(sample), sample.group)
    if not (releases and _in_rounds(asker)):
        look = _by_deviations if releases else _by_distances
        closer = _look_for_bounds(asker, sample, within, look, around, later)
        asker.set_aside()  # what follows is derived without these answers
        return Found(closer, *_ask_around_means(asker, closer, around))
    near = _by_deviations(asker, sample, later)
    asker.set_aside()
    closer, values = _closer(sample, sample, near, within), [each.value for each in near]
    # Any number close to the mean will do to ask around, so this is one step: in rounds, each has rows of its own.
    columns = [Column(x, Centre(x.bounds, Number(v, v, v), v)) for x, v in zip(closer.variables, values, strict=True)]
    numbers = asker.ask([*mean_questions(closer), *around(columns)], where=closer.group)
    return Found(closer, columns, numbers[len(columns) :], values)


def most_means(asker: Asker, sample: Sample) -> int:
    """The most means that are asked for to find closer bounds: in rounds, exact moments tell at once."""
    if not asker.releases_deviations(mean_questions(sample), sample.group):
        return 2 * LOOKS * len(sample.variables)
    return len(sample.variables) * (1 if _in_rounds(asker) else LOOKS)


def _in_rounds(asker: Asker) -> bool:
    return asker.desk.plan.mechanism.batch is not None


class _Near(NamedTuple):
    """Where the numbers are."""

    value: float
    """About their mean."""
    spread: float
    """Roughly their distance from there, as a standard deviation, or more if something else hides it."""
    hidden: bool


_Look = Callable[[Asker, Sample, Questions], list[_Near]]


def _by_deviations(asker: Asker, sample: Sample, later: Questions) -> list[_Near]:
    """From the deviations that are released with the means."""
    means = asker.ask(mean_questions(sample), where=sample.group, later=_expressions(later))
    found = zip(means, asker.deviations, strict=True)
    return [_Near(mean.value, math.hypot(*each), each.off > each.value) for mean, each in found]


def _by_distances(asker: Asker, sample: Sample, later: Questions) -> list[_Near]:
    """From the mean distances from the means: 1.25 of a deviation, for a bell curve.

    A distance that noise hides is taken to be half of what it may be at most.
    """
    columns, far = _ask_around_means(asker, sample, _distances, later)
    found = [
        (column.centre.around, max(each.value, each.high / 2), each.value < each.high / 2)
        for column, each in zip(columns, far, strict=True)
    ]
    return [_Near(value, PER_DISTANCE * distance, hidden) for value, distance, hidden in found]


def _look_for_bounds(
    asker: Asker, sample: Sample, within: float, look: _Look, around: Around, later: Questions
) -> Sample:
    """Look for closer bounds, and again from there where something hides how close the numbers are.

    A short budget ends this earlier, with bounds that are farther apart. A repeat is free: it ends at the closest
    bounds for which everything was asked before.
    """
    found, earlier = sample, list[Sample]()
    looked_at = _distances if look is _by_distances else _nothing
    for looks in range(LOOKS):
        asked = next((each for each in reversed(earlier) if _was_asked(asker, each, around)), None)
        if asked is not None and not _was_asked(asker, found, looked_at):  # another look would not be free
            return asked
        asker.set_aside()
        try:
            near = look(asker, found, later)
        except BudgetExhausted:
            if not looks:
                raise
            break
        found = _closer(sample, found, near, within)
        earlier.append(found)
        if not any(each.hidden for each in near):
            break
    return next((each for each in reversed(earlier) if _was_asked(asker, each, around)), found)


def _was_asked(asker: Asker, sample: Sample, around: Around) -> bool:
    """Whether the means of these numbers, and what is `around` them, were asked before."""
    means, group = mean_questions(sample), sample.group
    if not asker.answered(means, group):
        return False
    known = zip(sample.variables, asker.ask(means, where=group), strict=True)
    return asker.answered(around([Column(x, Centre(x.bounds, mean, mean.value)) for x, mean in known]), group)


def _distances(columns: list[Column]) -> Questions:
    return [column.distance for column in columns]


def _nothing(columns: list[Column]) -> Questions:
    return []


def _closer(sample: Sample, found: Sample, near: list[_Near], within: float) -> Sample:
    """The numbers clipped to bounds that far from their means, at most to those that were found before."""
    known = zip(found.variables, near, strict=True)
    bounds = [bounds_around(x.bounds, each.value, within * each.spread) for x, each in known]
    # A number that is as it was given is not clipped again, so that what was asked about it is not asked twice.
    each = (x if x.bounds == new else _narrowed(x, new) for x, new in zip(sample.variables, bounds, strict=True))
    return replace(sample, variables=tuple(each))


def bounds_around(bounds: Bounds, value: float, distance: float) -> Bounds:
    """Bounds that far from a released mean, in short numbers: they are part of what is asked and stated."""
    low, high = bounds
    reach = Decimal(max(distance, _LEAST * max(-low, high)))
    step, middle = Decimal(1).scaleb(reach.adjusted() - 1), Decimal(value)
    least = _EXACT.subtract(middle, reach).quantize(step, ROUND_FLOOR, _EXACT)
    most = _EXACT.add(middle, reach).quantize(step, ROUND_CEILING, _EXACT)
    return max(low, float(least)), min(high, float(most))


def _narrowed(x: Variable, bounds: Bounds) -> Variable:
    low, high = bounds
    return replace(x, sql=f"least(greatest({x.sql}, {_literal(low)}), {_literal(high)})", bounds=bounds)


def squares(columns: list[Column]) -> Questions:
    """The questions E (x - v)^2."""
    return [column.square for column in columns]
