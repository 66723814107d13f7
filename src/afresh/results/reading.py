"""From a ledger's records to what people read. Nothing is recomputed: what was released is what is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from afresh.results.answer import Interval

if TYPE_CHECKING:
    from afresh.ledger import Entry


class Number(NamedTuple):
    """A released number with the ends of its interval, on its own scale."""

    value: float
    low: float
    high: float


class Reading(NamedTuple):
    """A released number and its interval, on [0, 1]; `entry.new` is true if it has just been paid for."""

    entry: Entry
    value: float
    interval: Interval

    @property
    def own(self) -> Number:
        """The number on the scale of its question."""
        interval = self.interval.rescaled(self.entry.bounds)
        return Number(rescaled(self.value, self.entry.bounds, interval), interval.low, interval.high)


def read(entry: Entry) -> Reading:
    """The value and interval of an answered entry."""
    outcome = entry.outcome
    assert outcome is not None
    return Reading(entry, outcome.value, Interval(outcome.low, outcome.high))


def rescaled(value: float, bounds: tuple[float, float], interval: Interval) -> float:
    """Convert a value from [0, 1] to the scale of its question, kept inside its interval despite rounding."""
    return min(max(bounds[0] + (bounds[1] - bounds[0]) * value, interval.low), interval.high)
