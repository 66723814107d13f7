"""Which entries a new one is compared with: public facts and released numbers decide, before anything is charged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

WORTH = 0.75
"""A comparison is worth its price if it would be narrower than this share of what is already known."""
LOOKED_AT = 20
"""Candidates whose disagreement with the entry is looked at, at most."""


def candidates(values: NDArray[np.float64], own: int, low: NDArray[np.float64], high: NDArray[np.float64]) -> list[int]:
    """The entries that cannot be told from a given one: the leader first, then by the distance of released values.

    `low` and `high` are what the means of all entries, minus that of this one, lie between.
    """
    open_ = (low <= 0) & (high >= 0) & np.isfinite(values)
    open_[own] = False
    others = np.where(np.arange(len(values)) == own, np.inf, np.where(np.isfinite(values), values, np.inf))
    leader = int(np.argmin(others)) if np.isfinite(others).any() else own
    near = [int(each) for each in np.argsort(np.abs(values - values[own]), kind="stable") if open_[each]]
    return ([leader] if leader in near else []) + [each for each in near if each != leader]


def worth(expected: float, low: float, high: float) -> bool:
    """Whether a comparison of this half-width would add to what is already known."""
    return expected < WORTH * (high - low) / 2


def round_pairs(new: int, again: int, allowance: int, left: int, against: int) -> list[tuple[int, int]]:
    """Whom to compare in a round of new entries, then of those that compete again: all pairs if it may take so many.

    Otherwise all with a few of the best so far, or of the new where there are none; and none if that is too much as
    well, for scores give places of their own.
    """
    count = new + again
    pairs = [(i, j) for i in range(count) for j in range(i)]
    if count + len(pairs) <= allowance:
        return pairs
    first = new if again else 0
    hubs = range(first, min(first + against, count))
    pairs = [(i, j) for j in hubs for i in range(count) if i != j and not (i in hubs and i < j)]
    return pairs if count + len(pairs) <= left else []
