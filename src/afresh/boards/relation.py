"""Who is certainly better than whom, of few entries and of many: pure functions, section 20 of the guarantees.

With few entries the relation is a matrix. With many it is a list of thresholds: through a node h, entry i is certainly
better than j if (the most that x_i - x_h can be) + (the most that x_h - x_j can be) < 0, so that who is better than j
is a prefix of all entries in the order of their first number. What places need is counted from prefixes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Numbers = NDArray[np.int64]
Limits = NDArray[np.float64]
_WORD = 64


class Relation(Protocol):
    """Certainly better: without circles."""

    @property
    def consistent(self) -> bool:
        """Whether all releases can hold at once, as far as this relation shows it."""
        ...

    def better(self, entry: int) -> Flags:
        """Who is certainly better than an entry."""
        ...

    def worse(self, entry: int) -> Flags:
        """Who is certainly worse."""
        ...

    def counts(self) -> tuple[Numbers, Numbers]:
        """How many are better than each entry, and how many worse."""
        ...

    def tiers(self) -> Numbers:
        """Layers: entries that none is better than, then entries that only those are better than, and so on."""
        ...


@dataclass(frozen=True, eq=False)
class Undecided:
    """Nobody is certainly better than anybody: the releases contradict each other."""

    count: int
    consistent = False

    def better(self, entry: int) -> Flags:
        """Nobody."""
        return np.zeros(self.count, dtype=bool)

    worse = better

    def counts(self) -> tuple[Numbers, Numbers]:
        """None of either."""
        return np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)

    def tiers(self) -> Numbers:
        """All share one."""
        return np.ones(self.count, np.int64)


class Matrix:
    """All pairs of few entries; `ahead[j, i]` says that i is better than j."""

    def __init__(self, ahead: Flags) -> None:
        """It contradicts itself if both orders of a pair would follow, or an entry would be better than itself."""
        self.consistent = not (ahead & ahead.T).any()
        self._ahead = ahead

    def better(self, entry: int) -> Flags:
        """Who is certainly better than an entry."""
        found: Flags = self._ahead[entry]
        return found

    def worse(self, entry: int) -> Flags:
        """Who is certainly worse."""
        found: Flags = self._ahead[:, entry]
        return found

    def counts(self) -> tuple[Numbers, Numbers]:
        """How many are better than each entry, and how many worse."""
        return self._ahead.sum(axis=1), self._ahead.sum(axis=0)

    def tiers(self) -> Numbers:
        """Layer by layer."""
        found, tier = np.zeros(len(self._ahead), np.int64), 0
        left, inner = np.arange(len(self._ahead)), self._ahead
        while len(left):
            tier += 1
            stay: Flags = np.logical_or.reduce(inner, axis=1)
            found[left[~stay]] = tier
            left, inner = left[stay], inner[np.ix_(stay, stay)]
        return found


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Many entries: what follows through some nodes, and what was said of pairs."""

    above: Limits
    """Of every node, the most that an entry's mean minus the node's can be."""
    below: Limits
    """Of every node, the most that the node's mean minus an entry's can be."""
    slack: float
    pairs: tuple[Numbers, Numbers]
    """Pairs that were ordered directly: the better ones, and the worse."""

    @property
    def count(self) -> int:
        """How many entries."""
        return len(self.above[0])

    @property
    def consistent(self) -> bool:
        """Whether there is no circle."""
        return self._layers is not None

    def better(self, entry: int) -> Flags:
        """Who is certainly better than an entry."""
        found: Flags = np.logical_or.reduce(self.above + self.below[:, entry, None] < -self.slack, axis=0)
        found[self.pairs[0][self.pairs[1] == entry]] = True
        return found

    def worse(self, entry: int) -> Flags:
        """Who is certainly worse."""
        found: Flags = np.logical_or.reduce(self.below + self.above[:, entry, None] < -self.slack, axis=0)
        found[self.pairs[1][self.pairs[0] == entry]] = True
        return found

    def counts(self) -> tuple[Numbers, Numbers]:
        """How many are better than each entry, and how many worse: unions of prefixes, as sets of bits."""
        count = self.count
        words = -(-count // _WORD)
        union = np.zeros((count, words), np.uint64)
        for above, below in zip(self.above, self.below, strict=True):
            order = np.argsort(above, kind="stable")
            prefixes = np.zeros((count + 1, words), np.uint64)
            prefixes[np.arange(1, count + 1), order // _WORD] = _bit(order)
            np.bitwise_or.accumulate(prefixes, axis=0, out=prefixes)
            union |= prefixes[np.searchsorted(above[order], -self.slack - below, side="left")]
        better, worse = self.pairs
        np.bitwise_or.at(union, (worse, better // _WORD), _bit(better))
        found = np.bitwise_count(union).sum(axis=1, dtype=np.int64)
        behind = np.zeros(words * _WORD, np.int64)
        for first in range(0, count, 1000):  # some rows at a time, for a bit becomes a byte
            bits = np.unpackbits(union[first : first + 1000].view(np.uint8), axis=1, bitorder="little")
            behind += bits.sum(axis=0, dtype=np.int64)
        return found, behind[:count]

    def tiers(self) -> Numbers:
        """Layers of a relation without circles."""
        assert self._layers is not None
        return self._layers

    @cached_property
    def _layers(self) -> Numbers | None:
        """Layer by layer; None if it comes to a circle. Whom nobody that is left is better than, is the next layer."""
        if (self.above + self.below < -self.slack).any():
            return None
        found, left, tier = np.zeros(self.count, np.int64), np.arange(self.count), 0
        above, below, (better, worse) = self.above, self.below, self.pairs
        while len(left):
            tier += 1
            stay: Flags = np.logical_or.reduce(above.min(axis=1)[:, None] + below < -self.slack, axis=0)
            stay[np.searchsorted(left, worse)] = True
            if stay.all():
                return None
            found[left[~stay]] = tier
            left, above, below = left[stay], above[:, stay], below[:, stay]
            kept = np.isin(better, left)
            better, worse = better[kept], worse[kept]
        return found


def _bit(places: Numbers) -> NDArray[np.uint64]:
    return np.uint64(1) << (places % _WORD).astype(np.uint64)
