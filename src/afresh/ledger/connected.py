"""What journals over a database connection share: connecting, dropping, beginning, committing and rolling back."""

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
    """The operations that SQLite's and PostgreSQL's connections share."""

    def execute(self, query: Literal["COMMIT", "ROLLBACK"], /) -> object:
        """Run a statement."""
        ...

    def close(self) -> None:
        """End the session; what was not committed is gone."""
        ...


Connected = TypeVar("Connected", bound=Connection)


class ConnectedJournal(ABC, Generic[Connected]):
    """A `Journal` with one connection, behind one lock.

    The connection is made when it is needed, and dropped after every failure and before a fork; see `forking`.
    """

    failures: ClassVar[tuple[type[Exception], ...]]
    """The exceptions the driver raises."""
    _connection: Connected | None = None

    def __init__(self, name: str, busy_seconds: float) -> None:
        """Take a name for messages, without a password, and how long to wait for other writers."""
        self.name, self.busy_seconds = name, busy_seconds
        self.lock = threading.RLock()
        self._closed = self._busy = False
        forking.register(self)
        with self.transaction(write=False):
            pass  # a place that cannot work must fail here, before a guard is built on it

    @abstractmethod
    def connect(self) -> Connected:
        """Connect to a ledger with the current layout."""

    @abstractmethod
    def begin(self, connection: Connected, *, write: bool) -> Transaction:
        """Begin a transaction."""

    @abstractmethod
    def remedy(self, error: Exception) -> str:
        """Say what to do about one of the failures, without its own message, which may quote what was being written."""

    def commit(self, connection: Connected, transaction: Transaction) -> None:
        """Make a transaction durable."""
        connection.execute("COMMIT")

    def check_place(self) -> None:
        """Refuse a place that is no longer the one that was opened, before using the connection to it."""

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Run one transaction: committed durably on leaving, rolled back on any exception."""
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
        """Close quietly: forgetting to close a guard loses nothing, so the driver need not warn about it."""
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
    """Raise an error without its cause, which may quote a number that is not released yet, or a password."""
    try:
        raise error
    except LedgerError:
        error.__context__ = None
        raise


def _refuse_nested(busy: bool, name: str) -> None:
    """Refuse a transaction inside another of the same thread, which only a signal handler can start."""
    if busy:
        raise LedgerError(
            f"the ledger {name} cannot be used: a signal interrupted a transaction of this thread, which has not "
            "ended. Ask when it has; if it was abandoned, restart the process. Nothing was released."
        )
