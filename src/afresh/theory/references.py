"""Bounds that plans are compared with: no mechanism of ours relies on them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from afresh.theory.bernoulli import kl_lower, kl_upper
from afresh.theory.extremes import quantile


def main_theorem_error(n: int, k: int, failure: float, sd: float) -> float:
    """Eq. (3): the Main Theorem's parameters with Markov's inequality, (4/beta) max(tau sd, tau^2).

    tau = sqrt(sqrt(2 k ln(2k)) / n). The paper states it at beta = 0.1, where 4/beta is 40.
    """
    tau = math.sqrt(math.sqrt(2 * k * math.log(2 * k)) / n)
    return 4 / failure * max(tau * sd, tau * tau)


def fixed_questions_half_width(n: int, k: int, failure: float, mean: float) -> float:
    """What k questions fixed in advance would get: Chernoff's bound, Bonferroni over 2k sides."""
    bound = math.log(2 * k / failure) / n
    return (kl_upper(mean, bound) - kl_lower(mean, bound)) / 2


def jung_error(n: int, k: int, failure: float) -> float:
    """Differential privacy transfer (Jung et al. 2020) with fixed Gaussian noise, optimised numerically.

    Sample accuracy alpha except with probability b, and (eps, d)-privacy, give error
    alpha + e^eps - 1 + c + 2e except with probability b/c + d/e.
    """
    from scipy.optimize import minimize  # slow to import, needed by planning only

    def error(point: NDArray[np.float64]) -> float:
        s, eps, b = (math.exp(min(max(x, -60.0), 3.0)) for x in point[:3])
        share = 1 / (1 + math.exp(min(max(-point[3], -30.0), 30.0)))
        b = min(b, 0.5)
        c, e = b / (share * failure), _gaussian_delta(eps, math.sqrt(k) / (n * s)) / ((1 - share) * failure)
        return s * quantile(k, b) + math.expm1(eps) + c + 2 * e

    spread = math.sqrt(math.sqrt(k) / n)
    starts = ([math.log(x * spread), math.log(4 * spread), math.log(failure * spread / 20), 0.0] for x in (0.3, 1.0))
    options = {"xatol": 1e-4, "fatol": 1e-7, "maxfev": 800}
    return min(float(minimize(error, start, method="Nelder-Mead", options=options).fun) for start in starts)


def _gaussian_delta(eps: float, m: float) -> float:
    """The exact privacy profile of Gaussian noise: Phi(m/2 - eps/m) - e^eps Phi(-m/2 - eps/m)."""
    return max(float(ndtr(m / 2 - eps / m)) - math.exp(eps + float(log_ndtr(-m / 2 - eps / m))), 0.0)
