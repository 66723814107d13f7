"""A benign data scientist, who tunes a real scikit-learn model against the holdout, one score at a time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.errors import MissingExtra
from afresh.lab.population import Bits, Floats, Function, Question, Universe

_SIZE, _TRAINING, _FEATURES = 40_000, 600, 15


@lru_cache(maxsize=1)
def customers() -> Universe:
    """Make rows with a label that features partly predict, and training rows that the scientist may look at."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((_SIZE + _TRAINING, _FEATURES)).astype(np.float32)
    signal = features[:, 0] + 0.7 * features[:, 1] * features[:, 2] - 0.5 * (features[:, 3] > 1)
    label = signal + rng.logistic(scale=0.8, size=signal.size) > 0
    rows = {"features": features[_TRAINING:], "label": label[_TRAINING:]}
    training = {"features": features[:_TRAINING], "label": label[:_TRAINING]}
    return Universe("customers", _SIZE, {"rows": rows, "training": training})


class Scientist:
    """Random changes to the settings of a tree, kept if the answer is better; the questions are accuracies."""

    def __init__(self, world: Any, rng: np.random.Generator) -> None:
        """Start from a plain tree."""
        try:
            from sklearn.tree import DecisionTreeClassifier
        except ImportError:
            raise MissingExtra("scikit-learn", "lab") from None
        self._tree, self._rng, self._left = DecisionTreeClassifier, rng, world.k
        self._rows = world.population.rows
        self._best, self._height = {"max_depth": 3.0, "min_samples_leaf": 5.0, "max_features": 8.0}, -np.inf
        self._tried = self._best

    @staticmethod
    def own_population(n: int, like: Bits) -> Universe:
        """A population with the features and labels that the scientist needs."""
        return customers().shaded(like)

    def ask(self) -> Sequence[Question]:
        """Fit a tree with the settings to try, and ask how often it is right."""
        if self._left == 0:
            return []
        jumps = np.exp(0.4 * self._rng.standard_normal(len(self._best)))
        self._tried = {name: float(value * jump) for (name, value), jump in zip(self._best.items(), jumps, strict=True)}
        whole = {name: max(round(value), 1) for name, value in self._tried.items()}
        whole["max_features"] = min(whole["max_features"], _FEATURES)
        model = self._tree(**whole, random_state=int(self._rng.integers(2**31)))
        training, rows = self._rows["training"], self._rows["rows"]
        model.fit(training["features"], training["label"])
        right: NDArray[np.bool_] = model.predict(rows["features"]) == rows["label"]
        return [Function(right)]

    def hear(self, answers: Floats) -> None:
        """Keep what seems better."""
        self._left -= 1
        if answers[0] > self._height:
            self._best, self._height = self._tried, float(answers[0])
