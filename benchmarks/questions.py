"""One question, a mean within a group and a CASE, compared with the best hand-written query for the same sums.

On Parquet and in memory, where the best query is that of the engine that answers, and the engine itself is compared
with the faster of DuckDB and Polars; and on a DuckDB file. The comparison is of the engine's work, `moments`; `ask` is
everything: reading the question, two durable commits of the ledger, noise and the interval. CPU time of all threads.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

import afresh
from afresh.guard.evaluate import moments_of
from afresh.queries.asked import ask
from benchmarks.measured import Measured, compared
from benchmarks.table import ROWS, written
from benchmarks.timing import side_by_side

ONE, WITHIN, CASE, FASTER = 1.25, 1.4, 1.25, 1.5
MEMORY = "in memory"
_COUNTS = (
    "count_if({})",
    "count(*) FILTER ({})",
    "count(CASE WHEN {} THEN 1 END)",
    "sum(CASE WHEN {} THEN 1 ELSE 0 END)",
)
_c = pl.col
# As without `lazy`; older versions of Polars have no such flags.
_UNOPTIMIZED = {"optimizations": pl.QueryOptFlags.none()} if hasattr(pl, "QueryOptFlags") else {"no_optimization": True}


@dataclass(frozen=True)
class Question:
    """A question, and its values as one would write them in SQL and in Polars."""

    text: str
    polars: pl.Expr
    bounds: tuple[float, float] | None = None
    sql: str = ""
    where: tuple[str, pl.Expr] | None = None
    limit: float = ONE

    @property
    def name(self) -> str:
        """For people."""
        scale = f" in {self.bounds[0]:g} to {self.bounds[1]:g}" if self.bounds else ""
        return f"`{self.text}`{scale}" + (f" where `{self.where[0]}`" if self.where else "")

    @property
    def implied(self) -> bool:
        """Whether constants imply the bounds, so that nobody would clip."""
        return self.text == _STEPS

    def duckdb(self, source: str) -> list[str]:
        """Every way to write it."""
        where = f" WHERE {self.where[0]}" if self.where else ""
        if self.bounds is None:
            text = self.sql or self.text
            counts = [f"SELECT count(*), {count.format(text)} FROM {source}{where}" for count in _COUNTS]
            return counts if where else [*counts, f"SELECT count(*) FROM {source} WHERE {text}"]
        return [
            f"SELECT count(*), sum(v), sum(v * v) FROM (SELECT {v} AS v FROM {source}{where})" for v in self._units()
        ]

    def _units(self) -> tuple[str, ...]:
        low, high = self.bounds or (0, 1)
        x, scaled = f"({self.sql})", f"({self.sql} - {low}e0) / {high - low}e0"
        case = f"CASE WHEN {x} <= {low}e0 THEN 0e0 WHEN {x} >= {high}e0 THEN 1e0 ELSE {scaled} END"
        case = f"CASE WHEN {x} IS NULL THEN 0e0 ELSE {case} END"
        clipped = (case, f"coalesce(least(greatest({scaled}, 0e0), 1e0), 0e0)")
        return (*clipped, scaled) if self.implied else clipped

    def lazy(self, frame: pl.LazyFrame) -> list[pl.LazyFrame]:
        """Every way to write it."""
        frame = frame.filter(self.where[1]) if self.where else frame
        if self.bounds is None:
            summed = frame.select(pl.len(), self.polars.sum().alias("v"))
            return [summed] if self.where else [summed, frame.filter(self.polars).select(pl.len())]
        low, high = self.bounds
        x, scaled = self.polars, (self.polars - low) / (high - low)
        case = pl.when(x <= low).then(0.0).when(x >= high).then(1.0).otherwise(scaled).fill_null(0.0)
        values = [case, scaled.clip(0, 1).fill_null(0.0), *([scaled] if self.implied else [])]
        return [
            frame.select(v.alias("v")).select(pl.len(), _c.v.sum().alias("s"), (_c.v * _c.v).sum().alias("q"))
            for v in values
        ]


_STEPS = "CASE WHEN age < 30 THEN 0 WHEN age < 60 THEN 0.5 ELSE 1 END"
QUESTIONS = [
    Question("churned", _c.churned),
    Question("country = 'CH'", _c.country == "CH"),
    Question("amount < 120", _c.amount < 120),
    Question("age < 30 AND country = 'CH'", (_c.age < 30) & (_c.country == "CH")),
    Question("churned AND country = 'CH' AND amount < 50", _c.churned & (_c.country == "CH") & (_c.amount < 50)),
    Question("joined >= DATE '2020-01-01'", _c.joined >= date(2020, 1, 1)),
    Question("email LIKE 'user1%'", _c.email.str.starts_with("user1")),
    Question("amount", _c.amount, (0, 500), "amount"),
    Question("age", _c.age.cast(pl.Float64), (0, 100), "CAST(age AS DOUBLE)"),
    Question(
        "amount / (tenure + 1)", _c.amount / (_c.tenure.cast(pl.Float64) + 1), (0, 50), "(amount / (tenure + 1e0))"
    ),
    Question("churned", _c.churned, where=("country = 'CH'", _c.country == "CH"), limit=WITHIN),
    Question("amount < 120", _c.amount < 120, where=("age < 30", _c.age < 30), limit=WITHIN),
    Question("amount", _c.amount, (0, 500), "amount", ("age < 30", _c.age < 30), WITHIN),
    Question("amount", _c.amount, (0, 500), "amount", ("active", _c.active), WITHIN),
    Question("CASE WHEN amount > 100 THEN 1 ELSE 0 END", _c.amount > 100, sql="amount > 100", limit=CASE),
    Question(
        _STEPS,
        pl.when(_c.age < 30).then(0.0).when(_c.age < 60).then(0.5).otherwise(1.0),
        (0, 1),
        "CASE WHEN age < 30 THEN 0e0 WHEN age < 60 THEN 0.5e0 ELSE 1e0 END",
        limit=CASE,
    ),
    Question(
        "CASE WHEN active THEN amount ELSE 0 END",
        pl.when(_c.active).then(_c.amount).otherwise(0.0),
        (0, 500),
        "CASE WHEN active THEN amount ELSE 0e0 END",
        limit=CASE,
    ),
]


def compare(
    question: Question,
    guard: afresh.Guard,
    where: str,
    source: str,
    database: Any,
    frame: pl.LazyFrame | None,
    rounds: int,
) -> Iterator[Measured]:
    """One question, all ways in turns."""
    engine, fresh = guard.desk.engine, itertools.count(1)
    low, high = question.bounds or (0, 1)
    missing = None if question.bounds is None and question.where is None else low
    bounds = None if question.bounds is None else (low, high)
    asked = ask(question.text, engine.schema, bounds, question.where[0] if question.where else None, missing)
    works: dict[str, Callable[[], object]] = {"ours": lambda: moments_of(engine, asked.queries)}
    if question.bounds is not None and question.where is None and "CASE" not in question.text:
        # a new question every time: what is missing counts as another number
        works["ask"] = lambda: guard.ask(question.text, bounds=(low, high), missing=low + 1e-9 * next(fresh))
    for i, sql in enumerate(question.duckdb(source)):
        works[f"duckdb {i}"] = lambda sql=sql: database.execute(sql).fetchall()  # type: ignore[misc]
    # Rows in memory are counted faster by the other engine, unless there is more to them than a comparison.
    kinds = ("streaming", "in-memory") if where == MEMORY and question.bounds is None else ("streaming",)
    for i, lazy in enumerate([] if frame is None else question.lazy(frame)):
        for kind in kinds:
            options = {"engine": kind} | (_UNOPTIMIZED if kind == "in-memory" else {})
            works[f"polars {i} {kind}"] = lambda q=lazy, o=options: q.collect(**o)  # type: ignore[misc]
    taken = side_by_side(works, rounds, time.process_time)
    best = {
        kind: min((seconds for name, seconds in taken.items() if name.startswith(kind)), default=float("inf"))
        for kind in ("duckdb", "polars")
    }
    used = best["polars" if getattr(engine, "_polars", None) is not None else "duckdb"]
    told = f"a whole ask {1000 * taken['ask']:.3g} ms" if "ask" in taken else ""
    yield compared(f"{where}: {question.name}", taken["ours"], used, question.limit, told)
    if frame is not None and used > min(best.values()):
        yield compared(f"{where}: {question.name}, engine to the faster", used, min(best.values()), FASTER)


def measure(rows: int = ROWS, rounds: int = 3) -> Iterator[Measured]:
    """All questions on all three."""
    with (
        written(rows) as path,
        written(rows, "duckdb") as file,
        tempfile.TemporaryDirectory() as ledgers,
        duckdb.connect() as database,
    ):
        database.execute(f"CREATE TABLE data AS SELECT * FROM read_parquet('{path}')")
        database.execute(f"ATTACH '{file}' AS file (READ_ONLY)")
        held = pl.read_parquet(path)
        for where, data, source, frame in (
            ("Parquet", path, f"read_parquet('{path}')", pl.scan_parquet(path)),
            (MEMORY, held, "data", held.lazy()),
            ("DuckDB file", file, "file.data", None),
        ):
            ledger = Path(ledgers) / f"{where}.sqlite"
            options: dict[str, Any] = {"method": "stabilized", "ledger": ledger, "allow_wide": True}
            with afresh.open(data, 2000, **options) as guard:
                for question in QUESTIONS:
                    yield from compare(question, guard, where, source, database, frame, rounds)
