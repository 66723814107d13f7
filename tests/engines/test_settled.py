"""Charges that are settled after each answer, of tables that live elsewhere, and a conversation that goes on later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

import afresh
from afresh.errors import BudgetExhausted
from afresh.receipts import verify

N, QUESTIONS = 3000, 5
ROWS = [(i, bool(hit)) for i, hit in enumerate(np.random.default_rng(9).random(N) < 0.01)]


def check(data: Any, ledger: str, **more: Any) -> None:
    """In two sittings: the second knows what the answers before it were charged, and finds nothing left at its end."""
    heard: dict[str, Any] = {}
    for sitting in range(2):
        opening: dict[str, Any] = (
            {"questions": QUESTIONS, "method": "settled", "confidence": 1 - 1e-6} if sitting == 0 else {}
        )
        with afresh.open(data, ledger=ledger, **opening, **more) as guard:
            assert guard.budget.spent == 3 * sitting
            for text, found in heard.items():
                again = guard.ask(text)
                assert (again.charged, again.value, again.low, again.high) == (0, found.value, found.low, found.high)
            asked: list[dict[str, Any]] = [{"expression": f"hit AND i < {N - 20 * sitting}", "about": 0.01}]
            asked += [{"expression": f"i < {at + sitting}"} for at in (30, 1500)]
            try:
                for one in asked:
                    heard[one["expression"]] = guard.ask(**one)
            except BudgetExhausted:
                assert sitting == 1
            released: list[Any] = [
                entry.outcome.released for entry in guard.desk.ledger.entries(guard.desk.terms) if entry.outcome
            ]
            spent = [each["spent"] for each in released]
            assert spent == sorted(spent)
            assert spent[-1] <= QUESTIONS
            assert ["first" in each for each in released[:3]] == [False, True, True]
            outcome = verify(json.dumps(guard.receipt()))
            assert outcome.passed, str(outcome)
    assert len(heard) == QUESTIONS  # all of which miss with probability 1e-6 at most
    for text, found in heard.items():
        truth = np.mean([hit and i < int(text.split()[-1]) for i, hit in ROWS]) if "hit" in text else None
        assert found.low <= (int(text.split()[-1]) / N if truth is None else truth) <= found.high


def test_postgres_with_its_ledger_there(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE settled (i int, hit boolean)")
        try:
            with connection.cursor().copy("COPY settled FROM STDIN") as copy:
                for row in ROWS:
                    copy.write_row(row)
            check(postgres_url, postgres_url, table="settled")
        finally:
            connection.execute("DROP TABLE settled")


def test_spark(spark: Any, tmp_path: Path) -> None:
    check(spark.createDataFrame(ROWS, "i int, hit boolean"), str(tmp_path / "ledger.sqlite"))
