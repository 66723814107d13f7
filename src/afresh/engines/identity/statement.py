"""The sums of a remote table's rows, as projections that its database computes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from afresh.engines.identity.cells import FIRST, FOURTH, LARGEST, LOW, MIDDLE, SECOND, SHIFT, SMALLEST, THIRD, row_key
from afresh.engines.identity.records import ColumnSums, Sums, counts
from afresh.engines.identity.texts import GRAMMARS, LONGEST, SAMPLE
from afresh.engines.sql.rendering import Dialect
from afresh.queries.tree import Type

_AT_ONCE = 100  # columns summed by one statement: each takes several places of its projections
_WHOLE = 2.0**53 - 1
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
        """The bits of a double that is finite and not small and whole, as a signed number."""
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
        """The first 63 bits of a text's MD5."""
        ...

    def matches(self, value: str, pattern: str) -> str:
        """Whether all of a text satisfies a grammar."""
        ...

    def read(self, value: str, spelt: str) -> str:
        """The double, or the moment, that a text spells."""
        ...

    def sums(self, value: str) -> list[str]:
        """Aggregates that `total` puts together to the sum of whole numbers below 2^63."""
        ...

    def total(self, found: Sequence[Any]) -> int:
        """The sum."""
        ...

    def seen(self, value: str) -> str:
        """The aggregate that sets a bit for the last six bits of each number."""
        ...


def sum_table(hashing: Hashing, dialect: Dialect, columns: Mapping[str, str], run: Run) -> Sums:
    """The sums of a table."""
    kept = {name: columns[name] for name in sorted(columns) if counts(name) and dialect.kind(columns[name])}
    spelt = _spelt(hashing, dialect, kept, run)
    table = [_Column(place, name, kept[name], spelt.get(name), dialect) for place, name in enumerate(kept)]
    pieces = [table[start : start + _AT_ONCE] for start in range(0, len(table), _AT_ONCE)]
    sums = Sums({column.name: ColumnSums(column.stored) for column in table})
    for piece in pieces:
        together = len(pieces) == 1
        steps = [*_hashes(hashing, piece, single=True), *([_rows(hashing, piece)] if together else [])]
        _take(hashing, sums, piece, list(run([*steps, _aggregates(hashing, piece, rows=together)])), together)
    if len(pieces) > 1:
        steps = [*_hashes(hashing, table, single=False), _rows(hashing, table, only=True)]
        count, *found = run([*steps, ["count(*)", *hashing.sums(_fold(hashing, "r"))]])
        sums.rows, sums.total = int(count), hashing.total(found) % 2**64
    return sums


class _Column:
    """A column, and the names of what is made of it: its value v, number x, word w, and hash, again w; z in single."""

    def __init__(self, place: int, name: str, physical: str, spelt: str | None, dialect: Dialect) -> None:
        kind = dialect.kind(physical)
        assert kind is not None
        self.place, self.name, self.spelt, self.kind = place, name, spelt, kind
        self.leaf, self.double = dialect.leaf(name, physical), dialect.double
        if spelt is not None:
            self.stored = "time" if spelt == "time" else "number"
        else:
            self.stored = {Type.TEXT: "text", Type.NUMBER: "number", Type.BOOLEAN: "number"}.get(kind, "time")
        self.single = self.stored == "number" and physical not in _SMALL and spelt != "boolean"
        self.ends = self.stored != "text"


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
    """Projections that give every column's exact hash w, those in single precision z, and its exact word e."""
    leaves = [f"{column.leaf} AS v{column.place}" for column in columns]
    values, singles, words, sums, shifted, hashes = [], [], [], [], [], []
    for column in columns:
        i, rounds = column.place, single and column.single
        singles.append(f"x{i}")
        if column.stored == "number":
            values.append(f"{_number(hashing, column)} AS x{i}")
            words.append(f"{_word(hashing, f'x{i}', column.double)} AS w{i}")
            if rounds:
                fits = f"abs(x{i}) BETWEEN {column.double(SMALLEST)} AND {column.double(LARGEST)}"
                rounded = f"(CASE WHEN {fits} THEN {hashing.single(f'x{i}')} ELSE x{i} END)"
                singles.append(f"{rounded} AS y{i}")
                words.append(f"{_word(hashing, f'y{i}', column.double)} AS z{i}")
        elif column.stored == "time":
            value = hashing.read(f"v{i}", "time") if column.spelt else f"v{i}"
            kind = Type.TIMESTAMP if column.spelt else column.kind
            values.append(f"{hashing.micros(value, kind)} AS x{i}")
            words.append(f"x{i} AS w{i}")
        else:
            values.append(f"{hashing.text(f'v{i}')} AS x{i}")
            words.append(f"x{i} AS w{i}")
        ends = [f"e{i}"] if single and column.ends else []
        if ends:
            sums.append(f"w{i} AS e{i}")
            shifted.append(f"e{i}")
            hashes.append(f"e{i}")
        for name in (f"w{i}", *([f"z{i}"] if rounds else [])):
            text = column.stored == "text"
            sums.append(name if text else f"{_spread(hashing, name)} AS {name}")
            shifted.append(name if text else f"{hashing.xor(name, hashing.right(name, SHIFT))} AS {name}")
            hashes.append(name if text else f"{_fold(hashing, name)} AS {name}")
    return [leaves, values, *([singles] if single else []), words, sums, shifted, hashes]


def _number(hashing: Hashing, column: _Column) -> str:
    this = f"v{column.place}"
    if column.spelt is not None:
        return hashing.read(this, column.spelt)
    if column.kind is Type.BOOLEAN:
        return f"(CASE WHEN {this} THEN {column.double(1.0)} WHEN NOT {this} THEN {column.double(0.0)} END)"
    return this


def _word(hashing: Hashing, value: str, double: Callable[[float], str]) -> str:
    """The word of a double; NULL if it is not finite."""
    small = f"abs({value}) <= {double(_WHOLE)} AND floor({value}) = {value}"
    finite = f"abs({value}) <= {double(sys.float_info.max)}"
    return f"(CASE WHEN {small} THEN {hashing.whole(value)} WHEN {finite} THEN {hashing.bits(value)} END)"


def _spread(hashing: Hashing, word: str) -> str:
    high = f"({hashing.right(word, 31)} & {2**33 - 1})"
    return f"(({word} & {LOW}) * {FIRST} + {high} * {SECOND})"


def _fold(hashing: Hashing, value: str) -> str:
    low = hashing.xor(f"({value} & {LOW})", str(THIRD))
    middle = hashing.xor(f"({hashing.right(value, MIDDLE)} & {LOW})", str(FOURTH))
    return hashing.xor(f"({low} * {middle})", value)


def _rows(hashing: Hashing, columns: Sequence[_Column], *, only: bool = False) -> list[str]:
    """The projection that adds r, of which a row's hash is made."""
    joined = ""
    for column in columns:
        cell = f"((coalesce(w{column.place}, 0) & {LOW}) * {row_key(column.name)})"
        joined = hashing.xor(joined, cell) if joined else cell
    names = [f"{letter}{column.place}" for column in columns for letter in _letters(column)]
    return [*([] if only else names), f"{joined} AS r"]


def _letters(column: _Column) -> list[str]:
    return ["w", *(["e"] if column.ends else []), *(["z"] if column.single else [])]


def _aggregates(hashing: Hashing, columns: Sequence[_Column], *, rows: bool) -> list[str]:
    outputs = ["count(*)", *(hashing.sums(_fold(hashing, "r")) if rows else [])]
    for column in columns:
        this = f"{'z' if column.single else 'w'}{column.place}"
        outputs += [*hashing.sums(this), hashing.seen(this)]
        if column.ends:
            outputs += [f"min(e{column.place})", f"max(e{column.place})"]
    return outputs


def _take(hashing: Hashing, sums: Sums, columns: Sequence[_Column], values: list[Any], rows: bool) -> None:
    width = len(hashing.sums("w"))
    sums.rows = int(values.pop(0))
    if rows:
        sums.total = hashing.total([values.pop(0) for _ in range(width)]) % 2**64
    for column in columns:
        found = sums.columns[column.name]
        found.total = hashing.total([values.pop(0) for _ in range(width)]) % 2**64
        found.seen = int(values.pop(0) or 0) % 2**64
        if column.ends:
            found.low, found.high = values.pop(0), values.pop(0)
