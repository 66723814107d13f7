"""The largest of k noises: M = max_j |xi_j| with xi_j independent N(0, 1), alone and together with a square."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from afresh.theory.search import root_between
from afresh.theory.special import erfc, ndtr, ndtri

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


_ROUGH, _FINE = 8, 32
_INVERSE_ROOT_TWO_PI = 1 / math.sqrt(2 * math.pi)


@cache
def _gauss(points: int) -> tuple[Floats, Floats]:
    """Nodes and weights of Gauss's rule."""
    from numpy.polynomial.legendre import leggauss

    found: tuple[Floats, Floats] = leggauss(points)
    return found


def quantile(k: int, failure: float) -> float:
    """z with Pr(M > z) = failure: (2 Phi(z) - 1)^k = 1 - failure."""
    return -ndtri(-math.expm1(math.log1p(-failure) / k) / 2)


def tail(k: int, m: Floats) -> Floats:
    """Pr(M > m), without cancellation in either tail."""
    with np.errstate(divide="ignore"):  # m = 0 gives log1p(-1) = -inf, hence tail 1, which is right
        beyond: Floats = -np.expm1(k * np.log1p(-2 * ndtr(-m)))
    return beyond


@lru_cache(maxsize=256)
def cvar(k: int, failure: float) -> float:
    """C_b(M): the mean of M over its largest b-fraction, = quantile + integral of the tail / b."""
    z = quantile(k, failure)
    edges = z + np.array([0.0, 1.0, 3.0, 6.0, 14.0])  # the tail beyond z + 14 is below exp(-98)
    half = np.diff(edges)[:, None] / 2
    nodes, weights = _gauss(_FINE)
    m = edges[:-1, None] + half * (nodes + 1)
    return z + float((half * weights * tail(k, m)).sum()) / failure


def cvar_square(failure: float) -> float:
    """C_b(Z^2) for Z ~ N(0, 1)."""
    z = -ndtri(failure / 2)
    return 1.0 + 2 * z * math.exp(-z * z / 2) * _INVERSE_ROOT_TWO_PI / failure


def cvar_with_square(k: int, failure: float, weight: float, share: float | None = None) -> float:
    """C_b(M + weight (1 + ((pi/2) M^2 - 1)_+ share) Z^2), Z ~ N(0, 1) independent of M: the joint form of H.

    `share` is the largest part of the charges that one answer may take, 1/k unless said otherwise. The positive part
    allows for answers that take less: given that answer j has the largest noise, the factor is
    1 + ((pi/2) M^2 - 1) share_j, and where the bracket is negative share_j = 0 is the worst.

    By Rockafellar and Uryasev, C_b(X) = min over tau of tau + E(X - tau)_+ / b. Any tau gives an upper bound,
    so stopping the search early errs on the safe side. The expectation over Z is in closed form.
    """
    share = 1 / k if share is None else share
    largest = cvar(k, failure)
    low = quantile(k, failure) / 2
    high = largest + 2 * weight * cvar_square(failure) * (1 + (math.pi / 2) * largest**2 * share)

    def too_low(tau: float) -> float:
        m, mass, scale = _maximum_around(k, weight, share, tau, _ROUGH)
        return math.log(float(mass @ erfc(np.sqrt(np.maximum(tau - m, 0.0) / (2 * scale))))) - math.log(failure)

    # Pr(X > tau) = b at the minimum, which is flat: a rough root of the nearly straight logarithm is enough.
    tau = root_between(too_low, low, high, tolerance=1e-6 * (high - low))
    m, mass, scale = _maximum_around(k, weight, share, tau, _FINE)
    z = np.sqrt(np.maximum(tau - m, 0.0) / scale)
    outside = erfc(z / math.sqrt(2))
    excess = scale * (outside + 2 * z * np.exp(-z * z / 2) * _INVERSE_ROOT_TWO_PI) - (tau - m) * outside
    return tau + float(mass @ excess) / failure


def _maximum_around(k: int, weight: float, share: float, tau: float, points: int) -> tuple[Floats, Floats, Floats]:
    """Quadrature for E f(M) of an f with a kink at tau: nodes, probability weights, and Z^2's factor there.

    Just below tau f varies on the scale of Z^2's factor, so panels grow geometrically from it.
    """
    support = _support(k)
    least, most = support[0], support[-1]
    layer = weight * (1 + max((math.pi / 2) * tau * tau - 1, 0.0) * share)
    below = tau - layer * np.array([160.0, 40.0, 10.0, 2.5, 0.6, 0.1, 0.0])
    kink = math.sqrt(2 / math.pi)  # where the positive part begins
    edges = np.sort(np.concatenate([support, np.clip([*below, kink], least, most)]))  # equal edges make no panel
    half = np.diff(edges)[:, None] / 2
    nodes, weights = _gauss(points)
    m = (edges[:-1, None] + half * (nodes + 1)).ravel()
    log_density = math.log(2 * k * _INVERSE_ROOT_TWO_PI) - m * m / 2
    if k > 1:
        log_density += (k - 1) * np.log1p(-2 * ndtr(-m))
    mass = (half * weights).ravel() * np.exp(log_density)
    return m, mass, weight * (1 + np.maximum((math.pi / 2) * m * m - 1, 0.0) * share)


@lru_cache(maxsize=64)
def _support(k: int) -> Floats:
    """Panel edges over all but 1e-16 of M's mass."""
    least = -ndtri(-math.expm1(-40.0 / k) / 2)  # Pr(M < least) = exp(-40)
    span = quantile(k, 1e-16) + 1.0 - least
    # Finer towards the lower end, where the factor of Z^2 vanishes for k = 1.
    return least + span * np.concatenate([[0.0], np.geomspace(1e-4, 0.1, 4), np.linspace(0.125, 1.0, 8)])
