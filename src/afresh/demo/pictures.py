"""The demo's two pictures: what goes wrong without a guard, and what is found with one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.results.answer import Answer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from afresh.models.verdicts import Comparison

NAIVE, GUARDED, REAL = "#c8452f", "#2a78c4", "#2e8b57"


def draw_wrong(path: Path, naive: Mapping[int, float], guarded: Mapping[int, Answer], loop: Mapping[str, Any]) -> None:
    """Without a guard: coins that seem to predict, and a loop that fools itself."""
    from matplotlib.figure import Figure  # without pyplot: no window, no global state

    figure = Figure(figsize=(11, 4.2), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    kept, usual = np.array(list(naive)), 0.98
    left.axhline(50, color="black", linestyle="--", linewidth=1)
    left.text(300, 50.3, "truth", ha="right", va="bottom", fontsize=10)
    left.errorbar(
        kept, [100 * s for s in naive.values()], yerr=usual, color=NAIVE, marker="o", capsize=3,
        label="rows reused, usual 95% interval",
    )  # fmt: skip
    values = np.array([[a.value, a.value - a.low, a.high - a.value] for a in guarded.values()]) * 100
    left.errorbar(
        kept, values[:, 0], yerr=values[:, 1:].T, color=GUARDED, marker="s", linestyle="none", capsize=3,
        label="through afresh",
    )  # fmt: skip
    left.set_title("Coin tosses that seem to predict late flights", fontsize=12)
    left.set_xlabel("coins that vote, best first")
    left.set_ylabel("claimed accuracy, %")
    left.set_ylim(42, 68)
    left.legend(loc="upper left", frameon=False)
    edits = len(loop["naive"]["claims"]) - 1
    claims, truths = (100 * np.array(loop["naive"][name]) for name in ("claims", "truths"))
    right.plot(claims, color=NAIVE, label="naive loop: what it claims")
    right.plot(truths, color=NAIVE, linestyle="--", label="naive loop: the truth")
    exam = loop["guarded"]
    right.errorbar(
        [1.04 * edits], [100 * exam["value"]],
        yerr=[[100 * (exam["value"] - exam["low"])], [100 * (exam["high"] - exam["value"])]],
        color=GUARDED, marker="s", capsize=4, label="guarded loop: its exam",
    )  # fmt: skip
    right.plot([1.04 * edits], [100 * exam["true"]], color="black", marker="_", markersize=16, linestyle="none",
               label="guarded loop: the truth")  # fmt: skip
    right.set_title("An agent that keeps every edit that scores", fontsize=12)
    right.set_xlabel("edits")
    right.set_ylabel("accuracy, %")
    right.legend(loc="lower right", frameon=False)
    for axes in (left, right):
        _tidy(axes)
    figure.savefig(path)


def draw_found(
    path: Path, answers: Sequence[tuple[Answer, float]], compared: Comparison, guarded: Mapping[int, Answer]
) -> None:
    """With a guard: late flights by time of day, a better rule, and a lead that is refused."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 2.6), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    names = ("before noon", "after noon", "in rain")
    for place, (name, (answer, truth)) in enumerate(zip(names, answers, strict=True)):
        y = len(names) - place
        _bar(left, y, answer.value, answer.low, answer.high, REAL)
        left.plot([100 * truth], [y], color="black", marker="|", markersize=16, markeredgewidth=2)
        left.text(-1, y, name, ha="right", va="center")
    left.set_title("Found: flights that leave late, % (black: the whole year)", fontsize=12)
    left.set_xlim(0, 55)
    left.set_ylim(0.4, len(names) + 0.6)
    last = max(guarded)
    answer = guarded[last]
    rows = (
        ("a better rule", REAL, compared.value, compared.low, compared.high, "confirmed: above 0"),
        (f"{last} coins", GUARDED, answer.value - 0.5, answer.low - 0.5, answer.high - 0.5, "refused: contains 0"),
    )
    right.axvline(0, color="black", linestyle="--", linewidth=1)
    for place, (name, color, value, low, high, words) in enumerate(rows):
        y = len(rows) - place
        _bar(right, y, value, low, high, color)
        right.text(100 * high + 0.4, y, words, ha="left", va="center", color=color)
        right.text(-6.5, y, name, ha="right", va="center")
    right.set_title("Gain in accuracy, points", fontsize=12)
    right.set_xlim(-6, 14)
    right.set_ylim(0.4, len(rows) + 0.6)
    for axes in (left, right):
        axes.set_yticks([])
        _tidy(axes)
        axes.spines["left"].set_visible(False)
    figure.savefig(path)


def _bar(axes: Axes, y: float, value: float, low: float, high: float, color: str) -> None:
    ends = [[100 * (value - low)], [100 * (high - value)]]
    axes.errorbar([100 * value], [y], xerr=ends, color=color, marker="o", capsize=5, linewidth=2.5)


def _tidy(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
