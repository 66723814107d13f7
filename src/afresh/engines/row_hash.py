"""The hash of every row of an Arrow batch, in two lanes of 64 bits; `content` says what it is made of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afresh.queries.tree import Type

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

VERSION = "afresh-data-v2"
MISSING = 0x7FF8 << 48  # a NaN; no day or microsecond of the years 1 to 9999, and no length

Words = NDArray[np.uint64]
_TAILS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
_DTYPES = {"double": "f8", "date32[day]": "i4", "timestamp[us]": "i8"}  # others are called as NumPy calls them


class RowHasher:
    """Hashes batches that have the columns of a schema in its order, and before each text its length.

    For one thread: what it computes in is used again, because fresh memory costs as much as the arithmetic.
    """

    def __init__(self, schema: Mapping[str, Type]) -> None:
        """The schema says what questions see in each column."""
        self._columns = [(kind, _Keys(name, kind)) for name, kind in schema.items()]
        self._room = np.empty((4, 0), np.uint64)

    def lanes(self, batch: RecordBatch) -> Words:
        """The two lanes of every row's hash, good until the next batch."""
        if batch.num_rows > self._room.shape[1]:
            self._room = np.empty((4, batch.num_rows), np.uint64)
        high, low, words, spare = room = self._room[:, : batch.num_rows]
        lanes = room[:2]
        lanes[:] = 0
        cells = iter(batch.columns)
        for kind, keys in self._columns:
            _read_words(next(cells), kind, words)
            _add(words, keys[0], lanes, spare)
            if kind is Type.TEXT:
                for place, (rows, text) in enumerate(_text_words(next(cells)), start=1):
                    _add(text, keys[place], lanes, spare, rows)
        high ^= _scramble(low, words, spare)  # three rounds of a Feistel network: every bit of a row reaches both lanes
        low ^= _scramble(high, words, spare)
        high ^= _scramble(low, words, spare)
        return lanes


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


def _read_words(array: Array, kind: Type, words: Words) -> None:
    """One word for every cell; of a text, for its length."""
    present, data = array.buffers()
    if str(array.type) == "bool":
        words[:] = _bits(data, array)
    else:
        dtype = np.dtype(_DTYPES.get(str(array.type), str(array.type)))
        values = np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)
        if kind is Type.NUMBER:
            with np.errstate(invalid="ignore"):  # what is under a NULL may be any bits
                np.add(values, 0.0, out=words.view(np.float64))  # -0.0 + 0.0 is 0.0
            if dtype.kind == "f" and not (finite := np.isfinite(values)).all():
                np.copyto(words, MISSING, where=~finite)
        else:
            words.view(np.int64)[:] = values
    if array.null_count:
        np.copyto(words, MISSING, where=_bits(present, array) == 0)


def _bits(data: Any, array: Array) -> NDArray[np.uint8]:
    """A bit for every cell, as a byte."""
    start, skipped = divmod(array.offset, 8)
    packed = np.frombuffer(data, np.uint8, (skipped + len(array) + 7) // 8, start)
    return np.unpackbits(packed, bitorder="little")[skipped:][: len(array)]


def _text_words(array: Array) -> Iterator[tuple[Any, Words]]:
    """The first words of all texts, then the second and so on: their rows, and the words; 0 after a text has ended."""
    present, ends, data = array.buffers()
    offsets = np.frombuffer(ends, np.int32, len(array) + 1, array.offset * 4).astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    sizes, byte = np.diff(offsets), offsets[:-1] - first
    if array.null_count:
        sizes *= _bits(present, array)
    buffer = np.zeros((last - first) // 8 + 2, "<u8")
    if last > first:
        buffer.view(np.uint8)[: last - first] = np.frombuffer(data, np.uint8, last - first, first)
    rows: Any = slice(None)
    at, shift = byte >> 3, ((byte & 7) << 3).view(np.uint64)  # a text may begin within a word of the buffer
    after = 64 - shift
    word = buffer.take(at, mode="clip")
    while (going := np.count_nonzero(sizes > 0)) > 0:
        if going < sizes.size // 2:
            keep = np.flatnonzero(sizes > 0)
            rows = np.arange(len(array))[rows][keep]
            sizes, at, shift, after, word = sizes[keep], at[keep], shift[keep], after[keep], word[keep]
        word >>= shift
        at += 1
        following = buffer.take(at, mode="clip")
        word |= following << after  # NumPy shifts by 64 to 0
        if sizes.min() < 8:
            word &= _TAILS.take(sizes, mode="clip")
        yield rows, word
        word = following
        sizes -= 8


def _add(words: Words, key: Words, lanes: Words, spare: Words, rows: Any = slice(None)) -> None:
    """Mix words and add them to both lanes of their rows; the word 0 adds nothing."""
    spare = spare[: words.size]
    words ^= np.right_shift(words, 32, out=spare)
    words *= key[0]
    words ^= np.right_shift(words, 29, out=spare)
    lanes[0, rows] += np.multiply(words, key[1], out=spare)
    lanes[1, rows] += np.multiply(words, key[2], out=spare)


def _scramble(words: Words, mixed: Words, spare: Words) -> Words:
    """The finaliser of SplitMix64."""
    np.bitwise_xor(words, np.right_shift(words, 30, out=spare), out=mixed)
    mixed *= 0xBF58476D1CE4E5B9
    mixed ^= np.right_shift(mixed, 27, out=spare)
    mixed *= 0x94D049BB133111EB
    mixed ^= np.right_shift(mixed, 31, out=spare)
    return mixed
