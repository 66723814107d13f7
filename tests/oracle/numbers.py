"""Independent, slow implementation of numbers whose interval follows their deviation (guarantees.md, 7 and 10).

Written from the formulas of docs/guarantees.md, in 40 digits. Nothing here imports afresh.
"""

from __future__ import annotations

import mpmath as mp

from oracle.calibrated import bisect, kl
from oracle.stabilized import DIGITS, theta_inverse


def cumulant(theta: float, variance: float) -> mp.mpf:
    """ln((V e^theta + e^(-theta V))/(1 + V))."""
    with mp.workdps(DIGITS):
        V, t = mp.mpf(variance), mp.mpf(theta)
        return mp.log((V * mp.exp(t) + mp.exp(-t * V)) / (1 + V))


def kl_up(p: mp.mpf, bound: mp.mpf) -> mp.mpf:
    """The largest q with kl(p || q) <= bound."""
    return mp.mpf(1) if p >= 1 else bisect(lambda q: bool(kl(p, q) <= bound), p, mp.mpf(1))


def farthest(variance: mp.mpf, room: mp.mpf, bound: mp.mpf) -> mp.mpf:
    """The largest w with kl((V + c w)/(V + c^2) || V/(V + c^2)) <= bound, up to the room c."""
    whole = variance + room**2

    def holds(w: mp.mpf) -> bool:
        return bool(kl((variance + room * w) / whole, variance / whole) <= bound)

    return room if holds(room) else bisect(holds, mp.mpf(0), room)


def rare(probability: float) -> mp.mpf:
    """z with Pr(N(0, 1) < -z) = probability."""
    with mp.workdps(DIGITS):
        return mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(probability))


def stabilized_number(
    first: float,
    square: float,
    *,
    n: int,
    answers: int,
    failure: float,
    v0: float,
    s: float,
    lam: float,
    H: float,
    numbers: float,
    half_step: float,
) -> tuple[float, float]:
    """f, and how far the truth may be from the last draw: parts 1/16, 1/8 and 13/16 of one answer."""
    with mp.workdps(DIGITS):
        growth = 1 / (1 - 1 / (mp.mpf(n - 1) * v0))
        shift = mp.sqrt(growth / (4 * mp.mpf(n - 1) ** 2 * v0 * s**2) / 8)
        z = rare(failure * numbers / answers) + shift
        centre = mp.mpf(theta_inverse(first, v0))
        u = mp.mpf(theta_inverse(float(square + z * s * mp.sqrt(8) + half_step), v0))
        scale, rho = max(centre, 1 - centre) ** 2, mp.mpf(13) / 16
        f = min(max(2 * mp.sqrt(scale * u), 2 * mp.sqrt(v0)), mp.mpf(1))
        variance = min(scale * kl_up(u, mp.mpf(lam) * H / n), mp.mpf(1) / 4)
        tilt = lam * mp.sqrt(rho) / f
        reach = f * H / mp.sqrt(rho) + n / tilt * cumulant(tilt / n, variance)
        return float(f), float(reach + half_step)


def calibrated_number(
    value: float,
    square: float,
    plain: tuple[float, float],
    *,
    n: int,
    answers: int,
    noise_failure: float,
    numbers: float,
    t: float,
    T: float,
    z: float,
    L: float,
    charge: float,
    half_step: float,
) -> tuple[float, float]:
    """Both ends; t and T are the plan's, of which the mean's draw has 3/4, and `plain` is its interval by section 6."""
    with mp.workdps(DIGITS):
        v0 = min(max(mp.mpf("0.002"), mp.mpf(20) / (n - 1)), mp.mpf(1) / 4)
        growth = 1 / (1 - 1 / ((n - 1) * v0))
        noise = mp.sqrt(growth * n / (8 * mp.mpf(n - 1) ** 2) / (mp.mpf(charge) / 4))
        above = square + rare(noise_failure * numbers / answers) * noise + half_step
        u, part = mp.mpf(theta_inverse(float(above), float(v0))), mp.mpf(3) / 4
        scale, bound, c = max(mp.mpf(value), 1 - mp.mpf(value)) ** 2, mp.mpf(L) / n, mp.mpf(z) ** 2 / (part * t)
        near = max(z / mp.sqrt(part**2 * T), mp.sqrt(c * scale * u / (1 + c))) + half_step
        near = min(near, mp.sqrt(scale * u))
        variance = min(scale * kl_up(u, bound), mp.mpf(1) / 4)
        low, high = map(mp.mpf, plain)
        return (
            float(max(low, value - near - farthest(variance, 1 - low, bound))),
            float(min(high, value + near + farthest(variance, high, bound))),
        )
