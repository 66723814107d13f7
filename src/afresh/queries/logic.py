"""The canonical form of conditions, CASE and coalesce: exact rewrites in three-valued logic.

Every function takes canonical parts and returns a canonical tree. Kleene's AND and OR form a distributive lattice
with De Morgan's negation, so flattening, sorting, dropping duplicates and absorption are exact; the laws of the
excluded middle and of contradiction fail for NULL, and are not used.
"""

from __future__ import annotations

from afresh.queries.operations import Null
from afresh.queries.serialize import serialize
from afresh.queries.tree import Call, Literal, Node, Op, Type

TRUE, FALSE = Literal(True, Type.BOOLEAN), Literal(False, Type.BOOLEAN)
_DUAL = {Op.AND: Op.OR, Op.OR: Op.AND}
# operations that are NULL exactly where one operand is; tests of them stay as they are written
_TRANSPARENT = {
    op for op in Op if op.row.null is Null.KEPT and op.row.subject is not None and op.row.returns is not Type.BOOLEAN
}
_TRANSPARENT.add(Op.NOT)


def null(node: Node) -> bool:
    """Whether a tree is the constant NULL."""
    return isinstance(node, Literal) and node.value is None


def never_null(node: Node) -> bool:
    """Whether a tree certainly has a value on every row."""
    if not isinstance(node, Call):
        return isinstance(node, Literal) and node.value is not None
    match node.op.row.null:
        case Null.NEVER:
            return True
        case Null.CHOSEN:
            return all(map(never_null, (*node.args[1:-1:2], node.args[-1])))
        case Null.SKIPPED:
            return any(map(never_null, node.args))
        case Null.KEPT | Null.DECIDED:
            return all(map(never_null, node.args))
        case Null.MADE:
            return False


def negation(node: Node) -> Node:
    """NOT, pushed down as far as it goes; the order of finite values is total, so < becomes >=."""
    if isinstance(node, Literal):
        return node if node.value is None else FALSE if node.value else TRUE
    if isinstance(node, Call):
        if node.op is Op.NOT:
            return node.args[0]
        if node.op in _DUAL:
            return junction(_DUAL[node.op], tuple(map(negation, node.args)))
        if node.op is Op.LESS:
            return Call(Op.LESS_EQUAL, node.args[::-1], Type.BOOLEAN)
        if node.op is Op.LESS_EQUAL:
            return Call(Op.LESS, node.args[::-1], Type.BOOLEAN)
    return Call(Op.NOT, (node,), Type.BOOLEAN)


def junction(op: Op, args: tuple[Node, ...]) -> Node:
    """AND or OR: flat, sorted, each part once, parts that follow from others absorbed."""
    neutral, decisive = (TRUE, FALSE) if op is Op.AND else (FALSE, TRUE)
    parts: dict[str, Node] = {}
    for arg in args:
        for part in arg.args if isinstance(arg, Call) and arg.op is op else (arg,):
            if part == decisive:
                return decisive
            if part != neutral:
                parts[serialize(part)] = part
    for key, part in list(parts.items()):  # p OR (p AND q) is p
        inner = part.args if isinstance(part, Call) and part.op is _DUAL[op] else ()
        if any(serialize(one) in parts for one in inner):
            del parts[key]
    parts = _merge_memberships(op, parts)
    if len(parts) < 2:
        return next(iter(parts.values()), neutral)
    return Call(op, tuple(parts[key] for key in sorted(parts)), Type.BOOLEAN)


def _merge_memberships(op: Op, parts: dict[str, Node]) -> dict[str, Node]:
    """a = 1 OR a = 2 is a IN (1, 2); a <> 1 AND a <> 2 is a NOT IN (1, 2)."""
    found: dict[str, list[tuple[str, Node, tuple[Node, ...]]]] = {}
    for key, part in parts.items():
        if op is Op.AND:
            if not (isinstance(part, Call) and part.op is Op.NOT):
                continue
            part = part.args[0]
        if isinstance(part, Call) and part.op in (Op.EQUAL, Op.IN):
            value, *choices = part.args
            if part.op is Op.EQUAL and isinstance(value, Literal):
                value, choices = choices[0], [value]
            if all(isinstance(choice, Literal) for choice in choices):
                found.setdefault(serialize(value), []).append((key, value, tuple(choices)))
    for group in found.values():
        if len(group) > 1:
            for key, _, _ in group:
                del parts[key]
            together = membership(group[0][1], tuple(choice for _, _, choices in group for choice in choices))
            together = negation(together) if op is Op.AND else together
            parts[serialize(together)] = together
    return parts


def equal(left: Node, right: Node) -> Node:
    """=, whose order does not matter."""
    for one, other in ((left, right), (right, left)):
        if one == TRUE:
            return other
        if one == FALSE:
            return negation(other)
    return Call(Op.EQUAL, tuple(sorted((left, right), key=serialize)), Type.BOOLEAN)


def membership(value: Node, choices: tuple[Node, ...]) -> Node:
    """IN: sorted, each choice once; with a single choice it is =."""
    once = {serialize(choice): choice for choice in choices}
    if len(once) == 1:
        return equal(value, *once.values())
    return Call(Op.IN, (value, *(once[key] for key in sorted(once))), Type.BOOLEAN)


def is_true(node: Node) -> Node:
    """IS TRUE, pushed through AND and OR; dropped if NULL is impossible."""
    if null(node):
        return FALSE
    if never_null(node):
        return node
    if isinstance(node, Call) and node.op in _DUAL:
        return junction(node.op, tuple(map(is_true, node.args)))
    return Call(Op.IS_TRUE, (node,), Type.BOOLEAN)


def is_null(node: Node) -> Node:
    """IS NULL, of the innermost operand that decides it."""
    if null(node):
        return TRUE
    if never_null(node):
        return FALSE
    if isinstance(node, Call) and node.op in _TRANSPARENT:
        return is_null(node.args[node.op.row.subject or 0])
    return Call(Op.IS_NULL, (node,), Type.BOOLEAN)


def _weakened(test: Node) -> Node:
    """A condition of CASE, which treats NULL as false, so IS TRUE adds nothing."""
    if isinstance(test, Call):
        if test.op is Op.IS_TRUE:
            return test.args[0]
        if test.op in _DUAL:
            return junction(test.op, tuple(map(_weakened, test.args)))
    return test


def case(args: tuple[Node, ...], kind: Type) -> Node:
    """CASE without branches that cannot be taken; neighbors with the same result become one branch."""
    pairs, default = list(zip(args[:-1:2], args[1:-1:2], strict=True)), args[-1]
    while True:
        before = pairs, default
        pairs, default = _prune(pairs, default)
        if (pairs, default) == before:
            break
    if not pairs:
        return default
    if len(pairs) == 1 and (pairs[0][1], default) == (TRUE, FALSE):
        return is_true(pairs[0][0])
    if len(pairs) == 1 and (pairs[0][1], default) == (FALSE, TRUE):
        return negation(is_true(pairs[0][0]))
    return Call(Op.CASE, (*(part for pair in pairs for part in pair), default), kind)


def _prune(pairs: list[tuple[Node, Node]], default: Node) -> tuple[list[tuple[Node, Node]], Node]:
    """Drop branches that no row takes, and merge each run of neighbors with the same result into one branch.

    A branch is dead if its condition was tested before. Two neighbors together may repeat an earlier condition and be
    dead too; the next round finds that.
    """
    seen: set[str] = set()
    runs: list[tuple[list[Node], Node]] = []
    for test, result in pairs:
        weak = _weakened(test)
        if weak == TRUE:
            default = result
            break
        if weak == FALSE or null(weak) or (key := serialize(weak)) in seen:
            continue
        seen.add(key)
        if runs and runs[-1][1] == result:
            runs[-1][0].append(weak)
        else:
            runs.append(([weak], result))
    merged = [(junction(Op.OR, tuple(tests)), result) for tests, result in runs]
    if isinstance(default, Call) and default.op is Op.CASE:
        inner = default.args
        return [*merged, *zip(inner[:-1:2], inner[1:-1:2], strict=True)], inner[-1]
    while merged and merged[-1][1] == default:
        merged.pop()
    return merged, default


def coalesce(args: tuple[Node, ...], kind: Type) -> Node:
    """coalesce: flat, each part once, nothing after a part that is never NULL."""
    parts: dict[str, Node] = {}
    flat = [part for arg in args for part in (arg.args if isinstance(arg, Call) and arg.op is Op.COALESCE else (arg,))]
    for part in flat:
        if not null(part):
            parts.setdefault(serialize(part), part)
        if never_null(part):
            break
    *first, last = parts.values() if parts else (Literal(None, kind),)
    if not first:
        return last
    if last in (TRUE, FALSE):
        rest = coalesce(tuple(first), kind)
        return is_true(rest) if last == FALSE else negation(is_true(negation(rest)))
    return Call(Op.COALESCE, (*first, last), kind)
