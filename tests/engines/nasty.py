"""A table of values chosen to break an engine, and the same rows for the oracle."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

import pyarrow as pa

NUMBERS = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, 10.0]
NUMBERS += [1e308, -1.7976931348623157e308, 5e-324, -5e-324, 0.49999999999999994, 1e15, 123.456, -0.1]
INTEGERS = [None, 0, 1, -1, 2**63 - 1, -(2**63), 2**53 + 1, 10, 100]
TEXTS = [None, "", "a", "B", "é", "É", "Bern", "it's", "100%", "a_b", " x ", "日本", "a\nb", "\u00a0x\u00a0"]
TEXTS += [
    "12",
    " -1.5e2 ",
    "1e99",
    "+.5",
    "5.",
    "1e100",
    "NaN",
    "inf",
    "1_000",
    "١٢",
    "1\n",
    "0x1",
    "9" * 51,
    "1 2",
    "\\%",
    "a\\b",
    '"`$',
    "Straße",
    "ΑΣ",
    "İ",
    "😀",
    "~z",
]
DAYS = [
    None,
    date(1970, 1, 1),
    date(2025, 1, 31),
    date(1, 1, 1),
    date(9999, 12, 31),
    date(1969, 12, 31),
    date(2024, 2, 29),
]
MOMENTS = [None, datetime(2025, 1, 31, 12, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59), datetime(1, 1, 1)]
MOMENTS += [datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1969, 12, 31, 23, 59, 59, 500000)]
MOMENTS += [datetime(2025, 3, 9, 2, 30)]  # New York skips it
FLAGS = [None, True, False]


def _rows() -> list[dict[str, Any]]:
    pools: dict[str, list[Any]] = {
        "x": NUMBERS,
        "y": NUMBERS,
        "big": INTEGERS,
        "flag": FLAGS,
        "other": FLAGS,
        "city": TEXTS,
    }
    pools |= {"Odd \"name'": TEXTS, "day": DAYS, "moment": MOMENTS}
    # two pools of one length need strides that differ modulo it, or their columns would be equal
    strides = [1, 23, 29, 31, 38, 41, 43, 47, 53]
    return [
        {
            name: pool[(i * stride + i // len(pool)) % len(pool)]
            for (name, pool), stride in zip(pools.items(), strides, strict=True)
        }
        for i in range(441)
    ]


ROWS = _rows()
TYPES = {"x": pa.float64(), "y": pa.float64(), "big": pa.int64(), "flag": pa.bool_(), "other": pa.bool_()}
TYPES |= {"city": pa.string(), "Odd \"name'": pa.string(), "day": pa.date32(), "moment": pa.timestamp("us")}


def table() -> pa.Table:
    """The rows as an Arrow table."""
    return pa.table({name: pa.array([row[name] for row in ROWS], kind) for name, kind in TYPES.items()})
