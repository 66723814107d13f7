"""Checked answers as a guard's method: the path in the ledger, guesses of the analyst's own, many processes at once."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.guard.arrange import arranged
from afresh.mechanisms.checked import Checked
from afresh.queries.asked import make_asked
from afresh.receipts import verify
from afresh.statistics import Correlation, GroupMeans, Histogram, Quantile, StandardDeviation


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({"x": rng.integers(0, 100, 20_000), "y": rng.random(20_000)})


@pytest.fixture
def guard(frame: pd.DataFrame) -> Iterator[afresh.Guard]:
    with afresh.open(frame, 60, method="checked") as guard:
        yield guard


def released(guard: afresh.Guard) -> list[dict[str, float]]:
    records = [json.loads(text) for text in guard.receipt()["chain"]["records"]]
    return [record["released"] for record in records if record["kind"] == "answered"]


def test_a_guess_that_is_right_is_the_answer(guard: afresh.Guard) -> None:
    answer = guard.ask("x < 30", guess=(0.3, 0.04))
    assert (answer.value, answer.low, answer.high) == pytest.approx((0.3, 0.26, 0.34))
    scaled = guard.ask("y", bounds=(-1, 3), missing=0, guess=(0.5, 0.2))
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx((0.5, 0.3, 0.7))


def test_a_guess_that_is_wrong_costs_width_and_still_holds(guard: afresh.Guard) -> None:
    wrong = guard.ask("x < 30", guess=(0.6, 0.02))
    assert 0.3 in wrong.interval
    assert not 0.58 < wrong.value < 0.62
    before = guard.ask("x < 50")
    for i in range(6):
        guard.ask(f"x < {i + 20}", guess=(0.9, 0.02))
    after = guard.ask("x < 51")
    assert after.interval.half_width > before.interval.half_width
    history = [(r["steps"], r["events"]) for r in released(guard)]
    assert [asked for asked, _ in history] == list(range(len(history)))
    assert history[-1][1] >= 7


def test_tables_say_what_was_confirmed_and_what_it_cost_that_some_was_not(frame: pd.DataFrame) -> None:
    """Whatever is shown first says, too, that widths are expected and not promised."""
    expected = "by checked, whose widths are expected but not promised"
    with afresh.open(frame, 300, open=0.5, ledger=":memory:") as guard:
        good = said(guard.ask_many(["x < 30", "x < 40"]))
        assert "Confirmed: the rows kept for checking agree with all guesses." in good
        assert expected in good
        wrong = [{"expression": f"x < {i}", "guess": (0.9, 0.02)} for i in range(10, 16)]
        answers = guard.ask_many(["x < 50", *wrong])
        cost = math.prod(1 + (each.widened or 0) for each in answers) - 1
        assert "Not confirmed: 6 of 7 (2, 3, 4, 5 and 2 more), whose guesses failed a check." in said(answers)
        assert f"Those answers are coarser, and later ones are {cost:.1%} wider." in said(answers)
        assert expected not in said(answers)
        shares = said(guard.measure(Histogram("x", [0, 30, 100])))
        assert "Confirmed: the rows kept for checking agree with all guesses." in shares
    with afresh.open(frame, 300, open=0.5, ledger=":memory:") as guard:
        assert expected in said(guard.measure(GroupMeans("y < 0.5", by="x < 50", categories=[True, False])))
    y = np.arange(20_000) % 2
    models = {"a": y, "b": np.where(np.arange(20_000) % 10 == 0, 1 - y, y)}
    ways: list[Callable[[afresh.Holdout], object]]
    ways = [lambda h: h.best_of(models), lambda h: h.compare(models["a"], models["b"])]
    for first in ways:
        with afresh.holdout(frame.to_numpy(), y, questions=300, open=0.5, ledger=":memory:") as holdout:
            assert "Confirmed: the rows kept for checking agree with" in (shown := said(first(holdout)))
            assert expected in shown
            assert expected not in said(holdout.best_of({**models, "c": 1 - y}))


def said(result: object) -> str:
    return " ".join(str(result).split())


def test_another_guess_is_another_question_and_the_same_is_free(guard: afresh.Guard) -> None:
    assert guard.ask("x < 30", guess=(0.3, 0.05)).charged == 1
    assert guard.ask("x < 30", guess=(0.3, 0.05)).charged == 0
    assert guard.ask("x < 30", guess=(0.3, 0.06)).charged == 1
    assert guard.ask("x < 30").charged == 1
    assert guard.budget.spent == 3


@pytest.mark.parametrize(
    "guess", [(2, 0.1), (0.5, 0), (0.5, -1), (0.5,), "x", (float("nan"), 0.1), (0.5, float("inf"))]
)
def test_bad_guesses_are_free(guard: afresh.Guard, guess: object) -> None:
    with pytest.raises(InvalidArgument, match="guess ="):
        guard.ask("x < 30", guess=guess)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="takes two"):
        guard.ask("x < 30", where="y < 1", guess=(0.5, 0.1))
    with pytest.raises(InvalidArgument, match="precision cannot be chosen"):
        guard.ask("x < 30", precision=0.2)
    assert guard.budget.spent == 0


def test_other_methods_check_no_guesses(frame: pd.DataFrame) -> None:
    with (
        afresh.open(frame, 60) as guard,
        pytest.raises(InvalidArgument, match="method='checked' only"),
    ):
        guard.ask("x < 30", guess=(0.3, 0.1))


def test_several_guards_share_one_history(frame: pd.DataFrame, private_ledger: Path) -> None:
    """Answers are settled in the order of the records, whoever asks."""
    with (
        afresh.open(frame, 60, method="checked") as one,
        afresh.open(frame, analyst="two") as two,
    ):
        for i in range(10):
            (one if i % 2 else two).ask(f"x < {5 * i}", guess=(0.9, 0.01) if i % 3 else None)
        one.ask_many([f"x > {i}" for i in range(5)])
        assert [r["steps"] for r in released(two)] == list(range(15))
        assert verify(two.receipt()).passed
    with afresh.open(frame) as later:
        assert later.budget.spent == 15
        with pytest.raises(BudgetExhausted):
            later.ask_many([f"y < {i / 100}" for i in range(46)])


def test_a_forged_history_is_found(guard: afresh.Guard) -> None:
    from receipts.test_receipts import edited

    for i in range(3):
        guard.ask(f"x < {i}", guess=(0.9, 0.01))
    receipt = guard.receipt()
    assert verify(receipt).passed
    place = next(i for i, text in enumerate(receipt["chain"]["records"]) if '"answered"' in text)
    honest = json.loads(receipt["chain"]["records"][place])["released"]
    for lie in (
        {"events": 5.0},
        {"steps": 7.0},
        {"first": 1e9},
        {"low": 0.95},
        {"values": 1.0},
        {"luck": 1.0},
        {"task": 3.0},
    ):
        assert not verify(edited(receipt, place, released={**honest, **lie})).passed


def test_the_plan_says_what_is_not_promised() -> None:
    method = afresh.plan(100_000, 1000).methods["checked"]
    assert method.certified
    assert not method.promised
    assert "width not promised" in str(afresh.plan(100_000, 1000).details)
    assert afresh.plan(100_000, 1000, method="checked").information is None


@pytest.mark.parametrize("way", [{"method": "checked"}, {"open": 0.5}])
def test_the_mean_of_a_number_within_a_group_is_one_claim(frame: pd.DataFrame, way: dict[str, Any]) -> None:
    """By the rows in it: narrow where the number hardly varies there, for one answer; conditions cost two as before."""
    rng = np.random.default_rng(4)
    frame["near"] = np.clip(rng.normal(np.where(frame.x < 30, 0.7, 0.2), 0.05), 0, 1)
    inside = frame[frame.x < 30]
    with afresh.open(frame, 60, **way) as guard:
        price = guard.price("near", (0, 1), "x < 30", missing=0, mean=0.7, share=0.3, deviation=0.05)
        near = guard.ask("near", (0, 1), "x < 30", missing=0)
        assert price.answers == near.charged == 1
        assert near.interval.half_width == pytest.approx(price.half_width, rel=0.3)
        assert near.interval.half_width < 0.02
        assert near.low <= inside.near.mean() <= near.high  # the truth is .7, which is within as well
        assert 0.7 in near.interval
        assert near.noise < near.interval.half_width
        assert guard.ask("near", (0, 1), "x < 30", missing=0).charged == 0
        condition = guard.ask("near < 0.7", where="x < 30")
        assert condition.charged == 2
        assert condition.interval.half_width > 4 * near.interval.half_width
        nobody = guard.ask("near", (0, 1), "x < 0", missing=0)
        assert not nobody.told
        spread = guard.measure(StandardDeviation("near", (0, 1), where="x < 30", missing=0))
        assert isinstance(spread, afresh.Answer)
        assert (spread.charged, spread.low < 0.05 < spread.high) == (2, True)
        both = guard.measure(Correlation("near", "y", (0, 1), (0, 1), where="x < 30", missing_x=0, missing_y=0))
        assert isinstance(both, afresh.Answer)
        # The mean of near is known, y needs no closer bounds: its mean, near's between closer ones, and three sums.
        assert (both.charged, both.low < 0 < both.high) == (5, True)
        median = guard.measure(Quantile("y", 0.5, (0, 1), where="x < 30", points=3, missing=0))
        assert isinstance(median, afresh.Answer)
        assert median.told
        receipt = guard.receipt()
    assert verify(receipt).passed
    shares = [each for each in released_in(receipt) if "share" in each]
    assert {round(each["share"], 1) for each in shares} == {0.0, 0.3}


def released_in(receipt: dict[str, Any]) -> list[dict[str, float]]:
    records = [json.loads(text) for text in receipt["chain"]["records"]]
    return [record["released"] for record in records if record["kind"] == "answered"]


def test_a_mean_within_a_group_is_two_halves_in_plans_from_before_and_where_features_are_public(
    frame: pd.DataFrame,
) -> None:
    with afresh.open(frame, 60, method="checked") as guard:
        schema, mechanism = guard.desk.schema, guard.plan.mechanism
    asked = make_asked({"expression": "y", "bounds": (0, 1), "where": "x < 30", "missing": 0}, schema)
    assert isinstance(mechanism, Checked)
    assert len(arranged([asked], mechanism, False, exam=False)[0].queries) == 1
    assert arranged([asked], mechanism, True, exam=False) == [asked]
    assert arranged([asked], replace(mechanism, groups=False), False, exam=False) == [asked]
