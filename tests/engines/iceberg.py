"""Tables of Iceberg in Spark: remembered by their version, and every write noticed. `make try-iceberg` runs these.

They are not part of the suite: the only package that brings Iceberg's Java archive takes 360 MB and is for Spark 3.5,
which the engine refuses otherwise, because dates before 1900 can make it fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import afresh
from afresh.engines.open import open_engine
from afresh.engines.remote import spark as spark_engine
from afresh.engines.remote.spark import SparkEngine
from afresh.engines.remote.versions import version
from afresh.errors import DataChanged

PREFIX = os.environ.get("AFRESH_ICEBERG_PREFIX", "")  # of the package's copy of Iceberg
NAME = "ice.db.people"


@pytest.fixture
def ice(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The suite's session with a catalog of its own, and a table in it."""
    monkeypatch.setattr(spark_engine, "OLDEST", 3)
    spark.conf.set("spark.sql.catalog.ice", f"{PREFIX}org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.ice.type", "hadoop")
    spark.conf.set("spark.sql.catalog.ice.warehouse", str(tmp_path / "warehouse"))
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")
    spark.range(600).selectExpr("id", "id % 3 = 0 AS churned", "id * 0.5D AS amount").writeTo(NAME).create()
    yield spark
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry each time that all rows are hashed."""
    found, real = list[None](), SparkEngine._sum_rows

    def counted(self: SparkEngine, key: str) -> Any:
        found.append(None)
        return real(self, key)

    monkeypatch.setattr(SparkEngine, "_sum_rows", counted)
    return found


def opened(data: Any, ledger: Path, **options: Any) -> afresh.Guard:
    return afresh.open(data, 20, ledger=ledger, allow_wide=True, **options)


def test_a_version_is_hashed_once(ice: Any, tmp_path: Path, hashed: list[None]) -> None:
    ledger = tmp_path / "ledger.sqlite"
    first = opened(ice, ledger, table=NAME).ask("churned")
    again = opened(ice, ledger, table=NAME)
    assert len(hashed) == 1
    assert again.ask("churned").value == first.value
    assert opened(ice.table(NAME), ledger).budget.left == again.budget.left
    assert len(hashed) == 1  # a DataFrame of the whole table is the table


@pytest.mark.parametrize(
    "write",
    [
        f"INSERT INTO {NAME} VALUES (600, true, 1.0D)",
        f"DELETE FROM {NAME} WHERE id = 5",
        f"INSERT OVERWRITE {NAME} SELECT id, NOT churned, amount FROM {NAME}",  # as many rows as before
        f"ALTER TABLE {NAME} ADD COLUMN more int",
    ],
)
def test_a_write_is_noticed_and_hashed(ice: Any, tmp_path: Path, hashed: list[None], write: str) -> None:
    ledger = tmp_path / "ledger.sqlite"
    guard = opened(ice, ledger, table=NAME)
    guard.ask("churned")
    left = guard.budget.left
    ice.sql(write)
    with pytest.raises(DataChanged, match="nothing was answered"):
        guard.ask("amount < 100")
    assert guard.budget.left == left
    other = afresh.open(ice, 20, table=NAME, ledger=ledger, allow_wide=True, new_rows="a test writes to the table")
    assert len(hashed) == 2
    assert other.budget.left > left  # other rows, another budget


def test_the_same_rows_in_another_version_keep_their_budget(ice: Any, tmp_path: Path, hashed: list[None]) -> None:
    ledger = tmp_path / "ledger.sqlite"
    guard = opened(ice, ledger, table=NAME)
    guard.ask("churned")
    ice.sql(f"INSERT OVERWRITE {NAME} SELECT * FROM {NAME} ORDER BY amount DESC")
    assert opened(ice, ledger, table=NAME).budget.left == guard.budget.left
    assert len(hashed) == 2


def test_an_older_snapshot_is_not_the_current_one(ice: Any) -> None:
    first = version(ice.table(NAME))
    assert first is not None
    ice.sql(f"INSERT INTO {NAME} VALUES (600, true, 1.0D)")
    second = version(ice.table(NAME))
    assert second is not None
    assert second != first
    earlier = ice.sql(f"SELECT * FROM {NAME} VERSION AS OF {first.split()[-1]}")
    assert version(earlier) is None  # a projection: not a whole table to Spark
    assert open_engine(earlier).rows == 600


def test_other_frames_have_no_version(ice: Any) -> None:
    table = ice.table(NAME)
    snapshot = str(version(table)).split()[-1]
    others = [
        table.where("id < 300"),
        table.select("id"),
        table.limit(5),
        table.union(table),
        table.sample(0.5, seed=1),
        ice.read.option("snapshot-id", snapshot).table(NAME),
        ice.range(10),
        *(ice.table(f"{NAME}.{about}") for about in ("snapshots", "history", "files", "all_data_files", "changes")),
    ]
    assert [version(frame) for frame in others] == [None] * len(others)
    assert all(open_engine(frame).state() is None for frame in others[:3])


def test_an_empty_table_has_none(ice: Any) -> None:
    ice.sql("CREATE TABLE ice.db.empty (id bigint) USING iceberg")
    assert version(ice.table("ice.db.empty")) is None
