"""The identity of 10 columns against one full scan, a DuckDB query that aggregates each (limit 3); seconds."""

import time
from collections.abc import Callable

import duckdb
import polars as pl

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.identity import Identity
from benchmarks.table import ROWS, written
from benchmarks.timing import side_by_side


def main(rows: int = ROWS, rounds: int = 3) -> None:
    with written(rows) as path, duckdb.connect() as database:
        for where, data, source in (
            ("on Parquet", path, f"read_parquet('{path}')"),
            ("in memory", pl.read_parquet(path), "data"),
        ):
            if source == "data":
                database.execute(f"CREATE TABLE data AS SELECT * FROM read_parquet('{path}')")
            names = [row[0] for row in database.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
            scan = f"SELECT {', '.join(f'min({name}), max({name}), count({name})' for name in names)} FROM {source}"
            engine = EmbeddedEngine(data)
            works: dict[str, Callable[[], object]] = {
                "scan": lambda scan=scan: database.execute(scan).fetchall(),  # type: ignore[misc]
                "identity": lambda engine=engine: _again(engine),  # type: ignore[misc]
            }
            for what, clock in (("elapsed", time.perf_counter), ("processor", time.process_time)):
                taken = side_by_side(works, rounds, clock)
                print(
                    f"  {rows:,} rows {where:<11} {what:<10} scan {taken['scan']:6.2f}"
                    f"   identity {taken['identity']:6.2f}   ratio {taken['identity'] / taken['scan']:.2f}"
                )
            engine.close()


def _again(engine: EmbeddedEngine) -> Identity:
    engine._identity = None  # it is computed once
    return engine.identity()


if __name__ == "__main__":
    main()
