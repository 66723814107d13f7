"""Turns expression trees into Polars expressions, for the part of the language that Polars evaluates exactly.

On large data Polars answers three to ten times as fast as DuckDB (docs/benchmarks.md), which evaluates everything that
raises `NotTranslated` here. As in `sql.duckdb`, a value outside the language (an infinity, NaN, a date beyond the year
9999) may pass through operations that keep it outside, and becomes NULL before anything can see it. NaN compares as
larger than everything, so two comparisons detect all such values.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from operator import and_, eq, ge, gt, inv, or_
from typing import Any

import polars as pl

from afresh.engines.simpler import ALL, unit_of
from afresh.engines.sql.rendering import passes
from afresh.queries.operations import Null
from afresh.queries.query import Query
from afresh.queries.tree import Call, Column, Literal, Node, Op, Type, columns

LARGEST = 1.7976931348623157e308
_LIMITS: dict[Type, tuple[Any, Any]] = {
    Type.NUMBER: (-LARGEST, LARGEST),
    Type.DATE: (date.min, date.max),
    Type.TIMESTAMP: (datetime.min, datetime.max),
}
_DTYPES = {Type.NUMBER: pl.Float64(), Type.BOOLEAN: pl.Boolean(), Type.TEXT: pl.String(), Type.DATE: pl.Date()}
_DTYPES[Type.TIMESTAMP] = pl.Datetime("us")
# integers that are exact as doubles, so comparing them needs no cast
_SMALL: dict[pl.DataType | None, tuple[int, int]] = {
    pl.Int8(): (-(2**7), 2**7 - 1),
    pl.Int16(): (-(2**15), 2**15 - 1),
    pl.Int32(): (-(2**31), 2**31 - 1),
    pl.UInt8(): (0, 2**8 - 1),
    pl.UInt16(): (0, 2**16 - 1),
    pl.UInt32(): (0, 2**32 - 1),
}
_MOST_PARTS = 200  # Polars walks an expression recursively, without DuckDB's limits
# operations left to DuckDB: Polars's own may differ in signs (%), halves (round), letters (lower, upper), last bits
# (power, log10) or texts (casts)
LEFT = {Op.MODULO, Op.POWER, Op.ROUND, Op.LOG10, Op.LOWER, Op.UPPER, Op.TO_NUMBER, Op.TO_TEXT}


class NotTranslated(Exception):
    """The tree is left to DuckDB."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """An expression, how many parts it has, and the largest absolute value of a number in it.

    That value is infinite if there may be values outside the language, for types other than numbers as well.
    """

    expr: pl.Expr
    largest: float
    size: int

    @property
    def clean(self) -> bool:
        """Whether it has only values of the language."""
        return self.largest < math.inf


@dataclass(frozen=True)
class Translator:
    """Translates trees over columns of these Polars types; `clean` means they hold only values of the language."""

    dtypes: Mapping[str, pl.DataType]
    clean: bool

    def values(self, query: Query) -> pl.Expr:
        """psi of every row: true or not, or a number in [0, 1]."""
        trees = [query.expression] if query.group is None else [query.expression, query.group]
        if sum(tree.size for tree in trees) > _MOST_PARTS or not any(map(columns, trees)):
            raise NotTranslated  # too long, or a constant, which has only one row
        group = None if query.group is None else self.truth(query.group)
        if group is not None and query.expression is ALL:
            return group
        psi = self._psi(query)
        if group is None:
            return psi
        return group & psi if query.expression.type is Type.BOOLEAN else pl.when(group).then(psi).otherwise(0.0)

    def values_within(self, query: Query) -> pl.Expr:
        """psi of every row of its group; for `ALL` the values do not matter."""
        assert query.group is not None
        if query.expression.size + query.group.size > _MOST_PARTS:
            raise NotTranslated
        group = self.truth(query.group)
        if query.expression is ALL:
            return group
        if not columns(query.expression):
            raise NotTranslated
        return self._psi(query)

    def _psi(self, query: Query) -> pl.Expr:
        """psi without its group."""
        if query.expression.type is not Type.BOOLEAN:
            value = self._unit(query.expression, query).expr
            if query.fill == 0.0 and not query.complement:
                return value  # a sum skips NULL
            value = value.fill_null(query.fill)
            return 1.0 - value if query.complement else value
        if not query.fill and not query.complement:
            return self.truth(query.expression)
        psi = self._piece(query.expression).expr.fill_null(bool(query.fill))
        return ~psi if query.complement else psi

    def _unit(self, node: Node, query: Query) -> _Piece:
        """The value in [0, 1] of a number, or NULL where missing. In a CASE, constants are not clipped."""
        if isinstance(node, Literal):
            value = unit_of(query, node.value)  # type: ignore[arg-type]  # a number or NULL
            return _Piece(pl.lit(value, pl.Float64), 1.0, 1)
        if isinstance(node, Call) and node.op is Op.CASE:
            return self._case(node, [self._unit(arg, query) for arg in _results(node)])
        piece = self._piece(node)
        return _Piece(_clipped(piece, query), 1.0, piece.size)

    def truth(self, node: Node) -> pl.Expr:
        """Where a condition is true; elsewhere it may be false or NULL."""
        _refuse_constants(node)
        if isinstance(node, Call) and node.op in (Op.AND, Op.OR):
            return reduce(and_ if node.op is Op.AND else or_, map(self.truth, node.args))
        return self._piece(node).expr

    def _clean(self, node: Node) -> _Piece:
        piece = self._piece(node)
        if piece.clean:
            return piece
        lowest, highest = _LIMITS[node.type]
        within = (piece.expr >= lowest) & (piece.expr <= highest)
        expr = pl.when(within).then(piece.expr).otherwise(None)  # otherwise Python swaps the sides of a comparison
        return _piece(expr, LARGEST, 3 * piece.size + 3)

    def _piece(self, node: Node) -> _Piece:
        _refuse_constants(node)
        if isinstance(node, Column):
            return self._column(node)
        if isinstance(node, Literal):
            return _Piece(_constant(node), abs(node.value) if isinstance(node.value, float) else LARGEST, 1)
        if node.op in _COMPARE and (small := self._small(node)) is not None:
            return _piece(small, LARGEST, 3)
        if node.op in _OF_LITERALS:
            return self._of_literals(node)
        if node.op is Op.CASE:
            return self._case(node, [self._piece(arg) for arg in _results(node)])
        if node.op in LEFT or (node.op in (Op.LEAST, Op.GREATEST) and node.type is Type.TEXT):
            raise NotTranslated
        args = [
            self._piece(arg) if passes(node.op, node.op.row.passes, place, len(node.args)) else self._clean(arg)
            for place, arg in enumerate(node.args)
        ]
        largest = _largest(node.op, [arg.largest for arg in args])
        exprs, size = [arg.expr for arg in args], 1 + sum(arg.size for arg in args)
        if node.op in _COMPARE:
            return _piece(_compare(node, *exprs), largest, size)
        if node.op is Op.DIVIDE and not _is_full(node.args[1]):
            exprs[1], size = exprs[0] * 0.0 + exprs[1], size + args[0].size + 3
        return _piece(_SIMPLE[node.op](*exprs), largest, size)

    def _column(self, node: Column) -> _Piece:
        dtype = self.dtypes.get(node.name)
        if dtype is None:
            raise NotTranslated
        expr = pl.col(node.name)
        if node.type is Type.NUMBER and dtype != pl.Float64():
            return _Piece(expr.cast(pl.Float64), math.inf if dtype.is_float() else 2.0**64, 2)
        return _Piece(expr, LARGEST if self.clean or node.type not in _LIMITS else math.inf, 1)

    def _small(self, node: Call) -> pl.Expr | None:
        """A small integer compared with a whole constant, as integers."""
        dtypes = {self.dtypes.get(arg.name) for arg in node.args if isinstance(arg, Column)}
        if len(dtypes) != 1 or (dtype := dtypes.pop()) not in _SMALL:
            return None
        low, high = _SMALL[dtype]
        sides = []
        for arg in node.args:
            if isinstance(arg, Column):
                sides.append(pl.col(arg.name))
            elif isinstance(arg, Literal) and isinstance(arg.value, float) and low <= arg.value <= high:
                if not arg.value.is_integer():
                    return None
                sides.append(pl.lit(int(arg.value), dtype))
        return _compare(node, *sides) if len(sides) == 2 else None

    def _case(self, node: Call, pieces: list[_Piece]) -> _Piece:
        """A CASE with these results."""
        _refuse_constants(node)
        chain: Any = pl
        for test, piece in zip(node.args[:-1:2], pieces, strict=False):
            chain = chain.when(self.truth(test)).then(piece.expr)
        size = sum(arg.size for arg in node.args) + sum(piece.size for piece in pieces)
        return _piece(chain.otherwise(pieces[-1].expr), max(piece.largest for piece in pieces), size)

    def _of_literals(self, node: Call) -> _Piece:
        """Operations where all operands but one are constants."""
        at = node.op.row.subject or 0
        rest = [arg for i, arg in enumerate(node.args) if i != at]
        if not all(isinstance(arg, Literal) and arg.value is not None for arg in rest):
            raise NotTranslated
        piece = self._clean(node.args[at])
        values = [arg.value for arg in rest if isinstance(arg, Literal)]
        return _piece(_OF_LITERALS[node.op](piece.expr, *values), LARGEST, piece.size + len(values))


def _results(case: Call) -> tuple[Node, ...]:
    return *case.args[1:-1:2], case.args[-1]


def _refuse_constants(node: Node) -> None:
    """Leave to DuckDB what a constant may decide, such as TRUE OR p: Polars may reduce it to one value and one row."""
    if not isinstance(node, Call):
        return
    if node.op is Op.CASE:
        decides = any(isinstance(test, Literal) for test in node.args[:-1:2])
    elif node.op is Op.COALESCE:
        decides = isinstance(node.args[0], Literal)
    else:
        decides = any(isinstance(arg, Literal) and isinstance(arg.value, bool | None) for arg in node.args)
    if decides or not columns(node):
        raise NotTranslated


def _piece(expr: pl.Expr, largest: float, size: int) -> _Piece:
    if size > _MOST_PARTS:
        raise NotTranslated
    return _Piece(expr, largest, size)


def _largest(op: Op, args: list[float]) -> float:
    """A bound on the result of an operation, given those of its operands."""
    if math.inf not in args and op in (Op.ADD, Op.SUBTRACT, Op.MULTIPLY):
        exact = math.prod(args) if op is Op.MULTIPLY else sum(args)
        return math.nextafter(exact, math.inf)
    return math.inf if math.inf in args or op.row.null is Null.MADE else LARGEST


def _constant(node: Literal) -> pl.Expr:
    return pl.lit(node.value, _DTYPES[node.type])


_COMPARE = {Op.EQUAL, Op.LESS, Op.LESS_EQUAL}
_MIRRORED: dict[Op, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {Op.EQUAL: eq, Op.LESS: gt, Op.LESS_EQUAL: ge}


def _compare(node: Call, left: pl.Expr, right: pl.Expr) -> pl.Expr:
    """A comparison that has no constant on its left.

    There Polars would reduce a column whose rows happen to be equal to one value, and then count one row: an error that
    would depend on the rows.
    """
    if columns(node.args[0]):
        return node.op.row.value(left, right)  # type: ignore[no-any-return]  # of Polars
    return _MIRRORED[node.op](right, left)


def _is_full(node: Node) -> bool:
    """Whether Polars keeps a value for every row, even if all are equal; it divides by one value via its reciprocal."""
    if isinstance(node, Call):
        return node.op in _ARITHMETIC and any(map(_is_full, node.args))
    return isinstance(node, Column)


_ARITHMETIC = (Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.NEGATE, Op.ABS)  # Python's operators, also for columns
_SIMPLE: dict[Op, Callable[..., pl.Expr]] = {
    **{op: op.row.value for op in _ARITHMETIC},
    Op.AND: lambda *args: reduce(and_, args),
    Op.OR: lambda *args: reduce(or_, args),
    Op.NOT: inv,
    Op.IS_TRUE: lambda x: x.fill_null(False),
    Op.IS_NULL: lambda x: x.is_null(),
    Op.COALESCE: pl.coalesce,
    Op.LEAST: pl.min_horizontal,
    Op.GREATEST: pl.max_horizontal,
    Op.SIGN: lambda x: x.sign(),
    Op.FLOOR: lambda x: x.floor(),
    Op.CEIL: lambda x: x.ceil(),
    Op.EXP: lambda x: x.exp(),
    Op.LN: lambda x: x.log(),
    Op.SQRT: lambda x: x.sqrt(),
    Op.TRIM: lambda x: x.str.strip_chars(" "),
    Op.LENGTH: lambda x: x.str.len_chars().cast(pl.Float64),
}
_PARTS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "year": lambda x: x.dt.year(),
    "month": lambda x: x.dt.month(),
    "day": lambda x: x.dt.day(),
    "hour": lambda x: x.dt.hour(),
    "minute": lambda x: x.dt.minute(),
    "second": lambda x: x.dt.second(),
    "isodow": lambda x: x.dt.weekday(),
    "dow": lambda x: x.dt.weekday() % 7,
    "doy": lambda x: x.dt.ordinal_day(),
}


def _part(when: pl.Expr, unit: str) -> pl.Expr:
    if unit not in _PARTS:
        raise NotTranslated
    return _PARTS[unit](when).cast(pl.Float64)


def _like(text: pl.Expr, like: str) -> pl.Expr:
    """LIKE with % only at its ends, without a regular expression. DuckDB takes the others."""
    inner = like.strip("%")
    if "_" in like or "%" in inner:
        raise NotTranslated
    if not inner and like:
        return text.str.contains("", literal=True)
    if like.startswith("%"):
        return text.str.contains(inner, literal=True) if like.endswith("%") else text.str.ends_with(inner)
    return text.str.starts_with(inner) if like.endswith("%") else text == inner


_OF_LITERALS: dict[Op, Callable[..., pl.Expr]] = {
    Op.IN: lambda x, *values: x.is_in(list(values)),
    Op.LIKE: _like,
    Op.STARTS_WITH: lambda x, text: x.str.starts_with(text),
    Op.ENDS_WITH: lambda x, text: x.str.ends_with(text),
    Op.CONTAINS: lambda x, text: x.str.contains(text, literal=True),
    Op.SUBSTRING: lambda x, start, *length: x.str.slice(int(start) - 1, *map(int, length)),
    Op.PART: _part,
}


def _clipped(piece: _Piece, query: Query) -> pl.Expr:
    """The value in [0, 1] of a number, or NULL where missing. A chain of `when` measures twice as fast as `clip`."""
    (low, high), fill, x = query.bounds, query.fill, piece.expr
    width = high - low
    if not sys.float_info.min <= 1 / width < math.inf:
        raise NotTranslated  # Polars divides by way of the reciprocal, which would have too few digits
    bottom, top = x <= low, x >= high
    chain: Any = pl
    if not piece.clean:
        if fill == 0.0:
            bottom |= x > LARGEST
        elif fill == 1.0:
            top |= x < -LARGEST
        else:
            chain = chain.when((x < -LARGEST) | (x > LARGEST)).then(fill)
    if fill == 1.0:  # NaN, and missing values below all numbers, are tested first
        chain = chain.when(top).then(1.0).when(bottom).then(0.0)
    else:
        chain = chain.when(bottom).then(0.0).when(top).then(1.0)
    return chain.otherwise((x - low) / width)  # type: ignore[no-any-return]  # of Polars
