"""Tables of existing per-item results: benchmarks that were run once and that nobody tuned on."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.boards.order import Constraints
from afresh.boards.table import BoardTable, Standing
from afresh.errors import DataError, InvalidArgument
from afresh.evaluations.reading import read
from afresh.results import show
from afresh.theory import exact
from afresh.theory.binomial import sign_test
from afresh.theory.evidence import holm, mixture

MOST_MODELS = 2000
_SCORES = 0.1  # the share of the failure probability for the intervals of scores; the order has the rest


@dataclass(frozen=True, slots=True, eq=False)
class ItemResults:
    """Scores from 0 to 1 of several models on the same items."""

    names: tuple[str, ...]
    ids: tuple[str, ...]
    scores: NDArray[np.float64]
    """One row per model, one column per item."""

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write one JSON Lines file per model, each line with an item's id and score.

        Args:
            folder: Where to write them; created if it does not exist.

        Returns:
            Their paths, in the order of the models.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        paths = []
        for number, row in enumerate(self.scores):
            lines = (json.dumps({"id": id, "score": float(score)}) for id, score in zip(self.ids, row, strict=True))
            paths.append(place / f"model-{number:04d}.jsonl")
            paths[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
        return paths


def read_results(results: Mapping[str, Any], *, id: str | None = None, score: str | None = None) -> ItemResults:
    """Read per-item results of several models, each from another tool's file or from memory.

    Args:
        results: Results by model name, each as `afresh.evaluations.read` takes them.
        id: The column, variable or field of ids.
        score: The name of the score, if there are several.

    Returns:
        The models' scores on their common items.

    Raises:
        DataError: A file cannot be read, a score is not a number from 0 to 1, or models were run on different items.
        InvalidArgument: There are no models.
    """
    if not isinstance(results, Mapping) or not results:
        raise checks.wrong("results", results, "a mapping of models' names to their per-item results")
    found: dict[str, dict[str, list[float]]] = {}
    for name, given in results.items():
        checks.text("name", name, "a model's name")
        one = read(given, id=id, score=score)
        items: dict[str, list[float]] = {}
        for each, value in zip(one.ids, one.scores, strict=True):
            items.setdefault(each, []).append(value)
        found[name] = items
    (first, known), *others = found.items()
    for name, items in others:
        if missing := sorted(known.keys() ^ items.keys()):
            raise DataError(
                f"{name!r} and {first!r} were run on different items: {missing[0]!r} is in only one of them, as are "
                f"{len(missing):,} items in all. Give results on the same items."
            )
    ids = tuple(known)
    scores = np.array([[float(np.mean(items[id])) for id in ids] for items in found.values()])
    return ItemResults(tuple(found), ids, scores)


def made_up_results(models: int = 20, items: int = 2000, *, spread: float = 0.3, seed: int = 0) -> ItemResults:
    """Make up per-item results like those of a benchmark: items differ in difficulty, models differ little.

    Whether a model solves an item depends on its ability and the item's difficulty, on a logistic scale.

    Args:
        models: The number of models.
        items: The number of items.
        spread: The standard deviation of abilities; that of difficulties is 1.5.
        seed: The seed of everything random.

    Returns:
        Scores of 0 or 1.
    """
    checks.whole("models", models, 1, MOST_MODELS)
    checks.whole("items", items, 1, 10**7)
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(1.0, spread, models), rng.normal(0.0, 1.5, items)
    chance = 1 / (1 + np.exp(difficulty[None, :] - ability[:, None]))
    names = tuple(f"model {number}" for number in range(1, models + 1))
    return ItemResults(
        names, tuple(f"item {i}" for i in range(items)), (rng.random(chance.shape) < chance).astype(np.float64)
    )


def table_of_results(results: ItemResults, *, confidence: float = 0.95, name: str = "results") -> BoardTable:
    """Rank results that were fixed before anyone looked at them: scores and all pairs, on the same items.

    A model is better than another if the exact sign test says so, or bets on all values if scores are not just 0 and 1,
    by Holm's method over both directions of every pair. A tenth of the failure probability is for intervals of scores.

    Nothing is guarded or recorded: if you change a model after seeing results on these items, you need a board. Models
    are ranked by error, 1 minus the score. If all scores are 0 or 1, no other score is assumed to be possible.

    Args:
        results: Results from `read_results`.
        confidence: The probability that all places hold at once.
        name: The table's name.

    Returns:
        The models in order, each with the best and worst places it may have.

    Raises:
        InvalidArgument: There are too many models, or an argument is wrong.
    """
    failure, count = 1 - checks.confidence(confidence), len(results.names)
    if count > MOST_MODELS:
        raise InvalidArgument(f"there are {count:,} models; all pairs of at most {MOST_MODELS:,} can be compared.")
    errors = 1 - results.scores
    items, binary = errors.shape[1], bool(np.isin(errors, (0.0, 1.0)).all())
    totals, squares = errors.sum(axis=1), (errors**2).sum(axis=1)
    low, high = exact.interval("two-valued" if binary else "number", items, totals, squares, _SCORES * failure / count)
    graph = Constraints(count)
    for place in range(count):
        graph.score(place, float(low[place]), float(high[place]))
    for better, worse in _ordered(errors, (1 - _SCORES) * failure, binary=binary):
        graph.ahead(better, worse)
    order = graph.solve()
    means, places = totals / items, order.places
    entries = [
        Standing(
            name=each,
            entrant="",
            tier=int(order.tiers[i]),
            places=places[i],
            value=float(min(max(means[i], order.low[i]), order.high[i])),
            low=max(float(order.low[i]), 0.0),
            high=min(float(order.high[i]), 1.0),
            submitted="",
        )
        for i, each in enumerate(results.names)
    ]
    odds = show.percent(confidence)
    return BoardTable(
        board=name,
        loss="error",
        bounds=(0.0, 1.0),
        confidence=confidence,
        entries=tuple(sorted(entries, key=lambda each: (each.tier or 0, each.value or 0.0))),
        separated=order.separated,
        consistent=order.consistent,
        covers=f"All places hold at once with probability at least {odds}, in the population the {items:,} items were "
        "drawn from, for models that nobody chose or changed after looking at these items.",
    )


def _ordered(errors: NDArray[np.float64], alpha: float, *, binary: bool) -> list[tuple[int, int]]:
    """Which model is better than which, by Holm's method over both directions of every pair."""
    count = len(errors)
    if binary:
        wins = np.rint((1 - errors) @ errors.T)  # where the first is right and the second is not
        nats = sign_test(wins, wins.T)
    else:
        level = math.log(max(count * (count - 1), 1) / alpha)
        nats = np.stack([mixture(errors - own, level) for own in errors])
    pairs = np.flatnonzero(~np.eye(count, dtype=bool))
    fallen = pairs[list(holm(nats.ravel()[pairs], alpha))]
    return list(zip(*(each.tolist() for each in np.divmod(fallen, count)), strict=True))
