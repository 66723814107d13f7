"""Gaussian noise of one public scale, whatever the variance, with the posterior certificate of section 9."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

from afresh.lab.baselines.fixed import FixedNoise, narrowest
from afresh.theory.posterior import noise_level, posterior_level
from afresh.theory.stability import fixed_gaussian_charge


@dataclass(frozen=True)
class FixedGaussian(FixedNoise):
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


@lru_cache(maxsize=256)
def plan_fixed_gaussian(rows: int, questions: int, failure: float) -> FixedGaussian:
    """The narrowest plan over the noise and the split of the failure probability, by the planner's yardstick."""
    return narrowest(FixedGaussian, rows, questions, failure)
