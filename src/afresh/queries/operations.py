"""The operations of the query language: one table, one row each.

Parsers, types, ranges, digests, refusals and dialects are derived from the rows, or checked against them by
`tests/queries/test_operations.py`. What an expression means, on every engine:

- A number is a **finite IEEE double or NULL**. NaN, an infinity in a column, and every operation whose result
  is not finite (overflow, x / 0, ln(-1), ...) give NULL. Integers and decimals are read as doubles. Zero has no
  sign that any operation could see.
- Comparisons with NULL are NULL; AND, OR, NOT are three-valued. Text compares by code point.
- A date or timestamp lies in the years 1 to 9999 of the (proleptic) Gregorian calendar; anything else in a column
  is NULL. Timestamps have microseconds and no zone (zoned ones are read in UTC).
- `least`, `greatest` and `coalesce` skip NULL. `case` takes the first condition that is true, not NULL.
- `modulo` has the sign of the dividend (C's fmod), `round` goes half away from zero, `sign(0)` is 0.
- `lower` and `upper` map the 26 letters of ASCII and nothing else: the one mapping all engines share. `length`
  and `substring` count code points, `trim` drops only spaces (U+0020).
- `like` knows `%` (any text, even across lines) and `_` (one code point) and has no escape character.
  `starts_with`, `ends_with` and `contains` compare code points; the empty text is in every text.
- `date_part` gives whole numbers: `dow` is 0 on Sunday to 6, `isodow` 1 on Monday to 7, `doy` 1 to 366, `second`
  drops the fraction, `epoch` counts whole seconds since 1970-01-01 00:00:00, rounded down. Differences of dates
  are made of these, and exact: every count of seconds fits a double.
- `to_number` reads the whole text by the grammar `NUMBER_TEXT`, to the nearest double; other text gives NULL. Its
  numbers cannot overflow or underflow, so no engine's parser can raise an error.
- `to_text` writes a whole number of at most 2^53 in plain decimal digits (-0.0 is 0); any other number gives NULL,
  because engines write fractions differently.

No row can make an expression fail: that is what lets an engine keep silent about rows.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum, StrEnum
from typing import Any, NamedTuple

from afresh.queries import ranges, values
from afresh.queries.values import Type, Value

ALL = -1


class Sort(Enum):
    """Operands that do not have one fixed type."""

    ANY = "of any type"
    ALIKE = "of one type with the others"
    ORDERED = "of one type with the others, which has an order"
    CONSTANT = "a constant of the first operand's type"
    TIME = "a date or timestamp"
    WORD = "a constant text that dialects get as it is"
    WHOLE = "a constant whole number that dialects get as it is"


class Null(Enum):
    """Where the result of an operation is NULL."""

    KEPT = "exactly where an operand is"
    MADE = "where an operand is, and where there is no result"
    DECIDED = "where an operand is, unless another decides"
    SKIPPED = "where all operands are"
    CHOSEN = "where the operand that is chosen is"
    NEVER = "nowhere"


@dataclass(frozen=True, slots=True)
class Row:
    """Everything there is to know about an operation."""

    takes: tuple[Type | Sort, ...]
    """What the operands are; the last one may be repeated if there may be `more`."""
    returns: Type | Sort
    value: Callable[..., Any]
    """The exact value for plain Python values. It gets NULL, as None, only if `null` leaves that to it."""
    null: Null = Null.KEPT
    range: ranges.Rule = ranges.anything
    """The range of a number, from those of the operands that are numbers."""
    more: bool = False
    sql: str = ""
    """The names of its nodes in sqlglot."""
    ibis: str = ""
    """The names of its nodes in Ibis."""
    sign: str = ""
    """What people write, if that is not a function with the operation's own name."""
    binds: int = 0
    """How strongly a sign between two operands binds them."""
    passes: int = 0
    """How many leading operands make IEEE's result non-finite if they are (inf / 2 is inf, but 2 / inf is 0)."""
    folds: bool = True
    """Whether questions are the same if they differ only in whether this was computed from constants in advance."""
    library: bool = False
    """Whether the last bit depends on a math library."""
    idempotent: bool = False
    """Whether f(f(x)) is f(x)."""

    @property
    def strict(self) -> bool:
        """Whether a single NULL operand makes the result NULL."""
        return self.null in (Null.KEPT, Null.MADE)

    @property
    def subject(self) -> int | None:
        """The place of the only operand that is not always a constant, if there is only one."""
        constants = (Sort.CONSTANT, Sort.WORD, Sort.WHOLE)
        places = [place for place, kind in enumerate(self.takes) if kind not in constants]
        more = self.more and self.takes[-1] not in constants
        return None if more or len(places) > 1 else places[0]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a date or timestamp, the first operand of `Op.PART`. Its range is given only if useful for clipping."""

    value: Callable[[Any], int]
    sql: str
    ibis: str
    range: ranges.Range = ranges.ANYTHING
    timed: bool = False
    """Whether only timestamps have it."""
    function: bool = True
    """Whether it is also listed as a function."""


PARTS: dict[str, Part] = {
    "year": Part(lambda when: when.year, "Year", "ExtractYear"),
    "month": Part(lambda when: when.month, "Month", "ExtractMonth", ranges.Range(1.0, 12.0)),
    "day": Part(lambda when: when.day, "Day DayOfMonth", "ExtractDay", ranges.Range(1.0, 31.0)),
    "dow": Part(lambda when: when.isoweekday() % 7, "", "", ranges.Range(0.0, 6.0), function=False),
    "isodow": Part(lambda when: when.isoweekday(), "DayOfWeekIso", "", ranges.Range(1.0, 7.0), function=False),
    "doy": Part(
        lambda when: when.timetuple().tm_yday,
        "DayOfYear",
        "ExtractDayOfYear",
        ranges.Range(1.0, 366.0),
        function=False,
    ),
    "epoch": Part(values.epoch, "TimeToUnix", "ExtractEpochSeconds", function=False),
    "hour": Part(lambda when: when.hour, "Hour", "ExtractHour", ranges.Range(0.0, 23.0), timed=True),
    "minute": Part(lambda when: when.minute, "Minute", "ExtractMinute", ranges.Range(0.0, 59.0), timed=True),
    "second": Part(lambda when: when.second, "Second", "ExtractSecond", ranges.Range(0.0, 59.0), timed=True),
}


def _part(unit: str, when: date) -> int:
    return PARTS[unit].value(when)


_B, _N, _T = Type.BOOLEAN, Type.NUMBER, Type.TEXT
_ALIKE, _ORDERED = Sort.ALIKE, Sort.ORDERED
_LIKES = "StringSQLLike StringSQLILike"
_CASES = "IfElse SearchedCase SimpleCase"


def _search(sql: str, ibis: str, value: Callable[[str, str], bool]) -> Row:
    return Row((_T, _T), _B, value, sql=sql, ibis=ibis)


def _merge(name: str, value: Callable[..., Any], rule: ranges.Rule, kind: Sort) -> Row:
    return Row((kind, kind), _ALIKE, value, Null.SKIPPED, rule, more=True, sql=name, ibis=name)


def _infix(sql: str, ibis: str, sign: str, binds: int, value: Any, rule: ranges.Rule, passes: int = ALL) -> Row:
    return Row((_N, _N), _N, value, Null.MADE, rule, sql=sql, ibis=ibis, sign=sign, binds=binds, passes=passes)


def _whole(name: str, value: Any, passes: int = ALL) -> Row:
    return Row((_N,), _N, value, range=ranges.rising(value), sql=name, ibis=name, passes=passes, idempotent=True)


def _library(
    sql: str, ibis: str, value: Any, rule: ranges.Rule, passes: int = 0, takes: tuple[Type, ...] = (_N,)
) -> Row:
    return Row(takes, _N, value, Null.MADE, rule, sql=sql, ibis=ibis, passes=passes, folds=False, library=True)


def _casting(takes: Type, returns: Type, value: Any) -> Row:
    return Row((takes,), returns, value, Null.MADE, sql="Cast TryCast", ibis="Cast TryCast", sign="CAST", folds=False)


class Op(StrEnum):
    """Every operation an engine must know. Its value appears in digests, and is its name as a function."""

    row: Row

    def __new__(cls, name: str, row: Row) -> Op:
        """A member that carries its row."""
        op = str.__new__(cls, name)
        op._value_ = name
        op.row = row
        return op

    AND = "and", Row((_B, _B), _B, values.every, Null.DECIDED, more=True, sql="And", ibis="And", sign="AND", binds=2)
    OR = "or", Row((_B, _B), _B, values.some, Null.DECIDED, more=True, sql="Or", ibis="Or", sign="OR", binds=1)
    NOT = "not", Row((_B,), _B, operator.not_, sql="Not", ibis="Not", sign="NOT")
    IS_TRUE = "is_true", Row((_B,), _B, lambda x: x is True, Null.NEVER, sql="Is", sign="IS TRUE")
    IS_NULL = (
        "is_null",
        Row((Sort.ANY,), _B, lambda x: x is None, Null.NEVER, sql="Is", ibis="IsNull NotNull", sign="IS NULL"),
    )
    EQUAL = "equal", Row((_ALIKE, _ALIKE), _B, operator.eq, sign="=", binds=4)  # names are in COMPARISONS
    LESS = "less", Row((_ORDERED, _ORDERED), _B, operator.lt, sign="<", binds=4)
    LESS_EQUAL = "less_equal", Row((_ORDERED, _ORDERED), _B, operator.le, sign="<=", binds=4)
    IN = "in", Row((_ALIKE, Sort.CONSTANT), _B, lambda x, *of: x in of, more=True, sql="In", ibis="InValues", sign="IN")
    LIKE = (
        "like",
        Row((_T, Sort.WORD), _B, values.like, sql="Like ILike", ibis=_LIKES, sign="LIKE", binds=4, folds=False),
    )
    STARTS_WITH = "starts_with", _search("StartsWith", "StartsWith", str.startswith)
    ENDS_WITH = "ends_with", _search("EndsWith", "EndsWith", str.endswith)
    CONTAINS = "contains", _search("Contains", "StringContains", str.__contains__)
    # condition, result, condition, result, ..., default
    CASE = (
        "case",
        Row(
            (_B, _ALIKE, _ALIKE), _ALIKE, values.chosen, Null.CHOSEN, ranges.union, sql="Case", ibis=_CASES, sign="CASE"
        ),
    )
    COALESCE = "coalesce", _merge("Coalesce", lambda *there: there[0], ranges.first, _ALIKE)
    LEAST = "least", _merge("Least", lambda *there: min(there), ranges.least, _ORDERED)
    GREATEST = "greatest", _merge("Greatest", lambda *there: max(there), ranges.greatest, _ORDERED)
    ADD = "add", _infix("Add", "Add", "+", 5, operator.add, ranges.corners(operator.add))
    SUBTRACT = "subtract", _infix("Sub", "Subtract", "-", 5, operator.sub, ranges.corners(operator.sub))
    MULTIPLY = "multiply", _infix("Mul", "Multiply", "*", 6, operator.mul, ranges.times)
    DIVIDE = "divide", _infix("Div", "Divide", "/", 6, operator.truediv, ranges.divide, 1)
    MODULO = "modulo", _infix("Mod", "Modulus", "%", 6, math.fmod, ranges.modulo, 1)
    POWER = "power", _library("Pow", "Power", math.pow, ranges.power, takes=(_N, _N))
    NEGATE = (
        "negate",
        Row((_N,), _N, operator.neg, range=ranges.opposite, sql="Neg", ibis="Negate", sign="-", passes=ALL),
    )
    ABS = "abs", Row((_N,), _N, abs, range=ranges.absolute, sql="Abs", ibis="Abs", passes=ALL, idempotent=True)
    SIGN = "sign", _whole("Sign", lambda x: (x > 0) - (x < 0), 0)
    FLOOR = "floor", _whole("Floor", math.floor)
    CEIL = "ceil", _whole("Ceil", math.ceil)
    ROUND = "round", _whole("Round", values.round_half_away)
    EXP = "exp", _library("Exp", "Exp", math.exp, ranges.rising(math.exp))
    LN = "ln", _library("Ln", "Ln", math.log, ranges.rising(math.log, 0.0), ALL)
    LOG10 = "log10", _library("Log", "Log10", math.log10, ranges.rising(math.log10, 0.0), ALL)
    SQRT = (
        "sqrt",
        Row((_N,), _N, math.sqrt, Null.MADE, ranges.rising(math.sqrt, 0.0), sql="Sqrt", ibis="Sqrt", passes=ALL),
    )
    LOWER = "lower", Row((_T,), _T, values.lower, sql="Lower", ibis="Lowercase", idempotent=True)
    UPPER = "upper", Row((_T,), _T, values.upper, sql="Upper", ibis="Uppercase", idempotent=True)
    TRIM = "trim", Row((_T,), _T, lambda x: x.strip(" "), sql="Trim", folds=False, idempotent=True)
    # from a start, counted from 1, and perhaps only a number of characters
    SUBSTRING = (
        "substring",
        Row((_T, Sort.WHOLE), _T, values.substring, more=True, sql="Substring", ibis="Substring", folds=False),
    )
    LENGTH = "length", Row((_T,), _N, len, range=ranges.counts, sql="Length", ibis="StringLength", folds=False)
    TO_NUMBER = "to_number", _casting(_T, _N, values.to_number)
    TO_TEXT = "to_text", _casting(_N, _T, values.to_text)
    # its range is that of the part; other names are in PARTS
    PART = "date_part", Row((Sort.WORD, Sort.TIME), _N, _part, sql="Extract", folds=False)

    @property
    def word(self) -> str:
        """The name used in messages."""
        return self.row.sign or self.value

    def evaluate(self, *args: Value) -> Any:
        """Return the value for plain Python values, exactly as the language defines it; None is NULL."""
        if self.row.strict and None in args:
            return None
        if self.row.null is Null.SKIPPED:
            args = tuple(arg for arg in args if arg is not None)
            if not args:
                return None
        try:
            value = self.row.value(*args)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        if self.row.returns is not Type.NUMBER or value is None:
            return value
        number = float(value)
        return number if math.isfinite(number) else None


class Comparison(NamedTuple):
    """A sign, in terms of one of the three operations that compare."""

    op: Op
    swapped: bool
    negated: bool
    sql: str
    ibis: str


COMPARISONS = {
    "=": Comparison(Op.EQUAL, False, False, "EQ", "Equals"),
    "<>": Comparison(Op.EQUAL, False, True, "NEQ", "NotEquals"),
    "<": Comparison(Op.LESS, False, False, "LT", "Less"),
    "<=": Comparison(Op.LESS_EQUAL, False, False, "LTE", "LessEqual"),
    ">": Comparison(Op.LESS, True, False, "GT", "Greater"),
    ">=": Comparison(Op.LESS_EQUAL, True, False, "GTE", "GreaterEqual"),
}


class Spelling(NamedTuple):
    """Something that parsers write out in operations."""

    sql: str
    ibis: str
    function: bool = True


SPELLINGS = {
    "BETWEEN": Spelling("Between", "Between", False),
    "cast": Spelling("Cast", "Cast"),
    "try_cast": Spelling("TryCast", "TryCast"),
    "nullif": Spelling("Nullif", "NullIf"),
    "left": Spelling("Left", ""),
    "extract": Spelling("Extract", ""),
    "quarter": Spelling("Quarter", "ExtractQuarter"),
    "date_diff": Spelling("DateDiff", "DateDelta TimestampDelta"),
    "a - b of dates": Spelling("Sub", "DateDiff", False),
    "isodow - 1": Spelling("", "DayOfWeekIndex", False),
}

FUNCTIONS = sorted(
    {op.value for op in Op if not op.row.sign}
    | {name for name, part in PARTS.items() if part.function}
    | {name for name, spelling in SPELLINGS.items() if spelling.function}
)
"""The names of functions that refusals offer."""
