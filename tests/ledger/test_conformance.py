"""What every ledger must do, whatever it is made of. The backends are listed in `conftest.py`."""

from __future__ import annotations

import math
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from afresh.errors import BudgetExhausted, InvalidArgument, LedgerError
from afresh.ledger import Entry, Ledger, Question, Terms

# Each example opens data of its own, so one ledger can serve them all.
shared_ledger = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


def opened(ledger: Ledger, fingerprint: str = "data", questions: int = 10, information: float = 1e3) -> Terms:
    return ledger.open(fingerprint, plan='{"k": 1}', rows=100, questions=questions, information=information)


def question(name: str, charge: float = 1.0) -> Question:
    return Question(f"digest of {name}", name, '{"bounds": [0, 1]}', charge)


def names(entries: list[Entry]) -> list[tuple[int, str]]:
    return [(entry.number, entry.text) for entry in entries]


class TestTerms:
    def test_unknown_data_have_no_terms(self, ledger: Ledger) -> None:
        assert ledger.terms("data") is None

    def test_keep_what_they_were_made_with(self, ledger: Ledger) -> None:
        before = datetime.now(UTC)
        terms = opened(ledger, information=0.1)
        assert (terms.fingerprint, terms.plan, terms.rows, terms.questions) == ("data", '{"k": 1}', 100, 10)
        assert terms.information == 0.1
        assert terms.simulated is False
        assert before <= terms.created_at <= datetime.now(UTC)
        assert terms.created_at.utcoffset() == timedelta(0)
        assert len(bytes.fromhex(terms.seed)) == 32

    def test_first_opening_stands(self, connect: Callable[[], Ledger]) -> None:
        first = opened(connect())
        again = connect()
        assert again.open("data", plan="other", rows=7, questions=99, information=9.0) == first
        assert again.terms("data") == first

    def test_simulated_ones_share_nothing_with_real_ones(self, ledger: Ledger) -> None:
        real = opened(ledger)
        assert ledger.terms("data", simulated=True) is None
        simulated = ledger.open("data", plan="{}", rows=1, questions=1, information=1.0, simulated=True)
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

    @pytest.mark.parametrize("information", [math.inf, math.nan, -1.0])
    def test_refuse_a_cap_that_is_no_amount(self, ledger: Ledger, information: float) -> None:
        with pytest.raises(InvalidArgument, match="information =="):
            opened(ledger, information=information)
        assert ledger.terms("data") is None

    @pytest.mark.parametrize("questions", [-1, 2**63])
    def test_refuse_a_count_that_is_none(self, ledger: Ledger, questions: int) -> None:
        with pytest.raises(InvalidArgument, match="questions =="):
            opened(ledger, questions=questions)

    def test_of_another_ledger_are_refused(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        for foreign in (replace(terms, fingerprint="unknown"), replace(terms, seed="00" * 32)):
            with pytest.raises(LedgerError, match="not opened in this ledger"):
                ledger.reserve(foreign, [question("a")])

    def test_forged_caps_do_not_count(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=1)
        forged = replace(terms, questions=10, information=1e9)
        with pytest.raises(BudgetExhausted):
            ledger.reserve(forged, [question("a"), question("b")])


class TestReserve:
    def test_numbers_follow_the_order_of_asking(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        assert names(ledger.reserve(terms, [question("a")])) == [(1, "a")]
        assert names(ledger.reserve(terms, [question("b"), question("c")])) == [(2, "b"), (3, "c")]

    def test_entry_has_all_of_the_question(self, ledger: Ledger) -> None:
        before = datetime.now(UTC)
        (entry,) = ledger.reserve(opened(ledger), [question("é \0 '", 0.1)])
        stored = Entry(1, "digest of é \0 '", "é \0 '", '{"bounds": [0, 1]}', 0.1, entry.reserved_at, None, None)
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
        assert ledger.spent(terms) == (0, 0.0)
        assert [entry.new for entry in ledger.reserve(terms, [question("a", 0.25)])] == [True]
        assert [entry.new for entry in ledger.reserve(terms, [question("b", 0.5), question("a", 0.25)])] == [
            True,
            False,
        ]
        assert ledger.spent(terms) == (2, 0.75)

    def test_first_of_two_charges_for_one_question_counts(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        first, second = ledger.reserve(terms, [question("a", 1.0), question("a", 2.0)])
        assert first == second
        assert ledger.reserve(terms, [question("a", 3.0)])[0].charge == first.charge == 1.0

    def test_unfinished_entry_is_completed_not_paid_twice(self, connect: Callable[[], Ledger]) -> None:
        terms = opened(connect(), questions=1, information=1.0)
        (entry,) = connect().reserve(terms, [question("a")])  # and then a crash
        later = connect()
        assert later.reserve(terms, [question("a")]) == [entry]
        answered = later.record(terms, entry, 0.25)
        assert connect().reserve(terms, [question("a")]) == [answered] == later.entries(terms)

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

    def test_information_is_capped_and_refusal_says_what_is_affordable(self, ledger: Ledger) -> None:
        terms = opened(ledger, information=1.0)
        ledger.reserve(terms, [question("a", 0.5)])
        with pytest.raises(BudgetExhausted) as refusal:
            ledger.reserve(terms, [question(name, 0.2) for name in "bcd"])
        assert (refusal.value.asked, refusal.value.spent, refusal.value.left) == (3, 1, 2)
        assert "0.5 of 1 nats spent, 0.6 asked" in refusal.value.__notes__[0]
        ledger.reserve(terms, [question(name, 0.2) for name in "bc"])
        with pytest.raises(BudgetExhausted, match="only repeats"):
            ledger.reserve(terms, [question("d", 0.2)])
        ledger.reserve(terms, [question("d", 0.0)])

    @shared_ledger
    @given(k=st.integers(1, 300), information=st.floats(1e-300, 1e300))
    def test_k_charges_of_a_kth_fit_exactly_k_times(self, ledger: Ledger, k: int, information: float) -> None:
        terms = opened(ledger, uuid.uuid4().hex, questions=2 * k, information=information)
        asked = [question(str(i), information / k) for i in range(k + 1)]
        ledger.reserve(terms, asked[: k // 2])
        ledger.reserve(terms, asked[k // 2 : k])
        with pytest.raises(BudgetExhausted):
            ledger.reserve(terms, asked[k:])

    @shared_ledger
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
        assert ledger.reserve(opened(ledger, questions=0), []) == []

    def test_large_batch(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=1500, information=1500.0)
        asked = [question(str(i)) for i in range(1500)]
        reserved = ledger.reserve(terms, asked)
        assert names(reserved) == [(i + 1, str(i)) for i in range(1500)]
        answered = ledger.record_many(terms, [(entry, entry.number / 7) for entry in reserved])
        assert [entry.released for entry in answered] == [i / 7 for i in range(1, 1501)]
        assert ledger.reserve(terms, asked) == answered == ledger.entries(terms)

    @pytest.mark.parametrize("charge", [math.inf, math.nan, -0.1])
    def test_refuses_a_charge_that_is_no_amount(self, charge: float) -> None:
        with pytest.raises(InvalidArgument, match="charge =="):
            question("a", charge)

    def test_refuses_text_that_is_no_text(self) -> None:
        with pytest.raises(InvalidArgument, match="surrogates"):
            question("\ud800")


class TestRecord:
    def test_first_writer_wins(self, connect: Callable[[], Ledger]) -> None:
        ledger, other = connect(), connect()
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        first = ledger.record(terms, entry, 0.1)
        assert first == replace(entry, released=0.1, answered_at=first.answered_at)
        assert first.answered_at is not None
        assert first.answered_at >= first.reserved_at
        assert other.record(terms, entry, 0.2) == first
        assert other.record(terms, first, 0.3) == first
        assert ledger.entries(terms) == [first]

    @shared_ledger
    @given(value=st.floats(allow_nan=False, allow_infinity=False), charge=st.floats(0, 1e300))
    def test_floats_come_back_as_they_were(self, connect: Callable[[], Ledger], value: float, charge: float) -> None:
        ledger = connect()
        terms = opened(ledger, uuid.uuid4().hex, information=1e300)
        (entry,) = ledger.reserve(terms, [question("a", charge)])
        ledger.record(terms, entry, value)
        (stored,) = ledger.entries(terms)
        assert (stored.released, stored.charge) == (value, charge)
        assert isinstance(stored.released, float)
        assert isinstance(stored.charge, float)

    def test_many_keeps_the_order_and_what_was_there(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        a, b, c = ledger.reserve(terms, [question(name) for name in "abc"])
        ledger.record(terms, b, 0.5)
        stored = ledger.record_many(terms, [(c, 3.0), (b, 2.0), (a, 1.0), (a, 9.0)])
        assert [entry.released for entry in stored] == [3.0, 0.5, 1.0, 1.0]
        assert ledger.record_many(terms, []) == []

    def test_many_stores_all_or_none(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        for unknown in (replace(entry, digest="never reserved"), replace(entry, number=2)):
            with pytest.raises(LedgerError, match="not reserved"):
                ledger.record_many(terms, [(entry, 0.1), (unknown, 0.2)])
        with pytest.raises(InvalidArgument):
            ledger.record_many(terms, [(entry, 0.1), (entry, math.nan)])
        assert ledger.entries(terms) == [entry]

    @pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
    def test_refuses_what_is_no_number(self, ledger: Ledger, value: float) -> None:
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        with pytest.raises(InvalidArgument, match="not finite"):
            ledger.record(terms, entry, value)
        assert ledger.entries(terms) == [entry]


class TestSharing:
    def test_threads_share_one_budget(self, connect: Callable[[], Ledger]) -> None:
        ledger = connect()
        terms = opened(ledger, questions=50)

        def work(worker: int) -> list[tuple[str, float | None]]:
            mine = connect() if worker % 2 else ledger
            released = []
            for i in range(20):
                try:
                    (entry,) = mine.reserve(terms, [question(f"{i}" if i % 2 else f"{worker}.{i}")])
                except BudgetExhausted:
                    continue
                released.append((entry.digest, mine.record(terms, entry, worker + i / 32).released))
            return released

        with ThreadPoolExecutor(6) as pool:
            released = [pair for pairs in pool.map(work, range(6)) for pair in pairs]
        stored = ledger.entries(terms)
        assert [entry.number for entry in stored] == list(range(1, 51))
        assert {entry.digest: entry.released for entry in stored} == dict(released)
        assert len(set(released)) == 50

    def test_closed_ledger_says_so(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        ledger.close()
        ledger.close()
        with pytest.raises(LedgerError, match="closed"):
            ledger.entries(terms)
