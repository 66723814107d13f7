"""A mean within a group as one question, for mechanisms that release exact moments of rows.

From the moments of A 1_B and (1 - A) 1_B follow those of A over the rows in B: their number is the sum of the two sums.
Given which rows are in B, they are independent draws from the group, so that an interval for that many rows holds
(section 14).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from afresh.moments import Moments

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.moments import Span
    from afresh.queries.base import RowQuestion


@dataclass(frozen=True, eq=False, slots=True)
class GroupMean:
    """E[A | B] from its two halves, A 1_B and (1 - A) 1_B."""

    text: str
    inside: RowQuestion
    rest: RowQuestion

    @property
    def digest(self) -> str:
        """Its halves' together."""
        return hashlib.sha256(f"within {self.inside.digest} {self.rest.digest}".encode()).hexdigest()

    @property
    def bounds(self) -> tuple[float, float]:
        """The scale of A."""
        return self.inside.bounds

    @property
    def missing(self) -> float | None:
        """As in its halves."""
        return self.inside.missing

    @property
    def levels(self) -> int | None:
        """2 for a condition."""
        return 2 if self.inside.levels == self.rest.levels == 2 else None

    @property
    def columns(self) -> frozenset[str] | None:
        """Those of both."""
        return self.inside.columns

    @property
    def alone(self) -> bool:
        """As its halves."""
        return self.inside.alone or self.rest.alone

    @property
    def halves(self) -> tuple[RowQuestion, RowQuestion]:
        """What is summed."""
        return self.inside, self.rest

    @staticmethod
    def moments_of(engine: Engine, questions: Sequence[GroupMean], spans: Sequence[Span] | None) -> list[Moments]:
        """Both halves of all of them in one scan."""
        halves = [half for each in questions for half in each.halves]
        twice = None if spans is None else [span for span in spans for _ in range(2)]
        found = iter(type(halves[0]).moments_of(engine, halves, twice))
        return [within(next(found), next(found)) for _ in questions]


def within(inside: Moments, rest: Moments) -> Moments:
    """Over the rows in the group, of which there is a whole number, whatever the rounding of the sums."""
    rows = round(inside.total + rest.total)
    return Moments(rows, min(inside.total, float(rows)), inside.squares)
