"""Independent optimisers for the plans of guarantees.md section 8 (calibrated) and section 10 (stabilised).

The search uses quick float64 objectives; the numbers reported are re-evaluated with calibrated.py and
stabilized.py, so a sloppy search can only give a slightly wider plan, never a wrong width.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from . import calibrated, stabilized

Array = NDArray[np.float64]
MEANS = (0.5, 0.1, 0.01)


@dataclass(frozen=True)
class CalibratedPlan:
    """Parameters of Figure 1 and half-widths (hi - lo)/2 at v = .5, .1, .01."""

    n: int
    k: int
    beta: float
    t: float
    T: float
    b2: float
    half_widths: tuple[float, float, float]


@dataclass(frozen=True)
class StabilizedPlan:
    """Parameters of section 10 and half-widths (hi - lo)/2 at y = Theta(.5), Theta(.1), Theta(.01)."""

    n: int
    k: int
    beta: float
    v0: float
    s: float
    lam: float
    eps: float
    theta: float
    A: float
    B: float
    info: float
    qb: float
    H: float
    half_widths: tuple[float, float, float]


def geometric_mean(values: tuple[float, ...]) -> float:
    """Section 11's default figure of merit."""
    return math.exp(sum(math.log(x) for x in values) / len(values))


# --- calibrated ------------------------------------------------------------------------------------------


def _kl(p: float, q: float) -> float:
    left = p * math.log(p / q) if p > 0 else 0.0
    return left + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def _quick_half(n: int, k: int, beta: float, t: float, T: float, share: float) -> float:
    """Half-width at p = 1/2 in float64: section 6's closed forms, L by (I + h(b1))/b1."""
    b2 = beta * share
    b1 = beta - b2
    g = T * n / (t * (n - 1) ** 2)
    charge = (2 * t + T / t * (n / (n - 1)) ** 2 * (1 + g / 3)) * (1 + g) / (4 * (n - 1) ** 2)
    level = (n * k * charge - b1 * math.log(b1) - (1 - b1) * math.log1p(-b1)) / b1 / n
    tail = -math.expm1(math.log1p(-b2) / k)
    z = -float(special.ndtri(tail / 2))
    c = z * z / t
    m = max(0.5 + z / math.sqrt(T), (1 + c + math.sqrt(c * c + c)) / (2 * (1 + c)))
    if m >= 1 or _kl(m, 1 - 1e-15) <= level:
        return 0.5
    root = optimize.brentq(lambda q: _kl(m, q) - level, m, 1 - 1e-15, xtol=1e-14)
    return float(root) - 0.5


def plan_calibrated(n: int, k: int, beta: float, ratio: float = 0.1) -> CalibratedPlan:
    """Section 8: t and b2 best at p = 1/2, with T = ratio t^2 (0.1: the charge rises by 5 %)."""

    def objective(point: Array) -> float:
        t = math.exp(min(max(float(point[0]), 0.0), 40.0))
        share = 1 / (1 + math.exp(-min(max(float(point[1]), -30.0), 30.0)))
        return _quick_half(n, k, beta, t, ratio * t * t, share)

    best = (math.inf, 0.0, 0.0)
    for start in (0.1, 0.3, 1.0, 3.0):
        guess = np.array([math.log(start * n / math.sqrt(k)), math.log(0.1)])
        found = optimize.minimize(
            objective, guess, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-13, "maxiter": 2000}
        )
        if found.fun < best[0]:
            best = (float(found.fun), float(found.x[0]), float(found.x[1]))
    t = math.exp(best[1])
    b2 = beta / (1 + math.exp(-best[2]))
    T = ratio * t * t
    first, second, third = (calibrated.half_width(p, n, k, beta, b2, t, T) for p in MEANS)
    return CalibratedPlan(n, k, beta, t, T, b2, (first, second, third))


# --- stabilised ------------------------------------------------------------------------------------------


def quick_A(eps: float, theta: float, qb: float) -> float:
    """The smallest A for (*) on the only region that needs it: x = -(N + q/2) >= 3(1 - 1/c), 0 <= q <= qb.

    Grid of (x, q) with three zooms; above x = 40 the ratio is falling once theta > 1.
    """
    c = 1 + eps
    B = (1 + 1 / eps) * qb / 8
    box = (3 * (1 - 1 / c), 40.0, 0.0, qb)
    best = 0.0
    size = (600, 25)
    for zoom in range(4):
        x = np.geomspace(box[0], box[1], size[0]) if zoom == 0 else np.linspace(box[0], box[1], size[0])
        q = np.linspace(box[2], box[3], size[1])
        xx, qq = np.meshgrid(x, q, indexing="ij")
        gap = np.expm1(xx) - xx - c * (xx + qq / 2) ** 2 / 2 - B * qq
        y = np.minimum(theta * xx - theta * (theta - 1) * qq / 2, 600.0)
        tilted = stabilized._h_array(-y)
        with np.errstate(divide="ignore", invalid="ignore"):
            need = np.where(gap > 0, gap / tilted, 0.0)
        if np.any((gap[:-1] > 0) & (gap[1:] > 0) & (y[:-1] <= 0) & (y[1:] >= 0)):
            return math.inf  # the A term vanishes while the rest is violated
        index = np.unravel_index(int(np.argmax(need)), need.shape)
        best = max(best, float(need[index]))
        i, j = int(index[0]), int(index[1])
        box = (
            float(x[max(i - 1, 0)]),
            float(x[min(i + 1, len(x) - 1)]),
            float(q[max(j - 1, 0)]),
            float(q[min(j + 1, len(q) - 1)]),
        )
        size = (60, 11)
    return best


def star_constants(qb: float, beta: float, weight: float) -> tuple[float, float, float]:
    """(eps, theta, A) minimising weight * eps + 2B + A theta^2/beta; A is 1.003 times the least found."""

    def cost(point: Array) -> float:
        eps, theta = math.exp(min(float(point[0]), 8.0)), 1 + math.exp(min(float(point[1]), 8.0))
        A = 1.003 * quick_A(eps, theta, qb)
        return min(weight * eps + (1 + 1 / eps) * qb / 4 + A * theta * theta / beta, 1e9)

    best: tuple[float, Array] = (math.inf, np.zeros(2))
    root = math.sqrt(qb)
    for eps0, theta0 in ((0.5 * root, 2.5 / root), (root / 3, 1.5 / root), (0.2, 6.0)):
        guess = np.log(np.array([eps0, theta0]))
        found = optimize.minimize(
            cost, guess, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-7, "maxiter": 160}
        )
        if found.fun < best[0]:
            best = (float(found.fun), np.asarray(found.x, dtype=np.float64))
    eps, theta = math.exp(float(best[1][0])), 1 + math.exp(float(best[1][1]))
    return eps, theta, 1.003 * quick_A(eps, theta, qb)


def quick_interval_half(p: float, n: int, lam: float, v0: float, H: float) -> float:
    """(hi - lo)/2 at y = Theta(p), the same equations as stabilized.interval by Brent's method (1e-9)."""
    y = stabilized.theta(p, v0)

    def solve(plus: bool, level: float) -> float:
        function = stabilized.e_plus if plus else stabilized.e_minus
        if level <= 0:
            return 0.0
        if level >= stabilized.theta(1.0, v0):
            return 1.0
        return float(optimize.brentq(lambda P: function(P, n, lam, v0) - level, 0.0, 1.0, xtol=1e-10))

    return (solve(False, y + H) - solve(True, y - H)) / 2


class QuickJoint:
    """A fast joint CVaR for the search only (fixed nodes over the bulk of M; relative error about 1e-6)."""

    def __init__(self, k: int, beta: float) -> None:
        self.beta = beta
        low = 0.0 if k < 20 else math.sqrt(2) * float(special.erfinv(math.exp(-30.0 / k)))
        self.m, weights = stabilized._panels(low, 11.0, 12, 20)
        self.weight = weights * stabilized._max_density(self.m, k)
        self.factor = 1 + ((math.pi / 2) * self.m**2 - 1) / k

    def __call__(self, s: float, kappa: float) -> float:
        """Return C_beta(s M + kappa f(M) Z^2) by Rockafellar-Uryasev."""
        scale = kappa * self.factor
        base = self.weight * scale

        def objective(w: float) -> float:
            return w + float(np.dot(base, stabilized._square_excess((w - s * self.m) / scale))) / self.beta

        top = 7 * s + 40 * kappa
        found = optimize.minimize_scalar(objective, bounds=(0.0, top), method="bounded", options={"xatol": 1e-5 * top})
        return float(found.fun)


def plan_stabilized_at(n: int, k: int, beta: float, v0: float, exact: bool = True) -> StabilizedPlan:
    """Section 10: s, lam, eps, theta (and the least A) minimising H + lam/(8n) for a given floor v0."""
    z2 = stabilized.cvar_chi_square(beta)
    zm = stabilized.cvar_max_normal(k, beta)
    G = stabilized.constant_G(n, v0)
    joint = QuickJoint(k, beta)

    def info_of(noise: float) -> float:
        return k * G * n / (8 * (n - 1) ** 2 * noise**2)

    def objective(point: Array) -> float:
        s, lam, eps, theta_less_1 = (math.exp(min(max(float(x), -30.0), 20.0)) for x in point)
        info = info_of(s)
        qb, theta = stabilized.qb(n, info, v0), 1 + theta_less_1
        if qb > 30:
            return 1e6 * qb
        A = 1.003 * quick_A(eps, theta, qb)
        if not math.isfinite(A):
            return 1e6
        kappa = (1 + eps) * info / lam
        H = min(joint(s, kappa), s * zm + kappa * z2)
        H += ((1 + 1 / eps) * qb / 4 + A * theta * theta / beta) * info / lam
        return H + max(lam, 1 / math.sqrt(v0)) / (8 * n)

    # Start: s C(M) + 2 sqrt(I c C(Z^2) / (8n)), optimised in closed form for c = 1.2.
    s = math.sqrt(math.sqrt(info_of(1.0) * 1.2 * z2 / (2 * n)) / zm)
    eps, theta, _ = star_constants(stabilized.qb(n, info_of(s), v0), beta, z2)
    lam = math.sqrt(8 * n * info_of(s) * (1 + eps) * z2)
    point = np.log(np.array([s, lam, eps, theta - 1]))
    for _ in range(3):
        found = optimize.minimize(
            objective, point, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-9, "maxiter": 400}
        )
        point = np.asarray(found.x, dtype=np.float64)
    s, lam, eps, theta = math.exp(point[0]), math.exp(point[1]), math.exp(point[2]), 1 + math.exp(point[3])
    lam = max(lam, 1 / math.sqrt(v0))
    info = stabilized.information(n, k, s, v0)
    qb = stabilized.qb(n, info, v0)
    A = 1.003 * quick_A(eps, theta, qb)
    B = stabilized.constant_B(eps, qb)
    H = stabilized.H(s, lam, info, 1 + eps, B, A, theta, k, beta)
    if exact:
        first, second, third = (quick_interval_half(p, n, lam, v0, H) for p in MEANS)
    else:
        first = second = third = H + lam / (8 * n)
    return StabilizedPlan(n, k, beta, v0, s, lam, eps, theta, A, B, info, qb, H, (first, second, third))


def plan_stabilized(n: int, k: int, beta: float, v0: float | None = None) -> StabilizedPlan:
    """Section 10: the plan; without v0, by the geometric mean at p = .5, .1, .01 (section 11's rule)."""
    if v0 is not None:
        return plan_stabilized_at(n, k, beta, v0)
    plans: dict[float, StabilizedPlan] = {}

    def merit(log_v0: float) -> float:
        value = math.exp(log_v0)
        plans[value] = plan_stabilized_at(n, k, beta, value)
        return geometric_mean(plans[value].half_widths)

    low, high = math.log(max(3 / (n - 1), 2e-3)), math.log(0.12)  # the merit is unimodal, its best near .01
    optimize.minimize_scalar(merit, bounds=(low, high), method="bounded", options={"xatol": 0.03})
    return min(plans.values(), key=lambda plan: geometric_mean(plan.half_widths))
