"""One tree for all spellings of a question, so asking it again in other words is free.

Every rewrite is exact, row by row, under the meaning fixed in `operations`: three-valued logic over finite doubles and
NULL. Rounding is symmetric in the sign, so a sign can be moved through + - * /; and + and * commute. They do not
associate: nothing is reordered across two roundings. Arithmetic of constants is done here only where IEEE 754
prescribes every bit.
"""

from __future__ import annotations

from afresh.queries import logic
from afresh.queries.serialize import serialize
from afresh.queries.tree import Call, Literal, Node, Op, Type, Value

_NEUTRAL = {Op.ADD: 0.0, Op.SUBTRACT: 0.0, Op.MULTIPLY: 1.0, Op.DIVIDE: 1.0}  # on the right, and on the left of + and *


def canonical(node: Node) -> Node:
    """Return the one tree for all that are equivalent to this one by the rewrites here and in `logic`."""
    if not isinstance(node, Call):
        return node
    return _make(node.op, tuple(map(canonical, node.args)), node.type)


def _make(op: Op, args: tuple[Node, ...], kind: Type) -> Node:
    """The canonical form of an operation on canonical operands."""
    constants = [arg.value for arg in args if isinstance(arg, Literal)]
    if op.row.folds and len(constants) == len(args):
        return _constant(op.evaluate(*constants), kind)
    match op:
        case Op.NOT:
            return logic.negation(args[0])
        case Op.AND | Op.OR:
            return logic.junction(op, args)
        case Op.IS_TRUE:
            return logic.is_true(args[0])
        case Op.IS_NULL:
            return logic.is_null(args[0])
        case Op.IN:
            return _membership(args[0], args[1:])
        case Op.CASE:
            return logic.case(args, kind)
        case Op.COALESCE:
            return logic.coalesce(args, kind)
        case Op.LEAST | Op.GREATEST:
            return _extreme(op, args, kind)
    if any(map(logic.null, args)):
        return Literal(None, kind)
    match op:
        case Op.EQUAL:
            return logic.equal(*_same_sign(args[0], args[1]))
        case Op.LESS | Op.LESS_EQUAL:
            return Call(op, _same_sign(args[0], args[1]), kind)
        case Op.LIKE:
            return _like(args[0], args[1])
        case Op.STARTS_WITH | Op.ENDS_WITH | Op.CONTAINS:
            return _search(op, args[0], args[1])
    return _function(op, args, kind)


def _extreme(op: Op, args: tuple[Node, ...], kind: Type) -> Node:
    """least or greatest, which skip NULL: flat, sorted, each part once, with only the constant that matters."""
    parts: dict[str, Node] = {}
    best: Literal | None = None
    for part in (part for arg in args for part in (arg.args if isinstance(arg, Call) and arg.op is op else (arg,))):
        if not isinstance(part, Literal):
            parts[serialize(part)] = part
        elif part.value is not None:
            best = part if best is None else _constant(op.evaluate(best.value, part.value), kind)
    if best is not None:
        parts[serialize(best)] = best
    if len(parts) < 2:
        return next(iter(parts.values()), Literal(None, kind))
    return Call(op, tuple(parts[key] for key in sorted(parts)), kind)


def _same_sign(left: Node, right: Node) -> tuple[Node, Node]:
    """-a < -b is b < a, and -a = 3 is a = -3: put operands in the order that compares them without their signs."""
    if Op.NEGATE in (getattr(left, "op", None), getattr(right, "op", None)):
        one, other = (_opposite(node) for node in (left, right))
        if one is not None and other is not None:
            return other, one
    return left, right


def _membership(value: Node, choices: tuple[Node, ...]) -> Node:
    """-a IN (1, 2) is a IN (-1, -2), as -a = 1 is a = -1."""
    if isinstance(value, Call) and value.op is Op.NEGATE:
        value, choices = value.args[0], tuple(map(_negated, choices))
    return logic.membership(value, choices)


def _opposite(node: Node) -> Node | None:
    """-node, if that is no longer than node."""
    if isinstance(node, Literal) and isinstance(node.value, float):
        return _constant(-node.value, Type.NUMBER)
    return node.args[0] if isinstance(node, Call) and node.op is Op.NEGATE else None


def _negative(node: Node) -> Node | None:
    """The number without its sign, if it is written as a negative one."""
    if isinstance(node, Literal) and not (isinstance(node.value, float) and node.value < 0):
        return None
    return _opposite(node)


def _like(text: Node, pattern: Node) -> Node:
    """LIKE of a plain text is =; with % only at its ends it is a search."""
    assert isinstance(pattern, Literal)
    shape = str(pattern.value)
    while "%%" in shape:
        shape = shape.replace("%%", "%")
    inner = shape.strip("%")
    if "_" in shape or "%" in inner:
        return Call(Op.LIKE, (text, Literal(shape, Type.TEXT)), Type.BOOLEAN)
    found = Literal(inner, Type.TEXT)
    if shape == inner:
        return _make(Op.EQUAL, (text, found), Type.BOOLEAN)
    before, after = shape.startswith("%"), shape.endswith("%")
    op = Op.CONTAINS if before and after else Op.ENDS_WITH if before else Op.STARTS_WITH
    return _make(op, (text, found), Type.BOOLEAN)


def _search(op: Op, text: Node, part: Node) -> Node:
    empty = isinstance(part, Literal) and part.value == ""
    return Call(Op.CONTAINS if empty else op, (text, part), Type.BOOLEAN)


def _function(op: Op, args: tuple[Node, ...], kind: Type) -> Node:
    """Arithmetic and functions of operands that are not the constant NULL."""
    first = args[0]
    if op.row.idempotent and isinstance(first, Call) and first.op is op:
        return first
    if op is Op.ABS and isinstance(first, Call) and first.op is Op.NEGATE:
        return Call(Op.ABS, first.args, kind)
    if op is Op.NEGATE:
        return _negated(first)
    if op in _NEUTRAL:
        return _signed(op, args[0], args[1])
    return Call(op, args, kind)


def _constant(value: Value, kind: Type) -> Literal:
    return Literal(value + 0.0 if isinstance(value, float) else value, kind)  # there is no -0.0


def _negated(node: Node) -> Node:
    """-node; for a difference, the reverse difference."""
    if (inner := _opposite(node)) is not None:
        return inner
    if isinstance(node, Call) and node.op is Op.SUBTRACT:
        return _signed(Op.SUBTRACT, node.args[1], node.args[0])
    return Call(Op.NEGATE, (node,), Type.NUMBER)


def _signed(op: Op, left: Node, right: Node) -> Node:
    """+ - * / without neutral constants, with signs outside, and operands sorted if their order does not matter."""
    commutes = op in (Op.ADD, Op.MULTIPLY)
    neutral = Literal(_NEUTRAL[op], Type.NUMBER)
    if right == neutral:
        return left
    if left == neutral and commutes:
        return right
    if op is Op.SUBTRACT and left == neutral:
        return _negated(right)
    one, other = _negative(left), _negative(right)
    if op in (Op.MULTIPLY, Op.DIVIDE):
        if one is not None or other is not None:
            product = _signed(op, left if one is None else one, right if other is None else other)
            return product if one is not None and other is not None else _negated(product)
    elif op is Op.ADD:
        if one is not None and other is not None:
            return _negated(_signed(Op.ADD, one, other))
        if other is not None:
            return _signed(Op.SUBTRACT, left, other)
        if one is not None:
            return _signed(Op.SUBTRACT, right, one)
    elif other is not None:
        return _signed(Op.ADD, left, other)
    elif one is not None:
        return _negated(_signed(Op.ADD, one, right))
    args = tuple(sorted((left, right), key=serialize)) if commutes else (left, right)
    return Call(op, args, Type.NUMBER)
