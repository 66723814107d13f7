"""What questions mean, in Spark's SQL, whatever the session's settings.

The data belong to a session of the user's, which is not ours to change. So nothing here depends on ANSI mode, the
session's time zone or how it reads string constants: divisions are `try_`, timestamps are read as UTC without a zone,
constants carry their type, and text that needs quoting is written in bytes.

Spark's doubles follow IEEE 754 as DuckDB's do, except that a zero divisor and logarithms of what has none give NULL
at once. NaN equals itself and is above everything; it never gets that far, as numbers are finite or NULL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache

from afresh.engines import casing
from afresh.engines.rendering import COMMON, Rule, Write, form, infix, listed
from afresh.queries.tree import Literal, Op, Type

_NUMBERS = {"tinyint", "smallint", "int", "bigint", "float", "double"}
_OTHERS = {
    "boolean": Type.BOOLEAN,
    "date": Type.DATE,
    "timestamp": Type.TIMESTAMP,
    "timestamp_ntz": Type.TIMESTAMP,
}
_SQL_TYPE = {
    Type.BOOLEAN: "BOOLEAN",
    Type.NUMBER: "DOUBLE",
    Type.TEXT: "STRING",
    Type.DATE: "DATE",
    Type.TIMESTAMP: "TIMESTAMP_NTZ",
}
_EPOCH = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_ALL = -1


def quote_name(name: str) -> str:
    """An identifier that means itself, whatever it contains."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A string constant that means itself; its bytes, where quotes or backslashes could be read in several ways."""
    if re.fullmatch(r"[A-Za-z0-9 _.,:%-]*", text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def double(value: float) -> str:
    """A finite double, exactly."""
    return f"({value!r}D)" if value < 0 else f"{value!r}D"


@cache
def _translate(upper: bool) -> Write:
    before, after = casing.upper() if upper else casing.lower()
    return form(f"translate({{0}}, {quote_text(before)}, {quote_text(after)})")


def _like(args: Sequence[str]) -> str:
    """LIKE without an escape character: one must be named, so it is one that the constant pattern does not have."""
    pattern = args[1]
    if hexadecimal := re.fullmatch(r"CAST\(X'([0-9a-f]*)' AS STRING\)", pattern):
        pattern = bytes.fromhex(hexadecimal[1]).decode()
    escape = next(char for char in map(chr, range(0x4E00, 0x9FFF)) if char not in pattern)
    return f"({args[0]} LIKE {args[1]} ESCAPE '{escape}')"


# Spark's own of these give a BIGINT, which a double may not fit; from 2^52 on a double is whole
_WHOLE = f"(CASE WHEN abs({{0}}) < {double(2.0**52)} THEN CAST(%s({{0}}) AS DOUBLE) ELSE {{0}} END)"

RULES: dict[Op, Rule] = {
    **COMMON,
    Op.LIKE: Rule(_like),
    Op.ADD: Rule(infix("+"), wild=True, passes=_ALL),
    Op.SUBTRACT: Rule(infix("-"), wild=True, passes=_ALL),
    Op.MULTIPLY: Rule(infix("*"), wild=True, passes=_ALL),
    Op.DIVIDE: Rule(listed("try_divide"), wild=True, passes=1),
    Op.MODULO: Rule(listed("try_mod"), passes=1),
    Op.POWER: Rule(listed("power"), wild=True),
    Op.FLOOR: Rule(form(_WHOLE % "floor"), repeats=True, passes=_ALL),
    Op.CEIL: Rule(form(_WHOLE % "ceil"), repeats=True, passes=_ALL),
    Op.ROUND: Rule(form(_WHOLE % "round"), repeats=True, passes=_ALL),
    Op.EXP: Rule(listed("exp"), wild=True),
    Op.LN: Rule(listed("ln"), passes=_ALL),
    Op.LOG10: Rule(listed("log10"), passes=_ALL),
    Op.SQRT: Rule(listed("sqrt"), wild=True, passes=_ALL),
    Op.LOWER: Rule(lambda args: _translate(False)(args)),
    Op.UPPER: Rule(lambda args: _translate(True)(args)),
    Op.TRIM: Rule(form("trim(BOTH ' ' FROM {0})")),
    Op.LENGTH: Rule(form("CAST(char_length({0}) AS DOUBLE)")),
}


def _micros(moment: str) -> str:
    """Microseconds since 1970 of a timestamp without a zone; `timestampdiff` would read the session's."""
    seconds = f"CAST(hour({moment}) * 3600 + minute({moment}) * 60 AS BIGINT) * 1000000"
    days = f"CAST(unix_date(CAST({moment} AS DATE)) AS BIGINT) * 86400000000"
    return f"{days} + {seconds} + CAST(extract(SECOND FROM {moment}) * 1000000 AS BIGINT)"


class SparkDialect:
    """Spark's SQL, from version 4.0 on."""

    rules: Mapping[Op, Rule] = RULES

    def kind(self, physical: str) -> Type | None:
        """The type questions see for a type as Spark's `simpleString` writes it."""
        plain = re.split(r"[( ]", physical)[0]
        if plain in _NUMBERS or plain == "decimal":
            return Type.NUMBER
        if plain in ("string", "varchar", "char"):
            return Type.TEXT
        return _OTHERS.get(physical)

    def column(self, name: str) -> str:
        """A column of the scanned relation, which is always called d."""
        return "d." + quote_name(name)

    def leaf(self, name: str, physical: str) -> str:
        """A column as questions see it."""
        this, kind = self.column(name), self.kind(physical)
        if physical in ("float", "double"):
            return self.finite(f"CAST({this} AS DOUBLE)")
        if kind is Type.NUMBER:
            return f"CAST({this} AS DOUBLE)"
        if kind is Type.TEXT:
            return this if physical == "string" else f"collate(CAST({this} AS STRING), 'UTF8_BINARY')"
        if physical == "timestamp":  # a cast would read the session's time zone
            return f"timestampadd(MICROSECOND, unix_micros({this}), {_EPOCH})"
        return this

    def constant(self, node: Literal) -> str:
        """A constant of the node's own type."""
        value = node.value
        if value is None:
            return f"CAST(NULL AS {_SQL_TYPE[node.type]})"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, float):
            return double(value)
        if isinstance(value, str):
            return quote_text(value)
        moment = isinstance(value, datetime)
        return f"{'TIMESTAMP_NTZ' if moment else 'DATE'} '{value.isoformat(*[' '] if moment else [])}'"

    def double(self, value: float) -> str:
        """A finite double, exactly."""
        return double(value)

    def finite(self, name: str) -> str:
        """A number, NULL unless it is finite; NaN is above everything."""
        return f"(CASE WHEN abs({name}) <= {double(1.7976931348623157e308)} THEN {name} END)"

    def count_if(self, condition: str) -> str:
        """The aggregate that counts the rows where a condition is true."""
        return f"count_if({condition})"

    def opaque(self, name: str, physical: str) -> str:
        """The text of a column no question can use."""
        return f"hex({self.column(name)})" if physical == "binary" else f"CAST({self.column(name)} AS STRING)"

    def row_hash(self, values: Mapping[str, Type | None]) -> str:
        """A row's SHA-256 in hexadecimal, of the text that `content` defines."""
        return f"sha2(concat({', '.join(_content(name, kind) for name, kind in values.items())}), 256)"

    def shuffled(self, seed: str, rank: str) -> str:
        """MD5, in hexadecimal, of the seed, a colon and a rank."""
        return f"md5(concat({quote_text(seed + ':')}, {rank}))"


def _content(value: str, kind: Type | None) -> str:
    """The piece of a row's text that a named value is."""
    if kind is Type.NUMBER:
        bits = f"java_method('java.lang.Double', 'doubleToLongBits', {value})"
        return (
            f"CASE WHEN {value} IS NULL THEN 'N' WHEN {value} = {double(0.0)} THEN 'D0;' "
            f"ELSE concat('D', {bits}, ';') END"
        )
    if kind is Type.BOOLEAN:
        return f"CASE WHEN {value} THEN 'B1' WHEN NOT {value} THEN 'B0' ELSE 'N' END"
    if kind is Type.DATE:
        return f"coalesce(concat('d', unix_date({value}), ';'), 'N')"
    if kind is Type.TIMESTAMP:
        return f"coalesce(concat('t', {_micros(value)}, ';'), 'N')"
    return f"coalesce(concat('T', octet_length({value}), ':', {value}), 'N')"
