"""Losses of numbers, each clipped at the largest loss a row may have."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.losses.base import Clipped, at_most_one
from afresh.models.labels import Labels
from afresh.models.vectors import Rows, Values
from afresh.queries.text import number

Floats = NDArray[np.float64]


class _OfNumbers(Clipped):
    """A loss of a prediction's error."""

    __slots__ = ()
    kind = "numbers"

    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """The loss of the residual, clipped and rescaled."""
        with np.errstate(over="ignore"):
            losses = self._of(labels.numbers[rows] - predictions[rows])
        return at_most_one(losses)

    @abstractmethod
    def _of(self, residual: Floats) -> Floats:
        """The loss of residuals, which it may overwrite, rescaled; infinite for an infinite one."""


class Squared(_OfNumbers):
    """The squared error, at most `clip`.

    Args:
        clip: The largest squared error a row may have; chosen without looking at the data.
    """

    __slots__ = ()
    name = "squared loss"

    def _of(self, residual: Floats) -> Floats:
        np.square(residual, out=residual)
        residual *= 1 / self.clip
        return residual


class Absolute(_OfNumbers):
    """The absolute error, at most `clip`.

    Args:
        clip: The largest error a row may have; chosen without looking at the data.
    """

    __slots__ = ()
    name = "absolute loss"

    def _of(self, residual: Floats) -> Floats:
        np.abs(residual, out=residual)
        residual *= 1 / self.clip
        return residual


@dataclass(frozen=True, slots=True)
class Pinball(_OfNumbers):
    """The loss that a quantile minimizes, at most `clip`: q per unit too low, 1 - q per unit too high.

    Args:
        clip: The largest loss a row may have; chosen without looking at the data.
        quantile: q, between 0 and 1.
    """

    quantile: float = 0.5

    def __post_init__(self) -> None:
        """Check both."""
        Clipped.__post_init__(self)
        object.__setattr__(self, "quantile", checks.between_0_and_1("quantile", self.quantile))
        if min(self.quantile, 1 - self.quantile) / self.clip == 0:  # of a missing label the loss would be NaN
            raise InvalidArgument(f"quantile == {self.quantile!r} is too close to 0 or 1 for clip == {self.clip!r}.")

    @property
    def words(self) -> str:
        """The name with its quantile."""
        return f"pinball loss of the {number(self.quantile)} quantile clipped at {number(self.clip)}"

    def _of(self, residual: Floats) -> Floats:
        too_high = residual * ((self.quantile - 1) / self.clip)
        residual *= self.quantile / self.clip
        return np.maximum(residual, too_high, out=residual)
