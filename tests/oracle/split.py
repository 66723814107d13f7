"""Independent implementation of guarantees.md section 11's sample splitting, and the no-adaptivity line."""

from __future__ import annotations

import math

from scipy import stats

from .calibrated import truth_range


def chernoff_interval(mean: float, rows: int, log_level: float) -> tuple[float, float]:
    """All q with rows * kl(mean || q) <= log_level (section 6 step 2 with m_lo = m_hi = mean)."""
    return truth_range(mean, mean, rows, log_level)


def split_chernoff(mean: float, n: int, k: int, beta: float) -> tuple[float, float]:
    """Section 11: answer from floor(n/k) rows of its own, Chernoff-kl at beta/(2k) a side."""
    return chernoff_interval(mean, n // k, math.log(2 * k / beta))


def split_exact(successes: int, n: int, k: int, beta: float) -> tuple[float, float]:
    """Section 11: Clopper-Pearson on floor(n/k) rows at beta/(2k) a side; 0/1 queries only."""
    rows, side = n // k, beta / (2 * k)
    low = 0.0 if successes == 0 else float(stats.beta.ppf(side, successes, rows - successes + 1))
    high = 1.0 if successes == rows else float(stats.beta.isf(side, successes + 1, rows - successes))
    return low, high


def split_half_width(p: float, n: int, k: int, beta: float, exact: bool = False) -> float:
    """Section 8's column "splitting": (hi - lo)/2 at a sample mean of p (rounded to a count when exact)."""
    low, high = split_exact(round(p * (n // k)), n, k, beta) if exact else split_chernoff(p, n, k, beta)
    return (high - low) / 2


def no_adaptivity_half_width(p: float, n: int, k: int, beta: float) -> float:
    """Section 8's "no adaptivity": k queries fixed in advance, all rows, Chernoff-kl at beta/(2k) a side."""
    low, high = chernoff_interval(p, n, math.log(2 * k / beta))
    return (high - low) / 2
