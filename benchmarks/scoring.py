"""Scoring a prediction vector of 1M rows (limit 3) against numpy's mean and variance of the loss vector; best of 60.

Scoring is to check the predictions, to hash them for the question's name, to compute their losses and to add these up;
without the two durable writes of the ledger. Numpy's mean and variance are of a loss vector that is there already
(first ratio), or that numpy computes as well (second). Each is timed by itself, as numpy is twice as fast where nothing
else has touched its memory; by the clock on the wall, and by the processor's, which counts both threads that hash.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import afresh
from afresh.losses import Absolute, Brier, Log, Loss, Pinball, Squared, ZeroOne
from benchmarks.timing import side_by_side


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
    with afresh.holdout(rng.normal(size=(rows, 2)), truth, questions=1000, simulation_seed=0) as holdout:
        for name, clock in (("elapsed", time.perf_counter), ("processor time", time.process_time)):
            print(f"  {name:<28}numpy, ms  with losses, ms  score, ms  ratios")
            for loss, predictions in cases:
                compare(holdout, loss, predictions, rounds, clock)


def compare(holdout: afresh.Holdout, loss: Loss, predictions: object, rounds: int, clock: Callable[[], float]) -> None:
    (checked,) = holdout._predict([predictions], None, loss)

    def numpy_losses() -> NDArray[np.float64]:
        return np.asarray(loss.rows(checked.values, holdout._labels, slice(None)), dtype=np.float64)

    def mine() -> object:
        (predicted,) = holdout._predict([predictions], None, loss)
        return holdout._loss_query(predicted, loss).moments(holdout.rows)

    def mean_and_variance(losses: NDArray[np.float64]) -> object:
        return losses.mean(), losses.var()

    there = numpy_losses()
    ways = (lambda: mean_and_variance(there), lambda: mean_and_variance(numpy_losses()), mine)
    base, whole, score = (1000 * side_by_side({"it": way}, rounds, clock)["it"] for way in ways)
    print(f"  {loss.words[:26]:<28}{base:9.2f}{whole:17.2f}{score:11.2f}{score / base:8.2f}{score / whole:7.2f}")


if __name__ == "__main__":
    main()
