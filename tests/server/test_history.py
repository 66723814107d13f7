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
from afresh.receipts import verify
from afresh.results.transcript import Record
from afresh.server.history import Follower, History, Wanted
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
        history = History(guard.desk, tick=0.0)
        assert history.page().records == []
        for place, each in enumerate(ASKED[method]):
            own = guard.for_analyst("ann" if place % 2 else "bob")
            _ask(own, each)
            assert tuple(lines(history)) == guard.transcript.records
        later = History(guard.desk, tick=0.0)
        assert lines(later, size=100) == lines(history)
        for record in guard.transcript:
            assert record in history.of(record.number)
        assert history.of(1)[0].answers >= 1
        records = guard.transcript.records
        assert history.part(1, 2) == (list(records[1:3]), len(records))
        assert history.receipt()[1]["chain"] == guard.receipt()["chain"]
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


@pytest.mark.parametrize("first", [3, 4, 5, 9])
def test_an_answer_is_shown_when_it_leaves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, first: int) -> None:
    """Recorded 0.3 seconds after its question, it is shown 0.1, 0.2, 0.4, 0.8 ... seconds after it, by every worker.

    Which of these it is depends on when a worker first sees it: not on the moment at which it was recorded.
    """
    start = datetime(2030, 1, 1, tzinfo=UTC)
    clock = [start]
    ledger = afresh.ledger.open_ledger(tmp_path / "ledger.sqlite")
    monkeypatch.setattr(ledger, "_clock", lambda: clock[0])
    monkeypatch.setattr(time, "time", lambda: clock[0].timestamp())
    with afresh.open(table(), questions=40, ledger=ledger, method="stabilized") as guard:
        history = History(guard.desk, tick=0.1)
        record_each = Ledger.record_each

        def slowly(self: Ledger, *arguments: Any) -> Any:
            clock[0] = start + timedelta(seconds=0.3)
            return record_each(self, *arguments)

        monkeypatch.setattr(Ledger, "record_each", slowly)
        with history.noting(start.timestamp()) as numbers:
            guard.for_analyst("ann").ask("churned", where="country = 'CH'")
        assert numbers == {1, 2}
        leaves = {3: 4, 4: 8, 5: 8, 9: 16}[first]  # a moment after 0.4 seconds is after that step
        clock[0] = start + timedelta(seconds=first / 10 + 0.001)
        assert history.leaves(numbers) == pytest.approx(start.timestamp() + leaves / 10)
        seen = {}
        for tenths in range(first, 20):
            clock[0] = start + timedelta(seconds=tenths / 10 + 0.001)
            records = history.page().records
            seen[tenths] = (records[0].value is not None, len(records), history.state())
            head, receipt = history.receipt()
            assert len(receipt["answers"]) == 2
            assert (receipt["answers"][0]["value"] is not None) is (records[0].value is not None)
            assert verify(receipt, head=head).passed
        assert [tenths for tenths, (shown, _, _) in seen.items() if shown] == list(range(leaves, 20))
        told = [2] * (leaves - first) + [1] * (20 - leaves)  # it tells of its parts
        assert [count for _, count, _ in seen.values()] == told
        assert len({state for _, _, state in seen.values()}) == 2
        entries = ledger.entries(guard.desk.terms)
        assert {entry.answered_at for entry in entries} == {start}


def test_what_was_answered_before_a_worker_began_is_shown(tmp_path: Path) -> None:
    with afresh.open(table(), questions=40, ledger=tmp_path / "ledger.sqlite") as guard:
        guard.ask("churned")
        history = History(guard.desk, tick=1000.0)
        assert history.page().records[0].value is not None
        assert history.leaves([1]) == 0
        guard.ask("amount < 9")
        assert history.page().records[0].value is None
        assert history.leaves([1, 2]) > time.time()


def test_a_worker_that_is_not_asked_sees_what_others_answer(tmp_path: Path) -> None:
    """Otherwise what it first sees an hour later would leave an hour after that."""
    with (
        afresh.open(table(), questions=40, ledger=tmp_path / "ledger.sqlite") as guard,
        afresh.open(table(), ledger=tmp_path / "ledger.sqlite") as other,
    ):
        history = History(other.desk, tick=1e-3)
        follower = Follower([history], period=1e-3)
        try:
            guard.ask("churned")
            while history.leaves([]) or 1 not in history._seen:
                time.sleep(1e-3)
        finally:
            follower.stop()


def test_a_record_does_not_tell_how_long_others_were_served(tmp_path: Path) -> None:
    """Its time is when it was asked, not when those before it were answered and it could be paid for."""
    start = datetime(2030, 1, 1, tzinfo=UTC)
    clock = [start]
    ledger = afresh.ledger.open_ledger(tmp_path / "ledger.sqlite")
    ledger._clock = lambda: clock[0]
    with afresh.open(table(), questions=40, ledger=ledger, method="stabilized") as guard:
        desk: Any = guard.desk
        first, second = (
            desk._request(guard.checked([each]), "ann", 0, None, False, None) for each in ("churned", "amount < 9")
        )
        clock[0] = start + timedelta(seconds=3)  # so long the scan of those before them takes
        desk._path.serve([first, second])
        assert {entry.reserved_at for entry in ledger.entries(desk.terms)} == {start}
        assert guard.ask("amount < 8").value is not None
        assert ledger.entries(desk.terms)[-1].reserved_at == clock[0]


def test_the_steps_of_one_request_have_one_time() -> None:
    """A quantile asks a second round when it knows the first: the time between would be that of a scan."""
    with afresh.open(table(), questions=60, method="symmetrized") as guard:
        history, came = History(guard.desk, tick=0.1), time.time()
        with history.noting(came) as numbers:
            guard.measure(Quantile("amount", 0.5, (0, 200)))
        assert len(numbers) > 1
        *parts, after = (entry.reserved_at for entry in _entries(guard, "amount < 9"))
        assert set(parts) == {datetime.fromtimestamp(came, UTC)}
        assert after > parts[0]


def _entries(guard: Guard, last: str) -> list[Any]:
    guard.ask(last)
    return guard.desk.ledger.entries(guard.desk.terms)
