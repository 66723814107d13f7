"""The parameter-free Ladder: a submission must be better by its own paired deviation (Blum & Hardt 2015)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afresh.lab.baselines.leaderboard import Board
from afresh.lab.session import Floats, Uncertified, Values


@dataclass(frozen=True)
class ParameterFreeLadder(Uncertified):
    """The step is the deviation of the paired difference to the best submission, over sqrt(n) (Figure 2)."""

    method: ClassVar[str] = "ladder-free"
    best_so_far: ClassVar[bool] = True

    def start(self, rng: np.random.Generator) -> Board:
        """Start with an empty board."""
        return _PairedBoard(self.claim)


class _PairedBoard(Board):
    _submission: Floats | None = None

    def submit(self, accuracy: float, row: Values) -> None:
        new = row.astype(np.float64)
        step = 0.0 if self._submission is None else float((new - self._submission).std()) / math.sqrt(new.size)
        if accuracy > self.best + step:
            self.best = round(accuracy * new.size) / new.size
            self._submission = new
