"""What is fixed when data are opened."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from afresh.errors import BudgetExhausted, InvalidArgument, LedgerError
from afresh.ledger import Ledger
from afresh.ledger.conformance.storage import Connect, StorageTests, names, opened, question


class TermsTests(StorageTests):
    def test_unknown_data_have_no_terms(self, ledger: Ledger) -> None:
        assert ledger.terms("data") is None

    def test_terms_keep_what_they_were_made_with(self, ledger: Ledger) -> None:
        before = datetime.now(UTC)
        terms = opened(ledger, information=0.1, answers=12, row_share=1 / 3)
        assert (terms.fingerprint, terms.plan, terms.rows) == ("data", '{"k": 1}', 100)
        assert (terms.questions, terms.answers, terms.information, terms.row_share) == (10, 12, 0.1, 1 / 3)
        assert terms.simulated is False
        assert before <= terms.created_at <= datetime.now(UTC)
        assert terms.created_at.utcoffset() == timedelta(0)
        assert len(bytes.fromhex(terms.seed)) == 32
        assert ledger.terms("data") == terms

    def test_first_opening_stands(self, connect: Connect) -> None:
        first = opened(connect())
        again = connect()
        assert again.open("data", plan="other", rows=7, questions=99, information=9.0) == first
        assert again.terms("data") == first

    def test_simulated_data_share_nothing_with_real_ones(self, ledger: Ledger) -> None:
        real = opened(ledger)
        assert ledger.terms("data", simulated=True) is None
        simulated = opened(ledger, simulated=True)
        assert simulated.simulated is True
        assert simulated.seed != real.seed
        ledger.reserve(simulated, [question("a")])
        assert ledger.entries(real) == []
        assert ledger.terms("data") == real

    def test_each_data_have_their_own_seed_and_numbers(self, ledger: Ledger) -> None:
        one, two = opened(ledger, "one"), opened(ledger, "two")
        assert one.seed != two.seed
        assert names(ledger.reserve(one, [question("a")])) == [(1, "a")]
        assert names(ledger.reserve(two, [question("a"), question("b")])) == [(1, "a"), (2, "b")]

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ({"information": math.inf}, "information =="),
            ({"information": math.nan}, "information =="),
            ({"information": -1.0}, "information =="),
            ({"row_share": -1.0}, "row_share =="),
            ({"questions": -1}, "questions =="),
            ({"questions": 2**63}, "questions =="),
            ({"answers": 9}, "at least questions == 10"),
            ({"fingerprint": ""}, "a digest of the rows"),
            ({"fingerprint": "\0"}, "a digest of the rows"),
            ({"plan": "\ud800"}, "surrogates"),
            ({"analyst": "\ud800"}, "surrogates"),
        ],
    )
    def test_what_cannot_be_stored_exactly_is_refused(self, ledger: Ledger, wrong: dict[str, Any], words: str) -> None:
        with pytest.raises(InvalidArgument, match=words):
            opened(ledger, **wrong)
        assert ledger.terms("data") is None

    def test_terms_of_another_ledger_are_refused(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        for foreign in (replace(terms, fingerprint="unknown"), replace(terms, seed="00" * 32)):
            with pytest.raises(LedgerError, match="not opened in this ledger"):
                ledger.reserve(foreign, [question("a")])

    def test_forged_caps_do_not_count(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=1)
        forged = replace(terms, questions=10, answers=10, information=1e9)
        with pytest.raises(BudgetExhausted):
            ledger.reserve(forged, [question("a"), question("b")])
        with pytest.raises(InvalidArgument, match="the whole has 1"):
            ledger.divide(forged, {"ada": 5})

    def test_closed_ledger_says_so(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        ledger.close()
        ledger.close()
        with pytest.raises(LedgerError, match="closed"):
            ledger.entries(terms)
