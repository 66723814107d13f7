"""How results look: one description, shown as text in a terminal and as HTML in a notebook."""

from __future__ import annotations

import json
import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

from afresh.escaping import as_html, visible


@dataclass(frozen=True, slots=True)
class Title:
    """The first line."""

    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence."""

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


@dataclass(frozen=True, slots=True)
class Bar:
    """An interval with its value, on the scale of its bounds."""

    value: float
    low: float
    high: float
    bounds: tuple[float, float]


Block = Title | Line | Facts | Table | Bar


class Shown(ABC):
    """A mixin: say what there is in `_blocks`, and it is shown everywhere."""

    __slots__ = ()

    @abstractmethod
    def _blocks(self) -> Sequence[Block]:
        """What there is to show."""

    def __str__(self) -> str:
        """For a terminal or a log: plain text of at most 100 columns, save tables."""
        return as_text(self._blocks())

    def _repr_html_(self) -> str:
        body = "".join(_html(block) for block in self._blocks())
        return f'<div style="font-family:system-ui,sans-serif;line-height:1.45;max-width:60em">{body}</div>'


class Told(Shown):
    """A mixin for results that are JSON as well: say what there is in `to_dict`."""

    __slots__ = ()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict())


def as_text(blocks: Sequence[Block]) -> str:
    """For a terminal or a log."""
    return "\n".join(map(_text, blocks))


def with_interval(value: float, low: float, high: float) -> tuple[str, str, str]:
    """A value and the ends of its interval with the digits its error leaves meaningful: two of the half-width.

    The ends are rounded outward: what is shown covers what was certified.
    """
    half_width = (high - low) / 2
    digits = max(0, 1 - math.floor(math.log10(half_width))) if half_width > 0 else 6
    return f"{value:,.{digits}f}", _rounded(low, digits, ROUND_FLOOR), _rounded(high, digits, ROUND_CEILING)


_ALL_DIGITS = Context(prec=700)  # of any float, whatever precision the process has chosen for its own decimals


def _rounded(value: float, digits: int, direction: str) -> str:
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), direction, _ALL_DIGITS):,f}"


def width(half_width: float) -> str:
    """A half-width with three significant digits, rounded up."""
    return _rounded(half_width, 2 - math.floor(math.log10(half_width)), ROUND_CEILING)


def percent(probability: float) -> str:
    """95% for 0.95, 99.9% for 0.999."""
    return f"{100 * probability:.10g}%"


def _text(block: Block) -> str:
    match block:
        case Title(text):
            return visible(text)
        case Line(text):
            return textwrap.fill(visible(text), 98, initial_indent="  ", subsequent_indent="  ")
        case Facts(items):
            items = {visible(name): visible(value) for name, value in items.items()}
            size = max(map(len, items))
            return "\n".join(
                textwrap.fill(value, 98, initial_indent=f"  {name:<{size}}  ", subsequent_indent=" " * (size + 4))
                for name, value in items.items()
            )
        case Table(header, rows):
            cells = [[visible(cell) for cell in row] for row in (header, *rows)]
            sizes = [max(len(row[i]) for row in cells) for i in range(len(header))]
            right = [_numeric(rows, i) for i in range(len(header))]
            lines = [
                "  "
                + "  ".join(
                    cell.rjust(size) if r else cell.ljust(size) for cell, size, r in zip(row, sizes, right, strict=True)
                ).rstrip()
                for row in cells
            ]
            lines.insert(1, "  " + "  ".join("-" * size for size in sizes))
            return "\n".join(["", *lines])
        case Bar():
            return "  " + _text_bar(block)


def _text_bar(bar: Bar, size: int = 60) -> str:
    """│────[==|==]────│ with the bounds at the ends."""
    a, b = bar.bounds

    def place(x: float) -> int:
        return round((min(max(x, a), b) - a) / (b - a) * (size - 1))

    cells = ["·"] * size
    low, high, middle = place(bar.low), place(bar.high), place(bar.value)
    for i in range(low, high + 1):
        cells[i] = "━"
    cells[middle] = "●"
    return f"{a:g} {''.join(cells)} {b:g}"


def _numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
    values = [row[column] for row in rows]
    return bool(values) and all(v[:1] in "-±.0123456789" for v in values)


def _html(block: Block) -> str:
    match block:
        case Title(text):
            return f'<div style="font-weight:600;margin:.3em 0">{as_html(text)}</div>'
        case Line(text):
            return f'<div style="margin:.2em 0;opacity:.85">{as_html(text)}</div>'
        case Facts(items):
            rows = "".join(
                f'<tr><td style="text-align:left;opacity:.7;padding:.1em 1em .1em 0">{as_html(name)}</td>'
                f'<td style="text-align:left;padding:.1em 0">{as_html(value)}</td></tr>'
                for name, value in items.items()
            )
            return f'<table style="border-collapse:collapse;margin:.2em 0">{rows}</table>'
        case Table(header, rows):
            right = [_numeric(rows, i) for i in range(len(header))]
            line = "".join(_html_cell("th", c, r) for c, r in zip(header, right, strict=True))
            body = "".join(
                "<tr>" + "".join(_html_cell("td", c, r) for c, r in zip(row, right, strict=True)) + "</tr>"
                for row in rows
            )
            return f'<table style="border-collapse:collapse;margin:.5em 0"><tr>{line}</tr>{body}</table>'
        case Bar():
            return _html_bar(block)


def _html_cell(tag: str, text: str, right: bool) -> str:
    side = "right" if right else "left"
    return f'<{tag} style="text-align:{side};padding:.15em .9em .15em 0">{as_html(text)}</{tag}>'


def _html_bar(bar: Bar) -> str:
    a, b = bar.bounds

    def place(x: float) -> float:
        return (min(max(x, a), b) - a) / (b - a) * 400

    low, high, middle = place(bar.low), place(bar.high), place(bar.value)
    return (
        '<svg width="480" height="34" viewBox="-40 0 480 34" role="img" '
        f'aria-label="{bar.value:.6g}, interval from {bar.low:.6g} to {bar.high:.6g}">'
        '<line x1="0" x2="400" y1="12" y2="12" stroke="currentColor" stroke-opacity=".25"/>'
        f'<rect x="{low:.1f}" y="8" width="{max(high - low, 1):.1f}" height="8" rx="3" fill="#2a78c4"/>'
        f'<circle cx="{middle:.1f}" cy="12" r="5" fill="currentColor"/>'
        f'<text x="0" y="31" font-size="11" text-anchor="middle" fill="currentColor">{a:g}</text>'
        f'<text x="400" y="31" font-size="11" text-anchor="middle" fill="currentColor">{b:g}</text></svg>'
    )
