"""What a question would cost, found without reading a row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from afresh import checks
from afresh.guard.exam import check_exam, exam_width, in_exam
from afresh.guard.expected import check_deviation, check_mean, expected_half_width, shares, widths_in_words
from afresh.mechanisms.base import FollowsDeviation, Mechanism, at_levels
from afresh.planning.ways import ways
from afresh.results.answer import answers_in_words
from afresh.results.price import Price

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from afresh.guard.desk import Desk
    from afresh.ledger.base import Question
    from afresh.queries.asked import Asked


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
    (asked,) = desk.arranged([asked])
    desk.scope.check(asked.queries)
    if mean is None and asked.about is not None:  # the hint is the expected answer
        mean = asked.bounds[0] + asked.about * (asked.bounds[1] - asked.bounds[0])
    mean = check_mean(mean, asked.bounds)
    new, left = _new_questions(desk, asked), desk.left(analyst)
    charge = sum((each.charge for each in new), 0.0)
    sizes = shares(share, grouped=asked.where is not None)
    widths = {each: expected_half_width(desk, asked, mean, each, deviation) for each in sizes}
    expected = f" Expect about {_told(widths, mean, asked, share)}." if new else ""
    return Price(
        question=asked.text,
        answers=len(new),
        charge=charge,
        half_width=next(iter(widths.values())),
        half_widths=widths,
        mean=mean,
        rounds=rounds_taken(desk, 1) if new else 0,
        left=left,
        ways=_other_ways(desk, asked, mean, deviation) if new else {},
        words=in_words(desk, analyst, len(new), charge, 1, short=_affordable(desk, analyst, new) < len(new))
        + expected
        + (f" {why}" if (why := desk.hides(new)) else ""),
    )


def _other_ways(desk: Desk, asked: Asked, mean: float, deviation: float | None) -> dict[str, float]:
    """Return what the ways not chosen would give, for one answer over all rows."""
    if len(asked.queries) > 1 or asked.where is not None or desk.plan.expected is not None:
        return {}
    low, high = asked.bounds
    unit, levels = (mean - low) / (high - low), asked.queries[0].levels
    spread = None if deviation is None else check_deviation(deviation, unit, high - low) / (high - low)

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
    asked = in_exam(desk.arranged([asked], exam=True)[0])
    desk.scope.check(asked.queries)
    mean = check_mean(mean, asked.bounds)
    low, high = asked.bounds
    width = exam_width(desk, (mean - low) / (high - low), questions)
    sizes = shares(share, grouped=asked.where is not None)
    widths = {each: min(width / math.sqrt(each), 0.5) * (high - low) for each in sizes}
    taken = desk.ledger.examined(desk.terms)
    when = f"It has been taken, with {taken:,} questions" if taken else f"As one of {questions:,}"
    expected = _told(widths, mean, asked, share)
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


def _told(widths: Mapping[float, float], mean: float, asked: Asked, share: float | None) -> str:
    at = f"at a mean of {mean:g}"
    return widths_in_words(widths, at, share, grouped=asked.where is not None, skips=asked.skips)


def _new_questions(desk: Desk, asked: Asked) -> list[Question]:
    """Return the queries that have not been answered at least as precisely before."""
    return desk.ledger.unpaid(desk.terms, desk.questions([asked]))


def _affordable(desk: Desk, analyst: str, questions: Sequence[Question]) -> float:
    """Return how many more questions like these the budget allows."""
    spent = desk.spent(analyst)
    return min((spent.affordable(each.charge, each.row_charge) for each in questions), default=math.inf)


def rounds_taken(desk: Desk, steps: int) -> int:
    """Return how many rounds so many steps are, each chosen after the one before; none where there are no rounds."""
    return 0 if desk.plan.mechanism.batch is None else steps


def in_words(
    desk: Desk, analyst: str, answers: int, charge: float, rounds: int, most: str = "", *, short: bool = False
) -> str:
    """Return the cost in a sentence, if so many rounds are needed where there are rounds."""
    if not answers:
        return "Free: asked before."
    nats = "" if desk.plan.information is None else f" ({charge:.3g} nats)"
    costs = f"Costs {most}{answers_in_words(answers)}{nats}"
    if desk.plan.expected is not None and not short:
        return f"{costs}; the budget never runs out."
    left, batch = desk.left(analyst), desk.plan.mechanism.batch
    kept = f"{left:,}"
    if batch is not None:
        fresh = desk.ledger.rows_left(desk.terms, analyst)
        costs += f" and {'a round' if rounds == 1 else f'{rounds:,} rounds'} of {batch:,} fresh rows"
        kept, short = f"{answers_in_words(left)} and {fresh:,} rows", short or rounds * batch > fresh
    return f"{costs}; {kept} left{', which is not enough' if short else ''}."
