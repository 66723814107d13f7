"""Every benchmark runs, on few rows; what it measures is in docs/benchmarks.md."""

from __future__ import annotations

import pytest
from benchmarks import chains, identity, many, memory, opening, processes, questions, scoring, small
from benchmarks.table import written


def test_all_print_their_tables(capsys: pytest.CaptureFixture[str]) -> None:
    small.main(rows=1000, rounds=2)
    questions.main(rows=2000, rounds=1)
    many.main(rows=2000, count=8)
    identity.main(rows=2000, rounds=1)
    opening.main(rows=20_000, rounds=1)
    scoring.main(rows=2000, rounds=1)
    chains.main(lengths=(300,))
    processes.main(asks=3, counts=(2,), patience=1.0)
    printed = capsys.readouterr().out
    assert printed.count("in memory") == 5
    assert "email LIKE" in printed
    assert "second opening" in printed
    assert "Brier loss" in printed


def test_memory_stays_within_the_limit() -> None:
    """A Parquet and a CSV file larger than the limit. The engine counts what it knows of; 150 MB are for the rest."""
    limit = 100
    for form, rows in (("parquet", 3_200_000), ("csv", 1_100_000)):
        with written(rows, form) as path:
            assert path.stat().st_size > limit * 1e6
            start, *later = memory.peaks(path, limit)
            assert max(later) - start < limit + 150, form
