"""What an expression means, one row at a time, by the table of operations: the reference for every engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from afresh.queries.query import Query
from afresh.queries.tree import Call, Column, Literal, Node, Type

Row = Mapping[str, Any]


# Where no standard fixes the last bit, libraries of mathematics differ. -1 and 1 move it by one.
nudge = 0


def evaluate(node: Node, row: Row) -> Any:
    """The value of an expression on a row; None is NULL."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, Column):
        value = row[node.name]
        if value is not None and node.type is Type.NUMBER:
            return float(value) if math.isfinite(value) else None
        return value
    args = [evaluate(arg, row) for arg in node.args]
    return _apply(node, args)


def evaluate_all(node: Node, rows: Sequence[Row]) -> list[Any]:
    """The values of an expression on all rows; a part that occurs more than once is evaluated once."""
    found: dict[int, list[Any]] = {}

    def column(node: Node) -> list[Any]:
        if id(node) not in found:
            if isinstance(node, Call):
                found[id(node)] = [_apply(node, list(args)) for args in zip(*map(column, node.args), strict=True)]
            else:
                found[id(node)] = [evaluate(node, row) for row in rows]
        return found[id(node)]

    return column(node)


def _apply(node: Call, args: list[Any]) -> Any:
    value = node.op.evaluate(*args)
    if value is None or not (nudge and node.op.row.library):
        return value
    moved = math.nextafter(value, nudge * math.inf)
    return moved if math.isfinite(moved) else None


def psi(query: Query, expression: Node, group: Node | None, rows: Sequence[Row]) -> list[float]:
    """The query's values in [0, 1] on rows, of the expression and group it was made of."""
    inside = [True] * len(rows) if group is None else evaluate_all(group, rows)
    return [
        _unit(query, value) if among is True else 0.0
        for value, among in zip(evaluate_all(expression, rows), inside, strict=True)
    ]


def _unit(query: Query, value: Any) -> float:
    low, high = query.bounds
    if value is None:
        unit = query.fill
    elif isinstance(value, bool):
        unit = float(value)
    else:
        unit = 0.0 if value <= low else 1.0 if value >= high else (value - low) / (high - low)
    return 1.0 - unit if query.complement else unit
