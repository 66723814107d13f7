"""The range of a number that follows from its expression alone, by interval arithmetic on the tree.

Rounding is monotone, so the arithmetic of ends, rounded as the engine rounds, bounds the arithmetic of rows. Only
ranges a person would have written are given: the years 1 to 9999 or all counts of seconds are no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from afresh.queries.canonical import round_half_away
from afresh.queries.logic import never_null
from afresh.queries.tree import Call, Literal, Node, Op, Type


@dataclass(frozen=True, slots=True)
class Range:
    """Every value lies in [low, high] (none does if low > high), or is NULL if it `may_be_null`."""

    low: float
    high: float
    may_be_null: bool = True


ANYTHING = Range(-math.inf, math.inf)
_NOTHING = Range(math.inf, -math.inf)
_PARTS = {
    "month": (1.0, 12.0),
    "day": (1.0, 31.0),
    "dow": (0.0, 6.0),
    "isodow": (1.0, 7.0),
    "doy": (1.0, 366.0),
    "hour": (0.0, 23.0),
    "minute": (0.0, 59.0),
    "second": (0.0, 59.0),
}


def never_missing(node: Node) -> bool:
    """Whether the form of a condition or number alone shows that it has a value on every row."""
    return not range_of(node).may_be_null if node.type is Type.NUMBER else never_null(node)


def range_of(node: Node) -> Range:
    """What the values of a number are surely between."""
    if isinstance(node, Literal):
        return Range(node.value, node.value, False) if isinstance(node.value, float) else _NOTHING
    if not isinstance(node, Call):
        return ANYTHING
    op, args = node.op, node.args
    if op is Op.CASE:
        return _union([range_of(arg) for arg in (*args[1:-1:2], args[-1])])
    if op is Op.PART:
        assert isinstance(args[0], Literal)
        return Range(*_PARTS.get(str(args[0].value), (-math.inf, math.inf)))
    if op is Op.LENGTH:
        return Range(0.0, math.inf)
    if op is Op.TO_NUMBER:
        return ANYTHING
    return _of_ranges(op, [range_of(arg) for arg in args])


def _union(ranges: list[Range]) -> Range:
    return Range(
        min(each.low for each in ranges),
        max(each.high for each in ranges),
        any(each.may_be_null for each in ranges),
    )


def _of_ranges(op: Op, given: list[Range]) -> Range:
    if op is Op.COALESCE:
        surely = next((i for i, each in enumerate(given) if not each.may_be_null), None)
        taken = _union(given if surely is None else given[: surely + 1])
        return Range(taken.low, taken.high, surely is None)
    if op in (Op.LEAST, Op.GREATEST):
        return _extreme(op, given)
    if any(each.low > each.high for each in given):
        return _NOTHING  # an operand that is always NULL
    return _RULES[op](*given)


def _extreme(op: Op, given: list[Range]) -> Range:
    """NULL operands are skipped, so only one that is never NULL limits the others."""
    every, sure = _union(given), [each for each in given if not each.may_be_null]
    if op is Op.LEAST:
        return Range(every.low, min([every.high, *(each.high for each in sure)]), not sure)
    return Range(max([every.low, *(each.low for each in sure)]), every.high, not sure)


def _corners(compute: Callable[[float, float], float], one: Range, other: Range) -> Range:
    """Of an operation that is monotone in each operand; NULL where it overflows."""
    ends = []
    for x, y in product((one.low, one.high), (other.low, other.high)):
        try:
            end = compute(x, y)
        except (OverflowError, ValueError, ZeroDivisionError):
            end = math.nan
        if math.isnan(end):
            return ANYTHING
        ends.append(end)
    finite = all(map(math.isfinite, ends))
    return Range(min(ends), max(ends), not finite or one.may_be_null or other.may_be_null)


def _times(x: float, y: float) -> float:
    return 0.0 if 0.0 in (x, y) else x * y  # an end that is infinite is not a value


def _divide(one: Range, other: Range) -> Range:
    if other.low == other.high == 0:
        return _NOTHING
    if other.low <= 0 <= other.high:
        return ANYTHING
    return _corners(lambda x, y: 0.0 if math.isinf(y) else x / y, one, other)


def _modulo(one: Range, other: Range) -> Range:
    """Nearer to zero than both operands, with the sign of the first."""
    most = min(max(abs(other.low), abs(other.high)), max(abs(one.low), abs(one.high)))
    return Range(-most if one.low < 0 else 0.0, most if one.high > 0 else 0.0)


def _power(one: Range, other: Range) -> Range:
    if one.low > 0 or (one.low == 0 and other.low >= 0):
        return _may_be_null(_corners(math.pow, one, other))
    if other.low == other.high and other.low >= 0 and other.low.is_integer():
        if other.low % 2:
            return _may_be_null(_corners(math.pow, one, other))
        return _may_be_null(_corners(math.pow, _abs(one), other))
    return ANYTHING


def _may_be_null(found: Range) -> Range:
    return Range(found.low, found.high)


def _abs(one: Range) -> Range:
    largest = max(abs(one.low), abs(one.high))
    smallest = 0.0 if one.low <= 0 <= one.high else min(abs(one.low), abs(one.high))
    return Range(smallest, largest, one.may_be_null)


def _rising(compute: Callable[[float], float], lowest: float = -math.inf) -> Callable[[Range], Range]:
    """The rule of a rising function of one number, NULL below `lowest`."""

    def apply(one: Range) -> Range:
        if one.high < lowest:
            return _NOTHING
        ends = []
        for end in (max(one.low, lowest), one.high):
            try:
                ends.append(float(compute(end)))
            except OverflowError:
                ends.append(math.copysign(math.inf, end))
            except ValueError:
                ends.append(-math.inf)  # ln(0)
        finite = all(map(math.isfinite, ends)) and one.low >= lowest
        return Range(ends[0], ends[1], one.may_be_null or not finite)

    return apply


def _whole(compute: Callable[[float], float]) -> Callable[[Range], Range]:
    return _rising(lambda x: x if math.isinf(x) else compute(x))


_RULES: dict[Op, Callable[..., Range]] = {
    Op.ADD: lambda one, other: _corners(lambda x, y: x + y, one, other),
    Op.SUBTRACT: lambda one, other: _corners(lambda x, y: x - y, one, other),
    Op.MULTIPLY: lambda one, other: _corners(_times, one, other),
    Op.DIVIDE: _divide,
    Op.MODULO: _modulo,
    Op.POWER: _power,
    Op.NEGATE: lambda one: Range(-one.high, -one.low, one.may_be_null),
    Op.ABS: _abs,
    Op.SIGN: _rising(lambda x: (x > 0) - (x < 0)),
    Op.FLOOR: _whole(math.floor),
    Op.CEIL: _whole(math.ceil),
    Op.ROUND: _whole(round_half_away),
    Op.EXP: _rising(math.exp),
    Op.LN: _rising(math.log, 0.0),
    Op.LOG10: _rising(math.log10, 0.0),
    Op.SQRT: _rising(math.sqrt, 0.0),
}
