"""A guard's account: the fold of its chain. Nothing else decides what was spent or may still be.

The rules are checked on every record that is read, not only before one is written: a chain that breaks them was
not written by afresh, and is refused. So whoever can read a chain, from a ledger or a receipt, can check it.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, overload

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
    check_released,
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
    answers,
    decode,
    kind_of,
)

_UNIT = 2**1074
"""Sums are whole numbers of 1/_UNIT, of which every finite float is a multiple: exact, whatever the order."""


@lru_cache(maxsize=4096)
def _exact(amount: float) -> int:
    """A float in units; most charges of a chain are the same few."""
    over, under = amount.as_integer_ratio()
    return over * (_UNIT // under)


@dataclass(slots=True)
class _Sum:
    """Answers and charges, in units."""

    answers: int = 0
    charge: int = 0
    row_charge: int = 0
    rows: int = 0
    """That were opened for batches."""

    @classmethod
    def of(cls, answers: int, charge: float, row_charge: float) -> _Sum:
        return cls(answers, _exact(charge), _exact(row_charge))

    def add(self, other: _Sum) -> None:
        self.answers += other.answers
        self.charge += other.charge
        self.row_charge += other.row_charge
        self.rows += other.rows

    def minus(self, other: _Sum) -> _Sum:
        charge, row_charge = self.charge - other.charge, self.row_charge - other.row_charge
        return _Sum(self.answers - other.answers, charge, row_charge, self.rows - other.rows)

    @property
    def nats(self) -> float:
        return self.charge / _UNIT


@dataclass(frozen=True)
class _Caps:
    """The most answers and nats, and the most that they may depend on one row; None: no limit."""

    answers: int
    nats: Fraction
    row_share: Fraction | None
    rows: int
    """The most rows that may be opened for batches."""

    @cached_property
    def charge(self) -> int:
        """The largest sum of charges that fits."""
        return math.floor(self.nats * SLACK * _UNIT)

    @cached_property
    def row_charge(self) -> float:
        return math.inf if self.row_share is None else math.floor(self.row_share * SLACK * _UNIT)


class Paid(Sequence[Entry]):
    """The entries of an account, in order; each is made when it is looked at, for a long chain has very many."""

    def __init__(self) -> None:
        """Nothing was paid for yet."""
        self.reserved: list[Reserved] = []
        self.answered: list[Answered | str | None] = []
        """By place; a text is an answer that nobody has looked at yet (see `Account.read`)."""
        self.order: list[int] = []
        """The places of the answers, in the order of their records."""
        self.ends = 1.0

    def __len__(self) -> int:
        """How many were paid for."""
        return len(self.reserved)

    @overload
    def __getitem__(self, place: int) -> Entry: ...

    @overload
    def __getitem__(self, place: slice) -> list[Entry]: ...

    def __getitem__(self, place: int | slice) -> Entry | list[Entry]:
        """The entry with the number `place + 1`."""
        if isinstance(place, slice):
            return [self[each] for each in range(len(self))[place]]
        return entry_of(self.reserved[place], self.answer(place))

    def answer(self, place: int) -> Answered | None:
        """What was released for a question; checked at the latest here, before anybody is told."""
        found = self.answered[place]
        if isinstance(found, str):
            found = self.answered[place] = self._checked(found, range(len(self))[place] + 1)
        return found

    def _checked(self, text: str, number: int) -> Answered:
        try:
            record = decode(text)
            if not isinstance(record, Answered) or record.number != number:
                raise BrokenChain
            check_released(record)
            check_ends(record, self.ends)
        except (BrokenChain, InvalidArgument, TypeError, ValueError, AttributeError, ArithmeticError):
            raise BrokenChain(
                f"the answer to question {number} is not one that afresh wrote, so it is not told. The ledger was "
                "changed by something else than afresh; restore the ledger from a copy."
            ) from None
        return record


@dataclass(slots=True)
class Account:
    """The state of one guard after the records read so far."""

    length: int = 0
    head: str = START
    opened: Opened | None = None
    limits: Limits | None = None
    latest: datetime | None = None
    entries: Paid = field(default_factory=Paid)
    trusted: int = 0
    """How many of the first records were read on the word of a checkpoint."""
    finest: dict[str, int] = field(default_factory=dict)
    """By digest, the number of the entry with the least noise: it serves every coarser question."""
    stated: dict[tuple[Any, ...], Stated] = field(default_factory=dict)
    """What was derived from answers, by what it is about; in order."""
    opened_rows: int = 0
    """How many of the shuffled rows were opened for batches, from the first on."""
    batch: tuple[int, int] | None = None
    """Those that were opened last, while nothing was answered since."""
    closed: bool = False
    """Whether nothing more may be asked, but for final looks."""
    exam: tuple[int, int] | None = None
    """The rows that the plan keeps for an exam."""
    examined: int = 0
    """How many questions the exam has, once it is taken."""
    looked: dict[int, int] = field(default_factory=dict)
    """The numbers of final looks, by that of the answer that they look at again."""
    charged: list[Charged] = field(default_factory=list)
    shares: dict[str, int] = field(default_factory=dict)
    divided: bool = False
    total: _Sum = field(default_factory=_Sum)
    outside: _Sum = field(default_factory=_Sum)
    whole: _Caps | None = None
    by_analyst: defaultdict[str, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    _released: list[Released] = field(default_factory=list)

    def read(self, records: Iterable[tuple[str, str | None]], trusted: int = 0) -> None:
        """Take in the next records, texts with the hashes that were stored for them if any were; or `BrokenChain`.

        Those before a broken one stay taken in. Of the first `trusted` records, which somebody says to have verified,
        the numbers and times of answers are only looked at when they are needed, and checked then: they decide nothing
        about what was spent. Everything else is checked whatever anybody says.
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
        match record:  # the most frequent first
            case Reserved():
                self._reserve(record)
            case Answered():
                self._answer(record)
            case Opened():
                check_count("rows", record.rows)
                check_text("data", record.data)
                list(record.columns)
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
                self.check_outside(Outside(record.text, record.basis, record.charge, record.row_charge, record.answers))
                self.charged.append(record)
                charged = _Sum.of(record.answers, record.charge, record.row_charge)
                self.total.add(charged)
                self.outside.add(charged)
            case Divided():
                self.check_shares(record.shares)
                self.shares, self.divided = dict(record.shares), True

    def _plan(self, limits: Limits) -> None:
        row_share = None if limits.row_share is None else Fraction(limits.row_share)
        self.limits, self.exam = limits, limits.exam(self._opened.rows)
        self.whole = _Caps(limits.answers, Fraction(limits.information), row_share, self._opened.rows)
        self.entries.ends = limits.ends

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
        if record.again is not None:
            self._look_again(record)
            self.looked[record.again] = record.number
        elif self.exam is not None and record.span is not None:
            self._examine(record)
        else:
            rows = 0 if record.span is None else self._open_rows(record.span)
            asked = _Sum(1, _exact(record.charge), _exact(record.row_charge), rows)
            if self.closed or self.shares or not _fits(self.total, self._whole, asked):
                self.check_budget([record], record.analyst, rows)
            self.total.add(asked)
            self.by_analyst[record.analyst].add(asked)
        paid.append(record)
        self.entries.answered.append(None)
        self.finest[record.digest] = record.number

    def _look_again(self, record: Reserved) -> None:
        """Once closed, a question may be asked again of all rows that were opened with it or later. It was paid for."""
        paid = self.entries.reserved
        first = paid[record.again - 1] if record.again and 1 <= record.again <= len(paid) else None
        if first is None or first.span is None or first.again is not None or record.again in self.looked:
            raise BrokenChain(f"record {self.length + 1} looks again at what it cannot look at")
        same = (first.text, first.bounds, first.levels) == (record.text, record.bounds, record.levels)
        named = record.digest == digest_again(first.digest) and record.charge == record.row_charge == 0
        if not (self.closed and same and named and record.span == (first.span[0], self._opened.rows)):
            raise BrokenChain(f"record {self.length + 1} is not the final look at question {first.number}")

    def _examine(self, record: Reserved) -> None:
        """A question of the exam: one batch, once, from the rows kept for it. It is no answer of the budget."""
        if record.span != self.exam or (self.examined and self.batch != self.exam):
            raise BrokenChain(f"record {self.length + 1} asks for rows of the exam, which it cannot have")
        if record.analyst in self.shares or record.charge or record.row_charge:
            raise BrokenChain(f"record {self.length + 1} takes the exam in the name of somebody with a share")
        self.batch, self.examined = self.exam, self.examined + 1

    def check_exam(self, analyst: str) -> None:
        """Raise unless this analyst may take the exam now."""
        if self.exam is None:
            raise InvalidArgument("the plan of these data keeps no rows for an exam")
        if analyst in self.shares:
            raise InvalidArgument(
                f"the exam is taken once for everybody, so it is not for {analyst}, who has a share; whoever divided "
                "the budget can take it."
            )
        if self.examined:
            raise BudgetExhausted(
                asked=0,
                spent=self.total.answers,
                questions=self.total.answers,
                message=f"the exam was taken, with {self.examined:,} question{'' if self.examined == 1 else 's'}: its "
                "rows are not fresh for others. Nothing was charged; its answers can be asked for again.",
            )

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
        if self.closed or self.exam is not None or not any(each.span is not None for each in self.entries.reserved):
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
        check_released(record)
        check_ends(record, self.entries.ends)
        self._take_answer(record.number, record)

    def _take_answer(self, number: int, answer: Answered | str) -> None:
        place, answered = number - 1, self.entries.answered
        if not 0 <= place < len(answered) or answered[place] is not None:
            raise BrokenChain(f"record {self.length + 1} answers question {number}, which is not open")
        self.batch = None  # whoever knows an answer asks other rows
        answered[place] = answer
        self.entries.order.append(place)

    @property
    def released(self) -> Sequence[Released]:
        """What was released, in the order of the records: what a mechanism with a memory goes by."""
        for place in self.entries.order[len(self._released) :]:
            answer = self.entries.answer(place)
            assert answer is not None
            self._released.append(answer.released)
        return self._released

    def check_outcome(self, outcome: Outcome) -> None:
        """Raise `InvalidArgument` unless both ends lie on the plan's grid."""
        check_ends(outcome, self._limits.ends)

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
            raise InvalidArgument(f"{statement.text!r} follows from answers that are not there")

    def stored(self, digest: str, coarseness: float) -> Entry | None:
        """The entry that serves this question, if it was paid for at this noise or less."""
        number = self.finest.get(digest)
        if number is None or self.entries.reserved[number - 1].coarseness > coarseness:
            return None
        return self.entries[number - 1]

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
        used, caps = (self.total, self._whole) if analyst is None else self._pot(analyst, self.shares)
        row_cap = self._whole.row_share
        return Spent(
            used.answers,
            used.nats,
            0.0 if analyst in self.shares else self.outside.nats,  # which does not touch a share
            caps.answers,
            float(caps.nats),
            None if row_cap is None else float(row_cap * SLACK - Fraction(self.total.row_charge, _UNIT)),
        )

    def check_budget(self, new: Sequence[Question | Reserved], analyst: str, rows: int = 0) -> None:
        """Raise `BudgetExhausted` unless the questions fit what is left, of the whole and of the analyst's share.

        `rows` are those that would be opened for them.
        """
        self.check_open()
        asked = _Sum(rows=rows)
        for question in new:
            asked.add(_Sum.of(1, question.charge, question.row_charge))
        if not _fits(self.total, self._whole, asked):
            raise _refusal(self.total, self._whole, asked, new, None)
        if not self.shares:
            return
        used, caps = self._pot(analyst, self.shares)
        if not _fits(used, caps, asked):
            raise _refusal(used, caps, asked, new, analyst if analyst in self.shares else "those without a share")

    def check_outside(self, outside: Outside) -> None:
        """Raise `BudgetExhausted` unless what was revealed outside fits what is left beside the shares."""
        asked = _Sum.of(outside.answers, outside.charge, outside.row_charge)
        used, caps = self._pot("", self.shares)
        if _fits(used, caps, asked):
            return
        count = f" and {outside.answers} answers" if outside.answers else ""
        beside = " beside the shares" if self.shares else ""
        raise BudgetExhausted(
            asked=outside.answers,
            spent=used.answers,
            questions=used.answers,
            message=f"what was revealed costs {outside.charge:.6g} nats{count}, more than is left{beside}: "
            f"{max((caps.charge - used.charge) / _UNIT, 0.0):.6g} nats and {caps.answers - used.answers} answers"
            f"{'' if caps.row_share is None else ', and what one row may matter'}. Nothing was recorded, but "
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

    @property
    def _whole(self) -> _Caps:
        if self.whole is None:
            raise BrokenChain("the chain has no plan")
        return self.whole

    def _pot(self, analyst: str, shares: Mapping[str, int]) -> tuple[_Sum, _Caps]:
        """What was spent from the pot this analyst draws from, and its caps: a share, or what no share takes."""
        if analyst in shares:
            return self.by_analyst[analyst], self._part([shares[analyst]])
        if not shares:
            return self.total, self._whole
        used, parts, whole = self.total, self._part(shares.values()), self._whole
        for name in shares:
            used = used.minus(self.by_analyst[name])
        # No share has a limit of its own on what one row may matter, so the whole's holds for all of them together.
        used.row_charge = self.total.row_charge
        rows = whole.rows - parts.rows
        return used, _Caps(whole.answers - parts.answers, whole.nats - parts.nats, whole.row_share, rows)

    def _part(self, shares: Iterable[int]) -> _Caps:
        """The caps of shares: that part of the whole, in answers and in nats."""
        limits, whole = self._limits, max(self._limits.questions, 1)
        answers = sum(share * limits.answers // whole for share in shares)
        rows = sum(share * self._opened.rows // whole for share in shares)
        return _Caps(answers, self._whole.nats * sum(shares) / whole, None, rows)


def _fits(used: _Sum, caps: _Caps, asked: _Sum) -> bool:
    return (
        used.answers + asked.answers <= caps.answers
        and used.rows + asked.rows <= caps.rows
        and used.charge + asked.charge <= caps.charge
        and used.row_charge + asked.row_charge <= caps.row_charge
    )


def _refusal(
    used: _Sum, caps: _Caps, asked: _Sum, new: Sequence[Question | Reserved], whose: str | None
) -> BudgetExhausted:
    if used.answers + asked.answers <= caps.answers and used.rows + asked.rows > caps.rows:
        return _too_few_rows(caps.rows - used.rows, asked.rows, used.answers, whose)
    affordable = caps.answers - used.answers
    # The caller reads "n more are affordable", which must hold at the price it asked for.
    if dearest := _exact(max(question.charge for question in new)):
        affordable = min(affordable, (caps.charge - used.charge) // dearest)
    heaviest = _exact(max(question.row_charge for question in new))
    if heaviest and caps.row_share is not None:
        affordable = min(affordable, int(caps.row_charge - used.row_charge) // heaviest)
    affordable = max(affordable, 0)
    error = BudgetExhausted(asked=asked.answers, spent=used.answers, questions=used.answers + affordable, analyst=whose)
    error.add_note(
        f"answers: {used.answers} of {caps.answers} spent, {asked.answers} asked; information: "
        f"{used.nats:.6g} of {float(caps.nats):.6g} nats spent, {asked.nats:.6g} asked"
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


def entry_of(record: Reserved, answered: Answered | None = None) -> Entry:
    """The entry that a reservation makes, and its answer if it has one."""
    return Entry(
        record.number,
        record.digest,
        record.text,
        record.charge,
        record.at,
        outcome=None if answered is None else outcome_of(answered),
        answered_at=None if answered is None else answered.at,
        coarseness=record.coarseness,
        analyst=record.analyst,
        bounds=record.bounds,
        levels=record.levels,
        own=record.own,
        guess=record.guess,
        span=record.span,
        again=record.again,
    )


def check_ends(made: Outcome | Answered, step: float) -> None:
    """Raise `InvalidArgument` unless both ends lie on the plan's grid."""
    if not ((made.low / step).is_integer() and (made.high / step).is_integer()):
        raise InvalidArgument(f"an end of the interval is not on the plan's public grid, whose step is {step!r}")


def outcome_of(record: Answered) -> Outcome:
    """What was released."""
    return Outcome(record.released, record.value, record.low, record.high)


def limits_of(record: Planned) -> Limits:
    """The plan and its caps."""
    caps = record.questions, record.answers, record.information, record.row_share
    return Limits(record.plan, *caps, grid=record.grid, ends=record.ends)


def statement_of(record: Stated) -> Statement:
    """The statement that was recorded."""
    numbers = record.value, record.low, record.high
    return Statement(record.text, record.rule, record.parameters, record.parts, record.bounds, *numbers)
