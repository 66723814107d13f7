"""Pays for several callers' questions in one transaction, each as if those before it had already been written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.ledger.account import Account
from afresh.ledger.base import Entry, Question, Spent, Statement, check_text
from afresh.ledger.records import Reserved
from afresh.ledger.translate import entry_of, reserved


class Entries(list[Entry]):
    """Entries in the order in which they were asked for."""

    __slots__ = ("spent", "statements")

    def __init__(self, entries: Iterable[Entry], spent: Spent, statements: Sequence[Statement] = ()) -> None:
        """Take the entries, what the analyst had spent when this was written, and what was stated about the entries."""
        super().__init__(entries)
        self.spent, self.statements = spent, tuple(statements)


@dataclass(slots=True)
class Wish:
    """What one caller asks for: all of it is paid for, or nothing."""

    questions: Sequence[Question]
    analyst: str = ""
    later: int = 0
    """How many more questions must also fit, which can only be asked once these are answered."""
    batch: int | None = None
    """How many rows of their own the new questions get; None if batches do not matter."""
    exam: bool = False
    """Whether these are the exam's questions, on the rows the plan keeps for it; they cost nothing from the budget."""
    came: datetime | None = None
    """When it was asked, the time of its records: the time of payment would reveal how long others' scans took."""
    found: Entries | BudgetExhausted | None = None
    """The outcome; durable once `Ledger.reserve_each` has returned, until then a draft that may or may not be."""

    def check(self) -> None:
        """Refuse an invalid wish."""
        check_text("analyst", self.analyst)
        batch = self.batch
        if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int) or batch < 1):
            raise InvalidArgument(f"batch == {batch!r}, must be a whole number of rows, at least 1")


class Reserving:
    """Handles one wish after the other on an account that none of them changes; `records` collects what to write."""

    def __init__(self, account: Account, now: Callable[[datetime | None], datetime]) -> None:
        """Start with nothing reserved. `now` gives a record's time from the time its question came."""
        self.records: list[Reserved] = []
        self._account, self._now = account, now
        self._purse, self._opened = account.purse.copy(), account.opened_rows
        self._finest: dict[str, Reserved] = {}
        self._spent: dict[str | None, Spent] = {}

    def take(self, wish: Wish) -> Entries:
        """Return the entries of a wish; `BudgetExhausted` if it does not fit, and then nothing of it is reserved."""
        found: dict[str, Entry] = {}
        new: dict[str, Question] = {}
        drafted = [each for each in wish.found if each.new] if isinstance(wish.found, Entries) else []
        # Take the finest of equal questions first: it serves the coarser ones.
        for question in sorted(wish.questions, key=lambda question: question.coarseness):
            stored = self._stored(question)
            if stored is None:
                new.setdefault(question.digest, question)
            else:
                # If its writer was interrupted but it is durable nevertheless, this wish has paid for it.
                found[question.digest] = replace(stored, new=True) if _is_one_of(drafted, stored) else stored
        whose = wish.analyst if wish.analyst in self._account.shares else None  # all others use one pot
        if (spent := self._spent.get(whose)) is None:
            spent = self._spent[whose] = self._account.spent(wish.analyst)
        if new:
            made = self._reserve(list(new.values()), wish)
            self._finest |= {record.digest: record for record in made}
            found |= {record.digest: entry_of(record, new=True) for record in made}
        return Entries((found[question.digest] for question in wish.questions), spent)

    def _stored(self, question: Question) -> Entry | None:
        """Return the entry that already serves a question; the first of two callers pays."""
        earlier = self._finest.get(question.digest)
        if earlier is not None and earlier.coarseness <= question.coarseness:
            return entry_of(earlier)
        return self._account.stored(question.digest, question.coarseness)

    def _reserve(self, new: Sequence[Question], wish: Wish) -> list[Reserved]:
        span = self._pay(new, wish)
        first, now = len(self._account.entries) + len(self.records) + 1, self._now(wish.came)
        if self.records:  # of two that came together, the later one may be first in line
            now = max(now, self.records[-1].at)
        made = [reserved(each, now, wish.analyst, number, span) for number, each in enumerate(new, first)]
        self.records += made
        return made

    def _pay(self, new: Sequence[Question], wish: Wish) -> tuple[int, int] | None:
        """Pay for the questions, and return the rows that are opened for them."""
        if wish.exam:
            self._account.check_exam(wish.analyst)
            return self._account.exam
        self._account.check_open()
        if wish.later:
            dearest = max(new, key=lambda each: each.charge)
            rows = 2 * (wish.batch or 0)  # the later ones form their own batch
            self._purse.check([*new, *[dearest] * wish.later], wish.analyst, rows)
        self._purse.pay(self._purse.check(new, wish.analyst, wish.batch or 0), wish.analyst)
        if wish.batch is None:
            return None
        self._opened += wish.batch
        return self._opened - wish.batch, self._opened


def _is_one_of(drafted: Sequence[Entry], stored: Entry) -> bool:
    """Whether the stored entry is one of the drafts: another process's would have another number or another time."""
    same = stored.number, stored.digest, stored.reserved_at
    return any((each.number, each.digest, each.reserved_at) == same for each in drafted)
