"""Where chains are stored: what a backend must be able to do, and the one that keeps them in memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from afresh.errors import LedgerError


class Sealed(NamedTuple):
    """A record's text and its hash."""

    text: str
    hash: str


class Chain(NamedTuple):
    """What the storage knows of a chain without reading it."""

    id: int
    seed: str
    length: int
    head: str


class Transaction(Protocol):
    """Reading and appending within one transaction."""

    def find(self, fingerprint: str, *, simulated: bool) -> Chain | None:
        """The chain of these data. In a writing transaction nobody else can append to it until this one ends."""
        ...

    def fingerprints(self) -> list[str]:
        """Of all data that have a chain which is no simulation."""
        ...

    def create(self, fingerprint: str, *, simulated: bool, seed: str) -> Chain:
        """A new, empty chain, or the one that somebody else has made in the meantime."""
        ...

    def since(self, chain: Chain, length: int) -> Sequence[Sealed]:
        """The records after the first `length`, in order."""
        ...

    def append(self, chain: Chain, records: Sequence[Sealed]) -> None:
        """Add records at the end; their last hash becomes the head."""
        ...


class Journal(Protocol):
    """Durable, append-only storage of chains, for many threads and processes at once.

    Every failure of the storage is a `LedgerError` that says what to do; nothing of the transaction remains then,
    or all of it where the storage cannot tell: whoever asks again finds out by reading.
    """

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """One transaction: durable on leaving, rolled back on any exception."""
        ...

    def close(self) -> None:
        """Free what the journal holds. Idempotent."""
        ...


@dataclass
class MemoryJournal:
    """Chains that end with the process, for simulations and tests."""

    _process: int = field(default_factory=os.getpid)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _chains: dict[tuple[str, bool], tuple[int, str]] = field(default_factory=dict)
    _records: list[list[Sealed]] = field(default_factory=list)
    _closed: bool = False

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """One at a time; `append` is the last thing a transaction does, so there is nothing to roll back."""
        if self._closed:
            raise LedgerError("the ledger in memory was closed; open another")
        if os.getpid() != self._process:
            raise LedgerError(
                "a ledger in memory cannot be shared with a forked process, which would spend its budget "
                "a second time; use a file, or open the ledger in the process that needs it"
            )
        with self._lock:
            yield self

    def close(self) -> None:
        """Forget everything."""
        self._closed = True

    def find(self, fingerprint: str, *, simulated: bool) -> Chain | None:
        """See `Transaction`."""
        if (fingerprint, simulated) not in self._chains:
            return None
        id, seed = self._chains[fingerprint, simulated]
        records = self._records[id]
        return Chain(id, seed, len(records), records[-1].hash if records else "")

    def fingerprints(self) -> list[str]:
        """See `Transaction`."""
        return [fingerprint for fingerprint, simulated in self._chains if not simulated]

    def create(self, fingerprint: str, *, simulated: bool, seed: str) -> Chain:
        """See `Transaction`."""
        self._chains[fingerprint, simulated] = len(self._records), seed
        self._records.append([])
        return Chain(len(self._records) - 1, seed, 0, "")

    def since(self, chain: Chain, length: int) -> Sequence[Sealed]:
        """See `Transaction`."""
        return self._records[chain.id][length:]

    def append(self, chain: Chain, records: Sequence[Sealed]) -> None:
        """See `Transaction`."""
        self._records[chain.id] += records
