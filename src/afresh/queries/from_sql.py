"""Turns SQL text into an expression tree through an allowlist: only what is here or in `operations` passes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from afresh.errors import QueryError
from afresh.queries import build
from afresh.queries.casts import cast
from afresh.queries.columns import Columns, unquoted, written
from afresh.queries.dates import difference, minus, part
from afresh.queries.operations import COMPARISONS, PARTS
from afresh.queries.refusals import refuse, refuse_function
from afresh.queries.syntax import TOO_DEEP, syntax, uncycle
from afresh.queries.tree import Literal, Node, Op, Type
from afresh.queries.typing import Operand, short

if TYPE_CHECKING:
    from sqlglot.expressions import Expression

# arguments sqlglot sets besides operands, none of which changes the meaning here
_HARMLESS = {"typed", "safe", "ignore_nulls", "coalesce", "date_part_boundary", "_type"}
_DIGITS = re.compile(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")

Handler = Callable[["_Reader", "Expression"], Operand]


def from_sql(text: str, schema: Mapping[str, Type | None]) -> Node:
    """Return the typed tree of a row expression in SQL."""
    try:
        tree = _parsed(text, schema)
        try:
            return build.expect_value(_Reader(schema).read(tree))
        finally:
            uncycle(tree)
    except RecursionError:
        pass  # raised below, so the error does not carry a thousand frames of context
    raise QueryError(TOO_DEEP)


def _parsed(text: str, schema: Mapping[str, Type | None]) -> Expression:
    """Return sqlglot's tree; an error says so if a column's name seems to lack its quotes."""
    try:
        return syntax(text)
    except QueryError as error:
        if (name := unquoted(text, schema)) is None:
            raise
        problem = f"{error}; a name with spaces or signs goes in double quotes: {written(name)}"
    raise QueryError(problem)


class _Reader:
    """Turns sqlglot's nodes into ours."""

    def __init__(self, schema: Mapping[str, Type | None]) -> None:
        self.columns = Columns(schema)
        self.depth = 0

    def read(self, node: Expression) -> Operand:
        """Return the tree of any allowed node; None for a bare NULL."""
        handler, arguments = _HANDLERS.get(type(node).__name__, (None, ""))
        if handler is None:
            raise refuse(node)
        for key, value in node.args.items():  # an argument that a handler does not read would be dropped silently
            if value and key not in arguments.split() and key not in _HARMLESS:
                name = type(node).__name__.lower()
                raise QueryError(f"{name} takes only its plain form here; leave out what follows ({key})")
        self.depth += 1
        build.limited(None, self.depth)
        tree = handler(self, node)
        self.depth -= 1
        return build.limited(tree, self.depth)

    def column(self, node: Expression) -> Node:
        from sqlglot import exp

        if isinstance(node.this, exp.Star):
            raise refuse(node.this)
        name = str(node.name)
        if node.args.get("table"):
            raise QueryError(f"columns are written without a table: {short(name)[1:-1]} alone, without a dot")
        return self.columns.find(name)

    def literal(self, node: Expression) -> Node:
        if node.is_string:
            return Literal(str(node.this), Type.TEXT)
        if not _DIGITS.fullmatch(str(node.this)):
            raise QueryError(f"{short(str(node.this))} is not a number; write decimal digits, as 255 or 1.5e3")
        value = float(node.this)
        if not math.isfinite(value):
            raise QueryError(f"the number {short(str(node.this))} is too large for a double")
        return build.number(value)

    def junction(self, node: Expression) -> Node:
        """AND or OR; a long chain is a deep tree in sqlglot and a flat one here."""
        parts, stack = [], [node]
        while stack:
            one = stack.pop()
            if type(one) is type(node):
                stack += [one.expression, one.this]
            else:
                parts.append(self.read(one))
        return build.call(Op.AND if type(node).__name__ == "And" else Op.OR, *parts)

    def call(self, node: Expression, *, op: Op, others: str) -> Node:
        rest = node.args.get(others) if others else []
        return build.call(op, *map(self.read, [node.this, *(rest if isinstance(rest, list) else [rest])]))

    def membership(self, node: Expression) -> Node:
        if any(node.args.get(key) for key in ("query", "field", "unnest")):
            raise QueryError(build.IN_QUERY)
        return build.membership(self.read(node.this), [self.read(item) for item in node.expressions])

    def between(self, node: Expression) -> Node:
        return build.between(self.read(node.this), self.read(node.args["low"]), self.read(node.args["high"]))

    def state(self, node: Expression) -> Node:
        kind = type(node.expression).__name__
        if kind == "Null":
            return build.is_null(self.read(node.this))
        if kind != "Boolean":
            raise QueryError("IS must be followed by NULL, TRUE or FALSE; to compare values write =")
        return build.is_boolean(self.read(node.this), bool(node.expression.this))

    def like(self, node: Expression) -> Node:
        name = "LIKE" if type(node).__name__ == "Like" else "ILIKE"
        if type(node.expression).__name__ in ("Any", "All"):
            raise QueryError(f"{name} ANY is not allowed; write a {name} 'x%' OR a {name} 'y%'")
        tree = build.like(self.read(node.this), self.read(node.expression), name)
        return build.call(Op.NOT, tree) if node.args.get("negate") else tree

    def case(self, node: Expression) -> Node:
        branches, default = node.args["ifs"], node.args.get("default")
        tests = [self.read(branch.this) for branch in branches]
        if node.args.get("this") is not None:
            subject = self.read(node.args["this"])
            tests = [build.comparison("=", subject, test) for test in tests]
        results = [self.read(branch.args["true"]) for branch in branches]
        return build.case(tests, [*results, None if default is None else self.read(default)])

    def round(self, node: Expression) -> Node:
        digits = node.args.get("decimals")
        return build.rounded(self.read(node.this), build.number(0) if digits is None else self.read(digits))

    def log10(self, node: Expression) -> Node:
        base, value = node.this, node.args.get("expression")
        if value is None or type(base).__name__ != "Literal" or base.this != "10":
            raise refuse(node)
        return build.call(Op.LOG10, self.read(value))

    def cast(self, node: Expression) -> Node:
        to = node.args["to"]
        if type(to).__name__ != "DataType" or not hasattr(to.this, "name"):
            raise refuse(node)
        return cast(self.read(node.this), to.this.name)

    def substring(self, node: Expression) -> Node:
        start, length = node.args.get("start"), node.args.get("length")
        if start is None:
            raise QueryError("substring needs a start: write substring(text, start) or substring(text, start, length)")
        return build.substring(self.read(node.this), self.read(start), None if length is None else self.read(length))

    def left(self, node: Expression) -> Node:
        return build.substring(self.read(node.this), build.number(1), self.read(node.expression), "left")

    def difference(self, node: Expression) -> Node:
        unit = node.args.get("unit")
        if unit is None or type(unit).__name__ not in ("Var", "Literal"):
            raise QueryError("date_diff needs a unit: write date_diff('day', a, b)")
        return difference(str(unit.name), self.read(node.expression), self.read(node.this))

    def function(self, node: Expression) -> Node:
        """A function for which sqlglot has no node type."""
        name, args = str(node.this), node.expressions
        if name.lower() in ("date_part", "datepart"):
            if len(args) != 2 or type(args[0]).__name__ != "Literal" or not args[0].is_string:
                raise QueryError("write date_part('month', x), with the part as a constant")
            return part(str(args[0].this), self.read(args[1]))
        raise refuse_function(name)


def _plain(op: Op) -> tuple[Handler, str]:
    """Return the reader of an operation whose operands are adjacent in sqlglot's node, as most are."""
    others = "" if len(op.row.takes) == 1 else "expressions" if op.row.more else "expression"
    return partial(_Reader.call, op=op, others=others), f"this {others}"


def _part(unit: str) -> tuple[Handler, str]:
    return lambda self, node: part(unit, self.read(node.this)), "this"


def _comparison(sign: str) -> tuple[Handler, str]:
    return lambda self, node: build.comparison(
        sign, self.read(node.this), self.read(node.expression)
    ), "this expression"


# the handler of a kind of node, and the arguments it reads: no others may be set
_HANDLERS: dict[str, tuple[Handler, str]] = {
    **{name: _plain(op) for op in Op for name in op.row.sql.split()},
    **{row.sql: _comparison(sign) for sign, row in COMPARISONS.items()},
    **{name: _part(unit) for unit, row in PARTS.items() for name in row.sql.split()},
    "Quarter": _part("quarter"),
    "Paren": (lambda self, node: self.read(node.this), "this"),
    "Column": (_Reader.column, "this table db catalog"),
    "Literal": (_Reader.literal, "this is_string"),
    "Boolean": (lambda self, node: Literal(bool(node.this), Type.BOOLEAN), "this"),
    "Null": (lambda *_: None, ""),
    "Neg": (lambda self, node: build.negative(self.read(node.this)), "this"),
    "And": (_Reader.junction, "this expression"),
    "Or": (_Reader.junction, "this expression"),
    "In": (_Reader.membership, "this expressions query field unnest"),
    "Between": (_Reader.between, "this low high"),
    "Is": (_Reader.state, "this expression"),
    "Like": (_Reader.like, "this expression negate"),
    "ILike": (_Reader.like, "this expression negate"),
    "Case": (_Reader.case, "this ifs default"),
    "Nullif": (lambda self, node: build.nullif(self.read(node.this), self.read(node.expression)), "this expression"),
    "Round": (_Reader.round, "this decimals"),
    "Log": (_Reader.log10, "this expression"),
    "Cast": (_Reader.cast, "this to"),
    "TryCast": (_Reader.cast, "this to"),
    "Sub": (lambda self, node: minus(self.read(node.this), self.read(node.expression)), "this expression"),
    "Substring": (_Reader.substring, "this start length"),
    "Left": (_Reader.left, "this expression"),
    "Extract": (lambda self, node: part(node.this.name, self.read(node.expression)), "this expression"),
    "DateDiff": (_Reader.difference, "this expression unit"),
    "Anonymous": (_Reader.function, "this expressions"),
}
