"""Matplotlib without a window, imported when a picture is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from afresh.errors import MissingExtra


def subplots(rows: int, columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    """A figure and its panels, always as rows of columns."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "lab") from None
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Any, path: Path) -> Path:
    """Write a PNG and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    return path
