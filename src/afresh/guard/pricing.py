"""What a question would cost, found without reading a row."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.guard.exam import check_exam, exam_width, in_exam
from afresh.mechanisms.base import AimsInGroups, FollowsDeviation, Mechanism, at_levels
from afresh.planning.groups import group_half_width
from afresh.planning.ways import ways
from afresh.queries.group import GroupMean
from afresh.queries.text import number
from afresh.results import show
from afresh.results.answer import Interval, answers_in_words
from afresh.results.price import Price
from afresh.results.rules import within_ends

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from afresh.guard.desk import Desk
    from afresh.ledger.base import Question
    from afresh.queries.asked import Asked
    from afresh.statistics.base import Statistic


def price_of_question(
    desk: Desk,
    analyst: str,
    asked: Asked,
    mean: float | None = None,
    share: float | None = None,
    exam: int | None = None,
    deviation: float | None = None,
) -> Price:
    """Return the price of a checked question, or of one of this many in the exam."""
    if exam is not None:
        return _price_in_exam(desk, analyst, asked, mean, share, exam)
    asked = desk.arranged(asked)
    desk.scope.check(asked.queries)
    if mean is None and asked.about is not None:  # the hint is the expected answer
        mean = asked.bounds[0] + asked.about * (asked.bounds[1] - asked.bounds[0])
    mean = _check_mean(mean, asked.bounds)
    new, left = _new_questions(desk, asked), desk.left(analyst)
    charge = sum((each.charge for each in new), 0.0)
    widths = {each: _expected_half_width(desk, asked, mean, each, deviation) for each in _shares(asked, share)}
    expected = f" Expect about {_widths_in_words(widths, mean, asked, share)}." if new else ""
    return Price(
        question=asked.text,
        answers=len(new),
        charge=charge,
        half_width=next(iter(widths.values())),
        half_widths=widths,
        mean=mean,
        left=left,
        ways=_other_ways(desk, asked, mean, deviation) if new else {},
        words=_in_words(desk, len(new), charge, left, short=_affordable(desk, analyst, new) < len(new))
        + expected
        + (f" {why}" if (why := desk.hides(new)) else ""),
    )


def _other_ways(desk: Desk, asked: Asked, mean: float, deviation: float | None) -> dict[str, float]:
    """Return what the ways not chosen would give, for one answer over all rows."""
    if len(asked.queries) > 1 or asked.where is not None or desk.plan.expected is not None:
        return {}
    low, high = asked.bounds
    unit, levels = (mean - low) / (high - low), asked.queries[0].levels
    spread = None if deviation is None else _check_deviation(deviation, unit, high - low)

    def width(mechanism: Mechanism) -> float:
        own = at_levels(mechanism, levels)
        if spread is None or not isinstance(own, FollowsDeviation):
            return mechanism.half_width(unit)
        return own.deviation_width(unit, spread)

    found = ways(desk.plan.mechanism, width, number=levels is None)
    return {way.how: way.half_width * (high - low) for way in found if way.how != "this plan"}


def _price_in_exam(
    desk: Desk, analyst: str, asked: Asked, mean: float | None, share: float | None, questions: int
) -> Price:
    """Return the price in the exam, which costs no answers."""
    check_exam(desk.plan)
    questions = checks.whole("exam", questions, 1)
    asked = in_exam(desk.arranged(asked, exam=True))
    desk.scope.check(asked.queries)
    mean = _check_mean(mean, asked.bounds)
    low, high = asked.bounds
    width = exam_width(desk, (mean - low) / (high - low), questions)
    widths = {each: min(width / math.sqrt(each), 0.5) * (high - low) for each in _shares(asked, share)}
    taken = desk.ledger.examined(desk.terms)
    when = f"It has been taken, with {taken:,} questions" if taken else f"As one of {questions:,}"
    expected = _widths_in_words(widths, mean, asked, share)
    return Price(
        question=asked.text,
        answers=0,
        charge=0.0,
        half_width=next(iter(widths.values())),
        half_widths=widths,
        mean=mean,
        left=desk.left(analyst),
        words=f"In the exam, which costs no answers. {when}: expect about {expected}.",
    )


_GROUPS = {0.5: "half", 0.1: "a tenth", 0.01: "a hundredth"}
"""Group sizes, as shares of the rows, that a price mentions if no share is given."""


def _shares(asked: Asked, share: float | None) -> list[float]:
    """Return the share of rows a mean is expected to cover. A group's size cannot be looked up before paying."""
    if share is not None:
        return [_check_share(share)]
    return [1.0] if asked.where is None else list(_GROUPS)


def _widths_in_words(widths: Mapping[float, float], mean: float, asked: Asked, share: float | None) -> str:
    told = {each: f"±{show.width(width)}" for each, width in widths.items()}
    at = f"at a mean of {mean:g}"
    if share is not None and (asked.where is not None or asked.skips):
        return f"{told[share]} {at}, over {show.percent(share)} of the rows"
    if asked.where is not None:
        first, *others = (f"{width} if {{}}{_GROUPS[each]}" for each, width in told.items())
        sizes = [first.format("the group has ") + " of the rows", *(each.format("") for each in others)]
        return f"{', '.join(sizes)}, {at}"
    (width,) = told.values()
    return f"{width} {at}" + (", if every row has the number" if asked.skips else "")


def price_of_statistic(desk: Desk, analyst: str, statistic: Statistic) -> Price:
    """Return the price of a statistic; earlier questions are free, so it may cost less."""
    from afresh.statistics.base import AtOnce, OfAlike  # on demand: it imports parts of this package

    schema, left = desk.schema, desk.left(analyst)
    answers, vector = statistic.cost(schema), None
    if isinstance(statistic, AtOnce) and (shape := statistic.coordinates(schema)) is not None:
        vector = desk.at_once(*shape)
        answers = answers if vector is None else vector.answers
    charge = answers * desk.plan.charge
    mean, expected, widths = None, "", dict[float, float]()
    if isinstance(statistic, OfAlike):
        question, mean, share = statistic.like(schema)
        asked = desk.arranged(question)
        # What is released at once has other widths than what is asked by itself, for numbers and bins within a group.
        plain = all(query.levels is not None for query in asked.queries) and (asked.where is None or share is not None)
        if vector is None or plain:
            mean = _check_mean(mean, asked.bounds)
            widths = {each: _expected_half_width(desk, asked, mean, each, None) for each in _shares(asked, share)}
            expected = f" Of each number expect about {_widths_in_words(widths, mean, asked, share)}."
    return Price(
        question=statistic.text(schema),
        answers=answers,
        charge=charge,
        half_width=next(iter(widths.values()), None),
        half_widths=widths,
        mean=mean,
        left=left,
        words=_in_words(desk, answers, charge, left, "at most ") + expected,
    )


def _new_questions(desk: Desk, asked: Asked) -> list[Question]:
    """Return the queries that have not been answered at least as precisely before."""
    return desk.ledger.unpaid(desk.terms, desk.questions([asked]))


def _affordable(desk: Desk, analyst: str, questions: Sequence[Question]) -> float:
    """Return how many more questions like these the budget allows."""
    spent = desk.spent(analyst)
    return min((spent.affordable(each.charge, each.row_charge) for each in questions), default=math.inf)


def _expected_half_width(desk: Desk, asked: Asked, mean: float, share: float, deviation: float | None) -> float:
    """Return the half-width of an answer with mean `mean` over this share of the rows, in its own units."""
    levels = asked.queries[-1].levels
    mechanism = at_levels(desk.plan.at(desk.coarseness(asked.precision, levels, asked.about)), levels)
    released = desk.ledger.released(desk.terms)
    low, high = asked.bounds

    def around(unit: float) -> Interval:
        reach = own if own is not None else mechanism.present_half_width(unit, released)
        return Interval(max(unit - reach, 0.0), min(unit + reach, 1.0))

    unit, own = (mean - low) / (high - low), None
    if asked.rule == "group" and isinstance(mechanism, AimsInGroups):
        largest = math.sqrt(unit * (1 - unit))
        within = largest if deviation is None else _check_deviation(deviation, unit, high - low)
        return group_half_width(mechanism, unit, share, within) * (high - low)
    single = len(asked.queries) == 1
    if deviation is not None:
        spread = _check_deviation(deviation, unit, high - low)
        if levels is not None or not (single or share == 1):
            raise InvalidArgument(f"deviation = {deviation!r} is for a number, over all rows or a group; leave it out.")
        if isinstance(mechanism, FollowsDeviation):
            # Earlier failures make later claims wider, about numbers as well as shares.
            wider = mechanism.present_half_width(unit, released) / mechanism.half_width(unit)
            own = mechanism.deviation_width(unit, spread) * wider
    if single:
        rows = share if isinstance(asked.queries[0], GroupMean) else 1.0  # widths scale with the root of the rows
        reach = mechanism.present_half_width(unit, released) if own is None else own
        return min(reach / math.sqrt(rows), 0.5) * (high - low)
    return within_ends(around(share * unit), around(share * (1 - unit))).half_width * (high - low)


def _check_mean(mean: float | None, bounds: tuple[float, float]) -> float:
    """Return a number within the bounds of a question; their middle if none is given."""
    low, high = bounds
    if mean is None:
        return low / 2 + high / 2
    if isinstance(mean, bool) or not (isinstance(mean, Real) and low <= float(mean) <= high):
        raise InvalidArgument(f"mean = {mean!r}, must lie within the bounds ({number(low)}, {number(high)})")
    return float(mean)


def _check_deviation(deviation: float, mean: float, scale: float) -> float:
    """Return the deviation as a share of the range, at most what a number with this mean can have."""
    most = math.sqrt(mean * (1 - mean)) * scale
    if isinstance(deviation, bool) or not (isinstance(deviation, Real) and 0 <= float(deviation) <= most):
        raise InvalidArgument(f"deviation = {deviation!r}, must be from 0 to {most:.4g} at this mean")
    return float(deviation) / scale


def _check_share(share: float) -> float:
    """A share of the rows."""
    if isinstance(share, bool) or not (isinstance(share, Real) and 0 < float(share) <= 1):
        raise InvalidArgument(f"share = {share!r}, must be the share of rows you expect, above 0 and at most 1")
    return float(share)


def _in_words(desk: Desk, answers: int, charge: float, left: int, most: str = "", *, short: bool = False) -> str:
    if not answers:
        return "Free: asked before."
    nats = "" if desk.plan.information is None else f" ({charge:.3g} nats)"
    enough = ", which is not enough" if short else ""
    if desk.plan.expected is not None and not short:
        return f"Costs {most}{answers_in_words(answers)}{nats}; the budget never runs out."
    return f"Costs {most}{answers_in_words(answers)}{nats}; {left:,} left{enough}."
