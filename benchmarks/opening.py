"""Opening a Parquet file of many rows, for the first and for the second time, to one of 10,000."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import afresh
from benchmarks.measured import Measured, compared
from benchmarks.table import ROWS, written
from benchmarks.timing import side_by_side

FEW, LIMIT = 10_000, 1.3


def measure(rows: int = ROWS, rounds: int = 5) -> Iterator[Measured]:
    """The first opening of each, and then the second ones in turns."""
    with tempfile.TemporaryDirectory() as directory, written(FEW) as few, written(rows) as many:
        time.sleep(2.5)  # files that were just written are not remembered
        ledger = Path(directory) / "ledger.sqlite"
        first = {path: _timed(path, ledger) for path in (few, many)}
        works = {"few": lambda: _open(few, ledger), "many": lambda: _open(many, ledger)}
        second = side_by_side(works, rounds)
    name = f"opening {rows:,} rows of Parquet, to {FEW:,}"
    yield compared(f"{name}: the first time", first[many], first[few])
    yield compared(f"{name}: the second time", second["many"], second["few"], LIMIT)


def _timed(path: Path, ledger: Path) -> float:
    start = time.perf_counter()
    _open(path, ledger)
    return time.perf_counter() - start


def _open(path: Path, ledger: Path) -> None:
    afresh.open(path, 10, ledger=ledger, new_rows="the rows of another benchmark").close()
