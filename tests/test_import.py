"""`import afresh` stays light; the time itself is measured in benchmarks/."""

import subprocess
import sys

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
