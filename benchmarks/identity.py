"""The identity of a table against one full scan, a DuckDB query that aggregates each column (limit 3); seconds."""

import time
from collections.abc import Callable

import duckdb
import polars as pl

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.identity import Identity
from benchmarks.table import MIXED, NUMBERS, ROWS, TEXTS, written
from benchmarks.timing import side_by_side

TABLES = {"10 mixed columns": MIXED, "10 of numbers": NUMBERS, "3 of different texts": TEXTS}


def main(rows: int = ROWS, rounds: int = 3) -> None:
    for kind, columns in TABLES.items():
        with written(rows, columns=columns) as path, duckdb.connect() as database:
            # or DuckDB would take what it can from the file's statistics and not read those columns at all
            database.execute("SET disabled_optimizers = 'statistics_propagation'")
            database.execute("SET enable_progress_bar = false")
            for where, data, source in (
                ("on Parquet", path, f"read_parquet('{path}')"),
                ("in memory", pl.read_parquet(path), "data"),
            ):
                if source == "data":
                    database.execute(f"CREATE TABLE data AS SELECT * FROM read_parquet('{path}')")
                print(f"  {rows:,} rows of {kind}, {where}")
                _compare(database, source, data, rounds)


def _compare(database: duckdb.DuckDBPyConnection, source: str, data: object, rounds: int) -> None:
    names = [row[0] for row in database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
    scan = f"SELECT {', '.join(f'min({name}), max({name}), count({name})' for name in names)} FROM {source}"
    engine = EmbeddedEngine(data)
    works: dict[str, Callable[[], object]] = {
        "scan": lambda: database.execute(scan).fetchall(),
        "identity": lambda: _again(engine),
    }
    for what, clock in (("elapsed", time.perf_counter), ("processor", time.process_time)):
        taken = side_by_side(works, rounds, clock)
        ratio = taken["identity"] / taken["scan"]
        print(f"    {what:<10} scan {taken['scan']:6.2f}   identity {taken['identity']:6.2f}   ratio {ratio:.2f}")
    engine.close()


def _again(engine: EmbeddedEngine) -> Identity:
    engine._identity = None  # it is computed once
    return engine.identity()


if __name__ == "__main__":
    main()
