"""Moments of questions of every kind; questions of one kind are evaluated together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh.queries.group import OfGroup
from afresh.queries.renamed import Renamed

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.moments import Moments, Span
    from afresh.queries.base import RowQuestion


def moments_of(engine: Engine, queries: Sequence[RowQuestion], spans: Sequence[Span] | None = None) -> list[Moments]:
    """Return the moments of every query, over its own span of rows if `spans` gives one; one kind is done together."""
    queries = [query.inner if isinstance(query, Renamed) else query for query in queries]
    if any(isinstance(query, OfGroup) for query in queries):  # their halves share the others' scan
        halved = [query.halves if isinstance(query, OfGroup) else (query,) for query in queries]
        own = None if spans is None else [span for span, parts in zip(spans, halved, strict=True) for _ in parts]
        rest = iter(moments_of(engine, [part for parts in halved for part in parts], own))
        return [each.of_halves(next(rest), next(rest)) if isinstance(each, OfGroup) else next(rest) for each in queries]
    kinds: dict[type, list[int]] = {}
    for place, query in enumerate(queries):
        kinds.setdefault(type(query), []).append(place)
    found: dict[int, Moments] = {}
    for places in kinds.values():
        alike, own = [queries[place] for place in places], None if spans is None else [spans[i] for i in places]
        found |= zip(places, alike[0].moments_of(engine, alike, own), strict=True)
    return [found[place] for place in range(len(queries))]
