"""Rows kept for an exam: it is taken once, never by an analyst with a share, and at no cost."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from afresh.errors import BrokenChain, BudgetExhausted, InvalidArgument
from afresh.ledger import Ledger, Limits, Question, Terms
from afresh.ledger.account import Account
from afresh.ledger.base import ENDS
from afresh.ledger.conformance.storage import Connect, StorageTests, names, opened, question, result
from afresh.ledger.known import plain
from afresh.ledger.reserving import Wish

KEPT = (80, 100)


def with_exam(ledger: Ledger) -> Terms:
    """Open a hundred rows, the last twenty of them kept for an exam."""
    limits = Limits({"method": "a plan", "exam": 20}, 3, 3, 10.0, None, None, ENDS)
    return ledger.open(plain("data", 100), limits)


def final(*wanted: str) -> list[Question]:
    """Make questions as an exam asks them, at no cost."""
    return [replace(question(name), charge=0.0, row_charge=0.0) for name in wanted]


class ExamTests(StorageTests):
    """What every storage must do with an exam."""

    def test_it_is_taken_once_from_its_own_rows_and_costs_nothing(self, connect: Connect) -> None:
        ledger = connect()
        terms = with_exam(ledger)
        ledger.reserve(terms, [question("a")], "ada")
        before = ledger.spent(terms)
        entries = ledger.reserve(terms, final("x", "y"), "ada", exam=True)
        assert [entry.span for entry in entries] == [KEPT, KEPT]
        assert connect().examined(terms) == 2
        assert connect().spent(terms).answers == before.answers
        assert connect().spent(terms).information == before.information
        ledger.record_many(terms, [(entry, result(0.5)) for entry in entries])
        (again,) = connect().reserve(terms, final("y"), "bob", exam=True)  # a repeat is free, for everyone
        assert (again.number, again.new, again.outcome is None) == (3, False, False)
        chain = ledger.chain(terms)
        for others in (("z",), ("x", "z")):
            with pytest.raises(BudgetExhausted, match="the exam has been taken, with 2 questions"):
                connect().reserve(terms, final(*others), "ada", exam=True)
        assert connect().chain(terms) == chain
        ledger.reserve(terms, [question("b"), question("c")], "ada")  # all of the budget is still there
        with pytest.raises(BudgetExhausted):
            connect().reserve(terms, [question("d")], "ada")
        assert connect().examined(terms) == 2

    def test_whoever_crashed_in_it_completes_it_and_nobody_else_gets_another(self, connect: Connect) -> None:
        ledger = connect()
        terms = with_exam(ledger)
        ledger.reserve(terms, final("x", "y"), "ada", exam=True)
        with pytest.raises(BudgetExhausted, match="the exam has been taken"):
            connect().reserve(terms, final("z"), "bob", exam=True)
        entries = connect().reserve(terms, final("x", "y"), "ada", exam=True)
        connect().record_many(terms, [(entry, result(0.25)) for entry in entries])
        assert [entry.outcome is not None for entry in connect().entries(terms)] == [True, True]

    def test_two_who_take_it_at_once_get_one(self, connect: Connect) -> None:
        ledger, other = connect(), connect()
        terms = with_exam(ledger)
        other.reserve(terms, final("x"), "bob", exam=True)
        wish = Wish(final("y"), "ada", exam=True)
        ledger.reserve_each(terms, [wish])
        assert isinstance(wish.found, BudgetExhausted)
        assert names(ledger.entries(terms)) == [(1, "x")]

    def test_it_is_not_for_a_share_nor_without_rows(self, connect: Connect) -> None:
        ledger = connect()
        terms = with_exam(ledger)
        ledger.divide(terms, {"ada": 2})
        with pytest.raises(InvalidArgument, match="ada has only a share"):
            ledger.reserve(terms, final("x"), "ada", exam=True)
        assert connect().reserve(terms, final("x"), "steward", exam=True)[0].span == KEPT
        without = opened(ledger, "other data")
        with pytest.raises(InvalidArgument, match="keeps no rows for an exam"):
            ledger.reserve(without, final("x"), "steward", exam=True)
        assert connect().examined(without) == 0

    @pytest.mark.parametrize(
        "lie",
        [{"charge": 0.5}, {"span": [79, 100]}, {"span": [0, 20]}, {"analyst": "ada"}, {"row_charge": 0.1}],
    )
    def test_a_forged_exam_is_not_read(self, connect: Connect, lie: dict[str, Any]) -> None:
        """Forgeries by someone who holds the records: a second exam, one that was charged, or one on other rows."""
        ledger = connect()
        terms = with_exam(ledger)
        ledger.divide(terms, {"ada": 2})
        (entry,) = ledger.reserve(terms, final("x"), "steward", exam=True)
        ledger.record(terms, entry, result(0.5))
        records = [sealed.text for sealed in ledger.chain(terms)]
        Account().read((text, None) for text in records)
        place = next(i for i, text in enumerate(records) if json.loads(text)["kind"] == "reserved")
        edited = json.dumps({**json.loads(records[place]), **lie}, sort_keys=True, separators=(",", ":"))
        with pytest.raises(BrokenChain):
            Account().read((text, None) for text in [*records[:place], edited, *records[place + 1 :]])
        second = json.dumps(
            {**json.loads(records[place]), "number": 2, "digest": "another"}, sort_keys=True, separators=(",", ":")
        )
        with pytest.raises(BrokenChain):
            Account().read((text, None) for text in [*records, second])
