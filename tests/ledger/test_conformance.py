"""The shipped conformance suite, on every backend."""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from afresh.ledger.conformance import Conformance, DurableConformance
from afresh.ledger.journal import MemoryJournal, Sealed
from afresh.ledger.postgres import PostgresJournal
from afresh.ledger.sqlite import SqliteJournal
from examples import count


@dataclass
class Memory:
    journal: MemoryJournal = field(default_factory=MemoryJournal)

    def connect(self) -> MemoryJournal:
        return copy.copy(self.journal)  # the same chains, closed on its own

    def tamper(self, records: Sequence[Sealed], length: int, head: str) -> None:
        raise AssertionError("nobody else can reach it")


@dataclass
class File:
    path: Path

    def connect(self) -> SqliteJournal:
        return SqliteJournal(self.path)

    def tamper(self, records: Sequence[Sealed], length: int, head: str) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None)) as other:
            triggers = other.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
            for name, _ in triggers:
                other.execute(f"DROP TRIGGER {name}")
            other.execute("DELETE FROM afresh_records")
            rows = [(place, *sealed) for place, sealed in enumerate(records, 1)]
            other.executemany("INSERT INTO afresh_records SELECT id, ?, ?, ? FROM afresh_guards", rows)
            other.execute("UPDATE afresh_guards SET length = ?, head = ?", (length, head))
            for _, sql in triggers:
                other.execute(sql)


@dataclass
class Server:
    address: str

    def connect(self) -> PostgresJournal:
        return PostgresJournal(self.address)

    def tamper(self, records: Sequence[Sealed], length: int, head: str) -> None:
        with psycopg.connect(self.address) as other:
            other.execute("SET LOCAL session_replication_role = replica")  # triggers sleep
            other.execute("DELETE FROM afresh_records")
            other.cursor().executemany(
                "INSERT INTO afresh_records SELECT id, %s, %s, %s FROM afresh_guards",
                [(place, *sealed) for place, sealed in enumerate(records, 1)],
            )
            other.execute("UPDATE afresh_guards SET length = %s, head = %s", (length, head))


class TestMemory(Conformance):
    @pytest.fixture
    def storage(self) -> Memory:
        return Memory()


class TestSqlite(DurableConformance):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> File:
        return File(tmp_path / "ledger.sqlite")


class TestPostgres(DurableConformance):
    @pytest.fixture
    def storage(self, address: str) -> Server:
        return Server(address)

    @pytest.fixture
    def histories(self) -> int:
        return count(0.06)
