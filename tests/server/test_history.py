"""The history that pages show: that of the transcript, a page at a time, on the public clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import afresh
from afresh.guard.guard import Guard
from afresh.ledger import Ledger
from afresh.results.transcript import Record
from afresh.server.history import History, Wanted
from afresh.statistics import GroupMeans, Histogram, Quantile, Variance


def table(rows: int = 3000) -> pa.Table:
    chance = np.random.default_rng(5)
    return pa.table(
        {
            "churned": chance.random(rows) < 0.3,
            "amount": chance.exponential(50, rows),
            "country": chance.choice(["CH", "DE"], rows),
        }
    )


def lines(history: History, size: int = 3) -> list[Record]:
    """All pages, from the oldest line to the newest."""
    first = history.page(1, size=size)
    pages = [history.page(number, size=size) for number in range(1, first.pages + 1)]
    assert {page.total for page in pages} == {first.total}
    return [record for page in pages for record in page.records][::-1]


ASKED: dict[str, list[Any]] = {
    "checked": [
        "churned",
        {"expression": "amount", "bounds": (0, 200)},
        Quantile("amount", 0.5, (0, 200)),
        "amount < 9",
    ],
    "symmetrized": [
        "churned",
        Histogram("amount", [0, 50, 100, 200]),
        GroupMeans("amount", "country", ["CH", "DE"], (0, 200)),
        Variance("amount", (0, 200)),
        {"expression": "churned", "where": "country = 'CH'"},
    ],
    "rounds": [["churned", "amount < 50"], Quantile("amount", 0.5, (0, 200)), "amount < 9"],
}


@pytest.mark.parametrize("method", ASKED)
def test_it_is_the_transcript(method: str) -> None:
    """Whatever was asked between two looks: answers, what follows from them, vectors, rounds."""
    with afresh.open(table(), questions=60, method=method, rounds=5 if method == "rounds" else None) as guard:
        history = History(guard.desk, tick=0.0, patience=60.0)
        assert history.page().records == []
        for place, each in enumerate(ASKED[method]):
            own = guard.for_analyst("ann" if place % 2 else "bob")
            _ask(own, each)
            assert tuple(lines(history)) == guard.transcript.records
        later = History(guard.desk, tick=0.0, patience=60.0)
        assert lines(later, size=100) == lines(history)
        for record in guard.transcript:
            assert record in history.of(record.number)
        assert history.of(1)[0].answers >= 1
        assert history.of(10**6) == []
        assert {record.analyst for record in history.page(1, Wanted(analyst="bob")).records} == {"bob"}
        found = history.page(1, Wanted(words="CHURNED")).records
        assert {"churned" in record.question for record in found} == {True}
        if method == "rounds":
            assert {record.round for record in history.page(1, Wanted(round="1")).records} == {"1"}
            assert history.rows_of("1") == 600


def _ask(guard: Guard, what: Any) -> None:
    if isinstance(what, list):
        guard.ask_many(what)
    elif isinstance(what, str | dict):
        guard.ask_many([what])
    else:
        guard.measure(what)


def test_an_answer_is_shown_when_it_may_leave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An answer that was recorded 3 ticks after its question is shown with the step after 4, whoever looks when."""
    clock = [datetime(2030, 1, 1, tzinfo=UTC)]
    ledger = afresh.ledger.open_ledger(tmp_path / "ledger.sqlite")
    monkeypatch.setattr(ledger, "_clock", lambda: clock[0])
    monkeypatch.setattr(time, "time", lambda: clock[0].timestamp())
    with afresh.open(table(), questions=40, ledger=ledger, method="stabilized") as guard:
        history = History(guard.desk, tick=1.0, patience=60.0)
        record_each = Ledger.record_each

        def slowly(self: Ledger, *arguments: Any) -> Any:
            clock[0] += timedelta(seconds=3)
            return record_each(self, *arguments)

        monkeypatch.setattr(Ledger, "record_each", slowly)
        guard.ask("churned", where="country = 'CH'")
        seen = []
        for _ in range(8):
            (top, *_) = history.page().records
            seen.append((top.value is not None, len(history.page().records), history.state()))
            clock[0] += timedelta(seconds=0.25)
        assert [shown for shown, _, _ in seen] == [False] * 4 + [True] * 4  # from 4 seconds after the question on
        assert [count for _, count, _ in seen] == [2] * 4 + [1] * 4  # what follows from two answers tells of both
        assert len({state for _, _, state in seen}) == 2
        guard.ask("churned", where="country = 'CH'")  # a repeat changes nothing
        assert history.page().total == 1
        assert ledger.entries(guard.desk.terms)[0].answered_at == ledger.entries(guard.desk.terms)[0].reserved_at
        clock[0] += timedelta(seconds=1)
        monkeypatch.setattr(Ledger, "record_each", record_each)
        guard.ask("amount < 10")
        clock[0] += timedelta(hours=1)  # first seen long after: nobody waits for it any more
        assert history.page().records[0].value is not None
