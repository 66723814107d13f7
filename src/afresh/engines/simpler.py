"""Asks an engine for as few sums, and as little clipping, as the form of the questions allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat

from afresh.moments import Moments, Span
from afresh.queries.query import Query
from afresh.queries.tree import Call, Literal, Node, Op, Type

Ask = Callable[[list[Query], list[Span] | None], list[Moments]]
ALL = Literal(True, Type.BOOLEAN)


def ask_simpler(ask: Ask, queries: Sequence[Query], spans: Sequence[Span] | None) -> list[Moments]:
    """Return what `ask` would find.

    The halves A 1_B and (1 - A) 1_B of a mean within a group follow from three sums: A 1_B, its square, and 1_B. The
    two are recognized by the tree they share; halves with separate but equal trees are simply summed separately.
    """
    wanted: list[tuple[Query, Span | None]] = []
    first: dict[tuple[object, ...], int] = {}  # where one of two halves is, by what they share
    sizes: dict[tuple[object, ...], int] = {}
    places: list[tuple[int, int | None]] = []  # of what is asked; and of a group's size, which gives the other half
    for query, span in zip(queries, repeat(None) if spans is None else spans, strict=False):
        shared = (id(query.expression), id(query.group), query.bounds, query.missing, span)
        half = None if query.group is None else first.get(shared)
        if half is not None and wanted[half][0].complement is not query.complement:
            size = sizes.setdefault((id(query.group), span), len(wanted))
            if size == len(wanted):
                wanted.append((Query(ALL, group=query.group), span))
            places.append((half, size))
        else:
            first.setdefault(shared, len(wanted))
            places.append((len(wanted), None))
            wanted.append((query, span))
    asked = [as_condition(query) for query, _ in wanted]
    found = ask(asked, None if spans is None else [span for _, span in wanted if span is not None])
    return [found[place] if size is None else _left(found[size], found[place]) for place, size in places]


def as_condition(query: Query) -> Query:
    """Return the same psi as a condition, if it is a CASE of constants that are 0 or 1 on the question's scale."""
    if query.expression.type is Type.BOOLEAN or query.levels != 2:
        return query
    return Query(_condition(query, query.expression), group=query.group, complement=query.complement)


def unit_of(query: Query, value: float | None) -> float:
    """Return a constant on the question's scale, before `complement`."""
    low, high = query.bounds
    return query.fill if value is None else min(max((value - low) / (high - low), 0.0), 1.0)


def common_group(queries: Sequence[Query]) -> Node | None:
    """Return the group that contains all questions, if there is one: other rows need not be read."""
    group = queries[0].group
    alike = all(query.group is group for query in queries) and any(query.expression is not ALL for query in queries)
    return group if alike else None


def is_filter(query: Query) -> bool:
    """Whether a condition is counted fastest as the size of a group: it has parts, or compares numbers."""
    node = query.expression
    if query.group is not None or query.fill or query.complement or not isinstance(node, Call):
        return False
    compares = node.op in (Op.EQUAL, Op.LESS, Op.LESS_EQUAL) and node.args[0].type is Type.NUMBER
    return node.type is Type.BOOLEAN and (compares or node.op in (Op.AND, Op.OR))


def _condition(query: Query, node: Node) -> Node:
    """Return where a CASE of constants is 1. CASE WHEN a THEN 1 ELSE 0 END, all of it, is a: NULL counts as false."""
    if isinstance(node, Literal):
        return Literal(unit_of(query, node.value) == 1.0, Type.BOOLEAN)  # type: ignore[arg-type]  # a number or NULL
    assert isinstance(node, Call)
    last = len(node.args) - 1
    args = [_condition(query, arg) if i % 2 or i == last else arg for i, arg in enumerate(node.args)]
    if node is query.expression and args[1:] == [ALL, Literal(False, Type.BOOLEAN)]:
        return args[0]
    return Call(Op.CASE, tuple(args), Type.BOOLEAN)


def _left(size: Moments, half: Moments) -> Moments:
    """Return the other half of a group: the sums of 1 - A, given those of A."""
    total, squares = size.total - half.total, size.total - 2 * half.total + half.squares
    return Moments(size.n, max(total, 0.0), max(squares, 0.0))
