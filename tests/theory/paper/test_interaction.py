"""Figure 2 and the monitors."""

import math

import numpy as np
import pytest

from afresh.errors import InvalidArgument
from afresh.mechanisms.stabilized import plan_stabilized
from afresh.theory.paper.interaction import (
    Analyst,
    Floats,
    Population,
    Query,
    Rows,
    Transcript,
    answering,
    calibrated_answer,
    interact,
    worst_query,
    worst_scaled_query,
)


def column(index: int) -> Query:
    def query(rows: Rows) -> Floats:
        values: Floats = rows[:, index].astype(np.float64)
        return values

    return query


def agreeing(past: Transcript) -> Query | None:
    """Asks four columns, then the majority of those whose answer was above one half: the classic attack."""
    if len(past) < 4:
        return column(len(past))
    if len(past) > 4:
        return None
    signs = np.sign(np.array(past.answers) - 0.5)

    def majority(rows: Rows) -> Floats:
        votes: Floats = ((2.0 * rows[:, :4] - 1) @ signs > 0).astype(np.float64)
        return votes

    return majority


def uniform_bits(columns: int) -> Population:
    points = np.array([[(x >> j) & 1 for j in range(columns)] for x in range(2**columns)])
    return Population(points, np.full(2**columns, 2.0**-columns))


def test_a_fold_over_the_noise() -> None:
    rng = np.random.default_rng(1)
    sample, noise = rng.integers(0, 2, (50, 4)), rng.standard_normal(9)
    first = interact(agreeing, calibrated_answer(20.0, 100.0), sample, noise)
    assert len(first) == 5  # it stopped by itself
    assert first.answers == interact(agreeing, calibrated_answer(20.0, 100.0), sample, list(noise)).answers
    assert len(interact(agreeing, calibrated_answer(20.0, 100.0), sample, noise[:2])) == 2  # k rounds at most
    for j, query in enumerate(first.queries):
        values = query(sample)
        scale = math.sqrt(max(values.var() / 20, 1 / 100))
        assert first.answers[j] == pytest.approx(values.mean() + noise[j] * scale)


def test_the_analyst_sees_the_transcript_and_nothing_else() -> None:
    seen = []

    def watcher(past: Transcript) -> Query:
        seen.append(past)
        return column(0)

    sample = np.array([[0], [1], [1]])
    last = interact(watcher, calibrated_answer(1.0, 1.0), sample, [0.0, 1.0, -1.0])
    assert [len(past) for past in seen] == [0, 1, 2]
    assert [past.answers for past in seen] == [last.answers[:j] for j in range(3)]


def test_a_mechanism_of_the_product_answers() -> None:
    mechanism = plan_stabilized(10**4, 5, 0.05)
    assert mechanism is not None
    rng = np.random.default_rng(2)
    sample = rng.integers(0, 2, (10**4, 4))
    transcript = interact(agreeing, answering(mechanism), sample, rng.standard_normal(5))
    for query, v in zip(transcript.queries, transcript.answers, strict=True):
        assert v == pytest.approx(query(sample).mean(), abs=0.1)


@pytest.mark.parametrize("bad", [lambda rows: rows[:, 0] * 2.0, lambda rows: rows[:1, 0] * 1.0])
def test_refuses_what_is_no_statistical_query(bad: Query) -> None:
    analyst: Analyst = lambda past: bad  # noqa: E731 - an analyst is a function
    with pytest.raises(InvalidArgument, match="query 1 must map"):
        interact(analyst, calibrated_answer(1.0, 1.0), np.array([[1], [1]]), [0.0])


def test_population() -> None:
    population = uniform_bits(3)
    assert population.mean(column(0)) == pytest.approx(0.5)
    assert population.sd(column(0)) == pytest.approx(0.5)
    with pytest.raises(InvalidArgument, match="sum to"):
        Population(np.zeros((2, 1)), np.array([0.5, 0.6]))
    with pytest.raises(InvalidArgument, match="weights for"):
        Population(np.zeros((3, 1)), np.array([0.5, 0.5]))


def rare(rows: Rows) -> Floats:
    """All four bits are one: mean 1/16, standard deviation sqrt(15)/16."""
    values: Floats = (rows.min(axis=1) == 1).astype(np.float64)
    return values


def test_monitors_pick_different_queries() -> None:
    """The largest error is the first query's; the largest for its standard deviation is the rare one's."""
    population = uniform_bits(4)
    transcript = Transcript((column(0), rare), (0.62, 1 / 16 + 0.1))
    assert worst_query(transcript, population).index == 0
    scaled = worst_scaled_query(transcript, population, tau=0.01)
    assert scaled.index == 1
    assert scaled.error == pytest.approx(0.1 / (math.sqrt(15) / 16))
    # tau larger than both deviations makes the two monitors agree.
    assert worst_scaled_query(transcript, population, tau=0.6).index == 0


def test_the_scaled_monitor_flips_negative_errors() -> None:
    population = uniform_bits(4)
    transcript = Transcript((column(0), rare), (0.5, 0.02))
    found = worst_scaled_query(transcript, population, tau=0.01)
    assert found.answer == pytest.approx(0.98)
    assert population.mean(found.query) == pytest.approx(15 / 16)
    assert found.answer - population.mean(found.query) > 0
    assert worst_query(transcript, population).answer == 0.02  # f_* does not flip


def test_monitors_refuse() -> None:
    population = uniform_bits(2)
    with pytest.raises(InvalidArgument, match="empty"):
        worst_query(Transcript(), population)
    with pytest.raises(InvalidArgument, match="tau"):
        worst_scaled_query(Transcript((rare,), (0.1,)), population, tau=0.0)
    with pytest.raises(InvalidArgument, match="t =="):
        calibrated_answer(0.0, 1.0)
