"""Data written again, by any program in any format, are the same data; other data are not."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from afresh.engines.embedded import EmbeddedEngine

N = 300
RANDOM = random.Random(5)
SINGLES = [math.nan, math.inf, 0.1, -0.0, 1e-45, 3.4028235e38, 16777217.0, 123456792.0, 1e10, 9.007199e15, 3e-39, -2.5]
SINGLES += [struct.unpack("f", RANDOM.randbytes(4))[0] for _ in range(N - len(SINGLES))]
DOUBLES = [None, 0.1, -0.0, 1e300, -1.7976931348623157e308, 5e-324, 2.0**53, 1e15 + 0.5, 1 / 3, 1e-60, 16777216.5]
DOUBLES += [RANDOM.gauss(0, 1) * 10 ** RANDOM.randint(-6, 12) for _ in range(N - len(DOUBLES))]
TEXTS = [
    "Bern",
    "it's",
    "日本",
    None,
    'a,"b"',
    "a\nb",
    " x ",
    "NA",
    "null",
    "[deleted]",
    "1st",
    "-",
    "2020-13-01",
    "True.",
]
FRAME = pa.table(
    {
        "int": pa.array([None if i % 11 == 0 else i * 10**7 - 5 for i in range(N)], pa.int64()),
        "big": pa.array([2**53 + i * 10**12 for i in range(N)], pa.int64()),
        "single": pa.array(SINGLES, pa.float32()),
        "double": pa.array(DOUBLES, pa.float64()),
        "missing": pa.array([[1.5, None, math.nan][i % 3] for i in range(N)], pa.float64()),
        "flag": pa.array([[True, False, None][i % 3] for i in range(N)]),
        "text": pa.array([TEXTS[i % len(TEXTS)] for i in range(N)]),
        "digits": pa.array([str(i % 17) for i in range(N)]),
        "code": pa.array([f"{i * 37 % 1000:05d}" for i in range(N)]),
        "day": pa.array([None if i % 5 == 0 else date(1960, 1, 1) + timedelta(i * 97) for i in range(N)]),
        "at": pa.array([datetime(1969, 12, 1) + timedelta(hours=i * 12, microseconds=i % 3) for i in range(N)]),
        "zoned": pa.array([datetime(2020, 1, 1, i % 24) for i in range(N)], pa.timestamp("us", "UTC")),
        "null": pa.nulls(N, pa.float64()),
        "time": pa.array([time(i % 24, 30, 0, 500_000 * (i % 2)) for i in range(N)], pa.time64("us")),
    }
)
LISTED = FRAME.append_column("list", pa.array([[i, i + 1] for i in range(N)], pa.list_(pa.int64())))
ORDER = RANDOM.sample(range(N), N)
PANDAS = FRAME.to_pandas()
POLARS = pl.DataFrame(FRAME)


def _fingerprint(data: object) -> str:
    engine = EmbeddedEngine(data)
    try:
        return engine.fingerprint()
    finally:
        engine.close()


def _print(**columns: object) -> str:
    return _fingerprint(pa.table(columns))


def _parquet(path: Path, table: pa.Table = FRAME, **options: object) -> Path:
    pa.parquet.write_table(table, path, **options)
    return path


def _pandas(path: Path, frame: pd.DataFrame = PANDAS, **options: object) -> Path:
    frame.to_csv(path, index=False, **options)  # type: ignore[call-overload]  # any option
    return path


def _polars(path: Path, **options: object) -> Path:
    POLARS.write_csv(path, **options)  # type: ignore[call-overload]  # any option
    return path


def _arrow(path: Path) -> Path:
    pa.csv.write_csv(FRAME, path)
    return path


def _sql(path: Path, statement: str, table: pa.Table = FRAME) -> Path:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Asia/Kathmandu'")
        connection.register("incoming", table)
        connection.execute(statement.replace("PATH", f"'{path}'"))
    return path


DATABASE = "ATTACH PATH AS x; CREATE TABLE x.t AS FROM incoming; DETACH x"
WAYS: dict[str, Callable[[Path], object]] = {
    "parquet": lambda d: _parquet(d / "a.pq", compression="none"),
    "parquet, zstd": lambda d: _parquet(d / "a.pq", compression="zstd"),
    "parquet, gzip": lambda d: _parquet(d / "a.pq", compression="gzip"),
    "rows in another order": lambda d: _parquet(d / "a.parquet", FRAME.take(ORDER), row_group_size=7),
    "columns in another order": lambda d: _parquet(d / "a.parquet", FRAME.select(FRAME.column_names[::-1])),
    "polars, parquet": lambda d: (POLARS.write_parquet(d / "a.parquet"), d / "a.parquet")[1],
    "pandas, parquet": lambda d: (PANDAS.to_parquet(d / "a.parquet"), d / "a.parquet")[1],
    "duckdb": lambda d: _sql(d / "a.db", DATABASE),
    "duckdb, csv": lambda d: _sql(d / "a.csv", "COPY incoming TO PATH (HEADER)"),
    "pandas, csv": lambda d: _pandas(d / "a.csv"),
    "pandas, tsv.gz": lambda d: _pandas(d / "a.tsv.gz", sep="\t"),
    "pandas, NA": lambda d: _pandas(d / "a.csv", na_rep="NA"),
    "pandas, arrow types": lambda d: _pandas(d / "a.csv", FRAME.to_pandas(types_mapper=pd.ArrowDtype)),
    "polars, csv": lambda d: _polars(d / "a.csv"),
    "polars, bars": lambda d: _polars(d / "a.csv", separator="|", quote_style="always"),
    "arrow, csv": lambda d: _arrow(d / "a.csv"),
    "pandas from pandas": lambda d: pd.read_csv(_pandas(d / "a.csv")),
    "pandas from polars": lambda d: pd.read_csv(_polars(d / "a.csv")),
    "pandas from arrow, dates": lambda d: pd.read_csv(_arrow(d / "a.csv"), parse_dates=["day", "at", "zoned"]),
    "pandas, text": lambda d: pd.read_csv(_pandas(d / "a.csv"), dtype=str),
    "polars from pandas": lambda d: pl.read_csv(_pandas(d / "a.csv"), infer_schema_length=None),
    "polars from polars": lambda d: pl.read_csv(_polars(d / "a.csv"), try_parse_dates=True, infer_schema_length=None),
    "polars, text": lambda d: pl.read_csv(_polars(d / "a.csv"), infer_schema=False),
    "arrow from arrow": lambda d: pa.csv.read_csv(
        _arrow(d / "a.csv"), parse_options=pa.csv.ParseOptions(newlines_in_values=True)
    ),
    "pandas": lambda d: PANDAS,
    "polars": lambda d: POLARS,
    "nanoseconds": lambda d: FRAME.set_column(10, "at", FRAME["at"].cast(pa.timestamp("ns"))),
    "another zone": lambda d: _pandas(d / "a.csv", PANDAS.assign(zoned=PANDAS["zoned"].dt.tz_convert("Asia/Kolkata"))),
    "float32 in float64": lambda d: FRAME.set_column(2, "single", FRAME["single"].cast(pa.float64())),
}


@pytest.fixture(scope="module")
def expected() -> str:
    return _fingerprint(FRAME)


@pytest.mark.parametrize("way", WAYS)
def test_data_written_again_are_the_same(way: str, tmp_path: Path, expected: str) -> None:
    assert _fingerprint(WAYS[way](tmp_path)) == expected


def test_lists(tmp_path: Path) -> None:
    """Polars and Arrow cannot write them as CSV; pandas writes an array without commas."""
    frame = LISTED.to_pandas()
    ways = [
        _parquet(tmp_path / "a.parquet", LISTED),
        _sql(tmp_path / "a.db", DATABASE, LISTED),
        _sql(tmp_path / "a.csv", "COPY incoming TO PATH (HEADER)", LISTED),
        _pandas(tmp_path / "b.csv", frame),
        _pandas(tmp_path / "c.csv", frame.assign(list=[list(map(int, pair)) for pair in frame["list"]])),
        pd.read_csv(tmp_path / "b.csv"),
    ]
    assert {_fingerprint(way) for way in ways} == {_fingerprint(LISTED)}
    assert _print(a=[1], b=[["x", "it"]]) == _print(a=["1"], b=["['x', 'it']"]) == _print(a=[1.0], b=['["x","it"]'])
    assert _print(a=[1], b=[b"abc"]) == _print(a=[1], b=["abc"])


def _changed(name: str, row: int, value: object) -> pa.Table:
    values = FRAME[name].to_pylist()
    assert values[row] != value
    values[row] = value
    return FRAME.set_column(FRAME.column_names.index(name), name, pa.array(values, FRAME[name].type))


def test_other_data_are_others(expected: str) -> None:
    row = 50
    others: list[pa.Table] = [
        _changed("int", row, row * 10**7 - 4),
        _changed("single", row, float(np.nextafter(np.float32(SINGLES[row]), np.float32(0)))),
        _changed("double", row, (DOUBLES[row] or 0.0) * (1 + 2e-7)),
        _changed("double", 3, 1.1e300),
        _changed("missing", 0, 1.25),
        _changed("missing", 0, None),
        _changed("flag", 0, False),
        _changed("flag", 0, None),
        _changed("text", 0, "bern"),
        _changed("text", 6, "x"),
        _changed("digits", row, "99"),
        _changed("code", row, "99999"),
        _changed("day", 1, date(2030, 1, 1)),
        _changed("at", 1, datetime(1969, 12, 1, 12, 0, 0, 2)),
        _changed("null", 1, 0.0),
        _changed("time", 1, time(1, 30, 0, 500_001)),
        FRAME.slice(1),
        pa.concat_tables([FRAME, FRAME.slice(0, 1)]),
        FRAME.rename_columns(["INT", *FRAME.column_names[1:]]),
        FRAME.drop_columns(["null"]),
    ]
    prints = [_fingerprint(other) for other in others]
    assert len({expected, *prints}) == len(others) + 1


def test_a_duplicate_row_counts() -> None:
    prints = [_print(a=rows) for rows in ([1, 2], [1, 1, 2], [1, 2, 2], [1, 1, 2, 2], [1, 1], [2, 2], [1])]
    assert len(set(prints)) == len(prints)


def test_what_text_spells() -> None:
    same: list[list[object]] = [
        [None, "", "NaN", "-inf", " nan ", "NA", "n/a", "<NA>", "#N/A", "None", "NULL", "1e400", "Infinity"],
        [7.0, "7", "007", "+7", " 7\n", "7.0", "0.7e1", "7e0"],
        [0.0, "0", "-0", "-0.0", "00"],
        [0.1, "0.1", ".1", "1e-1", "0.10000000149011612", "0.1000000000000000055"],
        [123456792.0, "123456790", "1.2345679e8", "123456792"],
        [1e300, "1e300", "1" + "0" * 300],
        [True, "true", "TRUE", " True"],
        [date(1969, 12, 31), "1969-12-31", "1969-12-31 00:00", "1969-12-31T00:00:00.000000000Z"],
        [datetime(2020, 2, 29, 12, 0, 0, 500_000), "2020-02-29 12:00:00.5", "2020-02-29T14:00:00.500+02:00"],
        ["12:30:00", "12:30:00.000000", time(12, 30)],
        ["12:30:00.25", "12:30:00.250000000", time(12, 30, 0, 250_000)],
        ["Bern"],
        [" Bern"],
        ["2021-02-29"],
        ["2021-02-29 12:00"],
        ["7,0"],
        ["7 0"],
        ["1_000"],
        ["0x7"],
        ["nano"],
        ["truest"],
        ["12:30"],
    ]
    prints = [{_print(a=[value], b=["x"]) for value in values} for values in same]
    assert [len(found) for found in prints] == [1] * len(same)
    assert len(set().union(*prints)) == len(same)


def test_pieces_do_not_run_together() -> None:
    pairs = [
        ("xT1:1", ""),
        ("x", "T1:1"),
        ("", "x"),
        ("1;I2", "3"),
        ("1", "2;I3"),
        ("N", ""),
        ("", "N"),
        ("1", "2"),
        ("12", ""),
    ]
    prints = {_print(a=[first], b=[second]) for first, second in pairs}
    assert len(prints) == len(pairs)


def test_every_float32_survives_its_decimals(tmp_path: Path) -> None:
    """Above 2^24 the shortest decimals of a whole float32 are another whole number."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
    whole = np.float32(2.0) ** rng.uniform(20, 60, 100_000).astype(np.float32)
    frame = pd.DataFrame({"a": np.concatenate([bits[np.isfinite(bits)], np.trunc(whole), -np.trunc(whole)])})
    frame.to_csv(tmp_path / "a.csv", index=False)
    pl.DataFrame({"a": frame["a"].to_numpy()}).write_csv(tmp_path / "b.csv")
    ways = [frame, tmp_path / "a.csv", tmp_path / "b.csv", pd.read_csv(tmp_path / "a.csv"), frame.astype("float64")]
    assert len({_fingerprint(way) for way in ways}) == 1


def test_merged_rows_are_dealt_alike_in_any_order() -> None:
    """All these rows have one encoding; their order in the file must not decide their blocks."""
    values = [1 + i * 1e-10 for i in range(40)]
    dealt = []
    for order in (values, values[::-1]):
        engine = EmbeddedEngine(pa.table({"a": order}))
        engine.deal(4, "seed")
        sql = "SELECT d.a, dealt.block FROM data AS d JOIN dealt ON d.rowid = dealt.r ORDER BY ALL"
        dealt.append(engine._connection.execute(sql).fetchall())
    assert dealt[0] == dealt[1]
