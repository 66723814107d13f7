"""`import afresh` stays light; the time itself is measured in benchmarks/."""

import subprocess
import sys

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
