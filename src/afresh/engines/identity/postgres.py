"""Sums a Postgres table's rows in Postgres, from its own hashes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
from afresh.engines.identity.least import Least
from afresh.engines.identity.numbers import (
    ABOVE,
    FACTORS,
    HIGHER,
    HUGE,
    LARGE,
    LEAST,
    MASK,
    REST,
    TINY,
    TO_LARGE,
    TO_SMALL,
    USUAL,
    hash_numbers,
)
from afresh.engines.identity.records import ENOUGH_VALUES, ColumnSums, Sums
from afresh.engines.identity.sketch import BITS, FROM, PARTS, key_of
from afresh.engines.identity.spelling import AT_ONCE, Run, counted, kinds
from afresh.engines.identity.texts import SAMPLE
from afresh.engines.sql.rendering import Dialect, quoted
from afresh.errors import DataError
from afresh.queries.tree import Type

_TYPES = {"boolean": "boolean", "number": "float8", "time": "timestamp"}
_WHOLE = ("smallint", "integer", "bigint")
_TEXTS = ("text", "character varying")
_TEST = (1.5, 6915791730698959700)  # a number and its hash
_CANDIDATES = 64 * PARTS  # rows of different hashes among which the least of every part nearly always are
_TRUE, _FALSE = (int(one) for one in hash_numbers(np.array([1.0, 0.0]))[0])


def sum_table(dialect: Dialect, columns: Mapping[str, str], run: Run, rows: int, key: str) -> Sums:
    """Return the sums of a table of so many rows: one statement, after a glance at some rows; more for many columns.

    If most rows repeat others, another one completes the sketch.
    """
    table = _columns(dialect, columns, run)
    _glance(table, run)
    sums, least = Sums({column.name: column.sums for column in table}), Least(key)
    number, below = _number(key), min(2**BITS, 2**BITS * _CANDIDATES // rows)
    of_rows = ["count(*)", _ROWS, f"array_agg({number}) FILTER (WHERE {number} < {below})"]
    pieces = [table[start : start + AT_ONCE] for start in range(0, len(table), AT_ONCE)]
    for piece in pieces:
        outputs = [output for column in piece for output in column.outputs]
        if len(pieces) == 1:
            count, total, numbers, *found = run([*_row_layers(piece), [*of_rows, *outputs]])
        else:
            found = list(run([*_layers(piece), outputs]))
        for column in piece:
            column.take(found)
    if len(pieces) > 1:
        count, total, numbers = run([*_row_layers(table, sums=False), of_rows])
    least.join(np.array(numbers or [], np.uint64))
    if below < 2**BITS and not least.full:
        layers = [*_row_layers(table, sums=False), [f"{number} AS k"], ["min(k) AS k"]]
        (numbers,) = run(layers, parts=(f"k & {PARTS - 1}", ["array_agg(k)"]))
        least.join(np.array(numbers, np.uint64))
    sums.rows, sums.total, sums.least = int(count), int(total) % 2**64, least.found.tolist()
    return sums


def row_hashes(dialect: Dialect, columns: Mapping[str, str], run: Run) -> list[list[str]]:
    """Return projections to the hash of every row, as h: those that `sum_table` sums."""
    table = _columns(dialect, columns, run)
    for column in table:
        column.ends = False
    return [*_row_layers(table, sums=False), [f"{_fold('r')} AS h"]]


def _columns(dialect: Dialect, columns: Mapping[str, str], run: Run) -> list[_Column]:
    kept = counted(dialect, columns)
    hashed = kinds(dialect, kept, _matches, run)
    _check_hash(run)
    return [_Column(place, name, kept[name], hashed[name], dialect) for place, name in enumerate(kept)]


class _Column:
    """A column, and the letters for what is made of it: h its hash, w what makes the hash exact, x its number.

    Before these, y is a number times the factor of its range, rounded to a whole; NULL if it is beyond all ranges.
    """

    def __init__(self, place: int, name: str, physical: str, kind: str, dialect: Dialect) -> None:
        self.place, self.name, self.kind = place, name, kind
        leaf, spelt = dialect.leaf(name, physical), dialect.kind(physical) is Type.TEXT and kind != "text"
        self.wild = dialect.wild(physical)
        self.whole = physical in _WHOLE
        self.few_digits = physical == "smallint"
        # values as cheap to compute again as to pass on
        self.plain = self.whole or self.wild or kind == "boolean" or (kind == "text" and physical in _TEXTS)
        self.number = kind == "number"
        self.ends = kind in ("number", "time")
        self.sums = ColumnSums("number" if kind == "boolean" else kind)
        self.value = _read(leaf, kind) if spelt else leaf
        if self.whole:
            self.value = self.value.removesuffix("::float8")  # the cast would be computed again wherever it is named
        elif kind == "time" and physical == "date":
            self.value = f"(({self.value}) - date '1970-01-01') * 86400::float8"
        elif kind == "time":
            self.value = f"date_part('epoch', {self.value})"
        elif kind == "boolean" and spelt:
            self.value = f"({self.value})::boolean"

    @property
    def few(self) -> bool:
        """Whether it is still unknown if the column has many values; a boolean column never does."""
        return self.kind != "boolean" and self.sums.seen.bit_count() < ENOUGH_VALUES

    @property
    def leaf(self) -> str:
        """The value under its name, which shows whether it should be computed only once."""
        return f"{self.value} AS {self.named}"

    @property
    def named(self) -> str:
        return f"{'q' if self.plain else 'v'}{self.place}"

    @property
    def single(self) -> str:
        """The number in single precision."""
        return f"{self.named}::float8::float4" if self.whole else f"{self.named}::float4"

    @property
    def scaled(self) -> list[str]:
        """The number and y; for a time its seconds, and for other kinds the hash."""
        this, single, y = self.named, self.single, f"y{self.place}"
        below, usual, above = map(_double, FACTORS)
        if not self.number:
            return [f"{this if self.kind == 'time' else self._hash_other()} AS h{self.place}"]
        large = f"WHEN abs({this}::float8) <= {_double(HUGE)} THEN ({single} * {above})::bigint"
        if self.few_digits:
            scaled = f"{this} * {USUAL}"
        elif self.whole:
            scaled = f"CASE WHEN {_within(this, LARGE)} THEN {this} * {USUAL} {large} END"
        else:
            small, usual = (f"THEN ({single} * {factor})::bigint" for factor in (below, usual))
            # most columns have one sign, so that is checked first
            scaled = (
                f"CASE WHEN {this} < {_double(TO_LARGE)} AND {this} >= {_double(TO_SMALL)} {usual} "
                f"WHEN {this} = 0 THEN 0 WHEN abs({this}) < {_double(TINY)} THEN NULL "
                f"WHEN abs({this}) < {_double(TO_SMALL)} {small} "
                f"WHEN abs({this}) < {_double(TO_LARGE)} {usual} {large} END"
            )
        return [f"{this} AS {this}", f"({scaled}) # {MASK} AS {y}"]

    @property
    def hashes(self) -> list[str]:
        """The hash as h, w, and the number as x if its ends are wanted."""
        if self.kind == "time":
            seconds = f"h{self.place}"
            return [f"{_hash(seconds)} AS h{self.place}", *([f"{seconds} AS x{self.place}"] if self.ends else [])]
        if not self.number:
            return [f"h{self.place}"]
        this, single, y = self.named, self.single, f"y{self.place}"
        product = f"({y} & {LOW}) * (({y} >> {HIGHER}) & {LOW})"
        found = [f"{x} AS x{self.place}" for x in [self._finite(this)] if self.ends]
        if self.few_digits:
            return [f"{product} AS h{self.place}", *found]
        fits = f"abs({this}::float8) BETWEEN {_double(SMALLEST)} AND {_double(LARGEST)}"
        extreme = self._finite(_hash(f"CASE WHEN {fits} THEN {single}::float8 ELSE {this} END"))
        rest = (
            f"(({this}::float8 - {single}) / ({single} + {_double(LEAST)}) * {_double(2.0**REST)})::bigint << {ABOVE}"
        )
        rest = f"CASE WHEN {y} IS NULL THEN {self._finite(_hash(this))} >> 1 ELSE {rest} END"
        if self.whole:
            rest = f"CASE WHEN {_within(this, LARGE)} THEN 0 ELSE {rest} END"
        return [f"coalesce({product}, {extreme}) AS h{self.place}", f"{rest} AS w{self.place}", *found]

    @property
    def exact(self) -> str:
        """The exact hash."""
        return f"h{self.place} # w{self.place}" if self.number and not self.few_digits else f"h{self.place}"

    def _hash_other(self) -> str:
        """The hash of a boolean or a text."""
        this = self.named
        if self.kind == "boolean":
            return f"CASE WHEN {this} THEN {_TRUE} WHEN NOT {this} THEN {_FALSE} END"
        long = f"octet_length({this}) > {LONG}"
        return f"CASE WHEN {long} THEN {_hash_text(f'md5({this})')} ELSE {_hash_text(this)} END"

    @property
    def hash(self) -> str:
        """The name of the hash that is summed."""
        return f"h{self.place}"

    @property
    def summed(self) -> list[str]:
        """The names of what `outputs` aggregates."""
        return [self.hash, *([f"x{self.place}"] if self.ends else [])]

    @property
    def seen(self) -> str:
        """The aggregate that sets a bit for six bits of each hash."""
        return f"bit_or(1::bigint << (({self.hash} >> {SEEN}) & 63)::int)"

    @property
    def outputs(self) -> list[str]:
        """The aggregates that `take` reads."""
        ends = [f"min(x{self.place})", f"max(x{self.place})"] if self.ends else []
        return [f"sum({self.hash})", *([self.seen] if self.few else []), *ends]

    def take(self, found: list[Any]) -> None:
        """Remove what was found about the column from the remaining results, and keep it."""
        self.sums.total = int(found.pop(0) or 0) % 2**64
        if self.few:
            self.sums.seen = int(found.pop(0) or 0) % 2**64
        if self.ends:
            self.sums.low, self.sums.high = (
                None if one is None else float(one) for one in (found.pop(0), found.pop(0))
            )

    def _finite(self, what: str) -> str:
        return f"CASE WHEN abs({self.named}) <= {sys.float_info.max!r}::float8 THEN {what} END" if self.wild else what


def _layers(columns: Sequence[_Column]) -> list[list[str]]:
    """Return the layers that compute the values of columns, and their hashes."""
    scaled = [one for column in columns for one in column.scaled]
    return [[column.leaf for column in columns], scaled, [one for column in columns for one in column.hashes]]


def _row_layers(columns: Sequence[_Column], *, sums: bool = True) -> list[list[str]]:
    """Return the same, and the joined hashes of a row, as r."""
    kept = [name for column in columns for name in column.summed] if sums else []
    layers, groups = _layers(columns), []
    for start in range(0, len(columns), SHIFTS):
        part = columns[start : start + SHIFTS]
        cells = [f"(coalesce({column.exact}, {MISSING}) >> {i})" for i, column in enumerate(part)]
        groups.append(" # ".join(cells))
    if len(groups) == 1:
        return [*layers, [*kept, f"{groups[0]} AS r"]]
    folded = " # ".join(f"({_fold(f'r{i}')} >> {i % SHIFTS})" for i in range(len(groups)))
    return [*layers, [*kept, *(f"{one} AS r{i}" for i, one in enumerate(groups))], [*kept, f"{folded} AS r"]]


def _fold(joined: str, low: int = THIRD, high: int = FOURTH) -> str:
    return f"((({joined} & {LOW}) # {low}) * (({joined} >> {HALF}) # {high}))"


def _number(key: str) -> str:
    """Return a row's number in a sketch by this key, from its joined hashes."""
    return f"(({_fold('r', *key_of(key))} >> {FROM}) & {2**BITS - 1})"


def _glance(columns: Sequence[_Column], run: Run) -> None:
    """Look at some rows for columns with many values, and with numbers that are not whole.

    A bit for every value costs more than a column's sum, and only whole numbers can be row numbers.
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
    """Refuse a server that hashes differently: one on a big-endian processor."""
    number, known = _TEST
    if run([["1 AS one"], [f"max({_hash(f'{number!r}::float8')})"]], 1)[0] != known:
        raise DataError(
            "this Postgres server runs on a processor that stores numbers in another order of bytes, so its hashes "
            "differ; copy the table to a file and open that"
        )


def _double(value: float) -> str:
    return f"{value!r}::float8"


def _within(number: str, size: float) -> str:
    return f"{number} < {int(size)} AND {number} > {-int(size)}"


def _hash(number: str) -> str:
    return f"hashfloat8extended({number}, {SEED})"


def _hash_text(text: str) -> str:
    return f'hashtextextended({text} COLLATE "C", {SEED})'


def _matches(value: str, pattern: str) -> str:
    return f"({value} ~ {quoted(f'^({pattern})$')})"


def _read(value: str, kind: str) -> str:
    """Return SQL for what a text spells; numbers go through NUMERIC, which holds every exponent the grammar allows."""
    return f"({value})::{_TYPES[kind]}"


_ROWS = f"sum({_fold('r')})"
