"""What is shown, as small records; `show`, `html` and `markdown` each decide how a record looks in their medium."""

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
    """A sentence that must not be overlooked."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, one pair per line."""

    items: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval with its value, on the scale of its bounds."""

    value: float
    low: float
    high: float
    bounds: tuple[float, float]
    strong: bool = True
    """Whether it carries the message; the others in the same table are drawn weaker."""


Cell = str | Bar
"""The content of a table cell: words, or a small drawing of an interval."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a header; columns of numbers are right-aligned."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    code: Collection[str] = ()
    """The columns shown in a fixed-width font, where one is available."""

    def numeric(self, column: int) -> bool:
        """Whether every cell of a column starts like a number."""
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
    """The tooltip."""
    href: str | None = None
    """The link of its name."""
    strong: bool = True
    """Whether it carries the message; the others in the same picture are drawn weaker."""


@dataclass(frozen=True, slots=True)
class Forest:
    """Many intervals on the scale of their common bounds, one per line."""

    marks: Sequence[Mark]
    bounds: tuple[float, float]
    axis: str
    """What the scale measures."""
    filled: bool = False
    """Whether values are drawn as bars from zero, as in a histogram."""


Picture = Forest
"""What `charts.svg` can draw."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Pictures of a table's numbers. Where nothing can be drawn, only the table is shown."""

    pictures: Sequence[Picture]
    table: Table


@dataclass(frozen=True, slots=True)
class Fold:
    """Details that a reader can open."""

    summary: str
    blocks: Sequence[Block]
    brief: bool = False
    """Whether to omit it from text, which cannot be unfolded; there it is shown on demand."""


Block = Title | Heading | Line | Alert | Facts | Table | Bar | Gauge | Drawn | Fold


def one_scale(marks: Sequence[tuple[Mark, tuple[float, float]]]) -> Forest:
    """A picture of marks, which must all have the same bounds."""
    scales = list(dict.fromkeys(bounds for _, bounds in marks))
    if len(scales) != 1:
        found = ", ".join(f"({low:g}, {high:g})" for low, high in scales) or "none"
        raise InvalidArgument(
            f"a picture has one scale, but these have the bounds {found}; draw each scale separately."
        )
    return Forest([mark for mark, _ in marks], scales[0], "share of rows" if scales[0] == (0, 1) else "mean")


def zoomed(ends: Sequence[float], bounds: tuple[float, float]) -> tuple[float, float]:
    """The part of the range that contains all of these numbers, with four even steps of one or two digits."""
    low, high = min(ends), max(ends)
    reach = max(high - low, (bounds[1] - bounds[0]) * 1e-6)
    power = 10.0 ** math.floor(math.log10(reach / 4))
    for step in (factor * power for factor in (1, 2, 2.5, 5, 10, 20)):
        start = math.floor(low / step)
        if start * step + 4 * step >= high and 4 * step >= reach:
            break
    found = start * step, (start + 4) * step
    return bounds if found[0] <= bounds[0] and found[1] >= bounds[1] else found
