"""The differential privacy that the noise happens to give (the footnote of Section 1.1.1). Not a privacy product.

Neighbouring samples differ in one of n rows; n is public. (eps, delta)-private: Pr(M(s) in E) <= e^eps Pr(M(s')
in E) + delta. Noise of a fixed scale has an exact profile; k answers together have that of one with shift m: the
distance between neighbours in noise deviations, times sqrt(k), however the questions were chosen. Calibrated noise has
a scale that depends on the rows, so its floor alone proves nothing: there the Renyi divergences compose.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from afresh.theory.information import require
from afresh.theory.special import erfcx, log_ndtr, ndtr, ndtri
from afresh.theory.stabilized import leave_one_out_growth

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


def gaussian_delta(eps: float, m: float) -> float:
    """The exact profile of N(0, 1) against N(m, 1): Phi(m/2 - eps/m) - e^eps Phi(-m/2 - eps/m)."""
    require(eps >= 0.0 and m > 0.0, "eps >= 0 and m > 0", eps=eps, m=m)
    near, far = m / 2 - eps / m, -m / 2 - eps / m
    if near < 0.0:
        # e^eps phi(far) = phi(near), so in the tail both terms share a factor and only Mills ratios are subtracted.
        mills = erfcx(-near / math.sqrt(2)) - erfcx(-far / math.sqrt(2))
        return max(math.exp(-near * near / 2) * mills / 2, 0.0)
    return max(ndtr(near) - math.exp(eps + log_ndtr(far)), 0.0)


def gaussian_epsilon(delta: float, m: float) -> float:
    """The smallest eps >= 0 with gaussian_delta(eps, m) <= delta; errs upward."""
    require(0.0 < delta < 1.0 and m > 0.0, "0 < delta < 1 and m > 0", delta=delta, m=m)
    low, high = 0.0, max(m * (m / 2 - ndtri(delta)), 0.0)  # the profile is below Phi(m/2 - eps/m)
    if gaussian_delta(low, m) <= delta:
        return 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(middle, m) <= delta else (middle, high)
    return high * (1 + 1e-12)


def fixed_noise_shift(n: int, k: int, s: float) -> float:
    """m = sqrt(k)/(n s): one row moves a mean by at most 1/n, and k Gaussian answers compose to one."""
    require(n >= 1 and k >= 1 and s > 0.0, "n >= 1, k >= 1 and s > 0", n=n, k=k, s=s)
    return math.sqrt(k) / (n * s)


def stabilized_shift(n: int, k: int, s: float, v0: float) -> float:
    """m = sqrt(k)/(2 n s sqrt(v0)): Theta is steepest, 1/(2 sqrt v0), below p0, and p0 >= v0 > 1/n."""
    leave_one_out_growth(n, v0)  # refuses (n-1) v0 <= 1
    require(v0 <= 0.25, "v0 <= 1/4", v0=v0)
    return fixed_noise_shift(n, k, s) / (2 * math.sqrt(v0))


def floor_shift(n: int, k: int, T: float) -> float:
    """m = sqrt(k T)/n of the noise floor 1/T: 1 at the Main Theorem's T = n^2/k.

    Calibrated answers are no more private than this (zero rows against one 1, where the floor is in force if
    (n-1)/n^2 <= t/T), and a little less, because their scale moves too: `calibrated_epsilon`.
    """
    require(T > 0.0, "T > 0", T=T)
    return fixed_noise_shift(n, k, 1 / math.sqrt(T))


def gaussian_renyi(alpha: ArrayLike, shift: float, ratio: float) -> Floats:
    """D_alpha(N(shift, ratio) || N(0, 1)), ratio the variance; infinite from alpha = ratio/(ratio-1) on.

    -ln(ratio)/2 - ln(w)/(2 (alpha-1)) + alpha shift^2/(2 w) with w = alpha - (alpha-1) ratio (Gil et al. 2013).
    """
    alpha = np.asarray(alpha, dtype=np.float64)
    require(np.all(alpha > 1.0) and ratio > 0.0, "alpha > 1 and ratio > 0", alpha=alpha, ratio=ratio)
    excess = (alpha - 1) * (ratio - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = -math.log(ratio) / 2 - np.log1p(-excess) / (2 * (alpha - 1)) + alpha * shift**2 / (2 * (1 - excess))
    return np.where(excess < 1.0, value, np.inf)


def calibrated_renyi(alpha: ArrayLike, n: int, k: int, t: float, T: float) -> Floats:
    """A bound on the Renyi divergence of k calibrated answers on neighbouring samples; questions may be adaptive.

    One row moves the mean by at most 1/n and the variance by at most (n-1)/n^2, and max(., 1/T) is 1-Lipschitz, so
    the two noise variances have a ratio within 1 + rho, rho = T (n-1)/(t n^2). If the sample at hand has the larger
    one, the divergence is largest when the other is at the floor and the ratio is 1 + rho; if it has the smaller
    one, the mean's part is at most alpha T/(2 n^2) and the scale's at most that of ratio 1/(1 + rho).
    """
    require(n >= 2 and k >= 1 and t > 0.0 and T > 0.0, "n >= 2, k >= 1, t > 0 and T > 0", n=n, k=k, t=t, T=T)
    alpha = np.asarray(alpha, dtype=np.float64)
    rho = T * (n - 1) / (t * n * n)
    wider = gaussian_renyi(alpha, math.sqrt(T) / n, 1 + rho)
    narrower = gaussian_renyi(alpha, 0.0, 1 / (1 + rho)) + alpha * T / (2 * n * n)
    return k * np.maximum(wider, narrower)


def calibrated_epsilon(delta: float, n: int, k: int, t: float, T: float) -> float:
    """An eps such that k calibrated answers are (eps, delta)-private: the best order on a grid; each one is valid.

    eps = D_alpha + ln(1 - 1/alpha) - ln(alpha delta)/(alpha - 1) (Canonne, Kamath and Steinke 2020, Prop. 12).
    """
    require(0.0 < delta < 1.0, "0 < delta < 1", delta=delta)
    rho = T * (n - 1) / (t * n * n)
    alpha = 1 + np.geomspace(1e-4, min(1 / rho, 1e9), 20001)[:-1]
    divergence = calibrated_renyi(alpha, n, k, t, T)
    eps = divergence + np.log1p(-1 / alpha) - np.log(alpha * delta) / (alpha - 1)
    return max(float(eps.min()), 0.0)
