"""Opening a Parquet file for the first and for the second time; that of many rows to that of 10,000 (limit 1.3)."""

import tempfile
import time
from pathlib import Path

import afresh
from benchmarks.table import ROWS, written
from benchmarks.timing import side_by_side

FEW = 10_000


def main(rows: int = ROWS, rounds: int = 5) -> None:
    with tempfile.TemporaryDirectory() as directory, written(FEW) as few, written(rows) as many:
        time.sleep(2.5)  # files that were just written are not remembered
        ledger = Path(directory) / "ledger.sqlite"
        first = {path: _timed(path, ledger) for path in (few, many)}
        second = side_by_side({str(path): lambda path=path: _open(path, ledger) for path in (few, many)}, rounds)  # type: ignore[misc]
        for path, count in ((few, FEW), (many, rows)):
            print(f"  {count:>10,} rows   first {first[path] * 1e3:8.1f} ms   second {second[str(path)] * 1e3:8.1f} ms")
        print(f"  second opening of {rows:,} rows to that of {FEW:,}: {second[str(many)] / second[str(few)]:.2f}")


def _timed(path: Path, ledger: Path) -> float:
    start = time.perf_counter()
    _open(path, ledger)
    return time.perf_counter() - start


def _open(path: Path, ledger: Path) -> None:
    afresh.open(path, 10, ledger=ledger, new_rows="the rows of another benchmark").close()


if __name__ == "__main__":
    main()
