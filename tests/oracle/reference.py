"""Independent reference lines: Jung et al. (section 11) and the paper's eq. (3) (section 8)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special


def gaussian_profile(m: float, eps: float) -> float:
    """Section 11: d(eps) = Phi(m/2 - eps/m) - e^eps Phi(-m/2 - eps/m), in log space."""
    first = float(special.log_ndtr(m / 2 - eps / m))
    second = eps + float(special.log_ndtr(-m / 2 - eps / m))
    return math.exp(first) * -math.expm1(min(second - first, 0.0))


def noise_quantile(k: int, b: float) -> float:
    """z with (2 Phi(z) - 1)^k = 1 - b in float64."""
    tail = -math.expm1(math.log1p(-b) / k)
    return -float(special.ndtri(tail / 2))


def jung_error(s: float, eps: float, b: float, n: int, k: int, beta: float) -> float:
    """Section 11: alpha + e^eps - 1 + c + 2e with b/c + d/e = beta and alpha = s z(b).

    For given b and d the best split is c + 2e = (sqrt b + sqrt(2 d))^2 / beta (Cauchy-Schwarz).
    """
    d = gaussian_profile(math.sqrt(k) / (n * s), eps)
    return s * noise_quantile(k, b) + math.expm1(eps) + (math.sqrt(b) + math.sqrt(2 * d)) ** 2 / beta


def jung_half_width(n: int, k: int, beta: float) -> tuple[float, dict[str, float]]:
    """Section 11: the smallest Jung et al. error over s, eps, b (c, e in closed form), and its parameters."""

    def objective(point: NDArray[np.float64]) -> float:
        s, eps, b = (math.exp(min(float(x), 3.0)) for x in point)
        return jung_error(s, eps, min(b, 0.5), n, k, beta)

    best: tuple[float, dict[str, float]] = (math.inf, {})
    for s0 in (0.003, 0.01, 0.03):
        for b0 in (1e-5, 1e-3):
            found = optimize.minimize(
                objective,
                np.log(np.array([s0, 0.05, b0])),
                method="Nelder-Mead",
                options={"xatol": 1e-7, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000},
            )
            if found.fun < best[0]:
                s, eps, b = (math.exp(float(x)) for x in found.x)
                best = (float(found.fun), {"s": s, "eps": eps, "b": b})
    return best


def paper_eq3(p: float, n: int, k: int, beta: float) -> float:
    """Section 8: eq. (3) at confidence 1-beta, (4/beta) max(tau sd, tau^2), tau^2 = sqrt(2k ln 2k)/n."""
    tau_squared = math.sqrt(2 * k * math.log(2 * k)) / n
    return 4 / beta * max(math.sqrt(tau_squared * p * (1 - p)), tau_squared)
