"""The Ladder: a leaderboard that moves only for a real improvement (Blum & Hardt 2015)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afresh.lab.baselines.leaderboard import Board
from afresh.lab.session import Answers, Floats, Uncertified, Values


@dataclass(frozen=True)
class Ladder(Uncertified):
    """Improvements by less than `step` are not shown, and larger ones rounded to its multiples (Figure 1)."""

    method: ClassVar[str] = "ladder"
    best_so_far: ClassVar[bool] = True

    step: float = 0.0  # 0: (ln(k n) / n)^(1/3), the order that Theorem 3.1 balances

    def start(self, rng: np.random.Generator) -> Board:
        """Start with an empty board."""
        return _Rungs(self.claim, self.step or (math.log(self.questions * self.rows) / self.rows) ** (1 / 3))


class _Rungs(Board):
    def __init__(self, claim: Callable[[Floats], Answers], step: float) -> None:
        super().__init__(claim)
        self._step = step

    def submit(self, accuracy: float, row: Values) -> None:
        if accuracy > self.best + self._step:
            self.best = round(accuracy / self._step) * self._step
