"""Half-widths that follow the mean, the noise and the past of each answer (17.7): a curve fixed in advance.

The slope of 17.5 may not depend on what was seen (17.7). So each answer j has a curve that is fixed before
any data is seen,

    Q_j(rho) = ln sum_m w_m exp(l_m rho^2/2 - l_m tau_j/(2 (1 - l_m))),   0 < l_m < 1, sum w_m = 1,

for which E_r[1_G exp(Q_j(|m|))] <= 1 whatever tau_j turns out to be (Lemma M before its last line). Any h with

    e^kap G_{b,h}(rho)/alpha <= beta'_j exp(Q_j(rho)) for all rho >= 0,   e^kap sig psi(-(h - alpha)/sig)/alpha <= C_j

is valid for an answer with beta_j = beta'_j + C_j, even if b and alpha follow the truth, the noise and the past. ln G
is concave and Q_j convex, so the tangent of Q_j at any rho0 decides the first condition, in closed form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from afresh.theory.bernoulli import kl_each
from afresh.theory.symmetrized.constants import ALPHA_MIN, Constants, constants, drift
from afresh.theory.symmetrized.fixed import Plan, best_noise, best_slope, plan, solve_width, width_of
from afresh.theory.symmetrized.gaussian import inverse_log_excess, inverse_slope, log_excess

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


TYPICAL = (0.5, 0.1, 0.01)
_SAFE = 1e-9
_TANGENTS = 72
_LOWER_SHARES = (0.004, 0.01, 0.03, 0.1, 0.25, 0.5)  # the part of beta_j that C_j may take
_RARE_SLOPE = 0.8  # the second curve lies somewhat beyond the best one at the rarest mean
_CELLS, _SPLIT = 96, 12


@dataclass(frozen=True)
class Curve:
    """Q_j of one answer, and how its share is divided: fixed in advance."""

    bends: tuple[float, ...]
    weights: tuple[float, ...]
    lower_share: float

    def at(self, rho: Floats, bulk: float) -> tuple[Floats, Floats]:
        """Q_j(rho) and its derivative."""
        bends = np.array(self.bends)
        each = np.log(self.weights) + bends * np.square(rho)[..., None] / 2 - bends * bulk / (2 * (1 - bends))
        value = np.logaddexp.reduce(each, axis=-1)
        return value, (np.exp(each - value[..., None]) @ bends) * rho


def widths(curve: Curve, reach: ArrayLike, bulk: float, swap: float, log_share: float) -> Floats:
    """h for each b = reach: the smallest found over tangents of Q_j, each valid on its own."""
    return widths_and_alphas(curve, reach, bulk, swap, log_share)[0]


def widths_and_alphas(
    curve: Curve, reach: ArrayLike, bulk: float, swap: float, log_share: float
) -> tuple[Floats, Floats]:
    """The same with the alphas at which both conditions hold."""
    b = np.atleast_1d(np.asarray(reach, dtype=np.float64))[:, None]
    rho = np.linspace(0.0, 1.0, _TANGENTS + 1)[1:] ** 1.5 * (math.sqrt(bulk) + 8.0)
    value, lam = curve.at(rho, bulk)
    legendre = lam * rho - value  # sup over rho of lam rho - Q(rho)
    sig = np.sqrt(1 + 4 * b * b)
    theta = lam / (2 * b)
    alpha = np.maximum(1 / theta, ALPHA_MIN)
    u = inverse_slope(theta * sig)
    upper = log_share + math.log1p(-curve.lower_share)
    first = alpha + (swap + np.log(sig) + log_excess(u) + legendre - np.log(alpha) - upper) / theta - sig * u
    best = np.where(alpha <= first, first, np.inf).argmin(axis=1)
    chosen, alpha, sig = first[np.arange(len(b)), best], alpha[np.arange(len(b)), best], sig[:, 0]
    lower = log_share + math.log(curve.lower_share)
    second = alpha - sig * inverse_log_excess(lower - swap + np.log(alpha) - np.log(sig))
    # If no tangent gives alpha <= h, this h does: it only grows.
    h: Floats = np.maximum.reduce([chosen, second, alpha]) * (1 + _SAFE)
    return h, alpha


def pairs_between(c: Constants, low: ArrayLike, high: ArrayLike) -> Floats:
    """D(P) from above for every truth P in [low, high] (17.6): the fixpoint of d -> up(max S + P - 2 S P, L1/n)."""
    low, high = np.broadcast_arrays(np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64))
    least = 1 - first_argument_upper_each(1 - low, c.level3 / c.n)
    most = first_argument_upper_each(high, c.level3 / c.n)
    pairs = np.full(low.shape, c.pairs)
    for _ in range(12):  # every iterate is valid
        away = drift(c) * np.sqrt(pairs)
        bottom, top = np.maximum(least - away, 0.0), np.minimum(most + away, 1.0)
        corners = [s + p - 2 * s * p for s in (bottom, top) for p in (low, high)]
        mean = np.minimum(np.maximum.reduce(corners) * (1 + 1e-14), 1.0)
        before, pairs = pairs, np.minimum(pairs, first_argument_upper_each(mean, c.level1 / c.n))
        if np.all(pairs > 0.999 * before):
            break
    return pairs


def first_argument_upper_each(e: ArrayLike, bound: float, above: ArrayLike = 1.0) -> Floats:
    """up(e, c) of each: the largest d >= e with kl(d || e) <= c, never below; Newton's steps descend to it.

    They start at `above`, which is known not to be below it, where that is nearer.
    """
    e = np.clip(np.asarray(e, dtype=np.float64), 0.0, 1.0)
    inner = np.maximum(e, 1e-307)
    full = -np.log(inner) <= bound * (1 + 1e-9) + 1e-14  # kl(1 || e) is within the bound
    inner = np.where(full, 0.5, inner)
    start = np.minimum(inner + math.sqrt(bound / 2), inner + bound + np.sqrt(bound * bound + 2 * inner * bound))
    d = np.maximum(np.minimum(np.minimum(start, above), 1 - 1e-15), inner)
    for _ in range(40):
        value = kl_each(d, inner) - bound
        step = np.maximum(value / (np.log(d / inner) - np.log1p(-d) + np.log1p(-inner)), 0.0)
        d = np.maximum(d - step, inner)
        if np.all(step <= 1e-14 * d):
            break
    # Where kl is too small, the start was left of the root, which is then beyond 1 - 1e-15.
    d = np.where(full | (kl_each(d, inner) < bound * (1 - 1e-9)), 1.0, np.minimum(d * (1 + 1e-12), 1.0))
    return np.where(e <= 0, 0.0, d)


@dataclass(frozen=True)
class AdaptivePlan:
    """Intervals that follow the mean; the shares of the answers are those of the constant-width plan `base`."""

    base: Plan
    typical: tuple[float, ...]

    @property
    def constants(self) -> Constants:
        """What all answers share."""
        return self.base.constants

    @cached_property
    def _cells(self) -> tuple[Floats, Floats]:
        """Cells of [0, 1] and D(P) on each."""
        edges = np.sin(np.linspace(0, math.pi / 2, _CELLS + 1)) ** 2
        edges[-1] = 1.0
        return edges, pairs_between(self.constants, edges[:-1], edges[1:])

    def curve(self, j: int) -> Curve:
        """The curve of answer j: the bends that suit the largest and the smallest typical variance."""
        return _curve(self, j)

    def widths_at(self, pairs: Floats, j: int, s: float | None = None, bulk: float | None = None) -> Floats:
        """h_j of answers with the bounds d_j <= pairs, noise s and tau_j = bulk (those of the plan unless given)."""
        c = self.constants
        reach = np.sqrt(c.scaled(1.0, s) * pairs)
        bulk = c.bulk_before(j) if bulk is None else bulk
        return widths(self.curve(j), reach, bulk, c.swap, float(self.base.log_share(j)))

    def width(self, truth: ArrayLike, j: int) -> Floats:
        """h_j(P)."""
        point = np.atleast_1d(np.asarray(truth, dtype=np.float64))
        return self.widths_at(pairs_between(self.constants, point, point), j)

    def interval(
        self, value: float, j: int, half_step: float = 0.0, *, s: float | None = None, bulk: float | None = None
    ) -> tuple[float, float]:
        """The hull of {P: |clip(y) - P| <= s h_j(P) + half a step}: the outermost cell that holds such a P."""
        centre = min(max(value, 0.0), 1.0)
        high = self._end(centre, j, half_step, s, bulk)
        low = 1 - self._end(1 - centre, j, half_step, s, bulk)  # D(P) = D(1 - P), and so for h
        return min(max(low - 1e-15, 0.0), centre), max(high, centre)

    def half_width(self, truth: float, j: int | None = None) -> float:
        """Half the length of the interval if the answer's noise is zero; for the last answer unless said otherwise."""
        low, high = self.interval(truth, self.constants.count if j is None else j)
        return (high - low) / 2

    def rough_half_widths(self) -> Floats:
        """Roughly half_width of the last answer at the typical means, for choosing the noise: not outward."""
        nodes = np.sin(np.linspace(0, math.pi / 2, 33)) ** 2
        away = self.constants.s * self.width(nodes, self.constants.count)
        points = np.array(self.typical)
        high = np.array([nodes[np.flatnonzero(nodes - away <= p)[-1]] for p in points])
        for _ in range(3):  # the end is p + s h(end)
            high = np.minimum(points + np.interp(high, nodes, away), 1.0)
        low = np.maximum(points - np.interp(points, nodes, away), 0.0)
        half: Floats = (high - low) / 2
        return half

    def _end(self, centre: float, j: int, half_step: float, s: float | None, bulk: float | None) -> float:
        """The largest P that an answer `centre` admits."""
        noise = self.constants.s if s is None else s

        def ends(edges: Floats, pairs: Floats) -> tuple[NDArray[np.bool_], Floats]:
            away = (noise * self.widths_at(pairs, j, s, bulk) + half_step) * (1 + _SAFE)
            return edges[:-1] <= centre + away, np.minimum(edges[1:], centre + away)

        edges, pairs = self._cells
        first = int(np.searchsorted(edges, centre, side="right")) - 1
        edges, pairs = edges[first:], pairs[first:]
        if len(pairs) == 0:
            return 1.0
        admitted, end = ends(edges, pairs)
        for i in np.flatnonzero(admitted)[::-1]:
            inner = np.linspace(edges[i], edges[i + 1], _SPLIT + 1)
            within, tops = ends(inner, pairs_between(self.constants, inner[:-1], inner[1:]))
            if within.any():
                return float(min(np.max(tops[within]), end[i]))
        return 1.0  # pragma: no cover - the cell of the value itself is always admitted


@lru_cache(maxsize=4096)
def _curve(plan: AdaptivePlan, j: int) -> Curve:
    c = plan.constants
    bulk, share = c.bulk_before(j), float(plan.base.log_share(j))
    points = np.array(plan.typical)
    reaches = np.sqrt(c.scaled(1.0) * pairs_between(c, points, points))
    slopes = [best_slope(float(solve_width(share, b, bulk, c.swap)), b, bulk) for b in reaches]
    root = math.sqrt(bulk)
    # Where nothing was revealed rho is 0, and any bend will do.
    bends = tuple(min(float(lam / (lam + root)), 0.98) for lam in (max(slopes), _RARE_SLOPE * min(slopes)))
    candidates = [Curve(bends, (0.5, 0.5), lower) for lower in _LOWER_SHARES]
    return min(candidates, key=lambda curve: float(np.log(widths(curve, reaches, bulk, c.swap, share)).sum()))


@lru_cache(maxsize=64)
def adaptive_plan(
    n: int, count: int, beta: float, *, typical: tuple[float, ...] = TYPICAL, s: float | None = None
) -> AdaptivePlan:
    """The plan whose last answer is narrowest in the geometric mean over the typical means, or that of noise `s`."""

    def trial(s: float) -> float:
        c = constants(n, count, s, beta)
        rough = AdaptivePlan(Plan(c, "constant width", width_of(c, "constant width", rough=True)), typical)
        return float(np.log(rough.rough_half_widths()).mean())

    noise = best_noise(n, count, lambda s: math.exp(trial(s))) if s is None else s
    return AdaptivePlan(plan(n, count, beta, s=noise), typical)
