"""What goes in and out of a ledger: questions in, terms and entries out."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from typing import Any

from afresh.errors import InvalidArgument
from afresh.ledger.records import Answered, Released, Reserved

# A cap of I must admit exactly k charges of I/k, although I/k is rounded.
SLACK = 1 + Fraction(1, 10**9)
_LARGEST = 2**63 - 1


# New plans round the ends of intervals outward to this grid of [0, 1]. It is far finer than any interval, and far
# coarser than the differences between two processors' elementary functions. A plan keeps the grid it was made with.
ENDS = 2.0**-40


@dataclass(frozen=True, slots=True)
class Question:
    """What a guard wants to ask, and its charges, which never depend on the rows."""

    digest: str
    """A hash of the canonical query; one digest is one question."""
    text: str
    """What the question means, in readable words."""
    charge: float
    """Nats."""
    row_charge: float = 0.0
    """What it adds to the bound on how much all answers depend on one row, if the method keeps that account."""
    coarseness: float = 1.0
    """The multiple of the plan's noise. An answer in the ledger serves every coarser question."""
    bounds: tuple[float, float] = (0.0, 1.0)
    levels: int | None = None
    own: bool = True
    """Whether it is asked in its own right, not as part of a statement."""
    guess: tuple[float, float] | None = None
    vector: tuple[str, int, int, int] | None = None
    """If it is a coordinate of a vector: kind, size, how many answers the vector counts as, and its place."""

    def __post_init__(self) -> None:
        """Refuse what no ledger could store exactly."""
        check_question(self)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was released for a question, with its value and interval on [0, 1]; the ends are on the plan's grid."""

    released: Released = field(hash=False)
    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse values that cannot be an outcome."""
        check_released(self)


def outcome(released: Released, value: float, low: float, high: float, *, ends: float) -> Outcome:
    """Return what is recorded of a released number: Python's own floats, ends rounded outward to the plan's grid."""
    plain = {str(k): float(v) for k, v in released.items()} if isinstance(released, Mapping) else float(released)
    low, high = max(math.floor(low / ends) * ends, 0.0), min(math.ceil(high / ends) * ends, 1.0)
    return Outcome(plain, min(max(float(value), low), high), low, high)


@dataclass(frozen=True, slots=True)
class Entry:
    """One question, paid for; answered once it has an `outcome`."""

    number: int
    """1, 2, ... in order of reservation within the guard, never reused: splitting uses it as the block's number."""
    digest: str
    text: str
    charge: float
    reserved_at: datetime
    outcome: Outcome | None = field(default=None, hash=False)
    """What was released; None while the question is only paid for."""
    answered_at: datetime | None = None
    coarseness: float = 1.0
    analyst: str = ""
    bounds: tuple[float, float] = (0.0, 1.0)
    levels: int | None = None
    own: bool = True
    guess: tuple[float, float] | None = None
    span: tuple[int, int] | None = None
    again: int | None = None
    vector: tuple[str, int, int, int] | None = None
    new: bool = field(default=False, compare=False)
    """Whether the call that returned this paid for it; never stored."""

    @property
    def counts(self) -> int:
        """The number of answers it counts as."""
        return counted(self)


@dataclass(frozen=True, slots=True)
class Statement:
    """A number derived from answers by a named rule, on its own scale."""

    text: str
    rule: str
    parameters: Mapping[str, Any] = field(hash=False)
    parts: tuple[int, ...]
    bounds: tuple[float, float]
    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        """Refuse what no ledger could store exactly."""
        check_text("text", self.text)
        check_text("rule", self.rule)
        check_bounds(self.bounds)
        if not all(map(math.isfinite, (self.value, self.low, self.high))):
            raise InvalidArgument("the derived number is not finite")
        if not self.bounds[0] <= self.low <= self.value <= self.high <= self.bounds[1]:
            raise InvalidArgument("the derived number does not lie in its interval")

    @property
    def question(self) -> tuple[str, str, str, tuple[int, ...]]:
        """What it is about: two statements with the same question are one statement."""
        return self.text, self.rule, json.dumps(self.parameters, sort_keys=True), self.parts


@dataclass(frozen=True, slots=True)
class Outside:
    """Something revealed outside the guard, with its charges."""

    text: str
    basis: Mapping[str, float] = field(hash=False)
    charge: float
    row_charge: float = 0.0
    answers: int = 0
    """The number of noisy answers it counts as."""

    def __post_init__(self) -> None:
        """Refuse what no ledger could store exactly."""
        check_text("text", self.text)
        if not self.text.strip():
            raise InvalidArgument("a charge needs text that says what was revealed, for the record")
        check_amount("charge", self.charge)
        check_amount("row_charge", self.row_charge)
        check_count("answers", self.answers)
        for name, value in self.basis.items():
            check_amount(name, value)


@dataclass(frozen=True, slots=True)
class Limits:
    """A plan with the caps that enforce it, and the grids on which what it releases lies."""

    plan: Mapping[str, Any] = field(hash=False)
    """The method and its constants."""
    questions: int
    """The number of answers at full price the caps are made for."""
    answers: int
    """The cap on the number of answers at any price."""
    information: float
    """The cap on the sum of charges, in nats."""
    row_share: float | None = None
    """The cap on the sum of row charges; None if there is no such account."""
    grid: float | None = None
    """The step of the grid on which noise lands; None if the method adds none."""
    ends: float = ENDS
    """The step of the grid of [0, 1] to which the ends of intervals are rounded outward."""

    def exam(self, rows: int) -> tuple[int, int] | None:
        """Return which of this many rows, by place after the shuffle, are kept for an exam; None if none are."""
        kept = self.plan.get("exam", 0)
        if isinstance(kept, bool) or not isinstance(kept, int) or not 0 <= kept <= rows:
            raise InvalidArgument(f"the plan keeps {kept!r} of {rows} rows for an exam")
        return (rows - kept, rows) if kept else None

    def __post_init__(self) -> None:
        """Refuse what no ledger could store exactly."""
        check_plan(self.plan)
        check_count("questions", self.questions)
        check_count("answers", self.answers)
        if self.answers < self.questions:
            raise InvalidArgument(f"answers == {self.answers}, must be at least questions == {self.questions}")
        check_amount("information", self.information)
        if self.row_share is not None:
            check_amount("row_share", self.row_share)
        if self.grid is not None:
            _check_step("grid", self.grid)
        _check_step("ends", self.ends)
        if self.ends > 1:
            raise InvalidArgument(f"ends == {self.ends!r}, must be at most 1: ends of intervals lie in [0, 1]")


@dataclass(frozen=True, slots=True)
class Terms:
    """A guard as its ledger knows it: the rows, the plan, and whether that may still change."""

    guard: int
    """The number of the guard in the ledger."""
    data: str
    """The keyed name of the rows, which may be published."""
    rows: int
    limits: Limits
    fixed: bool
    """Whether the plan is fixed: something was answered, charged or divided."""
    seed: str
    """32 bytes of OS entropy in hex, drawn when the data was first opened; it shuffles rows and keys hashes."""
    simulated: bool
    """Whether the noise is predictable."""
    new_rows: str | None
    opened_at: datetime
    dealing: int
    """The rule by which rows get their places, if the method deals them."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was paid for so far, by one analyst or all, inside the guard and outside."""

    answers: int
    information: float
    outside: float = 0.0
    """The part of `information` that was charged for what was revealed outside."""
    cap_answers: int = 0
    """The cap on the number of answers, for this analyst."""
    cap_information: float = 0.0
    row_left: float | None = None
    """What all answers together may still add to the dependence on one row; None if there is no such account."""

    def affordable(self, charge: float, row_charge: float = 0.0) -> int:
        """Return how many more answers with these charges fit."""
        left = self.cap_answers - self.answers
        if charge > 0:
            nats = Fraction(self.cap_information) * SLACK - Fraction(self.information)
            left = min(left, math.floor(nats / Fraction(charge)))
        if row_charge > 0 and self.row_left is not None:
            left = min(left, math.floor(Fraction(self.row_left) / Fraction(row_charge)))
        return max(left, 0)


def counted(asked: Question | Reserved | Entry) -> int:
    """Return the number of answers a question counts as; a vector's first coordinate counts for all of them."""
    if asked.vector is None:
        return 1
    _, _, answers, place = asked.vector
    return 0 if place else answers


def check_question(asked: Question | Reserved) -> None:
    """Refuse what no ledger could store exactly, before it is written and when it is read."""
    if _is_plain(asked):  # nearly always, and there may be very many to read
        return
    check_amount("charge", asked.charge)
    check_amount("row_charge", asked.row_charge)
    check_text("digest", asked.digest)
    check_text("text", asked.text)
    check_bounds(asked.bounds)
    if not asked.digest:
        raise InvalidArgument("digest is empty; it must be the hash of the canonical query")
    if not 0 < asked.coarseness < math.inf:
        raise InvalidArgument(f"coarseness == {asked.coarseness}, must be finite and positive")
    if asked.vector is not None:
        kind, *numbers = asked.vector
        check_text("the kind of a vector", kind)
        if len(numbers) != 3 or any(isinstance(n, bool) or not isinstance(n, int) for n in numbers):
            raise InvalidArgument(f"vector == {asked.vector}, must be a kind and three whole numbers")
        size, answers, place = numbers
        if not (0 <= place < size and 1 <= answers <= size):
            raise InvalidArgument(f"vector == {asked.vector}, must have a place below its size, and 1 to size answers")


def _is_plain(asked: Question | Reserved) -> bool:
    low, high = asked.bounds
    return (
        0 <= asked.charge < math.inf
        and 0 <= asked.row_charge < math.inf
        and 1 <= asked.coarseness < math.inf
        and -math.inf < low < high < math.inf
        and type(asked.digest) is type(asked.text) is str
        and asked.digest.isascii()
        and asked.text.isascii()
        and asked.digest != ""
        and asked.vector is None
    )


def check_released(made: Outcome | Answered) -> None:
    """Refuse a value no mechanism releases, without quoting it: it may not be released yet."""
    released, ordered = made.released, 0 <= made.low <= made.value <= made.high <= 1
    if ordered and type(released) is float and math.isfinite(released):
        return
    numbers = released.values() if isinstance(released, Mapping) else (released,)
    if not all(map(math.isfinite, (*numbers, made.value, made.low, made.high))):
        raise InvalidArgument("the released number is not finite")
    if not ordered:
        raise InvalidArgument("the released number does not lie in its interval")


def check_ends(made: Outcome | Answered, step: float) -> None:
    """Raise `InvalidArgument` unless both ends lie on the plan's grid."""
    if not ((made.low / step).is_integer() and (made.high / step).is_integer()):
        raise InvalidArgument(f"an end of the interval is not on the plan's public grid, whose step is {step!r}")


def check_plan(plan: Mapping[str, Any]) -> None:
    """Refuse anything but a plan: constants by name, as in JSON."""
    if not isinstance(plan, Mapping):
        raise InvalidArgument(f"plan == {plan!r}, must be a mapping of names to constants")
    try:
        text = json.dumps(plan, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError):
        raise InvalidArgument(f"plan == {plan!r}, must hold texts and finite numbers only") from None
    check_text("plan", text)


def check_amount(name: str, value: float) -> None:
    """Refuse an invalid amount."""
    if not (math.isfinite(value) and value >= 0):
        raise InvalidArgument(f"{name} == {value}, must be finite and >= 0")


def _check_step(name: str, value: float) -> None:
    """Refuse a step to which a number cannot be rounded exactly."""
    if not (math.isfinite(value) and value > 0 and math.frexp(value)[0] == 0.5):
        raise InvalidArgument(f"{name} == {value!r}, must be a power of two")


def check_count(name: str, value: int) -> None:
    """Refuse an invalid or too large count."""
    if not isinstance(value, int) or not 0 <= value <= _LARGEST:
        raise InvalidArgument(f"{name} == {value}, must be between 0 and 2^63 - 1")


def check_bounds(bounds: tuple[float, float]) -> None:
    """Refuse an invalid scale."""
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidArgument(f"bounds == {bounds}, must be two finite numbers in order")


def check_text(name: str, value: str) -> None:
    """Refuse text that cannot be encoded."""
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} == {value!r}, must be text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidArgument(f"{name} == {value!a}, must be valid Unicode, without lone surrogates") from None
