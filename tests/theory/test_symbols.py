"""Theorem D: weights against the enumeration of trees, and what is certified against the enumeration of samples."""

import itertools
import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.theory.betting import betting_upper, three_valued_lower
from afresh.theory.binomial import clopper_pearson_lower, clopper_pearson_upper, sign_test
from afresh.theory.symbols import (
    Trail,
    basel_weight,
    binned_winner_limits,
    cell_interval,
    claim_passes,
    counted,
    detectable,
    even_weight,
    even_weights,
    first_weight,
    gapped,
    level,
    outer_cell,
    ranked_weights,
    smallest_gain,
    steady,
    winner_limits,
)
from oracle import narrower as oracle


def follow(path: tuple[int, ...], nats: float = 0.0) -> Trail:
    trail = Trail()
    for step in path:
        trail = trail.event(nats) if step else trail.quiet()
    return trail


FAMILIES = {
    "basel": lambda trail: basel_weight(trail.events),
    "first": lambda trail: first_weight(trail.events, 0.7),
    "even": lambda trail: even_weight(trail.steps),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("most", [1, 2, 5, 9])
def test_counted_weights_of_all_nodes_sum_to_at_most_one(family: str, most: int) -> None:
    """Every path of up to most - 1 steps; an event chooses one of m symbols, and m changes along the path."""
    total = 0.0
    for path in oracle.event_paths(most - 1):
        trail, copies = Trail(), 1
        for i, step in enumerate(path):
            symbols = 1 + (i + 2 * sum(path[:i])) % 3
            trail = trail.event(math.log(symbols)) if step else trail.quiet()
            copies *= symbols if step else 1
        total += copies * math.exp(-counted(trail, most, FAMILIES[family](trail)))
    assert 0.5 < total <= 1


@given(st.lists(st.sampled_from((0, 1)), max_size=12), st.integers(13, 40))
def test_counted_weights_against_the_formula(path: list[int], most: int) -> None:
    trail = follow(tuple(path))
    exact = oracle.counted_weight(path, most, lambda f: 6 / math.pi**2 / (f + 1) ** 2)
    assert counted(trail, most, basel_weight(trail.events)) == pytest.approx(-math.log(exact), abs=1e-7)
    assert counted(trail, most, basel_weight(trail.events)) >= -math.log(exact)


@pytest.mark.parametrize("calm", [1.0, 3.5])
@pytest.mark.parametrize("most", [1, 2, 5, 9])
def test_steady_weights_are_a_law_of_paths(most: int, calm: float) -> None:
    """The nodes of each depth weigh 1/most together, though events choose among symbols, and each node weighs what
    its children weigh together.
    """
    by_depth = [0.0] * most
    for path in oracle.event_paths(most - 1):
        trail, copies = Trail(), 1
        for i, step in enumerate(path):
            symbols = 1 + (i + 2 * sum(path[:i])) % 3
            trail = trail.event(math.log(symbols)) if step else trail.quiet()
            copies *= symbols if step else 1
        by_depth[len(path)] += copies * math.exp(-steady(trail, most, 0.7, calm))
        if trail.steps < most - 1:
            children = sum(math.exp(-steady(each, most, 0.7, calm)) for each in (trail.quiet(), trail.event()))
            assert math.exp(-steady(trail, most, 0.7, calm)) == pytest.approx(children, rel=1e-7)
    assert by_depth == pytest.approx([1 / most] * most, rel=1e-7)
    assert sum(by_depth) <= 1


@pytest.mark.parametrize("seed", range(20))
def test_whoever_asks_few_of_the_steps_has_that_share_of_beta(seed: int) -> None:
    """Who asks next depends on the past in any way; an analyst with at most two of eight steps on each path has at
    most 2/8 of all weight. Counted weights do not have this: the worst schedule gives an analyst more.
    """
    rng = np.random.default_rng(seed)
    most, own = 8, 2
    asks = {path: bool(rng.random() < 0.5) for path in oracle.event_paths(most - 1)}
    if seed == 0:  # right after the first event, or at the last step
        asks = {path: (sum(path) == 1 and path[-1] == 1) or (len(path) == most - 1 and not any(path)) for path in asks}
    total = counted_total = 0.0
    for path, wants in asks.items():
        before = sum(asks[path[:i]] for i in range(len(path)))
        if wants and before < own:
            total += math.exp(-steady(follow(path), most, 0.5, 1.0))
            trail = follow(path)
            counted_total += math.exp(-counted(trail, most, first_weight(trail.events, 0.5)))
    assert total <= own / most
    if seed == 0:
        assert total <= 1 / most
        assert counted_total > 1 / most


def test_gapped_weights_of_all_events_sum_to_at_most_one() -> None:
    """All events within 12 steps. Without 1/(f (f+1)) they pass 1: the first event alone has 12/13 of it."""
    total = bare = first = 0.0
    for path in oracle.event_paths(11):
        trail = follow(path)
        weight = math.exp(-gapped(trail))
        assert weight == pytest.approx(oracle.gapped_weight((*path, 1)))
        total += weight
        bare += weight * (trail.events + 1) * (trail.events + 2)
        first += 2 * weight * (trail.events == 0)
    assert total <= 1
    assert first == pytest.approx(12 / 13)
    assert bare > 1.5


def brute_force(rows: int, law: NDArray[np.float64], misses: Callable[[NDArray[np.int64]], bool]) -> float:
    """The probability of the samples of rows of two bits for which `misses` is true, by all counts of kinds."""
    counts = oracle.all_counts(rows, 4)
    return math.fsum(oracle.multinomial(c, law) for c in counts if misses(np.array(c)))


TABLE = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]])


@pytest.mark.parametrize("seed", range(12))
def test_claims_that_pass_are_true_by_enumeration(seed: int) -> None:
    """Ten rows of two bits, six questions, five adaptive two-sided claims on the same rows, at L without ln 2."""
    rng = np.random.default_rng(seed)
    law, failure, rows, most = rng.dirichlet(np.full(4, 0.6)), 0.45, 10, 5
    ask = rng.integers(0, 6, 2**most)
    left = rng.random(2**most) * 0.6
    width = rng.uniform(0.2, 0.8, 2**most)
    truths = TABLE @ law

    def misses(counts: NDArray[np.int64]) -> bool:
        trail, node = Trail(), 1
        for _ in range(most - 1):
            q, least = int(ask[node]), float(left[node])
            most_ = least + float(width[node])
            alpha = math.exp(-level(failure, counted(trail, most, first_weight(trail.events, 0.5))))
            hits = int(TABLE[q] @ counts)
            ends = float(clopper_pearson_lower(hits, rows, alpha)), float(clopper_pearson_upper(hits, rows, alpha))
            passed = claim_passes(*ends, least, most_)
            if passed and not least <= truths[q] <= most_:
                return True
            trail, node = (trail.quiet() if passed else trail.event()), 2 * node + passed
        return False

    assert brute_force(rows, law, misses) <= failure


@pytest.mark.parametrize("weights", ["counted", "gapped"])
@pytest.mark.parametrize("seed", range(8))
def test_challengers_that_get_in_are_better_by_enumeration(seed: int, weights: str) -> None:
    """Fourteen rows, a ratchet over five adaptive challengers, the sign test on all rows every time."""
    rng = np.random.default_rng(seed)
    law, failure, most = rng.dirichlet(np.full(4, 1.0)), 0.5, 6
    truths = TABLE @ law
    nexts = rng.integers(0, 6, (2**most,))

    def misses(counts: NDArray[np.int64]) -> bool:
        trail, node, incumbent = Trail(), 1, 0
        for _ in range(most - 1):
            challenger = int(nexts[node])
            difference = TABLE[challenger] - TABLE[incumbent]
            better, worse = int(counts[difference > 0].sum()), int(counts[difference < 0].sum())
            nats = gapped(trail) if weights == "gapped" else counted(trail, most, even_weight(trail.steps))
            accepted = float(sign_test(better, worse)) >= level(failure, nats)
            if accepted and truths[challenger] <= truths[incumbent]:
                return True
            incumbent = challenger if accepted else incumbent
            trail, node = (trail.event() if accepted else trail.quiet()), 2 * node + accepted
        return False

    assert brute_force(14, law, misses) <= failure


@pytest.mark.parametrize("truth", [(0.5, 0.5, 0.5), (0.3, 0.5, 0.52), (0.05, 0.02, 0.01), (0.9, 0.1, 0.9)])
@pytest.mark.parametrize("alpha", [0.4, 0.1])
def test_winners_limits_by_enumeration(truth: tuple[float, ...], alpha: float) -> None:
    """The best of three on twelve rows: the upper limit needs no union, the lower one does; with and without bins."""
    rows, weights, nats = 12, ranked_weights(3), -math.log(alpha)
    wrong = wrong_bins = no_union = 0.0
    alone = clopper_pearson_lower(np.arange(rows + 1), rows, alpha / 2)

    @cache
    def limits(hits: int, winner: int) -> tuple[tuple[float, float], tuple[float, float]]:
        weight = float(weights[winner])
        index = min(hits * 4 // rows, 3)
        return (
            winner_limits(hits, rows, nats, weight, two_valued=True),
            binned_winner_limits(index, 4, rows, nats, weight, two_valued=True),
        )

    for hits in itertools.product(range(rows + 1), repeat=3):
        chance = math.prod(math.comb(rows, h) * p**h * (1 - p) ** (rows - h) for h, p in zip(hits, truth, strict=True))
        winner = max(range(3), key=lambda i: (hits[i], -i))
        (low, high), (left, right) = limits(hits[winner], winner)
        assert left <= low + 1e-12
        assert right >= high - 1e-12
        wrong += chance * (not low <= truth[winner] <= high)
        wrong_bins += chance * (not left <= truth[winner] <= right)
        no_union += chance * bool(alone[hits[winner]] > truth[winner])
    assert wrong_bins <= wrong + 1e-12
    assert wrong <= alpha
    if truth == (0.5, 0.5, 0.5) and alpha == 0.4:
        assert no_union > alpha / 2  # so the lower limit really needs its union


def test_a_winners_upper_limit_must_follow_the_score_alone() -> None:
    """Two-point betting does not: a higher mean with less spread has a lower upper limit."""
    rows = 1000
    spread = betting_upper(rows, 0.500 * rows, 0.500 * rows, 4.6)
    narrow = betting_upper(rows, 0.501 * rows, (0.501**2 + 1e-4) * rows, 4.6)
    assert narrow < spread
    for two_valued in (True, False):
        limits = [winner_limits(x * rows, rows, 4.0, 1.0, two_valued=two_valued)[1] for x in (0.5, 0.501)]
        assert limits[0] < limits[1]


@pytest.mark.parametrize("batch", [1, 2, 50])
def test_weights_of_a_batch(batch: int) -> None:
    for weights in (even_weights(batch), ranked_weights(batch)):
        assert weights.sum() == pytest.approx(1)
        assert (weights > 0).all()
    assert ranked_weights(batch)[0] >= 1 / batch


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 5000))
def test_cells_hold_their_interval(a: float, b: float, cells: int) -> None:
    low, high = sorted((a, b))
    first, last, nats = outer_cell(low, high, cells)
    assert 0 <= first < last <= cells
    left, right = cell_interval(first, last, cells)
    assert left <= low <= high <= right
    assert right - left <= high - low + 2 / cells + 1e-9
    assert nats > 0


def test_weights_of_all_cells_sum_to_at_most_one() -> None:
    cells = {}
    for a in np.linspace(0, 1, 201):
        for b in np.linspace(a, 1, 101):
            first, last, nats = outer_cell(float(a), float(b), 8)
            cells[first, last] = math.exp(-nats)
    assert len(cells) == 36  # eight steps: all pairs
    assert sum(cells.values()) <= 1


def nats_after(steps: int, events: int, cost: float = 0.0) -> Trail:
    return follow((*(1,) * events, *(0,) * (steps - events)), cost)


@pytest.mark.parametrize(
    ("printed", "trail", "most", "own", "sides"),
    [
        (137.6, nats_after(19, 19, math.log(50 * 16)), 20, math.log(50), 2),  # a winner and 16 bins every round
        (84.9, nats_after(19, 19, math.log(50)), 20, math.log(50), 2),  # a winner's index every round
        (56.1, nats_after(19, 8, math.log(50)), 20, math.log(50), 2),  # improvements only, 8 of 20
        (14.8, nats_after(19, 2), 20, 0.0, 2),  # twenty claims, two fail
        (9.0, nats_after(19, 0), 20, 0.0, 1),  # twenty claims "better than", none fails
        (18.3, nats_after(19, 5), 20, 0.0, 1),  # five fail
        (68.7, nats_after(299, 14), 300, 0.0, 1),  # the last of 300 challengers
    ],
)
def test_levels_of_the_scenarios(printed: float, trail: Trail, most: int, own: float, sides: int) -> None:
    """Even weights where both symbols are possible, none where every round releases a winner."""
    weight = 1.0 if trail.events == trail.steps else even_weight(trail.steps)
    assert level(0.05, counted(trail, most, weight) + own, sides) == pytest.approx(printed, abs=0.06)


def test_smallest_gains_of_the_scenarios() -> None:
    """5% of rows differ; 20 claims, none or five failed (9.0 and 18.3 nats)."""
    assert smallest_gain(2000, 100, 9.0) == pytest.approx(0.018, abs=1.1e-3)
    assert smallest_gain(2000, 100, 18.3) == pytest.approx(0.028)  # 78 wins of 100
    assert smallest_gain(10_000, 500, 9.0) == pytest.approx(0.0082, abs=2e-4)
    assert smallest_gain(10_000, 500, 18.3) == pytest.approx(0.0126)
    # Of 25 differing rows 22 must be wins at 9 nats; at 18.3 nats not even all 25 are enough.
    assert smallest_gain(500, 25, 9.0) == pytest.approx(19 / 500)
    assert smallest_gain(500, 25, 18.3) is None


def test_what_a_claim_detects_it_detects() -> None:
    """Planned for 90% power; 2000 claims with fixed seeds pass 1800 times give or take 6 deviations of 13."""
    rng = np.random.default_rng(11)
    rows, nats, differ = 5000, 9.0, 0.06
    gain = detectable("three-valued", rows, nats, 0.015, math.sqrt(differ))
    counts = rng.multinomial(rows, [(differ + gain) / 2, (differ - gain) / 2, 1 - differ], 2000)
    passed = three_valued_lower(rows, counts[:, 0], counts[:, 1], nats) > 0
    assert abs(passed.sum() - 1800) <= 80
    assert detectable("two-valued", rows, nats, 0.5) > detectable("two-valued", rows, nats, 0.5, power=0.5)
    assert detectable("number", rows, nats, 0.5, 0.05) < 0.2 * detectable("two-valued", rows, nats, 0.5)


def test_refusals() -> None:
    for call in (
        lambda: counted(Trail(5), 5, 0.5),
        lambda: counted(Trail(1, 2), 5, 0.5),
        lambda: counted(Trail(), 5, 0.0),
        lambda: level(0.0, 1.0),
        lambda: level(0.1, -1.0),
        lambda: level(0.1, 1.0, 3),
        lambda: Trail().event(-1.0),
        lambda: basel_weight(-1),
        lambda: first_weight(0, 1.0),
        lambda: even_weights(0),
        lambda: smallest_gain(10, 11, 1.0),
        lambda: winner_limits(1, 4, 0.1, 0.0, two_valued=True),
        lambda: binned_winner_limits(4, 4, 4, 0.1, 1.0, two_valued=True),
        lambda: outer_cell(0.6, 0.5, 10),
        lambda: cell_interval(3, 3, 10),
        lambda: detectable("number", 10, 1.0, 0.5, power=1.0),
    ):
        with pytest.raises(InvalidArgument):
            call()


def test_trees_of_their_own_on_the_same_rows_do_not_protect_analysts_who_talk() -> None:
    """One analyst learns from pass and fail on which side of 1/2 each of 601 fair columns lies; the other claims that
    their vote is right more often than not. A tree of its own would certify that falsehood; the joint tree does not.
    About 334 of 400 votes are right, with a deviation of 7.4; fewer than 258 (no proof) is beyond 10 deviations.
    """
    rng = np.random.default_rng(7)
    rows, columns, failure = 400, 601, 0.025
    bits = rng.integers(0, 2, (rows, columns))
    talker, joint, votes = Trail(), Trail(), np.zeros(rows)
    most = columns + 1
    for j in range(columns):
        alpha = math.exp(-level(failure, counted(talker, most, even_weight(talker.steps))))
        hits = int(bits[:, j].sum())
        least = float(clopper_pearson_lower(rows / 2, rows, alpha))  # passes if half of the rows or more are hits
        passed = claim_passes(float(clopper_pearson_lower(hits, rows, alpha)), 1.0, least)
        talker, joint = (trail.quiet() if passed else trail.event() for trail in (talker, joint))
        votes += (2 * bits[:, j] - 1) * (1 if passed else -1)
    right = int((votes > 0).sum())  # a fresh row's vote is right with probability 1/2: an odd number of fair coins
    own = math.exp(-level(failure, counted(Trail(), most, even_weight(0))))
    shared = math.exp(-level(2 * failure, counted(joint, most, even_weight(joint.steps))))
    assert float(clopper_pearson_lower(right, rows, own)) > 0.55
    assert float(clopper_pearson_lower(right, rows, shared)) < 0.5
