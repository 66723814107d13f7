"""Losses of classes and of their probabilities."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.losses.base import Clipped, at_most_one
from afresh.models.labels import Codes, Kind, Labels
from afresh.models.vectors import Rows, Values
from afresh.queries.text import number

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ZeroOne:
    """1 if the class is wrong, otherwise 0: its mean is 1 - accuracy."""

    kind: ClassVar[Kind] = "classes"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    binary: ClassVar[bool] = True
    words: ClassVar[str] = "zero-one loss"

    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """Wrong or not."""
        wrong: NDArray[np.bool_] = predictions[rows] != labels.codes[rows]
        return wrong


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a mistake: `costs[true class][predicted class]`, in the order of the classes.

    Args:
        costs: A square array of finite numbers; one row per true class, one column per predicted class.
    """

    costs: tuple[tuple[float, ...], ...]

    kind: ClassVar[Kind] = "classes"

    def __post_init__(self) -> None:
        """Check that it is a square of numbers."""
        try:
            table = np.asarray(self.costs, dtype=np.float64)
        except Exception:  # no numbers, or rows of several lengths
            table = np.empty(0)
        if table.ndim != 2 or table.shape[0] != table.shape[1] or len(table) < 2 or not np.isfinite(table).all():
            raise checks.wrong("costs", self.costs, "a square array of finite numbers, one row per true class")
        if table.min() == table.max():
            raise checks.wrong(
                "costs", self.costs, "at least two different values; otherwise there is nothing to measure"
            )
        if not sys.float_info.min <= float(table.max()) - float(table.min()) < math.inf:
            raise checks.wrong("costs", self.costs, "neither too far apart nor too close together; use other units")
        object.__setattr__(self, "costs", tuple(map(tuple, table.tolist())))

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest cost."""
        return float(np.min(self.costs)), float(np.max(self.costs))

    @property
    def binary(self) -> bool:
        """Whether there are only two costs."""
        return len(np.unique(self.costs)) == 2

    @property
    def words(self) -> str:
        """The name with all costs."""
        return "cost " + "; ".join(",".join(number(cost) for cost in row) for row in self.costs)

    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """The cost of every row, rescaled; the greatest if the label is missing."""
        low, high = self.bounds
        table = np.vstack([(np.asarray(self.costs) - low) / (high - low), np.ones(len(self.costs))])
        losses: Floats = table[labels.codes[rows], predictions[rows]]  # the code -1 finds the last row
        return losses > 0.5 if self.binary else losses


@dataclass(frozen=True, slots=True)
class Log(Clipped):
    """Minus the logarithm of the probability given to the true class, at most `clip` nats.

    Args:
        clip: The largest loss a row may have, in nats; chosen without looking at the data.
    """

    clip: float = 5.0

    kind = "probabilities"
    name = "log loss"

    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """-ln p, clipped afterwards: one pass fewer, and the infinite logarithm of 0 is clipped as well."""
        chances = predictions[rows]
        with np.errstate(all="ignore"):  # whatever the caller's handling: a warning would reveal labels
            if chances.ndim == 1:  # of two classes: of the second; NaN if the label is missing
                right: Floats = labels.first[rows] - chances
                np.abs(right, out=right)
            else:
                right = _of_truth(chances, labels.codes[rows])
            losses = np.log(right, out=right)
            losses *= -1 / self.clip
        return at_most_one(losses)


@dataclass(frozen=True, slots=True)
class Brier:
    """Half the squared distance between the probabilities and the truth; for two classes, (p - y)^2."""

    kind: ClassVar[Kind] = "probabilities"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    binary: ClassVar[bool] = False
    words: ClassVar[str] = "Brier loss"

    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """(1 - p_y)^2 and the squares of the others, halved."""
        chances, codes = predictions[rows], labels.codes[rows]
        if chances.ndim == 1:
            losses: Floats = codes - chances  # of a missing label, whose code is -1, at least 1 once it is squared
            np.square(losses, out=losses)
        else:
            right = _of_truth(chances, codes)
            losses = ((chances**2).sum(axis=1) - right**2 + (1 - right) ** 2) / 2
            losses[codes < 0] = 1.0
            np.maximum(losses, 0.0, out=losses)
        return at_most_one(losses)


def _of_truth(chances: Floats, codes: Codes) -> Floats:
    """The probability of the true class, one column per class, in a new array; 0 if the label is missing."""
    found: Floats = np.take_along_axis(chances, np.maximum(codes, 0)[:, None], axis=1)[:, 0]
    found *= codes >= 0
    return found
