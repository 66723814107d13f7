"""The sums of a remote table's rows, as projections that its database computes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from afresh.engines.identity.cells import (
    FIRST,
    FOURTH,
    HALF,
    LARGEST,
    LOW,
    MISSING,
    SECOND,
    SEEN,
    SMALLEST,
    THIRD,
    TINY,
    WHOLE,
    row_keys,
)
from afresh.engines.identity.records import ENOUGH_VALUES, ColumnSums, Sums, counts
from afresh.engines.identity.texts import GRAMMARS, LONGEST, SAMPLE
from afresh.engines.sql.rendering import Dialect
from afresh.queries.tree import Type

_AT_ONCE = 100  # columns summed by one statement: each takes several places of its projections
_SINGLE = 2.0**24  # whole numbers up to it are the same in single precision
_NARROW = ("boolean", "smallint", "tinyint", "integer", "int")  # all of these are below 2^53
_SMALL = ("boolean", "smallint", "tinyint")  # single precision changes none of these

Run = Callable[..., tuple[Any, ...]]


class Hashing(Protocol):
    """What a database calls the operations of the arithmetic."""

    def xor(self, left: str, right: str) -> str:
        """Of two whole numbers."""
        ...

    def right(self, value: str, bits: int) -> str:
        """A whole number shifted to the right."""
        ...

    def bits(self, value: str) -> str:
        """The bits of a double that is finite and not 0, as a signed number."""
        ...

    def parts(self, value: str) -> str:
        """The sum of the whole part of a double and, in units of 2^-62, of the rest, as a signed number."""
        ...

    def whole(self, value: str) -> str:
        """A double that is small and whole, as a signed number."""
        ...

    def single(self, value: str) -> str:
        """A double of a size that fits, rounded to single precision."""
        ...

    def micros(self, value: str, kind: Type) -> str:
        """Microseconds since 1970 of a day or a moment."""
        ...

    def text(self, value: str) -> str:
        """The first 64 bits of a text's MD5, as a signed number."""
        ...

    def matches(self, value: str, pattern: str) -> str:
        """Whether all of a text satisfies a grammar."""
        ...

    def read(self, value: str, spelt: str) -> str:
        """The double, or the moment, that a text spells."""
        ...

    def sums(self, value: str) -> list[str]:
        """Aggregates that `total` puts together to the sum of signed numbers of 64 bits."""
        ...

    def total(self, found: Sequence[Any]) -> int:
        """The sum."""
        ...

    def seen(self, value: str) -> str:
        """The aggregate that sets a bit for the last six bits of each number."""
        ...


def sum_table(hashing: Hashing, dialect: Dialect, columns: Mapping[str, str], run: Run) -> Sums:
    """The sums of a table: one statement, after a glance at some rows; more for very many columns."""
    kept = {name: columns[name] for name in sorted(columns) if counts(name) and dialect.kind(columns[name])}
    spelt = _spelt(hashing, dialect, kept, run)
    table = [_Column(place, name, kept[name], spelt.get(name), dialect) for place, name in enumerate(kept)]
    pieces = [table[start : start + _AT_ONCE] for start in range(0, len(table), _AT_ONCE)]
    sums = Sums({column.name: ColumnSums(column.stored) for column in table})
    for piece in pieces:
        together = len(pieces) == 1
        _glance(hashing, sums, piece, run)
        steps = [*_hashes(hashing, piece, single=True), _rows(hashing, piece, rows=together)]
        few = [column for column in piece if _few(column, sums)]
        found = list(run([*steps, _aggregates(hashing, piece, few, rows=together)]))
        _take(hashing, sums, piece, few, found, together)
    if len(pieces) > 1:
        steps = [*_hashes(hashing, table, single=False), _rows(hashing, table, rows=True, only=True)]
        count, *found = run([*steps, ["count(*)", *_row_sums(hashing)]])
        sums.rows, sums.totals = int(count), _totals(hashing, found)
    return sums


def _glance(hashing: Hashing, sums: Sums, columns: Sequence[_Column], run: Run) -> None:
    """Look for columns of many values among some rows: a bit for every value is what costs most of a column's sums."""
    steps = [*_hashes(hashing, columns, single=True), _rows(hashing, columns, rows=False)]
    asked = [column for column in columns if _few(column, sums)]
    if asked:
        found = run([*steps, [_seen(hashing, column) for column in asked]], SAMPLE)
        for column, seen in zip(asked, found, strict=True):
            sums.columns[column.name].seen = int(seen or 0) % 2**64


def _few(column: _Column, sums: Sums) -> bool:
    """Whether it is still to be seen if a column has many values; a boolean one never has."""
    return not column.flag and sums.columns[column.name].seen.bit_count() < ENOUGH_VALUES


class _Column:
    """A column, and the letters of what is made of it.

    v its value, x its number, y that in single precision, e its word, u that of y, w and z what these are spread to.
    """

    def __init__(self, place: int, name: str, physical: str, spelt: str | None, dialect: Dialect) -> None:
        kind = dialect.kind(physical)
        assert kind is not None
        self.place, self.name, self.spelt, self.kind = place, name, spelt, kind
        self.leaf, self.double = dialect.leaf(name, physical), dialect.double
        if spelt is not None:
            self.stored = "time" if spelt == "time" else "number"
        else:
            self.stored = {Type.TEXT: "text", Type.NUMBER: "number", Type.BOOLEAN: "number"}.get(kind, "time")
        self.flag = kind is Type.BOOLEAN or spelt == "boolean"
        self.narrow = self.flag or physical in _NARROW
        self.single = self.stored == "number" and physical not in _SMALL and not self.flag
        self.ends = self.stored != "text" and not self.flag


def _spelt(hashing: Hashing, dialect: Dialect, columns: Mapping[str, str], run: Run) -> dict[str, str]:
    """What the texts of a column spell, if all spell the same."""
    left = {name: list(GRAMMARS) for name, physical in columns.items() if dialect.kind(physical) is Type.TEXT}
    for limit, keep in ((SAMPLE, (1, None)), (None, (1,))):
        tests = [(name, spelt) for name, spellings in left.items() for spelt in spellings]
        left = {}
        for start in range(0, len(tests), _AT_ONCE):
            part = tests[start : start + _AT_ONCE]
            names = sorted({name for name, _ in part})
            values = [f"{dialect.leaf(name, columns[name])} AS t{i}" for i, name in enumerate(names)]
            asked = []
            for name, spelt in part:
                this = f"t{names.index(name)}"
                test = f"char_length({this}) <= {LONGEST} AND {hashing.matches(this, GRAMMARS[spelt])}"
                asked.append(f"min(CASE WHEN {this} IS NULL THEN NULL WHEN {test} THEN 1 ELSE 0 END)")
            for (name, spelt), answer in zip(part, run([values, asked], limit), strict=True):
                if answer in keep:
                    left.setdefault(name, []).append(spelt)
    return {name: spellings[0] for name, spellings in left.items()}


def _hashes(hashing: Hashing, columns: Sequence[_Column], single: bool) -> list[list[str]]:
    """Projections that give every column's spread word w, that in single precision by u, and its exact word e."""
    leaves, numbers, words, spreads = [], [], [], []
    for column in columns:
        i, rounds = column.place, single and column.single
        leaves.append(f"{column.leaf} AS v{i}")
        if column.stored == "number":
            numbers.append(f"{_number(hashing, column)} AS x{i}")
            words.append(f"{_word(hashing, f'x{i}', column)} AS e{i}")
            if rounds:
                fits = f"abs(x{i}) BETWEEN {column.double(SMALLEST)} AND {column.double(LARGEST)}"
                if column.narrow:
                    fits = f"abs(x{i}) > {column.double(_SINGLE)}"
                words += [f"x{i}", f"(CASE WHEN {fits} THEN {hashing.single(f'x{i}')} ELSE x{i} END) AS y{i}"]
                rounded = _word(hashing, f"y{i}", column)
                spreads.append(f"(CASE WHEN x{i} = y{i} THEN e{i} ELSE {rounded} END) AS u{i}")
        elif column.stored == "time":
            value = hashing.read(f"v{i}", "time") if column.spelt else f"v{i}"
            kind = Type.TIMESTAMP if column.spelt else column.kind
            numbers.append(f"{hashing.micros(value, kind)} AS x{i}")
            words.append(f"x{i} AS e{i}")
        else:
            numbers.append(f"{hashing.text(f'v{i}')} AS x{i}")
            words.append(f"x{i} AS e{i}")
        spread = f"e{i}" if column.stored == "text" else _spread(hashing, f"e{i}", column)
        spreads += [f"{spread} AS w{i}", *([f"e{i}"] if column.ends or rounds else [])]
    return [leaves, numbers, words, spreads]


def _number(hashing: Hashing, column: _Column) -> str:
    this = f"v{column.place}"
    if column.spelt is not None:
        return hashing.read(this, column.spelt)
    if column.kind is Type.BOOLEAN:
        return f"(CASE WHEN {this} THEN {column.double(1.0)} WHEN NOT {this} THEN {column.double(0.0)} END)"
    return this


def _word(hashing: Hashing, value: str, column: _Column) -> str:
    """The word of a double; NULL if it is not finite."""
    if column.narrow:
        return hashing.whole(value)
    size, double = f"abs({value})", column.double
    plain = f"{size} < {double(WHOLE)} AND ({size} >= {double(TINY)} OR {value} = {double(0.0)})"
    finite = f"{size} <= {double(sys.float_info.max)}"
    return f"(CASE WHEN {plain} THEN {hashing.parts(value)} WHEN {finite} THEN {hashing.bits(value)} END)"


def _spread(hashing: Hashing, word: str, column: _Column) -> str:
    high = f"({hashing.right(word, 31)} & {2**33 - 1})"
    both = f"(({word} & {LOW}) * {FIRST} + {high} * {SECOND})"
    return f"(CASE WHEN {word} BETWEEN 0 AND {LOW} THEN {word} * {FIRST} ELSE {both} END)" if column.narrow else both


def _fold(hashing: Hashing, value: str) -> str:
    low = hashing.xor(f"({value} & {LOW})", str(THIRD))
    return f"({low} * {hashing.xor(hashing.right(value, HALF), str(FOURTH))})"


def _rows(hashing: Hashing, columns: Sequence[_Column], *, rows: bool, only: bool = False) -> list[str]:
    """The projection that adds r and s, of which a row's hashes are made, and z, if only a row's are not wanted."""
    low, high, names = "", "", []
    for column in columns:
        i, (low_key, high_key) = column.place, row_keys(column.name)
        first = f"coalesce((w{i} & {LOW}) * {low_key}, {(MISSING & LOW) * low_key})"
        second = f"coalesce({hashing.right(f'w{i}', HALF)} * {high_key}, {(MISSING >> HALF) * high_key})"
        low = hashing.xor(low, first) if low else first
        high = hashing.xor(high, second) if high else second
        same = f"(CASE WHEN u{i} = e{i} THEN w{i} ELSE {_spread(hashing, f'u{i}', column)} END)"
        names += [f"{same if column.single else f'w{i}'} AS z{i}", *([f"e{i}"] if column.ends else [])]
    return [*([] if only else names), *([f"{low} AS r", f"{high} AS s"] if rows else [])]


def _row_sums(hashing: Hashing) -> list[str]:
    return [one for name in ("r", "s") for one in hashing.sums(_fold(hashing, name))]


def _hash(hashing: Hashing, column: _Column) -> str:
    this = f"z{column.place}"
    return this if column.stored == "text" else _fold(hashing, this)


def _seen(hashing: Hashing, column: _Column) -> str:
    return hashing.seen(hashing.right(_hash(hashing, column), SEEN))


def _aggregates(hashing: Hashing, columns: Sequence[_Column], few: Sequence[_Column], *, rows: bool) -> list[str]:
    outputs = ["count(*)", *(_row_sums(hashing) if rows else [])]
    for column in columns:
        outputs += hashing.sums(_hash(hashing, column))
        if column in few:
            outputs.append(_seen(hashing, column))
        if column.ends:
            outputs += [f"min(e{column.place})", f"max(e{column.place})"]
    return outputs


def _totals(hashing: Hashing, found: Sequence[Any]) -> tuple[int, int]:
    width = len(hashing.sums("r"))
    return hashing.total(found[:width]) % 2**64, hashing.total(found[width:]) % 2**64


def _take(
    hashing: Hashing, sums: Sums, columns: Sequence[_Column], few: Sequence[_Column], values: list[Any], rows: bool
) -> None:
    width = len(hashing.sums("w"))
    sums.rows = int(values.pop(0))
    if rows:
        sums.totals = _totals(hashing, [values.pop(0) for _ in range(2 * width)])
    for column in columns:
        found = sums.columns[column.name]
        found.total = hashing.total([values.pop(0) for _ in range(width)]) % 2**64
        if column in few:
            found.seen = int(values.pop(0) or 0) % 2**64
        if column.ends:
            found.low, found.high = values.pop(0), values.pop(0)
