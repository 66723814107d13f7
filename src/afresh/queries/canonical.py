"""One tree for all spellings of a question, so that asking it again in other words is free.

Every rewrite is exact, row by row, under the meaning fixed in `tree`: three-valued logic over finite doubles.
Floating-point + and * commute but do not associate: their two operands are sorted, nothing is flattened.
"""

from __future__ import annotations

import json
from datetime import date

from afresh.queries.tree import Call, Column, Literal, Node, Op, Type

_COMMUTE = {Op.EQUAL, Op.ADD, Op.MULTIPLY}  # least, greatest and coalesce keep their order
_DUAL = {Op.AND: Op.OR, Op.OR: Op.AND}
_TRUE, _FALSE = Literal(True, Type.BOOLEAN), Literal(False, Type.BOOLEAN)


def serialize(node: Node) -> str:
    """An injective text of a tree: equal texts, equal trees."""
    return json.dumps(_plain(node), ensure_ascii=True, separators=(",", ":"))


def _plain(node: Node) -> list[object]:
    match node:
        case Column(name, kind):
            return ["column", name, kind.value]
        case Literal(value, kind):
            # repr keeps every double exactly; JSON's own number format is not ours to rely on
            text = repr(value) if isinstance(value, float) else value
            return ["literal", kind.value, text.isoformat() if isinstance(text, date) else text]
        case Call(op, args, kind):
            return [op.value, kind.value, *map(_plain, args)]


def canonical(node: Node) -> Node:
    """The representative of all trees that are equivalent to this one by the rewrites below."""
    if not isinstance(node, Call):
        return node
    if node.op is Op.NOT:
        return _negation(canonical(node.args[0]))
    args = tuple(canonical(arg) for arg in node.args)
    if node.op in _DUAL:
        return _junction(node.op, args)
    if node.op is Op.IN:
        return _membership(args[0], args[1:])
    if node.op is Op.EQUAL and args[0].type is Type.BOOLEAN:
        for one, other in (args, args[::-1]):
            if one == _TRUE:
                return other
            if one == _FALSE:
                return _negation(other)
    if node.op is Op.NEGATE:
        if isinstance(args[0], Call) and args[0].op is Op.NEGATE:
            return args[0].args[0]
        if isinstance(args[0], Literal) and isinstance(args[0].value, float):
            return Literal(-args[0].value + 0.0, Type.NUMBER)  # + 0.0: there is no -0.0
    if node.op in _COMMUTE:
        args = tuple(sorted(args, key=serialize))
    return Call(node.op, args, node.type)


def _negation(node: Node) -> Node:
    """NOT, pushed down as far as it goes; the order of finite values is total, so < turns into >=."""
    if isinstance(node, Literal) and node.value is not None:
        return _FALSE if node.value else _TRUE
    if isinstance(node, Call):
        if node.op is Op.NOT:
            return node.args[0]
        if node.op in _DUAL:
            return _junction(_DUAL[node.op], tuple(map(_negation, node.args)))
        if node.op is Op.LESS:
            return Call(Op.LESS_EQUAL, node.args[::-1], Type.BOOLEAN)
        if node.op is Op.LESS_EQUAL:
            return Call(Op.LESS, node.args[::-1], Type.BOOLEAN)
    return Call(Op.NOT, (node,), Type.BOOLEAN)


def _junction(op: Op, args: tuple[Node, ...]) -> Node:
    """AND or OR of canonical parts: flat, sorted, each part once."""
    parts: dict[str, Node] = {}
    for arg in args:
        for part in arg.args if isinstance(arg, Call) and arg.op is op else (arg,):
            parts[serialize(part)] = part
    if len(parts) == 1:
        return next(iter(parts.values()))
    return Call(op, tuple(parts[key] for key in sorted(parts)), Type.BOOLEAN)


def _membership(value: Node, choices: tuple[Node, ...]) -> Node:
    """IN: sorted, each choice once; of a single choice it is =."""
    once = {serialize(choice): choice for choice in choices}
    if len(once) == 1:
        return canonical(Call(Op.EQUAL, (value, *once.values()), Type.BOOLEAN))
    return Call(Op.IN, (value, *(once[key] for key in sorted(once))), Type.BOOLEAN)
