"""What a question would cost, said before it is asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from afresh.errors import InvalidArgument
from afresh.queries.text import number
from afresh.results import show
from afresh.results.answer import Interval, answers_in_words
from afresh.results.rules import within_ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from afresh.guard.guard import Guard
    from afresh.ledger.base import Question
    from afresh.queries.asked import Asked
    from afresh.statistics.base import Statistic


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(show.Told):
    """The price of a question and what it would buy. Saying it is free and touches no row."""

    question: str
    answers: int
    """How many answers it would be charged; of a statistic, at most."""
    charge: float
    """In nats."""
    half_width: float | None
    """Of the interval to expect, in the answer's units; None for a statistic, where it depends on the answers."""
    mean: float | None
    """The mean at which it is expected, in the answer's units."""
    left: int
    """How many answers at full price are left before it is asked."""
    words: str
    """All of it in one sentence."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {name: getattr(self, name) for name in self.__slots__}

    def _blocks(self) -> list[show.Block]:
        return [show.Title(self.question), show.Line(self.words)]


def price_of_question(guard: Guard, arguments: dict[str, Any], mean: float | None, share: float) -> Price:
    """Of a question that is given by `Guard.ask`'s arguments."""
    from afresh.queries.asked import make_asked

    asked = make_asked(arguments, guard._engine.schema)
    guard._scope.check(asked.queries)
    mean, share = _check_mean(mean, asked.bounds), _check_share(share)
    new = _new_questions(guard, asked)
    charge = sum(each.charge for each in new)
    width = _expected_half_width(guard, asked, mean, share)
    over = "" if len(asked.queries) == 1 else f", over {show.percent(share)} of the rows"
    expected = f" Expect about ±{show.width(width)} at a mean of {mean:g}{over}." if new else ""
    return Price(
        question=asked.text,
        answers=len(new),
        charge=charge,
        half_width=width,
        mean=mean,
        left=guard._left(),
        words=_in_words(guard, len(new), charge, short=_affordable(guard, new) < len(new)) + expected,
    )


def price_of_statistic(guard: Guard, statistic: Statistic) -> Price:
    """Of a statistic; what was asked before is free, so it may cost less."""
    schema = guard._engine.schema
    answers = statistic.cost(schema)
    charge = answers * guard.plan.charge
    return Price(
        question=statistic.text(schema),
        answers=answers,
        charge=charge,
        half_width=None,
        mean=None,
        left=guard._left(),
        words=_in_words(guard, answers, charge, "at most "),
    )


def _new_questions(guard: Guard, asked: Asked) -> list[Question]:
    """Those of its queries that were not answered before, at least as precisely."""
    paid: dict[str, float] = {}
    for entry in guard._ledger.entries(guard._terms):
        paid[entry.digest] = min(entry.coarseness, paid.get(entry.digest, math.inf))
    questions = [guard._releasing.question(one) for one in guard._wanted(asked)]
    return [each for each in questions if each.coarseness < paid.get(each.digest, math.inf)]


def _affordable(guard: Guard, questions: Sequence[Question]) -> float:
    """How many questions like these can still be paid."""
    spent = guard._ledger.spent(guard._terms, guard.analyst)
    return min((spent.affordable(each.charge, each.row_charge) for each in questions), default=math.inf)


def _expected_half_width(guard: Guard, asked: Asked, mean: float, share: float) -> float:
    """Of the answer to a question whose mean is `mean` over this share of the rows, in its own units."""
    mechanism = guard.plan.at(guard._coarseness(asked.precision))
    released = guard._ledger.released(guard._terms)
    low, high = asked.bounds

    def around(unit: float) -> Interval:
        reach = mechanism.present_half_width(unit, released)
        return Interval(max(unit - reach, 0.0), min(unit + reach, 1.0))

    unit = (mean - low) / (high - low)
    if len(asked.queries) == 1:
        return mechanism.present_half_width(unit, released) * (high - low)
    return within_ends(around(share * unit), around(share * (1 - unit))).half_width * (high - low)


def _check_mean(mean: float | None, bounds: tuple[float, float]) -> float:
    """A number within the bounds of a question; their middle if nobody says it."""
    low, high = bounds
    if mean is None:
        return low / 2 + high / 2
    if isinstance(mean, bool) or not (isinstance(mean, Real) and low <= float(mean) <= high):
        raise InvalidArgument(f"mean = {mean!r}, must lie within the bounds ({number(low)}, {number(high)})")
    return float(mean)


def _check_share(share: float) -> float:
    """A part of the rows."""
    if isinstance(share, bool) or not (isinstance(share, Real) and 0 < float(share) <= 1):
        raise InvalidArgument(f"share = {share!r}, must be the part of the rows to expect, above 0 and at most 1")
    return float(share)


def _in_words(guard: Guard, answers: int, charge: float, most: str = "", *, short: bool = False) -> str:
    if not answers:
        return "Free: it was asked before."
    nats = "" if guard.plan.information is None else f" ({charge:.3g} nats)"
    enough = ", which is not enough" if short else ""
    return f"Costs {most}{answers_in_words(answers)}{nats}; {guard._left():,} left{enough}."
