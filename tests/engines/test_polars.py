"""Polars, which answers about large data, must mean exactly what `operations` says too, where it is used at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.engines.embedded import engine as embedded
from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.embedded.polars_scan import PolarsScan
from afresh.errors import EngineError
from afresh.moments import Moments, even_spans
from afresh.queries.query import Query, make_query
from afresh.queries.tree import Node
from engines import oracle
from engines.conformance import _queries, check
from engines.nasty import ROWS, table
from examples import examples


@pytest.fixture
def few_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "LARGE", 1)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("polars") / "na*sty.parquet"
    small = table().append_column("small", pa.array([i % 7 - 3 for i in range(len(ROWS))], pa.int8()))
    pyarrow.parquet.write_table(small, path)
    return path


@pytest.fixture(scope="module")
def scans(path: Path) -> Iterator[list[PolarsScan]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedded, "LARGE", 1)
        engines = [EmbeddedEngine(path), EmbeddedEngine(table())]
        yield [engine._polars for engine in engines if engine._polars is not None]
        for engine in engines:
            engine.close()


@examples(3)
@given(asked=st.lists(_queries(), min_size=1, max_size=4))
def test_polars_agrees_with_the_oracle(scans: list[PolarsScan], asked: list[tuple[Query, Node, Node | None]]) -> None:
    assert len(scans) == 2
    values: dict[int, list[float]] = {}
    for scan in scans:
        known = [(i, one[0], expr) for i, one in enumerate(asked) if (expr := scan.translate(one[0])) is not None]
        if not known:
            continue
        found = scan.sums([(query, expr) for _, query, expr in known], 60.0)
        assert found is not None
        for (i, query, _), sums in zip(known, found[1], strict=True):
            if i not in values:
                values[i] = oracle.psi(*asked[i], ROWS)
            check(query, Moments(found[0], *sums), values[i])


QUESTIONS = ["small < 2", "small = -3", "2 <= small", "small < 2.5", "small < 1000", "small IN (1, 2)", "small = x"]
QUESTIONS += ["x < 1", "1 < x", "x = 1", "x <= y", "NOT (x < 1)", "NOT (x = 1)", "x + y > 0", "x <> 2.5", "big > 0"]
QUESTIONS += ["day < '2000-01-01'", "moment >= '1969-12-31 23:59:59'", "flag", "NOT flag", "city = 'Bern' AND x > 0"]
ONLY_DUCKDB = ["city LIKE '%e_n'", "round(x) = 1", "x % 2 = 1", "TRUE", "lower(city) = 'b'"]


@pytest.mark.usefixtures("few_are_large")
def test_both_engines_agree(path: Path) -> None:
    engine = EmbeddedEngine(path)
    queries = [make_query(text, engine.schema) for text in QUESTIONS + ONLY_DUCKDB]
    queries += [make_query("x", engine.schema, (-1, 2)), make_query("small * 2", engine.schema, (0, 5))]
    assert engine._polars is not None
    translated = [engine._polars.translate(query) is not None for query in queries]
    assert translated == [True] * len(QUESTIONS) + [False] * len(ONLY_DUCKDB) + [True, True]
    expected = engine._scan(queries, None)
    for found, other in zip(engine.moments(queries), expected, strict=True):
        assert (found.n, found.total, found.squares) == pytest.approx((other.n, other.total, other.squares), rel=1e-13)


@pytest.mark.usefixtures("few_are_large")
def test_rows_in_memory_are_held_once_and_shuffled(path: Path) -> None:
    frame = table().append_column("list", pa.array([[i] for i in range(len(ROWS))]))
    engine, file = EmbeddedEngine(frame), EmbeddedEngine(path)
    assert engine.schema["list"] is None
    assert engine._connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (0,)
    query = make_query("x", engine.schema, (-1, 2))
    whole = engine.moments([query])[0]
    engine.shuffle("seed")
    assert sum(part.total for part in engine.moments([query] * 7, even_spans(engine.rows, 7))) == pytest.approx(
        whole.total
    )
    assert engine.moments([query])[0].total == pytest.approx(whole.total)
    assert engine.identity().fingerprint == EmbeddedEngine(frame).identity().fingerprint != file.identity().fingerprint


@pytest.mark.usefixtures("few_are_large")
def test_limits(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose row groups are too large for the memory limit is DuckDB's; too long is a failure like any other."""
    large = EmbeddedEngine(path)
    with monkeypatch.context() as patch:
        patch.setattr("afresh.engines.embedded.engine.largest_group", lambda literal: "SELECT 10::BIGINT ** 14")
        assert large._polars is None
    assert EmbeddedEngine(path)._polars is not None
    slow = EmbeddedEngine(path, time_limit=3600)
    slow._time_limit = -1.0
    with pytest.raises(EngineError, match="the engine failed"):
        slow.moments([make_query("x < 1", slow.schema)])


@pytest.mark.usefixtures("few_are_large")
def test_what_polars_says_about_rows_stays_inside(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = EmbeddedEngine(path)
    assert engine._polars is not None
    failing = engine._polars._frame.with_columns(x=pl.col("city").cast(pl.Float64))
    monkeypatch.setattr(engine._polars, "_frame", failing)
    with pytest.raises(EngineError) as caught:
        engine.moments([make_query("x < 1", engine.schema)])
    assert caught.value.__context__ is None


@pytest.fixture(scope="module")
def constant() -> Iterator[list[tuple[EmbeddedEngine, EmbeddedEngine]]]:
    """Tables whose every row is the same, in both engines."""
    found = []
    for place in (None, 0, 17, 99, 200):
        cells = {name: None if place is None else table()[name][place].as_py() for name in table().column_names}
        rows = pa.Table.from_pylist([cells] * 50, schema=table().schema)
        with_polars, without = EmbeddedEngine(rows), EmbeddedEngine(rows)
        without.__dict__["_polars"] = None
        found.append((with_polars, without))
    yield found
    for pair in found:
        for engine in pair:
            engine.close()


@examples(1)
@given(made=_queries())
def test_constant_columns_change_values_only(
    constant: list[tuple[EmbeddedEngine, EmbeddedEngine]], made: tuple[Query, Node, Node | None]
) -> None:
    """Polars makes one value of some constant columns, which must not show in the number of rows."""
    agree(constant, made[0])


ON_THE_LEFT = [
    "'b' < flag::text",
    "0 <= flag::int",
    "'' = substring(coalesce(city, '%'), 2)",
    "'' < coalesce(city, '')",
]
ON_THE_LEFT += ["5 > month(CASE WHEN flag THEN moment END)"]
ON_THE_LEFT += ["CASE WHEN 0 <= CASE WHEN flag THEN 1 ELSE 0 END THEN .2 ELSE .7 END"]


@pytest.mark.parametrize("text", [*ON_THE_LEFT, *(f"NOT ({text})" for text in ON_THE_LEFT if "THEN .2" not in text)])
def test_a_constant_on_the_left_is_compared_with_every_row(
    constant: list[tuple[EmbeddedEngine, EmbeddedEngine]], text: str
) -> None:
    query = make_query(text, constant[0][0].schema)
    assert constant[0][0]._polars is not None
    assert constant[0][0]._polars.translate(query) is not None
    agree(constant, query)


DECIDED = ["TRUE OR flag", "x < 1 OR TRUE", "FALSE AND other", "flag = TRUE", "NOT TRUE OR flag", "coalesce(1, x) = 1"]
DECIDED += ["coalesce(TRUE, flag)", "CASE WHEN TRUE THEN 1 ELSE x END = 1", "CASE WHEN flag THEN TRUE ELSE TRUE END"]
DECIDED += ["CASE WHEN flag THEN 1 WHEN TRUE THEN 2 ELSE 3 END", "city LIKE '%'", "city LIKE ''", "length('abc') > x"]
DECIDED += ["ln(1e308) <> flag::double", "exp(2) < x * 2", "CASE WHEN flag THEN x END IS NULL", "least(1, 2) < x"]
DECIDED += ["CAST(NULL AS BOOLEAN) OR flag", "x < CAST(NULL AS DOUBLE)", "flag IN (TRUE)", "x IN (1) OR 1 IN (1)"]


@pytest.mark.parametrize("text", DECIDED)
def test_what_a_constant_decides_has_a_value_in_every_row(
    constant: list[tuple[EmbeddedEngine, EmbeddedEngine]], text: str
) -> None:
    agree(constant, make_query(text, constant[0][0].schema))
    agree(constant, make_query(f"NOT ({text})" if "ELSE 3" not in text else f"-({text})", constant[0][0].schema))


def test_quotients_are_rounded_once() -> None:
    """Polars divides by one value as by its reciprocal, and 3 * (1 / 10) is not 3 / 10, nor 0 * (1 / 5e-324) 0."""
    rows = pa.table({"x": [3.0, 6.0, 7.0, 0.0] * 30, "none": pa.array([None] * 120, pa.float64())})
    with closing(EmbeddedEngine(rows)) as engine:
        assert engine._polars is not None
        for text, count in {
            "x / 10 = 0.3": 30,
            "x / coalesce(none, 10) = 0.6": 30,
            "x / (CASE WHEN x > 100 THEN none ELSE 10 END) = 0.7": 30,
            "x / 5e-324 = 0": 30,
            "x / x = 1": 90,
            "x / (x + 4) = 0.6363636363636364": 30,
        }.items():
            query = make_query(text, engine.schema)
            assert engine._polars.translate(query) is not None
            assert engine.moments([query])[0].total == count, text
        tiny = make_query("x * 5e-324", engine.schema, (0.0, 1e-323))
        assert engine.moments([tiny])[0].total == 90


def agree(engines: list[tuple[EmbeddedEngine, EmbeddedEngine]], query: Query) -> None:
    for with_polars, without in engines:
        found, expected = with_polars.moments([query])[0], without.moments([query])[0]
        assert found.n == expected.n
        assert (found.total, found.squares) == pytest.approx((expected.total, expected.squares), abs=1e-9)
