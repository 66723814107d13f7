"""How rows get their places: ranked by the hash that identifies a row, and the ranks shuffled by the seed.

The rule is the same in every engine and for every way to store the same rows, because the ledger knows them as one
dataset: rows that one round has opened, or that an analyst holds, must never be dealt as fresh ones because a table was
exported, sorted or read with other types. Rows with the same hash are equal, hence interchangeable. (That different
rows share one happens once in 90,000 tables of ten million rows; then two rows may change places.)

The shuffle of ranks depends on nothing but the seed and the number of rows: given the rows without their order, every
way to deal them is equally likely.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from afresh.engines import arrow
from afresh.engines.sql.duckdb import quote_text
from afresh.moments import Span

Places = NDArray[np.uint32] | NDArray[np.uint64]
Fetch = Callable[[str], dict[str, Any]]
WORTH_KEEPING = 100_000  # rows; fewer are dealt sooner than a file is read
_PIECE = 2**20  # ranks hashed by one statement


def unused(name: str, taken: Iterable[str]) -> str:
    """Return the name, longer if it is taken, in capitals or not."""
    lower = {each.lower() for each in taken}
    while name in lower:
        name += "_"
    return name


class Shelf(Protocol):
    """Keeps bytes for a later process, or forgets them."""

    def fetch(self, name: str, size: int) -> bytes | None:
        """Return what was kept under this name, if it has this size."""
        ...

    def store(self, name: str, content: bytes) -> None:
        """Keep this under a name."""
        ...


@dataclass(frozen=True, eq=False)
class Deal:
    """The place of every row, in the order of the rows."""

    places: Places
    numbers: NDArray[np.int64] | None = None
    """What numbers the rows where they are stored, in increasing order; None for 0, 1, 2 and so on."""

    def rows_in(self, span: Span) -> NDArray[np.int64]:
        """Return which rows are in a span, in increasing order."""
        return np.flatnonzero((self.places >= span.start) & (self.places < span.stop))

    @cached_property
    def table(self) -> Any:
        """The same as an Arrow table of rows and places, for a join."""
        import pyarrow as pa

        numbers = np.arange(len(self.places)) if self.numbers is None else self.numbers
        return pa.table({"r": arrow.over(numbers), "place": arrow.over(self.places)})


def deal_rows(hashes: NDArray[np.uint64], numbers: NDArray[np.int64] | None, seed: str, fetch: Fetch) -> Deal:
    """Return the deal of rows with these hashes and numbers; `fetch` returns the columns of a statement's result."""
    count = len(hashes)
    if numbers is not None:
        if not (numbers[:-1] < numbers[1:]).all():
            order = np.argsort(numbers, kind="stable")
            hashes, numbers = hashes[order], numbers[order]
        if numbers[0] == 0 and numbers[-1] == count - 1:
            numbers = None
    kind: Any = np.uint32 if count <= 2**32 else np.uint64
    # Databases have signed numbers only. Of equal rows the first one comes first.
    ranked = np.argsort(hashes.view(np.int64), kind="stable")
    places = np.empty(count, kind)
    places[ranked[_shuffled(count, seed, fetch)]] = np.arange(count, dtype=kind)
    return Deal(places, numbers)


def _shuffled(count: int, seed: str, fetch: Fetch) -> NDArray[np.int64]:
    """Return the ranks in the order of 64 bits each, of equal ones the lower first; databases compute the same.

    Ranks 4 i to 4 i + 3, counted from 0, have the four quarters of the SHA-256 of the seed, a colon and 4 i.
    """
    pieces = [(start, min(start + _PIECE, count)) for start in range(0, count, _PIECE)]

    def bits(piece: tuple[int, int]) -> NDArray[np.uint64]:
        first, last = piece
        digests = f"SELECT sha256({quote_text(f'{seed}:')} || k) AS h FROM range({first:d}, {last:d}, 4) AS r(k)"
        quarters = ", ".join(f"('0x' || substr(h, {1 + 16 * i}, 16))::UBIGINT AS q{i}" for i in range(4))
        found = fetch(f"SELECT {quarters} FROM ({digests})")
        return np.stack([found[f"q{i}"] for i in range(4)], axis=1).reshape(-1)[: last - first]

    return np.argsort(np.concatenate(_for_all(bits, pieces)), kind="stable")


def _for_all(work: Callable[[Any], Any], pieces: list[Any]) -> list[Any]:
    """Return what `work` gives for each piece; by several threads, as DuckDB uses one for a statement without rows."""
    if len(pieces) > 1:
        with suppress(RuntimeError), ThreadPoolExecutor(os.cpu_count()) as pool:  # the interpreter may be ending
            return list(pool.map(work, pieces))
    return [work(piece) for piece in pieces]


class Kept:
    """Deals of one state of the data, sealed with the seed: what is damaged or made up is dealt again."""

    def __init__(self, shelf: Shelf, state: str, seed: str, rows: int) -> None:
        """Look on a shelf for the deal of so many rows in this state."""
        self._shelf, self._rows = shelf, rows
        self._name = hashlib.sha256(json.dumps(["deal", state, seed]).encode(errors="surrogatepass")).hexdigest()
        self._key = blake3(seed.encode(), derive_key_context="afresh: deals kept beside a ledger").digest()

    def find(self) -> Deal | None:
        """Return the deal, if it was kept."""
        size = 4 * self._rows
        found = self._shelf.fetch(self._name, 32 + size)
        if found is None or self._seal(found[32:]) != found[:32]:
            return None
        return Deal(np.frombuffer(found, "<u4", self._rows, 32).astype(np.uint32, copy=False))

    def keep(self, deal: Deal) -> None:
        """Keep a deal of plain rows."""
        if deal.numbers is None and deal.places.dtype == np.uint32:
            content = deal.places.astype("<u4", copy=False).tobytes()
            self._shelf.store(self._name, self._seal(content) + content)

    def _seal(self, content: bytes) -> bytes:
        return blake3(content, key=self._key).update(self._name.encode()).digest()
