"""Rows that train the candidates of a search."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state


class TrainingRows(NamedTuple):
    """Rows that train, and what `fit` is told of them.

    Args:
        X: Features.
        y: Labels.
        told: What else `fit` is told.
    """

    X: Any
    y: Any
    told: dict[str, Any]

    def at(self, places: Any) -> TrainingRows:
        """Those at some places; what `fit` is told of every row goes with them.

        Args:
            places: Of the rows.

        Returns:
            These rows alone.
        """
        told = {
            name: _safe_indexing(value, places) if self._by_row(value) else value for name, value in self.told.items()
        }
        return TrainingRows(_safe_indexing(self.X, places), _safe_indexing(self.y, places), told)

    def _by_row(self, value: Any) -> bool:
        return isinstance(value, Sized) and not isinstance(value, str | Mapping) and len(value) == len(self.y)


def balanced_order(y: Any, classifier: bool, random_state: Any) -> Any:
    """Places of rows in random order; of classes, so that every beginning has each in about its share, all at once.

    Args:
        y: The labels.
        classifier: Whether they are classes.
        random_state: As scikit-learn has it.

    Returns:
        An array of places.
    """
    shuffled = check_random_state(random_state).permutation(len(y))
    if not classifier:
        return shuffled
    _, codes, counts = np.unique(np.asarray(y)[shuffled], return_inverse=True, return_counts=True)
    by_class = np.argsort(codes, kind="stable")
    within = np.empty(len(y))
    within[by_class] = np.concatenate([np.arange(count) / count for count in counts])
    return shuffled[np.argsort(within, kind="stable")]
