"""The tables that benchmarks ask about, as files: most have 10 columns of mixed types with NULLs."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb

ROWS = 10_000_000


def _uniform(key: int) -> str:
    return f"(hash(i, {key}) % 1000003) / 1000003e0"


MIXED = f"""
    i AS id,
    CASE WHEN {_uniform(1)} < .02 THEN NULL ELSE CAST(18 + 70 * {_uniform(2)} AS INTEGER) END AS age,
    CAST(floor(-30 * ln(1 - {_uniform(3)})) AS SMALLINT) AS tenure,
    CASE WHEN {_uniform(4)} < .05 THEN NULL ELSE -100 * ln(1 - {_uniform(5)}) END AS amount,
    {_uniform(6)} AS score,
    CASE WHEN {_uniform(7)} < .03 THEN NULL ELSE {_uniform(8)} < .2 END AS churned,
    {_uniform(9)} < .6 AS active,
    CASE WHEN {_uniform(10)} < .01 THEN NULL
         ELSE ['CH', 'DE', 'FR', 'IT', 'AT', 'US', 'JP', 'BR', 'IN', 'KE'][
             1 + CAST(floor(10 * {_uniform(11)} * {_uniform(12)}) AS INTEGER)] END AS country,
    'user' || (hash(i, 13) % 100000000) || '@example.org' AS email,
    DATE '2015-01-01' + CAST(3650 * {_uniform(14)} AS INTEGER) AS joined
"""


NUMBERS = ", ".join(
    [*(f"{_uniform(k)} AS x{k}" for k in range(5)), *(f"hash(i, {k}) % 10000000 AS n{k}" for k in range(5))]
)
TEXTS = ", ".join(f"'{word}' || hash(i, {k}) AS t{k}" for k, word in enumerate(["user", "item-", "session/"]))


@contextlib.contextmanager
def written(rows: int, form: str = "parquet", columns: str = MIXED) -> Iterator[Path]:
    """A file of that many rows, for as long as it is needed."""
    with tempfile.TemporaryDirectory(prefix="afresh-benchmark-") as directory:
        path = Path(directory) / f"data.{form}"
        rows_of = f"SELECT {columns} FROM range({rows:d}) AS r(i)"
        with duckdb.connect(path if form == "duckdb" else ":memory:") as connection:
            if form == "duckdb":
                connection.execute(f"CREATE TABLE data AS {rows_of}")
            else:
                connection.execute(f"COPY ({rows_of}) TO '{path}' (FORMAT {form})")
        yield path
