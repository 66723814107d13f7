"""What the tests need from a backend, and the helpers they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, settings

from afresh.ledger import Entry, Ledger, Limits, Outcome, Question, Terms, outcome
from afresh.ledger.base import ENDS
from afresh.ledger.journal import Journal, Sealed
from afresh.ledger.known import plain
from afresh.ledger.records import Released


class Storage(Protocol):
    """One place where chains are stored; empty at first."""

    def connect(self) -> Journal:
        """Return a journal on this place. Each call must find what the others wrote."""
        ...

    def tamper(self, records: Sequence[Sealed], length: int, head: str) -> None:
        """Overwrite the only chain, as someone with other tools would.

        `records` get the places 1, 2, ...; `length` and `head` are what is stored beside them. Only
        `DurableConformance` needs this.
        """
        ...


class Connect(Protocol):
    """Makes a new ledger on the storage; every one made is closed after the test."""

    def __call__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Ledger:
        """Connect; `clock` gives the times of records."""
        ...


class StorageTests:
    """The fixtures of all tests; a backend adds `storage`."""

    @pytest.fixture
    def connect(self, storage: Storage) -> Iterator[Connect]:
        made: list[Ledger] = []

        def connect(clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Ledger:
            made.append(Ledger(storage.connect(), clock))
            return made[-1]

        yield connect
        for ledger in made:
            ledger.close()

    @pytest.fixture
    def ledger(self, connect: Connect) -> Ledger:
        return connect()


# Each example opens its own data, so one storage can serve them all, and the suite can serve all backends.
on_one_storage = settings(
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
        HealthCheck.too_slow,
    ],
    deadline=None,
    max_examples=max(1, settings().max_examples // 4),  # of the profile that runs it
)


def opened(
    ledger: Ledger,
    fingerprint: str = "data",
    questions: int = 10,
    *,
    plan: str = "a plan",
    rows: int = 100,
    information: float = 1e3,
    answers: int | None = None,
    row_share: float | None = None,
    grid: float | None = None,
    ends: float = ENDS,
    **others: Any,
) -> Terms:
    most = questions if answers is None else answers
    limits = Limits({"method": plan}, questions, most, information, row_share, grid, ends)
    return ledger.open(plain(fingerprint, rows), limits, **others)


def known(ledger: Ledger, fingerprint: str = "data") -> Terms | None:
    return ledger.find(plain(fingerprint, 100))


def question(name: str, charge: float = 1.0, coarseness: float = 1.0, row_charge: float = 0.0) -> Question:
    return Question(f"digest of {name}", name, charge, row_charge, coarseness=coarseness)


def result(released: Released) -> Outcome:
    """Return an outcome with this released number, whatever it is."""
    return outcome(released, 0.5, 0.25, 0.75, ends=ENDS)


def released(entry: Entry) -> Released | None:
    return None if entry.outcome is None else entry.outcome.released


def names(entries: Sequence[Entry]) -> list[tuple[int, str]]:
    return [(entry.number, entry.text) for entry in entries]
