"""A ledger that is open while its process forks."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from afresh.errors import LedgerError
from afresh.ledger import Entry, Question, Terms
from afresh.ledger.sqlite import SqliteLedger

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    # The test runner may have threads of its own.
    pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning"),
]


def opened(ledger: SqliteLedger) -> Terms:
    return ledger.open("data", plan="{}", rows=100, questions=100, information=100.0)


def ask(ledger: SqliteLedger, name: str = "a") -> Entry:
    return ledger.reserve(opened(ledger), [Question(name, name, "{}", 1.0)])[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


def start(work: Callable[[], object]) -> int:
    """Run `work` in a forked child, which must never return into the test runner."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def end(child: int) -> int:
    """0 if the child's work returned."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class TestFork:
    def test_child_keeps_what_the_parent_leaves(self, path: Path) -> None:
        """A connection that crossed the fork would lose the child's entry when the parent closes the file."""
        ledger = SqliteLedger(path)
        ask(ledger, "before")
        (asked, tell), (closed, go) = os.pipe(), os.pipe()

        def work() -> None:
            ask(ledger, "in the child")
            os.write(tell, b"x")
            os.read(closed, 1)
            ask(ledger, "when the parent is done")

        child = start(work)
        os.close(tell)
        os.read(asked, 1)
        ask(ledger, "in the parent")
        ledger.close()
        os.write(go, b"x")
        assert end(child) == 0
        for descriptor in (asked, closed, go):
            os.close(descriptor)
        later = SqliteLedger(path)
        texts = [entry.text for entry in later.entries(opened(later))]
        later.close()
        assert texts == ["before", "in the child", "in the parent", "when the parent is done"]

    def test_during_another_thread_s_transactions(self, path: Path) -> None:
        ledger = SqliteLedger(path)
        done = threading.Event()

        def keep_asking() -> None:
            i = 0
            while not done.is_set():
                ask(ledger, f"{i % 50}")
                i += 1

        thread = threading.Thread(target=keep_asking)
        thread.start()
        try:
            for i in range(10):
                assert end(start(partial(ask, ledger, f"child {i}"))) == 0
        finally:
            done.set()
            thread.join()
        entries = ledger.entries(opened(ledger))
        ledger.close()
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        assert sum(entry.text.startswith("child") for entry in entries) == 10

    def test_memory_is_not_shared(self) -> None:
        ledger = SqliteLedger(":memory:")
        opened(ledger)

        def refused() -> None:
            with pytest.raises(LedgerError, match="forked"):
                ask(ledger)
            with closing(SqliteLedger(":memory:")) as own:
                assert ask(own).number == 1

        assert end(start(refused)) == 0
        assert ask(ledger).number == 1
        ledger.close()
