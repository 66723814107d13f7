"""Rounds: shares, and the theorem by enumeration of all samples of a small world."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.theory.exact import interval
from afresh.theory.rounds import (
    batch_share,
    capped_share,
    equal_rounds,
    final_look_rows,
    looks,
    round_share,
)


@given(st.integers(1, 10**6), st.floats(1e-9, 0.5))
def test_capped_shares_sum_to_beta(questions: int, failure: float) -> None:
    assert capped_share(failure, questions) * questions <= failure * (1 + 1e-12)


@given(st.integers(1, 1000), st.floats(1e-9, 0.5), st.integers(1, 3000))
def test_open_ended_shares_telescope(expected: int, failure: float, rounds: int) -> None:
    total = math.fsum(round_share(failure, t, expected) for t in range(1, rounds + 1))
    assert total == pytest.approx(failure * rounds / (rounds + expected), rel=1e-9)
    assert total < failure


def test_open_ended_shares_cost_little_when_the_expectation_is_right() -> None:
    assert math.log(0.05 / 1000 / round_share(0.05, 1000, 1000)) == pytest.approx(math.log(4), abs=1e-3)


@given(st.floats(0, 0.99), st.integers(1, 50))
def test_looks_and_batches_keep_to_the_share(kept: float, batch: int) -> None:
    now, later = looks(batch_share(0.01, batch), kept)
    assert (now + later) * batch == pytest.approx(0.01)
    assert now > 0


TABLE = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 0, 1]])  # a, b, a xor b, a and b


@pytest.mark.parametrize("seed", range(8))
def test_the_theorem_by_enumeration(seed: int) -> None:
    """Seven rows of two bits in three rounds and a final look: every sample, an analyst whose questions, sizes and
    shares follow what it has seen. Some interval misses with probability at most beta.
    """
    rng = np.random.default_rng(seed)
    law, failure, rows = rng.dirichlet(np.full(4, 0.7)), 0.4, 7
    choices = rng.integers(0, 4, (3, 9, 2))  # what is asked next, given the count of hits just seen
    sizes = rng.integers(1, 4, (3, 9))
    truths = TABLE @ law

    @cache
    def ends(size: int, hits: int, alpha: float) -> tuple[float, float]:
        low, high = interval("two-valued", size, hits, hits, alpha)
        return float(low), float(high)

    def misses(sample: NDArray[np.int64]) -> bool:
        start, seen, asked = 0, 0, []
        for t in range(3):
            size = min(int(sizes[t, seen]), rows - start)
            if size == 0:
                break
            share = batch_share(round_share(failure, t + 1, 3), 2)
            now, later = looks(share)
            batch = [int(q) for q in choices[t, seen]]
            hits = [int(TABLE[q][sample[start : start + size]].sum()) for q in batch]
            for q, h in zip(batch, hits, strict=True):
                low, high = ends(size, h, now)
                if not low <= truths[q] <= high:
                    return True
                asked.append((q, start, later))
            start, seen = start + size, hits[0]
        for q, before, later in asked:
            left = final_look_rows(rows, before)
            h = int(TABLE[q][sample[before:]].sum())
            low, high = ends(left, h, later)
            if not low <= truths[q] <= high:
                return True
        return False

    total = 0.0
    for sample in itertools.product(range(4), repeat=rows):
        chance = math.prod(law[kind] for kind in sample)
        if chance > 1e-7 and misses(np.array(sample)):
            total += chance
    left_out = 4**rows * 1e-7
    assert total + left_out <= failure


def test_a_round_that_asks_after_its_own_rows_is_not_covered() -> None:
    """What rounds forbid: the best of 40 fair columns on the same twelve rows misses far more often than alpha."""
    rows, alpha = 12, 0.2
    single = sum(
        math.comb(rows, h) / 2**rows for h in range(rows + 1) if interval("two-valued", rows, h, h, alpha)[0] > 0.5
    )
    assert 0 < single <= alpha / 2
    assert 1 - (1 - single) ** 40 > 0.5


def test_a_final_look_has_all_rows_that_its_question_did_not_depend_on() -> None:
    assert final_look_rows(1000, 0) == 1000
    assert final_look_rows(1000, 300, 100) == 600
    assert equal_rounds(1005, 10) == 100


def test_refusals() -> None:
    for call in (
        lambda: capped_share(0.05, 0),
        lambda: capped_share(1.0, 5),
        lambda: round_share(0.05, 0, 5),
        lambda: batch_share(0.1, 0),
        lambda: looks(0.1, 1.0),
        lambda: final_look_rows(10, 8, 3),
        lambda: equal_rounds(5, 6),
    ):
        with pytest.raises(InvalidArgument):
            call()
