"""A budget that never ends (17.8): answer j has the share K/((j+K)(j+K-1)), which sums to 1 over all j.

Each answer is a comparison of its own, with constants for j answers and its own failure, so nothing that was released
is touched by later questions. The constants are those of `count` = j and beta times the share.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.errors import InvalidArgument
from afresh.theory.symmetrized.constants import constants
from afresh.theory.symmetrized.fixed import best_noise, solve_width

Floats = NDArray[np.float64]


def open_share(j: int, expected: int) -> float:
    """K/((j+K)(j+K-1)): telescopes to 1; an answer at j = K costs ln 4 more than an equal share of K."""
    if j < 1 or expected < 1:
        raise InvalidArgument(f"answer {j} of about {expected}: both must be >= 1.")
    return expected / ((j + expected) * (j + expected - 1.0))


def open_half_width(n: int, s: float, beta: float, expected: int, j: int) -> float:
    """What answer j is worth: its truth lies within this of the released value, cut to [0, 1]."""
    c = constants(n, j, s, beta * open_share(j, expected))
    return min(s * float(solve_width(math.log(c.main), c.reach, c.bulk_before(j), c.swap)) * (1 + 1e-9), 1.0)


def open_half_widths(n: int, s: float, beta: float, expected: int, j: ArrayLike) -> Floats:
    """`open_half_width` of each answer, e.g. to say what the next hundred will be worth."""
    return np.array([open_half_width(n, s, beta, expected, int(each)) for each in np.atleast_1d(np.asarray(j))])


def open_noise(n: int, beta: float, expected: int) -> float:
    """The noise with the narrowest answer number `expected`."""
    return best_noise(n, expected, lambda s: open_half_width(n, s, beta, expected, expected))
