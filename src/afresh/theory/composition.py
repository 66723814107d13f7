"""How charges add up: composition, a filter, an odometer, and what foreign analyses are charged.

Stability adds under adaptive composition (Lemma composition; Lemma mis-comp for mutual-information stability).
By the chain rule the whole interaction on a sample s has average leave-one-out KL at most the expected sum of
the charges, so if query, charge and stopping are functions of the transcript so far, a hard limit on the sum is
a hard limit on the stability. It fails as soon as a stop, a refusal or a charge depends on the rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from afresh.errors import InvalidArgument


def compose(charges: Iterable[float]) -> float:
    """Lemma composition and Lemma mis-comp: the sum of the charges, rounded up."""
    parts = [_charge(c) for c in charges]
    total = math.fsum(parts)
    return math.nextafter(total, math.inf) if math.fsum([*parts, -total]) > 0 else total


def on_some_rows(charge: float, rows: int, n: int) -> float:
    """An analysis of m public rows of n, `charge`-stable on those: its terms average to charge m/n over all n."""
    if not 0 <= rows <= n or n < 1:
        raise InvalidArgument(f"rows == {rows}, must be from 0 to n == {n}.")
    return _charge(charge) * (rows / n)


@dataclass(frozen=True, slots=True)
class Filter:
    """A hard limit on adaptively chosen charges: an interaction that it admits is `cap`-stable.

    `spent` is exact, so if `compose` made the cap from k charges, all k are admitted.
    """

    cap: float
    spent: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        """Refuse a cap that limits nothing."""
        _charge(self.cap, "cap")

    def admits(self, charge: float) -> bool:
        """Whether an answer with this charge may still be released; check it before computing the answer."""
        return self.spent + Fraction(_charge(charge)) <= Fraction(self.cap)

    def after(self, charge: float) -> Filter:
        """The filter after an answer with this charge was released."""
        if not self.admits(charge):
            raise InvalidArgument(
                f"charge == {charge}: spent + charge <= cap would fail, with {float(self.spent)} of {self.cap} spent."
            )
        return Filter(self.cap, self.spent + Fraction(charge))

    @property
    def left(self) -> float:
        """What may still be spent, rounded down."""
        exact = Fraction(self.cap) - self.spent
        left = float(exact)
        return left if left <= exact else math.nextafter(left, 0.0)


@dataclass(frozen=True, slots=True)
class Odometer:
    """Charges without a cap fixed in advance: levels base, base*ratio, base*ratio^2, ..., each a filter.

    The transcript up to the last answer that keeps the sum within level m is `level(m)`-stable. So a statement
    made while the sum is within level m may use that cap with failure probability failure * share(m), and all
    statements ever made hold together with probability 1 - failure, by a union over the levels.
    """

    base: float
    ratio: float = 2.0

    def __post_init__(self) -> None:
        """Refuse levels that do not grow."""
        if not (0.0 < self.base < math.inf and 1.0 < self.ratio < math.inf):
            raise InvalidArgument(f"base == {self.base}, ratio == {self.ratio}: needs base > 0 and ratio > 1.")

    def level(self, m: int) -> float:
        """The stability cap of level m: base ratio^m."""
        return self.base * self.ratio**m

    def share(self, m: int) -> float:
        """The share of the failure probability that level m may use: 6 / (pi^2 (m+1)^2), which sum to 1."""
        return 6 / (math.pi * (m + 1)) ** 2

    def reading(self, charges: Iterable[float]) -> int:
        """The level in force after these charges: the least m whose cap their sum does not exceed."""
        total, m = compose(charges), 0
        while self.level(m) < total:
            m += 1
        return m


def from_kl_stability(eps: float) -> float:
    """D(M(s) || M(s')) <= eps for neighbours s, s' gives eps (the Corollary after Def. klas)."""
    return _charge(eps, "eps")


def from_pure_dp(eps: float) -> float:
    """Pure eps-differential privacy gives KL <= eps tanh(eps/2) <= eps^2/2, attained by randomised response.

    The likelihood ratio lies in [e^-eps, e^eps] with mean 1 and r ln r is convex, so the two ends are worst.
    """
    return _charge(eps, "eps") * math.tanh(eps / 2)


def from_zcdp(rho: float, xi: float = 0.0, delta: float = 0.0) -> float:
    """(xi, rho)-zero-concentrated privacy, D_a <= xi + rho a for all a > 1, gives KL <= xi + rho (a -> 1)."""
    if delta != 0.0:
        raise InvalidArgument(f"delta == {delta}: approximate zCDP bounds no KL divergence; needs delta == 0.")
    return _charge(rho, "rho") + _charge(xi, "xi")


def from_renyi(orders: ArrayLike, eps: ArrayLike) -> float:
    """(a, eps)-Renyi privacy with a >= 1 gives KL <= eps, since D_a grows with a; the least of several pairs.

    Order infinity is pure privacy.
    """
    a, e = np.broadcast_arrays(*(np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in (orders, eps)))
    if not (a >= 1).all():
        raise InvalidArgument(f"orders == {orders!r}: an order below 1 bounds no KL divergence; needs orders >= 1.")
    return min(from_pure_dp(x) if math.isinf(o) else _charge(x, "eps") for o, x in zip(a.flat, e.flat, strict=True))


def from_approximate_dp(eps: float, delta: float) -> float:
    """(eps, delta)-privacy gives a finite KL only if delta = 0: with delta > 0 the rows may be printed whole."""
    if delta != 0.0:
        raise InvalidArgument(
            f"delta == {delta}: (eps, delta)-privacy with delta > 0 bounds no KL divergence; needs delta == 0."
        )
    return from_pure_dp(eps)


def _charge(value: float, name: str = "charge") -> float:
    if not 0.0 <= value < math.inf:
        raise InvalidArgument(f"{name} == {value}, must be >= 0 and finite.")
    return value
