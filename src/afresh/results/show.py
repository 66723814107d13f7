"""How results look: one description in blocks, shown as text in a terminal and as HTML in a notebook."""

from __future__ import annotations

import json
import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from afresh.escaping import visible
from afresh.results.blocks import (
    Alert,
    Bar,
    Block,
    Cell,
    Drawn,
    Facts,
    Fold,
    Forest,
    Gauge,
    Heading,
    Line,
    Mark,
    Picture,
    Table,
    Title,
    one_scale,
    zoomed,
)
from afresh.results.html import fragment
from afresh.results.strips import gauge_strip, strip

__all__ = [
    "Alert",
    "Bar",
    "Block",
    "Cell",
    "Drawn",
    "Facts",
    "Fold",
    "Forest",
    "Gauge",
    "Heading",
    "Line",
    "Mark",
    "Picture",
    "Said",
    "Shown",
    "Table",
    "Title",
    "Told",
    "as_text",
    "one_scale",
    "percent",
    "width",
    "with_interval",
    "zoomed",
]


class Shown(ABC):
    """A mixin: define `_blocks`, and the result can be shown everywhere."""

    __slots__ = ()

    @abstractmethod
    def _blocks(self) -> Sequence[Block]:
        """The blocks to show."""

    def blocks(self) -> Sequence[Block]:
        """The blocks, for a larger result to include.

        Returns:
            Titles, lines, tables and charts.
        """
        return self._blocks()

    def __str__(self) -> str:
        """Plain text for a terminal or a log, at most 100 columns wide except for tables."""
        return as_text(self._blocks())

    def _repr_html_(self) -> str:
        return fragment(self._blocks())


class Said(Shown):
    """Blocks that display themselves: the details a result shows on demand."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        """Show these blocks."""
        self._said = blocks

    def __repr__(self) -> str:
        """The text, as a prompt shows it."""
        return str(self)

    def _blocks(self) -> Sequence[Block]:
        return self._said


class Told(Shown):
    """A mixin for results that convert to JSON: define `to_dict`."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""

    def to_json(self) -> str:
        """The result as one line of JSON."""
        return json.dumps(self.to_dict())


def as_text(blocks: Sequence[Block], columns: int = 98) -> str:
    """Blocks as text, for a terminal or a log."""
    shown = (block for block in blocks if not (isinstance(block, Fold) and block.brief))
    return "\n".join(_text(block, columns) for block in shown)


def with_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    """A value and the ends of its interval with meaningful digits: two of the half-width.

    The ends are rounded outward: the shown interval covers the certified one.
    """
    half_width = (high - low) / 2
    digits = max(0, 1 - math.floor(math.log10(half_width))) if half_width > 0 else 6
    return f"{value:,.{digits}f}", _rounded(low, digits, ROUND_FLOOR), _rounded(high, digits, ROUND_CEILING)


_ALL_DIGITS = Context(prec=700)  # enough for any float, whatever decimal precision the process has set


def _rounded(value: float, digits: int, direction: str) -> str:
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), direction, _ALL_DIGITS):,f}"


def width(half_width: float) -> str:
    """A half-width with three significant digits, rounded up."""
    return _rounded(half_width, 2 - math.floor(math.log10(half_width)), ROUND_CEILING)


def percent(probability: float) -> str:
    """95% for 0.95, 99.9% for 0.999."""
    return f"{100 * probability:.10g}%"


def _text(block: Block, columns: int) -> str:
    match block:
        case Title(text) | Alert(text):
            return visible(text)
        case Heading(text):
            return f"\n{visible(text)}"
        case Line(text):
            return textwrap.fill(visible(text), columns, initial_indent="  ", subsequent_indent="  ")
        case Facts(items):
            items = {visible(name): visible(value) for name, value in items.items()}
            size = max(map(len, items))
            return "\n".join(
                textwrap.fill(value, columns, initial_indent=f"  {name:<{size}}  ", subsequent_indent=" " * (size + 4))
                for name, value in items.items()
            )
        case Table():
            return _text_table(block)
        case Bar():
            return f"  {block.bounds[0]:g} {strip(block, 60)} {block.bounds[1]:g}"
        case Gauge(_, _, words):
            return f"  {gauge_strip(block)} {visible(words)}"
        case Drawn(_, table):
            return _text_table(table)
        case Fold(summary, inner):
            return f"{_text(Line(summary), columns)}\n{as_text(inner, columns)}"


def _text_table(table: Table) -> str:
    cells = [[_text_cell(cell) for cell in row] for row in (table.header, *table.rows)]
    columns = range(len(table.header))
    sizes = [max(len(row[i]) for row in cells) for i in columns]
    aligned = [str.rjust if table.numeric(i) else str.ljust for i in columns]
    lines = ["  ".join(aligned[i](row[i], sizes[i]) for i in columns).rstrip() for row in cells]
    lines.insert(1, "  ".join("-" * size for size in sizes))
    return "\n".join(["", *(f"  {line}" for line in lines)])


def _text_cell(cell: Cell) -> str:
    return strip(cell) if isinstance(cell, Bar) else visible(cell)
