"""Thresholdout: training means, unless the holdout disagrees (Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afresh.lab.session import Answers, Floats, Uncertified, Values, means


@dataclass(frozen=True)
class Thresholdout(Uncertified):
    """The first half of the rows trains, the second is held out; noise Lap(2s), Lap(4s), Lap(s) as published.

    `tolerance` is s. Science 2015 uses threshold .04 and tolerance .01 at n = 10,000, and `gaussian` noise for its
    figures: sd s on the threshold, drawn anew for each question, and on the answer.
    """

    method: ClassVar[str] = "thresholdout"

    threshold: float = 0.04
    tolerance: float = 0.01
    gaussian: bool = False

    def start(self, rng: np.random.Generator) -> ReusableHoldout:
        """Draw the first noisy threshold."""
        return ReusableHoldout(self, rng)


class ReusableHoldout:
    """One conversation, with its noisy threshold."""

    def __init__(self, constants: Thresholdout, rng: np.random.Generator) -> None:
        """Draw the threshold's noise, which lasts until the threshold is crossed."""
        self._constants, self._rng = constants, rng
        self._noisy_threshold = self._redraw()

    def _redraw(self) -> float:
        constants = self._constants
        return constants.threshold + (0.0 if constants.gaussian else self._rng.laplace(scale=2 * constants.tolerance))

    def _noise(self, laplace_scale: float) -> float:
        s = self._constants.tolerance
        return self._rng.normal(scale=s) if self._constants.gaussian else self._rng.laplace(scale=laplace_scale * s)

    def answer(self, values: Values) -> Answers:
        """Answer with training means where they are close enough, and noisy holdout means elsewhere."""
        half = values.shape[1] // 2
        return self._constants.claim(self.choose(means(values[:, :half]), means(values[:, half:])), half)

    def choose(self, training: Floats, holdout: Floats) -> Floats:
        """Run the algorithm itself on the two means of each question."""
        chosen = training.copy()
        for i, gap in enumerate(np.abs(holdout - training)):
            if gap > self._noisy_threshold + self._noise(4):
                chosen[i] = holdout[i] + self._noise(1)
                self._noisy_threshold = self._redraw()
        return chosen
