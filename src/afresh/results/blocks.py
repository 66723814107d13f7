"""What there is to show, as small records; `show`, `html` and `markdown` each say how one looks in their medium."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from afresh.errors import InvalidArgument


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
class Bar:
    """An interval with its value, on the scale of its bounds."""

    value: float
    low: float
    high: float
    bounds: tuple[float, float]
    strong: bool = True
    """Whether it carries the message; others of the same table are drawn weaker."""


Cell = str | Bar
"""What a table has in a cell: words, or an interval drawn small."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; columns of numbers are aligned to the right."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    code: Collection[str] = ()
    """The columns in a fixed-width font, where there is one."""

    def numeric(self, column: int) -> bool:
        """Whether every cell of a column begins as a number does."""
        cells = [row[column] for row in self.rows]
        return bool(cells) and all(isinstance(cell, str) and cell[:1] in "-±.0123456789" for cell in cells)


@dataclass(frozen=True, slots=True)
class Gauge:
    """How much of a limit is spent."""

    spent: float
    limit: float
    words: str
    """The same in words."""


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
    href: str | None = None
    """Where its name leads."""
    strong: bool = True
    """Whether it carries the message; others of the same picture are drawn weaker."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Many intervals on the scale of their common bounds, one a line."""

    marks: Sequence[Mark]
    bounds: tuple[float, float]
    axis: str
    """What the scale measures."""
    filled: bool = False
    """Whether values are bars from zero, as of a histogram."""


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
    brief: bool = False
    """Whether text, which cannot be unfolded, leaves it out: there it is told on demand."""


Block = Title | Heading | Line | Alert | Facts | Table | Bar | Gauge | Drawn | Fold


def one_scale(marks: Sequence[tuple[Mark, tuple[float, float]]]) -> Forest:
    """A picture of marks with their bounds, which must be the same."""
    scales = list(dict.fromkeys(bounds for _, bounds in marks))
    if len(scales) != 1:
        found = ", ".join(f"({low:g}, {high:g})" for low, high in scales) or "none"
        raise InvalidArgument(
            f"a picture has one scale, and these have the bounds {found}; draw those of one at a time."
        )
    return Forest([mark for mark, _ in marks], scales[0], "share of rows" if scales[0] == (0, 1) else "mean")


def zoomed(ends: Sequence[float], bounds: tuple[float, float]) -> tuple[float, float]:
    """The part of the bounds that has all of these numbers, with four even steps of one or two digits."""
    low, high = min(ends), max(ends)
    reach = max(high - low, (bounds[1] - bounds[0]) * 1e-6)
    power = 10.0 ** math.floor(math.log10(reach / 4))
    for step in (factor * power for factor in (1, 2, 2.5, 5, 10, 20)):
        start = math.floor(low / step)
        if start * step + 4 * step >= high and 4 * step >= reach:
            break
    found = start * step, (start + 4) * step
    return bounds if found[0] <= bounds[0] and found[1] >= bounds[1] else found
