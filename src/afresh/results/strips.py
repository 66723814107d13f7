"""Intervals and gauges drawn with characters, for terminals and Markdown."""

from __future__ import annotations

from afresh.results.blocks import Bar, Gauge

_SMALL = 24


def strip(bar: Bar, size: int = _SMALL) -> str:
    """An interval on its scale: ···━━●━━····, thinner if others carry the message."""
    a, b = bar.bounds

    def place(x: float) -> int:
        return round((min(max(x, a), b) - a) / (b - a) * (size - 1))

    cells = ["·"] * size
    for i in range(place(bar.low), place(bar.high) + 1):
        cells[i] = "━" if bar.strong else "─"
    cells[place(bar.value)] = "●" if bar.strong else "○"
    return "".join(cells)


def gauge_strip(gauge: Gauge, size: int = 40) -> str:
    """The part that is spent: ████░░░░░░."""
    part = min(max(gauge.spent / gauge.limit, 0.0), 1.0) if gauge.limit > 0 else 1.0
    spent = round(part * size)
    return "█" * spent + "░" * (size - spent)
