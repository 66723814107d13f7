"""One curve for all answers (17.7): intervals that follow the mean and the noise, but not an answer's position.

For 0 < l < 1 and a > 0 let E(rho) = a exp(l rho^2/2). By Lemma M, E_r[1_G E(|m|)] <= a (1 + l/(1-l) t/(1+t))^((j-1)/2)
for answer j, so that all answers together fail with at most

    a sum_j (1 + l/(1-l) t/(1+t))^((j-1)/2) + (number of answers) C <= bm

if every answer's h satisfies, for its own b and for some alpha in [.2, h],

    e^kap G_{b,h}(rho)/alpha <= E(rho) for all rho >= 0,   e^kap sig psi(-(h - alpha)/sig)/alpha <= C.

These conditions do not depend on j. So h is a function of b alone, and one table of it serves all answers of one noise,
whatever was asked before; answers of other noise share the sum. Rows need not be alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from afresh.errors import InvalidArgument
from afresh.theory.search import minimize_between
from afresh.theory.symmetrized.adaptive import TYPICAL, first_argument_upper_each
from afresh.theory.symmetrized.comparisons import public_pairs
from afresh.theory.symmetrized.constants import ALPHA_MIN, Constants, constants, drift, first_argument_upper
from afresh.theory.symmetrized.fixed import best_noise
from afresh.theory.symmetrized.gaussian import inverse_log_excess, inverse_slope, log_excess
from afresh.theory.symmetrized.plain import THETAS, Point

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


_SAFE = 1e-9
_UP = 1 + 1e-12
_CELLS = 640
_ITERATES = 24
_LOWER = (1e-3, 0.01, 0.03, 0.07, 0.15)  # the part of bm that the lower tails may take
_LEAST_BEND, _MOST_BEND = 1e-4, 0.999
# While the noise is chosen:
_USUAL_LOWER, _ROUGH_ITERATES = 0.01, 6
_STEEPEST = 0.8
_USELESS = 1e6


@dataclass(frozen=True)
class Common:
    """The curve of a plan: `bend` is l, `lower` the part of bm that pays for the lower tails, `height` is ln a.

    There are up to `answers` answers, which together count for `constants.count` of noise `constants.s`.
    """

    constants: Constants
    answers: int
    bend: float
    lower: float
    height: float

    @cached_property
    def log_lower(self) -> float:
        """ln C."""
        return math.log(self.constants.main) + math.log(self.lower / self.answers)

    def widths(self, reach: ArrayLike, log_part: float = 0.0) -> Floats:
        """h for each b = reach; `log_part` is the logarithm of the part of one answer's share that it may use."""
        return self.widths_and_alphas(reach, log_part)[0]

    def width(self, reach: float, log_part: float = 0.0) -> float:
        """The same for one b."""
        found = Point(self.constants.swap, reach).least(self.bend, self.height + log_part, self.log_lower + log_part)
        return found * (1 + _SAFE)

    def widths_and_alphas(self, reach: ArrayLike, log_part: float = 0.0) -> tuple[Floats, Floats]:
        """The same with the alphas at which both conditions hold."""
        tangents = Tangents(self.constants.swap, reach, THETAS)
        first = tangents.upper(self.bend, self.height + log_part)
        h = np.maximum(first, tangents.lower(self.log_lower + log_part))
        best = h.argmin(axis=1)
        return h[np.arange(len(h)), best] * (1 + _SAFE), tangents.alpha[best]

    def pairs_within(self, low: ArrayLike, high: ArrayLike) -> Floats:
        """D(P) from above for every truth P in [low, high]."""
        return pairs_within(self.constants, low, high)


class Tangents:
    """What is the same for all curves: tangents of slope lam = 2 b theta, for each b = reach and each theta.

    ln E lies above the line lam rho - lam^2/(2l) + ln a, and ln G, which is concave, below its own tangent of that
    slope, which touches at u with sig theta = Phi(u)/psi(u). alpha = 1/theta is best.
    """

    def __init__(self, swap: float, reach: ArrayLike, slopes: ArrayLike) -> None:
        """Compute the tangents for these b and theta; `swap` is kap."""
        thetas: Floats = np.asarray(slopes, dtype=np.float64)
        self.swap, self.thetas = swap, thetas
        self.reach = np.atleast_1d(np.asarray(reach, dtype=np.float64))[:, None]
        self.sig = np.sqrt(1 + 4 * self.reach * self.reach)
        self.alpha = np.maximum(1 / thetas, ALPHA_MIN)
        u = inverse_slope(thetas * self.sig)
        self._rest = self.alpha + (swap + np.log(self.sig) + log_excess(u) - np.log(self.alpha)) / thetas - self.sig * u

    def upper(self, bend: float, log_scale: float) -> Floats:
        """The h of each tangent for which the first condition holds, at least alpha."""
        below: Floats = np.square(2 * self.reach * self.thetas) / (2 * bend) - log_scale
        return np.maximum(self._rest + below / self.thetas, self.alpha)

    def lower(self, log_lower: float) -> Floats:
        """The h of each alpha for which the second condition holds."""
        level = log_lower - self.swap + np.log(self.alpha) - np.log(self.sig)
        found: Floats = self.alpha - self.sig * inverse_log_excess(level)
        return found


def highest(c: Constants, answers: int, bend: float, lower: float, *, first: bool = False) -> float:
    """The largest ln a: what is left of bm, over the sum of all answers. `first` is for plans of the first sum."""
    share = math.log(c.main) + math.log1p(-lower)
    return share - (_first_log_sum if first else log_sum)(c, bend, answers)


def log_sum(c: Constants, bend: float, answers: int) -> float:
    """ln sum_j E_r[1_G exp(l |m|^2/2)], from above: exp(sum_{i<j} f(t_i)/2), f(t) = ln(1 + l/(1-l) t/(1+t)).

    f is concave, so the sum of f is at most (j-1) f(t), and at most M f(k t/M) for M answers that count as k.
    """
    rate = bend / (1 - bend) * _UP
    each = math.log1p(rate * c.bulk_before(2)) / 2
    return _log_sum(each, answers * math.log1p(rate * c.bulk / answers) / 2, answers)


def _first_log_sum(c: Constants, bend: float, answers: int) -> float:
    """The same with l/(1-l) t/(1+t) in place of its ln(1 + ..): somewhat more. Plans without a height are made so."""
    rate = bend / (2 * (1 - bend)) * _UP
    return _log_sum(rate * c.bulk_before(2), rate * c.bulk, answers)


def _log_sum(each: float, most: float, answers: int) -> float:
    """ln of the sum over so many answers of exp(min((j-1) each, most)), from above."""
    growing = min(answers, math.floor(most / each) + 1)
    # e^(each i) over i < growing: a geometric sum, in logarithms.
    total = each * (growing - 1) + math.log(-math.expm1(-each * growing)) - math.log(-math.expm1(-each))
    if answers > growing:
        more = math.log(answers - growing) + most
        total = max(total, more) + math.log1p(math.exp(-abs(total - more)))
    return total + _SAFE


def pairs_within(c: Constants, low: ArrayLike, high: ArrayLike, *, iterates: int = _ITERATES) -> Floats:
    """D(P) for every truth P in [low, high], of independent rows that need not be alike (17.6).

    v = 2 (1/n) sum p_i (1 - p_i) <= 2 P (1 - P). E[d | S, y] is at most v + drift sqrt(d) + sqrt(v L3/n) + L3/(3n), and
    at most v + sqrt(1 - 2v) (drift + sqrt(L3/(2n))), which has its maximum where 1 - 2v is that bracket squared.
    """
    low, high = np.broadcast_arrays(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
    middle = np.clip(0.5, low, high)
    spread = 2 * middle * (1 - middle) * _UP
    level, away = c.level3 / c.n, drift(c) + math.sqrt(c.level3 / (2 * c.n))
    rest = np.maximum(1 - 2 * spread, 0.0)
    wide = np.where(rest <= away * away, 0.5 + away * away / 2, spread + away * np.sqrt(rest))
    pairs = np.full(low.shape, c.pairs)
    for _ in range(iterates):  # every iterate is valid; a fixed number, so that all processors stop at the same one
        narrow = spread + drift(c) * np.sqrt(pairs) + np.sqrt(spread * level) + level / 3
        mean = np.minimum(np.minimum(narrow, wide) * _UP, 1.0)
        # Means only fall, so the last iterate is above the next; larger than necessary by a sum of roundings.
        pairs = np.minimum(pairs, first_argument_upper_each(mean, c.level1 / c.n, pairs * _UP))
    return pairs


def pairs_of(c: Constants, low: float, high: float, iterates: int) -> float:
    """`pairs_within` of one interval, without the overhead of arrays."""
    middle = min(max(0.5, low), high)
    spread = 2 * middle * (1 - middle) * _UP
    level, away = c.level3 / c.n, drift(c) + math.sqrt(c.level3 / (2 * c.n))
    rest = max(1 - 2 * spread, 0.0)
    wide = 0.5 + away * away / 2 if rest <= away * away else spread + away * math.sqrt(rest)
    pairs, moved, most = c.pairs, drift(c), c.level1 / c.n
    for _ in range(iterates):
        narrow = spread + moved * math.sqrt(pairs) + math.sqrt(spread * level) + level / 3
        before, pairs = pairs, min(pairs, first_argument_upper(min(min(narrow, wide) * _UP, 1.0), most))
        if pairs == before:  # and so are all further ones
            break
    return pairs


def edge_of(cell: int, cells: int) -> float:
    """Where one of so many cells of [0, 1] begins; they are finer towards the ends."""
    return math.sin(math.pi / 2 * cell / cells) ** 2 if cell < cells else 1.0


def cell_of(truth: float, cells: int) -> int:
    """The last cell that begins at a truth or before it."""
    cell = math.floor(math.asin(math.sqrt(min(max(truth, 0.0), 1.0))) * 2 / math.pi * cells)
    while cell < cells - 1 and edge_of(cell + 1, cells) <= truth:
        cell += 1
    while cell > 0 and edge_of(min(cell, cells - 1), cells) > truth:
        cell -= 1
    return min(cell, cells - 1)


@lru_cache(maxsize=8192)
def cell_pairs(c: Constants, cell: int, cells: int) -> float:
    """D(P) from above for all truths of a cell; D(P) = D(1 - P)."""
    cell = min(cell, cells - 1 - cell)
    return pairs_of(c, edge_of(cell, cells), edge_of(cell + 1, cells), _ITERATES)


@dataclass(frozen=True)
class Intervals:
    """The intervals of all answers of noise s, by a table: how far a truth in each cell may be from its answer."""

    common: Common
    s: float
    cells: int = _CELLS
    log_part: float = 0.0
    """The logarithm of the part of one answer's share that it may use."""
    events: Constants | None = None
    """The constants that bound D(P), if not the plan's (section 18)."""

    @cached_property
    def _known(self) -> dict[int, float]:
        return {}

    def _away(self, cell: int) -> float:
        """How far a truth in this cell may be from its answer; it grows towards one half, as D(P) and h do."""
        cell = min(cell, self.cells - 1 - cell)
        if cell not in self._known:
            c = self.common.constants
            pairs = cell_pairs(self.events or c, cell, self.cells)
            width = self.common.width(math.sqrt(c.scaled(1.0, self.s) * pairs), self.log_part)
            self._known[cell] = self.s * width * (1 + _SAFE)
        return self._known[cell]

    def ends(self, value: float, half_step: float, most: float = math.inf) -> tuple[float, float]:
        """The hull of {P: |clip(y) - P| <= s h(P) + half a step}, cell by cell; outward. s h is at most `most`."""
        centre = min(max(value, 0.0), 1.0)
        high = self._top(centre, half_step, most)
        low = 1 - self._top(1 - centre, half_step, most)
        return min(max(low - 1e-15, 0.0), centre), max(high, centre)

    def _top(self, centre: float, half_step: float, most: float) -> float:
        """The largest P that an answer `centre` admits: in the last cell whose lower edge is near enough.

        No truth below one half is further from it than the cell of one half says, so none is beyond that reach; nor
        beyond the reach of the cell where that one ends, and so on. Above one half cells reach less and less far.
        """
        cells, middle = self.cells, self.cells // 2

        def reach(cell: int) -> float:
            return centre + min(self._away(cell), most) + half_step * (1 + _SAFE)

        def admitted(cell: int) -> bool:  # edges are good to 1e-16 and mirrored ones differ by as much
            return edge_of(cell, cells) <= reach(cell) + 1e-15

        if admitted(middle):
            cell, beyond = middle, min(cell_of(reach(middle), cells) + 1, cells)
            while beyond - cell > 1:
                between = (cell + beyond) // 2
                cell, beyond = (between, beyond) if admitted(between) else (cell, between)
        else:
            cell = middle - 1
            while not admitted(cell):
                cell = min(cell_of(reach(cell), cells), cell - 1)
        return min(min(edge_of(cell + 1, cells), reach(cell)) + 1e-15, 1.0)


@lru_cache(maxsize=512)
def of_noise(common: Common, s: float, cells: int = _CELLS) -> Intervals:
    """The intervals of answers with this noise, whose table is made once."""
    return Intervals(common, s, cells)


@lru_cache(maxsize=4096)  # reading and charging ask for the same
def farthest(common: Common, s: float, pairs: float) -> float:
    """How far a truth may be from an answer of noise s with d at most `pairs`."""
    return s * common.width(math.sqrt(common.constants.scaled(pairs, s))) * (1 + _SAFE)


def rate_of(bend: float) -> float:
    """R = l/(1-l), from above."""
    return bend / (1 - bend) * _UP


@lru_cache(maxsize=64)
def common_plan(
    n: int,
    count: int,
    beta: float,
    *,
    answers: int | None = None,
    typical: tuple[float, ...] = TYPICAL,
    s: float | None = None,
    disagreement: float | None = None,
    concave: bool = False,
) -> tuple[Common, float]:
    """The plan that is narrowest in the geometric mean over the typical means, or that of noise `s`.

    Also returns the finest noise, in units of s, that an answer may have. It is 1 unless models with public features
    will be compared that differ on a share `disagreement` of rows (17.9): then the noise of a comparison follows the
    disagreement down to a quarter of it, and rows have room for `count` comparisons that all differ on the same rows.
    `concave` is the sharper kap of new plans.
    """
    most = count if answers is None else answers
    usual: dict[str, Any] = {"events": most, "answers": most, "alike": False, "concave": concave}

    def world(s: float) -> tuple[Constants, float]:
        if disagreement is None:
            return constants(n, count, s, beta, **usual), 1.0
        following, finest = math.sqrt(disagreement), math.sqrt(disagreement / 4)  # D >= 1/2 and D(rbar) >= rbar/2
        for _ in range(4):  # noise, caps and D(rbar) depend on one another; any caps are valid
            unit = 1 / (4 * n * n * s * s)
            cap = unit * (1.01 * count / following**2 + 3 / finest**2)
            c = constants(n, count, s, beta, least=finest * s, row=cap, **usual)
            following, finest = (
                min(math.sqrt(public_pairs(c, r) / c.pairs), 1.0) for r in (disagreement, disagreement / 4)
            )
        return constants(n, count, s, beta, least=c.s * finest, row=cap, **usual), finest

    def trial(s: float) -> float:
        try:
            return math.exp(_with_bend(world(s)[0], most, typical)[0])
        except InvalidArgument:  # one row may matter too much
            return _USELESS / s

    noise = best_noise(n, count, trial) if s is None else s
    c, finest = world(noise)
    return _with_bend(c, most, typical, final=True)[1], finest


def best_curve(c: Constants, answers: int, typical: tuple[float, ...], *, final: bool = True) -> Common:
    """The curve that is narrowest for these constants at the typical means."""
    return _with_bend(c, answers, typical, final)[1]


def _with_bend(c: Constants, answers: int, typical: tuple[float, ...], final: bool = False) -> tuple[float, Common]:
    """The best curve for these constants, with the mean of the logarithms of their rough half-widths."""
    around = [_Around(c, mean, _ITERATES if final else _ROUGH_ITERATES) for mean in typical]

    def best(lower: float) -> tuple[float, Common]:
        def of(x: float) -> Common:
            bend = 1 / (1 + math.exp(-x))
            return Common(c, answers, bend, lower, highest(c, answers, bend, lower))

        def rough(common: Common) -> float:
            return math.fsum(math.log(each.half_width(common)) for each in around) / len(around)

        low, high = (math.log(bend / (1 - bend)) for bend in (_LEAST_BEND, _MOST_BEND))
        found = of(minimize_between(lambda x: rough(of(x)), low, high, tolerance=0.03))
        return rough(found), found

    return min(map(best, _LOWER if final else (_USUAL_LOWER,)), key=lambda pair: pair[0])


def typical_width(common: Common, typical: tuple[float, ...]) -> float:
    """The geometric mean of rough half-widths at these means."""
    around = (_Around(common.constants, mean, _ROUGH_ITERATES) for mean in typical)
    return math.exp(math.fsum(math.log(each.half_width(common)) for each in around) / len(typical))


class _Around:
    """Rough half-widths of answers that read `mean`: neither outward nor cut to 1, so that useless plans differ."""

    def __init__(self, c: Constants, mean: float, iterates: int) -> None:
        """Take three truths: roughly where the interval begins, where it ends, and the mean."""
        self._s, self._mean = c.s, min(mean, 1 - mean)

        def at(truth: float) -> Point:
            folded = min(truth, max(1 - truth, 0.0))
            return Point(c.swap, math.sqrt(c.scaled(pairs_of(c, folded, folded, iterates))))

        self._centre = at(self._mean)
        about = c.s * (2 * self._centre.reach * math.sqrt(c.bulk) + 4)
        self._up, self._down = min(about, 1 - self._mean), min(about, self._mean)
        self._above = at(self._mean + self._up)
        self._below = self._above if self._mean == 0.5 else at(self._mean - self._down)  # D(P) = D(1 - P)

    def half_width(self, common: Common) -> float:
        """The ends are p -+ s h(end), and s h is about straight between the three."""
        curve = common.bend, common.height, common.log_lower
        middle, above, below = (self._s * each.least(*curve) for each in (self._centre, self._above, self._below))
        up = middle / (1 - min((above - middle) / self._up, _STEEPEST))
        down = middle / (1 + (middle - below) / self._down) if self._down > 0 else 0.0
        return (up + min(down, self._mean)) / 2
