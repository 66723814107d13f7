"""Numbers whose noise follows their standard deviation, at the price of one plain answer (sections 7 and 10).

The mean of a number psi in [0, 1] may lie anywhere, so the variance it allows, m(1-m), does not show that the variance
is small. The mean of phi = (psi - c)^2/M^2 does, for any centre c that an earlier draw has shown, with M = max(c, 1 -
c): the variance of psi is at most M^2 times it, in the sample and in the population.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from afresh.theory.bernoulli import kl_upper
from afresh.theory.special import ndtri
from afresh.theory.stabilized import stabilized_charge
from afresh.theory.symmetrized.constants import first_argument_upper

# The part of one answer that each draw counts as, by measurement. Theorem T: centre, square, mean (section 10).
FIRST, SQUARE = 1 / 16, 1 / 8
LAST = 1 - FIRST - SQUARE
# Figure 1: mean, which is also the centre, and square (section 7).
MEAN = 3 / 4
# Within a group the centre takes two draws: the share of rows in it, and the mean of A 1_B.
IN_GROUP = 1 / 16
LARGE = 0.15
"""The relative accuracy to which a large group's share would be known, in plans that do not state it (`is_large`)."""
_UP = 1 + 1e-12


def largest_square(centre: float) -> float:
    """M^2: no number in [0, 1] has a larger square about this centre."""
    return max(centre, 1 - centre) ** 2


def mean_square(mean: float, square: float, centre: float) -> float:
    """S[phi], from S[psi] and S[psi^2]."""
    about = square - 2 * centre * mean + centre * centre
    return min(max(about, 0.0) / largest_square(centre), 1.0)


def rare_noise(answers: int, failure: float) -> float:
    """z0: none of so many normal numbers is below -z0, except with this probability (a union over them)."""
    return -ndtri(failure / answers) * _UP


def two_point_cumulant(theta: float, variance: float) -> float:
    """The largest ln E exp(theta (psi - E psi)) of a psi in [0, 1] with at most this variance, at most: Hoeffding 1963.

    ln((V e^theta + e^(-theta V))/(1 + V)), concave in V, so V may be the mean of the rows' different variances.
    """
    rise = variance * math.expm1(theta) + math.expm1(-theta * variance)
    return math.log1p(max(rise, 0.0) / (1 + variance)) * _UP + 4e-16


def least_noise(floor: float) -> float:
    """f_min = 2 sqrt(v0): with less of the plan's noise, one row could matter more than in a plain answer."""
    return 2 * math.sqrt(floor)


def rare_slack(rows: int, tilt: float, part: float) -> float:
    """How much H grows if eps of beta is kept for squares that come out too small: n eps/(lam (1 - eps))."""
    return rows * part / (tilt * (1 - part)) * _UP


def kept_part(rows: int, tilt: float, bound: float) -> float:
    """An eps that makes H larger by one ten-thousandth."""
    return 1e-4 * bound * tilt / rows


@dataclass(frozen=True, slots=True)
class Spread:
    """What the first two draws of Theorem T have shown."""

    noise: float
    """f: with noise f s/sqrt(rho) the last draw reveals no more than its part of a plain answer."""
    reach: float
    """How far the truth may be from the last draw before rounding."""


def spread_shown(
    centre: float, sample: float, rows: int, floor: float, tilt: float, bound: float, part: float = LAST
) -> Spread:
    """What S[phi] <= `sample` shows, with Theorem T's tilt lam and bound H, and rho the part of the last draw.

    f = 2 M sqrt(u) within [f_min, 1]. n kl(u || P[phi]) <= lam H bounds the variance V of the population, and |y - P|
    is at most f H/sqrt(rho) + (n/lam_j) K(lam_j/n, V), lam_j = lam sqrt(rho)/f.
    """
    least, scale, root = least_noise(floor), largest_square(centre), math.sqrt(part)
    f = min(max(2 * math.sqrt(scale * sample) * _UP, least), 1.0)
    largest = kl_upper(min(sample * _UP, 1.0), tilt * bound / rows)
    theta = tilt * root / (f * rows)
    further = two_point_cumulant(theta, min(scale * largest * _UP, 0.25)) / theta
    return Spread(f, (f * bound / root + further) * _UP)


def square_floor(n: int) -> float:
    """The variance floor v0 of the square's transform beside Figure 1: small, with room for one row more or less."""
    return min(max(0.002, 20 / (n - 1)), 0.25)


def square_noise(charge: float, n: int) -> float:
    """The noise on Theta(S[phi]) whose charge, G n/(8 (n-1)^2 s^2), is its part of a plain answer's (section 7)."""
    return plain_noise(charge, n) / math.sqrt(1 - MEAN)


def plain_noise(charge: float, n: int) -> float:
    """The noise on such a transform whose charge is all of it."""
    return math.sqrt(stabilized_charge(n, square_floor(n), 1.0) / charge) * _UP


def is_large(unsure: float, inside: float, share: float, grouping: float, before: float = LARGE) -> bool:
    """Whether a group of about this share, E[A 1_B] about `inside`, is answered as a large one (12).

    It is, if its share would be known to within `unsure`, a small part of itself: smaller where E[A | B] is near an
    end, since one of the halves is then rare and known well. Plans without a `grouping` use one part, whatever the
    mean.
    """
    centre = centre_in_group(inside, share)
    return unsure <= (grouping * 4 * centre * (1 - centre) if grouping else before) * share


def centre_in_group(inside: float, share: float) -> float:
    """Roughly E[A | B]."""
    return min(inside / share, 1.0) if share > 0 else 0.5


def aim_in_group(first: float, share: float, *, second: bool, large: bool) -> tuple[float, float, float, float]:
    """What an answer about E[A | B] averages, as coefficients of A 1_B, 1_B and 1, and roughly where it lies (12).

    From rough values of E[A 1_B] and Pr(B). For a large group, whose share is known well: the share, and A in B with
    its centre elsewhere. For a small one: the halves A 1_B and (1 - A) 1_B.
    """
    if not large:
        return (-1.0, 1.0, 0.0, min(max(share - first, 0.0), 1.0)) if second else (1.0, 0.0, 0.0, min(first, 1.0))
    if not second:
        return 0.0, 1.0, 0.0, share
    centre = centre_in_group(first, share)
    return 1.0, -centre, centre, centre


def farthest_mean(variance: float, room: float, bound: float) -> float:
    """How far the mean of n values, each within `room` of its own on that side, may be, at the level e^(-n bound).

    Hoeffding's two-point bound (1963, Theorem 3): the largest w with kl((V + c w)/(V + c^2) || V/(V + c^2)) <= bound.
    """
    if variance <= 0 or room <= 0:
        return 0.0
    whole = variance + room * room
    most = first_argument_upper(min(variance / whole * _UP, 1.0), bound)
    return min(max((most * whole - variance) / room * _UP, 0.0), room)
