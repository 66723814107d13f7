"""What an expression means, one row at a time in plain Python: the reference every engine is checked against."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from afresh.queries.query import Query
from afresh.queries.tree import NUMBER_TEXT, Call, Column, Literal, Node, Op, Type

Row = Mapping[str, Any]


# Results no standard fixes to the last bit: libraries of mathematics differ there. -1 and 1 move them by one.
LIBRARY = {Op.POWER, Op.EXP, Op.LN, Op.LOG10}
nudge = 0


def _finite(op: Op, *args: float) -> float | None:
    try:
        value = float(_NUMERIC[op](*args))
    except (ValueError, OverflowError, ZeroDivisionError):
        return None
    if nudge and op in LIBRARY:
        value = math.nextafter(value, nudge * math.inf)
    return value if math.isfinite(value) else None


def _round(x: float) -> float:
    whole = math.floor(abs(x))
    return math.copysign(whole + (abs(x) - whole >= 0.5), x)


_NUMERIC: dict[Op, Callable[..., float]] = {
    Op.ADD: lambda x, y: x + y,
    Op.SUBTRACT: lambda x, y: x - y,
    Op.MULTIPLY: lambda x, y: x * y,
    Op.DIVIDE: lambda x, y: x / y,
    Op.MODULO: math.fmod,
    Op.POWER: math.pow,
    Op.NEGATE: lambda x: -x,
    Op.ABS: abs,
    Op.SIGN: lambda x: (x > 0) - (x < 0),
    Op.FLOOR: math.floor,
    Op.CEIL: math.ceil,
    Op.ROUND: _round,
    Op.EXP: math.exp,
    Op.LN: math.log,
    Op.LOG10: math.log10,
    Op.SQRT: math.sqrt,
}


def _like(text: str, pattern: str) -> bool:
    """By the set of places in the text where the pattern read so far can end: no backtracking, whatever the text."""
    places = {0}
    for sign in pattern:
        if sign == "%":
            places = set(range(min(places), len(text) + 1)) if places else places
        else:
            places = {place + 1 for place in places if place < len(text) and sign in ("_", text[place])}
    return len(text) in places


def _epoch(when: date) -> int:
    start = datetime(1970, 1, 1) if isinstance(when, datetime) else date(1970, 1, 1)
    return (when - start) // timedelta(seconds=1)


_PARTS: dict[str, Callable[[Any], int]] = {
    "year": lambda when: when.year,
    "month": lambda when: when.month,
    "day": lambda when: when.day,
    "dow": lambda when: when.isoweekday() % 7,
    "isodow": lambda when: when.isoweekday(),
    "doy": lambda when: when.timetuple().tm_yday,
    "hour": lambda when: when.hour,
    "minute": lambda when: when.minute,
    "second": lambda when: when.second,
    "epoch": _epoch,
}

_STRICT: dict[Op, Callable[..., Any]] = {
    Op.EQUAL: lambda x, y: x == y,
    Op.LESS: lambda x, y: x < y,
    Op.LESS_EQUAL: lambda x, y: x <= y,
    Op.IN: lambda x, *choices: x in choices,
    Op.LIKE: _like,
    Op.NOT: lambda x: not x,
    Op.STARTS_WITH: str.startswith,
    Op.ENDS_WITH: str.endswith,
    Op.CONTAINS: lambda x, y: y in x,
    Op.LOWER: lambda x: x.encode().lower().decode(),  # bytes know ASCII only
    Op.UPPER: lambda x: x.encode().upper().decode(),
    Op.SUBSTRING: lambda x, start, length=math.inf: x[int(start) - 1 :][: int(min(length, len(x)))],
    Op.TO_NUMBER: lambda x: float(x.strip(" ")) if re.fullmatch(NUMBER_TEXT, x) else None,
    Op.TO_TEXT: lambda x: str(int(x)) if x == int(x) and abs(x) <= 2**53 else None,
    Op.PART: lambda unit, when: float(_PARTS[unit](when)),
    Op.TRIM: lambda x: x.strip(" "),
    Op.LENGTH: lambda x: float(len(x)),
}


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
    op = node.op
    if op is Op.IS_NULL:
        return args[0] is None
    if op is Op.IS_TRUE:
        return args[0] is True
    if op is Op.AND:
        return False if False in args else None if None in args else True
    if op is Op.OR:
        return True if True in args else None if None in args else False
    if op is Op.CASE:
        taken = (value for test, value in zip(args[:-1:2], args[1:-1:2], strict=True) if test is True)
        return next(taken, args[-1])
    if op in (Op.COALESCE, Op.LEAST, Op.GREATEST):
        there = [arg for arg in args if arg is not None]
        if not there:
            return None
        return there[0] if op is Op.COALESCE else (min if op is Op.LEAST else max)(there)
    if None in args:
        return None
    return _finite(op, *args) if op in _NUMERIC else _STRICT[op](*args)


def psi(query: Query, expression: Node, group: Node | None, row: Row) -> float:
    """The query's value in [0, 1] on a row, of the expression and group it was made of."""
    value = evaluate(expression, row)
    low, high = query.bounds
    if value is None:
        unit = query.fill
    elif isinstance(value, bool):
        unit = float(value)
    else:
        unit = 0.0 if value <= low else 1.0 if value >= high else (value - low) / (high - low)
    unit = 1.0 - unit if query.complement else unit
    if group is not None and evaluate(group, row) is not True:
        return 0.0
    return unit
