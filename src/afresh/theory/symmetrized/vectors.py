"""Vectors answered in one release (section 18): what they count as, their noise, and what their coordinates share.

The m coordinates are answers of one batch. Lemma G and Lemma M hold with all of them. A row's account and kap grow with
d = mean of |psi(Z+) - psi(Z-)|^2, and the exponent of Lemma M by sum_l f(t_l) <= m f(T/m), T = gam d/(4 n s^2),
f(u) = ln(1 + l/(1-l) u/(1+u)). A vector counts as c answers if its noise is so large that m f(T/m) <= c f(t): then it
adds to every sum of the plan what c plain answers do. Its coordinates share the failure probability of these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from afresh.errors import InvalidArgument
from afresh.theory.symmetrized.common import Common, Intervals, pairs_within
from afresh.theory.symmetrized.constants import Constants, drift, first_argument_upper

SHARES, BALL = "shares", "ball"
"""Coordinates that are at least 0 and add up to at most 1; coordinates in [0, 1] within 1/2 of (1/2, ..., 1/2)."""
MOST_SIZE = 100_000
_UP = 1 + 1e-12


@dataclass(frozen=True)
class Batch:
    """A vector of `size` coordinates that counts as `answers` of a plan, with `times` the plan's noise."""

    constants: Constants
    """The plan's constants for the events of one coordinate; there are more such events than answers."""
    size: int
    answers: int
    times: float

    @property
    def log_part(self) -> float:
        """ln(c/m): each coordinate has that part of an answer's share."""
        return min(math.log(self.answers / self.size), 0.0)

    def intervals(self, common: Common) -> Intervals:
        """The intervals of its coordinates."""
        return Intervals(common, self.constants.s * self.times, log_part=self.log_part, events=self.constants)


def shares_pairs(c: Constants, size: int) -> float:
    """D of vectors of shares: d/2 <= up(1 - 1/M + A/M + A^2/4, L1/n), M = size + 1, A = drift + sqrt(L3/(2n)).

    What is missing from a sum of 1 is one more coordinate, which is not released. Rows need not be alike.
    """
    away = drift(c) + math.sqrt(c.level3 / (2 * c.n))
    mean = 1 - (1 - away) / (size + 1) + away * away / 4
    return 2 * first_argument_upper(min(mean * _UP, 1.0), c.level1 / c.n)


def ball_pairs(c: Constants) -> float:
    """D of vectors in a ball of radius 1/2 around a public centre: up(1/2 + A^2/2, L1/n), as for a number."""
    away = drift(c) + math.sqrt(c.level3 / (2 * c.n))
    return first_argument_upper(min((0.5 + away * away / 2) * _UP, 1.0), c.level1 / c.n)


def price(common: Common, kind: str, size: int) -> float:
    """How many plain answers a vector with the plan's own noise would count as; not rounded."""
    c = common.constants
    total = c.scaled(_pairs(_raised(c, size, 1), kind, size))
    return size * _exponent(total / size, common.bend) / _exponent(c.step, common.bend)


@lru_cache(maxsize=256)
def batch(common: Common, kind: str, size: int, answers: int) -> Batch:
    """The vector that counts as so many answers: with the least noise at which it may, and at least the plan's."""
    if not (1 <= size <= MOST_SIZE and answers >= 1):
        raise InvalidArgument(f"a vector of {size} coordinates for {answers} answers; must be of 1 to {MOST_SIZE:,}.")
    c = common.constants
    raised = _raised(c, size, answers)
    # m f(T/m) <= c f(t): f's inverse at c f(t)/m.
    rate = common.bend / (1 - common.bend)
    x = math.expm1(answers * _exponent(c.step, common.bend) / size) / rate
    most = math.inf if x >= 1 else size * x / (1 - x)
    square = c.scaled(_pairs(raised, kind, size)) / most
    # An answer's own coordinate counts four times in kap: (k - c) D + 4 d_l/f^2 <= (k + 3) D.
    own = float(pairs_within(raised, 0.5, 0.5))
    square = max(square, 4 * own / ((3 + answers) * c.pairs))
    # And one row in the rows' accounts once it is past, 2 for shares and 1 for a ball: at most c.
    square = max(square, (2.0 if kind == SHARES else 1.0) / answers, 1.0)
    return Batch(raised, size, answers, math.sqrt(square) * (1 + 1e-9) if square > 1 else 1.0)


def _pairs(c: Constants, kind: str, size: int) -> float:
    if kind == SHARES:
        return shares_pairs(c, size)
    if kind == BALL:
        return ball_pairs(c)
    raise InvalidArgument(f"kind == {kind!r}, must be {SHARES!r} or {BALL!r}.")


def _exponent(step: float, bend: float) -> float:
    """f(t): twice what an answer adds to the exponent of Lemma M."""
    return math.log1p(bend / (1 - bend) * step / (1 + step))


def _raised(c: Constants, size: int, answers: int) -> Constants:
    """The constants for size + 1 threefold events, of the vector and its coordinates, instead of so many answers'.

    A coordinate's d is not yet known to be at most D: it begins at 1.
    """
    more = max(math.log((size + 1) / answers), 0.0)
    level1, level3 = c.level1 + more * _UP, c.level3 + more * _UP
    return replace(c, level1=level1, level3=level3, tilt=2 * math.sqrt(c.swap + level3) * _UP, pairs=1.0)
