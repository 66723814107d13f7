"""Opening a frame in memory: the peak of memory beyond that of opening one row, compared with the size of the frame.

The size is that of the frame as its library holds it. Rows in memory are copied, because somebody else could still
write to them, so a copy of that size is the minimum. What an engine takes on one row, and what DuckDB's library takes
when it is first used, are reported beside it.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measured import Measured
from benchmarks.memory import peak_bytes
from benchmarks.table import written

ROWS, LIMIT = 16_000_000, 1.0
# What reading the frame has freed goes back to the system at once, or opening would seem to need less.
FREED = {"ARROW_DEFAULT_MEMORY_POOL": "system", "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"}
KINDS = ("Arrow", "Polars", "pandas")


def _work(kind: str, path: str, settle: str) -> None:
    import pandas as pd
    import polars as pl
    import pyarrow.parquet as pq

    from afresh.engines.embedded.engine import EmbeddedEngine

    held: Any = None
    size = 0
    if kind == "Arrow":
        held = pq.read_table(path)
        size = held.nbytes
    elif kind == "Polars":
        held = pl.read_parquet(path)
        size = _buffers(held)
    else:
        held = pd.read_parquet(path)
        size = int(held.memory_usage(deep=True).sum())
    one = {"Arrow": lambda: held.slice(0, 1), "Polars": lambda: held[:1], "pandas": lambda: held[:1]}[kind]()
    library, itself, more = (_peak_of_opening(EmbeddedEngine, what, float(settle)) for what in (one, one, held))
    print(size, more, library, itself)


def _peak_of_opening(opened: Any, held: Any, settle: float) -> int:
    ctypes.CDLL(None).malloc_trim(0)
    time.sleep(settle)  # libraries give back what they have freed a little later
    Path("/proc/self/clear_refs").write_text("5")  # Linux: forget the peak so far
    before = _now()
    engine = opened(held)
    found = peak_bytes() - before
    engine.close()
    return found


def _buffers(frame: Any) -> int:
    """What Polars holds: its `estimated_size` leaves out the 16 bytes of every text that say where it is."""
    import polars as pl

    pieces = [piece for column in frame.get_columns() for piece in column.get_chunks()]
    newest = pl.CompatLevel.newest()  # pyarrow 17 has no nbytes of a string_view
    return sum(piece.to_arrow(compat_level=newest).get_total_buffer_size() for piece in pieces)


def _now() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def measure(rows: int = ROWS, settle: float = 1.0) -> Iterator[Measured]:
    """Of every kind, so many seconds after memory was freed."""
    here = Path(__file__).parents[1]
    with written(rows) as path:
        for kind in KINDS:
            command = [sys.executable, "-m", "benchmarks.frames", kind, str(path), str(settle)]
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, cwd=here, env={**os.environ, **FREED}
            )
            size, more, library, itself = (int(word) for word in done.stdout.split())
            told = f"{_mb(more - itself)} to {_mb(size)}; of one row {_mb(itself)}, and {_mb(library)} the first time"
            yield Measured(f"{kind}, {rows:,} rows: peak of opening, to its size", (more - itself) / size, LIMIT, told)


def _mb(size: int) -> str:
    return f"{size / 2**20:.1f} MB"


if __name__ == "__main__":
    _work(*sys.argv[1:])
