"""Target half-widths, each computed by the code that guards run, next to its limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from afresh.lab.simulation import Trial, run
from afresh.theory.figures import Figure, figures

HEADER = ("task, 95%, half-width at a mean of one half unless stated", "at most", "ours", "reached")
_WORST = "every-10"  # of the lab's analysts, at (10^4, 1000) and (10^5, 1000): docs/lab.md


def goals(repeats: int = 0, progress: Callable[[int], None] | None = None) -> list[Figure]:
    """Compute all figures that follow from plans and, if conversations are to be run, that of the lab's worst analyst.

    Args:
        repeats: How many conversations with it; 0 measures nothing.
        progress: Called with the number of conversations that were finished since the last call.

    Returns:
        A figure for each task.
    """
    found = figures()
    widths = []
    for repeat in range(repeats):
        widths += run(Trial("checked", _WORST, "fair", 10_000, 1000), range(repeat, repeat + 1))["mean_half_width"]
        if progress is not None:
            progress(1)
    if widths:
        mean = sum(widths) / len(widths)
        found.append(Figure(f"checked, 10,000 rows, 1000 questions, measured under {_WORST!r}", 0.118, mean))
    return found


def lines(found: Iterable[Figure]) -> list[tuple[str, ...]]:
    """Format the figures as text, one tuple per line.

    Args:
        found: What `goals` gave.

    Returns:
        A tuple under `HEADER` for each.
    """
    return [(each.task, f"{each.most:g}", f"{each.found:.4f}", "yes" if each.reached else "no") for each in found]
