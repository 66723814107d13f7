"""One desk, many analysts: a name belongs to a call, and every kind of question takes the same path."""

import contextlib
import os
import pickle
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import BudgetExhausted, GuardClosed, InvalidArgument
from afresh.guard.scope import Scope
from afresh.ledger import open_ledger
from afresh.ledger.journal import MemoryJournal, Transaction
from afresh.ledger.ledger import Ledger
from afresh.mechanisms.registry import PLANNERS
from afresh.models.vectors import VectorQuery
from afresh.queries.asked import Asked, ask
from afresh.queries.query import Query
from afresh.queries.tree import Type

RNG = np.random.default_rng(14)
FRAME = pd.DataFrame({"x": RNG.random(4000), "label": RNG.integers(0, 2, 4000)})
NAMES = [f"analyst {i}" for i in range(8)]


@pytest.mark.parametrize("method", PLANNERS)
@pytest.mark.parametrize("where", ["frame", "file"])
def test_eight_threads_with_eight_names_use_one_desk_at_once(tmp_path: Path, method: str, where: str) -> None:
    data: Any = FRAME
    if where == "file":
        data = tmp_path / "data.parquet"
        FRAME.to_parquet(data)
    ledger = tmp_path / "ledger.sqlite"
    with afresh.open(data, questions=64, method=method, ledger=ledger, allow_wide=True) as guard:
        guard.divide(dict.fromkeys(NAMES[:4], 7))
        together = Barrier(len(NAMES))

        def ask(name: str) -> list[float]:
            own = guard.for_analyst(name)
            together.wait()
            shared = own.ask("x < 0.5")  # whoever is first pays
            answers = own.ask_many([f"x < {0.01 * i + int(name[-1]) / 1000!r}" for i in range(1, 7)])
            return [shared.value, *(answer.value for answer in answers)]

        with ThreadPoolExecutor(len(NAMES)) as pool:
            found = list(pool.map(ask, NAMES))
        assert len({values[0] for values in found}) == 1
        records = guard.transcript.answers
        assert len(records) == guard.desk.ledger.spent(guard.desk.terms).answers == 1 + 6 * len(NAMES)
        for name, values in zip(NAMES, found, strict=True):
            mine = [record.value for record in records if record.analyst == name and record.question != "x < 0.5"]
            assert mine == values[1:]
            spent = guard.for_analyst(name).budget
            assert spent.shares == dict.fromkeys(NAMES[:4], 7)
            if name in NAMES[:4]:
                assert spent.spent == sum(record.analyst == name for record in records)
        assert afresh.receipts.verify(guard.receipt()).passed


def test_a_share_is_the_name_s(tmp_path: Path) -> None:
    with afresh.open(FRAME, questions=10, ledger=tmp_path / "ledger.sqlite", allow_wide=True) as guard:
        guard.divide({"ann": 1})
        ann, bob = guard.for_analyst("ann"), guard.for_analyst("bob")
        ann.ask("x < 0.1")
        with pytest.raises(BudgetExhausted, match="ann"):
            ann.ask("x < 0.2")
        assert bob.ask("x < 0.2").left == 8
        assert ann.ask("x < 0.2").charged == 0
        assert (ann.budget.left, bob.budget.left) == (0, 8)
        with pytest.raises(InvalidArgument, match="name"):
            guard.for_analyst(" ")
        ann.close()
        with pytest.raises(GuardClosed):
            bob.ask("x < 0.3")


def kinds() -> Iterator[Asked]:
    """A question of every kind."""
    schema = {"x": Type.NUMBER}
    yield ask("x < 0.5", schema)
    yield ask("x", schema, (0, 1), missing=0)
    yield ask("x", schema, (0, 1), where="x > 0.2")
    query = VectorQuery("a digest", "a loss", lambda rows: np.ones(len(FRAME))[rows])
    words: dict[str, Any] = {
        "question": "a loss",
        "bounds": (0.0, 1.0),
        "about_value": "the mean loss",
        "about_missing": "",
    }
    yield Asked(queries=(query,), **words)
    halves = [VectorQuery(f"half {i}", f"half {i}", lambda rows: np.ones(len(FRAME))[rows]) for i in range(2)]
    words |= {"question": "a difference", "bounds": (-1.0, 1.0)}
    yield Asked(queries=tuple(halves), rule="difference", parameters={"scale": 1.0, "sign": 1}, **words)


def test_every_kind_of_question_obeys_one_protocol() -> None:
    for one in kinds():
        for query in one.queries:
            assert isinstance(query, Query | VectorQuery)
            assert isinstance(query.digest, str)
            assert isinstance(query.text, str)
            assert len(query.bounds) == 2
            assert query.levels in (None, 2, 3)
            assert query.columns is None or query.columns == {"x"}


class Counting(MemoryJournal):
    """A journal that counts its transactions."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        self.count += 1
        with super().transaction(write=write) as transaction:
            yield transaction


def test_they_are_answered_together_in_two_transactions() -> None:
    journal = Counting()
    with afresh.open(FRAME, questions=40, ledger=Ledger(journal)) as guard:
        before = journal.count
        replies = guard.desk.answer(list(kinds()), "ann")
        assert journal.count - before == 2  # reserve, record: nothing is read a third time
        assert [len(reply.charged) for reply in replies] == [1, 1, 2, 1, 2]
        assert {reply.left for reply in replies} == {40 - 7}
        assert [reply.asked.rule for reply in replies] == [None, None, "group", None, "difference"]
        before = journal.count
        again = guard.desk.answer(list(kinds()), "bob")
        assert [reply.number for reply in again] == [reply.number for reply in replies]
        assert not any(reply.charged for reply in again)
        assert journal.count - before == 2  # what is there, and what was stated of it
        before = journal.count
        guard.ask("x < 0.5")
        assert journal.count - before == 1


def attempts(guard: afresh.Guard) -> Iterator[Callable[[], object]]:
    yield lambda: guard.ask("x < 0.25")
    yield lambda: guard.measure(afresh.statistics.Histogram("x", [0.0, 0.25, 0.5, 1.0]))
    yield lambda: guard.measure(afresh.statistics.Variance("x", (0, 1)))


def test_a_statistic_states_all_it_makes_at_once() -> None:
    journal = Counting()
    with afresh.open(FRAME, questions=40, ledger=Ledger(journal)) as guard:
        counts = []
        for attempt in attempts(guard):
            before = journal.count
            attempt()
            counts.append(journal.count - before)
        # one question; one batch of bins and a statement of all of them; two batches and a statement
        assert counts == [2, 4, 6]


def test_a_ledger_that_was_passed_in_stays_open() -> None:
    ledger = open_ledger(":memory:")
    afresh.open(FRAME, questions=10, ledger=ledger, allow_wide=True).close()
    with afresh.open(FRAME, ledger=ledger) as guard:
        assert guard.ask("x < 0.5").charged == 1


def test_what_is_being_answered_ends_before_the_desk_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing stays paid and unanswered, and whoever comes later is told."""
    guard = afresh.open(FRAME, questions=10, ledger=open_ledger(":memory:"), allow_wide=True)
    real, inside, go_on = guard.desk.engine.moments, Event(), Event()

    def slow(*asked: Any) -> Any:
        inside.set()
        assert go_on.wait(30)
        return real(*asked)

    monkeypatch.setattr(guard.desk.engine, "moments", slow)
    with ThreadPoolExecutor(2) as pool:
        asking = pool.submit(guard.ask, "x < 0.5")
        assert inside.wait(30)
        closing = pool.submit(guard.close)
        while not guard.desk.closed:
            time.sleep(0.001)
        with pytest.raises(GuardClosed):
            guard.ask("x < 0.25")
        assert not closing.done()
        go_on.set()
        assert asking.result(30).charged == 1
        closing.result(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_is_told_to_open_the_data_itself(tmp_path: Path) -> None:
    with afresh.open(FRAME, questions=10, ledger=tmp_path / "ledger.sqlite", allow_wide=True) as guard:
        guard.ask("x < 0.5")
        reading, writing = os.pipe()
        if (child := os.fork()) == 0:
            try:
                guard.ask("x < 0.25")
            except GuardClosed as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            assert "share one budget" in told.read()
        os.waitpid(child, 0)
        assert guard.budget.spent == 1


def test_nothing_asked_writes_nothing() -> None:
    ledger = open_ledger(":memory:")
    stale = afresh.open(FRAME, questions=10, ledger=ledger, allow_wide=True)
    with stale, afresh.open(FRAME, questions=20, ledger=ledger, allow_wide=True) as newer:
        assert stale.ask_many([]) == []
        assert newer.ask("x < 0.5").left == 19


def test_holdouts_of_one_desk_declare_the_same_features() -> None:
    frame = FRAME.assign(other=FRAME.label)
    with afresh.open(frame, questions=10, ledger=open_ledger(":memory:"), allow_wide=True) as guard:
        together, opened = Barrier(2), []

        def open_one(label: str) -> None:
            together.wait()
            with contextlib.suppress(InvalidArgument):
                opened.append(afresh.holdout(guard, label=label))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(open_one, ["label", "other"]))
        assert len(opened) == 1
        with pytest.raises(InvalidArgument, match="must declare the same"):
            guard.desk.declare(Scope("hidden"))


def test_an_answer_speaks_of_what_was_declared_when_it_was_asked() -> None:
    with afresh.open(FRAME, questions=10, ledger=open_ledger(":memory:"), allow_wide=True) as guard:
        (reply,) = guard.desk.answer([ask("x < 0.5", guard.desk.engine.schema)], "ann")
        afresh.holdout(guard, label="label")
        assert "in the population" in guard.desk.tell(reply).covers


def test_a_holdout_has_many_names_too(tmp_path: Path) -> None:
    X, y = FRAME[["x"]], FRAME.label
    with afresh.holdout(X, y, questions=20, ledger=tmp_path / "ledger.sqlite", allow_wide=True) as holdout:
        holdout.guard.divide({"ann": 1})
        ann = holdout.for_analyst("ann")
        assert ann.score(np.zeros(len(y), dtype=int)).left == 0
        with pytest.raises(BudgetExhausted, match="ann"):
            ann.score(np.ones(len(y), dtype=int))
        assert pickle.loads(pickle.dumps(ann)).guard.analyst == "ann"
        assert ann.labelled is holdout.labelled
