"""Tables of per-item results that are there already: benchmarks that were run once, and that nobody tuned on."""

from __future__ import annotations

import itertools
import json
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

MOST_MODELS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class ItemResults:
    """Scores from 0 to 1 of several models on the same items."""

    names: tuple[str, ...]
    ids: tuple[str, ...]
    scores: NDArray[np.float64]
    """One row a model, one column an item."""

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write one file of JSON lines a model, each line with the id of an item and its score.

        Args:
            folder: Where they go; made if there is none.

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
    """Read per-item results of several models, each from a file of another tool or from what is in memory.

    Args:
        results: Results by the model's name, each as `afresh.evaluations.read` takes them.
        id: The column, variable or field of ids.
        score: Which score, where there are several.

    Returns:
        Their scores on the items that all of them have.

    Raises:
        DataError: A file cannot be read, or models were run on different items.
        InvalidArgument: There is no model.
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
                f"{name!r} and {first!r} were run on different items: {missing[0]!r} is in one of them only, of "
                f"{len(missing):,} such items. Give results on the same items."
            )
    ids = tuple(known)
    scores = np.array([[float(np.mean(items[id])) for id in ids] for items in found.values()])
    if not np.isfinite(scores).all():
        raise DataError("some items have no score; score what failed as 0, or leave the item out for all models.")
    return ItemResults(tuple(found), ids, scores)


def made_up_results(models: int = 20, items: int = 2000, *, spread: float = 0.3, seed: int = 0) -> ItemResults:
    """Per-item results of models that do not exist, as benchmarks have them: items differ in difficulty, models little.

    Whether a model solves an item depends on its ability and the item's difficulty, on a logistic scale.

    Args:
        models: How many.
        items: How many.
        spread: The standard deviation of abilities; that of difficulties is 1.5.
        seed: The seed of everything random.

    Returns:
        Scores that are 0 or 1.
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
    """A table of results that were fixed before anybody looked at them: scores and all pairs, on the same items.

    Nothing is guarded and nothing is recorded: whoever changes a model after seeing results of these items needs a
    board. What is ranked is the error, 1 minus the score. If all scores are 0 or 1, no other score is thought to be
    possible.

    Args:
        results: What `read_results` read.
        confidence: The probability with which all places hold at once.
        name: What to call the table.

    Returns:
        The models in order, each with the best and the worst place it may have.

    Raises:
        InvalidArgument: There are too many models, or an argument is wrong.
    """
    failure = 1 - checks.confidence(confidence)
    errors, count = 1 - results.scores, len(results.names)
    if count > MOST_MODELS:
        raise InvalidArgument(f"there are {count:,} models; all pairs of at most {MOST_MODELS:,} can be compared.")
    items, binary = errors.shape[1], bool(np.isin(errors, (0.0, 1.0)).all())
    pairs = np.array(list(itertools.combinations(range(count), 2)), dtype=np.int64).reshape(-1, 2)
    share = failure / (count + len(pairs))
    totals = errors.sum(axis=1)
    low, high = exact.interval("two-valued" if binary else "number", items, totals, (errors**2).sum(axis=1), share)
    graph = Constraints(count)
    for place in range(count):
        graph.score(place, float(low[place]), float(high[place]))
    if len(pairs):
        products = errors @ errors.T
        squares = np.diag(products)[:, None] + np.diag(products)[None, :] - 2 * products
        a, b = pairs.T
        below, above = _differences(items, totals[a] - totals[b], squares[a, b], share, binary=binary)
        for (i, j), least, most in zip(pairs.tolist(), below.tolist(), above.tolist(), strict=True):
            graph.difference(i, j, least, most)
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
        "drawn from, for models that nobody chose or changed by looking at these items.",
    )


def _differences(items: int, total: Any, squares: Any, share: float, *, binary: bool) -> tuple[Any, Any]:
    """Both limits of mean differences in [-1, 1]."""
    if binary:
        return exact.interval("three-valued", items, total, squares, share)
    low, high = exact.interval("number", items, (total + items) / 2, (squares + 2 * total + items) / 4, share)
    return 2 * low - 1, 2 * high - 1
