"""The interface of losses."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.models.labels import Kind, Labels
from afresh.models.vectors import Rows, Values
from afresh.queries.text import number


class Loss(Protocol):
    """A loss: its name, what it applies to, and its values."""

    @property
    def kind(self) -> Kind:
        """What a prediction is: a class, probabilities, or a number."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and largest loss, the scale of answers."""
        ...

    @property
    def binary(self) -> bool:
        """Whether every row's loss is one of the bounds."""
        ...

    @property
    def words(self) -> str:
        """Name and parameters, which identify the loss."""
        ...

    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """The losses of some rows, rescaled to [0, 1]; booleans if `binary`.

        Args:
            predictions: The predictions for all rows, of the kind that `kind` names.
            labels: The labels of all rows.
            rows: The rows to compute losses for.

        Returns:
            One loss for each of these rows.
        """
        ...


_ONES = np.ones(1 << 18)  # as many as the rows evaluated at once


def at_most_one(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clip at 1, in place; NaN becomes 1. NumPy is twice as fast with an array of ones as with the number."""
    return np.fmin(losses, _ONES[: len(losses)] if len(losses) <= len(_ONES) else 1.0, out=losses)


@dataclass(frozen=True, slots=True)
class Clipped(ABC):
    """A loss without natural bounds, clipped at `clip` in its own units."""

    clip: float

    kind: ClassVar[Kind]
    binary: ClassVar[bool] = False
    name: ClassVar[str]

    def __post_init__(self) -> None:
        """Check it."""
        must_be = "a positive number, chosen without looking at the data"
        # Not a subnormal number, for 1/clip is infinite.
        object.__setattr__(self, "clip", checks.number("clip", self.clip, must_be, least=sys.float_info.min))

    @property
    def bounds(self) -> tuple[float, float]:
        """From no loss to `clip`."""
        return 0.0, self.clip

    @property
    def words(self) -> str:
        """The name and where it is clipped."""
        return f"{self.name} clipped at {number(self.clip)}"

    @abstractmethod
    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """The losses of some rows."""
