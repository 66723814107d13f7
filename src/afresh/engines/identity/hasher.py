"""Sums rows that come as Arrow batches, with NumPy. It needs nothing else, so Spark's workers can run it too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh.engines.identity.cells import (
    MISSING,
    SEED,
    SEEN,
    SHIFTS,
    KnownTexts,
    TextHasher,
    Texts,
    Words,
    fold,
    hash_doubles,
    place_keys,
    total,
)
from afresh.engines.identity.least import Least
from afresh.engines.identity.numbers import NumberHasher, hash_numbers
from afresh.engines.identity.records import ENOUGH_VALUES, MOST_CHANGES, STEPS, ColumnSums, Sums

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

BLOCK = 2**15  # rows hashed at a time: few enough for a cache, enough that NumPy's call overhead hardly matters
_DTYPES = {"double": "f8", "float": "f4", "date32[day]": "i4", "timestamp[us]": "i8"}  # others have NumPy's names
_SINGLE = 2**24  # whole numbers below this are exact in single precision
_FEW = 2**12  # if a range has fewer whole numbers or days, each is hashed once
_SOME, _MANY = 64, 2**13  # numbers of a block checked for one that is not whole, or too frequent
_DAY = 86400.0  # seconds
# The first and the last day, and moment, of the years 1 to 9999, by the bytes of a number of days or microseconds.
_ENDS = {4: (-719162, 2932896), 8: (-62135596800000000, 253402300799999999)}

_Missing = NDArray[np.bool_] | None
_Changes = tuple[int, NDArray[np.int64], NDArray[np.float64], float, float]


class Hasher:
    """Sums the rows of batches. For one thread: its buffers are reused, because fresh memory is expensive."""

    def __init__(self, kinds: Mapping[str, str], rows: int | None = None, key: str = "") -> None:
        """Take the kinds (text, number, boolean or time) of the batches' columns, in order of names in lower case.

        `rows` is the number of rows of the whole table, if they were counted, and `key` the secret of its sketch.
        """
        self.sums = {name: ColumnSums("number" if kind == "boolean" else kind) for name, kind in kinds.items()}
        self.rows = self.total = 0
        self.least = Least(key)
        self._all, self._sorted = rows, set[str]()
        self.changes: dict[str, list[_Changes]] = {name: [] for name in kinds}
        self._kinds = tuple(kinds.items())
        self._known = {name: KnownTexts() for name, kind in kinds.items() if kind == "text"}
        self._tables: dict[str, tuple[int, int, Words]] = {}
        self._places = place_keys(BLOCK)
        self._room = np.empty((6, BLOCK), np.uint64)
        self._texts, self._numbers = TextHasher(BLOCK), NumberHasher(BLOCK)

    def add(self, batch: RecordBatch, start: int | None) -> None:
        """Add the rows of a batch; the first is at this place in the table, if rows have places."""
        for hashes in self._blocks(batch, start, sums=True):
            self.total += total(hashes)
        self.rows += batch.num_rows

    def row_hashes(self, batch: RecordBatch) -> Iterator[Words]:
        """Give the hashes of the rows, some at a time; each piece is valid until the next."""
        return self._blocks(batch, None, sums=False)

    def _blocks(self, batch: RecordBatch, start: int | None, *, sums: bool) -> Iterator[Words]:
        columns = [_read(array) for array in batch.columns]
        first = 0
        while first < batch.num_rows:
            stop = min(
                first + BLOCK - ((start or 0) + first) % BLOCK, batch.num_rows
            )  # places start again with each block
            block = [cells.part(first, stop) for cells in columns]
            yield self._hash(block, stop - first, None if start is None else start + first, sums=sums)
            first = stop

    def _hash(self, block: list[_Cells], count: int, start: int | None, *, sums: bool) -> Words:
        hashes, spare, group, rows = (self._room[i, :count] for i in (0, 1, 4, 5))
        for place, (cells, (name, kind)) in enumerate(zip(block, self._kinds, strict=True)):
            read = self._column(name, kind, cells, hashes)
            if sums:
                if read.missing is not None:
                    np.copyto(read.hashes, 0, where=read.missing)
                self._sum(name, kind, read, start)
            if read.missing is not None:
                np.copyto(read.exact, np.uint64(MISSING), where=read.missing)
            group_number, shift = divmod(place, SHIFTS)
            _join(group, read.exact, shift, first=shift == 0)
            if len(block) > SHIFTS and (shift == SHIFTS - 1 or place == len(block) - 1):
                fold(group, spare)
                _join(rows, group, group_number % SHIFTS, first=group_number == 0)
        if not block:
            rows[:] = 0
            return rows
        joined = group if len(block) <= SHIFTS else rows
        if sums:
            self.least.add(joined, hashes, spare)
        fold(joined, spare)
        return joined

    def _column(self, name: str, kind: str, cells: _Cells, out: Words) -> _Read:
        """Return the hashes of a column; the exact ones are valid until the next column."""
        if cells.texts is not None:
            self._texts.hash(cells.texts, cells.missing, out, self._known[name])
            return _Read(cells.missing, out, out, out)
        missing, values, low, high = _present(cells, self._room[3])
        spare, doubles = (self._room[i, : len(values)] for i in (1, 2))
        if values.dtype.kind in "iu" and (table := self._table(name, kind, values, int(low), int(high))) is not None:
            codes = spare.view(np.int64)
            table[2].take(np.subtract(values, table[0], out=codes, dtype=np.int64), out=out, mode="clip")
            return _Read(missing, values, out, out, low, high)
        if values.dtype.kind in "iu" and kind != "time" and -_SINGLE < low <= high < _SINGLE:
            self._numbers.hash_whole(values, out)
            return _Read(missing, values, out, out, low, high)
        numbers = values if values.dtype == np.float64 else doubles.view(np.float64)
        if numbers is not values:
            numbers[:] = values
        if kind == "time":
            day = values.itemsize == 4
            numbers *= _DAY if day else 1.0
            numbers /= 1.0 if day else 1e6
            hash_doubles(numbers, out, spare)
            return _Read(missing, numbers, out, out, *((end * _DAY if day else end / 1e6) for end in (low, high)))
        few_digits = values.dtype == np.float32
        exact = self._numbers.hash(numbers, float(low), float(high), out, few_digits=few_digits)
        return _Read(missing, numbers, out, exact, low, high)

    def _table(self, name: str, kind: str, values: NDArray[Any], low: int, high: int) -> tuple[int, int, Words] | None:
        """Return the first and last of a short range of whole numbers or days, and the hashes of the whole range."""
        if kind == "time" and values.itemsize == 8:
            return None
        if (known := self._tables.get(name)) is not None:
            if known[0] <= low and high <= known[1]:
                return known
            low, high = min(low, known[0]), max(high, known[1])
        if high - low >= _FEW or (kind != "time" and not -_SINGLE < low <= high < _SINGLE):
            return None
        numbers = np.arange(low, high + 1, dtype=np.float64)
        if kind == "time":
            numbers *= _DAY
            hashes = np.empty(len(numbers), np.uint64)
            hash_doubles(numbers, hashes, np.empty_like(hashes))
        else:
            hashes, _ = hash_numbers(numbers)
        self._tables[name] = low, high, hashes
        return self._tables[name]

    def _sum(self, name: str, kind: str, read: _Read, start: int | None) -> None:
        """Add a column's hashes, where a missing cell's is 0, and what else identifies the column."""
        missing, values, hashes = read.missing, read.values, read.hashes
        sums, spare = self.sums[name], self._room[1, : len(hashes)]
        sums.total += total(hashes)
        if sums.telling or (missing is not None and missing.all()):
            return
        unit = _DAY if kind == "time" and values.dtype.kind == "i" else 1.0
        if kind in ("number", "time"):
            low, high = float(read.low) * unit, float(read.high) * unit
            sums.low = low if sums.low is None else min(low, sums.low)
            sums.high = high if sums.high is None else max(high, sums.high)
            sums.uneven = sums.uneven or missing is not None or self._uneven(name, values, high - low)
        if kind != "boolean" and sums.seen.bit_count() < ENOUGH_VALUES:
            bins = np.right_shift(hashes, np.uint64(SEEN), out=spare)
            bins &= np.uint64(63)
            bits = np.left_shift(np.uint64(1), bins, out=bins)
            if missing is not None:
                np.copyto(bits, 0, where=missing)
            sums.seen |= int(np.bitwise_or.reduce(bits))
        if start is not None and not sums.telling:
            block, first = divmod(start, BLOCK)
            keyed = total(np.multiply(hashes, self._places[first : first + len(hashes)], out=spare))
            sums.ordered = (sums.ordered or 0) + keyed * (block * SEED | 1)
            self._change(name, values, unit, missing, start)

    def _uneven(self, name: str, values: NDArray[Any], width: float) -> bool:
        """Whether some of a column's numbers show that they are not consecutive numbers, each equally often.

        Only a few are checked: overlooking one costs nothing but time.
        """
        some = values[:_SOME]
        if some.dtype.kind == "f" and (np.rint(some) != some).any():
            return True
        if self._all is None or name in self._sorted:
            return False
        self._sorted.add(name)
        most = int(self._all // (width / max(STEPS[self.sums[name].kind]) + 1))  # how often each can occur
        some = np.sort(values[:_MANY])
        return bool((some[most:] == some[: max(0, len(some) - most)]).any())

    def _change(self, name: str, values: NDArray[Any], unit: float, missing: _Missing, start: int) -> None:
        """Keep the first changes from one row to the next; row numbers show constant jumps there."""
        known = self.changes[name]
        if known and sum(len(one[1]) for one in known) > MOST_CHANGES:
            return
        numbers = values.astype(np.float64)
        numbers *= unit
        if missing is not None:
            numbers[missing] = 0
        with np.errstate(over="ignore"):
            jumps = numbers[1:] - numbers[:-1]
        at = np.flatnonzero(jumps)[: MOST_CHANGES + 1].astype(np.int64)
        known.append((start, at + start + 1, jumps[at], float(numbers[0]), float(numbers[-1])))


def joined(hashers: Sequence[Hasher], kinds: Mapping[str, str]) -> Sums:
    """Return the sums of several hashers' rows."""
    columns = {}
    for name in kinds:
        parts = [hasher.sums[name] for hasher in hashers]
        together = ColumnSums(parts[0].kind, total=sum(part.total for part in parts) % 2**64)
        for part in parts:
            together.seen |= part.seen
            together.uneven |= part.uneven
        if not together.telling:
            together.low = min((part.low for part in parts if part.low is not None), default=None)
            together.high = max((part.high for part in parts if part.high is not None), default=None)
            if any(part.ordered is not None for part in parts):
                together.ordered = sum(part.ordered or 0 for part in parts) % 2**64
            together.changes = _join_changes([one for hasher in hashers for one in hasher.changes[name]])
        columns[name] = together
    least = np.minimum.reduce([one.least.found for one in hashers])
    return Sums(columns, sum(one.rows for one in hashers), sum(one.total for one in hashers) % 2**64, least.tolist())


def _join_changes(pieces: list[_Changes]) -> list[tuple[int, float]]:
    """Return the first changes from one row to the next, across the borders of blocks."""
    found: list[tuple[int, float]] = []
    before, last = 0, None
    for start, at, jumps, first, end in sorted(pieces, key=lambda piece: piece[0]):
        if last is not None and first != last:
            at, jumps = np.insert(at, 0, start), np.insert(jumps, 0, first - last)
        for place, jump in zip(at.tolist(), jumps.tolist(), strict=True):
            found.append((place - before, jump))
            before = place
            if len(found) > MOST_CHANGES:
                return found
        last = end
    return found


class _Read(NamedTuple):
    """Which cells of a column are missing, its numbers, the hashes for its sum, those for rows, and its ends.

    The values of missing cells may be anything.
    """

    missing: _Missing
    values: NDArray[Any]
    hashes: Words
    exact: Words
    low: float = 0.0
    high: float = 0.0


class _Cells(NamedTuple):
    """Numbers or texts; the values of missing cells may be anything."""

    values: NDArray[Any]
    missing: _Missing
    texts: Texts | None = None
    time: bool = False

    def part(self, start: int, stop: int) -> _Cells:
        """Return the cells between two places."""
        missing = None if self.missing is None else self.missing[start:stop]
        if self.texts is not None:
            return _Cells(self.values, missing, self.texts.part(start, stop))
        return _Cells(self.values[start:stop], missing, time=self.time)


def _read(array: Array) -> _Cells:
    kind, count = str(array.type), len(array)
    present, *_, data = array.buffers()
    missing = _bits(present, array).view(bool) if array.null_count else None
    if missing is not None:
        np.logical_not(missing, out=missing)
    if kind == "bool":
        return _Cells(_bits(data, array), missing)
    if kind in ("string", "large_string"):
        return _Cells(np.empty(0), missing, Texts(array))
    dtype = np.dtype(_DTYPES.get(kind, kind))
    values = np.frombuffer(data, dtype, count, array.offset * dtype.itemsize)
    return _Cells(values, missing, time=kind in ("date32[day]", "timestamp[us]"))


def _present(cells: _Cells, room: Words) -> tuple[_Missing, NDArray[Any], Any, Any]:
    """Return which cells are missing or invisible to questions; the numbers, with one of them in these; the ends."""
    missing, values = cells.missing, cells.values
    low, high = values.min(), values.max()
    if values.dtype.kind == "f" and not (math.isfinite(low) and math.isfinite(high)):  # NaN if any value is
        finite = np.isfinite(values)
        missing = ~finite if missing is None else missing | ~finite
    elif cells.time:
        first, last = _ENDS[values.itemsize]
        if int(low) < first or int(high) > last:
            beyond = (values < first) | (values > last)
            missing = beyond if missing is None else missing | beyond
    if missing is None or not missing.any():
        return None, values, low, high
    shown = int(np.argmin(missing))
    filled = room.view(values.dtype)[: len(values)]
    filled[:] = values
    np.copyto(filled, 0 if missing[shown] else values[shown], where=missing)
    return missing, filled, filled.min(), filled.max()


def _join(joined: Words, words: Words, bits: int, *, first: bool) -> None:
    """Shift signed words to the right, in place, and join them to others, unless they are the first."""
    if bits:
        signed = words.view(np.int64)
        signed >>= bits
    if first:
        joined[:] = words
    else:
        joined ^= words


def _bits(data: Any, array: Array) -> NDArray[np.uint8]:
    """Return a bit for every cell, as a byte."""
    start, skipped = divmod(array.offset, 8)
    packed = np.frombuffer(data, np.uint8, (skipped + len(array) + 7) // 8, start)
    return np.unpackbits(packed, bitorder="little")[skipped:][: len(array)]
