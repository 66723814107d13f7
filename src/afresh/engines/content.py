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
tables collide, and gains nothing by it: such tables share one budget.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afresh.engines.duckdb_sql import clean, leaf, quote_text, type_of
from afresh.queries.tree import Type

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch, RecordBatchReader

VERSION = "afresh-data-v2"
LONGEST = 512  # bytes of text that are hashed here; a longer text would make batches large
MISSING = 0x7FF8 << 48  # a NaN; no day or microsecond of the years 1 to 9999, and no length

Words = NDArray[np.uint64]
_BATCH_CELLS = 2**18  # few enough to stay in the processor's cache
_DTYPES = {"double": np.float64, "uint8": np.uint8, "int64": np.int64}
_TAILS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)


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
    """SQL of the visible cells of every row; of a text its length as well."""
    cells: list[str] = []
    for name, kind in visible(columns).items():
        value = leaf(name, columns[name])
        if kind is Type.TEXT:
            size = f"strlen({value})"
            bytes = f"CASE WHEN {size} <= {LONGEST} THEN {value} WHEN {size} IS NULL THEN '' ELSE sha256({value}) END"
            cells += [size, bytes]
        else:
            cells.append(_FIXED[kind].format(value))
    return f"SELECT {', '.join(f'{cell} AS c{i}' for i, cell in enumerate(cells))} FROM {source} AS d"


_FIXED = {
    Type.NUMBER: "{}",
    Type.BOOLEAN: "CAST({} AS UTINYINT)",
    Type.DATE: "CAST({} - DATE '1970-01-01' AS BIGINT)",
    Type.TIMESTAMP: "epoch_us({})",
}


def batch_rows(columns: Mapping[str, str]) -> int:
    """How many rows to hash at a time: a multiple of DuckDB's vectors."""
    return max(2048, _BATCH_CELLS // len(columns) // 2048 * 2048)


def total_rows(reader: RecordBatchReader, columns: Mapping[str, str]) -> Totals:
    """The totals of the rows that `select_cells` gives."""
    schema = visible(columns)
    keys = {name: _Keys(name, kind) for name, kind in schema.items()}
    # One thread: DuckDB's are busy reading meanwhile, and a second one here would wait for Python's lock.
    return sum((_total_batch(batch, schema, keys) for batch in reader), Totals(0, 0, 0))


def fingerprint(columns: Mapping[str, str], totals: Totals) -> str:
    """The digest of the columns' names and types and of the multiset of rows."""
    named = [[name, kind.value] for name, kind in visible(columns).items()]
    sealed = [VERSION, named, totals.rows, totals.high, totals.low]
    return f"{VERSION}:{hashlib.sha256(json.dumps(sealed).encode()).hexdigest()}"


class _Keys:
    """The odd multipliers of a column's words, by place: one of both lanes, then one of each."""

    def __init__(self, name: str, kind: Type) -> None:
        self._of, self._known = (name, kind.value), list[Words]()

    def __getitem__(self, place: int) -> Words:
        while len(self._known) <= place:
            text = json.dumps([VERSION, *self._of, len(self._known)])
            self._known.append(
                np.frombuffer(hashlib.sha256(text.encode()).digest()[:24], "<u8").astype(np.uint64) | np.uint64(1)
            )
        return self._known[place]


def _total_batch(batch: RecordBatch, schema: Mapping[str, Type], keys: Mapping[str, _Keys]) -> Totals:
    high, low = _hash_rows(batch, schema, keys)
    return Totals(batch.num_rows, int(high.sum()), int(low.sum()))


def digest_order(reader: RecordBatchReader, columns: Mapping[str, str]) -> str:
    """The digest of the rows that `select_cells` gives, in their order."""
    schema = visible(columns)
    keys = {name: _Keys(name, kind) for name, kind in schema.items()}
    digests = [hashlib.sha256(VERSION.encode()) for _ in range(2)]
    for batch in reader:
        for digest, lane in zip(digests, _hash_rows(batch, schema, keys), strict=True):
            digest.update(lane.astype("<u8").data)  # a digest a lane: how rows come in batches does not matter
    return "".join(digest.hexdigest() for digest in digests)


def _hash_rows(batch: RecordBatch, schema: Mapping[str, Type], keys: Mapping[str, _Keys]) -> tuple[Words, Words]:
    """The two lanes of every row's hash."""
    lanes = np.zeros((2, batch.num_rows), np.uint64)
    cells = iter(batch.columns)
    for name, kind in schema.items():
        _add(_fixed_words(next(cells)), keys[name][0], lanes)
        if kind is Type.TEXT:
            for place, (rows, words) in enumerate(_text_words(next(cells)), start=1):
                _add(words, keys[name][place], lanes, rows)
    high, low = lanes
    high ^= _scramble(low)  # three rounds of a Feistel network: every bit of a row reaches both lanes
    low ^= _scramble(high)
    high ^= _scramble(low)
    return high, low


def _fixed_words(array: Array) -> Words:
    """One word for every cell that is not text."""
    present, data = array.buffers()
    values = np.frombuffer(data, _DTYPES[str(array.type)])[array.offset :][: len(array)]
    if values.dtype == np.float64:
        with np.errstate(invalid="ignore"):  # what is under a NULL may be any bits
            words = (values + 0.0).view(np.uint64)  # -0.0 + 0.0 is 0.0
        np.copyto(words, MISSING, where=~np.isfinite(values))
    else:
        words = values.astype(np.int64).view(np.uint64)
    if present is not None:
        bits = np.unpackbits(np.frombuffer(present, np.uint8), bitorder="little")[array.offset :][: len(array)]
        np.copyto(words, MISSING, where=bits == 0)
    return words


def _text_words(array: Array) -> Iterator[tuple[Any, Words]]:
    """The first words of all texts, then the second and so on: their rows, and the words; 0 after a text has ended."""
    _, ends, data = array.buffers()
    offsets = np.frombuffer(ends, np.int32)[array.offset :][: len(array) + 1].astype(np.int64)
    sizes, byte = np.diff(offsets), offsets[:-1] - offsets[0]
    words = np.zeros(int(offsets[-1] - offsets[0]) // 8 + 2, "<u8")
    if data is not None:
        text = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]]
        words.view(np.uint8)[: text.size] = text
    rows: Any = slice(None)
    at, shift = byte >> 3, ((byte & 7) << 3).view(np.uint64)  # a text may begin within a word of the buffer
    while (going := np.count_nonzero(sizes > 0)) > 0:
        if going < sizes.size // 2:
            keep = np.flatnonzero(sizes > 0)
            rows = np.arange(len(array))[rows][keep]
            sizes, at, shift = sizes[keep], at[keep], shift[keep]
        word = words.take(at, mode="clip") >> shift
        at += 1
        word |= words.take(at, mode="clip") << (64 - shift)  # NumPy shifts by 64 to 0
        word &= _TAILS.take(sizes, mode="clip")
        yield rows, word
        sizes -= 8


def _add(words: Words, key: Words, lanes: Words, rows: Any = slice(None)) -> None:
    """Mix words and add them to both lanes of their rows; the word 0 adds nothing."""
    words ^= words >> 32
    words *= key[0]
    words ^= words >> 29
    lanes[0, rows] += words * key[1]
    lanes[1, rows] += words * key[2]


def _scramble(words: Words) -> Words:
    """The finaliser of SplitMix64."""
    mixed = words ^ words >> np.uint64(30)
    mixed *= 0xBF58476D1CE4E5B9
    mixed ^= mixed >> 27
    mixed *= 0x94D049BB133111EB
    mixed ^= mixed >> 31
    return mixed


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
