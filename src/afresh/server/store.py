"""What all workers must see at once, besides the ledger: a few small tables in SQLite or PostgreSQL."""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

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
    """CREATE TABLE IF NOT EXISTS afresh_holds (
        id TEXT PRIMARY KEY,
        holder TEXT NOT NULL,
        token TEXT NOT NULL,
        dataset TEXT NOT NULL,
        analyst TEXT NOT NULL,
        after BIGINT NOT NULL,
        answers BIGINT NOT NULL,
        questions TEXT NOT NULL
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
_HOLDING = 0x61667275  # the first half of the advisory lock that a process holds while it lives
Run = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs a statement, which marks its values with `?`, and returns its rows."""
_Found = TypeVar("_Found")


class Store:
    """Runs statements, each a transaction of its own unless `transact` runs several. Safe to use from several threads.

    A process can have a name that others can tell from one that is gone: it holds a lock for as long as it lives.
    """

    def __init__(self, place: str) -> None:
        """`place` is the path of an SQLite file, created if there is none, or a postgresql:// address."""
        self.place, self._lock, self._connection = place, threading.Lock(), None
        self._server = "://" in place
        self._process = 0
        self._name: str | None = None
        self._held: int | None = None

    def run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run a statement, which marks its values with `?`, and return its rows."""
        return self._tried(lambda: self._run(statement, values))

    def transact(self, work: Callable[[Run], _Found]) -> _Found:
        """Run several statements, all or none of them."""

        def all_or_none() -> _Found:
            connection = self._connected()
            if self._server:
                with connection.transaction():
                    return work(self._run)
            connection.execute("BEGIN IMMEDIATE")
            try:
                found = work(self._run)
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            return found

        return self._tried(all_or_none)

    def mine(self) -> str:
        """The name of this process: `is_gone` is false for it until the process ends or the store is closed."""
        with self._lock:
            if self._name is None or self._process != os.getpid():
                self._name = f"{secrets.randbits(31):08x}"
                self._drop()
        self._tried(self._connected)
        return self._name

    def is_gone(self, name: str) -> bool:
        """Whether the process of this name has ended."""
        if name == self._name:
            return False
        if self._server:
            ((free,),) = self.run("SELECT pg_try_advisory_lock(?, ?)", (_HOLDING, int(name, 16)))
            if free:
                self.run("SELECT pg_advisory_unlock(?, ?)", (_HOLDING, int(name, 16)))
            return bool(free)
        try:
            found = os.open(self._place_of(name), os.O_RDWR)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            Path(self._place_of(name)).unlink(missing_ok=True)
            return True
        finally:
            os.close(found)

    def _place_of(self, name: str) -> str:
        return f"{self.place}.{name}.lock"

    def _tried(self, work: Callable[[], _Found]) -> _Found:
        with self._lock:
            for attempt in (1, 2):
                try:
                    return work()
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
            if self._held is not None:
                os.close(self._held)
                Path(self._place_of(self._name or "")).unlink(missing_ok=True)
            self._held = self._name = None

    def _run(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
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
        if self._name is not None and self._held is None:
            self._held = os.open(self._place_of(self._name), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._held, fcntl.LOCK_EX)
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
        if self._name is not None:
            made.execute("SELECT pg_advisory_lock(%s, %s)", (_HOLDING, int(self._name, 16)))
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
