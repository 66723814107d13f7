"""One question: afresh against the best hand-written query on its engine (limit 1.25) and that one against the
faster of the best in DuckDB and in Polars (limit 1.5); milliseconds, the shortest of several turns.

`moments` is the engine's work, which is what the hand-written queries do; `ask` is everything: reading the question,
two durable commits of the ledger, noise and the interval.
"""

import itertools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

import afresh
from afresh.queries.query import make_query
from benchmarks.table import ROWS, written
from benchmarks.timing import side_by_side

_COUNTS = (
    "count_if({})",
    "count(*) FILTER ({})",
    "count(CASE WHEN {} THEN 1 END)",
    "sum(CASE WHEN {} THEN 1 ELSE 0 END)",
)
_c = pl.col


@dataclass(frozen=True)
class Question:
    """A question, and its values as one would write them in SQL and in Polars."""

    text: str
    polars: pl.Expr
    bounds: tuple[float, float] | None = None
    sql: str = ""

    def duckdb(self, source: str) -> list[str]:
        if self.bounds is None:
            counts = [f"SELECT count(*), {count.format(self.text)} FROM {source}" for count in _COUNTS]
            return [*counts, f"SELECT count(*) FROM {source} WHERE {self.text}"]
        low, high = self.bounds
        x, scaled = f"({self.sql})", f"({self.sql} - {low}e0) / {high - low}e0"
        case = f"CASE WHEN {x} <= {low}e0 THEN 0e0 WHEN {x} >= {high}e0 THEN 1e0 ELSE {scaled} END"
        case = f"CASE WHEN {x} IS NULL THEN 0e0 ELSE {case} END"
        clip = f"coalesce(least(greatest({scaled}, 0e0), 1e0), 0e0)"
        return [f"SELECT count(*), sum(v), sum(v * v) FROM (SELECT {v} AS v FROM {source})" for v in (case, clip)]

    def lazy(self, frame: pl.LazyFrame) -> list[pl.LazyFrame]:
        if self.bounds is None:
            return [frame.select(pl.len(), self.polars.sum().alias("v")), frame.filter(self.polars).select(pl.len())]
        low, high = self.bounds
        x, scaled = self.polars, (self.polars - low) / (high - low)
        case = pl.when(x <= low).then(0.0).when(x >= high).then(1.0).otherwise(scaled).fill_null(0.0)
        return [
            frame.select(v.alias("v")).select(pl.len(), _c.v.sum().alias("s"), (_c.v * _c.v).sum().alias("q"))
            for v in (case, scaled.clip(0, 1).fill_null(0.0))
        ]


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
]


def _row(question: Question, guard: afresh.Guard, source: str, database: Any, frame: pl.LazyFrame, rounds: int) -> str:
    engine, fresh = guard.desk.engine, itertools.count(1)
    query = make_query(question.text, engine.schema, question.bounds)

    def ask() -> object:  # a new question every time: the condition is true and costs nothing to test
        low, high = question.bounds or (0, 1)
        return guard.ask(
            question.text, bounds=(low, high), missing=None if question.bounds is None else low + 1e-9 * next(fresh)
        )

    works: dict[str, Callable[[], object]] = {"moments": lambda: engine.moments([query])}
    if question.bounds is not None:  # a condition has no constant to vary
        works["ask"] = ask
    for i, sql in enumerate(question.duckdb(source)):
        works[f"duckdb {i}"] = lambda sql=sql: database.execute(sql).fetchall()  # type: ignore[misc]
    for i, lazy in enumerate(question.lazy(frame)):
        works[f"polars {i}"] = lambda lazy=lazy: lazy.collect(engine="streaming")  # type: ignore[misc]
    taken = side_by_side(works, rounds)
    in_duckdb, in_polars = (
        min(seconds for name, seconds in taken.items() if name.startswith(kind)) for kind in ("duckdb", "polars")
    )
    used = in_polars if getattr(engine, "_polars", None) is not None else in_duckdb
    asked = f"{1000 * taken['ask']:8.1f}" if "ask" in taken else " " * 8
    return (
        f"  {question.text:<44}{1000 * taken['moments']:9.1f}{asked}{1000 * in_duckdb:9.1f}{1000 * in_polars:9.1f}"
        f"{taken['moments'] / used:9.2f}{used / min(in_duckdb, in_polars):9.2f}"
    )


def main(rows: int = ROWS, rounds: int = 7) -> None:
    with written(rows) as path, tempfile.TemporaryDirectory() as ledgers, duckdb.connect() as database:
        database.execute(f"CREATE TABLE data AS SELECT * FROM read_parquet('{path}')")
        held = pl.read_parquet(path)
        for where, data, source, frame in (
            ("on Parquet", path, f"read_parquet('{path}')", pl.scan_parquet(path)),
            ("in memory", held, "data", held.lazy()),
        ):
            with afresh.open(
                data, questions=2000, method="stabilized", ledger=Path(ledgers) / f"{where}.sqlite", allow_wide=True
            ) as guard:
                print(f"  {rows:,} rows {where:<27}   moments     ask   DuckDB   Polars   to best   engine to faster")
                for question in QUESTIONS:
                    print(_row(question, guard, source, database, frame, rounds), flush=True)


if __name__ == "__main__":
    main()
