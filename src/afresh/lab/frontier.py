"""The frontier: what each method guarantees, against the number of questions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from afresh.lab.baselines.fixed_gaussian import plan_fixed_gaussian
from afresh.mechanisms.calibrated import plan_calibrated
from afresh.mechanisms.guess_and_check import make_guess_and_check
from afresh.mechanisms.rounds import plan_rounds
from afresh.mechanisms.settled import plan_settled
from afresh.mechanisms.stabilized import plan_stabilized
from afresh.mechanisms.symmetrized import plan_symmetrized
from afresh.theory.references import fixed_questions_half_width, jung_error, main_theorem_error, rogers_half_width

ROWS = (10**4, 10**5, 10**6)
QUESTIONS = (1, 2, 4, 6, 8, 10, 15, 30, 100, 300, 1000, 3000, 10_000)
MEANS = (0.5, 0.1, 0.01)
FAILURES = (0.05, 0.01)
OURS = ("stabilized", "symmetrized", "settled", "fixed-gaussian", "calibrated")
CERTIFIED = (*OURS, "rounds")

_COLOURS = {
    "stabilized": "#2a78c4",
    "symmetrized": "#1b9aaa",
    "settled": "#0b5e63",
    "fixed-gaussian": "#45a37b",
    "calibrated": "#8a5fbf",
    "rounds": "#d98c21",
    "guess-and-check, if nothing fails": "#2a78c4",
    "Jung et al. 2020": "#c8452f",
    "Rogers et al. 2020": "#b06a8c",
    "the paper's eq. (3)": "#7a5230",
    "questions fixed in advance": "#7a7a7a",
}


@dataclass(frozen=True)
class Point:
    """Half-widths of every method at one n, k, mean and beta; methods without a plan are left out."""

    n: int
    k: int
    mean: float
    failure: float
    half_width: dict[str, float]

    @property
    def narrowest(self) -> str:
        """The narrowest of the methods that come with a guarantee."""
        return min(CERTIFIED, key=lambda name: self.half_width.get(name, math.inf))

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        place = {"n": self.n, "k": self.k, "mean": self.mean, "failure": self.failure}
        return place | {"half_width": self.half_width, "narrowest": self.narrowest}


def point(n: int, k: int, mean: float, failure: float) -> Point:
    """Compute all half-widths at one point. Every method has one plan per (n, k, beta), the planner's, for all means.

    Args:
        n: Rows.
        k: Questions.
        mean: Where the answer lies, in [0, 1].
        failure: beta.

    Returns:
        The half-width of every method that has a plan there, and of the reference lines.
    """
    return Point(n, k, mean, failure, {name: width(mean) for name, width in _methods(n, k, failure).items()})


@lru_cache(maxsize=256)
def _methods(n: int, k: int, failure: float) -> dict[str, Callable[[float], float]]:
    planned = {
        "stabilized": plan_stabilized(n, k, failure),
        "symmetrized": plan_symmetrized(n, k, failure),
        "settled": plan_settled(n, k, failure),
        "fixed-gaussian": plan_fixed_gaussian(n, k, failure),
        "calibrated": plan_calibrated(n, k, failure),
        "rounds": plan_rounds(n, k, failure),
        "guess-and-check, if nothing fails": make_guess_and_check(n, k, failure),
    }
    jung, rogers = jung_error(n, k, failure), rogers_half_width(n, k, failure)
    return {name: mechanism.half_width for name, mechanism in planned.items() if mechanism is not None} | {
        "Jung et al. 2020": lambda mean: jung,
        "Rogers et al. 2020": lambda mean: rogers,
        "the paper's eq. (3)": lambda mean: main_theorem_error(n, k, failure, math.sqrt(mean * (1 - mean))),
        "questions fixed in advance": lambda mean: fixed_questions_half_width(n, k, failure, mean),
    }


def frontier(
    rows: Iterable[int] = ROWS,
    questions: Sequence[int] = QUESTIONS,
    means: Sequence[float] = MEANS,
    failures: Sequence[float] = FAILURES,
    progress: Callable[[int], None] | None = None,
) -> list[Point]:
    """Compute the whole grid.

    Args:
        rows: The n of the grid.
        questions: The k of the grid.
        means: The means of the grid.
        failures: The beta of the grid.
        progress: Called with 1 after every n and k.

    Returns:
        A point for each combination.
    """
    points = []
    for failure in failures:
        for n in rows:
            for k in questions:
                points += [point(n, k, mean, failure) for mean in means]
                if progress is not None:
                    progress(1)
    return points


def draw(points: Sequence[Point], folder: Path) -> list[Path]:
    """Draw one picture per beta: a panel for every n and mean, the narrowest guarantee named along the bottom.

    Args:
        points: What `frontier` gave.
        folder: Where the pictures go.

    Returns:
        The paths of the pictures.
    """
    return [
        _draw([p for p in points if p.failure == failure], failure, folder) for failure in _distinct(points, "failure")
    ]


def _distinct(points: Sequence[Point], what: str) -> list[Any]:
    return list(dict.fromkeys(getattr(p, what) for p in points))


def _draw(points: Sequence[Point], failure: float, folder: Path) -> Path:
    from afresh.lab.pictures import save, subplots

    rows, means = _distinct(points, "n"), _distinct(points, "mean")
    figure, panels = subplots(len(rows), len(means), (4.4 * len(means), 3.5 * len(rows)))
    for i, n in enumerate(rows):
        for j, mean in enumerate(means):
            _panel(panels[i][j], [p for p in points if p.n == n and p.mean == mean])
            panels[i][j].set_title(f"n = {n:,}, mean {mean:g} (sd {math.sqrt(mean * (1 - mean)):.2g})", fontsize=11)
        panels[i][0].set_ylabel("half-width", fontsize=11)
    for panel in panels[-1]:
        panel.set_xlabel("questions k", fontsize=11)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=10.5, frameon=False)
    figure.suptitle(f"What is guaranteed for all k answers at once, with probability {1 - failure:g}", fontsize=13)
    return save(figure, folder / f"frontier_{round(100 * (1 - failure))}.png")


def _panel(axes: Any, points: Sequence[Point]) -> None:
    questions = [p.k for p in points]
    for name, colour in _COLOURS.items():
        widths = [p.half_width.get(name, math.nan) for p in points]
        style = {"guess-and-check, if nothing fails": ":", "questions fixed in advance": "--"}.get(name, "-")
        axes.loglog(questions, widths, style, color=colour, label=name, linewidth=2.4 if name in CERTIFIED else 1.3)
    lowest = min(min(p.half_width.values()) for p in points)
    axes.set_ylim(lowest / 2.2, 0.7)
    axes.set_xlim(questions[0], questions[-1])
    # The strip along the bottom shows which guarantee is the narrowest where.
    starts = [i for i, p in enumerate(points) if i == 0 or p.narrowest != points[i - 1].narrowest]
    for start, stop in zip(starts, [*starts[1:], len(points)], strict=True):
        name = points[start].narrowest
        left = questions[0] if start == 0 else math.sqrt(questions[start - 1] * questions[start])
        right = questions[-1] if stop == len(points) else math.sqrt(questions[stop - 1] * questions[stop])
        axes.axvspan(left, right, ymin=0, ymax=0.07, color=_COLOURS[name], alpha=0.9)
        axes.text(
            math.sqrt(left * right),
            0.035,
            name,
            transform=axes.get_xaxis_transform(),
            color="white",
            fontsize=8.5,
            ha="center",
            va="center",
        )
    axes.grid(alpha=0.25, which="major")
    axes.tick_params(labelsize=9.5)
