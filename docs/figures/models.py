"""Draw docs/figures/models.png and print the table of docs/models.md: python docs/figures/models.py

A tuning run of 500 trials on a holdout of 5,000 rows. Trials 1 to 499 score one weak model each; trial 500 is the
majority vote of all, each turned to the side on which it scored better: ensemble selection, with the holdout as judge.
One analyst reads exact scores, the other a guard's answers; the truth is measured on a million fresh rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import afresh

ROWS, TRIALS, FRESH, AT_ONCE = 5_000, 500, 1_000_000, 50_000
WEAK = TRIALS - 1
Floats = NDArray[np.float64]
Score = Callable[[NDArray[np.bool_]], tuple[float, float, float]]


def draw(rows: int, signal: float, rng: np.random.Generator) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """What 499 weak models predict, and labels that a tenth of them know something about."""
    labels = rng.random(rows) < 0.5
    chance = np.full(WEAK, 0.5)
    chance[::10] += signal
    right = rng.random((rows, WEAK), dtype=np.float32) < chance.astype(np.float32)
    return right == labels[:, None], labels


@dataclass
class Run:
    """One analyst's trials: what was reported, the error bar of the last, the truth of the last."""

    scores: list[float]
    low: float
    high: float
    signs: NDArray[np.bool_]
    truth: float = 0.0


def tune(predictions: NDArray[np.bool_], score: Score) -> Run:
    """499 weak models, then their vote."""
    scores = [score(predictions[:, i])[0] for i in range(WEAK)]
    signs = np.array(scores) >= 0.5
    last, low, high = score(vote(predictions, signs))
    return Run([*scores, last], low, high, signs)


def vote(predictions: NDArray[np.bool_], signs: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The majority, models below one half turned around; an odd number never ties."""
    found: NDArray[np.bool_] = (predictions == signs).sum(axis=1) > WEAK / 2
    return found


def naive(labels: NDArray[np.bool_]) -> Score:
    """The accuracy on the holdout, with the textbook's 95 % interval."""

    def score(predictions: NDArray[np.bool_]) -> tuple[float, float, float]:
        accuracy = float(np.mean(predictions == labels))
        width = 1.96 * float(np.sqrt(accuracy * (1 - accuracy) / len(labels)))
        return accuracy, accuracy - width, accuracy + width

    return score


def guarded(holdout: afresh.Holdout) -> Score:
    """The guard's answer, as an accuracy."""

    def score(predictions: NDArray[np.bool_]) -> tuple[float, float, float]:
        answer = holdout.score(predictions)
        return 1 - answer.value, 1 - answer.high, 1 - answer.low

    return score


def both(signal: float, seed: int) -> dict[str, Run]:
    """The two analysts on the same rows."""
    rng = np.random.default_rng(seed)
    predictions, labels = draw(ROWS, signal, rng)
    with afresh.holdout(predictions[:, :10], labels, questions=TRIALS, simulation_seed=seed, made_up=True) as holdout:
        runs = {"naive": tune(predictions, naive(labels)), "guarded": tune(predictions, guarded(holdout))}
    hits = dict.fromkeys(runs, 0)
    for _ in range(FRESH // AT_ONCE):
        predictions, labels = draw(AT_ONCE, signal, rng)
        for name, run in runs.items():
            hits[name] += int(np.sum(vote(predictions, run.signs) == labels))
    for name, run in runs.items():
        run.truth = hits[name] / FRESH
    return runs


def show(axes: Axes, runs: dict[str, Run], title: str) -> None:
    """Every reported score, and the last with its error bar beside the truth."""
    for (name, run), colour, place in zip(runs.items(), ("#c44e2a", "#2a78c4"), (530, 570), strict=True):
        axes.plot(range(1, TRIALS), run.scores[:-1], ".", ms=2.5, color=colour, alpha=0.5)
        value = run.scores[-1]
        bars = [[value - run.low], [run.high - value]]
        label = f"{name}: the vote, with its 95 % bar"
        axes.errorbar(place, value, bars, fmt="o", color=colour, capsize=4, label=label)
        axes.plot(place, run.truth, "D", color="black", ms=5, label="the truth" if name == "naive" else None)
    axes.set(xlabel="trial", ylabel="accuracy", title=title, ylim=(0.25, 1.0), xlim=(0, 600))
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="upper left")


def main() -> None:
    """Both problems."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    print("| labels | analyst | reported | its 95 % interval | truth on 1e6 fresh rows |\n|---|---|---|---|---|")
    for axes, (title, signal) in zip(panels, {"pure noise": 0.0, "learnable": 0.05}.items(), strict=True):
        runs = both(signal, seed=20)
        show(axes, runs, title)
        for name, run in runs.items():
            interval = f"{run.low:.3f} to {run.high:.3f}"
            print(f"| {title} | {name} | {run.scores[-1]:.3f} | {interval} | {run.truth:.3f} |")
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
