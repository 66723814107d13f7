"""Chains in one SQLite file: many processes on one machine, nothing to set up."""

from __future__ import annotations

import itertools
import os
import secrets
import sqlite3
import stat
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from afresh.errors import BrokenChain, LedgerError
from afresh.ledger import layout
from afresh.ledger.connected import BUSY_SECONDS, ConnectedJournal
from afresh.ledger.journal import Chain, Checkpoint, Sealed, Transaction

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


class _Statements:
    """The statements of a transaction, on the one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def chains(self) -> Sequence[Chain]:
        rows = self._connection.execute("SELECT id, seed, length, head FROM afresh_guards ORDER BY id")
        return [_chain(row) for row in rows]

    def chain(self, id: int) -> Chain | None:
        row = self._connection.execute(
            "SELECT id, seed, length, head FROM afresh_guards WHERE id = ?", (id,)
        ).fetchone()
        return None if row is None else _chain(row)

    def follow(self, id: int, length: int) -> tuple[Chain | None, Sequence[tuple[str, str]]]:
        chain = self.chain(id)
        return chain, () if chain is None else self.since(chain, length)

    def first(self, chain: Chain) -> Sealed | None:
        row = self._connection.execute(
            "SELECT record, hash FROM afresh_records WHERE guard = ? AND place = 1", (chain.id,)
        ).fetchone()
        return None if row is None else _sealed(row)

    def alone(self) -> None:
        """Do nothing: a writing transaction of SQLite is alone anyway."""

    def check(self) -> None:
        layout.check_health(self._connection)

    def key(self) -> str:
        row = self._connection.execute("SELECT secret FROM afresh_key").fetchone()
        if row is None or not isinstance(row[0], str):
            raise BrokenChain("the ledger is damaged: its key cannot be read; restore it from a copy")
        return row[0]

    def sketches(self) -> dict[int, str]:
        rows = self._connection.execute("SELECT guard, sketch FROM afresh_sketches").fetchall()
        if {type(sketch) for _, sketch in rows} - {str}:
            raise _not_text()
        return dict(rows)

    def create(self, seed: str, sketch: str) -> Chain:
        made = self._connection.execute("INSERT INTO afresh_guards (seed, length, head) VALUES (?, 0, '')", (seed,))
        assert made.lastrowid is not None
        self._connection.execute("INSERT INTO afresh_sketches VALUES (?, ?)", (made.lastrowid, sketch))
        return Chain(made.lastrowid, seed, 0, "")

    def since(self, chain: Chain, length: int) -> Sequence[tuple[str, str]]:
        rows = self._connection.execute(
            "SELECT record, hash FROM afresh_records WHERE guard = ? AND place > ? ORDER BY place", (chain.id, length)
        ).fetchall()
        if set(map(type, itertools.chain.from_iterable(rows))) - {str}:
            raise _not_text()
        return rows

    def checkpoint(self, chain: Chain) -> Checkpoint | None:
        row = self._connection.execute(
            "SELECT length, head, hash FROM afresh_checkpoints WHERE guard = ?", (chain.id,)
        ).fetchone()
        return None if row is None else Checkpoint(*row)

    def note(self, chain: Chain, checkpoint: Checkpoint) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO afresh_checkpoints VALUES (?, ?, ?, ?)", (chain.id, *checkpoint)
        )

    def append(self, chain: Chain, records: Sequence[Sealed]) -> None:
        self._connection.executemany(
            "INSERT INTO afresh_records (guard, place, record, hash) VALUES (?, ?, ?, ?)",
            [(chain.id, place, *sealed) for place, sealed in enumerate(records, chain.length + 1)],
        )
        self._connection.execute(
            "UPDATE afresh_guards SET length = ?, head = ? WHERE id = ?",
            (chain.length + len(records), records[-1].hash, chain.id),
        )


class SqliteJournal(ConnectedJournal[sqlite3.Connection]):
    """A `Journal` in an SQLite file on a local disk.

    There is one connection, behind one lock: SQLite admits one writer at a time anyway, and waiting for a
    lock is cheaper than SQLite's polling. SQLite forbids a connection to cross a fork (the child would
    believe it held the parent's locks), so it is dropped before one.
    Commits go to the write-ahead log beside the file, and from there into the file when the last connection closes.
    With a rollback journal, a commit would cost four times as much.
    A network file system is not a local disk: machines that share a budget need a ledger on a server.
    """

    failures = (sqlite3.Error, OSError, UnicodeDecodeError)  # the last from SQLite's messages about a damaged file

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> None:
        """Open the file, or create it with its directory; wait up to `busy_seconds` for other processes."""
        self._path = Path(path).expanduser().absolute()
        self._identity: tuple[int, int] | None = None
        super().__init__(str(self._path), busy_seconds)

    def begin(self, connection: sqlite3.Connection, *, write: bool) -> Transaction:
        """Begin a transaction; a writing one has the file to itself from the start, so what it reads stays true."""
        if write:
            self._patiently(connection, "BEGIN IMMEDIATE")
        else:
            connection.execute("BEGIN")
        return _Statements(connection)

    def check_place(self) -> None:
        """Refuse a removed file, which could still be written to, unseen and soon lost."""
        if self._identity is not None and self._identity != _identity(self._path):
            raise LedgerError(
                f"the ledger {self._path} was removed or replaced while it was open; put it back and "
                "restart. A new ledger would forget what was spent"
            )

    def connect(self) -> sqlite3.Connection:
        """Open the file; create it only if there never was one, as SQLite would bring a lost ledger back empty."""
        identity = self._identity
        if identity is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # This needs a lock, because closing a second descriptor of a file drops the locks SQLite holds on it.
            with _CREATING:
                if not self._path.exists():
                    _create(self._path)
            identity = _identity(self._path)
        connection = sqlite3.connect(
            self._path.as_uri() + "?mode=rw",
            uri=True,
            isolation_level=None,  # the driver must not begin transactions: `transaction` does
            check_same_thread=False,
            timeout=self.busy_seconds,
        )
        # Damaged text is found by its hash; the driver's own error would leave its statement, hence the file, locked.
        connection.text_factory = lambda raw: raw.decode(errors="replace")
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._identity = identity
        return connection

    def remedy(self, error: Exception) -> str:
        """Say what to do, by SQLite's error code or the system's."""
        what = getattr(error, "sqlite_errorname", None) or getattr(error, "strerror", None) or type(error).__name__
        code = sqlite3.SQLITE_CORRUPT if isinstance(error, UnicodeDecodeError) else _code(error)
        known = _REMEDIES.get(code, f"{what}; check the path, its permissions and the disk")
        return known.format(seconds=self.busy_seconds)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        size = self._path.stat().st_size
        if size == 0:  # SQLite would take it for a new database; we never leave a ledger empty
            raise LedgerError(
                f"the ledger {self.name} is an empty file: what was in it is lost; restore it from a copy. If there "
                "never was a ledger here, remove the file"
            )
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        if not pages:  # SQLite takes a file of a few bytes for an empty one, and would write over them
            raise LedgerError(f"{self.name} is not a ledger, and was left as it is; choose another path")
        layout.check(connection, self.name)
        mode = self._write_ahead(connection)
        if mode != "wal":
            raise LedgerError(
                f"the file system of {self.name} cannot hold a ledger (SQLite's journal mode is {mode!r}, not 'wal'); "
                "choose a path on a local disk"
            )
        for pragma in ("synchronous = FULL", "fullfsync = ON", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        if layout.is_old(connection):
            self._patiently(connection, "BEGIN IMMEDIATE")
            layout.upgrade(connection)
            connection.execute("COMMIT")

    def _write_ahead(self, connection: sqlite3.Connection) -> object:
        return self._patiently(connection, "PRAGMA journal_mode = WAL").fetchone()[0]

    def _patiently(self, connection: sqlite3.Connection, statement: str) -> sqlite3.Cursor:
        """Run a statement once no other process is writing.

        For some statements SQLite does not wait at all; for others it sleeps longer and longer, up to a tenth of a
        second, while newcomers try sooner and go first. Here those who have waited longer try more often, so that
        nobody waits much longer than the others.
        """
        start = time.monotonic()
        connection.execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    return connection.execute(statement)
                except sqlite3.Error as error:
                    waited = time.monotonic() - start
                    if _code(error) != sqlite3.SQLITE_BUSY or waited > self.busy_seconds:
                        raise
                    time.sleep(_PAUSE if waited < _LONG else _SHORT_PAUSE)
        finally:
            connection.execute(f"PRAGMA busy_timeout = {round(1000 * self.busy_seconds)}")


def _create(path: Path) -> None:
    """Create a ledger with its tables, atomically under its name: an empty file is never taken for a new ledger."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}{_DRAFT}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            layout.create(connection)
            connection.execute("COMMIT")
        finally:
            connection.close()
        with suppress(FileExistsError):  # another process was faster
            os.link(draft, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(draft)


def _chain(row: tuple[object, ...]) -> Chain:
    """Read a guard as it was written, checking types: SQLite stores a damaged value whatever its type."""
    id, seed, length, head = row
    if not (isinstance(id, int) and isinstance(seed, str) and isinstance(length, int) and isinstance(head, str)):
        raise BrokenChain("the ledger is damaged: one of its guards cannot be read; restore it from a copy")
    return Chain(id, seed, length, head)


def _sealed(row: tuple[object, ...]) -> Sealed:
    text, hash = row
    if not (isinstance(text, str) and isinstance(hash, str)):
        raise _not_text()
    return Sealed(text, hash)


def _not_text() -> BrokenChain:
    return BrokenChain("the ledger is damaged: one of its records is not text; restore it from a copy")


def _code(error: Exception) -> int:
    """Return SQLite's primary result code; 0 if the error is not SQLite's."""
    code: int = getattr(error, "sqlite_errorcode", 0) or 0
    return code & 0xFF


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        status = _without_draft(path)
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        # SQLite keeps the last writes next to the name the file was opened by: two names would mean two budgets.
        raise LedgerError(
            f"the ledger {path} has {status.st_nlink} names (hard links), under which its budget could be spent more "
            "than once; remove the others"
        )
    return status.st_dev, status.st_ino


def _without_draft(path: Path) -> os.stat_result:
    """Remove the name under which a ledger was made, if its maker was killed before it did so, or is about to."""
    for draft in path.parent.iterdir():
        if draft.name.startswith(f"{path.name}.") and draft.name.endswith(_DRAFT):
            with suppress(FileNotFoundError):
                if draft.samefile(path):
                    draft.unlink()
    return path.stat()


_DRAFT = ".new"
_PAUSE, _LONG = 0.0005, 0.005  # seconds; a commit takes about as long as a pause
_SHORT_PAUSE = 0.0001  # about as long as a process that asks again and again leaves the file unlocked in between
_CREATING = threading.Lock()  # only ever taken under a journal's lock, so it is free during a fork
