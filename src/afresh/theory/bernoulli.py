"""The Bernoulli divergence kl(p || q) and its inverses, on which every interval ends.

An interval is inverted a few times per answer, so plain floats beat arrays here; the `_each` forms broadcast
over arrays with the same formulas. kl is a sum of two nonnegative terms, neither of which cancels, and the
inverses solve for w = ln((1-p)/(1-q)) upward, w = ln(p/q) downward, in which kl is convex and a q near p, near
0 or near 1 stays resolved: kl is good to 3e-15 relative,
the inverses to 1e-12, and they err outward.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from afresh.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


_Number = TypeVar("_Number", float, "Floats")

# An inverse widens w by this share, which covers the rounding of kl: under 3e-15 while its terms nearly cancel,
# a few units in the last place beyond, where q = p e^-w multiplies what w gets by w.
_OUTWARD, _OUTWARD_FAR, _FAR = 5e-15, 1e-15, 8.0
_BEYOND = 1e4  # e^-w is 0 from here on
_NORMAL = 2.0**-1022  # smaller numbers have fewer digits


def kl(p: float, q: float) -> float:
    """kl(p || q) = p ln(p/q) + (1-p) ln((1-p)/(1-q)) in nats, for p, q in [0, 1]."""
    _check_probability("p", p)
    _check_probability("q", q)
    if p == q:
        return 0.0
    if (q == 0.0 and p > 0.0) or (q == 1.0 and p < 1.0):
        return math.inf
    gap = q - p
    return _term(p, q, gap) + _term(1.0 - p, 1.0 - q, -gap)  # both nonnegative: nothing cancels


def kl_each(p: ArrayLike, q: ArrayLike) -> Floats:
    """`kl` of each pair, broadcast."""
    p, q = np.broadcast_arrays(_probabilities("p", p), _probabilities("q", q))
    gap = q - p
    total: Floats = relative_term_each(p, q, gap) + relative_term_each(1 - p, 1 - q, -gap)
    return np.where(((q == 0) & (p > 0)) | ((q == 1) & (p < 1)), np.inf, total)


def entropy(p: float) -> float:
    """The binary entropy h(p) in nats."""
    if p in (0.0, 1.0):
        return 0.0
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p)  # not log(1 - p), which loses a small p


def kl_upper(p: float, bound: float) -> float:
    """The largest q >= p with kl(p || q) <= bound; never below the exact value."""
    _check_probability("p", p)
    _check_bound(bound)
    if p == 1.0 or math.isinf(bound):
        return 1.0
    if bound == 0.0:
        return p
    rest = 1.0 - p
    w = _log_ratio(p, rest, bound)
    q = p - rest * math.expm1(-w) if w < 0.5 else 1.0 - rest * math.exp(-w)
    return min(math.nextafter(q, 2.0), 1.0)


def kl_lower(p: float, bound: float) -> float:
    """The smallest q <= p with kl(p || q) <= bound; never above the exact value."""
    _check_probability("p", p)
    _check_bound(bound)
    if p == 0.0 or math.isinf(bound):
        return 0.0
    if bound == 0.0:
        return p
    w = _log_ratio(1.0 - p, p, bound)
    q = p + p * math.expm1(-w) if w < 0.5 else p * math.exp(-w)
    return math.nextafter(q, 0.0)


def kl_upper_each(p: ArrayLike, bound: ArrayLike) -> Floats:
    """`kl_upper` of each pair, broadcast."""
    p, bound = np.broadcast_arrays(_probabilities("p", p), _bounds(bound))
    rest = 1 - p
    w = _log_ratio_each(p, rest, bound)
    q = np.where(w < 0.5, p - rest * np.expm1(-w), 1 - rest * np.exp(-w))
    return np.where(bound == 0, p, np.minimum(np.nextafter(q, 2.0), 1.0))


def kl_lower_each(p: ArrayLike, bound: ArrayLike) -> Floats:
    """`kl_lower` of each pair, broadcast."""
    p, bound = np.broadcast_arrays(_probabilities("p", p), _bounds(bound))
    w = _log_ratio_each(1 - p, p, bound)
    q = np.where(w < 0.5, p + p * np.expm1(-w), p * np.exp(-w))
    return np.where(bound == 0, p, np.nextafter(q, 0.0))


def log_gap(u: float) -> float:
    """u - ln(1 + u) >= 0 without cancellation, for u >= -1."""
    if -0.25 <= u <= 0.35:
        return _log_series(u)
    return u - math.log1p(u) if u > -1.0 else math.inf


def log_gap_each(u: ArrayLike) -> Floats:
    """`log_gap` of each number."""
    x: Floats = np.asarray(u, dtype=np.float64)
    near = _log_series(np.clip(x, -0.25, 0.35))
    with np.errstate(divide="ignore"):  # u = -1 gives inf, which is right
        gap: Floats = np.where((x >= -0.25) & (x <= 0.35), near, x - np.log1p(x))
    return gap


def exp_gap(w: float) -> float:
    """e^-w - 1 + w >= 0 without cancellation, for w >= 0."""
    return _exp_series(w) if w < 0.5 else math.expm1(-w) + w


def exp_gap_each(w: ArrayLike) -> Floats:
    """`exp_gap` of each number."""
    x: Floats = np.asarray(w, dtype=np.float64)
    gap: Floats = np.where(x < 0.5, _exp_series(np.minimum(x, 0.5)), np.expm1(-x) + x)
    return gap


def relative_term_each(x: Floats, y: Floats, gap: Floats) -> Floats:
    """x ln(x/y) - x + y >= 0 of each, without cancellation, given gap = y - x; infinite if only y is 0."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        u, ratio = gap / x, y / x
        log = np.log(ratio)
        lost = ~((ratio >= _NORMAL) & (ratio < np.inf))  # y/x overflows or underflows where its logarithm does not
        if lost.any():
            log = np.where(lost, np.log(y) - np.log(x), log)
        near = x * _log_series(np.clip(u, -0.25, 0.35))
        term = np.where((u >= -0.25) & (u <= 0.35), near, gap - x * log)
    return np.where(x == 0, gap, term)


def _log_series(u: _Number) -> _Number:
    """u - ln(1 + u) by ln(1 + u) = 2 artanh(r), r = u/(2 + u); ten terms leave 1e-17 at |r| = 0.15."""
    r = u / (2 + u)
    z = r * r
    tail = 1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21))))
    return r * (u - 2 * z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * (1 / 11 + z * tail))))))


def _exp_series(w: _Number) -> _Number:
    """e^-w - 1 + w by its series; the terms to w^15 leave 1e-17 at w = 0.5."""
    tail = 1 - w / 10 * (1 - w / 11 * (1 - w / 12 * (1 - w / 13 * (1 - w / 14 * (1 - w / 15)))))
    tail = 1 - w / 6 * (1 - w / 7 * (1 - w / 8 * (1 - w / 9 * tail)))
    return w * w / 2 * (1 - w / 3 * (1 - w / 4 * (1 - w / 5 * tail)))


def _term(x: float, y: float, gap: float) -> float:
    """x ln(x/y) - x + y >= 0 without cancellation, given gap = y - x."""
    if x == 0.0:
        return gap
    u = gap / x
    if -0.25 <= u <= 0.35:
        return x * _log_series(u)
    ratio = y / x  # not 1 + u, which loses a small y; below the smallest normal number it has lost digits itself
    return gap - x * (math.log(ratio) if _NORMAL <= ratio < math.inf else math.log(y) - math.log(x))


def _log_ratio(grows: float, shrinks: float, bound: float) -> float:
    """The w at which kl = bound once the share `shrinks` has become shrinks e^-w, never below; `grows` is the other.

    kl(w) = grows (v - ln(1+v)) + shrinks (e^-w - 1 + w) with v = gap/grows, gap = shrinks (1 - e^-w), and its
    derivative is gap/(grows + gap). It is convex and the start lies right of the root, so Newton's steps
    descend to it without crossing.
    """
    # kl >= shrinks w - grows ln(1/grows), because the growing share stays below 1.
    log = math.log1p(-shrinks) if grows > 0.5 else math.log(grows) if grows > 0.0 else 0.0
    w = min((bound - grows * log) / shrinks, _BEYOND)
    # kl = integral of x/(q (1-q)) over the gap, and q (1-q) is at most 1/4, the growing share, or its start.
    if grows >= shrinks:
        gap = math.sqrt(2.0 * grows * shrinks) * math.sqrt(bound)  # separately, so that the product does not underflow
    else:
        gap = min(math.sqrt(bound / 2.0), bound + math.sqrt(bound) * math.sqrt(bound + 2.0 * grows))
    if gap < shrinks:
        w = min(w, -math.log1p(-gap / shrinks))
    for _ in range(100):
        gap = -shrinks * math.expm1(-w)
        grown = grows + gap
        value = _term(grows, grown, gap) + shrinks * exp_gap(w)
        step = (value - bound) / gap * grown if gap > 0.0 else 0.0
        if step > 0.0:
            w -= step
        if not step > 1e-15 * w:
            break
    return w * (1.0 + (_OUTWARD if w < _FAR else _OUTWARD_FAR))


def _log_ratio_each(grows: Floats, shrinks: Floats, bound: Floats) -> Floats:
    """`_log_ratio` of each; 0 where `shrinks` is, since nothing can shrink."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        log = np.where(grows > 0.5, np.log1p(-shrinks), np.where(grows > 0, np.log(grows), 0.0))
        w = np.minimum((bound - grows * log) / shrinks, _BEYOND)
        narrow = np.minimum(np.sqrt(bound / 2), bound + np.sqrt(bound) * np.sqrt(bound + 2 * grows))
        gap = np.where(grows >= shrinks, np.sqrt(2 * grows * shrinks) * np.sqrt(bound), narrow)
        w = np.where(gap < shrinks, np.minimum(w, -np.log1p(-gap / shrinks)), w)
        w = np.where(shrinks > 0, w, 0.0)
        for _ in range(100):
            gap = -shrinks * np.expm1(-w)
            grown = grows + gap
            value = relative_term_each(grows, grown, gap) + shrinks * exp_gap_each(w)
            step = np.where(gap > 0, (value - bound) / gap * grown, 0.0)
            w = w - np.maximum(step, 0.0)
            if not (step > 1e-15 * w).any():
                break
    widened: Floats = w * (1 + np.where(w < _FAR, _OUTWARD, _OUTWARD_FAR))
    return widened


def _check_probability(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise InvalidArgument(f"{name} == {value}, must be in [0, 1].")


def _check_bound(bound: float) -> None:
    if not bound >= 0.0:
        raise InvalidArgument(f"bound == {bound}, must be >= 0.")


def _probabilities(name: str, values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    bad = ~((array >= 0) & (array <= 1))
    if bad.any():
        raise InvalidArgument(f"{name} contains {array[bad][0]}, must be in [0, 1].")
    return array


def _bounds(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    bad = ~(array >= 0)
    if bad.any():
        raise InvalidArgument(f"bound contains {array[bad][0]}, must be >= 0.")
    return array
