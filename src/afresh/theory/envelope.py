"""The envelope (*) of Theorem T: h(u) = u - 1 + e^-u under a parabola and a small exponential.

    (*)  h(N + q/2) <= c N^2/2 + B q + A h(theta N + theta^2 q/2)     for all real N, 0 <= q <= qb

with c = 1 + eps and B = (1 + 1/eps) qb/8. The parabola carries the bulk, whose upper tail is known
exactly; A pays for the rest by Markov's inequality. With x = -(N + q/2) and y = theta x - theta (theta-1) q/2
it reads e^x - 1 - x <= c (x + q/2)^2/2 + B q + A (e^y - 1 - y).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from afresh.theory.search import minimize_simplex

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


LARGEST_QB = 4.0  # beyond this, no constants are useful
_SMALLEST_QB = 3e-4  # constants for qb serve every smaller one; below this they cost under 1% and the check is slow


@dataclass(frozen=True, slots=True)
class Envelope:
    """Constants for which (*) holds on 0 <= q <= qb."""

    qb: float
    c: float
    B: float
    A: float
    theta: float


def parabola_slack(eps: float, qb: float) -> float:
    """B = (1 + 1/eps) qb/8, which makes (*) hold for N >= -q/2."""
    return (1 + 1 / eps) * qb / 8


def smallest_A(eps: float, theta: float, qb: float, points: tuple[int, int] = (160, 16)) -> float:
    """The smallest A for which (*) holds on a grid; `holds` decides whether it also holds in between."""
    c, B = 1 + eps, parabola_slack(eps, qb)
    start = 3 * (1 - 1 / c)
    # Beyond the end the exponential with the larger rate theta dominates; 12 nats of room are ample.
    end = start + min(12 / (theta - 1) + theta * qb, 300.0)
    x = np.linspace(start, end, points[0])[:, None]
    q = np.linspace(0.0, qb, points[1])[None, :]
    needed = np.expm1(x) - x - c * (x + q / 2) ** 2 / 2 - B * q
    y = np.minimum(theta * x - theta * (theta - 1) * q / 2, 700.0)
    offered = np.expm1(y) - y
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(needed > 0, needed / offered, 0.0)
    return float(ratio.max())


def holds(envelope: Envelope) -> bool:
    """Whether (*) holds everywhere, decided by cells rather than points.

    By hand: N >= -q/2 (h(u) <= u^2/2 and Young) and x <= 3 (1 - 1/c) (h(-x) <= x^2 / (2 (1 - x/3))).
    In the far tail by monotone logarithmic derivatives. Between, each cell compares the left side at its
    largest corner with the right side at its smallest.
    """
    c, B, A, theta, qb = envelope.c, envelope.B, envelope.A, envelope.theta, envelope.qb
    if not (c > 1 and theta > 1 and A > 0 and parabola_slack(c - 1, qb) * (1 - 1e-12) <= B):
        return False
    start = 3 * (1 - 1 / c)
    end = _tail_start(A, theta, qb, start)
    if end is None:
        return False
    x_edges, q_edges = np.linspace(start, end, 257), np.linspace(0.0, qb, 33)
    x1, q1 = (m.ravel() for m in np.meshgrid(x_edges[:-1], q_edges[:-1], indexing="ij"))
    dx, dq = (end - start) / 256, qb / 32
    for _ in range(12):
        x2, q2 = x1 + dx, q1 + dq
        y_low = theta * x1 - theta * (theta - 1) * q2 / 2
        y_high = theta * x2 - theta * (theta - 1) * q1 / 2
        # 0 where the range contains 0; cutting it at 700 only makes the right side smaller.
        nearest = np.minimum(np.where(y_low > 0, y_low, np.minimum(y_high, 0.0)), 700.0)
        right = c * (x1 + q1 / 2) ** 2 / 2 + B * q1 + A * (np.expm1(nearest) - nearest)
        left = np.expm1(x2) - x2
        failing = left > right * (1 - 1e-12)
        if not failing.any():
            return True
        # Quarter the cells that are still undecided.
        x1, q1, dx, dq = x1[failing], q1[failing], dx / 2, dq / 2
        if x1.size > 500_000:
            return False
        x1 = np.concatenate([x1, x1 + dx, x1, x1 + dx])
        q1 = np.concatenate([q1, q1, q1 + dq, q1 + dq])
    return False


def _tail_start(A: float, theta: float, qb: float, start: float) -> float | None:
    """An X beyond which A (e^y - 1 - y) alone carries (*), or None within 700 nats."""
    x = start
    while x < 700 / theta + theta * qb:
        y = theta * x - theta * (theta - 1) * qb / 2
        if y > 0:
            rate = math.expm1(x) / (math.expm1(x) - x)
            if theta >= rate and math.log(A) + math.log(math.expm1(y) - y) >= math.log(math.expm1(x) - x):
                return x
        x = x * 1.02 + 1e-6
        if x > 700:
            return None
    return None


def rough_envelope(qb: float, failure: float) -> Envelope:
    """An unverified envelope near the best one, for searches that end in `choose_envelope`."""
    qb = max(qb, _SMALLEST_QB)
    eps, theta = _start(qb, failure)
    return Envelope(qb, 1 + eps, parabola_slack(eps, qb), smallest_A(eps, theta, qb), theta)


def choose_envelope(qb: float, failure: float, weight: float) -> Envelope | None:
    """The verified envelope that (nearly) minimises c weight + 2 B + A theta^2 / failure, or None.

    `weight` is what one unit of c costs in H; `failure` is beta, with which Markov's inequality pays for A.
    """
    qb = max(qb, _SMALLEST_QB)

    def price(point: Sequence[float]) -> float:
        eps, theta = math.exp(point[0]), 1 + math.exp(point[1])
        exponential = smallest_A(eps, theta, qb) * theta**2 / failure
        return (1 + eps) * weight + 2 * parabola_slack(eps, qb) + exponential

    eps, theta = _start(qb, failure)
    room = [(-12.0, 4.0), (-4.0, 8.0)]
    start = [min(max(math.log(x), low), high) for x, (low, high) in zip((eps, theta - 1), room, strict=True)]
    best, _ = minimize_simplex(price, start, tolerance=3e-3, evaluations=200, bounds=room)
    eps, theta = math.exp(best[0]), 1 + math.exp(best[1])
    A = smallest_A(eps, theta, qb, points=(800, 60))
    for _ in range(12):
        A *= 1.003
        envelope = Envelope(qb, 1 + eps, parabola_slack(eps, qb), A, theta)
        if holds(envelope):
            return envelope
    return None


def _start(qb: float, failure: float) -> tuple[float, float]:
    """eps and theta near their best; the powers of qb and failure were read off a table of optima."""
    nats = -math.log(failure)
    return 0.18 * nats * math.sqrt(qb), 1 + 1.35 * math.sqrt(nats / qb)
