"""Callers who come together are answered in one scan and two transactions, and each as if it were alone."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import BudgetExhausted, EngineError, GuardClosed, LedgerError, QueryError
from afresh.ledger import open_ledger
from afresh.ledger.journal import MemoryJournal, Transaction
from afresh.ledger.ledger import Ledger
from afresh.losses import Custom

RNG = np.random.default_rng(17)
FRAME = pd.DataFrame({"x": RNG.random(4000), "label": RNG.integers(0, 2, 4000)})


class Counting(MemoryJournal):
    """A journal that counts its writing transactions, and runs something within or after the next one."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.within: Callable[[], None] | None = None
        self.after: Callable[[], None] | None = None

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        self.count += write
        with super().transaction(write=write) as transaction:
            yield transaction
            if write and self.within is not None:
                now, self.within = self.within, None
                now()
        if write and self.after is not None:
            now, self.after = self.after, None
            now()


class Together:
    """A guard whose engine is busy with a first question until all others stand in line."""

    def __init__(self, guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch) -> None:
        self.guard, self.scans = guard, list[list[str]]()
        self.inside, self.go_on = threading.Event(), threading.Event()
        engine = guard.desk.engine
        self._real, self.fails = engine.moments, ""
        monkeypatch.setattr(engine, "moments", self._moments)

    def _moments(self, queries: Sequence[Any], *more: Any) -> Any:
        self.scans.append([query.text for query in queries])
        self.inside.set()
        assert self.go_on.wait(30)
        if self.fails and any(self.fails in query.text for query in queries):
            raise EngineError("the engine has had enough of one question")
        return self._real(queries, *more)

    def run(self, *calls: Callable[[], Any], first: str = "x < 0.999") -> list[Future[Any]]:
        """Each call in a thread of its own, in this order, when the first question's scan has begun."""
        line = self.guard.desk._line
        with ThreadPoolExecutor(len(calls) + 1) as pool:
            busy = pool.submit(self.guard.ask, first)
            assert self.inside.wait(30)
            found = []
            for call in calls:
                before, deadline = len(line._waiting), time.monotonic() + 30
                found.append(pool.submit(call))
                while len(line._waiting) == before and not found[-1].done():
                    assert time.monotonic() < deadline
                    time.sleep(0.0005)
            self.go_on.set()
            assert busy.result(30).charged == 1
        return found


def asker(guard: afresh.Guard, *questions: str, name: str = "") -> Callable[[], Any]:
    own = guard.for_analyst(name) if name else guard
    return lambda: own.ask_many(questions)


@pytest.fixture
def journal() -> Counting:
    return Counting()


@pytest.fixture
def guard(journal: Counting) -> Iterator[afresh.Guard]:
    with afresh.open(FRAME, questions=20, ledger=Ledger(journal), method="calibrated", allow_wide=True) as guard:
        yield guard


def test_one_scan_and_two_commits(guard: afresh.Guard, journal: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Together(guard, monkeypatch)
    before = journal.count
    found = busy.run(*(asker(guard, f"x < 0.{number}", name=f"analyst {number}") for number in range(1, 9)))
    assert journal.count - before == 2 + 2
    assert [len(scan) for scan in busy.scans] == [1, 8]
    for number, each in enumerate(found, 1):
        (answer,) = each.result()
        assert (answer.charged, answer.question) == (1, f"x < 0.{number}")
        assert answer.left == 20 - 9  # all nine were paid for by then
    records = guard.transcript.answers
    assert [record.analyst for record in records][1:] == [f"analyst {number}" for number in range(1, 9)]
    assert afresh.receipts.verify(guard.receipt()).passed


def test_equal_questions_are_charged_to_the_first(guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Together(guard, monkeypatch)
    calls = [asker(guard, "x < 0.5", "x < 0.25", name="ann"), asker(guard, "0.5 > x", name="bob")]
    ann, bob = (each.result() for each in busy.run(*calls, asker(guard, "x < 0.125", "x < 0.5", name="cy"))[:2])
    assert [answer.charged for answer in ann] == [1, 1]
    assert [answer.charged for answer in bob] == [0]
    assert ann[0].value == bob[0].value
    assert busy.scans[1:] == [["x < 0.5", "x < 0.25", "x < 0.125"]]
    assert guard.budget.spent == 4


def test_a_repeat_does_not_wait_for_a_running_scan(guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a question nor what follows from several; another's in the same process is a repeat as well."""
    before = guard.ask("x < 0.5"), guard.ask("x", (0, 1), where="label = 1")
    busy = Together(guard, monkeypatch)
    with ThreadPoolExecutor(1) as pool:
        new = pool.submit(guard.ask, "x < 0.75")
        assert busy.inside.wait(30)
        other = guard.for_analyst("bob")
        again = other.ask("x < 0.5"), guard.ask("x", (0, 1), where="label = 1")
        assert len(busy.scans) == 1
        assert not new.done()
        busy.go_on.set()
        assert new.result(30).charged == 1
    for first, second in zip(before, again, strict=True):
        assert (second.charged, second.value, second.interval) == (0, first.value, first.interval)
    assert guard.budget.spent == 4


def test_every_caller_is_refused_alone(guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    guard.divide({"ann": 1, "bob": 2})
    busy = Together(guard, monkeypatch)
    found = busy.run(
        asker(guard, "x < 0.1", "x < 0.2", name="ann"),  # all or nothing
        asker(guard, "x < 0.3", "x < 0.4", name="bob"),
        asker(guard, "no_such_column < 1", name="bob"),
        asker(guard, "x < 0.5", name="bob"),
        asker(guard, "x < 0.6", name="cy"),
    )
    with pytest.raises(BudgetExhausted, match="ann"):
        found[0].result()
    assert [answer.charged for answer in found[1].result()] == [1, 1]
    with pytest.raises(QueryError):
        found[2].result()
    with pytest.raises(BudgetExhausted, match="bob") as refusal:
        found[3].result()
    assert (refusal.value.spent, refusal.value.asked) == (2, 1)
    assert found[4].result()[0].charged == 1
    assert busy.scans[1:] == [["x < 0.3", "x < 0.4", "x < 0.6"]]
    assert guard.budget.spent == 2  # of those without a share


def test_the_budget_is_the_whole_group_s(journal: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    with afresh.open(FRAME, questions=5, ledger=Ledger(journal), method="calibrated", allow_wide=True) as guard:
        busy = Together(guard, monkeypatch)
        found = busy.run(*(asker(guard, f"x < 0.{number}") for number in range(1, 9)))
        paid = [each for each in found if each.exception() is None]
        assert len(paid) == 4
        assert all(isinstance(each.exception(), BudgetExhausted) for each in found if each not in paid)
        assert guard.budget.left == 0


def test_a_question_that_cannot_be_evaluated_fails_alone(
    guard: afresh.Guard, journal: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Together(guard, monkeypatch)
    busy.fails = "0.2"
    found = busy.run(*(asker(guard, f"x < 0.{number}") for number in range(1, 5)))
    for number, each in enumerate(found, 1):
        if number == 2:
            with pytest.raises(EngineError):
                each.result()
        else:
            assert each.result()[0].charged == 1
    assert guard.budget.spent == 5  # what was paid for stays so
    busy.scans.clear()
    busy.inside.clear()
    busy.go_on.clear()
    # Asked again it is on its own, whatever comes with it: it may fail again, or take all of its time.
    again, other = busy.run(asker(guard, "x < 0.2"), asker(guard, "x < 0.7"), first="x < 0.998")
    assert ["x < 0.7"] in busy.scans
    assert isinstance(again.exception(), EngineError)
    assert other.result()[0].charged == 1
    busy.fails = ""
    assert guard.ask("x < 0.2").charged == 0


def test_a_transaction_that_fails_is_tried_by_each(
    guard: afresh.Guard, journal: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Together(guard, monkeypatch)
    record_each, failed = guard.desk.ledger.record_each, list[int]()

    def fail_together(terms: Any, outcomes: Any, callers: Any) -> Any:
        if len(callers) > 1:
            failed.append(len(callers))
            raise LedgerError("the disk is full")
        return record_each(terms, outcomes, callers)

    monkeypatch.setattr(guard.desk.ledger, "record_each", fail_together)
    found = busy.run(*(asker(guard, f"x < 0.{number}") for number in range(1, 5)))
    assert [each.result()[0].charged for each in found] == [1] * 4
    assert failed == [4]
    assert guard.budget.spent == 5


@pytest.mark.parametrize("moment", ["reserving", "reserved", "recording", "recorded"])
def test_an_interrupted_server_harms_nobody(
    guard: afresh.Guard, journal: Counting, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Whoever serves is interrupted within a transaction, or when it is durable; the others get what they paid for."""
    busy = Together(guard, monkeypatch)

    def interrupt() -> None:
        raise KeyboardInterrupt

    real = guard.desk._path.serve

    def serve(requests: Sequence[Any]) -> None:
        if len(requests) > 1:
            monkeypatch.setattr(guard.desk._line, "_serve", real)
            step = guard.desk._path._pay if moment.startswith("reserv") else guard.desk._path._finish
            if step == guard.desk._path._finish:
                guard.desk._path._pay(requests)
            setattr(journal, "within" if moment.endswith("ing") else "after", interrupt)
        real(requests)

    monkeypatch.setattr(guard.desk._line, "_serve", serve)
    found = busy.run(*(asker(guard, f"x < 0.{number}") for number in range(1, 5)))
    interrupted = [each for each in found if isinstance(each.exception(), KeyboardInterrupt)]
    assert len(interrupted) == 1
    assert [each.result()[0].charged for each in found if each not in interrupted] == [1] * 3
    answers = guard.ask_many([f"x < 0.{number}" for number in range(1, 5)])
    assert sum(answer.charged for answer in answers) <= 1  # if nothing was written for the interrupted one
    assert guard.budget.spent == 5


def test_rounds_of_callers_who_come_together_stay_apart() -> None:
    names, together = [f"analyst {i}" for i in range(6)], threading.Barrier(6)
    with afresh.open(FRAME, rounds=10, ledger=open_ledger(":memory:"), allow_wide=True) as guard:

        def ask(name: str) -> None:
            together.wait()
            guard.for_analyst(name).ask_many(["x < 0.5", f"x < 0.{name[-1]}5"])

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(ask, names))
        spans: dict[str, set[Any]] = {}
        for entry in guard.desk.ledger.entries(guard.desk.terms):
            spans.setdefault(entry.analyst, set()).add(entry.span)
        assert [len(each) for each in spans.values()] == [1] * 6
        assert len(set.union(*spans.values())) == 6
        assert afresh.receipts.verify(guard.receipt()).passed


def test_a_mechanism_with_a_memory_remembers_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every answer follows from the one before it, whoever asked: `verify` recomputes the path."""
    with afresh.open(FRAME, questions=40, ledger=open_ledger(":memory:"), method="checked", allow_wide=True) as guard:
        busy = Together(guard, monkeypatch)
        found = busy.run(*(asker(guard, f"x < 0.{number}", f"x < 0.{number}5") for number in range(1, 9)))
        assert all(each.exception() is None for each in found)
        assert len(busy.scans) == 2
        assert afresh.receipts.verify(guard.receipt()).passed


def test_closing_waits_for_all_who_stand_in_line(guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Together(guard, monkeypatch)

    def close_and_ask() -> None:
        closing = threading.Thread(target=guard.close)
        closing.start()
        while not guard.desk.closed:
            time.sleep(0.0005)
        with pytest.raises(GuardClosed):
            guard.ask("x < 0.9")

    found = busy.run(*(asker(guard, f"x < 0.{number}") for number in range(1, 4)), close_and_ask)
    assert [each.result()[0].charged for each in found[:3]] == [1, 1, 1]
    found[3].result()


def test_closing_by_the_thread_that_serves_does_not_wait_for_those_it_serves(
    guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a signal handler may: they are told, and nothing is lost."""
    busy = Together(guard, monkeypatch)
    real = guard.desk._path.outcomes

    def close(*arguments: Any) -> Any:
        if busy.go_on.is_set() and len(arguments[0]) > 1:
            guard.close()
        return real(*arguments)

    monkeypatch.setattr(guard.desk._path, "outcomes", close)
    found = busy.run(*(asker(guard, f"x < 0.{number}") for number in range(1, 4)))
    assert all(each.done() for each in found)


def test_somebody_else_s_function_runs_in_its_caller_s_thread() -> None:
    seen: list[tuple[int, int]] = []

    def scored(seed: int) -> None:
        here = threading.get_ident()

        def zero_one(y: Any, prediction: Any) -> Any:
            seen.append((here, threading.get_ident()))
            return (y != prediction).astype(float)

        loss = Custom(zero_one, f"errors {seed}")
        holdout.score(np.random.default_rng(seed).integers(0, 2, len(FRAME)), loss=loss)

    with (
        afresh.holdout(
            FRAME[["x"]], FRAME.label, questions=20, ledger=open_ledger(":memory:"), allow_wide=True
        ) as holdout,
        ThreadPoolExecutor(6) as pool,
    ):
        list(pool.map(scored, range(6)))
    assert seen
    assert all(one == other for one, other in seen)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no alarms here")
def test_interrupts_of_the_main_thread_while_others_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Real signals at real moments: the main thread is interrupted again and again, and the others go on.

    Python drops an interrupt that comes in the callback of a weak reference; then the alarm rings once more.
    """
    report = sys.unraisablehook
    monkeypatch.setattr(
        sys, "unraisablehook", lambda lost: None if lost.exc_type is KeyboardInterrupt else report(lost)
    )
    ledger = tmp_path / "ledger.sqlite"
    with afresh.open(FRAME, questions=5000, ledger=ledger, method="calibrated", allow_wide=True) as guard:
        guard.ask("x < 2 AND x > 0")  # imports what is imported on demand: an interrupted import locks its module
        stop, failed, asked = threading.Event(), list[BaseException](), list[str]()

        def work(number: int) -> None:
            try:
                for i in range(1000):
                    if stop.is_set():
                        return
                    question = f"x < {number / 8 + i / 10**4!r}"
                    assert guard.ask(question).charged == 1
                    asked.append(question)
            except BaseException as error:
                failed.append(error)

        workers = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(4)]
        for worker in workers:
            worker.start()
        chance, interrupts = np.random.default_rng(3), 0
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        for i in range(25):
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0005, 0.02), 1.0)
                while True:
                    guard.ask(f"x > {i / 100!r} AND x > {len(asked) / 10**6!r}")
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
                interrupts += 1
        signal.signal(signal.SIGALRM, before)
        stop.set()
        for worker in workers:
            worker.join(60)
            assert not worker.is_alive()
        assert not failed
        assert interrupts == 25
        assert all(answer.charged == 0 for answer in guard.ask_many(asked))
        assert afresh.receipts.verify(guard.receipt()).passed


@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_while_others_stand_in_line(guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    busy, told = Together(guard, monkeypatch), list[int]()

    def fork() -> None:
        child = os.fork()
        if not child:
            try:
                guard.ask("x < 0.9")
            except GuardClosed:
                os._exit(7)
            os._exit(1)
        told.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    found = busy.run(*(asker(guard, f"x < 0.{number}") for number in range(1, 4)), fork)
    assert [each.result()[0].charged for each in found[:3]] == [1, 1, 1]
    found[3].result()
    assert told == [7]


def test_answers_leave_nothing_to_the_garbage_collector() -> None:
    """Neither cycles, which only it would free, nor objects that it would scan again and again from then on."""
    with afresh.open(FRAME, questions=1000, method="calibrated", allow_wide=True) as guard:

        def ask(first: int) -> None:
            asks = [threading.Thread(target=guard.ask, args=(f"x < {(first + i) / 1024!r}",)) for i in range(40)]
            for each in asks:
                each.start()
            for each in asks:
                each.join()

        ask(0)
        guard.ask("x < 0.5")
        gc.collect()
        scanned = len(_tracked())
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            ask(100)
            gc.collect()
            assert [each for each in gc.garbage if type(each).__module__.startswith(("afresh", "sqlglot"))] == []
        finally:
            gc.set_debug(0)
            gc.enable()
            gc.garbage.clear()
        for first in 200, 300, 400:
            ask(first)
        gc.collect()
        assert len(_tracked()) < scanned + 20  # 160 answers were recorded


def _tracked() -> list[object]:
    """What the collector scans of ours; other tests may have left threads of others that come and go."""
    return [each for each in gc.get_objects() if str(type(each).__module__).startswith("afresh")]
