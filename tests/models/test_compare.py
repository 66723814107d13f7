"""Is B better than A, paired; and many models in order."""

import functools
import json
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.ledger import Entry, outcome
from afresh.losses import Squared
from afresh.mechanisms.base import at_levels
from afresh.mechanisms.registry import PLANNERS
from afresh.mechanisms.stabilized import Stabilized
from afresh.models.paired import read_difference, resolution
from afresh.models.verdicts import Comparison, Identical, rank
from afresh.moments import Moments
from afresh.planning.plan import Plan
from afresh.receipts import verify
from afresh.results.answer import Interval
from afresh.results.reading import Reading, read

N = 20_000
RNG = np.random.default_rng(8)
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
GOOD = (X[:, 0] > 0).astype(int)


def flipped(share: float, seed: int) -> Any:
    return np.where(np.random.default_rng(seed).random(N) < share, 1 - GOOD, GOOD)


def compared(holdout: afresh.Holdout, a: Any, b: Any, **more: Any) -> Comparison:
    """Of two that differ somewhere."""
    found = holdout.compare(a, b, **more)
    assert isinstance(found, Comparison)
    return found


BAD, CLOSE = flipped(0.1, 1), flipped(0.002, 2)


def answers_of_a_pair(method: str) -> int:
    return 1 if afresh.plan(N, 20, method=method).mechanism.pairs == "shifted" else 2


METHODS = list(PLANNERS)


def test_targets() -> None:
    """Half-widths of 500 comparisons at 1e5 rows, 95%, of two answers or one: from plans alone, without data."""
    stabilized, calibrated = (afresh.plan(10**5, k, method=m) for m, k in (("stabilized", 1000), ("calibrated", 500)))
    assert resolution(stabilized, 0.02) <= 0.0225
    assert resolution(stabilized, 0.1) <= 0.0485
    assert resolution(calibrated, 0.02) <= 0.037
    assert resolution(calibrated, 0.1) <= 0.066
    assert 0.1 < 2 * stabilized.half_width(0.5) < 0.12  # two scores, not paired


@pytest.mark.parametrize("method", METHODS)
def test_comparisons(method: str) -> None:
    """Simulated noise: decided once."""
    with afresh.holdout(X, Y, questions=12, method=method, simulation_seed=4, made_up=True) as holdout:
        first, each = compared(holdout, GOOD, BAD, names=("good", "bad")), answers_of_a_pair(method)
        assert np.mean(GOOD != Y) - np.mean(BAD != Y) in first.interval
        assert (first.verdict, first.better, first.charged, first.left) == ("A is better", "A", each, 12 - each)
        swapped = compared(holdout, BAD, GOOD)
        assert (swapped.verdict, swapped.charged) == ("B is better", 0)
        assert (swapped.value, swapped.low, swapped.high) == pytest.approx((-first.value, -first.high, -first.low))
        tied = compared(holdout, GOOD, CLOSE)
        assert (tied.verdict, tied.better) == ("cannot tell", None)
        assert tied.rows_needed is None or tied.rows_needed > N
        same = holdout.compare(GOOD, GOOD.astype(bool))
        assert isinstance(same, Identical)
        assert (same.verdict, same.charged, same.better) == ("identical on these rows", 0, None)
        assert same.interval is same.low is same.high is same.confidence is None
        assert "same predictions for all 20,000 rows" in str(same)
        assert "%" not in str(same)  # no confidence: on rows that are not here they may differ
        assert json.loads(same.to_json())["low"] is None
        # paired is narrower than two scores
        a, b = holdout.score_many([GOOD, CLOSE])
        assert tied.interval.half_width < (a.interval.half_width + b.interval.half_width) / 2
        assert first.interval.half_width == pytest.approx(holdout.resolution(0.1), rel=0.5)
        opposite = compared(holdout, GOOD, 1 - GOOD)  # they always disagree, mostly to one side
        assert opposite.better == "A"
        assert opposite.smallest_difference == pytest.approx(holdout.resolution(1), rel=0.05)
        assert opposite.interval.half_width < opposite.smallest_difference
        checks = verify(holdout.guard.receipt()).checks
        assert [check.name for check in checks if not check.passed] == ["real noise"]
        assert json.loads(first.to_json())["verdict"] == "A is better"
        assert "A is better" in repr(first)
        assert "A is better" in first._repr_html_()
        assert "would have" in str(tied) or "than anyone has" in str(tied)
        assert "SIMULATION" in str(first)


@pytest.mark.parametrize("method", METHODS)
def test_differences_of_numbers(method: str) -> None:
    target = X @ [1.0, 1.0]
    a, b = X @ [1.0, 0.8], X @ [1.0, 0.2]
    with afresh.holdout(
        X, target, loss=Squared(clip=4), questions=6, method=method, simulation_seed=4, made_up=True
    ) as holdout:
        found = compared(holdout, a, b)
    truth = np.minimum((a - target) ** 2, 4).mean() - np.minimum((b - target) ** 2, 4).mean()
    assert truth in found.interval
    assert found.bounds == (-4, 4)
    assert found.better == "A"


def comparison(value: float, low: float, high: float, rows: int) -> Comparison:
    return Comparison(
        a="a", b="b", loss="loss", rows=rows, value=value, interval=Interval(low, high), bounds=(-1, 1),
        confidence=0.95, covers="", method="", charged=2, left=0, smallest_difference=0.1,
    )  # fmt: skip


@given(st.integers(2, 10**7), st.floats(1e-6, 0.5), st.floats(0, 0.5), st.booleans())
@example(20_400, 0.05, 1e-5, False)
def test_what_cannot_be_told_takes_more_rows(rows: int, value: float, beyond: float, mirrored: bool) -> None:
    ends = (-beyond, 2 * value + beyond)
    found = comparison(-value, -ends[1], -ends[0], rows) if mirrored else comparison(value, *ends, rows)
    assert found.verdict == "cannot tell"
    exact = rows * ((value + beyond) / value) ** 2
    if found.rows_needed is None:
        assert exact > 0.99e15
    else:
        assert found.rows_needed >= rows
        assert 0.999999 * exact <= found.rows_needed <= 1.11 * exact + 1


def reading(plan: Plan, number: int, released: Any) -> Reading:
    """What a ledger would keep of a released number."""
    now, mechanism = datetime(2025, 1, 1), at_levels(plan.mechanism, 3 if isinstance(released, dict) else 2)
    made = outcome(
        released,
        mechanism.value(released),
        *mechanism.interval(released, levels=3 if isinstance(released, dict) else 2),
        ends=plan.ends,
    )
    return read(Entry(number, f"{number}", "", 0.0, now, made, now))


@pytest.mark.parametrize("method", ["stabilized", "calibrated", "rounds"])
def test_rows_needed_are_enough(method: str) -> None:
    """The same shares on as many rows as were said tell the models apart: plans alone, without data."""

    def told(rows: int, plus: float, minus: float) -> Comparison:
        plan = afresh.plan(rows, 50, method=method)
        released: list[Any] = [plus, minus]
        n, psi = plan.mechanism.batch or rows, (plus - minus + 1) / 2
        squares = (plus + minus + 2 * (plus - minus) + 1) / 4  # of psi = (d + 1)/2
        if method == "calibrated":
            released = [at_levels(plan.mechanism, 3).release(Moments(n, psi * n, squares * n), [0.0, 0.0])]
        if method == "rounds":
            released = [{"rows": n, "total": psi * n, "squares": squares * n, "look": 1.0}]
        if isinstance(plan.mechanism, Stabilized):
            released = [float(plan.mechanism._transform(np.asarray(each))) for each in (plus, minus)]
        value, interval = read_difference(plan, *(reading(plan, i, each) for i, each in enumerate(released, 1)))
        return comparison(value, interval.low, interval.high, rows)

    open_yet = told(5000, 0.2, 0.15)
    assert open_yet.verdict == "cannot tell"
    assert open_yet.rows_needed is not None
    assert told(open_yet.rows_needed, 0.2, 0.15).better == "B"
    assert told(open_yet.rows_needed // 2, 0.2, 0.15).better is None


def test_differences_of_numbers_in_any_units() -> None:
    target = X @ [1.0, 1.0]
    with afresh.holdout(
        X, target, loss=Squared(clip=1e200), questions=6, method="calibrated", simulation_seed=4, made_up=True
    ) as h:
        assert h.compare(target, target + 1e100).better == "A"


def test_the_second_moment_needs_its_order() -> None:
    """Where psi was numbered before phi, only the plain interval is proved."""
    plan = afresh.plan(10**5, 1000, method="calibrated")
    plan = replace(plan, mechanism=replace(plan.mechanism, numbers=0.0))  # of an old ledger

    _, narrow = read_difference(plan, reading(plan, 1, 0.02), reading(plan, 2, 0.5))
    _, wide = read_difference(plan, reading(plan, 2, 0.02), reading(plan, 1, 0.5))
    assert (wide.low, wide.high) == pytest.approx([2 * end - 1 for end in plan.mechanism.interval(0.5)], abs=1e-11)
    assert narrow.half_width < wide.half_width / 3
    assert wide.low < narrow.low < 0 < narrow.high < wide.high


@pytest.mark.parametrize("method", METHODS)
def test_best_of(method: str) -> None:
    models, questions = [CLOSE, BAD, GOOD, 1 - GOOD], 15 if method == "calibrated" else 30  # one answer a pair
    with afresh.holdout(X, Y, questions=questions, method=method, simulation_seed=4, made_up=True) as holdout:
        ranking = holdout.best_of(models, names=["close", "bad", "good", "opposite"])
        assert {model.name: model.places for model in ranking.models} == {
            "good": (1, 2),
            "close": (1, 2),
            "bad": (3, 3),
            "opposite": (4, 4),
        }
        assert set(ranking.best) == {"good", "close"}
        assert ranking.charged == 4 + (6 if method == "rounds" else 3 * answers_of_a_pair(method))
        assert holdout.best_of(models, names=["close", "bad", "good", "opposite"]).charged == 0
        assert "2 may be the best" in str(ranking)
        assert "1-2" in ranking._repr_html_()
        assert json.loads(ranking.to_json())["models"][2]["name"] == "bad"
        with pytest.raises(InvalidArgument, match="the same name"):
            holdout.best_of([GOOD, GOOD])
        with pytest.raises(InvalidArgument, match="needs at least two"):
            holdout.best_of([GOOD])


@pytest.mark.parametrize("method", METHODS)
def test_best_of_asks_nothing_about_the_same_predictions(method: str) -> None:
    with afresh.holdout(X, Y, questions=30, method=method, simulation_seed=4, made_up=True) as holdout:
        ranking = holdout.best_of([GOOD, GOOD.copy()], names=["first", "second"])
        assert ranking.charged == 1
        assert [(model.places, model.to_leader, model.leads) for model in ranking.models] == [((1, 2), None, True)] * 2
        assert [model["to_leader"] for model in json.loads(ranking.to_json())["models"]] == [None, None]
        assert repr(ranking) == "Ranking(2 may be the best of 2 at 95%, simulated)"
        assert repr(holdout.best_of([GOOD, 1 - GOOD, GOOD.copy()], names=list("abc"))).startswith("Ranking(2 may be")


def test_places_are_told_as_far_as_intervals_tell() -> None:
    """Of three, the first is ahead of the last, and the one between may be anywhere: no two of them are equal."""
    with afresh.holdout(X, Y, questions=30, simulation_seed=4, made_up=True) as holdout:
        score = holdout.score(GOOD)
    ends = {"first": (0.1, 0.2), "between": (0.15, 0.35), "last": (0.3, 0.4)}
    ranked = rank(list(ends), [replace(score, interval=Interval(*each)) for each in ends.values()], [None] * 3)
    assert {model.name: model.place for model in ranked} == {"first": "1-2", "between": "1-3", "last": "2-3"}


def test_best_of_with_little_budget_goes_by_scores() -> None:
    with afresh.holdout(X, Y, questions=4, method="stabilized", simulation_seed=4, made_up=True) as holdout:
        ranking = holdout.best_of([CLOSE, GOOD, 1 - GOOD], names=["close", "good", "opposite"])
        assert [model.name for model in ranking.models][-1] == "opposite"
        assert (ranking.charged, ranking.left) == (3, 1)
        assert {model.to_leader for model in ranking.models} >= {None}
        with pytest.raises(BudgetExhausted):
            holdout.compare(GOOD, BAD)
        assert holdout.budget.left == 1


@pytest.mark.parametrize("method", ["stabilized", "calibrated"])
def test_a_coarser_comparison_costs_less(method: str) -> None:
    """Simulated noise: decided once."""
    target = X @ [1.0, 1.0]
    a, b = X @ [1.0, 0.8], X @ [1.0, 0.2]
    truth = np.minimum((a - target) ** 2, 4).mean() - np.minimum((b - target) ** 2, 4).mean()
    plan: dict[str, Any] = {"questions": 4, "answers": 20, "method": method, "simulation_seed": 4, "made_up": True}
    with afresh.holdout(X, target, loss=Squared(clip=4), **plan) as holdout:
        full, enough = holdout.resolution(1), 2 * holdout.resolution(1)
        coarse = compared(holdout, a, b, precision=enough)
        spent = holdout.budget.spent_information
        assert coarse.charged == answers_of_a_pair(method)
        assert truth in coarse.interval
        assert coarse.interval.half_width <= holdout.resolution(1, precision=enough) <= enough
        assert (
            holdout.resolution(0.1)
            < holdout.resolution(0.1, precision=enough)
            < holdout.resolution(1, precision=enough)
        )
        assert holdout.compare(b, a, precision=enough).charged == 0
        fine = compared(holdout, a, b)
        assert fine.charged == answers_of_a_pair(method)
        assert spent < (holdout.budget.spent_information - spent) / 2
        assert truth in fine.interval
        assert fine.interval.half_width < coarse.interval.half_width
        assert compared(holdout, a, b, precision=enough) == replace(fine, charged=0)  # the finer answer serves
        for bad in (0, -1, full / 2, 4, "1", True):
            with pytest.raises(InvalidArgument, match="precision"):
                holdout.compare(a, b, precision=bad)  # type: ignore[arg-type]
        checks = verify(holdout.guard.receipt()).checks
        assert [check.name for check in checks if not check.passed] == ["real noise"]


def test_a_precision_is_refused_where_all_answers_are_alike() -> None:
    with afresh.holdout(X, Y, questions=4, method="rounds", simulation_seed=4, made_up=True) as holdout:
        with pytest.raises(InvalidArgument, match="leave it out"):
            holdout.compare(GOOD, GOOD, precision=0.4)
        assert holdout.budget.spent == 0


def test_resolution_grows_with_disagreement() -> None:
    with afresh.holdout(X, Y, questions=10, simulation_seed=1, made_up=True) as holdout:
        found = [holdout.resolution(share) for share in (0.0, 0.01, 0.1, 0.5, 1.0)]
        assert all(a < b for a, b in pairwise(found))
        with pytest.raises(InvalidArgument, match="share of rows"):
            holdout.resolution(2)
        assert holdout.budget.spent == 0


def test_a_ranking_puts_only_answers_from_the_same_rows_together() -> None:
    """With public features a repeated score is about an earlier round's rows, whose features are others."""
    holdout = afresh.holdout(X, Y, questions=40, rounds=4, ledger=":memory:")
    worst = 1 - GOOD
    holdout.score(worst, name="worst")  # in a round of its own
    ranking = holdout.best_of([GOOD, flipped(0.3, 1), worst], names=["good", "middle", "worst"])
    assert ranking.best == ("good",)
    places = {each.name: each.places for each in ranking.models}
    assert places["good"] == (1, 1)  # it was compared with both, in this round
    scores = [replace(ranking.models[0].score, value=v, interval=Interval(v, v)) for v in (0.1, 0.2, 0.3)]
    behind = [None, Interval(0.1, 0.1), Interval(0.2, 0.2)]
    together = rank(["a", "b", "c"], scores, behind, 0, (), ["x"] * 3, ["x"] * 3)
    apart = rank(["a", "b", "c"], scores, behind, 0, (), ["x", "y", "z"], [None, "y", "z"])
    assert [each.places for each in together] == [(1, 1), (2, 2), (3, 3)]
    assert [(each.name, each.places) for each in apart] == [("a", (1, 2)), ("c", (1, 3)), ("b", (2, 3))]  # of y alone
    holdout.close()


@functools.cache
def _a_score() -> Any:
    with afresh.holdout(X, Y, questions=30, simulation_seed=4, made_up=True) as holdout:
        return holdout.score(GOOD)


@given(st.data(), st.integers(2, 5))
def test_places_are_about_one_truth(data: st.DataObject, count: int) -> None:
    """Scores and comparisons of other rows are about other truths: all places must be right for one and the same."""
    score = _a_score()
    numbers = st.lists(st.integers(0, 6), min_size=count, max_size=count)
    truths = {part: data.draw(numbers) for part in ("x", "y", "z")}
    room, leader = st.integers(0, 1), data.draw(st.integers(0, count - 1))
    scored = data.draw(st.lists(st.sampled_from("xy"), min_size=count, max_size=count))
    compared = data.draw(st.lists(st.sampled_from("yz"), min_size=count, max_size=count))
    scores, behind = [], []
    for i in range(count):
        at = truths[scored[i]][i]
        scores.append(replace(score, interval=Interval(at - data.draw(room), at + data.draw(room))))
        gap = truths[compared[i]][i] - truths[compared[i]][leader]
        behind.append(None if i == leader else Interval(gap - data.draw(room), gap + data.draw(room)))
    on = [[(0, ord(each))] for each in scored], [[(0, ord(each))] * 2 for each in compared]
    ranked = rank([str(i) for i in range(count)], scores, behind, leader, (), *on)
    places = {int(each.name): each.places for each in ranked}
    assert any(
        all(
            places[i][0] <= 1 + sum(other < truth[i] for other in truth)
            and sum(other <= truth[i] for other in truth) <= places[i][1]
            for i in range(count)
        )
        for truth in truths.values()
    )
