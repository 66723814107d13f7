"""What bounded information says about generalization: Section 3.2, its tail form, and the Main Theorem.

Throughout I(S; M(S)) <= n eps, psi = M(S) maps rows into [0, 1], S[psi] is its sample mean, P[psi] and sd(psi(P))
are its true mean and deviation, and tau > 0 is the deviation below which errors are not scaled any further.
The sharp forms all end in one function, the inverse of Bennett's h(x) = (1+x) ln(1+x) - x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.polynomial.polynomial import polyval
from numpy.typing import ArrayLike, NDArray

from afresh.theory.bernoulli import kl_upper, log_gap_each
from afresh.theory.extremes import quantile, tail
from afresh.theory.information import event_probability, log_threshold, require
from afresh.theory.stability import calibrated_charge

Floats = NDArray[np.float64]

_EXCESS = [0.0, 0.0, *(1 / math.factorial(j) for j in range(2, 13))]  # of e^u - 1 - u


def bennett(x: ArrayLike) -> Floats:
    """h(x) = (1+x) ln(1+x) - x for x >= 0: the convex conjugate of e^u - 1 - u."""
    x = np.asarray(x, dtype=np.float64)
    require(np.all(x >= 0.0), "x >= 0", x=x)
    near = np.minimum(x, 0.3)  # (1+x) (u - ln(1+u)) at u = -x/(1+x): nothing cancels
    value: Floats = np.where(x < 0.3, (1 + x) * log_gap_each(-near / (1 + near)), (1 + x) * np.log1p(x) - x)
    return value


def bennett_inverse(y: ArrayLike) -> Floats:
    """The x >= 0 with h(x) = y; inf over u > 0 of (y + e^u - 1 - u)/u."""
    y = np.asarray(y, dtype=np.float64)
    require(np.all((y >= 0.0) & (y < np.inf)), "0 <= y < inf", y=y)
    x = y / 3 + np.sqrt(y * y / 9 + 2 * y)  # Bernstein's bound: right of the root of a convex function
    for _ in range(60):
        with np.errstate(invalid="ignore"):  # 0/0 at y = 0, where x = 0 is the answer
            step = (bennett(x) - y) / np.log1p(x)
        step = np.where(step > 0.0, step, 0.0)
        x = np.maximum(x - step, 0.0)
        if np.all(step <= 1e-15 * x):
            break
    root: Floats = x
    return root


def bernstein_log_mgf_stated(lam: ArrayLike, tau: ArrayLike) -> Floats:
    """Lemma BernsteinMGF: ln E e^(lam Y) <= lam^2 if |Y| <= 1/tau, E Y = 0, E Y^2 <= 1 and 0 <= lam <= tau."""
    lam, tau = _scales(lam, tau)
    require(np.all(lam <= tau), "lam <= tau", lam=lam, tau=tau)
    return lam * lam


def bernstein_log_mgf(lam: ArrayLike, tau: ArrayLike) -> Floats:
    """Lemma BernsteinMGF before it is rounded: tau^2 (e^(lam/tau) - 1 - lam/tau), for every lam >= 0."""
    lam, tau = _scales(lam, tau)
    u = lam / tau
    return tau * tau * np.where(u < 0.1, polyval(np.minimum(u, 0.1), _EXCESS), np.expm1(u) - u)


def worst_log_mgf(lam: ArrayLike, tau: ArrayLike) -> Floats:
    """The largest ln E e^(lam Y) under Lemma BernsteinMGF's hypotheses, attained by two points (Bennett 1962).

    tau <= 1: 1/tau with probability tau^2/(1+tau^2), else -tau. tau > 1: +-1/tau, since then E Y^2 <= 1/tau^2.
    """
    lam, tau = _scales(lam, tau)
    b = np.minimum(tau, 1.0)
    up, down = lam / tau, -lam * np.where(tau <= 1.0, tau, 1 / tau)
    worst: Floats = np.logaddexp(up + 2 * np.log(b), down) - np.log1p(b * b)
    return worst


def bounded_log_mgf_stated(s: ArrayLike, mean: ArrayLike) -> Floats:
    """Eq. BernsteinMGF-first: ln E e^(sX) <= 2 s E X for X in [0, 1] and 0 <= s <= 1."""
    s, mean = np.asarray(s, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    require(np.all((s >= 0.0) & (s <= 1.0)), "0 <= s <= 1", s=s)
    require(np.all((mean >= 0.0) & (mean <= 1.0)), "0 <= mean <= 1", mean=mean)
    value: Floats = 2 * s * mean
    return value


def bounded_log_mgf(s: ArrayLike, mean: ArrayLike) -> Floats:
    """Eq. BernsteinMGF-first before it is rounded: ln(1 + (e^s - 1) E X), attained by 0/1, for every real s."""
    s, mean = np.asarray(s, dtype=np.float64), np.asarray(mean, dtype=np.float64)
    require(np.all((mean >= 0.0) & (mean <= 1.0)), "0 <= mean <= 1", mean=mean)
    value: Floats = np.log1p(np.expm1(s) * mean)
    return value


def expected_error_stated(eps: ArrayLike, tau: ArrayLike) -> Floats:
    """Prop. gen: E (S[psi] - P[psi])/max(sd, tau) <= 2 sqrt(eps) if sqrt(eps) <= tau, else eps/tau + tau."""
    eps, tau = _stability(eps, tau)
    return np.where(eps <= tau * tau, 2 * np.sqrt(eps), eps / tau + tau)


def expected_error(eps: ArrayLike, tau: ArrayLike) -> Floats:
    """Prop. gen with the sharp exponent: inf_u (eps + tau^2 (e^(u/tau) - 1 - u/tau))/u = tau h^-1(eps/tau^2)."""
    eps, tau = _stability(eps, tau)
    return tau * bennett_inverse(eps / (tau * tau))


def expected_absolute_error(eps: ArrayLike, tau: ArrayLike, n: int) -> Floats:
    """E |S[psi] - P[psi]|/max(sd, tau) <= tau h^-1((eps + ln(2)/n)/tau^2): Prop. gen for the absolute value (ours).

    E e^(lam |Y|) <= E e^(lam Y) + E e^(-lam Y) costs ln 2 in the proof of Prop. gen, and nothing else changes.
    """
    require(n >= 1, "n >= 1", n=n)
    return expected_error(np.asarray(eps) + math.log(2) / n, tau)


def variance_ratio_stated(eps: ArrayLike, tau: ArrayLike) -> Floats:
    """Prop. gen-emp: E (sd(psi(S))/max(sd(psi(P)), tau))^2 <= 2 + eps/tau^2."""
    eps, tau = _stability(eps, tau)
    return 2 + eps / (tau * tau)


def variance_ratio(eps: ArrayLike, tau: ArrayLike) -> Floats:
    """Prop. gen-emp with e^s - 1 for 2s: inf_s (eps/tau^2 + e^s - 1)/s = 1 + h^-1(eps/tau^2)."""
    eps, tau = _stability(eps, tau)
    return 1 + bennett_inverse(eps / (tau * tau))


def monitor_errors_stated(eps: ArrayLike) -> tuple[Floats, Floats]:
    """Lemma generrtrue, tau = sqrt(eps): (2 sqrt(eps), 3), the bounds on |E scaled error| and E variance ratio."""
    tau = np.sqrt(np.asarray(eps, dtype=np.float64))
    return expected_error_stated(eps, tau), variance_ratio_stated(eps, tau)


def monitor_errors(eps: ArrayLike) -> tuple[Floats, Floats]:
    """Lemma generrtrue with sharp constants: ((e-1) sqrt(eps), e), because h(e-1) = 1."""
    tau = np.sqrt(np.asarray(eps, dtype=np.float64))
    return expected_error(eps, tau), variance_ratio(eps, tau)


def pac_bayes(empirical: ArrayLike, information: ArrayLike, n: int, lam: float) -> Floats:
    """McAllester's Theorem 3: E P[psi] <= (E S[psi] + (lam/n) I)/(1 - 1/(2 lam)), for lam > 1/2."""
    empirical, x = _loss(empirical, information, n)
    require(lam > 0.5, "lam > 1/2", lam=lam)
    return (empirical + lam * x) / (1 - 1 / (2 * lam))


def pac_bayes_best(empirical: ArrayLike, information: ArrayLike, n: int) -> Floats:
    """The same at its best lam: E S[psi] + x + sqrt(x^2 + 2 x E S[psi]) with x = I/n."""
    empirical, x = _loss(empirical, information, n)
    return empirical + x + np.sqrt(x * (x + 2 * empirical))


def pac_bayes_kl(empirical: float, information: float, n: int) -> float:
    """n kl(E S[psi] || E P[psi]) <= I, which implies both: the largest E P[psi] it allows. Errs upward.

    For a random row i and a coin of bias psi(S_i), data processing gives kl <= mean_i I(S_i; psi) <= I/n.
    """
    _loss(empirical, information, n)
    return kl_upper(empirical, information / n)


def deviation_probability_stated(t: ArrayLike, tau: ArrayLike, eps: ArrayLike, n: int) -> Floats:
    """Section 'events': Pr((S[psi] - P[psi])/max(sd, tau) > t) <= (2 + (2/3) t/tau)/t^2 (eps + ln(2)/n)."""
    eps, tau = _stability(eps, tau)
    t = np.asarray(t, dtype=np.float64)
    require(n >= 1 and np.all(t > 0.0), "n >= 1 and t > 0", n=n, t=t)
    value: Floats = (2 + 2 * t / (3 * tau)) / (t * t) * (eps + math.log(2) / n)
    return value


def deviation_probability(t: ArrayLike, tau: ArrayLike, eps: ArrayLike, n: int) -> Floats:
    """The same by Bennett's inequality, fresh probability <= exp(-n tau^2 h(t/tau)), and the exact kl inversion."""
    eps, tau = _stability(eps, tau)
    t = np.asarray(t, dtype=np.float64)
    require(n >= 1 and np.all(t > 0.0), "n >= 1 and t > 0", n=n, t=t)
    return event_probability(n * tau * tau * bennett(t / tau), n * eps)


def error_factor_stated(failure: float, tau: float, n: int) -> float:
    """Section 'events', eps = tau^2 >= 1/n: (S[psi] - P[psi])/max(tau sd, tau^2) <= 3/beta but for probability beta."""
    require(0.0 < failure <= 1.0, "0 < failure <= 1", failure=failure)
    require(n * tau * tau >= 1.0, "tau^2 >= 1/n", n=n, tau=tau)
    return 3 / failure


def error_factor(failure: float, tau: float, eps: float, n: int) -> float:
    """The sharp factor in place of 3/beta, for any eps and tau: h^-1(L(beta, n eps)/(n tau^2))."""
    _stability(eps, tau)
    require(n >= 1, "n >= 1", n=n)
    return float(bennett_inverse(log_threshold(failure, n * eps) / (n * tau * tau)))


def largest_square_stated(k: int) -> float:
    """Lemma gaussmax: E max(xi_1^2, ..., xi_k^2) <= 2 ln(2k)."""
    require(k >= 1, "k >= 1", k=k)
    return 2 * math.log(2 * k)


@lru_cache(maxsize=256)
def largest_square(k: int) -> float:
    """E max(xi_1^2, ..., xi_k^2) itself, by quadrature of 2 m Pr(max |xi| > m), to 1e-12."""
    require(k >= 1, "k >= 1", k=k)
    least, most = quantile(k, 1 - 1e-15) if k > 1 else 0.0, quantile(k, 1e-15)
    edges = np.concatenate([[0.0], np.linspace(least, most, 17), [most + 4.0, most + 12.0]])
    nodes, weights = leggauss(24)
    half = np.diff(edges)[:, None] / 2
    m = edges[:-1, None] + half * (nodes + 1)
    return float((half * weights * 2 * m * tail(k, m)).sum())


@dataclass(frozen=True, slots=True)
class MainTheorem:
    """The Main Theorem's parameters: T = n^2/k, t = n sqrt(2 ln(2k)/k), tau^2 = k t/n^2 = t/T = sqrt(2k ln(2k))/n."""

    n: int
    k: int

    def __post_init__(self) -> None:
        """Refuse impossible parameters; `bound` checks the proof's own regime."""
        require(self.n >= 2 and self.k >= 1, "n >= 2 and k >= 1", n=self.n, k=self.k)

    @property
    def T(self) -> float:
        """T: one over the noise floor."""
        return self.n**2 / self.k

    @property
    def t(self) -> float:
        """t: the noise variance is sigma^2/t above the floor."""
        return self.n * math.sqrt(2 * math.log(2 * self.k) / self.k)

    @property
    def tau(self) -> float:
        """tau: E max_j |v_j - P[psi_j]|/max(tau sd, tau^2) is what is bounded."""
        return math.sqrt(math.sqrt(2 * self.k * math.log(2 * self.k)) / self.n)

    @property
    def bound(self) -> float:
        """4, for n, k >= 20."""
        require(self.n >= 20 and self.k >= 20, "n >= 20 and k >= 20", n=self.n, k=self.k)
        return 4.0

    @property
    def sharp_bound(self) -> float:
        """The proof with nothing rounded, for every n >= 2 and k >= 1: x + sqrt((2 + x) G / (2 ln(2k))).

        x = h^-1(k B/tau^2) with the exact charge B of Prop. M bounds both the scaled generalization error and the
        variance ratio less one; G = E max xi^2.
        """
        x = float(bennett_inverse(self.k * calibrated_charge(self.t, self.T, self.n) / self.tau**2))
        return x + math.sqrt((2 + x) * largest_square(self.k) / largest_square_stated(self.k))

    def error(self, failure: float, sd: float) -> float:
        """Eq. (3) with the sharp bound for 4: (bound/beta) max(tau sd, tau^2), by Markov's inequality."""
        require(0.0 < failure <= 1.0 and sd >= 0.0, "0 < failure <= 1 and sd >= 0", failure=failure, sd=sd)
        return self.sharp_bound / failure * max(self.tau * sd, self.tau**2)


def _scales(lam: ArrayLike, tau: ArrayLike) -> tuple[Floats, Floats]:
    lam, tau = np.asarray(lam, dtype=np.float64), np.asarray(tau, dtype=np.float64)
    require(np.all(lam >= 0.0) and np.all(tau > 0.0), "lam >= 0 and tau > 0", lam=lam, tau=tau)
    return lam, tau


def _stability(eps: ArrayLike, tau: ArrayLike) -> tuple[Floats, Floats]:
    eps, tau = np.asarray(eps, dtype=np.float64), np.asarray(tau, dtype=np.float64)
    require(np.all(eps >= 0.0) and np.all(tau > 0.0), "eps >= 0 and tau > 0", eps=eps, tau=tau)
    return eps, tau


def _loss(empirical: ArrayLike, information: ArrayLike, n: int) -> tuple[Floats, Floats]:
    empirical, nats = np.asarray(empirical, dtype=np.float64), np.asarray(information, dtype=np.float64)
    require(np.all((empirical >= 0.0) & (empirical <= 1.0)), "0 <= empirical <= 1", empirical=empirical)
    require(n >= 1 and np.all(nats >= 0.0), "n >= 1 and information >= 0", n=n, information=information)
    return empirical, nats / n
