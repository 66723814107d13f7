"""What questions mean in Spark's SQL, whatever the session's settings.

The data belongs to the user's session, which is not ours to change. So nothing here depends on ANSI mode, the
session's time zone or how it reads string constants: divisions are `try_`, timestamps are read as UTC without a zone,
constants carry their type, and text that needs quoting is written in bytes.

Spark's doubles follow IEEE 754 as DuckDB's do, except that a zero divisor and the logarithm of a number that has none
give NULL at once. NaN equals itself and is above everything; it never gets that far, as numbers are finite or NULL.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence

from afresh.engines.sql.rendering import COMMON, Rule, form, listed, pattern
from afresh.queries.operations import ALL
from afresh.queries.tree import Op, Type
from afresh.queries.values import LARGEST_WHOLE, NUMBER_TEXT

_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_NUMBERS = {*_INTEGERS, "float", "double"}
_OTHERS = {
    "boolean": Type.BOOLEAN,
    "date": Type.DATE,
    "timestamp": Type.TIMESTAMP,
    "timestamp_ntz": Type.TIMESTAMP,
}


def quote_name(name: str) -> str:
    """An identifier that means itself, whatever it contains."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """A string constant that means itself, as bytes if quotes or backslashes could be read in several ways."""
    if re.fullmatch(r"[A-Za-z0-9 _.,:%-]*", text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def double(value: float) -> str:
    """A finite double, exactly."""
    return f"({value!r}D)" if value < 0 else f"{value!r}D"


def _like(args: Sequence[str]) -> str:
    """LIKE without backtracking; for Spark's own LIKE, Java would try all places for every %.

    The first place where a piece is found is as good as any later one, so each is searched for once, in an atomic
    group, from where the previous one ended; the last must be at the end.
    """
    text, like = args
    first, *others = (pattern(piece, "", re.escape) for piece in re.split("%+", like))
    between, last = others[:-1], others[-1:]
    regex = rf"(?s)\A{first}" + "".join(f"(?>.*?{piece})" for piece in between)
    regex += rf".*{last[0]}\z" if last and last[0] else "" if last else r"\z"
    return f"({text} RLIKE {quote_text(regex)})"


def _part(args: Sequence[str]) -> str:
    """A part of a value cast to a timestamp without a zone: a date's hours would be read in the session's zone."""
    unit, when = args[0], f"CAST({args[1]} AS TIMESTAMP_NTZ)"
    return f"CAST({_PARTS.get(unit, f'{unit}({{0}})').format(when)} AS DOUBLE)"


# Spark's own functions give a BIGINT, which a double may not fit; from 2^52 on a double is whole
_WHOLE = f"(CASE WHEN abs({{0}}) < {double(2.0**52)} THEN CAST(%s({{0}}) AS DOUBLE) ELSE {{0}} END)"

# Java's patterns: $ would also match before a newline at the end
_NUMBER = quote_text(rf"\A({NUMBER_TEXT})\z")
_SECONDS = "hour({0}) * 3600 + minute({0}) * 60 + second({0})"
_PARTS = {
    "dow": "dayofweek({0}) - 1",
    "isodow": "weekday({0}) + 1",
    "doy": "dayofyear({0})",
    "epoch": f"CAST(unix_date(CAST({{0}} AS DATE)) AS BIGINT) * 86400 + {_SECONDS}",
}
_UPPER, _LOWER = string.ascii_uppercase, string.ascii_lowercase

RULES: dict[Op, Rule] = {
    **COMMON,
    Op.LIKE: Rule(_like),
    Op.STARTS_WITH: Rule(listed("startswith")),
    Op.ENDS_WITH: Rule(listed("endswith")),
    Op.DIVIDE: Rule(listed("try_divide"), wild=True, passes=1),
    Op.MODULO: Rule(listed("try_mod"), passes=1),
    Op.FLOOR: Rule(form(_WHOLE % "floor"), repeats=True, passes=ALL),
    Op.CEIL: Rule(form(_WHOLE % "ceil"), repeats=True, passes=ALL),
    Op.ROUND: Rule(form(_WHOLE % "round"), repeats=True, passes=ALL),
    Op.LN: Rule(listed("ln"), passes=ALL),
    Op.LOG10: Rule(listed("log10"), passes=ALL),
    Op.LOWER: Rule(form(f"translate({{0}}, '{_UPPER}', '{_LOWER}')")),
    Op.UPPER: Rule(form(f"translate({{0}}, '{_LOWER}', '{_UPPER}')")),
    Op.TRIM: Rule(form("trim(BOTH ' ' FROM {0})")),
    Op.LENGTH: Rule(form("CAST(char_length({0}) AS DOUBLE)")),
    Op.TO_NUMBER: Rule(
        lambda args: f"(CASE WHEN {args[0]} RLIKE {_NUMBER} THEN try_cast({args[0]} AS DOUBLE) END)", repeats=True
    ),
    Op.TO_TEXT: Rule(
        form(
            f"(CASE WHEN abs({{0}}) <= {double(LARGEST_WHOLE)} AND try_cast({{0}} AS BIGINT) = {{0}} "
            "THEN CAST(try_cast({0} AS BIGINT) AS STRING) END)"
        ),
        repeats=True,
    ),
    Op.PART: Rule(_part, repeats=True),
}


class SparkDialect:
    """Spark's SQL, from version 4.0 on."""

    rules: Mapping[Op, Rule] = RULES
    types: Mapping[Type, str] = {
        Type.BOOLEAN: "BOOLEAN",
        Type.NUMBER: "DOUBLE",
        Type.TEXT: "STRING",
        Type.DATE: "DATE",
        Type.TIMESTAMP: "TIMESTAMP_NTZ",
    }
    double = staticmethod(double)
    quote_text = staticmethod(quote_text)

    def kind(self, physical: str) -> Type | None:
        """Return the type questions see for a type as Spark's `simpleString` writes it."""
        plain = re.split(r"[( ]", physical)[0]
        if plain in _NUMBERS or plain == "decimal":
            return Type.NUMBER
        if plain in ("string", "varchar", "char"):
            return Type.TEXT
        return _OTHERS.get(physical)

    def leaf(self, name: str, physical: str) -> str:
        """A column as questions see it."""
        this, kind = self.bare(name, physical), self.kind(physical)
        if kind is Type.NUMBER:
            return f"CAST({this} AS DOUBLE)"
        if kind is Type.TEXT:
            return this if physical == "string" else f"collate(CAST({this} AS STRING), 'UTF8_BINARY')"
        if kind is Type.DATE:
            return f"CASE WHEN {this} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {this} END"
        if kind is Type.TIMESTAMP:
            limits = "TIMESTAMP_NTZ '0001-01-01 00:00:00' AND TIMESTAMP_NTZ '9999-12-31 23:59:59.999999'"
            return f"CASE WHEN {this} BETWEEN {limits} THEN {this} END"
        return this

    def bare(self, name: str, physical: str) -> str:
        """A timestamp that may lie beyond the years of the language, or a column as it is stored."""
        if physical != "timestamp":
            return _column(name)
        # a cast would read the session's time zone
        return f"timestampadd(MICROSECOND, unix_micros({_column(name)}), TIMESTAMP_NTZ '1970-01-01 00:00:00')"

    def wild(self, physical: str) -> bool:
        """Whether a leaf of this type can be NaN or infinite."""
        return physical in ("float", "double")

    def is_finite(self, name: str) -> str:
        """The condition that a named number is finite; NaN is above everything."""
        return f"abs({name}) <= {double(1.7976931348623157e308)}"

    def count_if(self, condition: str, *, several: bool) -> str:
        """The aggregate that counts the rows where a condition, perhaps one of several parts, is true."""
        return f"count_if({condition})"

    def digest(self, text: str) -> str:
        """A text's SHA-256 in hexadecimal."""
        return f"sha2({text}, 256)"


def _column(name: str) -> str:
    return "d." + quote_name(name)
