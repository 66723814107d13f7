"""No row of a CSV file changes what another row means; what is not plainly a CSV file is refused without a quote."""

from __future__ import annotations

import gzip
import traceback
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from afresh.engines.embedded.csv_file import CSV
from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.errors import DataError, InvalidArgument
from afresh.queries.tree import Type

SECRET = "do-not-tell-7391"


def _read(
    path: Path, content: str | bytes, dates: str | None = None
) -> tuple[dict[str, Type | None], list[tuple[Any, ...]]]:
    """The types and the rows a file is read as."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    engine = EmbeddedEngine(path if dates is None else CSV(path, dates))
    try:
        return dict(engine.schema), engine._connection.execute("SELECT * FROM data ORDER BY rowid").fetchall()
    finally:
        engine.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.csv"


@pytest.mark.parametrize("last", ["13/02/2010", "01/13/2010", "x", "2010", "", "# 1", "1;2"])
def test_one_row_changes_no_other(path: Path, last: str) -> None:
    """DuckDB's sniffer reads the first rows as January or February, as the last row tells it."""
    kinds, rows = _read(path, "day,n\n" + "01/02/2010,1\n" * 999 + f"{last},2\n")
    assert kinds == {"day": Type.TEXT, "n": Type.NUMBER}
    assert rows == [("01/02/2010", 1)] * 999 + [(last or None, 2)]


@pytest.mark.parametrize(
    ("dates", "values", "kind"),
    [
        ("%m/%d/%Y", ["01/31/2020", "2/29/2020", "12/1/1999"], Type.DATE),
        ("%d.%m.%Y", ["31.01.2020", "29.02.2020", "01.12.1999"], Type.DATE),
        ("%Y%m%d", ["20200131", "20200229", "19991201"], Type.DATE),
        ("%d %b %Y", ["31 Jan 2020", "29 Feb 2020", "01 Dec 1999"], Type.DATE),
        ("%m/%d/%Y %H:%M", ["01/31/2020 00:00", "02/29/2020 00:00", "12/01/1999 00:00"], Type.TIMESTAMP),
    ],
)
def test_dates_of_a_form(path: Path, dates: str, values: list[str], kind: Type) -> None:
    days = [datetime(2020, 1, 31), datetime(2020, 2, 29), datetime(1999, 12, 1)]
    content = "day,other,n\n" + "".join(f'{value},"a, {value}",{i}\n' for i, value in enumerate(values))
    kinds, rows = _read(path, content, dates)
    assert kinds == {"day": kind, "other": Type.TEXT, "n": Type.NUMBER}
    assert [row[0] for row in rows] == [day if kind is Type.TIMESTAMP else day.date() for day in days]


def test_one_row_that_is_no_such_day_leaves_text(path: Path) -> None:
    content = "day,until\n" + "01/31/2020,01/31/2020\n" * 3000 + "02/30/2020,01/01/2021\n"
    assert _read(path, content, "%m/%d/%Y")[0] == {"day": Type.TEXT, "until": Type.DATE}
    with pytest.raises(DataError, match=r"no column of .* has only values of the form '%d/%m/%Y'"):
        _read(path, content, "%d/%m/%Y")


@pytest.mark.parametrize("dates", ["", "%m/%d", "%Y", "day", "%Y/%d/%Y", "%d/%m/%Y\n", "%", 3, None])
def test_forms_that_give_no_day(dates: Any) -> None:
    with pytest.raises(InvalidArgument, match="must be the form of a day, such as"):
        CSV("a.csv", dates)


def test_only_csv_files_have_dates_of_a_form(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").touch()
    with pytest.raises(InvalidArgument, match="only a CSV file"):
        EmbeddedEngine(CSV(tmp_path / "a.parquet", "%m/%d/%Y"))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["true", "FALSE", "True"], Type.BOOLEAN),
        (["true", "1"], Type.TEXT),
        (["true", "yes"], Type.TEXT),
        (["t", "f"], Type.TEXT),
        (["1", "-2", "+3", "0", "4.", ".5", "-0.25", "1e3", "1E-3", "0e0"], Type.NUMBER),
        (["1", "nan", "NaN", "inf", "-inf", "Infinity", "-Infinity"], Type.NUMBER),
        (["9007199254740993", "1e400", "123456789012345678901234567890"], Type.NUMBER),
        (["8001", "08001"], Type.TEXT),
        (["1", "-007"], Type.TEXT),
        (["1", "1_000"], Type.TEXT),
        (["1", "1'000"], Type.TEXT),
        (["1", "0x10"], Type.TEXT),
        (["1", " 2"], Type.TEXT),
        (["1", "."], Type.TEXT),
        (["1", "e5"], Type.TEXT),
        (["2020-02-29", "1999-12-31"], Type.DATE),
        (["2020-02-29", "2021-02-29"], Type.TEXT),
        (["2020-02-29", "2020-2-9"], Type.TEXT),
        (["2020-02-29", "2020-02-29 00:00"], Type.TEXT),
        (["2020-02-29 12:00", "2020-02-29T12:00:01.5Z", "2020-02-29 12:00:01.123456+00:00"], Type.TIMESTAMP),
        (["2020-02-29 12:00:00+00", "2020-02-29 12:00:00.123456789"], Type.TIMESTAMP),
        (["2020-02-29 12:00", "2020-02-30 12:00"], Type.TEXT),
        (["2020-02-29 12:00", "2020-02-29 24:00"], Type.TEXT),
        (["2020-02-29 12:00", "2020-02-29 12:00+02:00"], Type.TEXT),
    ],
)
def test_types(path: Path, values: list[str], kind: Type) -> None:
    """Whatever the place of the value that decides, and however many rows come before it."""
    for listed in (values, values[::-1], values[:1] * 5000 + ["", *values]):
        kinds, rows = _read(path, "v,w\n" + "".join(f"{value},\n" for value in listed))
        assert kinds == {"v": kind, "w": Type.TEXT}
        assert [row[0] is None for row in rows] == [value == "" for value in listed]
        assert [row[1] for row in rows] == [None] * len(listed)
        if kind is Type.TEXT:
            assert [row[0] or "" for row in rows] == listed


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("a,b\n1,x\n", [(1, "x")]),
        ("a;b\n1;x,y\n", [(1, "x,y")]),
        ("a\tb\n1\tx,y;z\n", [(1, "x,y;z")]),
        ("a|b\n1|x,y;z\n", [(1, "x,y;z")]),
        ('"a,;;;",b\n1,x\n', [(1, "x")]),
        ("\ufeffa,b\r\n1,x\r\n", [(1, "x")]),
        ('"a","b"\n"1","x ""y"" z"\n', [(1, 'x "y" z')]),
        ('a,b\n1,"x\ny"\n2,""\n3,\n', [(1, "x\ny"), (2, ""), (3, None)]),
        ("a,b\n1,# x\n#2,y", [("1", "# x"), ("#2", "y")]),
        ("a\n1\n\n2\n", [(1,), (None,), (2,)]),
        ("a,b\n1, x \n", [(1, " x ")]),
    ],
)
def test_layout(path: Path, content: str, rows: list[tuple[Any, ...]]) -> None:
    assert _read(path, content)[1] == rows
    assert _read(path.with_name("B.CSV.GZ"), gzip.compress(content.encode()))[1] == rows


def test_tsv_is_split_at_tabs(path: Path) -> None:
    assert _read(path.with_suffix(".tsv"), "a,b,c\td\n1\t2\n")[0] == {"a,b,c": Type.NUMBER, "d": Type.NUMBER}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (f"a,b\n1,2\n{SECRET}\n", "as many values"),
        (f"a,b\n1,2\n{SECRET},3,4\n", "as many values"),
        (f"a,b\n1,2\n{SECRET},3,\n", "as many values"),
        (f"a,b\n1,2\n\n{SECRET},3\n", "blank lines"),
        (f"# {SECRET}\na,b\n1,2\n", "comments"),
        (f'a,b\n1,2\n3,"{SECRET}\n', "not closed"),
        (f'a,b\n1,x"y\n3,"{SECRET}\n5,6\n', "not closed"),
        (f'a,b\n1,2\n3,"{SECRET}"x\n', "not closed"),
        (f"a,b\n1,2\r\n3,{SECRET}\n", "line ends"),
        (f"a,b\n1,{SECRET}".encode() + b"\xff\n", "UTF-8"),
        (f"a\xff,b\n1,{SECRET}".encode("latin-1"), "UTF-8"),
        (f"a,b\n1,{SECRET}\n".encode("utf-16"), "UTF-8"),
        (f"a,b\n1,{SECRET * 10_000}\n", "longer than"),
        (f",b\n1,{SECRET}\n", "index=False"),
        (f"a, \n1,{SECRET}\n", "without a name"),
        (f"\na,b\n1,{SECRET}\n", "without a name"),
        ("", "without a name"),
        (f'a,"b\nc"\n1,{SECRET}\n', "line break"),
        (f"a,b,A\n1,2,{SECRET}\n", "differ only in case"),
        (f"a,b,a\n1,2,{SECRET}\n", "differ only in case"),
    ],
)
def test_what_is_refused(path: Path, content: str | bytes, words: str) -> None:
    for name in ("a.csv", "a.csv.gz"):
        raw = content.encode() if isinstance(content, str) else content
        with pytest.raises(DataError, match=words) as refused:
            _read(path.with_name(name), gzip.compress(raw) if name.endswith("gz") else raw)
        assert name in str(refused.value)
        assert refused.value.__context__ is None
        assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_a_damaged_gzip_is_refused(path: Path) -> None:
    whole = gzip.compress(b"a,b\n" + b"1,2\n" * 100_000)
    for content in (whole[: len(whole) // 2], whole[:5], b"a,b\n1,2\n"):
        with pytest.raises(DataError, match="CSV file") as refused:
            _read(path.with_suffix(".csv.gz"), content)
        assert refused.value.__context__ is None


def test_long_files_with_line_breaks_in_quotes(path: Path) -> None:
    """DuckDB reads a file in pieces, which may begin within quotes."""
    lines = "".join(f'{i},"{"x" * (i % 97)}\n{i},""\n"\n' for i in range(400_000))
    kinds, rows = _read(path, "a,b\n" + lines)
    assert kinds == {"a": Type.NUMBER, "b": Type.TEXT}
    assert len(rows) == 400_000
    assert all(row == (i, f'{"x" * (i % 97)}\n{i},"\n') for i, row in enumerate(rows))
