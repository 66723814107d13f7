"""Whatever a file or its folder is called, it is that file that is read."""

import itertools
import os
from contextlib import closing
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.queries.query import make_query

NAMES = (
    *(
        "a*b",
        "a?b",
        "**",
        "[x]",
        "a[b",
        "a]b",
        "[!q]",
        "[a-z]",
        "a[*]b",
        "{a,b}",
        "!",
        "-",
        "~",
        "%20",
        "$HOME",
        "#?x=1",
    ),
    *("a\\b", "a\\*b", "\\[x]", "a\\\\b", "\\", "a'b", 'a"b', "a''b", "a b", " ", "a;b", "a\nb", "a\tb", "\x1b[2J"),
    *("ü", "e\u0301", "日本", "\u202eabc", "\U0001f600", "s3:", "hive=1", "..."),
    os.fsdecode(b"\xff\xfe"),
)
DECOYS = ("aXb", "x", "a*b", "[x]", "ab", "q")  # what a name means as a pattern


def write(path: Path, share: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pd.DataFrame({"x": [i < share * 40 for i in range(40)], "y": range(40)})
    if path.suffix == ".duckdb":
        plain = path.parent.parent / "plain.duckdb"
        with duckdb.connect(str(plain)) as connection:
            connection.execute("CREATE TABLE rows AS SELECT * FROM frame")
        plain.rename(path)
    elif path.suffix == ".csv":
        with path.open("wb") as file:
            frame.to_csv(file, index=False)
    else:
        path.write_bytes(frame.to_parquet())  # older writers take the name of a file for an address


@pytest.mark.parametrize("name", NAMES, ids=ascii)
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".duckdb"])
def test_any_name(tmp_path: Path, name: str, suffix: str) -> None:
    path, decoy = tmp_path / name / f"{name}{suffix}", tmp_path / f"decoy{suffix}"
    write(path, 0.25)
    write(decoy, 0.75)
    for folder, file in itertools.product((name, *DECOYS), DECOYS):
        other = tmp_path / folder / f"{file}{suffix}"
        other.parent.mkdir(parents=True, exist_ok=True)
        if not other.exists():
            os.link(decoy, other)
    with closing(EmbeddedEngine(path)) as engine:
        assert engine.rows == 40
        assert engine.identity().rows == 40
        (found,) = engine.moments([make_query("x", engine.schema)])
        assert found.mean == 0.25


def test_what_is_not_yet_in_a_database_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "a\\[b].duckdb"
    write(path, 0.25)
    with duckdb.connect(str(tmp_path / "plain.duckdb")) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("CREATE TABLE rows AS SELECT i < 10 AS x FROM range(40) AS t(i)")
    (tmp_path / "plain.duckdb").rename(path)
    (tmp_path / "plain.duckdb.wal").rename(f"{path}.wal")
    with closing(EmbeddedEngine(path)) as engine:
        (found,) = engine.moments([make_query("x", engine.schema)])
        assert found.mean == 0.25
