"""What an engine tells of a question: count, sum and sum of squares. All that a mechanism ever sees of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sum and sum of squares of a query's values in [0, 1] over some rows."""

    n: int
    total: float
    squares: float

    @property
    def mean(self) -> float:
        """The sample mean mu."""
        return self.total / self.n

    @property
    def variance(self) -> float:
        """The sample variance sigma^2, divided by n as in the paper's Figure 1."""
        return max(self.squares / self.n - self.mean**2, 0.0)


def sum_moments(parts: Sequence[Moments]) -> Moments:
    """The moments of several disjoint sets of rows together."""
    return Moments(
        sum(part.n for part in parts),
        math.fsum(part.total for part in parts),
        math.fsum(part.squares for part in parts),
    )
