"""The sums of a Postgres table's rows, by Postgres, whose own hashes they are made of."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from afresh.engines.identity.cells import (
    FOURTH,
    HALF,
    LARGEST,
    LONG,
    LOW,
    MISSING,
    SEED,
    SEEN,
    SHIFTS,
    SMALLEST,
    THIRD,
)
from afresh.engines.identity.records import ENOUGH_VALUES, ColumnSums, Sums
from afresh.engines.identity.spelling import AT_ONCE, Run, counted, kinds
from afresh.engines.identity.texts import SAMPLE
from afresh.engines.sql.rendering import Dialect, quoted
from afresh.errors import DataError
from afresh.queries.tree import Type

_SINGLE = 2.0**24  # whole numbers up to it are the same in single precision
_TYPES = {"boolean": "boolean", "number": "float8", "time": "timestamp"}
_WHOLE = ("smallint", "integer", "bigint")
_TEST = (1.5, 6915791730698959700)  # a number and its hash


def sum_table(dialect: Dialect, columns: Mapping[str, str], run: Run) -> Sums:
    """The sums of a table: one statement, after a glance at some rows; more for very many columns."""
    kept = counted(dialect, columns)
    hashed = kinds(dialect, kept, _matches, run)
    table = [_Column(place, name, kept[name], hashed[name], dialect) for place, name in enumerate(kept)]
    _check_hash(run)
    _glance(table, run)
    sums = Sums({column.name: column.sums for column in table})
    pieces = [table[start : start + AT_ONCE] for start in range(0, len(table), AT_ONCE)]
    for piece in pieces:
        outputs = [output for column in piece for output in column.outputs]
        if len(pieces) == 1:
            count, total, *found = run([*_row_layers(piece), ["count(*)", _ROWS, *outputs]])
        else:
            count, *found = run([*_layers(piece), ["count(*)", *outputs]])
        for column in piece:
            column.take(found)
    if len(pieces) > 1:
        count, total = run([*_row_layers(table, sums=False), ["count(*)", _ROWS]])
    sums.rows, sums.total = int(count), int(total) % 2**64
    return sums


class _Column:
    """A column, and the letters of what is made of it: h its hash, z that in single precision, x its number."""

    def __init__(self, place: int, name: str, physical: str, kind: str, dialect: Dialect) -> None:
        self.place, self.name, self.kind = place, name, kind
        leaf, spelt = dialect.leaf(name, physical), dialect.kind(physical) is Type.TEXT and kind != "text"
        self.wild = dialect.wild(physical)
        self.whole = physical in _WHOLE
        self.single = kind == "number" and physical != "smallint"
        self.ends = kind in ("number", "time")
        self.sums = ColumnSums("number" if kind == "boolean" else kind)
        self.value = _read(leaf, kind) if spelt else leaf
        if kind == "time":
            self.value = f"date_part('epoch', {self.value})"
        elif kind == "boolean" and spelt:
            self.value = f"({self.value})::boolean"

    @property
    def few(self) -> bool:
        """Whether it is still to be seen if the column has many values; a boolean one never has."""
        return self.kind != "boolean" and self.sums.seen.bit_count() < ENOUGH_VALUES

    @property
    def leaf(self) -> str:
        """The value; a name that tells what is worth computing once."""
        return f"{self.value} AS {self.named}"

    @property
    def named(self) -> str:
        return f"{'q' if self.whole or self.wild or self.kind == 'boolean' else 'v'}{self.place}"

    @property
    def exact(self) -> str:
        """The hash of the cell, as h."""
        this = self.named
        if self.kind == "boolean":
            hashed = f"CASE WHEN {this} THEN {_hash('1::float8')} WHEN NOT {this} THEN {SEED} END"
        elif self.kind == "text":
            hashed = (
                f"CASE WHEN octet_length({this}) > {LONG} THEN {_hash_text(f'md5({this})')} ELSE {_hash_text(this)} END"
            )
        else:
            hashed = self._finite(_hash(this))
        return f"{hashed} AS h{self.place}"

    @property
    def rounded(self) -> list[str]:
        """The hash of the cell in single precision, as z, where that may be another, and the number, as x."""
        this, found = self.named, []
        if self.single:
            fits = f"abs({this}) BETWEEN {SMALLEST!r}::float8 AND {LARGEST!r}::float8"
            if self.whole:
                fits = f"abs({this}) > {_SINGLE!r}::float8"
            single = f"CASE WHEN {fits} THEN {this}::float4::float8 ELSE {this} END"
            found.append(f"{self._finite(_hash(single))} AS z{self.place}")
        return [*found, *([f"{self._finite(this)} AS x{self.place}"] if self.ends else [])]

    @property
    def hash(self) -> str:
        """The name of the hash that is summed."""
        return f"{'z' if self.single else 'h'}{self.place}"

    @property
    def summed(self) -> list[str]:
        """The names of what `outputs` aggregates."""
        return [self.hash, *([f"x{self.place}"] if self.ends else [])]

    @property
    def seen(self) -> str:
        """The bits of six bits of each hash."""
        return f"bit_or(1::bigint << (({self.hash} >> {SEEN}) & 63)::int)"

    @property
    def outputs(self) -> list[str]:
        """The aggregates that `take` takes."""
        ends = [f"min(x{self.place})", f"max(x{self.place})"] if self.ends else []
        return [f"sum({self.hash})", *([self.seen] if self.few else []), *ends]

    def take(self, found: list[Any]) -> None:
        """Take what was found of the column from what is left."""
        self.sums.total = int(found.pop(0) or 0) % 2**64
        if self.few:
            self.sums.seen = int(found.pop(0) or 0) % 2**64
        if self.ends:
            self.sums.low, self.sums.high = found.pop(0), found.pop(0)

    def _finite(self, what: str) -> str:
        return f"CASE WHEN abs({self.named}) <= {sys.float_info.max!r}::float8 THEN {what} END" if self.wild else what


def _layers(columns: Sequence[_Column], *, sums: bool = True) -> list[list[str]]:
    """The values of columns, and their hashes."""
    hashes = [one for column in columns for one in (column.exact, *(column.rounded if sums else []))]
    return [[column.leaf for column in columns], hashes]


def _row_layers(columns: Sequence[_Column], *, sums: bool = True) -> list[list[str]]:
    """The same, and what the hashes of a row are joined to, as r."""
    kept = [name for column in columns for name in column.summed] if sums else []
    layers, groups = _layers(columns, sums=sums), []
    for start in range(0, len(columns), SHIFTS):
        cells = [f"(coalesce(h{start + i}, {MISSING}) >> {i})" for i in range(len(columns[start : start + SHIFTS]))]
        groups.append(" # ".join(cells))
    if len(groups) == 1:
        return [*layers, [*kept, f"{groups[0]} AS r"]]
    folded = " # ".join(f"({_fold(f'r{i}')} >> {i % SHIFTS})" for i in range(len(groups)))
    return [*layers, [*kept, *(f"{one} AS r{i}" for i, one in enumerate(groups))], [*kept, f"{folded} AS r"]]


def _fold(joined: str) -> str:
    return f"((({joined} & {LOW}) # {THIRD}) * (({joined} >> {HALF}) # {FOURTH}))"


def _glance(columns: Sequence[_Column], run: Run) -> None:
    """Look at some rows for columns of many values, and of numbers that are not whole.

    A bit for every value costs more than a column's sum, and only whole numbers can be those of rows.
    """
    for start in range(0, len(columns), AT_ONCE):
        part = columns[start : start + AT_ONCE]
        asked = [column.seen for column in part]
        asked += [f"bool_and(x{column.place} = trunc(x{column.place}))" for column in part if column.ends]
        found = list(run([*_layers(part), asked], SAMPLE))
        for column in part:
            column.sums.seen = int(found.pop(0) or 0) % 2**64
        for column in [column for column in part if column.ends]:
            column.ends = found.pop(0) is not False


def _check_hash(run: Run) -> None:
    """Refuse a server that hashes otherwise: one of a processor that puts the high bytes of numbers first."""
    number, known = _TEST
    if run([["1 AS one"], [f"max({_hash(f'{number!r}::float8')})"]], 1)[0] != known:
        raise DataError(
            "this Postgres server runs on a processor that stores numbers in another order of bytes, so its hashes are "
            "others; copy the table to a file and open that"
        )


def _hash(number: str) -> str:
    return f"hashfloat8extended({number}, {SEED})"


def _hash_text(text: str) -> str:
    return f'hashtextextended({text} COLLATE "C", {SEED})'


def _matches(value: str, pattern: str) -> str:
    return f"({value} ~ {quoted(f'^({pattern})$')})"


def _read(value: str, kind: str) -> str:
    """What a text spells; a number by way of NUMERIC: the grammar has no exponent that it or a double cannot hold."""
    return f"({value})::{_TYPES[kind]}"


_ROWS = f"sum({_fold('r')})"
