"""What all workers must see at once, besides the ledger: a few small tables in SQLite or PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from afresh.errors import LedgerError, MissingExtra

_TABLES = (
    """CREATE TABLE IF NOT EXISTS afresh_tokens (
        id TEXT PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        datasets TEXT NOT NULL,
        expires BIGINT,
        cap BIGINT,
        spent BIGINT NOT NULL DEFAULT 0,
        made BIGINT NOT NULL,
        revoked BIGINT
    )""",
    "CREATE TABLE IF NOT EXISTS afresh_frozen (dataset TEXT PRIMARY KEY, why TEXT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS afresh_shelf (
        board TEXT NOT NULL,
        entry TEXT NOT NULL,
        sealed BIGINT NOT NULL,
        content BYTEA NOT NULL,
        PRIMARY KEY (board, entry)
    )""",
    """CREATE TABLE IF NOT EXISTS afresh_rounds (
        dataset TEXT NOT NULL,
        questions TEXT NOT NULL,
        PRIMARY KEY (dataset, questions)
    )""",
    """CREATE TABLE IF NOT EXISTS afresh_sessions (
        hash TEXT PRIMARY KEY,
        caller TEXT NOT NULL,
        expires BIGINT NOT NULL
    )""",
    """CREATE TABLE IF NOT EXISTS afresh_entries (
        dataset TEXT NOT NULL,
        id TEXT NOT NULL,
        name TEXT NOT NULL,
        analyst TEXT NOT NULL,
        made BIGINT NOT NULL,
        loss TEXT NOT NULL,
        value DOUBLE PRECISION NOT NULL,
        low DOUBLE PRECISION NOT NULL,
        high DOUBLE PRECISION NOT NULL,
        predictions TEXT NOT NULL,
        PRIMARY KEY (dataset, id)
    )""",
)
_MAKING = 0x61667274  # the advisory lock for creating the tables


class Store:
    """Runs statements, each a transaction of its own. Safe to use from several threads."""

    def __init__(self, place: str) -> None:
        """`place` is the path of an SQLite file, created if there is none, or a postgresql:// address."""
        self.place, self._lock, self._connection = place, threading.Lock(), None
        self._server = "://" in place
        self._process = 0

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, which marks its values with `?`, and return its rows."""
        with self._lock:
            for attempt in (1, 2):
                try:
                    return self._run(statement, values)
                except self._failures() as error:
                    self._drop()
                    if attempt == 2 or not self._server:
                        kind = type(error).__name__
                        raise LedgerError(
                            f"the service's tables cannot be used ({kind}); check the state directory or the database."
                        ) from None
        raise AssertionError

    def close(self) -> None:
        """Close the connection; the next statement makes another."""
        with self._lock:
            self._drop()

    def _run(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        connection: Any = self._connected()
        if self._server:
            statement = statement.replace("?", "%s")
        cursor = connection.execute(statement, values)
        found = cursor.fetchall() if cursor.description else []
        return [tuple(row) for row in found]

    def _connected(self) -> Any:
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        self._connection = self._on_server() if self._server else self._in_file()
        self._process = os.getpid()
        return self._connection

    def _in_file(self) -> Any:
        path = Path(self.place)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        path.chmod(0o600)
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            made.execute(f"PRAGMA {pragma}")
        for table in _TABLES:
            made.execute(table)
        return made

    def _on_server(self) -> Any:
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtra("psycopg", "postgres") from error

        made = psycopg.connect(self.place, autocommit=True, connect_timeout=15, application_name="afresh serve")
        with made.transaction():
            made.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
            for table in _TABLES:
                made.execute(table.encode())
        return made

    def _failures(self) -> tuple[type[Exception], ...]:
        if not self._server:
            return (sqlite3.Error, OSError)
        import psycopg

        return (psycopg.Error, OSError)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def store_of(state: str, ledger: str) -> Store:
    """Open the store in the ledger's database if that is a server, otherwise in the state directory."""
    return Store(ledger if "://" in ledger else os.path.join(state, "service.sqlite"))
