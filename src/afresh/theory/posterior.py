"""The posterior certificate (section 9): simultaneous intervals for noise of a public, fixed scale.

An answer is v = S[psi] + s xi with s a function of the transcript before it, never of the sample. Given the
whole transcript Y the sample has a posterior law; with probability >= 1 - b its mean of every query at once is
close to the population's (i), and with probability >= 1 - b no answer is far from that mean (ii):

    (i)   n kl(E[S[psi] | Y] || P[psi]) <= R(b)    for all psi: X -> [0, 1]
    (ii)  |v_j - E[S[psi_j] | Y]| <= s_j zeta(b)   for all j <= k
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import kl_lower, kl_upper
from afresh.theory.extremes import cvar
from afresh.theory.information import information
from afresh.theory.special import ndtr
from afresh.theory.stability import fixed_gaussian_charge

Floats = NDArray[np.float64]

_UPWARD = 1 + 1e-10  # the quadratures are good to 1e-11, so the product never falls short
_RULE = leggauss(20)
_SERIES = [1 / math.factorial(power) for power in range(2, 18)]
_ROOT_TWO_PI = math.sqrt(2 * math.pi)


def h(u: float) -> float:
    """h(u) = u - 1 + e^-u >= 0, without cancellation: what one row's log-likelihood ratio u costs (step 3)."""
    if abs(u) < 1.0:
        return u * u * sum(c * (-u) ** power for power, c in enumerate(_SERIES))
    return u + math.expm1(-u) if u > -700 else math.inf


def _h_near(u: Floats) -> Floats:
    """The same on an array, for |u| <= 1: u^2 (1/2 - u/6 + u^2/24 - ...), of which 16 terms leave < 1e-15."""
    series = np.zeros_like(u)
    for coefficient in reversed(_SERIES):
        series = coefficient - u * series
    return u * u * series


@lru_cache(maxsize=1024)
def posterior_level(n: int, nats: float, failure: float) -> float:
    """R(b) = C_b(n h(sqrt(q) Z + q/2)) with q = 2 I/n: the level of (i); to 1e-10, never below.

    I = `nats` caps the information of all answers: the sum of 1/(8 n s_j^2) is at most I.

    C_b is the mean over the largest b-fraction (CVaR). By Rockafellar and Uryasev it is the minimum over a of
    a + E(h - a)_+ / b, so any a gives an upper bound, and at the quantile an error in it is of second order.
    """
    _check(n, failure=failure)
    if not 0 <= nats < math.inf:
        raise InvalidArgument(f"nats == {nats}, must be finite and >= 0.")
    q = 2 * nats / n
    if q == 0:
        return 0.0
    if q > 1e4:
        raise InvalidArgument(f"2 nats / n == {q}, must be <= 10000: more tells nothing about the truth.")
    root = math.sqrt(q)
    # {h > a} is the two tails u < below and u > above; in z = (u - q/2)/sqrt(q) they hold the mass wanted.
    low, high = 0.0, q
    while _tail_mass(high, q) > failure:
        low, high = high, 4 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail_mass(middle, q) > failure else (low, middle)
        if high - low < 1e-9 * high:
            break
    below, above = _level_set(high)
    z_below, z_above = (below - q / 2) / root, (above - q / 2) / root
    # e^-u tilts the left tail to mean -sqrt(q), so it reaches that much further; beyond 14 more, < 1e-40.
    left = _excess(min(z_below, -root) - 14, z_below, q, high)
    right = _excess(z_above, max(z_above, 0.0) + 14, q, high)
    return n * (high + (left + right) / failure) * _UPWARD


def noise_level(k: int, failure: float) -> float:
    """zeta(b) = C_b(max_{j<=k} |xi_j|): the level of (ii); to 1e-10, never below."""
    _check(k, failure=failure)
    return cvar(k, failure) * _UPWARD


def posterior_interval(
    value: float, s: float, n: int, level: float, noise: float, half_step: float = 0.0
) -> tuple[float, float]:
    """(i) and (ii): one answer's truth, given level = R(b1), noise = zeta(b2); all fail with probability <= b1 + b2.

    [m_lo, m_hi] = v -+ (s zeta + half a step of rounding) contains E[S[psi] | Y]; then n kl(m || q) <= R.
    """
    _check(n, s=s)
    reach = s * noise + half_step
    low, high = min(max(value - reach, 0.0), 1.0), min(max(value + reach, 0.0), 1.0)
    return kl_lower(low, level / n), kl_upper(high, level / n)


def posterior_half_width(n: int, k: int, s: float, failure: float) -> float:
    """(iii): s zeta(beta) + sqrt(R(beta)/(2n)) bounds |v_j - P[psi_j]| for all j <= k, nothing split.

    Both parts are conditional expectations on the same transcript; sqrt(W) <= (W/w + w)/2 makes the second
    linear, and CVaR is subadditive.
    """
    level = posterior_level(n, k * information(n, fixed_gaussian_charge(s, n)), failure)
    return s * noise_level(k, failure) + math.sqrt(level / (2 * n))


def _level_set(a: float) -> tuple[float, float]:
    """The two u with h(u) = a > 0, by Newton's steps that descend from outside (h is convex)."""
    above = a + math.sqrt(2 * a)
    below = -math.log1p(above)  # e^r >= 1 + r + r^2/2 at r = sqrt(2a) puts it left of the root
    roots = []
    for u in (below, above):
        for _ in range(60):
            step = (h(u) - a) / -math.expm1(-u)
            u -= step
            if abs(step) < 1e-14 * abs(u):
                break
        roots.append(u)
    return roots[0], roots[1]


def _tail_mass(a: float, q: float) -> float:
    """Pr(h(sqrt(q) Z + q/2) > a)."""
    below, above = _level_set(a)
    root = math.sqrt(q)
    return ndtr((below - q / 2) / root) + ndtr(-(above - q / 2) / root)


def _excess(start: float, stop: float, q: float, a: float) -> float:
    """The integral of (h(u) - a) phi(z) over start <= z <= stop, u = sqrt(q) z + q/2."""
    edges = np.linspace(start, stop, max(math.ceil(stop - start), 1) + 1)
    half = np.diff(edges)[:, None] / 2
    z = (edges[:-1, None] + half * (_RULE[0] + 1)).ravel()
    weights = (half * _RULE[1]).ravel()
    root = math.sqrt(q)
    u = root * z + q / 2
    bell = np.exp(-z * z / 2) / _ROOT_TWO_PI
    # e^-u phi(z) = phi(z + sqrt(q)) never overflows; near u = 0 the sum would cancel, and h does not.
    far = (u - 1) * bell + np.exp(-((z + root) ** 2) / 2) / _ROOT_TWO_PI
    near = _h_near(np.clip(u, -1.0, 1.0)) * bell
    return float(weights @ (np.where(np.abs(u) < 1.0, near, far) - a * bell))


def _check(count: int, s: float | None = None, failure: float | None = None) -> None:
    if count < 1:
        raise InvalidArgument(f"count == {count}, must be >= 1.")
    if s is not None and not 0 < s < math.inf:
        raise InvalidArgument(f"s == {s}, must be positive and finite.")
    if failure is not None and not 0 < failure < 1:
        raise InvalidArgument(f"failure == {failure}, must be in (0, 1).")
