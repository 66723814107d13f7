"""The Ladder: a leaderboard that moves only for a real improvement (Blum & Hardt 2015).

Questions are accuracies; the answer is the best accuracy so far, as the board shows it. So it is compared with the
best truth so far, not with the question's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afresh.mechanisms.session import Answers, Floats, Uncertified, Values, means


@dataclass(frozen=True)
class Ladder(Uncertified):
    """Improvements by less than `step` are not shown, and larger ones rounded to its multiples (Figure 1)."""

    method: ClassVar[str] = "ladder"
    best_so_far: ClassVar[bool] = True

    step: float = 0.0  # 0: (ln(k n) / n)^(1/3), the order that Theorem 3.1 balances

    def start(self, rng: np.random.Generator) -> _Board:
        """An empty board."""
        return _Board(self, self.step or (math.log(self.questions * self.rows) / self.rows) ** (1 / 3))


class _Board:
    def __init__(self, constants: Ladder, step: float) -> None:
        self._constants, self._step, self._best = constants, step, -math.inf

    def answer(self, values: Values) -> Answers:
        """The best so far, after each question."""
        shown: Floats = means(values)
        for i, accuracy in enumerate(shown):
            if accuracy > self._best + self._step:
                self._best = round(accuracy / self._step) * self._step
            shown[i] = self._best
        return self._constants.claim(shown)


@dataclass(frozen=True)
class ParameterFreeLadder(Uncertified):
    """The step is the deviation of the paired difference to the best submission, over sqrt(n) (Figure 2)."""

    method: ClassVar[str] = "ladder-free"
    best_so_far: ClassVar[bool] = True

    def start(self, rng: np.random.Generator) -> _FreeBoard:
        """An empty board."""
        return _FreeBoard(self)


class _FreeBoard:
    def __init__(self, constants: ParameterFreeLadder) -> None:
        self._constants, self._best = constants, -math.inf
        self._submission: Floats | None = None

    def answer(self, values: Values) -> Answers:
        """The best so far, after each question."""
        shown: Floats = means(values)
        for i, accuracy in enumerate(shown):
            row = values[i].astype(np.float64)
            step = 0.0 if self._submission is None else float((row - self._submission).std()) / math.sqrt(row.size)
            if accuracy > self._best + step:
                self._best = round(accuracy * row.size) / row.size
                self._submission = row
            shown[i] = self._best
        return self._constants.claim(shown)
