"""The range of a number that follows from its expression alone, by interval arithmetic on the tree.

It gives only ranges a person would have written: the years 1 to 9999, or all counts of seconds, are not useful bounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from afresh.queries.logic import never_null
from afresh.queries.operations import PARTS
from afresh.queries.ranges import ANYTHING, NOTHING, Range
from afresh.queries.tree import Call, Literal, Node, Op, Type


def never_missing(node: Node) -> bool:
    """Whether the form of a condition or number alone shows that it has a value on every row."""
    return not range_of(node).may_be_null if node.type is Type.NUMBER else never_null(node)


def range_of(node: Node, columns: Mapping[str, Range] = MappingProxyType({})) -> Range:
    """Return a range that certainly contains a number's values, given the ranges of some columns."""
    if isinstance(node, Literal):
        return Range(node.value, node.value, False) if isinstance(node.value, float) else NOTHING
    if not isinstance(node, Call):
        return columns.get(node.name, ANYTHING)
    if node.op is Op.PART:
        assert isinstance(node.args[0], Literal)
        return PARTS[str(node.args[0].value)].range
    given = [range_of(arg, columns) for arg in node.args if arg.type is Type.NUMBER]
    if node.op.row.strict and any(each.low > each.high for each in given):
        return NOTHING  # an operand that is always NULL
    return node.op.row.range(*given)
