"""Paying for questions: repeats, caps, refusals, many threads."""

from __future__ import annotations

import math
import sys
import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.ledger import Entry, Ledger
from afresh.ledger.conformance.storage import (
    Connect,
    StorageTests,
    known,
    names,
    on_one_storage,
    opened,
    question,
    released,
    result,
)


class PayingTests(StorageTests):
    def test_numbers_follow_the_order_of_asking(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        assert names(ledger.reserve(terms, [question("a")])) == [(1, "a")]
        assert names(ledger.reserve(terms, [question("b"), question("c")])) == [(2, "b"), (3, "c")]

    def test_an_entry_has_all_of_the_question(self, ledger: Ledger) -> None:
        before = datetime.now(UTC)
        (entry,) = ledger.reserve(opened(ledger), [question("é \0'\n€", 0.1, coarseness=2.0)], "Ada")
        stored = Entry(
            1,
            "digest of é \0'\n€",
            "é \0'\n€",
            0.1,
            entry.reserved_at,
            coarseness=2.0,
            analyst="Ada",
        )
        assert entry == stored
        assert ledger.entries(opened(ledger)) == [stored]
        assert before <= entry.reserved_at <= datetime.now(UTC)

    def test_repeats_are_free(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=2)
        a, b, a_again = ledger.reserve(terms, [question("a"), question("b"), question("a")])
        assert a == a_again
        assert ledger.reserve(terms, [question("b"), question("a"), question("b")]) == [b, a, b]
        assert ledger.entries(terms) == [a, b]

    def test_tells_who_paid_and_what_is_spent(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        assert (ledger.spent(terms).answers, ledger.spent(terms).information) == (0, 0.0)
        assert [entry.new for entry in ledger.reserve(terms, [question("a", 0.25)])] == [True]
        again = ledger.reserve(terms, [question("b", 0.5), question("a", 0.25)])
        assert [entry.new for entry in again] == [True, False]
        spent = ledger.spent(terms)
        assert (spent.answers, spent.information, spent.outside) == (2, 0.75, 0.0)
        assert (spent.cap_answers, spent.cap_information) == (10, 1e3)

    def test_first_of_two_charges_for_one_question_counts(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        first, second = ledger.reserve(terms, [question("a", 1.0), question("a", 2.0)])
        assert first == second
        assert ledger.reserve(terms, [question("a", 3.0)])[0].charge == first.charge == 1.0

    def test_a_finer_answer_serves_coarser_questions(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        (coarse,) = ledger.reserve(terms, [question("a", 0.25, coarseness=2.0)])
        assert ledger.reserve(terms, [question("a", 0.1, coarseness=3.0)]) == [coarse]
        (fine,) = ledger.reserve(terms, [question("a", 1.0)])  # finer: a charged answer of its own
        assert (fine.number, fine.new) == (2, True)
        assert ledger.reserve(terms, [question("a", 0.25, coarseness=2.0)]) == [fine]
        answered = ledger.record(terms, fine, result(0.5))
        assert ledger.reserve(terms, [question("a", 0.04, coarseness=5.0), question("a")]) == [answered, answered]
        assert ledger.record(terms, coarse, result(0.25)).number == 1  # the earlier one can still be completed
        assert ledger.spent(terms).information == 1.25

    def test_the_finest_of_equal_questions_pays_for_all(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        asked = [question("a", 0.25, coarseness=2.0), question("b"), question("a", 1.0), question("a", 0.04, 5.0)]
        coarse, _, fine, coarsest = ledger.reserve(terms, asked)
        assert coarse == fine == coarsest
        assert fine.coarseness == 1.0
        assert len(ledger.entries(terms)) == 2

    def test_unfinished_entry_is_completed_not_paid_twice(self, connect: Connect) -> None:
        terms = opened(connect(), questions=1, information=1.0)
        (entry,) = connect().reserve(terms, [question("a")])  # and then a crash
        later = connect()
        assert later.reserve(terms, [question("a")]) == [entry]
        answered = later.record(terms, entry, result(0.25))
        assert connect().reserve(terms, [question("a")]) == [answered]
        assert later.entries(terms) == [answered]

    def test_count_is_capped_exactly_and_refusal_writes_nothing(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=3)
        paid = ledger.reserve(terms, [question("a"), question("b")])
        with pytest.raises(BudgetExhausted) as refusal:
            ledger.reserve(terms, [question("a"), question("c"), question("d")])
        assert (refusal.value.asked, refusal.value.spent, refusal.value.questions) == (2, 2, 3)
        assert ledger.entries(terms) == paid
        assert names(ledger.reserve(terms, [question("c"), question("b")])) == [(3, "c"), (2, "b")]
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, [question("d", 0.0)])
        assert ledger.reserve(terms, [question("a")]) == paid[:1]

    def test_what_must_be_affordable_later_is_refused_now_and_not_paid(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=3)
        with pytest.raises(BudgetExhausted) as refused:
            ledger.reserve(terms, [question("a"), question("b")], later=2)
        assert (refused.value.asked, ledger.spent(terms).answers) == (4, 0)
        ledger.reserve(terms, [question("a"), question("b")], later=1)
        assert ledger.spent(terms).answers == 2
        assert len(ledger.reserve(terms, [question("a")], later=9)) == 1  # nothing new, so nothing follows

    def test_information_is_capped_and_refusal_says_what_is_affordable(self, ledger: Ledger) -> None:
        terms = opened(ledger, information=1.0)
        ledger.reserve(terms, [question("a", 0.5)])
        with pytest.raises(BudgetExhausted) as refusal:
            ledger.reserve(terms, [question(name, 0.2) for name in "bcd"])
        assert (refusal.value.asked, refusal.value.spent, refusal.value.left) == (3, 1, 2)
        assert "0.5 of 1 nats spent, 0.6 asked" in refusal.value.__notes__[0]
        assert ledger.spent(terms).affordable(0.2) == 2
        ledger.reserve(terms, [question(name, 0.2) for name in "bc"])
        with pytest.raises(BudgetExhausted, match="repeats of earlier questions are free"):
            ledger.reserve(terms, [question("d", 0.2)])
        ledger.reserve(terms, [question("d", 0.0)])

    def test_what_one_row_may_matter_is_capped_too(self, ledger: Ledger) -> None:
        terms = opened(ledger, row_share=1.0)
        ledger.reserve(terms, [question("a", 0.1, row_charge=0.5)])
        assert ledger.spent(terms).affordable(0.1, 0.2) == 2
        with pytest.raises(BudgetExhausted) as refusal:
            ledger.reserve(terms, [question(name, 0.1, row_charge=0.2) for name in "bcd"])
        assert refusal.value.left == 2
        ledger.reserve(terms, [question(name, 0.1, row_charge=0.25) for name in "bc"])
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, [question("d", 0.1, row_charge=0.01)])
        ledger.reserve(terms, [question("d", 0.1)])

    @on_one_storage
    @given(k=st.integers(1, 100), information=st.floats(1e-300, 1e300))
    def test_k_charges_of_a_kth_fit_exactly_k_times(self, ledger: Ledger, k: int, information: float) -> None:
        terms = opened(ledger, uuid.uuid4().hex, questions=2 * k, information=information)
        asked = [question(str(i), information / k) for i in range(k + 1)]
        ledger.reserve(terms, asked[: k // 2])
        ledger.reserve(terms, asked[k // 2 : k])
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, asked[k:])

    @on_one_storage
    @given(charges=st.lists(st.floats(0, 1e308), min_size=1, max_size=20), data=st.data())
    def test_fits_if_the_exact_sum_does(self, ledger: Ledger, charges: list[float], data: st.DataObject) -> None:
        try:
            total = math.fsum(charges)
        except OverflowError:
            assume(False)
        information = data.draw(st.floats(0, min(2 * total, sys.float_info.max)))
        assume(abs(total - information) > 1e-8 * information or total <= information)
        terms = opened(ledger, uuid.uuid4().hex, questions=20, information=information)
        asked = [question(str(i), charge) for i, charge in enumerate(charges)]
        if total <= information:
            assert len(ledger.reserve(terms, asked)) == len(charges)
        else:
            with pytest.raises(BudgetExhausted) as refusal:
                ledger.reserve(terms, asked)
            assert 0 <= refusal.value.left < len(charges)

    def test_nothing_asked_nothing_done(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=0)
        assert ledger.reserve(terms, []) == []
        assert ledger.record_many(terms, []) == []
        assert len(ledger.chain(terms)) == 2

    @pytest.mark.parametrize("charge", [math.inf, math.nan, -0.1])
    def test_a_charge_that_is_no_amount_is_refused(self, charge: float) -> None:
        with pytest.raises(InvalidArgument, match="charge =="):
            question("a", charge)

    @pytest.mark.parametrize("coarseness", [math.inf, math.nan, 0.0])
    def test_a_coarseness_below_the_plan_s_is_refused(self, coarseness: float) -> None:
        with pytest.raises(InvalidArgument, match="coarseness =="):
            question("a", coarseness=coarseness)

    def test_text_that_is_none_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(InvalidArgument, match="surrogates"):
            question("\ud800")
        with pytest.raises(InvalidArgument, match="surrogates"):
            ledger.reserve(opened(ledger), [question("a")], analyst="\ud800")
        assert ledger.entries(opened(ledger)) == []

    def test_threads_share_one_budget_and_exactly_one_pays(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger, questions=50)
        together = threading.Barrier(6)

        def work(worker: int) -> tuple[list[str], list[tuple[str, object]]]:
            mine = connect() if worker % 2 else ledger
            paid: list[str] = []
            told: list[tuple[str, object]] = []
            together.wait()
            for i in range(20):
                try:
                    (entry,) = mine.reserve(terms, [question(f"{i}" if i % 2 else f"{worker}.{i}")])
                except BudgetExhausted:
                    continue
                paid += [entry.digest] * entry.new
                told.append((entry.digest, released(mine.record(terms, entry, result(worker + i / 32)))))
            return paid, told

        with ThreadPoolExecutor(6) as pool:
            said = list(pool.map(work, range(6)))
        stored = ledger.entries(terms)
        assert [entry.number for entry in stored] == list(range(1, 51))
        assert Counter(digest for paid, _ in said for digest in paid) == {entry.digest: 1 for entry in stored}
        assert {pair for _, told in said for pair in told} == {(e.digest, released(e)) for e in stored}
        assert known(connect()) == replace(terms, fixed=True)  # verifies the chain
