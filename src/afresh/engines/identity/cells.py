"""The arithmetic of words and hashes on NumPy arrays; the package's docstring says what they are."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

VERSION = "rows-1"
LOW = 2**31 - 1
WHOLE = 2.0**53  # whole numbers below it are their own words
# Single precision holds these sizes without an overflow or a loss of digits, which some databases make an error.
SMALLEST, LARGEST = 1e-37, 1e38
# Fixed and public: nothing up the sleeve, the fractions of the square roots of 2, 3, 5 and 7.
FIRST, SECOND, THIRD, FOURTH = 0x6A09E667 >> 1 | 1, 0xBB67AE85 >> 3 | 1, 0x3C6EF372 >> 1 | 1, 0xA54FF53A >> 1 | 1
SHIFT, MIDDLE = 29, 16


def mix(words: Words, spare: Words) -> Words:
    """The hashes of words, in their place: two multiplications below 2^63, and halves that multiply each other."""
    np.right_shift(words, 31, out=spare)
    spare *= np.uint64(SECOND)
    words &= np.uint64(LOW)
    words *= np.uint64(FIRST)
    words += spare
    words ^= np.right_shift(words, SHIFT, out=spare)
    return fold(words, spare)


def fold(words: Words, spare: Words) -> Words:
    """The second half of `mix`, which makes a row's hash as well; words are below 2^63."""
    np.right_shift(words, MIDDLE, out=spare)
    spare &= np.uint64(LOW)
    spare ^= np.uint64(FOURTH)
    low = words & np.uint64(LOW)
    low ^= np.uint64(THIRD)
    spare *= low
    words ^= spare
    return words


def row_key(name: str) -> int:
    """The 32-bit odd multiplier of a column's hashes in the hash of a row."""
    return int.from_bytes(hashlib.sha256(f"{VERSION}:{name.lower()}".encode()).digest()[:4], "big") | 1


def number_words(values: NDArray[np.float64], words: Words) -> None:
    """The words of finite doubles; what is under a missing one may be anything."""
    with np.errstate(invalid="ignore"):
        whole = values.astype(np.int64)
        small = (np.abs(values) < WHOLE) & (whole == values)
    words[:] = values.view(np.uint64)
    np.copyto(words, whole.view(np.uint64), where=small)


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
