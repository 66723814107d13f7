"""Half-widths that are the same for every mean (Theorem S with constants fixed in advance), and their plans.

F_j(h) bounds what answer j adds to the failure if its half-width is s h (17.4, 17.5). With R = Phi/psi = (ln psi)',
sig^2 = 1 + 4 b^2 and c = 2 b/sig, every alpha in [.2, h] and every real u give a valid bound: ln psi's tangent at u.

    F_j(h) <= e^kap (sig/alpha) (exp(f) + psi(-(h - alpha)/sig))
    f = ln psi(u) - R(u) (u + (h - alpha)/sig - c sqrt(tau_j)) + c^2 R(u)^2/2

It is least near alpha = sig/R(u), phi(u)/Phi(u) + c^2 R(u) = (h - 2 b sqrt(tau_j))/sig.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from afresh.errors import InvalidArgument
from afresh.theory.search import minimize_between
from afresh.theory.special import distinct, log_sum_exp
from afresh.theory.symmetrized.constants import ALPHA_MIN, MOST_ROW, Constants, constants
from afresh.theory.symmetrized.gaussian import log_excess, slope, slope_and_hazard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


Shares = Literal["constant width", "equal"]

_SAFE = 1e-9  # added to every ln F; its rounding is below 1e-11
_BLOCKS = 4096  # up to this many answers F_j is summed one by one, beyond in blocks by their last answer
_ROUGH_BLOCKS = 64  # while the noise is chosen
_LEAST_H = 1.0  # an h below 1 would be less than one standard deviation of the noise: never useful


def log_failure(h: ArrayLike, reach: float, bulk: ArrayLike, swap: float) -> Floats:
    """ln F_j(h; b) for h >= 1, never below the exact value: reach is b, bulk tau_j, swap kap."""
    return _log_failure_and_slope(np.asarray(h, dtype=np.float64), reach, np.asarray(bulk, dtype=np.float64), swap)[0]


def _log_failure_and_slope(h: Floats, reach: float, bulk: Floats, swap: float) -> tuple[Floats, Floats]:
    """ln F_j(h) and its derivative in h."""
    sig = math.sqrt(1 + 4 * reach * reach)
    c = 2 * reach / sig
    pulled = c * np.sqrt(bulk)
    best = sig / slope(_tangent(h / sig - pulled, c))
    alpha = np.clip(best, ALPHA_MIN, np.maximum(h, ALPHA_MIN))
    away = (h - alpha) / sig
    u = _touching(pulled - away, c)
    r = slope(u)
    above = log_excess(u) - r * (u + away - pulled) + c * c * r * r / 2
    below = log_excess(-away)
    total = np.logaddexp(above, below)
    steepness = -(r * np.exp(above - total) + slope(-away) * np.exp(below - total)) / sig
    bound: Floats = swap + math.log(sig) - np.log(alpha) + total + _SAFE
    return bound, steepness


def _tangent(v: Floats, c: float) -> Floats:
    """The u with phi/Phi + c^2 Phi/psi = v > 0; both decrease. Any u is valid, so this may be rough."""
    v = np.maximum(v, 1e-3)
    low, high = -v - 1.0, (1 + c * c) / v + 2.0
    u = np.clip(-v / (1 + c * c) + 0.7 / np.maximum(v, 0.5), low, high)
    for _ in range(5):
        r, a = slope_and_hazard(u)
        u = np.clip(u + (a + c * c * r - v) / (a * (u + a) + c * c * r * (r - a)), low, high)
    return u


def _touching(w: Floats, c: float) -> Floats:
    """The u with u - c^2 R(u) = w, where rho - sqrt(tau) = c R(u) is the best tangent; any u is valid."""
    u = w + c * c * slope(w + c * c * np.maximum(-w, 0.5))
    for _ in range(4):
        r, a = slope_and_hazard(u)
        u = u - (u - c * c * r - w) / (1 + c * c * r * (r - a))
    return u


def best_slope(h: float, reach: float, bulk: float) -> float:
    """lam, the slope of the tangent with which F_j(h) would be least if alpha were not confined to [.2, h]."""
    sig = math.sqrt(1 + 4 * reach * reach)
    c = 2 * reach / sig
    return c * float(slope(_tangent(np.array(h / sig - c * math.sqrt(bulk)), c)))


def simple_width(c: Constants, j: float, failure: float) -> float:
    """The closed form: h_j = 2 b sqrt(tau_j) + sqrt(2 (1 + 8 b^2)(kap + ln(2/beta_j))), while theta <= 5."""
    spread = 1 + 8 * c.step
    away = math.sqrt(2 * spread * (c.swap + math.log(2 / failure)))
    if away / spread > 1 / ALPHA_MIN:
        raise InvalidArgument(f"failure == {failure} is too small for the closed form at this noise.")
    return (2 * c.reach * math.sqrt(c.bulk_before(j)) + away) * (1 + _SAFE)


def solve_width(log_share: ArrayLike, reach: float, bulk: ArrayLike, swap: float) -> Floats:
    """The smallest h >= 1 with F_j(h) <= beta_j, from above: each answer has its own share."""
    target, bulk = np.broadcast_arrays(np.asarray(log_share, dtype=np.float64), np.asarray(bulk, dtype=np.float64))

    def excess(h: Floats) -> tuple[Floats, Floats]:
        value, steepness = _log_failure_and_slope(h, reach, bulk, swap)
        return value - target, steepness

    spread = 1 + 8 * reach * reach
    start = 2 * reach * np.sqrt(bulk) + np.sqrt(2 * spread * np.maximum(swap + math.log(2) - target, 0.5))
    return _solve(excess, start)


def _solve(excess: Callable[[Floats], tuple[Floats, Floats]], start: Floats) -> Floats:
    """The root of a decreasing function, by Newton's steps, from the right: the value there is at most 0.

    ln F is a minimum of nearly affine functions of h, hence nearly concave, and a tangent's root lies right of its own.
    """
    h = np.maximum(start, _LEAST_H)
    for _ in range(30):
        value, steepness = excess(h)
        step = np.maximum(value / steepness, -0.5 * h)
        h = np.maximum(h - step, _LEAST_H)
        if np.all((np.abs(step) < 1e-10 * h) | (h == _LEAST_H)):
            break
    for push in 10.0 ** np.arange(-10, 3):
        short = excess(h)[0] > 0
        if not short.any():
            return h
        h = np.where(short, h * (1 + push), h)
    raise ArithmeticError("no half-width was found")  # pragma: no cover - F falls like exp(-h^2/2)


@dataclass(frozen=True)
class Plan:
    """Noise and half-widths of up to `constants.count` answers, fixed before any data is seen.

    `width` is h of the widest answer: the truth of each answer lies within s h of the released value, cut to [0, 1].
    """

    constants: Constants
    shares: Shares
    width: float

    @property
    def half_width(self) -> float:
        """The half-width guaranteed for every answer and every mean; at most 1."""
        return min(self.constants.s * self.width * (1 + _SAFE), 1.0)

    def log_share(self, j: ArrayLike) -> Floats:
        """ln beta_j, the part of the failure that answer j = 1, 2, .. may use."""
        order = _orders(j, self.constants.count)
        if self.shares == "equal":
            return np.full(order.shape, math.log(self.constants.main / self.constants.count))
        return log_failure(self.width, self.constants.reach, _bulk(self.constants, order), self.constants.swap)

    def widths(self, j: ArrayLike) -> Floats:
        """h_j of answers j = 1, 2, ..: constant, or growing with what was asked before."""
        order = _orders(j, self.constants.count)
        if self.shares == "constant width":
            return np.full(order.shape, self.width)
        c = self.constants
        return solve_width(self.log_share(order), c.reach, _bulk(c, order), c.swap)

    def interval(self, value: float, j: int, half_step: float = 0.0) -> tuple[float, float]:
        """The interval of answer j, given the released value (rounded to a grid of step 2 half_step)."""
        return constant_interval(value, self.constants.s * float(self.widths(j)), half_step)


def constant_interval(value: float, half_width: float, half_step: float = 0.0) -> tuple[float, float]:
    """clip(y) -+ (s h + half a step), cut to [0, 1]; outward by some units in the last place."""
    centre = min(max(value, 0.0), 1.0)
    reach = (half_width + half_step) * (1 + _SAFE)
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


@lru_cache(maxsize=256)
def plan(n: int, count: int, beta: float, *, shares: Shares = "constant width", s: float | None = None) -> Plan:
    """The plan with the narrowest last answer, or that of noise `s`."""
    if s is None:
        s = best_noise(n, count, lambda s: s * width_of(constants(n, count, s, beta), shares, rough=True))
    c = constants(n, count, s, beta)
    return Plan(constants=c, shares=shares, width=width_of(c, shares))


def best_noise(n: int, count: int, half_width: Callable[[float], float]) -> float:
    """The noise with the smallest half-width; any noise is valid, so the search may stop early.

    Half-widths are about 2 b sqrt(tau) s + z s: a part that falls like 1/s and one that grows like s.
    """
    least = math.sqrt((count + 3) / (4 * n * n * MOST_ROW)) * (1 + 1e-6)
    if not least <= 1 / ALPHA_MIN:
        raise InvalidArgument(f"count == {count} is too many answers for n == {n} rows: no noise suffices.")
    guess = (count / 50) ** 0.25 / math.sqrt(2.5 * n)
    low = max(least, guess / 6 * min(1.0, count / 20))  # few answers need little noise
    high = min(max(6 * guess, 2 * least), 1 / ALPHA_MIN)
    best = minimize_between(lambda x: half_width(math.exp(x)), math.log(low), math.log(high), tolerance=3e-3)
    return round_noise(min(max(math.exp(best), low), high))


def round_noise(s: float) -> float:
    """Round up to four digits: a number people can read back."""
    unit = 10.0 ** (math.floor(math.log10(s)) - 3)
    return float(f"{math.ceil(s / unit) * unit:.4g}")


def width_of(c: Constants, shares: Shares, *, rough: bool = False) -> float:
    """h of the last answer: from its own share, or the h at which all F_j together use up what there is."""
    blocks = _ROUGH_BLOCKS if rough else _BLOCKS
    if shares == "equal":
        return float(solve_width(math.log(c.main / c.count), c.reach, c.bulk_before(c.count), c.swap))
    if shares != "constant width":
        raise InvalidArgument(f"shares == {shares!r}, must be 'constant width' or 'equal'.")
    ends = distinct(np.ceil(np.linspace(0, c.count, min(blocks, c.count) + 1)))
    sizes, bulk = np.diff(ends), _bulk(c, ends[1:])
    target = math.log(c.main)

    def excess(h: Floats) -> tuple[Floats, Floats]:
        value, steepness = _log_failure_and_slope(np.full(bulk.shape, float(h[0])), c.reach, bulk, c.swap)
        total = log_sum_exp(value, sizes)  # F_j grows with tau_j, so a block is at most its last answer's
        weight = np.exp(value - total) * sizes
        return np.array([total + _SAFE - target]), np.array([float(weight @ steepness)])

    start = 2 * c.reach * math.sqrt(c.bulk) + math.sqrt(2 * (1 + 8 * c.step) * max(c.swap - target + 3, 0.5))
    return float(_solve(excess, np.array([start]))[0])


def _bulk(c: Constants, order: Floats) -> Floats:
    return np.maximum(order - 1, 0.0) * c.bulk_before(2)


def _orders(j: ArrayLike, count: int) -> Floats:
    order = np.asarray(j, dtype=np.float64)
    if np.any((order < 1) | (order > count) | (order != np.floor(order))):
        raise InvalidArgument(f"answer {j!r} is not one of the {count} of the plan.")
    return order
