"""The hashes of cells on NumPy arrays; the package's docstring says what they are."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afresh.engines import arrow

if TYPE_CHECKING:
    from pyarrow import Array

Words = NDArray[np.uint64]
Halves = NDArray[np.uint32]

VERSION = "rows-3"
# Fixed and public nothing-up-my-sleeve numbers: the fractions of the square roots of 2, 3, 5, 7 and 17.
SEED = 0x6A09E667BB67AE85 >> 1
THIRD, FOURTH = 0x3C6EF372 >> 1 | 1, 0xA54FF53A >> 1 | 1
MISSING = 0x1F83D9ABFB41BD6B  # in the hash of a row
SHIFTS = 24  # columns whose hashes are shifted by different numbers of bits, and joined first
LOW = 2**31 - 1
HALF = 31  # where the joined hashes are cut in two
SEEN = 20  # where the six bits that record which values were seen begin
# Single precision holds these sizes without overflow or loss of digits, which some databases treat as errors.
SMALLEST, LARGEST = 1e-37, 1e38
LONG = 252  # bytes of a text beyond which it is hashed by its MD5
_PIECE = 12  # bytes that Jenkins's hash takes at a time
SHORT = 7  # bytes of texts whose hashes are remembered
_KNOWN = 12  # log2 of the number of slots for them
_NARROW = 4 * _PIECE  # bytes to which texts are padded even if most are much shorter
_START = 0x9E3779B9 + 3923095


def _mix(state: Halves | Sequence[Halves], spare: Halves) -> None:
    """Apply Jenkins's mix, after which every bit of the three numbers affects all of them."""
    a, b, c = state
    for x, y, z, bits in ((a, c, b, 4), (b, a, c, 6), (c, b, a, 8), (a, c, b, 16), (b, a, c, 19), (c, b, a, 4)):
        x -= y
        x ^= np.left_shift(y, np.uint32(bits), out=spare)
        x ^= np.right_shift(y, np.uint32(32 - bits), out=spare)
        y += z


def _finish(state: Halves | Sequence[Halves], spare: Halves) -> None:
    """Apply Jenkins's final mix, after the last piece."""
    a, b, c = state
    for x, y, bits in ((c, b, 14), (a, c, 11), (b, a, 25), (c, b, 16), (a, c, 4), (b, a, 14), (c, b, 24)):
        x ^= y
        x -= np.left_shift(y, np.uint32(bits), out=spare)
        x -= np.right_shift(y, np.uint32(32 - bits), out=spare)


def _starts() -> Halves:
    """Return the three numbers that a hash begins with, by the length of what is hashed."""
    a, b, c, spare = (np.arange(LONG + 1, dtype=np.uint32) + np.uint32(_START % 2**32) for _ in range(4))
    a += np.uint32(SEED >> 32)
    b += np.uint32(SEED % 2**32)
    _mix((a, b, c), spare)
    return np.stack([a, b, c])


_STARTS = _starts()


def hash_doubles(values: NDArray[np.float64], out: Words, spare: Words) -> None:
    """Write the hashes of finite doubles: those of their eight bytes, but the seed for 0, which may have a sign."""
    halves, count = values.view(np.uint32), len(values)
    (a, b), (c, rest) = (room.view(np.uint32).reshape(2, count) for room in (spare, out))
    np.add(halves[0::2], _STARTS[0, 8], out=a)
    np.add(halves[1::2], _STARTS[1, 8], out=b)
    c[:] = _STARTS[2, 8]
    _finish((a, b, c), rest)
    a[:] = c  # moved out of the way of the next write
    _join(b, a, out)
    if (zero := values == 0).any():
        np.copyto(out, np.uint64(SEED), where=zero)


def _join(high: Halves, low: Halves, out: Words) -> None:
    halves = out.view(np.uint32)
    halves[0::2] = low
    halves[1::2] = high


class TextHasher:
    """Hashes texts, up to a fixed number at a time. Its buffers are reused, because fresh memory is expensive."""

    def __init__(self, most: int) -> None:
        """Make a hasher for up to this many texts."""
        self._lengths = np.empty(most, np.int64)
        self._half = np.empty((9, most), np.uint32)

    def hash(
        self, texts: Texts, missing: NDArray[np.bool_] | None, out: Words, known: KnownTexts | None = None
    ) -> None:
        """Write the hashes of texts, using known ones; the hash of a missing text may be anything."""
        lengths = self._lengths[: len(texts)]
        offsets = texts.offsets
        np.subtract(offsets[1:], offsets[:-1], out=lengths)
        longest = int(lengths.max(initial=0))
        most = min(LONG, max(_NARROW, 4 * (int(offsets[-1]) - int(offsets[0])) // max(1, len(texts))))
        if longest > most:
            self._split(texts, lengths.copy(), most, out)
            return
        if missing is not None and not missing.all():  # all others may have one length
            np.copyto(lengths, lengths[np.argmin(missing)], where=missing)
        if known is not None and known.useful and longest <= SHORT:
            self._recall(texts, lengths.view(np.uint64), known, out)
            return
        state = self._half[:3, : len(texts)]
        self._begin(lengths, state)
        self._absorb(texts.padded(_PIECE * max(1, -(-longest // _PIECE))), lengths, state)
        _finish(state, self._half[3, : len(texts)])
        _join(state[1], state[2], out)

    def _split(self, texts: Texts, lengths: NDArray[np.int64], most: int, out: Words) -> None:
        """Hash texts of more bytes separately, or all would be padded to their length."""
        short, long = np.flatnonzero(lengths <= most), np.flatnonzero(lengths > most)
        if most == LONG:
            for place in long:
                out[place] = hash_text(hashlib.md5(texts.bytes(int(place)), usedforsecurity=False).hexdigest().encode())
            long = long[:0]
        for places in (short, long):
            if len(places):
                found = np.empty(len(places), np.uint64)
                TextHasher(len(places)).hash(texts.take(places), None, found)
                out[places] = found

    def _recall(self, texts: Texts, lengths: Words, known: KnownTexts, out: Words) -> None:
        """Use the hashes of known texts, and learn the others."""
        lengths += np.uint64(1)
        lengths <<= np.uint64(56)
        lengths += texts.padded(SHORT + 1).view(np.uint64).reshape(-1)  # the eighth byte is free for the length
        if len(places := known.recall(lengths, out)):
            words, found = lengths[places], np.empty(len(places), np.uint64)
            TextHasher(len(places)).hash(texts.take(places), None, found)
            out[places] = found
            known.learn(words, found, len(out))

    def _begin(self, lengths: NDArray[np.int64], state: Halves) -> None:
        if len(lengths) and (lengths == lengths[0]).all():
            state[:] = _STARTS[:, lengths[:1]]
            return
        for one, start in zip(state, _STARTS, strict=True):
            start.take(lengths, out=one, mode="clip")

    def _absorb(self, padded: Halves, lengths: NDArray[np.int64], state: Halves) -> None:
        """Add the bytes of texts to their states, twelve at a time."""
        shortest, longest = int(lengths.min(initial=LONG)), int(lengths.max(initial=0))
        spare, last, mask, *before = self._half[3:, : len(lengths)]
        for piece in range(padded.shape[1] // 3):
            whole = (piece + 1) * _PIECE
            for place in range(3):
                if longest > piece * _PIECE + 4 * place:
                    number = padded[:, 3 * piece + place]
                    # The lowest byte of the last number is for the length, so an incomplete piece begins at the next.
                    if place == 2 and longest < whole:
                        number = np.left_shift(number, np.uint32(8), out=last)
                    elif place == 2 and shortest < whole:
                        np.less(lengths, whole, out=mask, casting="unsafe")
                        np.multiply(mask, np.uint32(255), out=last)
                        last += np.uint32(1)
                        number = np.multiply(last, number, out=last)
                    state[place] += number
            if shortest >= whole:
                _mix(state, spare)
            elif longest >= whole:
                mask -= np.uint32(1)  # all bits where the piece is complete: the others stay as they are
                for kept, one in zip(before, state, strict=True):
                    kept[:] = one
                _mix(state, spare)
                for kept, one in zip(before, state, strict=True):
                    one ^= kept
                    one &= mask
                    one ^= kept


class KnownTexts:
    """The hashes of texts of up to seven bytes, with the length in an eighth byte, for columns with few values."""

    def __init__(self) -> None:
        """Start with no known texts."""
        self._words, self._hashes = np.zeros((2, 2**_KNOWN), np.uint64)
        self._tries = 4

    @property
    def useful(self) -> bool:
        """Whether most texts were known, or it is too early to tell."""
        return self._tries > 0

    def recall(self, words: Words, out: Words) -> NDArray[np.int64]:
        """Write the hashes of known texts, and return the places of the others."""
        places = _slots(words)
        self._hashes.take(places, out=out, mode="clip")
        return np.flatnonzero(self._words.take(places, mode="clip") != words)

    def learn(self, words: Words, hashes: Words, of: int) -> None:
        """Keep hashes that were unknown among this many texts; if two share a slot, the last one stays."""
        self._tries -= len(words) > of // 8
        places = _slots(words)
        _, last = np.unique(places[::-1], return_index=True)
        last = len(places) - 1 - last
        self._words[places[last]], self._hashes[places[last]] = words[last], hashes[last]


def _slots(words: Words) -> NDArray[np.int64]:
    places = words * np.uint64(0x9E3779B97F4A7C15)
    places >>= np.uint64(64 - _KNOWN)
    return places.view(np.int64)


class Texts:
    """Texts from Arrow, regardless of which are missing."""

    def __init__(self, array: Array) -> None:
        """Wrap a `string` or `large_string` array."""
        self._array = array
        dtype = np.dtype("i4" if str(array.type) == "string" else "i8")
        _, offsets, data = array.buffers()
        self.offsets = np.frombuffer(offsets, dtype, len(array) + 1, array.offset * dtype.itemsize)
        self._data = np.frombuffer(data if data is not None else b"", np.uint8)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._array)

    def part(self, start: int, stop: int) -> Texts:
        """Return the texts between two places."""
        return Texts(self._array.slice(start, stop - start))

    def take(self, places: NDArray[np.int64]) -> Texts:
        """Return the texts at these places."""
        return Texts(self._array.take(arrow.over(places)))

    def bytes(self, place: int) -> bytes:
        """Return the bytes of one text."""
        return self._data[int(self.offsets[place]) : int(self.offsets[place + 1])].tobytes()

    def padded(self, width: int) -> Halves:
        """Return the bytes of each text, padded with zeros to a width, as a row of numbers."""
        import pyarrow as pa
        import pyarrow.compute as pc

        array = self._array
        # without the mask of missing texts, which would not be padded
        bare = pa.Array.from_buffers(array.type, len(array), [None, *array.buffers()[1:]], 0, array.offset)
        made = pc.ascii_rpad(bare, width=width, padding="\0")
        return np.frombuffer(made.buffers()[2], np.uint32, len(array) * width // 4).reshape(len(array), width // 4)


def hash_text(text: bytes) -> int:
    """Return the hash of one text."""
    import pyarrow as pa

    found = np.empty(1, np.uint64)
    TextHasher(1).hash(Texts(pa.array([text]).cast(pa.string())), None, found)
    return int(found[0])


def fold(words: Words, spare: Words, low: int = THIRD, high: int = FOURTH) -> None:
    """Multiply the two halves of the joined hashes, so no sum of them is linear."""
    np.right_shift(words.view(np.int64), HALF, out=spare.view(np.int64))  # keeps the sign, as databases do
    spare ^= np.uint64(high)
    words &= np.uint64(LOW)
    words ^= np.uint64(low)
    words *= spare


def round_single(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round numbers to single precision, if it holds numbers of their size."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rounded = values.astype(np.float32).astype(np.float64)
        size = np.abs(values)
        keep = (size < SMALLEST) | (size > LARGEST)
    if keep.any():
        np.copyto(rounded, values, where=keep)
    return rounded


def place_keys(count: int) -> Words:
    """Return an odd multiplier for every place, by SplitMix64."""
    keys = np.arange(1, count + 1, dtype=np.uint64)
    keys *= np.uint64(0x9E3779B97F4A7C15)
    keys ^= keys >> np.uint64(30)
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(27)
    return keys | np.uint64(1)


def total(words: Any) -> int:
    """Return the sum modulo 2^64."""
    return int(words.sum(dtype=np.uint64))
