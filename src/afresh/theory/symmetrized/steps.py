"""Noise in sixteenths of an octave, so that a few tables of intervals serve all answers and a plan names its noise."""

from __future__ import annotations

import math

# These are part of the meaning of every plan, and never change.
SHARE = 0.1  # the part of a unit for the first draw of an answer whose charge is settled; by measurement, see 17.10
_OCTAVE = 16
PLAIN = 1 / math.sqrt(1 - SHARE)
"""f of such an answer whose d may be as large as D: with its first draw it counts one unit."""
MOST_STEPS = 80
COARSEST_FINE = 1.2
"""No plan says that its numbers have at least more noise than this."""
COARSEST_NUMBER = -32
"""The step of the coarsest noise of the last draw of a number."""


def times(step: int) -> float:
    """f of a step: 16 to the octave, and 0 for an answer that counts one unit whatever its mean."""
    return float(PLAIN * 2.0 ** (-step / _OCTAVE))


def step_of(noise: float) -> int:
    """The step of an f."""
    return round(_OCTAVE * math.log2(PLAIN / noise))


def step_of_square(units: float) -> float:
    """The step, not rounded, whose noise alone counts so many units."""
    return _OCTAVE * math.log2(PLAIN * math.sqrt(units))


def finest_step(fine: float, least: float) -> int:
    """The finest step whose noise counts at most `fine` and is at least `least`; the coarsest of a number if none."""
    wanted = step_of_square(min(fine, least**-2)) if fine > 0 else COARSEST_NUMBER
    return max(math.floor(wanted), COARSEST_NUMBER)
