"""Roles with least rights on PostgreSQL: what an analyst can append, and that nothing else gets in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import psycopg
import pytest

import afresh
from afresh.errors import AfreshError, BudgetExhausted, LedgerError
from afresh.ledger import Entry, Ledger, Limits, Outside, Question, Statement, Terms, open_ledger
from afresh.ledger.analysts import recipe
from afresh.ledger.books import sealed
from afresh.ledger.known import plain
from afresh.ledger.records import VERSION, Answered, Record, Reserved, Stated, encode, seal
from afresh.mechanisms.registry import PLANNERS
from afresh.receipts import verify
from ledger.asking import DATA, question, released, result
from ledger.servers import Server

LIMITS = Limits({}, questions=10, answers=20, information=10.0, row_share=5.0)
STATEMENT = Statement("a ratio", "ratio", {"of": 2}, (1, 2), (0.0, 2.0), 1.0, 0.5, 1.5)


def at(address: str, user: str) -> str:
    return address.replace("postgres:@", f"{user}@")


@pytest.fixture
def guarded(server: Server, address: str) -> str:
    """A ledger in which a steward has opened data and divided: 4 for ada, 2 for bob, 4 for everyone else."""
    with closing(open_ledger(address)) as steward:
        steward.divide(steward.open(DATA, LIMITS, analyst="steward"), {"ada": 4, "bob": 2}, "steward")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(recipe().encode())
        connection.execute(recipe().encode())  # again, as after an upgrade
    for name in ("ada", "bob", "eve"):
        if not server.run(f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'"):
            server.run(f"CREATE ROLE {name} LOGIN")
        server.run(f"GRANT afresh_analysts TO {name}")
    return address


@pytest.fixture
def ada(guarded: str) -> Iterator[Ledger]:
    with closing(open_ledger(at(guarded, "ada"))) as ledger:
        yield ledger


def terms(ledger: Ledger) -> Terms:
    found = ledger.find(DATA)
    assert found is not None
    return found


def ask(ledger: Ledger, name: str, analyst: str) -> Entry:
    return ledger.reserve(terms(ledger), [question(name)], analyst)[0]


def answered(ledger: Ledger, name: str, analyst: str) -> Entry:
    return ledger.record(terms(ledger), ask(ledger, name, analyst), result(0.5))


class TestAsking:
    def test_works_as_for_everybody_else(self, ada: Ledger, guarded: str) -> None:
        entries = ada.reserve(terms(ada), [question("a"), question("b")], "ada")
        outcomes = [(entries[0], result({"mean": 0.25, "sd": 1e-3})), (entries[1], result(0.5))]
        ada.record_many(terms(ada), outcomes, lambda stored: [STATEMENT], "ada")
        assert ada.state(terms(ada), [STATEMENT], "ada") == [STATEMENT]
        with closing(open_ledger(at(guarded, "bob"))) as bob:
            repeated = ask(bob, "a", "bob")
            assert not repeated.new
            assert released(repeated) == {"mean": 0.25, "sd": 1e-3}
            assert released(answered(bob, "c", "bob")) == 0.5
            assert [entry.analyst for entry in bob.entries(terms(bob))] == ["ada", "ada", "bob"]

    @pytest.mark.parametrize("method", PLANNERS)
    def test_a_guard_answers_with_whatever_value(self, server: Server, guarded: str, method: str) -> None:
        rows = pl.DataFrame({"a": np.random.default_rng(1).random(5000)})
        with afresh.open(rows, questions=20, ledger=guarded, analyst="steward", method=method) as steward:
            steward.divide({"ada": 10})
        with afresh.open(rows, ledger=at(guarded, "ada"), analyst="ada") as guard:
            answers = guard.ask_many(["a < 0.3", {"expression": "a", "bounds": (0, 1), "where": "a > 0.5"}])
            assert [answer.charged for answer in answers] == [1, 1 if method in ("rounds", "checked") else 2]

    def test_noise_may_be_finer_than_the_plan_s(self, guarded: str) -> None:
        """As that of a hint, and that of a comparison of models with public features."""
        rows = pl.DataFrame({"a": np.random.default_rng(1).random(5000)})
        with afresh.open(rows, questions=20, ledger=guarded, analyst="steward", method="settled"):
            pass
        with afresh.open(rows, ledger=at(guarded, "ada"), analyst="ada") as guard:
            assert [guard.ask("a < 0.01", about=0.01).charged, guard.ask("a < 0.3").charged] == [1, 1]
            assert [entry.coarseness < 1 for entry in guard.desk.ledger.entries(guard.desk.terms)] == [True, False]
        features, labels = np.arange(5000.0)[:, None], np.arange(5000) % 3 % 2
        more: dict[str, Any] = {"questions": 20, "classes": [0, 1], "disagreement": 0.1}
        with afresh.holdout(features, labels, ledger=guarded, analyst="steward", **more):
            pass
        with afresh.holdout(features, labels, classes=[0, 1], ledger=at(guarded, "ada"), analyst="ada") as holdout:
            assert holdout.compare(labels * 0, (features[:, 0] < 500) * 1).charged == 1

    def test_the_exam_is_the_steward_s(self, guarded: str) -> None:
        """With a share or without one, asked as a guard does, by hand, before it is taken and after."""
        rows = pl.DataFrame({"a": np.random.default_rng(2).random(4000)})
        opening: dict[str, Any] = {"questions": 10, "open": 0.5, "exam": 0.2}
        with afresh.open(rows, ledger=guarded, analyst="steward", **opening) as steward:
            steward.divide({"ada": 4})
            for taken in (False, True):
                for name in ("ada", "eve"):
                    with afresh.open(rows, ledger=at(guarded, name), analyst=name) as guard:
                        with pytest.raises(AfreshError, match="the exam"):
                            guard.exam(["a < 0.1"])
                        assert guard.ask(f"a < 0.{3 + 4 * taken + 2 * (name == 'eve')}").charged == 1  # her own goes on
                        kept, found = guard.plan.mechanism.exam_rows, guard.desk.terms
                        by_hand = Question("by hand", "by hand", 0.0)
                        with pytest.raises((AfreshError, psycopg.Error), match="the exam"):
                            guard.desk.ledger.reserve(found, [by_hand], name, exam=True)
                        forged = reserved(analyst=name, number=len(guard.desk.ledger.entries(found)) + 1, span=kept)
                        with pytest.raises(psycopg.Error, match=r"the exam is taken once|the next fresh rows"):
                            append(guard.desk.ledger, found, at(guarded, name), encode(forged))
                if not taken:
                    (answer,) = steward.exam(["a < 0.5"])
                    assert answer.charged == 0
            assert steward.exam(["a < 0.5"])[0].interval == answer.interval
            assert steward.budget.spent == 2  # by eve, who has no share
            with afresh.open(rows, ledger=at(guarded, "ada"), analyst="ada") as guard:
                guard.ask_many(["a < 0.11", "a < 0.12"])
                with pytest.raises(BudgetExhausted, match="share of ada"):
                    guard.ask("a < 0.13")
                spent = reserved(analyst="ada", number=len(guard.desk.ledger.entries(guard.desk.terms)) + 1)
                with pytest.raises(psycopg.Error, match="more than is left"):
                    append(guard.desk.ledger, guard.desk.terms, at(guarded, "ada"), encode(spent))
            with pytest.raises(BudgetExhausted, match="the exam has been taken"):
                steward.exam(["a < 0.2"])
            assert verify(steward.receipt()).passed

    def test_share_is_the_limit(self, ada: Ledger, guarded: str) -> None:
        for i in range(4):
            assert answered(ada, f"{i}", "ada").new is False
        with pytest.raises(BudgetExhausted, match="share of ada"):
            ask(ada, "more", "ada")
        with closing(open_ledger(at(guarded, "eve"))) as eve:
            for i in range(4):
                ask(eve, f"eve {i}", "eve")
            with pytest.raises(BudgetExhausted):
                ask(eve, "more", "eve")

    @pytest.mark.parametrize(
        "use",
        [
            lambda ledger: ledger.divide(terms(ledger), {"ada": 8}, "ada"),
            lambda ledger: ledger.charge(terms(ledger), Outside("a mean", {"kl": 1.0}, 1.0), "ada"),
            lambda ledger: ledger.open(plain("other rows", 10), LIMITS, analyst="ada"),
        ],
    )
    def test_the_steward_s_part_is_refused(self, ada: Ledger, use: Callable[[Ledger], object]) -> None:
        with pytest.raises(LedgerError, match=r"(for the role that owns the ledger|may not write it).*Nothing was"):
            use(ada)
        assert ask(ada, "a", "ada").number == 1

    def test_names_are_those_of_roles(self, ada: Ledger) -> None:
        with pytest.raises(LedgerError, match="the name of the role that is logged in"):
            ask(ada, "a", "bob")

    def test_what_another_paid_for_is_not_completed(self, ada: Ledger, guarded: str) -> None:
        with closing(open_ledger(at(guarded, "bob"))) as bob:
            entry = ask(bob, "a", "bob")
        with pytest.raises(LedgerError, match="another analyst, who must complete it"):
            ada.record(terms(ada), entry, result(0.5))

    def test_data_the_ledger_does_not_know_are_not(self, ada: Ledger) -> None:
        assert ada.find(plain("other rows", 10)) is None


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO afresh_records SELECT guard, place + 9, record, hash FROM afresh_records",
        "UPDATE afresh_guards SET length = length + 1",
        "UPDATE afresh_layout SET version = 9",
        "DELETE FROM afresh_records",
        "TRUNCATE afresh_records",
        "DROP TRIGGER afresh_records_stay ON afresh_records",
        "DROP TABLE afresh_records",
        "SELECT 1 FROM afresh_guards FOR UPDATE",
        "SELECT afresh_check(1, '{}')",
        "CREATE OR REPLACE FUNCTION afresh_check(wanted bigint, record text) RETURNS void LANGUAGE sql AS 'SELECT'",
        "ALTER FUNCTION afresh_append SET search_path = pg_temp",
    ],
)
def test_tables_and_functions_are_out_of_reach(guarded: str, statement: str) -> None:
    refused = pytest.raises(psycopg.errors.InsufficientPrivilege)
    with psycopg.connect(at(guarded, "ada"), autocommit=True) as connection, refused:
        connection.execute(statement.encode())


NOW = datetime(2000, 1, 1, tzinfo=UTC)  # stands for the time at which a record is appended


def stamped(text: str) -> str:
    return text.replace(NOW.isoformat(), datetime.now(UTC).isoformat())


def reserved(**changes: Any) -> Reserved:
    usual: dict[str, Any] = {
        "at": NOW,
        "analyst": "ada",
        "number": 3,
        "digest": "new",
        "text": "new",
        "bounds": (0.0, 1.0),
        "levels": None,
        "own": True,
        "coarseness": 1.0,
        "charge": 1.0,
        "row_charge": 0.0,
        "guess": None,
        "span": None,
        "again": None,
        "vector": None,
    }
    return Reserved(**{**usual, **changes})


def coordinate(**changes: Any) -> Reserved:
    """The second of a vector whose first is `reserved(vector=("shares", 2, 1, 0))`."""
    usual = {"number": 4, "digest": "next", "charge": 0.0, "vector": ("shares", 2, 1, 1)}
    return reserved(**{**usual, **changes})


def answer(**changes: Any) -> Answered:
    return Answered(**{"at": NOW, "number": 1, "released": 0.5, "value": 0.5, "low": 0.25, "high": 0.75, **changes})


def stated(**changes: Any) -> Stated:
    usual: dict[str, Any] = {
        "at": NOW,
        "analyst": "ada",
        "text": "t",
        "rule": "r",
        "parameters": {},
        "parts": (1,),
        "bounds": (0.0, 1.0),
        "value": 0.5,
        "low": 0.25,
        "high": 0.75,
    }
    return Stated(**{**usual, **changes})


def other_kind(kind: str, **body: Any) -> str:
    return json.dumps({"kind": kind, "version": VERSION, "at": NOW.isoformat(), "analyst": "ada", **body})


def append(ledger: Ledger, found: Terms, address: str, *records: str) -> None:
    """Continue a chain by hand, with the right hashes, as the role that the address names."""
    chain = ledger.chain(found)
    head, texts, hashes = chain[-1].hash, list[str](), list[str]()
    for record in map(stamped, records):
        texts.append(record)
        head = seal(head, record)
        hashes.append(head)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT afresh_append(%s::bigint, %s::bigint, %s::text[], %s::text[])",
            (found.guard, len(chain), texts, hashes),
        )


class TestMadeUpRecords:
    """Question 1 is ada's and 2 is bob's, both open; the chain is continued by hand, with the right hashes."""

    @pytest.fixture
    def started(self, ada: Ledger, guarded: str) -> Ledger:
        ask(ada, "a", "ada")
        with closing(open_ledger(at(guarded, "bob"))) as bob:
            ask(bob, "b", "bob")
        return ada

    def append(self, ledger: Ledger, address: str, *records: str) -> None:
        append(ledger, terms(ledger), at(address, "ada"), *records)

    @pytest.mark.parametrize("record", [reserved(), answer(), answer(released={"a": 1.0})])
    def test_right_ones_get_in(self, started: Ledger, guarded: str, record: Record) -> None:
        self.append(started, guarded, encode(record))
        started.chain(terms(started))  # verifies

    @pytest.mark.parametrize(
        "records",
        [
            [encode(record)]
            for record in (
                reserved(analyst="bob"),
                reserved(analyst=""),
                reserved(number=4),
                reserved(number=3.0),
                reserved(number="3"),
                reserved(at=datetime(2020, 1, 1, tzinfo=UTC)),
                reserved(at=datetime(9000, 1, 1, tzinfo=UTC)),
                reserved(at=NOW.replace(tzinfo=None)),
                reserved(digest="a"),
                reserved(digest=""),
                reserved(digest=7),
                reserved(text=None),
                reserved(text="\ud800"),
                reserved(bounds=(1.0, 0.0)),
                reserved(bounds=(0.0,)),
                reserved(bounds="01"),
                reserved(bounds=(1.0, 1.0)),
                reserved(levels=4),
                reserved(coarseness=0.0),
                reserved(charge=-1.0),
                reserved(charge=100.0),
                reserved(charge=True),
                reserved(charge=3.5),  # more than the share
                reserved(row_charge=6.0),
                reserved(guess=7),
                answer(number=2),
                answer(number=9),
                answer(number="1"),
                answer(value=0.8),
                answer(low=0.1),  # not on the grid
                answer(high=2.0),
                answer(released="0.5"),
                answer(released={}),
                answer(released={"a": "b"}),
                answer(released={"a": {}}),
                stated(),  # its part is not answered
            )
        ]
        + [
            [encode(answer()), encode(answer())],
            [encode(reserved()), encode(reserved(number=4))],
            [encode(answer()), encode(stated()), encode(stated(value=0.25))],
            [encode(answer()), encode(stated(analyst="bob"))],
            [encode(answer()), encode(stated(parts=()))],
            [encode(answer()), encode(stated(parts=(1, 2)))],
            [encode(answer()), encode(stated(parts=("1",)))],
            [encode(answer()), encode(stated(high=3.0))],
            [encode(answer()), encode(stated(parameters=[]))],
            [encode(reserved()).replace('"charge":1.0', '"charge":1e999')],
            [encode(reserved(vector=("shares", 2, 1, 0)))],
            [encode(reserved(vector=("shares", 2, 1, 1), charge=0.0))],
            [encode(reserved(vector=("shares", 1, 2, 0)))],
            [encode(reserved(vector=("shares", 2, 1, 0))), encode(reserved(number=4, digest="other"))],
            [encode(reserved(vector=("shares", 2, 1, 0))), encode(coordinate(charge=1.0))],
            [encode(reserved(vector=("shares", 2, 1, 0))), encode(coordinate(vector=("shares", 3, 1, 1)))],
            [encode(reserved()).replace('"vector":null', '"vector":["shares",2,true,0]')],
            [encode(reserved()).replace('"charge":1.0', '"charge":NaN')],
            [encode(reserved()).replace('"charge":1.0', '"charge":0,"charge":1.0')],
            [encode(reserved()).replace('"charge":1.0,', "")],
            [encode(reserved()).replace('"charge":1.0', '"charge":1.0,"free":true')],
            [re.sub('"at":"[^"]*"', '"at":null', encode(reserved()))],
            [encode(reserved()).replace(f'"version":{VERSION}', '"version":1')],
            [encode(reserved()).replace(f'"version":{VERSION}', f'"version":{VERSION + 1}')],
            [encode(reserved()).replace('"text":"new"', '"text":"é"')],
            [encode(answer(released={"a": 1.0})).replace('"a":1.0', '"a":1.0,"a":2.0')],
            [other_kind("divided", shares={"ada": 10})],
            [other_kind("charged", text="t", basis={}, answers=1, charge=1.0, row_charge=0.0)],
            [other_kind("planned", plan={}, questions=99, answers=99, information=99.0, row_share=None)],
            ["{}"],
            ["[]"],
            ["null"],
            ["no JSON"],
            [""],
        ],
    )
    def test_wrong_ones_do_not(self, started: Ledger, guarded: str, records: list[str]) -> None:
        before = started.chain(terms(started))
        with pytest.raises(psycopg.Error):
            self.append(started, guarded, *records)
        assert started.chain(terms(started)) == before
        assert ask(started, "next", "ada").number == 3

    @pytest.mark.parametrize("length", [0, 1, 99])
    def test_only_the_end_can_be_continued(self, started: Ledger, guarded: str, length: int) -> None:
        head = started.chain(terms(started))[-1].hash
        (record,) = sealed(head, [reserved(at=datetime.now(UTC))])
        with psycopg.connect(at(guarded, "ada"), autocommit=True) as connection, pytest.raises(psycopg.Error):
            connection.execute(
                "SELECT afresh_append(1::bigint, %s::bigint, %s::text[], %s::text[])",
                (length, [record.text], [record.hash]),
            )

    def test_hashes_must_follow(self, started: Ledger, guarded: str) -> None:
        with psycopg.connect(at(guarded, "ada"), autocommit=True) as connection, pytest.raises(psycopg.Error):
            connection.execute(
                "SELECT afresh_append(1::bigint, 5::bigint, %s::text[], %s::text[])",
                ([stamped(encode(reserved()))], ["0" * 64]),
            )
        started.chain(terms(started))

    def test_temporary_tables_stand_in_for_nothing(self, started: Ledger, guarded: str) -> None:
        (record,) = sealed(started.chain(terms(started))[-1].hash, [reserved(at=datetime.now(UTC), charge=100.0)])
        with psycopg.connect(at(guarded, "ada"), autocommit=True) as connection:
            connection.execute("CREATE TEMP TABLE afresh_records (guard bigint, place bigint, record text, hash text)")
            connection.execute("SET search_path = pg_temp, public")
            schema = guarded.rsplit("%3D", 1)[1]
            with pytest.raises(psycopg.Error, match="more than is left"):
                connection.execute(
                    f"SELECT {schema}.afresh_append(1::bigint, 5::bigint, %s::text[], %s::text[])".encode(),
                    ([record.text], [record.hash]),
                )

    def test_a_clock_slightly_ahead_is_fine(self, started: Ledger, guarded: str) -> None:
        self.append(started, guarded, encode(reserved(at=datetime.now(UTC) + timedelta(minutes=4))))
        started.chain(terms(started))


def test_questions_cost_what_they_cost_beside_shares_and_charges(server: Server, address: str, guarded: str) -> None:
    """Without a share: the rest, less what was revealed outside."""
    with closing(open_ledger(address)) as steward:
        steward.charge(terms(steward), Outside("a mean", {"kl": 3.0}, 3.0, answers=1), "steward")
    with closing(open_ledger(at(guarded, "eve"))) as eve:
        assert ask(eve, "a", "eve").number == 1
        with pytest.raises(BudgetExhausted):
            eve.reserve(terms(eve), [Question("b", "b", 0.5)], "eve")
