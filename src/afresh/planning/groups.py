"""How wide means of numbers within groups will be: one group at a time, or all at once. No row is read."""

from __future__ import annotations

import math
from functools import lru_cache

from afresh.mechanisms.base import AimsInGroups, Mechanism, at_coordinate, at_levels
from afresh.moments import Aim, Grouped, Vector
from afresh.planning.ways import CLEARLY, USUAL_DEVIATION
from afresh.results.answer import Interval
from afresh.results.rules import group_ends, within_ends
from afresh.theory.numbers import aim_in_group

_MEAN = 0.5


def group_half_width(mechanism: AimsInGroups, mean: float, share: float, deviation: float) -> float:
    """The half-width of a mean within a group of this share of the rows, if neither of its two answers has noise."""
    large, square = mechanism.large(share * mean, share), mean * mean + deviation * deviation
    aims, ends = [], []
    for second in (False, True):
        aim = Aim(*aim_in_group(share * mean, share, second=second, large=large))
        rows = 10**9  # of these, the given share is inside
        inside = round(share * rows)
        own = Grouped(rows, inside * mean, inside * square, inside, second).of(aim)
        reach = mechanism.deviation_width(own.mean, math.sqrt(own.variance))
        aims.append(aim)
        ends.append(Interval(max(own.mean - reach, 0.0), min(own.mean + reach, 1.0)))
    return group_ends((aims[0], aims[1]), *ends).half_width


@lru_cache(maxsize=256)
def narrower_one_by_one(mechanism: Mechanism, vector: Vector, groups: int) -> bool:
    """Whether the means of a number in this many groups are clearly narrower if each group is asked by itself.

    At once they cost less, but follow the number's bounds; by itself, each follows the standard deviation. Judged by
    the usual deviation and by groups of equal size.
    """
    own = at_levels(mechanism, None)
    if not isinstance(own, AimsInGroups):
        return False
    share = _MEAN / groups
    reach = at_coordinate(mechanism, vector).half_width(share)
    part = Interval(max(share - reach, 0.0), min(share + reach, 1.0))
    return group_half_width(own, _MEAN, 1 / groups, USUAL_DEVIATION) <= CLEARLY * within_ends(part, part).half_width
