"""Rows as bytes that do not depend on file format, encoding or order: for fingerprints and for dealing rows.

Every column, in order of its name, becomes a tagged piece; text carries its length, so no two rows share an
encoding. Numbers are written as the bits of their double (zero has one sign), dates as days and timestamps as
microseconds since 1970. NaN and infinities are written as NULL, which they are to every question: frames and files
differ in which of them stands for a missing number. Columns no question can use enter by their text form.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from afresh.engines.duckdb_sql import column, leaf, quote_text, type_of
from afresh.queries.tree import Type

VERSION = "afresh-data-v1"


def _piece(name: str, physical: str) -> str:
    kind, value = type_of(physical), leaf(name, physical)
    if kind is Type.NUMBER:
        return (
            f"CASE WHEN {value} = 0e0 THEN 'D0;' "
            f"WHEN isfinite({value}) THEN 'D' || CAST(CAST(CAST({value} AS BIT) AS BIGINT) AS VARCHAR) || ';' "
            f"ELSE 'N' END"
        )
    if kind is Type.BOOLEAN:
        return f"CASE WHEN {value} THEN 'B1' WHEN NOT {value} THEN 'B0' ELSE 'N' END"
    if kind is Type.DATE:
        return f"coalesce('d' || CAST({value} - DATE '1970-01-01' AS VARCHAR) || ';', 'N')"
    if kind is Type.TIMESTAMP:
        return f"coalesce('t' || CAST(epoch_us({value}) AS VARCHAR) || ';', 'N')"
    text = value if kind is Type.TEXT else f"CAST({column(name)} AS VARCHAR)"
    return f"coalesce('T' || CAST(strlen({text}) AS VARCHAR) || ':' || {text}, 'N')"


def row_hash(columns: Mapping[str, str]) -> str:
    """SQL of a row's SHA-256, in hexadecimal."""
    return f"sha256(concat({', '.join(_piece(name, columns[name]) for name in sorted(columns))}))"


def sum_hashes(source: str, columns: Mapping[str, str]) -> str:
    """SQL of the number of rows and the two halves of the sum of 128 bits of every row's hash.

    A sum, because it does not see the order but does see duplicates; DuckDB adds 64-bit halves exactly.
    """
    return (
        "SELECT count(*), sum(CAST('0x' || h[1:16] AS UBIGINT)), sum(CAST('0x' || h[17:32] AS UBIGINT)) "
        f"FROM (SELECT {row_hash(columns)} AS h FROM {source} AS d)"
    )


def fingerprint(columns: Mapping[str, str], rows: int, high: int, low: int) -> str:
    """The digest of the columns and of the multiset of rows."""
    names = [(name, kind.value if (kind := type_of(columns[name])) else "other") for name in sorted(columns)]
    total = (int(high) << 64) + int(low)
    return hashlib.sha256(json.dumps([VERSION, names, rows, str(total)]).encode()).hexdigest()


def deal_rows(source: str, row: str, columns: Mapping[str, str], size: int, blocks: int, seed: str) -> str:
    """SQL of a table (row, block) that gives every block `size` rows.

    Rows are ranked by content (equal rows are interchangeable), and the ranks are shuffled by the seed alone.
    """
    hashed = f"SELECT d.{row} AS r, {row_hash(columns)} AS h FROM {source} AS d"
    ranked = f"SELECT r, row_number() OVER (ORDER BY h, r) AS k FROM ({hashed})"
    key = f"md5({quote_text(seed + ':')} || k)"
    shuffled = f"SELECT r, row_number() OVER (ORDER BY {key}, k) - 1 AS p FROM ({ranked})"
    block = f"CAST(p // {size:d} AS INTEGER) AS block"
    return f"SELECT r, {block} FROM ({shuffled}) WHERE p < {size * blocks:d} ORDER BY block, r"
