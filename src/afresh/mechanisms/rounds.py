"""Rounds: questions asked together are answered from rows of their own, without noise (section 14)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from afresh.errors import InvalidArgument
from afresh.mechanisms import fresh
from afresh.mechanisms.base import Heard, Pairs
from afresh.mechanisms.parts import EqualAnswers, NoInformation, NoMemory, Promised
from afresh.moments import Moments, Span
from afresh.theory.rounds import FINAL_LOOK, capped_share, equal_rounds, looks


@dataclass(frozen=True)
class Rounds(Promised, EqualAnswers, NoInformation, NoMemory):
    """Exact moments of fresh rows, with intervals that follow the variance (section 13), Bonferroni over all questions.

    A round's answers may reveal much about its own rows, but nothing about those of later rounds. `rounds` decides how
    many rows a round gets unless it asks for a different number; `final` is the part of every question's share of the
    failure probability that is kept for a final look at it.
    """

    method: ClassVar[str] = "rounds"
    about: ClassVar[str] = "exact means from fresh rows for each round of questions"
    unavailable: ClassVar[str] = "fewer rows than rounds, or more answers than questions"
    promised: ClassVar[bool] = True
    checks_guesses: ClassVar[bool] = False
    pairs: ClassVar[Pairs] = "shifted"
    exact_moments: ClassVar[bool] = True

    rows: int
    questions: int
    failure: float
    rounds: int
    final: float

    @property
    def accounted(self) -> str:
        """Nothing is charged: no answer says anything about the rows of a later round."""
        return f"not accounted for: each of {self.rounds:,} rounds has {self.batch:,} rows of its own"

    @property
    def advice(self) -> str:
        """The guarantee, and when it is narrow."""
        if self.rounds == self.questions:
            how = (
                "Every question has rows of its own, which suits only a few questions; ask in fewer rounds if you can."
            )
        else:
            how = f"Questions asked together share a round's {self.batch:,} rows; there are {self.rounds:,} rounds."
        return f"{super().advice} {how}"

    @property
    def batch(self) -> int:
        """The number of rows a round gets."""
        return self.rows // self.rounds

    @property
    def shuffles(self) -> bool:
        """True: a file may be sorted."""
        return True

    def spans(self, number: int, own: Span | None) -> tuple[Span, ...]:
        """The rows of its round."""
        assert own is not None
        return (own,)

    @property
    def grid(self) -> None:
        """None: moments of a round's own rows are released as they are."""
        return

    @property
    def _shares(self) -> tuple[float, float]:
        """The shares of the failure probability: a question's, and its final look's."""
        return looks(capped_share(self.failure, self.questions), self.final)

    @property
    def failure_use(self) -> dict[str, float]:
        """Every side of every interval has the same share."""
        now, again = self._shares
        return {"each side of each interval": now / 2, "each side of each final look": again / 2}

    def release(self, moments: Moments, noise: float, *, look: int = 1) -> dict[str, float]:
        """Count, sum and sum of squares over the round's own rows; no noise is needed.

        `look` is 1 at first, 2 for a final look, and 3 for a final look with the same truth as the first, so that both
        intervals hold for it.
        """
        return {**fresh.moments_released(moments), "look": float(look)}

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether these are moments of no more rows than were opened; if there are few values, in their steps."""
        if not isinstance(released, Mapping) or set(released) != {*fresh.NAMES, "look"}:
            return False
        most = self.rows if span is None else span.rows
        return released["look"] in (1.0, 2.0, 3.0) and fresh.moments_possible(released, levels, most)

    def noise_in(self, released: Mapping[str, float]) -> float:
        """0: means are exact."""
        return 0.0

    def value(self, released: Mapping[str, float]) -> float:
        """The mean; the middle of the range if no row counted."""
        return fresh.mean_of(released)

    def deviation_in(self, released: Mapping[str, float]) -> float:
        """The standard deviation of a number over the round's own rows; the largest there is if no row counted."""
        return fresh.deviation_of(released)

    def off_in(self, released: Mapping[str, float]) -> float:
        """What rounding hides."""
        return fresh.OFF

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """The interval by the possible values, for rows that need not be alike: features may be public."""
        return fresh.interval_of(released, self._shares[0 if released["look"] == 1 else 1], levels)

    def meets_first(self, released: Mapping[str, float]) -> bool:
        """Whether it is a final look with the same truth as the first."""
        return released["look"] == 3

    def half_width(self, mean: float) -> float:
        """The half-width of the share of rows that satisfy a condition, in a round of the planned size."""
        return fresh.condition_width(self.batch, self._shares[0], mean)

    def deviation_width(self, mean: float, deviation: float) -> float:
        """The half-width of a number with this standard deviation, in a round of the planned size."""
        return fresh.number_width(self.batch, self._shares[0], mean, deviation)

    def difference(self, *parts: Heard) -> tuple[float, tuple[float, float]]:
        """The difference from psi = (d + 1)/2, whose interval follows its variance."""
        (psi,) = parts
        return 2 * psi.value - 1, (2 * psi.low - 1, 2 * psi.high - 1)

    def disagreement(self, *parts: Heard) -> float:
        """The mean of d^2, which is released with psi."""
        return fresh.disagreement_of(parts[0].released)

    def difference_width(self, disagreement: float) -> float:
        """The half-width of a difference in a round of the planned size."""
        return fresh.difference_width(self.batch, self._shares[0], disagreement)

    def problems(self) -> list[str]:
        """Every round needs a row, and every question a share."""
        if not 1 <= self.rounds <= self.rows:
            return [f"there are {self.rounds} rounds for {self.rows} rows"]
        return [] if 0 <= self.final < 1 else [f"the part of a share for the final look is {self.final!r}"]


def plan_rounds(rows: int, questions: int, failure: float, answers: int | None = None) -> Rounds | None:
    """Plan separate rows for every question, as needed if each is chosen after the last answer."""
    return make_rounds(rows, questions, failure, answers, questions)


def make_rounds(rows: int, questions: int, failure: float, answers: int | None, rounds: int) -> Rounds | None:
    """Plan so many rounds of equal size; None if one would have no row, or more answers than questions are wanted."""
    if answers not in (None, questions):
        return None
    try:
        equal_rounds(rows, rounds)
    except InvalidArgument:
        return None
    # Where every question has its own rows, a final look would seldom repay its share.
    return Rounds(rows, questions, failure, rounds, FINAL_LOOK if rounds < questions else 0.0)
