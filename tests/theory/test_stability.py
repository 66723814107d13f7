"""Charges against what samples really cost, and the lemmas on stability by exact enumeration."""

import math
from collections.abc import Iterator

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize
from scipy.special import gammaln

from afresh.errors import InvalidArgument
from afresh.theory.divergences import gaussian_kl, laplace_kl, mutual_information
from afresh.theory.stability import (
    Noise,
    average_kl,
    average_kl_of_changes,
    calibrated_charge,
    fixed_gaussian_charge,
    fixed_laplace_charge,
    information_stability,
    interaction_charge,
    kl_stability,
    laplace_charge,
    leave_one_out_changes,
    simple_calibrated_charge,
    stated_calibrated_charge,
)
from examples import examples
from oracle import calibrated as oracle

Floats = NDArray[np.float64]
CHARGES = {"gaussian": calibrated_charge, "laplace": laplace_charge}
NOISES: list[Noise] = ["gaussian", "laplace"]

orders = st.floats(-6, 6).map(lambda x: 10.0**x)
values = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1))
samples = st.lists(values, min_size=2, max_size=12)


def exact_average_kl(x: list[float], t: float, T: float, noise: Noise) -> mp.mpf:
    """Def. klas by brute force: recompute mean and variance without each row, in 50 digits."""
    with mp.workdps(50):

        def law(rows: list[mp.mpf]) -> tuple[mp.mpf, mp.mpf]:
            mean = mp.fsum(rows) / len(rows)
            variance = mp.fsum((r - mean) ** 2 for r in rows) / len(rows)
            return mean, max(variance / mp.mpf(t), 1 / mp.mpf(T))

        rows = [mp.mpf(v) for v in x]
        mean, v = law(rows)
        total = mp.mpf(0)
        for i in range(len(rows)):
            other_mean, w = law(rows[:i] + rows[i + 1 :])
            if noise == "gaussian":
                total += (mean - other_mean) ** 2 / (2 * w) + (v / w - 1 - mp.log(v / w)) / 2
            else:
                ratio, u = mp.sqrt(v / w), abs(mean - other_mean) / mp.sqrt(v)
                total += ratio * (mp.exp(-u) - 1 + u) + ratio - 1 - mp.log(ratio)
        return total / len(rows)


@examples(2)
@given(samples, orders, orders, st.sampled_from(NOISES))
@example([0.0, 1.0], 1.0, 1.0, "gaussian")
@example([0.0] * 9 + [1.0], 1.0, 100 / 9, "gaussian")  # sigma^2/t = 1/T: the point where the maximum switches
@example([0.25] * 5, 1.0, 1e6, "laplace")  # sigma = 0
def test_exact_cost_against_brute_force(x: list[float], t: float, big_t: float, noise: Noise) -> None:
    expected = float(exact_average_kl(x, t, big_t, noise))
    assert average_kl(x, t, big_t, noise=noise) == pytest.approx(expected, rel=1e-9, abs=1e-28)


def test_exact_cost_of_many_rows() -> None:
    """One pass, from given moments, and no cancellation at n = 1e6, where each ratio is within 1e-6 of 1."""
    n, ones = 1_000_000, 300_000
    x = np.zeros(n)
    x[:ones] = 1
    t, big_t = 1e4, 1e7
    mean, variance = ones / n, ones * (n - ones) / n**2
    with mp.workdps(50):
        total = mp.mpf(0)
        for count, value in ((ones, 1), (n - ones, 0)):
            m = mp.mpf(ones - value) / (n - 1)
            v, w = mp.mpf(ones) * (n - ones) / n**2, m * (1 - m)
            total += count * (t * (mp.mpf(ones) / n - m) ** 2 / (2 * w) + (v / w - 1 - mp.log(v / w)) / 2)
    assert average_kl(x, t, big_t) == pytest.approx(float(total / n), rel=1e-11)
    assert average_kl(x, t, big_t, moments=(mean, variance)) == pytest.approx(float(total / n), rel=1e-12)


@examples(10)
@given(samples, orders, orders, st.sampled_from(NOISES))
@example([0.0, 1.0], 1.0, 1e6, "gaussian")
@example([0.5, 0.5, 0.5], 1.0, 1.0, "gaussian")
def test_no_sample_costs_more_than_its_charge(x: list[float], t: float, big_t: float, noise: Noise) -> None:
    """Prop. M and its Laplace analogue, at the drawn T and at the T where the maximum switches for this sample."""
    variance = float(np.var(x))
    switches = [t / variance * f for f in (1 - 1e-6, 1, 1 + 1e-6)] if variance > 1e-9 else []
    for floor in (big_t, *switches):
        assert average_kl(x, t, floor, noise=noise) <= CHARGES[noise](t, floor, len(x)) * (1 + 1e-9)


@examples(3)
@given(st.integers(2, 10**7), st.floats(-6, 6).map(lambda x: 10.0**x), st.floats(-6, 6).map(lambda x: 10.0**x))
@example(20, 1.0, 2.0)
def test_sharp_stated_simple(n: int, t: float, ratio: float) -> None:
    big_t = t * ratio
    sharp, stated = calibrated_charge(t, big_t, n), stated_calibrated_charge(t, big_t, n)
    assert sharp == pytest.approx(oracle.charge(t, big_t, n), rel=1e-12)
    assert sharp <= stated * (1 + 1e-14)
    with mp.workdps(50):  # as the paper writes 1 + zeta
        zeta1 = (1 + mp.mpf(1) / (n - 1)) ** 2 * (1 + mp.mpf(big_t) / (mp.mpf(t) * n) * (1 + mp.mpf(1) / (n - 1)) ** 2)
        expected = (2 * mp.mpf(t) + mp.mpf(big_t) / mp.mpf(t) * zeta1) * zeta1 / (4 * mp.mpf(n) ** 2)
    assert stated == pytest.approx(float(expected), rel=1e-12)
    if n >= 20 and big_t <= t * n / 10:
        assert stated <= simple_calibrated_charge(t, big_t, n) * (1 + 1e-14)
        if big_t <= t * t:
            assert 7 * stated <= interaction_charge(t, big_t, n, 7) * (1 + 1e-14)


def test_regimes_are_checked() -> None:
    with pytest.raises(InvalidArgument, match="n >= 20"):
        simple_calibrated_charge(1, 1, 19)
    with pytest.raises(InvalidArgument, match="T/t <= n/10"):
        simple_calibrated_charge(1, 2.1, 20)
    with pytest.raises(InvalidArgument, match="Theorem isklas"):
        interaction_charge(2, 4.1, 1000, 3)
    for charge in (calibrated_charge, stated_calibrated_charge, simple_calibrated_charge, laplace_charge):
        for t, big_t, n in ((0, 1, 30), (1, 0, 30), (1, 1, 1), (1e-300, 1e300, 30), (math.nan, 1, 30)):
            with pytest.raises(InvalidArgument):
                charge(t, big_t, n)
    with pytest.raises(InvalidArgument, match=r"\[0, 1\]"):
        average_kl([0, 1.1], 1, 1)
    with pytest.raises(InvalidArgument, match="n >= 2"):
        average_kl([0.5], 1, 1)
    with pytest.raises(InvalidArgument, match="one M_i per row"):
        kl_stability(np.full((2, 2, 1), 1.0), [np.full((2, 1), 1.0)])
    for bad in (0.0, math.inf, math.nan):
        with pytest.raises(InvalidArgument, match="scale"):
            fixed_gaussian_charge(bad, 10)
        with pytest.raises(InvalidArgument, match="scale"):
            fixed_laplace_charge(bad, 10)


def test_the_short_form_needs_its_regime() -> None:
    """Outside n >= 20, T/t <= n/10 the paper's max{t, T/t}/n^2 is too small for the bound, and for a sample."""
    assert stated_calibrated_charge(1.9, 1.9**2, 19) > 1.9 / 19**2
    t, big_t = 1e2, 1e5
    assert average_kl([1.0] + [0.0] * 19, t, big_t) > 2.9 * max(t, big_t / t) / 20**2


@given(st.integers(2, 10**6), orders, orders)
def test_laplace_charge_against_the_oracle(n: int, t: float, ratio: float) -> None:
    """The contract's formula up to g = 6/7, where the paper's constant 1/7 becomes the smaller one."""
    charge, contract = laplace_charge(t, t * ratio, n), oracle.laplace_charge(t, t * ratio, n)
    g = ratio * n / (n - 1) ** 2
    assert charge == pytest.approx(contract, rel=1e-12) if g < 0.85 else charge <= contract


def two_point_samples(n: int, t: float, big_t: float) -> Iterator[Floats]:
    """j rows at a, the others at 0; a = 1, or such that the maximum switches with or without one row."""
    for j in sorted({1, 2, 3, 5, *(n // d for d in (100, 30, 10, 5, 3, 2))} & set(range(1, n // 2 + 1))):
        heights = {1.0}
        for ones, rows in ((j, n), (j - 1, n - 1), (j, n - 1)):
            share = ones / rows
            if 0 < share < 1:
                at_switch = math.sqrt(t / big_t / (share * (1 - share)))
                heights |= {at_switch * f for f in (1 - 1e-9, 1 + 1e-9, 1.1, 1.4)}
        for a in heights:
            if a <= 1:
                x = np.zeros(n)
                x[:j] = a
                yield x


@pytest.mark.parametrize(
    ("noise", "n", "least"),
    [
        ("gaussian", 10, 0.65),
        ("gaussian", 100, 0.95),
        ("gaussian", 3000, 0.995),
        ("laplace", 10, 0.53),
        ("laplace", 100, 0.88),
        ("laplace", 3000, 0.98),
    ],
)
def test_worst_two_point_sample(noise: Noise, n: int, least: float) -> None:
    """Prop. M searched over two-point samples: never above the charge, and close to it once n is large."""
    worst = 0.0
    for log_t in range(-2, 7):
        for log_ratio in np.arange(-1, math.log10(n) + 1, 0.5):
            t, big_t = 10.0**log_t, 10.0 ** (log_t + log_ratio)
            charge = CHARGES[noise](t, big_t, n)
            costs = (average_kl(x, t, big_t, noise=noise) for x in two_point_samples(n, t, big_t))
            worst = max(worst, max(costs) / charge)
    assert least < worst < 1


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n", [2, 4, 8])
def test_worst_sample_by_ascent(noise: Noise, n: int) -> None:
    """A bounded quasi-Newton ascent over the values, t and T, from random and boundary starts."""

    def shortfall(point: Floats) -> float:
        t, big_t = 10.0 ** point[n], 10.0 ** (point[n] + point[n + 1])
        return -average_kl(np.clip(point[:n], 0, 1), t, big_t, noise=noise) / CHARGES[noise](t, big_t, n)

    rng = np.random.default_rng(n)
    worst = 0.0
    room = Bounds(np.array([0.0] * n + [-6.0] * 2), np.array([1.0] * n + [6.0] * 2))
    for start in range(4):
        x = rng.random(n) if start % 2 else rng.integers(0, 2, n).astype(float)
        point: Floats = np.concatenate([x, rng.uniform([-2, -1], [6, 2])])
        found = minimize(shortfall, point, method="L-BFGS-B", bounds=room, options={"maxiter": 25})
        worst = max(worst, -float(found.fun))
    expected = {"gaussian": {2: 0.123, 4: 0.374, 8: 0.61}, "laplace": {2: 0.08, 4: 0.33, 8: 0.58}}
    assert expected[noise][n] < worst < 1


@given(samples, st.floats(1e-3, 10))
def test_fixed_noise(x: list[float], scale: float) -> None:
    """With the missing value replaced by 1/2, a row costs at most the charge, and exactly it if 0 or 1."""
    n = len(x)
    shifts = (np.array(x) - 0.5) / n
    gauss, laplace = gaussian_kl(shifts, scale, 0, scale), laplace_kl(shifts, scale, 0, scale)
    assert gauss.max() <= fixed_gaussian_charge(scale, n) * (1 + 1e-12)
    assert laplace.max() <= fixed_laplace_charge(scale, n) * (1 + 1e-12)
    assert fixed_gaussian_charge(scale, n) == pytest.approx(oracle.fixed_gaussian_charge(scale, n), rel=1e-13)
    assert fixed_gaussian_charge(scale, n) == pytest.approx(float(gaussian_kl(0.5 / n, scale, 0, scale)))
    assert fixed_laplace_charge(scale, n) == pytest.approx(float(laplace_kl(0.5 / n, scale, 0, scale)))


def test_changes_of_any_statistic() -> None:
    """The mean is the statistic whose changes are eqs. (mudiff) and (sigmadiff); both average as the proof says."""
    x = np.array([0.1, 0.9, 0.4, 0.0, 1.0, 0.3])
    n, mean, variance = x.size, float(x.mean()), float(x.var())
    shift, variance_shift = leave_one_out_changes(x, mean, variance)
    for i in range(n):
        rest = np.delete(x, i)
        assert shift[i] == pytest.approx(mean - rest.mean())
        assert variance_shift[i] == pytest.approx(variance - rest.var())
    assert np.mean(shift**2) == pytest.approx(variance / (n - 1) ** 2)  # eq. (musum)
    assert np.mean(variance_shift**2) <= variance / (n - 1) ** 2 * (n / (n - 1)) ** 2  # eq. (sigmasum)
    assert np.abs(variance_shift).max() <= n / (n - 1) ** 2  # eq. (sigsens)
    assert average_kl_of_changes(variance, shift, variance_shift, 3, 50) == average_kl(x, 3, 50)


# The lemmas on stability, by exact enumeration: X has q values, Y has m, and n rows.


def random_law(rng: np.random.Generator, shape: tuple[int, ...], concentration: float = 0.5) -> Floats:
    return rng.dirichlet(np.full(math.prod(shape), concentration)).reshape(shape)


def random_channel(rng: np.random.Generator, q: int, n: int, m: int) -> Floats:
    return rng.dirichlet(np.full(m, 0.7), size=(q,) * n)


def product_law(marginals: list[Floats]) -> Floats:
    law = np.ones(())
    for marginal in marginals:
        law = np.multiply.outer(law, marginal)
    return law


def whole_information(channel: Floats, law: Floats) -> float:
    """I(S; M(S))."""
    return mutual_information((law[..., None] * channel).reshape(-1, channel.shape[-1]))


@pytest.mark.parametrize(("q", "n", "m"), [(2, 2, 2), (2, 3, 3), (3, 2, 4), (4, 3, 2), (2, 5, 3)])
def test_kl_stable_is_information_stable_is_little_information(q: int, n: int, m: int) -> None:
    """Lemmas klas-mis and mis-mi and Prop. mi for random channels, centres M_i, and laws of S (also correlated)."""
    rng = np.random.default_rng([q, n, m])
    for _ in range(20):
        channel = random_channel(rng, q, n, m)
        centres = [random_channel(rng, q, n - 1, m) for _ in range(n)]
        best = [channel.mean(axis=i) for i in range(n)]  # the mixture over a uniform missing row
        stability = min(kl_stability(channel, centres), kl_stability(channel, best))
        for concentration in (0.05, 1.0):
            assert information_stability(channel, random_law(rng, (q,) * n, concentration)) <= stability + 1e-12
        # Prop. mi says 'a product distribution', Lemma mis-mi only i.i.d. rows; the proof needs independence only.
        law = product_law([random_law(rng, (q,)) for _ in range(n)])
        per_row = information_stability(channel, law)
        assert whole_information(channel, law) <= n * per_row + 1e-12
        assert n * per_row <= n * stability + 1e-12


def test_duplicated_rows_leak_at_once() -> None:
    """Lemma mis-mi needs independent rows: if S_1 = S_2, each is known given the other, and I(S; M(S)) is not 0."""
    law = np.diag([0.5, 0.5])
    channel = np.zeros((2, 2, 2))
    channel[0, :, 0] = channel[1, :, 1] = 1  # M prints the first row
    assert information_stability(channel, law) == pytest.approx(0, abs=1e-15)
    assert whole_information(channel, law) == pytest.approx(math.log(2))


@pytest.mark.parametrize(("q", "n", "m", "k"), [(2, 2, 2, 3), (2, 3, 2, 2), (3, 2, 3, 2)])
def test_composition_by_enumeration(q: int, n: int, m: int, k: int) -> None:
    """Lemmas composition and mis-comp: M' is another channel for every outcome y of M, chosen adaptively."""
    rng = np.random.default_rng([q, n, m, k])
    for _ in range(20):
        first, second = random_channel(rng, q, n, m), [random_channel(rng, q, n, k) for _ in range(m)]
        centres = [first.mean(axis=i) for i in range(n)]
        centres2 = [[channel.mean(axis=i) for i in range(n)] for channel in second]
        stability = kl_stability(first, centres)
        stability2 = max(kl_stability(c, r) for c, r in zip(second, centres2, strict=True))
        both = np.concatenate([first[..., [y]] * second[y] for y in range(m)], axis=-1)
        both_centres = [
            np.concatenate([centres[i][..., [y]] * centres2[y][i] for y in range(m)], axis=-1) for i in range(n)
        ]
        assert kl_stability(both, both_centres) <= stability + stability2 + 1e-12
        law = random_law(rng, (q,) * n)
        outcome = (law[..., None] * first).reshape(-1, m).sum(axis=0)
        # The step of Lemma mis-comp's proof: given y, S has another law, no product, and M'(y, .) is stable for it.
        conditional = sum(
            w * information_stability(second[y], law * first[..., y] / w) for y, w in enumerate(outcome) if w > 0
        )
        composed = information_stability(both, law)
        assert composed == pytest.approx(information_stability(first, law) + conditional, abs=1e-12)
        assert composed <= stability + stability2 + 1e-12


def calibrated_channel(points: Floats, n: int, t: float, big_t: float) -> tuple[Floats, Floats]:
    """Figure 1's densities on X^n and X^(n-1), as masses of a fine trapezoid rule over the answers."""
    step = 0.02 / math.sqrt(big_t)
    reach = 9 * math.sqrt(max(0.25 / t, 1 / big_t))
    grid = np.arange(-reach, 1 + reach, step)

    def masses(rows: int) -> Floats:
        s = points[np.indices((points.size,) * rows)]
        sd = np.sqrt(np.maximum(s.var(axis=0) / t, 1 / big_t))[..., None]
        density = np.exp(-(((grid - s.mean(axis=0)[..., None]) / sd) ** 2) / 2) / sd
        masses: Floats = density / density.sum(axis=-1, keepdims=True)
        return masses

    return masses(n), masses(n - 1)


@pytest.mark.parametrize(("n", "t", "big_t"), [(2, 0.5, 2.0), (3, 2.0, 8.0), (4, 1.0, 30.0)])
def test_figure_1_by_quadrature(n: int, t: float, big_t: float) -> None:
    """Prop. M, Lemmas klas-mis and mis-mi and Prop. mi for the mechanism itself, on three values of X."""
    points = np.array([0.0, 0.3, 1.0])
    channel, shorter = calibrated_channel(points, n, t, big_t)
    stability = kl_stability(channel, [shorter] * n)
    costs = [average_kl(points[list(s)], t, big_t) for s in np.ndindex(*(3,) * n)]
    assert stability == pytest.approx(max(costs), rel=1e-6)  # the enumeration sees what the formula says
    assert stability <= calibrated_charge(t, big_t, n)
    rng = np.random.default_rng(n)
    for _ in range(5):
        assert information_stability(channel, random_law(rng, (3,) * n, 0.2)) <= stability
        law = product_law([random_law(rng, (3,))] * n)
        assert whole_information(channel, law) <= n * information_stability(channel, law) + 1e-12
        assert n * information_stability(channel, law) <= n * stability


@pytest.mark.parametrize(("n", "t", "least"), [(200, 20.0, 0.82), (2000, 60.0, 0.94), (200, 200.0, 0.65)])
def test_how_tight_the_information_bound_is(n: int, t: float, least: float) -> None:
    """Prop. mi for one answer to a fair 0/1 query: I(S; v) = I(count; v) is close to n B while 1 << t << n."""
    big_t = 4.5 * t
    counts = np.arange(max(n / 2 - 5 * math.sqrt(n), 0), min(n / 2 + 5 * math.sqrt(n), n) + 1)  # ten deviations
    law = np.exp(gammaln(n + 1.0) - gammaln(counts + 1) - gammaln(n - counts + 1) - n * math.log(2))
    p = counts / n
    sd = np.sqrt(np.maximum(p * (1 - p) / t, 1 / big_t))[:, None]
    grid = np.linspace(-9 * sd.max(), 1 + 9 * sd.max(), 4001)
    density = np.exp(-(((grid - p[:, None]) / sd) ** 2) / 2) / sd
    joint = law[:, None] * density / density.sum(axis=1, keepdims=True)
    ratio = mutual_information(joint / joint.sum()) / (n * calibrated_charge(t, big_t, n))
    assert least < ratio < 1
