"""psi(u) = E(Z + u)_+ = phi(u) + u Phi(u) of a standard normal Z, its logarithm, its slope and their inverses.

Everything is good to about 1e-13 relative, far out in both tails; the callers allow for 1e-9.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erfcx, log_ndtr

Floats = NDArray[np.float64]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)
_FAR = -30.0  # below it 1 - |u| M loses digits and its series has long converged


def log_excess(u: ArrayLike) -> Floats:
    """ln psi(u)."""
    x: Floats = np.asarray(u, dtype=np.float64)
    below = np.minimum(x, 0.0)
    tail = -below * below / 2 - _LOG_ROOT_TWO_PI
    above = np.maximum(x, 0.0)
    with np.errstate(divide="ignore"):
        # psi(u) = u + psi(-u), so nothing cancels above 0 either.
        far = np.log(above + np.exp(-above * above / 2 - _LOG_ROOT_TWO_PI) * _remainder(-above))
        near: Floats = np.where(x <= 0, tail + np.log(_remainder(below)), far)
    return near


def slope(u: ArrayLike) -> Floats:
    """(ln psi)'(u) = Phi(u)/psi(u), positive and decreasing: psi is the integral of the log-concave Phi."""
    x: Floats = np.asarray(u, dtype=np.float64)
    ratio: Floats = np.exp(log_ndtr(x) - log_excess(x))
    below = np.minimum(x, 0.0)
    return np.where(x < -3, _mills(below) / _remainder(below), ratio)


def hazard(u: ArrayLike) -> Floats:
    """phi(u)/Phi(u), positive and decreasing."""
    x: Floats = np.asarray(u, dtype=np.float64)
    ratio: Floats = np.exp(-x * x / 2 - _LOG_ROOT_TWO_PI - log_ndtr(x))
    return np.where(x < -3, 1 / _mills(np.minimum(x, 0.0)), ratio)


def inverse_slope(value: ArrayLike) -> Floats:
    """The u with slope(u) = value > 0."""
    target: Floats = np.asarray(value, dtype=np.float64)
    # slope(u) is about 1/u above and -u - 2/u... below; bisection in this bracket, then Newton in logarithms.
    low, high = -target - 1.0, 1 / target + 1.0
    for _ in range(12):
        middle = (low + high) / 2
        beyond = slope(middle) > target
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    u = (low + high) / 2
    for _ in range(4):
        r = slope(u)
        change = r * (hazard(u) - r)  # slope' = phi/psi - slope^2 < 0
        u = np.clip(u - (r - target) / change, low, high)
    return u


def inverse_log_excess(value: ArrayLike) -> Floats:
    """The u with ln psi(u) = value, never below it by more than rounding."""
    target: Floats = np.asarray(value, dtype=np.float64)
    # Concave and increasing: Newton's steps from the left of the root never cross it; psi(u) >= u on the right.
    u = np.where(target > -1, np.exp(np.minimum(target, 700.0)) - 1.0, -np.sqrt(np.maximum(-2 * target, 0.0)) - 0.5)
    for _ in range(60):
        step = (target - log_excess(u)) / slope(u)
        u = u + step
        if np.all(np.abs(step) <= 1e-13 * (1 + np.abs(u))):
            break
    return u


def _mills(u: Floats) -> Floats:
    """Phi(u)/phi(u) for u <= 0."""
    ratio: Floats = math.sqrt(math.pi / 2) * erfcx(-u / math.sqrt(2))
    return ratio


def _remainder(u: Floats) -> Floats:
    """psi(u)/phi(u) = 1 + u Phi(u)/phi(u) for u <= 0; about 1/u^2 far out."""
    with np.errstate(divide="ignore", over="ignore"):
        z = 1 / np.square(np.minimum(u, _FAR))
        series = z * (1 - z * (3 - z * (15 - z * (105 - z * (945 - z * (10395 - 135135 * z))))))
    return np.where(u < _FAR, series, 1 + u * _mills(u))
