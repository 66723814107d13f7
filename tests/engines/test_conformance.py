"""The embedded engine takes the suite in `conformance`; the others do so in files of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from afresh.engines.base import Engine
from afresh.engines.embedded.engine import EmbeddedEngine
from engines.conformance import Conformance, check_generated, check_mistaken
from engines.nasty import table


class TestEmbedded(Conformance):
    times = 3.0

    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls) -> Iterator[Engine]:
        engine = EmbeddedEngine(table())
        yield engine
        engine.close()


def _parquet(folder: Path) -> Path:
    pq.write_table(table(), folder / "a.parquet", row_group_size=50)
    return folder / "a.parquet"


def _csv(folder: Path) -> Path:
    pa_csv.write_csv(table(), folder / "a.csv")
    return folder / "a.csv"


def _duckdb(folder: Path) -> Path:
    with duckdb.connect(str(folder / "a.duckdb")) as connection:
        connection.register("incoming", table())
        connection.execute("CREATE TABLE nasty AS SELECT * FROM incoming")
    return folder / "a.duckdb"


@pytest.mark.parametrize("write", [_parquet, _csv, _duckdb])
def test_files(write: Callable[[Path], Path], tmp_path: Path) -> None:
    engine = EmbeddedEngine(write(tmp_path))
    check_mistaken(engine)
    check_generated(engine, 0.2, 4)
    engine.close()
