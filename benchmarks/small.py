"""An ask on 10,000 rows, including its durable commits, compared with a raw DuckDB query and a raw SQLite commit."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

import afresh
from benchmarks.measured import Measured, compared, ms
from benchmarks.table import written
from benchmarks.timing import side_by_side

LIMIT = 3.0
ALIKE: Any = {"method": "stabilized", "allow_wide": True}  # of all rows, which hand-written queries read too
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


def measure(rows: int = 10_000, rounds: int = 300) -> Iterator[Measured]:
    """On a file and in memory."""
    fresh = map(CONDITION.format, itertools.count(1))
    with written(rows) as path, tempfile.TemporaryDirectory() as directory, duckdb.connect() as database:
        database.execute(f"CREATE TABLE data AS SELECT * FROM read_parquet('{path}')")

        def compare(where: str, data: object, source: str) -> Measured:
            sql = f"SELECT count(*), count_if({{}}) FROM {source}"
            ledger = Path(directory) / f"{where}.sqlite"
            with afresh.open(data, 20 * rounds + 30, ledger=ledger, **ALIKE) as guard:
                works: dict[str, Callable[[], object]] = {
                    "ask": lambda: guard.ask(next(fresh)),
                    "query": lambda: database.execute(sql.format(next(fresh))).fetchall(),
                    "commit": commit,
                }
                ask, query, raw = side_by_side(works, rounds).values()
            name = f"{where}, {rows:,} rows: an ask to a query and a commit"
            return compared(name, ask, query + raw, LIMIT, f"the commit {ms(raw)}")

        with _commits(Path(directory) / "raw.sqlite") as commit:
            yield compare("Parquet", path, f"read_parquet('{path}')")
            yield compare("in memory", pd.read_parquet(path), "data")
