"""Quantiles of the beta distribution: where exact binomial limits lie.

A few are found here, by Newton's steps in ln(x/(1-x)), in which ln I_x(a, b) is concave because the density is
log-concave there: steps cannot run away. I_x(a, b) is x^a (1-x)^b / (a B(a, b)) over its continued fraction (DLMF
8.17.22), which needs a few dozen terms in the tails that limits are about; the factor before it is written with the
divergence between a/(a+b) and x, so that nothing cancels for any number of rows. Anything far from a tail, or in large
arrays, is left to scipy, which takes longer to import than to calculate. Against mpmath both are good to 2e-7 of the
probability (tests/theory/test_beta.py), for which callers allow.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from afresh.theory.bernoulli import kl
from afresh.theory.special import ndtri, stirling_rest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


_FEW = 32  # up to this many take less time here than importing scipy
_TERMS = 300
_DIGITS = 1e-13
_NEAR = 1e-6  # in standard deviations: Newton's next step would be below the last digit


def lower_quantile(a: Floats, b: Floats, probability: Floats) -> Floats:
    """x with I_x(a, b) = probability, of each."""
    found = _few(a, b, probability)
    if found is None:
        from scipy.special import betaincinv

        return np.asarray(betaincinv(a, b, probability))
    return np.reshape([_share(v) for v in found], a.shape)


def upper_quantile(a: Floats, b: Floats, probability: Floats) -> Floats:
    """x with 1 - I_x(a, b) = probability, of each: the same for 1 - x, with a and b exchanged."""
    found = _few(b, a, probability)
    if found is None:
        from scipy.special import betainccinv

        return np.asarray(betainccinv(a, b, probability))
    return np.reshape([_share(-v) for v in found], a.shape)


def one_lower_quantile(a: float, b: float, probability: float) -> float | None:
    """x with I_x(a, b) = probability, if it is in a tail, where few terms are needed; otherwise None."""
    found = _log_odds(a, b, probability)
    return None if found is None else _share(found)


def one_upper_quantile(a: float, b: float, probability: float) -> float | None:
    """The same with 1 - I_x(a, b) = probability."""
    found = _log_odds(b, a, probability)
    return None if found is None else _share(-found)


def _few(a: Floats, b: Floats, probability: Floats) -> list[float] | None:
    """ln(x/(1-x)) of each, or None if scipy should do one of them."""
    if a.size > _FEW:
        return None
    found = [_log_odds(*each) for each in zip(a.flat, b.flat, probability.flat, strict=True)]
    return None if None in found else [each for each in found if each is not None]


def _share(log_odds: float) -> float:
    if log_odds > 0:
        return 1 / (1 + math.exp(-log_odds))
    odds = math.exp(log_odds)
    return odds / (1 + odds)


def _log_odds(a: float, b: float, probability: float) -> float | None:
    """ln(x/(1-x)) of a quantile below the median; None where the fraction converges slowly."""
    a, b, probability = float(a), float(b), float(probability)
    rows, spread = a + b, math.sqrt(1 / a + 1 / b)
    factor = 0.5 * math.log(a * b / (2 * math.pi * rows)) - math.log(a)
    factor += stirling_rest(rows) - stirling_rest(a) - stirling_rest(b)
    target = math.log(probability)
    v = math.log(a / b) + ndtri(probability) * spread
    for _ in range(60):
        x = _share(v)
        fraction = _fraction(a, b, x) if 0 < x < (a + 1) / (rows + 2) else None
        if fraction is None:
            return None
        step = (factor - rows * kl(a / rows, x) - math.log(fraction) - target) / (a * fraction)
        v -= step
        if abs(step) <= _NEAR * min(spread, 1.0):
            return v
    return None


def _fraction(a: float, b: float, x: float) -> float | None:
    """1 + d1/(1 + d2/(1 + ...)) with DLMF's d, by Lentz's method (1976), which below the mean meets no zero."""
    rows, bottom = a + b, 1.0
    value = top = 1 - rows * x / (a + 1)
    for m in range(1, _TERMS):
        at = a + 2 * m
        d = m * (b - m) * x / ((at - 1) * at)
        bottom = 1 / (1 + d * bottom)
        top = 1 + d / top
        value *= top * bottom
        d = -(a + m) * (rows + m) * x / (at * (at + 1))
        bottom = 1 / (1 + d * bottom)
        top = 1 + d / top
        change = top * bottom
        value *= change
        if -_DIGITS < change - 1 < _DIGITS:
            return value if value > 0 else None
    return None
