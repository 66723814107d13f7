"""Figures from the literature, reproduced: published values next to ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.lab.baselines.empirical import Empirical
from afresh.lab.baselines.ladder import Ladder
from afresh.lab.baselines.ladder_free import ParameterFreeLadder
from afresh.lab.baselines.thresholdout import Thresholdout
from afresh.lab.mechanisms import Make
from afresh.lab.population import BitSample, bits, evaluate
from afresh.lab.session import Interactive, means
from afresh.theory.extremes import quantile
from afresh.theory.references import jung_error
from afresh.theory.search import minimize_simplex

Floats = NDArray[np.float64]

SELECTED = (0, 10, 20, 30, 45, 70, 100, 150, 200, 250, 300, 400, 500)  # features, Science 2015
SUBMISSIONS = (100, 200, 300, 400)  # Blum & Hardt 2015, with the errors they print
PUBLISHED = {"holdout": (0.467, 0.452, 0.441, 0.427), "ladder-free": (0.490, 0.486, 0.490, 0.484)}


@dataclass(frozen=True)
class Line:
    """One published number next to ours; published is nan where only a picture is printed."""

    figure: str
    what: str
    published: float
    ours: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        published = None if math.isnan(self.published) else self.published
        return {"figure": self.figure, "what": self.what, "published": published, "ours": self.ours}


# --- Science 2015, Fig. 1 and 2 -------------------------------------------------------------------------------------


def feature_selection(n: int, d: int, informative: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Run one repeat: the accuracies of a vote of the best features, by number of features (`SELECTED`).

    Features are N(0, 1), the label a coin; `informative` of them lean to the label by 6/sqrt(n). The analyst keeps
    features whose correlation with the label is at least 1/sqrt(n), with the same sign, on the training and on the
    holdout rows, and lets the largest on the training rows vote. The holdout's correlations and the final accuracy
    are plain means, or Thresholdout's answers, with Gaussian noise (as the figure was made) or the published Laplace.

    Args:
        n: Rows of the training, the holdout and the fresh part each.
        d: Features.
        informative: How many features lean to the label.
        rng: The source of randomness.

    Returns:
        For each way to use the holdout, the accuracies on training rows, as reported, and on fresh rows.
    """
    settings = {"holdout": None, "thresholdout": True, "thresholdout, Laplace": False}
    sessions = {
        name: None if gaussian is None else Thresholdout(n, d, 0.05, gaussian=gaussian).start(rng)
        for name, gaussian in settings.items()
    }
    label = rng.choice(np.array([-1.0, 1.0], dtype=np.float32), size=(3, n))  # training, holdout, fresh
    cut = 1 / math.sqrt(n)
    kept: dict[str, list[tuple[float, float, Any]]] = {name: [] for name in sessions}
    step = 250  # features at a time; only those that are kept stay in memory
    for start in range(0, d, step):
        rows = rng.standard_normal((3, n, step), dtype=np.float32)
        lean = max(min(informative - start, step), 0)
        rows[:, :, :lean] += 6 / math.sqrt(n) * label[:, :, None]
        training, holdout = (np.einsum("ij,i->j", rows[i], label[i], dtype=np.float64) / n for i in (0, 1))
        for name, session in sessions.items():
            heard = holdout if session is None else session.choose(training, holdout)
            chosen = np.flatnonzero((np.abs(training) >= cut) & (np.abs(heard) >= cut) & (training * heard > 0))
            kept[name] += [(abs(training[j]), math.copysign(1, training[j]), rows[:, :, j].copy()) for j in chosen]
    results = {}
    for name, session in sessions.items():
        best = sorted(kept[name], key=lambda feature: -feature[0])[: max(SELECTED)]
        score, shown = np.zeros((3, n)), {}
        for count in range(len(best) + 1):
            if count in SELECTED or count == len(best):
                right = np.where(score == 0, 0.5, (score > 0) == (label > 0)).mean(axis=1)
                shown[count] = right
            if count < len(best):
                score += best[count][1] * best[count][2]
        # Where fewer features were kept than asked for, all of them vote.
        right = np.array([shown[min(count, len(best))] for count in SELECTED])
        results[f"{name}: training"], results[f"{name}: fresh"] = right[:, 0], right[:, 2]
        results[f"{name}: reported"] = right[:, 1] if session is None else session.choose(right[:, 0], right[:, 1])
    return results


def science(
    repeats: int, informative: int, seed: int, n: int = 10_000, progress: Callable[[int], None] | None = None
) -> dict[str, Floats]:
    """Average every curve over repeats; n = d as published.

    Args:
        repeats: How many to average.
        informative: How many features lean to the label: 0 for Fig. 1, 20 for Fig. 2.
        seed: The seed of everything random.
        n: Rows of each part, and features.
        progress: Called with 1 after every repeat.

    Returns:
        A curve over `SELECTED` by name.
    """
    runs = []
    for number in range(repeats):
        runs.append(feature_selection(n, n, informative, np.random.default_rng([seed, informative, number])))
        if progress is not None:
            progress(1)
    return {name: np.mean([run[name] for run in runs], axis=0) for name in runs[0]}


# --- Blum & Hardt 2015: the boosting attack on a leaderboard --------------------------------------------------------


def boosting(mechanism: Interactive, n: int, submissions: int, rng: np.random.Generator) -> tuple[float, float]:
    """Compute the score shown for the final submission, and its plain public score, as errors; the truth is 1/2.

    Random submissions; those that the board shows with an error below 1/2 vote.

    Args:
        mechanism: What answers as the board.
        n: Rows behind the board.
        submissions: How many random ones there are before the final one.
        rng: The source of randomness.

    Returns:
        The shown error, and the plain one.
    """
    population = bits("fair")
    sample: BitSample = population.draw(n, rng)
    board = mechanism.start(rng)
    shown = board.answer(np.stack([sample.bit(j) for j in range(submissions)])).value
    signs = (shown > 0.5).astype(np.int8)
    signs[int(np.argmax(signs))] *= signs.sum() % 2  # an odd number of voters cannot tie, so the truth is 1/2
    if not signs.any():
        signs[0] = 1
    final = evaluate([population.vote(signs)], sample)
    return 1 - float(board.answer(final).value[0]), 1 - float(means(final)[0])


def ladder(repeats: int, seed: int, n: int = 4000) -> dict[str, Floats]:
    """Compute errors by number of submissions (`SUBMISSIONS`), averaged over repeats.

    Args:
        repeats: How many to average.
        seed: The seed of everything random.
        n: Rows behind the board.

    Returns:
        A curve over `SUBMISSIONS` for each board.
    """
    boards: dict[str, Make] = {
        "holdout": Empirical,
        "ladder-free": ParameterFreeLadder,
        "ladder, step .01": _hundredths,
    }
    results = {}
    for name, make in boards.items():
        errors = np.zeros((2, len(SUBMISSIONS)))
        for i, k in enumerate(SUBMISSIONS):
            for number in range(repeats):
                rng = np.random.default_rng([seed, k, number])
                errors[:, i] += boosting(make(n, k + 1, 0.05), n, k, rng)
        results[name] = errors[0] / repeats
    return results


def _hundredths(rows: int, questions: int, failure: float) -> Ladder:
    return Ladder(rows, questions, failure, step=0.01)


# --- Jung et al. 2020 -----------------------------------------------------------------------------------------------


def published_jung_error(n: int, k: int, failure: float) -> float:
    """Evaluate their bound as they do: privacy of the noise by zCDP, half of beta for accuracy, half for privacy.

    rho-zCDP gives delta = sqrt(pi rho) exp(-(eps-rho)^2/(4 rho)) (Bun & Steinke 2016); our reference line takes the
    noise's exact profile and the best split instead.

    Args:
        n: Rows.
        k: Questions.
        failure: beta.

    Returns:
        The half-width of every answer.
    """

    def error(point: Sequence[float]) -> float:
        s, eps, b = (math.exp(min(max(x, -60.0), 1.0)) for x in point)
        rho, b = k / (2 * n * n * s * s), min(b, 0.5)
        d = min(math.sqrt(math.pi * rho) * math.exp(-((eps - rho) ** 2) / (4 * rho)), 1.0) if eps > rho else 1.0
        return s * quantile(k, b) + math.expm1(eps) + (2 * b + 4 * d) / failure

    spread = math.sqrt(math.sqrt(k) / n)
    starts = ([math.log(x * spread), math.log(4 * spread), math.log(failure * spread / 20)] for x in (0.3, 1.0))
    return min(minimize_simplex(error, start, tolerance=1e-5, evaluations=2000)[1] for start in starts)


# --- all of them ----------------------------------------------------------------------------------------------------


def reproduce(
    folder: Path, repeats: int = 10, seed: int = 2018, progress: Callable[[int], None] | None = None
) -> tuple[list[Line], list[Path]]:
    """Reproduce every figure, with published numbers next to ours.

    Args:
        folder: Where the pictures go.
        repeats: The number of repeats of Science 2015; the Ladder has ten times as many.
        seed: The seed of everything random.
        progress: Called with 1 after every repeat of Science 2015.

    Returns:
        Lines of published numbers next to ours, and the paths of the pictures.
    """
    lines, pictures = [], []
    for number, informative in ((1, 0), (2, 20)):
        curves = science(repeats, informative, seed, progress=progress)
        pictures.append(_draw_science(curves, number, folder))
        for name in ("holdout", "thresholdout", "thresholdout, Laplace"):
            for what in ("reported", "fresh"):
                published = 0.63 if (number, name, what) == (1, "holdout", "reported") else math.nan
                at = SELECTED.index(500)
                lines.append(
                    Line(
                        f"Science 2015, Fig. {number}",
                        f"{name}, {what}, 500 features",
                        published,
                        curves[f"{name}: {what}"][at],
                    )
                )
    boards = ladder(10 * repeats, seed)
    pictures.append(_draw_ladder(boards, folder))
    for name, errors in boards.items():
        for k, ours, published in zip(SUBMISSIONS, errors, PUBLISHED.get(name, (math.nan,) * 4), strict=True):
            lines.append(Line("Ladder, boosting attack", f"{name}, {k} submissions", published, float(ours)))
    for n, k, published in ((10**6, 10**4, 0.096),):
        lines.append(
            Line(
                "Jung et al. 2020",
                f"n={n:,}, k={k:,}, as they evaluate it",
                published,
                published_jung_error(n, k, 0.05),
            )
        )
        lines.append(Line("Jung et al. 2020", f"n={n:,}, k={k:,}, exact profile", math.nan, jung_error(n, k, 0.05)))
    return lines, pictures


_STYLES = {
    "training": ("#d98c21", "training"),
    "reported": ("#c8452f", "what the analyst is told"),
    "fresh": ("#2a78c4", "fresh rows"),
}


def _draw_science(curves: dict[str, Floats], number: int, folder: Path) -> Path:
    from afresh.lab.pictures import save, subplots

    titles = {
        "holdout": "Standard holdout",
        "thresholdout": "Thresholdout, Gaussian noise",
        "thresholdout, Laplace": "Thresholdout, Laplace noise",
    }
    figure, panels = subplots(1, len(titles), (4.4 * len(titles), 3.8))
    for axes, (name, title) in zip(panels[0], titles.items(), strict=True):
        for what, (colour, label) in _STYLES.items():
            axes.plot(SELECTED, curves[f"{name}: {what}"], "o-", color=colour, label=label, markersize=4)
        axes.set_title(title, fontsize=12)
        axes.set_xlabel("features selected", fontsize=11)
        axes.set_ylim(0.46, 0.72)
        axes.grid(alpha=0.25)
    panels[0][0].set_ylabel("accuracy", fontsize=11)
    panels[0][0].legend(fontsize=10, loc="upper left")
    truth = "no feature tells anything" if number == 1 else "20 features lean to the label"
    figure.suptitle(f"Science 2015, Fig. {number}: n = d = 10,000, {truth}", fontsize=13)
    return save(figure, folder / f"science_{number}.png")


def _draw_ladder(boards: dict[str, Floats], folder: Path) -> Path:
    from afresh.lab.pictures import save, subplots

    figure, panels = subplots(1, 1, (7.6, 4))
    axes = panels[0][0]
    for (name, errors), colour in zip(boards.items(), ("#c8452f", "#2a78c4", "#45a37b"), strict=True):
        axes.plot(SUBMISSIONS, errors, "o-", color=colour, label=name)
        if name in PUBLISHED:
            axes.plot(SUBMISSIONS, PUBLISHED[name], "x", color=colour, label=f"{name}, as published")
    axes.axhline(0.5, color="#7a7a7a", linestyle="--", label="truth")
    axes.set(xlabel="submissions k", ylabel="error shown for the last submission", ylim=(0.41, 0.51))
    axes.set_title("Boosting attack on a leaderboard, n = 4,000", fontsize=12)
    figure.legend(loc="outside right center", fontsize=10, frameon=False)
    axes.grid(alpha=0.25)
    return save(figure, folder / "ladder.png")
