"""What questions mean in DuckDB's SQL, written so no row can make it fail.

DuckDB's doubles follow IEEE 754: overflow, x / 0, ln(-1) give an infinity or NaN, never an error. A tree's
numbers are finite or NULL, so those values must become NULL before anything can see them. Operations that keep a
non-finite operand non-finite (+, *, abs, ...) let it pass, so most expressions need one layer or none.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence

from afresh.engines.sql.rendering import COMMON, Rule, Write, form, pattern, quoted
from afresh.errors import QueryError
from afresh.queries.tree import Op, Type
from afresh.queries.values import LARGEST_WHOLE, NUMBER_TEXT, SQL_TYPES

_INTEGERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_ZONED = "TIMESTAMP WITH TIME ZONE"


def type_of(physical: str) -> Type | None:
    """The type questions see for a DuckDB type; None if they cannot use it."""
    if physical in _INTEGERS or physical in ("FLOAT", "DOUBLE") or physical.startswith("DECIMAL("):
        return Type.NUMBER
    if physical in ("VARCHAR", "UUID") or physical.startswith("ENUM("):
        return Type.TEXT
    if physical in _TIMESTAMPS or physical == _ZONED:
        return Type.TIMESTAMP
    return {"BOOLEAN": Type.BOOLEAN, "DATE": Type.DATE}.get(physical)


def leaf(name: str, physical: str) -> str:
    """A column as questions see it; a number may still be non-finite."""
    this, kind = bare(name, physical), type_of(physical)
    if kind is Type.NUMBER:
        return this if physical == "DOUBLE" else f"CAST({this} AS DOUBLE)"
    if kind is Type.TEXT:
        return this if physical == "VARCHAR" else f"CAST({this} AS VARCHAR)"
    if kind is Type.DATE:
        return f"CASE WHEN {this} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {this} END"
    if kind is Type.TIMESTAMP:
        limits = "TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
        return f"CASE WHEN {this} BETWEEN {limits} THEN {this} END"
    return this


def bare(name: str, physical: str) -> str:
    """A timestamp that may lie beyond the years of the language, or a column as it is stored."""
    this = column(name)
    if physical == _ZONED:  # a plain cast would read the session's time zone
        return f"CASE WHEN isfinite({this}) THEN make_timestamp(epoch_us({this})) END"
    return f"TRY_CAST({this} AS TIMESTAMP)" if physical in _TIMESTAMPS else this


def exact(name: str, physical: str) -> str:
    """A column as questions see it, except that integers keep their type; other numbers may still be non-finite."""
    return column(name) if _is_small(physical) else leaf(name, physical)


def clean(name: str, physical: str) -> str:
    """A column as questions see it, except that integers keep their type; other numbers are finite or NULL."""
    this = exact(name, physical)
    wild = type_of(physical) is Type.NUMBER and not _is_small(physical)
    return f"CASE WHEN isfinite({this}) THEN {this} END" if wild else this


def _is_small(physical: str) -> bool:
    """Whether it is an integer type of at most 64 bits, whose values are always finite as doubles."""
    return physical in _INTEGERS and not physical.endswith("HUGEINT")


def column(name: str) -> str:
    """A column of the scanned relation, which is always called d: our own names cannot be mistaken for it."""
    return "d." + quote_name(name)


def quote_name(name: str) -> str:
    """An identifier that means itself, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A string constant that means itself."""
    if "\0" in text:
        raise QueryError("a question cannot contain text with a NUL character")
    return quoted(text)


def double(value: float) -> str:
    """A finite double, exactly; the exponent keeps DuckDB from reading it as a DECIMAL."""
    text = repr(value)
    text = text if "e" in text else text + "e0"
    return f"({text})" if value < 0 else text


def _mapped(function: str, old: str, new: str) -> Write:
    """Map ASCII letters only. DuckDB's own functions map more, but not in a text with as many bytes as code points;
    they are used for such texts, because translate is forty times as slow.
    """
    return form(
        f"CASE WHEN strlen({{0}}) = length({{0}}) THEN {function}({{0}}) ELSE translate({{0}}, '{old}', '{new}') END"
    )


def _to_number(args: Sequence[str]) -> str:
    (name,) = args
    return f"CASE WHEN regexp_full_match({name}, {quote_text(NUMBER_TEXT)}) THEN TRY_CAST({name} AS DOUBLE) END"


def _like(args: Sequence[str]) -> str:
    """LIKE without backtracking in any version of DuckDB: 2.0 has none, but that is not documented.

    For several % together with a _, its regular expressions are safe: RE2 passes over the text once.
    """
    text, like = args
    if "_" not in like or len(re.findall("%+", like)) < 2:
        return f"({text} LIKE {quote_text(like)})"
    return f"regexp_full_match({text}, {quote_text(pattern(like, '.*', re.escape))}, 's')"


def _part(args: Sequence[str]) -> str:
    unit, when = args
    if unit == "epoch":  # whole seconds first: microseconds do not fit a double
        return f"epoch(date_trunc('second', {when}))"
    return f"CAST(date_part('{unit}', {when}) AS DOUBLE)"


_WHOLE = f"abs({{0}}) <= {double(LARGEST_WHOLE)} AND floor({{0}}) = {{0}}"
_UPPER, _LOWER = string.ascii_uppercase, string.ascii_lowercase

RULES: dict[Op, Rule] = {
    **COMMON,
    Op.LIKE: Rule(_like),
    Op.SIGN: Rule(form("CAST(sign({0}) AS DOUBLE)")),
    Op.LOWER: Rule(_mapped("lower", _UPPER, _LOWER), repeats=True),
    Op.UPPER: Rule(_mapped("upper", _LOWER, _UPPER), repeats=True),
    Op.TRIM: Rule(form("trim({0}, ' ')")),
    Op.LENGTH: Rule(form("CAST(length({0}) AS DOUBLE)")),
    Op.TO_NUMBER: Rule(_to_number, repeats=True),
    Op.TO_TEXT: Rule(form(f"CASE WHEN {_WHOLE} THEN CAST(TRY_CAST({{0}} AS BIGINT) AS VARCHAR) END"), repeats=True),
    Op.PART: Rule(_part),
}


class DuckDBDialect:
    """DuckDB's SQL."""

    rules: Mapping[Op, Rule] = RULES
    types: Mapping[Type, str] = SQL_TYPES
    kind = staticmethod(type_of)
    leaf = staticmethod(leaf)
    bare = staticmethod(bare)
    double = staticmethod(double)
    quote_text = staticmethod(quote_text)

    def wild(self, physical: str) -> bool:
        """Whether a leaf of this type can be NaN or infinite."""
        return physical in ("FLOAT", "DOUBLE")

    def is_finite(self, name: str) -> str:
        """The condition that a named number is finite; not true for NULL."""
        return f"isfinite({name})"

    def count_if(self, condition: str, *, several: bool) -> str:
        """The aggregate that counts the rows where a condition, perhaps one of several parts, is true."""
        # Each form is up to three times as fast as the other in its case.
        if several:  # CASE tests the second part only if the first holds
            return f"sum(CASE WHEN {condition} THEN 1 ELSE 0 END)"
        return f"count_if({condition})"
