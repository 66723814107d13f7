"""Rows as bytes that do not depend on file format, types, encoding or order: for fingerprints and for dealing rows.

A file that is written again, by another program or in another format, must meet the budget already spent on it.
Formats differ in the types they keep (CSV keeps none) and in the digits of a number, so an encoding knows neither,
and where it is in doubt it merges: two data that merge share one budget, which is safe; the other error is not.
Every column, in order of its name, becomes one self-delimiting piece:

- `N`: NULL, NaN, infinities, empty text, and text that CSV readers take for one of them (NA, null, None, ...);
- `I`: a whole number up to 2^53, exactly (but see `_number`); `F`: the bits of any other number's float32 (if that
  is whole it is an `I` again), so a float32 file and its decimals agree; `D`: a double too large for float32;
- `B`: a boolean; `d`: the days from 1970 to a date or midnight; `t`: the microseconds from 1970 to a timestamp, in UTC;
- `T`: other text, with its length. Fractions of a second lose their last zeros, lists all but their items.

Text that spells a number (007 and +7 as well), a boolean, a date or a timestamp is that; types no question can use
enter by their text form. Questions see the data as they are: all this decides is who shares a budget.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from afresh.engines.duckdb_sql import column, leaf, quote_text, type_of
from afresh.queries.tree import Type

VERSION = "afresh-data-v1"
_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
_MOMENT = f"{DAY}([ T]{CLOCK}([zZ]|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?)?"
# what pandas, Arrow and R read as missing
_MISSING = r"[+-]?(nan|inf|infinity)|n/?a|null|none|<na>|#n/?a( n/a)?|-?1\.#(ind|qnan)"
_WORD = rf"(?i)\s*(true|false|{_MISSING})\s*"
_DAY_US = 86_400_000_000


def _number(value: str) -> str:
    """The piece of a double that is not NULL."""
    single = f"TRY_CAST({value} AS FLOAT)"
    # A whole float32 beyond 2^24 may be written by a rounder number that means it (123456792 as 123456790): one of
    # nine digits and then zeros, at least one. A number that could be one is read as that float32.
    rounded = f"{value} % CASE WHEN abs({value}) < 1e12 THEN 1e1 ELSE 1e4 END = 0"
    return (
        f"CASE WHEN NOT isfinite({value}) THEN 'N' "
        f"WHEN {value} = trunc({value}) AND abs({value}) <= 16777216 THEN {_whole(value, 'INTEGER')} "
        f"WHEN {value} = trunc({value}) AND abs({value}) <= 9007199254740992 THEN "
        f"CASE WHEN {rounded} THEN {_whole(single)} ELSE {_whole(value)} END "
        f"WHEN {single} IS NULL THEN 'D' || CAST(CAST(CAST({value} AS BIT) AS BIGINT) AS VARCHAR) || ';' "
        f"WHEN {single} = trunc({single}) AND abs({single}) <= 9007199254740992 THEN {_whole(single)} "
        f"ELSE 'F' || CAST(CAST(CAST({single} AS BIT) AS INTEGER) AS VARCHAR) || ';' END"
    )


def _whole(value: str, kind: str = "BIGINT") -> str:
    return f"'I' || CAST(CAST({value} AS {kind}) AS VARCHAR) || ';'"


def _moment(us: str) -> str:
    """The piece of microseconds since 1970; days apart, because the last dates have no such microseconds."""
    return f"CASE WHEN {us} % {_DAY_US} = 0 THEN 'd' || ({us} // {_DAY_US}) || ';' ELSE 't' || {us} || ';' END"


def _sized(text: str) -> str:
    return f"'T' || strlen({text}) || ':' || {text}"


def _text(text: str, number: str, us: str) -> str:
    """The piece of text that is not NULL, of the number or moment it spells (else NULL)."""
    word = f"lower({_trim(text)})"
    clock = f"{text} < ':' AND regexp_full_match({text}, '[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}[.][0-9]+')"
    seconds = f"rtrim(rtrim({text}, '0'), '.')"
    unquoted = rf"regexp_replace(regexp_replace({text}, '[''\"]', '', 'g'), '[][\s,]+', ' ', 'g')"
    return (
        f"CASE WHEN {text} = '' THEN 'N' "
        f"WHEN {number} IS NOT NULL THEN {_number(number)} "
        f"WHEN {us} IS NOT NULL THEN {_moment(us)} "
        f"WHEN regexp_full_match({text}, '{_WORD}') THEN "
        f"CASE {word} WHEN 'true' THEN 'B1' WHEN 'false' THEN 'B0' ELSE 'N' END "
        f"WHEN {clock} THEN {_sized(seconds)} "
        f"WHEN {text} >= '[' AND {text} < '\\' THEN {_sized(unquoted)} "
        f"ELSE {_sized(text)} END"
    )


def _trim(text: str) -> str:
    """Slow, so only for text that a pattern between white space has matched."""
    return f"trim({text}, ' \t\r\n\f')"


def _parts(name: str, physical: str, alias: str) -> tuple[list[str], str]:
    """What a column's piece is made of, each named by the alias and its place, and the piece of those names."""
    kind, value, first = type_of(physical), leaf(name, physical), f"{alias}_0"
    if kind is Type.NUMBER:
        return [value], _number(first)
    if kind is Type.BOOLEAN:
        return [value], f"CASE WHEN {first} THEN 'B1' ELSE 'B0' END"
    if kind is Type.DATE:
        return [f"{value} - DATE '1970-01-01'"], f"'d' || {first} || ';'"
    if kind is Type.TIMESTAMP:
        return [f"epoch_us({value})"], _moment(first)
    text = value if kind is Type.TEXT else f"CAST({column(name)} AS VARCHAR)"
    # Every number and moment begins with a sign, point, digit or space: one comparison spares most text the rest.
    early, trimmed = f"{text} < ':' AND regexp_full_match({text}, '\\s*", _trim(text)
    number = rf"CASE WHEN {early}{_NUMBER}\s*') THEN TRY_CAST({trimmed} AS DOUBLE) END"
    moment = rf"CASE WHEN {early}{_MOMENT}\s*') THEN {moment_of(trimmed, zoned=True)} END"
    return [text, number, f"epoch_us({moment})"], _text(first, f"{alias}_1", f"{alias}_2")


def moment_of(text: str, *, zoned: bool = False) -> str:
    """SQL of the UTC timestamp that ISO text spells, NULL if there is no such day."""
    # A cast to TIMESTAMP drops offsets and digits beyond microseconds; Arrow's nanoseconds are rounded, so these are.
    # Nanoseconds reach from 1677 to 2262 only.
    moment = f"coalesce(CAST(TRY_CAST({text} AS TIMESTAMP_NS) AS TIMESTAMP), TRY_CAST({text} AS TIMESTAMP))"
    moment = f"CASE WHEN strlen({text}) > 26 THEN {moment} ELSE TRY_CAST({text} AS TIMESTAMP) END"
    if not zoned:
        return moment
    offset = f"regexp_matches({text}, '[+-][0-9]{{2}}(:?[0-9]{{2}})?$') AND strlen({text}) > 10"
    return f"CASE WHEN {offset} THEN make_timestamp(epoch_us(TRY_CAST({text} AS TIMESTAMPTZ))) ELSE {moment} END"


def _hashed(source: str, columns: Mapping[str, str], row: str = "NULL") -> str:
    """SQL of every row's `row` as r, the SHA-256 of its pieces as h, and as x a hash of what it holds exactly."""
    inner, pieces = [f"{row} AS r"], []
    for i, name in enumerate(sorted(columns)):
        parts, piece = _parts(name, columns[name], f"c{i}")
        inner += [f"{part} AS c{i}_{j}" for j, part in enumerate(parts)]
        pieces.append(f"CASE WHEN c{i}_0 IS NULL THEN 'N' ELSE {piece} END")
    exact = ", ".join(f"c{i}_0" for i in range(len(columns)))
    return (
        f"SELECT r, sha256(concat({', '.join(pieces)})) AS h, hash({exact}) AS x "
        f"FROM (SELECT {', '.join(inner)} FROM {source} AS d)"
    )


def sum_hashes(source: str, columns: Mapping[str, str]) -> str:
    """SQL of the number of rows and the two halves of the sum of 128 bits of every row's hash.

    A sum, because it does not see the order but does see duplicates; DuckDB adds 64-bit halves exactly.
    """
    return (
        "SELECT count(*), sum(CAST('0x' || h[1:16] AS UBIGINT)), sum(CAST('0x' || h[17:32] AS UBIGINT)) "
        f"FROM ({_hashed(source, columns)})"
    )


def fingerprint(columns: Mapping[str, str], rows: int, high: int, low: int) -> str:
    """The digest of the columns' names and of the multiset of rows."""
    total = (int(high) << 64) + int(low)
    return hashlib.sha256(json.dumps([VERSION, sorted(columns), rows, str(total)]).encode()).hexdigest()


def deal_rows(source: str, row: str, columns: Mapping[str, str], size: int, blocks: int, seed: str) -> str:
    """SQL of a table (row, block) that gives every block `size` rows.

    Rows are ranked by content, and the ranks are shuffled by the seed alone. Rows whose encodings merge are told
    apart by a hash of what they hold, so that their order in the file does not matter; equal rows are
    interchangeable.
    """
    hashed = _hashed(source, columns, f"d.{row}")
    ranked = f"SELECT r, row_number() OVER (ORDER BY h, x, r) AS k FROM ({hashed})"
    key = f"md5({quote_text(seed + ':')} || k)"
    shuffled = f"SELECT r, row_number() OVER (ORDER BY {key}, k) - 1 AS p FROM ({ranked})"
    block = f"CAST(p // {size:d} AS INTEGER) AS block"
    return f"SELECT r, {block} FROM ({shuffled}) WHERE p < {size * blocks:d} ORDER BY block, r"
