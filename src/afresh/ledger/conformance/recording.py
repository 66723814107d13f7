"""What is released: recorded once, kept bit by bit."""

from __future__ import annotations

import math
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import InvalidArgument, LedgerError
from afresh.ledger import Ledger
from afresh.ledger.conformance.storage import Connect, StorageTests, names, on_one_storage, opened, question


class RecordingTests(StorageTests):
    def test_first_writer_wins(self, connect: Connect) -> None:
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

    @on_one_storage
    @given(value=st.floats(allow_nan=False, allow_infinity=False), charge=st.floats(0, 1e300))
    def test_floats_come_back_as_they_were(self, connect: Connect, value: float, charge: float) -> None:
        ledger = connect()
        terms = opened(ledger, uuid.uuid4().hex, information=1e300)
        (entry,) = ledger.reserve(terms, [question("a", charge)])
        ledger.record(terms, entry, value)
        (stored,) = ledger.entries(terms)
        assert (stored.released, stored.charge) == (value, charge)
        assert isinstance(stored.released, float)
        assert math.copysign(1, stored.released) == math.copysign(1, value)
        ledger.close()

    def test_named_numbers_can_be_released(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        stored = ledger.record(terms, entry, {"bin": 3, "guess": 1 / 3})
        assert stored.released == {"bin": 3.0, "guess": 1 / 3}
        assert connect().entries(terms) == [stored]

    def test_many_keep_the_order_and_what_was_there(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        a, b, c = ledger.reserve(terms, [question(name) for name in "abc"])
        ledger.record(terms, b, 0.5)
        stored = ledger.record_many(terms, [(c, 3.0), (b, 2.0), (a, 1.0), (a, 9.0)])
        assert [entry.released for entry in stored] == [3.0, 0.5, 1.0, 1.0]
        assert [entry.released for entry in ledger.entries(terms)] == [1.0, 0.5, 3.0]

    def test_many_are_stored_all_or_none(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        unknown = (replace(entry, digest="never reserved"), replace(entry, number=2), replace(entry, coarseness=2.0))
        for each in (*unknown, replace(entry, number=0), replace(entry, number=-1)):
            with pytest.raises(LedgerError, match="not reserved"):
                ledger.record_many(terms, [(entry, 0.1), (each, 0.2)])
        with pytest.raises(InvalidArgument):
            ledger.record_many(terms, [(entry, 0.1), (entry, math.nan)])
        assert ledger.entries(terms) == [entry]

    @pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, {"value": 1.0, "other": math.nan}])
    def test_what_is_no_number_is_refused(self, ledger: Ledger, value: float) -> None:
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        with pytest.raises(InvalidArgument, match="not finite"):
            ledger.record(terms, entry, value)
        assert ledger.entries(terms) == [entry]

    def test_large_batch(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=1500, information=1500.0)
        asked = [question(str(i)) for i in range(1500)]
        reserved = ledger.reserve(terms, asked)
        assert names(reserved) == [(i + 1, str(i)) for i in range(1500)]
        answered = ledger.record_many(terms, [(entry, entry.number / 7) for entry in reserved])
        assert [entry.released for entry in answered] == [i / 7 for i in range(1, 1501)]
        assert ledger.reserve(terms, asked) == answered
        assert ledger.entries(terms) == answered
