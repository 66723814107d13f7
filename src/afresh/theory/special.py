"""Special functions that plans and intervals need, in NumPy alone: importing scipy.special takes longer than both.

Relative errors, measured against mpmath (tests/theory/test_special.py): `erfcx` and `erfc` 1e-15, `ndtr` 3e-13 at -37,
where x/sqrt(2) is rounded, and less before, `ndtri` the effect of one ulp of it on Phi, `gammaln` 4e-15.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


_Number = TypeVar("_Number", float, "Floats")

_ROOT_HALF = math.sqrt(0.5)
_CENTRE = 3.75
# (1 + 2x) erfcx(x) as a polynomial in (x - 3.75)/(x + 3.75), which is between -1 and 1 for all x >= 0 (the form is
# Shepherd and Laframboise's, 1981): its Chebyshev interpolant, computed with 60 digits, whose later terms are below
# 1e-17. The constant term comes last.
_SCALED = (
    4.2514714447963895e-10,
    3.1114333809799254e-10,
    -5.1739902140113095e-09,
    -3.744210080962018e-09,
    3.8675334242222354e-08,
    2.3263508708859124e-08,
    -2.5866850716155884e-07,
    -5.7218230603224086e-08,
    1.751637648849062e-06,
    -9.73559896736775e-07,
    -1.1444146237700524e-05,
    2.238423915508223e-05,
    5.164909889268241e-05,
    -0.0002901540805408417,
    0.0002937136655913448,
    0.0017556258528952954,
    -0.009746579558029276,
    0.028362277418956406,
    -0.05869339858963677,
    0.09230432116037748,
    -0.10880393014174886,
    0.0822767384901452,
    0.0035854154854644293,
    -0.14024059858554697,
    1.2375126308378275,
)
# Stirling's series 1/(12 z) - 1/(360 z^3) + ..., last term first: enough from 10 on.
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)
_LARGE = 10.0
_SPLIT = 2.0**27 + 1
_NORMAL = NormalDist()


def erfcx(x: _Number) -> _Number:
    """e^(x^2) erfc(x), for x >= 0."""
    if isinstance(x, float | int):
        return _scaled(x)
    t = (x - _CENTRE) / (x + _CENTRE)
    value: Floats = np.full_like(t, _SCALED[0])
    for term in _SCALED[1:]:
        value *= t
        value += term
    value /= 1 + 2 * x
    return value


def _scaled(x: float) -> float:
    t = (x - _CENTRE) / (x + _CENTRE)
    value = 0.0
    for term in _SCALED:
        value = value * t + term
    return value / (1 + 2 * x)


def erfc(x: _Number) -> _Number:
    """2/sqrt(pi) times the integral of e^(-t^2) from x on."""
    if isinstance(x, float | int):
        return math.erfc(x)
    size = np.minimum(np.abs(x), 30.0)  # beyond this, it is 0
    # e^(-x^2) to the last bit: what x^2 loses by rounding is restored (Dekker's product).
    high = size * _SPLIT
    high -= high - size
    low = size - high
    square = size * size
    lost = low * low - ((square - high * high) - 2 * high * low)
    small: Floats = erfcx(size)
    small *= np.exp(-square) * (1 - lost)
    return np.where(x < 0, 2 - small, small)


def ndtr(x: _Number) -> _Number:
    """Phi(x), the standard normal distribution."""
    if isinstance(x, float | int):
        return 0.5 * math.erfc(-_ROOT_HALF * x)
    return 0.5 * erfc(-_ROOT_HALF * x)


def log_ndtr(x: float) -> float:
    """ln Phi(x)."""
    if x > 0:
        return math.log1p(-ndtr(-x))
    return math.log(_scaled(-_ROOT_HALF * x) / 2) - x * x / 2


def ndtri(p: float) -> float:
    """The x with Phi(x) = p."""
    if 0 < p < 1:
        return _NORMAL.inv_cdf(p)
    return -math.inf if p == 0 else math.inf if p == 1 else math.nan


def gammaln(x: _Number) -> _Number:
    """ln Gamma(x), for x > 0."""
    if isinstance(x, float | int):
        return math.lgamma(x)
    small = x < _LARGE
    z = np.maximum(x, _LARGE)
    found = np.asarray((z - 0.5) * np.log(z) - z + _LOG_ROOT_TWO_PI + _stirling(z))
    if small.any():
        found[small] = [math.lgamma(each) for each in x[small].tolist()]
    return found


def stirling_rest(x: float) -> float:
    """ln Gamma(x) - ((x - 1/2) ln x - x + ln(2 pi)/2), for x > 0."""
    if x >= _LARGE:
        return _stirling(x)
    return math.lgamma(x) - ((x - 0.5) * math.log(x) - x + _LOG_ROOT_TWO_PI)


def _stirling(x: _Number) -> _Number:
    inverse = 1 / x
    square = inverse * inverse
    series = square * 0
    for term in _STIRLING:
        series = series * square + term
    return series * inverse


def log_sum_exp(values: ArrayLike, weights: ArrayLike) -> float:
    """ln sum w e^v."""
    v, w = np.asarray(values, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    top = float(np.max(v, initial=-math.inf, where=w > 0))
    if math.isinf(top):
        return top
    return top + math.log(float(np.sum(w * np.exp(v - top))))


def distinct(ordered: Floats) -> Floats:
    """Numbers in order, each once; numpy.unique would import masked arrays."""
    found: Floats = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    return found
