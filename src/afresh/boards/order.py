"""What released intervals say about the order of entries: pure functions, section 20 of the guarantees.

Every interval is a constraint on true means x: a score says low <= x_i <= high, a comparison low <= x_a - x_b <= high.
What follows for any two entries is the shortest path between them (a system of difference constraints), so that an
order can follow from a chain of comparisons that were never made directly. Smaller is better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CERTAIN = 1e-11
"""Of the scale: an entry is ahead only by more than this, which is far more than sums of rounded ends are wrong by."""
_HOPS = 12  # steps of a chain; leaving out longer ones claims less, never more
_BLOCK = 1 << 22  # numbers at once
_ALL = 1200  # entries, up to which chains may pass through any of them
_ANCHORS = 24  # beyond, through zero and those that most were compared with

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Order:
    """What is certain about the order of m entries."""

    low: NDArray[np.float64]
    """Where each mean lies, at least: from its own score and from everything it was compared with."""
    high: NDArray[np.float64]
    better: NDArray[np.int64]
    """How many entries are certainly better than each."""
    worse: NDArray[np.int64]
    tiers: NDArray[np.int64]
    """1 for those that nobody is certainly better than; else one more than the last tier with a better one."""
    consistent: bool
    """Whether all intervals can hold at once; if not, one has missed, and nothing follows from contradictions."""
    separated: int
    """Pairs whose order is certain."""

    @property
    def places(self) -> list[tuple[int, int]]:
        """The best and the worst place that each entry may have."""
        count = len(self.better)
        return [(1 + int(b), count - int(w)) for b, w in zip(self.better, self.worse, strict=True)]


class Constraints:
    """The intervals of m entries, as a graph: an edge from u to v of weight w says x_v - x_u <= w; node m is zero."""

    def __init__(self, count: int, scale: float = 1.0) -> None:
        """Nothing is known yet."""
        self.count, self._slack = count, CERTAIN * scale
        self._tails, self._heads, self._weights = list[int](), list[int](), list[float]()
        self._claims: list[tuple[int, int]] = []

    def score(self, entry: int, low: float, high: float) -> None:
        """Say that the mean of an entry lies between two ends.

        Args:
            entry: Its place in the list of entries, from 0.
            low: The lower end.
            high: The upper end.
        """
        self.difference(entry, self.count, low, high)

    def difference(self, a: int, b: int, low: float, high: float) -> None:
        """Say that the mean of one entry minus that of another lies between two ends.

        Args:
            a: The one entry, from 0.
            b: The other.
            low: The lower end of mean a minus mean b.
            high: The upper end.
        """
        self._tails += (b, a)
        self._heads += (a, b)
        self._weights += (high, -low)

    def ahead(self, better: int, worse: int) -> None:
        """Say that one entry was certified to be better than another, and that nothing else was released.

        Args:
            better: The entry with the smaller mean, from 0.
            worse: The other.
        """
        self._claims.append((better, worse))

    def around(self, entry: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Tell what the means of all entries, minus that of one, lie between.

        Args:
            entry: The one entry, from 0.

        Returns:
            Lower and upper ends, one of each for every entry; infinite where nothing is known.
        """
        low = -self._reached([entry], backwards=True)[0][: self.count]
        high = self._reached([entry])[0][: self.count]
        return low, high

    def solve(self) -> Order:
        """All that follows."""
        count = self.count
        low, high = self.around_zero()
        better, worse, ahead_of = np.zeros(count, np.int64), np.zeros(count, np.int64), list[NDArray[np.uint8]]()
        consistent = True
        for first, ahead, sound in self._blocks():
            better[first : first + len(ahead)] = ahead.sum(axis=1)
            worse += ahead.sum(axis=0)
            ahead_of += list(np.packbits(ahead, axis=1))
            consistent &= sound
        tiers = _tiers(ahead_of, better, count)
        return Order(low, high, better, worse, tiers, consistent, int(better.sum()))

    def around_zero(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What the means themselves lie between; everything, where nothing was released."""
        return self.around(self.count)

    def _blocks(self) -> Iterable[tuple[int, Flags, bool]]:
        """For some entries at a time: the first of them, who is certainly better than each, and whether all agrees."""
        count = self.count
        claims = _transitive(self._claims, count)
        if count <= _ALL:
            size = max(_BLOCK // max(2 * len(self._tails), 1), 1)
            for first in range(0, count, size):
                rows = list(range(first, min(first + size, count)))
                found = self._reached(rows)[:, :count]
                back = -self._reached(rows, backwards=True)[:, :count]  # x_v - x_u >= back
                yield self._flagged(rows, found, back, claims)
            return
        degrees = np.bincount(np.array(self._tails, dtype=np.int64), minlength=count + 1)[:count]
        anchors = [count, *np.argsort(-degrees, kind="stable")[: _ANCHORS - 1].tolist()]
        high, low = self._reached(anchors)[:, :count], -self._reached(anchors, backwards=True)[:, :count]
        direct = self._direct()
        size = max(_BLOCK // count, 1)
        for first in range(0, count, size):
            rows = list(range(first, min(first + size, count)))
            # Through an anchor h: x_v - x_u = (x_v - x_h) - (x_u - x_h).
            found = np.full((len(rows), count), np.inf)
            back = np.full((len(rows), count), -np.inf)
            for most, least in zip(high, low, strict=True):
                with np.errstate(invalid="ignore"):  # what was never compared has no ends: inf - inf says nothing
                    np.fmin(found, most[None, :] - least[rows, None], out=found)
                    np.fmax(back, least[None, :] - most[rows, None], out=back)
            for place, row in enumerate(rows):
                for other, least, most in direct.get(row, ()):
                    found[place, other] = min(found[place, other], most)
                    back[place, other] = max(back[place, other], least)
            yield self._flagged(rows, found, back, claims)

    def _flagged(
        self, rows: Sequence[int], found: NDArray[np.float64], back: NDArray[np.float64], claims: dict[int, set[int]]
    ) -> tuple[int, Flags, bool]:
        ahead, behind = found < -self._slack, back > self._slack
        for place, row in enumerate(rows):
            ahead[place, list(claims.get(row, ()))] = True
            for other, better in claims.items() if claims else ():
                if row in better:
                    behind[place, other] = True
        own = np.arange(len(rows)), np.array(rows)
        sound = not (ahead[own].any() or behind[own].any() or (ahead & behind).any())
        ahead[own] = False
        return rows[0], ahead & ~behind, sound

    def _direct(self) -> dict[int, list[tuple[int, float, float]]]:
        found: dict[int, list[tuple[int, float, float]]] = {}
        for u, v, weight in zip(self._tails, self._heads, self._weights, strict=True):
            if u < self.count and v < self.count:
                found.setdefault(u, []).append((v, -np.inf, weight))
                found.setdefault(v, []).append((u, -weight, np.inf))
        return found

    def _reached(self, sources: Sequence[int], *, backwards: bool = False) -> NDArray[np.float64]:
        """The most that x_v - x_u can be, u a source, for all v; backwards, the most that x_u - x_v can be."""
        nodes = self.count + 1
        reached = np.full((len(sources), nodes), np.inf)
        reached[np.arange(len(sources)), list(sources)] = 0.0
        if not self._tails:
            return reached
        tails, heads = np.array(self._tails), np.array(self._heads)
        weights = np.array(self._weights)
        if backwards:
            tails, heads = heads, tails
        order = np.argsort(heads, kind="stable")
        tails, heads, weights = tails[order], heads[order], weights[order]
        starts = np.flatnonzero(np.r_[True, heads[1:] != heads[:-1]])
        for _ in range(_HOPS):
            through = np.minimum.reduceat(reached[:, tails] + weights, starts, axis=1)
            shorter = np.minimum(reached[:, heads[starts]], through)
            if np.array_equal(shorter, reached[:, heads[starts]]):
                break
            reached[:, heads[starts]] = shorter
        return reached


def _transitive(claims: Sequence[tuple[int, int]], count: int) -> dict[int, set[int]]:
    """Of every entry that was beaten, all that are better by certified steps."""
    direct: dict[int, set[int]] = {}
    for better, worse in claims:
        direct.setdefault(worse, set()).add(better)
    found: dict[int, set[int]] = {}
    for start in direct:
        seen: set[int] = set()
        waiting = list(direct[start])
        while waiting:
            each = waiting.pop()
            if each not in seen:
                seen.add(each)
                waiting += direct.get(each, ())
        found[start] = seen
    return found


def _tiers(ahead_of: Sequence[NDArray[np.uint8]], better: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Layers: whoever nobody is ahead of, then whoever only those are ahead of, and so on.

    Layer by layer, so that it ends whatever the relation is; in a circle, which only a miss can make, all share one.
    """
    tiers, waiting, tier = np.zeros(count, np.int64), better.copy(), 0
    left = np.ones(count, dtype=bool)
    while left.any():
        tier += 1
        chosen = np.flatnonzero(left & (waiting == 0))
        if len(chosen) == 0:
            chosen = np.flatnonzero(left)
        tiers[chosen], left[chosen] = tier, False
        gone = np.zeros(count, dtype=bool)
        gone[chosen] = True
        packed = np.packbits(gone)
        for each in np.flatnonzero(left).tolist():
            waiting[each] -= int(np.bitwise_count(ahead_of[each] & packed).sum())
    return tiers
