"""What journals over a database connection have in common: when it is made, dropped, begun and rolled back on."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import ClassVar, Generic, Literal, NoReturn, Protocol, TypeVar

from afresh.errors import AfreshError, LedgerError
from afresh.ledger import forking
from afresh.ledger.journal import Transaction

BUSY_SECONDS = 30.0  # a healthy writer is done within milliseconds


class Connection(Protocol):
    """What SQLite's and PostgreSQL's connections can both do."""

    def execute(self, query: Literal["COMMIT", "ROLLBACK"], /) -> object:
        """Run a statement."""
        ...

    def close(self) -> None:
        """End the session; what was not committed is gone."""
        ...


Connected = TypeVar("Connected", bound=Connection)


class ConnectedJournal(ABC, Generic[Connected]):
    """A `Journal` with one connection, behind one lock.

    It is made when it is needed, and dropped after every failure and before a fork; see `forking`.
    """

    failures: ClassVar[tuple[type[Exception], ...]]
    """What the driver raises."""
    _connection: Connected | None = None

    def __init__(self, name: str, busy_seconds: float) -> None:
        """The name is for messages, so it has no password."""
        self.name, self.busy_seconds = name, busy_seconds
        self.lock = threading.RLock()
        self._closed = self._busy = False
        forking.register(self)
        with self.transaction(write=False):
            pass  # a place that cannot work should fail here, before a guard is built on it

    @abstractmethod
    def connect(self) -> Connected:
        """A connection to a ledger of the present layout."""

    @abstractmethod
    def begin(self, connection: Connected, *, write: bool) -> Transaction:
        """Begin a transaction."""

    @abstractmethod
    def remedy(self, error: Exception) -> str:
        """What to do about one of the failures, not in its own words: they may quote what was being written."""

    def commit(self, connection: Connected, transaction: Transaction) -> None:
        """Make a transaction durable."""
        connection.execute("COMMIT")

    def check_place(self) -> None:
        """Refuse a place that is no longer the one that was opened, before the connection to it is used."""

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """One transaction: committed durably on leaving, rolled back on any exception."""
        with self.lock:
            _refuse_nested(self._busy, self.name)
            begun = False
            try:
                self._busy = True
                connection = self._connected()
                transaction, begun = self.begin(connection, write=write), True
                yield transaction
                self.commit(connection, transaction)
            except self.failures as error:
                self.drop()
                _raise_alone(
                    LedgerError(f"the ledger {self.name} cannot be used: {self.remedy(error)}. Nothing was released.")
                )
            except AfreshError:
                if begun:
                    self._roll_back()
                raise
            except BaseException:  # an interrupt may have come anywhere
                self.drop()
                raise
            finally:
                self._busy = False

    def close(self) -> None:
        """Close the connection for good."""
        with self.lock:
            self._closed = True
            self.drop()

    def __del__(self) -> None:
        """Forgetting to close a guard loses nothing, so the driver need not warn about it."""
        self.drop()

    def drop(self) -> None:
        """Close the connection; the next transaction makes another."""
        if self._connection is not None:
            with suppress(*self.failures):
                self._connection.close()
            self._connection = None

    def _connected(self) -> Connected:
        if self._closed:
            raise LedgerError(f"the ledger {self.name} was closed; open it again")
        self.check_place()
        if self._connection is None:
            self._connection = self.connect()
        return self._connection

    def _roll_back(self) -> None:
        if self._connection is not None:
            try:
                self._connection.execute("ROLLBACK")
            except BaseException as error:  # an interrupt must not leave anything locked
                self.drop()
                if not isinstance(error, self.failures):
                    raise


def _raise_alone(error: LedgerError) -> NoReturn:
    """Without the error that led to it, which may quote a number that is not released yet, or a password."""
    try:
        raise error
    except LedgerError:
        error.__context__ = None
        raise


def _refuse_nested(busy: bool, name: str) -> None:
    """Refuse a transaction within another of the same thread, which only a signal handler can ask for."""
    if busy:
        raise LedgerError(
            f"the ledger {name} cannot be used: a signal interrupted a transaction of this thread, which has not "
            "ended. Ask when it has; if it was abandoned, restart the process. Nothing was released."
        )
