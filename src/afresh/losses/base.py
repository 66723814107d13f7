"""What a loss is."""

from __future__ import annotations

import math
import sys
from typing import Any, Protocol

from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.labels import Kind, Labels
from afresh.queries.vector import Rows, Values


class Loss(Protocol):
    """A loss: what it is called, what it is of, and its values."""

    @property
    def kind(self) -> Kind:
        """What a prediction is: a class, probabilities, or a number."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest loss, the scale of answers."""
        ...

    @property
    def binary(self) -> bool:
        """Whether every row's loss is one of the bounds."""
        ...

    @property
    def words(self) -> str:
        """Name and parameters: all that makes it this loss and no other."""
        ...

    def rows(self, predictions: NDArray[Any], labels: Labels, rows: Rows) -> Values:
        """The losses of some rows, rescaled to [0, 1], in an array of their own; booleans if `binary`."""
        ...


def check_positive(name: str, value: float) -> float:
    """A positive number, as a float."""
    # Not a subnormal number, for 1/value is infinite.
    if isinstance(value, bool) or not isinstance(value, int | float) or not sys.float_info.min <= value < math.inf:
        raise InvalidArgument(f"{name} == {value!r}, must be a positive number, chosen without looking at the data.")
    return float(value)
