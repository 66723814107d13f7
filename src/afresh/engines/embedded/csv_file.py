"""How a CSV file is read: nothing is guessed from its rows, so that one row cannot change what another means.

The first line is the header. It alone tells the delimiter: a tab in a .tsv file, else whichever of comma, semicolon,
tab and bar it has most of outside quotes, else a comma. Values may be quoted with ", a quote within is doubled; there
are no comments, and no line is skipped or padded. An empty value is NULL, a quoted empty one is an empty text.

All values are read as text; then a column gets the first of these types whose grammar every value it has satisfies:

- boolean: `true` or `false`, in any case;
- number: an optional sign, digits with an optional point, an optional exponent; or `nan`, `inf`, `infinity` in any
  case, which are NULL to every question. A zero followed by a digit is no number: a column in which one code is
  written 007 is text, so its codes stay apart. (A sign does not make a code: +41 is a number.)
- date: `YYYY-MM-DD`, a day there is;
- timestamp: `YYYY-MM-DD HH:MM`, with a T for the space if you like, seconds, up to nine decimals of them, and `Z` or
  `+00:00` at the end; read as UTC, to the microsecond;
- text: anything else, and a column without any value.

So the types of a CSV file are read off all its rows, once, when it is opened; from then on they are public. To have
types that do not depend on rows, use Parquet.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TextIO

import duckdb

from afresh.engines.sql.duckdb import quote_name, quote_text
from afresh.errors import DataError

_DELIMITERS = ",;\t|"
_BOOLEAN = "(?i)true|false"
_NUMBER = r"(?i)[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(nan|inf|infinity)"
_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIMESTAMP = rf"{_DAY}[ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{{1,9}})?)?(Z|\+00(:?00)?)?"
_FIRST = 2000  # rows that rule types out before all rows are read for what is left


def read_header(path: Path) -> tuple[list[str], str]:
    """The names in the first line, and the delimiter it tells."""
    failed = False
    try:
        with _open(path) as file:
            line = file.readline()
            delimiter = "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else _delimiter(line)
            names = next(csv.reader(chain([line], file), delimiter=delimiter, strict=True), [])
    except (OSError, EOFError, UnicodeDecodeError, csv.Error):
        failed = True  # what they say quotes the file, so the error is raised without it
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


def load_csv(connection: duckdb.DuckDBPyConnection, path: Path, literal: str, names: list[str], delimiter: str) -> None:
    """Create the table `data` of a file, whose path is given as an SQL literal too."""
    rows = _count(path, len(names), delimiter)
    columns = ", ".join(f"{quote_text(name)}: 'VARCHAR'" for name in names)
    compression = "gzip" if path.name.lower().endswith(".gz") else "none"
    # In parallel, DuckDB guesses whether a piece of the file begins within quotes, and may guess wrong.
    options = (
        f"auto_detect = false, columns = {{{columns}}}, header = true, skip = 0, delim = {quote_text(delimiter)}, "
        f"quote = '\"', escape = '\"', comment = '', nullstr = '', allow_quoted_nulls = false, strict_mode = true, "
        f"null_padding = false, ignore_errors = false, compression = '{compression}', parallel = false"
    )
    found = None
    with contextlib.suppress(duckdb.Error):  # its message quotes rows: the error below must not carry it
        connection.execute(f"CREATE TABLE text AS SELECT * FROM read_csv({literal}, {options})")
        found = connection.execute("SELECT count(*) FROM text").fetchone()
    if found != (rows,):
        raise _malformed(path)
    casts = _casts(connection, names)
    if not casts:
        connection.execute("ALTER TABLE text RENAME TO data")
        return
    selected = ", ".join(f"{casts.get(name, quote_name(name))} AS {quote_name(name)}" for name in names)
    connection.execute(f"CREATE TABLE data AS SELECT {selected} FROM text")
    connection.execute("DROP TABLE text")


def _open(path: Path) -> TextIO:
    if path.name.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _delimiter(line: str) -> str:
    """The most frequent one outside quotes; the first of several, so a comma if there is none."""
    outside = "".join(line.split('"')[::2])
    return max(_DELIMITERS, key=outside.count)


def _count(path: Path, width: int, delimiter: str) -> int:
    """The number of rows, all as wide as the header.

    A second parser, because DuckDB's forgives what must not be forgiven (a delimiter too many at the end, blank
    lines; it drops all that follows an open quote), and to hold its number of rows against. It keeps one line at a
    time in memory.
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


def _casts(connection: duckdb.DuckDBPyConnection, names: list[str]) -> dict[str, str]:
    """The SQL of the columns that are not text."""
    candidates = {name: list(_grammars(quote_name(name))) for name in names}
    for source in (f"(FROM text LIMIT {_FIRST})", "text"):
        left = [(name, test, cast) for name in names for test, cast in candidates[name]]
        # a column without any value has no type but text, which the last scan tells
        tests = [f"bool_and({test}) FILTER ({quote_name(name)} IS NOT NULL)" for name, test, _ in left]
        if not tests:
            break
        found = connection.execute(f"SELECT {', '.join(tests)} FROM {source}").fetchone() or ()
        keep = {True, None} if source != "text" else {True}
        candidates = {name: [] for name in names}
        for (name, test, cast), satisfied in zip(left, found, strict=True):
            if satisfied in keep:
                candidates[name].append((test, cast))
    return {name: grammars[0][1] for name, grammars in candidates.items() if grammars}


def _grammars(value: str) -> Iterator[tuple[str, str]]:
    """For every type but text: whether a value satisfies its grammar, and the value in that type."""
    yield f"regexp_full_match({value}, '{_BOOLEAN}')", f"CAST({value} AS BOOLEAN)"
    yield f"regexp_full_match({value}, '{_NUMBER}')", f"CAST({value} AS DOUBLE)"
    day = f"TRY_CAST({value} AS DATE)"
    yield f"CASE WHEN regexp_full_match({value}, '{_DAY}') THEN {day} IS NOT NULL ELSE FALSE END", day
    moment = _moment(value)
    yield f"CASE WHEN regexp_full_match({value}, '{_TIMESTAMP}') THEN ({moment}) IS NOT NULL ELSE FALSE END", moment


def _moment(text: str) -> str:
    """SQL of the UTC timestamp that ISO text spells, NULL if there is no such day."""
    # A cast to TIMESTAMP drops digits beyond microseconds; Arrow's nanoseconds are rounded, so these are.
    # Nanoseconds reach from 1677 to 2262 only.
    exact = f"coalesce(CAST(TRY_CAST({text} AS TIMESTAMP_NS) AS TIMESTAMP), TRY_CAST({text} AS TIMESTAMP))"
    return f"CASE WHEN strlen({text}) > 26 THEN {exact} ELSE TRY_CAST({text} AS TIMESTAMP) END"
