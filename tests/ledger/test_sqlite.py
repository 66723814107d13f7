"""The file: who may read it, what else it may be, and what happens when it cannot be written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from afresh.errors import LedgerError
from afresh.ledger import Entry, Question, Terms
from afresh.ledger.sqlite import SqliteLedger

NOBODY = 65534


def opened(ledger: SqliteLedger) -> Terms:
    return ledger.open("data", plan="{}", rows=100, questions=100, information=100.0)


def ask(ledger: SqliteLedger, name: str = "a", detail: str = "{}") -> Entry:
    return ledger.reserve(opened(ledger), [Question(name, name, detail, 1.0)])[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@contextmanager
def unprivileged(*paths: Path) -> Iterator[None]:
    """As a user whom permissions bind, for root is not."""
    if os.geteuid():
        yield
        return
    for path in paths:
        os.chown(path, NOBODY, NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


class TestFile:
    def test_is_private(self, tmp_path: Path) -> None:
        ledger = SqliteLedger(tmp_path / "state" / "ledger.sqlite")
        ask(ledger)
        assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
        files = list((tmp_path / "state").iterdir())
        assert {file.name for file in files} >= {"ledger.sqlite", "ledger.sqlite-wal"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        ledger.close()
        assert os.listdir(tmp_path / "state") == ["ledger.sqlite"]  # closed, a ledger is one file to copy

    @pytest.mark.parametrize("name", ["a b?c#d%20e&mode=memory.é", ":memory:.sqlite", "file:x"])
    def test_may_have_any_name(self, tmp_path: Path, name: str) -> None:
        ledger = SqliteLedger(tmp_path / name)
        ask(ledger)
        ledger.close()
        assert os.listdir(tmp_path) == [name]

    def test_is_durable_and_versioned(self, path: Path) -> None:
        ledger = SqliteLedger(path)
        with ledger._store.transaction(write=False) as connection:
            pragmas = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("journal_mode", "synchronous", "foreign_keys", "user_version", "busy_timeout")
            }
        ledger.close()
        assert pragmas == {
            "journal_mode": "wal",
            "synchronous": 2,
            "foreign_keys": 1,
            "user_version": 1,
            "busy_timeout": 30000,
        }

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM entries",
            "DELETE FROM guards",
            "UPDATE guards SET questions = 1000000",
            "UPDATE entries SET charge = 0",
            "UPDATE entries SET released = 0.9",
            "UPDATE entries SET released = NULL, answered_at = NULL",
            "INSERT INTO entries SELECT guard, 2, digest, '', '', 0, '', NULL, NULL FROM entries",
        ],
    )
    def test_is_append_only_for_other_tools_too(self, path: Path, statement: str) -> None:
        ledger = SqliteLedger(path)
        stored = ledger.record(opened(ledger), ask(ledger), 0.5)
        with closing(sqlite3.connect(path)) as other, pytest.raises(sqlite3.IntegrityError):
            other.execute(statement)
        assert ledger.entries(opened(ledger)) == [stored]
        ledger.close()

    def test_is_not_rewritten_when_it_has_a_newer_layout(self, path: Path) -> None:
        SqliteLedger(path).close()
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA user_version = 2")
        with pytest.raises(LedgerError, match=r"layout 2.*upgrade afresh"):
            SqliteLedger(path)

    def test_that_an_earlier_crash_left_empty_is_used(self, path: Path) -> None:
        path.touch()
        ledger = SqliteLedger(path)
        assert ask(ledger).number == 1
        ledger.close()


class TestFailure:
    def test_directory_in_place_of_the_file(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerError, match=r"must be a file.*Nothing was released"):
            SqliteLedger(tmp_path)

    def test_file_in_place_of_the_directory(self, path: Path) -> None:
        path.write_bytes(b"")
        with pytest.raises(LedgerError, match="cannot be used"):
            SqliteLedger(path / "ledger.sqlite")

    @pytest.mark.parametrize("content", [b"garbage " * 1000, b"x", b"SQLite format 3\0" + b"\xff" * 4096])
    def test_garbage(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(LedgerError, match=r"not a ledger|damaged"):
            SqliteLedger(path)
        assert path.read_bytes() == content

    def test_database_of_something_else(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE theirs (x)")
        content = path.read_bytes()
        with pytest.raises(LedgerError, match="not a ledger"):
            SqliteLedger(path)
        assert path.read_bytes() == content

    def test_damaged(self, path: Path) -> None:
        ledger = SqliteLedger(path)
        terms = opened(ledger)
        for i in range(30):
            ask(ledger, f"{i}", detail="x" * 500)
        ledger.close()
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        path.write_bytes(content)
        with pytest.raises(LedgerError, match="damaged"), closing(SqliteLedger(path)) as broken:
            broken.entries(terms)

    @pytest.mark.parametrize("frozen", ["file", "directory"])
    def test_read_only(self, frozen: str) -> None:
        directory = Path(tempfile.mkdtemp())  # pytest's own directories are closed to other users
        path = directory / "ledger.sqlite"
        ledger = SqliteLedger(path)
        terms = opened(ledger)
        ledger.close()
        try:
            with unprivileged(directory, path):
                (path if frozen == "file" else directory).chmod(0o400 if frozen == "file" else 0o500)
                with (
                    pytest.raises(LedgerError, match=r"writable|may write"),
                    closing(SqliteLedger(path)) as ledger,
                ):
                    ledger.reserve(terms, [Question("a", "a", "{}", 1.0)])
                directory.chmod(0o700)
        finally:
            shutil.rmtree(directory)

    def test_locked(self, path: Path) -> None:
        ledger = SqliteLedger(path, busy_seconds=0.05)
        terms = opened(ledger)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerError, match=r"kept it locked for 0\.05 s"):
                ask(ledger)
            assert ledger.entries(terms) == []  # reading goes on
            other.execute("ROLLBACK")
        assert ask(ledger).number == 1
        ledger.close()

    def test_full_disk_and_free_again(self, path: Path) -> None:
        ledger = SqliteLedger(path)
        first = ask(ledger)
        with ledger._store.transaction(write=False) as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 1")
        with pytest.raises(LedgerError, match="disk is full"):
            ask(ledger, "b", detail="x" * 100_000)
        assert ledger.entries(opened(ledger)) == [first]
        assert ask(ledger, "b", detail="x" * 100_000).number == 2
        ledger.close()

    @pytest.mark.parametrize("how", ["removed", "replaced"])
    def test_lost_while_open(self, path: Path, how: str) -> None:
        ledger = SqliteLedger(path)
        entry = ask(ledger)
        path.rename(path.with_suffix(".old"))
        if how == "replaced":
            SqliteLedger(path).close()
        with pytest.raises(LedgerError, match="removed or replaced"):
            ledger.record(opened(ledger), entry, 0.5)
        with pytest.raises(LedgerError, match="removed or replaced"):
            opened(ledger)
        assert path.exists() == (how == "replaced")
        ledger.close()

    def test_unrecorded_number_is_not_in_the_error(self, path: Path) -> None:
        ledger = SqliteLedger(path)
        terms, entry = opened(ledger), ask(ledger)
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TRIGGER no BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'no'); END")
        with pytest.raises(LedgerError, match="Nothing was released") as failure:
            ledger.record(terms, entry, 2 / 3)
        assert "0.666666" not in "".join(traceback.format_exception(failure.value))
        ledger.close()

    def test_interrupt_leaves_the_file_unlocked(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ledger, other = SqliteLedger(path), SqliteLedger(path, busy_seconds=0.05)
        opened(ledger)
        interrupts = iter([KeyboardInterrupt])
        rollback = ledger._store._engine.dialect.do_rollback

        def interrupted(connection: Any) -> None:
            for interrupt in interrupts:
                raise interrupt
            rollback(connection)

        monkeypatch.setattr(ledger._store._engine.dialect, "do_rollback", interrupted)
        with pytest.raises(KeyboardInterrupt), ledger._store.transaction(write=True):
            raise RuntimeError
        assert ask(other).number == ask(ledger).number == 1
        with ledger._store.transaction(write=False) as connection:
            assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar_one() == 1
        other.close()
        ledger.close()
