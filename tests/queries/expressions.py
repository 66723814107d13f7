"""Random well-typed expressions over the columns of a test table."""

from __future__ import annotations

from datetime import date, datetime
from functools import cache

from hypothesis import strategies as st

from afresh.queries.tree import DATE_PARTS, TIME_PARTS, Call, Column, Literal, Node, Op, Type

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
_TEXTS = ["", "a", "B", "é", "Bern", "it's", "100%", "a_b", " x ", "日本", "%", "12", " -1.5e2 "]
_DAYS = [date(1970, 1, 1), date(2025, 1, 31), date(1, 1, 1), date(9999, 12, 31)]
_MOMENTS = [datetime(2025, 1, 31, 12, 0, 0, 1), datetime(1969, 12, 31, 23, 59, 59), datetime(2000, 1, 1)]
_BINARY = [Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.MODULO, Op.POWER]
_UNARY = [Op.NEGATE, Op.ABS, Op.SIGN, Op.FLOOR, Op.CEIL, Op.ROUND, Op.EXP, Op.LN, Op.LOG10, Op.SQRT]


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
        st.sampled_from(_BINARY).flatmap(lambda op: _call(op, Type.NUMBER, part, part)),
        st.sampled_from(_UNARY).flatmap(lambda op: _call(op, Type.NUMBER, part)),
        st.sampled_from([Op.COALESCE, Op.LEAST, Op.GREATEST]).flatmap(
            lambda op: _call(op, Type.NUMBER, part, part, part)
        ),
        _call(Op.CASE, Type.NUMBER, conditions(depth - 1), part, st.one_of(part, null)),
        st.sampled_from([Op.LENGTH, Op.TO_NUMBER]).flatmap(lambda op: _call(op, Type.NUMBER, texts(depth - 1))),
        _call(Op.PART, Type.NUMBER, _words(*DATE_PARTS), leaves(Type.DATE)),
        _call(Op.PART, Type.NUMBER, _words(*DATE_PARTS, *TIME_PARTS), leaves(Type.TIMESTAMP)),
    )


@cache
def texts(depth: int) -> st.SearchStrategy[Node]:
    """Expressions that are text."""
    if depth == 0:
        return leaves(Type.TEXT)
    part = st.deferred(lambda: texts(depth - 1))
    return st.one_of(
        leaves(Type.TEXT),
        st.sampled_from([Op.LOWER, Op.UPPER, Op.TRIM]).flatmap(lambda op: _call(op, Type.TEXT, part)),
        st.sampled_from([Op.COALESCE, Op.LEAST, Op.GREATEST]).flatmap(lambda op: _call(op, Type.TEXT, part, part)),
        _call(Op.SUBSTRING, Type.TEXT, part, _wholes(1, 2, 5), _wholes(0, 1, 3)),
        _call(Op.SUBSTRING, Type.TEXT, part, _wholes(1, 2, 5)),
        _call(Op.TO_TEXT, Type.TEXT, st.deferred(lambda: numbers(depth - 1))),
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
    compare = st.tuples(st.sampled_from([Op.EQUAL, Op.LESS, Op.LESS_EQUAL]), kinds)
    patterns: st.SearchStrategy[Node] = st.sampled_from(
        [
            Literal(text, Type.TEXT)
            for text in ("%", "_", "a%", "%e%", "it's", "100%", "__", "日_", "%%n", "a%%b", "\\%", "")
        ]
    )
    constants = st.sampled_from([Literal(value, Type.NUMBER) for value in _NUMBERS])
    return st.one_of(
        leaves(Type.BOOLEAN),
        st.sampled_from([Op.AND, Op.OR]).flatmap(lambda op: _call(op, Type.BOOLEAN, part, part)),
        _call(Op.NOT, Type.BOOLEAN, part),
        _call(Op.EQUAL, Type.BOOLEAN, part, part),
        _call(Op.IS_TRUE, Type.BOOLEAN, part),
        _call(Op.IS_NULL, Type.BOOLEAN, st.one_of(part, number)),
        compare.flatmap(lambda how: _call(how[0], Type.BOOLEAN, leaves(how[1]), leaves(how[1]))),
        st.sampled_from([Op.EQUAL, Op.LESS, Op.LESS_EQUAL]).flatmap(lambda op: _call(op, Type.BOOLEAN, number, number)),
        _call(Op.LIKE, Type.BOOLEAN, texts(depth - 1), patterns),
        st.sampled_from([Op.STARTS_WITH, Op.ENDS_WITH, Op.CONTAINS]).flatmap(
            lambda op: _call(op, Type.BOOLEAN, texts(depth - 1), texts(depth - 1))
        ),
        _call(Op.COALESCE, Type.BOOLEAN, part, part),
        _call(Op.CASE, Type.BOOLEAN, part, part, part, part, st.one_of(part, st.just(Literal(None, Type.BOOLEAN)))),
        st.tuples(number, st.lists(constants, min_size=1, max_size=4)).map(
            lambda parts: Call(Op.IN, (parts[0], *parts[1]), Type.BOOLEAN)
        ),
        # columns against few constants, so that OR and AND of them meet
        st.sampled_from([Op.EQUAL, Op.LESS]).flatmap(
            lambda op: _call(op, Type.BOOLEAN, st.just(Column("x", Type.NUMBER)), _wholes(0, 1, 3))
        ),
    )
