"""A question under another name: the same row function, told on another scale, or asked of one batch of rows only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from afresh.queries.text import number

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.moments import Moments, Span
    from afresh.queries.base import RowQuestion


@dataclass(frozen=True, eq=False, slots=True)
class Renamed:
    """The row function of `inner`, as another question."""

    inner: RowQuestion
    digest: str
    text: str
    bounds: tuple[float, float]

    @property
    def missing(self) -> float | None:
        """What rows without a value count as."""
        return self.inner.missing

    @property
    def levels(self) -> int | None:
        """Those of the row function."""
        return self.inner.levels

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns it reads."""
        return self.inner.columns

    @property
    def alone(self) -> bool:
        """Whether it runs a user's function."""
        return self.inner.alone

    @staticmethod
    def moments_of(engine: Engine, questions: Sequence[Renamed], spans: Sequence[Span] | None) -> list[Moments]:
        """Return the moments of row functions of one kind."""
        inner = [each.inner for each in questions]
        return inner[0].moments_of(engine, inner, spans)


def on_scale(query: RowQuestion, bounds: tuple[float, float]) -> Renamed:
    """The same question with its 0 and 1 reported as these bounds.

    Numbers of size 1 are rounded by 1e-16, numbers near 1e9 by 1e-7: what must hold of every row to the last bit is
    computed where that is exact, and only what was released is brought to the units of the analyst.
    """
    (a, b), (low, high) = query.bounds, bounds
    text = f"{query.text}, [{number(a)}, {number(b)}] as [{number(low)}, {number(high)}]"
    return Renamed(query, _digest(query.digest, "as", repr(bounds)), text, bounds)


def together(queries: Sequence[RowQuestion]) -> list[Renamed]:
    """The same questions, each named after all of them: an answer to one by itself, from other rows, is not theirs."""
    whole = [query.digest for query in queries]
    return [Renamed(query, _digest(query.digest, "with", *whole), query.text, query.bounds) for query in queries]


def _digest(*parts: str) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()
