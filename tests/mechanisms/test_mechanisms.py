"""What every mechanism promises, and each one's interval against the oracle."""

import math
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.lab.baselines.calibrated_laplace import plan_calibrated_laplace
from afresh.lab.baselines.fixed_gaussian import plan_fixed_gaussian
from afresh.lab.baselines.fixed_laplace import plan_fixed_laplace
from afresh.mechanisms.calibrated import Calibrated, plan_calibrated
from afresh.mechanisms.split import Split
from afresh.mechanisms.stabilized import Stabilized, plan_stabilized
from afresh.mechanisms.symmetrized import Symmetrized, plan_symmetrized
from afresh.moments import Moments
from examples import examples
from oracle import calibrated as calibrated_oracle
from oracle import split as split_oracle
from oracle import stabilized as stabilized_oracle

N, K, FAILURE = 10_000, 100, 0.05


def stabilized() -> Stabilized:
    mechanism = plan_stabilized(N, K, FAILURE)
    assert mechanism is not None
    return mechanism


MECHANISMS: list[Any] = [  # the lab's, too
    stabilized(),
    plan_calibrated(N, K, FAILURE),
    plan_symmetrized(N, K, FAILURE),
    Split(N, K, FAILURE),
    plan_calibrated_laplace(N, K, FAILURE),
    plan_fixed_gaussian(N, K, FAILURE),
    plan_fixed_laplace(N, K, FAILURE),
]
each = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: m.method)


def moments(mean: float, variance_share: float = 1.0, n: int = N) -> Moments:
    """Moments of values in [0, 1] with this mean and that share of the largest possible variance."""
    return Moments(n, mean * n, n * (mean**2 + variance_share * mean * (1 - mean)))


@each
@given(mean=st.floats(0, 1), share=st.floats(0, 1), noise=st.floats(-9, 9))
def test_released_number_reads_inside_its_interval(mechanism: Any, mean: float, share: float, noise: float) -> None:
    released = mechanism.release(moments(mean, share), noise)
    low, high = mechanism.interval(released)
    assert 0 <= low <= mechanism.value(released) <= high <= 1


@each
def test_interval_moves_with_the_answer(mechanism: Any) -> None:
    released = [mechanism.release(moments(mean / 50), 0.0) for mean in range(51)]
    ends = [mechanism.interval(r) for r in released]
    assert ends == sorted(ends)
    assert [high for _, high in ends] == sorted(high for _, high in ends)


@each
def test_charges_fill_the_budget_exactly(mechanism: Any) -> None:
    assert mechanism.questions * mechanism.charge == pytest.approx(mechanism.information or 0.0, rel=1e-12)
    assert math.fsum(mechanism.failure_use.values()) <= mechanism.failure * (1 + 1e-12)


@each
def test_constants_rebuild_it(mechanism: Any) -> None:
    again = type(mechanism)(**asdict(mechanism))
    assert again == mechanism
    assert again.interval(0.3) == mechanism.interval(0.3)


@pytest.mark.parametrize("mechanism", MECHANISMS[:3], ids=lambda m: m.method)
@given(mean=st.floats(0, 1), noise=st.floats(-6, 6))
def test_released_number_lies_on_a_coarse_public_grid(
    mechanism: Stabilized | Calibrated | Symmetrized, mean: float, noise: float
) -> None:
    released = mechanism.release(moments(mean), noise)
    top = mechanism._transform.top if isinstance(mechanism, Stabilized) else 1.0
    assert released == top or (released / mechanism.grid).is_integer()
    scale = 1 / math.sqrt(mechanism.T) if isinstance(mechanism, Calibrated) else mechanism.s
    if isinstance(mechanism, Symmetrized):  # numbers have the finest noise
        scale *= mechanism.numbers
    assert scale / 2048 < mechanism.grid <= scale / 1024


@given(
    v=st.floats(0, 1),
    n=st.integers(20, 10**6),
    k=st.integers(1, 10**4),
    t=st.floats(0.5, 4).map(lambda x: 10.0**x),
    share=st.floats(-3, 1).map(lambda x: 10.0**x),
    noise_failure=st.floats(0.001, 0.045),
)
@examples(0.6)
def test_calibrated_interval_against_brute_force(
    v: float, n: int, k: int, t: float, share: float, noise_failure: float
) -> None:
    mechanism = Calibrated.of(n, k, 0.05, t, share * t * t, noise_failure)
    low, high = mechanism.interval(v)
    expected = calibrated_oracle.interval(v, n, k, 0.05, noise_failure, t, share * t * t, mechanism.grid)
    # Never inside the oracle's, which allows half a step of rounding after the noise; and close to it.
    assert low <= expected[0] + 1e-9
    assert high >= expected[1] - 1e-9
    slack = 2 * mechanism.grid + 1e-9
    assert low >= expected[0] - slack - 0.02 * (expected[1] - expected[0])
    assert high <= expected[1] + slack + 0.02 * (expected[1] - expected[0])


def test_stabilized_reproduces_the_test_vector() -> None:
    """Section 10: (1e5, 1000, .05), v0 = .005, with the printed constants."""
    n, v0 = 10**5, 0.005
    mechanism = Stabilized(
        n,
        1000,
        0.05,
        v0,
        0.00774233,
        10364.3891,
        1.13701609,
        0.08670693,
        3.5860835e-4,
        8.346261,
        0.04213104,
        1000,
        grid=2.0**-17,
        cells=8,
    )
    assert mechanism.information == pytest.approx(20.895142, rel=2e-6)
    for p, expected in (
        (0.5, (0.445044, 0.554956)),
        (0.1, (0.069617, 0.13559)),
        (0.01, (0.002171, 0.024173)),
    ):
        y = stabilized_oracle.theta(p, v0)
        low, high = (
            mechanism._tilted.lower_inverse(y - mechanism.H),
            1 - mechanism._tilted.lower_inverse(mechanism._transform.top - y - mechanism.H),
        )
        assert (low, high) == pytest.approx(expected, abs=1.1e-6)
        assert mechanism.interval(y)[0] <= low  # the grid's half-step widens it


@given(st.floats(0, 1.6))
@examples(0.3)
def test_stabilized_interval_against_the_whole_binomial(y: float) -> None:
    m = MECHANISMS[0]
    assert isinstance(m, Stabilized)
    y = min(y, m._transform.top)
    low, high = m.interval(y)
    expected = stabilized_oracle.interval(y, m.rows, m.lam, m.v0, m.H + m.grid / 2)
    assert expected[0] - 2e-5 <= low <= expected[0] + 1e-12
    assert expected[1] - 1e-12 <= high <= expected[1] + 2e-5


@given(st.integers(0, 100))
def test_split_interval_against_scipy(hits: int) -> None:
    mechanism = Split(10_000, 100, 0.05)
    low, high = mechanism.interval(hits / 100, levels=2)
    assert (low, high) == pytest.approx(split_oracle.split_exact(hits, 10_000, 100, 0.05), rel=1e-9)
    wide = mechanism.interval(hits / 100)
    assert wide == pytest.approx(split_oracle.split_chernoff(hits / 100, 10_000, 100, 0.05), rel=1e-9, abs=1e-12)
    assert wide[0] <= low + 1e-12
    assert high <= wide[1] + 1e-12
