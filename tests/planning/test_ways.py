"""The ways to ask: which is narrowest, how large a part to open, and what would have told what an interval did not."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh.errors import ImpossibleWidth, InvalidArgument
from afresh.mechanisms.base import at_levels
from afresh.mechanisms.registry import PLANNERS, planner_for, planner_with_open
from afresh.planning.ways import about_numbers, follows_bounds, narrowest_share, would_tell
from afresh.results.show import width
from afresh.statistics import GroupMeans, Quantile, Variance

RNG = np.random.default_rng(4)


def test_the_recommended_way_comes_first_and_is_the_narrowest() -> None:
    plan = afresh.plan(10_000, 1000)
    best = plan.ways[0]
    assert best.half_width == min(way.half_width for way in plan.ways)
    assert best.how in plan.recommendation
    said = str(plan).splitlines()
    widths = [float(found[1]) for line in said if (found := re.match(r" *±([\d.]+)  ", line))]
    assert len(widths) == len(plan.ways) == 4
    assert widths == sorted(widths)
    told = json.loads(json.dumps(plan.to_dict()))
    assert told["recommendation"] == plan.recommendation
    assert [way["how"] for way in told["ways"]] == [way.how for way in plan.ways]
    opened = afresh.plan(10_000, 1000, open=True)
    assert opened.recommendation.startswith(f"±{width(opened.half_width())} with ")
    assert "promised in advance" in opened.recommendation


@pytest.mark.parametrize(
    ("rows", "wishes"), [(1_000, {}), (100_000, {"promise": True}), (10_000, {"rounds": 10}), (10_000, {"open": True})]
)
def test_a_plan_is_read_in_80_columns(rows: int, wishes: dict[str, Any]) -> None:
    plan = afresh.plan(rows, 100, **wishes)
    assert max(map(len, str(plan).splitlines())) <= 80
    assert max(map(len, str(plan.details).splitlines())) <= 80
    for way in plan.ways:  # each does what it says
        promised = {"promise": True, "typical": 0.5} if "promise" in way.how else {}
        how = dict([way.how.split("=")]) if way.how.startswith(("open", "rounds")) else {}
        if way.how != "this plan":
            given = {name: float(value) if name == "open" else int(value) for name, value in how.items()} | promised
            assert afresh.plan(rows, 100, **given).half_width() == pytest.approx(way.half_width, rel=1e-3)  # type: ignore[arg-type]


@pytest.mark.parametrize("wishes", [{"method": "stabilized"}, {"method": "checked"}, {"rounds": 10}])
def test_twice_as_narrow_is_twice_as_narrow(wishes: dict[str, Any]) -> None:
    plan = afresh.plan(10_000, 100, **wishes)
    said = re.sub(r"\s+", " ", str(plan))
    changes = said.partition("For answers twice as narrow, any one of: ")[2].partition(". ")[0]
    rows = int(re.findall(r"about ([\d,]+) rows", changes)[0].replace(",", ""))
    # Rows follow a law, from which exact plans differ by a little.
    assert afresh.plan(rows, 100, **wishes).half_width() <= plan.half_width() / 2 * 1.05
    for rounds in re.findall(r"rounds=(\d+)", changes):
        assert afresh.plan(10_000, 100, rounds=int(rounds)).half_width() <= plan.half_width() / 2
    for fewer in re.findall(r"about ([\d,]+) questions", changes):
        assert afresh.plan(10_000, int(fewer), **wishes).half_width() <= plan.half_width() / 2 * 1.2


def test_one_question_and_one_remedy_are_said_in_the_singular() -> None:
    said = re.sub(r"\s+", " ", str(afresh.plan(20, 1)))
    assert said.startswith("1 question about 20 rows")
    assert "For answers twice as narrow: about 80 rows instead of 20." in said


def test_the_part_to_open_is_found() -> None:
    found = afresh.plan(10_000, 1000, open=True)
    others = [afresh.plan(10_000, 1000, open=share).half_width() for share in (0.1, 0.25, 0.5, 0.75, 0.9)]
    assert found.half_width() <= min(others)
    most = afresh.plan(10_000, 1000, width=0.08, open=True)
    assert most.open is not None
    assert most.half_width() <= 0.08 < afresh.plan(10_000, 1000, open=most.open / 10_000 + 0.01).half_width()
    assert "grid" not in str(most)  # a plan without noise has none, and can be shown all the same
    with pytest.raises(ImpossibleWidth, match="whatever is open"):
        afresh.plan(10_000, 1000, width=0.01, open=True)
    kept = afresh.plan(10_000, 1000, open=True, exam=0.2)
    assert (kept.exam, kept.open is not None) == (2000, True)
    frame = pd.DataFrame({"x": RNG.random(2000)})
    with afresh.open(frame, 50, open=True, ledger=":memory:") as guard:
        share = narrowest_share(2000, 50, 0.05)
        assert share is not None
        assert guard.plan.open == int(2000 * share)
    with pytest.raises(InvalidArgument, match="open"):
        afresh.plan(1000, 10, open=False)


@pytest.mark.parametrize("exam", [None, 0.1])
def test_the_part_to_open_is_found_together_with_rows_or_questions(exam: float | None) -> None:
    fewest = afresh.plan(questions=1000, width=0.03, open=True, exam=exam)
    most = afresh.plan(10_000, width=0.08, open=True, exam=exam)
    for found in (fewest, most):
        share = narrowest_share(found.rows, found.questions, 0.05, 0.5, exam)
        assert share is not None
        assert found.open == pytest.approx(share * found.rows, abs=1)
        assert found.half_width() <= (0.03 if found is fewest else 0.08)
    for share in (0.25, 0.6):
        assert fewest.rows <= 1.002 * afresh.plan(questions=1000, width=0.03, open=share, exam=exam).rows
        assert most.questions >= 0.99 * afresh.plan(10_000, width=0.08, open=share, exam=exam).questions
    counted: Any = np.array([10_000, 1000])
    assert afresh.plan(*counted, open=True).open == 4000


@pytest.mark.parametrize("open", [True, 0.99])
def test_a_width_that_no_open_part_allows_is_impossible(open: float) -> None:
    with pytest.raises(ImpossibleWidth):
        afresh.plan(20, width=0.01, open=open)


@given(st.sampled_from(["stabilized", "symmetrized", "calibrated"]), st.floats(0.01, 0.2), st.floats(0.05, 0.5))
def test_what_is_said_to_be_enough_is_enough(method: str, target: float, mean: float) -> None:
    rows, questions = 5000, 100
    mechanism = PLANNERS[method](rows, questions, 0.05, None)
    assert mechanism is not None
    reach = mechanism.half_width(mean)
    for words in would_tell(mechanism, reach, target, lambda m: m.half_width(mean)):
        if found := re.search(r"rounds=(\d+)", words):
            fits, fails = (planner_for(int(found[1]) + more)(rows, questions, 0.05, None) for more in (0, 1))
            assert fits is not None
            assert fails is not None
            assert fits.half_width(mean) <= target
            assert int(found[1]) == questions or fails.half_width(mean) > target
        elif found := re.search(r"open=([\d.]+)", words):
            opened = planner_with_open(float(found[1]))(rows, questions, 0.05, None)
            assert opened is not None
            assert opened.half_width(mean) <= target
        elif found := re.search(r"about ([\d,]+) rows", words):
            assert int(found[1].replace(",", "")) >= rows * (reach / target) ** 2 * 0.999


def test_nothing_is_said_of_an_interval_that_is_narrow() -> None:
    mechanism = PLANNERS["calibrated"](5000, 100, 0.05, None)
    assert mechanism is not None
    assert would_tell(mechanism, 0.01, 0.05, lambda m: m.half_width(0.5)) == ()
    assert would_tell(mechanism, 0.1, 0.0, lambda m: m.half_width(0.5)) == ()


def test_answers_comparisons_and_rankings_say_it() -> None:
    n = 3000
    X = RNG.normal(size=(n, 1))
    y = (X[:, 0] + RNG.normal(size=n) > 0).astype(int)
    frame = pd.DataFrame({"x": X[:, 0], "y": y})
    with afresh.open(frame, 200, method="stabilized", ledger=":memory:") as guard:
        wide = guard.ask("y = 1")
        assert wide.interval.half_width > 0.1
        assert wide.would_tell
        assert "any of these would have been enough" in str(wide) or "another plan would have been enough" in str(wide)
        assert wide.to_dict()["would_tell"] == list(wide.would_tell)
        assert str(guard.price("x > 0").ways["rounds=10"])[:2] == "0."
        assert "Other plans" in str(guard.price("x > 0"))
    with afresh.open(frame, 20, rounds=1, ledger=":memory:") as guard:
        assert guard.ask("y = 1").would_tell == ()
    models = [(X[:, 0] > cut).astype(int) for cut in (0.0, 0.05, 0.1)]
    for way in ({"method": "symmetrized"}, {"rounds": 5}, {"open": 0.5}):
        with afresh.holdout(X, y, questions=60, ledger=":memory:", **way) as holdout:
            found: Any = holdout.compare(models[0], models[1])
            assert found.better is None
            assert isinstance(found.would_tell, tuple)
            assert any(words in str(found) for words in ("would have", "would take", "would need"))
            ranked = holdout.best_of(models, names=["a", "b", "c"])
            assert len(ranked.best) > 1
            assert ranked.to_dict()["would_tell"] == list(ranked.would_tell)


def test_a_plan_that_is_refused_names_the_ways_that_are_narrow_enough() -> None:
    frame = pd.DataFrame({"x": range(500)})
    with pytest.raises(InvalidArgument, match=r"too wide .*open=.*rounds=10 gives.*questions=") as said:
        afresh.open(frame, 100, ledger=":memory:")
    for rounds in re.findall(r"rounds=(\d+)", str(said.value)):
        afresh.open(frame, 100, rounds=int(rounds), ledger=":memory:").close()


ROWS = (500, 1000, 2000, 10**4, 10**5, 10**6)
QUESTIONS = (1, 2, 3, 4, 10, 100, 1000, 10**4, 10**5)
SMALLEST_HOPELESS = 0.12
"""Numbers follow their bounds only in plans whose plain answers are wider than this (17.10)."""


@pytest.mark.parametrize("method", PLANNERS)
def test_numbers_follow_their_deviation_wherever_anything_is_gained_by_it(method: str) -> None:
    for rows, questions in itertools.product(ROWS, QUESTIONS):
        made = PLANNERS[method](rows, questions, 0.05, None)
        if made is None:
            continue
        own: Any = at_levels(made, None)
        if follows_bounds(made):
            assert made.half_width(0.5) > SMALLEST_HOPELESS, (rows, questions)
            told, answered = about_numbers(made)
            assert "the width of a number follows its bounds" in told
            assert "the width follows the bounds" in answered
        else:
            assert own.deviation_width(0.5, 0.05) <= 0.95 * own.deviation_width(0.5, 0.5), (rows, questions)
            assert own.deviation_width(0.5, 0.05) < made.half_width(0.5), (rows, questions)
            assert about_numbers(made) == ("", "")


@pytest.mark.parametrize(
    ("rows", "questions", "method", "share", "number"),
    [
        (10**5, 10**5, "symmetrized", 0.1350, 0.1207),  # numbers followed their bounds at ±0.1330
        (4096, 1000, "symmetrized", 0.2133, 0.1824),  # at ±0.2065; its first draws are larger
        (10**6, 1, "symmetrized", 0.0023, 0.0005),  # at ±0.0025
        (10**5, 1, "symmetrized", 0.0075, 0.0024),  # at ±0.0076
        (2000, 1, "symmetrized", 0.0589, 0.0450),  # at ±0.0558
        (2000, 4, "symmetrized", 0.0847, 0.0596),  # at ±0.0830
        (10**5, 1, "settled", 0.0085, 0.0018),  # at ±0.0083
        (10**5, 2, "settled", 0.0098, 0.0020),  # at ±0.0095
        (2000, 1, "settled", 0.0653, 0.0436),  # at ±0.0636
    ],
)
def test_room_for_numbers_is_made_where_it_costs_more_than_usual(
    rows: int, questions: int, method: str, share: float, number: float
) -> None:
    made: Any = PLANNERS[method](rows, questions, 0.05, None)
    own: Any = at_levels(made, None)
    assert made.problems() == []
    assert made.half_width(0.5) == pytest.approx(share, rel=0.02)
    assert own.deviation_width(0.5, 0.05) == pytest.approx(number, rel=0.03)


@pytest.mark.parametrize(
    ("rows", "questions", "method", "instead"),
    [
        (10**4, 10**4, "symmetrized", "settled"),
        (2000, 1000, "symmetrized", None),  # no promise is narrower
        (2000, 1000, "settled", None),
        (500, 1, "symmetrized", "stabilized"),
    ],
)
def test_a_plan_in_which_numbers_follow_their_bounds_says_so_and_what_is_narrower(
    rows: int, questions: int, method: str, instead: str | None
) -> None:
    plan = afresh.plan(rows, questions, method=method)
    said = " ".join(str(plan).split())
    assert "In this plan the width of a number follows its bounds" in said
    assert f"it is about ±{width(plan.half_width(0.5))} of the distance between them" in said
    assert "questions about numbers are refused, unless the dataset is opened with allow_wide=True" in said
    named = re.findall(r"method='(\w+)' gives ±([\d.]+\d)", said)
    assert [name for name, _ in named] == ["checked"] + ([] if instead is None else [instead])
    assert re.search(r"open=[\d.]+ gives", said)
    for name, shown in named:
        made = afresh.plan(rows, questions, method=name).mechanism
        own: Any = at_levels(made, None)
        assert width(own.deviation_width(0.5, 0.05)) == shown
        assert float(shown) < plan.half_width(0.5)


@pytest.mark.parametrize("way", [{"method": "symmetrized"}, {"method": "settled"}, {"open": 0.5}, {"rounds": 5}])
def test_other_plans_say_nothing_of_bounds(way: dict[str, Any]) -> None:
    assert "follows its bounds" not in " ".join(str(afresh.plan(10**5, 1000, **way)).split())


def test_numbers_whose_intervals_would_follow_their_bounds_are_refused_at_no_cost(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.clip(RNG.normal(0.5, 0.05, 3000), 0, 1), "hit": RNG.random(3000) < 0.5})
    place = tmp_path / "ledger.sqlite"
    number: dict[str, Any] = {"bounds": (0, 1), "missing": 0}
    with afresh.open(frame, 1000, promise=True, ledger=place) as guard:
        assert follows_bounds(guard.plan.mechanism)
        asks: list[Callable[[], object]] = [
            lambda: guard.ask("x", **number),
            lambda: guard.ask("x", bounds=(0, 1)),
            lambda: guard.ask("x", where="hit", **number),
            lambda: guard.ask_many(["hit", {"expression": "x", **number}]),
            lambda: guard.measure(Variance("x", (0, 1))),
            lambda: guard.measure(GroupMeans("x", "hit", [True, False], (0, 1))),
        ]
        for ask in asks:
            with pytest.raises(InvalidArgument, match=r"open=.* gives ±0.*allow_wide=True\. Nothing was asked") as said:
                ask()
            assert str(said.value).startswith(about_numbers(guard.plan.mechanism)[0])  # of the plan alone
        assert guard.budget.spent == 0
        assert "refused" in guard.price("x", **number).words
        shares = guard.ask("hit"), guard.ask("x > 0.5", where="hit"), guard.measure(Quantile("x", 0.5, (0, 1)))
        assert sum(share.charged for share in shares) == guard.budget.spent > 0
    with afresh.open(frame, ledger=place, allow_wide=True) as guard:
        told = guard.ask("x", **number)
        assert "the width follows the bounds" in told.covers
        assert "refused" not in guard.price("x + 0", **number).words
    with afresh.open(frame, ledger=place) as guard:  # what was answered can be read again, for nothing
        again = guard.ask("x", **number)
        assert (again.value, again.charged) == (told.value, 0)


@pytest.mark.parametrize(
    ("questions", "instead"),
    [
        (1, "rounds=1 or open=0.35 or method='checked' or method='stabilized'"),
        (100, "open=0.4 or method='checked' or rounds=10"),
    ],
)
def test_answers_in_which_numbers_follow_their_bounds_say_what_would_not(questions: int, instead: str) -> None:
    frame = pd.DataFrame({"x": np.clip(RNG.normal(0.5, 0.05, 500), 0, 1)})
    with afresh.open(frame, questions, method="symmetrized", ledger=":memory:", allow_wide=True) as guard:
        price = guard.price("x", bounds=(0, 1), missing=0, deviation=0.05)
        assert set(re.findall(r"[\w]+='?[\w.]+'?", instead)) <= set(price.ways)
        assert all(each < (price.half_width or 0) for name, each in price.ways.items() if name in instead)
        assert "method='settled'" not in price.ways
        said = guard.ask("x", bounds=(0, 1), missing=0).covers
        assert f"the width follows the bounds; with {instead} it would follow the deviation" in said
