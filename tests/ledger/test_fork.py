"""A ledger that is open while its process forks."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from afresh.errors import LedgerError
from afresh.ledger import Ledger, open_ledger
from ledger.asking import ask, opened, question

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    # The test runner may have threads of its own.
    pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning"),
]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    address: str = request.getfixturevalue("address")
    return address


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
    def test_child_keeps_what_the_parent_leaves(self, place: str) -> None:
        """A connection that crossed the fork would lose the child's entry when the parent closes the file."""
        ledger = open_ledger(place)
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
        later = open_ledger(place)
        texts = [entry.text for entry in later.entries(opened(later))]
        later.close()
        assert texts == ["before", "in the child", "in the parent", "when the parent is done"]

    def test_during_another_thread_s_transactions(self, place: str) -> None:
        ledger = open_ledger(place)
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

    def test_within_a_transaction_as_a_signal_handler_may_do(self, place: str) -> None:
        """The transaction fails on both sides; neither waits for itself, and nothing is half written."""
        children: list[int] = []

        def clock() -> datetime:
            if not children:
                children.append(start(lambda: None))
            return datetime.now(UTC)

        with closing(open_ledger(place)) as first:
            terms = opened(first)
        ledger = Ledger(open_ledger(place)._journal, clock)
        with pytest.raises(LedgerError):
            ledger.reserve(terms, [question("a")])
        assert end(children[0]) == 0
        assert ask(ledger).number == 1
        ledger.close()

    def test_memory_is_not_shared(self) -> None:
        ledger = open_ledger(":memory:")
        opened(ledger)

        def refused() -> None:
            with pytest.raises(LedgerError, match="forked"):
                ask(ledger)
            with closing(open_ledger(":memory:")) as own:
                assert ask(own).number == 1

        assert end(start(refused)) == 0
        assert ask(ledger).number == 1
        ledger.close()
