"""What is fixed when data is opened."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from afresh.engines.identity import ColumnDigest, Identity
from afresh.errors import InvalidArgument, LedgerError, PlanMismatch, SameRows
from afresh.ledger import Ledger, Limits, Outside
from afresh.ledger.conformance.storage import Connect, StorageTests, known, names, opened, question


class TermsTests(StorageTests):
    def test_unknown_data_have_no_terms(self, ledger: Ledger) -> None:
        assert known(ledger) is None

    def test_terms_keep_what_they_were_made_with(self, ledger: Ledger) -> None:
        before = datetime.now(UTC)
        terms = opened(ledger, information=0.1, answers=12, row_share=1 / 3, grid=2.0**-17, ends=2.0**-30)
        assert terms.limits == Limits({"method": "a plan"}, 10, 12, 0.1, 1 / 3, 2.0**-17, 2.0**-30)
        assert (terms.rows, terms.simulated, terms.fixed, terms.new_rows) == (100, False, False, None)
        assert before <= terms.opened_at <= datetime.now(UTC)
        assert terms.opened_at.utcoffset() == timedelta(0)
        assert len(bytes.fromhex(terms.seed)) == 32
        assert known(ledger) == terms

    @pytest.mark.parametrize("step", [0.0, -(2.0**-9), 0.3, 2.0**-9 + 2.0**-60, math.inf, math.nan])
    def test_a_grid_is_a_power_of_two(self, step: float) -> None:
        for steps in ({"grid": step}, {"ends": step}):
            with pytest.raises(InvalidArgument, match=f"{next(iter(steps))} == .*, must be a power of two"):
                Limits({"method": "a plan"}, 1, 1, 1.0, **steps)
        with pytest.raises(InvalidArgument, match=r"ends == 2\.0, must be at most 1"):
            Limits({"method": "a plan"}, 1, 1, 1.0, ends=2.0)

    def test_the_plan_can_change_until_something_is_paid_for(self, connect: Connect) -> None:
        first = opened(connect())
        again = opened(connect(), plan="other", questions=99, information=9.0)
        assert (again.limits.questions, again.seed, again.fixed) == (99, first.seed, False)
        ledger = connect()
        ledger.reserve(again, [question("a")])
        stands = opened(connect(), plan="third", questions=5)
        assert stands.limits == again.limits
        assert stands.fixed

    def test_the_first_payment_fixes_the_plan_of_whoever_pays(self, connect: Connect) -> None:
        mine, ledger, other = opened(connect(), questions=3), connect(), connect()
        theirs = opened(other, plan="other", questions=4)
        ledger.reserve(mine, [question("a"), question("b"), question("c")])
        with pytest.raises(PlanMismatch, match="Nothing was charged"):
            other.reserve(theirs, [question("d")])
        with pytest.raises(PlanMismatch):
            other.charge(theirs, Outside("a mean", {}, 1.0))
        with pytest.raises(PlanMismatch):
            other.divide(theirs, {"ada": 1})
        found = known(connect())
        assert found is not None
        assert found.limits == mine.limits
        assert len(other.entries(theirs)) == 3

    @pytest.mark.parametrize("what", ["charge", "divide"])
    def test_a_charge_or_a_division_fixes_the_plan_too(self, connect: Connect, what: str) -> None:
        ledger = connect()
        terms = opened(ledger)
        if what == "charge":
            ledger.charge(terms, Outside("a mean", {}, 1.0))
        else:
            ledger.divide(terms, {"ada": 1})
        assert opened(connect(), plan="other", questions=20).limits == terms.limits

    def test_what_is_published_does_not_tell_the_rows(self, ledger: Ledger) -> None:
        terms = opened(ledger, "a fingerprint")
        assert not any("a fingerprint" in record.text for record in ledger.chain(terms))
        assert ledger.published(terms.data) == [record.text for record in ledger.chain(terms)]
        assert ledger.published("unknown") == []

    def test_most_rows_in_common_are_refused_unless_it_is_said_why(self, connect: Connect) -> None:
        """Of 256 parts, 200 as in the first table: in the second, the others are empty, or have smaller numbers."""
        first, more = "40" * 256, "40" * 200 + "41" * 56
        ledger, limits = connect(), Limits({"method": "a plan"}, 5, 5, 5.0)
        terms = ledger.open(_sketched("a", first), limits)
        for other in (more, "40" * 200 + "00" * 56, "00" * 250 + "40" * 6):
            with pytest.raises(SameRows, match=r"most of its different rows.*new_rows=.*Nothing was charged"):
                connect().open(_sketched("b", other), limits)
            assert connect().find(_sketched("b", other)) is None
        for other in ("", "3f" * 200 + "41" * 56, "00" * 256, "41" * 100 + "40" * 50 + "3f" * 106):
            connect().open(_sketched(f"like {other}", other), limits)
        kept = connect().open(_sketched("b", more), limits, new_rows="drawn in March")
        assert kept.new_rows == "drawn in March"
        assert connect().find(_sketched("a", first)) == terms
        assert not any(first in record.text for record in ledger.chain(terms))

    def test_all_who_open_a_ledger_sketch_by_one_key_and_others_by_another(self, connect: Connect) -> None:
        one, other = connect(), connect()
        opened(one)
        assert one.key == other.key
        assert len(bytes.fromhex(one.key)) == 32
        assert not any(one.key in record.text for record in one.chain(opened(one)))

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
            ({"plan": "\ud800"}, "surrogates"),
            ({"analyst": "\ud800"}, "surrogates"),
        ],
    )
    def test_what_cannot_be_stored_exactly_is_refused(self, ledger: Ledger, wrong: dict[str, Any], words: str) -> None:
        with pytest.raises(InvalidArgument, match=words):
            opened(ledger, **wrong)
        assert known(ledger) is None

    def test_terms_of_another_ledger_are_refused(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        for foreign in (replace(terms, guard=99), replace(terms, seed="00" * 32)):
            with pytest.raises(LedgerError, match="not opened in this ledger"):
                ledger.reserve(foreign, [question("a")])

    def test_forged_caps_do_not_count(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=1)
        ledger.reserve(terms, [question("a")])
        forged = replace(terms, limits=replace(terms.limits, questions=10, answers=10, information=1e9))
        with pytest.raises(PlanMismatch):
            ledger.reserve(forged, [question("b")])
        with pytest.raises(PlanMismatch):
            ledger.divide(forged, {"ada": 5})
        assert len(ledger.entries(forged)) == 1

    def test_closed_ledger_says_so(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        ledger.close()
        ledger.close()
        with pytest.raises(LedgerError, match="closed"):
            ledger.entries(terms)


def _sketched(fingerprint: str, sketch: str) -> Identity:
    return Identity(100, fingerprint, (ColumnDigest("x", None, None),), sketch)
