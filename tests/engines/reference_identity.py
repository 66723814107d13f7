"""The fingerprint, the columns' sums and the sketch, in plain Python, as the docstring of `identity` defines it."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

SEED = 0x3504F333DDB3D742
MISSING = 2270897969802886507
EPOCH = datetime(1970, 1, 1)


def signed(bits: int) -> int:
    """A number of 64 bits, the first of which is its sign."""
    return (bits + 2**63) % 2**64 - 2**63


def jenkins(data: bytes, seed: int = SEED) -> int:
    """Bob Jenkins's lookup3 as `hash_bytes_extended` of Postgres has it, unsigned."""

    def turned(x: int, k: int) -> int:
        return (x << k | x >> (32 - k)) % 2**32

    def mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
        for k in (4, 6, 8, 16, 19, 4):
            a = (a - c) % 2**32 ^ turned(c, k)
            a, b, c = b, (c + b) % 2**32, a  # the three take turns
        return a, b, c

    a = b = c = (0x9E3779B9 + len(data) + 3923095) % 2**32
    a, b, c = mixed((a + (seed >> 32)) % 2**32, (b + seed) % 2**32, c)
    while len(data) >= 12:
        x, y, z = struct.unpack("<III", data[:12])
        a, b, c = mixed((a + x) % 2**32, (b + y) % 2**32, (c + z) % 2**32)
        data = data[12:]
    x, y, z = struct.unpack("<III", (data[:8].ljust(8, b"\0") + b"\0" + data[8:]).ljust(12, b"\0"))
    a, b, c = (a + x) % 2**32, (b + y) % 2**32, (c + z) % 2**32
    for k in (14, 11, 25, 16, 4, 14, 24):
        c = ((c ^ b) - turned(b, k)) % 2**32
        a, b, c = b, c, a
    return int(a << 32 | b)  # after seven turns


def number(value: Any) -> float:
    """A cell that is no text, as a double."""
    if isinstance(value, datetime):
        return (value - EPOCH) // timedelta(microseconds=1) / 1e6
    if isinstance(value, date):
        return (value - EPOCH.date()).days * 86400.0
    return float(value)


def to_single(value: float) -> float:
    """The nearest number of single precision."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def jenkins_double(value: float) -> int:
    """The hash that Postgres gives a double, signed."""
    return signed(jenkins(struct.pack("<d", value)) if value else SEED)


def arithmetic(value: float) -> int:
    """The hash of a number of single precision, which is 0 or of a size from 2^-44 to 2^58."""
    factor = 6.28318530717958 / 2
    if abs(value) < 2**24:
        factor = 434337691 * 128 if abs(value) >= 2**-10 else 5.43656365691809 * 2**67
    whole = round(value * factor) ^ 0x06A09E667BB67AE8  # rounded to even
    return (whole % 2**31) * ((whole >> 13) % 2**31)


def hashed(value: Any, *, exact: bool = True) -> int | None:
    """The hash of a cell, or of it in single precision, signed; None if it is missing."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    if isinstance(value, str):
        data = value.encode()
        return signed(jenkins(hashlib.md5(data).hexdigest().encode() if len(data) > 252 else data))
    if isinstance(value, date):
        return jenkins_double(number(value))
    x = number(value)
    if x == 0 or 2**-44 * (1 - 2**-25) <= abs(x) <= 2**58 * (1 + 2**-24):  # all that become 2^-44 to 2^58
        single = to_single(x)
        rest = round((x - single) / (single or 1.0) * 2**54)
        found = arithmetic(single)
        return signed(found ^ rest << 31) if exact else found
    found = jenkins_double(to_single(x) if 1e-37 <= abs(x) <= 1e38 else x)
    return found ^ jenkins_double(x) >> 1 if exact else found


def fold(value: int, keys: tuple[int, int] = (0x1E3779B9, 0x52A7FA9D)) -> int:
    """The halves of a number multiply each other."""
    high, low = divmod(value, 2**31)
    product = (low ^ keys[0]) * (high ^ keys[1])
    assert -(2**63) <= product < 2**63  # or databases would fail
    return product


def row_hash(row: Mapping[str, Any]) -> int:
    """The hash of a row."""
    return fold(joined_row(row))


def joined_row(row: Mapping[str, Any]) -> int:
    """The hashes of a row's cells, joined."""
    hashes = [hashed(row[name]) for name in sorted(row, key=str.lower)]
    cells = [MISSING if found is None else found for found in hashes]
    groups = [_joined(cells[start : start + 24]) for start in range(0, len(cells), 24)]
    return groups[0] if len(groups) == 1 else _joined([fold(group) for group in groups])


def _joined(words: Sequence[int]) -> int:
    joined = 0
    for place, word in enumerate(words):
        joined ^= word >> place % 24
    return joined


def fingerprint(rows: Sequence[Mapping[str, Any]]) -> str:
    """Of rows whose texts spell nothing but themselves."""
    total = sum(map(row_hash, rows)) % 2**64
    names = sorted(rows[0], key=str.lower)
    columns = [[name.lower(), sum(hashed(row[name], exact=False) or 0 for row in rows) % 2**64] for name in names]
    return "rows-3:" + hashlib.sha256(json.dumps(["rows-3", len(rows), total, columns]).encode()).hexdigest()


def sketch(rows: Sequence[Mapping[str, Any]], secret: str) -> str:
    """Of the different rows, by a secret."""
    digest = hashlib.sha256(f"sketch:{secret}".encode()).digest()
    keys = int.from_bytes(digest[:4], "big") // 2, int.from_bytes(digest[4:8], "big") // 2
    least: dict[int, int] = {}
    for row in rows:
        size, part = divmod(fold(joined_row(row), keys) // 2**12 % 2**39, 256)
        least[part] = min(size, least.get(part, size))
    codes = []
    for part in range(256):
        size, shift = least.get(part, -1), 0
        while size >= 16:
            size, shift = size // 2, shift + 1
        codes.append(232 - 8 * shift - size if part in least else 0)
    return bytes(codes).hex()
