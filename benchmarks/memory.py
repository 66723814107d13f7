"""The memory of a process that opens a file larger than the engine's limit, asks and takes its fingerprint."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measured import Measured
from benchmarks.table import written

LIMIT = 200  # MB
QUESTIONS = ["churned AND amount < 50", "country = 'CH'", "email LIKE '%7%'", "joined >= DATE '2020-01-01'"]


def peak() -> int:
    """MB, by Linux's own account: `ru_maxrss` begins with what the parent process had."""
    return peak_bytes() // 2**20


def peak_bytes() -> int:
    """The same in bytes."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def _work(path: str, limit: str) -> None:
    import polars  # noqa: F401  # part of the baseline, as is pyarrow
    import pyarrow  # noqa: F401

    from afresh.engines.embedded.engine import EmbeddedEngine
    from afresh.queries.query import make_query

    found = [peak()]
    engine = EmbeddedEngine(path, memory_limit=limit)
    found.append(peak())
    queries = [make_query(text, engine.schema) for text in QUESTIONS] + [make_query("amount", engine.schema, (0, 500))]
    for query in queries:
        engine.moments([query])
    found.append(peak())
    engine.identity()
    print(*found, peak())


def peaks(path: Path, limit: int) -> list[int]:
    """MB at the start, after opening, after asking and after the fingerprint."""
    command = [sys.executable, "-m", "benchmarks.memory", str(path), f"{limit}MB"]
    here = Path(__file__).parents[1]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=here)
    return [int(word) for word in done.stdout.split()]


def measure(rows: int = 10_000_000, limit: int = LIMIT) -> Iterator[Measured]:
    """Of a Parquet and of a CSV file of about one size."""
    for form, count in (("parquet", rows), ("csv", rows // 3)):
        with written(count, form) as path:
            size = path.stat().st_size // 2**20
            start, opened, asked, fingerprint = peaks(path, limit)
        told = f"a file of {size} MB; imports {start}, opened {opened}, asked {asked}, fingerprint {fingerprint} MB"
        yield Measured(
            f"{form}: peak of memory beyond imports, to a limit of {limit} MB", (fingerprint - start) / limit, told=told
        )


if __name__ == "__main__":
    _work(*sys.argv[1:])
