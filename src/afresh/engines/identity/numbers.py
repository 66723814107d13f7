"""The hashes of numbers on NumPy arrays; the package's docstring says what they are.

Only sums, products and quotients of doubles, rounded to the nearest as everywhere, and few of them: what takes a
database some nanoseconds a cell takes NumPy some passes over a block.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.engines.identity.cells import LOW, Words, hash_doubles, round_single

Doubles = NDArray[np.float64]

# Numbers of three ranges of size, each with a factor that makes of them whole numbers of up to 60 bits: digits of e,
# the golden ratio and pi.
SMALL, LARGE = 2.0**-10, 2.0**24
FACTORS = (5.43656365691809 * 2.0**67, 6.47213595499958 * 2.0**33, 6.28318530717958 * 2.0**-1)
MASK = 0x06A09E667BB67AE8  # laid over them
HIGHER = 13  # where the 31 bits begin that their lowest 31 are multiplied with
REST = 54  # what single precision leaves of a number, in so many binary digits of the number
ABOVE = 31  # where these are laid over the hash
LEAST = 1e-300  # nothing beside any number of the ranges, but not 0
_REST = 1.5 * 2.0 ** (52 - REST)
# Of what becomes 2^-44, 2^-10, 2^24 and 2^58 or more in single precision; the last is the largest that becomes no more.
TINY, TO_SMALL, TO_LARGE, HUGE = (
    2.0**-44 * (1 - 2.0**-25),
    SMALL * (1 - 2.0**-25),
    LARGE - 0.5,
    2.0**58 * (1 + 2.0**-24),
)


class NumberHasher:
    """Hashes numbers, up to so many at a time. What it computes in is used again, as fresh memory costs much."""

    def __init__(self, most: int) -> None:
        """For up to this many numbers."""
        self._room = np.empty((4, most), np.float64)
        self._single = np.empty(most, np.float32)

    def hash(
        self, values: Doubles, low: float, high: float, out: Words, exact: Words, *, few_digits: bool = False
    ) -> bool:
        """Write the hashes of finite numbers from `low` to `high`, in single precision; whether these lose anything.

        If so, the exact ones are written too. Numbers of few digits are those of single precision.
        """
        factor, odd = self._ranges(values, low, high)
        rounded, lost = values, False
        with np.errstate(all="ignore"):  # of numbers that are hashed again below
            if not few_digits:
                single, rounded = self._single[: len(values)], self._room[0, : len(values)]
                single[:] = values
                rounded[:] = single
                lost = bool((rounded[:64] != values[:64]).any() or (rounded != values).any())
            scaled = np.multiply(rounded, factor, out=self._room[1, : len(values)])
            if len(odd):
                scaled[odd] = rounded[odd] * _factors(np.abs(rounded[odd]))
            self._product(scaled, out)
            if lost:
                self._rest(values, rounded, out, exact)
        if len(odd) and len(beyond := odd[_beyond(values[odd])]):
            hashes, whole = hash_extreme(values[beyond])
            out[beyond] = hashes
            if not lost:
                exact[:] = out
            exact[beyond] = whole
            lost = True
        return lost

    def _ranges(self, values: Doubles, low: float, high: float) -> tuple[float, NDArray[np.int64]]:
        """The factor of most numbers, and the places of those that need another."""
        below, usual, above = FACTORS
        if low >= TO_LARGE and high <= HUGE:
            return above, np.empty(0, np.int64)
        if low >= TO_SMALL and high < TO_LARGE:
            return usual, np.empty(0, np.int64)
        size = np.abs(values, out=self._room[3, : len(values)])
        if max(-low, high) < TO_SMALL and float(size.min()) >= TINY:
            return below, np.empty(0, np.int64)
        odd = size < TO_SMALL
        if max(-low, high) >= TO_LARGE:
            odd |= size >= TO_LARGE
        if not odd.any():
            return usual, np.empty(0, np.int64)
        odd &= size != 0
        return usual, np.flatnonzero(odd)

    def _product(self, scaled: Doubles, out: Words) -> None:
        """Multiply some bits of the numbers, made whole, with others."""
        np.rint(scaled, out=scaled)
        words, lower = self._room[2, : len(scaled)].view(np.int64), self._room[3, : len(scaled)].view(np.int64)
        np.copyto(words, scaled, casting="unsafe")
        words ^= MASK
        np.bitwise_and(words, LOW, out=lower)
        words >>= HIGHER
        words &= LOW
        np.multiply(lower, words, out=out.view(np.int64))

    def _rest(self, values: Doubles, rounded: Doubles, hashes: Words, exact: Words) -> None:
        """Lay what rounding has left of the numbers over their hashes."""
        rest = np.subtract(values, rounded, out=self._room[1, : len(values)])
        rounded += LEAST
        rest /= rounded
        rest += _REST  # rounds it to a whole number of units, which are then the low bits
        np.left_shift(rest.view(np.uint64), np.uint64(ABOVE), out=exact)
        exact ^= hashes


def _factors(size: Doubles) -> Doubles:
    below, usual, above = FACTORS
    return np.where(size < SMALL, below, np.where(size < LARGE, usual, above))


def _beyond(values: Doubles) -> NDArray[np.bool_]:
    size: Doubles = np.abs(values)
    return (size < TINY) | (size > HUGE)


def hash_extreme(values: Doubles) -> tuple[Words, Words]:
    """The hashes of numbers beyond all ranges, in single precision and exact."""
    hashes, exact, spare = (np.empty(len(values), np.uint64) for _ in range(3))
    hash_doubles(round_single(values), hashes, spare)
    hash_doubles(values, exact, spare)
    signed: Any = exact.view(np.int64)
    signed >>= 1  # or they would cancel those that rounding does not change
    exact ^= hashes
    return hashes, exact


def hash_numbers(values: Doubles) -> tuple[Words, Words]:
    """The hashes of finite numbers, in single precision and exact."""
    hashes, exact = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)
    if len(values):
        low, high = float(values.min()), float(values.max())
        if not NumberHasher(len(values)).hash(values, low, high, hashes, exact):
            exact[:] = hashes
    return hashes, exact
