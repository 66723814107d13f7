"""Laplace noise calibrated to the variance (the remark after Prop. M), with the interval of section 6.

Its quantile is far larger than the Gaussian's at the same charge, so no planner chooses it; it is here to show that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

from afresh.lab.baselines.laplace import laplace_from_normal, laplace_quantile
from afresh.mechanisms.calibrated import Calibrated, narrowest
from afresh.moments import Moments
from afresh.theory.information import information
from afresh.theory.stability import laplace_charge


@dataclass(frozen=True)
class CalibratedLaplace(Calibrated):
    """v = mu + xi sqrt(max(sigma^2/t, 1/T)) with xi ~ Lap(1)."""

    method: ClassVar[str] = "calibrated-laplace"

    @cached_property
    def charge(self) -> float:
        """n B nats with the B of section 2 for Laplace noise."""
        return information(self.rows, laplace_charge(self.t, self.T, self.rows))

    @property
    def _smallest_z(self) -> float:
        return laplace_quantile(self.answers, self.noise_failure)

    def release(self, moments: Moments, noise: float) -> float:
        """Release as in Figure 1, with the noise reshaped."""
        return super().release(moments, laplace_from_normal(noise))


@lru_cache(maxsize=256)
def plan_calibrated_laplace(rows: int, questions: int, failure: float, answers: int | None = None) -> CalibratedLaplace:
    """The narrowest plan over t, T and the split of the failure probability, by the planner's yardstick."""
    return narrowest(CalibratedLaplace, rows, questions, failure, answers)
