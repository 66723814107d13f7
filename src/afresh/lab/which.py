"""One picture for "which method should I use": what is guaranteed in advance, and what was measured under attack."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from afresh.lab.frontier import point
from afresh.lab.simulation import Trial, run
from afresh.mechanisms.base import geometric_mean
from afresh.mechanisms.registry import PLANNERS, PROMISING, planner_with_open

N, FAILURE = 10_000, 0.05
QUESTIONS = (1, 2, 3, 5, 6, 7, 8, 9, 12, 20, 40, 100, 300, 1000, 3000)
ATTACKED = (30, 100, 300, 1000)
_POPULATIONS = {0.5: "fair", 0.01: "p=0.01"}
_PROMISED = {
    "rounds": ("#d98c21", "rounds of one question: promised"),
    "calibrated": ("#8a5fbf", "calibrated: promised"),
    "stabilized": ("#2a78c4", "stabilized: promised"),
    "symmetrized": ("#1b9aaa", "symmetrized: promised"),
    "settled": ("#0b5e63", "settled: promised"),
}
_ROWS = (300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)
_ASKED = (1, 3, 6, 10, 30, 100, 300, 1000, 3000, 10_000)
_EXPECTED = {
    PLANNERS["checked"]: ("#45a37b", "checked: while checks pass, not promised"),
    planner_with_open(0.5): ("#c4476b", "half of the rows open: while checks pass, not promised"),
}


def measured(mean: float, repeats: int, seed: int) -> list[float]:
    """Measure the mean half-width of checked answers against the attack at every square, by `ATTACKED`.

    Args:
        mean: 0.5 or 0.01, the mean of the population's bits.
        repeats: Conversations for each number of questions.
        seed: The seed of everything random.

    Returns:
        One average for each number of questions.
    """
    trials = [Trial("checked", "squares", _POPULATIONS[mean], N, k, FAILURE, seed) for k in ATTACKED]
    return [float(np.mean(run(trial, range(repeats))["mean_half_width"])) for trial in trials]


def draw(folder: Path, repeats: int = 5, seed: int = 2018) -> Path:
    """Draw half-widths at n = 10,000 against k, for an even share and a rare event, and the narrowest guarantees.

    Args:
        folder: Where the picture goes.
        repeats: Conversations for each measured point.
        seed: The seed of everything random.

    Returns:
        The path of the picture.
    """
    from afresh.lab.pictures import save, subplots

    figure, panels = subplots(1, len(_POPULATIONS) + 1, (16, 4.8))
    for axes, mean in zip(panels[0], _POPULATIONS, strict=False):
        _panel(axes, mean, measured(mean, repeats, seed))
    _map(panels[0][-1])
    panels[0][0].set_ylabel("half-width, 95%, all answers at once", fontsize=11)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=10, frameon=False)
    return save(figure, folder / "which_method.png")


def narrowest_promise(rows: int, questions: int) -> str | None:
    """The method with the narrowest guarantee by the planner's rule; None if nothing narrower than ±.25 is guaranteed.

    Args:
        rows: The rows of the sample.
        questions: The questions of the conversation.

    Returns:
        Its name.
    """
    plans = [made for planner in PROMISING.values() if (made := planner(rows, questions, FAILURE, None)) is not None]
    best = min(plans, key=lambda each: geometric_mean(each.half_width), default=None)
    return None if best is None or best.half_width(0.5) > 0.25 else best.method


def _map(axes: Any) -> None:
    """Draw a map with a cell for every number of rows and of questions."""
    for i, rows in enumerate(_ROWS):
        for j, questions in enumerate(_ASKED):
            name = narrowest_promise(rows, questions)
            colour = "#eeeeee" if name is None else _PROMISED[name][0]
            axes.add_patch(axes.patch.__class__((i, j), 1, 1, facecolor=colour, edgecolor="white", linewidth=0.8))
    axes.set_xlim(0, len(_ROWS))
    axes.set_ylim(0, len(_ASKED))
    axes.set_xticks([i + 0.5 for i in range(0, len(_ROWS), 2)], [f"{_ROWS[i]:,}" for i in range(0, len(_ROWS), 2)])
    axes.set_yticks([j + 0.5 for j in range(len(_ASKED))], [f"{k:,}" for k in _ASKED])
    axes.set_title("the narrowest promise (grey: beyond ±.25)", fontsize=12)
    axes.set_xlabel("rows n", fontsize=11)
    axes.set_ylabel("questions k", fontsize=11)


def _panel(axes: Any, mean: float, attacked: list[float]) -> None:
    points = [point(N, k, mean, FAILURE) for k in QUESTIONS]
    for name, (colour, label) in _PROMISED.items():
        widths = [p.half_width[name] for p in points]
        axes.loglog(QUESTIONS, widths, "-", color=colour, label=label, linewidth=2)
    for planner, (colour, label) in _EXPECTED.items():
        plans = [planner(N, k, FAILURE) for k in QUESTIONS]
        expected = [plan.half_width(mean) for plan in plans if plan is not None]
        axes.loglog(QUESTIONS, expected, ":", color=colour, label=label, linewidth=2)
    axes.loglog(ATTACKED, attacked, "s", color="#45a37b", label="checked: measured under attack")
    # The planner's switch from fresh rows for each question to noise.
    last_round = max((p.k for p in points if p.narrowest == "rounds"), default=None)
    if last_round is not None:
        axes.axvspan(QUESTIONS[0], last_round, color="#d98c21", alpha=0.12)
        axes.text(1.1, 0.02, "rounds", transform=axes.get_xaxis_transform(), color="#a86509", fontsize=11)
    narrowest = points[-1].narrowest
    colour = _PROMISED[narrowest][0]
    axes.text(30, 0.02, narrowest, transform=axes.get_xaxis_transform(), color=colour, fontsize=11)
    axes.set_title(f"n = {N:,} rows, an answer near {mean:g}", fontsize=12)
    axes.set_xlabel("questions k", fontsize=11)
    axes.grid(alpha=0.25, which="major")
    ticks = [t for t in (0.003, 0.01, 0.03, 0.1, 0.3) if axes.get_ylim()[0] < t < axes.get_ylim()[1]]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_xticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axes.yaxis.set_minor_formatter("")
