"""A mean within a group, from the moments of A 1_B and (1 - A) 1_B; the sum of their sums is the number of rows in B.

`GroupMean` is one question, for mechanisms that release exact moments of rows: given which rows are in B, they are
independent draws from the group, so an interval for that many rows holds (section 14). `GroupFirst` and
`GroupSecond` are two questions, for mechanisms whose noise follows the deviation of a number: the share of rows in B,
and the mean of A in B and of a center elsewhere, whose deviation is small if that of A in B is (section 12).
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from afresh.moments import Grouped, Inside, Moments

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.moments import Span
    from afresh.queries.base import RowQuestion


@dataclass(frozen=True, eq=False, slots=True)
class OfGroup(ABC):
    """A question whose moments follow from the two halves A 1_B and (1 - A) 1_B."""

    text: str
    inside: RowQuestion
    rest: RowQuestion
    kind: ClassVar[str]

    @property
    def digest(self) -> str:
        """A digest of the halves' digests."""
        return hashlib.sha256(f"{self.kind} {self.of}".encode()).hexdigest()

    @property
    def of(self) -> str:
        """The halves' digests: what the number and the group are."""
        return f"{self.inside.digest} {self.rest.digest}"

    @property
    def bounds(self) -> tuple[float, float]:
        """The scale of A."""
        return self.inside.bounds

    @property
    def missing(self) -> float | None:
        """What rows without a value count as in the halves."""
        return self.inside.missing

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns of both halves."""
        return self.inside.columns

    @property
    def alone(self) -> bool:
        """Whether one of the halves runs a user's function."""
        return self.inside.alone or self.rest.alone

    @property
    def halves(self) -> tuple[RowQuestion, RowQuestion]:
        """The two questions that are summed."""
        return self.inside, self.rest

    @staticmethod
    @abstractmethod
    def of_halves(inside: Moments, rest: Moments) -> Moments:
        """Return its moments from those of its halves."""

    @classmethod
    def moments_of(cls, engine: Engine, questions: Sequence[Any], spans: Sequence[Span] | None) -> list[Moments]:
        """Return the moments of all questions, from both halves of each in one scan."""
        halves = [half for each in questions for half in each.halves]
        twice = None if spans is None else [span for span in spans for _ in range(2)]
        found = iter(type(halves[0]).moments_of(engine, halves, twice))
        return [cls.of_halves(next(found), next(found)) for _ in questions]


class GroupMean(OfGroup):
    """E[A | B]."""

    __slots__ = ()
    kind = "within"

    @property
    def levels(self) -> int | None:
        """2 for a condition."""
        return 2 if self.inside.levels == self.rest.levels == 2 else None

    @staticmethod
    def of_halves(inside: Moments, rest: Moments) -> Moments:
        """Return the moments over the rows in the group."""
        return within(inside, rest)


class GroupFirst(OfGroup):
    """The first of two answers about E[A | B]: the share of B or, for a small group, E[A 1_B]."""

    __slots__ = ()
    kind = "first of"
    levels: ClassVar[None] = None

    @property
    def bounds(self) -> tuple[float, float]:
        """The scale of a share."""
        return 0.0, 1.0

    @staticmethod
    def of_halves(inside: Moments, rest: Moments) -> Moments:
        """Return moments from which its mechanism makes either number."""
        found = within(inside, rest)
        return Grouped(inside.n, found.total, found.squares, found.n, second=False)


class GroupSecond(OfGroup):
    """The second: the mean of A in B and of a center elsewhere or, for a small group, E[(1 - A) 1_B]."""

    __slots__ = ()
    kind = "second of"
    levels: ClassVar[None] = None

    @staticmethod
    def of_halves(inside: Moments, rest: Moments) -> Moments:
        """Return moments from which its mechanism makes either number."""
        found = within(inside, rest)
        return Grouped(inside.n, found.total, found.squares, found.n, second=True)


def within(inside: Moments, rest: Moments) -> Inside:
    """Return the moments over the rows in the group, a whole number of rows however the sums were rounded."""
    rows = round(inside.total + rest.total)
    return Inside(rows, min(inside.total, float(rows)), inside.squares)
