"""Methods that deal rows: a question about parts of the rows, to one about all; and opening a large file again.

With `checked` a question is about two parts, whose rows lie anywhere in the data. Rows are dealt when a question first
needs it, and a later process finds the deal beside the ledger: what that saves is measured last, without a limit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

import afresh
from afresh.guard.evaluate import moments_of
from afresh.queries.asked import ask
from benchmarks.measured import Measured, compared
from benchmarks.opening import FEW, LIMIT
from benchmarks.table import ROWS, written
from benchmarks.timing import side_by_side

PARTS = 3.0  # two sums in place of one, and a look at every place
_ASKED: list[tuple[str, tuple[float, float] | None]] = [
    ("amount < 120", None),
    ("age < 30 AND country = 'CH'", None),
    ("joined >= DATE '2020-01-01'", None),
    ("amount", (0, 500)),
]


def measure(rows: int = ROWS, rounds: int = 3) -> Iterator[Measured]:
    """On a Parquet file and in memory."""
    with tempfile.TemporaryDirectory() as directory, written(FEW) as few, written(rows) as many:
        time.sleep(2.5)  # files that were just written are not remembered
        ledger = Path(directory) / "ledger.sqlite"
        for where, data in (("Parquet", many), ("in memory", pl.read_parquet(many))):
            options: dict[str, Any] = {"questions": 100, "method": "checked", "ledger": f"{ledger}{where}"}
            with afresh.open(data, **options) as guard:
                first = _seconds(lambda guard=guard: guard.ask("churned"))  # type: ignore[misc]  # here alone
                yield from _compared(where, guard, rounds)
                again = _seconds(lambda guard=guard: guard.ask("active"))  # type: ignore[misc]  # here alone
            yield compared(f"{where}, {rows:,} rows: the first question, which deals rows, to the next", first, again)
        places = {"few": few, "many": many}
        for path in places.values():
            _open(path, ledger)
        works: dict[str, Callable[[], object]] = {
            name: lambda path=path: _open(path, ledger)  # type: ignore[misc]  # bound here
            for name, path in places.items()
        }
        taken = side_by_side(works, rounds)
        name = f"opening {rows:,} rows of Parquet the second time with `checked`, to {FEW:,}"
        yield compared(name, taken["many"], taken["few"], LIMIT)
        asked = [_seconds(lambda i=i: _open(many, f"{ledger}Parquet", f"age < {i}")) for i in range(3)]  # type: ignore[misc]  # bound here
        yield compared("opening it with its deal beside the ledger, and a question; to dealing", min(asked), first)


def _compared(where: str, guard: afresh.Guard, rounds: int) -> Iterator[Measured]:
    desk = guard.desk
    spans = desk.plan.mechanism.spans(1, None)
    assert spans
    for text, bounds in _ASKED:
        (query,) = ask(text, desk.schema, bounds, None, None if bounds is None else bounds[0]).queries
        works: dict[str, Callable[[], object]] = {
            "parts": lambda query=query: moments_of(desk.engine, [query] * len(spans), list(spans)),  # type: ignore[misc]  # bound here
            "all": lambda query=query: moments_of(desk.engine, [query]),  # type: ignore[misc]  # bound here
        }
        taken = side_by_side(works, rounds, time.process_time)
        yield compared(f"{where}: `{text}` of two parts, to all rows", taken["parts"], taken["all"], PARTS)


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _open(path: Path, ledger: Path | str, question: str | None = None) -> None:
    """As `afresh budget` and `afresh ask` do; the first time with a plan."""
    known = Path(ledger).exists() and question is not None
    plan: dict[str, Any] = {} if known else {"questions": 100, "method": "checked", "allow_wide": True}
    with afresh.open(path, ledger=ledger, new_rows="the rows of another benchmark", **plan) as guard:
        if question is not None:
            guard.ask(question)
