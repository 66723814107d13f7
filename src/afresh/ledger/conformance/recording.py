"""What is released is recorded once and kept bit for bit."""

from __future__ import annotations

import math
import uuid
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import InvalidArgument, LedgerError
from afresh.ledger import Ledger, Outcome, Statement, outcome
from afresh.ledger.base import ENDS
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


class RecordingTests(StorageTests):
    def test_first_writer_wins(self, connect: Connect) -> None:
        ledger, other = connect(), connect()
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        first = ledger.record(terms, entry, result(0.1))
        assert first == replace(entry, outcome=result(0.1), answered_at=first.answered_at)
        assert first.answered_at is not None
        assert first.answered_at >= first.reserved_at
        assert other.record(terms, entry, result(0.2)) == first
        assert other.record(terms, first, result(0.3)) == first
        assert ledger.entries(terms) == [first]

    @on_one_storage
    @given(value=st.floats(allow_nan=False, allow_infinity=False), charge=st.floats(0, 1e300))
    def test_floats_come_back_as_they_were(self, connect: Connect, value: float, charge: float) -> None:
        ledger = connect()
        terms = opened(ledger, uuid.uuid4().hex, information=1e300)
        (entry,) = ledger.reserve(terms, [question("a", charge)])
        ledger.record(terms, entry, result(value))
        (stored,) = ledger.entries(terms)
        told = released(stored)
        assert (told, stored.charge) == (value, charge)
        assert isinstance(told, float)
        assert math.copysign(1, told) == math.copysign(1, value)
        ledger.close()

    def test_named_numbers_can_be_released(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        stored = ledger.record(terms, entry, result({"bin": 3, "guess": 1 / 3}))
        assert released(stored) == {"bin": 3.0, "guess": 1 / 3}
        assert connect().entries(terms) == [stored]

    def test_many_keep_the_order_and_what_was_there(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        a, b, c = ledger.reserve(terms, [question(name) for name in "abc"])
        ledger.record(terms, b, result(0.5))
        stored = ledger.record_many(terms, [(c, result(3.0)), (b, result(2.0)), (a, result(1.0)), (a, result(9.0))])
        assert [released(entry) for entry in stored] == [3.0, 0.5, 1.0, 1.0]
        assert [released(entry) for entry in ledger.entries(terms)] == [1.0, 0.5, 3.0]

    def test_many_are_stored_all_or_none(self, ledger: Ledger) -> None:
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        unknown = (replace(entry, digest="never reserved"), replace(entry, number=2), replace(entry, coarseness=2.0))
        for each in (*unknown, replace(entry, number=0), replace(entry, number=-1)):
            with pytest.raises(LedgerError, match="not reserved"):
                ledger.record_many(terms, [(entry, result(0.1)), (each, result(0.2))])
        with pytest.raises(InvalidArgument):
            ledger.record_many(terms, [(entry, result(0.1)), (entry, result(math.nan))])
        assert ledger.entries(terms) == [entry]

    @pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, {"value": 1.0, "other": math.nan}])
    def test_what_is_no_number_is_refused(self, ledger: Ledger, value: float) -> None:
        terms = opened(ledger)
        (entry,) = ledger.reserve(terms, [question("a")])
        with pytest.raises(InvalidArgument, match="not finite"):
            ledger.record(terms, entry, result(value))
        assert ledger.entries(terms) == [entry]

    @pytest.mark.parametrize("numbers", [(0.5, 0.6, 0.7), (0.5, 0.1, 1.5)])
    def test_an_interval_that_is_none_is_refused(self, numbers: tuple[float, float, float]) -> None:
        with pytest.raises(InvalidArgument, match="interval"):
            Outcome(0.5, *numbers)

    @on_one_storage
    @given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(0, 60))
    def test_ends_are_rounded_outward(self, x: float, y: float, z: float, exponent: int) -> None:
        low, value, high = sorted((x, y, z))
        made = outcome(0.5, value, low, high, ends=2.0**-exponent)
        assert 0 <= made.low <= low <= high <= made.high <= 1
        assert made.low <= made.value <= made.high
        assert max(low - made.low, made.high - high) <= 2.0**-exponent
        assert made.value == value

    def test_ends_lie_on_the_grid_of_the_plan(self, connect: Connect) -> None:
        """The grid is kept with the plan, whatever new plans have."""
        ledger = connect()
        for name, ends, fits in (("coarse", 2.0**-8, 2.0**-7), ("usual", ENDS, 2.0**-39), ("fine", 2.0**-50, ENDS / 4)):
            terms = opened(ledger, name, ends=ends)
            (entry,) = ledger.reserve(terms, [question(name)])
            for low, high in ((ends / 2, 0.75), (0.25, 1 - ends / 2)):
                with pytest.raises(InvalidArgument, match=f"not on the plan's public grid, whose step is {ends!r}"):
                    ledger.record(terms, entry, Outcome(0.5, 0.5, low, high))
            assert ledger.entries(terms) == [entry]
            stored = ledger.record(terms, entry, Outcome(0.5, 0.5, fits, 0.75))
            again = known(connect(), name)
            assert again is not None
            assert again.limits.ends == ends
            assert connect().entries(again) == [stored]

    def test_what_follows_is_recorded_once_and_kept(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger)
        a, b = ledger.reserve(terms, [question("a"), question("b")])
        first = Statement("a over b", "ratio", {"weight": 1.0}, (1, 2), (0.0, 1.0), 0.5, 0.25, 0.75)
        with pytest.raises(InvalidArgument, match="do not exist"):
            ledger.state(terms, [first])
        ledger.record_many(terms, [(a, result(0.5)), (b, result(0.5))])
        assert ledger.state(terms, [first], "ada") == [first]
        assert ledger.state(terms, []) == []
        assert ledger.state(terms, [replace(first, value=0.3)], "eve") == [first]  # what was reported stays
        other = replace(first, text="b over a", parts=(2, 1))
        assert connect().state(terms, [other, first]) == [other, first]
        assert [(each.text, each.analyst) for each in ledger.stated(terms)] == [("a over b", "ada"), ("b over a", "")]

    def test_what_follows_is_recorded_with_its_parts(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger)
        (a,) = ledger.reserve(terms, [question("a")])
        stated = Statement("twice a", "ratio", {}, (1,), (0.0, 1.0), 0.5, 0.25, 0.75)
        ledger.record_many(terms, [(a, result(0.5))], lambda stored: [stated] if stored[1].outcome else [], "ada")
        assert [each.text for each in connect().stated(terms)] == ["twice a"]
        assert ledger.state(terms, [stated]) == [stated]
        assert len(ledger.chain(terms)) == 5

    def test_large_batch(self, ledger: Ledger) -> None:
        terms = opened(ledger, questions=1500, information=1500.0)
        asked = [question(str(i)) for i in range(1500)]
        reserved = ledger.reserve(terms, asked)
        assert names(reserved) == [(i + 1, str(i)) for i in range(1500)]
        answered = ledger.record_many(terms, [(entry, result(entry.number / 7)) for entry in reserved])
        assert [released(entry) for entry in answered] == [i / 7 for i in range(1, 1501)]
        assert ledger.reserve(terms, asked) == answered
        assert ledger.entries(terms) == answered
