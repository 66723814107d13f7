"""A guard's account: the fold of its chain. Nothing else decides what was spent or may still be.

The rules are checked on every record that is read, not only before one is written: a chain that breaks them was
not written by afresh, and is refused. So whoever can read a chain, from a ledger or a receipt, can check it.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from typing import Any

from afresh.errors import BrokenChain, BudgetExhausted, InvalidArgument
from afresh.ledger.base import (
    SLACK,
    Entry,
    Limits,
    Outcome,
    Outside,
    Question,
    Spent,
    Statement,
    Terms,
    check_count,
    check_question,
    check_text,
)
from afresh.ledger.records import (
    START,
    Answered,
    Charged,
    Closed,
    Divided,
    Opened,
    Planned,
    Record,
    Released,
    Reserved,
    Stated,
    decode,
    seal,
)


@dataclass(slots=True)
class _Sum:
    """Answers and charges. The sums are exact (a float is a fraction), whatever the order of the charges."""

    answers: int = 0
    charge: Fraction = Fraction(0)
    row_charge: Fraction | None = Fraction(0)  # None: unlimited
    rows: int = 0
    """That were opened for batches."""

    def add(self, answers: int, charge: float, row_charge: float, rows: int = 0) -> None:
        self.answers += answers
        self.rows += rows
        self.charge += Fraction(charge)
        self.row_charge = _row(self) + Fraction(row_charge)

    def subtract(self, other: _Sum) -> None:
        self.answers -= other.answers
        self.charge -= other.charge
        self.rows -= other.rows


@dataclass(slots=True)
class Account:
    """The state of one guard after the records read so far."""

    length: int = 0
    head: str = START
    opened: Opened | None = None
    limits: Limits | None = None
    latest: datetime | None = None
    entries: list[Entry] = field(default_factory=list)
    released: list[Released] = field(default_factory=list)
    """What was released, in the order of the records: what a mechanism with a memory goes by."""
    finest: dict[str, Entry] = field(default_factory=dict)
    """By digest, the entry with the least noise: it serves every coarser question."""
    stated: dict[tuple[Any, ...], Stated] = field(default_factory=dict)
    """What was derived from answers, by what it is about; in order."""
    opened_rows: int = 0
    """How many of the shuffled rows were opened for batches, from the first on."""
    batch: tuple[int, int] | None = None
    """Those that were opened last, while nothing was answered since."""
    closed: bool = False
    """Whether nothing more may be asked, but for final looks."""
    looked: dict[int, int] = field(default_factory=dict)
    """The numbers of final looks, by that of the answer that they look at again."""
    charged: list[Charged] = field(default_factory=list)
    shares: dict[str, int] = field(default_factory=dict)
    divided: bool = False
    total: _Sum = field(default_factory=_Sum)
    by_analyst: defaultdict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))

    def read(self, text: str, sealed: str) -> None:
        """Take in the next record, or raise `BrokenChain`."""
        if seal(self.head, text) != sealed:
            raise BrokenChain(f"record {self.length + 1} does not follow from the one before it")
        record = decode(text)
        if self.latest is not None and record.at < self.latest:
            raise BrokenChain(f"record {self.length + 1} is older than the one before it")
        expected = Opened if self.length == 0 else Planned if self.length == 1 else Record
        if not isinstance(record, expected) or (isinstance(record, Opened) and self.length > 0):
            raise BrokenChain(f"record {self.length + 1} is of kind {record.kind!r}, out of its place")
        try:
            self._take(record)
        except (BudgetExhausted, InvalidArgument) as error:
            raise BrokenChain(f"record {self.length + 1} breaks the rules: {error}") from None
        except (TypeError, ValueError, AttributeError, ArithmeticError):
            raise BrokenChain(f"record {self.length + 1} is not one that afresh wrote") from None
        self.length, self.head, self.latest = self.length + 1, sealed, record.at

    def _take(self, record: Record) -> None:
        match record:
            case Opened():
                check_count("rows", record.rows)
                check_text("data", record.data)
                list(record.columns)
                self.opened = record
            case Planned():
                self.check_replan()
                self.limits = limits_of(record)
            case Reserved():
                self._reserve(record)
            case Closed():
                self.check_closing()
                self.closed = True
            case Answered():
                self._answer(record)
            case Stated():
                self._state(record)
            case Charged():
                self.check_outside(Outside(record.text, record.basis, record.charge, record.row_charge, record.answers))
                self.charged.append(record)
                self.total.add(record.answers, record.charge, record.row_charge)
            case Divided():
                self.check_shares(record.shares)
                self.shares, self.divided = dict(record.shares), True

    @property
    def fixed(self) -> bool:
        """Whether the plan can no longer change: something was paid for, charged or divided under it."""
        return bool(self.entries or self.charged or self.divided)

    def check_replan(self) -> None:
        """Raise `InvalidArgument` once the plan is fixed."""
        if self.fixed:
            raise InvalidArgument("the plan was fixed by the first answer, charge or division, and cannot be replaced")

    def _reserve(self, record: Reserved) -> None:
        if record.number != len(self.entries) + 1:
            raise BrokenChain(f"record {self.length + 1} has number {record.number}, not {len(self.entries) + 1}")
        if self.stored(record.digest, record.coarseness) is not None:
            raise BrokenChain(f"record {self.length + 1} pays a second time for question {record.number}")
        check_question(record)
        entry = entry_of(record)
        if record.again is not None:
            self._look_again(record)
            self.looked[record.again] = record.number
        else:
            rows = 0 if record.span is None else self._open_rows(record.span)
            self.check_budget([record], record.analyst, rows)
            for spent in (self.total, self.by_analyst[record.analyst]):
                spent.add(1, record.charge, record.row_charge, rows)
        self.entries.append(entry)
        self.finest[record.digest] = entry

    def _look_again(self, record: Reserved) -> None:
        """Once closed, a question may be asked again of all rows that were opened with it or later. It was paid for."""
        first = self.entries[record.again - 1] if record.again and 1 <= record.again <= len(self.entries) else None
        if first is None or first.span is None or first.again is not None or record.again in self.looked:
            raise BrokenChain(f"record {self.length + 1} looks again at what it cannot look at")
        same = (first.text, first.bounds, first.levels) == (record.text, record.bounds, record.levels)
        named = record.digest == digest_again(first.digest) and record.charge == record.row_charge == 0
        if not (self.closed and same and named and record.span == (first.span[0], self._opened.rows)):
            raise BrokenChain(f"record {self.length + 1} is not the final look at question {first.number}")

    def _open_rows(self, span: tuple[int, int]) -> int:
        """How many it opens: once, in order, for the questions of one batch, which end with its first answer."""
        start, stop = span
        if span == self.batch:
            return 0
        if not (start == self.opened_rows < stop <= self._opened.rows):
            raise BrokenChain(f"record {self.length + 1} opens the rows {start} to {stop}, which are not the next")
        self.batch, self.opened_rows = span, stop
        return stop - start

    def check_closing(self) -> None:
        """Raise `InvalidArgument` unless there are rounds to close."""
        if self.closed or not any(entry.span is not None for entry in self.entries):
            raise InvalidArgument("there are no open rounds to close")

    def check_open(self) -> None:
        """Raise `BudgetExhausted` once closed."""
        if self.closed:
            raise BudgetExhausted(
                asked=0,
                spent=self.total.answers,
                questions=self.total.answers,
                message="the rounds of these data were closed by a final look, after which nothing new can be asked of "
                "them. Nothing was charged; repeats are free.",
            )

    def next_span(self, rows: int) -> tuple[int, int]:
        """So many rows that no question has seen; whether they are there, `check_budget` says."""
        return self.opened_rows, self.opened_rows + rows

    def rows_left(self, analyst: str) -> int:
        """How many rows this analyst may still open."""
        used, caps = self._pot(analyst, self.shares)
        return max(min(caps.rows - used.rows, self._opened.rows - self.opened_rows), 0)

    def _answer(self, record: Answered) -> None:
        self.batch = None  # whoever knows an answer asks other rows
        place = record.number - 1
        if not 0 <= place < len(self.entries) or self.entries[place].outcome is not None:
            raise BrokenChain(f"record {self.length + 1} answers question {record.number}, which is not open")
        outcome = Outcome(record.released, record.value, record.low, record.high)
        self.check_outcome(outcome)
        entry = replace(self.entries[place], outcome=outcome, answered_at=record.at)
        self.entries[place] = entry
        self.released.append(record.released)
        if self.finest[entry.digest].number == entry.number:
            self.finest[entry.digest] = entry

    def check_outcome(self, outcome: Outcome) -> None:
        """Raise `InvalidArgument` unless both ends lie on the plan's grid."""
        ends = self._limits.ends
        if not ((outcome.low / ends).is_integer() and (outcome.high / ends).is_integer()):
            raise InvalidArgument(f"an end of the interval is not on the plan's public grid, whose step is {ends!r}")

    def _state(self, record: Stated) -> None:
        statement = statement_of(record)
        self.check_statement(statement)
        if statement.question in self.stated:
            raise BrokenChain(f"record {self.length + 1} states something a second time")
        self.stated[statement.question] = record

    def check_statement(self, statement: Statement) -> None:
        """Raise `InvalidArgument` unless every part of a derived number was answered."""
        entries = [self.entries[part - 1] for part in statement.parts if 1 <= part <= len(self.entries)]
        if not entries or len(entries) < len(statement.parts) or any(entry.outcome is None for entry in entries):
            raise InvalidArgument(f"{statement.text!r} follows from answers that are not there")

    def stored(self, digest: str, coarseness: float) -> Entry | None:
        """The entry that serves this question, if it was paid for at this noise or less."""
        entry = self.finest.get(digest)
        return entry if entry is not None and entry.coarseness <= coarseness else None

    def terms(self, guard: int, seed: str) -> Terms:
        """The terms in force; `seed` must be the one they were made with."""
        opened = self._opened
        if hashlib.sha256(seed.encode()).hexdigest() != opened.seed_digest:
            raise BrokenChain("the seed is not the one the guard was opened with")
        return Terms(
            guard=guard,
            data=opened.data,
            rows=opened.rows,
            limits=self._limits,
            fixed=self.fixed,
            seed=seed,
            simulated=opened.simulated,
            new_rows=opened.new_rows,
            opened_at=opened.at,
        )

    def spent(self, analyst: str | None = None) -> Spent:
        """What was paid for, and the caps: of all, or of what one analyst may use."""
        used, caps = (self.total, self._whole()) if analyst is None else self._pot(analyst, self.shares)
        shared = analyst in self.shares  # a share is not touched by what was revealed outside
        outside = sum((Fraction(each.charge) for each in self.charged if not shared), Fraction(0))
        row_cap = self._limits.row_share
        return Spent(
            used.answers,
            float(used.charge),
            float(outside),
            caps.answers,
            float(caps.charge),
            None if row_cap is None else float(Fraction(row_cap) * SLACK - _row(self.total)),
        )

    def check_budget(self, new: Sequence[Question | Reserved], analyst: str, rows: int = 0) -> None:
        """Raise `BudgetExhausted` unless the questions fit what is left, of the whole and of the analyst's share.

        `rows` are those that would be opened for them.
        """
        self.check_open()
        asked = _Sum(rows=rows)
        for question in new:
            asked.add(1, question.charge, question.row_charge)
        if not _fits(self.total, self._whole(), asked):
            raise _refusal(self.total, self._whole(), asked, new, None)
        used, caps = self._pot(analyst, self.shares)
        if not _fits(used, caps, asked):
            raise _refusal(used, caps, asked, new, analyst if analyst in self.shares else "those without a share")

    def check_outside(self, outside: Outside) -> None:
        """Raise `BudgetExhausted` unless what was revealed outside fits what is left beside the shares."""
        asked, (used, caps) = _Sum(), self._pot("", self.shares)
        asked.add(outside.answers, outside.charge, outside.row_charge)
        if _fits(used, caps, asked):
            return
        count = f" and {outside.answers} answers" if outside.answers else ""
        beside = " beside the shares" if self.shares else ""
        raise BudgetExhausted(
            asked=outside.answers,
            spent=used.answers,
            questions=used.answers,
            message=f"what was revealed costs {outside.charge:.6g} nats{count}, more than is left{beside}: "
            f"{max(float(caps.charge - used.charge), 0.0):.6g} nats and {caps.answers - used.answers} answers"
            f"{'' if caps.row_charge is None else ', and what one row may matter'}. Nothing was recorded, but "
            "intervals of questions asked after it was known do not hold: ask other data.",
        )

    def check_shares(self, shares: Mapping[str, int]) -> None:
        """Raise `InvalidArgument` unless the shares fit the whole and what everybody has spent already."""
        for name, share in shares.items():
            named = isinstance(name, str) and name.strip()
            if not named or isinstance(share, bool) or not isinstance(share, int) or share < 0:
                raise InvalidArgument(f"share {name!r}: {share!r}, must be a name and a whole number of answers")
        whole, wanted = self._limits.questions, sum(shares.values())
        if wanted > whole:
            raise InvalidArgument(f"the shares add up to {wanted} answers, but the whole has {whole}")
        for name in (*shares, ""):
            used, caps = self._pot(name, shares)
            if not _fits(used, caps, _Sum()):
                who, has = (name, shares[name]) if name else ("those without a share", whole - wanted)
                raise InvalidArgument(f"{who} would have {has} answers, but more than that were spent already")

    @property
    def _opened(self) -> Opened:
        if self.opened is None:
            raise BrokenChain("the chain has no records")
        return self.opened

    @property
    def _limits(self) -> Limits:
        if self.limits is None:
            raise BrokenChain("the chain has no plan")
        return self.limits

    def _whole(self) -> _Sum:
        limits = self._limits
        row = None if limits.row_share is None else Fraction(limits.row_share)
        return _Sum(limits.answers, Fraction(limits.information), row, self._opened.rows)

    def _pot(self, analyst: str, shares: Mapping[str, int]) -> tuple[_Sum, _Sum]:
        """What was spent from the pot this analyst draws from, and its caps: a share, or what no share takes."""
        parts = {name: self._part(share) for name, share in shares.items()}
        if analyst in parts:
            return self.by_analyst[analyst], parts[analyst]
        used, caps = replace(self.total), self._whole()
        for name, part in parts.items():
            used.subtract(self.by_analyst[name])
            caps.subtract(part)
        return used, caps

    def _part(self, share: int) -> _Sum:
        """The caps of a share: that part of the whole, in answers and in nats."""
        limits, whole = self._limits, max(self._limits.questions, 1)
        rows = self._opened.rows * share // whole
        return _Sum(share * limits.answers // whole, Fraction(limits.information) * share / whole, None, rows)


def _fits(used: _Sum, caps: _Sum, asked: _Sum) -> bool:
    return (
        used.answers + asked.answers <= caps.answers
        and used.rows + asked.rows <= caps.rows
        and used.charge + asked.charge <= caps.charge * SLACK
        and (caps.row_charge is None or _row(used) + _row(asked) <= caps.row_charge * SLACK)
    )


def _row(amount: _Sum) -> Fraction:
    return amount.row_charge or Fraction(0)


def _refusal(
    used: _Sum, caps: _Sum, asked: _Sum, new: Sequence[Question | Reserved], whose: str | None
) -> BudgetExhausted:
    if used.answers + asked.answers <= caps.answers and used.rows + asked.rows > caps.rows:
        return _too_few_rows(caps.rows - used.rows, asked.rows, used.answers, whose)
    affordable = caps.answers - used.answers
    if dearest := Fraction(max(question.charge for question in new)):
        # The caller reads "n more are affordable", which must hold at the price it asked for.
        affordable = min(affordable, math.floor((caps.charge * SLACK - used.charge) / dearest))
    heaviest = Fraction(max(question.row_charge for question in new))
    if heaviest and caps.row_charge is not None:
        affordable = min(affordable, math.floor((caps.row_charge * SLACK - _row(used)) / heaviest))
    affordable = max(affordable, 0)
    error = BudgetExhausted(asked=asked.answers, spent=used.answers, questions=used.answers + affordable, analyst=whose)
    error.add_note(
        f"answers: {used.answers} of {caps.answers} spent, {asked.answers} asked; information: "
        f"{float(used.charge):.6g} of {float(caps.charge):.6g} nats spent, {float(asked.charge):.6g} asked"
    )
    return error


def _too_few_rows(left: int, asked: int, answers: int, whose: str | None) -> BudgetExhausted:
    beside = "" if whose is None else f" for {whose}"
    return BudgetExhausted(
        asked=0,
        spent=answers,
        questions=answers,
        message=f"this round takes {asked:,} rows that no question has seen, and {max(left, 0):,} are left{beside}. "
        "Nothing was charged; repeats are free.",
        analyst=whose,
    )


def digest_again(digest: str) -> str:
    """The digest of a final look at a question."""
    return hashlib.sha256(f"{digest} final look".encode()).hexdigest()


def entry_of(record: Reserved) -> Entry:
    """The entry that a reservation makes."""
    return Entry(
        record.number,
        record.digest,
        record.text,
        record.charge,
        record.at,
        coarseness=record.coarseness,
        analyst=record.analyst,
        bounds=record.bounds,
        levels=record.levels,
        own=record.own,
        guess=record.guess,
        span=record.span,
        again=record.again,
    )


def limits_of(record: Planned) -> Limits:
    """The plan and its caps."""
    caps = record.questions, record.answers, record.information, record.row_share
    return Limits(record.plan, *caps, grid=record.grid, ends=record.ends)


def statement_of(record: Stated) -> Statement:
    """The statement that was recorded."""
    numbers = record.value, record.low, record.high
    return Statement(record.text, record.rule, record.parameters, record.parts, record.bounds, *numbers)
