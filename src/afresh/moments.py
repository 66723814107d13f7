"""What an engine reports for a question: count, sum and sum of squares. A mechanism sees nothing else of the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Span(NamedTuple):
    """Some rows, by their positions after shuffling: from `start` up to, but not including, `stop`."""

    start: int
    stop: int

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.stop - self.start


OUTER = 1 + 1e-9
"""What lengths are multiplied by before they are compared with a ball's radius: a row that is moved to the surface
lands this far inside of it, a hundred times farther than the rounding of as many coordinates as there may be."""


class Vector(NamedTuple):
    """Which coordinate a question is of a vector that is released at once (section 18)."""

    kind: str
    """"shares": at least 0 with a sum of at most 1, on every row; "ball": within 1/2 of (1/2, ..., 1/2)."""
    size: int
    answers: int
    """The number of answers the whole vector counts as."""
    place: int = 0


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sum and sum of squares of a query's values in [0, 1] over some rows."""

    n: int
    total: float
    squares: float

    @property
    def mean(self) -> float:
        """The sample mean mu."""
        return self.total / self.n

    @property
    def variance(self) -> float:
        """The sample variance sigma^2, divided by n as in the paper's Figure 1."""
        return max(self.squares / self.n - self.mean**2, 0.0)


class Inside(Moments):
    """The same over those rows alone that are in a group, of which there may be none."""

    __slots__ = ()

    @property
    def mean(self) -> float:
        """Their mean; the middle if there are none."""
        return self.total / self.n if self.n else 0.5

    @property
    def variance(self) -> float:
        """Their variance; the largest there can be if there are none."""
        return max(self.squares / self.n - self.mean**2, 0.0) if self.n else 0.25


class Aim(NamedTuple):
    """What is averaged for a number A and a group B, inside A 1_B + share 1_B + constant, and roughly where it lies."""

    inside: float
    share: float
    constant: float
    centre: float


@dataclass(frozen=True, slots=True)
class Grouped(Moments):
    """The moments of A 1_B and the number of rows in the group B; `second` of the two answers that its mean takes."""

    inside: int
    second: bool
    rough: tuple[float, float] | None = None
    """Rough draws of the group's share and of E[A 1_B], if the first of the two answers has made them."""

    def of(self, aim: Aim) -> Moments:
        """The moments of what is averaged."""
        a, g, d, _ = aim
        squares = a * a * self.squares + 2 * a * (g + d) * self.total + (g + d) ** 2 * self.inside
        outside = d * d * (self.n - self.inside)
        return Moments(self.n, a * self.total + g * self.inside + d * self.n, squares + outside)


def even_spans(rows: int, count: int) -> list[Span]:
    """So many spans of equal size; the remainder is in none of them."""
    size = rows // count
    return [Span(i * size, (i + 1) * size) for i in range(count)]


def united(spans: Sequence[Span]) -> list[Span]:
    """The same rows, as spans that neither overlap nor touch."""
    found: list[Span] = []
    for span in sorted(set(spans)):
        if found and span.start <= found[-1].stop:
            found[-1] = Span(found[-1].start, max(found[-1].stop, span.stop))
        else:
            found.append(span)
    return found


def sum_moments(parts: Sequence[Moments]) -> Moments:
    """The combined moments of several disjoint sets of rows."""
    return Moments(
        sum(part.n for part in parts),
        math.fsum(part.total for part in parts),
        math.fsum(part.squares for part in parts),
    )
