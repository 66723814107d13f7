"""The same rows are the same data, whatever they come in; nothing about a row leaks out of an error."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.embedded.scratch import Scratch, sweep
from afresh.engines.open import open_engine
from afresh.errors import DataChanged, DataError, EngineError, InvalidArgument
from afresh.moments import Span, even_spans
from afresh.queries.query import make_query
from afresh.queries.tree import Type

N = 500
ROWS = pa.table(
    {
        "id": pa.array(range(N), pa.int64()),
        "amount": pa.array([None if i % 7 == 0 else i * 0.37 for i in range(N)], pa.float64()),
        "country": pa.array([["CH", "it's", "日本", None, 'a,"b"'][i % 5] for i in range(N)]),
        "churned": pa.array([[True, False, None][i % 3] for i in range(N)]),
        "day": pa.array([date(2020, 1, 1 + i % 28) for i in range(N)]),
        "at": pa.array([datetime(2020, 1, 1, 0, 0, i % 60, i) for i in range(N)], pa.timestamp("us")),
    }
)


def _parquet(path: Path, table: pa.Table = ROWS, **options: object) -> Path:
    pa.parquet.write_table(table, path, **options)
    return path


def _duckdb(path: Path, *, tables: tuple[str, ...] = ("rows",)) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.register("incoming", ROWS)
        for table in tables:
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")
    return path


def _csv(path: Path) -> Path:
    pa.csv.write_csv(ROWS, path)
    return path


def _gzip(path: Path) -> Path:
    with duckdb.connect() as connection:
        connection.register("incoming", ROWS)
        connection.execute(f"COPY incoming TO '{path}' (FORMAT csv, HEADER)")
    return path


def _tsv(path: Path) -> Path:
    pd_rows = pl.from_arrow(ROWS)
    assert isinstance(pd_rows, pl.DataFrame)
    pd_rows.write_csv(path, separator="\t")
    return path


KINDS: dict[str, Callable[[Path], object]] = {
    "parquet": lambda d: _parquet(d / "a.parquet"),
    "zstd, small groups": lambda d: str(_parquet(d / "b.parquet", compression="zstd", row_group_size=50)),
    "odd file name": lambda d: _parquet(d / "o'dd [x]*?.parquet"),
    "csv": lambda d: _csv(d / "a.csv"),
    "csv.gz": lambda d: _gzip(d / "a.csv.gz"),
    "tsv": lambda d: _tsv(d / "a.tsv"),
    "duckdb": lambda d: _duckdb(d / "a.duckdb"),
    "pandas": lambda d: ROWS.to_pandas(),
    "pandas, arrow types": lambda d: ROWS.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda d: pl.from_arrow(ROWS),
    "polars, lazy": lambda d: pl.from_arrow(ROWS).lazy(),  # type: ignore[union-attr]  # a frame, as ROWS is a table
    "arrow": lambda d: ROWS,
    "ibis": lambda d: ibis.memtable(ROWS),
    "reversed": lambda d: ROWS.take(list(range(N))[::-1]),
    "other column order": lambda d: ROWS.select(ROWS.column_names[::-1]),
    "doubles": lambda d: ROWS.set_column(0, "id", ROWS["id"].cast(pa.float64())),
    "small integers": lambda d: ROWS.set_column(0, "id", ROWS["id"].cast(pa.uint16())),
    "decimals": lambda d: ROWS.set_column(0, "id", ROWS["id"].cast(pa.decimal128(22, 2))),
    "dictionary": lambda d: ROWS.set_column(2, "country", ROWS["country"].dictionary_encode()),
    "zoned": lambda d: ROWS.set_column(5, "at", ROWS["at"].cast(pa.timestamp("us", "UTC"))),
    "nanoseconds": lambda d: ROWS.set_column(5, "at", ROWS["at"].cast(pa.timestamp("ns"))),
}
QUESTIONS = [
    "churned AND amount < 100",
    "country = 'it''s'",
    "day >= '2020-01-15' OR at < '2020-01-01 00:00:30'",
]


@pytest.fixture(scope="module")
def reference() -> EmbeddedEngine:
    return EmbeddedEngine(ROWS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same(kind: str, tmp_path: Path, reference: EmbeddedEngine) -> None:
    engine = open_engine(KINDS[kind](tmp_path))
    assert engine.rows == N
    assert dict(engine.schema) == dict(reference.schema)
    assert engine.identity().fingerprint == reference.identity().fingerprint
    queries = [make_query(text, engine.schema) for text in QUESTIONS]
    queries.append(make_query("amount / id", engine.schema, (0, 0.5)))
    for opened in (engine, reference):
        opened.shuffle("a seed")
    overlapping = [Span(0, 7), Span(3, N), Span(N - 1, N), Span(0, N)]
    for spans in (None, even_spans(N, 4), overlapping):
        for found, expected in zip(engine.moments(queries, spans), reference.moments(queries, spans), strict=True):
            assert found.n == expected.n
            assert found.total == pytest.approx(expected.total, rel=1e-13)
            assert found.squares == pytest.approx(expected.squares, rel=1e-13)
    engine.close()
    engine.close()


def _print(**columns: object) -> str:
    engine = EmbeddedEngine(pa.table(columns))
    try:
        return engine.identity().fingerprint
    finally:
        engine.close()


def test_fingerprint_never_changes() -> None:
    """Ledgers keep fingerprints for years: if this fails, `identity.cells.VERSION` must change with it."""
    found = _print(
        a=[1.5, None, 1e300, 123456789.0, 2.0**60],
        b=["é", "x", "", "007", "2020-02-29 12:00"],
        c=[True, None, False, True, True],
        d=[date(2020, 2, 29), None, date(1960, 1, 1), date(1, 1, 1), date(9999, 12, 31)],
        e=[datetime(2020, 2, 29, 1), None, datetime(1960, 1, 1), datetime(1960, 1, 1, 1), datetime(2020, 1, 1)],
        f=[[1, 2], None, [], [None], [3]],
    )
    assert found == "rows-3:3d8aa33dad4f660a893c06c19b32a8aea6b3bf11497687eb9ec4f2749df078bf"


def test_a_shuffle_is_fair() -> None:
    """Every row lands in each of 4 spans equally often over 400 seeds.

    Each count is Binomial(400, 7/30), sd 8.5; the largest of 30 * 4 deviates by 6 sd with probability < 1e-6.
    """
    engine = EmbeddedEngine(pa.table({"id": list(range(30))}))
    singles = [make_query(f"id = {i}", engine.schema) for i in range(30)]
    counts: Counter[tuple[int, int]] = Counter()
    for seed in range(400):
        engine.shuffle(str(seed))
        placed = list(enumerate(engine.deal.places.tolist()))
        assert sorted(row for row, _ in placed) == sorted(place for _, place in placed) == list(range(30))
        counts.update((row, place // 7) for row, place in placed)
    assert all(abs(counts[row, part] - 400 * 7 / 30) < 52 for row in range(30) for part in range(4))
    # the last shuffle, seen through moments
    seen = [[engine.moments([single], [span])[0].total for span in even_spans(30, 4)] for single in singles[:10]]
    places = dict(placed)
    assert [[float(places[i] // 7 == part) for part in range(4)] for i in range(10)] == seen


def test_a_shuffle_depends_on_the_seed_and_not_on_names_of_ours() -> None:
    table = pa.table({"place": list(range(50)), "r": [1] * 50, "c0": [2.0] * 50, "t0_0": [3] * 50, "d": ["x"] * 50})
    engine = EmbeddedEngine(table)
    query = make_query("place + c0 * r / t0_0", engine.schema, (0, 60))
    totals = []
    for seed in ("a", "b", "a"):
        engine.shuffle(seed)
        totals.append([found.total for found in engine.moments([query] * 5, even_spans(50, 5))])
    assert totals[0] == totals[2] != totals[1]
    assert sum(totals[0]) == pytest.approx(engine.moments([query])[0].total)


def test_spans_are_checked() -> None:
    engine = EmbeddedEngine(ROWS)
    query = make_query("churned", engine.schema)
    with pytest.raises(InvalidArgument, match="not shuffled"):
        engine.moments([query], [Span(0, 1)])
    engine.shuffle("s")
    for wrong in (Span(0, N + 1), Span(-1, 3), Span(3, 3), Span(4, 3)):
        with pytest.raises(InvalidArgument, match="count from 0"):
            engine.moments([query], [wrong])
    with pytest.raises(InvalidArgument, match="every query needs its own"):
        engine.moments([query], [Span(0, 1), Span(1, 2)])


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.duckdb"])
def test_a_changed_file_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    {"a.parquet": _parquet, "a.csv": _csv, "a.duckdb": _duckdb}[name](path)
    engine = open_engine(path)
    query = make_query("churned", engine.schema)
    assert engine.moments([query])[0].n == N
    shutil.copy(path, tmp_path / "copy")
    os.replace(tmp_path / "copy", path)
    with pytest.raises(DataChanged, match="changed, replaced or removed"):
        engine.moments([query])
    path.unlink()
    with pytest.raises(DataChanged):
        engine.identity()


@pytest.mark.parametrize("how", ["in place", "replaced"])
@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.duckdb"])
def test_a_file_changed_at_equal_size_and_time_is_refused(name: str, how: str, tmp_path: Path) -> None:
    path = tmp_path / name
    {"a.parquet": _parquet, "a.csv": _csv, "a.duckdb": _duckdb}[name](path)
    engine = open_engine(path)
    query = make_query("churned", engine.schema)
    before, content = path.stat(), path.read_bytes()
    written = path if how == "in place" else tmp_path / "other"
    written.write_bytes(content)  # what is in it does not matter: the stamp must not look
    os.utime(written, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.replace(written, path)
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with pytest.raises(DataChanged, match="Open it again"):
        engine.moments([query])
    with pytest.raises(DataChanged):
        engine.check_unchanged()


def test_what_duckdb_writes_beside_its_file_is_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.duckdb"
    _duckdb(path)
    engine = open_engine(path)
    engine.check_unchanged()
    path.with_name("a.duckdb.wal").write_bytes(b"")
    with pytest.raises(DataChanged):
        engine.check_unchanged()


def test_ctrl_c_is_a_keyboard_interrupt() -> None:
    engine = EmbeddedEngine(ROWS)

    def fail(words: str) -> None:
        raise RuntimeError(words)

    with pytest.raises(KeyboardInterrupt):
        engine._read(lambda _: fail("Query interrupted"))  # what DuckDB makes of SIGINT
    with pytest.raises(EngineError, match="failed to read") as other:
        engine._read(lambda _: fail("the value 17 of row 3"))
    assert other.value.__context__ is None
    assert engine.rows == N


@pytest.mark.parametrize("kind", ["Arrow", "Polars", "pandas"])
@pytest.mark.parametrize("rows", [1, 2**16, 2**17 + 12_345])
def test_a_frame_is_copied_row_by_row_in_pieces(kind: str, rows: int) -> None:
    """Whatever pieces it comes in, with NULLs and bits across their borders."""
    long = pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "text": pa.array([None if i % 7 == 1 else f"{i}" * (1 + i % 40) for i in range(rows)], pa.string()),
            "flag": pa.array([[True, False, None][i * i % 3] for i in range(rows)], pa.bool_()),
            "part": pa.array([None if i % 5 == 0 else i / 3 for i in range(rows)], pa.float64()),
        }
    )
    frame = pa.concat_tables([long.slice(start, 10_007) for start in range(0, rows, 10_007)])
    made: object = {"Arrow": lambda: frame, "Polars": lambda: pl.DataFrame(frame), "pandas": frame.to_pandas}[kind]()
    engine = EmbeddedEngine(made)
    held = engine.source.held
    assert held.cast(long.schema).equals(long)
    assert {len(piece) for piece in held["id"].chunks[:-1]} <= {2**16, 0}
    engine.close()


def test_a_frame_may_change_afterwards() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    engine = open_engine(frame)
    query = make_query("a > 1", engine.schema)
    frame["a"] = 0.0
    assert engine.moments([query])[0].total == 2


def test_many_questions_at_once() -> None:
    engine = EmbeddedEngine(ROWS)
    queries = [make_query(f"id < {i}", engine.schema) for i in range(450)]
    assert [found.total for found in engine.moments(queries)] == list(range(450))
    assert engine.moments([]) == []


@pytest.mark.parametrize("text", ["1 / (" * 20 + "amount" + ")" * 20, " ^ ".join(["amount"] * 90)])
def test_deep_expressions_run(text: str) -> None:
    engine = EmbeddedEngine(ROWS)
    assert engine.moments([make_query(text, engine.schema, (0, 1))])[0].n == N


def test_long_expressions_run() -> None:
    engine = EmbeddedEngine(ROWS)
    either = make_query(" OR ".join(f"id = {i}" for i in range(700)), engine.schema)
    chosen = make_query(f"id IN ({', '.join(map(str, range(1500)))})", engine.schema)
    chain = make_query(" + ".join(["id"] * 95), engine.schema, (0, 1e6))
    assert [found.total for found in engine.moments([either, chosen])] == [N, N]
    assert engine.moments([chain])[0].total == pytest.approx(95 * sum(range(N)) / 1e6)


def test_types() -> None:
    engine = EmbeddedEngine(
        pa.table({"l": [[1]], "b": [b"x"], "s": [{"a": 1}], "x": pa.array([1.5], pa.float32()), "t": ["a"]})
    )
    assert dict(engine.schema) == {"l": None, "b": None, "s": None, "x": Type.NUMBER, "t": Type.TEXT}


def test_duckdb_types_are_total(tmp_path: Path) -> None:
    """The limits of every number and time type can be asked about."""
    path = tmp_path / "limits.db"
    kinds = [
        "TINYINT",
        "SMALLINT",
        "INTEGER",
        "BIGINT",
        "HUGEINT",
        "UTINYINT",
        "USMALLINT",
        "UINTEGER",
        "UBIGINT",
    ]
    limits = {kind: ((1 << (8 << i)) // 2 - 1) for i, kind in enumerate(kinds[:5])}
    limits |= {kind: (1 << (8 << i)) - 1 for i, kind in enumerate(kinds[5:])} | {"UHUGEINT": (1 << 128) - 1}
    times = ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ"]
    columns = [f"{value}::{kind} AS {kind}" for kind, value in limits.items()]
    columns += ["9999.99::DECIMAL(6,2) AS dec", "(repeat('9', 38))::DECIMAL(38,0) AS wide"]
    columns += [f"'infinity'::{kind} AS inf_{kind}" for kind in times]
    columns += [f"'-infinity'::{kind} AS ninf_{kind}" for kind in times]
    columns += ["'5877642-06-25 (BC)'::DATE AS first", "'5881580-07-10'::DATE AS last"]
    columns += [
        "'290309-12-22 (BC) 00:00:00'::TIMESTAMP AS early",
        "'294247-01-10 04:00:54.775806'::TIMESTAMP AS late",
    ]
    columns += ["uuid() AS u", "'x'::ENUM('x', 'y') AS e"]
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT {', '.join(columns)}")
    engine = open_engine(path)
    assert None not in engine.schema.values()
    queries = [make_query(f"{name} IS NULL", engine.schema) for name in engine.schema]
    totals = {name: found.total for name, found in zip(engine.schema, engine.moments(queries), strict=True)}
    beyond = {"first", "last", "early", "late"}  # years no engine but DuckDB knows
    assert {name for name, total in totals.items() if total} == beyond | {name for name in totals if "inf_" in name}
    checks = [make_query(f"{kind} = {value}", engine.schema) for kind, value in limits.items()]
    assert [found.total for found in engine.moments(checks)] == [1.0] * len(checks)
    assert len(engine.identity().fingerprint) == len("rows-3:") + 64


SECRET = "do-not-tell-7391"


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"id": [1, 2], "odd": [10**40, 7391]}),
        pd.DataFrame({"id": [1, 2], "odd": pd.Series([2**64, -7391], dtype=object)}),
        pd.DataFrame({"id": [1], "odd": [7391 + 2j]}),
        pl.DataFrame({"id": [1], "odd": pl.Series([7391], dtype=pl.Int128)}),
        pa.table({"id": [1], "odd": pa.array([np.float16(7391)], pa.float16())}),
        pa.table({"id": [1], "odd": pa.array([Decimal(7391)], pa.decimal256(70, 2))}),
    ],
)
def test_a_column_that_cannot_be_stored_is_named(frame: object) -> None:
    with pytest.raises(DataError, match=r"the column 'odd' .*float") as refused:
        open_engine(frame)
    assert refused.value.__context__ is None
    assert "739" not in str(refused.value)


def test_no_error_quotes_a_row(tmp_path: Path) -> None:
    """Damaged files, mixed columns and failing statements say nothing about rows, not even as context."""
    not_parquet = tmp_path / "x.parquet"
    not_parquet.write_text(SECRET * 100)
    not_duckdb = tmp_path / "x.duckdb"
    not_duckdb.write_text(SECRET * 1000)
    latin = tmp_path / "latin.csv"
    latin.write_bytes(f"a\n{SECRET}".encode() + b"\xff\xfe\n")
    mixed = pd.DataFrame({"a": pd.Series([1, SECRET, [3]], dtype=object)})
    failing = pl.LazyFrame({"a": [SECRET]}).with_columns(pl.col("a").cast(pl.Int64))
    for data in (not_parquet, not_duckdb, latin, mixed, failing):
        with pytest.raises(DataError) as refused:
            open_engine(data)
        assert refused.value.__context__ is None
        assert SECRET not in "".join(traceback.format_exception(refused.value))
    engine = EmbeddedEngine(pa.table({"a": [SECRET]}))
    with pytest.raises(EngineError) as caught:
        engine._run("SELECT CAST(a AS INTEGER) FROM data")
    assert caught.value.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_limits_are_reported_alike(tmp_path: Path) -> None:
    """Too long, too large or broken: one message, whatever the reason and the rows."""
    messages = set()
    for engine, sql in (
        (EmbeddedEngine(ROWS, time_limit=0.2), "SELECT count(*) FROM range(10**12) a"),
        (EmbeddedEngine(ROWS, memory_limit="50MB"), "SELECT list(i) FROM range(10**8) r(i)"),
        (EmbeddedEngine(ROWS), "SELECT CAST(country AS INTEGER) FROM data"),
    ):
        with pytest.raises(EngineError) as caught:
            engine._run(sql)
        messages.add(str(caught.value))
        assert engine.moments([make_query("churned", engine.schema)])[0].n == N  # and it goes on
        engine.close()
    assert len(messages) == 1


def test_nothing_is_drawn_on_stdout_where_python_is_interactive() -> None:
    """DuckDB would draw a bar for what takes two seconds, in notebooks and wherever no file is run."""
    setting = "SELECT current_setting('enable_progress_bar')"
    code = f"""
import duckdb, polars as pl
from afresh.engines.embedded.engine import EmbeddedEngine
engine = EmbeddedEngine(pl.DataFrame({{"x": [1.0, 2.0]}}))
print(duckdb.connect().execute("{setting}").fetchone()[0], engine._run("{setting}")[0], end=" ")
print(engine._connection.execute("{setting}").fetchone()[0])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["True", "False", "False"]


def test_sealed(tmp_path: Path) -> None:
    outside = _parquet(tmp_path / "other.parquet")
    engine = EmbeddedEngine(_parquet(tmp_path / "a.parquet"))
    frame = pd.DataFrame({"a": [1]})
    assert len(frame) == 1
    for sql in (
        f"SELECT count(*) FROM '{outside}'",
        "SELECT count(*) FROM read_csv('/etc/hostname')",
        "SELECT count(*) FROM frame",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        f"ATTACH '{tmp_path}/b.duckdb'",
        "SET enable_external_access = true",
        "SET threads = 1",
        "INSTALL httpfs",
    ):
        with pytest.raises(EngineError):
            engine._run(sql)


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    two = _duckdb(tmp_path / "two.duckdb", tables=("first", "second"))
    assert open_engine(two, table="second").rows == N
    empty, bare = tmp_path / "empty.csv", tmp_path / "x.txt"
    empty.write_text("a,b\n")
    bare.write_text("a")
    twice = tmp_path / "twice.csv"
    twice.write_text("a,A,b\n1,2,3\n4,5,6\n")
    cases: list[tuple[object, str | None, str]] = [
        (tmp_path / "no.parquet", None, "does not exist"),
        (tmp_path, None, "is a directory"),
        (bare, None, "suffix"),
        (two, None, "first, second"),
        (two, "third", "has no table 'third'; choose one with table=: "),
        ([1, 2, 3], None, "builtins.list"),
        (pd.Series([1]), None, "Series"),
        (empty, None, "no rows"),
        (twice, None, "differ only in case"),
        (
            _parquet(tmp_path / "t.parquet", pa.table([[1], [2]], names=["a", "A"])),
            None,
            "differ only in case",
        ),
        (pa.table([[1], [2]], names=["a", "A"]), None, "differ only in case"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), None, "differ only in case"),
        (pa.table({"a": []}), None, "no column|no rows"),
        (pa.table({}), None, "no columns"),
        (pa.table({"a": [[1]]}), None, "no column that a question can use"),
        (pa.table({"RowID": [1]}), None, "rename it"),
    ]
    for data, table, words in cases:
        with pytest.raises(DataError) as caught:
            open_engine(data, table)
        assert any(word in str(caught.value) for word in words.split("|")), str(caught.value)
    with pytest.raises(InvalidArgument, match="only a DuckDB file"):
        open_engine(ROWS, table="x")


def test_scratch_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = EmbeddedEngine(ROWS)
    assert list(tmp_path.iterdir())
    engine.close()
    with pytest.raises(DataError):
        EmbeddedEngine(object())
    assert not list(tmp_path.iterdir())


def test_new_scratch_is_not_taken_for_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others sweep at the moment when it is made, and not yet locked."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    make, made = tempfile.mkdtemp, list[str]()

    def make_and_sweep(**how: str) -> str:
        made.append(make(**how))
        if len(made) == 1:
            sweep()
        return made[-1]

    monkeypatch.setattr("tempfile.mkdtemp", make_and_sweep)
    scratch = Scratch()
    assert len(made) == 2
    assert sweep() == [Path(scratch.path)] == list(tmp_path.iterdir())
    scratch.remove()
    assert not list(tmp_path.iterdir())


def test_scratch_of_a_killed_process_is_removed_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ours = EmbeddedEngine(ROWS)
    before = set(tmp_path.iterdir())
    program = "import sys; from afresh.engines.embedded.scratch import Scratch; Scratch(); print(flush=True); "
    program += "sys.stdin.read()"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        (theirs,) = set(tmp_path.iterdir()) - before
        (theirs / "spilled").touch()
        notes = tmp_path / "afresh-notes"
        notes.mkdir()
        EmbeddedEngine(ROWS).close()
        assert set(tmp_path.iterdir()) == {*before, theirs, notes}  # nothing of a process that lives
        other.kill()
    EmbeddedEngine(ROWS).close()
    assert set(tmp_path.iterdir()) == {*before, notes}
    ours.close()
    assert set(tmp_path.iterdir()) == {notes}
