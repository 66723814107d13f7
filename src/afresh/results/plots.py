"""Matplotlib pictures of the same records that `charts` draws as SVG. Imported when a picture is requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from afresh.errors import MissingExtra
from afresh.escaping import visible
from afresh.results.blocks import Forest, Mark
from afresh.results.charts import shortened, ticks_of

ACCENT, QUIET = "#2a78c4", "#8a8f98"
_NAMES = 46  # letters of a name


def new_axes(ax: Any, size: tuple[float, float]) -> Any:
    """The given axes, or those of a new pyplot figure, which notebooks and scripts display."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None
    _, made = plt.subplots(figsize=size, layout="constrained")
    return made


def draw(forest: Forest, ax: Any = None) -> Any:
    """A forest plot, or bars, on axes."""
    marks = forest.marks
    ax = new_axes(ax, (8.5, 0.9 + 0.3 * max(len(marks), 2)))
    for place, mark in enumerate(marks):
        _line(ax, mark, place, filled=forest.filled)
    low, high = forest.bounds
    if low < 0 < high:
        ax.axvline(0, color="0.4", linewidth=1, zorder=1)
    ax.set_xlim(low - 0.01 * (high - low), high + 0.01 * (high - low))
    ax.set_xticks(ticks_of(forest.bounds))
    ax.set_yticks(range(len(marks)), [_plain(f"{each.number}   {each.name}") for each in marks])
    ax.set_ylim(len(marks) - 0.4, -0.6)
    ax.set_xlabel(_plain(forest.axis, 100))
    ax.grid(axis="x", alpha=0.25)
    ax.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    return ax


def _line(ax: Any, mark: Mark, place: int, *, filled: bool) -> None:
    colour = ACCENT if mark.strong else QUIET
    if filled and mark.value is not None:
        ax.barh(place, mark.value, height=0.62, color=colour, alpha=0.35, zorder=2)
    ax.plot([mark.low, mark.high], [place, place], color=colour, linewidth=2.5, solid_capstyle="round", zorder=3)
    if mark.value is not None:
        ax.plot([mark.value], [place], "|" if filled else "o", color=colour, markersize=10 if filled else 6, zorder=4)


def _plain(text: str, most: int = _NAMES) -> str:
    """A name exactly as written: an unescaped dollar sign would start a formula."""
    return shortened(visible(text), most).replace("$", r"\$")


def curves(
    lines: Mapping[str, Sequence[tuple[float, float]]], ax: Any, *, x: str, y: str, strong: str | None = None
) -> Any:
    """Lines through points, on scales of powers of ten."""
    ax = new_axes(ax, (7.5, 4.5))
    for name, points in lines.items():
        kept = [(a, b) for a, b in points if b > 0]
        if kept:
            chosen = name == strong
            ax.plot(*zip(*kept, strict=True), label=_plain(name), linewidth=2.5 if chosen else 1.2)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(alpha=0.25, which="both")
    ax.legend(frameon=False, fontsize=9)
    return ax
