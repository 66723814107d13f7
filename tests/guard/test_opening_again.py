"""Data that did not change are not hashed again, and data that may have are."""

from __future__ import annotations

import gzip
import json
import mmap
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import afresh
from afresh.engines.embedded import csv_file, stamp
from afresh.engines.embedded.engine import EmbeddedEngine
from afresh.engines.identity import ColumnDigest, Identity
from afresh.errors import DataChanged, SameRows
from afresh.ledger import open_ledger
from afresh.ledger.memory import Memory

KEEPS_TIMES = stamp._keeps_times
ROWS = 500
ONE = Identity(3, "rows-1:abc", (ColumnDigest("a", "x", None), ColumnDigest("b", None, "y")), "0a")
OTHER = Identity(4, "rows-1:def", ())


@pytest.fixture(autouse=True)
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files need not lie for two seconds, nor in a file system of a known kind."""
    monkeypatch.setattr(stamp, "_SETTLED", 0.0)
    monkeypatch.setattr(stamp, "_keeps_times", lambda path: True)
    monkeypatch.setattr(stamp, "_started", lambda: "a start")


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The fingerprints that were computed."""
    found: list[str] = []
    compute = EmbeddedEngine._identify

    def identify(self: EmbeddedEngine, key: str) -> Identity:
        identity = compute(self, key)
        found.append(identity.fingerprint)
        return identity

    monkeypatch.setattr(EmbeddedEngine, "_identify", identify)
    return found


def _frame(first: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"a": [float(first + i * i) for i in range(ROWS)], "b": [i % 3 == 0 for i in range(ROWS)]})


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.parquet"
    _frame().write_parquet(path, compression="uncompressed")
    return path


def _open(data: object, tmp_path: Path, table: str | None = None) -> str:
    with afresh.open(data, 5, ledger=tmp_path / "ledger.sqlite", new_rows="these are others", table=table) as guard:
        return guard.desk.terms.data


def test_the_second_opening_does_not_hash(data: Path, tmp_path: Path, hashed: list[str]) -> None:
    first = _open(data, tmp_path)
    assert _open(data, tmp_path) == _open(str(data), tmp_path) == first
    assert len(hashed) == 1
    assert stat.S_IMODE((tmp_path / "ledger.sqlite.opened").stat().st_mode) == 0o600
    assert str(data) not in (tmp_path / "ledger.sqlite.opened").read_text()


def _in_place(path: Path) -> None:
    """The same size and time of modification."""
    before, content = path.stat(), bytearray(path.read_bytes())
    place = content.index(b"\x00\x00\x00\x00\x00\x00\xf0\x3f")  # a 1 becomes a 2
    content[place : place + 8] = b"\x00\x00\x00\x00\x00\x00\x00\x40"
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replaced(path: Path) -> None:
    other = path.with_name("other.parquet")
    shutil.copy2(path, other)
    _in_place(other)
    shutil.copystat(path, other)
    os.replace(other, path)


def _linked(path: Path) -> None:
    other = path.with_name("other.parquet")
    shutil.copy2(path, other)
    _in_place(other)
    path.unlink()
    path.symlink_to(other)


def _grown(path: Path) -> None:
    pl.concat([_frame(), _frame(7)]).write_parquet(path)


@pytest.mark.parametrize("change", [_in_place, _replaced, _linked, _grown])
def test_changed_files_are_hashed_again(
    change: Callable[[Path], None], data: Path, tmp_path: Path, hashed: list[str]
) -> None:
    before = _open(data, tmp_path)
    change(data)
    assert _open(data, tmp_path) != before
    assert len(set(hashed)) == len(hashed) == 2


@pytest.fixture
def on_disk(data: Path) -> Iterator[Path]:
    """A copy among other files than those of tests, which may be in memory, where mapped writes change no time."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copy(data, folder))


@pytest.mark.parametrize("opened", [True, False], ids=["a guard that is open", "a later opening"])
def test_what_is_written_through_a_mapping_counts(
    opened: bool, on_disk: Path, tmp_path: Path, hashed: list[str]
) -> None:
    """Of a page that is dirty already: unless it was flushed, writing to it again changes no time of the file."""
    data = on_disk
    if not KEEPS_TIMES(data):
        pytest.skip("this file system does not keep the times of such writes at all")
    place = data.read_bytes().index(b"\x00\x00\x00\x00\x00\x00\xf0\x3f")  # a 1
    with data.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[place + 6 : place + 8] = b"\x00\x40"  # a 2
        engine = EmbeddedEngine(data)
        before = _open(data, tmp_path)
        time.sleep(0.1)  # more than a tick
        mapped[place + 6 : place + 8] = b"\x08\x40"  # a 3
        if opened:
            with pytest.raises(DataChanged):
                engine.check_unchanged()
        else:
            assert _open(data, tmp_path) != before
        engine.close()
    assert len(set(hashed)) == len(hashed) == (1 if opened else 2)


@pytest.mark.parametrize("change", [Path.touch, lambda path: path.chmod(0o640)], ids=["touched", "rights"])
def test_what_may_have_changed_is_hashed_again(
    change: Callable[[Path], None], data: Path, tmp_path: Path, hashed: list[str]
) -> None:
    before = _open(data, tmp_path)
    change(data)
    assert _open(data, tmp_path) == before
    assert len(hashed) == 2


def test_a_file_that_was_just_written_is_not_remembered(
    data: Path, tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stamp, "_SETTLED", 3600.0)
    _open(data, tmp_path)
    os.utime(data, (0, 0))  # an old time of modification does not help
    _open(data, tmp_path)
    monkeypatch.setattr(stamp, "_SETTLED", 0.0)
    _open(data, tmp_path)
    assert len(hashed) == 3


def test_age_counts_when_the_stamp_is_taken(data: Path) -> None:
    """However long reading takes: a file can be written to twice within a tick, before and after the stamp."""
    found = stamp.Stamp.of(data)
    assert found.lasting() is not None
    young = stamp.Stamp(found.path, found.statuses, found.taken - 3600)
    assert young == found
    assert young.lasting() is None


def test_another_start_of_a_machine_is_another_machine(
    data: Path, tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for started in ("another", None, None):
        _open(data, tmp_path)
        monkeypatch.setattr(stamp, "_started", lambda started=started: started)
    assert len(hashed) == 3


def test_other_file_systems_are_not_trusted(
    data: Path, tmp_path: Path, hashed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _open(data, tmp_path)
    monkeypatch.setattr(stamp, "_keeps_times", lambda path: False)
    _open(data, tmp_path)
    assert len(hashed) == 2


def test_tables_of_one_file_are_told_apart(tmp_path: Path, hashed: list[str]) -> None:
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE one AS SELECT i AS a FROM range(500) AS r(i)")
        connection.execute("CREATE TABLE two AS SELECT i * i AS a FROM range(500) AS r(i)")
    found = [_open(path, tmp_path, table=table) for table in ("one", "two", "one", "two")]
    assert found[0] == found[2] != found[1] == found[3]
    assert len(hashed) == 2


def test_what_is_not_yet_in_a_duckdb_file_counts(tmp_path: Path, hashed: list[str]) -> None:
    path = tmp_path / "data.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE one AS SELECT i AS a FROM range(500) AS r(i)")
    before = _open(path, tmp_path)
    with duckdb.connect(str(path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("UPDATE one SET a = -1 WHERE a = 7")
    assert path.with_name("data.duckdb.wal").exists()
    assert _open(path, tmp_path) != before


def test_frames_are_always_hashed(tmp_path: Path, hashed: list[str]) -> None:
    assert _open(_frame(), tmp_path) == _open(_frame(), tmp_path)
    assert len(hashed) == 2


def test_a_forged_number_of_rows_is_not_believed(data: Path, tmp_path: Path, hashed: list[str]) -> None:
    engine, ledger = EmbeddedEngine(data), open_ledger(tmp_path / "ledger.sqlite")
    assert ledger.memory is not None
    ledger.memory.keep(f"{ledger.key}:{engine.state()}", Identity(ROWS + 1, "rows-1:abc", ()))
    assert ledger.memory.find(f"{ledger.key}:{engine.state()}") is not None
    engine.close()
    ledger.close()
    _open(data, tmp_path)
    assert len(hashed) == 1


def test_sketches_are_remembered_too_but_not_those_of_another_ledger(
    data: Path, tmp_path: Path, hashed: list[str]
) -> None:
    """One that was put in the first one's place has another key."""
    ledger = tmp_path / "ledger.sqlite"
    _open(data, tmp_path)
    ledger.unlink()
    _open(_frame()[1:], tmp_path)
    for _ in range(2):
        with pytest.raises(SameRows, match="most of its different rows"):
            afresh.open(data, 5, ledger=ledger)
    assert len(hashed) == 3


def test_several_are_remembered_up_to_a_limit(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "ledger")
    assert memory.find("one") is None
    memory.keep("one", ONE)
    memory.keep("other", OTHER)
    assert (memory.find("one"), memory.find("other"), memory.find("third")) == (ONE, OTHER, None)
    memory.keep("one", OTHER)
    assert memory.find("one") == OTHER
    for i in range(128):
        memory.keep(str(i), ONE)
    assert memory.find("one") is None
    assert memory.find("0") == ONE
    assert [path.name for path in tmp_path.iterdir()] == ["ledger.opened"]


def test_damage_is_never_an_identity(tmp_path: Path) -> None:
    """Every byte changed in turn, the file cut at every place, and entries exchanged."""
    memory, path = Memory(tmp_path / "ledger"), tmp_path / "ledger.opened"
    memory.keep("one", ONE)
    memory.keep("other", OTHER)
    whole = path.read_bytes()
    changed = [whole[:i] + bytes([whole[i] ^ bit]) + whole[i + 1 :] for i in range(len(whole)) for bit in (1, 2, 32)]
    changed += [whole[:i] for i in range(len(whole))]
    keys = list(json.loads(whole))
    changed.append(json.dumps(dict(zip(keys, reversed(json.loads(whole).values()), strict=True))).encode())
    changed += [b"[]", b"7", b"null", b"[" * 10**6, b'{"' + keys[0].encode() + b'": 7}', b"\xff\xfe"]
    for content in changed:
        path.write_bytes(content)
        assert memory.find("one") in (ONE, None)
        assert memory.find("other") in (OTHER, None)
    memory.keep("one", ONE)
    assert memory.find("one") == ONE


def test_the_memory_must_be_ours_alone(tmp_path: Path) -> None:
    memory, path = Memory(tmp_path / "ledger"), tmp_path / "ledger.opened"
    memory.keep("one", ONE)
    for rights in (0o620, 0o602, 0o666):
        path.chmod(rights)
        assert memory.find("one") is None
    path.chmod(0o600)
    assert memory.find("one") == ONE
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert memory.find("one") is None
    path.unlink()
    os.mkfifo(path)
    assert memory.find("one") is None  # and it does not wait for a writer
    path.unlink()
    path.mkdir()
    assert memory.find("one") is None
    memory.keep("one", ONE)  # nor does it fail
    assert sorted(one.name for one in tmp_path.iterdir()) == ["elsewhere", "ledger.opened"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_not_believed(tmp_path: Path) -> None:
    memory, path = Memory(tmp_path / "ledger"), tmp_path / "ledger.opened"
    memory.keep("one", ONE)
    os.chown(path, 12345, -1)
    assert memory.find("one") is None


def test_many_writers_leave_a_whole_file(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "ledger")
    threads = [threading.Thread(target=memory.keep, args=(str(i), ONE)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(json.loads((tmp_path / "ledger.opened").read_text())) != set()
    assert all(memory.find(str(i)) in (ONE, None) for i in range(20))


def test_a_memory_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "nowhere" / "ledger")
    memory.keep("one", ONE)
    assert memory.find("one") is None


def test_which_file_systems_keep_times() -> None:
    assert not KEEPS_TIMES(Path("/proc/self/status"))
    assert not KEEPS_TIMES(Path("/sys/kernel"))


CSV = "a,b,c,d,e\n" + "".join(
    f"{i * i}.5,{'true' if i % 3 else 'FALSE'},2020-01-{1 + i % 28:02d},2020-01-01 10:{i % 60:02d},{i:03d}\n"
    for i in range(ROWS)
)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The types that were read off all rows of CSV files."""
    found: list[object] = []
    read = csv_file._kinds

    def kinds(*args: Any) -> list[str]:
        found.append(kinds := read(*args))
        return kinds

    monkeypatch.setattr(csv_file, "_kinds", kinds)
    return found


def _opened_csv(path: Path, tmp_path: Path) -> tuple[object, ...]:
    """What names the rows, what they are, and their order."""
    with afresh.open(path, 5, ledger=tmp_path / "new" / "ledger.sqlite", new_rows="others", allow_wide=True) as guard:
        engine = guard.desk.engine
        assert isinstance(engine, EmbeddedEngine)
        rows = engine.fetch("SELECT a, e FROM data ORDER BY rowid")
        return guard.desk.terms.data, dict(engine.schema), rows["a"].tolist(), rows["e"].tolist()


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_the_types_of_a_csv_file_are_read_off_its_rows_once(
    tmp_path: Path, typed: list[object], hashed: list[str], ending: str
) -> None:
    path = tmp_path / f"data{ending}"
    path.write_bytes(gzip.compress(CSV.encode()) if ending.endswith("gz") else CSV.encode())
    first = _opened_csv(path, tmp_path)
    assert typed == [["number", "boolean", "date", "timestamp", "text"]]
    assert _opened_csv(path, tmp_path) == _opened_csv(path, tmp_path) == first
    assert len(typed) == len(hashed) == 1


def test_a_csv_file_that_changed_is_typed_again(tmp_path: Path, typed: list[object]) -> None:
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    first = _opened_csv(path, tmp_path)
    path.write_text(CSV.replace("0.5,", "007,", 1))  # one code makes a text of the column
    assert _opened_csv(path, tmp_path) != first
    path.write_text("a;b;c;d;e\n" + CSV.split("\n", 1)[1])  # its header tells another delimiter, and lines are wrong
    with pytest.raises(afresh.errors.DataError, match="is not a CSV file"):
        _opened_csv(path, tmp_path)
    path.write_text(CSV)
    assert _opened_csv(path, tmp_path) == first  # of another time
    assert len(typed) == 3


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        [ROWS],
        [ROWS + 1, ["number", "boolean", "date", "timestamp", "text"]],
        [ROWS, ["number", "boolean", "date", "timestamp"]],
        [ROWS, ["number", "boolean", "date", "timestamp", "hugeint"]],
        [ROWS, ["boolean", "boolean", "date", "timestamp", "text"]],
        [ROWS, [[], {}, 1, None, "text"]],
        "x",
    ],
)
def test_what_is_remembered_wrongly_of_a_csv_file_is_read_again(
    tmp_path: Path, typed: list[object], monkeypatch: pytest.MonkeyPatch, wrong: object
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(CSV)
    first = _opened_csv(path, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "recall", lambda self, state: wrong)
        assert _opened_csv(path, tmp_path) == first
    assert len(typed) == 2
    assert _opened_csv(path, tmp_path) == first
    assert len(typed) == 2


def test_damage_to_what_was_learnt_shows(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "ledger.sqlite")
    assert memory.recall("a state") is None
    memory.note("a state", [3, ["text"]])
    memory.keep("another", ONE)
    assert memory.recall("a state") == [3, ["text"]]
    assert memory.recall("another") is None
    assert memory.find("a state") is None
    assert memory.find("another") == ONE
    file = tmp_path / "ledger.sqlite.opened"
    file.write_text(file.read_text().replace('[3, ["text"]]', '[4, ["text"]]'))
    assert memory.recall("a state") is None
    file.write_text("[]")
    assert memory.recall("a state") is None
