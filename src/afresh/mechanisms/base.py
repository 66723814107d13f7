"""What a guard needs of a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

from afresh.engines.base import Moments

# The three means at which plans are compared, unless the user says what is typical.
TYPICAL_MEANS = (0.5, 0.1, 0.01)


class Mechanism(Protocol):
    """Public constants, fixed before data are seen, and three pure functions of them.

    The charge never depends on data. `release` turns moments and one standard normal number into the released
    number, which lies on a public grid; everything after is a function of it alone.
    """

    method: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]  # a frozen dataclass: its fields are its constants

    @property
    def rows(self) -> int:
        """The number of rows it was planned for."""
        ...

    @property
    def questions(self) -> int:
        """The most answers it may release."""
        ...

    @property
    def failure(self) -> float:
        """beta: the probability with which any interval at all may miss."""
        ...

    @property
    def charge(self) -> float:
        """Nats of information that one answer is charged."""
        ...

    @property
    def information(self) -> float | None:
        """The information budget of all answers together, in nats; None if the method keeps no such account."""
        ...

    @property
    def failure_use(self) -> dict[str, float]:
        """How the failure probability is used; the parts add up to at most `failure`."""
        ...

    def release(self, moments: Moments, noise: float) -> float:
        """The released number for a query with these moments and this standard normal noise."""
        ...

    def value(self, released: float) -> float:
        """The released number on the scale of the mean, in [0, 1]."""
        ...

    def interval(self, released: float, *, binary: bool = False) -> tuple[float, float]:
        """The simultaneous interval; `binary` says that the query only takes the values 0 and 1."""
        ...

    def half_width(self, mean: float) -> float:
        """Half the interval's length for a released number that reads `mean`."""
        ...


def grid_step(noise_scale: float) -> float:
    """A power of two at most noise_scale / 1024: low-order bits of a float sum could betray the mean."""
    return 2.0 ** math.floor(math.log2(noise_scale) - 10)


def round_to_grid(value: float, step: float) -> float:
    """The nearest multiple of a power of two, exactly."""
    return round(value / step) * step


def geometric_mean(half_width: Callable[[float], float]) -> float:
    """The planner's yardstick: the geometric mean of the half-widths at the typical means."""
    return math.exp(math.fsum(math.log(half_width(mean)) for mean in TYPICAL_MEANS) / len(TYPICAL_MEANS))
