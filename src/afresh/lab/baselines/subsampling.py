"""Votes of single, randomly chosen rows (Blanc, STOC 2023: subsampling suffices)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from afresh.lab.session import Answers, Floats, Uncertified, Values, means


@dataclass(frozen=True)
class Subsampling(Uncertified):
    """Each vote draws a row and says 1 with the probability that the question gives it; their mean is released.

    So the noise adapts to the variance automatically. 0 votes stands for n / sqrt(k), the order at which the votes of
    all questions together say little about any row.
    """

    method: ClassVar[str] = "subsampling"

    votes: int = 0

    def start(self, rng: np.random.Generator) -> _Ballot:
        """Start a conversation, with a ballot for each question."""
        return _Ballot(self, self.votes or max(round(self.rows / math.sqrt(self.questions)), 1), rng)


class _Ballot:
    def __init__(self, constants: Subsampling, votes: int, rng: np.random.Generator) -> None:
        self._constants, self._votes, self._rng = constants, votes, rng

    def answer(self, values: Values) -> Answers:
        """Draw rows with replacement, so the number of votes for 1 is binomial."""
        mean: Floats = np.clip(means(values), 0.0, 1.0)
        # The interval is that of the votes; there are fewer votes than rows.
        return self._constants.claim(self._rng.binomial(self._votes, mean) / self._votes, self._votes)
