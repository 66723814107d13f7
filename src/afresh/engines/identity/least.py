"""Finds the least number of every part of a sketch, on NumPy arrays; see `sketch`."""

from __future__ import annotations

import numpy as np

from afresh.engines.identity.cells import Words, fold
from afresh.engines.identity.sketch import BITS, FROM, NONE, PARTS, key_of

_UP, _DOWN = 64 - BITS - FROM, 64 - BITS


class Least:
    """The least number of every part, among the rows that were added."""

    def __init__(self, secret: str) -> None:
        """Start without rows."""
        self._key = key_of(secret)
        self.found = np.full(PARTS, NONE, np.uint64)

    @property
    def full(self) -> bool:
        """Whether every part has a row."""
        return bool(self.found.max() != NONE)

    def add(self, joined: Words, room: Words, spare: Words) -> None:
        """Add rows, given the joined hashes of their cells; `room` and `spare` are written to."""
        room[:] = joined
        fold(room, spare, *self._key)
        room <<= np.uint64(_UP)
        if self.full:  # almost no row of a large table is left after this to be compared with those of its part
            room = room[np.flatnonzero(room <= np.uint64(int(self.found.max()) << _DOWN | (2**_DOWN - 1)))]
        room >>= np.uint64(_DOWN)
        self.join(room)

    def join(self, numbers: Words) -> None:
        """Add rows, given their numbers."""
        parts = (numbers & np.uint64(PARTS - 1)).view(np.int64)
        less = numbers < self.found[parts]
        if less.any():
            np.minimum.at(self.found, parts[less], numbers[less])
