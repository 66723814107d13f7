"""Several callers in one transaction: each gets what it would get alone, one after the other."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import BudgetExhausted
from afresh.ledger import Entry, Statement
from afresh.ledger import account as accounts
from afresh.ledger.conformance.storage import Connect, StorageTests, names, on_one_storage, opened, question, result
from afresh.ledger.records import decode
from afresh.ledger.reserving import Entries, Wish

WISHES = st.lists(
    st.tuples(
        st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([1.0, 2.0])), min_size=1, max_size=3),
        st.sampled_from(["ada", "bob", "cy"]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=6,
)


def made_of(wishes: Sequence[tuple[Sequence[tuple[str, float]], str, int]]) -> list[Wish]:
    return [
        Wish([question(name, 1.0, coarseness=coarseness) for name, coarseness in asked], analyst, later)
        for asked, analyst, later in wishes
    ]


def told(wish: Wish) -> object:
    """Return what a caller sees of a wish."""
    if isinstance(wish.found, BudgetExhausted):
        return str(wish.found), wish.found.asked, wish.found.spent, wish.found.questions
    assert wish.found is not None
    return [(entry.number, entry.digest, entry.analyst, entry.coarseness, entry.new) for entry in wish.found]


class GroupTests(StorageTests):
    @on_one_storage
    @given(wishes=WISHES)
    def test_together_is_as_one_after_the_other(
        self, connect: Connect, wishes: list[tuple[list[tuple[str, float]], str, int]]
    ) -> None:
        ledger = connect()
        found = []
        for together in (True, False):
            terms = opened(ledger, uuid.uuid4().hex, questions=6)
            ledger.divide(terms, {"ada": 3})
            asked = made_of(wishes)
            for some in [asked] if together else [[wish] for wish in asked]:
                ledger.reserve_each(terms, some)
            entries = [(each.number, each.digest, each.analyst, each.coarseness) for each in ledger.entries(terms)]
            found.append(([told(wish) for wish in asked], entries, ledger.spent(terms), ledger.spent(terms, "ada")))
        assert found[0] == found[1]
        ledger.close()

    def test_each_is_told_what_it_has_spent(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger, questions=6)
        ledger.divide(terms, {"ada": 3, "bob": 1})
        callers = ["ada", "bob", "cy", "dee", ""]
        before = {name: ledger.spent(terms, name) for name in callers}
        wishes = [Wish([question(f"of {name}")], name) for name in callers[:4]]
        ledger.reserve_each(terms, wishes)
        paid = [entry for wish in wishes if isinstance(wish.found, list) for entry in wish.found]
        assert [wish.found.spent for wish in wishes if isinstance(wish.found, Entries)] == [
            before[wish.analyst] for wish in wishes
        ]
        outcomes = [(entry, result(0.5)) for entry in paid]
        found = ledger.record_each(terms, outcomes, [(None, name) for name in callers])
        assert [each.spent for each in found] == [ledger.spent(terms, name) for name in callers]

    def test_a_draft_that_was_durable_is_the_one_who_paid_s(self, connect: Connect) -> None:
        """A caller interrupted while a transaction ends cannot know whether it was durable: serving again finds out."""
        ledger, other = connect(), connect()
        terms = opened(ledger)
        mine, theirs = Wish([question("a")], "ada"), Wish([question("b")], "ada")
        ledger.reserve_each(terms, [mine])
        draft = Wish([question("a"), question("b")], "ada", found=mine.found)
        other.reserve_each(terms, [theirs])
        ledger.reserve_each(terms, [draft])
        assert isinstance(draft.found, list)
        assert [entry.new for entry in draft.found] == [True, False]
        assert names(ledger.entries(terms)) == [(1, "a"), (2, "b")]

    def test_what_each_derives_is_stated_in_its_name(self, connect: Connect) -> None:
        ledger = connect()
        terms = opened(ledger)
        entries = ledger.reserve(terms, [question("a"), question("b")])

        def stating(text: str, *parts: int) -> list[Statement]:
            return [Statement(text, "a rule", {}, parts, (0.0, 1.0), 0.5, 0.25, 0.75)]

        def both(stored: Mapping[int, Entry]) -> list[Statement]:
            assert all(entry.outcome is not None for entry in stored.values())
            return stating("both", 1, 2)

        callers = [(both, "ada"), (None, "bob"), (lambda _: stating("one", 1) + stating("both", 1, 2), "cy")]
        found = ledger.record_each(terms, [(entry, result(0.5)) for entry in entries], callers)
        assert [[each.text for each in one.statements] for one in found] == [["both"], [], ["one", "both"]]
        assert [(each.text, each.analyst) for each in ledger.stated(terms)] == [("both", "ada"), ("one", "cy")]
        assert all(list(one) == ledger.entries(terms) for one in found)

    def test_a_record_is_verified_once_by_everybody(self, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
        """What others wrote is read once and never again, however often the ledger is used."""
        seen: list[str] = []

        def watching(text: str) -> object:
            seen.append(text)
            return decode(text)

        ledgers = [connect() for _ in range(3)]
        terms = opened(ledgers[0])
        for ledger in ledgers:
            ledger.spent(terms)
        monkeypatch.setattr(accounts, "decode", watching)
        for i in range(9):
            asking = ledgers[i % 3]
            (entry,) = asking.reserve(terms, [question(f"{i}")])
            asking.record(terms, entry, result(0.5))
            asking.spent(terms)
        for ledger in ledgers:
            ledger.spent(terms)
        assert len(seen) == len(ledgers) * 18
        assert len(set(seen)) == 18
