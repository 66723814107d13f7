"""What one answer reveals: average leave-one-out KL stability (Def. klas) of one noisy mean."""

from __future__ import annotations

import math

from afresh.errors import InvalidArgument


def calibrated_charge(t: float, T: float, n: int) -> float:  # noqa: N803 - T is the paper's name
    """Stability of one calibrated answer: the proof of Prop. M before it is rounded to zeta.

    B = (2t + (T/t) (n/(n-1))^2 (1 + g/3)) (1 + g) / (4 (n-1)^2) with g = T n / (t (n-1)^2), for every
    sample of n rows and every query into [0, 1]. It never depends on data.
    """
    if n < 2 or not (t > 0.0 and T > 0.0):
        raise InvalidArgument(f"n == {n}, t == {t}, T == {T}: needs n >= 2, t > 0 and T > 0.")
    g = T * n / (t * (n - 1) ** 2)
    if not math.isfinite(g):
        raise InvalidArgument(f"T n / (t (n-1)^2) is not finite at t == {t}, T == {T}, n == {n}.")
    return (2 * t + (T / t) * (n / (n - 1)) ** 2 * (1 + g / 3)) * (1 + g) / (4 * (n - 1) ** 2)
