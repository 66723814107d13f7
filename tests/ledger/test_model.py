"""The ledger against a plain dictionary, over random histories with two connections and restarts."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from afresh.errors import BudgetExhausted
from afresh.ledger import Question, Terms
from afresh.ledger.sqlite import SqliteLedger

# Without a disk to wait for, a failure shrinks in seconds; the model says nothing about durability anyway.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

names = st.sampled_from("abcdefghijkl")
charges = st.sampled_from([0.0, 0.1, 1 / 3, 1.0])
sides = st.integers(0, 1)
keys = st.tuples(st.sampled_from(["one", "two"]), st.booleans())


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(dir=MEMORY)
        self.path = Path(self.directory.name) / "ledger.sqlite"
        self.ledgers = [SqliteLedger(self.path), SqliteLedger(self.path)]
        self.opened: dict[tuple[str, bool], Terms] = {}
        # key -> digest -> [number, charge, released]; a dict keeps the order of reservation
        self.model: dict[tuple[str, bool], dict[str, list[float | None]]] = {}

    @initialize(questions=st.integers(0, 6), information=st.sampled_from([0.0, 0.3, 1.0, 2.0, 100.0]))
    def caps(self, questions: int, information: float) -> None:
        self.questions, self.information = questions, information

    def terms(self, key: tuple[str, bool], side: int) -> Terms:
        fingerprint, simulated = key
        terms = self.ledgers[side].open(
            fingerprint,
            plan=f"{len(self.opened)}",
            rows=5,
            questions=self.questions,
            information=self.information,
            simulated=simulated,
        )
        assert self.opened.setdefault(key, terms) == terms
        self.model.setdefault(key, {})
        return terms

    @rule(key=keys, side=sides, asked=st.lists(st.tuples(names, charges), max_size=4))
    def reserve(self, key: tuple[str, bool], side: int, asked: list[tuple[str, float]]) -> None:
        terms, model = self.terms(key, side), self.model[key]
        new: dict[str, float] = {}
        for name, charge in asked:
            if name not in model:
                new.setdefault(name, charge)
        count = len(model) + len(new)
        total = math.fsum([*(paid[1] or 0.0 for paid in model.values()), *new.values()])
        fits = not new or (count <= self.questions and total <= self.information * (1 + 1e-9))
        questions = [Question(name, f"text {name}", "{}", charge) for name, charge in asked]
        if not fits:
            with pytest.raises(BudgetExhausted) as refusal:
                self.ledgers[side].reserve(terms, questions)
            assert (refusal.value.asked, refusal.value.spent) == (len(new), len(model))
            assert 0 <= refusal.value.left <= self.questions - len(model)
            return
        entries = self.ledgers[side].reserve(terms, questions)
        for name, charge in new.items():
            model[name] = [len(model) + 1, charge, None]
        assert [[e.digest, e.number, e.charge, e.released] for e in entries] == [[n, *model[n]] for n, _ in asked]

    @rule(key=keys, side=sides, pick=st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), max_size=3))
    def record(self, key: tuple[str, bool], side: int, pick: list[tuple[int, float]]) -> None:
        terms = self.terms(key, side)
        entries = self.ledgers[1 - side].entries(terms)
        chosen = [(entries[i % len(entries)], value) for i, value in pick] if entries else []
        for entry, value in chosen:
            paid = self.model[key][entry.digest]
            paid[2] = value if paid[2] is None else paid[2]
        stored = self.ledgers[side].record_many(terms, chosen)
        assert [entry.released for entry in stored] == [self.model[key][e.digest][2] for e, _ in chosen]

    @rule(side=sides)
    def restart(self, side: int) -> None:
        self.ledgers[side].close()
        self.ledgers[side] = SqliteLedger(self.path)

    @invariant()
    def agrees(self) -> None:
        for key, terms in self.opened.items():
            stored = [[e.digest, e.number, e.charge, e.released] for e in self.ledgers[0].entries(terms)]
            assert stored == [[name, *paid] for name, paid in self.model[key].items()]

    def teardown(self) -> None:
        for ledger in self.ledgers:
            ledger.close()
        self.directory.cleanup()


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
