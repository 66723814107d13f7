"""Charts as inline SVG, for notebooks and pages alike.

They are drawn in `currentColor`, so they suit light and dark pages, and they are styled by attributes and classes only,
so a server may forbid inline styles. What carries the message has the class `accent`, the background `quiet`; the
stylesheet in `html` styles both. A new chart is a record in `blocks` and a function here.
"""

from __future__ import annotations

from collections.abc import Callable

from afresh.escaping import as_html
from afresh.results.blocks import Bar, Forest, Gauge, Mark, Picture

# A forest plot, in units of the picture: the height of a line, where names and the scale begin, the scale's length.
_ROW, _NAME, _LEFT, _PLOT, _WIDTH = 24, 76, 440, 340, 1000
_LONGEST = 44  # how many letters of a name fit between
_SMALL = 180  # the length of a bar in a table
# The same for a phone: names and numbers are above the scale, which takes the full width.
_TALL, _PHONE, _EDGE, _SHORT = 46, 360, 10, 24
_ENOUGH = 1e-9  # a number this close to an end of the scale is at the end


def svg(picture: Picture) -> str:
    """A picture of several numbers."""
    return _forest(picture)


def bar(of: Bar) -> str:
    """One interval and its value, with the ends of its scale."""
    size = 400
    return (
        f'<svg class="bar" width="{size + 80}" height="34" viewBox="-40 0 {size + 80} 34" role="img" '
        f'aria-label="{_said(of)}" fill="currentColor" font-size="11">{_interval(of, size, 12, 5)}'
        f'<text x="0" y="31" text-anchor="middle">{of.bounds[0]:g}</text>'
        f'<text x="{size}" y="31" text-anchor="middle">{of.bounds[1]:g}</text></svg>'
    )


def small_bar(of: Bar) -> str:
    """The same for a table cell; the table's header states the scale."""
    return (
        f'<svg class="bar" width="{_SMALL + 12}" height="16" viewBox="-6 0 {_SMALL + 12} 16" role="img" '
        f'aria-label="{_said(of)}" fill="currentColor">{_interval(of, _SMALL, 8, 4)}</svg>'
    )


def gauge(of: Gauge) -> str:
    """How much of a limit is spent; the words are next to it."""
    size = 400
    part = size * min(max(of.spent / of.limit, 0.0), 1.0) if of.limit > 0 else size
    return (
        f'<svg class="gauge" width="{size}" height="14" viewBox="0 0 {size} 14" role="img" '
        f'aria-label="{as_html(of.words)}" fill="currentColor">'
        f'<rect x="0" y="2" width="{size}" height="10" rx="5" fill-opacity=".15"/>'
        f'<rect class="accent" x="0" y="2" width="{part:.1f}" height="10" rx="5" fill="currentColor"/></svg>'
    )


def _said(of: Bar) -> str:
    return f"{of.value:.6g}, interval from {of.low:.6g} to {of.high:.6g}"


def _interval(of: Bar, size: float, y: int, radius: int) -> str:
    place = _scale(of.bounds, size)
    low, high, middle = (place(min(max(x, of.bounds[0]), of.bounds[1])) for x in (of.low, of.high, of.value))
    return (
        f'<line x1="0" x2="{size}" y1="{y}" y2="{y}" stroke="currentColor" stroke-opacity=".25"/>'
        f'<g class="{_weight(of.strong)}" fill="currentColor"><rect x="{low:.1f}" y="{y - 4}" '
        f'width="{max(high - low, 1):.1f}" height="8" rx="3"/></g><circle cx="{middle:.1f}" cy="{y}" r="{radius}"/>'
    )


def _weight(strong: bool) -> str:
    return "accent" if strong else "quiet"


def _scale(bounds: tuple[float, float], size: float) -> Callable[[float], float]:
    low, high = bounds
    return lambda value: size * (value - low) / (high - low)


def _forest(forest: Forest) -> str:
    """One line per mark: its number and name, its interval on the scale of the bounds, its numbers."""
    place = _scale(forest.bounds, _PLOT)
    height = _ROW * len(forest.marks) + 54
    low, high = forest.bounds
    ticks = "".join(_tick(at, place, height) for at in ticks_of(forest.bounds))
    if low < 0 < high:
        x = f"{_LEFT + place(0.0):.1f}"
        ticks += f'<line x1="{x}" x2="{x}" y1="8" y2="{height - 40}" stroke="currentColor" stroke-opacity=".6"/>'
    base = min(max(0.0, low), high) if forest.filled else None
    marks = "".join(_mark(mark, _ROW * i + 22, place, base) for i, mark in enumerate(forest.marks))
    label = as_html(forest.axis)
    role = "img" if all(mark.href is None for mark in forest.marks) else "group"  # an image hides its links
    return (
        f'<svg class="forest" viewBox="0 0 {_WIDTH} {height}" role="{role}" aria-label="Forest plot: {label}" '
        f'fill="currentColor" font-size="14">{ticks}'
        f'<text x="{_LEFT + _PLOT / 2}" y="{height - 4}" text-anchor="middle" fill-opacity=".7">{label}</text>'
        f"{marks}</svg>"
    )


def both(picture: Picture) -> str:
    """One picture for wide screens and one for narrow; the stylesheet shows the right one."""
    return f'<div class="both">{svg(picture)}{narrow(picture)}</div>'


def narrow(picture: Picture) -> str:
    """The same for a narrow screen, without scrolling: two lines per mark."""
    place = _scale(picture.bounds, _PHONE - 2 * _EDGE)
    height = _TALL * len(picture.marks) + 40
    low, high = picture.bounds
    ticks = "".join(_narrow_tick(at, place, height) for at in ticks_of(picture.bounds))
    base = min(max(0.0, low), high) if picture.filled else None
    marks = "".join(_narrow_mark(mark, _TALL * i + 14, place, base) for i, mark in enumerate(picture.marks))
    label = as_html(picture.axis)
    role = "img" if all(mark.href is None for mark in picture.marks) else "group"
    return (
        f'<svg class="forest narrow" viewBox="0 0 {_PHONE} {height}" role="{role}" '
        f'aria-label="Forest plot: {label}" fill="currentColor" font-size="13">{ticks}'
        f'<text x="{_PHONE / 2}" y="{height - 3}" text-anchor="middle" fill-opacity=".7">{label}</text>{marks}</svg>'
    )


def _narrow_tick(at: float, place: Callable[[float], float], height: int) -> str:
    x = _EDGE + place(at)
    anchor = "start" if x < _PHONE / 4 else "end" if x > 3 * _PHONE / 4 else "middle"
    text = _EDGE - 8 if anchor == "start" else x + 8 if anchor == "end" else x
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="20" y2="{height - 36}" stroke="currentColor" stroke-opacity=".15"/>'
        f'<text x="{text:.1f}" y="{height - 20}" text-anchor="{anchor}" fill-opacity=".7">{at:g}</text>'
    )


def _narrow_mark(mark: Mark, y: int, place: Callable[[float], float], base: float | None) -> str:
    said = as_html(shortened(f"{mark.number} {mark.name}".strip(), _SHORT))
    name = f'<text x="0" y="{y}">{said}</text>'
    if mark.href is not None:
        name = f'<a href="{as_html(mark.href)}"><rect y="{y - 14}" width="190" height="22" fill-opacity="0"/>{name}</a>'
    return (
        f"<g><title>{as_html(mark.hint)}</title>{name}"
        f'<text x="{_PHONE}" y="{y}" text-anchor="end">{as_html(mark.numbers)}</text>'
        f"{_drawn(mark, _EDGE, y + 15, place, base)}</g>"
    )


def places(first: int, last: int, count: int, *, strong: bool) -> str:
    """The places an entry may have, out of so many: a strip from best to worst, left to right."""
    size, step = 96.0, 96.0 / max(count, 1)
    width = max((last - first + 1) * step, 3.0)
    x = min((first - 1) * step, size - width)
    said = f"place {first}" if first == last else f"places {first} to {last}"
    return (
        f'<svg class="places" width="{size:g}" height="10" viewBox="0 0 {size:g} 10" role="img" '
        f'aria-label="{said} of {count}" fill="currentColor">'
        f'<rect y="3.5" width="{size:g}" height="3" rx="1.5" fill-opacity=".15"/>'
        f'<rect class="{_weight(strong)}" x="{x:.1f}" y="1" width="{width:.1f}" height="8" rx="3"/></svg>'
    )


def ticks_of(bounds: tuple[float, float]) -> list[float]:
    """The labels of a scale: its ends and its quarters."""
    low, high = bounds
    found = [low + (high - low) * i / 4 for i in range(5)]
    return [0.0 if abs(each) < _ENOUGH * (high - low) else each for each in found]


def _tick(at: float, place: Callable[[float], float], height: int) -> str:
    x = f"{_LEFT + place(at):.1f}"
    return (
        f'<line x1="{x}" x2="{x}" y1="8" y2="{height - 40}" stroke="currentColor" stroke-opacity=".15"/>'
        f'<text x="{x}" y="{height - 22}" text-anchor="middle" fill-opacity=".7">{at:g}</text>'
    )


def _mark(mark: Mark, y: int, place: Callable[[float], float], base: float | None) -> str:
    name = f'<text x="{_NAME}" y="{y + 5}">{as_html(shortened(mark.name))}</text>'
    if mark.href is not None:  # with a larger target around the letters
        place_of_name = f'<rect x="{_NAME}" y="{y - 11}" width="{_LEFT - _NAME - 8}" height="22" fill-opacity="0"/>'
        name = f'<a href="{as_html(mark.href)}">{place_of_name}{name}</a>'
    return (
        f'<g><title>{as_html(mark.hint)}</title><text x="0" y="{y + 5}">{as_html(mark.number)}</text>'
        f"{name}{_drawn(mark, _LEFT, y, place, base)}"
        f'<text x="{_LEFT + _PLOT + 16}" y="{y + 5}">{as_html(mark.numbers)}</text></g>'
    )


def _drawn(mark: Mark, start: int, y: int, place: Callable[[float], float], base: float | None) -> str:
    """An interval with its value, as a point or as a bar from the base."""
    body = ""
    if mark.value is not None:
        x = start + place(mark.value)
        if base is None:
            body = f'<circle cx="{x:.1f}" cy="{y}" r="4.5"/>'
        else:
            left, right = sorted((x, start + place(base)))
            body = (
                f'<rect x="{left:.1f}" y="{y - 8}" width="{right - left:.1f}" height="16" fill-opacity=".35"/>'
                f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8}" y2="{y + 8}" stroke="currentColor" stroke-width="2"/>'
            )
    return (
        f'<g class="{_weight(mark.strong)}" fill="currentColor">'
        f'<line x1="{start + place(mark.low):.1f}" x2="{start + place(mark.high):.1f}" y1="{y}" y2="{y}" '
        f'stroke="currentColor" stroke-width="3" stroke-linecap="round"/>{body}</g>'
    )


def shortened(name: str, most: int = _LONGEST) -> str:
    """A name that fits into its place."""
    return name if len(name) <= most else name[: most - 1] + "…"
