"""The server: lost, slow, read-only, forbidden, full of somebody else's tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import afresh
from afresh.errors import InvalidArgument, LedgerError
from afresh.ledger import Ledger, Outside, open_ledger
from afresh.ledger.known import plain
from afresh.ledger.postgres import PostgresJournal
from ledger.asking import ask, opened, released, result
from ledger.leaks import assert_says_nothing_of
from ledger.servers import Server


@pytest.fixture
def ledger(address: str) -> Iterator[Ledger]:
    with closing(open_ledger(address)) as ledger:
        yield ledger


@contextmanager
def other(address: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def schema(address: str) -> str:
    return address.rsplit("%3D", 1)[1]


def backend(ledger: Ledger) -> int:
    journal: Any = ledger._journal
    pid: int = journal._connection.info.backend_pid
    return pid


class TestTables:
    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM afresh_records",
            "DELETE FROM afresh_guards",
            "TRUNCATE afresh_records",
            "TRUNCATE afresh_guards CASCADE",
            "UPDATE afresh_guards SET seed = ''",
            "UPDATE afresh_guards SET head = ''",
            "UPDATE afresh_guards SET length = 1",
            "UPDATE afresh_guards SET seed = '', length = 9",
            "UPDATE afresh_records SET record = '{}'",
            "UPDATE afresh_records SET hash = ''",
            "INSERT INTO afresh_records SELECT guard, 2, record, hash FROM afresh_records",
            "INSERT INTO afresh_records SELECT guard, 2, record, hash FROM afresh_records WHERE place = 1 "
            "ON CONFLICT (guard, place) DO UPDATE SET record = EXCLUDED.record",
            "INSERT INTO afresh_records VALUES (99, 1, '', '')",
        ],
    )
    def test_are_append_only_for_other_tools_too(self, ledger: Ledger, address: str, statement: str) -> None:
        stored = ledger.record(opened(ledger), ask(ledger), result(0.5))
        with other(address) as connection, pytest.raises(psycopg.Error):
            connection.execute(statement)
        assert ledger.entries(opened(ledger)) == [stored]

    def test_commits_are_durable_whatever_the_default(self, server: Server) -> None:
        name = schema(server.empty())
        server.run("DROP ROLE IF EXISTS hasty", "CREATE ROLE hasty LOGIN", f"GRANT ALL ON SCHEMA {name} TO hasty")
        server.run("ALTER ROLE hasty SET synchronous_commit = off")
        journal = PostgresJournal(server.within(name, "hasty"))
        with journal.transaction(write=False):
            assert journal._connection is not None
            assert journal._connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        journal.close()

    @pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
    def test_may_be_in_a_database_of_any_encoding(self, server: Server, encoding: str) -> None:
        database = f"in_{encoding.lower()}"
        server.run(f"CREATE DATABASE {database} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
        with closing(open_ledger(server.address.replace("/postgres?", f"/{database}?"))) as ledger:
            assert ask(ledger, "price > 5 AND unit = '€'").number == 1
            assert ledger.entries(opened(ledger))[0].text == "price > 5 AND unit = '€'"

    @pytest.mark.parametrize("layout", [1, 2])
    def test_of_an_earlier_layout_get_theirs_and_keep_their_chains(
        self, ledger: Ledger, address: str, monkeypatch: pytest.MonkeyPatch, layout: int
    ) -> None:
        """Layout 1 had no checkpoints, and both no sketches."""
        with monkeypatch.context() as then:
            then.setattr("afresh.ledger.ledger.seal_sketch", lambda *_: None)
            before = ask(ledger)
        with other(address) as connection:
            if layout == 1:
                connection.execute("DROP TABLE afresh_checkpoints")
            connection.execute("DROP TABLE afresh_key, afresh_sketches")
            connection.execute("UPDATE afresh_layout SET version = %s", (layout,))
        with closing(open_ledger(address)) as again, closing(open_ledger(address)) as another:
            assert [each.digest for each in another.entries(opened(another))] == [before.digest]
            assert ask(again, "b").number == 2
        with other(address) as connection:
            assert connection.execute("SELECT version FROM afresh_layout").fetchone() == (3,)

    @pytest.mark.parametrize("version", [0, 4])
    def test_of_another_layout_are_not_touched(self, ledger: Ledger, address: str, version: int) -> None:
        with other(address) as connection:
            connection.execute("UPDATE afresh_layout SET version = %s", (version,))
        with pytest.raises(LedgerError, match=f"layout {version}.*use the afresh that wrote it"):
            open_ledger(address)

    @pytest.mark.parametrize("lost", ["DELETE FROM afresh_guards", "DELETE FROM afresh_records WHERE place = 2"])
    def test_that_do_not_agree_make_no_rows_new(self, ledger: Ledger, address: str, lost: str) -> None:
        opened(ledger)
        with other(address) as connection:
            connection.execute("SET session_replication_role = replica")  # triggers and references sleep
            connection.execute(lost.encode())
        stranger = plain("never seen", 1)
        for use in (ledger.find, lambda data: opened(ledger, data)):
            with pytest.raises(LedgerError, match="guards and its records do not agree"):
                use(stranger)

    def test_racing_creations_agree(self, address: str) -> None:
        seeds: list[str] = []
        together = threading.Barrier(6)

        def create() -> None:
            together.wait()
            with closing(open_ledger(address)) as ledger:
                seeds.append(opened(ledger).seed)

        threads = [threading.Thread(target=create) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seeds) == 6
        assert len(set(seeds)) == 1


class TestFailure:
    def test_connection_ended_by_the_server(self, ledger: Ledger, server: Server) -> None:
        entry = ask(ledger)
        server.run(f"SELECT pg_terminate_backend({backend(ledger)}, 5000)")
        with pytest.raises(LedgerError, match=r"ended the connection.*ask again.*Nothing was released"):
            ask(ledger, "b")
        assert ask(ledger, "b").number == 2
        assert ledger.entries(opened(ledger))[0] == entry

    @pytest.mark.parametrize("step", ["reserve", "record"])
    def test_connection_ended_within_a_transaction(
        self, ledger: Ledger, server: Server, step: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After the records were sent and before they are committed: nothing of them remains."""
        from afresh.ledger import postgres

        terms, entry = opened(ledger), ask(ledger)
        append = postgres._Statements.append

        def lost(self: Any, *arguments: Any) -> None:
            append(self, *arguments)
            monkeypatch.setattr(postgres._Statements, "append", append)
            server.run(f"SELECT pg_terminate_backend({backend(ledger)}, 5000)")

        monkeypatch.setattr(postgres._Statements, "append", lost)
        with pytest.raises(LedgerError, match="Nothing was released") as failure:
            ask(ledger, "b") if step == "reserve" else ledger.record(terms, entry, result(2 / 3))
        assert_says_nothing_of(failure.value, "0.666666")
        assert ledger.entries(terms) == [entry]
        assert ask(ledger, "b").number == 2
        assert released(ledger.record(terms, entry, result(0.5))) == 0.5

    def test_server_restarted(self, ledger: Ledger, server: Server) -> None:
        terms = opened(ledger)
        stored = ledger.record(terms, ask(ledger), result(0.5))
        server.crash()
        with pytest.raises(LedgerError, match="Nothing was released"):
            ask(ledger, "b")
        with pytest.raises(LedgerError, match="cannot be reached"):  # and it is still away
            ask(ledger, "b")
        server.start()
        assert ledger.entries(terms) == [stored]
        assert ask(ledger, "b").number == 2

    def test_locked_by_another(self, address: str) -> None:
        with closing(Ledger(PostgresJournal(address, busy_seconds=0.05))) as ledger:
            terms = opened(ledger)
            with other(address) as connection, connection.transaction():
                connection.execute("SELECT 1 FROM afresh_guards FOR UPDATE")
                with pytest.raises(LedgerError, match=r"kept the guard locked for 0\.05 s"):
                    ask(ledger)
                assert ledger.entries(terms) == []  # reading goes on
                assert opened(ledger, plain("other", 1))  # and other guards
            assert ask(ledger).number == 1

    def test_a_frozen_process_loses_its_lock(self, address: str) -> None:
        frozen = PostgresJournal(address, busy_seconds=1.0)
        with closing(open_ledger(address)) as ledger:
            terms = opened(ledger)

            def transaction() -> None:
                with frozen.transaction(write=True) as work:
                    assert work.chain(terms.guard) is not None
                    assert ask(ledger).number == 1  # waits until the server has ended the transaction around it
                    work.chain(terms.guard)

            with pytest.raises(LedgerError, match="Nothing was released"):
                transaction()
            assert len(ledger.entries(terms)) == 1
        frozen.close()

    def test_read_only(self, ledger: Ledger, address: str, server: Server) -> None:
        terms, entry = opened(ledger), ask(ledger)
        with closing(open_ledger(f"{address}%20-cdefault_transaction_read_only%3Don")) as reader:
            assert reader.entries(terms) == [entry]
            with pytest.raises(LedgerError, match=r"read-only; connect to the primary.*Nothing was released"):
                ask(reader, "b")
        with pytest.raises(LedgerError, match="read-only"):
            open_ledger(f"{server.empty()}%20-cdefault_transaction_read_only%3Don")

    def test_missing_privileges(self, ledger: Ledger, address: str, server: Server) -> None:
        terms, entry, name = opened(ledger), ask(ledger), schema(address)
        server.run("DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN", f"GRANT USAGE ON SCHEMA {name} TO reader")
        with pytest.raises(LedgerError, match="may not write it; grant"):
            open_ledger(server.within(name, "reader"))
        server.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO reader")
        with closing(open_ledger(server.within(name, "reader"))) as reader:
            assert reader.entries(terms) == [entry]
            with pytest.raises(LedgerError, match="may not write it; grant"):
                reader.record(terms, entry, result(0.5))
        server.run(f"GRANT INSERT, UPDATE ON ALL TABLES IN SCHEMA {name} TO reader")
        with closing(open_ledger(server.within(name, "reader"))) as writer:
            assert released(writer.record(terms, entry, result(0.5))) == 0.5
            assert opened(writer, plain("more", 1)).rows == 1
        with pytest.raises(LedgerError, match="no schema in which this user may create tables; grant"):
            open_ledger(server.within(schema(server.empty()), "reader"))

    def test_unrecorded_number_is_not_in_the_error(self, ledger: Ledger, address: str) -> None:
        terms, entry = opened(ledger), ask(ledger)
        with other(address) as connection:  # the server then quotes the row it refuses
            connection.execute("ALTER TABLE afresh_records ADD CHECK (record NOT LIKE '%0.666666%')")
        with pytest.raises(LedgerError, match="Nothing was released") as failure:
            ledger.record(terms, entry, result(2 / 3))
        assert_says_nothing_of(failure.value, "0.666666")
        assert released(ledger.record(terms, entry, result(0.5))) == 0.5

    @pytest.mark.parametrize(
        "place",
        [
            "postgresql://ada:secret@127.0.0.1:1/db",
            "postgresql://ada@127.0.0.1:1/db?password=secret",
            "postgresql://ada:secret@host.invalid/db",
        ],
    )
    def test_no_server_there(self, place: str) -> None:
        with pytest.raises(LedgerError, match=r"postgresql://ada@[\w.]+/db cannot be reached") as failure:
            open_ledger(place)
        assert_says_nothing_of(failure.value, "secret")

    @pytest.mark.parametrize(
        "place", ["postgresql://ada:sec:secret@host:secret/db", "postgresql://[secret", "postgres://h/?secret=1"]
    )
    def test_no_address(self, place: str) -> None:
        with pytest.raises((InvalidArgument, LedgerError)) as failure:
            open_ledger(place)
        assert_says_nothing_of(failure.value, "secret")

    def test_no_such_database_or_user(self, server: Server) -> None:
        with pytest.raises(LedgerError, match='database "nowhere" does not exist'):
            open_ledger(server.address.replace("/postgres?", "/nowhere?"))
        with pytest.raises(LedgerError, match='role "nobody" does not exist'):
            open_ledger(server.address.replace("postgres:@", "nobody:secret@"))

    def test_wrong_password_is_not_said(self, server: Server) -> None:
        server.run("DROP ROLE IF EXISTS ada", "CREATE ROLE ada LOGIN PASSWORD 'right'")
        rules = server.run("SHOW hba_file")[0][0]
        before = _prepend(rules, "local all ada scram-sha-256\n")
        wrong = "".join(["1234"] * 3)  # not as such in the source, which tracebacks quote
        server.run("SELECT pg_reload_conf()")
        time.sleep(0.2)
        try:
            with pytest.raises(LedgerError, match="password authentication failed") as failure:
                open_ledger(server.address.replace("postgres:@", f"ada:{wrong}@"))
            assert_says_nothing_of(failure.value, wrong)
        finally:
            _prepend(rules, "", before)
            server.run("SELECT pg_reload_conf()")

    @pytest.mark.parametrize("moment", ["ROLLBACK", "COMMIT"])
    def test_interrupt_leaves_the_guard_unlocked(
        self, ledger: Ledger, address: str, moment: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        terms = opened(ledger)
        # What is appended is sent together with COMMIT, by a cursor.
        sender: Any = psycopg.Connection if moment == "ROLLBACK" else psycopg.ClientCursor
        execute = sender.execute

        def interrupted(self: Any, query: Any, *arguments: Any, **options: Any) -> Any:
            if moment in str(query):
                monkeypatch.setattr(sender, "execute", execute)
                raise KeyboardInterrupt
            return execute(self, query, *arguments, **options)

        monkeypatch.setattr(sender, "execute", interrupted)
        charge = 101.0 if moment == "ROLLBACK" else 1.0  # too much is refused
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(terms, Outside("revealed elsewhere", {}, charge))
        with closing(Ledger(PostgresJournal(address, busy_seconds=1.0))) as second:
            assert ask(second).number == ask(ledger).number == 1


def _prepend(path: str, line: str, text: str | None = None) -> str:
    with open(path) as file:
        before = file.read()
    with open(path, "w") as file:
        file.write(line + (before if text is None else text))
    return before


class TestRoundTrips:
    """Counted in the protocol: the server ends every round trip by saying that it is ready for the next one."""

    @pytest.fixture
    def guard(self, address: str) -> Iterator[afresh.Guard]:
        rows = pa.table({"x": list(range(100))})
        with afresh.open(rows, 100, method="calibrated", ledger=address, allow_wide=True) as guard:
            guard.ask("x < 0")  # the first question fixes the plan
            yield guard

    def test_a_question_takes_four(self, guard: afresh.Guard, tmp_path: Path) -> None:
        for number in range(1, 4):
            with counted(guard, tmp_path / f"{number}") as trips:
                guard.ask(f"x < {number}")
            assert trips() == 4

    def test_a_group_takes_as_many(self, guard: afresh.Guard, tmp_path: Path) -> None:
        with counted(guard, tmp_path / "many") as trips:
            guard.ask_many([f"x < {number}" for number in range(10, 30)])
        assert trips() == 4
        callers = [guard.for_analyst(f"analyst {number}") for number in range(8)]
        asked = [(one.checked([f"x < {number}"]), one.analyst) for number, one in enumerate(callers, 40)]
        found = [guard.desk.prepared(*each, guard.desk.came()) for each in asked]
        requests = [each for each in found if each is not None]
        assert len(requests) == 8
        with counted(guard, tmp_path / "callers") as trips:
            guard.desk.answer_for(requests)
        assert all(request.replies is not None for request in requests)
        assert trips() == 4

    def test_a_mean_within_a_group_takes_as_many(self, guard: afresh.Guard, tmp_path: Path) -> None:
        """It is two questions and a number that follows from them."""
        with counted(guard, tmp_path / "within") as trips:
            guard.ask("x < 7", where="x < 50")
        assert trips() == 4

    def test_a_repeat_takes_two(self, guard: afresh.Guard, tmp_path: Path) -> None:
        with counted(guard, tmp_path / "repeat") as trips:
            guard.ask("x < 0")
        assert trips() == 2


@contextmanager
def counted(guard: afresh.Guard, place: Path) -> Iterator[Callable[[], int]]:
    """Trace what the ledger's connection sends and receives, and count the round trips."""
    journal: Any = guard.desk.ledger._journal
    with place.open("w") as file:
        journal._connection.pgconn.trace(file.fileno())
        try:
            yield lambda: place.read_text().count("ReadyForQuery")
        finally:
            journal._connection.pgconn.untrace()
