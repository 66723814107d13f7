"""Translates between records and what goes in and out of a ledger."""

from __future__ import annotations

import hashlib
from datetime import datetime

from afresh.ledger.base import Entry, Limits, Outcome, Question, Statement
from afresh.ledger.records import Answered, Planned, Reserved, Stated


def digest_again(digest: str) -> str:
    """The digest of a final look at a question."""
    return hashlib.sha256(f"{digest} final look".encode()).hexdigest()


def entry_of(record: Reserved, answered: Answered | None = None, *, new: bool = False) -> Entry:
    """Return the entry of a reservation, with its answer if it has one; `new` if it was paid for just now."""
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
        vector=record.vector,
        new=new,
    )


def outcome_of(record: Answered) -> Outcome:
    """Return what was released."""
    return Outcome(record.released, record.value, record.low, record.high)


def limits_of(record: Planned) -> Limits:
    """The plan and its caps."""
    caps = record.questions, record.answers, record.information, record.row_share
    return Limits(record.plan, *caps, grid=record.grid, ends=record.ends)


def statement_of(record: Stated) -> Statement:
    """The statement that was recorded."""
    numbers = record.value, record.low, record.high
    return Statement(record.text, record.rule, record.parameters, record.parts, record.bounds, *numbers)


def planned(now: datetime, analyst: str, limits: Limits) -> Planned:
    """A plan, as it is recorded."""
    return Planned(
        at=now,
        analyst=analyst,
        plan=dict(limits.plan),
        questions=limits.questions,
        answers=limits.answers,
        information=float(limits.information),
        row_share=None if limits.row_share is None else float(limits.row_share),
        grid=None if limits.grid is None else float(limits.grid),
        ends=float(limits.ends),
    )


def reserved(question: Question, now: datetime, analyst: str, number: int, span: tuple[int, int] | None) -> Reserved:
    """Return the record of a question, paid for, with the rows that were opened for it."""
    return Reserved(
        at=now,
        analyst=analyst,
        number=number,
        digest=question.digest,
        text=question.text,
        bounds=question.bounds,
        levels=question.levels,
        own=question.own,
        coarseness=float(question.coarseness),
        charge=float(question.charge),
        row_charge=float(question.row_charge),
        guess=question.guess,
        span=span,
        again=None,
        vector=question.vector,
    )


def looking(entry: Entry, now: datetime, analyst: str, rows: int, number: int) -> Reserved:
    """Return the record of a final look at a question, on all rows opened with it or later."""
    assert entry.span is not None
    return Reserved(
        at=now,
        analyst=analyst,
        number=number,
        digest=digest_again(entry.digest),
        text=entry.text,
        bounds=entry.bounds,
        levels=entry.levels,
        own=entry.own,
        coarseness=1.0,
        charge=0.0,
        row_charge=0.0,
        guess=None,
        span=(entry.span[0], rows),
        again=entry.number,
        vector=None,
    )


def stated(now: datetime, analyst: str, statement: Statement) -> Stated:
    """A derived number, as it is recorded."""
    return Stated(
        at=now,
        analyst=analyst,
        text=statement.text,
        rule=statement.rule,
        parameters=dict(statement.parameters),
        parts=statement.parts,
        bounds=statement.bounds,
        value=statement.value,
        low=statement.low,
        high=statement.high,
    )
