"""What identifies data: the multiset of their rows, as questions see them.

A file that is renamed, written again in another format, order or encoding must meet the budget already spent on it. So
the fingerprint is made of what a question can see and of nothing else: the names and types of the columns it can use,
and in each row the finite double, text, boolean, date or timestamp it finds there, or that there is none.

- A cell is a few 64-bit words: the bits of a double (-0.0 is 0.0), 0 or 1, days or microseconds since 1970, `MISSING`;
  of a text its number of bytes, then its UTF-8 bytes in little-endian words, the last filled up with zeros (of a
  text longer than `LONGEST` its SHA-256 in hexadecimal).
- Every word is mixed with multipliers that belong to the column's name and type and to its place in the cell, once for
  each of two lanes of 64 bits. A row is the sum of its words, mixed again: cells that change places between rows show.
- The rows are summed, which does not see their order and does see duplicates, modulo 2^64 in each lane.
- SHA-256 seals the version, the columns, the number of rows and the two sums.

Nothing here depends on DuckDB's own hash, which changes between versions. Whoever may choose rows can make two
tables collide, and gains nothing by it: such tables share one budget. `row_hash` has the arithmetic.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from afresh.engines.duckdb_sql import clean, exact, quote_text, type_of
from afresh.engines.row_hash import VERSION, RowHasher
from afresh.queries.tree import Type

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Table

LONGEST = 512  # bytes of text that are hashed here; a longer text would make batches large
_BATCH_CELLS = 2**19  # a text counts as four
_MOST_THREADS = 4  # more would wait for Python's lock


@dataclass(frozen=True)
class Totals:
    """The number of rows and the sums of their hashes."""

    rows: int
    high: int
    low: int

    def __add__(self, other: Totals) -> Totals:
        """The totals of both."""
        return Totals(self.rows + other.rows, (self.high + other.high) % 2**64, (self.low + other.low) % 2**64)


def visible(columns: Mapping[str, str]) -> dict[str, Type]:
    """The columns that questions can use, in order of their names."""
    return {name: kind for name in sorted(columns) if (kind := type_of(columns[name])) is not None}


def select_cells(source: str, columns: Mapping[str, str]) -> str:
    """SQL of the visible cells of every row, for `row_hash`; before a text comes its length."""
    cells: list[str] = []
    for name, kind in visible(columns).items():
        value = exact(name, columns[name])
        if kind is Type.TEXT:
            size = f"strlen({value})"
            cells.append(size)
            value = f"CASE WHEN {size} <= {LONGEST} THEN {value} WHEN {size} IS NULL THEN '' ELSE sha256({value}) END"
        cells.append(value)
    return f"SELECT {', '.join(f'{cell} AS c{i}' for i, cell in enumerate(cells))} FROM {source} AS d"


def held_cells(table: Table, columns: Mapping[str, str]) -> list[RecordBatch] | None:
    """What `select_cells` gives, of a table whose values are clean already; None if a text is too long for that."""
    import pyarrow as pa
    from pyarrow import compute

    cells = []
    for name, kind in visible(columns).items():
        if kind is Type.TEXT:
            sizes = compute.binary_length(table[name])
            if (compute.max(sizes).as_py() or 0) > LONGEST:
                return None
            cells.append(sizes)
        cells.append(table[name])
    named = pa.table(cells, names=[f"c{i}" for i in range(len(cells))])
    # They lie in memory already, so long batches cost little, and threads seldom wait for Python's lock.
    return list(named.to_batches(8 * batch_rows(columns)))


def batch_rows(columns: Mapping[str, str]) -> int:
    """How many rows to hash at a time: a multiple of DuckDB's vectors."""
    cells = sum(4 if kind is Type.TEXT else 1 for kind in visible(columns).values())
    return max(2048, _BATCH_CELLS // cells // 2048 * 2048)


def total_rows(batches: Iterable[RecordBatch], columns: Mapping[str, str], threads: int = 1) -> Totals:
    """The totals of the rows that `select_cells` gives."""
    left, lock = iter(batches), Lock()

    def work(hasher: RowHasher) -> Totals:
        totals = Totals(0, 0, 0)
        while (batch := take()) is not None:
            high, low = hasher.lanes(batch)
            totals += Totals(batch.num_rows, int(high.sum()), int(low.sum()))
            del batch  # before the next one is made
        return totals

    def take() -> RecordBatch | None:
        with lock:
            return next(left, None)

    with ThreadPoolExecutor(_MOST_THREADS) as pool:
        try:
            others = [pool.submit(work, RowHasher(visible(columns))) for _ in range(min(threads, _MOST_THREADS) - 1)]
            # This one works too: one that only waited might not notice an interruption, once Polars is imported.
            totals = work(RowHasher(visible(columns)))
            return sum((other.result() for other in others), totals)
        finally:
            left = iter(())  # after an error or an interruption nobody goes on


def fingerprint(columns: Mapping[str, str], totals: Totals) -> str:
    """The digest of the columns' names and types and of the multiset of rows."""
    named = [[name, kind.value] for name, kind in visible(columns).items()]
    sealed = [VERSION, named, totals.rows, totals.high, totals.low]
    return f"{VERSION}:{hashlib.sha256(json.dumps(sealed).encode()).hexdigest()}"


def digest_order(batches: Iterable[RecordBatch], columns: Mapping[str, str]) -> str:
    """The digest of the rows that `select_cells` gives, in their order."""
    hasher = RowHasher(visible(columns))
    digests = [hashlib.sha256(VERSION.encode()) for _ in range(2)]
    for batch in batches:
        for digest, lane in zip(digests, hasher.lanes(batch), strict=True):
            digest.update(lane.astype("<u8").data)  # a digest a lane: how rows come in batches does not matter
    return "".join(digest.hexdigest() for digest in digests)


def deal_rows(source: str, row: str, columns: Mapping[str, str], size: int, blocks: int, seed: str) -> str:
    """SQL of a table (row, block) that gives every block `size` rows.

    Rows are ranked by what questions see of them, and the ranks are shuffled by the seed alone. Rows that tie are
    equal, hence interchangeable: the order in the file does not matter.
    """
    cells = [clean(name, columns[name]) for name in visible(columns)]
    ranked = f"SELECT d.{row} AS r, row_number() OVER (ORDER BY {', '.join(cells)}, d.{row}) AS k FROM {source} AS d"
    key = f"md5({quote_text(seed + ':')} || k)"
    shuffled = f"SELECT r, row_number() OVER (ORDER BY {key}, k) - 1 AS p FROM ({ranked})"
    block = f"CAST(p // {size:d} AS INTEGER) AS block"
    return f"SELECT r, {block} FROM ({shuffled}) WHERE p < {size * blocks:d} ORDER BY block, r"
