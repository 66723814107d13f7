"""Vectors answered in one release (section 18): what they cost in plain answers of the same noise.

The coordinates are answers of one batch. Lemma G and Lemma M hold with all of them; a row's account and kap grow with
d = mean of |psi(Z+) - psi(Z-)|^2 and tau by sum_l t_l/(1 + t_l) <= T/(1 + T/m), T = gam d/(4 n s^2). The constants must
have been made with `events` at least the number of vectors and of their coordinates that get an interval.
"""

from __future__ import annotations

import math

from afresh.errors import InvalidArgument
from afresh.theory.symmetrized.constants import Constants, drift, first_argument_upper


def histogram_pairs(c: Constants, bins: int) -> float:
    """D of a one-hot vector: d/2 = up(1 - 1/m + delta/m + delta^2/4, L1/n), at most 1.

    Group shares (A 1_g, (1-A) 1_g) of a 0/1 number A are one-hot; of other A in [0, 1] only d <= 2 is proved.

    delta = sqrt(L3/(2n)) + (sqrt(tau) + x) sqrt(gam d/(2n)): how far S[g] may be from P[g] in units of the largest p,
    for g = p of the row's bin.
    """
    if bins < 1:
        raise InvalidArgument(f"bins == {bins}, must be >= 1.")
    half = 1.0
    for _ in range(20):  # every iterate is valid, as for D
        delta = math.sqrt(c.level3 / (2 * c.n)) + drift(c) * math.sqrt(half)
        mean = 1 - 1 / bins + delta / bins + delta * delta / 4
        half = min(half, first_argument_upper(min(mean, 1.0), c.level1 / c.n))
    return 2 * half


def ball_pairs(c: Constants, radius: float) -> float:
    """D of a vector in a ball of this radius around a public centre: 4 R^2 D, as for a number in [0, 1]."""
    if not 0 < radius < math.inf:
        raise InvalidArgument(f"radius == {radius}, must be positive and finite.")
    return 4 * radius * radius * c.pairs


def price(c: Constants, pairs: float, size: int, s: float | None = None) -> float:
    """How many plain answers of the plan's noise a vector of this D, `size` coordinates and noise s counts as.

    The larger of its parts in kap and the row accounts (T/t) and in tau (T/(1 + T/m) against t/(1 + t)).
    """
    total = c.scaled(pairs, s)
    return max(total / c.step, total / (1 + total / size) * (1 + c.step) / c.step)


def row_price(squares: float, c: Constants, s: float | None = None) -> float:
    """The same for the row accounts alone: the largest |psi(z) - psi(z')|^2 (2 for one-hot, 4 R^2 in a ball)."""
    return squares * (c.s / (c.s if s is None else s)) ** 2
