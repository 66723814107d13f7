"""Guess and check: the tree of what a check part can say, and what is released of it."""

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import InvalidArgument
from afresh.theory.guess_and_check import (
    History,
    Record,
    bin_interval,
    bin_of,
    check,
    check_interval,
    check_level,
    log_share,
    released_interval,
    released_value,
    replay,
)

means = st.floats(0, 1)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_the_shares_of_all_nodes_sum_to_at_most_one(k: int) -> None:
    """Every node of the tree, enumerated; the number of bins changes from question to question."""
    total, nodes = 0.0, [History()]
    for _ in range(k):
        total += math.fsum(math.exp(log_share(k, history)) for history in nodes)
        children = []
        for history in nodes:
            bins = 1 + (history.asked + 2 * history.failures) % 3
            record = Record(0.5, 0.4, 0.6, bins)
            children += [history.after(Record(0.5, 0.4, 0.6, bins, index)) for index in range(bins)]
            children.append(history.after(record))
        nodes = children
    assert 0.5 < total <= 1


@given(st.integers(1, 400), st.integers(0, 30), st.lists(st.integers(1, 500), max_size=30))
def test_level_against_the_formula(before: int, passes: int, bins: list[int]) -> None:
    k, f = before + passes + len(bins) + 1, len(bins)
    history = History(before + f, f, math.fsum(map(math.log, bins)))
    share = 6 / (math.pi**2 * (f + 1) ** 2) / (k * math.comb(before + f, f) * math.prod(bins))
    assert check_level(k, 0.05, history) == pytest.approx(math.log(2 / 0.05 / share), rel=1e-9)
    assert check_level(k, 0.05, history) >= math.log(2 / 0.05) + math.log(1 / share) - 1e-12 * 2000


@given(means, means, st.floats(0, 0.5), st.integers(1, 200), st.floats(0.1, 60))
def test_a_pass_tells_the_claim_and_a_failure_the_bin(
    mean: float, guess: float, tau: float, bins: int, level: float
) -> None:
    low, high, rows = max(guess - tau, 0.0), min(guess + tau, 1.0), 1000
    record = check(mean, guess, low, high, bins, rows, level)
    least, most = check_interval(mean, rows, level)
    if record.bin is None:
        assert low <= least <= most <= high
        assert released_interval(record, rows, level) == (low, high)
        assert released_value(record) == guess
    else:
        assert least < low or most > high
        wide = released_interval(record, rows, level)
        assert wide[0] <= least <= most <= wide[1]  # so it holds whenever the check interval does
        # A function of the bin alone: another mean there that also fails is told the same.
        other = check((record.bin + 0.5) / bins, guess, low, high, bins, rows, level)
        assert other.bin in (None, record.bin)
        assert wide[0] <= released_value(record) <= wide[1]


@given(means, st.integers(1, 1000), st.floats(0, 100))
def test_bins_hold_their_means(mean: float, bins: int, level: float) -> None:
    index = bin_of(mean, bins)
    assert 0 <= index < bins
    low, high = bin_interval(index, bins, 500, level)
    assert low <= mean <= high
    assert bin_of(1.0, bins) == bins - 1  # the last is closed


def test_records_alone_give_the_intervals_again() -> None:
    rng, history, k = np.random.default_rng(1), History(), 50
    records, told = [], []
    for guess, mean in rng.random((k, 2)):
        mean = guess + (mean - 0.5) * 0.3
        level = check_level(k, 0.05, history)
        record = check(min(max(mean, 0), 1), guess, max(guess - 0.1, 0), min(guess + 0.1, 1), 20, 5000, level)
        told.append((released_value(record), *released_interval(record, 5000, level)))
        records.append(record)
        history = history.after(record)
    assert 5 < history.failures < 45
    kept = [Record(**asdict(record)) for record in records]  # as a ledger would give them back
    assert list(replay(kept, k, 0.05, 5000)) == told


@pytest.mark.parametrize(
    "record",
    [
        Record(0.5, 0.4, 0.6, 10, 10),
        Record(0.5, 0.4, 0.6, 10, -1),
        Record(0.7, 0.4, 0.6, 10),
        Record(0.5, -0.1, 0.6, 10),
        Record(0.5, 0.4, 0.6, 0),
        Record(math.nan, 0.4, 0.6, 10),
    ],
)
def test_records_that_cannot_be_are_refused(record: Record) -> None:
    with pytest.raises(InvalidArgument, match="record 2"):
        list(replay([Record(0.5, 0.4, 0.6, 10), record], 10, 0.05, 1000))
    with pytest.raises(InvalidArgument, match="asked"):
        list(replay([Record(0.5, 0.4, 0.6, 10)] * 3, 2, 0.05, 1000))


def test_failures_cost_and_passes_hardly() -> None:
    level = check_level(1000, 0.05, History())
    assert level == pytest.approx(math.log(2 * 1000 / 0.05 * math.pi**2 / 6), rel=1e-9)
    assert check_level(1000, 0.05, History(999)) == pytest.approx(level, rel=1e-9)
    one = check_level(1000, 0.05, History(500, 1, math.log(20)))
    assert one - level == pytest.approx(math.log(4 * 500 * 20), rel=1e-9)
