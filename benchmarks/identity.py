"""The identity of a table, compared with one full scan, a DuckDB query that aggregates each column; CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import duckdb
import polars as pl

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.identity import Identity
from afresh.engines.sql.engine import SqlEngine
from benchmarks.measured import Measured, compared
from benchmarks.table import MIXED, NUMBERS, ROWS, TEXTS, written
from benchmarks.timing import side_by_side

LIMIT = 3.0
TABLES = {"10 mixed columns": MIXED, "10 of numbers": NUMBERS, "3 of different texts": TEXTS}


def measure(rows: int = ROWS, rounds: int = 2) -> Iterator[Measured]:
    """Every table, on Parquet and in memory."""
    for kind, columns in TABLES.items():
        with written(rows, columns=columns) as path, duckdb.connect() as database:
            # or DuckDB would take what it can from the file's statistics and not read those columns at all
            database.execute("SET disabled_optimizers = 'statistics_propagation'")
            database.execute("SET enable_progress_bar = false")
            database.execute(f"CREATE TABLE data AS SELECT * FROM read_parquet('{path}')")
            sources: list[tuple[str, object, str]] = [
                ("Parquet", path, f"read_parquet('{path}')"),
                ("in memory", pl.read_parquet(path), "data"),
            ]
            for where, data, source in sources:
                yield _compare(f"{where}, {kind}: identity to a scan", database, source, data, rounds)


def _compare(name: str, database: duckdb.DuckDBPyConnection, source: str, data: object, rounds: int) -> Measured:
    names = [row[0] for row in database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
    scan = f"SELECT {', '.join(f'min({name}), max({name}), count({name})' for name in names)} FROM {source}"
    engine = EmbeddedEngine(data)
    works: dict[str, Callable[[], object]] = {
        "scan": lambda: database.execute(scan).fetchall(),
        "identity": lambda: again(engine),
    }
    taken = side_by_side(works, rounds, time.process_time)
    engine.close()
    return compared(name, taken["identity"], taken["scan"], LIMIT)


def again(engine: SqlEngine) -> Identity:
    """Compute it once more."""
    engine._identity = None
    return engine.identity()
