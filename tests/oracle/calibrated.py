"""Independent, slow implementation of guarantees.md sections 2, 5 and 6 (the calibrated answer).

Written from shared/design/guarantees.md only. Nothing here imports afresh.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np

DIGITS = 40


def bisect(holds: Callable[[mp.mpf], bool], inside: mp.mpf, outside: mp.mpf, steps: int = 170) -> mp.mpf:
    """Return the last point (inside end) where `holds` is true; it is true at inside, false at outside."""
    for _ in range(steps):
        middle = (inside + outside) / 2
        if holds(middle):
            inside = middle
        else:
            outside = middle
    return inside


def kl(p: mp.mpf, q: mp.mpf) -> mp.mpf:
    """Bernoulli relative entropy kl(p || q) in nats, with 0 ln 0 = 0 and +inf where it must be."""
    total = mp.mpf(0)
    for a, b in ((p, q), (1 - p, 1 - q)):
        if a > 0:
            if b <= 0:
                return mp.inf
            total += a * mp.log(a / b)
    return total


def charge(t: float, T: float, n: int) -> float:
    """Section 2: B(t,T,n), the average leave-one-out KL of one answer of Figure 1."""
    with mp.workdps(DIGITS):
        t_, T_, n_ = mp.mpf(t), mp.mpf(T), mp.mpf(n)
        g = T_ * n_ / (t_ * (n_ - 1) ** 2)
        first = 2 * t_ + (T_ / t_) * (n_ / (n_ - 1)) ** 2 * (1 + g / 3)
        return float(first * (1 + g) / (4 * (n_ - 1) ** 2))


def fixed_gaussian_charge(s: float, n: int) -> float:
    """Section 2: B = 1/(8 s^2 n^2) for fixed Gaussian noise of standard deviation s."""
    with mp.workdps(DIGITS):
        return float(1 / (8 * mp.mpf(s) ** 2 * mp.mpf(n) ** 2))


def laplace_charge(t: float, T: float, n: int) -> float:
    """Section 2: B for Laplace noise of scale sqrt(max(sigma^2/t, 1/T))."""
    with mp.workdps(DIGITS):
        t_, T_, n_ = mp.mpf(t), mp.mpf(T), mp.mpf(n)
        g = T_ * n_ / (t_ * (n_ - 1) ** 2)
        first = t_ / 2 * mp.sqrt(1 + g)
        second = T_ / (8 * t_) * (n_ / (n_ - 1)) ** 2 * (1 + g / 6) * (1 + g)
        return float((first + second) / (n_ - 1) ** 2)


def log_threshold(b1: float, information: float) -> float:
    """Section 5: L(b1, I) = -ln sup{d <= b1 : kl(b1 || d) >= I}, by bisecting kl(b1 || e^-L) = I over L."""
    with mp.workdps(DIGITS):
        b, info = mp.mpf(b1), mp.mpf(information)

        def divergence(level: mp.mpf) -> mp.mpf:
            d = mp.exp(-level)
            return b * (mp.log(b) + level) + (1 - b) * (mp.log1p(-b) - mp.log1p(-d))

        below = -mp.log(b)
        if info <= 0:
            return float(below)
        above = below + 1
        while divergence(above) < info:
            above = 2 * above
        return float(bisect(lambda level: divergence(level) >= info, above, below))


def log_threshold_closed_form(b1: float, information: float) -> float:
    """Section 5: the safe closed form (I + h(b1)) / b1, h the binary entropy in nats."""
    with mp.workdps(DIGITS):
        b = mp.mpf(b1)
        entropy = -b * mp.log(b) - (1 - b) * mp.log(1 - b)
        return float((mp.mpf(information) + entropy) / b)


def adjusted_p_value(p: float, information: float) -> float:
    """Section 5: the largest p' with kl(p' || p) <= I."""
    with mp.workdps(DIGITS):
        p_, info = mp.mpf(p), mp.mpf(information)
        if kl(mp.mpf(1), p_) <= info:
            return 1.0
        return float(bisect(lambda x: kl(x, p_) <= info, p_, mp.mpf(1)))


def noise_quantile(k: int, b2: float) -> float:
    """Section 6: z with (2 Phi(z) - 1)^k = 1 - b2, from erfc(z / sqrt 2) = 1 - (1 - b2)^(1/k)."""
    with mp.workdps(DIGITS):
        tail = -mp.expm1(mp.log1p(-mp.mpf(b2)) / k)
        top = mp.mpf(1)
        while mp.erfc(top / mp.sqrt(2)) > tail:
            top = 2 * top
        return float(bisect(lambda z: mp.erfc(z / mp.sqrt(2)) <= tail, top, mp.mpf(0), 130))


def sample_mean_range(v: float, z: float, t: float, T: float, half_step: float) -> tuple[float, float]:
    """Section 6 step 1 by brute force.

    The extreme points of {m in [0,1] : |v - m| <= z sqrt(max(m(1-m)/t, 1/T)) + half_step}, v clipped to [0,1]
    first: a grid of m (uniform, and geometric towards 0, 1 and v), then bisection between the outermost grid
    point inside and its neighbour outside.
    """
    v = min(max(v, 0.0), 1.0)
    geometric = np.geomspace(1e-18, 1.0, 4001)
    grid = np.concatenate(
        [np.linspace(0.0, 1.0, 200_001), geometric, 1.0 - geometric, v + geometric, v - geometric, [v]]
    )
    grid = np.unique(grid[(grid >= 0.0) & (grid <= 1.0)])
    radius = z * np.sqrt(np.maximum(grid * (1.0 - grid) / t, 1.0 / T)) + half_step
    inside = np.flatnonzero(np.abs(v - grid) <= radius)
    first, last = int(inside[0]), int(inside[-1])
    with mp.workdps(DIGITS):

        def holds(m: mp.mpf) -> bool:
            spread = mp.sqrt(max(m * (1 - m) / mp.mpf(t), 1 / mp.mpf(T)))
            return bool(abs(mp.mpf(v) - m) <= mp.mpf(z) * spread + mp.mpf(half_step))

        low, high = mp.mpf(float(grid[first])), mp.mpf(float(grid[last]))
        if first > 0:
            low = bisect(holds, low, mp.mpf(float(grid[first - 1])), 100)
        if last < len(grid) - 1:
            high = bisect(holds, high, mp.mpf(float(grid[last + 1])), 100)
        return float(low), float(high)


def truth_range(m_lo: float, m_hi: float, n: int, L: float) -> tuple[float, float]:
    """Section 6 step 2: lo = inf{q <= m_lo : n kl(m_lo || q) <= L}, hi likewise upward, by bisection."""
    with mp.workdps(DIGITS):
        a, b, level = mp.mpf(m_lo), mp.mpf(m_hi), mp.mpf(L) / n
        low = mp.mpf(0) if kl(a, mp.mpf(0)) <= level else bisect(lambda q: kl(a, q) <= level, a, mp.mpf(0))
        high = mp.mpf(1) if kl(b, mp.mpf(1)) <= level else bisect(lambda q: kl(b, q) <= level, b, mp.mpf(1))
        return float(low), float(high)


def interval(
    v: float, n: int, k: int, beta: float, b2: float, t: float, T: float, grid_step: float
) -> tuple[float, float]:
    """Section 6: the interval of one calibrated answer v, with I = n k B(t,T,n) and b1 = beta - b2."""
    level = log_threshold(beta - b2, n * k * charge(t, T, n))
    z = noise_quantile(k, b2)
    m_lo, m_hi = sample_mean_range(v, z, t, T, grid_step / 2)
    return truth_range(m_lo, m_hi, n, level)


def half_width(p: float, n: int, k: int, beta: float, b2: float, t: float, T: float, grid_step: float = 0.0) -> float:
    """Section 8's figure of merit: (hi - lo)/2 of the interval at v = p."""
    low, high = interval(p, n, k, beta, b2, t, T, grid_step)
    return (high - low) / 2


def hoeffding_exponent(m: float, q: float, variance: float) -> float:
    """Section 7: the exponent of Hoeffding's two-point bound for a deviation of the mean from q to m."""
    with mp.workdps(DIGITS):
        m_, q_, V = mp.mpf(m), mp.mpf(q), mp.mpf(variance)
        w, c = (m_ - q_, 1 - q_) if m_ >= q_ else (q_ - m_, q_)
        return float(kl((V + c * w) / (V + c * c), V / (V + c * c)))


def certified_range(
    u: float, U: float, v: float, z: float, t: float, T: float, n: int, L: float
) -> tuple[float, float]:
    """Section 7: the interval for P[psi] given S[phi] <= u and P[phi] <= U, by brute force on grids.

    Step 1: the m with |v - m| <= z sqrt(max(u/4 - (m - 1/2)^2, 0)/t or 1/T) within 1/2 -+ sqrt(u)/2 (empty:
    the cut point nearest to v). Step 2: the outermost q within 1/2 -+ sqrt(U)/2 with n * exponent <= L.
    Accurate to about 1e-6; the grid search is from the outside inwards, as the section demands.
    """
    spread = min(0.5, math.sqrt(u) / 2)
    cut_lo, cut_hi = 0.5 - spread, 0.5 + spread
    v = min(max(v, 0.0), 1.0)
    grid = np.linspace(cut_lo, cut_hi, 1_000_001)
    room = np.minimum(np.maximum(u / 4 - (grid - 0.5) ** 2, 0.0), grid * (1 - grid))
    inside = grid[np.abs(v - grid) <= z * np.sqrt(np.maximum(room / t, 1.0 / T))]
    if inside.size:
        m_lo, m_hi = float(inside[0]), float(inside[-1])
    else:
        m_lo = m_hi = cut_lo if v < cut_lo else cut_hi
    edge = min(0.5, math.sqrt(U) / 2)

    def reach(m: float) -> float:
        """Largest q in [m, 1/2 + edge] with n * exponent(m below q) <= L."""
        top = 0.5 + edge
        if m >= top:
            return top
        q = np.linspace(max(m, 0.5 - edge), top, 1_000_001)
        V = np.maximum(np.minimum(U / 4 - (q - 0.5) ** 2, q * (1 - q)), 1e-300)
        x, y = np.minimum((V + q * (q - m)) / (V + q * q), 1.0), V / (V + q * q)
        with np.errstate(divide="ignore", invalid="ignore"):
            first = np.where(x > 0, x * np.log(x / y), 0.0)
            second = np.where(x < 1, (1 - x) * np.log((1 - x) / (1 - y)), 0.0)
        good = q[n * (first + second) <= L]
        return float(good[-1]) if good.size else float(q[0])

    return 1.0 - reach(1.0 - m_lo), reach(m_hi)
