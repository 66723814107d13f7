"""From two released answers to the difference of two models: functions of released numbers and public constants alone.

d in [-1, 1] is the loss of A minus the loss of B on one row. Which two answers it is read from, and how, every
mechanism says itself: `calibrated` by the second-moment certificate (section 7), the others from its two parts
(section 10).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from afresh.mechanisms.base import Heard
from afresh.results.answer import Interval

if TYPE_CHECKING:
    from afresh.planning.plan import Plan
    from afresh.results.reading import Reading


def read_difference(plan: Plan, first: Reading, second: Reading | None = None) -> tuple[float, Interval]:
    """Value and interval of the mean of d, on [-1, 1]; from one answer where (d + 1)/2 is asked alone."""
    if second is None:
        return 2 * first.value - 1, Interval(2 * first.interval.low - 1, 2 * first.interval.high - 1)
    value, ends = plan.mechanism.difference(_heard(plan, first), _heard(plan, second))
    return value, Interval(*ends)


def _heard(plan: Plan, reading: Reading) -> Heard:
    entry, interval = reading.entry, reading.interval
    assert entry.outcome is not None
    released = entry.outcome.released
    return Heard(plan.at(entry.coarseness), entry.number, released, reading.value, interval.low, interval.high)


def smallest_difference(plan: Plan, first: Reading, second: Reading | None = None) -> float:
    """About the smallest mean of d that shows between models that differ as much as these, on [-1, 1]."""
    if second is None:
        assert first.entry.outcome is not None
        mechanism: Any = plan.mechanism
        return resolution(plan, mechanism.differing(first.entry.outcome.released))
    disagreement = plan.mechanism.disagreement(first.value, second.value)
    return resolution(plan, disagreement, max(first.entry.coarseness, second.entry.coarseness))


def resolution(plan: Plan, disagreement: float, coarseness: float = 1.0) -> float:
    """The half-width on the mean of d for two models with 0/1 losses that differ on this share of rows, equally good.

    It needs no data: only the plan.
    """
    return plan.at(coarseness).difference_width(disagreement)
