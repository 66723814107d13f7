"""The static types of operands: what may stand beside what, and the message when it may not."""

from __future__ import annotations

from datetime import date, datetime, time

from afresh.errors import QueryError
from afresh.queries.syntax import short
from afresh.queries.text import readable
from afresh.queries.tree import Call, Literal, Node, Op, Type


def negated(node: Node) -> Call:
    """NOT node."""
    return Call(Op.NOT, (node,), Type.BOOLEAN)


def expect(node: Node, kind: Type, where: str) -> Node:
    """The node, which must have the type `kind`."""
    if node.type is kind:
        return node
    hint = ""
    if node.type is Type.BOOLEAN and kind is Type.NUMBER:
        hint = "; write CASE WHEN condition THEN 1 ELSE 0 END"
    elif kind is Type.BOOLEAN and node.type is Type.NUMBER:
        hint = "; compare it, as in x <> 0"
    raise QueryError(f"{where} needs a {kind.value}, but {_describe(node)} is a {node.type.value}{hint}")


def need_order(kind: Type, where: str) -> None:
    """Refuse to order conditions."""
    if kind is Type.BOOLEAN:
        raise QueryError(f"conditions have no order ({where}); write NOT a, a = b or a AND b")


def align(left: Node, right: Node, where: str) -> tuple[Node, Node]:
    """Two nodes of one type; a text constant beside a date becomes a date if it is one."""
    if left.type is right.type:
        return left, right
    times = (Type.DATE, Type.TIMESTAMP)
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Literal) and other.type in times:
            changed: Node | None = None
            if isinstance(one.value, str):
                changed = moment(one.value, other.type)
            elif one.type is Type.DATE and isinstance(one.value, date):
                changed = Literal(datetime.combine(one.value, time()), Type.TIMESTAMP)
            if changed is not None:
                return (changed, right) if one is left else (left, changed)
    hint = ""
    if Type.BOOLEAN in (left.type, right.type):
        hint = "; a condition stands alone (a, NOT a) or becomes a number by CASE WHEN a THEN 1 ELSE 0 END"
    elif {left.type, right.type} == {Type.TEXT, Type.NUMBER}:
        hint = "; text goes in single quotes, numbers go without"
    raise QueryError(
        f"{where} needs operands of one type, but {_describe(left)} is a {left.type.value} and "
        f"{_describe(right)} a {right.type.value}{hint}"
    )


def _describe(node: Node) -> str:
    return readable(node) if node.size < 20 else "the expression"


def moment(text: str, kind: Type) -> Literal:
    """A date or timestamp constant from ISO text."""
    try:
        when = datetime.fromisoformat(text.strip())
        if when.tzinfo is None and (kind is Type.TIMESTAMP or when == datetime.combine(when, time())):
            return Literal(when if kind is Type.TIMESTAMP else when.date(), kind)
    except ValueError:
        pass
    example = "DATE '2025-01-31'" if kind is Type.DATE else "TIMESTAMP '2025-01-31 12:00:00' (without a zone)"
    raise QueryError(f"{short(text)} is not a {kind.value}; write {example}")
