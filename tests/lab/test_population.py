"""Truths are exact, samples follow them, and nothing depends on the order in which bits are asked for."""

import itertools
import math

import numpy as np
import pytest

from afresh.lab.population import POPULATIONS, Bit, Bits, Function, Universe, Vote, bits, evaluate


@pytest.mark.parametrize("p", [0.5, 0.25, 0.1])
def test_truth_of_a_vote_by_enumeration(p: float) -> None:
    population, signs = bits("test", p), np.array([1, -1, 1, 0, -1, 1], dtype=np.int8)
    for threshold in range(-2, 4):
        truth = 0.0
        for row in itertools.product((0, 1), repeat=6):
            chance = math.prod(population.p if bit else 1 - population.p for bit in row)
            truth += chance * (np.dot(signs, row) > threshold)
        assert Vote(signs, threshold).truth(population) == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=lambda p: p.name)
def test_samples_follow_the_truth(population: Bits) -> None:
    """Bits and votes over 60,000 rows lie within 6 deviations, failure below 2e-9 each."""
    n = 60_000
    sample = population.draw(n, np.random.default_rng(11))
    signs = np.where(np.arange(40) % 3 == 0, -1, 1).astype(np.int8)
    for question in (Bit(0), Bit(130), population.vote(signs), population.vote(-signs)):
        values = question.values(sample)
        assert values.min() >= 0
        assert values.max() <= 1
        truth = question.truth(population)
        assert abs(values.mean() - truth) <= 6 * values.std() / math.sqrt(n)


def test_vote_aims_at_the_truth_of_a_bit() -> None:
    for name in ("fair", "p=0.1", "p=0.01"):
        population = POPULATIONS[name]
        assert population.vote(np.ones(301, dtype=np.int8)).truth(population) == pytest.approx(population.p, abs=0.02)


def test_scores_are_kept_up_to_date() -> None:
    rng = np.random.default_rng(4)
    sample, straight = (POPULATIONS["fair"].draw(500, np.random.default_rng(9)) for _ in range(2))
    table = evaluate([Bit(j) for j in range(150)], straight).astype(int)
    for size in (3, 150, 90, 150, 10):
        signs = rng.integers(-1, 2, size=size).astype(np.int8)
        assert np.array_equal(sample.score(signs), signs.astype(int) @ table[:size])
        signs[rng.integers(0, size)] *= -1
        assert np.array_equal(sample.score(signs), signs.astype(int) @ table[:size])


def test_universe() -> None:
    universe = Universe("test", 1000)
    table = np.arange(1000) % 4 == 0
    question = Function(table)
    assert question.truth(universe) == 0.25
    drawn = universe.draw(20_000, np.random.default_rng(2))
    assert question.values(drawn).mean() == pytest.approx(0.25, abs=6 * math.sqrt(0.1875 / 20_000))


@pytest.mark.parametrize(("name", "truth"), [("rare", 0.005), ("differences", 0.475), ("uneven", 0.4705)])
def test_rows_of_a_universe_can_have_weights(name: str, truth: float) -> None:
    """By hand: a quarter of the rows say 1. Means over 20,000 draws within 6 deviations, failure below 2e-9."""
    universe = Universe("test", 1000).shaded(POPULATIONS[name])
    question = Function(np.arange(1000) % 4 == 0)
    assert universe.name == f"test, {name}"
    assert question.truth(universe) == pytest.approx(truth, abs=1e-12)
    values = question.values(universe.draw(20_000, np.random.default_rng(2)))
    assert values.mean() == pytest.approx(truth, abs=6 * values.std() / math.sqrt(20_000))
    assert values.std() < 0.17
    assert Universe("test", 1000).shaded(POPULATIONS["p=0.1"]) == Universe("test", 1000)
