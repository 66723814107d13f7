"""Limits from a sum alone: against exact tails, and miss rates by enumeration."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.errors import InvalidArgument
from afresh.theory.binomial import (
    chernoff_lower,
    chernoff_upper,
    clopper_pearson_lower,
    clopper_pearson_upper,
    hoeffding_bentkus_lower,
    hoeffding_bentkus_upper,
    one_lower,
    one_upper,
    sign_test,
    unequal_lower,
    unequal_upper,
)
from examples import examples
from oracle import narrower as oracle

alphas = st.floats(-15, -0.31).map(lambda x: 10.0**x)


@examples(0.6)
@given(st.integers(1, 1500), st.floats(0, 1), alphas)
@example(1, 1.0, 0.5)
@example(10, 0.0, 1e-15)
def test_clopper_pearson_against_exact_tails(rows: int, share: float, alpha: float) -> None:
    """At the limit the tail is at most alpha, and hardly less."""
    hits = round(share * rows)
    low, high = float(clopper_pearson_lower(hits, rows, alpha)), float(clopper_pearson_upper(hits, rows, alpha))
    assert 0 <= low <= hits / rows <= high <= 1
    assert (low == 0) == (hits == 0)
    assert high == 1 or hits < rows
    if hits > 0:
        assert alpha * (1 - 2e-5) <= oracle.binomial_tail_above(hits, rows, low) <= alpha
    if hits < rows:
        assert alpha * (1 - 2e-5) <= oracle.binomial_tail_below(hits, rows, high) <= alpha or high > 1 - 1e-7


@examples(0.6)
@given(st.integers(1, 10**7), st.floats(0, 1), alphas, st.booleans())
@example(1, 1.0, 0.2, True)
@example(10**6, 1e-6, 1e-9, True)
def test_one_limit_is_that_of_arrays(rows: int, share: float, alpha: float, unequal: bool) -> None:
    """Of plain numbers, whole or not; where it takes more than a tail there is none."""
    arrays = (unequal_lower, unequal_upper) if unequal else (clopper_pearson_lower, clopper_pearson_upper)
    for hits in (share * rows, float(round(share * rows))):
        for one, each in zip((one_lower, one_upper), arrays, strict=True):
            found = one(hits, rows, alpha, unequal=unequal)
            assert found is None or found == pytest.approx(float(each(hits, rows, alpha)), rel=1e-9, abs=1e-300)
    assert one_lower(2.0, 1, 0.1, unequal=False) is one_upper(0.5, 1, 0.9, unequal=False) is None
    assert one_lower(500, 1000, 1e-6, unequal=unequal) is not None is not one_upper(7, 10**6, 1e-6, unequal=unequal)


@pytest.mark.parametrize(
    ("rows", "hits", "alpha"),
    [(10**9, 5 * 10**8, 1e-15), (10**9, 3, 1e-9), (10**9, 123_456, 2.5e-8), (580_223_419, 28_276_578, 6.3e-9)],
)
def test_clopper_pearson_with_a_billion_rows(rows: int, hits: int, alpha: float) -> None:
    low, high = float(clopper_pearson_lower(hits, rows, alpha)), float(clopper_pearson_upper(hits, rows, alpha))
    assert alpha * (1 - 2e-5) <= oracle.binomial_tail_above(hits, rows, low) <= alpha
    assert alpha * (1 - 2e-5) <= oracle.binomial_tail_below(hits, rows, high) <= alpha


@given(st.integers(2, 10**6), st.floats(0, 1), st.floats(0, 1), alphas)
def test_limits_of_the_sum_increase_with_it(rows: int, one: float, other: float, alpha: float) -> None:
    """A contest's winner relies on it; also between whole numbers, where a bin's edge may lie."""
    few, many = sorted((one * rows, other * rows))
    for limit in (clopper_pearson_lower, clopper_pearson_upper, hoeffding_bentkus_lower, hoeffding_bentkus_upper):
        assert float(limit(few, rows, alpha)) <= float(limit(many, rows, alpha)) * (1 + 1e-9) + 1e-12


@given(st.integers(1, 10**6), st.floats(0, 1), alphas)
def test_hoeffding_bentkus_is_never_wider_than_chernoff(rows: int, share: float, alpha: float) -> None:
    total = share * rows
    assert hoeffding_bentkus_lower(total, rows, alpha) >= chernoff_lower(total, rows, -math.log(alpha))
    assert hoeffding_bentkus_upper(total, rows, alpha) <= chernoff_upper(total, rows, -math.log(alpha))


def test_hoeffding_bentkus_prints_what_the_page_says() -> None:
    """.0292 instead of .0314 at 5000 rows and 9.9 nats a side."""
    alpha = math.exp(-9.9)
    chernoff = (chernoff_upper(2500, 5000, 9.9) - chernoff_lower(2500, 5000, 9.9)) / 2
    both = (hoeffding_bentkus_upper(2500, 5000, alpha) - hoeffding_bentkus_lower(2500, 5000, alpha)) / 2
    assert float(chernoff) == pytest.approx(0.0314, abs=1e-4)
    assert float(both) == pytest.approx(0.0292, abs=1e-4)


@pytest.mark.parametrize("rows", [1, 4, 7])
@pytest.mark.parametrize("seed", range(12))
def test_miss_rates_of_equal_rows_by_enumeration(rows: int, seed: int) -> None:
    """Every sample of a law on five values, at every alpha: misses weigh at most alpha."""
    rng = np.random.default_rng(seed)
    values = np.array([0.0, rng.random(), 0.5, rng.random(), 1.0])
    law = rng.dirichlet(np.full(5, 0.3))
    counts = np.array(list(oracle.all_counts(rows, 5)))
    chance = np.array([oracle.multinomial(c, law) for c in counts.tolist()])
    totals, truth = np.clip(counts @ values, 0, rows), float(law @ values)
    for alpha in (0.3, 0.05, 0.003):
        assert chance[hoeffding_bentkus_lower(totals, rows, alpha) > truth + 1e-12].sum() <= alpha
        assert chance[hoeffding_bentkus_upper(totals, rows, alpha) < truth - 1e-12].sum() <= alpha


@pytest.mark.parametrize("seed", range(30))
def test_miss_rates_of_unequal_rows_by_enumeration(seed: int) -> None:
    """Rows with public features are independent, not alike: Bentkus and Chernoff hold for the average."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.4, 0.4, 9)
    samples = np.array(list(itertools.product((0, 1), repeat=9)))
    chance = np.where(samples == 1, p, 1 - p).prod(axis=1)
    hits, truth = samples.sum(axis=1), p.mean()
    for alpha in (0.4, 0.1, 0.01):
        assert chance[hoeffding_bentkus_lower(hits, 9, alpha) > truth + 1e-12].sum() <= alpha
        assert chance[hoeffding_bentkus_upper(hits, 9, alpha) < truth - 1e-12].sum() <= alpha


def test_clopper_pearson_fails_for_unequal_rows() -> None:
    """Why a single hit has another limit there: one row of a hundred is a hit with probability .01, others never."""
    alpha, truth = 0.00997, 0.01 / 100
    assert float(clopper_pearson_lower(1, 100, alpha)) > truth  # so that it misses with probability .01 > alpha
    assert float(hoeffding_bentkus_lower(1, 100, alpha)) < truth
    assert float(unequal_lower(1, 100, alpha)) < truth


@pytest.mark.parametrize("rows", [1, 2, 5, 30])
@pytest.mark.parametrize("seed", range(40))
def test_miss_rates_of_unequal_counts_by_enumeration(rows: int, seed: int) -> None:
    """The exact law of the number of hits among unequal rows, at levels on both sides of 1/4; also few, rare hits."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.4, 0.4, rows) * (1.0, 0.1, 2 / rows, 0.01)[seed % 4]
    law = np.ones(1)
    for each in np.minimum(p, 1.0):
        law = np.convolve(law, (1 - each, each))
    hits, truth = np.arange(rows + 1), float(np.minimum(p, 1.0).mean())
    for alpha in (0.4, 0.25, 0.1, 0.01, 1e-4, truth * rows * 0.999 or 0.1):
        if 0 < alpha < 1:
            assert law[unequal_lower(hits, rows, alpha) > truth + 1e-15].sum() <= alpha * (1 + 1e-9)
            flipped = unequal_upper(rows - hits, rows, alpha)
            assert law[flipped < 1 - truth - 1e-15].sum() <= alpha * (1 + 1e-9)


@given(st.integers(1, 10**6), st.data(), st.floats(1e-9, 0.25))
def test_rows_that_are_not_alike_cost_next_to_nothing(rows: int, data: st.DataObject, alpha: float) -> None:
    hits = data.draw(st.integers(0, rows))
    exact = float(clopper_pearson_lower(hits, rows, alpha)), float(clopper_pearson_upper(hits, rows, alpha))
    low, high = float(unequal_lower(hits, rows, alpha)), float(unequal_upper(hits, rows, alpha))
    assert exact[0] * (1 - alpha) <= low <= exact[0]
    assert exact[1] <= high <= 1 - (1 - exact[1]) * (1 - alpha)


@given(st.integers(0, 60), st.integers(0, 60))
def test_sign_test_against_fractions(better: int, worse: int) -> None:
    exact = -math.log(float(oracle.sign_tail(better, worse)))
    assert max(exact - 2e-6, 0) <= float(sign_test(better, worse)) <= exact


@pytest.mark.parametrize(("better", "worse"), [(1200, 0), (2000, 300), (5000, 1), (10**7, 9 * 10**6)])
def test_sign_test_where_probabilities_end(better: int, worse: int) -> None:
    """Never more than the exact nats, and Chernoff's slack, half a logarithm or so, at most."""
    with mp.workdps(30):
        exact = float(-mp.log(oracle.binomial_tail_above(better, better + worse, 0.5)))
    assert exact - 12 <= float(sign_test(better, worse)) <= exact


@pytest.mark.parametrize("seed", range(10))
def test_the_sign_test_holds_where_the_number_of_differing_rows_is_random(seed: int) -> None:
    """Hidden features: given which rows differ, each is a win with one probability."""
    rng = np.random.default_rng(seed)
    differ = rng.random()
    law = (differ / 2, differ / 2, 1 - differ)  # no difference in truth, the boundary of the null
    for alpha in (0.3, 0.1, 0.02):
        wrong = sum(
            oracle.multinomial(c, law)
            for c in oracle.all_counts(12, 3)
            if float(sign_test(c[0], c[1])) >= -math.log(alpha)
        )
        assert wrong <= alpha


@pytest.mark.parametrize("seed", range(20))
def test_the_sign_test_holds_for_unequal_rows_if_it_is_public_which_differ(seed: int) -> None:
    """Nine or ten coins whose biases average at most 1/2, every outcome, every alpha below 1/2."""
    rng = np.random.default_rng(seed)
    differ = 9 + seed % 2
    bias = rng.beta(0.3, 0.3, differ)
    bias = bias * min(1.0, differ / 2 / bias.sum())
    samples = np.array(list(itertools.product((0, 1), repeat=differ)))
    chance = np.where(samples == 1, bias, 1 - bias).prod(axis=1)
    wins = samples.sum(axis=1)
    found = sign_test(wins, differ - wins)
    for alpha in (0.49, 0.3, 0.1, 0.02):
        assert chance[found >= -math.log(alpha)].sum() <= alpha


@pytest.mark.parametrize(
    ("total", "rows", "alpha"), [(5, 4, 0.1), (-1, 4, 0.1), (1, 0, 0.1), (1, 4, 0.0), (1, 4, 1.0), (math.nan, 4, 0.1)]
)
def test_refuses_what_is_no_count(total: float, rows: float, alpha: float) -> None:
    for limit in (clopper_pearson_lower, clopper_pearson_upper, hoeffding_bentkus_lower, hoeffding_bentkus_upper):
        with pytest.raises(InvalidArgument):
            limit(total, rows, alpha)


def test_refuses_what_is_no_number_of_wins() -> None:
    with pytest.raises(InvalidArgument):
        sign_test(-1, 3)
    with pytest.raises(InvalidArgument):
        sign_test(1.5, 3)
    for limit in (chernoff_lower, chernoff_upper):
        with pytest.raises(InvalidArgument, match="nats"):
            limit(1, 4, 0.0)
