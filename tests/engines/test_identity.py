"""Data written again, in any format, order or encoding, are the same data; other data are not."""

from __future__ import annotations

import itertools
import math
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.identity import Identity, identify
from afresh.engines.identity.hasher import Hasher
from afresh.engines.identity.numbers import hash_numbers
from afresh.engines.identity.scan import sum_rows
from afresh.moments import Span, even_spans
from afresh.queries.query import make_query
from engines import nasty
from engines.reference_identity import fingerprint as reference
from engines.reference_identity import hashed
from examples import examples

N = 300
RANDOM = random.Random(5)
TEXTS = ["Bern", "it's", "日本", None, 'a,"b"', "a\nb", " x ", "12345678", "123456789", "x" * 512, "é" * 400, "y" * 513]
DOUBLES = [None, 0.1, 0.0, 1e300, -1.7976931348623157e308, 5e-324, 2.0**53, 1 / 3]
DOUBLES += [RANDOM.gauss(0, 1) * 10 ** RANDOM.randint(-6, 12) for _ in range(N - len(DOUBLES))]
FRAME = pa.table(
    {
        "int": pa.array([None if i % 11 == 0 else i * 10**7 - 5 for i in range(N)], pa.int64()),
        "double": pa.array(DOUBLES, pa.float64()),
        "flag": pa.array([[True, False, None][i % 3] for i in range(N)]),
        "text": pa.array([TEXTS[i % len(TEXTS)] for i in range(N)]),
        "code": pa.array([f"{i * 37 % 1000:05d}" for i in range(N)]),
        "day": pa.array([None if i % 5 == 0 else date(1960, 1, 1) + timedelta(i * 97) for i in range(N)]),
        "at": pa.array([datetime(1969, 12, 1) + timedelta(hours=i * 12, microseconds=1 + i % 3) for i in range(N)]),
    }
)
ORDER = RANDOM.sample(range(N), N)
PANDAS = FRAME.to_pandas()
POLARS = pl.DataFrame(FRAME)


def _identity(data: object) -> Identity:
    engine = EmbeddedEngine(data)
    try:
        return engine.identity()
    finally:
        engine.close()


def _fingerprint(data: object) -> str:
    return _identity(data).fingerprint


def _print(**columns: object) -> str:
    return _fingerprint(pa.table(columns))


def _parquet(path: Path, table: pa.Table = FRAME, **options: object) -> Path:
    pa.parquet.write_table(table, path, **options)
    return path


def _sql(path: Path, statement: str) -> Path:
    with duckdb.connect() as connection:
        connection.register("incoming", FRAME)
        connection.execute(statement.replace("PATH", f"'{path}'"))
    return path


def _with(name: str, kind: pa.DataType) -> pa.Table:
    return FRAME.set_column(FRAME.column_names.index(name), name, FRAME[name].cast(kind))


WAYS: dict[str, Callable[[Path], object]] = {
    "parquet": lambda d: _parquet(d / "a.pq", compression="none"),
    "parquet, zstd, no dictionary": lambda d: _parquet(d / "b.pq", compression="zstd", use_dictionary=False),
    "rows in another order": lambda d: _parquet(d / "a.parquet", FRAME.take(ORDER), row_group_size=7),
    "columns in another order": lambda d: _parquet(d / "a.parquet", FRAME.select(FRAME.column_names[::-1])),
    "polars, parquet": lambda d: (POLARS.write_parquet(d / "a.parquet"), d / "a.parquet")[1],
    "pandas, parquet": lambda d: (PANDAS.to_parquet(d / "a.parquet"), d / "a.parquet")[1],
    "duckdb": lambda d: _sql(d / "a.db", "ATTACH PATH AS x; CREATE TABLE x.t AS FROM incoming; DETACH x"),
    "duckdb, csv": lambda d: _sql(d / "a.csv", "COPY incoming TO PATH (HEADER)"),
    "pandas, tsv.gz": lambda d: (PANDAS.to_csv(d / "a.tsv.gz", index=False, sep="\t"), d / "a.tsv.gz")[1],
    "polars, csv": lambda d: (POLARS.write_csv(d / "a.csv", separator="|"), d / "a.csv")[1],
    "arrow, csv": lambda d: (pa.csv.write_csv(FRAME, d / "a.csv"), d / "a.csv")[1],
    "pandas": lambda d: PANDAS,
    "polars": lambda d: POLARS,
    "doubles": lambda d: _with("int", pa.float64()),
    "decimals": lambda d: _with("int", pa.decimal128(22, 2)),
    "dictionary": lambda d: FRAME.set_column(3, "text", FRAME["text"].dictionary_encode()),
    "large texts": lambda d: _with("text", pa.large_string()),
    "nanoseconds": lambda d: _with("at", pa.timestamp("ns")),
    "zoned": lambda d: _with("at", pa.timestamp("us", "Asia/Kathmandu")),
    "one batch a row": lambda d: pa.concat_tables([FRAME.slice(i, 1) for i in range(N)]),
    "times as ISO text": lambda d: _with("at", pa.string()),
    "days as text": lambda d: _with("day", pa.string()),
    "days as midnights": lambda d: _with("day", pa.timestamp("us")),
    "numbers as text": lambda d: FRAME.set_column(0, "int", pa.array([x and str(x) for x in FRAME["int"].to_pylist()])),
    "booleans as numbers": lambda d: _with("flag", pa.int8()),
    "booleans as text": lambda d: _with("flag", pa.string()),
    "names in capitals": lambda d: FRAME.rename_columns([name.upper() for name in FRAME.column_names]),
    "pandas, shuffled, with its index": lambda d: (
        PANDAS.sample(frac=1, random_state=1).to_parquet(d / "a.parquet"),
        d / "a.parquet",
    )[1],
    "what no question can use": lambda d: FRAME.append_column("list", pa.array([[i] for i in range(N)])),
}


@pytest.mark.parametrize("way", WAYS)
def test_data_written_again_are_the_same(way: str, tmp_path: Path) -> None:
    assert _fingerprint(WAYS[way](tmp_path)) == reference(FRAME.to_pylist())


def test_nasty_rows_agree_with_the_reference() -> None:
    assert _fingerprint(nasty.table()) == reference(nasty.ROWS)


def test_more_rows_than_a_batch() -> None:
    numbers = np.random.default_rng(3).normal(size=150_000)
    table = pa.table({"a": numbers, "b": pa.array(numbers > 1), "c": pa.array([f"c{i}" for i in range(150_000)])})
    found, turned = _identity(table), _identity(table.take(list(range(149_999, -1, -1))))
    assert found.fingerprint == turned.fingerprint == reference(table.to_pylist())
    for one, other in zip(found.columns, turned.columns, strict=True):
        assert one.unordered == other.unordered
        assert (one.unordered is None) == (one.ordered is not None) == (other.ordered is not None)
        assert one.ordered is None or one.ordered != other.ordered


@pytest.mark.parametrize("columns", [24, 25, 60])
def test_more_columns_than_are_joined_at_once(columns: int) -> None:
    """Equal columns, too, whose hashes must not cancel each other."""
    table = pa.table({f"c{j}": [float(i * (j % 24 + 1)) for i in range(40)] for j in range(columns)})
    found = _fingerprint(table)
    assert found == reference(table.to_pylist())
    last = f"c{columns - 1}"
    turned = table.set_column(columns - 1, last, pa.array(table[last].to_pylist()[::-1]))
    assert found != _fingerprint(turned)  # the same values in each column, but in other rows


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_become_doubles(kind: str) -> None:
    """The nearest ones, ties to even, whoever converts them."""
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    values = [low, low + 1, 0, 1, high - 1, high, None, *(2**53 + i for i in range(8) if high > 2**54)]
    table = pa.table({"a": pa.array(values, kind)})
    assert _fingerprint(table) == reference(table.to_pylist())


def test_an_interruption_ends_the_sums() -> None:
    batch = FRAME.select(["int"]).to_batches()[0]
    given = itertools.count()

    def batches() -> Iterator[pa.RecordBatch]:
        while (i := next(given)) < 20_000:
            if i == 5:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(0.001)  # so that 20 seconds would be left to notice it
            yield batch

    # a shell may have started the tests with the signal ignored, or a library handle it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            sum_rows(batches(), {"int": "number"})
    finally:
        signal.signal(signal.SIGINT, before)
    assert next(given) < 20_000


CELLS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "number": (pa.float64(), st.floats() | st.integers(-5, 5).map(float)),
    "boolean": (pa.bool_(), st.booleans()),
    # a letter keeps them from spelling a number, which is another test's
    "text": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20).map(lambda text: "x" + text)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
}


@st.composite
def _tables(draw: st.DrawFn) -> tuple[dict[str, str], list[dict[str, Any]]]:
    names = draw(st.lists(st.text("abcé ", min_size=1, max_size=3), min_size=1, max_size=4, unique_by=str.lower))
    kinds = {name: draw(st.sampled_from(list(CELLS))) for name in names}
    cells = {name: st.none() | CELLS[kind][1] for name, kind in kinds.items()}
    return kinds, draw(st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=12))


def _table(kinds: dict[str, str], rows: list[dict[str, Any]]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], CELLS[kind][0]) for name, kind in kinds.items()})


@examples(0.25)
@given(made=_tables(), data=st.data())
def test_order_does_not_matter_and_everything_else_does(
    made: tuple[dict[str, str], list[dict[str, Any]]], data: st.DataObject
) -> None:
    kinds, rows = made
    found = _fingerprint(_table(kinds, rows))
    assert found == reference(rows)
    names = data.draw(st.permutations(list(kinds)))
    assert found == _fingerprint(_table({name: kinds[name] for name in names}, data.draw(st.permutations(rows))))
    i, name = data.draw(st.integers(0, len(rows) - 1)), names[0]
    assert found != _fingerprint(_table(kinds, [*rows, rows[i]]))
    other = {**rows[i], name: data.draw(st.none() | CELLS[kinds[name]][1])}
    changed = _fingerprint(_table(kinds, [*rows[:i], other, *rows[i + 1 :]]))
    assert (changed == found) == (hashed(other[name]) == hashed(rows[i][name]))


SETS = np.array(list(itertools.combinations_with_replacement(range(40), 4)))


@pytest.mark.parametrize("scale", [1.0, -1.0, 0.1, 1e-3, 2.0**-33, 2.0**23, 86400.0, 1e9])
def test_sums_of_small_numbers_do_not_collide(scale: float) -> None:
    """Of all sets of four multiples of a number, 123,410 of them: a chance of 1e-9 at 63 bits, none by structure.

    The numbers are fixed, so either it passes or it does not.
    """
    numbers = np.arange(40.0) * scale
    for exact, hashes in zip((False, True), hash_numbers(numbers), strict=True):
        assert hashes.view(np.int64).tolist() == [hashed(float(x), exact=exact) for x in numbers]
        assert len(np.unique(hashes[SETS].sum(axis=1))) == len(SETS)


@pytest.mark.parametrize("scale", [1, 0.1])
def test_sums_of_similar_rows_do_not_collide(scale: float) -> None:
    """Of any two rows of a grid with missing cells, 500,500 pairs: so no exchange, step, sign or NULL goes unnoticed.

    Were the hashes random, two of these sums would be equal with a chance of 1e-8; the rows are fixed.
    """
    cells = [None, *(i * scale for i in range(-4, 5))]
    grid = pa.table(dict(zip("abc", zip(*itertools.product(cells, repeat=3), strict=True), strict=True)))
    kinds = dict.fromkeys("abc", "number")
    hashes = np.concatenate([one.copy() for one in Hasher(kinds).row_hashes(grid.to_batches()[0])])
    one, other = np.triu_indices(len(hashes))
    assert len(np.unique(hashes[one] + hashes[other])) == len(one)


def test_whole_numbers_are_hashed_as_the_same_doubles() -> None:
    numbers = np.random.default_rng(9).integers(-(2**24) + 1, 2**24, 9000)
    numbers[:2] = -(2**24) + 1, 2**24 - 1
    prints = {_print(a=numbers.astype(kind)) for kind in ("i4", "i8", "f4", "f8")}
    prints |= {_print(a=numbers * 2.0**-30 * 2**30), _print(a=[str(x) for x in numbers])}
    assert prints == {reference([{"a": x} for x in numbers.tolist()])}
    assert _print(a=np.abs(numbers).astype("u8")) == _print(a=np.abs(numbers) * 1.0)


BORDERS = [2.0**-44, 2.0**-10, 2.0**-10 * (1 - 2.0**-25), 2.0**24 - 0.5, 2.0**24, 2.0**24 + 1, 2.0**58, 1e-37, 1e38]
BESIDE = [x for border in BORDERS for x in (border, math.nextafter(border, 0), math.nextafter(border, math.inf))]


def test_numbers_at_the_borders_of_ranges() -> None:
    values = [*BESIDE, *(-x for x in BESIDE), 0.0, -0.0, None, 5e-324, 1.7976931348623157e308]
    for some in (values, BESIDE[9:21], BESIDE[:6], [2.0**30 + i / 7 for i in range(9)]):  # of several and of one range
        table = pa.table({"a": pa.array(some, pa.float64())})
        assert _fingerprint(table) == reference(table.to_pylist())
    for x in BESIDE[:21]:  # but not at the ends of what single precision can hold
        assert hashed(x, exact=False) == hashed(float(np.float32(x)), exact=False)


def test_every_digit_of_a_number_counts() -> None:
    rng = np.random.default_rng(6)
    numbers = rng.normal(size=20_000) * 10.0 ** rng.integers(-9, 12, 20_000)
    _, hashes = hash_numbers(numbers)
    for other in (np.nextafter(numbers, np.inf), np.nextafter(numbers, -np.inf), -numbers):
        assert not (hash_numbers(other)[1] == hashes).any()
    assert len(np.unique(hashes)) == len(np.unique(numbers))


@pytest.mark.parametrize("many", [3, 300, 9000])
def test_texts_of_all_lengths(many: int) -> None:
    """Few short ones, which are kept, and many; of very different lengths beside each other."""
    rng = random.Random(7)
    short = ["x" + rng.choice("\0aé") * rng.randint(0, 4) + str(i) for i in range(many)]
    for longest in (0, 30, 700):
        texts = [
            rng.choice(short) + "y" * (rng.randint(0, longest) if rng.random() < 0.1 else 0) for _ in range(12_000)
        ]
        cells = [None if rng.random() < 0.1 else text for text in texts]
        expected = reference([{"a": cell} for cell in cells])
        for kind in (pa.string(), pa.large_string()):
            assert _fingerprint(pa.table({"a": pa.array(cells, kind)})) == expected


def test_other_data_are_others() -> None:
    prints = [
        _print(a=[1, 2]), _print(a=[1, 1, 2]), _print(a=[1, 2, 2]), _print(a=[1, 1, 2, 2]), _print(a=[1]),
        _print(b=[1, 2]), _print(a=["x1", "x2"]), _print(a=[True, False]), _print(a=["007", "2"]),
        _print(a=[1, 2], b=[1, 2]), _print(a=[1, 2], b=[2, 1]), _print(a=[1.0, 2.0000000000000004]),
        _print(a=[1, None]), _print(a=["x", None]), _print(a=["x", ""]), _print(a=["x", "\0"]),
        _print(a=["ab", "c"]), _print(a=["a", "bc"]), _print(a=["a" * 600, "b"]), _print(a=["a" * 601, "b"]),
        _print(a=[date(1970, 1, 2)] * 2), _print(a=["1970-01-02", "1970-02-30"]),
    ]  # fmt: skip
    assert len(set(prints)) == len(prints)
    assert _print(a=[1, 2]) == _print(A=[1.0, 2.0]) == _print(a=["1", "2e0"])
    assert _print(a=[True, False]) == _print(a=[1, 0]) == _print(a=["True", "false"])
    assert _print(a=[datetime(1970, 1, 2)]) == _print(a=[date(1970, 1, 2)]) == _print(a=["1970-01-02T00:00:00Z"])
    assert _print(a=[math.nan, math.inf, -0.0]) == _print(a=[None, None, 0.0]) == _print(a=[0, None, None])


def test_times_that_no_question_sees_are_missing(tmp_path: Path) -> None:
    """Before the year 1 and after 9999, and the infinities, however they are stored."""
    prints = []
    for name, day, moment in (
        ("a", "'infinity'", "'-infinity'"), ("b", "'10000-01-01'", "'10000-01-01 00:00:00'"),
        ("c", "'0001-01-01'::DATE - 1", "'0001-01-01 00:00:00'::TIMESTAMP - INTERVAL 1 MICROSECOND"),
        ("d", "NULL", "NULL"),
    ):  # fmt: skip
        made = f"CASE WHEN i = 3 THEN ({day})::DATE ELSE DATE '2020-01-01' END AS day, "
        made += f"CASE WHEN i = 3 THEN ({moment})::TIMESTAMP ELSE TIMESTAMP '9999-12-31 23:59:59.999999' END AS at"
        path = tmp_path / f"{name}.parquet" if name == "c" else tmp_path / f"{name}.duckdb"
        copy = "COPY (SELECT {0} FROM range(9) AS r(i)) TO PATH"
        store = "ATTACH PATH AS x; CREATE TABLE x.t AS SELECT {0} FROM range(9) AS r(i); DETACH x"
        prints.append(_fingerprint(_sql(path, (copy if name == "c" else store).format(made))))
    assert len(set(prints)) == 1


def test_rows_are_dealt_alike_in_any_order_and_format(tmp_path: Path) -> None:
    """Equal rows are interchangeable, others keep their place: whatever has one identity is one dataset."""
    n = 40
    values, days = [i // 2 / 7 for i in range(n)], [date(2020, 1, 1 + i % 7) for i in range(n)]
    columns: dict[str, Any] = {
        "a": values,
        "b": [i * 37 % 100 for i in range(n)],
        "t": [None if i % 3 else "x" for i in range(n)],
    }
    columns |= {"flag": [i % 5 == 0 for i in range(n)], "day": days}
    frame = pa.table(columns)
    other = {"B": frame["b"].cast("string"), "day": frame["day"].cast("string"), "Flag": frame["flag"].cast("string")}
    written = tmp_path / "a.csv"
    pa.csv.write_csv(frame, written)
    forms: list[Any] = [
        frame,
        frame.take(list(range(n - 1, -1, -1))),
        _parquet(tmp_path / "a.parquet", frame),
        written,
        pa.table({**other, "t": frame["t"], "A": frame["a"]}),  # as text, in another order
        frame.set_column(1, "b", frame["b"].cast("float64")).set_column(4, "day", frame["day"].cast("timestamp[us]")),
    ]
    dealt, prints = [], set()
    for data in forms:
        engine = EmbeddedEngine(data)
        prints.add(engine.identity().fingerprint)
        engine.shuffle("seed")
        queries = [make_query(f"a > {i / 7 - 0.01}", engine.schema) for i in range(n // 2)]
        queries += [make_query("t = 'x'", engine.schema)] * 8
        dealt.append([[part.total for part in engine.moments([query] * 8, even_spans(n, 8))] for query in queries])
        engine.close()
    assert len(prints) == 1
    assert all(one == dealt[0] for one in dealt)


def test_a_table_with_removed_rows_is_dealt_as_its_copy(tmp_path: Path) -> None:
    """What numbers its rows has gaps."""
    path = tmp_path / "a.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT i * 7919 % 1000 AS a, i AS b FROM range(1000) AS r(i)")
        connection.execute("DELETE FROM t WHERE b % 3 = 0")
        copied = connection.sql("SELECT * FROM t ORDER BY b DESC").to_arrow_table()
    found = []
    for data in (path, copied):
        engine = EmbeddedEngine(data)
        engine.shuffle("seed")
        query = make_query("a", engine.schema, (0, 1000))
        spans = even_spans(engine.rows, 50)
        handed = sorted(engine.hand_out(Span(3, 40))["b"].to_pylist())
        found.append(([part.total for part in engine.moments([query] * 50, spans)], handed))
        engine.close()
    assert found[0][1] == found[1][1]
    assert found[0][0] == pytest.approx(found[1][0])


def _telling(**columns: object) -> dict[str, tuple[bool, bool]]:
    found = _identity(pa.table(columns)).columns
    return {one.name: (one.unordered is not None, one.ordered is not None) for one in found}


def test_which_columns_tell_that_rows_are_known() -> None:
    """Not those that unrelated tables have in common: few values, and numbers that count rows."""
    n, rng = 4000, np.random.default_rng(2)
    day = date(2001, 1, 1)
    found = _telling(
        continuous=rng.normal(size=n), age=rng.integers(18, 90, n), label=rng.random(n) < 0.2,
        rare=rng.random(n) < 0.01, name=[f"n{i}" for i in rng.integers(0, 10**6, n)], shuffled=rng.permutation(n),
        constant=np.ones(n), few=[0] * (n - 3) + [1] * 3, sorted=[0] * 2000 + [1] * 2000,
        from_zero=range(n), from_one=range(1, n + 1), as_double=np.arange(n) * 1.0, members=np.arange(n) // 10,
        turns=np.arange(n) % 2, weeks=np.arange(n) % 7, hundreds=np.arange(n) % 100,
        calendar=[day + timedelta(i) for i in range(n)], as_text=[str(i) for i in range(n)],
        hours=[datetime(2001, 1, 1) + timedelta(hours=i) for i in range(n)],
    )  # fmt: skip
    telling = dict.fromkeys(["age", "continuous", "name"], (True, False))  # in any order, so in this one too
    telling |= dict.fromkeys(["label", "rare", "shuffled"], (False, True))
    assert found == {name: telling.get(name, (False, False)) for name in found}


@pytest.mark.parametrize("batch", [3000, 2**16])
def test_what_a_column_tells_does_not_depend_on_when_it_is_noticed(batch: int) -> None:
    """That its numbers count no rows may be seen in the first block, in a later one, or only in the sums."""
    n, rng = 70_000, np.random.default_rng(8)
    whole, late = np.arange(n), np.arange(n) * 1.0
    late[-1] += 0.5
    table = pa.table(
        {
            "rows": whole, "backwards": n - whole, "shuffled": rng.permutation(n), "pairs": rng.permutation(n) // 2,
            "hundreds": rng.permutation(n) % 100, "late": late, "twice": np.where(whole == n - 1, 5, whole),
            "wide": rng.integers(0, 10 * n, n), "drawn": rng.integers(0, n, n), "ages": rng.integers(18, 90, n),
            "gap": pa.array([None, *range(1, n)]), "parts": rng.normal(size=n), "name": [f"n{i % 999}" for i in whole],
            "hours": pa.array(whole * 3_600_000_000, pa.timestamp("us")), "flag": rng.random(n) < 0.3,
            "days": pa.array((whole // 7).astype("i4"), pa.date32()),
            "born": pa.array(rng.integers(0, 9999, n, "i4"), pa.date32()),
        }
    )  # fmt: skip
    table = table.select(sorted(table.column_names))
    kinds = dict.fromkeys(table.column_names, "number")
    kinds |= {"name": "text", "hours": "time", "days": "time", "born": "time", "flag": "boolean"}
    found = [identify(sum_rows(table.to_batches(batch), kinds, rows), "v") for rows in (None, n)]
    assert found[0] == found[1]
    by_values = {"late", "twice", "wide", "drawn", "ages", "gap", "parts", "name", "born"}
    by_order = {"shuffled", "pairs", "hundreds", "flag"}
    assert {one.name for one in found[0].columns if one.unordered} == by_values
    assert {one.name for one in found[0].columns if one.ordered} == by_order


def test_columns_are_known_again_after_a_cast() -> None:
    rng = np.random.default_rng(4)
    x, big, y = rng.normal(size=500), rng.integers(0, 2**60, 500), rng.random(500) < 0.4
    table = pa.table({"x": x, "big": big, "y": y})
    cast = pa.table({"x": x.astype("f4"), "big": big.astype("f8").astype("f4"), "y": y.astype("i1")})
    assert _identity(cast).columns == _identity(table).columns
    assert _fingerprint(cast) != _fingerprint(table)
