"""Bounds that plans are compared with; none of our mechanisms relies on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from afresh.theory.bernoulli import kl_lower, kl_upper
from afresh.theory.extremes import quantile
from afresh.theory.privacy import fixed_noise_shift, gaussian_delta
from afresh.theory.search import minimize_simplex


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


def rogers_half_width(n: int, k: int, failure: float) -> float:
    """Rogers et al. 2020: fixed Gaussian noise, Russo and Zou's bound on the mean square, Markov's inequality.

    k answers that are rho-zCDP each (sd 1/(n sqrt(2 rho))) reveal I <= rho k n nats, and the worst deviation of a
    sample mean has mean square (2 I - ln(1-lam)) / (4 n lam), for any lam in (0, 1). Half of beta goes to it, half
    to the noise. Optimised over rho and lam.
    """

    def width(point: Sequence[float]) -> float:
        rho = math.exp(min(max(point[0], -60.0), 0.0))
        lam = 1 / (1 + math.exp(-min(max(point[1], -30.0), 30.0)))
        square = (2 * rho * k * n - math.log1p(-lam)) / (4 * n * lam)
        return math.sqrt(2 * square / failure) + math.sqrt(math.log(4 * k / failure) / rho) / n

    start = [math.log(math.sqrt(failure * math.log(4 * k / failure) / (k * n * n))), 1.0]
    return minimize_simplex(width, start, tolerance=1e-4, evaluations=400)[1]


@lru_cache(maxsize=64)  # it is the same for every mean
def jung_error(n: int, k: int, failure: float) -> float:
    """Differential privacy transfer (Jung et al. 2020) with fixed Gaussian noise, optimised numerically.

    Sample accuracy alpha except with probability b, and (eps, d)-privacy, give error
    alpha + e^eps - 1 + c + 2e except with probability b/c + d/e.
    """

    def error(point: Sequence[float]) -> float:
        s, eps, b = (math.exp(min(max(x, -60.0), 3.0)) for x in point)
        b, d = min(b, 0.5), gaussian_delta(eps, fixed_noise_shift(n, k, s))
        # The best c and e for b/c + d/e = beta cost (sqrt b + sqrt 2d)^2 / beta, by Cauchy and Schwarz.
        return s * quantile(k, b) + math.expm1(eps) + (math.sqrt(b) + math.sqrt(2 * d)) ** 2 / failure

    spread = math.sqrt(math.sqrt(k) / n)
    starts = ([math.log(x * spread), math.log(4 * spread), math.log(failure * spread / 20)] for x in (0.3, 1.0))
    return min(minimize_simplex(error, start, tolerance=1e-4, evaluations=600)[1] for start in starts)
