"""Parquet and Arrow files of strangers, decoded in a process with little memory and time: a bomb harms nobody.

    python -m afresh.server.decode KIND ROWS < file > arrays

What comes back is one npz archive of plain arrays, which is read without unpickling anything.
"""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import numpy as np

from afresh.errors import InvalidArgument, TooLarge

_MEMORY = 3 << 30  # bytes of address space; Arrow alone reserves one
_SECONDS = 20


def decoded(body: bytes, kind: str, rows: int) -> dict[str, Any]:
    """The columns of a file, by name."""
    command = [sys.executable, "-m", "afresh.server.decode", kind, str(rows)]
    try:
        done = subprocess.run(command, input=body, capture_output=True, timeout=3 * _SECONDS, check=False)
    except subprocess.TimeoutExpired:
        done = None
    if done is None or done.returncode not in (0, 2, 3):
        raise TooLarge("the file takes more memory or time to read than the service has for one; nothing was charged.")
    if done.returncode == 2:
        raise InvalidArgument(f"the body cannot be read as {kind}.")
    if done.returncode == 3:
        raise InvalidArgument(f"the file must have {rows:,} rows, one for each of the holdout's.")
    with np.load(io.BytesIO(done.stdout), allow_pickle=False) as found:
        names = found["names"].tolist()
        return {name: found[f"c{place}"] for place, name in enumerate(names)}


def main() -> int:
    """Decode what is on stdin."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    kind, rows, body = sys.argv[1], int(sys.argv[2]), sys.stdin.buffer.read()
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        table = _read(kind, body)
        if table.num_rows != rows:
            return 3
        arrays = {f"c{place}": _array(table.column(place)) for place in range(table.num_columns)}
        names = np.array(table.column_names, dtype=np.str_)
    except (pa.ArrowException, OSError, ValueError, TypeError, KeyError):
        return 2
    np.savez(sys.stdout.buffer, allow_pickle=False, names=names, **arrays)
    return 0


def _read(kind: str, body: bytes) -> Any:
    import pyarrow as pa

    if kind.endswith("parquet"):
        import pyarrow.parquet as pq

        return pq.read_table(io.BytesIO(body), use_threads=False)
    reader = pa.ipc.open_file(body) if kind.endswith("file") else pa.ipc.open_stream(body)
    return reader.read_all()


def _array(column: Any) -> Any:
    found = column.to_numpy()
    return found if found.dtype.kind in "biuf" else np.array(["" if v is None else str(v) for v in found.tolist()])


if __name__ == "__main__":
    sys.exit(main())
