"""Sums an embedded engine's rows: DuckDB reads them and NumPy does the arithmetic, batch by batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.engines import arrow
from afresh.engines.identity.cells import Words
from afresh.engines.identity.hasher import Hasher, joined
from afresh.engines.identity.records import Sums, counts
from afresh.engines.identity.texts import GRAMMARS, LONGEST, SAMPLE
from afresh.engines.sql.duckdb import column, exact, quote_text, type_of
from afresh.queries.tree import Type

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyarrow import RecordBatch

    Numbers = NDArray[np.int64]

# Rows at a time, multiples of DuckDB's vectors: few for a file, whose rows are in memory only while they are hashed.
_BATCH_OF_FILE, _BATCH_OF_FRAME = 2**14, 2**16
_AS_STORED = ("FLOAT", "DATE", "TIMESTAMP")  # values that no question sees are missing to the hasher too
_CASTS = {"time": "TIMESTAMP", "number": "DOUBLE", "boolean": "BOOLEAN"}  # for what texts spell


def kinds(columns: Mapping[str, str], ask: Callable[[str], tuple[Any, ...]], source: str) -> dict[str, str]:
    """Return how each column that counts is hashed: its type, or what all its texts spell. In order of names."""
    found = {}
    for name in sorted(columns, key=str.lower):
        if (kind := type_of(columns[name])) is not None and counts(name):
            found[name] = {Type.TEXT: "text", Type.NUMBER: "number", Type.BOOLEAN: "boolean"}.get(kind, "time")
    open_ = {name: list(GRAMMARS) for name, kind in found.items() if kind == "text"}
    for rows, keep in ((f"(SELECT * FROM {source} AS d LIMIT {SAMPLE})", (True, None)), (source, (True,))):
        left = [(name, spelt) for name, spellings in open_.items() for spelt in spellings]
        if not left:
            break
        tests = [_spells(exact(name, columns[name]), spelt) for name, spelt in left]
        answers = ask(f"SELECT {', '.join(tests)} FROM {rows} AS d")
        open_ = {}
        for (name, spelt), answer in zip(left, answers, strict=True):
            if answer in keep:
                open_.setdefault(name, []).append(spelt)
    found |= {name: spellings[0] for name, spellings in open_.items()}
    return found


def _spells(value: str, spelt: str) -> str:
    test = f"strlen({value}) <= {LONGEST} AND regexp_full_match({value}, {quote_text(GRAMMARS[spelt])})"
    return f"bool_and({test}) FILTER ({value} IS NOT NULL)"


def select_cells(source: str, columns: Mapping[str, str], kinds: Mapping[str, str], *others: str) -> str:
    """Return SQL for what `Hasher` takes: the cells of every row, in order of their names; then `others`."""
    cells = []
    for place, (name, kind) in enumerate(kinds.items()):
        value = column(name) if columns[name] in _AS_STORED else exact(name, columns[name])
        if type_of(columns[name]) is Type.TEXT and kind in _CASTS:
            value = f"TRY_CAST({value} AS {_CASTS[kind]})"
        if kind == "boolean":
            value = f"CAST({value} AS UTINYINT)"  # bytes are read faster than bits
        cells.append(f"{value} AS c{place}")
    return f"SELECT {', '.join([*cells, *others])} FROM {source} AS d"


def batch_rows(*, in_memory: bool) -> int:
    """Return how many rows to take at a time."""
    return _BATCH_OF_FRAME if in_memory else _BATCH_OF_FILE


def sum_rows(batches: Iterable[RecordBatch], kinds: Mapping[str, str], rows: int | None = None, key: str = "") -> Sums:
    """Return the sums of the rows that `select_cells` gives, in row order; `rows` is their number, if counted.

    One thread does it: NumPy calls on a block are so short that a second thread would mostly wait for Python's lock.
    """
    hasher = Hasher(kinds, rows, key)
    for batch in batches:
        hasher.add(batch, hasher.rows)
    return joined([hasher], kinds)


def hash_rows(batches: Iterable[RecordBatch], kinds: Mapping[str, str], rows: int) -> tuple[Words, Numbers | None]:
    """Return the hashes of the rows that `select_cells` gives, and what numbers them: a further column, if any."""
    hasher, many = Hasher(kinds), len(kinds)
    hashes, done = np.zeros(rows, np.uint64), 0
    numbers: Numbers | None = None
    for batch in batches:
        if batch.num_columns > many:
            numbers = np.zeros(rows, np.int64) if numbers is None else numbers
            found = arrow.whole_numbers(batch.column(many))
            numbers[done : done + len(found)] = found[: max(rows - done, 0)]
        for part in hasher.row_hashes(batch.select(range(many))):
            hashes[done : done + len(part)] = part[: max(rows - done, 0)]  # more rows than were counted have no place
            done += len(part)
    return hashes[:done], None if numbers is None else numbers[:done]


def digest_order(batches: Iterable[RecordBatch], kinds: Mapping[str, str]) -> str:
    """Return the digest of the rows that `select_cells` gives, in their order."""
    digest = hashlib.sha256()
    hasher = Hasher(kinds)
    for batch in batches:
        for hashes in hasher.row_hashes(batch):
            digest.update(np.ascontiguousarray(hashes, "<u8").data)
    return digest.hexdigest()
