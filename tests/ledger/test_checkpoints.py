"""Checkpoints: what one lets opening skip is safe to skip, whoever wrote it, and anything odd about it is ignored."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from afresh.errors import BrokenChain
from afresh.ledger import Ledger, Limits, Question, Terms, books, open_ledger, outcome
from afresh.ledger import account as accounts
from afresh.ledger.journal import Chain, Checkpoint, Sealed
from afresh.ledger.known import plain
from afresh.ledger.paid import Paid
from afresh.ledger.records import answers, decode, seal
from afresh.receipts.format import read_chain

DATA, OTHER = plain("rows", 100), plain("others", 100)
LIMITS = Limits({"k": 1}, 50, 50, 50.0)
ANSWERS = 20
Change = Callable[[list[str]], list[str]]


@pytest.fixture(autouse=True)
def worthwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "WORTHWHILE", 5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of 42 records, 20 of them answers, and a checkpoint near its end."""
    path = tmp_path / "ledger.sqlite"
    build(path, DATA)
    return path


def build(path: Path, data: Any) -> None:
    with closing(open_ledger(path)) as ledger:
        terms = ledger.open(data, LIMITS)
        for i in range(ANSWERS):
            (entry,) = ledger.reserve(terms, [Question(f"digest {i}", f"question {i}", 1.0)], "ada")
            ledger.record(terms, entry, outcome(i / 32, i / 32, 0.0, 1.0, ends=LIMITS.ends))


def run(path: Path, statement: str, *values: object) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection, connection:
        for trigger in ("afresh_records_stay", "afresh_records_are_fixed", "afresh_chains_grow"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        return connection.execute(statement, values).fetchall()


def chain_of(path: Path, guard: int = 1) -> Chain:
    return Chain(*run(path, "SELECT id, seed, length, head FROM afresh_guards WHERE id = ?", guard)[0])


def noted(path: Path) -> Checkpoint:
    return Checkpoint(*run(path, "SELECT length, head, hash FROM afresh_checkpoints")[0])


def note(path: Path, *checkpoint: object, guard: int = 1) -> None:
    run(path, "INSERT OR REPLACE INTO afresh_checkpoints VALUES (?, ?, ?, ?)", guard, *checkpoint)


def rewrite(path: Path, change: Change) -> None:
    """Another chain, sealed from the first record on, under a forged checkpoint that says it was verified."""
    texts = change([text for (text,) in run(path, "SELECT record FROM afresh_records WHERE guard = 1 ORDER BY place")])
    head, records = "", []
    for text in texts:
        head = seal(head, text)
        records.append(Sealed(text, head))
    run(path, "DELETE FROM afresh_records WHERE guard = 1")
    for place, record in enumerate(records, 1):
        run(path, "INSERT INTO afresh_records VALUES (1, ?, ?, ?)", place, *record)
    run(path, "UPDATE afresh_guards SET length = ?, head = ? WHERE id = 1", len(records), head)
    note(path, *Checkpoint.of(chain_of(path), len(records), head))


def edited(place: int, **changes: Any) -> Change:
    def change(texts: list[str]) -> list[str]:
        body = json.loads(texts[place - 1])
        assert body.keys() >= changes.keys()
        texts[place - 1] = json.dumps(body | changes, sort_keys=True, separators=(",", ":"))
        return texts

    return change


def opened(path: Path) -> tuple[Ledger, Terms]:
    ledger = open_ledger(path)
    terms = ledger.find(DATA)
    assert terms is not None
    return ledger, terms


def decoded(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The records that opening reads in full."""
    seen: list[str] = []

    def watching(text: str) -> Any:
        seen.append(text)
        return decode(text)

    monkeypatch.setattr(accounts, "decode", watching)
    opened(path)[0].close()
    monkeypatch.undo()
    return seen


def test_writing_notes_how_far_the_chain_was_verified(path: Path) -> None:
    found, chain = noted(path), chain_of(path)
    assert chain.length - 8 <= found.length < chain.length
    assert found == Checkpoint.of(
        chain, found.length, run(path, "SELECT hash FROM afresh_records WHERE place = ?", found.length)[0][0]
    )


def test_opening_does_not_look_at_answers_before_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = decoded(path, monkeypatch)
    assert sum(answers(text) is not None for text in seen) <= 4
    assert sum('"reserved"' in text for text in seen) == ANSWERS


def test_everything_reads_the_same_with_and_without(path: Path) -> None:
    def told() -> Any:
        ledger, terms = opened(path)
        with closing(ledger):
            found = ledger.spent(terms), ledger.entries(terms), list(ledger.released(terms))
            again = ledger.reserve(terms, [Question("digest 3", "question 3", 1.0)], "bob")
            return terms, found, again, ledger.chain(terms), ledger.entries(terms)

    with_it = told()
    run(path, "DELETE FROM afresh_checkpoints")
    assert told() == with_it
    assert with_it[1][2] == [i / 32 for i in range(ANSWERS)]


ODD: dict[str, Callable[[Chain, Checkpoint], Sequence[object]]] = {
    "another hash": lambda chain, it: (it.length, it.head, "00"),
    "another length": lambda chain, it: (it.length - 2, it.head, it.hash),
    "another head": lambda chain, it: (it.length, chain.head, it.hash),
    "of a length with another head": lambda chain, it: Checkpoint.of(chain, it.length - 2, it.head),
    "beyond the end": lambda chain, it: Checkpoint.of(chain, chain.length + 4, it.head),
    "before the beginning": lambda chain, it: Checkpoint.of(chain, -3, it.head),
    "of no length": lambda chain, it: ("many", it.head, it.hash),
    "of another chain": lambda chain, it: Checkpoint.of(chain._replace(seed="other"), it.length, it.head),
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_one_is_ignored(path: Path, odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    note(path, *ODD[odd](chain_of(path), noted(path)))
    assert len(decoded(path, monkeypatch)) == chain_of(path).length


def test_that_of_another_chain_is_ignored(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(path, OTHER)
    theirs = run(path, "SELECT length, head, hash FROM afresh_checkpoints WHERE guard = 2")[0]
    note(path, *theirs)
    assert len(decoded(path, monkeypatch)) == chain_of(path).length


DAMAGE = {
    "an answer before it edited": ("UPDATE afresh_records SET record = replace(record, '0.0', '0.5') WHERE place = 4"),
    "a question before it edited": "UPDATE afresh_records SET record = replace(record, 'ada', 'eve') WHERE place = 5",
    "a record after it edited": "UPDATE afresh_records SET record = replace(record, 'ada', 'eve') WHERE place = 41",
    "the end cut off": "DELETE FROM afresh_records WHERE place > 30",
    "a record dropped": "DELETE FROM afresh_records WHERE place = 10",
    "an older head": "UPDATE afresh_guards SET length = 30, head = (SELECT hash FROM afresh_records WHERE place = 30)",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found_at_opening_as_ever(path: Path, damage: str) -> None:
    run(path, DAMAGE[damage])
    with closing(open_ledger(path)) as ledger, pytest.raises(BrokenChain, match="restore the ledger from a copy"):
        ledger.find(DATA)


def test_a_ledger_rolled_back_with_its_checkpoint_is_found_by_whoever_knows_more(path: Path) -> None:
    """A consistent older copy is what only a later head can tell from the ledger; a checkpoint changes nothing."""
    older = path.read_bytes()
    ledger, terms = opened(path)
    with closing(ledger):
        ledger.reserve(terms, [Question("later", "later", 1.0)], "ada")
        ledger.spent(terms)
        length = len(ledger.chain(terms))
        run(path, "DELETE FROM afresh_records WHERE place = ?", length)
        head = run(path, "SELECT hash FROM afresh_records WHERE place = ?", length - 1)[0][0]
        run(path, "UPDATE afresh_guards SET length = ?, head = ?", length - 1, head)
        with pytest.raises(BrokenChain):
            ledger.spent(terms)
    path.write_bytes(older)
    found = opened(path)[0]
    found.close()


# Every hash is right, and a forged checkpoint says that all was verified.
FORGED: dict[str, Change] = {
    "a negative charge": edited(11, charge=-5.0),
    "more than the budget": edited(11, charge=49.0),
    "a raised plan": lambda texts: [*texts, *edited(1, information=500.0, at=json.loads(texts[-1])["at"])(texts[1:2])],
    "paid twice": edited(11, digest="digest 1"),
    "answered twice": lambda texts: [*texts[:20], texts[3], *texts[20:]],
    "answer to nothing": edited(12, number=40),
    "a number skipped": edited(11, number=9),
    "times out of order": edited(11, at="2020-01-01T00:00:00+00:00"),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_forged_one_hides_nothing_that_decides_what_was_spent(path: Path, forgery: str) -> None:
    rewrite(path, FORGED[forgery])
    with closing(open_ledger(path)) as ledger, pytest.raises(BrokenChain):
        ledger.find(DATA)


NEVER_TOLD: dict[str, Change] = {
    "a value outside of its interval": edited(12, value=2.0),
    "an end off the grid": edited(12, low=0.3),
    "no number": edited(12, released="0.5"),
    "not finite": edited(12, released=float("inf")),
    "a field too many": lambda texts: [*texts[:11], texts[11].replace("}", ',"z":1}'), *texts[12:]],
    "two numbers": lambda texts: [*texts[:11], texts[11].replace('"version":', '"number":1,"version":'), *texts[12:]],
    "no time": edited(12, at="then"),
}


@pytest.mark.parametrize("forgery", NEVER_TOLD)
def test_an_answer_that_a_forged_one_hides_is_never_told(path: Path, forgery: str) -> None:
    """It is found by whoever asks for it, and by every receipt; what was spent is right all the while."""
    rewrite(path, NEVER_TOLD[forgery])
    ledger, terms = opened(path)
    with closing(ledger):
        assert ledger.spent(terms).answers == ANSWERS
        uses: list[Callable[[], object]] = [
            lambda: ledger.reserve(terms, [Question("digest 4", "question 4", 1.0)], "bob"),
            lambda: ledger.entries(terms),
            lambda: ledger.chain(terms),
        ]
        for use in uses:
            with pytest.raises(BrokenChain, match="restore the ledger from a copy"):
                use()
        assert ledger.reserve(terms, [Question("digest 5", "question 5", 1.0)], "bob")[0].outcome is not None


def test_a_receipt_trusts_none(path: Path) -> None:
    """Not even times, of which opening takes a checkpoint's word."""
    rewrite(path, edited(12, at="2020-01-01T00:00:00+00:00"))
    ledger, terms = opened(path)
    with closing(ledger), pytest.raises(BrokenChain, match="record 12 is older"):
        ledger.chain(terms)
    with pytest.raises(BrokenChain, match="record 12 is older"):
        read_chain([text for (text,) in run(path, "SELECT record FROM afresh_records ORDER BY place")])


def test_a_step_of_time_after_a_checkpoint_is_measured_from_its_last_record(path: Path) -> None:
    chain = chain_of(path)
    note(path, *Checkpoint.of(chain, chain.length, chain.head))
    ledger, terms = opened(path)
    with closing(ledger):
        (entry,) = ledger.reserve(terms, [Question("later", "later", 1.0)], "ada")
        last = json.loads(ledger.chain(terms)[-2].text)["at"]
        assert entry.reserved_at.isoformat() >= last


def test_a_broken_answer_is_a_broken_chain_and_no_other_error() -> None:
    paid = Paid()
    record: Any = decode(
        '{"again":null,"analyst":"a","at":"2030-01-01T00:00:00+00:00","bounds":[0.0,1.0],"charge":1.0,"coarseness":1.0,"digest":"d",'
        '"guess":null,"kind":"reserved","levels":null,"number":1,"own":true,"row_charge":0.0,"span":null,"text":"t",'
        '"version":2}'
    )
    paid.reserved.append(record)
    for text in ("", "[]", "{}", '{"at":"","high":1.0,"kind":"answered","low":1.0,"number":1,"released":', "null"):
        paid.answered = [text]
        with pytest.raises(BrokenChain):
            paid[0]
