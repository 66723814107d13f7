"""What a ledger keeps and promises; every backend implements `Ledger`.

A guard's path is: reserve the charge -> evaluate -> record the released number -> release it. Each step is
durable before the next begins, so that no crash can reveal a number nobody paid for. What is stored never
changes: an entry is written once, gets its number once, and is never removed. The released number is the
only thing in a ledger that depends on the rows.

A later version may add fields, each with a meaning for entries that lack it; it removes none and changes the
meaning of none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Protocol

from afresh.errors import BudgetExhausted, InvalidArgument

# k charges of I/k must fit a cap of I exactly k times, though I/k is rounded.
SLACK = Fraction(1, 10**9)
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Question:
    """What a guard wants to ask, and its charge; the charge never depends on the rows."""

    digest: str
    """SHA-256 of the canonical query; one digest is one question."""
    text: str
    """The canonical query, readable."""
    detail: str
    """JSON with everything needed to understand the question later."""
    charge: float
    """Nats."""

    def __post_init__(self) -> None:
        """Refuse what no ledger could store exactly."""
        _check_amount("charge", self.charge)
        _check_text("digest", self.digest)
        _check_text("text", self.text)
        _check_text("detail", self.detail)
        if not self.digest:
            raise InvalidArgument("digest is empty; it must be the hash of the canonical query")


@dataclass(frozen=True, slots=True)
class Entry:
    """One question, paid for; answered once `released` is there."""

    number: int
    """1, 2, ... in order of reservation within the guard, never reused: splitting takes it as its block."""
    digest: str
    text: str
    detail: str
    charge: float
    reserved_at: datetime
    released: float | None = None
    """The number the mechanism released; None while the question is only paid for."""
    answered_at: datetime | None = None
    new: bool = field(default=False, compare=False)
    """Whether the call that returned this paid for it; never stored."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What was fixed when the data were first opened; it stays in force for good."""

    fingerprint: str
    plan: str
    """JSON."""
    rows: int
    questions: int
    """The cap on the number of answers."""
    information: float
    """The cap on the sum of charges, in nats."""
    seed: str
    """32 bytes of OS entropy in hex, drawn when the terms were made; deals the rows for splitting."""
    simulated: bool
    """Whether the noise is predictable. Simulated guards never share anything with real ones."""
    created_at: datetime


class Ledger(Protocol):
    """Reserve, record, replay. Every failure of the storage is a `LedgerError`, and nothing is released."""

    def terms(self, fingerprint: str, *, simulated: bool = False) -> Terms | None:
        """The terms under which these data were first opened, if they ever were."""
        ...

    def open(
        self,
        fingerprint: str,
        *,
        plan: str,
        rows: int,
        questions: int,
        information: float,
        simulated: bool = False,
    ) -> Terms:
        """Get or make the terms; the first caller's stand, whatever later ones pass. Compare the plans."""
        ...

    def reserve(self, terms: Terms, questions: Sequence[Question]) -> list[Entry]:
        """Pay for the questions, all or none, and return their entries in the same order.

        A question that is in the ledger already, answered or only paid for, gets its entry and costs nothing:
        an entry without a released number is completed, not paid twice. If the new ones do not fit the caps,
        `BudgetExhausted` is raised and nothing is written.
        """
        ...

    def record(self, terms: Terms, entry: Entry, released: float) -> Entry:
        """Store the released number unless there is one; return what is stored, the only thing to release."""
        ...

    def record_many(self, terms: Terms, released: Sequence[tuple[Entry, float]]) -> list[Entry]:
        """Like `record` for many entries, all or none."""
        ...

    def entries(self, terms: Terms) -> list[Entry]:
        """Everything paid for, by number."""
        ...

    def spent(self, terms: Terms) -> tuple[int, float]:
        """How many answers were paid for, and their nats."""
        ...

    def close(self) -> None:
        """Free what the ledger holds. Idempotent."""
        ...


def check_terms(fingerprint: str, *, plan: str, rows: int, questions: int, information: float) -> None:
    """Refuse terms no ledger could store exactly."""
    _check_text("fingerprint", fingerprint)
    _check_text("plan", plan)
    if not fingerprint:
        raise InvalidArgument("fingerprint is empty; it must be a digest of the rows")
    _check_count("rows", rows)
    _check_count("questions", questions)
    _check_amount("information", information)


def check_released(released: float) -> None:
    """Refuse a number that is none, without quoting it: it is not released yet."""
    if not math.isfinite(released):
        raise InvalidArgument("the released number is not finite")


def check_budget(terms: Terms, *, count: int, spent: Fraction, new: Sequence[Question]) -> None:
    """Raise `BudgetExhausted` unless `new` fits the caps after `count` answers for `spent` nats.

    The sums are exact (a float is a fraction), so the outcome does not depend on the order of the charges.
    """
    cap = Fraction(terms.information) * (1 + SLACK)
    charge = sum((Fraction(question.charge) for question in new), Fraction(0))
    if count + len(new) <= terms.questions and spent + charge <= cap:
        return
    affordable = terms.questions - count
    dearest = Fraction(max(question.charge for question in new))
    if dearest:
        # The caller reads "n more are affordable", which must hold at the price it asked for.
        affordable = min(affordable, math.floor((cap - spent) / dearest))
    error = BudgetExhausted(asked=len(new), spent=count, questions=count + affordable)
    error.add_note(
        f"answers: {count} of {terms.questions} spent, {len(new)} asked; information: {float(spent):.6g} of "
        f"{terms.information:.6g} nats spent, {float(charge):.6g} asked"
    )
    raise error


def _check_amount(name: str, value: float) -> None:
    if not (math.isfinite(value) and value >= 0):
        raise InvalidArgument(f"{name} == {value}, must be finite and >= 0")


def _check_count(name: str, value: int) -> None:
    if not 0 <= value <= _LARGEST:
        raise InvalidArgument(f"{name} == {value}, must be between 0 and 2^63 - 1")


def _check_text(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name} == {value!a}, must be valid Unicode, without lone surrogates") from None
