"""The largest of k noises: M = max_j |xi_j| with xi_j independent N(0, 1), alone and next to a square."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import erfc, log_ndtr, ndtr, ndtri

Floats = NDArray[np.float64]

_NODES, _WEIGHTS = leggauss(160)
_INVERSE_ROOT_TWO_PI = 1 / math.sqrt(2 * math.pi)


def quantile(k: int, failure: float) -> float:
    """z with Pr(M > z) = failure: (2 Phi(z) - 1)^k = 1 - failure."""
    return float(-ndtri(-math.expm1(math.log1p(-failure) / k) / 2))


def tail(k: int, m: Floats) -> Floats:
    """Pr(M > m), without cancellation in either tail."""
    with np.errstate(divide="ignore"):  # m = 0 gives log1p(-1) = -inf, hence tail 1, which is right
        return -np.expm1(k * np.log1p(-2 * ndtr(-m)))


@lru_cache(maxsize=256)
def cvar(k: int, failure: float) -> float:
    """C_b(M): the mean of M over its largest b-fraction, = quantile + integral of the tail / b."""
    z = quantile(k, failure)
    width = 14.0  # the tail beyond z + 14 is below exp(-98)
    m = z + width * (_NODES + 1) / 2
    return z + float(_WEIGHTS @ tail(k, m)) * width / 2 / failure


def cvar_square(failure: float) -> float:
    """C_b(Z^2) for Z ~ N(0, 1)."""
    z = float(-ndtri(failure / 2))
    return 1.0 + 2 * z * math.exp(-z * z / 2) * _INVERSE_ROOT_TWO_PI / failure


@lru_cache(maxsize=64)
def _maximum_nodes(k: int) -> tuple[Floats, Floats]:
    """Quadrature for E f(M): nodes and probability weights over all but 1e-16 of M's mass."""
    low = float(-ndtri(-math.expm1(-40.0 / k) / 2))  # Pr(M < low) = exp(-40)
    high = quantile(k, 1e-16) + 1.0
    m = low + (high - low) * (_NODES + 1) / 2
    log_density = math.log(k) + (k - 1) * _log_inside(m) + math.log(2 * _INVERSE_ROOT_TWO_PI) - m * m / 2
    return m, _WEIGHTS * np.exp(log_density) * (high - low) / 2


def _log_inside(m: Floats) -> Floats:
    """ln Pr(|xi| <= m), accurate for large and small m."""
    with np.errstate(divide="ignore"):
        return np.where(m > 1, np.log1p(-2 * ndtr(-m)), np.log1p(-np.exp(math.log(2) + log_ndtr(-m))))


def cvar_with_square(k: int, failure: float, weight: float) -> float:
    """C_b(M + weight (1 + ((pi/2) M^2 - 1)/k) Z^2), Z ~ N(0, 1) independent of M: the joint form of H.

    By Rockafellar and Uryasev, C_b(X) = min over tau of tau + E(X - tau)_+ / b. Any tau gives an upper
    bound, so stopping the search early errs on the safe side. The inner expectation is in closed form.
    """
    m, mass = _maximum_nodes(k)
    scale = weight * (1 + ((math.pi / 2) * m * m - 1) / k)
    low, high = quantile(k, failure) / 2, cvar(k, failure) + 2 * weight * cvar_square(failure) * (
        1 + (math.pi / 2) * cvar(k, failure) ** 2 / k
    )
    for _ in range(60):  # Pr(X > tau) = b at the minimum; bisect on it
        tau = (low + high) / 2
        if float(mass @ _exceedance(m, scale, tau)) > failure:
            low = tau
        else:
            high = tau
    gap = np.maximum(tau - m, 0.0)
    z = np.sqrt(gap / scale)
    outside = erfc(z / math.sqrt(2))
    excess = scale * (outside + 2 * z * np.exp(-z * z / 2) * _INVERSE_ROOT_TWO_PI) - (tau - m) * outside
    return tau + float(mass @ excess) / failure


def _exceedance(m: Floats, scale: Floats, tau: float) -> Floats:
    return erfc(np.sqrt(np.maximum(tau - m, 0.0) / (2 * scale)))
