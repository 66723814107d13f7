"""A question's two durable steps by 1 to 8 processes on one ledger: the slowest hundredth compared with one process."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from afresh.ledger import Limits, Question, open_ledger, outcome
from afresh.ledger.known import plain
from benchmarks.measured import Measured, compared
from benchmarks.servers import TESTS

ROWS = plain("rows", 1000)
LIMITS = Limits({"k": 1}, 10**6, 10**6, 1e6)
LIMIT = 40.0


def _ask(place: str, name: int, asks: int, begin: float, taken: multiprocessing.Queue[list[float]]) -> None:
    """Reserve and record, one question after the other."""
    with closing(open_ledger(place)) as ledger:
        terms = ledger.open(ROWS, LIMITS)
        time.sleep(max(begin - time.time(), 0.0))
        seconds = []
        for i in range(asks):
            start = time.perf_counter()
            (entry,) = ledger.reserve(terms, [Question(f"{name} {i}", "a question", 0.5)], f"{name}")
            ledger.record(terms, entry, outcome(0.5, 0.5, 0.25, 0.75, ends=LIMITS.ends))
            seconds.append(time.perf_counter() - start)
    taken.put(seconds)


def times(place: str, processes: int, asks: int, patience: float) -> list[float]:
    """Seconds of every ask of all processes."""
    context = multiprocessing.get_context("spawn")
    taken: multiprocessing.Queue[list[float]] = context.Queue()
    with closing(open_ledger(place)) as ledger:
        ledger.open(ROWS, LIMITS)
    begin = time.time() + patience  # by then all have started
    workers = [context.Process(target=_ask, args=(place, number, asks, begin, taken)) for number in range(processes)]
    for worker in workers:
        worker.start()
    found = [seconds for _ in workers for seconds in taken.get()]
    for worker in workers:
        worker.join()
    return found


@contextmanager
def places() -> Iterator[dict[str, list[str]]]:
    """New ledgers of every kind that can be had here: PostgreSQL where the tests' server is installed."""
    with tempfile.TemporaryDirectory() as folder:
        found = {"SQLite": [str(Path(folder) / f"{i}.sqlite") for i in range(4)]}
        try:
            sys.path.insert(0, str(TESTS))
            from ledger.servers import running
        except ImportError:
            yield found
            return
        with running(durable=True) as server:
            yield {**found, "PostgreSQL": [server.empty() for _ in range(4)]}


def measure(asks: int = 200, counts: tuple[int, ...] = (1, 2, 4, 8), patience: float = 3.0) -> Iterator[Measured]:
    """On every kind of ledger."""
    with places() as kinds:
        for kind, ledgers in kinds.items():
            one = None
            for processes, place in zip(counts, ledgers, strict=False):
                seconds = np.array(times(place, processes, asks, patience))
                p99 = float(np.quantile(seconds, 0.99))
                one = one or p99
                told = f"{processes / seconds.mean():.0f} asks a second, median {1000 * np.median(seconds):.1f} ms"
                yield compared(f"{kind}, {processes} processes: p99 to that of one", p99, one, LIMIT, told)
