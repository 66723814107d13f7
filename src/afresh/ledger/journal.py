"""Where chains are stored: what a backend must be able to do, and the backend that keeps them in memory."""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from afresh.errors import LedgerError


class Sealed(NamedTuple):
    """A record's text and its hash."""

    text: str
    hash: str


class Chain(NamedTuple):
    """What the storage knows about a chain without reading it."""

    id: int
    seed: str
    length: int
    head: str


class Checkpoint(NamedTuple):
    """How far a chain was verified, as noted next to it. It has a hash of its own, but no signature."""

    length: int
    head: str
    hash: str

    @classmethod
    def of(cls, chain: Chain, length: int, head: str) -> Checkpoint:
        """Make the checkpoint of one chain; it is not valid for another."""
        return cls(length, head, hashlib.sha256(f"{chain.seed}\n{length}\n{head}".encode()).hexdigest())


class Transaction(Protocol):
    """Reading and appending within one transaction."""

    def chains(self) -> Sequence[Chain]:
        """All chains, in the order of their creation."""
        ...

    def chain(self, id: int) -> Chain | None:
        """Return one chain. In a writing transaction nobody else can append to it until this one ends."""
        ...

    def follow(self, id: int, length: int) -> tuple[Chain | None, Sequence[tuple[str, str]]]:
        """Return `chain` and its records `since` a length, for the cost of one call."""
        ...

    def first(self, chain: Chain) -> Sealed | None:
        """Its first record."""
        ...

    def alone(self) -> None:
        """Keep everyone else from creating a chain until this writing transaction ends."""
        ...

    def check(self) -> None:
        """Raise `LedgerError` if anything suggests that a chain is hidden by damage.

        Called before rows are reported as never seen: a hidden chain would be made again, with its own budget.
        """
        ...

    def key(self) -> str:
        """The ledger's secret, drawn at random when it was made, by which it sketches rows."""
        ...

    def sketches(self) -> Mapping[int, str]:
        """The sketch that each chain was created with, by id; chains of earlier versions have none."""
        ...

    def create(self, seed: str, sketch: str) -> Chain:
        """Create a new, empty chain. Call `alone` first."""
        ...

    def since(self, chain: Chain, length: int) -> Sequence[tuple[str, str]]:
        """The texts and hashes of the records after the first `length`, in order."""
        ...

    def checkpoint(self, chain: Chain) -> Checkpoint | None:
        """Return the last note, perhaps damaged since."""
        ...

    def note(self, chain: Chain, checkpoint: Checkpoint) -> None:
        """Replace the last note; a storage that is not allowed to, or cannot, may skip this."""
        ...

    def append(self, chain: Chain, records: Sequence[Sealed]) -> None:
        """Add records at the end; their last hash becomes the head."""
        ...


class Journal(Protocol):
    """Durable, append-only storage of chains, for many threads and processes at once.

    Every failure of the storage is a `LedgerError` that says what to do. Nothing of the transaction then remains, or
    all of it if the storage cannot say which: asking again finds out by reading.
    """

    def transaction(self, *, write: bool) -> AbstractContextManager[Transaction]:
        """Run one transaction: durable on leaving, rolled back on any exception."""
        ...

    def close(self) -> None:
        """Free what the journal holds. Idempotent."""
        ...


@dataclass
class MemoryJournal:
    """Chains that end with the process, for simulations and tests."""

    _process: int = field(default_factory=os.getpid)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _key: str = field(default_factory=lambda: secrets.token_hex(32))
    _seeds: list[str] = field(default_factory=list)
    _sketches: dict[int, str] = field(default_factory=dict)
    _records: list[list[Sealed]] = field(default_factory=list)
    _closed: bool = False

    @contextmanager
    def transaction(self, *, write: bool) -> Iterator[Transaction]:
        """Run one at a time; `append` is the last thing a transaction does, so there is nothing to roll back."""
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

    def chains(self) -> list[Chain]:
        """See `Transaction`."""
        return [
            Chain(id, seed, len(records), records[-1].hash if records else "")
            for id, (seed, records) in enumerate(zip(self._seeds, self._records, strict=True), 1)
        ]

    def chain(self, id: int) -> Chain | None:
        """See `Transaction`."""
        return self.chains()[id - 1] if 1 <= id <= len(self._seeds) else None

    def follow(self, id: int, length: int) -> tuple[Chain | None, Sequence[tuple[str, str]]]:
        """See `Transaction`."""
        chain = self.chain(id)
        return chain, () if chain is None else self.since(chain, length)

    def first(self, chain: Chain) -> Sealed | None:
        """See `Transaction`."""
        return next(iter(self._records[chain.id - 1]), None)

    def alone(self) -> None:
        """Do nothing: the holder of the lock is alone."""

    def check(self) -> None:
        """See `Transaction`."""

    def key(self) -> str:
        """See `Transaction`."""
        return self._key

    def sketches(self) -> dict[int, str]:
        """See `Transaction`."""
        return self._sketches

    def create(self, seed: str, sketch: str) -> Chain:
        """See `Transaction`."""
        self._seeds.append(seed)
        self._records.append([])
        self._sketches[len(self._seeds)] = sketch
        return Chain(len(self._seeds), seed, 0, "")

    def since(self, chain: Chain, length: int) -> Sequence[Sealed]:
        """See `Transaction`."""
        return self._records[chain.id - 1][length:]

    def checkpoint(self, chain: Chain) -> None:
        """Return None: a checkpoint would end with the process, which knows what it has read."""

    def note(self, chain: Chain, checkpoint: Checkpoint) -> None:
        """See `Transaction`."""

    def append(self, chain: Chain, records: Sequence[Sealed]) -> None:
        """See `Transaction`."""
        self._records[chain.id - 1] += records
