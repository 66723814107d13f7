"""Turns Ibis expressions into expression trees, node by node through an allowlist, without SQL text in between."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import partial
from typing import Any

from afresh.errors import QueryError
from afresh.queries import build, refusals
from afresh.queries.casts import cast
from afresh.queries.columns import Columns
from afresh.queries.dates import difference, minus, part
from afresh.queries.operations import COMPARISONS, PARTS
from afresh.queries.syntax import TOO_DEEP
from afresh.queries.tree import Literal, Node, Op, Type
from afresh.queries.typing import Operand

_SPECIAL = {
    "FloorDivide": refusals.INTEGER_DIVISION,
    "StringConcat": refusals.JOINED,
    "IdenticalTo": refusals.NULL_SAFE,
    "Log": refusals.LOG,
    "Log2": refusals.LOG,
    "RegexSearch": refusals.REGEX,
    "RegexExtract": refusals.REGEX,
    "RegexReplace": refusals.REGEX,
    "InSubquery": build.IN_QUERY,
    "ExistsSubquery": refusals.SUBQUERY,
    "ScalarSubquery": refusals.SUBQUERY,
    "ScalarParameter": refusals.PARAMETER,
    "IsNan": refusals.NOT_FINITE,
    "IsInf": refusals.NOT_FINITE,
    "Strip": ".strip() drops more kinds of white space than any two engines agree on; write trim(x) in SQL, which "
    "drops spaces",
    "Clip": ".clip() is not allowed; bounds clip a number: ask(table.x, bounds=(0, 1))",
    "Xor": "^ of conditions is not allowed; write a != b",
    "StrRight": refusals.RIGHT,
    "StringFind": refusals.POSITION,
    "TimestampTruncate": refusals.TRUNCATED,
    "DateTruncate": refusals.TRUNCATED,
    "DayOfWeekName": refusals.WEEKDAY,
    "Hash": refusals.HASH,
    "TimestampDiff": "a - b of two timestamps is an interval; write a.delta(b, unit='second'), or another unit",
    "Pi": "ibis.pi is not allowed; write 3.141592653589793",
    "E": "ibis.e is not allowed; write 2.718281828459045",
    "Date": "dates are not made of timestamps; write a.delta(b, unit='day'), or a range of timestamps",
}
_CLOCKS = {"TimestampNow", "DateNow", "TimeNow", "RandomScalar", "RandomUUID", "Impure"}
_TABLES = {"UnboundTable", "DatabaseTable", "InMemoryTable"}

Handler = Callable[["_Reader", Any], Operand]


def from_ibis(expression: Any, schema: Mapping[str, Type | None]) -> Node:
    """Return the typed tree of an Ibis value expression over one plain table with columns of these names and types."""
    import ibis

    if not isinstance(expression, ibis.Value):
        what = "a whole table" if isinstance(expression, ibis.Table) else f"a {type(expression).__name__}"
        raise QueryError(f"a question is a value for each row, as in table.age < 30, but this is {what}")
    try:
        return build.expect_value(_Reader(schema).read(expression.op()))
    except RecursionError:
        pass  # raised below, so the error does not carry a thousand frames of context
    raise QueryError(TOO_DEEP)


def type_of(dtype: Any) -> Type | None:
    """The type questions see for an Ibis type; None if they cannot use it."""
    if dtype.is_boolean():
        return Type.BOOLEAN
    if dtype.is_numeric():
        return Type.NUMBER
    if dtype.is_string() or dtype.is_uuid():
        return Type.TEXT
    return Type.DATE if dtype.is_date() else Type.TIMESTAMP if dtype.is_timestamp() else None


class _Reader:
    """Turns Ibis's operation nodes into ours."""

    def __init__(self, schema: Mapping[str, Type | None]) -> None:
        self.columns = Columns(schema)
        self.depth = 0
        self.table: Any = None

    def read(self, op: Any) -> Operand:
        """Return the tree of any allowed operation; None for a bare NULL."""
        handler = _HANDLERS.get(type(op).__name__)
        if handler is None or not type(op).__module__.startswith("ibis.expr.operations"):
            raise _refuse(op)
        self.depth += 1
        build.limited(None, self.depth)
        tree = handler(self, op)
        self.depth -= 1
        return build.limited(tree, self.depth)

    def call(self, op: Any, *, operation: Op) -> Node:
        listed = (part for arg in op.args for part in (arg if isinstance(arg, tuple) else (arg,)))
        return build.call(operation, *map(self.read, listed))

    def field(self, op: Any) -> Node:
        table = op.rel
        if type(table).__name__ not in _TABLES:
            raise QueryError(
                f"a question is about the columns of one plain table, not of a {type(table).__name__.lower()} of it; "
                "give the condition of a filter as where="
            )
        if self.table is not None and table != self.table:
            raise QueryError("a question is about one table; this one names columns of two")
        self.table = table
        column = self.columns.find(str(op.name))
        if type_of(op.dtype) is not column.type:
            raise QueryError(
                f"the column {column.name!r} is a {column.type.value} in the data, but {op.dtype} in the Ibis table of "
                "this question"
            )
        return column

    def literal(self, op: Any) -> Operand:
        kind, value = type_of(op.dtype), op.value
        if value is None:
            return None
        if kind is Type.BOOLEAN:
            return Literal(bool(value), kind)
        if kind is Type.TEXT and not re.search("[\0\ud800-\udfff]", str(value)):
            return Literal(str(value), kind)
        if kind is Type.TIMESTAMP and isinstance(value, datetime) and value.tzinfo is None:
            plain = value.replace(fold=0)
            if getattr(value, "nanosecond", 0) == 0:
                return Literal(datetime(*plain.timetuple()[:6], plain.microsecond), kind)
        if kind is Type.DATE and isinstance(value, date):
            return Literal(date(value.year, value.month, value.day), kind)
        if kind is Type.NUMBER:
            try:
                if abs(given := float(value)) < float("inf"):
                    return build.number(given)
            except OverflowError:
                pass
            raise QueryError("a constant number must be finite, and not too large for a double")
        raise QueryError(
            f"a constant of type {op.dtype} is not allowed; constants are booleans, finite numbers, text, dates, and "
            "timestamps of microseconds without a zone"
        )

    def like(self, op: Any) -> Node:
        if op.escape is not None:
            raise QueryError("LIKE has no escape here; write .contains('10%') for text with % or _")
        name = "ILIKE" if type(op).__name__ == "StringSQLILike" else "LIKE"
        return build.like(self.read(op.arg), self.read(op.pattern), name)

    def case(self, op: Any) -> Node:
        tests = [self.read(test) for test in op.cases]
        if type(op).__name__ == "SimpleCase":
            subject = self.read(op.base)
            tests = [build.comparison("=", subject, test) for test in tests]
        return build.case(tests, [self.read(result) for result in (*op.results, op.default)])

    def delta(self, op: Any) -> Node:
        """left.delta(right, unit), which counts from right to left."""
        unit = self.read(op.part)
        if not isinstance(unit, Literal):
            raise QueryError("the unit of .delta() must be a constant, as in a.delta(b, unit='day')")
        return difference(str(unit.value), self.read(op.right), self.read(op.left))

    def day_of_week(self, op: Any) -> Node:
        """The day of the week, which Ibis counts from 0 on Monday."""
        return build.call(Op.SUBTRACT, part("isodow", self.read(op.arg)), build.number(1))

    def substring(self, op: Any) -> Node:
        """Some characters of a text, which Ibis counts from 0."""
        start = self.read(op.start)
        if isinstance(start, Literal) and isinstance(start.value, float):
            start = build.number(start.value + 1)
        return build.substring(self.read(op.arg), start, None if op.length is None else self.read(op.length))

    def cast(self, op: Any) -> Node:
        kind = op.to
        if kind.is_integer():
            name = "BIGINT"
        elif kind.is_string():
            name = "VARCHAR"
        elif kind.is_timestamp():
            name = "TIMESTAMP" if kind.timezone is None else "TIMESTAMPTZ"
        else:
            name = type(kind).__name__.upper()
            name = {"FLOAT64": "DOUBLE", "FLOAT32": "FLOAT"}.get(name, name)
        return cast(self.read(op.arg), name)


def _plain(operation: Op) -> Handler:
    """Return the handler of an operation on the operands of Ibis's node, as most are."""
    return partial(_Reader.call, operation=operation)


def _part(unit: str) -> Handler:
    return lambda self, op: part(unit, self.read(op.arg))


def _comparison(sign: str) -> Handler:
    return lambda self, op: build.comparison(sign, self.read(op.left), self.read(op.right))


_HANDLERS: dict[str, Handler] = {
    **{name: _plain(operation) for operation in Op for name in operation.row.ibis.split()},
    **{row.ibis: _comparison(sign) for sign, row in COMPARISONS.items()},
    **{name: _part(unit) for unit, row in PARTS.items() for name in row.ibis.split()},
    "Field": _Reader.field,
    "Literal": _Reader.literal,
    "Alias": lambda self, op: self.read(op.arg),  # the name of a value is not part of its meaning
    "IsNull": lambda self, op: build.is_null(self.read(op.arg)),
    "NotNull": lambda self, op: build.call(Op.NOT, build.is_null(self.read(op.arg))),
    "InValues": lambda self, op: build.membership(self.read(op.value), [self.read(item) for item in op.options]),
    "Between": lambda self, op: build.between(self.read(op.arg), self.read(op.lower_bound), self.read(op.upper_bound)),
    "StringSQLLike": _Reader.like,
    "StringSQLILike": _Reader.like,
    "IfElse": lambda self, op: build.case(
        [self.read(op.bool_expr)], [self.read(op.true_expr), self.read(op.false_null_expr)]
    ),
    "SearchedCase": _Reader.case,
    "SimpleCase": _Reader.case,
    "NullIf": lambda self, op: build.nullif(self.read(op.arg), self.read(op.null_if_expr)),
    "Negate": lambda self, op: build.negative(self.read(op.arg)),
    "Subtract": lambda self, op: minus(self.read(op.left), self.read(op.right)),
    "DateDiff": lambda self, op: minus(self.read(op.left), self.read(op.right)),
    "DateDelta": _Reader.delta,
    "TimestampDelta": _Reader.delta,
    "DayOfWeekIndex": _Reader.day_of_week,
    "ExtractQuarter": _part("quarter"),
    "Round": lambda self, op: build.rounded(
        self.read(op.arg), build.number(0) if op.digits is None else self.read(op.digits)
    ),
    "Substring": _Reader.substring,
    "Cast": _Reader.cast,
    "TryCast": _Reader.cast,
}


def _refuse(op: Any) -> QueryError:
    """The error for an operation that is not on the allowlist."""
    import ibis.expr.operations as ops

    kind = type(op).__name__
    if kind in _SPECIAL:
        return QueryError(_SPECIAL[kind])
    if isinstance(op, ops.Reduction):
        return refusals.refuse_aggregate(kind.lower())
    if isinstance(op, ops.Analytic | ops.WindowFunction):
        return QueryError(refusals.WINDOW)
    if kind in _CLOCKS or isinstance(op, ops.Impure):
        return QueryError(f"{kind} is not allowed: {refusals.CLOCK}")
    if kind.startswith(("Bitwise", "Bit")):
        return QueryError(refusals.BITS)
    if kind.startswith(("Array", "Map", "Struct", "JSON", "Unnest")):
        return QueryError(refusals.NESTED)
    return refusals.refuse_function(kind.lower())
