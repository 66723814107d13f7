"""The file: who may read it, what else it may be, and what happens when it cannot be written."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from afresh.engines.identity import Identity
from afresh.errors import LedgerError
from afresh.ledger import Ledger, Outside, open_ledger
from afresh.ledger.known import plain
from afresh.ledger.sqlite import SqliteJournal
from ledger.asking import ask, opened, question, released, result
from ledger.leaks import assert_says_nothing_of

NOBODY = 65534


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
        ledger = open_ledger(tmp_path / "state" / "ledger.sqlite")
        ask(ledger)
        assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
        files = list((tmp_path / "state").iterdir())
        assert {file.name for file in files} >= {"ledger.sqlite", "ledger.sqlite-wal"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        ledger.close()
        assert os.listdir(tmp_path / "state") == ["ledger.sqlite"]  # closed, a ledger is one file to copy

    @pytest.mark.parametrize("name", ["a b?c#d%20e&mode=memory.é", ":memory:.sqlite", "file:x"])
    def test_may_have_any_name(self, tmp_path: Path, name: str) -> None:
        ledger = open_ledger(tmp_path / name)
        ask(ledger)
        ledger.close()
        assert os.listdir(tmp_path) == [name]

    def test_is_durable_and_versioned(self, path: Path) -> None:
        journal = SqliteJournal(path)
        with journal.transaction(write=False):
            assert journal._connection is not None
            pragmas = {
                name: journal._connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "foreign_keys", "user_version", "busy_timeout")
            }
        journal.close()
        assert pragmas == {
            "journal_mode": "wal",
            "synchronous": 2,
            "foreign_keys": 1,
            "user_version": 3,
            "busy_timeout": 30000,
        }

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM afresh_records",
            "DELETE FROM afresh_guards",
            "UPDATE afresh_guards SET seed = ''",
            "UPDATE afresh_guards SET head = ''",
            "UPDATE afresh_guards SET length = 1",
            "UPDATE afresh_records SET record = '{}'",
            "UPDATE afresh_records SET hash = ''",
            "UPDATE afresh_records SET place = place + 1",
            "INSERT INTO afresh_records SELECT guard, 2, record, hash FROM afresh_records",
            "INSERT OR REPLACE INTO afresh_records SELECT guard, 2, record, hash FROM afresh_records WHERE place = 1",
            "INSERT INTO afresh_records VALUES (9, 1, '', '')",
            "UPDATE afresh_key SET secret = 'known'",
            "DELETE FROM afresh_key",
            "UPDATE afresh_sketches SET sketch = ''",
            "DELETE FROM afresh_sketches",
        ],
    )
    def test_is_append_only_for_other_tools_too(self, path: Path, statement: str) -> None:
        ledger = open_ledger(path)
        stored = ledger.record(opened(ledger), ask(ledger), result(0.5))
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA foreign_keys = ON")
            other.execute("PRAGMA recursive_triggers = ON")
            with pytest.raises(sqlite3.IntegrityError):
                other.execute(statement)
        assert ledger.entries(opened(ledger)) == [stored]
        ledger.close()

    @pytest.mark.parametrize(
        "edit",
        [
            "UPDATE afresh_key SET secret = 'known'",
            "DELETE FROM afresh_key",
            "UPDATE afresh_sketches SET sketch = '00'",
            "DELETE FROM afresh_sketches",
        ],
    )
    def test_with_another_key_or_sketch_is_refused(self, path: Path, edit: str) -> None:
        """Or similar rows would not be known again."""
        rows = Identity(100, "some rows", (), "40" * 256)
        with closing(open_ledger(path)) as ledger:
            opened(ledger, rows)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            table = "key" if "key" in edit else "sketches"
            for trigger in ("stays", "is_fixed"):
                other.execute(f"DROP TRIGGER afresh_{table}_{trigger}")
            other.execute(edit)
        with closing(open_ledger(path)) as ledger:
            for use in (ledger.find, lambda data: opened(ledger, data)):
                with pytest.raises(LedgerError, match=r"damaged.*restore"):
                    use(rows)

    def test_whose_maker_was_killed_before_it_removed_the_draft_opens(self, path: Path) -> None:
        """Between two names and one, every other process would be refused, and after a kill for ever."""
        draft = path.with_name(f"{path.name}.0123456789abcdef.new")
        other = path.with_name(f"{path.name}.fedcba9876543210.new")
        open_ledger(path).close()
        draft.hardlink_to(path)
        other.write_text("somebody else's")
        open_ledger(path).close()
        assert not draft.exists()
        assert other.exists()

    def test_with_two_names_is_refused(self, path: Path) -> None:
        """SQLite would keep two write-ahead logs, and a budget could be spent twice."""
        ledger = open_ledger(path)
        ask(ledger)
        os.link(path, path.with_name("other.sqlite"))
        for use in (lambda: ask(ledger, "b"), lambda: open_ledger(path.with_name("other.sqlite"))):
            with pytest.raises(LedgerError, match=r"2 names \(hard links\)"):
                use()
        path.with_name("other.sqlite").unlink()
        assert ask(ledger, "b").number == 2
        ledger.close()

    def test_under_a_symbolic_link_is_the_same(self, path: Path) -> None:
        ledger = open_ledger(path)
        ask(ledger)
        path.with_name("link.sqlite").symlink_to(path)
        linked = open_ledger(path.with_name("link.sqlite"))
        assert ask(linked, "b").number == 2
        assert ask(ledger, "c").number == 3
        linked.close()
        ledger.close()

    @pytest.mark.parametrize("layout", [1, 2])
    def test_of_an_earlier_layout_gets_its_tables_and_keeps_its_chains(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, layout: int
    ) -> None:
        """Layout 1 had no checkpoints, and both no sketches."""
        with monkeypatch.context() as then, closing(open_ledger(path)) as ledger:
            then.setattr("afresh.ledger.ledger.seal_sketch", lambda *_: None)
            before = ask(ledger)
        with closing(sqlite3.connect(path)) as other:
            for table in ("key", "sketches", *(["checkpoints"] if layout == 1 else [])):
                other.execute(f"DROP TABLE afresh_{table}")
            other.execute(f"PRAGMA user_version = {layout}")
        with closing(open_ledger(path)) as ledger, closing(open_ledger(path)) as another:
            assert [each.digest for each in another.entries(opened(another))] == [before.digest]
            assert ask(ledger, "b").number == 2
            opened(ledger, plain("other rows", 7))  # which looks for damage
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("PRAGMA user_version").fetchone() == (3,)

    @pytest.mark.parametrize("version", [0, 4])
    def test_is_not_rewritten_when_it_has_another_layout(self, path: Path, version: int) -> None:
        open_ledger(path).close()
        with closing(sqlite3.connect(path)) as other:
            other.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(LedgerError, match=f"layout {version}.*use the afresh that wrote it"):
            open_ledger(path)

    def test_that_is_empty_is_refused(self, path: Path) -> None:
        """No ledger ever is, so something was lost."""
        path.touch()
        with pytest.raises(LedgerError, match=r"empty file.*restore it from a copy"):
            open_ledger(path)
        assert path.read_bytes() == b""


class TestFailure:
    def test_directory_in_place_of_the_file(self, tmp_path: Path) -> None:
        with pytest.raises(LedgerError, match=r"must be a file.*Nothing was released"):
            open_ledger(tmp_path)

    def test_file_in_place_of_the_directory(self, path: Path) -> None:
        path.write_bytes(b"")
        with pytest.raises(LedgerError, match="cannot be used"):
            open_ledger(path / "ledger.sqlite")

    @pytest.mark.parametrize("content", [b"garbage " * 1000, b"x", b"SQLite format 3\0" + b"\xff" * 4096])
    def test_garbage(self, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        with pytest.raises(LedgerError, match=r"not a ledger|damaged"):
            open_ledger(path)
        assert path.read_bytes() == content

    def test_database_of_something_else(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE theirs (x)")
        content = path.read_bytes()
        with pytest.raises(LedgerError, match="not a ledger"):
            open_ledger(path)
        assert path.read_bytes() == content

    def test_damaged(self, path: Path) -> None:
        ledger = open_ledger(path)
        terms = opened(ledger)
        for i in range(30):
            ask(ledger, f"{i}", text="x" * 500)
        ledger.close()
        content = bytearray(path.read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        path.write_bytes(content)
        with pytest.raises(LedgerError, match="damaged"), closing(open_ledger(path)) as broken:
            broken.entries(terms)

    @pytest.mark.parametrize("frozen", ["file", "directory"])
    def test_read_only(self, frozen: str) -> None:
        directory = Path(tempfile.mkdtemp())  # pytest's own directories are closed to other users
        path = directory / "ledger.sqlite"
        ledger = open_ledger(path)
        terms = opened(ledger)
        ledger.close()
        try:
            with unprivileged(directory, path):
                (path if frozen == "file" else directory).chmod(0o400 if frozen == "file" else 0o500)
                with (
                    pytest.raises(LedgerError, match=r"writable|may write"),
                    closing(open_ledger(path)) as ledger,
                ):
                    ledger.reserve(terms, [question("a")])
                directory.chmod(0o700)
        finally:
            shutil.rmtree(directory)

    def test_locked(self, path: Path) -> None:
        ledger = Ledger(SqliteJournal(path, busy_seconds=0.05))
        terms = opened(ledger)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(LedgerError, match=r"kept it locked for 0\.05 s"):
                ask(ledger)
            assert ledger.entries(terms) == []  # reading goes on
            other.execute("ROLLBACK")
        assert ask(ledger).number == 1
        ledger.close()

    @pytest.mark.parametrize("step", ["reserve", "record"])
    def test_full_disk_and_free_again(self, path: Path, step: str) -> None:
        journal = SqliteJournal(path)
        ledger = Ledger(journal)
        terms, entry = opened(ledger), ask(ledger)
        with journal.transaction(write=False):
            assert journal._connection is not None
            journal._connection.execute("PRAGMA max_page_count = 1")
        steps: dict[str, Callable[[], object]] = {
            "reserve": lambda: ask(ledger, "b", text="x" * 100_000),
            "record": lambda: ledger.record(terms, entry, result({f"{i}": float(i) for i in range(10_000)})),
        }
        with pytest.raises(LedgerError, match=r"disk is full.*Nothing was released"):
            steps[step]()
        assert ledger.entries(terms) == [entry]
        assert ask(ledger, "b", text="x" * 100_000).number == 2
        assert released(ledger.record(terms, entry, result(0.5))) == 0.5
        ledger.close()

    @pytest.mark.parametrize("how", ["removed", "replaced"])
    def test_lost_while_open(self, path: Path, how: str) -> None:
        ledger = open_ledger(path)
        entry = ask(ledger)
        path.rename(path.with_suffix(".old"))
        if how == "replaced":
            open_ledger(path).close()
        with pytest.raises(LedgerError, match="removed or replaced"):
            ledger.record(opened(ledger), entry, result(0.5))
        with pytest.raises(LedgerError, match="removed or replaced"):
            opened(ledger)
        assert path.exists() == (how == "replaced")
        ledger.close()

    def test_unrecorded_number_is_not_in_the_error(self, path: Path) -> None:
        ledger = open_ledger(path)
        terms, entry = opened(ledger), ask(ledger)
        with closing(sqlite3.connect(path)) as other:
            other.execute(
                "CREATE TRIGGER no BEFORE INSERT ON afresh_records BEGIN SELECT RAISE(ABORT, 'no 0.666666'); END"
            )
        with pytest.raises(LedgerError, match="Nothing was released") as failure:
            ledger.record(terms, entry, result(2 / 3))
        assert_says_nothing_of(failure.value, "0.666666")
        ledger.close()

    @pytest.mark.parametrize("moment", ["in a statement", "on the way back"])
    def test_interrupt_leaves_the_file_unlocked(self, path: Path, moment: str) -> None:
        journal = SqliteJournal(path)
        ledger, other = Ledger(journal), Ledger(SqliteJournal(path, busy_seconds=0.05))
        terms = opened(ledger)

        class Interrupted(sqlite3.Connection):
            """A connection on which Ctrl-C comes when the transaction ends."""

            def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
                if sql == ("ROLLBACK" if moment == "on the way back" else "COMMIT"):
                    raise KeyboardInterrupt
                return super().execute(sql, *parameters)

        assert journal._connection is not None
        journal._connection.close()
        journal._connection = sqlite3.connect(path, isolation_level=None, factory=Interrupted)
        charge = 101.0 if moment == "on the way back" else 1.0  # too much is refused
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(terms, Outside("revealed elsewhere", {}, charge))
        assert ask(other).number == ask(ledger).number == 1
        other.close()
        ledger.close()

    def test_asking_within_a_signal_handler_is_refused_not_waited_for(self, path: Path) -> None:
        journal = SqliteJournal(path)
        ledger = Ledger(journal)
        opened(ledger)
        refused = pytest.raises(LedgerError, match="a signal interrupted a transaction of this thread")
        with journal.transaction(write=True), refused:  # as if a signal came now
            ask(ledger)
        assert ask(ledger).number == 1
        ledger.close()

    def test_forgetting_to_close_it_closes_it(self, path: Path) -> None:
        journal = SqliteJournal(path)
        connection = journal._connection
        assert connection is not None
        del journal
        gc.collect()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
