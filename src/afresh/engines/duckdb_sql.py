"""Expression trees to DuckDB SQL that no row can make fail.

DuckDB's doubles follow IEEE 754: overflow, x / 0, ln(-1) give an infinity or NaN, never an error. A tree's
numbers are finite or NULL, so those values must become NULL before anything can see them.
`CASE WHEN isfinite(x) THEN x END` names x twice, which nested would double the text at every level; so x is
first given a name in a subquery of its own, and a statement is a stack of such layers. Operations that keep a
non-finite operand non-finite (+, *, abs, ...) let it pass, so most expressions need one layer or none.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from afresh.errors import QueryError
from afresh.queries.query import Query
from afresh.queries.tree import LARGEST_WHOLE, NUMBER_TEXT, Call, Column, Literal, Node, Op, Type

_INTEGERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_ZONED = "TIMESTAMP WITH TIME ZONE"
_INFIX = {
    Op.AND: " AND ",
    Op.OR: " OR ",
    Op.EQUAL: " = ",
    Op.LESS: " < ",
    Op.LESS_EQUAL: " <= ",
    Op.LIKE: " LIKE ",
    Op.ADD: " + ",
    Op.SUBTRACT: " - ",
    Op.MULTIPLY: " * ",
    Op.DIVIDE: " / ",
    Op.MODULO: " % ",
}
# which operands may be non-finite: the result then is non-finite too (inf / 2 = inf, but 2 / inf = 0)
_PASSES_ALL = {Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.NEGATE, Op.ABS, Op.FLOOR, Op.CEIL, Op.ROUND}
_PASSES_ALL |= {Op.LN, Op.LOG10, Op.SQRT}
_PASSES_FIRST = {Op.DIVIDE, Op.MODULO}
# operations whose result can be non-finite although no operand is
NEW = {Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.MODULO, Op.POWER, Op.EXP, Op.LN, Op.LOG10, Op.SQRT}


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
    this, kind = column(name), type_of(physical)
    if kind is Type.NUMBER:
        return this if physical == "DOUBLE" else f"CAST({this} AS DOUBLE)"
    if kind is Type.TEXT:
        return this if physical == "VARCHAR" else f"CAST({this} AS VARCHAR)"
    if kind is Type.DATE:
        return f"CASE WHEN {this} BETWEEN DATE '0001-01-01' AND DATE '9999-12-31' THEN {this} END"
    if kind is Type.TIMESTAMP:
        when = f"TRY_CAST({this} AS TIMESTAMP)"
        if physical == _ZONED:  # a plain cast would read the session's time zone
            when = f"CASE WHEN isfinite({this}) THEN make_timestamp(epoch_us({this})) END"
        limits = "TIMESTAMP '0001-01-01 00:00:00' AND TIMESTAMP '9999-12-31 23:59:59.999999'"
        return f"CASE WHEN {when} BETWEEN {limits} THEN {when} END"
    return this


def clean(name: str, physical: str) -> str:
    """A column as questions see it; an integer of its own type, as any double it becomes is finite."""
    this = leaf(name, physical)
    if type_of(physical) is not Type.NUMBER:
        return this
    small = physical in _INTEGERS and not physical.endswith("HUGEINT")
    return column(name) if small else f"CASE WHEN isfinite({this}) THEN {this} END"


def column(name: str) -> str:
    """A column of the scanned relation, which is always called d: names of ours cannot be mistaken for it."""
    return "d." + quote_name(name)


def quote_name(name: str) -> str:
    """An identifier that means itself, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """A string constant that means itself."""
    if "\0" in text:
        raise QueryError("text with a NUL character cannot be asked for")
    return "'" + text.replace("'", "''") + "'"


def constant(node: Literal) -> str:
    """A constant of the node's own type."""
    value = node.value
    if value is None:
        return f"CAST(NULL AS {'DOUBLE' if node.type is Type.NUMBER else _SQL_TYPE[node.type]})"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return double(value)
    if isinstance(value, str):
        return quote_text(value)
    return f"{'TIMESTAMP' if isinstance(value, datetime) else 'DATE'} '{value.isoformat()}'"


_SQL_TYPE = {Type.BOOLEAN: "BOOLEAN", Type.TEXT: "VARCHAR", Type.DATE: "DATE", Type.TIMESTAMP: "TIMESTAMP"}


def double(value: float) -> str:
    """A finite double, exactly; the exponent keeps DuckDB from reading a DECIMAL."""
    text = repr(value)
    text = text if "e" in text else text + "e0"
    return f"({text})" if value < 0 else text


@dataclass(frozen=True, slots=True)
class _Piece:
    """SQL of a subexpression: the layer its names exist in, whether it is surely finite, if it is a name."""

    sql: str
    layer: int = 0
    finite: bool = True
    name: bool = False


@dataclass
class Statement:
    """Gathers the aggregates of many queries into one SELECT over one scan."""

    source: str
    columns: Mapping[str, str]  # names and DuckDB types
    blocks: bool = False  # whether the source has a column `block`
    leaves: dict[str, str] = field(default_factory=dict)  # SQL -> name, between NULs, which no SQL contains
    layers: list[dict[str, str]] = field(default_factory=list)  # per layer: expression -> its name
    outputs: list[str] = field(default_factory=lambda: ["count(*)"])

    def add(self, query: Query, block: int | None = None) -> slice:
        """Add a query (of one block of rows); says which outputs hold its total (and sum of squares)."""
        within = "" if block is None else f"block = {block:d}"
        group = None if query.group is None else self._piece(query.group)
        inside = " AND ".join(part for part in (within, group and group.sql) if part)
        start = len(self.outputs)
        if query.expression.type is Type.BOOLEAN:
            value = self._piece(query.expression).sql
            if query.fill or query.complement:  # else NULL is not counted anyway
                value = f"coalesce({value}, {'TRUE' if query.fill else 'FALSE'})"
            value = f"NOT {value}" if query.complement else value
            self.outputs.append(_count(" AND ".join(part for part in (inside, value) if part)))
        else:
            raw = self._named(self._piece(query.expression))
            layer = max(raw.layer, group.layer if group else 0)
            value = _unit(raw.sql, query)
            value = f"CASE WHEN {inside} THEN {value} ELSE 0e0 END" if inside else value
            name = self._named(_Piece(value, layer)).sql
            self.outputs += [f"sum({name})", f"sum({name} * {name})"]
        return slice(start, len(self.outputs))

    def sql(self) -> str:
        """The whole statement."""
        outputs = ", ".join(self.outputs)
        if not self.layers and not self.blocks:  # short SQL: of a small table, reading the statement is half the time
            for sql, name in self.leaves.items():
                outputs = outputs.replace(name, sql)
            return f"SELECT {outputs} FROM {self.source}"
        leaves = [f"{sql} AS {name}" for sql, name in self.leaves.items()]
        leaves.append("dealt.block AS block" if self.blocks else "0 AS block")  # some read no column at all
        text = f"SELECT {', '.join(leaves)} FROM {self.source}"
        for layer in self.layers:
            text = f"SELECT *, {', '.join(f'{sql} AS {name}' for sql, name in layer.items())} FROM ({text})"
        return f"SELECT {outputs} FROM ({text})".replace("\0", "")

    def _named(self, piece: _Piece) -> _Piece:
        """The piece by a name, in a layer above everything it mentions."""
        if piece.name:
            return piece
        while len(self.layers) <= piece.layer:
            self.layers.append({})
        layer = self.layers[piece.layer]
        name = layer.setdefault(piece.sql, f"t{piece.layer}_{len(layer)}")
        return _Piece(name, piece.layer + 1, piece.finite, name=True)

    def _clean(self, node: Node) -> _Piece:
        """A number that is finite or NULL; anything else as it is."""
        piece = self._piece(node)
        if piece.finite:
            return piece
        piece = self._named(piece)
        return _Piece(f"CASE WHEN isfinite({piece.sql}) THEN {piece.sql} END", piece.layer)

    def _piece(self, node: Node) -> _Piece:
        if isinstance(node, Column):
            physical = self.columns[node.name]
            name = self.leaves.setdefault(leaf(node.name, physical), f"\0c{len(self.leaves)}\0")
            return _Piece(name, finite=physical not in ("FLOAT", "DOUBLE"), name=True)
        if isinstance(node, Literal):
            return _Piece(constant(node))
        if node.op in _OF_A_NAME:
            piece = self._named(self._clean(node.args[0]))
            return _Piece(_OF_A_NAME[node.op](piece.sql), piece.layer)
        args = [
            self._piece(arg) if passes(node.op, place, len(node.args)) else self._clean(arg)
            for place, arg in enumerate(node.args)
        ]
        finite = node.op not in NEW and all(arg.finite for arg in args)
        return _Piece(_call(node, [arg.sql for arg in args]), max(arg.layer for arg in args), finite)


def passes(op: Op, place: int, count: int) -> bool:
    """Whether the operand at this place may be non-finite: the result then is non-finite too."""
    if op is Op.CASE:  # results pass, conditions are booleans and clean anyway
        return place % 2 == 1 or place == count - 1
    return op in _PASSES_ALL or (op in _PASSES_FIRST and place == 0)


def _call(node: Call, args: list[str]) -> str:
    op = node.op
    if op in _INFIX:
        return f"({_INFIX[op].join(args)})"
    if op is Op.NOT:
        return f"(NOT {args[0]})"
    if op is Op.IS_NULL:
        return f"(({args[0]}) IS NULL)"
    if op is Op.IS_TRUE:
        return f"coalesce({args[0]}, FALSE)"
    if op is Op.IN:
        return f"({args[0]} IN ({', '.join(args[1:])}))"
    if op is Op.NEGATE:
        return f"(-({args[0]}))"
    if op is Op.CASE:
        pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
        return f"(CASE {' '.join(f'WHEN {test} THEN {value}' for test, value in pairs)} ELSE {args[-1]} END)"
    if op is Op.TRIM:
        return f"trim({args[0]}, ' ')"
    if op is Op.SUBSTRING:
        args = [args[0], *(f"{_whole(arg):d}" for arg in node.args[1:])]
    if op is Op.PART and args[0] == "'epoch'":  # whole seconds first: microseconds do not fit a double
        return f"epoch(date_trunc('second', {args[1]}))"
    call = f"{op.value}({', '.join(args)})"
    return f"CAST({call} AS DOUBLE)" if op in (Op.SIGN, Op.LENGTH, Op.PART) else call


def _whole(node: Node) -> int:
    assert isinstance(node, Literal)
    assert isinstance(node.value, float)
    return int(node.value)


def _to_number(name: str) -> str:
    return f"CASE WHEN regexp_full_match({name}, {quote_text(NUMBER_TEXT)}) THEN TRY_CAST({name} AS DOUBLE) END"


def _to_text(name: str) -> str:
    whole = f"abs({name}) <= {double(LARGEST_WHOLE)} AND floor({name}) = {name}"
    return f"CASE WHEN {whole} THEN CAST(TRY_CAST({name} AS BIGINT) AS VARCHAR) END"


def _mapped(function: str, old: str, new: str) -> Callable[[str], str]:
    """Letters of ASCII only. DuckDB's own functions know more, but not in a text of as many bytes as code points;
    for such they are used, because translate measures forty times as slow.
    """

    def write(name: str) -> str:
        fast, slow = f"{function}({name})", f"translate({name}, '{old}', '{new}')"
        return f"CASE WHEN strlen({name}) = length({name}) THEN {fast} ELSE {slow} END"

    return write


_UPPER, _LOWER = string.ascii_uppercase, string.ascii_lowercase
# operations whose SQL mentions the operand more than once, so that it must be a name
_OF_A_NAME: dict[Op, Callable[[str], str]] = {
    Op.TO_NUMBER: _to_number,
    Op.TO_TEXT: _to_text,
    Op.LOWER: _mapped("lower", _UPPER, _LOWER),
    Op.UPPER: _mapped("upper", _LOWER, _UPPER),
}


def _count(condition: str) -> str:
    """How many rows satisfy a condition. Each form measures up to three times as fast as the other in its case."""
    if " AND " in condition:  # CASE tests the second part only where the first holds
        return f"count(CASE WHEN {condition} THEN 1 END)"
    return f"coalesce(count_if({condition}), 0)"  # NULL if all rows are


def _unit(name: str, query: Query) -> str:
    """The value of a named number in [0, 1]. CASE measures four times as fast as least(greatest(...))."""
    low, high = query.bounds
    scaled = f"({name} - {double(low)}) / {double(high - low)}"
    value = f"CASE WHEN {name} <= {double(low)} THEN 0e0 WHEN {name} >= {double(high)} THEN 1e0 ELSE {scaled} END"
    value = f"CASE WHEN isfinite({name}) THEN {value} ELSE {double(query.fill)} END"
    return f"1e0 - {value}" if query.complement else value
