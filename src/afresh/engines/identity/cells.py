"""The hashes of cells on NumPy arrays; the package's docstring says what they are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Halves = NDArray[np.uint32]

VERSION = "rows-1"
# Fixed and public: nothing up the sleeve, the fractions of the square roots of 2, 3 and 17.
SEED = 0x6A09E667BB67AE85 >> 1
MISSING = 0x1F83D9ABFB41BD6B  # in the hash of a row
SHIFTS = 24  # columns that are shifted by other numbers of bits; after as many, what they are joined to is hashed
SEEN = 20  # where the six bits begin that say which values were seen
# Single precision holds these sizes without an overflow or a loss of digits, which some databases make an error.
SMALLEST, LARGEST = 1e-37, 1e38
LONG = 252  # bytes of a text beyond which it is hashed by its MD5
_PIECE = 12  # bytes that Jenkins's hash takes at a time
_START = 0x9E3779B9 + 3923095


def _mix(state: Halves | Sequence[Halves], spare: Halves) -> None:
    """Jenkins's mix: every bit of three numbers comes to matter to all of them."""
    a, b, c = state
    for x, y, z, bits in ((a, c, b, 4), (b, a, c, 6), (c, b, a, 8), (a, c, b, 16), (b, a, c, 19), (c, b, a, 4)):
        x -= y
        x ^= np.left_shift(y, np.uint32(bits), out=spare)
        x ^= np.right_shift(y, np.uint32(32 - bits), out=spare)
        y += z


def _finish(state: Halves | Sequence[Halves], spare: Halves) -> None:
    """Jenkins's final mix, after the last piece."""
    a, b, c = state
    for x, y, bits in ((c, b, 14), (a, c, 11), (b, a, 25), (c, b, 16), (a, c, 4), (b, a, 14), (c, b, 24)):
        x ^= y
        x -= np.left_shift(y, np.uint32(bits), out=spare)
        x -= np.right_shift(y, np.uint32(32 - bits), out=spare)


def _starts() -> Halves:
    """The three numbers that a hash begins with, by the length of what is hashed."""
    a, b, c, spare = (np.arange(LONG + 1, dtype=np.uint32) + np.uint32(_START % 2**32) for _ in range(4))
    a += np.uint32(SEED >> 32)
    b += np.uint32(SEED % 2**32)
    _mix((a, b, c), spare)
    return np.stack([a, b, c])


_STARTS = _starts()
_LENGTHS = np.arange(LONG + 1)
_PIECES = _LENGTHS // _PIECE
_MASKS = np.array([2 ** (8 * min(rest, 8)) - 1 for rest in range(_PIECE)], np.uint64)
_LAST_MASKS = np.array([2 ** (8 * max(rest - 8, 0)) - 1 for rest in range(_PIECE)], np.uint64)


def hash_numbers(values: NDArray[np.float64], out: Words, spare: Words) -> None:
    """The hashes of finite doubles: of their eight bytes, but the seed for 0, which has a sign."""
    halves, count = values.view(np.uint32), len(values)
    (a, b), (c, rest) = (room.view(np.uint32).reshape(2, count) for room in (spare, out))
    np.add(halves[0::2], _STARTS[0, 8], out=a)
    np.add(halves[1::2], _STARTS[1, 8], out=b)
    c[:] = _STARTS[2, 8]
    _finish((a, b, c), rest)
    a[:] = c  # out of the way of what is written next
    _join(b, a, out)
    if (zero := values == 0).any():
        np.copyto(out, np.uint64(SEED), where=zero)


def _join(high: Halves, low: Halves, out: Words) -> None:
    halves = out.view(np.uint32)
    halves[0::2] = low
    halves[1::2] = high


class TextHasher:
    """Hashes texts, up to so many at a time. What it computes in is used again, as fresh memory costs much."""

    def __init__(self, most: int) -> None:
        """For up to this many texts."""
        self._room = np.empty((8, most), np.uint64)
        self._half = np.empty((7, most), np.uint32)
        self._left = np.empty((2, most), np.bool_)
        self._words = np.empty(0, np.uint64)

    def hash(self, data: NDArray[np.uint8], offsets: NDArray[Any], out: Words) -> None:
        """Write the hashes of the texts of a buffer, from each offset to the next."""
        count = len(offsets) - 1
        at, lengths, pieces = self._room[:3, :count].view(np.int64)
        np.subtract(offsets[:-1], offsets[0], out=at)
        np.subtract(offsets[1:], offsets[:-1], out=lengths)
        long = np.flatnonzero(lengths > LONG) if int(lengths.max(initial=0)) > LONG else ()
        lengths[long,] = 0
        words = self._aligned(data[int(offsets[0]) : int(offsets[-1])])
        state, spare = self._half[:3, :count], self._half[3, :count]
        for one, start in zip(state, _STARTS, strict=True):
            start.take(lengths, out=one, mode="clip")
        _PIECES.take(lengths, out=pieces, mode="clip")
        left, over = self._left[:, :count]
        for piece in range(int(pieces.max(initial=0))):
            np.greater(pieces, piece, out=left)
            self._add_piece(words, at, state, left, over)
            np.add(at, _PIECE, out=at, where=left)
        pieces *= _PIECE
        rest = np.subtract(lengths, pieces, out=lengths)
        first, last = self._load(words, at)
        first &= _MASKS.take(rest, out=pieces.view(np.uint64), mode="clip")
        last &= _LAST_MASKS.take(rest, out=pieces.view(np.uint64), mode="clip")
        last <<= np.uint64(8)  # the lowest byte of the third number is the length's
        _add(first, last, state)
        _finish(state, spare)
        _join(state[1], state[2], out)
        for place in long:
            text = data[int(offsets[place]) : int(offsets[place + 1])].tobytes()
            out[place] = hash_text(hashlib.md5(text, usedforsecurity=False).hexdigest().encode())

    def _aligned(self, data: NDArray[np.uint8]) -> Words:
        """The bytes as words, with room to read beyond their end."""
        size = len(data) // 8 + 4
        if len(self._words) < size:
            self._words = np.empty(size + size // 8, np.uint64)
        words = self._words[:size]
        words[-4:] = 0
        words.view(np.uint8)[: len(data)] = data
        return words

    def _add_piece(
        self,
        words: Words,
        at: NDArray[np.int64],
        state: Halves,
        left: NDArray[np.bool_],
        over: NDArray[np.bool_],
    ) -> None:
        """Add the next twelve bytes of those texts that have as many."""
        many = np.count_nonzero(left)
        if 4 * many < len(left):
            which = np.flatnonzero(left)
            few = state[:, which]
            _add(*self._load(words, at[which]), few)
            _mix(few, np.empty_like(few[0]))
            state[:, which] = few
            return
        before, spare = self._half[4:, : len(at)], self._half[3, : len(at)]
        if many < len(left):
            before[:] = state
        _add(*self._load(words, at), state)
        _mix(state, spare)
        if many < len(left):
            np.copyto(state, before, where=np.logical_not(left, out=over))

    def _load(self, words: Words, at: NDArray[np.int64]) -> tuple[Words, Words]:
        """The eight bytes at each place, and the eight after them, wherever they begin."""
        first, second, third, bits, places = self._room[3:, : len(at)]
        index = np.right_shift(at, 3, out=places.view(np.int64))
        for one in (first, second, third):
            words.take(index, out=one, mode="clip")
            index += 1
        np.bitwise_and(at.view(np.uint64), np.uint64(7), out=bits)
        bits <<= np.uint64(3)
        first >>= bits
        np.right_shift(second, bits, out=places)
        np.subtract(np.uint64(64), bits, out=bits)
        second <<= bits  # everything is shifted out by 64
        first |= second
        third <<= bits
        places |= third
        return first, places


def hash_text(text: bytes) -> int:
    """The hash of one text."""
    found = np.empty(1, np.uint64)
    TextHasher(1).hash(np.frombuffer(text, np.uint8), np.array([0, len(text)]), found)
    return int(found[0])


def _add(first: Words, last: Words, state: Halves) -> None:
    a, b, c = state
    a += first.view(np.uint32)[0::2]
    b += first.view(np.uint32)[1::2]
    c += last.view(np.uint32)[0::2]


def hash_rows(joined: Words, numbers: Words, spare: Words) -> None:
    """What the hashes of a row's cells are joined to becomes the hash of that, as a number."""
    values = numbers.view(np.float64)
    values[:] = joined.view(np.int64)
    hash_numbers(values, joined, spare)


def round_single(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers rounded to single precision, where it holds numbers of their size."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rounded = values.astype(np.float32).astype(np.float64)
        size = np.abs(values)
        keep = (size < SMALLEST) | (size > LARGEST)
    if keep.any():
        np.copyto(rounded, values, where=keep)
    return rounded


def place_keys(count: int) -> Words:
    """An odd multiplier for every place: SplitMix64 of it."""
    keys = np.arange(1, count + 1, dtype=np.uint64)
    keys *= np.uint64(0x9E3779B97F4A7C15)
    keys ^= keys >> np.uint64(30)
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(27)
    return keys | np.uint64(1)


def total(words: Any) -> int:
    """The sum modulo 2^64."""
    return int(words.sum(dtype=np.uint64))
