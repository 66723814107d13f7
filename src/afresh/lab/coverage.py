"""The coverage table: mechanisms x analysts x populations, with how often all intervals held at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from afresh.lab.analysts import ANALYSTS
from afresh.lab.mechanisms import MECHANISMS
from afresh.lab.population import POPULATIONS
from afresh.lab.simulation import Columns, Trial, simulate


@dataclass(frozen=True)
class Cell:
    """One line of the table. `low` and `high` bound the coverage with 95% confidence (Clopper and Pearson)."""

    mechanism: str
    analyst: str
    population: str
    n: int
    k: int
    repeats: int
    missed: int
    low: float
    high: float
    worst_error: float  # the largest in a conversation, averaged over repeats, like all that follow
    root_mean_square_error: float
    half_width: float

    @property
    def coverage(self) -> float:
        """The share of repeats in which every interval held."""
        return 1 - self.missed / self.repeats

    @property
    def used(self) -> float:
        """The worst error as a share of the half-width: how much of the guaranteed width an analyst could use up."""
        return self.worst_error / self.half_width

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self) | {"coverage": self.coverage}


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Compute the exact interval of a binomial proportion.

    Args:
        successes: The number of successes.
        trials: The number of trials.
        confidence: The probability with which the interval holds.

    Returns:
        Its lower and upper ends.
    """
    from scipy.special import betaincinv

    side = (1 - confidence) / 2
    low = float(betaincinv(successes, trials - successes + 1, side)) if successes else 0.0
    high = float(betaincinv(successes + 1, trials - successes, 1 - side)) if successes < trials else 1.0
    return low, high


def trials(
    n: int,
    k: int,
    mechanisms: Iterable[str] = tuple(MECHANISMS),
    analysts: Iterable[str] = tuple(ANALYSTS),
    populations: Iterable[str] = tuple(POPULATIONS),
    failure: float = 0.05,
    seed: int = 2018,
) -> list[Trial]:
    """List all sensible combinations: rounds of one need a row per question, reconstruction fewer rows than questions.

    An analyst that brings its own population may make the same one from several of ours, and meets each only once.

    Args:
        n: The rows of every sample.
        k: The questions of every conversation.
        mechanisms: Names of `MECHANISMS`.
        analysts: Names of `ANALYSTS`.
        populations: Names of `POPULATIONS`.
        failure: The probability with which any interval of a conversation may miss.
        seed: The seed of everything random.

    Returns:
        One trial for each combination.
    """
    populations = tuple(populations)
    possible = (
        Trial(mechanism, analyst, population, n, k, failure, seed)
        for mechanism in mechanisms
        if mechanism != "rounds" or n >= k
        for analyst in analysts
        if analyst != "reconstructing" or n < k
        for population in populations
    )
    distinct: dict[tuple[str, ...], Trial] = {}
    for trial in possible:
        distinct.setdefault(tuple(trial.names.values()), trial)
    return list(distinct.values())


def cell(trial: Trial, columns: Columns) -> Cell:
    """Make a trial's line from its repeats.

    Args:
        trial: What was repeated.
        columns: What `run` gave.

    Returns:
        How often all intervals held, with its bounds, and the averages of errors and widths.
    """
    misses = np.array(columns["misses"])
    missed = int((misses > 0).sum())
    low, high = clopper_pearson(misses.size - missed, misses.size)
    return Cell(
        **trial.names,
        n=trial.n,
        k=trial.k,
        repeats=misses.size,
        missed=missed,
        low=low,
        high=high,
        worst_error=float(np.mean(columns["worst_error"])),
        root_mean_square_error=math.sqrt(np.mean(np.square(columns["root_mean_square_error"]))),
        half_width=float(np.mean(columns["mean_half_width"])),
    )


def coverage(
    wanted: Sequence[Trial],
    repeats: int,
    folder: Path | None = None,
    *,
    processes: int = 1,
    progress: Callable[[int], None] | None = None,
) -> list[Cell]:
    """Run all trials, or read those that are done, and count how often every interval held.

    Args:
        wanted: One trial per line, as `trials` returns them.
        repeats: The number of conversations for each.
        folder: Where finished parts are kept, so that an interrupted run can continue; None keeps nothing.
        processes: The number of worker processes.
        progress: Called with the number of repeats that were finished since the last call.

    Returns:
        A cell for each trial, in order.
    """
    results = simulate(wanted, repeats, folder, processes=processes, progress=progress)
    return [cell(trial, columns) for trial, columns in zip(wanted, results, strict=True)]


HEADER = (
    "mechanism",
    "analyst",
    "population",
    "n",
    "k",
    "held",
    "coverage at least",
    "worst error",
    "rms error",
    "± mean",
)


def lines(cells: Iterable[Cell]) -> list[tuple[str, ...]]:
    """Format the table as text, one tuple per line.

    Args:
        cells: What `coverage` gave.

    Returns:
        A tuple of cells under `HEADER` for each.
    """
    return [
        (
            *(c.mechanism, c.analyst, c.population, f"{c.n:,}", f"{c.k:,}"),
            *(f"{c.repeats - c.missed}/{c.repeats}", f"{c.low:.3f}"),
            *(f"{x:.4f}" for x in (c.worst_error, c.root_mean_square_error, c.half_width)),
        )
        for c in cells
    ]


SUMMARY = ("mechanism", "cells", "conversations", "with a miss", "coverage at least", "worst error / ±", "worst cell")


def summary(cells: Sequence[Cell]) -> list[tuple[str, ...]]:
    """Summarize each mechanism over its cells; the worst cell has the most misses, or else uses up most of its width.

    Args:
        cells: What `coverage` gave, of any mechanisms.

    Returns:
        A tuple of cells under `SUMMARY` for each mechanism.
    """
    rows: list[tuple[str, ...]] = []
    for name in dict.fromkeys(c.mechanism for c in cells):
        own = [c for c in cells if c.mechanism == name]
        held, missed = sum(c.repeats - c.missed for c in own), sum(c.missed for c in own)
        worst = max(own, key=lambda c: (c.missed / c.repeats, c.used))
        place = f"{worst.analyst}, {worst.population}, n={worst.n:,}, k={worst.k:,}"
        rows.append(
            (
                *(name, f"{len(own):,}", f"{held + missed:,}", f"{missed:,}"),
                *(f"{clopper_pearson(held, held + missed)[0]:.4f}", f"{max(c.used for c in own):.2f}"),
                f"{place}: held {worst.repeats - worst.missed}/{worst.repeats}",
            )
        )
    return rows


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table.

    Args:
        header: The names of the columns.
        rows: The lines, as text.

    Returns:
        The table; its cells are not escaped.
    """
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows))
