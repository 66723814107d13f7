import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import ncx2

from afresh.errors import InvalidArgument
from afresh.theory.paper.generalization import MainTheorem
from afresh.theory.privacy import (
    calibrated_epsilon,
    calibrated_renyi,
    fixed_noise_shift,
    floor_shift,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_renyi,
    stabilized_shift,
)
from afresh.theory.transform import Transform

shifts = st.floats(-3, 1.5).map(lambda x: 10.0**x)


@given(st.floats(0, 60), shifts)
def test_profile_against_mpmath(eps: float, m: float) -> None:
    with mp.workdps(60):
        e, s = mp.mpf(eps), mp.mpf(m)
        exact = mp.ncdf(s / 2 - e / s) - mp.exp(e) * mp.ncdf(-s / 2 - e / s)
    assume(exact > 1e-290)
    assert float(gaussian_delta(eps, m)) == pytest.approx(float(exact), rel=1e-9)


def test_profile_is_the_largest_gap_of_two_gaussians() -> None:
    """delta(eps) = E max(dP - e^eps dQ, 0), by quadrature."""
    x = np.linspace(-12, 16, 400_001)
    for eps, m in ((0.0, 1.0), (0.7, 0.5), (3.0, 2.0)):
        first, second = (np.exp(-((x - c) ** 2) / 2) / math.sqrt(2 * math.pi) for c in (m, 0.0))
        gap = np.trapezoid(np.maximum(first - math.exp(eps) * second, 0.0), x)
        assert gap == pytest.approx(float(gaussian_delta(eps, m)), abs=1e-8)


@given(st.floats(-12, -0.5).map(lambda x: 10.0**x), shifts)
def test_epsilon_inverts_delta(delta: float, m: float) -> None:
    eps = gaussian_epsilon(delta, m)
    assert float(gaussian_delta(eps, m)) <= delta * (1 + 1e-9)
    if eps > 0:
        assert float(gaussian_delta(eps * (1 - 1e-6), m)) >= delta * (1 - 1e-9)


@pytest.mark.parametrize(("n", "v0"), [(10, 0.25), (50, 0.03), (1000, 0.005), (1000, 0.0011)])
def test_one_row_moves_theta_by_no_more(n: int, v0: float) -> None:
    """Every mean and a change of 1/n, where Theta is steepest: the shift is attained."""
    theta = Transform(v0)
    mean = np.linspace(0, 1 - 1 / n, 20_001)
    largest = (theta(mean + 1 / n) - theta(mean)).max()
    assert largest == pytest.approx(stabilized_shift(n, 1, 1.0, v0), rel=1e-9)


@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.floats(-2, 3), st.floats(-2, 3), st.floats(-3, 2))
def test_renyi_of_one_calibrated_answer(seed: int, n: int, log_t: float, log_big_t: float, log_order: float) -> None:
    """Random neighbours, most with values 0 and 1: the divergence of their answers is below the bound."""
    rng = np.random.default_rng(seed)
    t, big_t, alpha = 10.0**log_t, 10.0**log_big_t, 1 + 10.0**log_order
    values = rng.random(n) ** rng.choice([1.0, 20.0])
    values = np.round(values) if rng.random() < 0.7 else values
    other = values.copy()
    other[0] = rng.choice([0.0, 1.0, rng.random()])
    spread, wide = (max(x.var() / t, 1 / big_t) for x in (values, other))
    shift = (values.mean() - other.mean()) / math.sqrt(wide)
    exact = float(gaussian_renyi(alpha, shift, spread / wide))
    assert exact <= float(calibrated_renyi(alpha, n, 1, t, big_t)) * (1 + 1e-9) + 1e-12


def test_renyi_by_quadrature() -> None:
    x = np.linspace(-30, 30, 400_001)
    for alpha, shift, ratio in ((2.0, 0.7, 1.3), (5.0, 0.2, 0.6), (1.5, 1.0, 1.0)):
        log_p = -((x - shift) ** 2) / (2 * ratio) - math.log(2 * math.pi * ratio) / 2
        log_q = -(x**2) / 2 - math.log(2 * math.pi) / 2
        exact = math.log(np.trapezoid(np.exp(alpha * log_p + (1 - alpha) * log_q), x)) / (alpha - 1)
        assert float(gaussian_renyi(alpha, shift, ratio)) == pytest.approx(exact, rel=1e-9)
    assert float(gaussian_renyi(3.0, 0.0, 1.5)) == math.inf


def neighbours(plan: MainTheorem) -> tuple[float, float]:
    """Two 0/1 samples that differ in one row, the first time the variance exceeds the floor: shift and ratio."""
    variance = np.arange(plan.n + 1) / plan.n * (1 - np.arange(plan.n + 1) / plan.n)
    ones = int(np.argmax(variance / plan.t >= 1 / plan.T))
    return math.sqrt(plan.t / variance[ones]) / plan.n, variance[ones + 1] / variance[ones]


def exact_delta(eps: float, k: int, shift: float, ratio: float) -> float:
    """delta(eps) of k answers N(shift, ratio) against k answers N(0, 1).

    The log-likelihood ratio of one is rho/(2 ratio) (x + shift/rho)^2 - shift^2/(2 rho) - ln(ratio)/2 with
    rho = ratio - 1, so that of k is a noncentral chi-square, scaled and moved, under either law.
    """
    rho = ratio - 1
    cut = (eps + k * math.log(ratio) / 2 + k * shift**2 / (2 * rho)) * 2 * ratio / rho
    real = ncx2.sf(cut / ratio, k, k * shift**2 * ratio / rho**2)
    other = ncx2.sf(cut, k, k * shift**2 / rho**2)
    return float(real - math.exp(eps) * other)


@pytest.mark.parametrize(("n", "k"), [(10**3, 20), (10**4, 100), (10**5, 1000)])
def test_calibrated_epsilon_against_real_neighbours(n: int, k: int) -> None:
    """At the Main Theorem's parameters: the floor's own profile is not enough, and the Renyi bound is."""
    plan = MainTheorem(n, k)
    assert floor_shift(n, k, plan.T) == pytest.approx(1.0, rel=1e-12)
    for delta in (1e-2, 1e-4, 1e-6):
        floor, proved = gaussian_epsilon(delta, 1.0), calibrated_epsilon(delta, n, k, plan.t, plan.T)
        assert floor < proved < 1.5 * floor + 0.3
        assert exact_delta(proved, k, *neighbours(plan)) <= delta
        assert exact_delta(floor, k, *neighbours(plan)) > delta


def test_the_footnote() -> None:
    """eps = O(sqrt(ln 1/delta)) down to delta = k^-Omega(k): with k = 1000, eps^2 / ln(1/delta) stays below 5."""
    plan = MainTheorem(10**5, 1000)
    for exponent in (3, 6, 12, 50, 100, 300):
        eps = calibrated_epsilon(10.0**-exponent, plan.n, plan.k, plan.t, plan.T)
        assert 1.5 < eps**2 / (exponent * math.log(10)) < 5


def test_hypotheses_are_named() -> None:
    for call, name in (
        (lambda: gaussian_delta(-1.0, 1.0), "eps >= 0"),
        (lambda: gaussian_epsilon(0.0, 1.0), "0 < delta"),
        (lambda: fixed_noise_shift(10, 1, 0.0), "s > 0"),
        (lambda: stabilized_shift(10, 1, 1.0, 0.1), "v0"),
        (lambda: floor_shift(10, 1, 0.0), "T > 0"),
        (lambda: gaussian_renyi(1.0, 0.0, 1.0), "alpha > 1"),
        (lambda: calibrated_epsilon(1.0, 10, 1, 1.0, 1.0), "delta < 1"),
    ):
        with pytest.raises(InvalidArgument, match=name):
            call()
