"""100 questions in one ask_many on Parquet against 100 asks (limit 0.5); seconds."""

import tempfile
import time
from pathlib import Path

import afresh
from benchmarks.table import ROWS, written

_CONDITIONS = ("amount < {}", "age < 30 AND amount < {}", "country = 'CH' AND tenure < {}", "churned AND amount > {}")


def _questions(first: int, count: int) -> list[str]:
    return [_CONDITIONS[i % len(_CONDITIONS)].format(first + i) for i in range(count)]


def main(rows: int = ROWS, count: int = 100) -> None:
    with (
        written(rows) as path,
        tempfile.TemporaryDirectory() as directory,
        afresh.open(path, questions=10 * count, ledger=Path(directory) / "ledger.sqlite", allow_wide=True) as guard,
    ):
        guard.ask_many(_questions(5000, 4))  # imports what is imported on demand
        start = time.perf_counter()
        for question in _questions(10, count):
            guard.ask(question)
        middle = time.perf_counter()
        guard.ask_many(_questions(1000, count))
        end = time.perf_counter()
    apart, together = middle - start, end - middle
    print(f"  {count} asks {apart:.2f} s   one ask_many {together:.2f} s   ratio {together / apart:.2f}")


if __name__ == "__main__":
    main()
