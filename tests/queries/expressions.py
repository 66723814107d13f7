"""Random well-typed expressions over the columns of a test table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from functools import cache

from hypothesis import strategies as st

from afresh.queries.operations import PARTS, Sort
from afresh.queries.tree import Call, Column, Literal, Node, Op, Type

SCHEMA: dict[str, Type | None] = {
    "x": Type.NUMBER,
    "y": Type.NUMBER,
    "big": Type.NUMBER,
    "flag": Type.BOOLEAN,
    "other": Type.BOOLEAN,
    "city": Type.TEXT,
    "Odd \"name'": Type.TEXT,
    "day": Type.DATE,
    "moment": Type.TIMESTAMP,
    "tags": None,
}

_NUMBERS = [0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 10.0, 1e308, -1e308, 5e-324, 1e-308, 9.0e15, -2.5, 0.1]
_TEXTS = ["", "a", "B", "é", "Bern", "it's", "x%", "a_b", " x ", "日本", "%"]  # columns have what looks like numbers
_DAYS = [date(1970, 1, 1), date(2025, 1, 31), date(1, 1, 1), date(9999, 12, 31)]
_MOMENTS = [datetime(2025, 1, 31, 12, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59), datetime(2000, 1, 1)]


def operations(returns: Type | Sort, *takes: Type | Sort) -> list[Op]:
    """All that take and return this."""
    return [op for op in Op if (op.row.takes, op.row.returns) == (takes, returns)]


MERGES = [op for op in Op if op.row.returns is Sort.ALIKE and op.row.more]
_ORDERS = operations(Type.BOOLEAN, Sort.ORDERED, Sort.ORDERED)
_DATED = [name for name, part in PARTS.items() if not part.timed]


@cache
def leaves(kind: Type) -> st.SearchStrategy[Node]:
    """Columns and constants of a type."""
    columns = st.sampled_from([Column(name, kind) for name, of in SCHEMA.items() if of is kind])
    values: dict[Type, list[object]] = {
        Type.NUMBER: [*_NUMBERS],
        Type.TEXT: [*_TEXTS],
        Type.DATE: [*_DAYS],
        Type.TIMESTAMP: [*_MOMENTS],
        Type.BOOLEAN: [True, False],
    }
    constants = st.sampled_from([Literal(value, kind) for value in values[kind]])  # type: ignore[arg-type]  # a mixed table
    return st.one_of(columns, columns, constants)


def _call(op: Op, kind: Type, *args: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.tuples(*args).map(lambda parts: Call(op, parts, kind))


def _any(ops: list[Op], made: Callable[[Op], st.SearchStrategy[Node]]) -> st.SearchStrategy[Node]:
    return st.sampled_from(ops).flatmap(made)


def _words(*words: str) -> st.SearchStrategy[Node]:
    return st.sampled_from([Literal(word, Type.TEXT) for word in words])


def _wholes(*values: int) -> st.SearchStrategy[Node]:
    return st.sampled_from([Literal(float(value), Type.NUMBER) for value in values])


@cache
def numbers(depth: int) -> st.SearchStrategy[Node]:
    """Expressions that are numbers."""
    if depth == 0:
        return leaves(Type.NUMBER)
    part = st.deferred(lambda: numbers(depth - 1))
    null: st.SearchStrategy[Node] = st.just(Literal(None, Type.NUMBER))
    return st.one_of(
        leaves(Type.NUMBER),
        _any(operations(Type.NUMBER, Type.NUMBER, Type.NUMBER), lambda op: _call(op, Type.NUMBER, part, part)),
        _any(operations(Type.NUMBER, Type.NUMBER), lambda op: _call(op, Type.NUMBER, part)),
        _any(MERGES, lambda op: _call(op, Type.NUMBER, part, part, part)),
        _call(Op.CASE, Type.NUMBER, conditions(depth - 1), part, st.one_of(part, null)),
        _any(operations(Type.NUMBER, Type.TEXT), lambda op: _call(op, Type.NUMBER, texts(depth - 1))),
        _call(Op.PART, Type.NUMBER, _words(*_DATED), leaves(Type.DATE)),
        _call(Op.PART, Type.NUMBER, _words(*PARTS), leaves(Type.TIMESTAMP)),
    )


@cache
def texts(depth: int) -> st.SearchStrategy[Node]:
    """Expressions that are text."""
    if depth == 0:
        return leaves(Type.TEXT)
    part = st.deferred(lambda: texts(depth - 1))
    return st.one_of(
        leaves(Type.TEXT),
        _any(operations(Type.TEXT, Type.TEXT), lambda op: _call(op, Type.TEXT, part)),
        _any(MERGES, lambda op: _call(op, Type.TEXT, part, part)),
        _call(Op.SUBSTRING, Type.TEXT, part, _wholes(1, 2, 5), _wholes(0, 1, 3)),
        _call(Op.SUBSTRING, Type.TEXT, part, _wholes(1, 2, 5)),
        _any(
            operations(Type.TEXT, Type.NUMBER), lambda op: _call(op, Type.TEXT, st.deferred(lambda: numbers(depth - 1)))
        ),
        _call(Op.CASE, Type.TEXT, st.deferred(lambda: conditions(depth - 1)), part, part),
    )


@cache
def conditions(depth: int) -> st.SearchStrategy[Node]:
    """Expressions that are booleans."""
    if depth == 0:
        return leaves(Type.BOOLEAN)
    part = st.deferred(lambda: conditions(depth - 1))
    number = st.deferred(lambda: numbers(depth - 1))
    kinds = st.sampled_from([Type.NUMBER, Type.TEXT, Type.DATE, Type.TIMESTAMP])
    compare = st.tuples(st.sampled_from([Op.EQUAL, *_ORDERS]), kinds)
    patterns: st.SearchStrategy[Node] = st.sampled_from(
        [
            Literal(text, Type.TEXT)
            for text in ("%", "_", "a%", "%e%", "it's", "100%", "__", "日_", "%%n", "a%%b", "\\%", "")
        ]
    )
    constants = st.sampled_from([Literal(value, Type.NUMBER) for value in _NUMBERS])
    return st.one_of(
        leaves(Type.BOOLEAN),
        _any(operations(Type.BOOLEAN, Type.BOOLEAN, Type.BOOLEAN), lambda op: _call(op, Type.BOOLEAN, part, part)),
        _call(Op.NOT, Type.BOOLEAN, part),
        _call(Op.EQUAL, Type.BOOLEAN, part, part),
        _call(Op.IS_TRUE, Type.BOOLEAN, part),
        _call(Op.IS_NULL, Type.BOOLEAN, st.one_of(part, number)),
        compare.flatmap(lambda how: _call(how[0], Type.BOOLEAN, leaves(how[1]), leaves(how[1]))),
        _any([Op.EQUAL, *_ORDERS], lambda op: _call(op, Type.BOOLEAN, number, number)),
        _call(Op.LIKE, Type.BOOLEAN, texts(depth - 1), patterns),
        _any(
            operations(Type.BOOLEAN, Type.TEXT, Type.TEXT),
            lambda op: _call(op, Type.BOOLEAN, texts(depth - 1), texts(depth - 1)),
        ),
        _call(Op.COALESCE, Type.BOOLEAN, part, part),
        _call(Op.CASE, Type.BOOLEAN, part, part, part, part, st.one_of(part, st.just(Literal(None, Type.BOOLEAN)))),
        st.tuples(number, st.lists(constants, min_size=1, max_size=4)).map(
            lambda parts: Call(Op.IN, (parts[0], *parts[1]), Type.BOOLEAN)
        ),
        # columns against few constants, so that OR and AND of them meet
        _any(
            [Op.EQUAL, Op.LESS], lambda op: _call(op, Type.BOOLEAN, st.just(Column("x", Type.NUMBER)), _wholes(0, 1, 3))
        ),
    )
