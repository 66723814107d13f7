"""Theorem T (section 10): each step of the proof, checked by itself.

(a) sums of squares for every sample; (b) the posterior enumerated; (c) the envelope and its martingale; (d) the
radial lemma, one step by quadrature and whole runs by simulation; (e) the largest noise set apart; (f) from the
posterior to the truth. Convex increasing F are tested through the hinges (x - a)_+, of which they are mixtures.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr

from afresh.mechanisms.base import round_to_grid
from afresh.mechanisms.stabilized import Stabilized, plan_stabilized
from afresh.moments import Moments
from afresh.theory.envelope import choose_envelope, holds, parabola_slack
from afresh.theory.stabilized import (
    deviation_bound,
    leave_one_out_growth,
    row_share,
    stabilized_charge,
)
from afresh.theory.transform import Transform
from examples import examples
from oracle import stabilized as oracle
from oracle.tiny import TinyWorld, without_row

Floats = NDArray[np.float64]
LEGENDRE = np.polynomial.legendre.leggauss(200)
HERMITE = np.polynomial.hermite_e.hermegauss(80)


# --- (a) -----------------------------------------------------------------------------------------------------


def changes(values: Floats, transform: Transform) -> Floats:
    """a_i = Theta(mu) - Theta(mu_-i)."""
    n, total = values.size, values.sum()
    return transform(np.asarray(total / n)) - transform(np.clip((total - values) / (n - 1), 0.0, 1.0))


def ratios(values: Floats, v0: float) -> tuple[float, float]:
    """How much of r^2 and of r^2/(n v0) the changes of this sample use."""
    n, a = values.size, changes(values, Transform(v0))
    r_squared = leave_one_out_growth(n, v0) * n / (4 * (n - 1) ** 2)
    return float(a @ a) / r_squared, float((a * a).max()) * n * v0 / r_squared


@given(
    st.one_of(
        st.lists(st.floats(0, 1), min_size=6, max_size=40),
        st.lists(st.sampled_from([0.0, 1.0]), min_size=6, max_size=200),
    ),
    st.floats(0, 1),
)
def test_a_sums_of_squares_for_every_sample(values: list[float], where: float) -> None:
    least = 1 / (len(values) - 1)
    v0 = min(least * (0.25 / least) ** where * (1 + 1e-9), 0.25)
    if (len(values) - 1) * v0 > 1:
        total, largest = ratios(np.array(values), v0)
        assert total <= 1 + 1e-9
        assert largest <= 1 + 1e-9


def test_a_search_for_the_worst_sample() -> None:
    """Two-point samples over n and v0: the bound on the sum is met up to G, that on one row within a factor."""
    for n in (10, 100, 1000, 10_000):
        for v0 in (0.25, 0.05, 2 / n):
            if (n - 1) * v0 <= 1:
                continue
            found = np.array(
                [ratios((np.arange(n) < ones).astype(np.float64), v0) for ones in {1, 2, n // 20, n // 4, n // 2} - {0}]
            )
            assert found.max() <= 1 + 1e-9
            assert found[:, 0].max() >= 0.9 / leave_one_out_growth(n, v0)


# --- (b) and (f): the posterior enumerated -------------------------------------------------------------------

# Samples of 6 to 11 rows from two points; v0 is as small as (n-1) v0 > 1 allows, or larger.
WORLDS = [
    (TinyWorld.draw(seed, rows=6 + seed % 6, points=2, rounds=1 + seed % 5), max(1.1 / (5 + seed % 6), floor))
    for seed in range(12)
    for floor in (0.0, 0.25)
]
each_world = pytest.mark.parametrize(("world", "v0"), WORLDS, ids=lambda x: getattr(x, "seed", None))


@each_world
def test_b_the_divergence_is_at_most_the_expected_cost(world: TinyWorld, v0: float) -> None:
    transform = Transform(v0)
    for answers in world.transcripts(15, transform):
        posterior = world.posterior(answers, transform)
        cost = world.expected_cost(posterior, answers, transform, without_row)
        assert world.divergence(posterior) <= cost * (1 + 1e-9) + 1e-9


@each_world
def test_b_the_accounts_hold_for_every_sample(world: TinyWorld, v0: float) -> None:
    """sum_i q_i <= 2 I and q_i <= qb, with unequal noises chosen by the answers."""
    n, transform = world.samples.shape[1], Transform(v0)
    for answers in world.transcripts(5, transform):
        noises = world.choices(answers)[1]
        change = transform(world.sample_means(answers))[:, :, None] - without_row(world, answers, transform)
        q = ((change / noises[:, None, None]) ** 2).sum(axis=0)
        information = sum(stabilized_charge(n, v0, float(s)) for s in noises)
        assert q.sum(axis=1).max() <= 2 * information * (1 + 1e-9)
        assert q.max() <= row_share(n, v0, information) * (1 + 1e-9)


@each_world
def test_f_the_posterior_mean_lies_between_the_tilted_means(world: TinyWorld, v0: float) -> None:
    """e_-(P) - KL/lam <= E_Q Theta(mu) <= e_+(P) + KL/lam, at the smallest tilt allowed and above it."""
    n, transform = world.samples.shape[1], Transform(v0)
    least = math.sqrt((1 - 4 * v0) / v0)
    for answers in world.transcripts(3, transform):
        posterior = world.posterior(answers, transform)
        divergence = world.divergence(posterior)
        expected = transform(world.sample_means(answers)) @ posterior
        for psi, centre in zip(world.choices(answers)[0], expected, strict=True):
            truth = float(world.weights @ psi)
            for tilt in (max(least, 0.5), 3 * least + 1, 40.0):
                assert centre <= oracle.e_plus(truth, n, tilt, v0) + divergence / tilt + 1e-9
                assert centre >= oracle.e_minus(truth, n, tilt, v0) - divergence / tilt - 1e-9


@each_world
def test_f_the_binomial_dominates_in_convex_order(world: TinyWorld, v0: float) -> None:
    n, transform = world.samples.shape[1], Transform(v0)
    tilt = max(math.sqrt((1 - 4 * v0) / v0), 0.5)
    for psi in world.random_queries(10):
        theta = transform(psi[world.samples].mean(axis=1))
        truth = float(world.weights @ psi)
        for sign in (1, -1):
            ours = float(world.prior() @ np.exp(sign * tilt * theta))
            bound = sign * oracle.e_plus(truth, n, tilt, v0) if sign > 0 else -oracle.e_minus(truth, n, tilt, v0)
            assert math.log(ours) <= tilt * bound + 1e-9


@given(st.floats(-3.5, -0.61).map(lambda x: 10.0**x))
def test_f_the_smallest_tilt_is_exact(v0: float) -> None:
    """exp(+-lam Theta) is convex at lam = sqrt((1-4 v0)/v0) and not a little below; 1/sqrt(v0) is enough."""
    transform, p0 = Transform(v0), Transform(v0).floor_mean
    least = math.sqrt((1 - 4 * v0) / v0)
    m = np.linspace(0.0, 1.0, 4001)
    for tilt in (least, 1 / math.sqrt(v0)):
        for sign in (1, -1):
            bent = np.exp(sign * tilt * (transform(m) - transform.top / 2))
            assert np.diff(bent, 2).min() >= -1e-9 * bent.max()
    # Just above p0 the second derivative has the sign of lam - (1-2m)/sqrt(m(1-m)), which is `least` at p0.
    step = min(p0, 0.5 - p0) * 1e-3
    bent = np.exp(0.99 * least * transform(p0 + step * np.array([0.01, 1.01, 2.01])))
    assert bent[0] + bent[2] < 2 * bent[1]


# --- (c) -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("theta", [1.5, 4.0])
@given(st.floats(0.05, 0.5), st.lists(st.floats(-0.5, 0.5), min_size=3, max_size=3), st.floats(-1, 1))
def test_c_the_exponential_martingale_has_mean_one(
    theta: float, first: float, later: list[float], switch: float
) -> None:
    """E exp(-theta N - theta^2 q/2) = 1 though the second coefficient depends on the first noise; so E W is exact."""
    # The first noise by Gauss-Legendre on both sides of the switch, the second in closed form or by Hermite.
    x, w = LEGENDRE
    edges = np.array([-12.0, switch, 12.0])
    half = np.diff(edges)[:, None] / 2
    z = (edges[:-1, None] + half * (x + 1)).ravel()
    mass = (half * w).ravel() * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    y, v = HERMITE[0], HERMITE[1] / math.sqrt(2 * math.pi)
    second = np.where(z < switch, later[0], later[1])[:, None]
    N = first * z[:, None] + second * y[None, :]
    q = first**2 + second**2 + 0 * N
    martingale = np.exp(-theta * N - theta**2 * q / 2)
    assert float(mass @ martingale @ v) == pytest.approx(1.0, abs=1e-9)
    u = theta * N + theta**2 * q / 2
    assert float(mass @ (u + np.expm1(-u)) @ v) == pytest.approx(theta**2 * float(mass @ q @ v) / 2, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("share", [0.9, 0.3, 0.01])
def test_c_constants_serve_smaller_shares_with_their_own_b(share: float) -> None:
    """Keeping B there is nothing to prove; with B recomputed it is another inequality, to be checked again."""
    envelope = choose_envelope(0.08, 0.05, 3.0)
    assert envelope is not None
    assert holds(replace(envelope, qb=0.08 * share))
    assert holds(replace(envelope, qb=0.08 * share, B=parabola_slack(envelope.c - 1, 0.08 * share)))


# --- (d) -----------------------------------------------------------------------------------------------------


def expected_hinge(w: Floats, t: float, a: float) -> Floats:
    """V_t(w^2/2) = E((w + sqrt(t) Z)^2/2 - a)_+ in closed form."""
    if t == 0:
        return np.maximum(w * w / 2 - a, 0.0)
    root, r = math.sqrt(t), math.sqrt(2 * a)
    total = np.zeros_like(w)
    for side in (1, -1):
        z = (r - side * w) / root  # side * (w + sqrt(t) Z) > r exactly if side * Z > z
        bell, tail = np.exp(-z * z / 2) / math.sqrt(2 * math.pi), ndtr(-z)
        total += (w * w / 2 - a) * tail + side * w * root * bell + t / 2 * (tail + z * bell)
    return total


positive = st.floats(-2, 1).map(lambda x: 10.0**x)


@given(positive, positive, positive)
def test_d_the_value_function(t: float, a: float, scale: float) -> None:
    """V_t(u) is increasing and convex in u and increasing in t; w -> V_t(w^2/2) is even and convex."""
    u = np.linspace(0.0, scale, 60)
    value = expected_hinge(np.sqrt(2 * u), t, a)
    tolerance = 1e-12 * (1 + value.max())
    assert np.diff(value).min() >= -tolerance
    assert np.diff(value, 2).min() >= -tolerance
    assert (expected_hinge(np.sqrt(2 * u), 1.3 * t, a) - value).min() >= -tolerance
    w = np.linspace(-scale, scale, 61)
    by_w = expected_hinge(w, t, a)
    assert np.allclose(by_w, by_w[::-1])
    assert np.diff(by_w, 2).min() >= -tolerance


@given(positive, positive, positive, st.floats(0, 1), st.floats(-1, 1), st.floats(0.2, 4))
def test_d_one_step(norm: float, t: float, a: float, share: float, cosine: float, cut: float) -> None:
    """E V_t(|N + xi alpha|^2/2) <= V_{t + r^2}(|N|^2/2) for |alpha| <= r = 1, for Gaussian, cut and fixed |xi|."""
    x, w = LEGENDRE

    def length(xi: Floats) -> Floats:
        return np.sqrt(np.maximum(norm**2 + 2 * norm * share * cosine * xi + (share * xi) ** 2, 0.0))

    start = np.array([norm])
    after = float(expected_hinge(start, t + 1, a)[0])
    for reach in (9.0, cut):
        xi = reach * x
        mass = reach * w * np.exp(-xi * xi / 2)
        expected = float(mass @ expected_hinge(length(xi), t, a)) / mass.sum()
        assert expected <= after * (1 + 1e-7) + 1e-9
    fixed = float(expected_hinge(length(np.array([-cut, cut])), t, a).mean())
    assert fixed <= float(expected_hinge(start, t + math.pi / 2 * cut**2, a)[0]) * (1 + 1e-9) + 1e-12


def run_rows(adversary: str, n: int, k: int, v0: float, s: float, runs: int, seed: int) -> dict[str, Floats]:
    """Whole runs against an adversary that sees every row and every noise: N_i, q_i, U, X and M of each run.

    It asks 0/1 queries: always the same one, the rows whose N_i is above the mean, the same but of few rows, or
    the first only while U is small (it stops at a level, as stopping rules may).
    """
    rng = np.random.default_rng(seed)
    transform = Transform(v0)
    noise = rng.standard_normal((k, runs))
    N, q = np.zeros((runs, n)), np.zeros((runs, n))
    index = np.arange(n)
    for xi in noise:
        if adversary == "same":
            psi = np.broadcast_to(index < n // 2, N.shape)
        elif adversary == "above":
            psi = np.median(N, axis=1, keepdims=True) < N
        elif adversary == "few":
            psi = np.argsort(np.argsort(N, axis=1), axis=1) >= n - max(n // 20, 1)
        else:
            psi = (index < n // 2) & ((N**2).sum(axis=1, keepdims=True) < 2.0)
        total = psi.sum(axis=1, keepdims=True)
        alpha = (transform(total / n) - transform((total - psi) / (n - 1))) / s
        N += xi[:, None] * alpha
        q += alpha**2
    u = N + q / 2
    return {
        "N": N,
        "q": q,
        "U": (N**2).sum(axis=1) / 2,
        "X": (u + np.expm1(-u)).sum(axis=1),
        "M": np.abs(noise).max(axis=0),
    }


ADVERSARIES = ["same", "above", "few", "stops"]


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_d_and_e_full_information_adversaries(adversary: str) -> None:
    """E(U - a)_+ <= E(I Z^2 - a)_+ and C_beta(s M + X/lam) <= H, in 4000 runs of 30 answers on 60 rows.

    40 comparisons in all, each with 5.5 standard errors of room: fails with probability below 1e-6 a run
    (normal approximation). Asking the same query again and again attains the first bound up to 1/n.
    """
    n, k, v0, s, beta = 60, 30, 0.1, 0.25, 0.05
    charge = stabilized_charge(n, v0, s)
    information = k * charge
    envelope = choose_envelope(row_share(n, v0, information), beta, 3.0)
    assert envelope is not None
    run = run_rows(adversary, n, k, v0, s, runs=4000, seed=7)
    assert run["q"].sum(axis=1).max() <= 2 * information * (1 + 1e-9)
    assert run["q"].max() <= envelope.qb * (1 + 1e-9)
    # (c), in every run.
    tilted = envelope.theta * run["N"] + envelope.theta**2 * run["q"] / 2
    W = (tilted + np.expm1(-tilted)).sum(axis=1)
    assert (run["X"] <= envelope.c * run["U"] + 2 * envelope.B * information + envelope.A * W + 1e-9).all()
    # (d), at nine levels.
    for a in information * np.array([0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.5, 4.0, 6.0]):
        excess = np.maximum(run["U"] - a, 0.0)
        bound = float(expected_hinge(np.zeros(1), 2 * information, float(a))[0])
        assert excess.mean() <= bound + 5.5 * excess.std() / math.sqrt(excess.size)
    if adversary == "same":
        assert run["U"].mean() >= 0.93 * information / leave_one_out_growth(n, v0)
    # (e) and (f): the CVaR of what the proof bounds, through Rockafellar and Uryasev at its own quantile.
    tilt = 40.0
    T = s * run["M"] + run["X"] / tilt
    bound = deviation_bound(k, beta, s, tilt, information, envelope)
    top = np.sort(T)[-round(beta * T.size) :]
    assert top.mean() <= bound + 5.5 * top.std() / math.sqrt(top.size)
    assert top.mean() >= 0.7 * bound if adversary == "same" else True


# --- (e) -----------------------------------------------------------------------------------------------------


@examples(0.5)
@given(st.floats(0.02, 0.98), st.floats(0.1, 4.0), positive, st.booleans())
def test_e_two_unequal_answers_given_the_largest_noise(share: float, m: float, a: float, cheap: bool) -> None:
    """Given M = m and which answer has it: 1 + max(0, (pi/2) m^2 - 1) share suffices (2 I = 1, N in one dimension).

    It also does without the max: where (pi/2) m^2 < 1 every noise, not only the largest, is below m.
    """
    largest = max(share, 1 - share)
    first, second = (largest, 1 - largest) if not cheap else (1 - largest, largest)
    x, w = LEGENDRE
    xi, mass = m * x, w * np.exp(-((m * x) ** 2) / 2)
    expected = 0.0
    for sign in (1, -1):
        N = sign * m * math.sqrt(first) + math.sqrt(second) * xi
        expected += float(mass @ np.maximum(N * N / 2 - a, 0.0)) / mass.sum() / 2
    for factor in (1 + max(0.0, math.pi / 2 * m * m - 1) * largest, 1 + (math.pi / 2 * m * m - 1) * largest):
        assert expected <= float(expected_hinge(np.zeros(1), factor, a)[0]) * (1 + 1e-3) + 1e-5


# --- the end -------------------------------------------------------------------------------------------------


def test_f_rounding_and_clipping_cost_half_a_step() -> None:
    """If e_-(P) - H <= y <= e_+(P) + H then so for clip(round(y)) with H + gamma/2: both ends lie in [0, Theta(1)]."""
    rng = np.random.default_rng(5)
    top, step, H = Transform(0.1).top, 2.0**-6, 0.3
    for y, low, high in zip(
        rng.uniform(-1, 2.5, 3000), rng.uniform(0, top, 3000), rng.uniform(0, top, 3000), strict=True
    ):
        released = min(max(round_to_grid(float(y), step), 0.0), top)
        if low - H <= y:
            assert low - H - step / 2 <= released
        if y <= high + H:
            assert released <= high + H + step / 2


def test_the_interval_survives_an_attack() -> None:
    """400 columns, then the majority vote of those that looked good, on 2000 rows: all intervals hold.

    Planned at beta = 1e-6, so by Theorem T it fails with at most that probability a run.
    """
    n, k = 2000, 401
    mechanism = plan_stabilized(n, k, 1e-6)
    assert isinstance(mechanism, Stabilized)
    rng = np.random.default_rng(11)
    rows = rng.integers(0, 2, (n, k - 1)).astype(np.float64)

    def release(mean: float) -> float:
        moments = Moments(n, mean * n, mean * n)
        return mechanism.release(moments, float(rng.standard_normal()))

    def majority(signs: Floats) -> float:
        return float(((2 * rows - 1) @ signs > 0).mean())

    means = rows.mean(axis=0)
    released = [release(float(mean)) for mean in means]
    released.append(release(majority(np.sign(np.array(released) - mechanism._transform.top / 2))))
    for y in released:
        low, high = mechanism.interval(y)
        assert low <= 0.5 <= high
    assert majority(np.sign(means - 0.5)) > 0.6  # the exact means would have been fooled
