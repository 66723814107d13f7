"""The ledger: reserve, record, replay, over whatever stores the chains.

A guard's path is: reserve the charge -> evaluate -> record the released number -> release it. Each step is
durable before the next begins, so that no crash can reveal a number nobody paid for.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from afresh.errors import LedgerError
from afresh.ledger.account import Account, entry_of
from afresh.ledger.base import (
    Entry,
    Outside,
    Question,
    Spent,
    Terms,
    check_released,
    check_terms,
    check_text,
    plain,
)
from afresh.ledger.books import Books, sealed
from afresh.ledger.journal import Journal, Sealed
from afresh.ledger.records import Answered, Charged, Divided, Opened, Released, Reserved

Settle = Callable[[Sequence[Released]], Released]

# Clocks of several machines differ a little, and are set back a little: the order of records is the chain's.
TOLERANCE = timedelta(minutes=5)
ACCEPT_CLOCK = "AFRESH_ACCEPT_CLOCK"


class Ledger:
    """What was asked and what it cost, for any number of datasets. Safe for many threads and processes."""

    def __init__(self, journal: Journal, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """A ledger over a journal; see `open_ledger`."""
        self._journal, self._books, self._clock = journal, Books(journal), clock

    def terms(self, fingerprint: str, *, simulated: bool = False) -> Terms | None:
        """The terms under which these data were first opened, if they ever were. The whole chain is verified."""
        with self._journal.transaction(write=False) as transaction:
            chain = transaction.find(fingerprint, simulated=simulated)
            if chain is None:
                return None
            _, account = self._books.verify(transaction, chain, fingerprint, simulated)
            return account.terms(chain.seed)

    def open(
        self,
        fingerprint: str,
        *,
        plan: str,
        rows: int,
        questions: int,
        information: float,
        answers: int | None = None,
        row_share: float | None = None,
        simulated: bool = False,
        analyst: str = "",
    ) -> Terms:
        """Get or make the terms; the first caller's stand, whatever later ones pass. Compare the plans."""
        answers = questions if answers is None else answers
        check_terms(
            fingerprint,
            plan=plan,
            rows=rows,
            questions=questions,
            answers=answers,
            information=information,
            row_share=row_share,
        )
        check_text("analyst", analyst)
        if (known := self.terms(fingerprint, simulated=simulated)) is not None:
            return known
        seed = secrets.token_hex(32)
        with self._journal.transaction(write=True) as transaction:
            chain = transaction.find(fingerprint, simulated=simulated)
            if chain is None:
                chain = transaction.create(fingerprint, simulated=simulated, seed=seed)
            if chain.length == 0:  # nobody was faster
                opened = Opened(
                    at=self._clock(),
                    analyst=analyst,
                    fingerprint=fingerprint,
                    simulated=simulated,
                    rows=rows,
                    plan=plan,
                    questions=questions,
                    answers=answers,
                    information=float(information),
                    row_share=None if row_share is None else float(row_share),
                    seed_digest=hashlib.sha256(chain.seed.encode()).hexdigest(),
                )
                transaction.append(chain, sealed(chain.head, [opened]))
        made = self.terms(fingerprint, simulated=simulated)
        assert made is not None  # chains are never removed
        return made

    def unversioned(self, rows: int) -> bool:
        """Whether there are data with so many rows that an early version has named in a way no longer known."""
        with self._journal.transaction(write=False) as transaction:
            for fingerprint in transaction.fingerprints():
                if ":" not in fingerprint:
                    chain = transaction.find(fingerprint, simulated=False)
                    assert chain is not None
                    opened = self._books.read(transaction, chain, fingerprint, False).opened
                    if opened is not None and opened.rows == rows:
                        return True
        return False

    def reserve(self, terms: Terms, questions: Sequence[Question], analyst: str = "", *, later: int = 0) -> list[Entry]:
        """Pay for the questions, all or none, and return their entries in the same order.

        A question that is in the ledger already, answered or only paid for, at this noise or less, gets its entry and
        costs nothing: an entry without a released number is completed, not paid twice. If the new ones do not fit the
        caps, `BudgetExhausted` is raised and nothing is written. So it is if so many `later` ones, which can only be
        asked when these are answered, would not fit as well.
        """
        check_text("analyst", analyst)
        with self._books.writing(terms) as (account, write):
            found: dict[str, Entry] = {}
            new: dict[str, Question] = {}
            # The finest of equal questions first: it serves the coarser ones.
            for question in sorted(questions, key=lambda question: question.coarseness):
                stored = account.stored(question.digest, question.coarseness)
                if stored is None:
                    new.setdefault(question.digest, question)
                else:
                    found[question.digest] = stored
            if new:
                account.check_budget(
                    [*new.values(), *[max(new.values(), key=lambda each: each.charge)] * later], analyst
                )
                now = self._now(account)
                records = [
                    Reserved(
                        at=now,
                        analyst=analyst,
                        number=number,
                        digest=question.digest,
                        text=question.text,
                        detail=question.detail,
                        method=question.method,
                        coarseness=float(question.coarseness),
                        charge=float(question.charge),
                        row_charge=float(question.row_charge),
                    )
                    for number, question in enumerate(new.values(), len(account.entries) + 1)
                ]
                write(records)
                found.update((record.digest, replace(entry_of(record), new=True)) for record in records)
        return [found[question.digest] for question in questions]

    def record(self, terms: Terms, entry: Entry, released: Released) -> Entry:
        """Store the released number unless there is one; return what is stored, the only thing to release."""
        return self.record_many(terms, [(entry, released)])[0]

    def record_many(self, terms: Terms, released: Sequence[tuple[Entry, Released | Settle]]) -> list[Entry]:
        """Like `record` for many entries, all or none.

        In place of what is to be released there may be a function that makes it from all that was released before, in
        the order of the records: for mechanisms with a memory.
        """
        for _, value in released:
            if not callable(value):
                check_released(value)
        if not released:
            return []
        stored: dict[int, Entry] = {}
        with self._books.writing(terms) as (account, write):
            now, records, earlier = self._now(account), [], list(account.released)
            for entry, value in released:
                place = entry.number - 1
                kept = account.entries[place] if 0 <= place < len(account.entries) else None
                if kept is None or (kept.digest, kept.coarseness) != (entry.digest, entry.coarseness):
                    raise LedgerError(
                        f"question {entry.number} ({entry.text}) was not reserved in this ledger; reserve it "
                        "first. Nothing was released."
                    )
                if kept.released is None and entry.number not in stored:
                    made = plain(value(earlier) if callable(value) else value)
                    check_released(made)
                    earlier.append(made)
                    records.append(Answered(now, entry.number, made))
                    kept = replace(kept, released=made, answered_at=now)
                stored.setdefault(entry.number, kept)
            write(records)
        return [stored[entry.number] for entry, _ in released]

    def charge(self, terms: Terms, outside: Outside, analyst: str = "") -> bool:
        """Record what was revealed outside, or raise `BudgetExhausted`. The same again is not charged again.

        Says whether it was charged now.
        """
        check_text("analyst", analyst)
        with self._books.writing(terms) as (account, write):
            same = (outside.text, dict(outside.basis), outside.charge, outside.answers)
            if any((c.text, c.basis, c.charge, c.answers) == same for c in account.charged):
                return False
            account.check_outside(outside)
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
        """Say how many full-price answers each named analyst may have in all. Later divisions replace earlier ones."""
        for name in (*shares, analyst):
            check_text("analyst", name)
        with self._books.writing(terms) as (account, write):
            account.check_shares(shares)
            if dict(shares) != account.shares:
                write([Divided(at=self._now(account), analyst=analyst, shares=dict(shares))])

    def entries(self, terms: Terms) -> list[Entry]:
        """Everything paid for, by number."""
        with self._books.reading(terms) as account:
            return list(account.entries)

    def spent(self, terms: Terms, analyst: str | None = None) -> Spent:
        """What was paid for, by all or from what one analyst may use, and the caps."""
        with self._books.reading(terms) as account:
            return account.spent(analyst)

    def shares(self, terms: Terms) -> dict[str, int]:
        """The division in force; empty if the budget is not divided."""
        with self._books.reading(terms) as account:
            return dict(account.shares)

    def chain(self, terms: Terms) -> list[Sealed]:
        """The whole chain, verified, as receipts carry it."""
        return self._books.chain(terms)

    def close(self) -> None:
        """Free what the ledger holds. Idempotent."""
        self._journal.close()

    def _now(self, account: Account) -> datetime:
        """The time of the next record, never before the last one's."""
        now, latest = self._clock(), account.latest
        if latest is None or now >= latest:
            return now
        if latest - now > TOLERANCE and not os.environ.get(ACCEPT_CLOCK):
            raise LedgerError(
                f"this machine's clock says {now:%Y-%m-%d %H:%M:%S} UTC, but the ledger's last record is of "
                f"{latest:%Y-%m-%d %H:%M:%S} UTC; set the clock. If it is right and the record's was wrong, set the "
                f"environment variable {ACCEPT_CLOCK}=1: records then keep the later time. Nothing was released."
            )
        return latest
