"""The half-widths of 17.7 on plain floats: what a plan and a few intervals need, without the overhead of arrays.

`common.Tangents` does the same for many at once, and gives the reasons. Accurate to about 1e-12; callers allow 1e-9.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

from afresh.theory.special import erfcx
from afresh.theory.symmetrized.constants import ALPHA_MIN

_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)
_ROOT_HALF_PI, _ROOT_HALF = math.sqrt(math.pi / 2), math.sqrt(0.5)
_FAR, _NEAR = -30.0, 5.0
# Slopes of tangents, each valid on its own; the best is about 3.
THETAS: tuple[float, ...] = tuple(0.2 * 60 ** (i / 109) for i in range(110))
_USUAL = 72  # where a search begins


def excess(u: float) -> tuple[float, float, float]:
    """ln psi(u) with psi(u) = E(Z + u)_+, its derivative Phi/psi, and phi/Phi."""
    if u > 0:
        mass, bell = 0.5 * math.erfc(-u * _ROOT_HALF), math.exp(-u * u / 2 - _LOG_ROOT_TWO_PI)
        total = bell + u * mass
        return math.log(total), mass / total, bell / mass
    x = -u * _ROOT_HALF
    # Phi/phi; an exponential of at most 25 loses nothing that matters.
    mills = _ROOT_HALF_PI * (math.exp(x * x) * math.erfc(x) if x < _NEAR else erfcx(x))
    if u >= _FAR:
        rest = 1 + u * mills
    else:
        z = 1 / (u * u)
        rest = z * (1 - z * (3 - z * (15 - z * (105 - z * (945 - z * (10395 - 135135 * z))))))
    return math.log(rest) - u * u / 2 - _LOG_ROOT_TWO_PI, mills / rest, 1 / mills


def inverse_slope(value: float) -> float:
    """The u with Phi/psi = value > 0: Newton's steps in logarithms, in which it is nearly straight."""
    u = 1 / value - 0.45 if value < 1 else 2 / value - value if value > 2 else 1.1 - 0.95 * value
    for _ in range(40):
        _, slope, hazard = excess(u)
        step = math.log(slope / value) / (hazard - slope)
        u -= step
        if abs(step) <= 1e-7 * (1 + abs(u)):  # the next is its square, and any tangent is valid
            break
    return u


def inverse_log_excess(value: float) -> float:
    """The u with ln psi(u) = value, never below it by more than rounding: psi is increasing, ln psi concave."""
    u = math.exp(min(value, 700.0)) - 1 if value > -1 else -math.sqrt(-2 * value) + 0.5 * math.log(-value + 1)
    for _ in range(60):
        known, slope, _ = excess(u)
        step = (value - known) / slope
        u += step
        if abs(step) <= 1e-13 * (1 + abs(u)):
            break
    return u


class Point:
    """One b = `reach`, with those of its tangents that were looked at."""

    def __init__(self, swap: float, reach: float) -> None:
        """Start with no tangent; `swap` is kap."""
        self.swap, self.reach, self.sig = swap, reach, math.sqrt(1 + 4 * reach * reach)
        self._log_sig = math.log(self.sig)
        self._rests: dict[int, tuple[float, float, float]] = {}
        self._lowers: dict[tuple[int, float], float] = {}
        self._best = _USUAL

    def width(self, place: int, bend: float, height: float, log_lower: float, best: float) -> float:
        """The h of one tangent for which both conditions hold, if it is below the best so far."""
        theta = THETAS[place]
        known = self._rests.get(place)
        if known is None:
            alpha, u = max(1 / theta, ALPHA_MIN), inverse_slope(theta * self.sig)
            rest = alpha + (self.swap + self._log_sig + excess(u)[0] - math.log(alpha)) / theta - self.sig * u
            known = self._rests[place] = rest, alpha, 2 * self.reach * self.reach * theta
        rest, alpha, bulk = known
        upper = max(rest + bulk / bend - height / theta, alpha)
        if upper >= best:
            return upper
        lower = self._lowers.get((place, log_lower))
        if lower is None:
            level = log_lower - self.swap + math.log(alpha) - self._log_sig
            lower = self._lowers[place, log_lower] = alpha - self.sig * inverse_log_excess(level)
        return max(upper, lower)

    def least(self, bend: float, height: float, log_lower: float) -> float:
        """The smallest h of all tangents: search down its single valley, with growing and then shrinking strides."""
        place, stride, last = self._best, 1, len(THETAS) - 1
        best = self.width(place, bend, height, log_lower, math.inf)
        while stride:
            for other in (min(place + stride, last), max(place - stride, 0)):
                if other != place and (found := self.width(other, bend, height, log_lower, best)) < best:
                    place, best, stride = other, found, 2 * stride
                    break
            else:
                stride //= 2
        self._best = place
        return best


def interpolate(x: float, xs: Sequence[float], ys: Sequence[float]) -> float:
    """Interpolate between the two nearest of rising xs; beyond them, use the value at the end."""
    place = bisect_right(xs, x)
    if place in (0, len(xs)):
        return ys[0] if place == 0 else ys[-1]
    share = (x - xs[place - 1]) / (xs[place] - xs[place - 1])
    return ys[place - 1] + share * (ys[place] - ys[place - 1])
