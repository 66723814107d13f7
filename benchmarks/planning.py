"""A plan (limit 500 ms) and an interval once planned (limit 1 ms), by method and size; medians."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import afresh
from afresh.mechanisms.base import Mechanism
from afresh.mechanisms.calibrated import plan_calibrated
from afresh.mechanisms.stabilized import plan_stabilized
from afresh.moments import Moments

CELLS = [(10**3, 10), (10**4, 100), (10**5, 1000), (10**6, 10**4), (10**8, 10**4)]


def milliseconds(work: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - start))
    return statistics.median(taken)


def plan_afresh(rows: int, questions: int) -> object:
    plan_stabilized.cache_clear()
    plan_calibrated.cache_clear()
    return afresh.plan(rows, questions)


def released(mechanism: Mechanism, mean: float, rows: int) -> Any:
    return mechanism.release(Moments(rows, mean * rows, mean * rows), 0.0)


def main() -> None:
    start = time.perf_counter()
    afresh.plan(10**5, 1000)
    print(
        f"  the first plan of a process, scipy.optimize imported with it: {1000 * (time.perf_counter() - start):.0f} ms"
    )
    print("  rows       questions   plan, ms   all methods compared, ms   interval, ms: stabilized  calibrated  rounds")
    for rows, questions in CELLS:
        planned = milliseconds(lambda n=rows, k=questions: plan_afresh(n, k), 5)  # type: ignore[misc]
        compared = milliseconds(lambda n=rows, k=questions: plan_afresh(n, k).methods, 3)  # type: ignore[misc,attr-defined]
        intervals = []
        for method in ("stabilized", "calibrated", "rounds"):
            mechanism = afresh.plan(rows, questions, method=method).mechanism
            points = iter([0.001 + 0.9 * i / 200 for i in range(200)])
            n = mechanism.batch or rows
            intervals.append(
                milliseconds(lambda m=mechanism, p=points, n=n: m.interval(released(m, next(p), n)), 200)  # type: ignore[misc]
            )
        print(
            f"  {rows:<12,}{questions:<9,}{planned:9.0f}{compared:20.0f}"
            f"{intervals[0]:33.3f}{intervals[1]:13.3f}{intervals[2]:10.3f}"
        )


if __name__ == "__main__":
    main()
