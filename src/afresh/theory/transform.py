"""Theta, the variance-stabilising transform of section 10.

Fixed noise on Theta(mu) is noise on mu calibrated to the variance, and its scale leaks nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Transform:
    """Theta(m) = integral_0^m dm' / (2 sqrt(max(m'(1-m'), v0))), with variance floor v0 in (0, 1/4]."""

    v0: float

    @cached_property
    def floor_mean(self) -> float:
        """p0 = 1/2 - sqrt(1/4 - v0): below it, and above 1 - p0, the floor is in force."""
        return self.v0 / (0.5 + math.sqrt(0.25 - self.v0))

    @cached_property
    def top(self) -> float:
        """Theta(1)."""
        return 2 * float(self(np.array(0.5)))

    def __call__(self, m: Floats) -> Floats:
        """Theta(m), vectorised; Theta(1-m) = Theta(1) - Theta(m)."""
        p0, slope = self.floor_mean, 0.5 / math.sqrt(self.v0)
        at_p0 = p0 * slope - math.asin(math.sqrt(p0))
        at_half = math.asin(math.sqrt(0.5)) + at_p0 if p0 < 0.5 else 0.5 * slope
        near = np.minimum(m, 1 - m)  # the mirror image below 1/2
        value = np.where(near <= p0, near * slope, np.arcsin(np.sqrt(near)) + at_p0)
        return np.where(m <= 0.5, value, 2 * at_half - value)

    def slope(self, m: Floats) -> Floats:
        """Theta'(m)."""
        return 0.5 / np.sqrt(np.maximum(m * (1 - m), self.v0))

    def inverse(self, y: Floats) -> Floats:
        """The m with Theta(m) = y, for y in [0, Theta(1)]."""
        p0, slope, top = self.floor_mean, 0.5 / math.sqrt(self.v0), self.top
        near = np.minimum(y, top - y)
        angle = near - p0 * slope + math.asin(math.sqrt(p0))
        m = np.where(near <= p0 * slope, near / slope, np.sin(angle) ** 2)
        return np.where(y <= top / 2, m, 1 - m)

    def inverse_at(self, y: float) -> float:
        """The same for one number."""
        return float(self.inverse(np.asarray(y)))
