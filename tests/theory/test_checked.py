"""Checked answers and open rows: validity by enumeration of all samples, expected widths, honest failures."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.theory.checked import (
    Checking,
    attacked_half_width,
    bins,
    check_limits,
    claim,
    expected_half_width,
    failed_limits,
    node_level,
    plan_checked,
    plan_open,
    search_checked,
)
from afresh.theory.exact import Values
from afresh.theory.symbols import Trail, cell_interval, claim_passes, outer_cell
from oracle import narrower as oracle

TABLE = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]], dtype=float)


def small_plan(passing: float) -> Checking:
    """Ten rows that check, four questions, half of all samples allowed to miss."""
    return Checking(10, 10, 4, 0.5, 0.0, 1.0, 0.1, 0.5, 1.0, passing)


def chance_of_a_miss(
    plan: Checking, table: NDArray[np.float64], law: NDArray[np.float64], values: Values, seed: int
) -> tuple[float, float, float]:
    """The probability that some released interval misses, over all samples; guesses and spreads are the analyst's.

    Also the largest share of passes and of failures over samples, to see that both happen.
    """
    rng = np.random.default_rng(seed)
    kinds = law.size
    nodes = 4000
    asks = rng.integers(0, len(table), nodes)
    truths = table @ law
    guesses = np.clip(truths[asks] + rng.normal(0, 0.2, nodes), 0.02, 0.98)
    deviations = rng.uniform(0.05, 0.5, nodes)
    wrong = passes = failures = 0.0
    for counts in oracle.all_counts(plan.check_rows, kinds):
        chance = oracle.multinomial(counts, law)
        trail, node, missed = Trail(), 1, False
        for _ in range(plan.questions):
            q, guess = int(asks[node]), float(guesses[node])
            deviation = None if values == "two-valued" else float(deviations[node])
            x = table[q]
            total, squares = float(np.dot(counts, x)), float(np.dot(counts, x**2))
            low, high = claim(plan, guess, deviation, trail, values=values)
            ends = check_limits(plan, total, squares, trail, values=values, guess=guess, deviation=deviation)
            if claim_passes(*ends, low, high):
                missed |= not low <= truths[q] <= high
                trail, symbol = trail.quiet(), 0
                passes += chance
            else:
                cells = bins(plan, guess, deviation, trail, values)
                first, last, nats = outer_cell(*failed_limits(plan, total, squares, trail, values=values), cells)
                low, high = cell_interval(first, last, cells)
                missed |= not low <= truths[q] <= high
                trail, symbol = trail.event(nats), 1 + first + 31 * last
                failures += chance
            node = (7 * node + 13 * symbol + 5) % nodes
        wrong += chance * missed
    return wrong, passes, failures


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("passing", [0.5, 0.95])
def test_two_valued_answers_hold_by_enumeration(seed: int, passing: float) -> None:
    law = np.random.default_rng(100 + seed).dirichlet(np.full(4, 0.7))
    wrong, passes, failures = chance_of_a_miss(small_plan(passing), TABLE, law, "two-valued", seed)
    assert wrong <= 0.5
    assert passes > 0.01
    assert failures > 0.01


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_numbers_hold_by_enumeration(seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    table = np.array([[0, 0.3, 1.0], [0.4, 0.5, 0.6], [0.0, 0.1, 0.9], [1.0, 0.95, 0.2]])
    wrong, passes, failures = chance_of_a_miss(small_plan(0.9), table, rng.dirichlet(np.ones(3)), "number", seed)
    assert wrong <= 0.5
    assert passes > 0.01
    assert failures > 0.01


@pytest.mark.parametrize("truth", np.linspace(0.05, 0.95, 13))
def test_one_node_misses_at_most_its_alpha(truth: float) -> None:
    """A single check of 40 rows at every truth and many claims: pass and failure together, by the binomial law.

    A pass at the whole of alpha a side and a failure at alpha more would be too much; the split is what counts.
    """
    plan = Checking(40, 40, 1, 0.3, 0.0, 1.0, 0.0, 0.9, 1.0, 0.8)
    alpha, rows = math.exp(-node_level(plan, Trail())), plan.check_rows
    hits = np.arange(rows + 1)
    chance = [math.comb(rows, h) * truth**h * (1 - truth) ** (rows - h) for h in hits.tolist()]
    tests = [check_limits(plan, h, h, Trail()) for h in hits.tolist()]
    fails = [failed_limits(plan, h, h, Trail()) for h in hits.tolist()]
    for guess in np.linspace(0.02, 0.98, 25):
        low, high = claim(plan, float(guess), None, Trail())
        missed = sum(
            p * (not (low <= truth <= high if claim_passes(*test, low, high) else fail[0] <= truth <= fail[1]))
            for p, test, fail in zip(chance, tests, fails, strict=True)
        )
        assert missed <= alpha


@pytest.mark.parametrize(
    ("rows", "questions", "calm", "attacked"), [(10**5, 1000, 0.030, 0.037), (10**4, 1000, 0.094, 0.118)]
)
def test_expected_widths(rows: int, questions: int, calm: float, attacked: float) -> None:
    plan = plan_checked(rows, questions, 0.05)
    assert expected_half_width(plan) <= calm
    assert attacked_half_width(plan) <= attacked
    assert expected_half_width(plan) < attacked_half_width(plan)
    later = Trail().event(math.log(50)).quiet()
    assert expected_half_width(plan, trail=later) > 1.1 * expected_half_width(plan)


def test_the_search_improves_on_what_it_starts_from() -> None:
    plan, calm, attacked = search_checked(10**4, 100, 0.05, attack=1.0, evaluations=60)
    assert attacked <= attacked_half_width(plan_checked(10**4, 100, 0.05)) * (1 + 1e-9)
    assert calm == pytest.approx(expected_half_width(plan))


def honest_failures(plan: Checking, values: Values, draw: object, deviation: float | None, repeats: int) -> int:
    """How many of many honest claims fail: guesses with their noise, on rows of the same law."""
    rng = np.random.default_rng(5)
    failures = 0
    for _ in range(repeats):
        guess_mean, _ = draw(rng, plan.guess_rows)  # type: ignore[operator]
        variance = deviation**2 if deviation is not None else guess_mean * (1 - guess_mean)
        guess = guess_mean + rng.normal() * math.sqrt(plan.noise * variance)
        total, squares = draw(rng, plan.check_rows)  # type: ignore[operator]
        total, squares = total * plan.check_rows, squares * plan.check_rows
        low, high = claim(plan, guess, deviation, Trail(), values=values)
        ends = check_limits(plan, total, squares, Trail(), values=values, guess=guess, deviation=deviation)
        failures += not claim_passes(*ends, low, high)
    return failures


def of_a_share(rng: np.random.Generator, rows: int) -> tuple[float, float]:
    mean = rng.binomial(rows, 0.3) / rows
    return mean, mean


def of_delays(rng: np.random.Generator, rows: int) -> tuple[float, float]:
    x = np.minimum(rng.gamma(2.0, 0.1, rows), 1.0)
    return float(x.mean()), float((x**2).mean())


def of_models(rng: np.random.Generator, rows: int) -> tuple[float, float]:
    better, worse, _ = rng.multinomial(rows, [0.03, 0.02, 0.95])
    return (better - worse) / rows, (better + worse) / rows


@pytest.mark.thorough
@pytest.mark.parametrize("plan", [plan_checked(4000, 200, 0.05), plan_open(2000, 2000, 200, 0.05)])
@pytest.mark.parametrize(
    ("values", "draw", "deviation"),
    [("two-valued", of_a_share, None), ("number", of_delays, 0.14), ("three-valued", of_models, math.sqrt(0.05))],
)
def test_honest_claims_hardly_ever_fail(plan: Checking, values: Values, draw: object, deviation: float | None) -> None:
    """Planned: .2 failures in a life of 200 questions. 400 claims are then expected to fail .4 times in all; more than
    8 failures have probability below 1e-8 at that rate and below 1e-6 at twice it (Poisson).
    """
    assert honest_failures(plan, values, draw, deviation, 400) <= 8


def test_claims_follow_the_deviation() -> None:
    plan = plan_checked(10**5, 100, 0.05)
    wide = expected_half_width(plan, 0.4)
    narrow = expected_half_width(plan, 0.4, 0.05, values="number")
    assert narrow < 0.15 * wide


def test_claims_after_very_many_failures() -> None:
    """Hundreds of failures cost thousands of nats: claims are wide, and there is no error."""
    plan, trail = plan_checked(10**6, 1000, 0.05), Trail()
    for _ in range(500):
        trail = trail.event(math.log(40))
    assert node_level(plan, trail) > 1000
    for values, deviation in (("two-valued", None), ("number", 0.1), ("three-valued", 0.2)):
        low, high = claim(plan, 0.4, deviation, trail, values=values)  # type: ignore[arg-type]
        assert low < 0.4 < high
        assert high - low < 0.2


def test_ends_of_the_domain() -> None:
    for rows, questions, failure in ((10, 1, 0.5), (10**9, 10**6, 1e-9), (50, 10**6, 1e-9)):
        for plan in (
            plan_checked(rows, questions, failure),
            plan_open(rows // 2, rows - rows // 2, questions, failure),
        ):
            for mean in (0.0, 1e-6, 0.5, 1.0):
                low, high = claim(plan, mean, None, Trail())
                assert 0 <= low <= mean <= high <= 1
                low, high = claim(plan, mean, 0.01, Trail(), values="number")
                assert 0 <= low <= mean <= high <= 1
            for mean in (-1.0, -0.2, 0.0, 1.0):
                low, high = claim(plan, mean, 0.3, Trail(), values="three-valued")
                assert -1 <= low <= mean <= high <= 1


@pytest.mark.parametrize(
    "bad",
    [
        {"guess_rows": 0},
        {"check_rows": 0},
        {"questions": 0},
        {"failure": 0.0},
        {"calm": 0.5},
        {"noise": -1.0},
        {"reach": -1.0},
        {"growth": math.nan},
        {"none": 1.0},
        {"passing": 0.0},
    ],
)
def test_refuses_what_is_no_plan(bad: dict[str, Any]) -> None:
    good = Checking(50, 50, 10, 0.05, 0.0, 3.0, 0.1, 0.5, 1.0, 0.9)
    with pytest.raises(InvalidArgument):
        replace(good, **bad)


def test_the_model_of_the_attack_against_real_rows() -> None:
    """The classic attack on 10,000 rows, 1000 questions: mean half-width, three runs with fixed seeds."""
    rows, questions = 10**4, 1000
    plan = plan_checked(rows, questions, 0.05)
    widths = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        parts = [rng.integers(0, 2, (size, questions), dtype=np.int8) for size in (plan.guess_rows, plan.check_rows)]
        votes = [np.full(part.shape[0], 0.5) for part in parts]
        trail = Trail()
        for j in range(1, questions + 1):
            attack = j > 1 and math.isqrt(j) ** 2 == j
            guessed, checked = (
                (vote > 0).astype(float) if attack else part[:, j - 1].astype(float)
                for vote, part in zip(votes, parts, strict=True)
            )
            mean = float(guessed.mean())
            guess = min(max(mean + rng.normal() * math.sqrt(plan.noise * mean * (1 - mean)), 0.0), 1.0)
            if not attack:
                sign = 1 if guess > 0.5 else -1
                votes = [v + sign * (2 * x - 1) for v, x in zip(votes, (guessed, checked), strict=True)]
            hits = float(checked.sum())
            low, high = claim(plan, guess, None, trail)
            if claim_passes(*check_limits(plan, hits, hits, trail), low, high):
                trail = trail.quiet()
            else:
                cells = bins(plan, guess, None, trail)
                low, high = failed_limits(plan, hits, hits, trail)  # a bin's edges are at most half a bin further out
                low, high = max(low - 0.5 / cells, 0.0), min(high + 0.5 / cells, 1.0)
                trail = trail.event(math.log(cells))
            widths.append((high - low) / 2)
    assert np.mean(widths) == pytest.approx(attacked_half_width(plan), rel=0.08)
