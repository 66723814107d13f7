"""`import afresh` stays light; the time itself is measured in benchmarks/."""

import subprocess
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

HEAVY = [
    "matplotlib",
    "fastapi",
    "typer",
    "rich",
    "sklearn",
    "optuna",
    "pyspark",
    "pandas",
    "polars",
    "pyarrow",
    "ibis",
]
LATE = ["sqlglot", "sqlite3", "scipy.optimize", "scipy.stats"]


def test_import_pulls_in_nothing_heavy() -> None:
    code = "import sys, afresh; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in HEAVY + LATE if name in loaded] == []


def test_what_is_imported_later_is_there_to_find() -> None:
    import afresh

    assert set(afresh.__all__) <= set(dir(afresh))
    for name in afresh.__all__:
        assert getattr(afresh, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = afresh.nothing


def test_a_plan_waits_for_neither_numpy_nor_pydantic() -> None:
    arguments = ["plan", "--rows", "100000", "--questions", "1000", "--confidence", "0.95"]
    code = f"import sys; sys.argv = ['afresh', *{arguments}]\nfrom afresh.cli import main\n"
    code += "try: main()\nfinally: print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "1,000 questions about 100,000 rows" in ran
    assert [name for name in ("numpy", "pydantic", "scipy", "rich", "duckdb") if name in ran.split()] == []


OPENED = """
import sys
import polars, pyarrow.parquet
import afresh

*files, parquet = sys.argv[1:]
for data in (*files, parquet, pyarrow.parquet.ParquetFile(parquet).read(), polars.read_parquet(parquet)):
    for options in ({"method": "stabilized"}, {"open": 0.5}):
        with afresh.open(data, 10, ledger=":memory:", **options) as guard:
            guard.ask("country = 'CH'")
            guard.ask("amount > 2")
            guard.price(afresh.statistics.Variance("amount", (0, 5), where="country = 'CH'"))
            if "open" in options:
                guard.open_rows("arrow")
        print(type(data), options, "pandas" in sys.modules)
"""


def test_nobody_waits_for_pandas_unless_rows_come_in_its_frames(tmp_path: Path) -> None:
    """It takes longer to import than most questions take, and its objects make Python's collections longer."""
    rows = pa.table({"country": ["CH", "DE", "a longer name"] * 1000, "amount": [1.5, 2.5, None] * 1000})
    files = [str(tmp_path / name) for name in ("rows.csv", "rows.duckdb", "rows.parquet")]
    pyarrow.csv.write_csv(rows, files[0])
    pyarrow.parquet.write_table(rows, files[2])
    with duckdb.connect(files[1]) as connection:
        connection.sql("CREATE TABLE data AS SELECT * FROM rows")
    ran = subprocess.run([sys.executable, "-c", OPENED, *files], capture_output=True, text=True, check=True).stdout
    assert len(ran.splitlines()) == 10
    assert "True" not in ran, ran
