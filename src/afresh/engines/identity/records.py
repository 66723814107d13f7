"""What identifies rows, and which columns show that two tables hold the same rows."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from afresh.engines.identity.sketch import encode

# A column's digests distinguish tables only if other rows would hardly give the same digests by chance. The number of
# bits set in a 64-bit map, one bit per hash, is a lower bound on the number of distinct values. Two independent samples
# agree on the count of a value that both have with probability below 0.19 (Poisson, at the worst rate), and on 32
# counts with probability below 1e-22.
ENOUGH_VALUES = 32
# In row order a label needs only two values, but enough changes from one row to the next: 32 changes fix the places of
# at least 16 rows of 1000, which is one of C(1000, 16) > 1e34 ways.
ENOUGH_CHANGES = 32
MOST_CHANGES = 4096  # that are searched for a pattern

_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+")  # how pandas names an index in Parquet, and in CSV
STEPS = {"number": (1,), "time": (86_400, 3_600, 60, 1)}


def counts(name: str) -> bool:
    """Whether a column belongs to the data: an index that pandas stored does not."""
    return _INDEX.fullmatch(name) is None


@dataclass(frozen=True)
class ColumnDigest:
    """What identifies a column: the digest of its values in any order or, if that is not telling, in row order."""

    name: str
    unordered: str | None
    ordered: str | None


@dataclass(frozen=True)
class Identity:
    """The name of rows by their content. Not for publication: a ledger keys all digests with a secret."""

    rows: int
    fingerprint: str
    columns: tuple[ColumnDigest, ...]
    sketch: str = ""
    """Of the different rows, by the secret of one ledger: comparable with its others, and not to be shown."""


@dataclass
class ColumnSums:
    """What a scan finds about a column; `low` and `high` are the ends of its numbers, or of its times in seconds."""

    kind: str  # number, time or text
    total: int = 0
    seen: int = 0  # a bit for every hash, by six of its bits
    low: float | None = None
    high: float | None = None
    uneven: bool = False  # whether the numbers were seen not to count rows
    ordered: int | None = None
    changes: list[tuple[int, float]] = field(default_factory=list)  # the first in row order: distance to the last, jump

    @property
    def telling(self) -> bool:
        """Whether the values in any order are enough to identify the column: nothing else need be known."""
        return self.seen.bit_count() >= ENOUGH_VALUES and (self.kind == "text" or self.uneven)


@dataclass
class Sums:
    """What a scan finds about a table: columns by name, the number of rows, the sum of their hashes, their sketch."""

    columns: Mapping[str, ColumnSums]
    rows: int = 0
    total: int = 0
    least: Sequence[int] = ()


def identify(sums: Sums, version: str) -> Identity:
    """Return the identity of the rows that were summed."""
    named = sorted((name.lower(), column.total) for name, column in sums.columns.items())
    sealed = [version, sums.rows, sums.total, [[name, total] for name, total in named]]
    columns = tuple(
        ColumnDigest(name, values, None if values is not None else _ordered(column, sums.rows))
        for name, column in sorted(sums.columns.items())
        for values in [_unordered(column, sums.rows)]
    )
    return Identity(sums.rows, f"{version}:{_digest(sealed)}", columns, encode(sums.least))


def _digest(sealed: list[object]) -> str:
    return hashlib.sha256(json.dumps(sealed).encode()).hexdigest()


def _unordered(column: ColumnSums, rows: int) -> str | None:
    if column.seen.bit_count() < ENOUGH_VALUES or _numbers_rows(column, rows):
        return None
    return _digest(["values", rows, column.total])


def _ordered(column: ColumnSums, rows: int) -> str | None:
    if column.ordered is None or len(column.changes) < ENOUGH_CHANGES or _repeats(column.changes):
        return None
    return _digest(["order", rows, column.ordered])


def _numbers_rows(column: ColumnSums, rows: int) -> bool:
    """Whether the values are consecutive numbers, days, hours, minutes or seconds, each equally often.

    Unrelated tables have such columns in common: row numbers, calendars, the members of a panel.
    """
    if (
        column.uneven
        or column.low is None
        or column.high is None
        or not (column.low.is_integer() and column.high.is_integer())
    ):
        return False
    low, width = int(column.low), int(column.high) - int(column.low)
    for step in STEPS.get(column.kind, ()):
        many, rest = divmod(width, step)
        if rest == 0 and rows % (many + 1) == 0:
            return _sum_of_steps(low, step, many + 1, column.kind) * (rows // (many + 1)) % 2**64 == column.total
    return False


def _sum_of_steps(low: int, step: int, many: int, kind: str) -> int:
    import numpy as np

    from afresh.engines.identity.cells import hash_doubles, total
    from afresh.engines.identity.numbers import hash_numbers

    found, piece = 0, 2**16
    for start in range(0, many, piece):
        values = np.arange(start, min(start + piece, many), dtype=np.float64)
        values *= step
        values += low
        if kind == "number":
            hashes, _ = hash_numbers(values)
        else:
            hashes = np.empty(len(values), np.uint64)
            hash_doubles(values, hashes, np.empty_like(hashes))
        found += total(hashes)
    return found % 2**64


def _repeats(changes: list[tuple[int, float]]) -> bool:
    """Whether the changes of a column repeat themselves, like those of `i`, `i % 3` and `i // 100`."""
    events = changes[1:]  # the first change depends on where the rows begin
    # Knuth, Morris, Pratt: how long a prefix ends at each place; what is not matched at the end is the shortest period.
    ends, matched = [0] * len(events), 0
    for place in range(1, len(events)):
        while matched and events[place] != events[matched]:
            matched = ends[matched - 1]
        matched += events[place] == events[matched]
        ends[place] = matched
    return 2 * (len(events) - matched) <= len(events)
