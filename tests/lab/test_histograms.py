"""The analyst who asks histograms: exact truths, bins that exclude one another, and a price for all of them at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest

from afresh.lab.histograms import WIDE, Pattern, Rank, Worth
from afresh.lab.mechanisms import MECHANISMS
from afresh.lab.population import POPULATIONS, Bits, Question, bits, evaluate
from afresh.lab.session import AtOnce
from afresh.lab.simulation import Trial, run

LINES = np.where(np.random.default_rng(3).random((2, 2**WIDE)) < 0.5, 1, -1).astype(np.int8)
WORTH = Worth(LINES)
EDGES = (-3, -1, 0, 2)


@pytest.mark.parametrize("p", [0.5, 0.1])
def test_truths_by_enumeration(p: float) -> None:
    population = bits("test", p)
    found = np.zeros(len(EDGES) - 1)
    for row in itertools.product((0, 1), repeat=2 * WIDE):
        chance = math.prod(population.p if bit else 1 - population.p for bit in row)
        reads = [sum(bit << i for i, bit in enumerate(row[start : start + WIDE])) for start in (0, WIDE)]
        total = sum(int(line[read]) for line, read in zip(LINES, reads, strict=True))
        found += [chance * (low < total <= high) for low, high in itertools.pairwise(EDGES)]
    truths = [Rank(WORTH, low, high).truth(population) for low, high in itertools.pairwise(EDGES)]
    assert truths == pytest.approx(found, abs=1e-12)
    assert sum(Pattern(0, reads).truth(population) for reads in range(2**WIDE)) == pytest.approx(1)


@pytest.mark.parametrize("population", POPULATIONS.values(), ids=lambda p: p.name)
def test_bins_exclude_one_another_and_follow_their_truths(population: Bits) -> None:
    """Over 20,000 rows within Bernstein's bound at e^-21, so that all fail with probability below 1e-7."""
    n, level = 20_000, 21 / 20_000
    sample = population.draw(n, np.random.default_rng(7))
    ranks = [Rank(WORTH, low, high) for low, high in itertools.pairwise(EDGES)]
    groups: list[Sequence[Question]] = [[Pattern(WIDE, reads) for reads in range(2**WIDE)], ranks]
    for questions in groups:
        values = evaluate(questions, sample)
        assert values.min() >= 0
        assert values.sum(axis=0).max() <= 1
        for question, own in zip(questions, values, strict=True):
            truth = question.truth(population)
            assert abs(own.mean() - truth) <= math.sqrt(2 * truth * level) + level


def test_a_histogram_counts_few_answers_and_holds_where_the_plain_mean_does_not() -> None:
    """If 95% of conversations hold, 7 or more of 8 miss with probability below 1e-8."""
    session = MECHANISMS["symmetrized"](2000, 200, 0.05).start(np.random.default_rng(1))
    assert isinstance(session, AtOnce)
    assert session.price(2**WIDE) == 3
    assert not isinstance(MECHANISMS["stabilized"](2000, 200, 0.05).start(np.random.default_rng(1)), AtOnce)
    found = {name: run(Trial(name, "histograms", "fair", 2000, 200), range(8)) for name in ("symmetrized", "empirical")}
    assert sum(misses > 0 for misses in found["symmetrized"]["misses"]) < 7
    assert sum(misses > 0 for misses in found["empirical"]["misses"]) >= 7
    assert found["symmetrized"]["answers"] == [66 * 2**WIDE] * 8  # numbers, for 198 answers
    assert found["empirical"]["answers"] == [25 * 2**WIDE] * 8
