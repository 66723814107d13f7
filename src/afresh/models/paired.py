"""From released answers to the difference of two models: functions of only released numbers and public constants.

d in [-1, 1] is the loss of A minus the loss of B on one row. Each mechanism decides which one or two answers it is read
from, and how: `calibrated` by the second-moment certificate (section 7), exact moments by that of d alone (section 13),
the others from its two parts (section 10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from afresh.mechanisms.base import Heard
from afresh.results.answer import Interval

if TYPE_CHECKING:
    from afresh.planning.plan import Plan
    from afresh.results.reading import Reading


def read_difference(plan: Plan, *parts: Reading) -> tuple[float, Interval]:
    """Value and interval of the mean of d, on [-1, 1]."""
    value, ends = plan.mechanism.difference(*(_heard(plan, part) for part in parts))
    return value, Interval(*ends)


def _heard(plan: Plan, reading: Reading) -> Heard:
    entry, interval = reading.entry, reading.interval
    assert entry.outcome is not None
    released = entry.outcome.released
    return Heard(plan.of(entry), entry.number, released, reading.value, interval.low, interval.high)


def smallest_difference(plan: Plan, *parts: Reading) -> float:
    """Roughly the smallest mean of d that can be detected between models that differ as much as these, on [-1, 1]."""
    return resolution(plan, disagreement_of(plan, *parts), max(part.entry.coarseness for part in parts))


def disagreement_of(plan: Plan, *parts: Reading) -> float:
    """Roughly the mean of |d|, from what was released."""
    return plan.mechanism.disagreement(*(_heard(plan, part) for part in parts))


def resolution(plan: Plan, disagreement: float, coarseness: float = 1.0) -> float:
    """The half-width on the mean of d for two equally good models with 0/1 losses that differ on this share of rows.

    It needs only the plan, no data.
    """
    return plan.at(coarseness).difference_width(disagreement)
