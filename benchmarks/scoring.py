"""Scoring a prediction vector of 1M rows (limit 3) against numpy's mean and variance of the loss vector; best of 30.

Scoring is to check the predictions, to hash them for the question's name, to compute their losses and to add these up;
without the two durable writes of the ledger. Numpy's mean and variance are of a loss vector that is there already
(first ratio), or that numpy computes as well (second).
"""

import time
from collections.abc import Callable

import numpy as np

import afresh
from afresh.losses import Brier, Log, Loss, Squared, ZeroOne


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    work()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - start))
    return min(taken)


def main(rows: int = 1_000_000, rounds: int = 30) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, rows)
    chance = rng.uniform(0.01, 0.99, rows)
    cases: list[tuple[Loss, object]] = [
        (ZeroOne(), rng.integers(0, 2, rows)),
        (Brier(), chance),
        (Log(), chance),
        (Squared(clip=4.0), rng.normal(size=rows)),
    ]
    with afresh.holdout(rng.normal(size=(rows, 2)), truth, questions=1000, simulation_seed=0) as holdout:
        labels = holdout._labels
        print("  loss                         numpy, ms   with losses, ms   score, ms   ratios")
        for loss, predictions in cases:
            (checked,) = holdout._predict([predictions], None, loss)
            losses = np.asarray(loss.rows(checked.values, labels, slice(None)), dtype=np.float64)

            def score(loss: Loss = loss, predictions: object = predictions) -> object:
                (predicted,) = holdout._predict([predictions], None, loss)
                return holdout._loss_query(predicted, loss).moments(rows)

            def whole(loss: Loss = loss, values: object = checked.values) -> object:
                found = np.asarray(loss.rows(values, labels, slice(None)), dtype=np.float64)  # type: ignore[arg-type]
                return found.mean(), found.var()

            base = milliseconds(lambda losses=losses: (losses.mean(), losses.var()), rounds)  # type: ignore[misc]
            mine, all_numpy = milliseconds(score, rounds), milliseconds(whole, rounds)
            name = loss.words
            ratios = f"{mine / base:9.2f}{mine / all_numpy:7.2f}"
            print(f"  {name:<28}{base:10.2f}{all_numpy:18.2f}{mine:12.2f}{ratios}")


if __name__ == "__main__":
    main()
