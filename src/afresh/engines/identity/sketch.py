"""A sketch of a table's different rows, which shows whether two tables have most of them in common.

Every row gets a number, by a key: its cells are joined as in its hash, and the two halves multiply each other as there,
but the key takes the place of the fixed numbers (`cells.fold`). The last eight bits of the number say to which of 256
parts the row belongs, and the sketch has the least number of every part. What drops, adds, repeats or reorders rows
changes few of these, unless it changes most of the different rows. A row of the union of two tables that has the least
number of its part is as good as drawn at random. So of the parts, those that agree, to those where one table has the
smaller number, are as the different rows that both tables have to those that only this one has.

A sketch keeps the size of each number, to an eighth: in about one of 32 parts, different tables have it in common by
chance, which is far from most. So even the key hardly helps to test a guess about a row: few rows are the least of
their part, and others have the same size. Without the key nobody can choose rows that are, or are not, in a sketch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

PARTS = 2**8
BITS, FROM = 39, 12  # how many bits a row's number has, and where they begin: in the middle, where products are even
NONE = 2**BITS - 1  # the number of no row, or of hardly any
_FINE = 3  # bits of a number that are kept after its first
_CODES = (BITS - 8 - _FINE + 1) << _FINE


class Key(NamedTuple):
    """What takes the place of the fixed numbers: two of 31 bits."""

    low: int
    high: int


def key_of(secret: str) -> Key:
    """Return the key that a secret gives."""
    digest = hashlib.sha256(f"sketch:{secret}".encode()).digest()
    return Key(*(int.from_bytes(half, "big") >> 1 for half in (digest[:4], digest[4:8])))


def encode(least: Sequence[int]) -> str:
    """Return the sketch, as a text: two digits a part, of which larger ones are of smaller numbers, and 00 of none."""
    return bytes(map(_code, least)).hex()


def _code(number: int) -> int:
    """Return a byte for the size of a number: where its first bit is, and the next three."""
    if number == NONE:
        return 0
    size = number // PARTS
    after = max(0, size.bit_length() - _FINE - 1)
    return _CODES - ((after << _FINE) + (size >> after))


def in_common(one: str, other: str, enough: int = 1) -> bool:
    """Whether most of the different rows of one table, or of the other, are in both; at least this many of the parts.

    A text that is no sketch has nothing in common with any.
    """
    if len(one) != len(other):
        return False
    import numpy as np  # on demand: most of what opens a ledger compares nothing

    here, there = (np.frombuffer(bytes.fromhex(side), np.uint8) for side in (one, other))
    both, *only = (int(np.count_nonzero(each)) for each in ((here == there) & (here > 0), here > there, here < there))
    return both >= enough and both > min(only)
