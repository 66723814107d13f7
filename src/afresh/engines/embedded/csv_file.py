"""How a CSV file is read: nothing is guessed from its rows, so one row cannot change what another means.

The first line is the header. It alone determines the delimiter: a tab in a .tsv file, else whichever of comma,
semicolon, tab and bar occurs most often outside quotes, else a comma. Values may be quoted with ", and a quote inside
is doubled; there are no comments, and no line is skipped or padded. An empty value is NULL, a quoted empty one is an
empty text.

All values are read as text; then a column gets the first of these types whose grammar all its values satisfy:

- boolean: `true` or `false`, in any case;
- number: an optional sign, digits with an optional point, an optional exponent; or `nan`, `inf`, `infinity` in any
  case, which are NULL to every question. A zero followed by a digit is not a number: a column in which one code is
  written 007 is text, so its codes stay distinct. (A sign does not make a code: +41 is a number.)
- date: `YYYY-MM-DD`, or the form that `afresh.CSV(path, dates=...)` gives; a day that exists;
- timestamp: `YYYY-MM-DD HH:MM`, optionally with a T for the space, seconds, up to nine decimals of them, and `Z` or
  `+00:00` at the end; read as UTC, to the microsecond;
- text: anything else, and a column without any value.

So the types of a CSV file are determined from all its rows, once, when it is opened; from then on they are public. To
have types that do not depend on rows, use Parquet. For a file that has not changed since, types and the number of rows
are remembered with its identity, so only one parser reads it, once.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TextIO

import duckdb

from afresh import checks
from afresh.engines.sql.duckdb import quote_name, quote_text
from afresh.errors import DataError

_DELIMITERS = ",;\t|"
_BOOLEAN = "(?i)true|false"
_NUMBER = r"(?i)[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(nan|inf|infinity)"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = rf"{_DAY}[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,9}})?)?(Z|\+00(:?00)?)?"
_TEXT, _GIVEN = "text", "given"
_FIRST = 2000  # rows that rule types out before all rows are read for the types that are left
_CLOCK = datetime(2019, 11, 30, 23, 58, 57)  # no two of its numbers can be mistaken for each other


@dataclass(frozen=True)
class CSV:
    """A CSV file whose dates are not written as 2025-01-31: `afresh.open(afresh.CSV("orders.csv", dates="%m/%d/%Y"))`.

    Attributes:
        path: The file.
        dates: How days are written, as in Python's `strptime`: "%m/%d/%Y" or "%d.%m.%Y %H:%M". A column whose values
            all have this form holds dates, or times of days if the form has an hour.
    """

    path: str | os.PathLike[str]
    dates: str

    def __post_init__(self) -> None:
        """Refuse a form that does not determine a day."""
        try:
            found = datetime.strptime(_CLOCK.strftime(self.dates), self.dates)
        except (ValueError, TypeError, re.error):  # the last of a letter that is there twice
            found = datetime.min
        if found.date() != _CLOCK.date() or not self.dates.isprintable():
            raise checks.wrong("dates", self.dates, "the form of a day, such as '%m/%d/%Y' or '%d.%m.%Y'")

    @property
    def kind(self) -> _Kind:
        """The type of a column of such days."""
        read = f"try_strptime({{}}, {quote_text(self.dates)})"
        timed = any(f"%{letter}" in self.dates for letter in "HIMScXf")
        return _Kind(".*", (read if timed else f"CAST({read} AS DATE)").format, partial=True)


def read_header(path: Path) -> tuple[list[str], str]:
    """Return the names in the first line, and the delimiter it determines."""
    failed = False
    try:
        with _open(path) as file:
            line = file.readline()
            delimiter = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else _delimiter(line)
            names = next(csv.reader(chain([line], file), delimiter=delimiter, strict=True), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error):
        failed = True  # their messages quote the file, so the error is raised without them
    if failed:
        raise _malformed(path)
    if not names or not all(name.strip() for name in names):
        raise DataError(
            f"{path} has a column without a name; its first line must be the header and name every column "
            "(pandas writes a nameless index unless told index=False)"
        )
    if not all(name.isprintable() for name in names):
        raise DataError(f"{path} has a column name with a line break or control character; rename it")
    return names, delimiter


def load_csv(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    literal: str,
    names: list[str],
    delimiter: str,
    dates: CSV | None = None,
    known: object = None,
) -> list[object]:
    """Create the table `data` from a file, whose path is also given as an SQL literal.

    Returns what makes this faster next time, passed as `known`: the number of rows, and the type of every column.
    """
    types = _TYPES if dates is None else {_GIVEN: dates.kind, **_TYPES}
    read = _reading(path, literal, names, delimiter)
    if (again := _load_again(connection, read, names, types, known)) is not None:
        return again
    rows = _count(path, len(names), delimiter)
    found = None
    with contextlib.suppress(duckdb.Error):  # its message quotes rows: the error below must not carry it
        connection.execute(f"CREATE TABLE text AS SELECT * FROM {read}")
        found = connection.execute("SELECT count(*) FROM text").fetchone()
    if found != (rows,):
        raise _malformed(path)
    kinds = _kinds(connection, names, types)
    if dates is not None and _GIVEN not in kinds:
        raise DataError(
            f"no column of {path} has only values of the form {dates.dates!r}; look at one, or leave dates out"
        )
    if set(kinds) == {_TEXT}:
        connection.execute("ALTER TABLE text RENAME TO data")
    else:
        connection.execute(f"CREATE TABLE data AS SELECT {_selected(names, kinds, types)} FROM text")
        connection.execute("DROP TABLE text")
    return [rows, kinds]


def _load_again(
    connection: duckdb.DuckDBPyConnection, read: str, names: list[str], types: Mapping[str, _Kind], known: object
) -> list[object] | None:
    """Load a file whose rows were counted and typed before; None if the file does not match."""
    match known:
        case [int(rows), [*kinds]] if len(kinds) == len(names) and set(map(str, kinds)) <= types.keys():
            found, named = None, list(map(str, kinds))
            with contextlib.suppress(duckdb.Error):
                connection.execute(f"CREATE TABLE data AS SELECT {_selected(names, named, types)} FROM {read}")
                found = connection.execute("SELECT count(*) FROM data").fetchone()
            if found == (rows,):
                return [rows, named]
            connection.execute("DROP TABLE IF EXISTS data")
    return None


def _reading(path: Path, literal: str, names: list[str], delimiter: str) -> str:
    """Return SQL for the file's lines, with all values as text."""
    columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    compression = "gzip" if path.name.lower().endswith(".gz") else "none"
    # In parallel, DuckDB guesses whether a piece of the file begins inside quotes, and may guess wrong.
    return (
        f"read_csv({literal}, auto_detect = false, columns = {{{columns}}}, header = true, skip = 0, "
        f"delim = {quote_text(delimiter)}, "
        f"quote = '\"', escape = '\"', comment = '', nullstr = '', allow_quoted_nulls = false, strict_mode = true, "
        f"null_padding = false, ignore_errors = false, compression = '{compression}', parallel = false)"
    )


def _open(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _delimiter(line: str) -> str:
    """Return the most frequent delimiter outside quotes; the first of several, so a comma if there is none."""
    outside = "".join(line.split('"')[::2])
    return max(_DELIMITERS, key=outside.count)


def _count(path: Path, width: int, delimiter: str) -> int:
    """Return the number of rows, all as wide as the header.

    This is a second parser, because DuckDB's accepts what must not be accepted (an extra delimiter at the end, blank
    lines; it drops everything after an open quote), and to check its number of rows. It keeps one line at a time in
    memory.
    """
    widths: Counter[int] = Counter()
    with contextlib.suppress(OSError, EOFError, UnicodeDecodeError, csv.Error), _open(path) as file:
        widths.update(map(len, csv.reader(file, delimiter=delimiter, strict=True)))
        # a blank line is the one way to write NULL in a single column
        if set(widths) <= ({width} if width > 1 else {0, 1}):
            return widths.total() - 1  # less the header
    raise _malformed(path)


def _malformed(path: Path) -> DataError:
    return DataError(
        f"{path} is not a CSV file in UTF-8 whose lines all have as many values as its first line, the header; "
        'look for comments, blank lines, missing or extra delimiters, quotes (") that are not closed or doubled, '
        f"mixed line ends, values longer than {csv.field_size_limit()} characters, and other encodings; or use Parquet"
    )


def _selected(names: list[str], kinds: list[str], types: Mapping[str, _Kind]) -> str:
    """Return SQL for all columns, each in its type."""
    typed = [(quote_name(name), types[kind]) for name, kind in zip(names, kinds, strict=True)]
    return ", ".join(f"{kind.cast(name)} AS {name}" for name, kind in typed)


def _kinds(connection: duckdb.DuckDBPyConnection, names: list[str], types: Mapping[str, _Kind]) -> list[str]:
    """The type of every column, by its name among these."""
    candidates = {name: [kind for kind in types if kind != _TEXT] for name in names}
    for source in (f"(FROM text LIMIT {_FIRST})", "text"):
        left = [(name, kind) for name in names for kind in candidates[name]]
        # a column without any value can only be text, as the last scan finds
        quoted = [(quote_name(name), types[kind]) for name, kind in left]
        tests = [f"bool_and({kind.test(name)}) FILTER ({name} IS NOT NULL)" for name, kind in quoted]
        if not tests:
            break
        found = connection.execute(f"SELECT {', '.join(tests)} FROM {source}").fetchone() or ()
        keep = {True, None} if source != "text" else {True}
        candidates = {name: [] for name in names}
        for (name, kind), satisfied in zip(left, found, strict=True):
            if satisfied in keep:
                candidates[name].append(kind)
    return [(candidates[name] or [_TEXT])[0] for name in names]


def _moment(text: str) -> str:
    """Return SQL for the UTC timestamp that ISO text spells; NULL if there is no such day."""
    # A cast to TIMESTAMP drops digits beyond microseconds; Arrow's nanoseconds are rounded, so these are too.
    # Nanoseconds only reach from 1677 to 2262.
    exact = f"coalesce(CAST(TRY_CAST({text} AS TIMESTAMP_NS) AS TIMESTAMP), TRY_CAST({text} AS TIMESTAMP))"
    return f"CASE WHEN strlen({text}) > 26 THEN {exact} ELSE TRY_CAST({text} AS TIMESTAMP) END"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type: its grammar, SQL for its values, and whether the grammar admits invalid values (no such day)."""

    grammar: str
    cast: Callable[[str], str]
    partial: bool = False

    def test(self, value: str) -> str:
        """Return SQL for whether a value is of this type."""
        matches = f"regexp_full_match({value}, '{self.grammar}')"
        return f"CASE WHEN {matches} THEN ({self.cast(value)}) IS NOT NULL ELSE FALSE END" if self.partial else matches


_TYPES = {  # in the order they are tried
    "boolean": _Kind(_BOOLEAN, "CAST({} AS BOOLEAN)".format),
    "number": _Kind(_NUMBER, "CAST({} AS DOUBLE)".format),
    "date": _Kind(_DAY, "TRY_CAST({} AS DATE)".format, partial=True),
    "timestamp": _Kind(_TIMESTAMP, _moment, partial=True),
    _TEXT: _Kind(".*", str),
}
