"""Section 7: both steps against brute force, the exponent against exact binomials, and what it buys."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import InvalidArgument
from afresh.mechanisms.calibrated import plan_calibrated
from afresh.theory.bernoulli import kl, kl_upper
from afresh.theory.extremes import quantile
from afresh.theory.information import log_threshold
from afresh.theory.second_moment import SecondMoment, hoeffding_exponent, sample_mean_range, truth_range
from examples import examples
from oracle import calibrated as oracle

unit = st.floats(0, 1)
seconds = st.tuples(st.one_of(unit, st.floats(-8, 0).map(lambda x: 10.0**x)), unit).map(
    lambda pair: SecondMoment(pair[0], pair[0] + (1 - pair[0]) * pair[1] ** 4)
)


@given(unit, st.floats(1e-6, 1 - 1e-6), st.floats(-9, 0).map(lambda x: 10.0**x))
def test_exponent_against_mpmath(m: float, q: float, share: float) -> None:
    variance = share * q * (1 - q)
    exact = oracle.hoeffding_exponent(m, q, variance)
    found = hoeffding_exponent(m, q, variance)
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-13) or max(found, exact) > 1e15


@given(unit, unit)
def test_full_variance_gives_chernoff_again(m: float, q: float) -> None:
    if q * (1 - q) > 1e-9:
        assert hoeffding_exponent(m, q, q * (1 - q)) == pytest.approx(kl(m, q), rel=1e-6, abs=1e-12)


@given(unit, unit, st.floats(0, 0.25), st.floats(0, 0.25))
def test_less_variance_is_never_worse(m: float, q: float, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert hoeffding_exponent(m, q, small) >= hoeffding_exponent(m, q, large) * (1 - 1e-9) - 1e-13


@examples(0.4)
@given(st.integers(1, 30), st.floats(0.01, 0.99), st.floats(0.02, 1.0), unit)
def test_exponent_bounds_exact_tails(n: int, q: float, share: float, m: float) -> None:
    """The law on two points with mean q and this variance is the worst; its tail is a binomial sum."""
    variance = share * q * (1 - q)
    far, near = q + variance / q, 0.0  # the worst law for a low sample mean: P(far) = q / far
    hits = np.arange(n + 1)
    log_mass = [
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(q / far)
        + ((n - k) * math.log1p(-q / far) if q < far else (0.0 if k == n else -math.inf))
        for k in range(n + 1)
    ]
    means = (hits * far + (n - hits) * near) / n
    tail = float(np.exp(np.array(log_mass))[means <= m * q].sum())
    assert tail <= math.exp(-n * hoeffding_exponent(m * q, q, variance)) * (1 + 1e-9)


@examples(0.4)
@given(
    unit,
    seconds,
    st.floats(1, 6),
    st.floats(0.5, 5).map(lambda x: 10.0**x),
    st.floats(-2, 0.5).map(lambda x: 10.0**x),
    st.integers(20, 10**6),
    st.floats(0.5, 3).map(lambda x: 10.0**x),
)
def test_against_brute_force(
    v: float, second: SecondMoment, z: float, t: float, share: float, n: int, level: float
) -> None:
    """Never inside the grid search's result, and within its resolution."""
    T = share * t * t
    low, high = truth_range(*sample_mean_range(v, second, z, t, T), second, level / n)
    expected = oracle.certified_range(second.sample, second.truth, v, z, t, T, n, level)
    assert expected[0] - 4e-6 <= low <= expected[0] + 1e-12
    assert expected[1] - 1e-12 <= high <= expected[1] + 4e-6


@given(unit, unit, st.floats(-1, 1), st.lists(unit, min_size=2, max_size=8), st.floats(0, 0.05))
def test_step_1_holds_for_real_samples(
    slack: float, where: float, noise: float, values: list[float], half_step: float
) -> None:
    """Any sample, any noise up to z, any rounding up to half a step, clipped: the sample mean is inside."""
    psi = np.array(values)
    z, t, T = 3.0, 20.0, 150.0
    u = float((4 * (psi - 0.5) ** 2).mean())
    second = SecondMoment(min(u * (1 + slack) + 1e-15, 1.0), 1.0)
    raw = float(psi.mean()) + z * noise * math.sqrt(max(float(psi.var()) / t, 1 / T))
    v = min(max(raw + (2 * where - 1) * half_step, 0.0), 1.0)
    low, high = sample_mean_range(v, second, z, t, T, half_step)
    assert low - 1e-12 <= psi.mean() <= high + 1e-12


@given(unit, unit, seconds, st.floats(-6, 1).map(lambda x: 10.0**x))
def test_step_2_keeps_every_truth_that_passes(m: float, where: float, second: SecondMoment, bound: float) -> None:
    """A q whose exponent is within the bound is never cut off, wherever it lies: the search is from the top."""
    edge = math.sqrt(second.truth) / 2
    m = 0.5 + (2 * m - 1) * edge
    q = m + where * (0.5 + edge - m)
    variance = second.truth / 4 - (q - 0.5) ** 2
    _, high = truth_range(m, m, second, bound)
    if variance >= 0 and hoeffding_exponent(min(m, q), q, variance) <= bound * (1 - 1e-9):
        assert q <= high + 1e-12
    assert high <= 0.5 + edge + 1e-15


@given(unit, seconds, st.floats(-6, 0).map(lambda x: 10.0**x))
def test_never_wider_than_chernoff(m: float, second: SecondMoment, bound: float) -> None:
    m = 0.5 + (m - 0.5) * math.sqrt(second.truth)  # within the cut
    _, high = truth_range(m, m, second, bound)
    assert high <= kl_upper(m, bound) + 2e-9


def test_mirror_image() -> None:
    second = SecondMoment(0.08, 0.1)
    low, high = truth_range(0.45, 0.52, second, 1e-3)
    mirrored = truth_range(0.48, 0.55, second, 1e-3)
    assert (low, high) == pytest.approx((1 - mirrored[1], 1 - mirrored[0]), abs=1e-9)


def test_no_variance_at_all_leaves_a_point() -> None:
    assert truth_range(0.5, 0.5, SecondMoment(0.0, 0.0), 1.0) == (0.5, 0.5)
    assert sample_mean_range(0.9, SecondMoment(0.0, 0.0), 3.0, 100.0, 1e4) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize(
    ("n", "disagreement", "printed"),
    [(10**5, 0.1, 0.0637), (10**5, 0.02, 0.0359), (10**6, 0.1, 0.0178), (10**6, 0.02, 0.0087)],
)
def test_printed_differences_of_models(n: int, disagreement: float, printed: float) -> None:
    """Section 8, 1000 answers (500 differences), on the scale of d; the plan is the planner's own."""
    plan = plan_calibrated(n, 1000, 0.05)
    level = log_threshold(plan.failure - plan.noise_failure, plan.information)
    z = quantile(1000, plan.noise_failure)
    second = SecondMoment(plan.sample_mean_range(disagreement)[1], plan.interval(disagreement)[1])
    low, high = truth_range(*sample_mean_range(0.5, second, z, plan.t, plan.T, plan.grid / 2), second, level / n)
    assert high - low == pytest.approx(printed, rel=0.03)
    assert high - low < 0.6 * 2 * plan.half_width(0.5)


@pytest.mark.parametrize(("u", "U"), [(-0.1, 0.5), (0.5, 0.4), (0.5, 1.1), (math.nan, 0.5)])
def test_refuses_what_is_no_second_moment(u: float, U: float) -> None:
    with pytest.raises(InvalidArgument, match="sample <= truth"):
        SecondMoment(u, U)


def test_refuses_other_nonsense() -> None:
    second = SecondMoment(0.1, 0.2)
    with pytest.raises(InvalidArgument):
        hoeffding_exponent(0.5, 1.5, 0.1)
    with pytest.raises(InvalidArgument):
        sample_mean_range(0.5, second, 3.0, 0.0, 1.0)
    with pytest.raises(InvalidArgument):
        truth_range(0.6, 0.5, second, 1.0)
    with pytest.raises(InvalidArgument):
        truth_range(0.5, 0.6, second, -1.0)
