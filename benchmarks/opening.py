"""Opening a large Parquet file, the first and the second time, compared with one of 10,000 rows; reopening a CSV file.

A CSV file is copied, so its second opening reads all of it too, but only once and with one parser. The time DuckDB
takes to do that, given the types of the columns, is measured beside it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

import afresh
from benchmarks.measured import Measured, compared
from benchmarks.table import ROWS, written
from benchmarks.timing import side_by_side

FEW, LIMIT = 10_000, 1.3
CSV_ROWS, AGAIN = 1_000_000, 0.5


def measure(rows: int = ROWS, rounds: int = 5, csv_rows: int = CSV_ROWS) -> Iterator[Measured]:
    """The first opening of each, and then the second ones in turns."""
    with tempfile.TemporaryDirectory() as directory, written(FEW) as few, written(rows) as many:
        time.sleep(2.5)  # files that were just written are not remembered
        ledger = Path(directory) / "ledger.sqlite"
        first = {path: _timed(path, ledger) for path in (few, many)}
        works: dict[str, Callable[[], object]] = {
            "few": lambda: _again(few, ledger),
            "many": lambda: _again(many, ledger),
        }
        second = side_by_side(works, rounds)
    name = f"opening {rows:,} rows of Parquet, to {FEW:,}"
    yield compared(f"{name}: the first time", first[many], first[few])
    yield compared(f"{name}: the second time", second["many"], second["few"], LIMIT)
    with tempfile.TemporaryDirectory() as directory, written(csv_rows, "csv") as path:
        time.sleep(2.5)
        ledger = Path(directory) / "ledger.sqlite"
        before = time.process_time()
        _open(path, ledger)
        once = time.process_time() - before
        works = {"again": lambda: _again(path, ledger), "read": lambda: _read(path)}
        taken = side_by_side(works, 2, time.process_time)
    name = f"opening {csv_rows:,} rows of CSV"
    yield compared(f"{name} the second time, to the first", taken["again"], once, AGAIN)
    yield compared(f"{name} the second time, to reading it with known types", taken["again"], taken["read"])


def _timed(path: Path, ledger: Path) -> float:
    start = time.perf_counter()
    _open(path, ledger)
    return time.perf_counter() - start


def _open(path: Path, ledger: Path) -> None:
    afresh.open(path, 10, ledger=ledger, new_rows="the rows of another benchmark").close()


def _again(path: Path, ledger: Path) -> None:
    """As `afresh budget` does: with the plan in force."""
    afresh.open(path, ledger=ledger).close()


def _read(path: Path) -> None:
    """As one would write it by hand, of types that are known."""
    names = ["id", "age", "tenure", "amount", "score", "churned", "active", "country", "email", "joined"]
    kinds = [*["DOUBLE"] * 5, *["BOOLEAN"] * 2, *["VARCHAR"] * 2, "DATE"]
    with duckdb.connect() as database:
        types = ", ".join(f"'{name}': '{kind}'" for name, kind in zip(names, kinds, strict=True))
        read = f"read_csv('{path}', auto_detect = false, header = true, delim = ',', columns = {{{types}}})"
        database.execute(f"CREATE TABLE data AS SELECT * FROM {read}")
