"""Laplace noise of one public scale, whatever the variance (sections 2, 5 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

from afresh.lab.baselines.fixed import FixedNoise, narrowest
from afresh.lab.baselines.laplace import laplace_from_normal, laplace_quantile
from afresh.moments import Moments
from afresh.theory.information import log_threshold
from afresh.theory.stability import fixed_laplace_charge


@dataclass(frozen=True)
class FixedLaplace(FixedNoise):
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
        """Release as for Gaussian noise, with the noise reshaped."""
        return super().release(moments, laplace_from_normal(noise))


@lru_cache(maxsize=256)
def plan_fixed_laplace(rows: int, questions: int, failure: float) -> FixedLaplace:
    """The narrowest plan over the noise and the split of the failure probability, by the planner's yardstick."""
    return narrowest(FixedLaplace, rows, questions, failure)
