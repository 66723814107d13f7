"""Questions from 1 to 64 threads on one desk with 10,000 rows, served together and one at a time, on both ledgers.

Limits: 64 threads have at least 3 times the rate of one at a time, and their slowest hundredth takes at most a quarter.
Those who are served together wait alike, so their slowest hundredth is one of groups, and takes hundreds of groups.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import afresh
from benchmarks.measured import Measured, compared
from benchmarks.processes import places
from benchmarks.table import written

ROWS, QUESTIONS = 10_000, 100_000
RATE, SLOWEST = 3.0, 0.25


class Apart:
    """In place of a desk's line: everybody is served alone, as if nobody else were there."""

    mine = busy = False

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
            # All but the words: of intervals as wide as those of so many questions they say what would help.
            guard.desk.answer(own.checked([f"amount < {(first + thread * asks + i) / 64!r}"]), own.analyst)
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


def measure(
    asks: int = 1280,
    counts: tuple[int, ...] = (1, 4, 16, 64),
    turns: int = 2,
    method: str = "calibrated",
    groups: int = 200,
) -> Iterator[Measured]:
    """On every kind of ledger. The limits are of 64 threads.

    All threads make this many asks in a turn, or enough for this many groups; one at a time, for a quarter of them.
    """
    least = {"apart": groups // 4, "together": groups}
    asked = 0
    with written(ROWS) as data, places() as kinds, tempfile.TemporaryDirectory() as folder:
        for kind, (ledger, *_) in kinds.items():
            place = ledger if kind != "SQLite" else str(Path(folder) / "ledger.sqlite")
            with afresh.open(data, QUESTIONS, method=method, ledger=place, allow_wide=True) as guard:
                desk: Any = guard.desk
                lines = {"apart": Apart(desk._path.serve), "together": desk._line}
                guard.ask("churned")
                alone = 0.0  # the rate of the fewest threads, one at a time
                for threads in counts:
                    rates: dict[str, list[float]] = {name: [] for name in lines}
                    seconds: dict[str, list[Any]] = {name: [] for name in lines}
                    for _ in range(turns):  # in turns, so that other work on the machine meets both alike
                        for name, line in lines.items():
                            desk._line, each = line, max(asks // threads, least[name])
                            rate, taken = seconds_of(guard, threads, each, asked)
                            asked += threads * each
                            rates[name].append(rate)
                            seconds[name].append(taken)
                    one, all_of = (float(np.median(rates[name])) for name in lines)
                    alone = alone or one
                    p99 = {name: float(np.quantile(np.concatenate(found), 0.99)) for name, found in seconds.items()}
                    name, many = f"{kind}, {threads} threads, together to one at a time", threads == 64
                    told = f"{all_of:.0f} to {one:.0f} a second"
                    yield Measured(f"{name}: rate", all_of / one, RATE if many else None, told, least=True)
                    told = f"{all_of:.0f} to {alone:.0f} a second"
                    limit = RATE if many else None
                    yield Measured(
                        f"{kind}, {threads} threads: rate, to {counts[0]}", all_of / alone, limit, told, least=True
                    )
                    yield compared(f"{name}: p99", p99["together"], p99["apart"], SLOWEST if many else None)
