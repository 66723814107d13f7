"""What a caller asks of a plan: the checks are the same on a first and on a later opening."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from afresh import checks

if TYPE_CHECKING:
    from afresh.planning.plan import Plan


def complement(probability: float) -> float:
    """1 - p as people write it: 0.05 for 0.95, not 0.050000000000000044."""
    return float(1 - Decimal(repr(probability)))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a caller asks of a plan, checked; None leaves it open."""

    questions: int | None
    confidence: float | None
    method: str | None
    answers: int | None
    rounds: int | None = None

    @property
    def given(self) -> bool:
        """Whether anything is asked for."""
        return any(
            wish is not None for wish in (self.questions, self.confidence, self.method, self.answers, self.rounds)
        )

    def differing(self, plan: Plan) -> str:
        """In words, where a plan is not what is wished; empty if it is."""
        failure = None if self.confidence is None else complement(self.confidence)
        pairs = (
            ("questions", self.questions, self.questions, plan.questions),
            ("confidence", self.confidence, failure, plan.mechanism.failure),
            ("method", self.method, self.method, plan.method),
            ("answers", self.answers, self.answers, plan.answers),
            ("rounds", self.rounds, self.rounds, plan.rounds),
        )
        said = [f"{name}={shown!r}" for name, shown, value, kept in pairs if value is not None and value != kept]
        if not said:
            return ""
        kept = f"questions={plan.questions}, confidence={plan.confidence}, method={plan.method!r}"
        if plan.answers != plan.questions:
            kept += f", answers={plan.answers}"
        if plan.rounds is not None:
            kept += f", rounds={plan.rounds}"
        return f"The plan of these data is {kept}, and now they are opened with {', '.join(said)}."


def check_wishes(
    questions: int | None,
    confidence: float | None,
    method: str | None,
    answers: int | None,
    rounds: int | None,
    methods: Collection[str],
) -> Wishes:
    """What is wished, or `InvalidArgument`."""
    questions = None if questions is None else checks.whole("questions", questions, 1)
    return Wishes(
        questions,
        None if confidence is None else checks.confidence(confidence),
        None if method is None else checks.one_of("method", method, methods),
        None if answers is None else checks.whole("answers", answers, questions or 1),
        None if rounds is None else checks.whole("rounds", rounds, 1),
    )
