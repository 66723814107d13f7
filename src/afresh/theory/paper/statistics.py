"""Other query types: any statistic that leaving one row out changes little on average (remark before Prop. M).

The proof of Prop. M uses three facts about the centre mu and the scale sigma^2 of a noisy answer, for every sample of n
rows, where mu_-i and sigma_-i^2 are the same without row i:

    (1/n) sum_i (mu - mu_-i)^2          <= centre * sigma^2
    (1/n) sum_i (sigma^2 - sigma_-i^2)^2 <= scale * sigma^2
    |sigma^2 - sigma_-i^2|              <= largest

Whatever mu and sigma^2 are, v = mu + xi sqrt(max(sigma^2/t, 1/T)) is then stable, with the charge below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InvalidArgument

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """The three constants, for one number of rows."""

    centre: float
    scale: float
    largest: float


class Statistic(Protocol):
    """What can be answered: a centre, a scale, and a proof (the constants) that they change little."""

    def centre(self, values: Floats) -> float:
        """mu, the number that is released with noise."""
        ...

    def scale(self, values: Floats) -> float:
        """sigma^2 >= 0, to which the noise is calibrated."""
        ...

    def leave_one_out(self, n: int) -> LeaveOneOut:
        """The constants with which the three inequalities hold for every sample of n rows."""
        ...


class Mean:
    """The statistical query itself: the mean of psi, with noise calibrated to its variance (Figure 1)."""

    def centre(self, values: Floats) -> float:
        """The sample mean."""
        return float(values.mean())

    def scale(self, values: Floats) -> float:
        """The sample variance (divided by n)."""
        return float(values.var())

    def leave_one_out(self, n: int) -> LeaveOneOut:
        """Eqs. musum, sigmasum and sigsens: 1/(n-1)^2, n^2/(n-1)^4 and n/(n-1)^2."""
        _check_rows(n)
        return LeaveOneOut(1 / (n - 1) ** 2, n**2 / (n - 1) ** 4, n / (n - 1) ** 2)


class Variance:
    """The sample variance of psi, with noise calibrated to itself.

    Eq. sigmasum, (1/n) sum_i (sigma^2 - sigma_-i^2)^2 <= sigma^2 n^2/(n-1)^4, is at once the first inequality
    for mu := sigma^2 and the second for the same scale. So a small spread is answered precisely.
    """

    def centre(self, values: Floats) -> float:
        """The sample variance (divided by n), in [0, 1/4]."""
        return float(values.var())

    def scale(self, values: Floats) -> float:
        """The sample variance again."""
        return float(values.var())

    def leave_one_out(self, n: int) -> LeaveOneOut:
        """Eqs. sigmasum (twice) and sigsens: n^2/(n-1)^4, n^2/(n-1)^4 and n/(n-1)^2."""
        _check_rows(n)
        return LeaveOneOut(n**2 / (n - 1) ** 4, n**2 / (n - 1) ** 4, n / (n - 1) ** 2)


def statistic_charge(statistic: Statistic, t: float, T: float, n: int) -> float:
    """Stability of one answer: the proof of Prop. M with the statistic's constants a, b, d in it.

    (2 t a + (T/t) b (1 + g/3)) (1 + g) / 4 with g = T d/t. `Mean` gives `calibrated_charge`. Never
    data-dependent.
    """
    if not (t > 0 and T > 0):
        raise InvalidArgument(f"t == {t}, T == {T}: needs t > 0 and T > 0.")
    constants = statistic.leave_one_out(n)
    g = T / t * constants.largest
    if not math.isfinite(g):
        raise InvalidArgument(f"T largest / t is not finite at t == {t}, T == {T}, n == {n}.")
    return (2 * t * constants.centre + (T / t) * constants.scale * (1 + g / 3)) * (1 + g) / 4


def statistic_noise(statistic: Statistic, values: Floats, t: float, T: float) -> float:
    """The noise's standard deviation on this sample: sqrt(max(sigma^2/t, 1/T))."""
    if not (t > 0 and T > 0):
        raise InvalidArgument(f"t == {t}, T == {T}: needs t > 0 and T > 0.")
    return math.sqrt(max(statistic.scale(values) / t, 1 / T))


def statistic_answer(statistic: Statistic, values: Floats, t: float, T: float, noise: float) -> float:
    """v = mu + xi sqrt(max(sigma^2/t, 1/T)) for values in [0, 1] and one standard normal number xi."""
    if values.size < 2 or not (values.min() >= 0 and values.max() <= 1):
        raise InvalidArgument("values must be at least two numbers in [0, 1].")
    return statistic.centre(values) + noise * statistic_noise(statistic, values, t, T)


def _check_rows(n: int) -> None:
    if n < 2:
        raise InvalidArgument(f"n == {n}, must be >= 2: with one row left out something must remain.")
