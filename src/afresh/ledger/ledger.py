"""The ledger: open, reserve, record, replay, over any storage of chains.

A guard's path is: reserve the charge -> evaluate -> record what is released, with its interval -> release it. Each step
is durable before the next begins, so no crash can reveal a number nobody paid for.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from afresh.engines.identity import Identity
from afresh.errors import BudgetExhausted, LedgerError, PlanMismatch
from afresh.ledger.account import Account
from afresh.ledger.base import (
    Entry,
    Limits,
    Outcome,
    Outside,
    Question,
    Spent,
    Statement,
    Terms,
    check_count,
    check_text,
)
from afresh.ledger.books import Books, sealed
from afresh.ledger.finding import opened_by, same_rows, search
from afresh.ledger.journal import Chain, Journal, Sealed, Transaction
from afresh.ledger.known import keyed, seal_sketch, veil
from afresh.ledger.memory import Memory
from afresh.ledger.records import START, Answered, Charged, Closed, Divided, Opened, Record, Released, Stated
from afresh.ledger.reserving import Entries, Reserving, Wish
from afresh.ledger.translate import entry_of, looking, planned, stated, statement_of

Settle = Callable[[Sequence[Released]], Outcome]
"""Makes a release from earlier releases, for mechanisms with a memory."""
Derive = Callable[[Mapping[int, Entry]], Sequence[Statement]]
"""What follows from answered entries, by their numbers."""


# Machines' clocks differ a little, and are sometimes set back a little: the chain decides the order of records.
TOLERANCE = timedelta(minutes=5)
ACCEPT_CLOCK = "AFRESH_ACCEPT_CLOCK"


class Ledger:
    """What was asked and what it cost, for any number of datasets. Safe for many threads and processes."""

    def __init__(
        self,
        journal: Journal,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        memory: Memory | None = None,
        path: str | None = None,
    ) -> None:
        """Make a ledger over a journal, with its memory of opened data; see `open_ledger`."""
        self._journal, self._books, self._clock = journal, Books(journal), clock
        self.memory = memory
        self.path = path
        """The file it is in; None in memory or on a server. What belongs to its data may be kept next to it."""

    @cached_property
    def key(self) -> str:
        """The secret by which an engine sketches rows for this ledger: `identity` of its data is by this key."""
        with self._journal.transaction(write=False) as transaction:
            return transaction.key()

    def find(self, identity: Identity) -> Terms | None:
        """Return the terms of the guard of these rows, if they ever had one. The whole chain is verified.

        Answers that a checkpoint covers are hashed with the rest; their numbers are checked when they are asked for.
        """
        with self._journal.transaction(write=False) as transaction:
            chain, _ = search(transaction, identity)
            return None if chain is None else self._terms(transaction, chain)

    def open(
        self,
        identity: Identity,
        limits: Limits,
        *,
        new_rows: str | None = None,
        simulated: bool = False,
        analyst: str = "",
    ) -> Terms:
        """Return the guard of these rows, made if there is none; `limits` become its plan unless one is fixed.

        Compare the plans: a fixed plan stands, whatever is passed. A table that shares a telling column, or most of its
        different rows, with that of another guard is refused with `SameRows`, unless `new_rows` explains why its rows
        are not the same.
        """
        check_text("analyst", analyst)
        check_text("fingerprint", identity.fingerprint)
        check_count("rows", identity.rows)
        if new_rows is not None:
            check_text("new_rows", new_rows)
        with self._journal.transaction(write=True) as transaction:
            transaction.alone()
            chain, alike = search(transaction, identity)
            if chain is None:
                if new_rows is None and (like := next(alike, None)) is not None:
                    raise same_rows(*like)
                self._create(transaction, identity, limits, new_rows, simulated, analyst)
            else:
                locked = transaction.chain(chain.id)
                assert locked is not None
                account = self._books.read(transaction, locked)
                if not account.fixed and account.limits != limits:
                    transaction.append(locked, sealed(account.head, [planned(self._now(account), analyst, limits)]))
        made = self.find(identity)
        assert made is not None  # chains are never removed
        return made

    def _create(
        self,
        transaction: Transaction,
        identity: Identity,
        limits: Limits,
        new_rows: str | None,
        simulated: bool,
        analyst: str,
    ) -> None:
        seed, now = secrets.token_hex(32), self._clock()
        name = keyed(seed, identity)
        opened = Opened(
            at=now,
            analyst=analyst,
            data=name.fingerprint,
            columns=name.stored,
            names=veil(seed, [column.name for column in identity.columns]),
            new_rows=new_rows,
            simulated=simulated,
            rows=identity.rows,
            seed_digest=hashlib.sha256(seed.encode()).hexdigest(),
            sketch=seal_sketch(seed, transaction.key(), identity.sketch),
        )
        chain = transaction.create(seed, identity.sketch)
        transaction.append(chain, sealed(START, [opened, planned(now, analyst, limits)]))

    def _terms(self, transaction: Transaction, chain: Chain) -> Terms:
        _, account = self._books.verify(transaction, chain)
        return account.terms(chain.id, chain.seed)

    def reserve(
        self,
        terms: Terms,
        questions: Sequence[Question],
        analyst: str = "",
        *,
        later: int = 0,
        batch: int | None = None,
        exam: bool = False,
    ) -> Entries:
        """Pay for the questions, all or none, and return their entries in the same order.

        A question already in the ledger, answered or only paid for, at this noise or less, gets its entry and costs
        nothing: an entry without an outcome is completed, not paid for twice. If the new questions do not fit the caps,
        or would not fit together with this many `later` ones, which can only be asked once these are answered,
        `BudgetExhausted` is raised and nothing is written. The first reservation fixes the plan: that of `terms`.

        With a `batch` the new questions get this many rows of their own, which no other question has seen or will see.
        An `exam` is one such batch, on the rows that the plan keeps for it, and costs no answers from the budget.
        """
        wish = Wish(questions, analyst, later, batch, exam)
        self.reserve_each(terms, [wish])
        if isinstance(wish.found, BudgetExhausted):
            raise wish.found
        assert wish.found is not None
        return wish.found

    def reserve_each(self, terms: Terms, wishes: Sequence[Wish]) -> None:
        """Set in each wish what `reserve` would return or raise, one after the other, in one transaction.

        Each gets what it would get alone, after those before it: the first of two equal questions pays.
        """
        for wish in wishes:
            wish.check()
        with self._writing(terms, wishes[0].analyst if wishes else "") as (account, write):
            reserving = Reserving(account, lambda came: self._now(account, came))
            for wish in wishes:
                try:
                    wish.found = reserving.take(wish)
                except BudgetExhausted as refusal:
                    wish.found = refusal
            write(reserving.records)

    def look_again(self, terms: Terms, wanted: Collection[str], analyst: str = "") -> Entries:
        """Close the rounds, for good, and reserve final looks at the answered questions with these digests.

        Entries of final looks that were reserved before are returned as well, in the order of the questions.
        """
        check_text("analyst", analyst)
        with self._writing(terms, analyst) as (account, write):
            now = self._now(account)
            closing: list[Record] = []
            if not account.closed:
                account.check_closing()
                closing = [Closed(now, analyst)]
            asked = [each for each in account.entries if each.digest in wanted and each.again is None]
            found = [each for each in asked if each.span is not None and each.outcome is not None]
            new = [each for each in found if each.number not in account.looked]
            first = len(account.entries) + 1
            reserved = [looking(each, now, analyst, terms.rows, n) for n, each in enumerate(new, first)]
            write([*closing, *reserved])
            looks = {again: account.entries[number - 1] for again, number in account.looked.items()}
            looks |= {each.again: entry_of(each) for each in reserved if each.again is not None}
            spent = account.spent(analyst)
        return Entries((looks[each.number] for each in found), spent)

    def examined(self, terms: Terms) -> int:
        """Return how many questions the exam has; 0 until it is taken."""
        with self._books.reading(terms) as account:
            return account.examined

    def rows_left(self, terms: Terms, analyst: str) -> int:
        """Return how many rows that no question has seen this analyst may still open; 0 once closed."""
        with self._books.reading(terms) as account:
            return 0 if account.closed else account.rows_left(analyst)

    @contextmanager
    def _writing(self, terms: Terms, analyst: str) -> Iterator[tuple[Account, Callable[[Sequence[Record]], None]]]:
        """Give an account to write to, with the plan of `terms` in force: the first write fixes it."""
        while True:
            with self._books.writing(terms) as (account, write):
                if account.limits == terms.limits:
                    yield account, write
                    return
                if account.fixed:
                    raise PlanMismatch(
                        "since you opened these rows, someone else has fixed another plan for them; "
                        "open them again without questions=, confidence=, method= and answers=. Nothing was charged."
                    )
                write([planned(self._now(account), analyst, terms.limits)])

    def record(self, terms: Terms, entry: Entry, outcome: Outcome) -> Entry:
        """Store the outcome unless there is one already; return what is stored, the only thing that may be released."""
        return self.record_many(terms, [(entry, outcome)])[0]

    def record_many(
        self,
        terms: Terms,
        outcomes: Sequence[tuple[Entry, Outcome | Settle]],
        derive: Derive | None = None,
        analyst: str = "",
    ) -> Entries:
        """Like `record` for many entries, all or none, together with what follows from them (see `state`).

        An outcome may be given as a function that makes it from earlier releases, in the order of the records. `derive`
        gets the entries as they are stored, by number.
        """
        (found,) = self.record_each(terms, outcomes, [(derive, analyst)])
        return found

    def record_each(
        self,
        terms: Terms,
        outcomes: Sequence[tuple[Entry, Outcome | Settle]],
        callers: Sequence[tuple[Derive | None, str]],
    ) -> list[Entries]:
        """Like `record_many` for several callers, all or none, in one transaction; each derives in its own name.

        Every caller gets all entries, with what was stated for it and what it has spent.
        """
        for _, analyst in callers:
            check_text("analyst", analyst)
        with self._books.writing(terms) as (account, write):
            now = self._before(account)
            stored, records = _settled(account, outcomes, now)
            told: list[list[Statement]] = []
            new: dict[Any, Statement] = {}
            for derive, analyst in callers:
                made_of = [] if derive is None else list(derive(stored))
                for each in made_of:
                    if each.question not in account.stated and each.question not in new:
                        new[each.question] = each
                        records.append(stated(now, analyst, each))
                told.append(_told(account, made_of, new))
            write(records)
            spent = account.purse.spent_by(analyst for _, analyst in callers)
        entries = [stored[entry.number] for entry, _ in outcomes]
        alike = {each: Entries(entries, each) for each in set(spent.values())}  # for all for whom nothing was stated
        return [
            Entries(entries, spent[analyst], own) if own else alike[spent[analyst]]
            for (_, analyst), own in zip(callers, told, strict=True)
        ]

    def state(self, terms: Terms, statements: Sequence[Statement], analyst: str = "") -> list[Statement]:
        """Record numbers that follow from answers; return what is stored, the only thing that may be released.

        Earlier statements stay as they were, and are not written again.
        """
        check_text("analyst", analyst)
        if not statements:  # as for most questions: avoid a needless transaction
            return []
        with self._books.reading(terms) as account:
            if all(each.question in account.stated for each in statements):
                return _told(account, statements, {})
        with self._books.writing(terms) as (account, write):
            new = {each.question: each for each in statements if each.question not in account.stated}
            for statement in new.values():
                account.check_statement(statement)
            write([stated(self._before(account), analyst, statement) for statement in new.values()])
            return _told(account, statements, new)

    def stated(self, terms: Terms) -> list[Stated]:
        """Return everything that was derived from answers, in order."""
        with self._books.reading(terms) as account:
            return list(account.stated.values())

    def charge(self, terms: Terms, outside: Outside, analyst: str = "") -> bool:
        """Record what was revealed outside, or raise `BudgetExhausted`. Recording the same again is free.

        Returns whether it was charged now.
        """
        check_text("analyst", analyst)
        with self._writing(terms, analyst) as (account, write):
            same = (outside.text, dict(outside.basis), outside.charge, outside.answers)
            if any((c.text, c.basis, c.charge, c.answers) == same for c in account.charged):
                return False
            account.purse.check_outside(outside)
            write(
                [
                    Charged(
                        at=self._now(account),
                        analyst=analyst,
                        text=outside.text,
                        basis=dict(outside.basis),
                        answers=outside.answers,
                        charge=float(outside.charge),
                        row_charge=float(outside.row_charge),
                    )
                ]
            )
        return True

    def divide(self, terms: Terms, shares: Mapping[str, int], analyst: str = "") -> None:
        """Set how many full-price answers each named analyst may have. Later divisions replace earlier ones."""
        for name in (*shares, analyst):
            check_text("analyst", name)
        with self._writing(terms, analyst) as (account, write):
            account.purse.check_shares(shares)
            if dict(shares) != account.shares:
                write([Divided(at=self._now(account), analyst=analyst, shares=dict(shares))])

    def fix(self, terms: Terms, analyst: str = "") -> None:
        """Fix the plan of `terms` for good, if it is not yet: what follows may need it. Recorded as a division."""
        check_text("analyst", analyst)
        with self._writing(terms, analyst) as (account, write):
            if not account.fixed:
                write([Divided(at=self._now(account), analyst=analyst, shares=dict(account.shares))])

    def unpaid(self, terms: Terms, questions: Sequence[Question]) -> list[Question]:
        """Return the questions that are not in the ledger at their noise or less."""
        with self._books.reading(terms) as account:
            return [each for each in questions if account.stored(each.digest, each.coarseness) is None]

    def seen(self, terms: Terms, questions: Sequence[Question]) -> bool:
        """Whether all of them were paid for, as far as this process knows: a hint, found without reading anything."""
        return self._books.seen(terms, [each.digest for each in questions])

    def answered(self, terms: Terms, questions: Sequence[Question], analyst: str) -> Entries | None:
        """Return what `reserve` would, if all of them were answered before; None if one was not, or seems not to be.

        Nothing is read if this process has never seen one of them.
        """
        if not self.seen(terms, questions):
            return None
        with self._books.reading(terms) as account:
            found = [account.stored(each.digest, each.coarseness) for each in questions]
            kept = [each for each in found if each is not None and each.outcome is not None]
            same = account.limits == terms.limits and len(kept) == len(found)
            return Entries(kept, account.spent(analyst)) if same else None

    def entries(self, terms: Terms) -> list[Entry]:
        """Return everything paid for, by number."""
        with self._books.reading(terms) as account:
            return list(account.entries)

    def reading(self, terms: Terms) -> AbstractContextManager[Account]:
        """Give the current account, to read part of a long one: read-only, and only within the block."""
        return self._books.reading(terms)

    def released(self, terms: Terms) -> Sequence[Released]:
        """Return what was released, in order, for mechanisms with a memory; each release is looked up on access."""
        with self._books.reading(terms) as account:
            return account.released

    def spent(self, terms: Terms, analyst: str | None = None) -> Spent:
        """Return what was paid for, in total or from what one analyst may use, and the caps."""
        with self._books.reading(terms) as account:
            return account.spent(analyst)

    def shares(self, terms: Terms) -> dict[str, int]:
        """Return the division in force; empty if the budget is not divided."""
        with self._books.reading(terms) as account:
            return dict(account.shares)

    def chain(self, terms: Terms) -> list[Sealed]:
        """Return the whole chain, verified, as receipts carry it."""
        return self._books.chain(terms)

    def guards(self) -> list[tuple[Opened, Terms]]:
        """Return every guard with its first record, in the order they were opened. All chains are verified."""
        with self._journal.transaction(write=False) as transaction:
            found = [(opened_by(transaction, chain), self._terms(transaction, chain)) for chain in transaction.chains()]
            transaction.check()
        return found

    def published(self, data: str) -> list[str]:
        """Return the records of the guard whose rows are published under this name; empty if there is no such guard."""
        with self._journal.transaction(write=False) as transaction:
            for chain in transaction.chains():
                if opened_by(transaction, chain).data == data:
                    records, _ = self._books.verify(transaction, chain)
                    return [text for text, _ in records]
            transaction.check()
        return []

    def close(self) -> None:
        """Free what the ledger holds. Idempotent."""
        self._journal.close()

    def time(self) -> datetime:
        """Return the time by the ledger's clock."""
        return self._clock()

    def _now(self, account: Account, came: datetime | None = None) -> datetime:
        """Return the time of the next record, or of a question that `came` earlier; never before the last record's."""
        now, latest = self._clock(), account.latest
        if latest is None or now >= latest:
            return now if came is None else max(min(now, came), latest or came)
        if latest - now > TOLERANCE and not os.environ.get(ACCEPT_CLOCK):
            raise LedgerError(
                f"this machine's clock says {now:%Y-%m-%d %H:%M:%S} UTC, but the ledger's last record is of "
                f"{latest:%Y-%m-%d %H:%M:%S} UTC; set the clock. If it is right and the record's was wrong, set the "
                f"environment variable {ACCEPT_CLOCK}=1: records then keep the later time. Nothing was released."
            )
        return latest

    def _before(self, account: Account) -> datetime:
        """Return the time to record for a release: that of the record before it.

        Records are public, and the time between a question and its answer would reveal how long its scan took.
        """
        now = self._now(account)  # this refuses a clock that is far behind
        return now if account.latest is None else account.latest


def _settled(
    account: Account, outcomes: Sequence[tuple[Entry, Outcome | Settle]], now: datetime
) -> tuple[dict[int, Entry], list[Record]]:
    """Return the entries as they will be stored, by number, and the records of those that were not answered yet."""
    stored: dict[int, Entry] = {}
    records: list[Record] = []
    earlier = account.released
    for entry, outcome in outcomes:
        place = entry.number - 1
        paid = account.entries.reserved[place] if 0 <= place < len(account.entries) else None
        if paid is None or (paid.digest, paid.coarseness) != (entry.digest, entry.coarseness):
            raise LedgerError(
                f"question {entry.number} ({entry.text}) was not reserved in this ledger; reserve it "
                "first. Nothing was released."
            )
        if entry.number in stored:
            continue
        answer = account.entries.answer(place)
        if answer is None:
            made = outcome(earlier) if callable(outcome) else outcome
            account.check_outcome(made)
            earlier.append(made.released)
            answer = Answered(now, entry.number, made.released, made.value, made.low, made.high)
            records.append(answer)
        stored[entry.number] = entry_of(paid, answer)
    return stored, records


def _told(account: Account, statements: Sequence[Statement], new: Mapping[Any, Statement]) -> list[Statement]:
    """Return what may be reported: a number stated before stays unchanged."""
    return [new.get(each.question) or statement_of(account.stated[each.question]) for each in statements]
