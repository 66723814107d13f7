"""An ask on 10,000 rows, ledger commits included, against a raw DuckDB query plus a raw SQLite commit (limit 3)."""

import contextlib
import itertools
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pandas as pd

import afresh
from benchmarks.table import written
from benchmarks.timing import side_by_side

CONDITION = "amount < {} AND country = 'CH'"


@contextlib.contextmanager
def _commits(path: Path) -> Iterator[Callable[[], None]]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY, text TEXT)")

    def commit() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO entries (text) VALUES (?)", ("x" * 200,))
        connection.execute("COMMIT")

    with contextlib.closing(connection):
        yield commit


def main(rows: int = 10_000, rounds: int = 300) -> None:
    fresh = map(CONDITION.format, itertools.count(1))
    with written(rows) as path, tempfile.TemporaryDirectory() as directory, duckdb.connect() as database:
        database.execute(f"CREATE TABLE data AS SELECT * FROM read_parquet('{path}')")

        def measure(where: str, data: object, source: str) -> None:
            sql = f"SELECT count(*), count_if({{}}) FROM {source}"
            with afresh.open(
                data, questions=20 * rounds + 30, ledger=Path(directory) / f"{where}.sqlite", allow_wide=True
            ) as guard:
                taken = side_by_side(
                    {
                        "ask": lambda: guard.ask(next(fresh)),
                        "query": lambda: database.execute(sql.format(next(fresh))).fetchall(),
                        "commit": commit,
                    },
                    rounds,
                )
            ask, query, raw = taken.values()
            print(f"  {where:<14}{1000 * ask:9.2f}{1000 * query:9.2f}{1000 * raw:9.2f}{ask / (query + raw):8.2f}")

        with _commits(Path(directory) / "raw.sqlite") as commit:
            print("                  ask, ms   DuckDB   commit   ratio")
            measure("on Parquet", path, f"read_parquet('{path}')")
            measure("in memory", pd.read_parquet(path), "data")


if __name__ == "__main__":
    main()
