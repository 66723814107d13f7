"""psi(u) = E(Z + u)_+ = phi(u) + u Phi(u) of a standard normal Z, its logarithm, its slope and their inverses.

Everything is accurate to about 1e-13 relative, far out in both tails; the callers allow for 1e-9.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from afresh.theory.special import erfcx, ndtr

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


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
    return slope_and_hazard(np.asarray(u, dtype=np.float64))[0]


def hazard(u: ArrayLike) -> Floats:
    """phi(u)/Phi(u), positive and decreasing."""
    return slope_and_hazard(np.asarray(u, dtype=np.float64))[1]


def slope_and_hazard(u: Floats) -> tuple[Floats, Floats]:
    """Phi/psi and phi/Phi together: in units of phi below 0, as they are above."""
    below, above = np.minimum(u, 0.0), np.maximum(u, 0.0)
    mills = _mills(below)
    mass, bell = ndtr(above), np.exp(-above * above / 2 - _LOG_ROOT_TWO_PI)
    negative = u <= 0
    ratio: Floats = np.where(negative, mills / _remainder(below), mass / (bell + above * mass))
    return ratio, np.where(negative, 1 / mills, bell / mass)


def inverse_slope(value: ArrayLike) -> Floats:
    """The u with slope(u) = value > 0."""
    target: Floats = np.asarray(value, dtype=np.float64)
    points, log_slopes, _ = _tables()
    u: Floats = np.interp(np.log(target), log_slopes, points)
    for _ in range(2):  # the table is good to 1e-3, or to 1e-2 relative in the tails
        r, a = slope_and_hazard(u)
        # In logarithms slope is nearly linear in both tails: (ln slope)' = phi/Phi - slope < 0.
        u = u - (np.log(r) - np.log(target)) / (a - r)
    return u


def inverse_log_excess(value: ArrayLike) -> Floats:
    """The u with ln psi(u) = value, never below it by more than rounding."""
    target: Floats = np.asarray(value, dtype=np.float64)
    # psi(u) >= u on the right; the tables cover most values.
    u = np.where(target > -1, np.exp(np.minimum(target, 700.0)) - 1.0, -np.sqrt(np.maximum(-2 * target, 0.0)) - 0.5)
    points, _, excesses = _tables()
    known = (target > excesses[-1]) & (target < excesses[0])
    u = np.where(known, np.interp(target, excesses[::-1], points[::-1]), u)
    # Concave and increasing: Newton's steps never cross the root from the left, and from the right with the first.
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


@cache
def _tables() -> tuple[Floats, Floats, Floats]:
    """Points, ln slope and ln psi there."""
    points = np.concatenate(
        [np.geomspace(1e6, 20, 150), np.linspace(20, -20, 801)[1:], -np.geomspace(20, 1e4, 100)[1:]]
    )
    return points, np.log(slope(points)), log_excess(points)
