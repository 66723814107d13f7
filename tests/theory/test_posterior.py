"""Section 9: its numbers, and each step of its proof that can be computed."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import kl
from afresh.theory.extremes import cvar_square
from afresh.theory.information import log_threshold
from afresh.theory.posterior import (
    h,
    noise_level,
    posterior_half_width,
    posterior_interval,
    posterior_level,
)
from afresh.theory.stability import fixed_gaussian_charge
from oracle import stabilized as oracle
from oracle.tiny import TinyWorld, half_reference

CELLS = [
    (10**4, 100),
    (10**4, 1000),
    (10**5, 100),
    (10**5, 1000),
    (10**5, 10**4),
    (10**6, 1000),
    (10**6, 10**4),
]
PRINTED = {
    0.05: [0.0939, 0.1788, 0.0297, 0.0565, 0.1061, 0.0179, 0.0335],
    0.01: [0.1095, 0.2063, 0.0346, 0.0652, 0.1216, 0.0206, 0.0384],
}


@given(st.one_of(st.floats(-600, 600), st.floats(-20, 0).map(lambda x: 10.0**x)), st.sampled_from([-1, 1]))
def test_h_against_mpmath(u: float, sign: int) -> None:
    with mp.workdps(700):
        exact = mp.mpf(sign * u) - 1 + mp.exp(-mp.mpf(sign * u))
    assert h(sign * u) == pytest.approx(float(exact), rel=1e-13, abs=1e-322)


@pytest.mark.parametrize(
    ("n", "information", "failure"),
    [(10**5, 20.0, 0.05), (10**5, 20.0, 1e-9), (100, 500.0, 0.05), (10, 1e4, 0.01), (50, 25.0, 0.5)],
)
def test_level_against_mpmath(n: int, information: float, failure: float) -> None:
    exact, found = oracle.posterior_level(n, information, failure), posterior_level(n, information, failure)
    assert exact <= found <= exact * (1 + 3e-10)


@pytest.mark.parametrize("information", [1e-12, 1e-8, 1e-6])
@pytest.mark.parametrize("failure", [1e-6, 0.05, 0.9])
def test_level_for_little_information_is_that_of_a_square(information: float, failure: float) -> None:
    """h(u) = u^2/2 (1 + O(u)) and u = sqrt(q) Z: R(b) tends to I C_b(Z^2), from below no more than 1e-10."""
    limit = information * cvar_square(failure)
    assert limit * (1 - 1e-10) <= posterior_level(10**5, information, failure) <= limit * (1 + 1e-8)


def test_printed_levels() -> None:
    """About 5.6 I, 8.5 I and 12.7 I, where section 5 has I/b; zeta(.05) = 4.28 at k = 1000."""
    for failure, factor in ((0.05, 5.6), (0.01, 8.5), (0.001, 12.7)):
        assert posterior_level(10**5, 20.0, failure) / 20 == pytest.approx(factor, abs=0.06)
        assert posterior_level(10**5, 20.0, failure) < log_threshold(failure, 20.0) / 3
    assert noise_level(1000, 0.05) == pytest.approx(4.28, abs=0.005)


@pytest.mark.parametrize("failure", PRINTED)
def test_printed_half_widths(failure: float) -> None:
    for (n, k), printed in zip(CELLS, PRINTED[failure], strict=True):
        best = minimize_scalar(
            lambda x, n=n, k=k: posterior_half_width(n, k, math.exp(x), failure),
            bounds=(-8, -1),
            method="bounded",
            options={"xatol": 1e-4},
        )
        assert best.fun == pytest.approx(printed, abs=5.1e-5)


@pytest.mark.parametrize(("mean", "printed"), [(0.1, 0.0460), (0.01, 0.0238)])
def test_printed_intervals_at_small_means(mean: float, printed: float) -> None:
    """(i) and (ii) at (1e5, 1000), s and the split of beta chosen for each mean."""
    n, k = 10**5, 1000

    def half_width(point: NDArray[np.float64]) -> float:
        s, share = math.exp(point[0]), 1 / (1 + math.exp(-point[1]))
        level = posterior_level(n, k * n * fixed_gaussian_charge(s, n), 0.05 * share)
        low, high = posterior_interval(mean, s, n, level, noise_level(k, 0.05 * (1 - share)))
        return (high - low) / 2

    best = minimize(
        half_width, [-5.0, 1.0], method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-7, "maxfev": 150}
    )
    assert best.fun == pytest.approx(printed, abs=6e-5)


@given(
    st.floats(-0.2, 1.2),
    st.floats(1e-4, 0.3),
    st.integers(10, 10**6),
    st.floats(0.01, 500),
    st.floats(0, 0.01),
)
def test_interval_contains_what_it_says(v: float, s: float, n: int, level: float, half_step: float) -> None:
    low, high = posterior_interval(v, s, n, level, 3.0, half_step)
    assert 0 <= low <= min(max(v, 0), 1) <= high <= 1
    beyond = min(v + 3 * s + half_step, 1.0)
    if 0 <= beyond < 1 and high < 1:
        assert n * kl(max(beyond, 0.0), high) >= level * (1 - 1e-9)
    beneath = max(v - 3 * s - half_step, 0.0)
    if 0 < beneath <= 1 and low > 0:
        assert n * kl(beneath, low) >= level * (1 - 1e-9)


def identity(m: NDArray[np.float64]) -> NDArray[np.float64]:
    return m


# --- the proof ---------------------------------------------------------------------------------------------


# Populations of two or three points, samples of two to five rows, analysts that choose by the answers.
WORLDS = [TinyWorld.draw(seed, rows=2 + seed % 4, points=2 + seed % 2, rounds=1 + seed % 5) for seed in range(24)]


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: str(w.seed))
def test_steps_1_to_4_with_the_posterior_enumerated(world: TinyWorld) -> None:
    """kl(E[S[psi]|Y] || P[psi]) <= D, n D <= KL(Q_Y || P^n) <= E[X | Y], for real and for unlikely transcripts."""
    for answers in world.transcripts(40):
        posterior = world.posterior(answers, identity)
        divergence = world.divergence(posterior)
        marginals = world.marginals(posterior)
        average = sum(float(row @ np.log(np.where(row > 0, row / world.weights, 1.0))) for row in marginals) / len(
            marginals
        )
        cost = world.expected_cost(posterior, answers, identity, half_reference)
        assert len(marginals) * average <= divergence + 1e-9
        assert divergence <= cost * (1 + 1e-9) + 1e-9
        for psi in world.random_queries(5):
            expected = float(marginals.mean(axis=0) @ psi)
            assert kl(min(expected, 1.0), min(float(world.weights @ psi), 1.0)) <= average + 1e-9


@given(
    st.lists(st.floats(0.05, 1.0), min_size=3, max_size=3),
    st.floats(0.0, 1.0),
    st.floats(0.0, 4.0),
    st.floats(0.001, 1.0),
)
@example([1.0, 1.0, 1.0], 1.0, 0.0, 0.5)  # first * first may be rounded to more than q
def test_step_5_topping_up_is_in_convex_order(sizes: list[float], share: float, threshold: float, q: float) -> None:
    """E F(h(N + q_i/2)) <= E F(h(sqrt(q) Z + q/2)) for two adaptive steps, by quadrature, F smooth.

    The second coefficient depends on the first noise; the sum of squares stays below q.
    """
    z, weight = np.polynomial.hermite_e.hermegauss(100)
    weight = weight / math.sqrt(2 * math.pi)
    first = math.sqrt(q * share) * sizes[0]
    rest = np.where(z > 0, sizes[1], sizes[2]) * math.sqrt(max(q - first * first, 0.0))
    total = first * z[:, None] + rest[:, None] * z[None, :]
    spent = first * first + rest[:, None] ** 2

    def softened(u: NDArray[np.float64]) -> NDArray[np.float64]:
        """A convex increasing function of h: nearly (h - a)_+."""
        excess = u + np.expm1(-u) - threshold * q
        return (excess + np.sqrt(excess**2 + q * q)) / q

    ours, bound = softened(total + spent / 2), softened(math.sqrt(q) * z + q / 2)
    assert float(weight @ ours @ weight) <= float(weight @ bound) * (1 + 1e-6)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, math.nan])
def test_refuses_what_is_no_failure_probability(bad: float) -> None:
    with pytest.raises(InvalidArgument, match="failure"):
        posterior_level(100, 1.0, bad)
    with pytest.raises(InvalidArgument, match="failure"):
        noise_level(100, bad)


def test_refuses_other_nonsense() -> None:
    with pytest.raises(InvalidArgument, match="nats"):
        posterior_level(100, -1.0, 0.05)
    with pytest.raises(InvalidArgument, match="must be <= 10000"):
        posterior_level(1, 1e9, 0.05)
    with pytest.raises(InvalidArgument, match="s =="):
        posterior_interval(0.5, 0.0, 100, 1.0, 3.0)
    with pytest.raises(InvalidArgument, match="count"):
        noise_level(0, 0.05)
    assert posterior_level(100, 0.0, 0.05) == 0.0
