"""What follows from released intervals, against brute force: every point of a small grid that all intervals allow."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.boards import Constraints, Order, order
from afresh.boards.pairing import candidates, worth

SIDE = 5  # means are whole numbers from 0 to SIDE: with whole ends nothing between them matters
Interval = tuple[int, int]


@st.composite
def boards(draw: st.DrawFn) -> tuple[int, list[tuple[int, Interval]], list[tuple[int, int, Interval]]]:
    """Intervals about up to four entries; some boards contradict themselves."""
    count = draw(st.integers(1, 4))
    ends = st.tuples(st.integers(0, SIDE), st.integers(0, SIDE)).map(lambda pair: (min(pair), max(pair)))
    scores = [(i, draw(ends)) for i in range(count)]
    places = st.integers(0, count - 1)
    around = st.tuples(st.integers(-SIDE, SIDE), st.integers(0, 3)).map(lambda each: (each[0], each[0] + each[1]))
    pairs = draw(st.lists(st.tuples(places, places, around), max_size=6))
    return count, scores, [each for each in pairs if each[0] != each[1]]


def graph_of(count: int, scores: list[tuple[int, Interval]], pairs: list[tuple[int, int, Interval]]) -> Constraints:
    graph = Constraints(count, float(SIDE))
    for i, (low, high) in scores:
        graph.score(i, low, high)
    for a, b, (low, high) in pairs:
        graph.difference(a, b, low, high)
    return graph


def allowed(
    count: int, scores: list[tuple[int, Interval]], pairs: list[tuple[int, int, Interval]]
) -> list[tuple[int, ...]]:
    return [
        x
        for x in itertools.product(range(SIDE + 1), repeat=count)
        if all(low <= x[i] <= high for i, (low, high) in scores)
        and all(low <= x[a] - x[b] <= high for a, b, (low, high) in pairs)
    ]


@given(boards())
def test_it_concludes_exactly_what_every_allowed_point_has_in_common(
    board: tuple[int, list[tuple[int, Interval]], list[tuple[int, int, Interval]]],
) -> None:
    count = board[0]
    found, points = graph_of(*board).solve(), allowed(*board)
    assert found.consistent == bool(points)
    if not points:
        return
    for i in range(count):
        better = sum(all(x[j] < x[i] for x in points) for j in range(count))
        worse = sum(all(x[j] > x[i] for x in points) for j in range(count))
        assert found.places[i] == (1 + better, count - worse)
        assert (found.low[i], found.high[i]) == (min(x[i] for x in points), max(x[i] for x in points))
        for x in points:  # whichever is the truth, with ties either way
            first, last = 1 + sum(other < x[i] for other in x), sum(other <= x[i] for other in x)
            assert found.places[i][0] <= first
            assert last <= found.places[i][1]
    certain = {(i, j) for i, j in itertools.permutations(range(count), 2) if all(x[i] < x[j] for x in points)}
    assert found.separated == len(certain)
    check_tiers(found, certain)


def check_tiers(found: Order, certain: set[tuple[int, int]]) -> None:
    for i, j in certain:
        assert found.tiers[i] < found.tiers[j]
    for j, tier in enumerate(found.tiers):  # and no lower than it must be
        above = [found.tiers[i] for i, worse in certain if worse == j]
        assert tier == 1 + max(above, default=0)


@given(boards(), st.integers(0, 3))
def test_what_is_open_about_one_entry_is_what_the_whole_says(
    board: tuple[int, list[tuple[int, Interval]], list[tuple[int, int, Interval]]], which: int
) -> None:
    points = allowed(*board)
    if not points:
        return
    which %= board[0]
    low, high = graph_of(*board).around(which)
    values = np.arange(board[0], dtype=float)
    found = candidates(values, which, low, high)
    for j in range(board[0]):
        assert (low[j], high[j]) == (min(x[j] - x[which] for x in points), max(x[j] - x[which] for x in points))
        decided = all(x[j] < x[which] for x in points) or all(x[j] > x[which] for x in points)
        assert (j in found) == (j != which and not decided)
    leader = 0 if which else 1
    assert leader not in found or found[0] == leader


def test_only_what_would_tell_more_is_worth_its_price() -> None:
    assert worth(0.02, -0.03, 0.03)
    assert not worth(0.03, -0.03, 0.03)


def test_a_chain_of_comparisons_orders_entries_that_were_never_compared() -> None:
    graph = Constraints(3)
    for i in range(3):
        graph.score(i, 0.2, 0.6)
    graph.difference(0, 1, -0.2, -0.1)
    graph.difference(1, 2, -0.2, -0.05)
    found = graph.solve()
    assert found.places == [(1, 1), (2, 2), (3, 3)]
    assert found.tiers.tolist() == [1, 2, 3]
    assert found.high[0] == pytest.approx(0.45)


def test_certified_improvements_are_a_chain() -> None:
    graph = Constraints(4)
    graph.ahead(1, 0)
    graph.ahead(2, 1)
    found = graph.solve()
    assert found.places == [(3, 4), (2, 3), (1, 2), (1, 4)]
    assert found.consistent


def test_circles_conclude_nothing_and_say_so() -> None:
    graph = Constraints(3)
    for a, b in ((0, 1), (1, 2), (2, 0)):
        graph.difference(a, b, -0.3, -0.1)
    found = graph.solve()
    assert not found.consistent
    assert found.separated == 0
    graph = Constraints(2)
    graph.ahead(0, 1)
    graph.difference(1, 0, -0.3, -0.1)
    assert not graph.solve().consistent
    assert graph.solve().separated == 0


def test_rounding_is_no_reason_to_put_one_ahead() -> None:
    graph = Constraints(2)
    graph.difference(0, 1, -1e-13, -1e-13)
    assert graph.solve().separated == 0


def test_an_empty_board() -> None:
    assert Constraints(0).solve().places == []


def test_a_large_board_claims_no_more_than_a_small_one_would(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond some size chains pass through few entries: less may follow, never more, and stars lose nothing."""
    rng = np.random.default_rng(3)
    count = 60
    truth = np.sort(rng.random(count))
    graph = Constraints(count)
    for i, x in enumerate(truth):
        graph.score(i, x - 0.2, x + 0.2)
        for j in {0, max(i - 1, 0)} - {i}:
            graph.difference(i, j, x - truth[j] - 0.02, x - truth[j] + 0.02)
    whole = graph.solve()
    monkeypatch.setattr(order, "_ALL", 10)
    part = graph.copy().solve()
    assert part.consistent
    assert 0.8 * whole.separated < part.separated <= whole.separated
    for (first, last), (least, most) in zip(part.places, whole.places, strict=True):
        assert first <= least
        assert most <= last


@given(boards(), st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=4), st.integers(1, 6))
def test_counts_of_a_large_board_are_those_of_its_pairs(
    board: tuple[int, list[tuple[int, Interval]], list[tuple[int, int, Interval]]],
    claims: list[tuple[int, int]],
    anchors: int,
) -> None:
    """What is counted from thresholds is what all pairs would give, contradictions and circles included."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "_ALL", 0)
        patch.setattr(order, "_ANCHORS", anchors)
        graph = graph_of(*board)
        for better, worse in claims:
            if better % board[0] != worse % board[0]:
                graph.ahead(better % board[0], worse % board[0])
        relation, found = graph.relation(), graph.solve()
    rows = [relation.better(i) for i in range(board[0])]
    assert found.better.tolist() == [int(row.sum()) for row in rows]
    assert found.worse.tolist() == [int(relation.worse(i).sum()) for i in range(board[0])]
    ahead = np.array(rows)
    assert not (ahead & ahead.T).any()
    if not claims:
        certain = {(i, j) for j, row in enumerate(rows) for i in np.flatnonzero(row).tolist()}
        points = allowed(*board)
        assert all(x[i] < x[j] for i, j in certain for x in points)
        assert found.consistent or not points
        if found.consistent:
            check_tiers(found, certain)
