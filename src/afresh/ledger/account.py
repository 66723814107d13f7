"""A guard's account: the fold of its chain. Nothing else decides what was spent or may still be.

The rules are checked on every record that is read, not only before one is written: a chain that breaks them was
not written by afresh, and is refused. So anyone who can read a chain, from a ledger or a receipt, can check it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from afresh.errors import BrokenChain, BudgetExhausted, InvalidArgument
from afresh.ledger.base import (
    Entry,
    Limits,
    Outcome,
    Outside,
    Spent,
    Statement,
    Terms,
    check_count,
    check_ends,
    check_question,
    check_released,
    check_text,
    counted,
)
from afresh.ledger.paid import Earlier, Paid
from afresh.ledger.purse import Purse, Sum
from afresh.ledger.records import (
    START,
    Answered,
    Charged,
    Closed,
    Divided,
    Opened,
    Planned,
    Record,
    Reserved,
    Stated,
    answers,
    decode,
    kind_of,
)
from afresh.ledger.translate import digest_again, limits_of, statement_of


@dataclass(slots=True)
class Account:
    """The state of one guard after the records read so far."""

    length: int = 0
    head: str = START
    opened: Opened | None = None
    latest: datetime | None = None
    entries: Paid = field(default_factory=Paid)
    trusted: int = 0
    """How many of the first records were taken from a checkpoint."""
    finest: dict[str, int] = field(default_factory=dict)
    """The number of the entry with the least noise, by digest: it serves every coarser question."""
    stated: dict[tuple[Any, ...], Stated] = field(default_factory=dict)
    """What was derived from answers, by subject, in order."""
    opened_rows: int = 0
    """How many of the shuffled rows were opened for batches, counted from the first."""
    batch: tuple[int, int] | None = None
    """The rows opened last, as long as nothing has been answered since."""
    started: Reserved | None = None
    """The last recorded coordinate of a vector, if more of its coordinates must follow."""
    closed: bool = False
    """Whether nothing more may be asked, except final looks."""
    exam: tuple[int, int] | None = None
    """The rows that the plan keeps for an exam."""
    examined: int = 0
    """How many questions the exam has, once it is taken."""
    looked: dict[int, int] = field(default_factory=dict)
    """The numbers of final looks, by the number of the answer that they repeat."""
    charged: list[Charged] = field(default_factory=list)
    divided: bool = False
    purse: Purse = field(default_factory=Purse)

    def read(self, records: Iterable[tuple[str, str | None]], trusted: int = 0) -> None:
        """Take in the next records, as texts with their stored hashes if any; raise `BrokenChain` if one is wrong.

        Records before a broken one stay taken in. The first `trusted` records are said to be verified already: the
        numbers and times of their answers are read, and then checked, only when they are needed, because they decide
        nothing about what was spent. Everything else is always checked.
        """
        self.trusted = max(self.trusted, trusted)
        for text, sealed in records:
            head = sha256(f"{self.head}\n{text}".encode()).hexdigest()
            if sealed is not None and head != sealed:
                raise BrokenChain(f"record {self.length + 1} does not follow from the one before it")
            if 1 < self.length < trusted - 1 and (number := answers(text)) is not None:
                self._take_answer(number, text)
                self.length, self.head = self.length + 1, head
                continue
            record = decode(text)
            if self.latest is not None and record.at < self.latest:
                raise BrokenChain(f"record {self.length + 1} is older than the one before it")
            try:
                if type(record) is Reserved and self.length > 1:  # half of all records
                    self._reserve(record)
                else:
                    self._take(record)
            except (BudgetExhausted, InvalidArgument) as error:
                raise BrokenChain(f"record {self.length + 1} breaks the rules: {error}") from None
            except (TypeError, ValueError, AttributeError, ArithmeticError):
                raise BrokenChain(f"record {self.length + 1} is not one that afresh wrote") from None
            self.length, self.head, self.latest = self.length + 1, head, record.at

    def _take(self, record: Record) -> None:
        kind = type(record)
        if (kind is Opened) != (self.length == 0) or (self.length == 1 and kind is not Planned):
            raise BrokenChain(f"record {self.length + 1} is of kind {kind_of(record)!r}, out of its place")
        if self.started is not None and kind is not Reserved:
            raise BrokenChain(f"record {self.length + 1} comes before the last coordinate of a vector")
        match record:  # the most frequent first
            case Reserved():
                self._reserve(record)
            case Answered():
                self._answer(record)
            case Opened():
                check_count("rows", record.rows)
                check_text("data", record.data)
                list(record.columns)
                bytes.fromhex(record.names)
                check_count("dealing", record.dealing)
                if record.sketch is not None:
                    check_text("sketch", record.sketch)
                self.opened = record
            case Planned():
                self.check_replan()
                self._plan(limits_of(record))
            case Closed():
                self.check_closing()
                self.closed = True
            case Stated():
                self._state(record)
            case Charged():
                outside = Outside(record.text, record.basis, record.charge, record.row_charge, record.answers)
                self.purse.pay_outside(self.purse.check_outside(outside))
                self.charged.append(record)
            case Divided():
                self.purse.check_shares(record.shares)
                self.purse.shares, self.divided = dict(record.shares), True

    def _plan(self, limits: Limits) -> None:
        self.exam = limits.exam(self._opened.rows)
        self.purse.plan(limits, self._opened.rows)
        self.entries.ends = limits.ends

    @property
    def limits(self) -> Limits | None:
        """The plan in force."""
        return self.purse.limits

    @property
    def shares(self) -> dict[str, int]:
        """The division in force; empty if the budget is not divided."""
        return self.purse.shares

    def spent(self, analyst: str | None = None) -> Spent:
        """Return what was paid for, and the caps: in total, or of what one analyst may use."""
        return self.purse.spent(analyst)

    @property
    def fixed(self) -> bool:
        """Whether the plan can no longer change: something was paid for, charged or divided under it."""
        return bool(self.entries or self.charged or self.divided)

    def check_replan(self) -> None:
        """Raise `InvalidArgument` once the plan is fixed."""
        if self.fixed:
            raise InvalidArgument("the plan was fixed by the first answer, charge or division, and cannot be replaced")

    def _reserve(self, record: Reserved) -> None:
        paid, known = self.entries.reserved, self.finest.get(record.digest)
        if record.number != len(paid) + 1:
            raise BrokenChain(f"record {self.length + 1} has number {record.number}, not {len(paid) + 1}")
        if known is not None and paid[known - 1].coarseness <= record.coarseness:
            raise BrokenChain(f"record {self.length + 1} pays a second time for question {record.number}")
        check_question(record)
        self._check_vector(record)
        if record.again is not None:
            self._look_again(record)
            self.looked[record.again] = record.number
        elif self.exam is not None and record.span is not None:
            self._examine(record)
        else:
            rows = 0 if record.span is None else self._open_rows(record.span)
            asked = Sum.of(counted(record), record.charge, record.row_charge, rows)
            if self.closed or not self.purse.clearly_fits(asked):
                self.check_open()
                self.purse.check([record], record.analyst, rows)
            self.purse.pay(asked, record.analyst)
        paid.append(record)
        self.entries.answered.append(None)
        self.finest[record.digest] = record.number

    def _check_vector(self, record: Reserved) -> None:
        """Check that a vector's coordinates are recorded in order, uninterrupted, with the first charged for all."""
        last, self.started = self.started, None
        if record.vector is None and last is None:  # nearly always
            return
        kind, size, answers, place = record.vector or ("", 0, 0, 0)
        expected = 0 if last is None else last.vector[3] + 1 if last.vector is not None else 0
        follows = last is None or (
            last.vector == (kind, size, answers, expected - 1)
            and (last.analyst, last.coarseness) == (record.analyst, record.coarseness)
        )
        if place != expected or not follows or (place and (record.charge or record.row_charge)):
            raise BrokenChain(f"record {self.length + 1} is not the next coordinate of a vector")
        if place < size - 1:
            self.started = record

    def _look_again(self, record: Reserved) -> None:
        """Take in a final look: a paid question, asked again after closing of all rows opened with it or later."""
        paid = self.entries.reserved
        first = paid[record.again - 1] if record.again and 1 <= record.again <= len(paid) else None
        if first is None or first.span is None or first.again is not None or record.again in self.looked:
            raise BrokenChain(f"record {self.length + 1} looks again at what it cannot look at")
        same = (first.text, first.bounds, first.levels) == (record.text, record.bounds, record.levels)
        named = record.digest == digest_again(first.digest) and record.charge == record.row_charge == 0
        if not (self.closed and same and named and record.span == (first.span[0], self._opened.rows)):
            raise BrokenChain(f"record {self.length + 1} is not the final look at question {first.number}")

    def _examine(self, record: Reserved) -> None:
        """Take in a question of the exam: one batch, once, from the rows kept for it, outside the budget."""
        if record.span != self.exam or (self.examined and self.batch != self.exam):
            raise BrokenChain(f"record {self.length + 1} asks for rows of the exam, which it cannot have")
        if record.analyst in self.shares or record.charge or record.row_charge:
            raise BrokenChain(f"record {self.length + 1} takes the exam in the name of someone with a share")
        self.batch, self.examined = self.exam, self.examined + 1

    def check_exam(self, analyst: str) -> None:
        """Raise unless this analyst may take the exam now."""
        if self.exam is None:
            raise InvalidArgument("the plan of this dataset keeps no rows for an exam")
        if analyst in self.shares:
            raise InvalidArgument(
                f"the exam is taken once for everyone, and {analyst} has only a share of the budget; the person who "
                "divided the budget can take it."
            )
        if self.examined:
            raise BudgetExhausted(
                asked=0,
                spent=self.purse.total.answers,
                questions=self.purse.total.answers,
                message=f"the exam has been taken, with {self.examined:,} question{'' if self.examined == 1 else 's'}: "
                "its rows are not fresh for other questions. Nothing was charged; repeating the exam is free.",
            )

    def _open_rows(self, span: tuple[int, int]) -> int:
        """Return how many rows this opens: once, in order, for one batch, which ends with its first answer."""
        start, stop = span
        if span == self.batch:
            return 0
        if not (start == self.opened_rows < stop <= self._opened.rows):
            raise BrokenChain(f"record {self.length + 1} opens the rows {start} to {stop}, which are not the next")
        self.batch, self.opened_rows = span, stop
        return stop - start

    def check_closing(self) -> None:
        """Raise `InvalidArgument` unless there are rounds to close."""
        if self.closed or self.exam is not None or not any(each.span is not None for each in self.entries.reserved):
            raise InvalidArgument("there are no open rounds to close")

    def check_open(self) -> None:
        """Raise `BudgetExhausted` once closed."""
        if self.closed:
            raise BudgetExhausted(
                asked=0,
                spent=self.purse.total.answers,
                questions=self.purse.total.answers,
                message="the rounds of this dataset were closed by a final look, so nothing new can be asked. Nothing "
                "was charged; repeats are free.",
            )

    def next_span(self, rows: int) -> tuple[int, int]:
        """Return the next rows that no question has seen; the purse decides whether there are enough."""
        return self.opened_rows, self.opened_rows + rows

    def rows_left(self, analyst: str) -> int:
        """Return how many rows this analyst may still open."""
        used, caps = self.purse.pot(analyst, self.shares)
        return max(min(caps.rows - used.rows, self._opened.rows - self.opened_rows), 0)

    def _answer(self, record: Answered) -> None:
        check_released(record)
        check_ends(record, self.entries.ends)
        self._take_answer(record.number, record)

    def _take_answer(self, number: int, answer: Answered | str) -> None:
        place, answered = number - 1, self.entries.answered
        if not 0 <= place < len(answered) or answered[place] is not None:
            raise BrokenChain(f"record {self.length + 1} answers question {number}, which is not open")
        self.batch = None  # anyone who knows an answer must ask other rows
        answered[place] = answer if isinstance(answer, str) else tuple(answer)
        self.entries.order.append(place)

    @property
    def released(self) -> Earlier:
        """What was released, in the order of the records, for mechanisms with a memory."""
        return Earlier(self.entries)

    def check_outcome(self, outcome: Outcome) -> None:
        """Raise `InvalidArgument` unless both ends lie on the plan's grid."""
        check_ends(outcome, self.entries.ends)

    def _state(self, record: Stated) -> None:
        statement = statement_of(record)
        self.check_statement(statement)
        if statement.question in self.stated:
            raise BrokenChain(f"record {self.length + 1} states something a second time")
        self.stated[statement.question] = record

    def check_statement(self, statement: Statement) -> None:
        """Raise `InvalidArgument` unless every part of a derived number was answered."""
        answers = [self.entries.answered[part - 1] for part in statement.parts if 1 <= part <= len(self.entries)]
        if not answers or len(answers) < len(statement.parts) or None in answers:
            raise InvalidArgument(f"{statement.text!r} follows from answers that do not exist")

    def stored(self, digest: str, coarseness: float) -> Entry | None:
        """Return the entry that serves this question, if it was paid for at this noise or less."""
        number = self.finest.get(digest)
        if number is None or self.entries.reserved[number - 1].coarseness > coarseness:
            return None
        return self.entries[number - 1]

    def terms(self, guard: int, seed: str) -> Terms:
        """Return the terms in force; `seed` must be the one they were made with."""
        opened = self._opened
        if hashlib.sha256(seed.encode()).hexdigest() != opened.seed_digest:
            raise BrokenChain("the seed is not the one the guard was opened with")
        return Terms(
            guard=guard,
            data=opened.data,
            rows=opened.rows,
            limits=self._planned,
            fixed=self.fixed,
            seed=seed,
            simulated=opened.simulated,
            new_rows=opened.new_rows,
            opened_at=opened.at,
            dealing=opened.dealing,
        )

    @property
    def _opened(self) -> Opened:
        if self.opened is None:
            raise BrokenChain("the chain has no records")
        return self.opened

    @property
    def _planned(self) -> Limits:
        if self.limits is None:
            raise BrokenChain("the chain has no plan")
        return self.limits
