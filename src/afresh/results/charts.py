"""Charts as inline SVG, for notebooks and pages alike.

They are drawn in `currentColor`, so they suit a light and a dark page; what carries the message has the class `accent`,
which the stylesheet of `html` gives its colour. A new chart is a record of `blocks` and a function here.
"""

from __future__ import annotations

from collections.abc import Callable

from afresh.escaping import as_html
from afresh.results.blocks import Bar, Forest, Mark, Picture

# A forest plot, in units of the picture: how high a line is, where names and the scale begin, how long the scale is.
_ROW, _NAME, _LEFT, _PLOT, _WIDTH = 24, 76, 440, 340, 1000
_LONGEST = 44  # letters of a name that fit between


def svg(picture: Picture) -> str:
    """A picture of several numbers."""
    return _forest(picture)


def bar(of: Bar) -> str:
    """One interval and its value."""
    place = _scale(of.bounds, 400)
    low, high, middle = (place(min(max(x, of.bounds[0]), of.bounds[1])) for x in (of.low, of.high, of.value))
    return (
        '<svg width="480" height="34" viewBox="-40 0 480 34" role="img" '
        f'aria-label="{of.value:.6g}, interval from {of.low:.6g} to {of.high:.6g}" fill="currentColor" font-size="11">'
        '<line x1="0" x2="400" y1="12" y2="12" stroke="currentColor" stroke-opacity=".25"/>'
        f'<rect class="accent" x="{low:.1f}" y="8" width="{max(high - low, 1):.1f}" height="8" rx="3" '
        f'fill="currentColor"/><circle cx="{middle:.1f}" cy="12" r="5"/>'
        f'<text x="0" y="31" text-anchor="middle">{of.bounds[0]:g}</text>'
        f'<text x="400" y="31" text-anchor="middle">{of.bounds[1]:g}</text></svg>'
    )


def _scale(bounds: tuple[float, float], size: float) -> Callable[[float], float]:
    low, high = bounds
    return lambda value: size * (value - low) / (high - low)


def _forest(forest: Forest) -> str:
    """One line a mark: its number and name, its interval on the scale of the bounds, its numbers."""
    place = _scale(forest.bounds, _PLOT)
    height = _ROW * len(forest.marks) + 54
    low, high = forest.bounds
    ticks = "".join(_tick(low + (high - low) * i / 4, place, height) for i in range(5))
    marks = "".join(_mark(mark, _ROW * i + 22, place) for i, mark in enumerate(forest.marks))
    label = as_html(forest.axis)
    return (
        f'<svg class="forest" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Forest plot: {label}" '
        f'fill="currentColor" font-size="14">{ticks}'
        f'<text x="{_LEFT + _PLOT / 2}" y="{height - 4}" text-anchor="middle" fill-opacity=".7">{label}</text>'
        f"{marks}</svg>"
    )


def _tick(at: float, place: Callable[[float], float], height: int) -> str:
    x = f"{_LEFT + place(at):.1f}"
    return (
        f'<line x1="{x}" x2="{x}" y1="8" y2="{height - 40}" stroke="currentColor" stroke-opacity=".15"/>'
        f'<text x="{x}" y="{height - 22}" text-anchor="middle" fill-opacity=".7">{at:g}</text>'
    )


def _mark(mark: Mark, y: int, place: Callable[[float], float]) -> str:
    name = mark.name if len(mark.name) <= _LONGEST else mark.name[: _LONGEST - 1] + "…"
    dot = "" if mark.value is None else f'<circle cx="{_LEFT + place(mark.value):.1f}" cy="{y}" r="4.5"/>'
    return (
        f'<g><title>{as_html(mark.hint)}</title><text x="0" y="{y + 5}">{as_html(mark.number)}</text>'
        f'<text x="{_NAME}" y="{y + 5}">{as_html(name)}</text><g class="accent" fill="currentColor">'
        f'<line x1="{_LEFT + place(mark.low):.1f}" x2="{_LEFT + place(mark.high):.1f}" y1="{y}" y2="{y}" '
        f'stroke="currentColor" stroke-width="3" stroke-linecap="round"/>{dot}</g>'
        f'<text x="{_LEFT + _PLOT + 16}" y="{y + 5}">{as_html(mark.numbers)}</text></g>'
    )
