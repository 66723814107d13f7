"""Questions of 1 to 64 threads on one desk at 10,000 rows, served together and one at a time, on both ledgers.

Limits: 64 threads have at least 3 times the rate of one at a time, and their slowest hundredth takes a quarter at most.
"""

import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import afresh
from benchmarks.processes import places
from benchmarks.table import written

ROWS, QUESTIONS = 10_000, 100_000
RATE, SLOWEST = 3.0, 0.25


class Apart:
    """In place of a desk's line: everybody is served alone, as if nobody else were there."""

    mine = False

    def __init__(self, serve: Any) -> None:
        """Of a path."""
        self._serve = serve

    def stand(self, request: Any) -> None:
        """Serve one."""
        self._serve([request])


def seconds_of(guard: afresh.Guard, threads: int, asks: int, first: int) -> tuple[float, np.ndarray[Any, Any]]:
    """Asks a second by all threads, and how long each took; every one is a new question."""
    taken: list[Sequence[float]] = []
    together = threading.Barrier(threads + 1)

    def work(thread: int) -> None:
        own = guard.for_analyst(f"thread {thread}")
        seconds = []
        together.wait()
        for i in range(asks):
            start = time.perf_counter()
            own.ask(f"amount < {(first + thread * asks + i) / 64!r}")
            seconds.append(time.perf_counter() - start)
        taken.append(seconds)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    together.wait()
    start = time.perf_counter()
    for worker in workers:
        worker.join()
    rate = threads * asks / (time.perf_counter() - start)
    return rate, np.concatenate(taken)


def main(
    asks: int = 1280, counts: tuple[int, ...] = (1, 4, 16, 64), turns: int = 3, method: str = "calibrated"
) -> bool:
    print("                        one at a time                together")
    print(
        "              threads   1/s   median   p99, ms       1/s   median   p99, ms    rate   to one thread's    p99"
    )
    fits, asked = True, 0
    with written(ROWS) as data, places() as kinds, tempfile.TemporaryDirectory() as folder:
        for kind, (ledger, *_) in kinds.items():
            place = ledger if kind != "SQLite" else str(Path(folder) / "ledger.sqlite")
            with afresh.open(data, QUESTIONS, method=method, ledger=place, allow_wide=True) as guard:
                desk: Any = guard.desk
                lines = {"apart": Apart(desk._path.serve), "together": desk._line}
                guard.ask("churned")
                one = 0.0
                for threads in counts:
                    rates: dict[str, list[float]] = {name: [] for name in lines}
                    seconds: dict[str, list[Any]] = {name: [] for name in lines}
                    for _ in range(turns):  # in turns, so that other work on the machine meets both alike
                        for name, line in lines.items():
                            desk._line, each = line, asks // threads
                            rate, own = seconds_of(guard, threads, each, asked)
                            asked += threads * each
                            rates[name].append(rate)
                            seconds[name].append(own)
                    median = {name: float(np.median(found)) for name, found in rates.items()}
                    taken = {name: np.concatenate(found) for name, found in seconds.items()}
                    p99 = {name: float(np.quantile(found, 0.99)) for name, found in taken.items()}
                    one = one or median["apart"]
                    faster, slower = median["together"] / median["apart"], p99["together"] / p99["apart"]
                    to_one = median["together"] / one
                    if threads == 64:
                        fits &= min(faster, to_one) >= RATE and slower <= SLOWEST
                    told = "".join(
                        f"{median[name]:>9.0f}{1000 * np.median(taken[name]):>9.1f}{1000 * p99[name]:>10.1f}"
                        for name in lines
                    )
                    print(f"  {kind:<11}{threads:>7}{told}{faster:>9.1f}{to_one:>14.1f}{slower:>12.2f}", flush=True)
    return fits


if __name__ == "__main__":
    main()
