"""The fingerprint and the columns' sums, in plain Python, as the docstring of `identity` defines it."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

ROOTS = (0x3504F333, 0x176CF5D1, 0x1E3779B9, 0x52A7FA9D)  # halves and an eighth of roots' fractions
MISSING = 2270897969802886507
EPOCH = datetime(1970, 1, 1)


def signed(bits: int) -> int:
    """A number of 64 bits, the first of which is its sign."""
    return (bits + 2**63) % 2**64 - 2**63


def word(value: Any) -> int | None:
    """The word of a cell, signed; None if it is missing."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, str):
        return signed(int(hashlib.md5(value.encode()).hexdigest()[:16], 16))
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1)
    if isinstance(value, date):
        return (value - EPOCH.date()).days * 86_400_000_000
    number = Fraction(float(value))
    if number == 0 or Fraction(1, 1024) <= abs(number) < 2**53:
        together = int(number) + (number - int(number)) * 2**62
        assert together.denominator == 1  # nothing of it is lost
        return int(together)
    return int(struct.unpack("<q", struct.pack("<d", float(value)))[0])


def wide(value: Any) -> int:
    """What a row is made of: a cell's word, spread unless it is a text's."""
    found = word(value)
    if found is None:
        return MISSING
    if isinstance(value, str):
        return found
    high, low = divmod(found % 2**64, 2**31)
    return low * ROOTS[0] + high * ROOTS[1]


def fold(value: int) -> int:
    """The halves of a number multiply each other."""
    high, low = divmod(value, 2**31)
    product = (low ^ ROOTS[2]) * (high ^ ROOTS[3])
    assert -(2**63) <= product < 2**63  # or databases would fail
    return product


def hashed(value: Any) -> int:
    """What a cell adds to the sum of its column."""
    if word(value) is None:
        return 0
    return wide(value) if isinstance(value, str) else fold(wide(value))


def single(value: Any) -> Any:
    """A number in single precision, where that holds numbers of its size."""
    if value is None or isinstance(value, str | date) or not 1e-37 <= abs(float(value)) <= 1e38:
        return value
    return struct.unpack("<f", struct.pack("<f", float(value)))[0]


def row_hashes(row: Mapping[str, Any]) -> tuple[int, int]:
    """The two hashes of a row."""
    first = second = 0
    for name, value in row.items():
        digest = hashlib.sha256(f"rows-1:{name.lower()}".encode()).hexdigest()
        high, low = divmod(wide(value), 2**31)
        first ^= low * (int(digest[:8], 16) | 1)
        second ^= high * (int(digest[8:16], 16) >> 2 | 1)
    return fold(first), fold(second)


def fingerprint(rows: Sequence[Mapping[str, Any]]) -> str:
    """Of rows whose texts spell nothing but themselves."""
    hashes = [row_hashes(row) for row in rows]
    totals = [sum(one) % 2**64 for one in zip(*hashes, strict=True)]
    names = sorted(rows[0], key=str.lower)
    columns = [[name.lower(), sum(hashed(single(row[name])) for row in rows) % 2**64] for name in names]
    return "rows-1:" + hashlib.sha256(json.dumps(["rows-1", len(rows), *totals, columns]).encode()).hexdigest()
