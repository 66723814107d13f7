"""Scoring a prediction vector of 1M rows (limit 3) against numpy's mean and variance of the loss vector.

Scoring is to check the predictions, to hash them for the question's name, to compute their losses and to add these up;
without the two durable writes of the ledger. Numpy's mean and variance are of a loss vector that is there already
(first ratio), or that numpy computes as well (second). They are timed in turns, then each by itself, where numpy finds
its vector in the processor's cache; then in turns by the processor's clock, which counts all threads. Last, whole
scores with the ledger in a file, by several threads and by one: what the pool of threads is worth (it must be a fifth).
"""

import contextlib
import tempfile
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import afresh
from afresh.losses import Absolute, Brier, Log, Loss, Pinball, Squared, ZeroOne
from afresh.models.score import loss_question
from afresh.models.threads import one_thread
from benchmarks.timing import side_by_side

Ways = dict[str, Callable[[], object]]


def main(rows: int = 1_000_000, rounds: int = 60) -> None:
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
        for name, timer in (("in turns", side_by_side), ("each by itself", one_by_one), ("processor time", busy)):
            print(f"  {name:<28}numpy, ms  with losses, ms  score, ms  ratios")
            for loss, predictions in cases:
                base, computed, score = (
                    1000 * best for best in timer(ways(holdout, loss, predictions), rounds).values()
                )
                told = f"{base:9.2f}{computed:17.2f}{score:11.2f}{score / base:8.2f}{score / computed:7.2f}"
                print(f"  {loss.words[:26]:<28}{told}", flush=True)
    print(f"  {'a whole score':<28}threads, ms  one thread, ms  saved")
    for loss, predictions in cases:
        with tempfile.TemporaryDirectory() as folder:
            many, one = whole(loss, rows, np.asarray(predictions), f"{folder}/ledger.sqlite", rounds)
        print(f"  {loss.words[:26]:<28}{1000 * many:11.2f}{1000 * one:16.2f}{1 - many / one:7.0%}", flush=True)


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


def one_by_one(ways: Ways, rounds: int) -> dict[str, float]:
    """Each in its own turn."""
    return {name: side_by_side({name: way}, rounds)[name] for name, way in ways.items()}


def busy(ways: Ways, rounds: int) -> dict[str, float]:
    """By the processor's clock."""
    return side_by_side(ways, rounds, time.process_time)


if __name__ == "__main__":
    main()
