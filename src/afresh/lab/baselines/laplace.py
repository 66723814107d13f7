"""What the two mechanisms with Laplace noise share: its shape and its quantile."""

from __future__ import annotations

import math

from scipy.special import log_ndtr


def laplace_from_normal(noise: float) -> float:
    """A Lap(1) number from a N(0, 1) one: same sign, same tail probability."""
    return math.copysign(-math.log(2) - float(log_ndtr(-abs(noise))), noise)


def laplace_quantile(k: int, failure: float) -> float:
    """z with Pr(max of k |Lap(1)| > z) = failure: (1 - e^-z)^k = 1 - failure."""
    return -math.log(-math.expm1(math.log1p(-failure) / k))
