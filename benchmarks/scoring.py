"""Scoring a prediction vector of 1M rows (limit 3) against numpy's mean and variance of the loss vector; best of 100.

Scoring is to check the predictions, to hash them for the question's name, to compute their losses and to add these up;
without the two durable writes of the ledger. Numpy's mean and variance are of a loss vector that is there already
(first ratio), or that numpy computes as well (second). The three are timed in turns.
"""

import time
from collections.abc import Callable

import numpy as np

import afresh
from afresh.losses import Absolute, Brier, Log, Loss, Pinball, Squared, ZeroOne
from benchmarks.timing import side_by_side


def main(rows: int = 1_000_000, rounds: int = 100, clock: Callable[[], float] = time.perf_counter) -> None:
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
        labels = holdout._labels
        print("  loss                        numpy, ms  with losses, ms  score, ms  ratios")
        for loss, predictions in cases:
            (checked,) = holdout._predict([predictions], None, loss)
            losses = np.asarray(loss.rows(checked.values, labels, slice(None)), dtype=np.float64)

            def mine(loss: Loss = loss, predictions: object = predictions) -> object:
                (predicted,) = holdout._predict([predictions], None, loss)
                return holdout._loss_query(predicted, loss).moments(rows)

            def whole(loss: Loss = loss, values: object = checked.values) -> object:
                found = np.asarray(loss.rows(values, labels, slice(None)), dtype=np.float64)  # type: ignore[arg-type]
                return found.mean(), found.var()

            def given(losses: object = losses) -> object:
                return losses.mean(), losses.var()  # type: ignore[attr-defined]

            taken = side_by_side({"given": given, "whole": whole, "mine": mine}, rounds, clock)
            base, all_numpy, score = (1000 * seconds for seconds in taken.values())
            ratios = f"{score / base:8.2f}{score / all_numpy:7.2f}"
            print(f"  {loss.words[:26]:<28}{base:9.2f}{all_numpy:17.2f}{score:11.2f}{ratios}")


if __name__ == "__main__":
    main()
