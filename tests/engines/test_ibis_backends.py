"""Other Ibis backends: their tables are copied once and then take the suite's smoke part."""

from __future__ import annotations

import contextlib
import sqlite3
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pytest

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.open import open_engine
from afresh.errors import DataError
from engines.conformance import check_generated, check_mistaken
from engines.nasty import ROWS, table


def _table(name: str, tmp_path: Path) -> Any:
    if name == "duckdb":
        with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
            connection.register("incoming", table())
            connection.execute("CREATE TABLE nasty AS SELECT * FROM incoming")
        return ibis.duckdb.connect(tmp_path / "a.duckdb", read_only=True).table("nasty")
    if name == "sqlite":  # big as REAL: Ibis fetches integers with NULLs by way of doubles, and fails at the limits
        columns = 'x REAL, y REAL, big REAL, flag BOOLEAN, other BOOLEAN, city TEXT, "Odd ""name\'" TEXT'
        with contextlib.closing(sqlite3.connect(tmp_path / "a.sqlite")) as file, file:
            file.execute(f"CREATE TABLE nasty ({columns}, day DATE, moment TIMESTAMP)")
            rows = [[str(v) if isinstance(v, date) else v for v in row.values()] for row in ROWS]
            file.executemany("INSERT INTO nasty VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
        return ibis.sqlite.connect(tmp_path / "a.sqlite").table("nasty")
    return ibis.polars.connect().create_table("nasty", table())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # ibis 12 with newer backends
@pytest.mark.parametrize("name", ["duckdb", "polars", "sqlite"])
def test_smoke(name: str, tmp_path: Path) -> None:
    source = _table(name, tmp_path)
    engine = open_engine(source)
    source.get_backend().disconnect()  # a copy was made
    assert isinstance(engine, EmbeddedEngine)
    assert engine.rows == len(ROWS)
    assert (
        engine.identity().fingerprint == EmbeddedEngine(table()).identity().fingerprint
    )  # a copy is embedded like any other
    check_mistaken(engine)
    check_generated(engine, 0.05, 4)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_no_error_quotes_a_row(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "a.sqlite")) as file, file:
        file.execute("CREATE TABLE t (a INTEGER)")
        file.executemany("INSERT INTO t VALUES (?)", [(2**63 - 1,), (None,)])
    backend = ibis.sqlite.connect(tmp_path / "a.sqlite")
    with pytest.raises(DataError, match="cannot be fetched from sqlite") as refused:
        open_engine(backend.table("t"))
    backend.disconnect()
    assert refused.value.__context__ is None
