"""Noise of one public scale, whatever the variance: Gaussian (section 9) and Laplace (sections 2, 5 and 6)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, TypeVar

from afresh.engines.base import Moments
from afresh.mechanisms.base import EqualAnswers, FromAllRows, geometric_mean, grid_step, round_to_grid
from afresh.mechanisms.laplace import laplace_from_normal, laplace_quantile
from afresh.theory.bernoulli import kl_lower, kl_upper
from afresh.theory.information import information, log_threshold
from afresh.theory.posterior import noise_level, posterior_level
from afresh.theory.search import minimize_simplex
from afresh.theory.stability import fixed_gaussian_charge, fixed_laplace_charge


@dataclass(frozen=True)
class _Fixed(FromAllRows, EqualAnswers, ABC):
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

    @property
    def failure_use(self) -> dict[str, float]:
        """Sample and noise each have their share."""
        return {"sample": self.failure - self.noise_failure, "noise": self.noise_failure}

    @cached_property
    def grid(self) -> float:
        """The step of the public grid on which v lies."""
        return grid_step(self.scale)

    # What the two shapes of noise differ in.
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

    def value(self, released: float) -> float:
        """v itself."""
        return released

    def interval(self, released: float, *, binary: bool = False) -> tuple[float, float]:
        """The same for every kind of query."""
        reach, bound = self.scale * self._reach + self.grid / 2, self._level / self.rows
        return kl_lower(max(released - reach, 0.0), bound), kl_upper(min(released + reach, 1.0), bound)

    def half_width(self, mean: float) -> float:
        """Half the interval's length around an answer that reads `mean`."""
        low, high = self.interval(mean)
        return (high - low) / 2


@dataclass(frozen=True)
class FixedGaussian(_Fixed):
    """Section 9, (i) and (ii): the interval is around the posterior mean of the sample's mean."""

    method: ClassVar[str] = "fixed-gaussian"

    @property
    def _stability(self) -> float:
        return fixed_gaussian_charge(self.scale, self.rows)

    @cached_property
    def _reach(self) -> float:
        return noise_level(self.questions, self.noise_failure)

    @cached_property
    def _level(self) -> float:
        return posterior_level(self.rows, self.information, self.failure - self.noise_failure)


@dataclass(frozen=True)
class FixedLaplace(_Fixed):
    """Sections 5 and 6 with the charge and the quantile of fixed Laplace noise."""

    method: ClassVar[str] = "fixed-laplace"

    @property
    def _stability(self) -> float:
        return fixed_laplace_charge(self.scale, self.rows)

    @cached_property
    def _reach(self) -> float:
        return laplace_quantile(self.questions, self.noise_failure)

    @cached_property
    def _level(self) -> float:
        return log_threshold(self.failure - self.noise_failure, self.information)

    def release(self, moments: Moments, noise: float) -> float:
        """As above, with the noise reshaped."""
        return super().release(moments, laplace_from_normal(noise))


_Kind = TypeVar("_Kind", FixedGaussian, FixedLaplace)


def _narrowest(kind: Callable[..., _Kind], rows: int, questions: int, failure: float) -> _Kind:
    def candidate(point: Sequence[float]) -> _Kind:
        scale = math.exp(min(max(point[0], -18.0), 3.0))
        return kind(rows, questions, failure, scale, failure / (1 + math.exp(min(max(point[1], -20.0), 20.0))))

    start = [math.log(0.3 * math.sqrt(math.sqrt(questions) / rows)), 1.0]
    found, _ = minimize_simplex(
        lambda point: geometric_mean(candidate(point).half_width), start, tolerance=0.01, evaluations=120
    )
    return candidate(found)


@lru_cache(maxsize=256)
def plan_fixed_gaussian(rows: int, questions: int, failure: float) -> FixedGaussian:
    """The narrowest plan over the noise and the split of the failure probability, by the planner's yardstick."""
    return _narrowest(FixedGaussian, rows, questions, failure)


@lru_cache(maxsize=256)
def plan_fixed_laplace(rows: int, questions: int, failure: float) -> FixedLaplace:
    """The narrowest plan over the noise and the split of the failure probability, by the planner's yardstick."""
    return _narrowest(FixedLaplace, rows, questions, failure)
