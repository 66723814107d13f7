"""Every benchmark runs, on few rows; what it measures is in docs/benchmarks.md."""

from __future__ import annotations

import importlib
import math
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as program
from benchmarks import memory
from benchmarks.__main__ import ALL
from benchmarks.measured import Measured
from benchmarks.table import written

FEW: dict[str, dict[str, Any]] = {
    "startup": {"rounds": 1},
    "planning": {"cells": [(1000, 10)], "rounds": 1},
    "small": {"rows": 1000, "rounds": 2},
    "questions": {"rows": 2000, "rounds": 0},
    "many": {"rows": 2000, "count": 8},
    "dealt": {"rows": 120_000, "rounds": 0},
    "identity": {"rows": 2000, "rounds": 0},
    "opening": {"rows": 20_000, "rounds": 0, "csv_rows": 5_000},
    "memory": {"rows": 30_000},
    "frames": {"rows": 30_000, "settle": 0.0},
    "scoring": {"rows": 2000, "rounds": 2},
    "postgres": {"rows": 2000, "rounds": 0},
    "spark": {"rows": 2000, "rounds": 0},
    "chains": {"lengths": (300,)},
    "processes": {"asks": 3, "counts": (2,), "patience": 1.0},
    "service": {"rows": (2000,), "count": 8, "alone": 2, "requests": 40},
    "attacks": {"count": 5, "connections": 1, "size": 0.02},
    "pages": {"answers": (20, 8), "entries": (8, 4), "rows": 3000, "times": 1},
    "threads": {"asks": 10, "counts": (2,), "turns": 1, "groups": 5},
    "peers": {"rows": 2000, "rounds": 0, "peers": ()},  # nothing is installed here
}


def _module(name: str) -> Any:
    return importlib.import_module(f"benchmarks.{name}")


def check(name: str) -> None:
    found: list[Measured] = list(_module(name).measure(**FEW[name]))
    assert found
    assert len({line.name for line in found}) == len(found)
    assert all(line.ratio > 0 and math.isfinite(line.ratio) for line in found)
    assert all(line.limit is not None for line in found) or name not in ("small", "many", "identity", "processes")


@pytest.mark.parametrize("name", [name for name in ALL if name != "spark"])
def test_it_measures_something(name: str) -> None:
    """The one of Spark is in engines/test_spark.py, where there is one."""
    check(name)


def test_what_falls_short_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [Measured("fine", 1.0, 2.0), Measured("slow", 3.0, 2.0), Measured("few", 1.0, 3.0, least=True)]
    monkeypatch.setattr(program, "run", lambda name, rows: lines)
    for arguments, code in (["many"], 0), (["--check", "many"], 1):
        monkeypatch.setattr(sys, "argv", ["benchmarks", *arguments])
        with pytest.raises(SystemExit) as ended:
            program.main()
        assert int(ended.value.code or 0) == code
    whole, short = capsys.readouterr().out.split("Measured on")[1:]
    assert ("| fine | 1.00 | 2 | yes |" in whole, "fine" in short) == (True, False)
    assert "| slow | 3.00 | 2 | **no** |" in short
    assert "| few | 1.00 | at least 3 | **no** |" in short
    monkeypatch.setattr(sys, "argv", ["benchmarks", "nothing"])
    with pytest.raises(SystemExit):
        program.main()


def test_one_command_runs_everything(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Every module that measures something is in the list, and without names all of the list is run."""
    modules = Path(program.__file__).parent.glob("*.py")
    assert sorted(ALL) == sorted(path.stem for path in modules if "\ndef measure(" in path.read_text())
    ran: list[str] = []

    def run(name: str, rows: int | None) -> list[Measured]:
        ran.append(name)
        return [Measured("fine", 1.0, 2.0)]

    monkeypatch.setattr(program, "run", run)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--check"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert not ended.value.code
    assert tuple(ran) == ALL
    assert "every limit holds" in capsys.readouterr().out


@pytest.mark.parametrize(("ago", "kept"), [(1, True), (5, False)])
def test_tables_of_an_earlier_run_are_missing(ago: int, kept: bool) -> None:
    when = datetime.now(UTC) - timedelta(hours=ago)
    assert program._is_recent(f"**pages.** About. Measured on {when:%Y-%m-%d %H:%M} UTC, 2 cores") is kept
    assert not program._is_recent("")


def test_tables_are_kept_one_by_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each as soon as it is measured, in place of the one before and in their order; one that fails says so."""
    page = tmp_path / "benchmarks.md"
    page.write_text(f"# Speed\n{program.BEGIN}\n<!-- many -->\nof long ago\n{program.END}\nWords.\n")
    monkeypatch.setattr(program, "PAGE", page)
    small, many = importlib.import_module("benchmarks.small"), importlib.import_module("benchmarks.many")

    def measured() -> Any:
        yield Measured("fine", 1.0, 2.0)

    def broken() -> Any:
        yield Measured("before", 1.0, 2.0)
        raise RuntimeError("no | disk")

    for first, second, missing in (measured, broken, []), (broken, measured, ["--missing"]):
        monkeypatch.setattr(many, "measure", first)
        monkeypatch.setattr(small, "measure", second)
        monkeypatch.setattr(sys, "argv", ["benchmarks", "--check", "--keep", *missing, "many", "small"])
        with pytest.raises(SystemExit) as ended:
            program.main()
        assert bool(ended.value.code) is not bool(missing)  # nothing is missing the second time
        text = page.read_text()
        assert text.startswith("# Speed\n")
        assert text.endswith(f"{program.END}\nWords.\n")
        assert "of long ago" not in text
        assert text.index("<!-- small -->") < text.index("| before | 1.00 |") < text.index("<!-- many -->")
        assert text.index("<!-- many -->") < text.index("| fine | 1.00 |")
        assert "| small: failed | inf | 0 | **no** | RuntimeError: no / disk |" in text


def test_memory_stays_within_the_limit() -> None:
    """A Parquet and a CSV file larger than the limit. The engine counts what it knows of; 150 MB are for the rest."""
    limit = 100
    for form, rows in (("parquet", 3_200_000), ("csv", 1_100_000)):
        with written(rows, form) as path:
            assert path.stat().st_size > limit * 1e6
            start, *later = memory.peaks(path, limit)
            assert max(later) - start < limit + 150, form
