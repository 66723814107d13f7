"""What questions mean in Postgres's SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from functools import cache

from afresh.engines.sql import postgres_math
from afresh.engines.sql.postgres_math import double
from afresh.engines.sql.rendering import COMMON, Rule, form, listed, quoted
from afresh.errors import QueryError
from afresh.queries.tree import Op, Type
from afresh.queries.values import LARGEST_WHOLE, NUMBER_TEXT

TEXTUAL = "text of "  # precedes the name of an enum or another text type, which alone does not show it
_INTEGERS = ("smallint", "integer", "bigint")
_FLOATS = ("real", "double precision")
_TEXTS = ("text", "character varying", "character", "uuid")
_TIMES = {
    "boolean": Type.BOOLEAN,
    "date": Type.DATE,
    "timestamp without time zone": Type.TIMESTAMP,
    "timestamp with time zone": Type.TIMESTAMP,
}


def quote_name(name: str) -> str:
    """An identifier that means itself, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(value: str) -> str:
    """A string constant that means itself, and compares by code point, whatever the database's collation.

    The engine's sessions have `standard_conforming_strings` on.
    """
    if "\0" in value:
        raise QueryError("a question cannot contain text with a NUL character")
    return f'(text {quoted(value)} COLLATE "C")'


def _part(args: Sequence[str]) -> str:
    unit, when = args
    # whole seconds first: before version 14 parts are doubles, too narrow for microseconds
    return f"extract({unit} FROM date_trunc('second', {when}::timestamp))::float8"


_NUMBER = quoted(f"^({NUMBER_TEXT})$")
_WHOLE = f"abs({{0}}) <= {double(LARGEST_WHOLE)} AND floor({{0}}) = {{0}}"

RULES: dict[Op, Rule] = {
    **{op: Rule(rule.write) for op, rule in COMMON.items()},  # lower and upper know only ASCII, in the collation "C"
    # without backtracking: if the rest of a pattern runs out of text, Postgres gives up at every % before it
    Op.LIKE: Rule(lambda args: f"({args[0]} LIKE {quote_text(args[1])} ESCAPE '')"),
    Op.ENDS_WITH: Rule(form("(right({0}, char_length({1})) = {1})"), repeats=True),
    Op.CONTAINS: Rule(form("(strpos({0}, {1}) > 0)")),
    Op.ADD: Rule(postgres_math.add, repeats=True),
    Op.SUBTRACT: Rule(postgres_math.subtract, repeats=True),
    Op.MULTIPLY: Rule(postgres_math.multiply, repeats=True),
    Op.DIVIDE: Rule(postgres_math.divide, repeats=True),
    Op.MODULO: Rule(postgres_math.modulo, repeats=True),
    Op.POWER: Rule(postgres_math.power, repeats=True),
    Op.ROUND: Rule(postgres_math.round_half_away, repeats=True),
    Op.EXP: Rule(postgres_math.exp, repeats=True),
    Op.LN: Rule(form(f"(CASE WHEN {{0}} > {double(0.0)} THEN ln({{0}}) END)"), repeats=True),
    Op.LOG10: Rule(form(f"(CASE WHEN {{0}} > {double(0.0)} THEN log({{0}}) END)"), repeats=True),
    Op.SQRT: Rule(form(f"(CASE WHEN {{0}} >= {double(0.0)} THEN sqrt({{0}}) END)"), repeats=True),
    Op.TRIM: Rule(form("btrim({0}, ' ')")),
    Op.SUBSTRING: Rule(listed("substr")),
    Op.LENGTH: Rule(form("char_length({0})::float8")),
    Op.TO_NUMBER: Rule(lambda args: f"(CASE WHEN {args[0]} ~ {_NUMBER} THEN {args[0]}::float8 END)", repeats=True),
    Op.TO_TEXT: Rule(form(f'(CASE WHEN {_WHOLE} THEN {{0}}::bigint::text COLLATE "C" END)'), repeats=True),
    Op.PART: Rule(_part),
}


class PostgresDialect:
    """Postgres's SQL: every operation on finite numbers gives a finite number or NULL; see `postgres_math`."""

    rules: Mapping[Op, Rule] = RULES
    types: Mapping[Type, str] = {
        Type.BOOLEAN: "boolean",
        Type.NUMBER: "float8",
        Type.TEXT: "text",
        Type.DATE: "date",
        Type.TIMESTAMP: "timestamp",
    }
    double = staticmethod(double)
    quote_text = staticmethod(quote_text)

    def kind(self, physical: str) -> Type | None:
        """Return the type questions see for a type as `format_type` writes it."""
        plain = physical.partition("(")[0]
        if plain in (*_INTEGERS, *_FLOATS, "numeric"):
            return Type.NUMBER
        if plain in _TEXTS or physical.startswith(TEXTUAL):
            return Type.TEXT
        # a precision stands in the middle: timestamp(3) without time zone
        return _TIMES.get("".join(part.rpartition(")")[2] for part in physical.split("(")))

    def leaf(self, name: str, physical: str) -> str:
        """A column as questions see it. Text is compared by code point, whatever the column's collation."""
        this, kind = self.bare(name, physical), self.kind(physical)
        if kind is Type.TEXT:
            return f'{this}::text COLLATE "C"'
        if physical.startswith("numeric"):
            return _numeric(this, physical)
        if kind is Type.NUMBER:
            return f"{this}::float8"
        if kind is Type.DATE:
            return f"CASE WHEN {this} BETWEEN '0001-01-01' AND '9999-12-31' THEN {this} END"
        if kind is Type.TIMESTAMP:
            limits = "timestamp '0001-01-01 00:00:00' AND timestamp '9999-12-31 23:59:59.999999'"
            return f"CASE WHEN {this} BETWEEN {limits} THEN {this} END"
        return this

    def bare(self, name: str, physical: str) -> str:
        """A timestamp that may lie beyond the years of the language, or a column as it is stored."""
        zoned = physical.startswith("timestamp") and physical.endswith("with time zone")
        return f"{_column(name)} AT TIME ZONE 'UTC'" if zoned else _column(name)

    def wild(self, physical: str) -> bool:
        """Whether a leaf of this type can be NaN or infinite."""
        return physical in _FLOATS

    def is_finite(self, name: str) -> str:
        """The condition that a named number is finite; NaN is above everything."""
        return f"abs({name}) < float8 'infinity'"

    def count_if(self, condition: str, *, several: bool) -> str:
        """The aggregate that counts the rows where a condition, perhaps one of several parts, is true."""
        return f"count(*) FILTER (WHERE {condition})"

    def digest(self, text: str) -> str:
        """A text's SHA-256 in hexadecimal."""
        return f"encode(sha256(convert_to({text}, 'UTF8')), 'hex') COLLATE \"C\""


def _column(name: str) -> str:
    return "d." + quote_name(name)


@cache
def _limits() -> tuple[str, str]:
    """The ends of the decimals that round to a non-zero finite double."""
    digits = Context(prec=2000, Emin=-3000, Emax=3000)
    return str(2**1024 - 2**970), str(digits.power(Decimal(2), -1075))


def _numeric(this: str, physical: str) -> str:
    """A decimal as a double. One declared numeric(p, s) fits; others may be too large or too small to convert."""
    if "(" in physical:
        precision, scale = (int(part) for part in physical.partition("(")[2].rstrip(")").split(","))
        if precision - scale <= 308 and scale <= 307:
            return f"CASE WHEN {this} <> 'NaN' THEN {this}::float8 END"
    high, low = _limits()
    return (
        f"CASE WHEN abs({this}) BETWEEN 1e-300 AND 1e300 THEN {this}::float8 WHEN abs({this}) >= {high} THEN NULL "
        f"WHEN abs({this}) > {low} THEN {this}::float8 "
        f"WHEN {this} IS NOT NULL THEN {double(0.0)} END"
    )
