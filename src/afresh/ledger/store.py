"""One SQLite file, one connection, and what can go wrong with them."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import URL, Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from afresh.errors import AfreshError, LedgerError
from afresh.ledger import schema

BUSY_SECONDS = 30.0  # a healthy writer holds the file for milliseconds

_REMEDIES = {
    sqlite3.SQLITE_BUSY: "another process has kept it locked for {seconds:g} s; end that one or try again",
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its directory writable for this user",
    sqlite3.SQLITE_PERM: "this user may not write it; make the file and its directory writable for this user",
    sqlite3.SQLITE_CANTOPEN: "the path must be a file, in a directory, that this user may write",
    sqlite3.SQLITE_NOTADB: "it is not a ledger, and was left as it is; choose another path",
    sqlite3.SQLITE_CORRUPT: "it is damaged; restore it from a copy. A new ledger would forget what was spent",
    sqlite3.SQLITE_FULL: "the disk is full; free some space and ask again",
    sqlite3.SQLITE_IOERR: "the disk failed; check it and its free space, then ask again",
}


class Store:
    """Transactions on one file, for all threads of this process and of those forked from it.

    There is one connection, behind one lock: SQLite admits one writer at a time anyway, and waiting for a
    lock is cheaper than SQLite's polling. SQLite forbids a connection to cross a fork (the child would
    believe it held the parent's locks), so `_before_fork` closes it; both sides then reopen on demand.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> None:
        """Open the file, or create it with its directory; `":memory:"` for a store without a file."""
        self._path = None if os.fspath(path) == ":memory:" else Path(path).expanduser().absolute()
        self._busy_seconds = busy_seconds
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._process = os.getpid()
        self._closed = False
        self._engine = create_engine(
            _url(self._path),
            poolclass=NullPool,
            # Messages would quote a number that is not released yet.
            hide_parameters=True,
            # The driver must begin nothing by itself: `transaction` says when and how.
            connect_args={"isolation_level": None, "check_same_thread": False, "timeout": busy_seconds},
        )
        with _REGISTRY:
            _STORES.add(self)
        with self.transaction(write=False):
            pass  # a path that cannot work should fail here, before a guard is built on it

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Connection]:
        """One transaction: committed durably on leaving, rolled back on any exception.

        A writing one has the file for itself from the start (BEGIN IMMEDIATE), so what it reads stays true.
        """
        with self._lock:
            try:
                connection = self._connected()
                with connection.begin():
                    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
                    yield connection
            except (SQLAlchemyError, OSError) as error:
                self._drop()
                raise self._explain(error) from error
            except AfreshError:
                raise
            except BaseException:  # after an interrupt SQLAlchemy would reconnect without `_prepare`
                self._drop()
                raise

    def close(self) -> None:
        """Close the connection for good."""
        with self._lock:
            self._closed = True
            self._drop(keep_memory=False)

    def _connected(self) -> Connection:
        if self._closed:
            raise LedgerError(f"the ledger {self._name} was closed; open it again")
        if self._path is None:
            if os.getpid() != self._process:
                raise LedgerError(
                    "a ledger in memory cannot be shared with a forked process, which would spend its budget "
                    "a second time; use a file, or open the ledger in the process that needs it"
                )
        elif self._identity is not None and self._identity != _identity(self._path):
            # A removed file can be written on, unseen and soon forgotten.
            raise LedgerError(
                f"the ledger {self._name} was removed or replaced while it was open; put it back and "
                "restart. A new ledger would forget what was spent"
            )
        if self._connection is None:
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> Connection:
        identity = self._identity
        if self._path is not None and identity is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Under a lock, because closing a second descriptor of a file drops the locks SQLite holds on it.
            with _CREATING, suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            identity = _identity(self._path)
        connection = self._engine.connect()
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._identity = identity
        return connection

    def _prepare(self, connection: Connection) -> None:
        with connection.begin():
            connection.exec_driver_sql("BEGIN")  # one view of a file that another process may be creating
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            # SQLite takes a file of a few bytes for an empty one, and would write over them.
            if self._path is not None and not pages and self._path.stat().st_size:
                raise LedgerError(f"{self._name} is not a ledger, and was left as it is; choose another path")
            current = schema.is_current(connection, self._name)
        if self._path is not None:
            mode = self._write_ahead(connection)
            if mode != "wal":
                raise LedgerError(
                    f"the file system of {self._name} cannot hold a ledger (SQLite's journal mode is "
                    f"{mode!r}, not 'wal'); choose a path on a local disk"
                )
        for pragma in ("synchronous = FULL", "fullfsync = ON", "foreign_keys = ON"):
            connection.exec_driver_sql(f"PRAGMA {pragma}")
        connection.commit()
        if not current:
            with connection.begin():
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                if not schema.is_current(connection, self._name):  # unless another process was faster
                    schema.create(connection)

    def _write_ahead(self, connection: Connection) -> object:
        # The one statement for which SQLite does not wait when another process is at it too.
        deadline = time.monotonic() + self._busy_seconds
        while True:
            try:
                return connection.exec_driver_sql("PRAGMA journal_mode = WAL").scalar_one()
            except DBAPIError as error:
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.005)

    def _drop(self, *, keep_memory: bool = True) -> None:
        if self._connection is None or (self._path is None and keep_memory):
            return
        with suppress(SQLAlchemyError):
            self._connection.close()
        self._connection = None

    def _explain(self, error: SQLAlchemyError | OSError) -> LedgerError:
        remedy = _REMEDIES.get(_code(error), "")
        if remedy:
            remedy = remedy.format(seconds=self._busy_seconds)
        else:
            cause = error.orig if isinstance(error, DBAPIError) else error
            remedy = f"{cause}; check the path, its permissions and the disk"
        return LedgerError(f"the ledger {self._name} cannot be used: {remedy}. Nothing was released.")

    @property
    def _name(self) -> str:
        return str(self._path or "in memory")


def _code(error: Exception) -> int:
    """SQLite's primary result code; 0 if the error is not SQLite's."""
    code: int = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0)
    return code & 0xFF


def _url(path: Path | None) -> URL:
    if path is None:
        return URL.create("sqlite+pysqlite", database=":memory:")
    # mode=rw: SQLite itself must never make a file, or a lost ledger would come back empty.
    return URL.create("sqlite+pysqlite", database=path.as_uri(), query={"mode": "rw", "uri": "true"})


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


_CREATING = threading.Lock()  # only ever taken under a store's lock, so free while `_before_fork` has them all
_REGISTRY = threading.Lock()
_STORES: weakref.WeakSet[Store] = weakref.WeakSet()
_HELD: list[Store] = []  # between the two hooks


def _before_fork() -> None:
    _REGISTRY.acquire()
    for store in list(_STORES):
        store._lock.acquire()
        _HELD.append(store)
        store._drop()


def _after_fork() -> None:
    while _HELD:
        _HELD.pop()._lock.release()
    _REGISTRY.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
