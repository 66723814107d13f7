"""Turns expression trees into SQL for any dialect: a stack of projections over one scan.

A dialect writes every operation so no row can make it fail. Such a text often names an operand more than once
(`CASE WHEN isfinite(x) THEN x END`), which would double the text at every level of nesting; so operands are first
given a name in their own projection, and a statement is a stack of such layers.

A dialect has a `Rule` only for an operation that it does not write as most dialects do: `a + b`, `abs(a)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import Protocol

from afresh.engines.simpler import unit_of
from afresh.moments import Span
from afresh.queries.operations import ALL, Null, Sort
from afresh.queries.query import Query
from afresh.queries.tree import Call, Column, Literal, Node, Op, Type

Write = Callable[[Sequence[str]], str]
# The lowest 1e-150 of a question's width counts as zero: then neither the quotient nor its square can underflow, which
# some engines refuse. The difference is invisible beside 1e-12.
_FLUSHED = 1e-150
_TIMES = {Type.DATE: (date.min, date.max), Type.TIMESTAMP: (datetime.min, datetime.max)}
_COMPARE = (Op.EQUAL, Op.LESS, Op.LESS_EQUAL)
_LARGEST = 1.7976931348623157e308


@dataclass(frozen=True, slots=True)
class Rule:
    """How a dialect writes one operation.

    `repeats`: the text names an operand more than once. `wild`: the result can be NaN or infinite although every
    operand is finite. `passes`: how many leading operands may be NaN or infinite themselves, because the result is then
    not finite either (inf / 2 = inf, but 2 / inf = 0).
    """

    write: Write
    repeats: bool = False
    wild: bool = False
    passes: int = 0


def infix(sign: str) -> Write:
    """Write `(a sign b)`."""
    return lambda args: f"({f' {sign} '.join(args)})"


def form(template: str) -> Write:
    """Write a text with `{0}`, `{1}`, ... for the operands."""
    return lambda args: template.format(*args)


def listed(name: str) -> Write:
    """Write `name(a, b, ...)`."""
    return lambda args: f"{name}({', '.join(args)})"


def _case(args: Sequence[str]) -> str:
    pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
    return f"(CASE {' '.join(f'WHEN {test} THEN {value}' for test, value in pairs)} ELSE {args[-1]} END)"


_FORMS: dict[Op, Write] = {
    Op.NOT: form("(NOT {0})"),
    Op.IS_TRUE: form("coalesce({0}, FALSE)"),
    Op.IS_NULL: form("(({0}) IS NULL)"),
    Op.IN: lambda args: f"({args[0]} IN ({', '.join(args[1:])}))",
    Op.CASE: _case,
    Op.NEGATE: form("(-({0}))"),
}
# how most dialects write an operation; what comes out if doubles follow IEEE 754 is as its row says
COMMON: dict[Op, Rule] = {
    op: Rule(
        _FORMS.get(op) or (infix(op.row.sign) if op.row.binds else listed(op.value)),
        wild=op.row.null is Null.MADE and op.row.returns is Type.NUMBER,
        passes=op.row.passes,
    )
    for op in Op
}


def quoted(text: str) -> str:
    """A text in single quotes, with quotes inside doubled."""
    return "'" + text.replace("'", "''") + "'"


def pattern(like: str, any_text: str, escape: Callable[[str], str]) -> str:
    """A LIKE pattern as a regular expression in which `any_text` stands for %; the parts between have fixed lengths."""
    pieces = []
    for piece in re.findall("%+|_+|[^%_]+", like):
        sign = piece[0]
        pieces.append(any_text if sign == "%" else f".{{{len(piece)}}}" if sign == "_" else escape(piece))
    return "".join(pieces)


class Dialect(Protocol):
    """Everything that differs between the engines' SQL."""

    rules: Mapping[Op, Rule]
    types: Mapping[Type, str]
    """The names of the types of constants."""

    def kind(self, physical: str) -> Type | None:
        """The type questions see for a physical type; None if they cannot use it."""
        ...

    def leaf(self, name: str, physical: str) -> str:
        """A column as questions see it, from the scanned relation, which is always called d."""
        ...

    def wild(self, physical: str) -> bool:
        """Whether a leaf of this type can be NaN or infinite."""
        ...

    def bare(self, name: str, physical: str) -> str:
        """A date or timestamp that may lie beyond the years of the language, or a column as it is stored."""
        ...

    def double(self, value: float) -> str:
        """A finite double, exactly."""
        ...

    def quote_text(self, text: str) -> str:
        """A string constant that means itself."""
        ...

    def is_finite(self, name: str) -> str:
        """The condition that a named number is finite; not true for NULL."""
        ...

    def count_if(self, condition: str, *, several: bool) -> str:
        """The aggregate that counts the rows where a condition, perhaps one of several parts, is true."""
        ...


def write_constant(dialect: Dialect, node: Literal) -> str:
    """A constant of the node's own type."""
    value, kind = node.value, dialect.types[node.type]
    if value is None:
        return f"CAST(NULL AS {kind})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return dialect.double(value)
    return dialect.quote_text(value) if isinstance(value, str) else f"{kind} '{value}'"


def end_of(dialect: Dialect, kind: Type, which: int) -> str:
    """The least (0) or largest (1) value in the language, for a type that has more values in engines."""
    ends = _TIMES.get(kind, (-_LARGEST, _LARGEST))
    return write_constant(dialect, Literal(ends[which], kind))


@dataclass(frozen=True, slots=True)
class _Piece:
    """SQL of a subexpression, with the layer of its names, the names, and whether it is surely finite and a name."""

    sql: str
    layer: int = 0
    mentions: frozenset[str] = frozenset()
    finite: bool = True
    name: bool = False


@dataclass
class Statement:
    """Gathers the aggregates of many queries over one scan."""

    dialect: Dialect
    columns: Mapping[str, str]  # names and physical types
    group: Node | None = None  # the common group of all queries, if the engine leaves out other rows by `test`
    below: bool = False  # whether numbers are made finite in the scan, once, and not in every comparison
    computes: bool = False  # whether the scan does so for a column
    leaves: dict[str, str] = field(default_factory=dict)  # expression -> name, between NULs, which no SQL contains
    layers: list[dict[str, tuple[str, _Piece]]] = field(default_factory=list)
    outputs: list[_Piece] = field(default_factory=lambda: [_Piece("count(*)")])

    def add(self, query: Query, span: Span | None = None) -> slice:
        """Add a query (over one span of rows); return which outputs hold its total (and sum of squares)."""
        inside = []
        if span is not None:
            inside.append(_Piece(f"place >= {span.start:d} AND place < {span.stop:d}", 0, frozenset(["place"])))
        if query.group is not None and self.group is None:
            inside.append(self._truth(query.group))
        start = len(self.outputs)
        if query.expression.type is Type.BOOLEAN:
            self.outputs.append(self._count(query, inside))
        else:
            value = self._unit(query.expression, query)
            if query.complement:
                value = _join(f"{self.dialect.double(1.0)} - {value.sql}", value)
            if inside:
                test, zero = " AND ".join(part.sql for part in inside), self.dialect.double(0.0)
                value = _join(f"CASE WHEN {test} THEN {value.sql} ELSE {zero} END", *inside, value)
            unit = self._named(value)
            self.outputs += [_join(f"sum({sql})", unit) for sql in (unit.sql, f"{unit.sql} * {unit.sql}")]
        return slice(start, len(self.outputs))

    def _count(self, query: Query, inside: list[_Piece]) -> _Piece:
        """The aggregate of a condition."""
        node = query.expression
        if query.fill or query.complement:
            value = self._piece(node)
            said = f"coalesce({value.sql}, {'TRUE' if query.fill else 'FALSE'})"
            inside = [*inside, _join(f"NOT {said}" if query.complement else said, value)]
        elif node != Literal(True, Type.BOOLEAN):
            inside = [*inside, self._truth(node)]  # NULL is not counted anyway
        if not inside:
            return _Piece("count(*)")
        several = len(inside) > 1 or (isinstance(node, Call) and node.op in (Op.AND, Op.OR))
        return _join(self.dialect.count_if(" AND ".join(part.sql for part in inside), several=several), *inside)

    @cached_property
    def test(self) -> _Piece | None:
        """The condition of the rows that count, in terms of the last names."""
        return None if self.group is None else self._truth(self.group)

    @property
    def over_table(self) -> str | None:
        """The test directly over the table, if it needs no names."""
        if self.test is None or self.test.layer:
            return None
        text = self.test.sql
        for sql, name in self.leaves.items():
            text = text.replace(name, sql)
        return text

    def scan(self) -> list[str]:
        """The projection at the bottom; the engine adds places of rows if there are any."""
        return [f"{sql} AS {_bare(name)}" for sql, name in self.leaves.items()] or ["0 AS nothing"]  # none may be read

    @property
    def names(self) -> list[str]:
        """The names that the scan gives the columns."""
        return [_bare(name) for name in self.leaves.values()]

    def short(self) -> list[str] | None:
        """The aggregates directly over the table, if they need no names; for a small table, parsing SQL takes long."""
        test = self.test
        if self.layers or self.computes:
            return None
        texts = [output.sql for output in (*self.outputs, *([] if test is None else [test]))]
        for sql, name in self.leaves.items():
            texts = [text.replace(name, sql) for text in texts]
        return texts

    def steps(self) -> list[list[str]]:
        """The projections above the scan, bottom up; the last one holds the aggregates, and the `test` if there is one.

        A projection carries only what a later one names: engines limit the columns of a relation.
        """
        outputs = self.outputs if self.test is None else [*self.outputs, self.test]
        steps = [[output.sql for output in outputs]]
        needed = frozenset[str]().union(*(output.mentions for output in outputs))
        for layer in reversed(self.layers):
            made = {name: piece for name, piece in layer.values() if name in needed}
            kept = needed - made.keys()
            steps.append([*(f"{piece.sql} AS {name}" for name, piece in made.items()), *sorted(kept)])
            needed = kept.union(*(piece.mentions for piece in made.values()))
        return [[_bare(text) for text in step] or ["0 AS nothing"] for step in reversed(steps)]

    @property
    def width(self) -> int:
        """The number of columns of the widest projection."""
        return max(map(len, [self.leaves, *self.steps()]))

    def _named(self, piece: _Piece) -> _Piece:
        """Give the piece a name, in a layer above everything it mentions."""
        if piece.name:
            return piece
        while len(self.layers) <= piece.layer:
            self.layers.append({})
        layer = self.layers[piece.layer]
        name, _ = layer.setdefault(piece.sql, (f"t{piece.layer}_{len(layer)}", piece))
        return _Piece(name, piece.layer + 1, frozenset([name]), piece.finite, name=True)

    def _leaf(self, sql: str, *, finite: bool = True) -> _Piece:
        """Give a column a name."""
        name = self.leaves.setdefault(sql, f"\0c{len(self.leaves)}\0")
        return _Piece(name, 0, frozenset([name]), finite, name=True)

    def _clean(self, node: Node) -> _Piece:
        """A number that is finite or NULL; anything else as it is."""
        piece = self._piece(node)
        if piece.finite:
            return piece
        piece = self._named(piece)
        return _join(f"CASE WHEN {self.dialect.is_finite(piece.sql)} THEN {piece.sql} END", piece)

    def _piece(self, node: Node) -> _Piece:
        if isinstance(node, Column):
            physical = self.columns[node.name]
            sql, wild = self.dialect.leaf(node.name, physical), self.dialect.wild(physical)
            if wild and self.below:
                sql, wild = f"CASE WHEN {self.dialect.is_finite(sql)} THEN {sql} END", False
                self.computes = True
            return self._leaf(sql, finite=not wild)
        if isinstance(node, Literal):
            return _Piece(write_constant(self.dialect, node), name=True)  # as short as a name
        rule = self.dialect.rules[node.op]
        args = []
        for place, arg in enumerate(node.args):
            if _is_plain(node.op, place):
                args.append(_Piece(_plain(arg), name=True))
            elif passes(node.op, rule.passes, place, len(node.args)):
                args.append(self._piece(arg))
            elif node.op is Op.CASE:
                args.append(self._truth(arg))
            else:
                args.append(self._clean(arg))
        if rule.repeats:
            args = [self._named(arg) for arg in args]
            if not any(arg.mentions for arg in args):
                # only constants: unless one hides behind a name, a planner would compute what a guard forbids
                args[-1] = self._named(_Piece(args[-1].sql))
        piece = _join(rule.write([arg.sql for arg in args]), *args)
        finite = not rule.wild and all(arg.finite for arg in args)
        return _Piece(piece.sql, piece.layer, piece.mentions, finite)

    def _truth(self, node: Node) -> _Piece:
        """Where a condition is true; elsewhere it may be false or NULL, so it needs no CASE."""
        if not isinstance(node, Call):
            return self._piece(node)
        if node.op in (Op.AND, Op.OR):
            args = [self._truth(arg) for arg in node.args]
            return _join(self.dialect.rules[node.op].write([arg.sql for arg in args]), *args)
        return self._compared(node) if node.op in _COMPARE else self._piece(node)

    def _compared(self, node: Call) -> _Piece:
        """A comparison of values that may be beyond the language: NaN above all numbers, minus infinity below them.

        If it holds, the left side is not above the right one, so only one end needs checking on each.
        """
        left, right = (self._bare(arg) for arg in node.args)
        limits = []
        if not left.finite and not (node.op is Op.EQUAL and right.finite):
            left = self._named(left)
            limits.append(f"{left.sql} >= {end_of(self.dialect, node.args[0].type, 0)}")
        if not right.finite and not (node.op is Op.EQUAL and left.finite):
            right = self._named(right)
            limits.append(f"{right.sql} <= {end_of(self.dialect, node.args[1].type, 1)}")
        compared = self.dialect.rules[node.op].write([left.sql, right.sql])
        return _join(f"({' AND '.join([compared, *limits])})" if limits else compared, left, right)

    def _bare(self, node: Node) -> _Piece:
        """A side of a comparison, which may be beyond the language, as stored dates may be."""
        if isinstance(node, Column) and node.type in _TIMES:
            return self._leaf(self.dialect.bare(node.name, self.columns[node.name]), finite=False)
        return self._piece(node)

    def _unit(self, node: Node, query: Query) -> _Piece:
        """The value of a number in [0, 1], before `complement`. In a CASE, constants are not clipped."""
        if isinstance(node, Literal):
            value = unit_of(query, node.value)  # type: ignore[arg-type]  # a number or NULL
            return _Piece(self.dialect.double(value if value > _FLUSHED else 0.0))
        if isinstance(node, Call) and node.op is Op.CASE:
            last = len(node.args) - 1
            args = [self._unit(a, query) if i % 2 or i == last else self._truth(a) for i, a in enumerate(node.args)]
            return _join(_case([arg.sql for arg in args]), *args)
        return self._clipped(self._named(self._piece(node)), query)

    def _clipped(self, piece: _Piece, query: Query) -> _Piece:
        """The value of a named number in [0, 1]. NaN is above all numbers, so each row takes two or three comparisons.

        CASE is four times as fast as least(greatest(...)), and faster than asking first whether the number is finite.
        """
        name, double, (low, high) = piece.sql, self.dialect.double, query.bounds
        zero, one, lowest = double(0.0), double(1.0), double(low + (high - low) * _FLUSHED)
        fill = double(query.fill if query.fill > _FLUSHED else 0.0)
        scaled = f"({name} - {double(low)}) / {double(high - low)}"
        beneath = zero if fill == zero else f"CASE WHEN {name} >= {double(-_LARGEST)} THEN {zero} ELSE {fill} END"
        below = f"CASE WHEN {name} > {lowest} THEN {scaled} ELSE {beneath} END"
        above = f"WHEN {name} <= {double(_LARGEST)} THEN {one} ELSE {fill} END"
        value = f"CASE WHEN {name} < {double(high)} THEN {below} {above}"
        return _join(value, piece)


def passes(op: Op, leading: int, place: int, count: int) -> bool:
    """Whether the operand at this place may be non-finite, if this many leading ones may."""
    if op is Op.CASE:  # results pass, conditions are booleans and clean anyway
        return place % 2 == 1 or place == count - 1
    return leading == ALL or place < leading


def _is_plain(op: Op, place: int) -> bool:
    """Whether dialects get an operand, which is always a constant, as plain text instead of as SQL."""
    return op.row.takes[min(place, len(op.row.takes) - 1)] in (Sort.WORD, Sort.WHOLE)


def _plain(node: Node) -> str:
    assert isinstance(node, Literal)
    return f"{node.value:.0f}" if isinstance(node.value, float) else str(node.value)


def _bare(text: str) -> str:
    return text.replace("\0", "")


def _join(sql: str, *parts: _Piece) -> _Piece:
    """Combine several pieces into one text."""
    layer = max((part.layer for part in parts), default=0)
    return _Piece(sql, layer, frozenset[str]().union(*(part.mentions for part in parts)))
