"""The fingerprint, one row at a time in plain Python, as the docstring of `content` defines it."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

WORD = 2**64
MISSING = 0x7FF8000000000000
EPOCH = datetime(1970, 1, 1)


def _words(value: Any, kind: str) -> list[int]:
    if value is None or (kind == "number" and not math.isfinite(value)):
        return [MISSING]
    if kind == "number":
        return [struct.unpack("<Q", struct.pack("<d", float(value) + 0.0))[0]]
    if kind == "boolean":
        return [int(value)]
    if kind == "date":
        return [(value - date(1970, 1, 1)).days % WORD]
    if kind == "timestamp":
        return [(value - EPOCH) // timedelta(microseconds=1) % WORD]
    text = value.encode()
    size = len(text)
    if size > 512:
        text = hashlib.sha256(text).hexdigest().encode()
    return [size, *(int.from_bytes(text[i : i + 8], "little") for i in range(0, len(text), 8))]


def _keys(name: str, kind: str, place: int) -> list[int]:
    digest = hashlib.sha256(json.dumps(["afresh-data-v2", name, kind, place]).encode()).digest()
    return [int.from_bytes(digest[8 * i : 8 * i + 8], "little") | 1 for i in range(3)]


def _scramble(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def fingerprint(rows: Sequence[Mapping[str, Any]], types: Mapping[str, str]) -> str:
    """Of rows as questions see them, with their columns' types."""
    total_high = total_low = 0
    for row in rows:
        high = low = 0
        for name, kind in types.items():
            for place, word in enumerate(_words(row[name], kind)):
                both, first, second = _keys(name, kind, place)
                mixed = (word ^ word >> 32) * both % WORD
                mixed ^= mixed >> 29
                high, low = (high + mixed * first) % WORD, (low + mixed * second) % WORD
        high ^= _scramble(low)
        low ^= _scramble(high)
        high ^= _scramble(low)
        total_high, total_low = (total_high + high) % WORD, (total_low + low) % WORD
    sealed = ["afresh-data-v2", sorted([name, kind] for name, kind in types.items()), len(rows), total_high, total_low]
    return "afresh-data-v2:" + hashlib.sha256(json.dumps(sealed).encode()).hexdigest()
