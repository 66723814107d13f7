"""From what a ledger keeps to what people read: functions of released numbers and public constants alone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from afresh.answer import Interval, Record

if TYPE_CHECKING:
    from afresh.ledger import Entry
    from afresh.plan import Plan


class Reading(NamedTuple):
    """A released number and its interval, on [0, 1]; `entry.new` says whether it was paid for just now."""

    entry: Entry
    value: float
    interval: Interval


def read(plan: Plan, entry: Entry) -> Reading:
    """The value and interval of an answered entry."""
    mechanism, released = plan.at(entry.coarseness), entry.released
    assert released is not None
    binary = bool(json.loads(entry.detail)["binary"])
    with np.errstate(all="ignore"):  # what was paid for can be read whatever a process asked of numpy
        return Reading(entry, mechanism.value(released), Interval(*mechanism.interval(released, binary=binary)))


def record_of(plan: Plan, entry: Entry) -> Record:
    """An entry on the scale of its question."""
    low, high = json.loads(entry.detail)["bounds"]
    value, interval = None, None
    if entry.released is not None:
        _, unit, unit_interval = read(plan, entry)
        interval = unit_interval.rescaled((low, high))
        value = rescaled(unit, (low, high), interval)
    return Record(
        number=entry.number,
        question=entry.text,
        bounds=(low, high),
        value=value,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        charge=entry.charge,
        coarseness=entry.coarseness,
        analyst=entry.analyst,
        asked_at=entry.reserved_at.isoformat(),
        answered_at=None if entry.answered_at is None else entry.answered_at.isoformat(),
        digest=entry.digest,
    )


def rescaled(value: float, bounds: tuple[float, float], interval: Interval) -> float:
    """A value on [0, 1] on the scale of its question, kept inside its interval whatever the rounding."""
    return min(max(bounds[0] + (bounds[1] - bounds[0]) * value, interval.low), interval.high)
