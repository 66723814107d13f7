"""The half-width to expect of an answer, from public constants and what was released: no row is read."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.mechanisms.base import AimsInGroups, FollowsDeviation, at_coordinate, at_levels
from afresh.planning.groups import group_half_width
from afresh.queries.group import GroupMean
from afresh.queries.text import number
from afresh.results import show
from afresh.results.answer import Interval
from afresh.results.rules import within_ends

if TYPE_CHECKING:
    from collections.abc import Mapping

    from afresh.guard.desk import Desk
    from afresh.moments import Vector
    from afresh.queries.asked import Asked

_GROUPS = {0.5: "half", 0.1: "a tenth", 0.01: "a hundredth"}
"""Group sizes, as shares of the rows, that a price mentions if no share is given."""


def expected_half_width(
    desk: Desk, asked: Asked, mean: float, share: float, deviation: float | None, vector: Vector | None = None
) -> float:
    """Return the half-width of an answer with mean `mean` over this share of the rows, in its own units.

    A coordinate of a vector that is released at once has its own noise, which follows no deviation.
    """
    levels, (low, high) = asked.queries[-1].levels, asked.bounds
    unit = (mean - low) / (high - low)
    if deviation is not None and levels is not None:
        raise InvalidArgument(f"deviation = {deviation!r} is for a number; leave it out.")
    spread = None if deviation is None else check_deviation(deviation, unit, high - low) / (high - low)
    mechanism = at_levels(desk.plan.at(desk.coarseness(asked.precision, levels, asked.about)), levels)
    if vector is None and asked.rule == "group" and isinstance(mechanism, AimsInGroups):
        within = math.sqrt(unit * (1 - unit)) if spread is None else spread
        return group_half_width(mechanism, unit, share, within) * (high - low)
    released = desk.ledger.released(desk.terms)

    def reach(mean: float, spread: float | None) -> float:
        if vector is not None:
            return at_coordinate(desk.plan.mechanism, vector).half_width(mean)
        present = mechanism.present_half_width(mean, released)
        if spread is None or not isinstance(mechanism, FollowsDeviation):
            return present
        # Earlier failures make later claims wider, about numbers as well as shares.
        return mechanism.deviation_width(mean, spread) * present / mechanism.half_width(mean)

    def part(inside: float) -> Interval:
        """Of a number within a group, which is 0 outside of it, on all rows."""
        mean = share * inside
        squares = None if spread is None else share * (spread**2 + inside**2)
        width = reach(mean, None if squares is None else math.sqrt(max(squares - mean**2, 0.0)))
        return Interval(max(mean - width, 0.0), min(mean + width, 1.0))

    if len(asked.queries) > 1:
        return within_ends(part(unit), part(1 - unit)).half_width * (high - low)
    rows = share if isinstance(asked.queries[0], GroupMean) else 1.0  # widths scale with the root of the rows
    return min(reach(unit, spread) / math.sqrt(rows), 0.5) * (high - low)


def shares(share: float | None, *, grouped: bool) -> list[float]:
    """Return the share of rows a mean is expected to cover. A group's size cannot be looked up before paying."""
    if share is not None:
        return [check_share(share)]
    return list(_GROUPS) if grouped else [1.0]


def widths_in_words(widths: Mapping[float, float], at: str, share: float | None, *, grouped: bool, skips: bool) -> str:
    """Return the half-widths for some shares of the rows, and `at` what they are expected."""
    told = {each: f"±{show.width(width)}" for each, width in widths.items()}
    if share is not None and (grouped or skips):
        return f"{told[share]} {at}, over {show.percent(share)} of the rows"
    if grouped:
        first, *others = (f"{width} if {{}}{_GROUPS[each]}" for each, width in told.items())
        sizes = [first.format("the group has ") + " of the rows", *(each.format("") for each in others)]
        return f"{', '.join(sizes)}, {at}"
    (width,) = told.values()
    return f"{width} {at}" + (", if every row has the number" if skips else "")


def check_mean(mean: float | None, bounds: tuple[float, float]) -> float:
    """Return a number within the bounds of a question; their middle if none is given."""
    low, high = bounds
    if mean is None:
        return low / 2 + high / 2
    return checks.number("mean", mean, f"within the bounds ({number(low)}, {number(high)})", least=low, most=high)


def check_deviation(deviation: float, mean: float, scale: float) -> float:
    """Return a deviation, at most what a number with this mean, as a share of its range, can have."""
    most = math.sqrt(mean * (1 - mean)) * scale
    return checks.number("deviation", deviation, f"from 0 to {most:.4g} at this mean", least=0, most=most)


def check_share(share: float) -> float:
    """Return a share of the rows."""
    return checks.number("share", share, "the share of rows you expect, above 0 and at most 1", above=0, most=1)
