"""Spark: a question's jobs, a question compared with the best hand-written query, and the identity with one scan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from afresh.engines.remote.spark import SparkEngine
from afresh.guard.evaluate import moments_of
from afresh.queries.asked import ask
from benchmarks.identity import again
from benchmarks.measured import Measured, compared
from benchmarks.servers import spark_session
from benchmarks.table import written
from benchmarks.timing import side_by_side

ROWS, IDENTITY, JOBS = 1_000_000, 4.0, 1.0
_CASE = "coalesce(CASE WHEN amount <= 0 THEN 0D WHEN amount >= 500 THEN 1D ELSE amount / 500 END, 0D) AS v"


def measure(rows: int = ROWS, rounds: int = 1) -> Iterator[Measured]:
    """On one Parquet file."""
    with written(rows) as path, spark_session() as spark:
        frame = spark.read.parquet(str(path))
        engine = SparkEngine(frame)

        def questions(text: str, bounds: tuple[float, float] | None = None, where: str | None = None) -> Any:
            return ask(text, engine.schema, bounds, where, None if bounds is None else 0).queries

        def jobs(name: str, work: Callable[[], object]) -> int:
            spark.sparkContext.setJobGroup(name, name)
            work()
            return len(spark.sparkContext.statusTracker().getJobIdsForGroup(name))

        def ask_all() -> None:
            engine.check_unchanged()
            moments_of(engine, questions("amount", (0, 500), "age < 30"))

        def by_hand() -> object:
            return frame.selectExpr("count(*)", "count_if(age < 30)").collect()

        ours, theirs = jobs("ours", ask_all), jobs("by hand", by_hand)
        told = f"{ours} to {theirs}: with adaptive execution a job for every stage"
        yield Measured("Spark: jobs of a question, to those of one query", ours / theirs, JOBS, told)
        count = questions("amount < 120")
        within = questions("amount", (0, 500), "age < 30")
        pairs: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
            "`amount < 120`": (
                lambda: moments_of(engine, count),
                lambda: frame.selectExpr("count(*)", "count_if(amount < 120)").collect(),
            ),
            "`amount` where `age < 30`": (
                lambda: moments_of(engine, within),
                lambda: (
                    frame.where("age < 30").selectExpr(_CASE).selectExpr("count(*)", "sum(v)", "sum(v * v)").collect()
                ),
            ),
        }
        for name, (mine, yours) in pairs.items():
            taken = side_by_side({"ours": mine, "by hand": yours}, rounds)
            yield compared(f"Spark, {rows:,} rows: {name}", taken["ours"], taken["by hand"])
        names = [field.name for field in frame.schema.fields]
        scan = [f"{what}({name})" for name in names for what in ("min", "max", "count")]
        taken = side_by_side(
            {"identity": lambda: again(engine), "scan": lambda: frame.selectExpr(*scan).collect()}, rounds
        )
        yield compared(f"Spark, {rows:,} rows: identity to a scan", taken["identity"], taken["scan"], IDENTITY)
