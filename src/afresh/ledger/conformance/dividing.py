"""Shares of a budget, and charges for what was revealed outside."""

from __future__ import annotations

import math
from typing import Any

import pytest

from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.ledger import Ledger, Outside
from afresh.ledger.conformance.storage import Connect, StorageTests, opened, question


def outside(text: str = "a published mean", charge: float = 1.0, answers: int = 0, row_charge: float = 0.0) -> Outside:
    return Outside(text, {"noise_sd": 0.1, "rows": 100.0}, charge, row_charge, answers)


class DividingTests(StorageTests):
    def test_a_share_is_a_cap_and_the_others_share_the_rest(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger, questions=5, information=5.0)
        ledger.divide(terms, {"ada": 2, "bob": 1}, "steward")
        assert ledger.shares(terms) == connect().shares(terms) == {"ada": 2, "bob": 1}
        ledger.reserve(terms, [question("a"), question("b")], "ada")
        with pytest.raises(BudgetExhausted, match=r"2 of the 2 in the share of ada are spent and 0 are left"):
            ledger.reserve(terms, [question("c")], "ada")
        assert ledger.reserve(terms, [question("a")], "ada")[0].new is False  # repeats are free for everyone
        ledger.reserve(terms, [question("c")], "eve")
        ledger.reserve(terms, [question("d")], "dan")
        with pytest.raises(BudgetExhausted, match="those without a share"):
            ledger.reserve(terms, [question("e")], "eve")
        ledger.reserve(terms, [question("e")], "bob")
        assert ledger.spent(terms).answers == 5
        for analyst, answers in {"ada": 2, "bob": 1, "eve": 2, "nobody": 2}.items():
            spent = ledger.spent(terms, analyst)
            assert (spent.answers, spent.cap_answers, spent.cap_information) == (answers, answers, float(answers))

    def test_a_share_counts_nats_as_well_as_answers(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=4, answers=8, information=4.0)
        ledger.divide(terms, {"ada": 1})
        spent = ledger.spent(terms, "ada")
        assert (spent.cap_answers, spent.cap_information) == (2, 1.0)
        ledger.reserve(terms, [question("a", 0.75)], "ada")
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, [question("b", 0.5)], "ada")
        ledger.reserve(terms, [question("b", 0.25)], "ada")
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, [question("c", 0.0)], "ada")
        ledger.reserve(terms, [question(f"{i}", 0.5) for i in range(6)], "others")

    @pytest.mark.parametrize(
        ("shares", "words"),
        [
            ({"ada": 3, "bob": 3}, "add up to 6 answers, but the whole has 5"),
            ({"ada": 10**30}, "the whole has 5"),
            ({"ada": -1}, "whole number"),
            ({"ada": 1.5}, "whole number"),
            ({"ada": True}, "whole number"),
            ({"ada": "2"}, "whole number"),
            ({"": 1}, "must be a name"),
            ({" ": 1}, "must be a name"),
            ({1: 1}, "must be text"),
            ({"\ud800": 1}, "surrogates"),
        ],
    )
    def test_what_is_no_division_is_refused(self, ledger: Ledger, shares: dict[Any, Any], words: str) -> None:
        terms = opened(ledger, questions=5)
        with pytest.raises(InvalidArgument, match=words):
            ledger.divide(terms, shares)
        assert ledger.shares(terms) == {}
        assert len(ledger.chain(terms)) == 2

    def test_a_later_division_replaces_the_earlier_within_what_was_spent(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=5, information=5.0)
        ledger.divide(terms, {"ada": 3})
        ledger.reserve(terms, [question("a"), question("b")], "ada")
        ledger.reserve(terms, [question("c")], "eve")
        with pytest.raises(InvalidArgument, match="ada would have 1 answers, but more"):
            ledger.divide(terms, {"ada": 1})
        with pytest.raises(InvalidArgument, match="those without a share would have 0"):
            ledger.divide(terms, {"ada": 2, "bob": 3})
        with pytest.raises(InvalidArgument, match="those without a share would have 2"):
            ledger.divide(terms, {"bob": 3})  # what ada spent would count against the others
        ledger.divide(terms, {"ada": 2, "bob": 2})
        ledger.divide(terms, {"ada": 2, "bob": 2})  # again: nothing new
        ledger.divide(terms, {})
        ledger.reserve(terms, [question("d"), question("e")], "ada")
        assert ledger.shares(terms) == {}
        assert len(ledger.chain(terms)) == 2 + 3 + 5

    def test_a_budget_of_nothing_can_be_divided_into_nothing(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=0)
        ledger.divide(terms, {"ada": 0})
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, [question("a", 0.0)], "ada")

    def test_what_was_revealed_outside_is_charged_once(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger, questions=5, information=5.0)
        assert ledger.charge(terms, outside(), "ada") is True
        assert ledger.charge(terms, outside(), "bob") is False
        assert connect().charge(terms, outside(), "ada") is False
        assert ledger.charge(terms, outside(text="another"), "ada") is True
        spent = connect().spent(terms)
        assert (spent.answers, spent.information, spent.outside) == (0, 2.0, 2.0)
        ledger.reserve(terms, [question(name) for name in "abc"])
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, [question("d")])

    def test_what_does_not_fit_is_refused_with_what_that_means(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=5, information=5.0, row_share=1.0)
        for too_much in (outside(charge=5.1), outside(answers=6), outside(row_charge=1.1)):
            with pytest.raises(BudgetExhausted, match=r"more than is left: 5 nats and 5 answers.* do not hold"):
                ledger.charge(terms, too_much)
        assert ledger.spent(terms).information == 0.0
        ledger.charge(terms, outside(charge=5.0, answers=5, row_charge=1.0))
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, [question("a", 0.0)])

    def test_outside_charges_come_from_what_is_not_divided(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=5, information=5.0)
        ledger.divide(terms, {"ada": 3})
        with pytest.raises(BudgetExhausted, match=r"besides the shares: 2 nats and 2 answers"):
            ledger.charge(terms, outside(charge=2.5), "ada")
        ledger.charge(terms, outside(charge=1.5, answers=1), "ada")
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, [question("a")], "eve")
        with pytest.raises(InvalidArgument, match="those without a share"):
            ledger.divide(terms, {"ada": 4})
        assert [ledger.spent(terms, name).outside for name in ("ada", "eve", None)] == [0.0, 1.5, 1.5]
        ledger.reserve(terms, [question(name) for name in "abc"], "ada")  # a share is not touched
        assert ledger.spent(terms).information == 4.5

    @pytest.mark.parametrize(
        "wrong",
        [
            {"text": " "},
            {"text": "\ud800"},
            {"charge": math.nan},
            {"charge": math.inf},
            {"charge": -1.0},
            {"row_charge": -1.0},
            {"answers": -1},
            {"answers": 2**63},
            {"basis": {"kl": math.inf}},
        ],
    )
    def test_what_is_no_charge_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidArgument):
            Outside(**{"text": "a mean", "basis": {}, "charge": 1.0, **wrong})
