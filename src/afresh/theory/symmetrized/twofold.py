"""Noise that follows coarse first draws (17.10): of a mean, and of the mean square about it.

A question psi is answered by three draws: y1, its mean with noise c s; y2, the mean of phi = (psi - y1)^2/M^2 with
noise c s, where M = max(y1, 1 - y1) makes it a number in [0, 1]; and y3, its mean with noise f s. The interval of y1
contains the mean and that of y2 bounds P[phi] by U, both until the first miss, so d <= D' with D' the smaller of max
D(P) over the one and D(U) of the other. Noise with f^2 = D'/D keeps y3 at the price of one plain answer, whatever it
turns out to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from afresh.errors import InvalidArgument
from afresh.theory.numbers import largest_square
from afresh.theory.symmetrized.common import Common, Intervals, best_curve, pairs_of
from afresh.theory.symmetrized.constants import Constants, constants, drift, first_argument_upper
from afresh.theory.symmetrized.fixed import best_noise

COARSE = 2.0  # the noise of the first draws, in multiples of the plan's; by measurement, see 17.10
DRAWS = 3
PRICE = 1 + 2 / COARSE**2
_CELLS, _LAST_CELLS, _ROUGH_CELLS = 200, 32, 48
_ITERATES = 8  # a fixed number, so that all processors stop at the same one; each gains a factor of about 5
_LEAST = 0.02  # of the plan's noise
_UP = 1 + 1e-12


def number_pairs(c: Constants, square: float, centre: float) -> float:
    """D(U) of a number in [0, 1] with P[phi] <= U = square, phi = (psi - centre)^2/M^2; rows need not be alike.

    E[d | S, y] <= M^2 (S[phi] + P[phi]) + A^2/2, A = drift + sqrt(L3/(2n)). S[phi] is at most up(U, L3/n) + drift
    sqrt(d_phi), d_phi at most D(P[phi]), and at most 4 d/M^2.
    """
    square = min(max(square, 0.0), 1.0)
    level, r, scale = c.level3 / c.n, drift(c), largest_square(centre)
    away = r + math.sqrt(level / 2)
    own, sample = pairs_of(c, 0.0, square, _ITERATES), first_argument_upper(square, level)
    pairs = c.pairs
    for _ in range(_ITERATES):  # every iterate is valid
        mean = scale * (square + sample + r * math.sqrt(min(own, 4 * pairs / scale))) + away * away / 2
        pairs = min(pairs, first_argument_upper(min(mean * _UP, 1.0), c.level1 / c.n))
    return pairs


@dataclass(frozen=True)
class Followed:
    """The intervals of a plan: a curve for all draws, the plan's noise, and the finest noise as a part of it."""

    common: Common
    s: float
    finest: float
    cells: int = _CELLS

    @cached_property
    def coarse(self) -> Intervals:
        """The intervals of the first two draws."""
        return Intervals(self.common, self.s * COARSE, self.cells)

    def noise(self, first: float, square: float, half_step: float = 0.0) -> float:
        """f, from the first draws."""
        return self._bounds(first, square, half_step)[2]

    @lru_cache(maxsize=4096)  # noqa: B019 - a few plans a process; release, value and interval ask for the same
    def _bounds(self, first: float, square: float, half_step: float) -> tuple[float, float, float]:
        """Where the mean lies according to the first draw, and f according to both."""
        low, high = self.coarse.ends(first, half_step)
        c = self.common.constants
        most = self.coarse.ends(square, half_step)[1]
        pairs = min(pairs_of(c, low, high, _ITERATES), number_pairs(c, most, first))
        return low, high, min(max(math.sqrt(pairs / c.pairs) * _UP, self.finest), 1.0)

    @lru_cache(maxsize=4096)  # noqa: B019 - as above
    def ends(self, first: float, square: float, last: float, half_step: float = 0.0) -> tuple[float, float]:
        """All truths in the interval of the first draw that the last one admits; outward, cell by cell."""
        low, high, f = self._bounds(first, square, half_step)
        c, s = self.common.constants, self.s * f
        edges = np.linspace(low, high, _LAST_CELLS + 1).tolist()
        most = self.s * f * self._width + half_step  # b^2 is at most t
        found = [low, high]
        for side in (0, 1):  # the outermost cell that the last draw admits decides
            for cell in range(_LAST_CELLS) if side == 0 else range(_LAST_CELLS - 1, -1, -1):
                left, right = edges[cell], edges[cell + 1]
                if left > last + most * (1 + 2e-9) + 2e-15 or right < last - most * (1 + 2e-9) - 2e-15:
                    continue
                pairs = min(pairs_of(c, left, right, _ITERATES), f * f * c.pairs * _UP)
                width = self.common.width(math.sqrt(c.scaled(pairs, s)))
                away = (s * width + half_step) * (1 + 1e-9) + 1e-15
                if left <= last + away and right >= last - away:
                    found[side] = max(left, last - away) if side == 0 else min(right, last + away)
                    break
            else:  # a miss that is known: both draws cannot be right
                return low, high
        return max(found[0] - 1e-15, low), min(found[1] + 1e-15, high)

    @cached_property
    def _width(self) -> float:
        """h of the largest b."""
        return self.common.width(self.common.constants.reach)

    def half_width(self, mean: float, deviation: float) -> float:
        """Half the length if the noise in every draw is zero."""
        square = min(deviation * deviation / largest_square(mean), 1.0)
        low, high = self.ends(mean, square, mean)
        return (high - low) / 2


def world(n: int, count: int, s: float, beta: float, finest: float, pairs: float | None = None) -> Constants:
    """The constants of `count` questions of three draws each; q has room for all last draws at the finest noise.

    Every draw counts once on a row, and the own draw of a comparison four times.
    """
    row = (count * (PRICE - 1 + 1 / finest**2) + 3 / finest**2) / (4 * n * n * s * s) * _UP
    units, most = units_of(count), DRAWS * count
    return constants(n, units, s, beta, least=finest * s, row=row, events=most, answers=most, alike=False, pairs=pairs)


def units_of(count: int) -> int:
    """The most plain answers that so many questions count as."""
    return math.ceil(count * PRICE)


@lru_cache(maxsize=64)
def followed_plan(n: int, count: int, beta: float, mean: float, deviation: float) -> Followed:
    """The plan with the narrowest answers for numbers of this mean and standard deviation, as shares of their range."""

    def of(s: float, finest: float, final: bool = False) -> Followed:
        c = world(n, count, s, beta, finest)
        cells = _CELLS if final else _ROUGH_CELLS
        return Followed(best_curve(c, DRAWS * count, (0.5,), final=final), s, finest, cells)

    def suited(s: float) -> float:
        finest = 0.5
        for _ in range(2):  # noise, cap and D(U) depend on one another; any cap is valid
            try:
                found = of(s, finest)
            except InvalidArgument:
                return 1.0
            open_ended = Followed(found.common, s, _LEAST, _ROUGH_CELLS)
            finest = min(max(0.98 * open_ended.noise(mean, deviation**2 / largest_square(mean)), _LEAST), 1.0)
        return finest

    def width(s: float) -> float:
        try:
            return of(s, suited(s)).half_width(mean, deviation)
        except InvalidArgument:  # one row may matter too much
            return 1e6 / s

    s = best_noise(n, units_of(count), width)
    return of(s, suited(s), final=True)
