"""What goes in and out of a ledger: questions in, terms and entries out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

from afresh.errors import InvalidArgument
from afresh.ledger.records import Released

# k charges of I/k must fit a cap of I exactly k times, though I/k is rounded.
SLACK = 1 + Fraction(1, 10**9)
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Question:
    """What a guard wants to ask, and its charges, which never depend on the rows."""

    digest: str
    """SHA-256 of the canonical query; one digest is one question."""
    text: str
    """The canonical query, readable."""
    detail: str
    """JSON with everything needed to understand the question later."""
    charge: float
    """Nats."""
    row_charge: float = 0.0
    """What it adds to the most that all answers may depend on one row, where the method keeps that account."""
    method: str = ""
    coarseness: float = 1.0
    """How many times the plan's noise. An answer that is in the ledger serves every coarser question."""

    def __post_init__(self) -> None:
        """Refuse what no ledger could store exactly."""
        check_amount("charge", self.charge)
        check_amount("row_charge", self.row_charge)
        check_text("digest", self.digest)
        check_text("text", self.text)
        check_text("detail", self.detail)
        if not self.digest:
            raise InvalidArgument("digest is empty; it must be the hash of the canonical query")
        if not 1 <= self.coarseness < math.inf:
            raise InvalidArgument(f"coarseness == {self.coarseness}, must be finite and >= 1")


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
    released: Released | None = field(default=None, hash=False)
    """What the mechanism released; None while the question is only paid for."""
    answered_at: datetime | None = None
    coarseness: float = 1.0
    analyst: str = ""
    new: bool = field(default=False, compare=False)
    """Whether the call that returned this paid for it; never stored."""


@dataclass(frozen=True, slots=True)
class Outside:
    """Something that was revealed outside of the guard, with its charges."""

    text: str
    basis: Mapping[str, float] = field(hash=False)
    charge: float
    row_charge: float = 0.0
    answers: int = 0
    """How many noisy answers it counts for."""

    def __post_init__(self) -> None:
        """Refuse what no ledger could store exactly."""
        check_text("text", self.text)
        if not self.text.strip():
            raise InvalidArgument("a charge needs words that say what was revealed, for the record")
        check_amount("charge", self.charge)
        check_amount("row_charge", self.row_charge)
        check_count("answers", self.answers)
        for name, value in self.basis.items():
            check_amount(name, value)


@dataclass(frozen=True, slots=True)
class Terms:
    """What was fixed when the data were first opened; it stays in force for good."""

    fingerprint: str
    plan: str
    """JSON."""
    rows: int
    questions: int
    """How many answers at full price the caps are made for."""
    answers: int
    """The cap on the number of answers, of whatever price."""
    information: float
    """The cap on the sum of charges, in nats."""
    row_share: float | None
    """The cap on the sum of row charges; None where there is no such account."""
    seed: str
    """32 bytes of OS entropy in hex, drawn when the terms were made; deals the rows for splitting."""
    simulated: bool
    """Whether the noise is predictable. Simulated guards never share anything with real ones."""
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Spent:
    """What was paid for so far: by one analyst or all, inside the guard and outside."""

    answers: int
    information: float
    outside: float = 0.0
    """The part of `information` that was charged for what was revealed outside."""
    cap_answers: int = 0
    """How many answers there are, for this analyst."""
    cap_information: float = 0.0
    row_left: float | None = None
    """What all answers together may still add to the dependence on one row; None where there is no such account."""

    def affordable(self, charge: float, row_charge: float = 0.0) -> int:
        """How many more answers of these charges fit."""
        left = self.cap_answers - self.answers
        if charge > 0:
            nats = Fraction(self.cap_information) * SLACK - Fraction(self.information)
            left = min(left, math.floor(nats / Fraction(charge)))
        if row_charge > 0 and self.row_left is not None:
            left = min(left, math.floor(Fraction(self.row_left) / Fraction(row_charge)))
        return max(left, 0)


def check_terms(
    fingerprint: str,
    *,
    plan: str,
    rows: int,
    questions: int,
    answers: int,
    information: float,
    row_share: float | None,
) -> None:
    """Refuse terms no ledger could store exactly."""
    check_text("fingerprint", fingerprint)
    check_text("plan", plan)
    if not fingerprint or "\0" in fingerprint:  # which no server stores
        raise InvalidArgument(f"fingerprint == {fingerprint!a}, must be a digest of the rows")
    check_count("rows", rows)
    check_count("questions", questions)
    check_count("answers", answers)
    if answers < questions:
        raise InvalidArgument(f"answers == {answers}, must be at least questions == {questions}")
    check_amount("information", information)
    if row_share is not None:
        check_amount("row_share", row_share)


def check_released(released: Released) -> None:
    """Refuse a number that is none, without quoting it: it is not released yet."""
    numbers = released.values() if isinstance(released, Mapping) else (released,)
    if not all(map(math.isfinite, numbers)):
        raise InvalidArgument("the released number is not finite")


def plain(released: Released) -> Released:
    """The same numbers as Python's own floats, which a record can hold."""
    if isinstance(released, Mapping):
        return {str(name): float(value) for name, value in released.items()}
    return float(released)


def check_amount(name: str, value: float) -> None:
    """Refuse what is no amount."""
    if not (math.isfinite(value) and value >= 0):
        raise InvalidArgument(f"{name} == {value}, must be finite and >= 0")


def check_count(name: str, value: int) -> None:
    """Refuse what is no count, or too large a one."""
    if not 0 <= value <= _LARGEST:
        raise InvalidArgument(f"{name} == {value}, must be between 0 and 2^63 - 1")


def check_text(name: str, value: str) -> None:
    """Refuse what cannot be encoded."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} == {value!r}, must be text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name} == {value!a}, must be valid Unicode, without lone surrogates") from None
