"""All rows, few symbols: what a tree of short answers costs (Theorem D, section 15).

Rows that release nothing but symbols (pass or fail, a winner's index, a bin) can be used again and again. What was
released so far is a path in a tree. Give every node of the tree a public weight such that the weights of all nodes that
certify something sum to at most 1; at a node of weight w, certify at failure probability beta w, that is at

    L = ln(1/beta) + ln(1/w)

nats. A union over nodes makes everything certified hold at once, because at a fixed node the question is fixed.
Weights are functions of the path alone (and of anything but these rows).

Three families of weights. `counted`: at most `most` steps, and at step j after f events a node weighs
w_f / (most C(j-1, f)) times the weights of the events' own symbols. `steady`: the same with a law of paths in place of
w_f / C(j-1, f), so that a caller of at most m of the steps has a share m / most of beta to itself. `gapped`: no limit
on steps; only events certify, and a path of gaps g_1, ..., g_f to the event at hand weighs
prod_i 1/(g_i (g_i + 1)) / (f (f + 1)).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from afresh.errors import InvalidArgument
from afresh.theory.exact import Values, lower_limit, upper_limit
from afresh.theory.paired import fewest_wins
from afresh.theory.special import ndtri

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


_OUTWARD = 1e-12  # covers the rounding of logarithms
_CHOOSE = 1e-8  # covers the rounding of log-gammas for up to a million steps


@dataclass(frozen=True, slots=True)
class Trail:
    """Everything that weights need from the past.

    `nats` is what the events' own symbols cost (an index of m costs ln m), `gap` the steps since the last event, and
    `gap_nats` what the gaps before it cost.
    """

    steps: int = 0
    events: int = 0
    nats: float = 0.0
    gap: int = 0
    gap_nats: float = 0.0

    def quiet(self) -> Trail:
        """The trail after a step that released the expected symbol: a check passed, or a challenger was rejected."""
        return Trail(self.steps + 1, self.events, self.nats, self.gap + 1, self.gap_nats)

    def event(self, nats: float = 0.0) -> Trail:
        """The trail after a step that released another symbol, one of e^nats."""
        if not nats >= 0:
            raise InvalidArgument(f"nats == {nats}, must be >= 0.")
        gap = self.gap + 1
        return Trail(self.steps + 1, self.events + 1, self.nats + nats, 0, self.gap_nats + math.log(gap * (gap + 1)))


def basel_weight(events: int) -> float:
    """w_f = 6/(pi^2 (f+1)^2), section 11's weights of the number of events."""
    return 6 / (math.pi * (_counted_events(events) + 1)) ** 2


def first_weight(events: int, none: float) -> float:
    """w_0 = `none` and w_f = (1 - none)/(f (f+1)): for checks that are expected to pass."""
    if not 0 < none < 1:
        raise InvalidArgument(f"none == {none}, must be in (0, 1).")
    f = _counted_events(events)
    return none if f == 0 else (1 - none) / (f * (f + 1))


def even_weight(steps: int) -> float:
    """w_f = 1/j at step j = steps + 1, whatever f (Laplace's rule): for events that are neither rare nor common."""
    return 1 / (_counted_events(steps) + 1)


def counted(trail: Trail, most: int, weight: float) -> float:
    """ln(1/w) of the node after `trail`: w = weight / (most C(j-1, f)) times the weights of the events' symbols.

    `weight` is w_f for the trail's number f of events, from one of the functions above.
    """
    if not 0 <= trail.events <= trail.steps < most:
        raise InvalidArgument(f"step {trail.steps + 1} of at most {most}, after {trail.events} events.")
    if not 0 < weight <= 1:
        raise InvalidArgument(f"weight == {weight}, must be in (0, 1].")
    return math.log(most) + _log_choose(trail.steps, trail.events) - math.log(weight) + trail.nats + _CHOOSE


def steady(trail: Trail, most: int, none: float, calm: float) -> float:
    """ln(1/w) of the node after `trail`: w = v/most times the weights of the events' symbols, v a law of paths.

    With probability `none` no step is an event; otherwise each is one with a probability drawn once from
    Beta(1, calm), so that v = none [f = 0] + (1 - none) calm f! Gamma(calm + j-1 - f)/Gamma(calm + j). A node's v is
    the sum of its children's: the weights of all nodes at which someone asks, m times at most, sum to m/most.
    """
    n, f = trail.steps, trail.events
    if not 0 <= f <= n < most:
        raise InvalidArgument(f"step {n + 1} of at most {most}, after {f} events.")
    if not (0 < none < 1 and calm >= 1):
        raise InvalidArgument(f"none == {none}, calm == {calm}: needs none in (0, 1) and calm >= 1.")
    mixed = math.log(calm) + math.lgamma(f + 1) + math.lgamma(calm + n - f) - math.lgamma(calm + n + 1)
    law = none + (1 - none) * math.exp(mixed) if f == 0 else 0.0
    log_law = math.log(law) if f == 0 else math.log(1 - none) + mixed
    return math.log(most) - log_law + trail.nats + _CHOOSE


def gapped(trail: Trail) -> float:
    """ln(1/w) of an event at the next step, where only events certify: prod_i 1/(g_i (g_i + 1)) / (f (f + 1)).

    The factor 1/(f (f+1)) is needed: the products alone sum to 1 for every number f of events, not over all.
    """
    gap, f = trail.gap + 1, trail.events + 1
    return trail.gap_nats + math.log(gap * (gap + 1)) + math.log(f * (f + 1)) + trail.nats


def level(failure: float, nats: float, sides: int = 1) -> float:
    """L = ln(sides/beta) + ln(1/w), from above: a limit on each side at e^-L misses with probability beta w."""
    if not 0 < failure < 1:
        raise InvalidArgument(f"failure == {failure}, must be in (0, 1).")
    if not nats >= 0 or sides not in (1, 2):
        raise InvalidArgument(f"nats == {nats}, sides == {sides}: needs nats >= 0 and one or two sides.")
    return (math.log(sides / failure) + nats) * (1 + _OUTWARD)


def claim_passes(low: float, high: float, least: float = -math.inf, most: float = math.inf) -> bool:
    """Whether [low, high], limits at L a side, lie within the claim [least, most].

    A claim that only says pass or fail needs no second side in L: a truth below `least` can pass only if `low` is
    wrong, one above `most` only if `high` is, and no truth is both.
    """
    return least <= low and high <= most


def smallest_gain(rows: int, differ: int, nats: float, margin: float = 0.0) -> float | None:
    """The smallest gain, in shares of rows, that is above the margin at L nats if `differ` rows differ, or None."""
    if not 0 <= differ <= rows:
        raise InvalidArgument(f"differ == {differ}, must be between 0 and the {rows} rows.")
    wins = fewest_wins(rows, differ, nats, margin)
    return None if wins is None else (2 * wins - differ) / rows


def detectable(
    values: Values, rows: int, nats: float, mean: float, deviation: float | None = None, *, power: float = 0.9
) -> float:
    """Roughly how far above a claim's lower end the truth must be for the claim to pass with this power.

    The distance from such a mean to its lower limit at L nats, plus the rows' own scatter (by a normal law).
    """
    if not 0 < power < 1:
        raise InvalidArgument(f"power == {power}, must be in (0, 1).")
    largest = 1 - mean * mean if values == "three-valued" else mean * (1 - mean)
    variance = largest if deviation is None else min(deviation**2, largest)
    second = variance + mean * mean
    second = max(second, abs(mean)) if values == "three-valued" else min(second, mean)
    low = float(lower_limit(values, rows, rows * mean, rows * second, nats))
    return mean - low + max(ndtri(power), 0.0) * math.sqrt(variance / rows)


def even_weights(batch: int) -> Floats:
    """1/m for each of m candidates."""
    return np.full(_counted_batch(batch), 1 / batch)


def ranked_weights(batch: int) -> Floats:
    """1/(rank H_m), in the order of the analyst's own ranking: a winner it expected costs little."""
    ranks = np.arange(1, _counted_batch(batch) + 1)
    weights: Floats = (1 / ranks) / (1 / ranks).sum()
    return weights


def winner_limits(total: float, rows: int, nats: float, weight: float, *, two_valued: bool) -> tuple[float, float]:
    """Both limits of the winner's mean, the highest of a batch, at e^-nats in all; `weight` is the winner's own.

    The lower one is a union over candidates: ln 2 + ln(1/weight) nats more. The upper one is at ln 2 more, without a
    union: if j is truly best, P_winner <= P_j <= hi(S_j) <= hi(S_winner). That needs a limit that increases with
    the score that picks the winner, so the sum alone may be used, never the sum of squares.
    """
    if not 0 < weight <= 1:
        raise InvalidArgument(f"weight == {weight}, must be in (0, 1].")
    values: Values = "two-valued" if two_valued else "nearly two-valued"
    side = nats + math.log(2)
    low = lower_limit(values, rows, total, total, side - math.log(weight))
    return float(low), float(upper_limit(values, rows, total, total, side))


def binned_winner_limits(
    index: int, bins: int, rows: int, nats: float, weight: float, *, two_valued: bool
) -> tuple[float, float]:
    """The same if only the bin floor(mean bins) of the winner's mean is released; the last bin is closed."""
    if not 0 <= index < bins:
        raise InvalidArgument(f"bin {index} of {bins}: must be between 0 and {bins - 1}.")
    left, right = rows * (index / bins) * (1 - _OUTWARD), min(rows * ((index + 1) / bins) * (1 + _OUTWARD), rows)
    low, _ = winner_limits(left, rows, nats, weight, two_valued=two_valued)
    _, high = winner_limits(right, rows, nats, weight, two_valued=two_valued)
    return low, high


def outer_cell(low: float, high: float, cells: int) -> tuple[int, int, float]:
    """An interval rounded outward to a grid of so many cells: its ends in cells, and ln(1/weight) of that symbol.

    A failed check may release this whatever its interval depends on. Weights: 1 over the number of steps for the left
    end, 1/(d (d+1)) for a width of d steps.
    """
    if not (0 <= low <= high <= 1 and cells >= 1):
        raise InvalidArgument(f"[{low}, {high}] in {cells} cells: needs 0 <= low <= high <= 1 and a cell.")
    first = min(int(low * cells), cells - 1)
    last = max(min(math.ceil(high * cells), cells), first + 1)
    width = last - first
    return first, last, math.log(cells) + math.log(width * (width + 1))


def cell_interval(first: int, last: int, cells: int) -> tuple[float, float]:
    """The interval that cells represent."""
    if not 0 <= first < last <= cells:
        raise InvalidArgument(f"a cell from {first} to {last} of {cells}: must be increasing and within them.")
    return max(first / cells - _OUTWARD, 0.0), min(last / cells + _OUTWARD, 1.0)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _counted_events(events: int) -> int:
    if not events >= 0:
        raise InvalidArgument(f"events == {events}, must be >= 0.")
    return events


def _counted_batch(batch: int) -> int:
    if not batch >= 1:
        raise InvalidArgument(f"batch == {batch}, must be >= 1.")
    return batch
