"""The arithmetic of words and hashes on NumPy arrays; the package's docstring says what they are."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

VERSION = "rows-1"
LOW = 2**31 - 1
WHOLE = 2.0**53  # numbers below it are the sum of a whole number and a fraction that a word holds together
TINY = 2.0**-10  # unless they are below this, where a fraction has digits beyond a word's last
UNIT = 2.0**62  # of fractions
# Single precision holds these sizes without an overflow or a loss of digits, which some databases make an error.
SMALLEST, LARGEST = 1e-37, 1e38
# Fixed and public: nothing up the sleeve, the fractions of the square roots of 2, 3, 5, 7 and 17.
FIRST, SECOND, THIRD, FOURTH = 0x6A09E667 >> 1 | 1, 0xBB67AE85 >> 3 | 1, 0x3C6EF372 >> 1 | 1, 0xA54FF53A >> 1 | 1
MISSING = 0x1F83D9ABFB41BD6B
HALF = 31  # where a spread word is cut in two
SEEN = 20  # where the six bits begin that say which values were seen


def spread(words: Words, out: Words, spare: Words) -> None:
    """A word's two parts, each multiplied by its constant, add up to a number below 2^63."""
    np.right_shift(words, 31, out=spare)
    spare *= np.uint64(SECOND)
    np.bitwise_and(words, np.uint64(LOW), out=out)
    out *= np.uint64(FIRST)
    out += spare


def fold(words: Words, out: Words, spare: Words) -> None:
    """The halves of a spread word, or of what a row adds up to, multiply each other: no sum of hashes is linear."""
    high = spare.view(np.int64)
    np.right_shift(words.view(np.int64), HALF, out=high)  # keeps the sign, as databases do
    spare ^= np.uint64(FOURTH)
    np.bitwise_and(words, np.uint64(LOW), out=out)
    out ^= np.uint64(THIRD)
    out *= spare


ZERO = (THIRD * FOURTH) % 2**64  # the hash of the number 0


def row_keys(name: str) -> tuple[int, int]:
    """The odd multipliers, of 32 and 30 bits, of the halves of a column's spread words in the two sums of a row."""
    digest = hashlib.sha256(f"{VERSION}:{name.lower()}".encode()).digest()
    return int.from_bytes(digest[:4], "big") | 1, int.from_bytes(digest[4:8], "big") >> 2 | 1


def number_words(values: NDArray[np.float64], words: Words) -> None:
    """The words of finite doubles; what is under a missing one may be anything."""
    with np.errstate(invalid="ignore", over="ignore"):
        whole = np.trunc(values)
        rest = values - whole
        rest *= UNIT
        signed = words.view(np.int64)
        np.add(whole.astype(np.int64), rest.astype(np.int64), out=signed)
        size = np.abs(values, out=whole)
        odd = size < TINY
        odd &= size != 0
        odd |= ~(size < WHOLE)
    if odd.any():
        np.copyto(words, values.view(np.uint64), where=odd)


def round_single(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers rounded to single precision, where it holds numbers of their size."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rounded = values.astype(np.float32).astype(np.float64)
        size = np.abs(values)
        keep = (size < SMALLEST) | (size > LARGEST)
    if keep.any():
        np.copyto(rounded, values, where=keep)
    return rounded


def place_keys(start: int, count: int) -> Words:
    """An odd multiplier for every row by its place, for digests in row order: SplitMix64 of the place."""
    keys = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    keys *= np.uint64(0x9E3779B97F4A7C15)
    keys ^= keys >> np.uint64(30)
    keys *= np.uint64(0xBF58476D1CE4E5B9)
    keys ^= keys >> np.uint64(27)
    return keys | np.uint64(1)


def total(words: Any) -> int:
    """The sum modulo 2^64."""
    return int(words.sum(dtype=np.uint64))
