"""Random histories against plain lists and fractions, with several connections and restarts."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.ledger import Ledger, Limits, Outside, Question, Terms
from afresh.ledger.conformance.storage import Storage, StorageTests, on_one_storage, released, result
from afresh.ledger.known import plain

analysts = st.sampled_from(["ada", "bob", "eve"])
charges = st.sampled_from([0.0, 0.1, 1 / 3, 1.0])
sides = st.integers(0, 1)
keys = st.sampled_from(["one", "two"])
asked = st.tuples(st.sampled_from("abcdefgh"), charges, st.sampled_from([1.0, 2.0, 4.0]), charges)
Key = str


@dataclass
class Paid:
    """One question of the model."""

    digest: str
    charge: float
    coarseness: float
    row_charge: float
    analyst: str
    released: float | None = None


@dataclass
class Model:
    """One guard: lists of what was paid, and the rules in their plainest form."""

    questions: int
    answers: int
    information: Fraction
    row_share: Fraction | None
    paid: list[Paid] = field(default_factory=list)
    outside: list[Outside] = field(default_factory=list)
    shares: dict[str, int] = field(default_factory=dict)
    divided: bool = False

    def serving(self, digest: str, coarseness: float) -> Paid | None:
        found = [paid for paid in self.paid if paid.digest == digest and paid.coarseness <= coarseness]
        return min(found, key=lambda paid: paid.coarseness, default=None)

    def part(self, share: int) -> tuple[int, Fraction]:
        whole = max(self.questions, 1)
        return share * self.answers // whole, self.information * share / whole

    def used(self, *names: str) -> tuple[int, Fraction]:
        own = [paid for paid in self.paid if paid.analyst in names]
        return len(own), sum((Fraction(paid.charge) for paid in own), Fraction(0))

    def rest(self, shares: dict[str, int]) -> tuple[tuple[int, Fraction], tuple[int, Fraction]]:
        """Return what was spent of the part that no share takes, and the size of that part."""
        count, nats = self.used(*({paid.analyst for paid in self.paid} - shares.keys()))
        used = (
            count + sum(each.answers for each in self.outside),
            nats + sum((Fraction(each.charge) for each in self.outside), Fraction(0)),
        )
        parts = [self.part(share) for share in shares.values()]
        left = self.answers - sum(part[0] for part in parts), self.information - sum(part[1] for part in parts)
        return used, left

    def fits(self, who: str | None, count: int, nats: Fraction, row: Fraction, shares: dict[str, int]) -> bool:
        if who in shares:
            used, caps = self.used(who), self.part(shares[who])
        else:
            used, caps = self.rest(shares)
        rows = [Fraction(p.row_charge) for p in self.paid] + [Fraction(o.row_charge) for o in self.outside]
        slack = 1 + Fraction(1, 10**9)
        return (
            used[0] + count <= caps[0]
            and used[1] + nats <= caps[1] * slack
            and (self.row_share is None or sum(rows, row) <= self.row_share * slack)
        )


class LedgerMachine(RuleBasedStateMachine):
    """Rules of a random history; `connect` makes a ledger on the storage under test."""

    connect: Callable[[], Ledger]

    def __init__(self) -> None:
        super().__init__()
        self.run = uuid.uuid4().hex
        self.ledgers = [self.connect(), self.connect()]
        self.opened: dict[Key, Terms] = {}
        self.models: dict[Key, Model] = {}

    @initialize(
        questions=st.integers(0, 6),
        more=st.integers(0, 3),
        information=st.sampled_from([0.0, 0.3, 1.0, 2.0, 100.0]),
        row_share=st.sampled_from([None, None, 0.5, 2.0]),
    )
    def caps(self, questions: int, more: int, information: float, row_share: float | None) -> None:
        rows = None if row_share is None else Fraction(row_share)
        self.empty = Model(questions, questions + more, Fraction(information), rows)

    def terms(self, key: Key, side: int) -> Terms:
        model = self.models.setdefault(key, copy.deepcopy(self.empty))
        row_share = None if model.row_share is None else float(model.row_share)
        limits = Limits({"method": "any"}, model.questions, model.answers, float(model.information), row_share)
        terms = self.ledgers[side].open(plain(self.run + key, 5), limits)
        first = self.opened.setdefault(key, terms)
        assert replace(first, fixed=terms.fixed) == terms
        assert terms.fixed == bool(model.paid or model.outside or model.divided)
        return terms

    @rule(key=keys, side=sides, who=analysts, asked=st.lists(asked, max_size=4))
    def reserve(self, key: Key, side: int, who: str, asked: list[tuple[str, float, float, float]]) -> None:
        terms, model = self.terms(key, side), self.models[key]
        new: dict[str, Paid] = {}
        for digest, charge, coarseness, row in sorted(asked, key=lambda one: one[2]):
            if model.serving(digest, coarseness) is None:
                new.setdefault(digest, Paid(digest, charge, coarseness, row, who))
        nats = sum((Fraction(paid.charge) for paid in new.values()), Fraction(0))
        rows = sum((Fraction(paid.row_charge) for paid in new.values()), Fraction(0))
        fits = not new or model.fits(who, len(new), nats, rows, model.shares)
        questions = [Question(d, f"text {d}", charge, r, c) for d, charge, c, r in asked]
        if not fits:
            with pytest.raises(BudgetExhausted) as refusal:
                self.ledgers[side].reserve(terms, questions, who)
            assert refusal.value.asked == len(new)
            assert refusal.value.left >= 0
            return
        entries = self.ledgers[side].reserve(terms, questions, who)
        model.paid += new.values()
        for entry, (digest, _, coarseness, _) in zip(entries, asked, strict=True):
            serving = model.serving(digest, coarseness)
            assert serving is model.paid[entry.number - 1]
            assert (entry.charge, released(entry), entry.new) == (serving.charge, serving.released, digest in new)

    @rule(key=keys, side=sides, pick=st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), max_size=3))
    def record(self, key: Key, side: int, pick: list[tuple[int, float]]) -> None:
        terms, model = self.terms(key, side), self.models[key]
        entries = self.ledgers[1 - side].entries(terms)
        chosen = [(entries[i % len(entries)], value) for i, value in pick] if entries else []
        for entry, value in chosen:
            paid = model.paid[entry.number - 1]
            paid.released = value if paid.released is None else paid.released
        stored = self.ledgers[side].record_many(terms, [(entry, result(value)) for entry, value in chosen])
        assert [released(entry) for entry in stored] == [model.paid[e.number - 1].released for e, _ in chosen]

    @rule(
        key=keys,
        side=sides,
        who=analysts,
        revealed=st.builds(Outside, st.sampled_from("xyz"), st.just({}), charges, charges, st.integers(0, 2)),
    )
    def charge(self, key: Key, side: int, who: str, revealed: Outside) -> None:
        terms, model = self.terms(key, side), self.models[key]
        again = any(
            (o.text, o.charge, o.answers) == (revealed.text, revealed.charge, revealed.answers) for o in model.outside
        )
        nats, row = Fraction(revealed.charge), Fraction(revealed.row_charge)
        if again or model.fits(None, revealed.answers, nats, row, model.shares):
            assert self.ledgers[side].charge(terms, revealed, who) is not again
            model.outside += [] if again else [revealed]
        else:
            with pytest.raises(BudgetExhausted):
                self.ledgers[side].charge(terms, revealed, who)

    @rule(key=keys, side=sides, shares=st.dictionaries(analysts, st.integers(0, 4)))
    def divide(self, key: Key, side: int, shares: dict[str, int]) -> None:
        terms, model = self.terms(key, side), self.models[key]
        nothing = Fraction(0)
        names = (*shares, None)
        if sum(shares.values()) <= model.questions and all(
            model.fits(name, 0, nothing, nothing, shares) for name in names
        ):
            self.ledgers[side].divide(terms, shares)
            model.divided = model.divided or shares != model.shares
            model.shares = shares
        else:
            with pytest.raises(InvalidArgument):
                self.ledgers[side].divide(terms, shares)

    @rule(side=sides)
    def restart(self, side: int) -> None:
        self.ledgers[side].close()
        self.ledgers[side] = self.connect()

    @invariant()
    def agrees(self) -> None:
        for key, terms in self.opened.items():
            model, ledger = self.models[key], self.ledgers[0]
            stored = [(e.digest, e.charge, e.coarseness, e.analyst, released(e)) for e in ledger.entries(terms)]
            assert stored == [(p.digest, p.charge, p.coarseness, p.analyst, p.released) for p in model.paid]
            assert ledger.shares(terms) == model.shares
            spent = ledger.spent(terms)
            nats = [Fraction(paid.charge) for paid in model.paid] + [Fraction(each.charge) for each in model.outside]
            assert spent.answers == len(model.paid) + sum(each.answers for each in model.outside) <= model.answers
            assert Fraction(spent.information) <= model.information * (1 + Fraction(1, 10**9))
            assert spent.information == float(sum(nats, Fraction(0)))

    def teardown(self) -> None:
        self.restart(0)
        for key, terms in self.opened.items():
            found = self.ledgers[0].find(plain(self.run + key, 5))
            assert found == replace(terms, fixed=found is not None and found.fixed)  # the chain verifies
        for ledger in self.ledgers:
            ledger.close()


class ModelTests(StorageTests):
    @pytest.fixture
    def histories(self) -> int:
        """How many random histories to try; a backend may override this."""
        return max(1, settings().max_examples // 5)

    def test_random_histories_agree_with_plain_lists(self, storage: Storage, histories: int) -> None:
        class Machine(LedgerMachine):
            connect = staticmethod(lambda: Ledger(storage.connect()))

        few = settings(on_one_storage, max_examples=histories, stateful_step_count=20)
        run_state_machine_as_test(Machine, settings=few)
