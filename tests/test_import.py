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


def test_a_plan_waits_for_neither_numpy_nor_pydantic() -> None:
    arguments = ["plan", "--rows", "100000", "--questions", "1000", "--confidence", "0.95"]
    code = f"import sys; sys.argv = ['afresh', *{arguments}]\nfrom afresh.cli import main\n"
    code += "try: main()\nfinally: print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "1,000 questions about 100,000 rows" in ran
    assert [name for name in ("numpy", "pydantic", "scipy", "rich", "duckdb") if name in ran.split()] == []
