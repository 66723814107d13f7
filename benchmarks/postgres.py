"""Postgres: a question compared with the best hand-written query, and a table's identity with one full scan of it.

Measured by the CPU time of the server's processes, so other work on the machine hardly matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg

from afresh.engines.remote.postgres import PostgresEngine
from afresh.guard.evaluate import moments_of
from afresh.queries.asked import ask
from benchmarks.identity import again
from benchmarks.measured import Measured, compared
from benchmarks.servers import postgres_server
from benchmarks.table import written
from benchmarks.timing import side_by_side

ROWS, IDENTITY, WITHIN = 1_000_000, 4.0, 1.4
COLUMNS = (
    "id bigint, age integer, tenure smallint, amount float8, score float8, churned boolean, active boolean, "
    "country text, email text, joined date"
)
_CASE = "CASE WHEN amount <= 0 THEN 0 WHEN amount >= 500 THEN 1 ELSE amount / 500 END"
_SUMS = f"SELECT count(*), sum(v), sum(v * v) FROM (SELECT coalesce({_CASE}, 0) AS v FROM data{{}} OFFSET 0) AS d"
# a question, its bounds, its group, and the ways to write it
QUESTIONS: list[tuple[str, tuple[float, float] | None, str | None, list[str], float | None]] = [
    ("amount < 120", None, None, ["SELECT count(*), count(*) FILTER (WHERE amount < 120) FROM data"], None),
    ("amount", (0, 500), None, [_SUMS.format("")], None),
    ("amount", (0, 500), "age < 30", [_SUMS.format(" WHERE age < 30")], WITHIN),
    (
        "CASE WHEN amount > 100 THEN 1 ELSE 0 END",
        None,
        None,
        ["SELECT count(*), count(*) FILTER (WHERE amount > 100) FROM data"],
        None,
    ),
]


def measure(rows: int = ROWS, rounds: int = 4) -> Iterator[Measured]:
    """On one table, without workers in parallel."""
    with postgres_server() as url, written(rows, "csv") as path, psycopg.connect(url, autocommit=True) as database:
        database.execute("ALTER DATABASE postgres SET max_parallel_workers_per_gather = 0")
        database.execute(f"CREATE TABLE data ({COLUMNS})")
        with database.cursor().copy("COPY data FROM STDIN CSV HEADER") as copy:
            copy.write(path.read_bytes())
        database.execute("VACUUM ANALYZE data")
        engine = PostgresEngine(url, "data")
        texts = {name: f"{name}::int" if kind == "boolean" else name for name, kind in engine._columns.items()}
        scan = ", ".join(f"min({one}), max({one}), count({one})" for one in texts.values())
        with psycopg.connect(url, autocommit=True) as plain:
            plain.execute("SET jit = off")
            processes = [plain.info.backend_pid, engine._held[0].info.backend_pid]

            def best(ours: Callable[[], object], texts: list[str]) -> tuple[float, float]:
                works = {f"{i}": lambda sql=sql: plain.execute(sql).fetchall() for i, sql in enumerate(texts)}
                taken = side_by_side({"ours": ours, **works}, rounds, lambda: sum(map(_used, processes)))
                return taken.pop("ours"), min(taken.values())

            for text, bounds, where, texts_of, limit in QUESTIONS:
                queries: Any = ask(text, engine.schema, bounds, where, None if bounds is None else 0).queries
                ours, by_hand = best(lambda queries=queries: moments_of(engine, queries), texts_of)  # type: ignore[misc]
                name = f"`{text}`" + (f" where `{where}`" if where else "")
                yield compared(f"Postgres, {rows:,} rows: {name}", ours, by_hand, limit)
            name = f"Postgres, {rows:,} rows: identity to a scan"
            yield compared(name, *best(lambda: again(engine), [f"SELECT {scan} FROM data"]), IDENTITY)
        engine.close()


def _used(process: int) -> float:
    """The processor time of a process so far, in seconds."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
