"""The rows that a search's candidates train on."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state


class TrainingRows(NamedTuple):
    """Training rows, with further arguments for `fit`.

    Args:
        X: Features.
        y: Labels.
        told: The further arguments.
    """

    X: Any
    y: Any
    told: dict[str, Any]

    def at(self, places: Any) -> TrainingRows:
        """Select rows; arguments with one entry per row are selected with them.

        Args:
            places: The positions of the rows.

        Returns:
            Only these rows.
        """
        told = {
            name: _safe_indexing(value, places) if self._by_row(value) else value for name, value in self.told.items()
        }
        return TrainingRows(_safe_indexing(self.X, places), _safe_indexing(self.y, places), told)

    def _by_row(self, value: Any) -> bool:
        return isinstance(value, Sized) and not isinstance(value, str | Mapping) and len(value) == len(self.y)


def balanced_order(y: Any, classifier: bool, random_state: Any) -> Any:
    """Put rows into a random order; for classes, such that every initial part has each class in about its share.

    Args:
        y: The labels.
        classifier: Whether they are classes.
        random_state: As in scikit-learn.

    Returns:
        An array of positions.
    """
    shuffled = check_random_state(random_state).permutation(len(y))
    if not classifier:
        return shuffled
    _, codes, counts = np.unique(np.asarray(y)[shuffled], return_inverse=True, return_counts=True)
    by_class = np.argsort(codes, kind="stable")
    within = np.empty(len(y))
    within[by_class] = np.concatenate([np.arange(count) / count for count in counts])
    return shuffled[np.argsort(within, kind="stable")]
