"""Rows that are opened for batches of questions, and final looks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from afresh.errors import BrokenChain, BudgetExhausted, InvalidArgument
from afresh.ledger import Entry, Ledger, Terms
from afresh.ledger.account import Account
from afresh.ledger.conformance.storage import Connect, StorageTests, known, opened, question, result

ROWS = 100


def digests(*names: str) -> set[str]:
    """Return the digests of the questions with these names."""
    return {question(name).digest for name in names}


def rounds(ledger: Ledger) -> Terms:
    """Make two rounds: questions 1 and 2 about the first 40 rows, 3 about the next 30; the first two are answered.

    Records: 1 opened, 2 planned, 3 and 4 reserved, 5 and 6 answered, 7 reserved.
    """
    terms = opened(ledger, questions=10, information=10.0)
    first = ledger.reserve(terms, [question("a"), question("b")], "ada", batch=40)
    ledger.record_many(terms, [(entry, result(0.5)) for entry in first])
    ledger.reserve(terms, [question("c")], "ada", batch=30)
    return terms


class RoundTests(StorageTests):
    """What every storage must do with rounds."""

    def test_a_batch_has_rows_that_no_other_has(self, connect: Connect) -> None:
        ledger = connect()
        terms = rounds(ledger)
        assert [entry.span for entry in ledger.entries(terms)] == [(0, 40), (0, 40), (40, 70)]
        (again,) = connect().reserve(terms, [question("a")], "bob", batch=40)  # a repeat opens nothing
        assert (again.number, again.span) == (1, (0, 40))
        assert connect().rows_left(terms, "ada") == 30
        mixed = ledger.reserve(terms, [question("a"), question("d")], "bob", batch=10)
        assert [entry.span for entry in mixed] == [(0, 40), (70, 80)]

    def test_rows_that_are_not_there_are_not_opened(self, connect: Connect) -> None:
        ledger = connect()
        terms = rounds(ledger)
        before = ledger.chain(terms)
        with pytest.raises(BudgetExhausted, match=r"takes 31 fresh rows, but 30 are left"):
            ledger.reserve(terms, [question("d")], batch=31)
        with pytest.raises(BudgetExhausted, match=r"takes 32 fresh rows"):  # the later ones need half of them
            ledger.reserve(terms, [question("d")], batch=16, later=1)
        assert ledger.chain(terms) == before

    def test_a_share_is_one_of_the_rows_too(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger, questions=10, information=10.0)
        ledger.divide(terms, {"ada": 3})
        assert [ledger.rows_left(terms, name) for name in ("ada", "bob")] == [30, 70]
        ledger.reserve(terms, [question("a")], "ada", batch=20)
        with pytest.raises(BudgetExhausted, match=r"takes 11 fresh rows, but 10 are left for ada"):
            ledger.reserve(terms, [question("b")], "ada", batch=11)
        ledger.reserve(terms, [question("b")], "bob", batch=70)
        assert [ledger.rows_left(terms, name) for name in ("ada", "bob")] == [10, 0]

    def test_a_final_look_is_free_and_the_end(self, connect: Connect) -> None:
        ledger = connect()
        terms = rounds(ledger)
        spent = ledger.spent(terms)
        looks = ledger.look_again(terms, digests("a", "c", "unknown"), "ada")
        assert [(look.again, look.span, look.charge) for look in looks] == [(1, (0, ROWS), 0.0)]  # c has no answer yet
        ledger.record(terms, looks[0], result(0.25))
        assert connect().spent(terms).answers == spent.answers
        assert connect().rows_left(terms, "ada") == 0
        with pytest.raises(BudgetExhausted, match="closed by a final look"):
            connect().reserve(terms, [question("d")], batch=1)
        assert connect().reserve(terms, [question("a")], batch=40)[0].number == 1
        (late,) = connect().reserve(terms, [question("c")], batch=30)  # paid for before the end, so it is completed
        ledger.record(terms, late, result(0.5))
        found: list[Entry] = connect().look_again(terms, digests("b", "a", "c"))
        assert [(look.again, look.span, look.outcome is None) for look in found] == [
            (1, (0, ROWS), False),
            (2, (0, ROWS), True),
            (3, (40, ROWS), True),
        ]
        assert known(connect()) is not None

    def test_there_is_nothing_to_close_without_rounds(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger)
        ledger.record(terms, ledger.reserve(terms, [question("a")])[0], result(0.5))
        with pytest.raises(InvalidArgument, match="no open rounds"):
            ledger.look_again(terms, digests("a"))

    @pytest.mark.parametrize("change", list(range(12)))
    def test_rows_opened_against_the_rules_are_found(self, connect: Connect, change: int) -> None:
        ledger = connect()
        terms = rounds(ledger)
        ledger.look_again(terms, digests("a", "b"))  # 8 closed, 9 and 10 reserved
        texts = [record.text for record in ledger.chain(terms)]
        forged = _FORGERIES[change](texts)
        assert forged != texts
        _fold(texts)
        with pytest.raises(BrokenChain):
            _fold(forged)


def _fold(texts: list[str]) -> None:
    account = Account()
    for text in texts:
        account.read([(text, None)])


def _with(place: int, **changes: Any) -> Callable[[list[str]], list[str]]:
    def edit(texts: list[str]) -> list[str]:
        body = json.loads(texts[place - 1]) | changes
        changed = json.dumps(body, sort_keys=True, separators=(",", ":"))
        return [*texts[: place - 1], changed, *texts[place:]]

    return edit


def _without(place: int) -> Callable[[list[str]], list[str]]:
    return lambda texts: [*texts[: place - 1], *texts[place:]]


_FORGERIES: list[Callable[[list[str]], list[str]]] = [
    _with(4, span=[40, 80]),  # the second question of a batch gets other rows
    _with(7, span=[0, 40]),  # asked after an answer, about the same rows
    _with(7, span=[39, 70]),
    _with(7, span=[41, 70]),
    _with(7, span=[40, ROWS + 1]),
    _with(7, span=[40, 40]),
    _without(8),  # a final look before the end
    _with(9, span=[10, ROWS]),
    _with(9, again=3),
    _with(9, charge=1.0),
    _with(9, text="another question"),
    _with(10, again=1, digest="x"),
]
