"""Checked constructors: operands in, a well-typed tree out, or an error that says what to write instead.

Every way into the language (SQL text, Ibis) makes its trees here and only here, so a construct has one meaning and
one refusal however it was written. Constructs beyond the table of `operations` are written out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from afresh.errors import QueryError
from afresh.queries import values
from afresh.queries.operations import COMPARISONS, Sort
from afresh.queries.tree import Call, Literal, Node, Op, Type
from afresh.queries.typing import Operand, align, alike, expect, need_order

MAX_DEPTH = 100  # operations in a chain, such as a + b + c + ...
MAX_SIZE = 5_000  # nodes, after BETWEEN, CASE x WHEN and similar have been written out
MAX_PATTERN = 1_000  # characters after LIKE: a matcher keeps one state per character
MAX_WILDCARDS = 100  # runs of % or _ after LIKE: Spark's matcher nests this deeply
IN_QUERY = "after IN goes a list of constants in parentheses, not a column or another query"


def limited(tree: Operand, depth: int) -> Operand:
    """Return the tree, or refuse it if it is too large to process quickly."""
    if depth > MAX_DEPTH:
        raise QueryError(f"the question has more than {MAX_DEPTH} operations in a chain; split it into several")
    if tree is not None and tree.size > MAX_SIZE:
        raise QueryError(f"the question is too long (at most {MAX_SIZE} parts); split it into several questions")
    return tree


def number(value: float) -> Literal:
    """A constant number; there is no -0.0."""
    return Literal(value + 0.0, Type.NUMBER)


def call(op: Op, *operands: Operand) -> Node:
    """An operation on operands of the types its row gives: one for each operand, or one for all."""
    row = op.row
    if row.returns is Sort.ALIKE:
        args = alike(operands, op.word)
        if row.takes[0] is Sort.ORDERED:
            need_order(args, op.word)
        return Call(op, tuple(args), args[0].type) if len(args) > 1 else args[0]
    kinds = row.takes + row.takes[-1:] * (len(operands) - len(row.takes))
    args = [_expect(op, operand, kind) for operand, kind in zip(operands, kinds, strict=True)]
    assert isinstance(row.returns, Type)
    return Call(op, tuple(args), row.returns)


def _expect(op: Op, operand: Operand, kind: Type | Sort) -> Node:
    assert isinstance(kind, Type), f"{op} has a constructor of its own"
    return expect(operand, kind, op.word)


def comparison(sign: str, left: Operand, right: Operand) -> Node:
    """Two values compared by one of = <> < <= > >=."""
    op, swapped, negated, *_ = COMPARISONS[sign]
    one, other = align(left, right, "a comparison")
    if op.row.takes[0] is Sort.ORDERED:
        need_order((one, other), f"a {sign} b")
    tree = Call(op, (other, one) if swapped else (one, other), Type.BOOLEAN)
    return call(Op.NOT, tree) if negated else tree


def between(value: Operand, low: Operand, high: Operand) -> Node:
    """A value BETWEEN two others, as two comparisons."""
    return call(Op.AND, comparison("<=", low, value), comparison("<=", value, high))


def membership(value: Operand, choices: Sequence[Operand]) -> Node:
    """A value IN a list of constants."""
    one, taken = expect_value(value), []
    for choice in choices:
        if choice is None:
            raise QueryError("NULL in an IN list makes NOT IN true for no row; leave it out and write IS NULL")
        left, right = align(one, choice, "IN")
        if not isinstance(right, Literal) or left is not one:
            raise QueryError("an IN list may contain only constants; write a = b OR a = c")
        taken.append(right)
    if not taken:
        raise QueryError("the IN list is empty; no row can match")
    return Call(Op.IN, (one, *taken), Type.BOOLEAN)


def expect_value(node: Operand) -> Node:
    """Return the operand, or refuse a bare NULL."""
    return expect(node, Type.BOOLEAN if node is None else node.type, "")


def is_null(value: Operand) -> Node:
    """Whether a value is missing."""
    return Call(Op.IS_NULL, (expect_value(value),), Type.BOOLEAN)


def is_boolean(value: Operand, wanted: bool) -> Node:
    """A condition IS TRUE or IS FALSE; never NULL."""
    condition = expect(value, Type.BOOLEAN, "IS TRUE" if wanted else "IS FALSE")
    return Call(Op.IS_TRUE, (condition if wanted else call(Op.NOT, condition),), Type.BOOLEAN)


def like(value: Operand, pattern: Operand, name: str = "LIKE") -> Node:
    """A text LIKE, or ILIKE, a constant pattern."""
    text, shape = expect(value, Type.TEXT, name), expect(pattern, Type.TEXT, name)
    if not isinstance(shape, Literal) or not isinstance(shape.value, str):
        raise QueryError(f"the pattern after {name} must be a constant, as in {name} 'abc%'; or write contains(a, b)")
    if len(shape.value) > MAX_PATTERN or len(re.findall("%+|_+", shape.value)) > MAX_WILDCARDS:
        raise QueryError(
            f"a pattern after {name} has at most {MAX_PATTERN:,} characters and {MAX_WILDCARDS} wildcards; "
            f"write several {name} with AND"
        )
    if name == "ILIKE":
        text, shape = call(Op.LOWER, text), Literal(values.lower(shape.value), Type.TEXT)
    return Call(Op.LIKE, (text, shape), Type.BOOLEAN)


def case(tests: Sequence[Operand], results: Sequence[Operand]) -> Node:
    """CASE WHEN ... THEN ... ELSE; the last result is the default."""
    conditions = [expect(test, Type.BOOLEAN, "WHEN") for test in tests]
    chosen = alike(results, "CASE")
    pairs = [part for pair in zip(conditions, chosen[:-1], strict=True) for part in pair]
    return Call(Op.CASE, (*pairs, chosen[-1]), chosen[-1].type)


def nullif(left: Operand, right: Operand) -> Node:
    """NULL where two values are equal, else the first."""
    one, other = align(left, right, "nullif")
    return case([comparison("=", one, other)], [None, one])


def negative(value: Operand) -> Node:
    """A number with its sign reversed."""
    if isinstance(value, Literal) and isinstance(value.value, float):
        return number(-value.value)
    return call(Op.NEGATE, value)


def rounded(value: Operand, digits: Operand) -> Node:
    """Rounding to d digits scales by 10^d, rounds and scales back: one meaning for every engine."""
    places = _whole(digits, -15, 15, "the digits of round(x, digits)")
    if places == 0:
        return call(Op.ROUND, value)
    scale = number(10.0 ** abs(places))
    there, back = (Op.MULTIPLY, Op.DIVIDE) if places > 0 else (Op.DIVIDE, Op.MULTIPLY)
    given = expect(value, Type.NUMBER, "round")
    return call(back, call(Op.ROUND, call(there, given, scale)), scale)


def substring(value: Operand, start: Operand, length: Operand | None = None, name: str = "substring") -> Node:
    """Some characters of a text, counted from 1."""
    first = number(_whole(start, 1, 1e9, f"the start of {name}(text, start, length)"))
    args: tuple[Node, ...] = (expect(value, Type.TEXT, name), first)
    if length is not None:
        args += (number(_whole(length, 0, 1e9, f"the length in {name}")),)
    return Call(Op.SUBSTRING, args, Type.TEXT)


def _whole(node: Operand, low: float, high: float, what: str) -> float:
    value = node.value if isinstance(node, Literal) and isinstance(node.value, float) else math.nan
    if not (low <= value <= high and value.is_integer()):
        raise QueryError(f"{what} must be a constant whole number between {low:,.0f} and {high:,.0f}")
    return value
