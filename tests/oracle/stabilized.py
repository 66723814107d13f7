"""Independent, slow implementation of guarantees.md sections 9 and 10 (public and stabilised noise).

Written from shared/design/guarantees.md only. Nothing here imports afresh. Accuracy is stated per function.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import mpmath as mp
import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

Array = NDArray[np.float64]
DIGITS = 40


# --- the transform ---------------------------------------------------------------------------------------


def theta(m: float, v0: float) -> float:
    """Section 10: Theta(m) = integral_0^m dm' / (2 sqrt(max(m'(1-m'), v0))), closed form in 40 digits."""
    with mp.workdps(DIGITS):
        return float(_theta_mp(mp.mpf(m), mp.mpf(v0)))


def _theta_mp(m: mp.mpf, v0: mp.mpf) -> mp.mpf:
    p0 = mp.mpf(1) / 2 - mp.sqrt(mp.mpf(1) / 4 - v0)
    if m > mp.mpf(1) / 2:
        return 2 * _theta_mp(mp.mpf(1) / 2, v0) - _theta_mp(1 - m, v0)
    if m <= p0:
        return m / (2 * mp.sqrt(v0))
    return mp.asin(mp.sqrt(m)) - mp.asin(mp.sqrt(p0)) + p0 / (2 * mp.sqrt(v0))


def theta_by_quadrature(m: float, v0: float) -> float:
    """Section 10: the defining integral of Theta, by mpmath quadrature split at its kinks."""
    with mp.workdps(DIGITS):
        v = mp.mpf(v0)
        p0 = mp.mpf(1) / 2 - mp.sqrt(mp.mpf(1) / 4 - v)
        points = [mp.mpf(0), *[x for x in (p0, mp.mpf(1) / 2, 1 - p0) if x < m], mp.mpf(m)]
        return float(mp.quad(lambda x: 1 / (2 * mp.sqrt(max(x * (1 - x), v))), points))


def theta_inverse(y: float, v0: float) -> float:
    """Section 10: the m with Theta(m) = y (y clipped to [0, Theta(1)]), by bisection in 40 digits."""
    with mp.workdps(DIGITS):
        v, y_ = mp.mpf(v0), mp.mpf(y)
        low, high = mp.mpf(0), mp.mpf(1)
        if y_ <= 0:
            return 0.0
        if y_ >= _theta_mp(high, v):
            return 1.0
        for _ in range(140):
            middle = (low + high) / 2
            if _theta_mp(middle, v) <= y_:
                low = middle
            else:
                high = middle
        return float((low + high) / 2)


def theta_array(m: Array, v0: float) -> Array:
    """Section 10: Theta on an array in float64 (absolute error about 4e-16 (1 + Theta))."""
    p0 = v0 / (0.5 + math.sqrt(0.25 - v0))
    low = np.minimum(m, 1.0 - m)
    inner = np.arcsin(np.sqrt(np.maximum(low, p0))) - math.asin(math.sqrt(p0)) + p0 / (2 * math.sqrt(v0))
    left = np.where(low <= p0, low / (2 * math.sqrt(v0)), inner)
    return np.where(m <= 0.5, left, 2 * theta(0.5, v0) - left)


# --- public constants ------------------------------------------------------------------------------------


def constant_G(n: int, v0: float) -> float:
    """Section 10: G = 1 / (1 - 1/((n-1) v0)); rejects (n-1) v0 <= 1."""
    if (n - 1) * v0 <= 1:
        raise ValueError("(n-1) v0 must exceed 1")
    with mp.workdps(DIGITS):
        return float(1 / (1 - 1 / ((n - 1) * mp.mpf(v0))))


def information(n: int, k: int, s: float, v0: float) -> float:
    """Section 10: I = k G n / (8 (n-1)^2 s^2)."""
    with mp.workdps(DIGITS):
        G = 1 / (1 - 1 / ((n - 1) * mp.mpf(v0)))
        return float(k * G * n / (8 * mp.mpf(n - 1) ** 2 * mp.mpf(s) ** 2))


def qb(n: int, info: float, v0: float) -> float:
    """Section 10: qb = 2 I / (n v0)."""
    return 2 * info / (n * v0)


def constant_B(eps: float, qb_: float) -> float:
    """Section 10: B = (1 + 1/eps) qb / 8."""
    return (1 + 1 / eps) * qb_ / 8


def fixed_information(n: int, k: int, s: float) -> float:
    """Section 9: I = k / (8 n s^2) for k answers of fixed noise s."""
    return k / (8 * n * s * s)


# --- CVaR ------------------------------------------------------------------------------------------------


def cvar_max_normal(k: int, beta: float) -> float:
    """Sections 9, 10: C_beta(M), M = max of k independent |N(0,1)|; equals zeta(beta). mpmath quadrature.

    The beta-quantile z has P(M > z) = beta; C = z + (1/beta) int_z^inf P(M > u) du.
    """
    with mp.workdps(30):

        def tail(u: mp.mpf) -> mp.mpf:
            return -mp.expm1(k * mp.log1p(-mp.erfc(u / mp.sqrt(2))))

        low, high = mp.mpf(0), mp.mpf(40)
        for _ in range(110):
            middle = (low + high) / 2
            if tail(middle) > beta:
                low = middle
            else:
                high = middle
        area = mp.quad(tail, [low + mp.mpf(i) / 2 for i in range(13)] + [low + 40])
        return float(low + area / beta)


def cvar_chi_square(beta: float) -> float:
    """Section 10: C_beta(Z^2), the mean of Z^2 beyond its upper beta point, by quadrature in mpmath."""
    with mp.workdps(30):
        z = mp.sqrt(2) * mp.erfinv(1 - mp.mpf(beta))
        total = mp.quad(lambda u: 2 * u * u * mp.npdf(u), [z, z + 1, z + 3, z + 10, z + 40])
        return float(total / beta)


def _panels(low: float, high: float, count: int, order: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(order)
    edges = np.linspace(low, high, count + 1)
    half = np.diff(edges) / 2
    x = (edges[:-1] + half)[:, None] + half[:, None] * nodes[None, :]
    w = half[:, None] * weights[None, :]
    return x.ravel(), w.ravel()


def _max_density(m: Array, k: int) -> Array:
    with np.errstate(divide="ignore"):
        log_cdf = np.where(m > 0, np.log1p(-special.erfc(m / math.sqrt(2))), -np.inf)
        power = np.zeros_like(m) if k == 1 else (k - 1) * log_cdf
    log_pdf = math.log(2 * k) - m * m / 2 - 0.5 * math.log(2 * math.pi)
    density: Array = np.exp(log_pdf + power)
    return density


def _square_excess(x: Array) -> Array:
    """E (Z^2 - x)_+ = 2 sqrt(x) phi(sqrt x) + (1 - x) P(Z^2 > x) for x >= 0, and 1 - x for x < 0."""
    r = np.sqrt(np.maximum(x, 0.0))
    tail = special.erfc(r / math.sqrt(2))
    phi = np.exp(-r * r / 2) / math.sqrt(2 * math.pi)
    return np.where(x <= 0, 1 - x, np.maximum(2 * r * phi + (1 - x) * tail, 0.0))


def joint_excess(w: float, s: float, kappa: float, k: int, strict: bool = True, share: float | None = None) -> float:
    """E (s M + kappa f(M) Z^2 - w)_+ with the inner expectation analytic, the outer by Gauss-Legendre.

    f(m) = 1 + ((pi/2) m^2 - 1)/k (strict) or 1 + (pi/2) m^2/k. With a largest `share` (unequal answers) 1/k
    becomes the share and, strict, (pi/2) m^2 - 1 its positive part (the largest noise may be cheap).
    The kinks are panel edges, and panels are graded towards the one at s m = w. Relative error below 1e-11.
    """
    part = 1.0 / k if share is None else share
    top = 14.0
    kink = min(max(w / s, 0.0), top)
    turn = math.sqrt(2 / math.pi)  # where the positive part begins
    pieces = []
    if kink > 0:
        graded = kink * (1 - np.array([0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 0.9999, 1.0])[::-1])
        edges = kink - graded
        edges = np.sort(np.unique(np.clip([*edges, turn], 0.0, kink)))
        pieces += [_panels(float(a), float(b), 4, 40) for a, b in itertools.pairwise(edges)]
    if kink < top:
        above = sorted({kink, max(turn, kink), top})
        pieces += [_panels(a, b, 40, 40) for a, b in itertools.pairwise(above)]
    total = 0.0
    for m, weight in pieces:
        extra = (math.pi / 2) * m * m - (1.0 if strict else 0.0)
        f = 1 + (extra if share is None else np.maximum(extra, 0.0)) * part
        scale = kappa * f
        x = (w - s * m) / scale
        total += float(np.sum(weight * _max_density(m, k) * scale * _square_excess(x)))
    return total


def cvar_joint(s: float, kappa: float, k: int, beta: float, strict: bool = True, share: float | None = None) -> float:
    """Section 10: C_beta(s M + kappa (1 + ((pi/2) M^2 - 1)/k) Z^2); strict=False uses 1 + (pi/2) M^2/k.

    CVaR as min over w of w + E(W - w)_+ / beta (Rockafellar-Uryasev), so any w gives an upper bound and the
    minimum is flat: an error e in w costs O(e^2). Relative error below 1e-9.
    """

    def objective(w: float) -> float:
        return w + joint_excess(w, s, kappa, k, strict, share) / beta

    part = 1.0 / k if share is None else share
    biggest = math.sqrt(2 * math.log(2 * k / beta))  # above the beta-quantile of M, and of |Z|
    high = s * biggest + kappa * (1 + 2 * biggest**2 * part) * 2 * math.log(4 / beta)
    found = optimize.minimize_scalar(
        objective, bounds=(0.0, 1.2 * high), method="bounded", options={"xatol": 1e-7 * high}
    )
    return float(found.fun)


# --- section 9 -------------------------------------------------------------------------------------------


def h(u: float) -> float:
    """Sections 9, 10: h(u) = u - 1 + e^-u (40 digits inside)."""
    with mp.workdps(DIGITS):
        x = mp.mpf(u)
        return float(x - 1 + mp.exp(-x))


def posterior_level(n: int, info: float, b: float) -> float:
    """Section 9: R(b) = C_b(n h(sqrt(q) Z + q/2)), q = 2 I/n, by mpmath root finding and quadrature.

    h is U-shaped with minimum 0 at 0, so {h > a} is two tails u < u1 and u > u2 with h(u1) = h(u2) = a.
    """
    with mp.workdps(30):
        q = 2 * mp.mpf(info) / n
        root = mp.sqrt(q)

        def hh(u: mp.mpf) -> mp.mpf:
            return mp.expm1(-u) + u

        def ends(a: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
            found = []
            for sign in (-1, 1):
                far = mp.mpf(sign)
                while hh(far) < a:
                    far *= 2
                near = mp.mpf(0)
                for _ in range(64):
                    middle = (near + far) / 2
                    if hh(middle) < a:
                        near = middle
                    else:
                        far = middle
                found.append(near)
            return found[0], found[1]

        def mass(a: mp.mpf) -> mp.mpf:
            u1, u2 = ends(a)
            return mp.ncdf((u1 - q / 2) / root) + mp.ncdf(-(u2 - q / 2) / root)

        low, high = mp.mpf(0), mp.mpf(1)
        while mass(high) > b:
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            if mass(middle) > b:
                low = middle
            else:
                high = middle
        u1, u2 = ends(low)
        z1, z2 = (u1 - q / 2) / root, (u2 - q / 2) / root

        def integrand(z: mp.mpf) -> mp.mpf:
            return hh(root * z + q / 2) * mp.npdf(z)

        left = mp.quad(integrand, [z1 - 60, z1 - 20, z1 - 8, z1 - 3, z1 - 1, z1])
        right = mp.quad(integrand, [z2, z2 + 1, z2 + 3, z2 + 8, z2 + 20, z2 + 60])
        return float(n * (left + right) / b)


def fixed_noise_half_width(n: int, k: int, beta: float, s: float) -> float:
    """Section 9 (iii): s zeta(beta) + sqrt(R(beta)/(2n))."""
    level = posterior_level(n, fixed_information(n, k, s), beta)
    return s * cvar_max_normal(k, beta) + math.sqrt(level / (2 * n))


# --- the inequality (*) ----------------------------------------------------------------------------------


def _h_array(u: Array) -> Array:
    """h on an array: series below .03 (relative error 1e-14), expm1 above."""
    small = np.abs(u) < 0.03
    x = np.where(small, u, 0.0)
    series = x * x * (1 / 2 - x * (1 / 6 - x * (1 / 24 - x * (1 / 120 - x * (1 / 720 - x * (1 / 5040 - x / 40320))))))
    with np.errstate(over="ignore"):
        direct = u + np.expm1(-np.minimum(np.where(small, 1.0, u), 1e300))
    return np.where(small, series, direct)


def _star_sides(N: Array, q: Array, c: float, B: float, theta_: float) -> tuple[Array, Array, Array]:
    left = _h_array(N + q / 2)
    quadratic = c * N * N / 2 + B * q
    tilted = _h_array(theta_ * N + theta_ * theta_ * q / 2)
    return left, quadratic, tilted


def _star_grid(theta_: float, qb_: float, size: int) -> tuple[Array, Array]:
    """Grid of (N, q): q in [0, qb], N over the tiny, the middle and the exponential region on both sides."""
    q = np.unique(np.concatenate([np.linspace(0.0, qb_, size), np.geomspace(qb_ * 1e-6, qb_, size // 3)]))
    magnitude = np.concatenate([np.geomspace(1e-7, 60.0, 2 * size), np.linspace(0.0, 12.0, 2 * size)])
    N = np.unique(np.concatenate([-magnitude, magnitude]))
    first, second = np.meshgrid(N, q, indexing="ij")
    # Add, for each q, points around the zero of the tilted h (N = -theta q / 2), where the A term vanishes.
    near = np.linspace(-1.5, 1.5, size)
    zero_q = np.repeat(q, near.size)
    zero_N = -theta_ * zero_q / 2 * (1 + np.tile(near, q.size))
    return np.concatenate([first.ravel(), zero_N]), np.concatenate([second.ravel(), zero_q])


def star_margin(c: float, B: float, A: float, theta: float, qb: float) -> float:
    """Section 10 (*): min over N and 0 <= q <= qb of (RHS - LHS)/(RHS + LHS); negative means violated.

    Dense grid (denser near N = -theta q/2, where the A term vanishes) and Nelder-Mead from its worst points.
    A search, not a proof: it can only miss violations. Beyond |N| = 60 both sides are ruled by their leading
    terms (A e^(theta x) against e^x; N^2 against N) once theta > 1.
    """

    def scaled(N: Array, q: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            left, quadratic, tilted = _star_sides(N, q, c, B, theta)
            right = quadratic + A * tilted
            value = np.where(right + left > 0, (right - left) / (right + left), 1.0)
        return np.where(np.isfinite(right), value, 1.0)

    N, q = _star_grid(theta, qb, 240)
    values = scaled(N, q)
    best = float(values.min())
    for index in np.argsort(values)[:: max(1, values.size // 200_000)][:12]:

        def local(point: Array) -> float:
            level = min(max(float(point[1]), 0.0), 1.0) * qb
            return float(scaled(np.array([point[0]]), np.array([level]))[0])

        start = np.array([N[index], q[index] / qb])
        found = optimize.minimize(
            local, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 600}
        )
        best = min(best, float(found.fun))
    return best


def star_smallest_A(c: float, B: float, theta: float, qb: float, size: int = 160) -> float:
    """Section 10 (*): the smallest A found to do, sup (LHS - c N^2/2 - B q) / h(theta N + theta^2 q/2).

    The same search as star_margin (grid, then Nelder-Mead from the worst points); +inf where the tilted term
    vanishes while the rest is violated.
    """

    def need(N: Array, q: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            left, quadratic, tilted = _star_sides(N, q, c, B, theta)
            gap = left - quadratic
            value = np.where(gap > 0, gap / tilted, 0.0)
        return np.where(np.isnan(value), 0.0, value)

    N, q = _star_grid(theta, qb, size)
    values = need(N, q)
    best = float(values.max())
    if not math.isfinite(best):
        return math.inf
    for index in np.argsort(values)[::-1][:3]:

        def local(point: Array) -> float:
            level = min(max(float(point[1]), 0.0), 1.0) * qb
            return -float(need(np.array([point[0]]), np.array([level]))[0])

        start = np.array([N[index], q[index] / qb])
        found = optimize.minimize(
            local, start, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-16, "maxiter": 400}
        )
        best = max(best, -float(found.fun))
    return best


# --- H and the interval ----------------------------------------------------------------------------------


def H(
    s: float,
    lam: float,
    info: float,
    c: float,
    B: float,
    A: float,
    theta: float,
    k: int,
    beta: float,
    strict: bool = True,
) -> float:
    """Section 10: H = min{joint CVaR, s C(M) + c C(Z^2) I/lam} + (2B + A theta^2/beta) I/lam."""
    joint = cvar_joint(s, c * info / lam, k, beta, strict)
    separate = s * cvar_max_normal(k, beta) + c * cvar_chi_square(beta) * info / lam
    return min(joint, separate) + (2 * B + A * theta * theta / beta) * info / lam


@lru_cache(maxsize=8)
def _counts(n: int) -> NDArray[np.longdouble]:
    return np.arange(n + 1, dtype=np.longdouble)


@lru_cache(maxsize=8)
def _log_choose(n: int) -> NDArray[np.longdouble]:
    """ln C(n, x) for x = 0..n in long double (accumulated error about 1e-13 at n = 1e6)."""
    x = _counts(n)[1:]
    steps = np.log((np.longdouble(n) - x + 1) / x)
    return np.concatenate([np.zeros(1, dtype=np.longdouble), np.cumsum(steps)])


@lru_cache(maxsize=8)
def _theta_grid(n: int, v0: float) -> Array:
    return theta_array(np.arange(n + 1) / n, v0)


def _log_mean_exp(P: float, n: int, rate: float, v0: float) -> float:
    """ln E exp(rate Theta(Bin(n,P)/n)), summing all n+1 terms in log space.

    The binomial's log mass is formed in long double (error about 1e-12 at n = 1e6), the sum in float64;
    e_+- are good to about 1e-15 + 1e-11/lam.
    """
    if P <= 0:
        return 0.0
    if P >= 1:
        return rate * float(_theta_grid(n, v0)[-1])
    p = np.longdouble(P)
    mass = _log_choose(n) + _counts(n) * (np.log(p) - np.log1p(-p)) + n * np.log1p(-p)
    terms = mass.astype(np.float64) + rate * _theta_grid(n, v0)
    top = float(terms.max())
    return top + math.log(float(np.sum(np.exp(terms - top))))


def e_plus(P: float, n: int, lam: float, v0: float) -> float:
    """Section 10: e_+(P) = ln E exp(lam Theta(Bin(n,P)/n)) / lam."""
    return _log_mean_exp(P, n, lam, v0) / lam


def e_minus(P: float, n: int, lam: float, v0: float) -> float:
    """Section 10: e_-(P) = -ln E exp(-lam Theta(Bin(n,P)/n)) / lam."""
    return -_log_mean_exp(P, n, -lam, v0) / lam


def e_plus_mp(P: float, n: int, lam: float, v0: float, sign: int = 1) -> float:
    """Section 10: e_+ (sign 1) or e_- (sign -1) in mpmath, term by term; for n up to a few thousand."""
    with mp.workdps(DIGITS):
        p, rate, v = mp.mpf(P), sign * mp.mpf(lam), mp.mpf(v0)
        total = mp.fsum(
            mp.binomial(n, x) * p**x * (1 - p) ** (n - x) * mp.exp(rate * _theta_mp(mp.mpf(x) / n, v))
            for x in range(n + 1)
        )
        return float(sign * mp.log(total) / lam)


def interval(y: float, n: int, lam: float, v0: float, H: float) -> tuple[float, float]:
    """Section 10: [e_+^-1(y - H), e_-^-1(y + H)] cut to [0,1], by bisection on P over the whole binomial."""

    def solve(plus: bool, level: float) -> float:
        function = e_plus if plus else e_minus
        if level <= function(0.0, n, lam, v0):
            return 0.0
        if level >= function(1.0, n, lam, v0):
            return 1.0
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            if function(middle, n, lam, v0) <= level:
                low = middle
            else:
                high = middle
            if high - low < 1e-13:
                break
        return low if plus else high

    return solve(True, y - H), solve(False, y + H)
