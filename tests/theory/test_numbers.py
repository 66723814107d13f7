"""Numbers whose interval follows their deviation (sections 7 and 10): every step of both proofs, by brute force."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.mechanisms.calibrated import plan_calibrated
from afresh.theory.numbers import (
    FIRST,
    LAST,
    MEAN,
    SQUARE,
    farthest_mean,
    largest_square,
    least_noise,
    mean_square,
    rare_noise,
    square_floor,
    square_noise,
    two_point_cumulant,
)
from afresh.theory.second_moment import hoeffding_exponent
from afresh.theory.stability import calibrated_charge
from afresh.theory.stabilized import leave_one_out_growth
from afresh.theory.transform import Transform
from examples import examples
from oracle import numbers as oracle

unit = st.floats(0, 1)


@given(st.floats(1e-4, 20), st.floats(0, 0.25))
def test_cumulant_against_mpmath(theta: float, variance: float) -> None:
    exact = float(oracle.cumulant(theta, variance))
    assert exact <= two_point_cumulant(theta, variance) <= exact * (1 + 1e-9) + 1e-15 + 1e-12 * theta * variance


@examples(3)
@given(st.integers(0, 2**32), st.floats(0.01, 10))
def test_no_law_on_the_interval_has_a_larger_cumulant(seed: int, theta: float) -> None:
    """Hoeffding's lemma on random laws, and its concavity: rows may differ if V is the mean of their variances."""
    random = np.random.default_rng(seed)
    points, law = random.random(4) ** random.choice([0.2, 1.0, 5.0]), random.dirichlet(np.full(4, 0.5))
    mean = float(law @ points)
    variance = float(law @ (points - mean) ** 2)
    assert math.log(law @ np.exp(theta * (points - mean))) <= two_point_cumulant(theta, variance) + 1e-12
    a, b = random.random(2) / 4
    both = (two_point_cumulant(theta, a) + two_point_cumulant(theta, b)) / 2
    assert both <= two_point_cumulant(theta, (a + b) / 2) * (1 + 1e-9) + 1e-12


@given(st.floats(1e-6, 0.25), st.floats(0.01, 1), st.floats(-6, 0).map(lambda x: 10.0**x))
@example(1e-6, 0.375, 1e-6)
def test_farthest_mean_against_mpmath(variance: float, room: float, bound: float) -> None:
    with mp.workdps(40):
        exact = float(oracle.farthest(*map(mp.mpf, (variance, room, bound))))
    assert exact * (1 - 1e-12) <= farthest_mean(variance, room, bound) <= exact * (1 + 1e-6) + 1e-9


@given(unit, unit, st.floats(1e-6, 0.25), st.floats(1e-4, 1))
def test_no_truth_beyond_is_possible(m: float, q: float, variance: float, bound: float) -> None:
    """A truth that Hoeffding's bound admits is within reach, for every room that holds its own."""
    if hoeffding_exponent(m, q, variance) <= bound:
        room = q if q > m else 1 - q
        for most in (room, min(1.5 * room, 1.0), 1.0):
            assert abs(q - m) <= farthest_mean(min(variance, q * (1 - q)), most, bound) + 1e-9


@examples(3)
@given(st.integers(0, 2**32), st.integers(20, 60), st.sampled_from([0.06, 0.1, 0.25]), unit)
def test_three_draws_tell_no_more_than_one_answer_of_theorem_t(seed: int, n: int, v0: float, centre: float) -> None:
    """Whatever sample, number and centre: sum_i alpha^2 and every row's, in units of a plain answer."""
    random = np.random.default_rng(seed)
    psi = np.clip(random.random() + random.normal(0, random.choice([0.01, 0.1, 1.0]), n), 0, 1)
    psi[: random.integers(0, 3)] = random.choice([0.0, 1.0])
    phi, theta = (psi - centre) ** 2 / largest_square(centre), Transform(v0)
    assert phi.mean() == pytest.approx(mean_square(psi.mean(), (psi**2).mean(), centre), abs=1e-12)
    assert psi.var() <= largest_square(centre) * phi.mean() + 1e-12
    f = min(max(2 * math.sqrt(largest_square(centre) * phi.mean()), least_noise(v0)), 1.0)

    def without(values: Any) -> Any:
        return (values.sum() - values) / (n - 1)

    draws = [
        FIRST * (theta(psi.mean()) - theta(without(psi))) ** 2,
        SQUARE * (theta(phi.mean()) - theta(without(phi))) ** 2,
        LAST * (psi.mean() - without(psi)) ** 2 / f**2,
    ]
    growth = leave_one_out_growth(n, v0)
    assert sum(each.sum() for each in draws) <= growth * n / (4 * (n - 1) ** 2) * (1 + 1e-9)
    assert max(sum(draws)) <= growth / (4 * (n - 1) ** 2 * v0) * (1 + 1e-9)
    assert pytest.approx(1) == FIRST + SQUARE + LAST


@given(st.integers(20, 10**7), st.integers(1, 10**4))
def test_both_draws_beside_figure_1_tell_no_more_than_one_answer(n: int, k: int) -> None:
    """The mean's charge is section 2's, that of the square the average of a_i^2/(2 s^2), below G/(8 (n-1)^2 s^2)."""
    t = max(n / math.sqrt(k), 2.0)
    whole = calibrated_charge(t, 0.1 * t * t, n)
    square = leave_one_out_growth(n, square_floor(n)) / (8 * (n - 1) ** 2 * square_noise(n * whole, n) ** 2)
    assert calibrated_charge(MEAN * t, MEAN**2 * 0.1 * t * t, n) + square <= whole * (1 + 1e-9)


@pytest.mark.parametrize(("answers", "failure"), [(1, 1e-3), (1000, 1e-8), (10**6, 1e-12)])
def test_no_noise_is_that_small(answers: int, failure: float) -> None:
    exact = float(oracle.rare(failure / answers))
    assert exact <= rare_noise(answers, failure) <= exact * (1 + 1e-9)


def test_a_plan_by_figure_1_keeps_its_noise() -> None:
    """What is kept for numbers widens plain answers by less than a thousandth."""
    m = plan_calibrated(10**5, 1000, 0.05)
    assert m.numbers > 0
    assert m.half_width(0.5) == pytest.approx(0.0829, abs=2e-4)
