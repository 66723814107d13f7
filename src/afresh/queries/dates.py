"""Parts and differences of dates and timestamps, written out in `date_part` and arithmetic."""

from __future__ import annotations

from afresh.errors import QueryError
from afresh.queries.build import call, number
from afresh.queries.operations import PARTS
from afresh.queries.tree import Call, Literal, Node, Op, Type
from afresh.queries.typing import TIMES, Operand, align, expect, short

_OF_DATES = ["year", "quarter", *(name for name, part in PARTS.items() if not part.timed and name != "year")]
_ALL = [*_OF_DATES, *(name for name, part in PARTS.items() if part.timed)]
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
UNITS = ("day", "week", "month", "quarter", "year", "hour", "minute", "second")


def part(name: str, value: Operand) -> Node:
    """extract(name FROM value): a whole number."""
    unit = name.lower()
    if unit not in _ALL:
        raise QueryError(f"{short(name)} is not a part of a date here; write one of {', '.join(_ALL)}")
    when = _time(value, unit)
    if unit not in _OF_DATES and when.type is Type.DATE:
        raise QueryError(f"a date has no {unit}; its parts are {', '.join(_OF_DATES)}")
    if unit == "quarter":
        return call(Op.CEIL, call(Op.DIVIDE, part("month", when), number(3)))
    return Call(Op.PART, (Literal(unit, Type.TEXT), when), Type.NUMBER)


def _time(value: Operand, where: str) -> Node:
    if value is not None and value.type in TIMES:
        return value
    return expect(value, Type.DATE, where)


def difference(unit: str, start: Operand, end: Operand) -> Node:
    """date_diff(unit, start, end): how often a new day, month, ... begins after start and until end.

    Weeks begin on Monday.
    """
    unit = unit.lower()
    if unit not in UNITS:
        raise QueryError(f"{short(unit)} is not a unit of date_diff here; write one of {', '.join(UNITS)}")
    one, other = start, end
    if one is not None and other is not None and not {one.type, other.type} <= {*TIMES}:
        one, other = align(one, other, "date_diff")  # a text constant next to a date is a date
    return call(Op.SUBTRACT, _count(unit, _time(other, "date_diff")), _count(unit, _time(one, "date_diff")))


def _count(unit: str, when: Node) -> Node:
    """The number of whole units since a fixed moment at which one began."""
    if unit in _MONTHS:
        if unit == "year":
            return part("year", when)
        per_year, within = number(12 / _MONTHS[unit]), part(unit, when)
        return call(Op.ADD, call(Op.MULTIPLY, part("year", when), per_year), within)
    seconds = part("epoch", when)
    if unit == "second":
        return seconds
    if unit == "week":  # 1970-01-01 was a Thursday
        seconds = call(Op.ADD, seconds, number(3 * _SECONDS["day"]))
    days = call(Op.DIVIDE, seconds, number(_SECONDS[unit]))
    return days if unit == "day" and when.type is Type.DATE else call(Op.FLOOR, days)


def minus(left: Operand, right: Operand) -> Node:
    """left - right of two numbers, or of two dates in days."""
    if left is None or right is None or not {left.type, right.type} & {*TIMES}:
        return call(Op.SUBTRACT, left, right)
    if Type.NUMBER in (left.type, right.type):
        raise QueryError("a number cannot be subtracted from a date; write date_diff('day', a, b) < 30 and the like")
    one, other = align(left, right, "-")
    if one.type is Type.DATE:
        return difference("day", other, one)
    raise QueryError("a - b of two timestamps is an interval; write date_diff('second', b, a), or another unit")
