"""What there is to show, as small records; `show`, `html` and `markdown` each say how one looks in their medium."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Title:
    """The first line."""

    text: str


@dataclass(frozen=True, slots=True)
class Heading:
    """The name of a part of a page."""

    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Alert:
    """A sentence nobody may overlook."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, one a line."""

    items: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; columns of numbers are aligned to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    code: Collection[str] = ()
    """The columns in a fixed-width font, where there is one."""

    def numeric(self, column: int) -> bool:
        """Whether every cell of a column begins as a number does."""
        return bool(self.rows) and all(row[column][:1] in "-±.0123456789" for row in self.rows)


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval with its value, on the scale of its bounds."""

    value: float
    low: float
    high: float
    bounds: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of a forest plot."""

    number: str
    name: str
    value: float | None
    """None draws the interval alone: the value would mislead."""
    low: float
    high: float
    numbers: str
    """Value and interval in words."""
    hint: str
    """What a pointer that rests on it is told."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Many intervals on the scale of their common bounds, one a line."""

    marks: Sequence[Mark]
    bounds: tuple[float, float]
    axis: str
    """What the scale measures."""


Picture = Forest
"""What `charts.svg` can draw."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Pictures of the numbers of a table. Where nothing can be drawn, the table stands alone."""

    pictures: Sequence[Picture]
    table: Table


@dataclass(frozen=True, slots=True)
class Fold:
    """More about something, to be opened by those who want it."""

    summary: str
    blocks: Sequence[Block]


Block = Title | Heading | Line | Alert | Facts | Table | Bar | Drawn | Fold
