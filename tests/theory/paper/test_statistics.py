"""Other query types: the inequalities for every sample, and the charge against the divergence itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.theory.paper.statistics import (
    Mean,
    Statistic,
    Variance,
    statistic_answer,
    statistic_charge,
    statistic_noise,
)
from afresh.theory.stability import calibrated_charge

Floats = NDArray[np.float64]
STATISTICS: list[Statistic] = [Mean(), Variance()]
each = pytest.mark.parametrize("statistic", STATISTICS, ids=lambda s: type(s).__name__)

samples = st.one_of(
    st.lists(st.floats(0, 1), min_size=2, max_size=12),
    st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=40),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=12),
).map(lambda values: np.array(values))


def without_each(statistic: Statistic, values: Floats) -> tuple[Floats, Floats]:
    rest = [np.delete(values, i) for i in range(values.size)]
    return np.array([statistic.centre(r) for r in rest]), np.array([statistic.scale(r) for r in rest])


def average_divergence(statistic: Statistic, values: Floats, t: Floats, T: Floats) -> Floats:
    """The left side of Prop. M, by Lemma KLG, for arrays of t and T."""
    centres, scales = without_each(statistic, values)
    own = np.maximum(statistic.scale(values) / t, 1 / T)[:, None]
    other = np.maximum(scales / t[:, None], 1 / T[:, None])
    ratio = own / other
    terms = (statistic.centre(values) - centres) ** 2 / other + ratio - 1 - np.log(ratio)
    average: Floats = terms.mean(axis=1) / 2
    return average


@each
@given(samples)
def test_the_inequalities_hold_for_every_sample(statistic: Statistic, values: Floats) -> None:
    centres, scales = without_each(statistic, values)
    constants = statistic.leave_one_out(values.size)
    scale = statistic.scale(values)
    assert ((statistic.centre(values) - centres) ** 2).mean() <= constants.centre * scale * (1 + 1e-9) + 1e-15
    assert ((scale - scales) ** 2).mean() <= constants.scale * scale * (1 + 1e-9) + 1e-15
    assert np.abs(scale - scales).max() <= constants.largest * (1 + 1e-9)


@each
@given(
    samples,
    st.floats(-3, 6).map(lambda x: 10.0**x),
    st.floats(-3, 9).map(lambda x: 10.0**x),
)
def test_charge_bounds_the_divergence(statistic: Statistic, values: Floats, t: float, T: float) -> None:
    charge = statistic_charge(statistic, t, T, values.size)
    assert average_divergence(statistic, values, np.array([t]), np.array([T])) <= charge * (1 + 1e-9) + 1e-13


@each
def test_search_for_the_worst_sample(statistic: Statistic) -> None:
    """Two-point samples over n, their mean, t and T, tuned to the switch of the max: how close the bound is."""
    worst = 0.0
    for n in (2, 3, 5, 10, 50, 200):
        for ones in {1, 2, n // 4, n // 2} - {0}:
            values = (np.arange(n) < ones).astype(np.float64)
            t = np.geomspace(1e-2, 1e6, 17)[:, None]
            switch = t / max(statistic.scale(values), 1e-12)
            T = np.concatenate([switch, switch * 1.01, t * np.geomspace(1e-4, 10.0 * n, 9)], axis=1).ravel()
            t = np.repeat(t.ravel(), T.size // t.size)
            charges = [statistic_charge(statistic, float(a), float(b), n) for a, b in zip(t, T, strict=True)]
            worst = max(worst, float((average_divergence(statistic, values, t, T) / charges).max()))
    assert 0.7 < worst <= 1 + 1e-9


@given(st.integers(2, 10**6), st.floats(1e-3, 1e6), st.floats(1e-3, 1e6))
def test_the_mean_costs_what_prop_m_says(n: int, t: float, T: float) -> None:
    assert statistic_charge(Mean(), t, T, n) == pytest.approx(calibrated_charge(t, T, n), rel=1e-12)


@pytest.mark.parametrize("n", [10**3, 10**5])
def test_the_variance_costs_what_a_mean_does(n: int) -> None:
    """At the same t and T; and its noise is that of a mean, so a spread near 0 is answered as precisely."""
    assert statistic_charge(Variance(), 1000.0, 1e5, n) == pytest.approx(
        statistic_charge(Mean(), 1000.0, 1e5, n), rel=5e-3
    )
    values = np.linspace(0.0, 1.0, n) ** 40
    assert statistic_noise(Variance(), values, 10.0, 1e9) == statistic_noise(Mean(), values, 10.0, 1e9)


def test_answer() -> None:
    values = np.array([0.0, 1.0, 1.0, 0.0])
    assert statistic_answer(Variance(), values, 4.0, 1.0, 0.0) == 0.25
    assert statistic_answer(Variance(), values, 4.0, 1.0, 2.0) == pytest.approx(0.25 + 2.0)
    assert statistic_answer(Mean(), values, 4.0, 100.0, 2.0) == pytest.approx(0.5 + 2 * 0.25)
    constant = np.array([0.3, 0.3])
    assert statistic_noise(Variance(), constant, 4.0, 100.0) == 0.1  # the floor 1/T stays


def test_refuses() -> None:
    with pytest.raises(InvalidArgument, match="n == 1"):
        statistic_charge(Variance(), 1.0, 1.0, 1)
    with pytest.raises(InvalidArgument, match="t == 0"):
        statistic_charge(Variance(), 0.0, 1.0, 10)
    with pytest.raises(InvalidArgument, match="not finite"):
        statistic_charge(Variance(), 1e-300, 1e300, 10)
    with pytest.raises(InvalidArgument, match="T == 0"):
        statistic_noise(Mean(), np.array([0.0, 1.0]), 1.0, 0.0)
    with pytest.raises(InvalidArgument, match="in \\[0, 1\\]"):
        statistic_answer(Mean(), np.array([0.0, 1.5]), 1.0, 1.0, 0.0)
