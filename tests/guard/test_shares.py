"""A budget divided among analysts, through guards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import BudgetExhausted, GuardClosed, InvalidArgument
from afresh.guard.guard import Guard


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(2000) % 10})


def opened(frame: pd.DataFrame, analyst: str, **options: Any) -> Guard:
    return afresh.open(frame, 10, analyst=analyst, **options)


def test_each_analyst_has_a_share_and_the_others_the_rest(frame: pd.DataFrame) -> None:
    with opened(frame, "steward") as steward, opened(frame, "ada") as ada, opened(frame, "bob") as bob:
        budget = steward.divide({"ada": 3, "bob": 5})
        assert (budget.left, budget.shares, budget.analyst) == (2, {"ada": 3, "bob": 5}, "steward")
        assert (ada.budget.left, bob.budget.left) == (3, 5)
        for i in range(3):
            assert ada.ask(f"x < {i}").left == 2 - i
        with pytest.raises(BudgetExhausted, match=r"3 of the 3 in the share of ada are spent and 0 are left"):
            ada.ask("x < 3")
        assert bob.ask("x < 2").charged == 0  # what anyone was answered is everyone's
        assert bob.ask("x < 3").left == 4
        assert steward.ask("x < 4").left == 1
        with opened(frame, "eve") as eve:
            assert eve.budget.left == 1
            with pytest.raises(BudgetExhausted, match="those without a share"):
                eve.ask_many(["x < 5", "x < 6"])
        assert [record.analyst for record in steward.transcript.records] == ["ada"] * 3 + ["bob", "steward"]
        assert "0 of 3 answers left in the share of ada" in str(ada.budget)
        assert "ada 3, bob 5" in str(ada.budget)


def test_the_whole_is_the_limit_whatever_is_divided(frame: pd.DataFrame) -> None:
    with opened(frame, "ada") as guard:
        for i in range(4):
            guard.ask(f"x < {i}")
        for shares in ({"ada": 3}, {"bob": 7}, {"ada": 4, "bob": 7}, {"ada": 11}):
            with pytest.raises(InvalidArgument, match=r"already spent|the whole has 10"):
                guard.divide(shares)
        guard.divide({"ada": 4, "bob": 6})
        with pytest.raises(BudgetExhausted):
            guard.ask("x < 4")
        guard.divide({"ada": 10})
        for i in range(4, 10):
            guard.ask(f"x < {i}")
        with pytest.raises(BudgetExhausted):
            guard.ask("x > 5")
        assert guard.divide({}).spent == 10


@pytest.mark.parametrize("method", ["stabilized", "calibrated"])
def test_a_share_of_full_price_buys_more_coarse_answers(frame: pd.DataFrame, method: str) -> None:
    with opened(frame, "ada", method=method, answers=40, ledger=":memory:") as guard:
        assert guard.divide({"ada": 1}).answers == 4
        coarse = guard.budget.coarser[0]
        for i in range(coarse.left):
            guard.ask(f"x < {i}", precision=coarse.half_width)
        with pytest.raises(BudgetExhausted):
            guard.ask("x > 5", precision=coarse.half_width)


@pytest.mark.parametrize("shares", [{"ada": -1}, {"ada": 1.0}, {"": 1}, {1: 1}, {"a": "b"}, {"ada": True}, ["ada"], 3])
def test_what_is_no_division_is_refused(frame: pd.DataFrame, shares: Any) -> None:
    with opened(frame, "ada", ledger=":memory:") as guard:
        with pytest.raises(InvalidArgument):
            guard.divide(shares)
        assert guard.budget.shares == {}
    with pytest.raises(GuardClosed):
        guard.divide({"ada": 1})


@pytest.mark.parametrize("analyst", ["", " ", 7, "\ud800"])
def test_who_asks_needs_a_name(frame: pd.DataFrame, analyst: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument):
        opened(frame, analyst)


def test_who_asks_is_taken_from_the_environment(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFRESH_ANALYST", "Grace")
    with afresh.open(frame, 10) as guard:
        guard.ask("x < 1")
        assert guard.transcript.records[0].analyst == "Grace"
    with afresh.open(frame, 10, analyst="Ada") as guard:
        guard.ask("x < 2")
        assert [record.analyst for record in guard.transcript.records] == ["Grace", "Ada"]
