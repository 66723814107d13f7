"""Exact paired comparisons: enumeration of all outcomes, mpmath, and the textbook's normal interval beside them."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from afresh.errors import InvalidArgument
from afresh.theory import paired
from afresh.theory.binomial import sign_test

ALPHAS = (0.5, 0.2, 0.05, 0.01)


@cache
def _outcomes(rows: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """All counts of wins and losses, and the logarithms of how many samples have them."""
    counts = [(wins, losses) for wins in range(rows + 1) for losses in range(rows + 1 - wins)]
    ways = [math.log(math.comb(rows, wins) * math.comb(rows - wins, losses)) for wins, losses in counts]
    return np.array(counts), np.array(ways)


def _chance(rows: int, plus: float, minus: float) -> NDArray[np.float64]:
    """The probability of each outcome."""
    counts, ways = _outcomes(rows)
    wins, losses = counts.T
    parts = ((wins, plus), (losses, minus), (rows - wins - losses, 1 - plus - minus))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = ways + sum(np.where(count > 0, count * np.log(max(p, 0.0)), 0.0) for count, p in parts)
    return np.exp(logs)


@pytest.mark.parametrize("margin", [0.0, -0.02, -0.2, 0.1])
@pytest.mark.parametrize("rows", [3, 7, 12])
def test_limits_miss_no_more_often_than_promised(rows: int, margin: float) -> None:
    """In every world of a grid, and where theta is just what a limit says."""
    counts, _ = _outcomes(rows)
    for alpha in ALPHAS:
        limits = np.array([paired.lower(rows, int(one), int(other), -math.log(alpha), margin) for one, other in counts])
        thetas = np.unique([*np.linspace(-0.95, 0.95, 39), *limits[limits > -1], margin, 0.0])
        for pi in np.linspace(0.05, 1, 20):
            for theta in thetas[np.abs(thetas) <= pi]:
                chance = _chance(rows, (pi + theta) / 2, (pi - theta) / 2)
                assert chance[(limits >= theta) & (limits > -1)].sum() <= alpha * (1 + 1e-9)


@pytest.mark.parametrize("rows", [4, 8, 12])
def test_limits_hold_where_which_rows_differ_is_public(rows: int) -> None:
    """Rows that differ have coins of their own; extremes of two kinds of coins are the worst there are (Hoeffding)."""
    for differ, alpha in product(range(1, rows + 1), (0.2, 0.05, 0.01)):
        limits = [paired.lower_where_public(rows, wins, differ - wins, -math.log(alpha)) for wins in range(differ + 1)]
        for many, q in product(range(differ + 1), (0.02, 0.2, 0.5, 0.7, 0.97)):
            for rest in (0.0, 0.5, 1.0):
                coins = [q] * many + [rest] * (differ - many)
                law = np.ones(1)
                for coin in coins:
                    law = np.convolve(law, [1 - coin, coin])
                theta = (2 * sum(coins) - differ) / rows
                missed = sum(law[wins] for wins in range(differ + 1) if limits[wins] >= theta + 1e-12)
                assert missed <= alpha * (1 + 1e-9), (differ, alpha, coins)


@pytest.mark.parametrize("margin", [-0.2, -0.01, 0.0, 0.05, 0.3])
def test_verdicts_are_wrong_no_more_often_than_promised(margin: float) -> None:
    rows = 12
    counts, _ = _outcomes(rows)
    for alpha in ALPHAS:
        passed = np.array(
            [paired.better(rows, int(one), int(other), -math.log(alpha), margin) for one, other in counts]
        )
        for pi in np.linspace(0.05, 1, 39):
            for theta in {margin, margin - 0.01, -0.9 * pi}:
                if abs(theta) <= pi and theta <= margin:
                    assert _chance(rows, (pi + theta) / 2, (pi - theta) / 2)[passed].sum() <= alpha * (1 + 1e-9)


def test_models_that_never_differ_are_equal() -> None:
    assert -1e-300 < paired.lower_where_public(100, 0, 0, 3.0) < 0


def test_the_verdict_is_the_sign_test() -> None:
    rows = 40
    for wins, losses in _outcomes(rows)[0][::7].tolist():
        for alpha in (0.3, 0.05, 0.001):
            nats = -math.log(alpha)
            decided = paired.better(rows, wins, losses, nats)
            assert decided is bool(sign_test(wins, losses) >= nats)
            assert (paired.lower(rows, wins, losses, nats) >= 0) is decided
            for margin in (-0.1, 0.1):
                limit = paired.lower(rows, wins, losses, nats, margin)
                assert (limit >= margin) is paired.better(rows, wins, losses, nats, margin) or abs(
                    limit - margin
                ) < 1e-6


@pytest.mark.parametrize("rows", [150, 1000, 5000])
def test_the_verdict_is_the_sign_test_where_it_just_decides(rows: int) -> None:
    for share, alpha in product((0.02, 0.1, 0.4, 0.8), (0.05, 0.001)):
        differ, nats = int(rows * share), -math.log(alpha)
        wins = next((w for w in range(differ + 1) if sign_test(w, differ - w) >= nats), None)
        if wins is not None:
            assert paired.lower(rows, wins, differ - wins, nats) >= 0
            assert paired.lower(rows, wins - 1, differ - wins + 1, nats) <= -nats / rows


@pytest.mark.parametrize(
    ("rows", "pi", "theta", "alpha", "most"),
    [
        (1000, 0.37, 0.05, 0.05, 1.10),
        (150, 0.6, 0.1, 0.05, 1.18),
        (1000, 0.15, 0.03, 0.05, 1.17),
        (5000, 0.09, 0.02, 0.0009, 1.11),
        (500, 0.3, 0.0, 0.05, 1.18),
        (100_000, 0.1, 0.01, 0.001, 1.03),
        (1000, 0.8, 0.1, 0.05, 1.18),
    ],
)
def test_intervals_are_hardly_wider_than_the_normal_one(
    rows: int, pi: float, theta: float, alpha: float, most: float
) -> None:
    differ = round(rows * pi)
    wins = round((differ + rows * theta) / 2)
    low, high = paired.interval(rows, wins, differ - wins, alpha)
    spread = math.sqrt((differ / rows - ((2 * wins - differ) / rows) ** 2) / rows)
    assert (high - low) / 2 <= most * norm.isf(alpha / 2) * spread
    assert low < (2 * wins - differ) / rows < high


def _exact_tail(rows: int, t: int, plus: Fraction, minus: Fraction) -> Fraction:
    """Pr(wins - losses >= t) by exact arithmetic, row by row."""
    law = {0: Fraction(1)}
    for _ in range(rows):
        later: dict[int, Fraction] = {}
        for at, chance in law.items():
            for step, p in ((1, plus), (-1, minus), (0, 1 - plus - minus)):
                later[at + step] = later.get(at + step, Fraction(0)) + chance * p
        law = later
    return sum((chance for at, chance in law.items() if at >= t), Fraction(0))


def test_tails_against_exact_arithmetic() -> None:
    for rows, plus, minus in product(
        (5, 30), (Fraction(1, 7), Fraction(2, 5)), (Fraction(0), Fraction(1, 9), Fraction(3, 5))
    ):
        if plus + minus <= 1:
            for t in range(-rows, rows + 1, 3):
                exact = float(_exact_tail(rows, t, plus, minus))
                found = paired._tail(rows, t, float(plus), float(minus), 40.0)
                assert exact * (1 - 1e-9) <= found + 1e-20 <= exact * (1 + 1e-6) + 1e-17


def test_small_tails_against_mpmath() -> None:
    """A level after many failures: 60 nats."""
    rows, t, plus, minus = 2000, 300, 0.06, 0.05
    with mpmath.workdps(40):
        pi, share = mpmath.mpf(plus) + mpmath.mpf(minus), mpmath.mpf(plus) / (mpmath.mpf(plus) + mpmath.mpf(minus))
        exact = mpmath.mpf(0)
        for m in range(t, rows + 1):
            here = mpmath.binomial(rows, m) * pi**m * (1 - pi) ** (rows - m)
            if here > mpmath.mpf(10) ** -80:
                exact += here * mpmath.betainc((m + t + 1) // 2, m - (m + t + 1) // 2 + 1, 0, share, regularized=True)
    found = paired._tail(rows, t, plus, minus, 300.0)
    assert found == pytest.approx(float(exact), rel=1e-6)


def test_the_tail_rises_with_the_share_that_differs() -> None:
    """The claim behind the limit, on random laws, by convolution: from (n-1) theta + 2 on, up to one half."""
    dice = np.random.default_rng(1956)
    for _ in range(300):
        rows = int(dice.integers(2, 40))
        theta = dice.uniform(-0.4, 0.4)
        pis = np.sort(dice.uniform(abs(theta), 0.5, 2))
        laws = []
        for pi in pis:
            law = np.ones(1)
            for _ in range(rows):
                law = np.convolve(law, [(pi - theta) / 2, 1 - pi, (pi + theta) / 2])
            laws.append(law[::-1].cumsum()[::-1])  # Pr(T >= t), t = -rows, ..., rows
        start = max(math.ceil((rows - 1) * theta + 2) + rows, 0)
        assert (laws[1][start:] >= laws[0][start:] - 1e-12).all()


@pytest.mark.parametrize(
    "given",
    [(10, 6, 5, 3.0, 0.0), (10, -1, 5, 3.0, 0.0), (0, 0, 0, 3.0, 0.0), (10, 1, 1, 0.0, 0.0), (10, 1, 1, 3.0, 1.5)],
)
def test_what_cannot_be_counted(given: tuple[int, int, int, float, float]) -> None:
    with pytest.raises(InvalidArgument):
        paired.lower(*given)


@pytest.mark.parametrize("margin", [-0.05, 0.0, 0.1])
@pytest.mark.parametrize("alpha", [0.2, 0.05, 1e-3])
def test_fewest_wins_is_the_first_that_is_accepted(margin: float, alpha: float) -> None:
    rows, nats = 60, -math.log(alpha)
    for differ in (0, 1, 5, 12, 30, 60):
        accepted = [wins for wins in range(differ + 1) if paired.better(rows, wins, differ - wins, nats, margin)]
        assert paired.fewest_wins(rows, differ, nats, margin) == (accepted[0] if accepted else None)
        assert accepted == list(range(differ + 1 - len(accepted), differ + 1))
