"""What the tests need of a backend, and the words they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, settings

from afresh.ledger import Entry, Ledger, Question, Terms
from afresh.ledger.journal import Journal, Sealed


class Storage(Protocol):
    """One place where chains are stored; empty at first."""

    def connect(self) -> Journal:
        """A journal on this place. Each call must find what the others wrote."""
        ...

    def tamper(self, records: Sequence[Sealed], length: int, head: str) -> None:
        """Overwrite the one chain there is, as somebody with other tools would.

        `records` get the places 1, 2, ..., `length` and `head` are what is kept beside them. Only `DurableConformance`
        needs this.
        """
        ...


class Connect(Protocol):
    """A new ledger on the storage; whatever was connected is closed after the test."""

    def __call__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Ledger:
        """`clock` tells the time of records."""
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


# Each example opens data of its own, so one storage can serve them all, and the suite all backends.
on_one_storage = settings(
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
        HealthCheck.too_slow,
    ],
    deadline=None,
    max_examples=25,
)


def opened(ledger: Ledger, fingerprint: str = "data", questions: int = 10, **others: Any) -> Terms:
    return ledger.open(
        fingerprint, questions=questions, **{"plan": '{"k": 1}', "rows": 100, "information": 1e3, **others}
    )


def question(name: str, charge: float = 1.0, coarseness: float = 1.0, row_charge: float = 0.0) -> Question:
    return Question(
        f"digest of {name}", name, '{"bounds": [0, 1]}', charge, row_charge, method="any", coarseness=coarseness
    )


def names(entries: Sequence[Entry]) -> list[tuple[int, str]]:
    return [(entry.number, entry.text) for entry in entries]
