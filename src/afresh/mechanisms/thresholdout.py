"""Thresholdout: training means, unless the holdout disagrees (Dwork, Feldman, Hardt, Pitassi, Reingold, Roth 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afresh.mechanisms.session import Answers, Floats, Uncertified, Values, means


@dataclass(frozen=True)
class Thresholdout(Uncertified):
    """The first half of the rows trains, the second is held out; noise Lap(2s), Lap(4s), Lap(s) as published.

    `tolerance` is s. Science 2015 plays it with threshold .04 and tolerance .01 at n = 10,000.
    """

    method: ClassVar[str] = "thresholdout"

    threshold: float = 0.04
    tolerance: float = 0.01

    def start(self, rng: np.random.Generator) -> _Holdout:
        """Draw the first noisy threshold."""
        return _Holdout(self, rng)


class _Holdout:
    def __init__(self, constants: Thresholdout, rng: np.random.Generator) -> None:
        self._constants, self._rng = constants, rng
        self._noisy_threshold = self._redraw()

    def _redraw(self) -> float:
        return self._constants.threshold + self._rng.laplace(scale=2 * self._constants.tolerance)

    def answer(self, values: Values) -> Answers:
        """Training means where they are near enough, noisy holdout means elsewhere."""
        half = values.shape[1] // 2
        return self._constants.claim(self.choose(means(values[:, :half]), means(values[:, half:])), half)

    def choose(self, training: Floats, holdout: Floats) -> Floats:
        """The algorithm itself, on the two means of each question."""
        s, rng, chosen = self._constants.tolerance, self._rng, training.copy()
        for i, gap in enumerate(np.abs(holdout - training)):
            if gap > self._noisy_threshold + rng.laplace(scale=4 * s):
                chosen[i] = holdout[i] + rng.laplace(scale=s)
                self._noisy_threshold = self._redraw()
        return chosen
