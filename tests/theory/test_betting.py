"""Two-point betting: against bets settled in exact arithmetic, and miss rates by enumeration."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.theory import betting
from afresh.theory.betting import (
    SPREADS,
    STAKES,
    bets,
    betting_interval,
    log_stake,
    rescaled,
    three_valued_interval,
)
from examples import examples
from oracle import narrower as oracle

unit = st.floats(0, 1)
alphas = st.floats(-12, -0.4).map(lambda x: 10.0**x)
moments = st.tuples(st.floats(1, 9).map(lambda x: int(10**x)), unit, unit)


def betting_lower(rows: Any, total: Any, squares: Any, alpha: Any, hint: Any = None) -> NDArray[np.float64]:
    return betting.betting_lower(rows, total, squares, -np.log(alpha), hint)


def betting_upper(rows: Any, total: Any, squares: Any, alpha: Any, hint: Any = None) -> NDArray[np.float64]:
    return betting.betting_upper(rows, total, squares, -np.log(alpha), hint)


def three_valued_lower(rows: Any, better: Any, worse: Any, alpha: Any, hint: Any = None) -> NDArray[np.float64]:
    return betting.three_valued_lower(rows, better, worse, -np.log(alpha), hint)


def of(values: NDArray[np.float64]) -> tuple[int, float, float]:
    return values.size, float(values.sum()), float((values**2).sum())


def test_the_stakes_are_one_stake() -> None:
    assert math.fsum(STAKES) == pytest.approx(1, abs=1e-15)
    assert len(STAKES) == len(SPREADS) == 6


@examples(0.4)
@given(moments, alphas, st.one_of(st.none(), st.floats(1e-6, 0.25)))
@example((10, 1.0, 0.0), 1e-3, None)
@example((10**9, 0.5, 0.0), 1e-12, None)
@example((10**9, 0.5, 1.0), 1e-12, 0.25)
@example((10**9, 1e-7, 1.0), 1e-9, None)
def test_lower_limit_against_exact_arithmetic(case: tuple[int, float, float], alpha: float, hint: float | None) -> None:
    """Never above the first crossing that a scan finds, and within a millionth of the width."""
    rows, mean, share = case
    total = rows * mean
    squares = min(rows * (mean * mean + share * mean * (1 - mean)), total)
    squares = max(squares, total * total / rows)
    found = float(betting_lower(rows, total, squares, alpha, hint))
    if total <= 1e-9 * rows:
        assert 0 <= found <= mean
        return
    exact = oracle.betting_lower(oracle.two_points(rows, total, squares), rows, alpha, hint)
    assert found <= exact * (1 + 1e-15)
    assert found >= exact - 3e-6 * (mean - exact) - 2e-11 * mean or exact <= 1e-8 * mean


@examples(0.25)
@given(st.integers(1, 3000), unit, unit, alphas)
def test_three_valued_limit_against_exact_arithmetic(rows: int, differ: float, wins: float, alpha: float) -> None:
    differing = round(rows * differ)
    better = round(differing * wins)
    worse = differing - better
    law = [(worse, 0.0), (rows - differing, 0.5), (better, 1.0)]
    found = float(three_valued_lower(rows, better, worse, alpha))
    exact = 2 * oracle.betting_lower(law, rows, alpha) - 1
    assert found <= exact + 1e-15
    assert found >= exact - 1e-5 * ((better - worse) / rows - exact) - 1e-8


@examples(2)
@given(st.lists(unit, min_size=1, max_size=30), st.floats(0.01, 0.99), unit)
def test_three_numbers_bound_the_bet_on_any_sample(values: list[float], m: float, share: float) -> None:
    """The parabola lemma: what (n, S1, S2) say is never more than what the bet really made."""
    x = np.array(values)
    n, s1, s2 = of(x)
    if s2 < 1e-300:  # squares underflow
        return
    lam = 0.99 * share / m
    heavy, far = min(s1 * s1 / s2, n), s2 / s1
    bound = (n - heavy) * math.log1p(-lam * m) + heavy * math.log1p(lam * (far - m))
    assert bound <= np.log1p(lam * (x - m)).sum() + 1e-9 * n


@examples(5)
@given(unit, st.floats(1e-9, 1 - 1e-6), st.floats(1e-9, 1 - 1e-6), moments, alphas, st.sampled_from([*SPREADS, None]))
def test_a_bet_wins_less_on_every_row_the_higher_the_mean_it_is_against(
    x: float, one: float, other: float, case: tuple[int, float, float], alpha: float, spread: float | None
) -> None:
    """1 + lam(m) (x - m) falls as m rises, for each bet and each value: so there is one crossing."""
    low, high = sorted((one, other))
    n, nats = np.float64(case[0]), np.float64(-math.log(alpha))

    def factor(m: float) -> float:
        variance = m * (1 - m) * 4.0**-spread if spread is not None else min(case[1] / 4 + 1e-12, m * (1 - m))
        lam = float(bets(np.array(m), np.array(n), np.array(nats), np.array(variance)))
        assert 0 <= lam * m < 0.901
        return 1 + lam * (x - m)

    assert factor(high) <= factor(low) * (1 + 1e-9) + 1e-12


LAWS = [
    ((0.0, 1.0), 8),
    ((0.0, 0.5, 1.0), 8),
    ((0.0, 0.1, 0.2), 8),
    ((0.4, 0.5, 0.6, 1.0), 6),
    ((0.0, 0.01, 0.5, 0.99, 1.0), 5),
    ((0.0, 0.02, 1.0), 12),
]


@pytest.mark.parametrize(("values", "rows"), LAWS)
@pytest.mark.parametrize("seed", range(6))
def test_miss_rates_by_enumeration(values: tuple[float, ...], rows: int, seed: int) -> None:
    """Every sample of a law, with its probability: each limit misses with at most its alpha."""
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.full(len(values), 0.4))
    x = np.array(values)
    counts = np.array(list(oracle.all_counts(rows, len(values))))
    chance = np.array([oracle.multinomial(c, law) for c in counts.tolist()])
    s1, s2, truth = counts @ x, counts @ x**2, float(law @ x)
    for alpha, hint in itertools.product((0.3, 0.05, 0.004), (None, 0.01, float(law @ x**2) - truth**2)):
        assert chance[betting_lower(rows, s1, s2, alpha, hint) > truth].sum() <= alpha
        assert chance[betting_upper(rows, s1, s2, alpha, hint) < truth].sum() <= alpha


@pytest.mark.parametrize("seed", range(10))
def test_miss_rates_of_unequal_rows_by_enumeration(seed: int) -> None:
    """Independent rows that are not alike: the truth is the average (arithmetic and geometric means)."""
    rng = np.random.default_rng(seed)
    p, size = rng.beta(0.3, 0.3, 8), rng.random(8)
    samples = np.array(list(itertools.product((0, 1), repeat=8)))
    chance = np.where(samples == 1, p, 1 - p).prod(axis=1)
    s1, s2, truth = samples @ size, samples @ size**2, float(p @ size) / 8
    for alpha in (0.3, 0.05, 0.004):
        assert chance[betting_lower(8, s1, s2, alpha) > truth].sum() <= alpha
        assert chance[betting_upper(8, s1, s2, alpha) < truth].sum() <= alpha


@pytest.mark.parametrize("seed", range(6))
def test_miss_rates_of_three_valued_differences_by_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    law = rng.dirichlet([0.5, 0.5, 2.0])
    counts = np.array(list(oracle.all_counts(20, 3)))
    chance = np.array([oracle.multinomial(c, law) for c in counts.tolist()])
    truth = law[0] - law[1]
    for alpha, hint in itertools.product((0.3, 0.05, 0.004), (None, 0.1)):
        low, high = three_valued_interval(20, counts[:, 0], counts[:, 1], 2 * alpha, hint)
        assert chance[low > truth].sum() <= alpha
        assert chance[high < truth].sum() <= alpha


@given(st.lists(unit, min_size=1, max_size=40), alphas)
def test_the_interval_holds_the_sample_mean_and_mirrors(values: list[float], alpha: float) -> None:
    x = np.array(values)
    low, high = (float(end) for end in betting_interval(*of(x), alpha))
    assert 0 <= low <= x.mean() + 1e-12
    assert x.mean() - 1e-12 <= high <= 1
    mirrored = betting_interval(*of(1 - x), alpha)
    assert low == pytest.approx(1 - float(mirrored[1]), abs=1e-7)


@given(moments, unit, alphas)
def test_more_spread_is_wider_and_a_larger_sum_is_higher(
    case: tuple[int, float, float], more: float, alpha: float
) -> None:
    """So the ends of what rounding may have done to sums are at corners."""
    rows, mean, share = case
    first, largest = mean * mean, mean
    s2 = first + share * (largest - first)
    wider = s2 + more * (largest - s2)
    low, high = betting_interval(rows, rows * mean, rows * s2, alpha)
    low2, high2 = betting_interval(rows, rows * mean, rows * wider, alpha)
    room = 1e-6 * (high2 - low2) + 1e-9 * mean
    assert float(low2) <= float(low) + room
    assert float(high2) >= float(high) - room


def test_sums_may_be_wrong_in_their_last_digits() -> None:
    """Whatever rounding of 1e-12 does to sums, the limit stays at or below that of the exact ones."""
    rng = np.random.default_rng(3)
    for rows in (20, 10**4, 10**8):
        for mean, deviation in ((0.3, 0.1), (0.999, 0.01), (1e-4, 1e-4)):
            total, squares = rows * mean, rows * (mean**2 + deviation**2)
            exact = oracle.betting_lower(oracle.two_points(rows, total, squares), rows, 1e-4)
            mirrored = (rows - total, rows - 2 * total + squares)
            exact_upper = 1 - oracle.betting_lower(oracle.two_points(rows, *mirrored), rows, 1e-4)
            wrong = 1 + 1e-12 * rng.uniform(-1, 1, (50, 2))
            assert (betting_lower(rows, total * wrong[:, 0], squares * wrong[:, 1], 1e-4) <= exact).all()
            assert (betting_upper(rows, total * wrong[:, 0], squares * wrong[:, 1], 1e-4) >= exact_upper - 1e-15).all()


def test_ends_of_the_domain() -> None:
    low, high = betting_interval(10, [0.0, 10.0, 5.0, 5.0], [0.0, 10.0, 2.5, 5.0], 0.01)
    assert low[0] == 0
    assert high[1] == 1
    assert 0.5 < low[1] < 0.6  # ten hits of ten; Clopper and Pearson have .588
    assert (high[2] - low[2]) < (high[3] - low[3])  # no variance at all against the largest
    # Sums that rounding has pushed out of range are cut to it.
    assert betting_lower(10, 10 + 1e-9, 10 + 1e-9, 0.01) == pytest.approx(
        float(betting_lower(10, 10.0, 10.0, 0.01)), abs=1e-6
    )
    assert betting_lower(10, 5.0, 2.5 - 1e-9, 0.01) == pytest.approx(float(betting_lower(10, 5.0, 2.5, 0.01)), abs=1e-6)
    assert float(betting_lower(10, -1e-12, 0.0, 0.01)) == 0


def test_it_follows_the_deviation_and_not_the_range() -> None:
    """A billion rows, a thousand questions: 1.03 to 1.25 times deviation sqrt(2 L/n)."""
    rng = np.random.default_rng(0)
    rows, alpha = 10**9, 1e-5
    mean = rng.uniform(0.1, 0.9, 1000)
    deviation = np.sqrt(mean * (1 - mean)) * rng.uniform(0.05, 1, 1000)
    low, high = betting_interval(rows, rows * mean, rows * (mean**2 + deviation**2), alpha)
    ratio = (high - low) / 2 / (deviation * math.sqrt(2 * math.log(2 / alpha) / rows))
    assert ratio.min() > 1.03
    assert ratio.max() < 1.25


@pytest.mark.parametrize(
    ("rows", "mean", "deviation", "printed"),
    [(5000, 0.5, 0.1, 0.0078), (5000, 0.01, 0.01, 0.0017), (500, 0.5, math.sqrt(0.05) / 2, 0.064 / 2)],
)
def test_no_wider_than_what_six_even_stakes_gave(rows: int, mean: float, deviation: float, printed: float) -> None:
    """The figures of the first version of these bets, at 9.9 nats a side."""
    low, high = betting_interval(rows, rows * mean, rows * (mean**2 + deviation**2), 2 * math.exp(-9.9))
    assert float(high - low) / 2 <= printed


def test_a_right_hint_is_worth_having_and_a_wrong_one_costs_little() -> None:
    rows, mean, deviation = 5000, 0.4, 0.1
    sums = (rows, rows * mean, rows * (mean**2 + deviation**2), 1e-4)
    width = [float(np.diff(betting_interval(*sums, hint)).item()) for hint in (None, 0.01, 1e-5, 0.24)]
    assert width[1] < 0.97 * width[0]
    assert max(width[2:]) < 1.1 * width[0]


def test_settling_three_values_exactly_is_never_wider() -> None:
    for rows, better, worse in ((10_000, 250, 250), (500, 20, 5), (10**6, 300, 700)):
        low, high = three_valued_interval(rows, better, worse, 1e-3)
        sums = rescaled(rows, better - worse, better + worse, -1, 1)
        ends = betting_interval(*sums, 1e-3)
        assert float(low) >= 2 * float(ends[0]) - 1 - 1e-9
        assert float(high) <= 2 * float(ends[1]) - 1 + 1e-9


@given(st.lists(st.floats(-60, 300), min_size=1, max_size=30))
def test_rescaled_sums(values: list[float]) -> None:
    x = np.array(values)
    n, s1, s2 = rescaled(*of(x), -60, 300)
    y = (x + 60) / 360
    assert float(s1) == pytest.approx(y.sum(), abs=1e-9)
    assert float(s2) == pytest.approx((y**2).sum(), abs=1e-9)
    assert float(n) == x.size


def test_many_at_once_are_each_alone() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(2, 10**6, (7, 11)).astype(float)
    mean = rng.random((7, 11))
    squares = rows * (mean**2 + rng.random((7, 11)) * mean * (1 - mean))
    alpha = 10.0 ** -rng.uniform(1, 9, 11)
    low, high = betting_interval(rows, rows * mean, squares, alpha)
    assert low.shape == (7, 11)
    for i, j in itertools.product(range(7), range(11)):
        alone = betting_interval(rows[i, j], rows[i, j] * mean[i, j], squares[i, j], alpha[j])
        assert (float(alone[0]), float(alone[1])) == pytest.approx((low[i, j], high[i, j]), rel=1e-9, abs=1e-12)


def test_the_search_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work, not time: a thousand questions take at most some hundred evaluations of all bets a side."""
    calls = 0

    def counted(*args: object) -> object:
        nonlocal calls
        calls += 1
        return log_stake(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(betting, "log_stake", counted)
    rng = np.random.default_rng(2)
    mean = rng.random(1000)
    for rows in (100, 10**5, 10**9):
        calls = 0
        betting_interval(rows, rows * mean, rows * (mean**2 + rng.random(1000) * mean * (1 - mean)), 1e-5)
        assert calls <= 300


def test_levels_far_beyond_what_a_probability_can_be() -> None:
    """After many failures a level may have thousands of nats; with many rows its limits are still worth having."""
    low, high = (float(limit(10**9, 4e8, 1.7e8, 5000.0)) for limit in (betting.betting_lower, betting.betting_upper))
    assert 0.399 < low < 0.4 < high < 0.401
    assert float(betting.betting_lower(100, 40.0, 17.0, 5000.0)) < 1e-3


@pytest.mark.parametrize(
    "sums", [(0, 0.0, 0.0, 0.1), (4, 5.0, 4.0, 0.1), (4, 2.0, 3.0, 0.1), (4, 2.0, 0.5, 0.1), (4, 2.0, 2.0, 0.0)]
)
def test_refuses_what_are_no_moments(sums: tuple[float, float, float, float]) -> None:
    with pytest.raises(InvalidArgument):
        betting_interval(*sums)


def test_refuses_other_nonsense() -> None:
    with pytest.raises(InvalidArgument, match="nats"):
        betting.betting_lower(4, 2.0, 2.0, 0.0)
    with pytest.raises(InvalidArgument, match="hint"):
        betting_lower(4, 2.0, 2.0, 0.1, 0.3)
    with pytest.raises(InvalidArgument, match="disjoint"):
        three_valued_lower(4, 3, 2, 0.1)
    with pytest.raises(InvalidArgument, match="low < high"):
        rescaled(4, 2.0, 2.0, 1.0, 1.0)


@given(
    st.floats(0, math.log(1e9)).map(lambda x: float(round(math.exp(x)))),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0.7, 200),
    st.one_of(st.none(), st.floats(0, 0.25)),
)
def test_one_limit_is_that_of_many(rows: float, mean: float, spread: float, nats: float, hint: float | None) -> None:
    """A single limit is found without arrays; both searches end within their bracket's width of the crossing."""
    total = rows * mean
    squares = total * mean + spread * (total - total * mean)
    one = float(betting.betting_lower(rows, total, squares, nats, hint))
    many = betting.betting_lower(np.full(2, rows), np.full(2, total), np.full(2, squares), nats, hint)
    assert one == pytest.approx(float(many[0]), rel=1e-6, abs=3e-7 * mean + 1e-15)
