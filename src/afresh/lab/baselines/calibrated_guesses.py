"""Guess and check with guesses from the paper's mechanism, to show how little the choice of guesses matters."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import ClassVar

from afresh.mechanisms.base import grid_step
from afresh.mechanisms.guess_and_check import GuessAndCheck, make_guess_and_check
from afresh.mechanisms.parts import noisy_mean
from afresh.moments import Moments


@dataclass(frozen=True)
class CalibratedGuesses(GuessAndCheck):
    """Guesses are Figure 1's with t = 1/(4 s^2), T = t/v0; the checks are the same."""

    method: ClassVar[str] = "guess-and-check-calibrated"

    def guess(self, moments: Moments, noise: float) -> float:
        """The mean, with noise that follows the variance of the rows that guess."""
        t = 1 / (4 * self.s**2)
        return noisy_mean(moments, noise, t, t / self.v0, grid_step(math.sqrt(self.v0 / t)))


def plan_calibrated_guesses(rows: int, questions: int, failure: float) -> CalibratedGuesses:
    """The constants of guess and check."""
    return CalibratedGuesses(**asdict(make_guess_and_check(rows, questions, failure)))
