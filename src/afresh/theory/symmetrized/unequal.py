"""Answers of unequal noise on one account (17.10): precision chosen per answer, noise calibrated to small variances.

Noise s_j and the bound D_l of d_l may be functions of the transcript. Fixed in advance are caps: on the units spent,
sum (s/s_l)^2 D_l/D, on the rows' accounts, and on the finest noise; and the curve and the share of each answer. An
answer is charged D_l = max D(P) over its own interval, true until the first miss, which is all that the proof needs.
So a wrong guess of the variance costs budget, never validity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from afresh.errors import InvalidArgument
from afresh.theory.symmetrized.adaptive import TYPICAL, AdaptivePlan, first_argument_upper_each, pairs_between
from afresh.theory.symmetrized.constants import MOST_ROW, Constants, constants, drift
from afresh.theory.symmetrized.fixed import Plan, width_of

_UP = 1 + 1e-12


@dataclass(frozen=True)
class Spent:
    """What the transcript has used so far: answers, units, row units (s/s_l)^2, and tau. All public."""

    answers: int = 0
    units: float = 0.0
    rows: float = 0.0
    bulk: float = 0.0


@dataclass(frozen=True)
class UnequalPlan:
    """Up to `adaptive.constants.count` answers, which together spend at most as many units."""

    adaptive: AdaptivePlan
    finest: float
    row_units: float

    @property
    def constants(self) -> Constants:
        """What all answers share."""
        return self.adaptive.constants

    def admits(self, spent: Spent, s: float) -> bool:
        """Whether an answer of noise s stays within the caps, whatever its truth; check it before the draw."""
        own = (self.constants.s / s) ** 2
        return (
            s >= self.finest
            and spent.answers < self.constants.count
            and spent.units + own <= self.constants.count
            and spent.rows + 4 * own <= self.row_units
        )

    def interval(self, value: float, spent: Spent, s: float, half_step: float = 0.0) -> tuple[float, float]:
        """The interval of the next answer, of noise s, for a mean in [0, 1]."""
        return self.adaptive.interval(value, spent.answers + 1, half_step, s=s, bulk=spent.bulk)

    def half_width(self, pairs: float, spent: Spent, s: float) -> float:
        """s h of the next answer, if its d is known to be at most `pairs` (a number of small variance)."""
        h = self.adaptive.widths_at(np.array([pairs]), spent.answers + 1, s, spent.bulk)
        return min(s * float(h[0]) * (1 + 1e-9), 1.0)

    def after(self, spent: Spent, s: float, pairs: float, *, counted: bool = True) -> Spent:
        """The account after an answer of noise s whose d is at most `pairs`.

        A coarse draw that only chooses the noise of a second draw about the same question is not counted: it has no
        interval of its own, and that of the second draw bounds the d of both, which is one number. Before the second
        draw it must be entered with the D of the plan, because its own interval is not known yet.
        """
        c = self.constants
        own = (c.s / s) ** 2
        t = c.scaled(pairs, s)
        return Spent(
            answers=spent.answers + counted,
            units=(spent.units + own * pairs / c.pairs) * _UP,
            rows=(spent.rows + own) * _UP,
            bulk=(spent.bulk + t / (1 + t)) * _UP,
        )

    def pairs_of(self, interval: tuple[float, float]) -> float:
        """max D(P) over an interval of the mean."""
        edges = np.linspace(*interval, 9)
        return float(pairs_between(self.constants, edges[:-1], edges[1:]).max())

    def pairs_of_number(self, square: float) -> float:
        """D of a number in [0, 1] with E(psi - centre)^2 <= square, an upper limit that this plan has released.

        e <= S[phi] + P[phi] + (S - P)^2/2 for phi = (psi - centre)^2; E2 and E3 bound S[phi] and S - P.
        """
        c = self.constants
        if not 0 <= square <= 1:
            raise InvalidArgument(f"square == {square}, must be in [0, 1].")
        level = c.level3 / c.n
        own = math.sqrt(self.pairs_of((0.0, square)))
        sample = min(float(first_argument_upper_each(square, level)) + drift(c) * own, 1.0)
        pairs = c.pairs
        for _ in range(12):  # every iterate is valid
            away = math.sqrt(level / 2) + drift(c) * math.sqrt(pairs)
            mean = min((sample + square + away * away / 2) * _UP, 1.0)
            pairs = min(pairs, float(first_argument_upper_each(mean, c.level1 / c.n)))
        return pairs

    def noise_for(self, about: float, spent: Spent | None = None, units: float = 1.0) -> float:
        """The noise at which a mean of `about` will be charged this many units: a guess, which need not be right.

        `spent` is the account for which this should hold: by default, the plan's own middle.
        """
        c = self.constants
        if spent is None:
            spent = Spent(c.count // 2, c.count / 2, 0.0, c.bulk / 2)
        s = c.s
        for _ in range(12):
            pairs = self.pairs_of(self.interval(about, spent, s))
            s = math.sqrt(s * c.s * math.sqrt(pairs / (c.pairs * units)))
        return max(s, self.finest)


@lru_cache(maxsize=32)
def unequal_plan(
    n: int,
    count: int,
    beta: float,
    s: float,
    *,
    finest: float | None = None,
    rows: float | None = None,
    typical: tuple[float, ...] = TYPICAL,
) -> UnequalPlan:
    """A plan for `count` units at reference noise s; noise down to `finest` (default s/8).

    `rows` caps the row units sum (s/s_l)^2. A nat of kap widens answers by some 4%, and kap grows with this cap: by
    default it is 2 to 10 times the count, such that kap is about .8.
    """
    finest = s / 8 if finest is None else finest
    largest = (s / finest) ** 2
    unit = 1 / (4 * n * n * s * s)
    if rows is None:
        swap = unit * count * count / (16 * n * s * s)  # kap for one row unit an answer, D = 1/2
        rows = min(max(0.8 / swap, 2.0), 10.0) * count + 4 * largest
        rows = min(rows, 0.99 * MOST_ROW / unit)
    c = constants(n, count, s, beta, least=finest, row=rows * unit, largest=largest, answers=math.inf)
    base = Plan(c, "constant width", width_of(c, "constant width"))
    return UnequalPlan(AdaptivePlan(base, typical), finest, rows)
