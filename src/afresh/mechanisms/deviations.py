"""What answers about numbers share if their noise follows the standard deviation under Theorem S (17.10)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from afresh.mechanisms.base import AimsInGroups, round_to_grid
from afresh.mechanisms.ghost import ROUNDING
from afresh.moments import Aim, Grouped, Moments
from afresh.theory.numbers import FIRST, IN_GROUP, SQUARE, aim_in_group, is_large, mean_square
from afresh.theory.symmetrized.steps import COARSEST_NUMBER, MOST_STEPS, step_of, times

FIRST_DRAWS = frozenset(("first", "square"))
OF_GROUPS = frozenset(("share", "group"))
"""The coarse draw of a group's share, in the first or in the second of its answers."""

GROUPING = 0.18
"""For new plans, chosen by measurement (12)."""

NUMBER = FIRST_DRAWS | {"value", "times"}


def on_grid(value: Any, grid: float) -> bool:
    """Whether it can be a draw: a number in [0, 1] on the grid."""
    return isinstance(value, float | int) and 0 <= value <= 1 and float(value / grid).is_integer()


def drawn(noisy: float, grid: float) -> float:
    """A draw on the public grid, within [0, 1]."""
    return min(max(round_to_grid(noisy, grid), 0.0), 1.0)


def of_number(released: Any) -> bool:
    """Whether these are the draws of a number, whatever else is released with them."""
    return isinstance(released, Mapping) and released.keys() >= FIRST_DRAWS and not released.keys() >= OF_GROUPS


def grouped(released: Mapping[str, float]) -> bool:
    """Whether they are about a mean within a group."""
    return bool(OF_GROUPS & released.keys())


def group_draws(mechanism: AimsInGroups, moments: Grouped, noise: Sequence[float]) -> dict[str, float]:
    """The rough draws of an answer about a group by their names; the second answer repeats those of the first."""
    share, inside = moments.rough or mechanism.rough(moments, noise)
    return {"group" if moments.second else "share": share, "first": inside}


def allowed_step(noise: Any) -> int | None:
    """The step of the noise that an answer about a number says it had; None if there is no such step."""
    if not (isinstance(noise, float | int) and times(MOST_STEPS) * 0.99 < noise < times(COARSEST_NUMBER) * 1.01):
        return None
    step = step_of(noise)
    return step if math.isclose(noise, times(step), rel_tol=ROUNDING) else None


class FollowingDeviation(ABC):
    """First draws of a centre and of the mean square about it; the noise of the last draw follows what they show."""

    draws: ClassVar[int] = 4
    grid: float
    grouping: float
    firsts: float = 1.0
    """What first draws count for, in units of the usual."""

    @property
    @abstractmethod
    def noise_scale(self) -> float:
        """The noise of a plain answer in place of this one."""

    @property
    @abstractmethod
    def reach_scale(self) -> float:
        """Roughly how far the truth of a plain answer may be from it."""

    @abstractmethod
    def deviation_width(self, mean: float, deviation: float) -> float:
        """Half the interval's length for a number with this mean and standard deviation, as shares of its range."""

    def half_width(self, mean: float) -> float:
        """The half-width for the number with the largest deviation that this mean allows."""
        return self.deviation_width(mean, math.sqrt(mean * (1 - mean)))

    def aim(self, released: Mapping[str, float]) -> Aim:
        """What was averaged, and roughly where it lies."""
        if not (of := OF_GROUPS & released.keys()):
            return Aim(1.0, 0.0, 0.0, released["first"])
        (name,) = of
        both = released["first"], released[name]
        return Aim(*aim_in_group(*both, second=name == "group", large=self.large(*both)))

    def large(self, inside: float, share: float) -> bool:
        """Whether a group of this share is so large that its share would be known well."""
        return is_large(2 * math.sqrt(share * (1 - share)) * self.reach_scale, inside, share, self.grouping)

    def rough(self, moments: Grouped, noise: Sequence[float]) -> tuple[float, float]:
        """Rough draws of a group's share and of E[A 1_B]."""
        share, inside = moments.inside / moments.n, moments.mean
        return self._draw(share, noise[3], IN_GROUP), self._draw(inside, noise[0], IN_GROUP)

    def first_draws(self, moments: Moments, noise: Sequence[float]) -> tuple[dict[str, float], Moments]:
        """The draws before the last, and the moments of what the last one averages."""
        if isinstance(moments, Grouped):
            found = group_draws(self, moments, noise)
        else:
            found = {"first": self._draw(moments.mean, noise[0], FIRST)}
        aim = self.aim(found)
        own = moments.of(aim) if isinstance(moments, Grouped) else moments
        square = mean_square(own.mean, own.squares / own.n, aim.centre)
        return {**found, "square": self._draw(square, noise[1], SQUARE)}, own

    def _draw(self, mean: float, xi: float, part: float) -> float:
        return drawn(mean + self.noise_scale / math.sqrt(part * self.firsts) * xi, self.grid)
