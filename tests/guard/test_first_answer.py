"""The first answer fixes the plan; what was told is what the log, receipts and the budget say."""

from __future__ import annotations

import json
import re
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import InvalidArgument, LedgerError, PlanMismatch
from afresh.ledger import Ledger, open_ledger
from afresh.mechanisms.registry import PLANNERS
from afresh.receipts import verify
from afresh.statistics import GroupMeans, Histogram, Quantile, Variance
from cli.program import afresh as command

N = 6000


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    return pd.DataFrame({"hit": rng.random(N) < 0.3, "x": rng.random(N), "g": rng.integers(0, 3, N)})


def test_a_plan_changes_freely_until_the_first_answer(frame: pd.DataFrame) -> None:
    for wish in ({"questions": 20}, {"questions": 8, "method": "calibrated"}, {"confidence": 0.9}, {"questions": 10}):
        with afresh.open(frame, **wish) as guard:
            assert guard.budget.left == guard.plan.questions
    with afresh.open(frame) as guard:  # what is left out is as it was said last
        assert (guard.plan.questions, guard.plan.confidence) == (10, 0.9)
        first, second = guard.ask("hit"), guard.ask("x < 0.5")
    assert "The plan is now fixed: 10 questions in 10 rounds at 90" in str(first)
    assert first.to_dict()["fixes"]
    assert second.fixes is None
    for other in ({"questions": 11}, {"confidence": 0.95}, {"method": "stabilized"}, {"rounds": 3}):
        with pytest.raises(PlanMismatch, match=r"questions=10, confidence=0\.9"):
            afresh.open(frame, **other)
    with afresh.open(frame, questions=10) as guard:
        assert guard.budget.left == 8


def test_whoever_is_answered_first_fixes_the_plan(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=10) as mine, afresh.open(frame, questions=20) as theirs:
        assert "10 questions" in str(mine.ask("hit"))
        for late in (lambda: theirs.ask("hit"), lambda: theirs.divide({"ann": 3})):
            with pytest.raises(PlanMismatch, match="Nothing was charged"):
                late()
        assert mine.budget.spent == 1


def test_a_question_that_is_wrong_fixes_nothing(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=10) as guard, pytest.raises(afresh.errors.QueryError):
        guard.ask("nothing > 3")
    with afresh.open(frame, questions=20) as guard:
        assert guard.plan.questions == 20


@pytest.mark.parametrize("method", [None, *PLANNERS])
def test_a_useless_plan_is_refused_with_what_would_work(frame: pd.DataFrame, method: str | None) -> None:
    few = frame[:300]
    with pytest.raises(InvalidArgument, match=r"300 rows .* learn anything from; .*allow_wide=True") as refusal:
        afresh.open(few, questions=200, method=method)
    fewer = re.search(r"questions=(\d+) gives", str(refusal.value))
    if fewer is not None:
        with afresh.open(few, questions=int(fewer[1]), method=method) as guard:
            assert guard.plan.half_width(0.5) <= 0.25
        with pytest.raises(InvalidArgument, match="too wide"):
            afresh.open(few, questions=int(fewer[1]) + 1, method=method)
    with afresh.open(few, questions=200, method=method, allow_wide=True) as guard:
        assert guard.plan.questions == 200


def test_a_refused_opening_closes_the_ledger_it_opened(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not one that it was handed."""
    opened: list[Ledger] = []

    def remember(place: Any) -> Ledger:
        opened.append(open_ledger(place))
        return opened[-1]

    monkeypatch.setattr("afresh.ledger.open_ledger", remember)
    with closing(open_ledger(":memory:")) as ours:
        for ledger, match in ((None, "was closed"), (ours, None)):
            with pytest.raises(InvalidArgument, match="200 questions"):
                afresh.open(frame[:300], questions=200, ledger=ledger)
            closed = nullcontext() if match is None else pytest.raises(LedgerError, match=match)
            with closed, opened[-1]._journal.transaction(write=False):
                pass


def test_the_budget_states_the_width_that_the_next_answer_has(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=40, method="checked") as guard:
        at_first = guard.budget.half_width[0.5]
        wrong = [guard.ask("hit", guess=(0.9, 0.001 * i)) for i in range(1, 12)]
        assert [answer.confirmed for answer in wrong] == [False] * len(wrong)
        assert all("failed its check" in str(answer) for answer in wrong)
        now = guard.budget.half_width
        assert now[0.5] > 1.5 * at_first
        answer = guard.ask("x < 0.5")
        assert answer.confirmed is not None
        if answer.confirmed:  # its guess is near 1/2, where claims are widest
            assert "Confirmed" in str(answer)
            assert now[0.1] < answer.interval.half_width <= now[0.5] * 1.001
    with afresh.open(frame, ledger=":memory:", questions=10) as guard:
        assert guard.ask("hit").confirmed is None


def told(answer: Any) -> tuple[float, float, float]:
    return answer.value, answer.low, answer.high


@pytest.mark.parametrize("method", PLANNERS)
def test_log_and_receipt_show_the_number_that_was_told(frame: pd.DataFrame, method: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    told_to: dict[str, list[Any]] = {}
    for analyst in ("ann", "bob"):
        with afresh.open(frame, questions=120, method=method, ledger=ledger, analyst=analyst, allow_wide=True) as guard:
            found: list[Any] = [
                guard.ask("hit"),
                guard.ask("hit", where=f"x < 0.{len(told_to) + 3}"),
                guard.measure(Variance("x", (0, 1))),
                guard.measure(Quantile("x", 0.5, (0, 1), points=3)),
            ]
            for several in (Histogram("x", [0, 0.5, 1]), GroupMeans("hit", "g", [1, 2])):
                found += guard.measure(several).answers.values()  # type: ignore[union-attr]
            told_to[analyst] = found
            log, receipt = guard.transcript, guard.receipt()
    lines = [each for record in log.records for each in (record.parts if record.value is None else (record,))]
    shown = {(record.value, record.low, record.high) for record in lines}  # numbers of one vector are under one line
    for answers in told_to.values():
        assert {told(answer) for answer in answers} <= shown
    assert {(q["value"], q["low"], q["high"]) for q in receipt["questions"]} == shown
    assert {record.analyst for record in log.records} == {"ann", "bob"}
    assert [answer.number for answer in log.answers] == sorted(entry["number"] for entry in receipt["answers"])
    assert sum(answer.counts for answer in log.answers) == guard.plan.questions - told_to["bob"][-1].left
    text = str(log)
    assert "analyst" in text
    assert " ann " in text
    assert "x" in text
    assert text.count("\n") < log.with_parts().count("\n")
    outcome = verify(json.dumps(receipt))
    assert outcome.passed, str(outcome)


def test_verify_against_a_head_and_a_ledger(frame: pd.DataFrame, tmp_path: Path) -> None:
    data, book, receipt = tmp_path / "data.parquet", tmp_path / "ledger.sqlite", tmp_path / "receipt.json"
    frame.to_parquet(data)
    command("ask", data, "hit", "--ledger", book)
    assert command("receipt", data, "--ledger", book, "--out", receipt).returncode == 0
    head = json.loads(receipt.read_text())["chain"]["head"]
    command("ask", data, "hit", "--where", "g = 1", "--ledger", book)
    assert command("verify", receipt, "--head", head, "--ledger", book).returncode == 0
    assert command("verify", receipt, "--head", "0" * 64).returncode == 1
    other = tmp_path / "other.sqlite"
    command("ask", data, "hit", "--ledger", other)
    assert "ledger does not begin" in command("verify", receipt, "--ledger", other).stdout
    assert command("verify", receipt, "--ledger", tmp_path / "none.sqlite").returncode == 2
    parts = command("log", data, "--ledger", book, "--parts").stdout
    assert "·" in parts
    assert "·" not in command("log", data, "--ledger", book).stdout
