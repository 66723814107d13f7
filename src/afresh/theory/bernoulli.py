"""The Bernoulli divergence kl(p || q) and its inverses, on which every interval ends.

All are scalar and exact to a few units in the last place where it matters: an interval is inverted a few
times per answer, so plain floats beat arrays here. The inverses err outward: rounding widens an interval.
"""

from __future__ import annotations

import math

from afresh.errors import InvalidArgument

_OUTWARD = 4e-15  # covers the rounding of a dozen operations on numbers of order one


def _term(x: float, y: float, gap: float) -> float:
    """x ln(x/y) - x + y >= 0 without cancellation, given gap = y - x."""
    if x == 0.0:
        return gap
    u = gap / x
    if abs(u) > 0.1:
        return gap - x * (math.log(y) - math.log(x))
    # x (u - ln(1 + u)) by its alternating series; 17 terms leave less than 1e-17 relative at |u| = 0.1.
    total = 0.0
    for power in range(18, 1, -1):
        total = 1 / power - u * total
    return x * total * u * u


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


def entropy(p: float) -> float:
    """The binary entropy h(p) in nats."""
    return -sum(x * math.log(x) for x in (p, 1.0 - p) if x > 0.0)


def kl_upper(p: float, bound: float) -> float:
    """The largest q >= p with kl(p || q) <= bound; never below the exact value."""
    _check_probability("p", p)
    if not bound >= 0.0:
        raise InvalidArgument(f"bound == {bound}, must be >= 0.")
    if p == 1.0 or math.isinf(bound):
        return 1.0
    if bound == 0.0:
        return p
    if p == 0.0:
        return min(-math.expm1(-bound) * (1.0 + _OUTWARD), 1.0)
    # With s = -ln(1 - q), kl is convex in s and the start lies to the right of the root, so Newton's steps
    # descend towards it without crossing. Pinsker's start is the closer one in the middle.
    s = (bound + entropy(p)) / (1.0 - p)
    pinsker = p + math.sqrt(bound / 2.0)
    if pinsker < 1.0:
        s = min(s, -math.log1p(-pinsker))
    for _ in range(100):
        q = -math.expm1(-s)
        if q >= 1.0:  # 1 - q is below the resolution of a float near 1
            return 1.0
        step = (kl(p, q) - bound) / ((1.0 - p) - p * (1.0 - q) / q)
        if not step > 1e-15 * s:
            break
        s -= step
    return min(-math.expm1(-s) * (1.0 + _OUTWARD), 1.0)


def kl_lower(p: float, bound: float) -> float:
    """The smallest q <= p with kl(p || q) <= bound; never above the exact value."""
    if p == 1.0:  # then q = exp(-bound), which 1 - kl_upper could not resolve near 0
        return math.exp(-bound) * (1.0 - _OUTWARD) if bound > 0.0 else 1.0
    _check_probability("p", p)
    if not bound >= 0.0:
        raise InvalidArgument(f"bound == {bound}, must be >= 0.")
    if p == 0.0 or math.isinf(bound):
        return 0.0
    if bound == 0.0:
        return p
    # The mirror image of kl_upper in s = -ln q, which keeps small q accurate.
    s = (bound + entropy(p)) / p
    pinsker = p - math.sqrt(bound / 2.0)
    if pinsker > 0.0:
        s = min(s, -math.log(pinsker))
    for _ in range(100):
        q = math.exp(-s)
        if q == 0.0:
            return 0.0
        step = (kl(p, q) - bound) / (p - (1.0 - p) * q / -math.expm1(-s))
        if not step > 1e-15 * s:
            break
        s -= step
    return math.exp(-s) * (1.0 - _OUTWARD)


def _check_probability(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise InvalidArgument(f"{name} == {value}, must be in [0, 1].")
