"""What a caller asks of a plan. The checks are the same on the first and on later openings."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from types import EllipsisType
from typing import TYPE_CHECKING

from afresh import checks
from afresh.errors import InvalidArgument

if TYPE_CHECKING:
    from afresh.planning.plan import Plan


def complement(probability: float) -> float:
    """1 - p as people write it: 0.05 for 0.95, not 0.050000000000000044."""
    return float(1 - Decimal(repr(probability)))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a caller asks of a plan, checked; None leaves it open."""

    questions: int | EllipsisType | None
    """None is a budget that never runs out; `...` leaves it open."""
    confidence: float | None
    method: str | None
    answers: int | None
    rounds: int | None = None
    typical: tuple[float, ...] | None = None
    """For choosing constants, which do not record it: a plan in force never conflicts with it."""
    disagreement: float | None = None
    """Likewise."""
    open: float | None = None
    promise: bool = False
    exam: float | None = None
    development: int | None = None
    """The number of the analyst's own rows that guess."""
    deviation: float | None = None
    """For choosing constants, like `typical`."""

    @property
    def given(self) -> bool:
        """Whether anything is asked for."""
        wishes = self.confidence, self.method, self.answers, self.rounds
        choices = self.typical, self.disagreement, self.open, self.exam, self.development, self.deviation
        return self.promise or self.questions is not ... or any(wish is not None for wish in (*wishes, *choices))

    def _opened(self, plan: Plan) -> tuple[int | bool | None, int | bool | None]:
        """The open rows requested and those in the plan; True means the best number."""
        if self.open is True:
            return True, plan.open is not None
        return None if self.open is None else math.floor(plan.rows * self.open), plan.open

    def differing(self, plan: Plan) -> str:
        """How a plan differs from what is requested, in words; empty if it does not."""
        failure = None if self.confidence is None else complement(self.confidence)
        pairs = (
            ("confidence", self.confidence, failure, plan.mechanism.failure),
            ("method", self.method, self.method, plan.method),
            ("answers", self.answers, self.answers, plan.answers),
            ("rounds", self.rounds, self.rounds, plan.rounds),
            ("open", self.open, *self._opened(plan)),
            ("exam", self.exam, None if self.exam is None else math.floor(plan.rows * self.exam), plan.exam),
            ("open", "development rows of your own", None if self.development is None else True, plan.mechanism.own),
            ("promise", self.promise or None, self.promise or None, plan.mechanism.promised),
        )
        said = [f"{name}={shown!r}" for name, shown, value, kept in pairs if value is not None and value != kept]
        planned = plan.questions if plan.expected is None else None
        if self.questions is not ... and self.questions != planned:
            said.insert(0, f"questions={self.questions!r}")
        if not said:
            return ""
        kept = f"questions={planned}, confidence={plan.confidence}, method={plan.method!r}"
        if plan.answers != plan.questions:
            kept += f", answers={plan.answers}"
        if plan.rounds is not None:
            kept += f", rounds={plan.rounds}"
        if plan.open is not None:
            kept += f", {plan.open:,} of {plan.rows:,} rows open"
        if plan.mechanism.own:
            kept += ", with development rows of your own"
        if plan.exam is not None:
            kept += f", {plan.exam:,} rows kept for the exam"
        return f"The plan of this dataset is {kept}, but you opened it with {', '.join(said)}."


def check_wishes(
    questions: int | EllipsisType | None,
    confidence: float | None,
    method: str | None,
    answers: int | None,
    rounds: int | None,
    methods: Collection[str],
    typical: object = None,
    disagreement: float | None = None,
    open: float | None = None,
    promise: bool = False,
    exam: float | None = None,
    development: int | None = None,
    deviation: float | None = None,
) -> Wishes:
    """The checked request, or `InvalidArgument`."""
    if questions is not None and questions is not ...:
        questions = checks.whole("questions", questions, 1)
    share, kept = check_parts(open, exam)
    return Wishes(
        questions,
        None if confidence is None else checks.confidence(confidence),
        None if method is None else checks.one_of("method", method, methods),
        None if answers is None else checks.whole("answers", answers, questions if isinstance(questions, int) else 1),
        None if rounds is None else checks.whole("rounds", rounds, 1),
        None if typical is None else checks.means("typical", typical),
        None if disagreement is None else checks.share("disagreement", disagreement, ", a share of rows"),
        share,
        checks.flag("promise", promise),
        kept,
        development,
        None if deviation is None else check_deviation(deviation),
    )


def check_deviation(deviation: object) -> float:
    """The standard deviation of a number in [0, 1], or `InvalidArgument`."""
    must_be = "a standard deviation as a share of the range between the bounds, above 0 and at most 0.5"
    return checks.number("deviation", deviation, must_be, above=0, most=0.5)


def check_parts(open: object, exam: object) -> tuple[float | None, float | None]:
    """The shares of rows that are open and kept for an exam, or `InvalidArgument`."""
    must_be = "a share of the rows, between 0 and 1, such as"
    if open is True:  # the best share, found once the rows are known
        share: float | None = True
    else:
        share = None if open is None else checks.number("open", open, f"{must_be} 0.5", above=0, below=1)
    kept = None if exam is None else checks.number("exam", exam, f"{must_be} 0.1", above=0, below=1)
    if share is not None and share is not True and kept is not None and share + kept >= 1:
        raise InvalidArgument(
            f"open == {share} and exam == {kept} leave no rows to check with; make one of them smaller, "
            "such as open=0.5, exam=0.49."
        )
    return share, kept
