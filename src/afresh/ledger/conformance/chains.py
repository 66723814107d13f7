"""The chain verifies after everything, and any change made behind its back is found."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from afresh.errors import BrokenChain, LedgerError
from afresh.ledger import Ledger, Statement, Terms
from afresh.ledger.conformance.dividing import outside
from afresh.ledger.conformance.storage import Connect, Storage, StorageTests, known, opened, question, result
from afresh.ledger.journal import Sealed
from afresh.ledger.records import START, VERSION, decode, encode, seal

Change = Callable[[list[Sealed]], Sequence[Sealed]]


def history(ledger: Ledger) -> Terms:
    """A chain with a record of every kind.

    1 opened, 2 planned, 3 and 4 reserved, 5 answered, 6 stated, 7 divided, 8 charged, 9 reserved.
    """
    terms = opened(ledger, questions=10, information=10.0)
    a, _ = ledger.reserve(terms, [question("a"), question("b")], "ada")
    ledger.record(terms, a, result(0.5))
    ledger.state(terms, [Statement("a", "ratio", {}, (1,), (0.0, 1.0), 0.5, 0.25, 0.75)], "ada")
    ledger.divide(terms, {"ada": 5})
    ledger.charge(terms, outside())
    ledger.reserve(terms, [question("a", 0.25, coarseness=2.0), question("c")], "eve")
    return terms


def resealed(records: Sequence[str]) -> list[Sealed]:
    head, chain = START, []
    for text in records:
        head = seal(head, text)
        chain.append(Sealed(text, head))
    return chain


class ChainTests(StorageTests):
    def test_every_record_follows_from_the_one_before(self, ledger: Ledger) -> None:
        chain = ledger.chain(history(ledger))
        assert chain == resealed([record.text for record in chain])
        kinds = ["opened", "planned", "reserved", "reserved", "answered", "stated", "divided", "charged", "reserved"]
        assert [json.loads(record.text)["kind"] for record in chain] == kinds
        assert all(encode(decode(record.text)) == record.text for record in chain)
        assert all(record.text.isascii() for record in chain)

    def test_a_chain_only_grows(self, connect: Connect) -> None:
        ledger = connect()
        terms = history(ledger)
        before = ledger.chain(terms)
        other = connect()
        entries = other.reserve(terms, [question("d"), question("b")], "ada")
        other.record_many(terms, [(entry, result(0.25)) for entry in entries])
        after = ledger.chain(terms)
        assert after == connect().chain(terms)
        assert after[: len(before)] == before
        assert len(after) == len(before) + 3

    def test_small_steps_back_in_time_are_tolerated_and_not_recorded(self, connect: Connect) -> None:
        start = datetime(2030, 1, 1, tzinfo=UTC)
        times = iter([start, start + timedelta(seconds=9), start - timedelta(minutes=4), start + timedelta(seconds=8)])
        ledger = connect(lambda: next(times))
        terms = opened(ledger)
        (a,) = ledger.reserve(terms, [question("a")])
        (b,) = ledger.reserve(terms, [question("b")])
        answered = ledger.record(terms, a, result(0.5))
        late = start + timedelta(seconds=9)
        assert [a.reserved_at, b.reserved_at, answered.answered_at] == [late] * 3
        assert known(connect()) == replace(terms, fixed=True)

    def test_times_do_not_tell_how_long_an_answer_took(self, connect: Connect) -> None:
        times = (datetime(2030, 1, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in range(99))
        ledger = connect(lambda: next(times))
        terms = opened(ledger)
        entries = ledger.reserve(terms, [question("a"), question("b")])
        answered = ledger.record_many(terms, [(entry, result(0.5)) for entry in entries])
        ledger.state(terms, [Statement("a over b", "ratio", {}, (1, 2), (0.0, 1.0), 0.5, 0.25, 0.75)])
        asked = {entry.reserved_at for entry in entries}
        assert {entry.answered_at for entry in answered} == {each.at for each in ledger.stated(terms)} == asked
        with ledger.reading(terms) as account:
            assert account.entries[1:] == answered[1:]

    def test_a_clock_that_is_far_behind_is_refused(self, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AFRESH_ACCEPT_CLOCK", raising=False)
        now = datetime(2030, 1, 1, tzinfo=UTC)
        terms = opened(connect(lambda: now))
        (entry,) = connect(lambda: now).reserve(terms, [question("a")])
        behind = connect(lambda: now - timedelta(minutes=6))
        steps: list[Callable[[], object]] = [
            lambda: behind.reserve(terms, [question("b")]),
            lambda: behind.record(terms, entry, result(0.5)),
            lambda: behind.charge(terms, outside()),
            lambda: behind.divide(terms, {"ada": 1}),
        ]
        for step in steps:
            with pytest.raises(LedgerError, match=r"clock says 2029-12-31 23:54:00.*2030-01-01.*AFRESH_ACCEPT_CLOCK"):
                step()
        assert behind.entries(terms) == [entry]
        assert behind.reserve(terms, [question("a")]) == [entry]  # writes nothing, so needs no time
        monkeypatch.setenv("AFRESH_ACCEPT_CLOCK", "1")
        assert behind.record(terms, entry, result(0.5)).answered_at == now
        assert known(connect()) == replace(terms, fixed=True)


def _edited(place: int, **changes: Any) -> Callable[[list[Sealed]], list[str]]:
    def edit(chain: list[Sealed]) -> list[str]:
        texts = [record.text for record in chain]
        body = json.loads(texts[place - 1])
        assert all(name in body and body[name] != value for name, value in changes.items())
        texts[place - 1] = json.dumps(body | changes, sort_keys=True, separators=(",", ":"))
        return texts

    return edit


def _naive(place: int, **changes: Any) -> Change:
    """Edit the text alone."""
    edit = _edited(place, **changes)
    return lambda chain: [Sealed(text, old.hash) for text, old in zip(edit(chain), chain, strict=True)]


def _half(place: int, **changes: Any) -> Change:
    """Edit a record and correct its hash, but not those that follow."""
    edit = _edited(place, **changes)
    return lambda chain: [*resealed(edit(chain))[:place], *chain[place:]]


IN_PLACE: dict[str, Change] = {
    "cap raised": _naive(2, information=1e9),
    "charge edited": _naive(3, charge=0.0),
    "answer edited": _naive(5, released=0.75),
    "interval edited": _naive(5, high=0.5),
    "derived number edited": _naive(6, value=0.3),
    "share edited": _naive(7, shares={"ada": 1}),
    "outside charge edited": _naive(8, charge=0.0),
    "who asked edited": _naive(9, analyst="ada"),
    "time edited": _half(4, at="2020-01-01T00:00:00+00:00"),
    "charge edited and sealed": _half(3, charge=0.0),
    "answer edited and sealed": _half(5, released=0.75),
    "last edited and sealed": _half(9, charge=0.0),
    "first dropped": lambda chain: chain[1:],
    "middle dropped": lambda chain: [*chain[:4], *chain[5:]],
    "last dropped": lambda chain: chain[:-1],
    "all dropped": lambda chain: [],
    "two swapped": lambda chain: [*chain[:2], chain[3], chain[2], *chain[4:]],
    "answer moved to the end": lambda chain: [*chain[:4], *chain[5:], chain[4]],
    "one inserted twice": lambda chain: [*chain[:3], chain[2], *chain[3:]],
    "one added": lambda chain: [*chain, Sealed(chain[4].text, seal(chain[-1].hash, chain[4].text))],
    "garbage": lambda chain: [*chain[:4], Sealed("}", chain[4].hash), *chain[5:]],
}
# Every hash is right, down to the head: only the chain's contents are wrong.
AGAINST_THE_RULES: dict[str, Callable[[list[Sealed]], list[str]]] = {
    "more than the budget": _edited(3, charge=9.5),
    "more than a share": _edited(7, shares={"ada": 1}),
    "more shares than the whole": _edited(7, shares={"ada": 11}),
    "more outside than is left": _edited(8, charge=9.5),
    "negative charge": _edited(3, charge=-1.0),
    "charge of no number": _edited(3, charge="1"),
    "answer of no number": _edited(5, released="0.5"),
    "answer that is not finite": _edited(5, released=math.nan),
    "caps of no number": _edited(2, information="10"),
    "no answers for the questions": _edited(2, answers=1),
    "rows of no number": _edited(1, rows="many"),
    "no columns": _edited(1, columns=None),
    "names that are not encrypted": _edited(1, names="age, sick"),
    "other seed": _edited(1, seed_digest="00"),
    "number skipped": _edited(4, number=3),
    "answer to nothing": _edited(5, number=9),
    "paid twice": _edited(4, digest="digest of a"),
    "back in time": _edited(3, at="2020-01-01T00:00:00+00:00"),
    "not in UTC": _edited(3, at="2100-01-01T00:00:00+01:00"),
    "no time": _edited(3, at="then"),
    "answered twice": lambda chain: [record.text for record in (*chain, chain[4])],
    "planned twice": lambda chain: [record.text for record in (*chain, chain[1])],
    "stated twice": lambda chain: [record.text for record in (*chain, chain[5])],
    "stated from nothing": _edited(6, parts=[3]),
    "stated outside of its interval": _edited(6, low=0.7),
    "answer outside of its interval": _edited(5, low=0.7),
    "interval off the grid": _edited(5, low=0.3),
    "never planned": lambda chain: [record.text for record in (chain[0], *chain[2:])],
    "opened twice": lambda chain: [record.text for record in (*chain, chain[0])],
    "never opened": lambda chain: [record.text for record in chain[1:]],
    "field missing": lambda chain: [chain[0].text, chain[1].text, chain[2].text.replace('"charge":1.0,', "")],
    "field too many": lambda chain: [chain[0].text, chain[1].text, chain[2].text.replace("{", '{"bonus":1,', 1)],
    "no record": lambda chain: [chain[0].text, chain[1].text, "[]"],
    "deep": lambda chain: [chain[0].text, chain[1].text, "[" * 100_000],
    "newer version": _edited(9, version=VERSION + 1),
    "unknown kind": _edited(9, kind="gift"),
}


class TamperTests(StorageTests):
    @pytest.mark.parametrize("change", IN_PLACE)
    def test_a_change_is_found(self, storage: Storage, connect: Connect, change: str) -> None:
        ledger = connect()
        terms = history(ledger)
        entries, chain = ledger.entries(terms), ledger.chain(terms)
        storage.tamper(IN_PLACE[change](chain), len(chain), chain[-1].hash)
        self._refused_for_good(connect, terms)
        for use in (lambda: known(ledger), lambda: ledger.chain(terms), lambda: opened(ledger)):
            with pytest.raises(BrokenChain, match="restore the ledger from a copy"):
                use()
        # A process that had already read the chain continues with what was written, or refuses.
        with suppress(BrokenChain):
            assert ledger.entries(terms) == entries
        storage.tamper(chain, len(chain), chain[-1].hash)  # restored from a copy
        assert connect().entries(terms) == entries == ledger.entries(terms)

    @pytest.mark.parametrize("change", ["longer", "shorter", "other head", "last dropped", "rewritten", "empty"])
    def test_another_end_is_found_by_whoever_has_read_the_chain(
        self, storage: Storage, connect: Connect, change: str
    ) -> None:
        ledger = connect()
        terms = history(ledger)
        chain = ledger.chain(terms)
        length, head = len(chain), chain[-1].hash
        if change == "longer":
            storage.tamper(chain, length + 1, head)
        elif change == "shorter":
            storage.tamper(chain, length - 1, head)
        elif change == "other head":
            storage.tamper(chain, length, chain[-2].hash)
        elif change == "last dropped":  # as if an older copy had been put in its place
            storage.tamper(chain[:-1], length - 1, chain[-2].hash)
        elif change == "rewritten":
            forged = resealed(_edited(5, released=0.75)(chain))
            storage.tamper(forged, length, forged[-1].hash)
        else:
            storage.tamper([], 0, START)
        self._refused_for_good(lambda: ledger, terms)

    @pytest.mark.parametrize("change", AGAINST_THE_RULES)
    def test_a_chain_against_the_rules_is_refused(self, storage: Storage, connect: Connect, change: str) -> None:
        ledger = connect()
        terms = history(ledger)
        forged = resealed(AGAINST_THE_RULES[change](ledger.chain(terms)))
        storage.tamper(forged, len(forged), forged[-1].hash)
        with pytest.raises(BrokenChain) as refusal:
            known(connect())
        assert ("upgrade afresh" in str(refusal.value)) == (change in ("newer version", "unknown kind"))

    def _refused_for_good(self, connect: Callable[[], Ledger], terms: Terms) -> None:
        ledger = connect()
        for _ in range(2):
            for use in (
                lambda: ledger.entries(terms),
                lambda: ledger.spent(terms),
                lambda: ledger.reserve(terms, [question("a")]),
                lambda: ledger.reserve(terms, [question("new")]),
                lambda: ledger.charge(terms, outside("new")),
                lambda: ledger.divide(terms, {}),
                lambda: known(ledger),
            ):
                with pytest.raises(BrokenChain, match="restore the ledger from a copy"):
                    use()
