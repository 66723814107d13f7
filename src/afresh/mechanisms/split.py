"""Sample splitting: each question is answered from its own rows. `rounds` has replaced it; existing plans remain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from afresh.mechanisms.parts import (
    DifferenceOfParts,
    EqualAnswers,
    NoBatches,
    NoInformation,
    NoMemory,
    Promised,
    ReleasesMean,
)
from afresh.moments import Moments, Span
from afresh.theory.bernoulli import kl_lower, kl_upper


@dataclass(frozen=True)
class Split(NoBatches, Promised, EqualAnswers, NoInformation, ReleasesMean, NoMemory, DifferenceOfParts):
    """The exact mean of floor(n/k) fresh rows, Bonferroni over 2k sides (section 11).

    An answer uses up its own rows: it may reveal much about them, but nothing about the rows of later questions.
    """

    method: ClassVar[str] = "split"
    about: ClassVar[str] = "fresh rows for each question"
    unavailable: ClassVar[str] = "fewer rows than questions, or more answers than questions"
    promised: ClassVar[bool] = True
    checks_guesses: ClassVar[bool] = False

    rows: int
    questions: int
    failure: float

    @property
    def accounted(self) -> str:
        """Nothing is charged: no answer says anything about the rows of another."""
        return "not accounted for: every question has rows of its own"

    @property
    def advice(self) -> str:
        """The guarantee, and when it is narrow."""
        return f"{super().advice} Every question has rows of its own, which suits a few questions."

    @property
    def block(self) -> int:
        """The number of rows one question gets."""
        return self.rows // self.questions

    @property
    def shuffles(self) -> bool:
        """True: a file may be sorted."""
        return True

    def spans(self, number: int, own: Span | None) -> tuple[Span, ...]:
        """The question's own rows."""
        return (Span((number - 1) * self.block, number * self.block),)

    @property
    def grid(self) -> None:
        """None: the mean of a question's own rows is released as it is."""
        return

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether it is a mean; for a 0/1 question, a number of rows divided by all of them."""
        if not super().admits(released):
            return False
        hits = released * self.block
        return levels != 2 or abs(hits - round(hits)) <= 1e-6

    @property
    def failure_use(self) -> dict[str, float]:
        """Every side of every interval has the same share."""
        return {"each side of each interval": self.failure / (2 * self.questions)}

    def noise_in(self, released: float) -> float:
        """0: means are exact."""
        return 0.0

    def release(self, moments: Moments, noise: float) -> float:
        """The mean of the question's own rows; no noise is needed."""
        return min(max(moments.mean, 0.0), 1.0)

    def interval(self, released: float, *, levels: int | None = None) -> tuple[float, float]:
        """Exact binomial for 0/1 queries, Chernoff's bound for the others."""
        side = self.failure / (2 * self.questions)
        if levels == 2:
            from scipy.special import betainccinv, betaincinv

            hits = round(released * self.block)
            low = betaincinv(hits, self.block - hits + 1, side) if hits > 0 else 0.0
            high = betainccinv(hits + 1, self.block - hits, side) if hits < self.block else 1.0
            # The inverses are good to about 1e-14; err outward.
            return max(float(low) * (1 - 1e-12), 0.0), min(float(high) * (1 + 1e-12), 1.0)
        bound = -math.log(side) / self.block
        return kl_lower(released, bound), kl_upper(released, bound)

    def problems(self) -> list[str]:
        """Every question needs a row."""
        return [] if self.block >= 1 else ["there are fewer rows than questions"]
