"""Each step of Theorem S that can be computed: every coin vector, every transcript of small games."""

import itertools
import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi

from afresh.theory.symmetrized.constants import ALPHA_MIN, constants, first_argument_upper
from afresh.theory.symmetrized.fixed import log_failure, solve_width
from afresh.theory.symmetrized.gaussian import log_excess

Floats = NDArray[np.float64]


def coins(n: int) -> Floats:
    return np.array(list(itertools.product((-1.0, 1.0), repeat=n)))


def excess(mean: Floats, a: Floats | float, spread: Floats | float = 1.0) -> Floats:
    """E(|x| - a)_+ for x ~ N(mean, spread^2), a >= 0."""
    up: Floats = spread * np.exp(log_excess((mean - a) / spread))
    down: Floats = spread * np.exp(log_excess((-mean - a) / spread))
    return up + down


# --- Lemma G ----------------------------------------------------------------------------------------------------


def linear_kap(squares: Floats, q: float) -> float:
    """gam q/2 times the sum of |beta_i|^2, as the plans of the first days have it."""
    return float(0.5 / (1 - q) * q * squares.sum())


def concave_kap(squares: Floats, q: float) -> float:
    """n times (ln(1 + gam u) - u)/2 at the mean of the |beta_i|^2."""
    mean = squares.mean()
    return float(squares.size * (np.log1p(mean / (1 - q)) - mean) / 2)


def lemma_g_gap(
    directions: Floats,
    z: Floats,
    tilt: Floats,
    q: float,
    kap_of: Callable[[Floats, float], float] = concave_kap,
) -> float:
    """ln(coins) - ln(e^kap Gaussian) of Lemma G, exactly; rows of `directions` are beta_i. At most 0."""
    n = len(directions)
    gam = 1 / (1 - q)
    kap = kap_of(np.sum(directions**2, axis=1), q)
    signs = coins(n)
    w = signs @ directions
    exponents = -((z - w) ** 2).sum(axis=1) / 2 + signs @ tilt
    real = np.logaddexp.reduce(exponents) - n * math.log(2)
    # E exp(-|z - B'g|^2/2 + <v, g>), g ~ N(0, 1): complete the square in g.
    B, v = math.sqrt(gam) * directions, math.sqrt(gam) * tilt
    precision = np.eye(n) + B @ B.T
    linear = B @ z + v
    gaussian = -(z @ z) / 2 + linear @ np.linalg.solve(precision, linear) / 2 - np.linalg.slogdet(precision)[1] / 2
    return float(real - kap - gaussian)


@pytest.mark.parametrize("seed", range(12))
def test_lemma_g_for_every_coin_vector(seed: int) -> None:
    """1,200 random cases, n <= 9, k <= 5, q up to .95; |beta_i|^2 = q for some rows; with and without a tilt."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        n, k = int(rng.integers(1, 10)), int(rng.integers(1, 6))
        q = float(rng.uniform(0.01, 0.95))
        directions = rng.normal(size=(n, k)) if rng.random() < 0.5 else rng.choice([-1.0, 0.0, 1.0], size=(n, k))
        sizes = np.sqrt(q) * rng.choice([1.0, rng.random()], size=n)
        lengths = np.linalg.norm(directions, axis=1)
        directions = directions * (sizes / np.where(lengths > 0, lengths, 1.0))[:, None]
        z = rng.normal(size=k) * rng.choice([0.1, 1.0, 5.0, 20.0])
        tilt = rng.normal(size=n) * rng.choice([0.0, 0.3, 3.0])
        squares = np.sum(directions**2, axis=1)
        each = float(((np.log1p(squares / (1 - q)) - squares) / 2).sum())
        assert each <= concave_kap(squares, q) * (1 + 1e-9) <= linear_kap(squares, q) * (1 + 2e-9)
        assert lemma_g_gap(directions, z, tilt, q, lambda squares, q, each=each: each) <= 1e-9  # type: ignore[misc] # mypy infers no type for a default
        assert lemma_g_gap(directions, z, tilt, q) <= 1e-9
        assert lemma_g_gap(directions, z, tilt, q, linear_kap) <= 1e-9


def test_lemma_g_is_nearly_attained() -> None:
    """One row and z at 0, |beta|^2 = q: the sharper form is an equality, so it could not be better."""
    for q in (0.01, 0.3, 0.9):
        assert lemma_g_gap(np.array([[math.sqrt(q)]]), np.zeros(1), np.zeros(1), q) == pytest.approx(0, abs=1e-12)
    assert -1e-4 < lemma_g_gap(np.array([[0.1]]), np.zeros(1), np.zeros(1), 0.01, linear_kap) < 0


@pytest.mark.parametrize(
    ("n", "k", "s", "row"),
    [(10**4, 1000, 0.0161, None), (10**5, 1000, 0.0047, 0.004), (10**9, 10**6, 2e-4, None), (10**3, 3000, 0.1, 0.85)],
)
def test_the_sharper_kap_against_mpmath(n: int, k: int, s: float, row: float | None) -> None:
    linear, c = (constants(n, k, s, 0.05, row=row, alike=False, concave=concave) for concave in (False, True))
    with mp.workdps(50):
        q = mp.mpf(c.row)
        u = min((k + 3) * mp.mpf(c.pairs) / (4 * mp.mpf(n) ** 2 * mp.mpf(s) ** 2), q)
        exact = float(n * (mp.log1p(u / (1 - q)) - u) / 2)
    assert exact * (1 - 1e-13) <= c.swap <= exact * (1 + 1e-4)
    assert c.swap <= linear.swap
    assert c.pairs <= linear.pairs


# --- an adaptive game, transcripts integrated -----------------------------------------------------------------------


class Game:
    """Three questions about n pairs: B0_1 fixed, B0_2 a function of y_1, B0_3 of (y_1, y_2); z on a grid."""

    def __init__(self, seed: int, n: int, size: float, analyst: str) -> None:
        self.rng = np.random.default_rng(seed)
        self.n, self.size = n, size
        self.analyst = analyst
        self.q = (2 + 4) * size**2
        self.gam = 1 / (1 - self.q)
        self.grid = np.linspace(-8, 8, 41)
        self.first = self.direction(self.rng.normal(size=n))
        self.others = self.rng.normal(size=(2, n))

    def direction(self, wish: Floats) -> Floats:
        """B0_i = (psi(Z+) - psi(Z-))/(2 n s), anything in [-size, size]: the wish, scaled to the largest."""
        scaled: Floats = self.size * wish / np.max(np.abs(wish))
        return scaled

    def choose(self, past: list[Floats], z: list[float]) -> Floats:
        """The analyst knows the pairs and everything released; posterior push: along the mean of the coins."""
        if self.analyst == "sign":
            return self.direction(self.others[0] if z[-1] > 0 else self.others[1])
        B = math.sqrt(self.gam) * np.array(past)
        mean = B.T @ np.linalg.solve(np.eye(len(z)) + B @ B.T, np.array(z))
        if self.analyst == "push signs":
            return self.size * np.where(mean >= 0, 1.0, -1.0)
        return self.direction(mean + 1e-12)

    def compare(self, a: Floats) -> tuple[Floats, Floats, float, float, float]:
        """E(|x_3| - a)_+ with coins and in the Gaussian world; max |B_j|^2; E exp(1.3 |m|), E exp(|m|^2/4)."""
        signs = coins(self.n)
        step = self.grid[1] - self.grid[0]
        real, gauss = np.zeros(len(a)), np.zeros(len(a))
        worst = tilted = bent = 0.0
        root = math.sqrt(self.gam)

        def bell(x: Floats | float) -> Floats:
            return np.exp(-np.square(x) / 2) / math.sqrt(2 * math.pi)

        for z1 in self.grid:
            second = self.choose([self.first], [z1])
            weights = bell(z1 - signs @ self.first) / len(signs)
            B = root * np.array([self.first, second])
            cov = np.eye(2) + B @ B.T
            inverse, scale = np.linalg.inv(cov), 2 * math.pi * math.sqrt(np.linalg.det(cov))
            for z2 in self.grid:
                third = self.choose([self.first, second], [z1, z2])
                both = weights * bell(z2 - signs @ second)
                real += both @ excess(2 * (signs @ third)[:, None], a)
                own, z = root * third, np.array([z1, z2])
                density = math.exp(-z @ inverse @ z / 2) / scale
                mean = B.T @ inverse @ z
                left = own @ own - (B @ own) @ inverse @ (B @ own)
                gauss += density * excess(np.array(2 * own @ mean), a, math.sqrt(1 + 4 * left))
                tilted += density * math.exp(1.3 * float(np.linalg.norm(mean)))
                bent += density * math.exp(float(mean @ mean) / 4)
                worst = max(worst, float(own @ own), float(B[1] @ B[1]), float(B[0] @ B[0]))
        return real * step**2, gauss * step**2, worst, tilted * step**2, bent * step**2


@pytest.mark.parametrize("analyst", ["sign", "push", "push signs"])
@pytest.mark.parametrize(("n", "size"), [(5, 0.3), (6, 0.38), (3, 0.2)])
def test_transcripts_of_an_adaptive_game(analyst: str, n: int, size: float) -> None:
    """(2), Lemma M and F, for every transcript and coin vector: coins <= e^kap Gaussian, and F bounds both.

    (2) holds point by point, so it holds for the sums over the grid; Lemma M gets 1% for the jumps of the analyst.
    """
    game = Game(n, n, size, analyst)
    alphas = np.array([0.2, 0.3, 0.4, 0.5, 0.7, 1.0])
    widths = (2.0, 4.0)
    real, gauss, reach2, tilted, bent = game.compare(np.concatenate([h - alphas for h in widths]))
    kap = 0.5 * game.q * (2 + 4) * reach2  # |beta_i|^2 summed is at most (2 + 4) reach2/gam
    assert np.all(real <= math.exp(kap) * gauss * (1 + 1e-9))
    tau = 2 * reach2 / (1 + reach2)
    assert tilted <= 1.01 * math.exp(1.3 * math.sqrt(tau) + 1.3**2 / 2)
    assert bent <= 1.01 * (1 + 2 * reach2) / (1 + reach2)  # two answers, l = 1/2, c = 2
    for h, each in zip(widths, np.split(gauss, len(widths)), strict=True):
        bound = math.exp(float(log_failure(h, math.sqrt(reach2), tau, kap)))
        assert math.exp(kap) * np.min(each / alphas) <= 1.01 * bound


# --- the whole theorem, the best analyst of a discretised game --------------------------------------------------


def optimal_miss(n: int, points: int, rounds: int, s: float, h: list[float], cells: int) -> float:
    """The largest Pr(some |y_j - P_j| > s h_j) over all analysts that see in which of `cells` cells each y_j lies.

    Rows are uniform on `points` values; questions are all 0/1 functions; dynamic programming over transcripts, the
    posterior kept for every composition of the sample.
    """
    compositions = np.array([c for c in itertools.product(range(n + 1), repeat=points) if sum(c) == n])
    prior = np.array(
        [math.factorial(n) / math.prod(math.factorial(x) for x in c) / points**n for c in compositions.tolist()]
    )
    questions = np.array(list(itertools.product((0.0, 1.0), repeat=points)))
    means = questions @ compositions.T / n  # question x composition
    truths = questions.mean(axis=1)

    def normal(x: Floats) -> Floats:
        return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in x.ravel()]).reshape(x.shape)

    tables = []
    for width in h:
        edges = np.linspace(-width, width, cells + 1)  # inside the interval; outside is a miss
        table = np.empty((len(questions), cells, len(prior)))
        for i, truth in enumerate(truths):
            cumulative = normal((truth + s * edges[:, None] - means[i]) / s)
            table[i] = np.diff(cumulative, axis=0)
        tables.append(table)

    def hit(weights: Floats, j: int) -> float:
        """The least probability (times that of the past) of no miss from answer j on."""
        table = tables[j]
        if j == rounds - 1:
            return float((table.sum(axis=1) @ weights).min())
        return min(sum(hit(weights * cell, j + 1) for cell in table[i]) for i in range(len(table)))

    return 1 - hit(prior, 0)


@pytest.mark.parametrize("failure", [0.05, 0.5, 0.8])
@pytest.mark.parametrize(("n", "points", "rounds", "cells"), [(6, 2, 3, 6), (5, 3, 2, 12), (12, 2, 3, 6)])
def test_the_best_analyst_of_a_small_game_stays_below_the_failure(
    n: int, points: int, rounds: int, cells: int, failure: float
) -> None:
    """With the sure bound D = 1 nothing else can fail, and no clipping is needed: an exact test of 17.2 to 17.5."""
    s = math.sqrt((rounds + 3) / (4 * n * n * 0.5))  # q = 1/2
    gam, q = 2.0, 0.5
    step = gam / (4 * n * s * s)
    kap = 0.5 * gam * q * (rounds + 3) / (4 * n * s * s)
    tau = np.arange(rounds) * step / (1 + step)
    h = solve_width(math.log(failure / rounds), math.sqrt(step), tau, kap)
    miss = optimal_miss(n, points, rounds, s, h.tolist(), cells)
    assert miss <= failure


# --- 17.6 --------------------------------------------------------------------------------------------------------


def test_the_iteration_for_the_pairs_is_monotone_and_concave() -> None:
    """Phi_D(d) = up(1/2 + (a + c sqrt d)^2/2, L) grows with d, and is concave: one fixpoint, approached from above."""

    def phi(d: float, a: float, c: float, bound: float) -> float:
        return first_argument_upper(min(0.5 + (a + c * math.sqrt(d)) ** 2 / 2, 1.0), bound)

    rng = np.random.default_rng(7)
    for _ in range(200):
        a, c, bound = rng.uniform(0, 0.3), rng.uniform(0, 0.6), rng.uniform(1e-4, 0.2)
        values = [phi(d, a, c, bound) for d in np.linspace(0.01, 1, 30)]
        assert np.all(np.diff(values) >= -1e-12)
        assert np.all(np.diff(values, 2) <= 1e-9)


def test_pairs_have_the_mean_that_17_6_says() -> None:
    """e_j = S[psi^2] + P[psi^2] - 2 S P <= S + P - 2 S P <= 1/2 + (S - P)^2/2 for random samples and populations."""
    rng = np.random.default_rng(8)
    for _ in range(300):
        weights = rng.dirichlet(np.ones(5) * rng.choice([0.3, 3.0]))
        psi = rng.random(5) if rng.random() < 0.5 else rng.integers(0, 2, 5).astype(float)
        sample = rng.choice(5, size=7, p=weights)
        S, P = float(psi[sample].mean()), float(weights @ psi)
        expected = float(np.mean([(weights @ (psi[i] - psi) ** 2) for i in sample]))
        assert expected == pytest.approx(float((psi[sample] ** 2).mean() + weights @ psi**2 - 2 * S * P))
        assert expected <= S + P - 2 * S * P + 1e-12
        assert S + P - 2 * S * P <= 0.5 + (S - P) ** 2 / 2 + 1e-12


def test_jensen_on_the_ghost_for_every_sample_and_ghost() -> None:
    """(|y - P| - s h + a)_+ <= E (|y - S'| - s h + a)_+ for all values, ghosts enumerated."""
    population = [(0.0, 0.2), (0.5, 0.3), (1.0, 0.5)]
    truth = sum(v * p for v, p in population)
    ghosts = [
        (sum(v for v, _ in rows) / 3, math.prod(p for _, p in rows)) for rows in itertools.product(population, repeat=3)
    ]
    for y in np.linspace(-1, 2, 61):
        for reach, a in ((0.3, 0.3), (0.3, 0.1), (0.7, ALPHA_MIN)):
            left = max(abs(y - truth) - reach + a, 0.0)
            right = sum(p * max(abs(y - g) - reach + a, 0.0) for g, p in ghosts)
            assert left <= right + 1e-12


def test_a_slope_chosen_after_the_fact_breaks_lemma_m() -> None:
    """Lemma M is for a fixed lam: whoever sees |m| before lam is chosen exceeds it.

    100 orthogonal questions: |m|^2 = v chi^2_100 with v = t/(1+t), tau = 100 v. Each fixed lam has a moment of at most
    1; the lam that follows |m| has more. So D(P_j) may not choose the slope after the fact.
    """
    v, count = 20 / 21, 100
    radius = np.linspace(4, 17, 20_001)
    weight = chi(count).pdf(radius) * (radius[1] - radius[0])
    away = math.sqrt(v) * radius - math.sqrt(v * count)

    def moment(lam: Floats | float) -> float:
        return float(weight @ np.exp(lam * away - np.square(lam) / 2))

    for fixed in (0.0, 0.3, 1.0, 3.0):
        assert moment(fixed) <= 1 + 1e-9
    assert moment(np.maximum(away, 0.0)) > 1.15
