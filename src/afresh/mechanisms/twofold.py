"""Noise that follows the standard deviation of numbers, as coarse first draws have shown it (section 17.10)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import Charges, grid_problems, grid_step, round_to_grid
from afresh.mechanisms.ghost import MOST_ROWS, ROUNDING, ByGhost
from afresh.mechanisms.parts import DifferenceOfParts, EqualAnswers, FromAllRows
from afresh.moments import Moments, Span
from afresh.theory.numbers import mean_square
from afresh.theory.symmetrized.common import Common, highest
from afresh.theory.symmetrized.twofold import (
    COARSE,
    DRAWS,
    Followed,
    followed_plan,
    world,
)

_NAMES = ("first", "square", "last")


@dataclass(frozen=True)
class Twofold(ByGhost, EqualAnswers, FromAllRows, DifferenceOfParts):
    """Three draws per answer: the mean and the mean square about it with noise 2 s, then the mean with noise f s.

    f follows from the first two, and lies between `finest` and 1. The curve is that of Theorem S (17.7), for all draws.
    """

    method: ClassVar[str] = "twofold"
    about: ClassVar[str] = "noise that follows the standard deviation of numbers, by coarse first draws"
    draws: ClassVar[int] = DRAWS

    rows: int
    questions: int
    failure: float
    s: float
    D: float
    """At most this share of pairs differs, for every draw, unless something fails that `failure` pays for."""
    bend: float
    lower: float
    height: float
    finest: float
    """The least noise of a last draw, as a share of s."""
    grid: float

    @cached_property
    def followed(self) -> Followed:
        """The intervals of this plan."""
        c = world(self.rows, self.questions, self.s, self.failure, self.finest, pairs=self.D)
        return Followed(Common(c, DRAWS * self.questions, self.bend, self.lower, self.height), self.s, self.finest)

    @property
    def charge(self) -> float:
        """Nats, whatever is drawn: noise s reveals at most 1/(8 n s^2), as the mean of n rows has variance 1/(4n)."""
        return (2 / COARSE**2 + 1 / self.finest**2) / (8 * self.rows * self.s**2)

    @property
    def information(self) -> float:
        """The cap on the information of all answers together."""
        return self.questions * self.charge

    @property
    def advice(self) -> str:
        """The questions for which it is narrow."""
        narrow = self.deviation_width(0.5, 0.05)
        return (
            f"{super().advice} They are those of shares of rows. A number whose standard deviation is 0.05 of its "
            f"range is answered to about ±{narrow:.2g} of it."
        )

    def release(self, moments: Moments, noise: Any) -> dict[str, float]:
        """The three draws, each on the public grid and within [0, 1], given as many standard normal numbers."""
        mean, (one, two, three) = moments.mean, noise
        first = self._rounded(mean + COARSE * self.s * one)
        square = self._rounded(mean_square(mean, moments.squares / moments.n, first) + COARSE * self.s * two)
        f = self.followed.noise(first, square, self.grid / 2)
        return {"first": first, "square": square, "last": self._rounded(mean + f * self.s * three)}

    def _rounded(self, noisy: float) -> float:
        return min(max(round_to_grid(noisy, self.grid), 0.0), 1.0)

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether these are three numbers in [0, 1] on the grid."""
        if not isinstance(released, Mapping) or set(released) != set(_NAMES):
            return False
        return all(0 <= released[name] <= 1 and float(released[name] / self.grid).is_integer() for name in _NAMES)

    def noise_in(self, released: Mapping[str, float]) -> float:
        """The noise of the last draw."""
        return self.s * self.followed.noise(released["first"], released["square"], self.grid / 2)

    def value(self, released: Mapping[str, float]) -> float:
        """The last draw, within the interval."""
        low, high = self.interval(released)
        return min(max(released["last"], low), high)

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """All truths that the first and the last draw admit."""
        first, square, last = (released[name] for name in _NAMES)
        return self.followed.ends(first, square, last, self.grid / 2)

    def half_width(self, mean: float) -> float:
        """The half-width for a share of rows."""
        return self.deviation_width(mean, math.sqrt(mean * (1 - mean)))

    def deviation_width(self, mean: float, deviation: float) -> float:
        """Half the interval's length for a number with this mean and standard deviation, as shares of its range."""
        return self.followed.half_width(mean, deviation)

    def problems(self) -> list[str]:
        """Theorem S needs room on every row, a bound D that holds, and a curve that is not too high."""
        if not (self.rows >= 2 and 0 < self.s < math.inf and 0 < self.D <= 1 and 0 < self.finest <= 1):
            return ["the noise or D is out of range"]
        found = grid_problems(self.grid, self.finest * self.s)
        if not (0 < self.bend < 1 and 0 < self.lower < 1):
            return [*found, "the bend or the part of lower tails is not within (0, 1)"]
        try:
            least = world(self.rows, self.questions, self.s, self.failure, self.finest)
        except InvalidArgument as refused:
            return [*found, str(refused)]
        if least.pairs * (1 - ROUNDING) > self.D:
            found.append("D is smaller than the bound of Theorem S")
        c = self.followed.common.constants
        if self.height > highest(c, DRAWS * self.questions, self.bend, self.lower) + ROUNDING:
            found.append("the curve is so high that its sum over answers exceeds the failure probability")
        return found

    def charge_outside(self, kind: str, value: float, rows: int, count: int) -> Charges:
        """Refused."""
        raise InvalidArgument(
            f"the certificate of method={self.method!r} counts its own draws, and cannot account for this; open data "
            "with method='symmetrized' (for noise_sd=) or method='calibrated'."
        )


@lru_cache(maxsize=64)
def plan_twofold(rows: int, questions: int, failure: float, deviation: float) -> Twofold | None:
    """The plan with the narrowest answers for numbers of this standard deviation around the middle of their range."""
    if rows > MOST_ROWS:
        return None
    try:
        made = followed_plan(rows, questions, failure, 0.5, deviation)
    except InvalidArgument:
        return None
    common, c = made.common, made.common.constants
    grid = grid_step(made.finest * made.s)
    curve = common.bend, common.lower, common.height
    return Twofold(rows, questions, failure, made.s, c.pairs, *curve, made.finest, grid)
