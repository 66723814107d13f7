"""Opening a frame in memory: the peak beyond what the process had, to the frame's own size.

The size is that of the frame as its library holds it. In memory rows are copied, because somebody else could still
write to them: so a copy of its size, and what the engine itself takes, are the least there can be.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measured import Measured
from benchmarks.memory import peak
from benchmarks.table import written

ROWS, LIMIT = 2_000_000, 1.0
# What reading the frame has freed goes back to the system at once, or opening would seem to need less.
FREED = {"ARROW_DEFAULT_MEMORY_POOL": "system", "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"}
KINDS = ("Arrow", "Polars", "pandas")


def _work(kind: str, path: str) -> None:
    import pandas as pd
    import polars as pl
    import pyarrow.parquet as pq

    from afresh.engines.embedded.engine import EmbeddedEngine

    held, size = None, 0
    if kind == "Arrow":
        held = pq.read_table(path)
        size = held.nbytes
    elif kind == "Polars":
        held = pl.read_parquet(path)
        size = int(held.estimated_size())
    else:
        held = pd.read_parquet(path)
        size = int(held.memory_usage(deep=True).sum())
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # Linux: forget the peak so far
    before = _now()
    engine = EmbeddedEngine(held)
    print(size // 2**20, peak() - before)
    engine.close()


def _now() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 // 2**20


def measure(rows: int = ROWS) -> Iterator[Measured]:
    """Of every kind."""
    here = Path(__file__).parents[1]
    with written(rows) as path:
        for kind in KINDS:
            command = [sys.executable, "-m", "benchmarks.frames", kind, str(path)]
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, cwd=here, env={**os.environ, **FREED}
            )
            size, more = (int(word) for word in done.stdout.split())
            told = f"{more} MB to {size} MB"
            yield Measured(f"{kind}, {rows:,} rows: peak of opening, to its size", more / max(size, 1), LIMIT, told)


if __name__ == "__main__":
    _work(*sys.argv[1:])
