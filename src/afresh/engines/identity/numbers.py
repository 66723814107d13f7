"""The hashes of numbers on NumPy arrays; the package's docstring says what they are.

They use only sums, products and quotients of doubles, rounded to nearest as everywhere, and few of them: what takes a
database a few nanoseconds per cell takes NumPy a few passes over a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.engines.identity.cells import LOW, Words, hash_doubles, round_single

Doubles = NDArray[np.float64]

# Numbers fall into three ranges of size, each with a factor that turns them into whole numbers of up to 60 bits: digits
# of e, the golden ratio and pi. The golden ratio's factor has 29 bits, so its products with whole numbers are exact.
SMALL, LARGE = 2.0**-10, 2.0**24
USUAL = 434_337_691 * 2**7
FACTORS = (5.43656365691809 * 2.0**67, float(USUAL), 6.28318530717958 * 2.0**-1)
MASK = 0x06A09E667BB67AE8  # joined to them by exclusive or
HIGHER = 13  # where the 31 bits that the lowest 31 are multiplied by begin
ROUND = 1.5 * 2.0**52  # added to a number of up to 51 bits, it leaves the nearest whole one in the lowest bits
REST = 54  # binary digits, relative to the number, of what single precision drops
ABOVE = 31  # where these digits are joined to the hash
LEAST = 1e-300  # negligible beside any number of the ranges, but not 0
_FEW = 16  # if fewer than one number in this many need another factor, they are hashed again separately
_REST = 1.5 * 2.0 ** (52 - REST)
# The least numbers that become at least 2^-44, 2^-10 and 2^24 in single precision, and the largest that becomes 2^58.
TINY, TO_SMALL, TO_LARGE, HUGE = (
    2.0**-44 * (1 - 2.0**-25),
    SMALL * (1 - 2.0**-25),
    LARGE - 0.5,
    2.0**58 * (1 + 2.0**-24),
)


class NumberHasher:
    """Hashes numbers, up to a fixed number at a time. Its buffers are reused, because fresh memory is expensive."""

    def __init__(self, most: int) -> None:
        """Make a hasher for up to this many numbers."""
        self._room = np.empty((3, most), np.float64)
        self._single = np.empty(most, np.float32)

    def hash(self, values: Doubles, low: float, high: float, out: Words, *, few_digits: bool = False) -> Words:
        """Write the hashes of finite numbers from `low` to `high`, in single precision, and return the exact ones.

        The two are the same if nothing is lost. The exact ones are valid until the next call. Numbers with few digits
        lose nothing.
        """
        factor, odd, sizes = self._ranges(values, low, high)
        largest, lost = max(-low, high), False
        rounded, scaled = (self._room[i, : len(values)] for i in range(2))
        with np.errstate(all="ignore"):  # for numbers that are hashed again below
            if few_digits:
                rounded = values
            else:
                single = self._single[: len(values)]
                single[:] = values
                rounded[:] = single
                lost = bool((rounded[:64] != values[:64]).any() or (rounded != values).any())
            few = len(odd) * _FEW < len(values)
            np.multiply(rounded, factor if few else _factors(np.abs(rounded)), out=scaled)
            # Only the lowest 44 bits matter, so if a sum has them, no cast is needed.
            if few and largest * factor < 2.0**50:
                scaled += ROUND
                _product(scaled.view(np.int64), out)
            else:
                _product(_whole(scaled, self._room[2, : len(values)].view(np.int64)), out)
            if few and len(odd):
                some = rounded[odd]
                some *= FACTORS[0] if largest < TO_LARGE else _factors(np.abs(some))
                hashes = np.empty(len(odd), np.uint64)
                _product(_whole(some, np.empty(len(odd), np.int64)), hashes)
                out[odd] = hashes
            exact = self._rest(values, rounded, out, zeros=low <= 0 <= high) if lost else out
        if len(odd) and (largest > HUGE or float(sizes.min()) < TINY):
            beyond = odd[(sizes < TINY) | (sizes > HUGE)]
            hashes, whole = hash_extreme(values[beyond])
            out[beyond] = hashes
            if not lost:
                exact = scaled.view(np.uint64)
                exact[:] = out
            exact[beyond] = whole
        return exact

    def hash_whole(self, values: NDArray[Any], out: Words) -> None:
        """Write the hashes of whole numbers below 2^24, which lose nothing."""
        words = self._room[1, : len(values)].view(np.int64)
        values = values.view(np.int64) if values.dtype == np.uint64 else values  # otherwise NumPy would cast them first
        np.multiply(values, USUAL, out=words, dtype=np.int64)
        _product(words, out)

    def _ranges(self, values: Doubles, low: float, high: float) -> tuple[float, NDArray[np.int64], Doubles]:
        """Return the factor of most numbers, and the places and sizes of those that need another."""
        below, usual, above = FACTORS
        none = np.empty(0, np.int64), np.empty(0)
        if low >= TO_LARGE and high <= HUGE:
            return above, *none
        if low >= TO_SMALL and high < TO_LARGE:
            return usual, *none
        size = values if low >= 0 else np.abs(values, out=self._room[0, : len(values)])
        if max(-low, high) < TO_SMALL and float(size.min()) >= TINY:
            return below, *none
        odd = size < TO_SMALL
        if max(-low, high) >= TO_LARGE:
            odd |= size >= TO_LARGE
        elif not odd.any():
            return usual, *none
        places = np.flatnonzero(odd)
        sizes = size[places]
        odd = sizes != 0
        return usual, places[odd], sizes[odd]

    def _rest(self, values: Doubles, rounded: Doubles, hashes: Words, *, zeros: bool) -> Words:
        """Join what rounding dropped from the numbers to their hashes."""
        rest = np.subtract(values, rounded, out=self._room[1, : len(values)])
        if zeros:
            rounded += LEAST
        rest /= rounded
        rest += _REST  # rounds to a whole number of units, which are then the low bits
        exact = rest.view(np.uint64)
        exact <<= np.uint64(ABOVE)
        exact ^= hashes
        return exact


def _whole(scaled: Doubles, out: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the nearest whole numbers, of any size."""
    np.rint(scaled, out=scaled)
    np.copyto(out, scaled, casting="unsafe")
    return out


def _product(words: NDArray[np.int64], out: Words) -> None:
    """Multiply some bits of the numbers by others; the numbers are overwritten."""
    product = out.view(np.int64)
    words ^= MASK
    np.bitwise_and(words, LOW, out=product)
    words >>= HIGHER
    words &= LOW
    product *= words


def _factors(size: Doubles) -> Doubles:
    below, usual, above = FACTORS
    return np.where(size < SMALL, below, np.where(size < LARGE, usual, above))


def hash_extreme(values: Doubles) -> tuple[Words, Words]:
    """Return the hashes of numbers beyond all ranges, in single precision and exact."""
    hashes, exact, spare = (np.empty(len(values), np.uint64) for _ in range(3))
    hash_doubles(round_single(values), hashes, spare)
    hash_doubles(values, exact, spare)
    signed: Any = exact.view(np.int64)
    signed >>= 1  # otherwise the hashes of numbers that rounding does not change would cancel
    exact ^= hashes
    return hashes, exact


def hash_numbers(values: Doubles) -> tuple[Words, Words]:
    """Return the hashes of finite numbers, in single precision and exact."""
    hashes = np.empty(len(values), np.uint64)
    if not len(values):
        return hashes, hashes
    return hashes, NumberHasher(len(values)).hash(values, float(values.min()), float(values.max()), hashes)
