"""A plan, compared with half a second, and an interval once planned, with a millisecond; median CPU time."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import afresh
from afresh.mechanisms.base import Mechanism
from afresh.moments import Moments
from benchmarks.measured import Measured, compared

PLAN, INTERVAL = 1.0, 1.0
CELLS = [(10**3, 10), (10**4, 100), (10**5, 1000), (10**6, 10**4), (10**8, 10**4)]


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        taken.append(1000 * (time.process_time() - start))
    return statistics.median(taken)


def plan_afresh(rows: int, questions: int) -> object:
    """As a new process would, which remembers no plan and no part of one."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("afresh.planning", "afresh.mechanisms", "afresh.theory")):
            for value in vars(module).values():
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
    return afresh.plan(rows, questions)


def released(mechanism: Mechanism, mean: float, rows: int) -> Any:
    return mechanism.release(Moments(rows, mean * rows, mean * rows), 0.0)


def measure(cells: list[tuple[int, int]] = CELLS, rounds: int = 3) -> Iterator[Measured]:
    """Every size."""
    for rows, questions in cells:
        name = f"{rows:,} rows, {questions:,} questions"
        planned = milliseconds(lambda n=rows, k=questions: plan_afresh(n, k), rounds)  # type: ignore[misc]
        yield compared(f"a plan of {name}, to half a second", planned / 1000, 0.5, PLAN)
        compare = milliseconds(lambda n=rows, k=questions: plan_afresh(n, k).methods, rounds)  # type: ignore[misc,attr-defined]
        yield compared(f"the table of methods of {name}, to half a second", compare / 1000, 0.5)
        for method in ("stabilized", "calibrated", "rounds"):
            mechanism = afresh.plan(rows, questions, method=method).mechanism
            points = iter([0.001 + 0.9 * i / 200 for i in range(200)])
            n = mechanism.batch or rows
            work = lambda m=mechanism, p=points, n=n: m.interval(released(m, next(p), n))  # noqa: E731
            taken = milliseconds(work, min(200, 40 * rounds))
            yield compared(f"an interval of {method}, {name}, to a millisecond", taken / 1000, 0.001, INTERVAL)
