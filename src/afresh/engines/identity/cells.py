"""The hashes of cells on NumPy arrays; the package's docstring says what they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Halves = NDArray[np.uint32]

VERSION = "rows-1"
# Fixed and public: nothing up the sleeve, the fractions of the square roots of 2, 3, 5, 7 and 17.
SEED = 0x6A09E667BB67AE85 >> 1
THIRD, FOURTH = 0x3C6EF372 >> 1 | 1, 0xA54FF53A >> 1 | 1
MISSING = 0x1F83D9ABFB41BD6B  # in the hash of a row
SHIFTS = 24  # columns whose hashes are shifted by other numbers of bits, and joined first
LOW = 2**31 - 1
HALF = 31  # where what they are joined to is cut in two
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


def _masks() -> tuple[Halves, Halves]:
    """By piece and length of a text: what of the piece's three numbers belongs to it, and what multiplies the third.

    The third number's lowest byte is the length's, so in the last piece, which is not whole, it begins at the next.
    """
    pieces, places, lengths = np.ogrid[: LONG // _PIECE + 1, :3, : LONG + 1]
    left = lengths - _PIECE * pieces
    masks = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF], np.uint32)[np.clip(left - 4 * places, 0, 4)]
    return masks, np.where(left >= _PIECE, 1, 256)[:, 0].astype(np.uint32)


_MASKS, _TIMES = _masks()


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
        self._room = np.empty((9, most), np.uint64)
        self._half = np.empty((8, most), np.uint32)
        self._words = np.empty(0, np.uint64)

    def hash(self, data: NDArray[np.uint8], offsets: NDArray[Any], out: Words) -> None:
        """Write the hashes of the texts of a buffer, from each offset to the next."""
        count = len(offsets) - 1
        at, lengths = self._room[:2, :count].view(np.int64)
        np.subtract(offsets[:-1], offsets[0], out=at)
        np.subtract(offsets[1:], offsets[:-1], out=lengths)
        long = np.flatnonzero(lengths > LONG) if int(lengths.max(initial=0)) > LONG else ()
        lengths[long,] = 0
        state = self._half[:3, :count]
        for one, start in zip(state, _STARTS, strict=True):
            start.take(lengths, out=one, mode="clip")
        self._absorb(self._aligned(data[int(offsets[0]) : int(offsets[-1])]), at, lengths, state, 0)
        _finish(state, self._half[3, :count])
        _join(state[1], state[2], out)
        for place in long:
            text = data[int(offsets[place]) : int(offsets[place + 1])].tobytes()
            out[place] = hash_text(hashlib.md5(text, usedforsecurity=False).hexdigest().encode())

    def _aligned(self, data: NDArray[np.uint8]) -> Words:
        """The bytes as words, with room to read beyond their end."""
        size = len(data) // 8 + 2
        if len(self._words) < size:
            self._words = np.empty(size + size // 8, np.uint64)
        words = self._words[:size]
        words.view(np.uint8)[: len(data)] = data
        return words

    def _absorb(
        self, words: Words, at: NDArray[np.int64], lengths: NDArray[np.int64], state: Halves, piece: int
    ) -> None:
        """Bring the bytes of texts into their numbers, from a piece on that begins at each of the places."""
        first, shortest, longest = piece, int(lengths.min(initial=LONG)), int(lengths.max(initial=0))
        spare, before = self._half[3, : len(at)], self._half[4:7, : len(at)]
        for numbers in self._read(words, at, longest - piece * _PIECE):
            left = lengths > piece * _PIECE
            if 4 * np.count_nonzero(left) < len(left):
                few = np.flatnonzero(left)
                some = state[:, few]
                begin = at[few] + (piece - first) * _PIECE
                TextHasher(len(few))._absorb(words, begin, lengths[few], some, piece)
                state[:, few] = some
                return
            whole = (piece + 1) * _PIECE
            self._add(numbers, state, None if shortest >= whole else lengths, piece)
            if longest >= whole > shortest:
                before[:] = state
                _mix(state, spare)
                np.copyto(state, before, where=lengths < whole)
            elif longest >= whole:
                _mix(state, spare)
            piece += 1

    def _add(self, numbers: Sequence[Halves], state: Halves, lengths: NDArray[np.int64] | None, piece: int) -> None:
        """Add the numbers of a piece, or what of them belongs to texts of these lengths."""
        for place, number in enumerate(numbers):
            if lengths is None:
                state[place] += number
                continue
            added = _MASKS[piece, place].take(lengths, out=self._half[3, : len(lengths)], mode="clip")
            added &= number
            if place == 2:
                added *= _TIMES[piece].take(lengths, out=self._half[7, : len(lengths)], mode="clip")
            state[place] += added

    def _read(self, words: Words, at: NDArray[np.int64], longest: int) -> Iterator[tuple[Halves, ...]]:
        """The three numbers of each piece of texts, good until the next; of the last piece perhaps only two."""
        index, right, left, held, after, this, that = self._room[2:, : len(at)]
        places = np.right_shift(at, 3, out=index.view(np.int64))
        np.bitwise_and(at.view(np.uint64), np.uint64(7), out=right)
        right <<= np.uint64(3)
        np.subtract(np.uint64(64), right, out=left)
        words.take(places, out=held, mode="clip")

        def eight(out: Words) -> tuple[Halves, Halves]:
            """The halves of the next eight bytes."""
            nonlocal held, after, places
            places += 1
            words.take(places, out=after, mode="clip")
            np.left_shift(after, left, out=out)  # everything is shifted out by 64
            held >>= right
            out |= held
            held, after = after, held
            return out.view(np.uint32)[0::2], out.view(np.uint32)[1::2]

        for start in range(0, longest, 2 * _PIECE):
            low, high = eight(this)
            if longest <= start + 8:
                yield low, high
                return
            third, fourth = eight(that)
            yield low, high, third
            if longest > start + _PIECE:
                yield fourth, *eight(this)


def hash_text(text: bytes) -> int:
    """The hash of one text."""
    found = np.empty(1, np.uint64)
    TextHasher(1).hash(np.frombuffer(text, np.uint8), np.array([0, len(text)]), found)
    return int(found[0])


def fold(words: Words, spare: Words) -> None:
    """Multiply the halves of what hashes are joined to with each other, so that no sum of it is linear."""
    np.right_shift(words.view(np.int64), HALF, out=spare.view(np.int64))  # keeps the sign, as databases do
    spare ^= np.uint64(FOURTH)
    words &= np.uint64(LOW)
    words ^= np.uint64(THIRD)
    words *= spare


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
