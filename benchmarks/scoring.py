"""Scoring a prediction vector of a million rows, compared with numpy's mean and variance of the loss vector.

Scoring means checking the predictions, hashing them for the question's name, computing their losses and adding these
up, without the two durable writes of the ledger. Numpy's mean and variance are of a loss vector that exists already
(first ratio), or that numpy computes as well (second). Last come whole scores with the ledger in a file, by several
threads compared with one: what the pool of threads gains.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import afresh
from afresh.losses import Absolute, Brier, Log, Loss, Pinball, Squared, ZeroOne
from afresh.models.score import loss_question
from afresh.models.threads import one_thread
from benchmarks.measured import Measured, compared
from benchmarks.timing import side_by_side

LIMIT = 3.0
Ways = dict[str, Callable[[], object]]


def measure(rows: int = 1_000_000, rounds: int = 15) -> Iterator[Measured]:
    """Every loss."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, rows)
    chance, numbers = rng.uniform(0.01, 0.99, rows), rng.normal(size=rows)
    cases: list[tuple[Loss, object]] = [
        (ZeroOne(), rng.integers(0, 2, rows)),
        (Brier(), chance),
        (Squared(clip=4.0), numbers),
        (Absolute(clip=4.0), numbers),
        (Pinball(clip=4.0, quantile=0.3), numbers),
        (Log(), chance),
    ]
    with afresh.holdout(rng.normal(size=(rows, 2)), truth, questions=1000, simulation_seed=0, made_up=True) as holdout:
        for loss, predictions in cases:
            there, computed, score = side_by_side(ways(holdout, loss, predictions), rounds).values()
            yield compared(f"{loss.words}: a score, to numpy's mean and variance", score, there, LIMIT)
            yield compared(f"{loss.words}: a score, to numpy with the losses", score, computed)
    for loss, predictions in cases:
        with tempfile.TemporaryDirectory() as folder:
            many, one = whole(loss, rows, np.asarray(predictions), f"{folder}/ledger.sqlite", rounds)
        yield compared(f"{loss.words}: a whole score by threads, to one thread", many, one)


def whole(loss: Loss, rows: int, predictions: NDArray[np.generic], ledger: str, rounds: int) -> tuple[float, float]:
    """The shortest times of `Holdout.score` by threads and without them, in turns, of ever new predictions."""
    rng = np.random.default_rng(1)
    labels = rng.normal(size=rows) if loss.kind == "numbers" else rng.integers(0, 2, rows)
    best = {False: float("inf"), True: float("inf")}
    features = rng.normal(size=(rows, 1))
    with afresh.holdout(features, labels, loss=loss, questions=4 * rounds, ledger=ledger, allow_wide=True) as holdout:
        for turn in range(2 * rounds):
            predictions = np.roll(predictions, 1)
            alone = bool(turn % 2)
            start = time.perf_counter()
            with one_thread() if alone else contextlib.nullcontext():
                holdout.score(predictions)
            if turn >= 2:
                best[alone] = min(best[alone], time.perf_counter() - start)
    return best[False], best[True]


def ways(holdout: afresh.Holdout, loss: Loss, predictions: object) -> Ways:
    """Numpy's mean and variance, those with the losses, and a score."""
    (checked,) = holdout.labelled.predict([predictions], None, loss)

    def numpy_losses() -> NDArray[np.float64]:
        return np.asarray(loss.rows(checked.values, holdout.labelled.labels, slice(None)), dtype=np.float64)

    def mean_and_variance(losses: NDArray[np.float64]) -> object:
        return losses.mean(), losses.var()

    def score() -> object:
        (predicted,) = holdout.labelled.predict([predictions], None, loss)
        return loss_question(holdout.labelled, predicted, loss).moments(holdout.rows)

    there = numpy_losses()
    return {
        "there": lambda: mean_and_variance(there),
        "computed": lambda: mean_and_variance(numpy_losses()),
        "score": score,
    }
