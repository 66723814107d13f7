"""Draws docs/figures/how.png, the three ways to use the same rows: python docs/figures/how.py"""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Rectangle

BLUES = ("#7fb5e6", "#9cc7ee", "#b9d8f4", "#d6e7f8")
GREEN, GREY = "#8fd0ab", "#d9d9d9"


def rows(axes: Axes, parts: list[tuple[float, str, str]]) -> None:
    """A bar of rows in parts: its share, its colour and what stands in it."""
    left = 0.0
    for share, color, words in parts:
        axes.add_patch(Rectangle((left, 0), share, 1, facecolor=color, edgecolor="white", linewidth=2))
        axes.text(left + share / 2, 0.5, words, ha="center", va="center", fontsize=11)
        left += share
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-1.15, 1.5)
    axes.axis("off")


def arrow(axes: Axes, start: float, end: float, words: str) -> None:
    """From one part to another, below the bar."""
    axes.add_patch(
        FancyArrowPatch(
            (start, -0.05),
            (end, -0.05),
            connectionstyle=f"arc3,rad={0.07 / (end - start):.3f}",
            arrowstyle="-|>",
            mutation_scale=14,
            color="#444",
        )
    )
    axes.text((start + end) / 2, -1.0, words, ha="center", va="center", fontsize=10, color="#444")


def main() -> None:
    """Draw it."""
    figure = Figure(figsize=(10, 5.6), dpi=140, layout="constrained")
    first, second, third = figure.subplots(3, 1)
    rows(first, [(0.4, GREEN, "open: look, plot, fit"), (0.6, BLUES[1], "guarded: confirms")])
    arrow(first, 0.2, 0.7, "what you found there is asked here, and the answer says whether it holds")
    first.set_title("Open rows", loc="left", fontsize=13)
    rows(second, [(0.25, BLUES[i], f"round {i + 1}") for i in range(4)])
    arrow(second, 0.12, 0.36, "the next batch is chosen after this one's answers")
    second.set_title("Rounds: each batch of questions has fresh rows, and exact means", loc="left", fontsize=13)
    rows(
        third,
        [(1.0, GREY, "all rows answer every question, with noise that hides what one answer tells about the next")],
    )
    third.set_title("Fully adaptive: every question may depend on every answer", loc="left", fontsize=13)
    figure.savefig(Path(__file__).parent / "how.png")


if __name__ == "__main__":
    main()
