"""Which interval for what: one rule, fixed before the rows are looked at."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import InvalidArgument
from afresh.theory.betting import betting_interval, three_valued_interval
from afresh.theory.binomial import clopper_pearson_lower, clopper_pearson_upper, hoeffding_bentkus_upper
from afresh.theory.exact import VALUES, half_width, intersected, interval, lower_limit, upper_limit
from oracle import narrower as oracle


def test_each_kind_of_question_has_its_limits() -> None:
    low, high = interval("two-valued", 100, 30, 30, 0.02)
    exact = clopper_pearson_lower(30, 100, 0.01), clopper_pearson_upper(30, 100, 0.01)
    assert (float(low), float(high)) == pytest.approx((float(exact[0]), float(exact[1])))
    nats = -math.log(0.01)
    bentkus = float(hoeffding_bentkus_upper(30, 100, 0.01))
    assert float(upper_limit("two-valued", 100, 30, 30, nats, unequal=True)) == pytest.approx(float(exact[1]))
    assert float(upper_limit("nearly two-valued", 100, 30.0, 29, nats)) == pytest.approx(bentkus)
    assert interval("number", 100, 30, 20, 0.02) == betting_interval(100, 30, 20, 0.02)
    assert interval("three-valued", 100, 4, 10, 0.02) == three_valued_interval(100, 7, 3, 0.02)


def test_nearly_two_valued_numbers_want_the_sum_alone() -> None:
    """Narrower there by a tenth and more; betting is three times narrower where the spread is a fifth of the most."""
    rows, alpha = 5000, 1e-3
    assert half_width("nearly two-valued", rows, alpha, 0.5) < 0.9 * half_width("number", rows, alpha, 0.5)
    assert half_width("number", rows, alpha, 0.5, 0.1) < 0.3 * half_width("nearly two-valued", rows, alpha, 0.5, 0.1)


def test_two_limits_with_a_share_each_hold_together() -> None:
    """The better of two lower limits at half of alpha each, on every sample of laws on 0, .5 and 1."""
    alpha, rows = 0.1, 10
    counts = np.array(list(oracle.all_counts(rows, 3)))
    s1, s2 = counts @ [0, 0.5, 1], counts @ [0, 0.25, 1]
    half = -math.log(alpha / 2)
    better = np.maximum(lower_limit("nearly two-valued", rows, s1, s2, half), lower_limit("number", rows, s1, s2, half))
    for p in np.linspace(0.02, 0.5, 9):
        for middle in np.linspace(0, 0.9, 5):
            law = (1 - p, p * middle, p * (1 - middle))
            chance = np.array([oracle.multinomial(c, law) for c in counts.tolist()])
            assert chance[better > law[1] / 2 + law[2]].sum() <= alpha


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_intersections(a: float, b: float, c: float, d: float) -> None:
    one, other = (min(a, b), max(a, b)), (min(c, d), max(c, d))
    low, high = intersected(one, other)
    if max(one[0], other[0]) <= min(one[1], other[1]):
        assert (float(low), float(high)) == (max(one[0], other[0]), min(one[1], other[1]))
    else:
        assert (float(low), float(high)) == one


def test_planned_widths_are_those_of_such_rows() -> None:
    rows, mean = 4000, np.array([0.2, 0.5])
    for values in VALUES:
        planned = half_width(values, rows, 1e-3, mean, 0.3)
        second = np.maximum(mean**2 + 0.09, mean) if values == "three-valued" else mean**2 + 0.09
        low, high = interval(values, rows, rows * mean, rows * second, 1e-3)
        assert planned == pytest.approx((high - low) / 2)
    assert half_width("number", rows, 1e-3, 0.5) == pytest.approx(float(half_width("number", rows, 1e-3, 0.5, 0.9)))


def test_a_mean_that_follows_its_deviation() -> None:
    """134,000 rows, deviation .12, beta .05/100: .0015 where Chernoff's bound has .0041 (mean .2 to .5)."""
    for mean in (0.2, 0.5):
        assert 0.0014 < float(half_width("number", 134_000, 0.05 / 100, mean, 0.12)) < 0.0015
        # Most of the rest of the way to .0013 comes from knowing the spread beforehand.
        assert float(half_width("number", 134_000, 0.05 / 100, mean, 0.12, hint=0.0144)) < 0.0014
    chernoff = math.sqrt(math.log(2 * 100 / 0.05) / (2 * 134_000)) * math.sqrt(4 * 0.2 * 0.8)
    assert float(half_width("nearly two-valued", 134_000, 0.05 / 100, 0.2)) < chernoff


def test_limits_pass_smoothly_to_levels_beyond_probabilities() -> None:
    """At 300 nats Chernoff takes over from the exact binomial: outward, and by less than a hundredth of the width."""
    for total in (0.0, 400.0, 5e4, 1e5):
        before, after = (
            [float(limit("two-valued", 10**5, total, total, nats)) for limit in (lower_limit, upper_limit)]
            for nats in (299.999, 300.001)
        )
        width = before[1] - before[0]
        assert before[0] - 0.01 * width <= after[0] <= before[0]
        assert before[1] <= after[1] <= before[1] + 0.01 * width


def test_refuses_another_kind() -> None:
    with pytest.raises(InvalidArgument, match="must be one of"):
        interval("text", 4, 2, 2, 0.1)  # type: ignore[arg-type]
