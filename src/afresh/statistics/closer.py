"""What would have told more where a statistic of spread says little: from public constants and released numbers alone.

Answers about squares and products follow the bounds. A released mean square, however noisy, shows whether numbers lie
much closer together than their bounds do; then bounds that are found first make the interval narrower. How narrow, is
computed for numbers with a bell curve, in units of the largest distance from the mean that the bounds allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from afresh.mechanisms.base import FollowsDeviation, Mechanism, NeverEnds, at_levels
from afresh.planning.ways import would_tell
from afresh.results.answer import NARROW, WIDE, Answer
from afresh.results.reading import Number

WITHIN = 3.0
"""The number of standard deviations that is suggested: 99.7 of 100 numbers of a bell curve lie within."""
PER_DISTANCE = 1.2533
"""The standard deviation of a bell curve, for a mean distance of 1 from its middle."""
_WORTH, _WORTH_TRYING = 0.8, 0.95  # of the width without it, which is only estimated; the second if that says nothing
_ROUNDED = 1.1  # bounds are found approximately, and rounded outward
_NONE = 1e-9  # a spread that nothing can be closer to
_Width = Callable[[float, float], float]


def shown_spread(square: Number, most: float) -> float:
    """The standard deviation as a part of the farthest distance, from a mean square that is at most this.

    A square that drowns in noise is taken to be half of what it may be at most, as distances are.
    """
    return math.sqrt(min(max(square.value, square.high / 2) / most, 1.0))


def suggestion(
    answer: Answer, mechanism: Mechanism, spread: float, kind: str, unit: float, *, grouped: bool
) -> str | None:
    """What to ask instead of a statistic that says little; None if it says enough, or if nothing would be gained.

    `unit` is what the width is a multiple of. Within a group no width is predicted, as its share of rows is not known.
    """
    if not _says_little(answer, kind) or spread < _NONE:
        return None
    said = f"within={WITHIN:g} finds closer bounds first"
    narrower = f"{said}, which should make it narrower"
    if grouped:
        return narrower if WITHIN * spread <= _WORTH else None
    width = unit * clipped_width(_width_of(mechanism), spread, kind)
    if width > (_WORTH if answer.told else _WORTH_TRYING) * answer.interval.half_width:
        return None
    if isinstance(mechanism, NeverEnds):  # this is the width of a much later answer
        return narrower
    return f"{said}, and would give about ±{width:.2g} if these numbers have about a bell curve"


def other_plans(
    answer: Answer, mechanism: Mechanism, within: float, kind: str, unit: float, most: int
) -> tuple[str, ...]:
    """What would have made a statistic of clipped numbers narrow that says little; nothing if it says enough.

    Widths are those of bell curves between bounds that were found `within` so many deviations. It takes two rounds, and
    at most so many answers. It is for means over all rows: in a group, its share of them is not known.
    """
    scale = answer.bounds[1] - answer.bounds[0]
    if answer.interval.half_width <= WIDE * scale or isinstance(mechanism, NeverEnds):
        return ()

    def width(other: Mechanism) -> float:
        return _ROUNDED * unit * clipped_width(_width_of(other), 1 / within, kind, most=math.inf) / scale

    reach = max(answer.interval.half_width / scale, width(mechanism))  # an interval ends where its range does
    return would_tell(mechanism, float(f"{reach:.2g}"), NARROW, width, answers=most, steps=2)


def _says_little(answer: Answer, kind: str) -> bool:
    """Whether it covers much of its range or, where values are a small part of the range, may be zero."""
    low, high = answer.bounds
    may_be_zero = kind != "correlation" and answer.interval.low <= 0 <= answer.interval.high
    return may_be_zero or answer.interval.half_width > WIDE * (high - low)


def _width_of(mechanism: Mechanism) -> _Width:
    """The half-width of a number with this mean and deviation, on [0, 1]."""
    own = at_levels(mechanism, None)

    def width(mean: float, deviation: float) -> float:
        if isinstance(own, FollowsDeviation):
            return own.deviation_width(mean, min(deviation, math.sqrt(mean * (1 - mean))))
        return mechanism.half_width(mean)

    return width


def clipped_width(width: _Width, spread: float, kind: str, most: float = 1.0) -> float:
    """The half-width with bounds that are found first, for bell curves of this spread; `width` is that of a mean.

    That of a correlation is at most this.
    """
    distance = spread / PER_DISTANCE
    known = width(distance, math.sqrt(max(spread**2 - distance**2, 0.0)))
    reach = min(WITHIN * PER_DISTANCE * max(distance, (distance + known) / 2), 1.0)
    square = (spread / reach) ** 2  # the mean of u^2, u the distance as a part of the new reach
    match kind:
        case "correlation":  # u and w are independent: ((u + w)/2)^2 and ((u - w)/2)^2 have half that mean
            part = 2 * width(square / 2, math.sqrt(2) * square / 2) / square
            return min(part * (1 + part / 2), most)  # what it is divided by is uncertain as well
        case "covariance":  # the positive and the negative part of u w
            return 2 * reach**2 * width(square / math.pi, math.sqrt(0.5 - math.pi**-2) * square)
        case "variance":
            return reach**2 * width(square, math.sqrt(2) * square)
    return reach**2 * width(square, math.sqrt(2) * square) / (2 * spread)  # of a standard deviation
