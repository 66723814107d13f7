"""What leaderboards share: the answer is the best accuracy so far, as the board shows it.

So it is compared with the best truth so far, not with the question's own truth.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

from afresh.lab.session import Answers, Floats, Values, means


class Board(ABC):
    """One conversation: submissions in order, as their rows' values."""

    def __init__(self, claim: Callable[[Floats], Answers]) -> None:
        """Start with an empty board; `claim` makes intervals from what it shows."""
        self._claim, self.best = claim, -math.inf

    def answer(self, values: Values) -> Answers:
        """The best so far, after each question."""
        shown = means(values)
        for i, accuracy in enumerate(shown):
            self.submit(float(accuracy), values[i])
            shown[i] = self.best
        return self._claim(shown)

    @abstractmethod
    def submit(self, accuracy: float, row: Values) -> None:
        """Take a submission: move `best`, or not."""
