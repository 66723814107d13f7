"""From two released answers to the difference of two models: functions of released numbers and public constants alone.

d in [-1, 1] is the loss of A minus the loss of B on one row. `stabilized` and `split` ask for d+ = max(d, 0) and d- =
max(-d, 0), both small where the models seldom disagree (section 10). `calibrated` asks for phi = d^2 and psi =
(d + 1)/2 and uses the second-moment certificate (section 7), for which phi must have been released before psi.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from afresh.mechanisms.calibrated import Calibrated
from afresh.results.answer import Interval
from afresh.theory.second_moment import SecondMoment, sample_mean_range, truth_range

if TYPE_CHECKING:
    from afresh.planning.plan import Plan
    from afresh.results.reading import Reading


def of_parts(positive: Interval, negative: Interval) -> Interval:
    """The mean of d from the means of d+ and d-; all intervals hold at once, so this one does."""
    return Interval(positive.low - negative.high, positive.high - negative.low)


def certified(phi: tuple[Calibrated, float], psi: tuple[Calibrated, float]) -> Interval:
    """Section 7: the mean of d from the released numbers about d^2 and (d + 1)/2, each with its mechanism."""
    first, v = phi
    second = SecondMoment(sample=first.sample_mean_range(v)[1], truth=first.interval(v)[1])
    mechanism, w = psi
    noise = mechanism._quantile, mechanism.t, mechanism.T, mechanism.grid / 2
    low, high = truth_range(*sample_mean_range(w, second, *noise), second, mechanism._log_threshold / mechanism.rows)
    return Interval(2 * low - 1, 2 * high - 1)


def read_difference(plan: Plan, first: Reading, second: Reading) -> tuple[float, Interval]:
    """Value and interval of the mean of d, on [-1, 1]."""
    if plan.method != "calibrated":
        return first.value - second.value, of_parts(first.interval, second.interval)
    phi, psi = first.entry, second.entry
    interval = Interval(2 * second.interval.low - 1, 2 * second.interval.high - 1)
    if phi.number < psi.number:  # otherwise the first miss could be psi's, and phi's bound not be known to hold
        parts = []
        for entry in (phi, psi):
            mechanism = plan.at(entry.coarseness)
            assert isinstance(mechanism, Calibrated)
            assert entry.outcome is not None
            assert isinstance(entry.outcome.released, float)
            parts.append((mechanism, entry.outcome.released))
        interval = certified(*parts)
    return min(max(2 * second.value - 1, interval.low), interval.high), interval


def smallest_difference(plan: Plan, first: Reading, second: Reading) -> float:
    """About the smallest mean of d that shows between models that differ as much as these, on [-1, 1]."""
    disagreement = first.value if plan.method == "calibrated" else min(first.value + second.value, 1.0)
    return resolution(plan, disagreement, max(first.entry.coarseness, second.entry.coarseness))


def resolution(plan: Plan, disagreement: float, coarseness: float = 1.0) -> float:
    """The half-width on the mean of d for two models with 0/1 losses that differ on this share of rows, equally good.

    It needs no data: only the plan.
    """
    mechanism = plan.at(coarseness)
    if isinstance(mechanism, Calibrated):
        return certified((mechanism, disagreement), (mechanism, 0.5)).half_width
    return 2 * mechanism.half_width(disagreement / 2)
