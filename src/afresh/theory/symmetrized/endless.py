"""A budget that never runs out (17.8): answer j has the share K/((j+K)(j+K-1)), which sums to 1 over all j.

Each answer is a comparison of its own, with constants for j answers and its own failure, so later questions do not
affect what was released. The constants are those for `count` = j and beta times the share. Widths that follow the mean
have a curve for each j (17.7), whose bend is a closed form; from 129 on, answers share curves in blocks of about 1%,
using the last answer of the block.

Where numbers follow their deviation (17.10), the failure probability of G is instead divided among all questions for
ever, K/((j+K)(j+K-1)) of it to the events of question j. So the bounds D and D(U) of a question are those of its own
position, whatever comes later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.errors import InvalidArgument
from afresh.theory.numbers import IN_GROUP, SQUARE
from afresh.theory.symmetrized.common import Common, Intervals, farthest, pairs_within, rate_of
from afresh.theory.symmetrized.constants import MOST_ROW, Constants, constants
from afresh.theory.symmetrized.fixed import best_noise, solve_width
from afresh.theory.symmetrized.numbers import (
    EVENTS,
    FIRSTS,
    finest_affordable,
    first_exponent,
    is_worth_it,
    row_room,
    row_units,
    together,
)
from afresh.theory.symmetrized.prices import PRICES

Floats = NDArray[np.float64]

LOWER = 0.01  # the part of an answer's share that the lower tails take
SLANTS = (0.7, 1.0)  # a plan has one of these: the bend that suits 1/2, or somewhat rarer means
_CELLS = 200
_FINE = 7  # binary digits of an answer's number that define its block
_MOST_BEND = 0.98
NUMBER_SHARE = 31 / 32
"""What the draws of a number count as together, as a part of a plain answer: many directions reveal more than one."""
_DIRECTIONS = 4
_SPLIT = (IN_GROUP, IN_GROUP, SQUARE, NUMBER_SHARE - FIRSTS)  # the draws that reveal the most


def open_share(j: int, expected: int) -> float:
    """K/((j+K)(j+K-1)): telescopes to 1; an answer at j = K costs ln 4 more than an equal share of K."""
    if j < 1 or expected < 1:
        raise InvalidArgument(f"answer {j} of about {expected}: both must be >= 1.")
    return expected / ((j + expected) * (j + expected - 1.0))


def open_half_width(n: int, s: float, beta: float, expected: int, j: int) -> float:
    """The half-width of answer j: its truth lies within this of the released value, clipped to [0, 1]."""
    c = constants(n, j, s, beta * open_share(j, expected))
    return min(s * float(solve_width(math.log(c.main), c.reach, c.bulk_before(j), c.swap)) * (1 + 1e-9), 1.0)


def open_half_widths(n: int, s: float, beta: float, expected: int, j: ArrayLike) -> Floats:
    """`open_half_width` of each answer, for example to report how accurate the next hundred will be."""
    return np.array([open_half_width(n, s, beta, expected, int(each)) for each in np.atleast_1d(np.asarray(j))])


def open_noise(n: int, beta: float, expected: int) -> float:
    """The noise with the narrowest answer number `expected`."""
    return best_noise(n, expected, lambda s: open_half_width(n, s, beta, expected, expected))


def block(j: int) -> tuple[int, int]:
    """The answers that share constants with answer j: those after the first number, up to the second."""
    step = 1 << max((j - 1).bit_length() - _FINE, 0)
    before = (j - 1) // step * step
    return before, before + step


def block_share(j: int, expected: int) -> float:
    """The share of each answer in j's block: K/(before+K) - K/(last+K), equally divided, so that all sum to 1."""
    before, last = block(j)
    return expected / ((before + expected) * (last + float(expected)))


def last_answer(n: int, s: float, numbers: float = 0.0) -> int:
    """The number of answers, in whole blocks, after which one row may matter too much for the theorem: q = .9."""
    units = MOST_ROW * (1 - 1e-9) * 4 * n * n * s * s
    most = (units - row_room(0, numbers)) / row_units(numbers) if numbers else units - 3
    most = min(math.floor(most), 2**53)
    return 0 if most < 1 else block(most)[0]


@dataclass(frozen=True)
class EndlessPlan:
    """What fixes the curves of all answers.

    `numbers` is the finest noise of the last draw of a number; 0 if their noise does not follow their deviation.
    `concave` is the sharper kap of new plans.
    """

    n: int
    s: float
    beta: float
    expected: int
    slant: float
    numbers: float = 0.0
    concave: bool = False

    def curve(self, j: int) -> Common:
        """The curve of answer j and its block, with the bend from the closed form of 17.1."""
        return _curve(self, block(j)[1])


@lru_cache(maxsize=4096)
def _curve(plan: EndlessPlan, last: int) -> Common:
    share = block_share(last, plan.expected)
    if plan.numbers:
        return _curve_with_numbers(plan, share, last)
    c = constants(plan.n, last, plan.s, plan.beta * share, alike=False, concave=plan.concave)
    return _bent(c, plan.slant, last)


def _curve_with_numbers(plan: EndlessPlan, share: float, last: int) -> Common:
    n, s = plan.n, plan.s
    c = constants(
        *(n, last, s, plan.beta),
        least=min(plan.numbers, 1.0) * s,
        row=row_room(last, plan.numbers) / (4 * n * n * s * s),
        events=math.ceil(EVENTS / share),
        answers=_DIRECTIONS * last,
        alike=False,
        concave=plan.concave,
    )
    return _bent(replace(c, main=c.main * share), plan.slant, last, numbers=True)


def _bent(c: Constants, slant: float, last: int, *, numbers: bool = False) -> Common:
    theta = math.sqrt(2 * (c.swap + math.log(2 / c.main)) / (1 + 8 * c.step))
    lam, root = slant * 2 * c.reach * theta, math.sqrt(c.bulk_before(last))
    bend = min(lam / (lam + root), _MOST_BEND)
    rate, own = rate_of(bend), c.step / (1 + c.step)
    first = 0.0
    if numbers:
        own, first = max(own, together(c.step, rate, _SPLIT)), first_exponent(c.step, rate)
    each = math.log1p(rate * own) / 2
    height = math.log(c.main) + math.log1p(-LOWER) - (each * (last - 1) + first) * (1 + 1e-12)
    return Common(c, 1, bend, LOWER, height)


@lru_cache(maxsize=4096)
def intervals_of(plan: EndlessPlan, last: int, times: float = 1.0) -> Intervals:
    """The intervals of a block of answers, by its last one; `times` s is their noise."""
    return Intervals(plan.curve(last), plan.s * times, _CELLS)


@lru_cache(maxsize=64)
def endless_plan(n: int, beta: float, expected: int, typical: tuple[float, ...]) -> tuple[float, float, float]:
    """Noise and slant with which answer number `expected` is narrowest, in the geometric mean at the typical means.

    Also returns the finest noise of numbers, 0 if there is no room for them.
    """

    def width(s: float, slant: float) -> float:
        try:
            curve = EndlessPlan(n, s, beta, expected, slant, concave=True).curve(expected)
        except InvalidArgument:  # one row may matter too much
            return 1e6 / s
        points = np.array(typical)

        def away(truth: Floats) -> Floats:
            pairs = pairs_within(curve.constants, truth, truth, iterates=6)
            return s * curve.widths(np.sqrt(curve.constants.scaled(1.0) * pairs))

        high = points
        for _ in range(3):  # the ends are roughly p -+ s h(end)
            high = points + away(np.minimum(high, 0.5))
        low = np.maximum(points - away(points), 0.0)
        return float(np.exp(np.log((high - low) / 2).mean()))

    found = [(best_noise(n, expected, lambda s, own=slant: width(s, own)), slant) for slant in SLANTS]  # type: ignore[misc] # mypy infers no type for a default
    s, slant = min(found, key=lambda pair: width(*pair))
    return s, slant, _noise_of_numbers(n, beta, expected, s, slant)


def _noise_of_numbers(n: int, beta: float, expected: int, s: float, slant: float) -> float:
    """The noise for which rows have room at the lowest price that gains anything."""

    def with_room(numbers: float) -> Common:
        return EndlessPlan(n, s, beta, expected, slant, numbers, concave=True).curve(expected)

    def width(numbers: float) -> float:
        try:
            curve = with_room(numbers)
        except InvalidArgument:  # one row may matter too much
            return math.inf
        return farthest(curve, s, curve.constants.pairs)

    if (plain := width(0.0)) == math.inf:
        return 0.0
    curve = with_room(0.0)
    for price in PRICES:  # by as much as it takes
        found = finest_affordable(
            curve.constants,
            rate_of(curve.bend),
            lambda numbers, most=price * plain: width(numbers) <= most,  # type: ignore[misc] # mypy infers no type for a default
        )
        if found and is_worth_it(with_room(found), found, plain):
            return found
    return 0.0
