"""The sums of an embedded engine's rows: DuckDB reads them, NumPy does the arithmetic, batch by batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afresh.engines.identity.cells import (
    HALF,
    LOW,
    MISSING,
    SEEN,
    ZERO,
    Words,
    fold,
    number_words,
    place_keys,
    round_single,
    row_keys,
    spread,
    total,
)
from afresh.engines.identity.records import ENOUGH_VALUES, MOST_CHANGES, ColumnSums, Sums, counts
from afresh.engines.identity.texts import GRAMMARS, LONGEST, SAMPLE
from afresh.engines.sql.duckdb import column, exact, quote_text, type_of
from afresh.queries.tree import Type

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

_BATCH = 2**16  # rows read at a time: a multiple of DuckDB's vectors
_BLOCK = 2**16  # rows hashed at a time: with fewer, calling NumPy would cost more than what it does
_MOST_THREADS = 4  # more would wait for Python's lock
_DTYPES = {"double": "f8", "float": "f4", "date32[day]": "i4", "timestamp[us]": "i8"}  # others as NumPy calls them
_FEW = 100  # different texts of a sample: more are not worth a dictionary
_SINGLE = 2**24  # whole numbers below it are the same in single precision
_DAY = 86_400_000_000


def kinds(columns: Mapping[str, str], ask: Callable[[str], tuple[Any, ...]], source: str) -> dict[str, str]:
    """How each column that counts is hashed: its type, what all its texts spell, or labels. In order of names."""
    found = {}
    for name in sorted(columns):
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
    texts = [name for name, kind in found.items() if kind == "text"]
    if texts:  # MD5 is what costs most: of few different texts each is hashed once
        different = [f"count(DISTINCT {exact(name, columns[name])})" for name in texts]
        sample = ask(f"SELECT {', '.join(different)} FROM (SELECT * FROM {source} AS d LIMIT {SAMPLE}) AS d")
        found |= {name: "label" for name, many in zip(texts, sample, strict=True) if many <= _FEW}
    return found


def _spells(value: str, spelt: str) -> str:
    test = f"strlen({value}) <= {LONGEST} AND regexp_full_match({value}, {quote_text(GRAMMARS[spelt])})"
    return f"bool_and({test}) FILTER ({value} IS NOT NULL)"


def select_cells(source: str, columns: Mapping[str, str], kinds: Mapping[str, str]) -> str:
    """SQL of what `Hasher` takes: the cells of every row in order of their names, texts as the first half of an MD5."""
    cells = []
    for place, (name, kind) in enumerate(kinds.items()):
        value = exact(name, columns[name])
        if type_of(columns[name]) is Type.TEXT:
            value = {
                "label": value,
                "text": f"CAST(md5_number({value}) & 18446744073709551615 AS UBIGINT)",
                "time": f"TRY_CAST({value} AS TIMESTAMP)",
                "number": f"TRY_CAST({value} AS DOUBLE)",
                "boolean": f"TRY_CAST({value} AS BOOLEAN)",
            }[kind]
        elif columns[name] == "FLOAT":
            value = column(name)
        cells.append(f"{value} AS c{place}")
    return f"SELECT {', '.join(cells)} FROM {source} AS d"


def batch_rows() -> int:
    """How many rows to read at a time."""
    return _BATCH


def sum_rows(batches: Iterable[RecordBatch], kinds: Mapping[str, str], threads: int = 1) -> Sums:
    """The sums of the rows that `select_cells` gives, in row order."""
    left, lock, start = iter(batches), Lock(), 0
    hashers = [Hasher(kinds) for _ in range(max(1, min(threads, _MOST_THREADS)))]

    def work(hasher: Hasher) -> None:
        while (taken := take()) is not None:
            hasher.add(*taken)
            del taken  # before the next one is made

    def take() -> tuple[RecordBatch, int] | None:
        nonlocal start
        with lock:
            if (batch := next(left, None)) is None:
                return None
            start += batch.num_rows
            return batch, start - batch.num_rows

    with ThreadPoolExecutor(_MOST_THREADS) as pool:
        try:
            others = [pool.submit(work, hasher) for hasher in hashers[1:]]
            # This one works too: one that only waited might not notice an interruption, once Polars is imported.
            work(hashers[0])
            for other in others:
                other.result()
        finally:
            left = iter(())  # after an error or an interruption nobody goes on
    return _joined(hashers, kinds)


def digest_order(batches: Iterable[RecordBatch], kinds: Mapping[str, str]) -> str:
    """The digest of the rows that `select_cells` gives, in their order."""
    digest = hashlib.sha256()
    hasher = Hasher(kinds)
    for batch in batches:
        for rows in hasher.row_hashes(batch):
            digest.update(np.ascontiguousarray(rows.T, "<u8").data)  # row by row, however they are batched
    return digest.hexdigest()


class Hasher:
    """Sums the rows of batches. For one thread: what it computes in is used again, as fresh memory costs much."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        """The kinds are those of `kinds`, in the order of the batches' columns."""
        self.sums = {name: ColumnSums(_stored(kind), ordered=0) for name, kind in kinds.items()}
        self.rows = 0
        self.totals = [0, 0]
        self.changes: dict[str, list[tuple[int, NDArray[np.int64], NDArray[np.int64], int, int]]] = {
            name: [] for name in kinds
        }
        self._columns = [(name, kind, *row_keys(name)) for name, kind in kinds.items()]
        self._room = np.empty((7, _BLOCK), np.uint64)

    def add(self, batch: RecordBatch, start: int) -> None:
        """Add the rows of a batch, the first of which is at this place of the table."""
        for first in range(0, batch.num_rows, _BLOCK):
            block = batch.slice(first, _BLOCK)
            places = place_keys(start + first, block.num_rows)
            for i, hashes in enumerate(self._hash(block, places, start + first)):
                self.totals[i] += total(hashes)
            self.rows += block.num_rows

    def row_hashes(self, batch: RecordBatch) -> Iterable[Words]:
        """The two hashes of the rows, some at a time, good until the next."""
        for first in range(0, batch.num_rows, _BLOCK):
            yield self._hash(batch.slice(first, _BLOCK), None, 0)

    def _hash(self, block: RecordBatch, places: Words | None, start: int) -> Words:
        words, spare, single, wide, hashes = self._room[:5, : block.num_rows]
        rows = self._room[5:, : block.num_rows]
        rows[:] = 0
        for array, (name, kind, low_key, high_key) in zip(block.columns, self._columns, strict=True):
            missing, rounded = _read(array, kind, words)
            if missing is not None:
                np.copyto(words, 0, where=missing)
            text = kind in ("text", "label")
            if text:
                wide[:] = words
            else:
                spread(words, wide, spare)
            if places is not None:
                self._ends(self.sums[name], kind, words, missing)
                self._changes(name, words, start)
                if text:
                    self._sum(name, words, words, places, missing, 0)
                else:
                    folded = wide
                    if rounded is not None:
                        number_words(rounded, single)
                        if missing is not None:
                            np.copyto(single, 0, where=missing)
                        spread(single, hashes, spare)
                        folded = hashes
                    fold(folded, hashes, spare)
                    self._sum(name, words if rounded is None else single, hashes, places, missing, ZERO)
            if missing is not None:
                np.copyto(wide, np.uint64(MISSING), where=missing)
            np.right_shift(wide.view(np.int64), HALF, out=spare.view(np.int64))
            spare *= np.uint64(high_key)
            rows[1] ^= spare
            wide &= np.uint64(LOW)
            wide *= np.uint64(low_key)
            rows[0] ^= wide
        for sums in rows:
            fold(sums, sums, spare)
        return rows

    def _ends(self, sums: ColumnSums, kind: str, words: Words, missing: NDArray[np.bool_] | None) -> None:
        if kind not in ("number", "time"):
            return
        values = words.view(np.int64) if missing is None else words.view(np.int64)[~missing]
        if values.size:
            low, high = int(values.min()), int(values.max())
            sums.low = low if sums.low is None else min(low, sums.low)
            sums.high = high if sums.high is None else max(high, sums.high)

    def _sum(
        self, name: str, words: Words, hashes: Words, places: Words, missing: NDArray[np.bool_] | None, nothing: int
    ) -> None:
        """Add a column's hashes; `nothing` is that of a missing cell, which does not count."""
        sums = self.sums[name]
        sums.total += total(hashes)
        sums.ordered = (sums.ordered or 0) + int(np.dot(words, places))
        if missing is not None:
            sums.total -= int(np.count_nonzero(missing)) * nothing
        if sums.seen.bit_count() < ENOUGH_VALUES:
            bins = (hashes if missing is None else hashes[~missing]) >> np.uint64(SEEN) & np.uint64(63)
            sums.seen |= int(np.bitwise_or.reduce(np.uint64(1) << bins))

    def _changes(self, name: str, words: Words, start: int) -> None:
        """Keep the first changes from one row to the next: by words, in which row numbers have a constant jump."""
        known = self.changes[name]
        if known and sum(len(one[1]) for one in known) > MOST_CHANGES:
            return
        signed = words.view(np.int64)
        jumps = signed[1:] - signed[:-1]
        at = np.flatnonzero(jumps)[: MOST_CHANGES + 1].astype(np.int64)
        known.append((start, at + start + 1, jumps[at], int(words[0]), int(words[-1])))


def _stored(kind: str) -> str:
    return {"boolean": "number", "label": "text"}.get(kind, kind)


@lru_cache(2**16)
def _text_word(text: str) -> int:
    return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:8], "big")


def _joined(hashers: list[Hasher], kinds: Mapping[str, str]) -> Sums:
    columns = {}
    for name, kind in kinds.items():
        parts = [hasher.sums[name] for hasher in hashers]
        lows, highs = [p.low for p in parts if p.low is not None], [p.high for p in parts if p.high is not None]
        joined = ColumnSums(
            _stored(kind),
            total=sum(part.total for part in parts) % 2**64,
            ordered=sum(part.ordered or 0 for part in parts) % 2**64,
            low=min(lows, default=None),
            high=max(highs, default=None),
            changes=_changes([one for hasher in hashers for one in hasher.changes[name]]),
        )
        for part in parts:
            joined.seen |= part.seen
        columns[name] = joined
    first, second = (sum(one.totals[i] for one in hashers) % 2**64 for i in range(2))
    return Sums(columns, sum(one.rows for one in hashers), (first, second))


def _changes(pieces: list[tuple[int, NDArray[np.int64], NDArray[np.int64], int, int]]) -> list[tuple[int, int]]:
    """The first changes from one row to the next, over the borders of blocks."""
    found: list[tuple[int, int]] = []
    before, last = 0, None
    for start, at, jumps, first, end in sorted(pieces, key=lambda piece: piece[0]):
        if last is not None and first != last:
            at, jumps = np.insert(at, 0, start), np.insert(jumps, 0, (first - last + 2**63) % 2**64 - 2**63)
        for place, jump in zip(at.tolist(), jumps.tolist(), strict=True):
            found.append((place - before, jump))
            before = place
            if len(found) > MOST_CHANGES:
                return found
        last = end
    return found


def _read(array: Array, kind: str, words: Words) -> tuple[NDArray[np.bool_] | None, NDArray[np.float64] | None]:
    """Write a column's words; which cells are missing, and the numbers in single precision if that changes any."""
    if kind == "label":
        encoded = array.dictionary_encode()
        table = np.array([_text_word(text) for text in encoded.dictionary.to_pylist()] or [0], np.uint64)
        words[:] = table[encoded.indices.fill_null(0).to_numpy()]
        return (np.asarray(array.is_null()) if array.null_count else None), None
    present, data = array.buffers()
    missing = _bits(present, array) == 0 if array.null_count else None
    if str(array.type) == "bool":
        words[:] = _bits(data, array)
        return missing, None
    dtype = np.dtype(_DTYPES.get(str(array.type), str(array.type)))
    values = np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)
    if kind == "text":
        words[:] = values.byteswap()  # MD5 begins with its highest byte
        return missing, None
    if kind == "time":
        np.multiply(values, _DAY if dtype.itemsize == 4 else 1, out=words.view(np.int64), dtype=np.int64)
        return missing, None
    if dtype.kind in "iu" and (dtype.itemsize < 4 or (int(values.max()) < _SINGLE and int(values.min()) > -_SINGLE)):
        words.view(np.int64)[:] = values
        return missing, None
    doubles = values.astype(np.float64)
    if dtype.kind == "f":
        finite = np.isfinite(doubles)
        if not finite.all():
            missing = ~finite if missing is None else missing | ~finite
    number_words(doubles, words)
    rounded = doubles if dtype.itemsize == 4 and dtype.kind == "f" else round_single(doubles)
    return missing, None if rounded is doubles or (rounded == doubles).all() else rounded


def _bits(data: Any, array: Array) -> NDArray[np.uint8]:
    """A bit for every cell, as a byte."""
    start, skipped = divmod(array.offset, 8)
    packed = np.frombuffer(data, np.uint8, (skipped + len(array) + 7) // 8, start)
    return np.unpackbits(packed, bitorder="little")[skipped:][: len(array)]
