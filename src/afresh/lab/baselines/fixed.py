"""What mechanisms with noise of one public scale share, whatever the shape of the noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeVar

from afresh.mechanisms.base import geometric_mean, grid_step, round_to_grid
from afresh.mechanisms.parts import EqualAnswers, FromAllRows, ReleasesMean, SampleAndNoise
from afresh.moments import Moments
from afresh.theory.bernoulli import kl_lower, kl_upper
from afresh.theory.information import information
from afresh.theory.search import minimize_simplex


@dataclass(frozen=True)
class FixedNoise(FromAllRows, EqualAnswers, ReleasesMean, SampleAndNoise):
    """v = mu + scale * xi, and the interval n kl(v -+ scale * reach || P) <= level."""

    method: ClassVar[str]

    rows: int
    questions: int
    failure: float
    scale: float
    noise_failure: float

    @cached_property
    def charge(self) -> float:
        """Nats of one answer."""
        return information(self.rows, self._stability)

    @property
    def information(self) -> float:
        """I: the cap on the information of all answers together."""
        return self.questions * self.charge

    @cached_property
    def grid(self) -> float:
        """The step of the public grid on which v lies."""
        return grid_step(self.scale)

    # What the shapes of noise differ in.
    @property
    @abstractmethod
    def _stability(self) -> float: ...

    @property
    @abstractmethod
    def _reach(self) -> float: ...

    @property
    @abstractmethod
    def _level(self) -> float: ...

    def release(self, moments: Moments, noise: float) -> float:
        """v on the public grid, within [0, 1]."""
        return min(max(round_to_grid(moments.mean + self.scale * noise, self.grid), 0.0), 1.0)

    def interval(self, released: float, *, levels: int | None = None) -> tuple[float, float]:
        """The same for every kind of query."""
        reach, bound = self.scale * self._reach + self.grid / 2, self._level / self.rows
        return kl_lower(max(released - reach, 0.0), bound), kl_upper(min(released + reach, 1.0), bound)


_Kind = TypeVar("_Kind", bound=FixedNoise)


def narrowest(kind: type[_Kind], rows: int, questions: int, failure: float) -> _Kind:
    """The narrowest plan over the noise and the split of the failure probability, by the planner's yardstick."""

    def candidate(point: Sequence[float]) -> _Kind:
        scale = math.exp(min(max(point[0], -18.0), 3.0))
        return kind(rows, questions, failure, scale, failure / (1 + math.exp(min(max(point[1], -20.0), 20.0))))

    start = [math.log(0.3 * math.sqrt(math.sqrt(questions) / rows)), 1.0]
    found, _ = minimize_simplex(
        lambda point: geometric_mean(candidate(point).half_width), start, tolerance=0.01, evaluations=120
    )
    return candidate(found)
