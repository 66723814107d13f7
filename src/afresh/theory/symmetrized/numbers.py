"""Numbers whose noise follows their standard deviation under Theorem S, whatever else is asked (17.10).

A number psi in [0, 1] is answered by draws that together count as little as one plain answer: y1, its mean with much
noise, which is a centre c; y2, the mean of phi = (psi - c)^2/M^2, M = max(c, 1 - c), with much noise; and y3, its mean.
Within a group the centre takes two draws. The noise of y2 is known, so it bounds S[phi]; the ghost bounds P[phi]; and
both together bound d of psi, which the noise of y3 follows. None of the first draws needs its own interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from afresh.theory.bernoulli import kl_upper
from afresh.theory.numbers import FIRST, IN_GROUP, SQUARE, largest_square
from afresh.theory.special import ndtri
from afresh.theory.symmetrized.common import Common, farthest, pairs_of, rate_of
from afresh.theory.symmetrized.constants import Constants, drift, first_argument_upper

FIRSTS = 2 * IN_GROUP + SQUARE
"""The most that the first draws usually count as, in plain answers."""
MOST_FIRSTS = 2.0
"""No plan has first draws that count more than so many times the usual."""
LEAST = 0.76
"""(s/s_3)^2 at which a number hardly depends more on a row than a plain answer does; a little more than a step has."""
EVENTS = 4
"""A number uses at most three and a half times what a plain answer may of the probability that G fails."""
_ITERATES, _OWN_ITERATES = 6, 4  # fixed numbers of iterates, so that all processors stop at the same one; each is valid
_UP = 1 + 1e-12
_SMALLER, _MOST_LEFT = [2.0**-i for i in range(17)], 0.6
USUAL_DEVIATION = 0.05
"""The deviation of numbers that a plan has room for, unless one is given."""
WORTH = 0.95
"""The gain that room for numbers requires: those with a large deviation become that much wider."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the first draws have shown, as bounds that hold unless G fails."""

    pairs: float
    """D(U): the bound on d of the number."""
    square: float
    """The bound on d of phi."""


@lru_cache(maxsize=4096)  # releasing, reading and checking ask for the same values
def shown(c: Constants, centre: float, square: float, noise: float, half_step: float) -> Shown:
    """The bounds from y2 = `square`, the mean of phi with this noise and rounded; rows need not be alike.

    S[phi] <= y2 + z noise, z the quantile of e^-L3. S'[phi] <= S[phi] + drift sqrt(d_phi), and n kl(S'[phi] || P[phi])
    <= L3. E[d | S, y] <= M^2 (S[phi] + P[phi]) + A^2/2 with A = drift + sqrt(L3/(2n)), and d_phi <= 4 d/M^2.
    """
    level, r, scale = c.level3 / c.n, drift(c), largest_square(centre)
    away = r + math.sqrt(level / 2)
    sample = min((square + rare(c) * noise + half_step) * _UP, 1.0)
    own = pairs = c.pairs
    for _ in range(_ITERATES):
        ghost = min((sample + r * math.sqrt(min(own, 4 * pairs / scale))) * _UP, 1.0)
        most = kl_upper(ghost, level)
        own = min(own, pairs_of(c, 0.0, most, _OWN_ITERATES))
        mean = scale * (sample + most) + away * away / 2
        pairs = min(pairs, first_argument_upper(min(mean * _UP, 1.0), c.level1 / c.n))
    return Shown(pairs, min(own, 4 * pairs / scale))


def rare(c: Constants) -> float:
    """z: a normal number is below -z with probability e^-L3."""
    return -ndtri(math.exp(-c.level3)) * _UP


def together(step: float, rate: float, parts: Sequence[float]) -> float:
    """g with 1 + R g = prod (1 + R g_i), g_i = u/(1+u) of each part of a plain answer's t; R is l/(1-l).

    For Lemma M, so many draws in different directions are one answer with that u/(1+u); for tau, it is at least theirs.
    """
    found = 0.0
    for part in parts:
        own = step * part
        own /= 1 + own
        found += own + rate * found * own
    return found * _UP


def first_exponent(step: float, rate: float, firsts: float = 1.0) -> float:
    """The most that an answer's own first draws add to the exponent of Lemma M."""
    return math.log1p(rate * together(step, rate, _firsts(1.0, grouped=True, firsts=firsts))) / 2


def counted(step: float, rate: float, parts: Sequence[float]) -> float:
    """The number of plain answers these draws count as: at least their sum, as many small ones reveal more than one."""
    found = together(step, rate, parts)
    return math.inf if found >= 1 else found / (1 - found) / step


def room(step: float, rate: float, parts: Sequence[float], most: float = 1.0) -> float:
    """What is left for one more draw, so that all together count at most as this."""
    whole, taken = step * most / (1 + step * most), together(step, rate, parts)
    left = (whole - taken) / (1 + rate * taken) / _UP
    return left / (1 - left) / step if left > 0 else 0.0


def parts_of(fine: float, pairs: float, square: float, *, grouped: bool) -> list[float]:
    """The draws of a number in plain answers; `fine` is (s/s_3)^2, pairs and square are bounds of d as parts of D.

    The first has the direction of the last, except within a group.
    """
    return [*_firsts(square, grouped=grouped), (fine + (0.0 if grouped else FIRST)) * pairs]


def fine_for(
    step: float, rate: float, pairs: float, square: float, *, grouped: bool, most: float = 1.0, firsts: float = 1.0
) -> float:
    """(s/s_3)^2 of the last draw with which a number counts at most as this; 0 if there is no room.

    `firsts`: what first draws count, in units of what they usually count; less in plans of few questions.
    """
    left = room(step, rate, _firsts(square, grouped=grouped, firsts=firsts), most)
    return _fine(left, pairs, grouped=grouped, firsts=firsts)


def plainly_fine(pairs: float, square: float, *, grouped: bool, most: float) -> float:
    """The same if only the sum of the parts counts."""
    return _fine(most - math.fsum(_firsts(square, grouped=grouped)), pairs, grouped=grouped)


def _firsts(square: float, *, grouped: bool, firsts: float = 1.0) -> list[float]:
    """The first draws that have their own direction."""
    return [firsts * part for part in ([IN_GROUP, IN_GROUP] if grouped else [])] + [firsts * SQUARE * square]


def _fine(left: float, pairs: float, *, grouped: bool, firsts: float = 1.0) -> float:
    return max(left / (pairs * _UP) - (0.0 if grouped else firsts * FIRST), 0.0)


def usual_width(common: Common, numbers: float, firsts: float = 1.0, away: float = 0.0) -> float:
    """About the half-width of a number of the usual deviation, whose last draw has at least this noise.

    Every noise is zero, but the centre is so many deviations of its own noise away from the mean.
    """
    c = common.constants
    seen = _usual(c, USUAL_DEVIATION, firsts, away)
    parts = seen.pairs / c.pairs, seen.square / c.pairs
    fine = fine_for(c.step, rate_of(common.bend), *parts, grouped=False, firsts=firsts)
    return farthest(common, c.s * max(numbers, fine**-0.5), seen.pairs) if fine > 0 else math.inf


def is_worth_it(common: Common, numbers: float, plain: float, firsts: float = 1.0) -> bool:
    """Whether answers about numbers of the usual deviation are clearly narrower than plain ones, at this noise."""
    return usual_width(common, numbers, firsts) <= WORTH * plain


def _usual(c: Constants, deviation: float, firsts: float, away: float = 0.0) -> Shown:
    off = min(away * c.s / math.sqrt(FIRST * firsts), 0.5)
    square = (deviation**2 + off**2) / largest_square(0.5 + off)
    return shown(c, 0.5 + off, min(square, 1.0), c.s / math.sqrt(SQUARE * firsts), 0.0)


def fine_usual(c: Constants, rate: float, deviation: float | None = None, firsts: float = 1.0) -> float:
    """(s/s_3)^2 of a number with such a deviation, or the usual one, in the middle of its range."""
    seen = _usual(c, USUAL_DEVIATION if deviation is None else deviation, firsts)
    return fine_for(c.step, rate, seen.pairs / c.pairs, seen.square / c.pairs, grouped=False, firsts=firsts)


def suited_firsts(c: Constants, rate: float) -> float:
    """What first draws may count so that, for a number with the largest deviation, they leave most to the last one."""
    return next((part for part in _SMALLER if _left(c, rate, part) >= _MOST_LEFT), 0.0)


def finest_affordable(c: Constants, rate: float, affordable: Callable[[float], bool], firsts: float = 1.0) -> float:
    """The finest noise, in units of s, for which each row can have room in all answers; 0 if there is none.

    It is what the usual deviation needs, if that is `affordable`, or more, up to that of a plain answer. Where that
    costs too much as well, it is the noise at which a number hardly depends more on a row than a plain answer does.
    """
    usual = fine_usual(c, rate, firsts=firsts)
    if usual < LEAST or not leaves_room(c, rate, firsts):  # first draws would show nothing, or cost too much
        return 0.0
    low, high = 0, math.floor(8 * math.log2(usual / LEAST))
    found = 0.0
    while low <= high:
        middle = (low + high + 1) // 2
        noise = (LEAST * 2 ** (middle / 8)) ** -0.5
        if affordable(noise):
            found, low = noise, middle + 1
        else:
            high = middle - 1
    return found if found <= 1 else LEAST**-0.5


def row_units(numbers: float, firsts: float = 1.0) -> float:
    """The most that a number or a plain answer may depend on one row, in units of 1/(4 n^2 s^2)."""
    return max(FIRSTS * max(firsts, 1.0) + numbers**-2, 1.0)


def row_room(count: int, numbers: float, finest: float = 1.0, firsts: float = 1.0) -> float:
    """q in these units, with room for `count` of them; an answer's own row counts four times."""
    return count * row_units(numbers, firsts) + 3 * min(finest, numbers, 1.0) ** -2


def leaves_room(c: Constants, rate: float, firsts: float = 1.0) -> bool:
    """Whether first draws leave at least a quarter of an answer to the last one, whatever the number is."""
    return _left(c, rate, firsts) >= 0.25


def _left(c: Constants, rate: float, firsts: float) -> float:
    return fine_for(c.step, rate, 1.0, 1.0, grouped=True, firsts=firsts)
