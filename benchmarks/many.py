"""A hundred questions on Parquet in one `ask_many`, compared with a hundred asks."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import afresh
from benchmarks.measured import Measured, compared
from benchmarks.table import written

ROWS, LIMIT = 1_000_000, 0.5
_CONDITIONS = ("amount < {}", "age < 30 AND amount < {}", "country = 'CH' AND tenure < {}", "churned AND amount > {}")


def _questions(first: int, count: int) -> list[str]:
    return [_CONDITIONS[i % len(_CONDITIONS)].format(first + i) for i in range(count)]


def measure(rows: int = ROWS, count: int = 100) -> Iterator[Measured]:
    """Once."""
    with (
        written(rows) as path,
        tempfile.TemporaryDirectory() as directory,
        afresh.open(path, questions=10 * count, ledger=Path(directory) / "ledger.sqlite", allow_wide=True) as guard,
    ):
        guard.ask_many(_questions(5000, 4))  # imports what is imported on demand
        start = time.perf_counter()
        for question in _questions(10, count):
            guard.ask(question)
        middle = time.perf_counter()
        guard.ask_many(_questions(1000, count))
        end = time.perf_counter()
    yield compared(f"Parquet: one `ask_many` of {count}, to {count} asks", end - middle, middle - start, LIMIT)
