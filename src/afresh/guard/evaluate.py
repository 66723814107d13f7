"""The moments of questions of either kind: expressions by the engine, per-row numbers by numpy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from afresh.engines.base import Engine
from afresh.engines.embedded.rowwise import rows_of_block
from afresh.models.vectors import VectorQuery
from afresh.moments import Moments
from afresh.queries.asked import Asked
from afresh.queries.query import Query

AnyQuery = Query | VectorQuery


@dataclass(frozen=True, slots=True)
class VectorAsked:
    """A question of per-row numbers with the words its answer needs, like `Asked`."""

    queries: tuple[VectorQuery, ...]
    about_value: str
    about_missing: str
    precision: float | None = None
    guess: tuple[float, float] | None = None
    where: None = None
    rule: None = None

    @property
    def question(self) -> str:
        """The question in words."""
        return self.queries[0].text

    @property
    def text(self) -> str:
        """The same."""
        return self.question

    @property
    def bounds(self) -> tuple[float, float]:
        """The scale of its answer."""
        return self.queries[0].bounds


AnyAsked = Asked | VectorAsked


def evaluate(engine: Engine, queries: Sequence[AnyQuery], blocks: Sequence[int] | None = None) -> list[Moments]:
    """The moments of every query, of its own block of rows if `blocks` says so."""
    if not any(isinstance(query, VectorQuery) for query in queries):
        return engine.moments([query for query in queries if isinstance(query, Query)], blocks)
    results: dict[int, Moments] = {}
    places = [place for place, query in enumerate(queries) if isinstance(query, Query)]
    if places:
        rows = [query for query in queries if isinstance(query, Query)]
        found = engine.moments(rows, None if blocks is None else [blocks[place] for place in places])
        results.update(zip(places, found, strict=True))
    for place, query in enumerate(queries):
        if isinstance(query, VectorQuery):
            own = None if blocks is None else rows_of_block(engine, blocks[place])
            results[place] = query.moments(engine.rows, own)
    return [results[place] for place in range(len(queries))]
