"""What released intervals say about the order of entries: pure functions, section 20 of the guarantees.

Every interval is a constraint on true means x: a score says low <= x_i <= high, a comparison low <= x_a - x_b <= high.
What follows for any two entries is the shortest path between them (a system of difference constraints), so that an
order can follow from a chain of comparisons that were never made directly. Smaller is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from afresh.boards.relation import Matrix, Relation, Thresholds, Undecided

CERTAIN = 1e-11
"""A share of the scale: an entry is ahead only by more than this, far more than the rounding of sums of ends."""
_HOPS = 12  # the most steps of a chain; ignoring longer ones claims less, never more
_BLOCK = 1 << 22  # numbers at once
_ALL = 1200  # up to this many entries, chains may pass through any of them
_ANCHORS = 24  # beyond that, through zero and the entries compared most often
_ZERO = -1  # the node of zero, whatever the number of entries


@dataclass(frozen=True, slots=True)
class Order:
    """What is certain about the order of m entries."""

    low: NDArray[np.float64]
    """The range of each mean: from its own score and from everything it was compared with."""
    high: NDArray[np.float64]
    better: NDArray[np.int64]
    """How many entries are certainly better than each."""
    worse: NDArray[np.int64]
    tiers: NDArray[np.int64]
    """1 for entries that none is certainly better than; otherwise one more than the last tier with a better one."""
    consistent: bool
    """Whether all intervals can hold at once; if not, at least one missed, and no order is certain."""
    separated: int
    """Pairs whose order is certain."""

    @property
    def places(self) -> list[tuple[int, int]]:
        """The best and worst places each entry may have."""
        count = len(self.better)
        return [(1 + int(b), count - int(w)) for b, w in zip(self.better, self.worse, strict=True)]


class Constraints:
    """The intervals of entries, as a graph: an edge from u to v of weight w says x_v - x_u <= w; one node is zero."""

    def __init__(self, count: int = 0, scale: float = 1.0) -> None:
        """Nothing is known yet."""
        self.count, self.scale = count, scale
        self._tails, self._heads, self._weights = list[int](), list[int](), list[float]()
        self._claims: list[tuple[int, int]] = []
        self._edges: tuple[int, NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]] | None = None
        self._known: tuple[tuple[int, int, int], Relation] | None = None

    def copy(self) -> Constraints:
        """The same, to be added to."""
        found = Constraints(self.count, self.scale)
        found._tails, found._heads, found._weights = list(self._tails), list(self._heads), list(self._weights)
        found._claims = list(self._claims)
        return found

    @property
    def _slack(self) -> float:
        return CERTAIN * self.scale

    def enter(self) -> int:
        """Add an entry and return its number."""
        self.count += 1
        return self.count - 1

    def score(self, entry: int, low: float, high: float) -> None:
        """Add that the mean of an entry lies between two ends.

        Args:
            entry: Its index, from 0.
            low: The lower end.
            high: The upper end.
        """
        self.difference(entry, _ZERO, low, high)

    def difference(self, a: int, b: int, low: float, high: float) -> None:
        """Add that the mean of one entry minus that of another lies between two ends.

        Args:
            a: The index of one entry, from 0.
            b: The index of the other.
            low: The lower end of mean a minus mean b.
            high: The upper end.
        """
        self._tails += (b, a)
        self._heads += (a, b)
        self._weights += (high, -low)

    def ahead(self, better: int, worse: int) -> None:
        """Add that one entry was certified to be better than another, and nothing else was released.

        Args:
            better: The index of the entry with the smaller mean, from 0.
            worse: The index of the other.
        """
        self._claims.append((better, worse))

    def around(self, entry: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bound the means of all entries minus that of one.

        Args:
            entry: The index of that entry, from 0.

        Returns:
            Lower and upper ends, one of each for every entry; infinite where nothing is known.
        """
        low = -self._reached([entry], backwards=True)[0][: self.count]
        high = self._reached([entry])[0][: self.count]
        return low, high

    def around_zero(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Bounds on the means themselves; infinite where nothing was released."""
        return self.around(_ZERO)

    def solve(self) -> Order:
        """Everything that follows from the constraints."""
        low, high = self.around_zero()
        relation = self.relation()
        better, worse = relation.counts()
        return Order(low, high, better, worse, relation.tiers(), relation.consistent, int(better.sum()))

    def relation(self) -> Relation:
        """Who is certainly better than whom; made once for what is known."""
        state = self.count, len(self._tails), len(self._claims)
        if self._known is None or self._known[0] != state:
            found = self._few() if self.count <= _ALL else self._many()
            self._known = state, found if found.consistent else Undecided(self.count)
        return self._known[1]

    def _few(self) -> Relation:
        """Chains pass through any entry."""
        count, claims = self.count, _transitive(self._claims)
        ahead = np.zeros((count, count), dtype=bool)
        size = max(_BLOCK // max(2 * len(self._tails), 1), 1)
        for first in range(0, count, size):
            rows = range(first, min(first + size, count))
            ahead[first : first + size] = self._reached(rows)[:, :count] < -self._slack
        for worse, better in claims.items():
            ahead[worse, list(better)] = True
        return Matrix(ahead)

    def _many(self) -> Relation:
        """Chains pass through zero and through those that most were compared with, or are direct."""
        tails, heads, weights = self._arrays()
        count = self.count
        degrees = np.bincount(tails, minlength=count + 1)[:count]
        anchors = [_ZERO, *np.argsort(-degrees, kind="stable")[: _ANCHORS - 1].tolist()]
        direct = (weights < -self._slack) & (tails < count) & (heads < count)
        claims = [(i, j) for j, ahead in _transitive(self._claims).items() for i in ahead]
        claimed = np.array(claims, dtype=np.int64).reshape(-1, 2)
        pairs = np.r_[heads[direct], claimed[:, 0]], np.r_[tails[direct], claimed[:, 1]]
        above, below = self._reached(anchors)[:, :count], self._reached(anchors, backwards=True)[:, :count]
        return Thresholds(above, below, self._slack, pairs)

    def _arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Tails, heads and weights of all edges; zero is the node after the last entry."""
        if self._edges is None or self._edges[0] != len(self._tails):
            made = np.array(self._tails, dtype=np.int64), np.array(self._heads, dtype=np.int64)
            self._edges = len(self._tails), *made, np.array(self._weights, dtype=np.float64)
        _, tails, heads, weights = self._edges
        return np.where(tails == _ZERO, self.count, tails), np.where(heads == _ZERO, self.count, heads), weights

    def _reached(self, sources: Sequence[int], *, backwards: bool = False) -> NDArray[np.float64]:
        """The most that x_v - x_u can be, u a source, for all v; backwards, the most that x_u - x_v can be."""
        nodes = self.count + 1
        reached = np.full((len(sources), nodes), np.inf)
        reached[np.arange(len(sources)), [self.count if each == _ZERO else each for each in sources]] = 0.0
        if not self._tails:
            return reached
        tails, heads, weights = self._arrays()
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


def _transitive(claims: Sequence[tuple[int, int]]) -> dict[int, set[int]]:
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
