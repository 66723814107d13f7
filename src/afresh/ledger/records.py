"""The records of a guard's chain, and the hash that links them.

A guard is nothing but its chain: whose rows they are, the plan, every question paid for, every number released with
its interval, every number derived from those, every charge from outside, every division of the budget, in order. A
record is written once, as canonical JSON; the hash of a record covers its text and the hash before it, so that
editing, dropping or reordering any record changes every hash after it, up to the head that receipts and the guard's
own row carry. What was released is read back from its record ever after and never computed again: elementary functions
differ between processors in their last bits.

How records may evolve. A later version may add kinds, and add fields, each with a meaning for the records that
lack it; it removes none, renames none and changes the meaning of none, because the old text is what the hashes
cover. A record of a version that this code does not know is refused, never skipped.

Version 2 says of a question how many values it has, where version 1 said whether it has two (`binary`), and which rows
were opened for its batch, where version 1 opened none; it can be closed, and then looked at again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, ClassVar

from afresh.errors import BrokenChain

Released = float | Mapping[str, float]
"""What a mechanism releases: one number, or a few named ones."""

VERSION = 2
START = ""  # the hash before the first record


@dataclass(frozen=True, slots=True)
class Opened:
    """The first record: whose rows they are. Everything that follows from the rows themselves is keyed."""

    kind: ClassVar[str] = "opened"
    at: datetime
    analyst: str
    data: str
    """A keyed hash of the rows' fingerprint. The key, the guard's seed, stays in the ledger: a plain hash of few
    possible tables would tell which one it is."""
    columns: Sequence[Mapping[str, str | None]] = field(hash=False)
    """Keyed hashes of single columns, by which rows are known again when a table was edited."""
    new_rows: str | None
    """Why rows that look like others in this ledger are not theirs, in the words of whoever opened them."""
    simulated: bool
    rows: int
    seed_digest: str
    """SHA-256 of the seed that deals rows and keys hashes; the seed itself stays with the guard."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan. A later one replaces it until the first answer, outside charge or division, which fixes it for good."""

    kind: ClassVar[str] = "planned"
    at: datetime
    analyst: str
    plan: Mapping[str, Any] = field(hash=False)
    """The method and its public constants."""
    questions: int
    """How many answers at full price the caps are made for; shares are counted in these."""
    answers: int
    """The cap on the number of answers, of whatever price."""
    information: float
    """The cap on the sum of charges, in nats."""
    row_share: float | None
    """The cap on the sum of row charges; None where the method keeps no such account."""
    grid: float | None
    """The step of the public grid on which noise lands, a power of two; None where the method adds none."""
    ends: float
    """The step of the public grid of [0, 1] to which ends of intervals are rounded outward, a power of two."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """A question, paid for."""

    kind: ClassVar[str] = "reserved"
    at: datetime
    analyst: str
    number: int
    """1, 2, ... in order of reservation, never reused: splitting takes it as its block."""
    digest: str
    """A hash of the canonical query; one digest is one question."""
    text: str
    """What the question means, readable."""
    bounds: tuple[float, float]
    """The scale of the question; what is released is on [0, 1]."""
    levels: int | None
    """How many evenly spaced values the question has between its bounds; None if any."""
    own: bool
    """Whether it was asked for itself, and not as a part of a `Stated` number."""
    coarseness: float
    """How many times the plan's noise; with the plan's constants, the mechanism's parameters for this answer."""
    charge: float
    """Nats."""
    row_charge: float
    guess: tuple[float, float] | None
    """A guess of the analyst's own, on [0, 1]: a value and a half-width."""
    span: tuple[int, int] | None
    """The rows that were opened for its batch, by their places after the shuffle; None where the method opens none."""
    again: int | None
    """The number of the answer that this looks at again, on all rows opened with it or later: a final look."""


@dataclass(frozen=True, slots=True)
class Closed:
    """No more questions: from here on, only final looks at those that were asked."""

    kind: ClassVar[str] = "closed"
    at: datetime
    analyst: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What was released for a question: with what is `Stated`, all in a chain that depends on the rows."""

    kind: ClassVar[str] = "answered"
    at: datetime
    number: int
    released: Released = field(hash=False)
    value: float
    """What was released, on [0, 1]; both ends lie on the plan's grid of `ends`."""
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Stated:
    """A number that an analyst was told, derived from answers: a mean within a group, a difference, a quantile."""

    kind: ClassVar[str] = "stated"
    at: datetime
    analyst: str
    text: str
    """What it is, readable."""
    rule: str
    """The name of the rule by which it follows from its parts."""
    parameters: Mapping[str, Any] = field(hash=False)
    parts: tuple[int, ...]
    """The numbers of the answers it follows from, in the rule's order."""
    bounds: tuple[float, float]
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Charged:
    """What was revealed outside of the guard, as far as its certificate admits it."""

    kind: ClassVar[str] = "charged"
    at: datetime
    analyst: str
    text: str
    """What was revealed, in the words of whoever recorded it."""
    basis: Mapping[str, float] = field(hash=False)
    """What the charge was computed from."""
    answers: int
    """How many noisy answers it counts for."""
    charge: float
    row_charge: float


@dataclass(frozen=True, slots=True)
class Divided:
    """How many full-price answers each named analyst may have in all; whoever is not named shares the rest."""

    kind: ClassVar[str] = "divided"
    at: datetime
    analyst: str
    shares: Mapping[str, int] = field(hash=False)


Record = Opened | Planned | Reserved | Closed | Answered | Stated | Charged | Divided
_KINDS: dict[str, type[Record]] = {
    kind.kind: kind for kind in (Opened, Planned, Reserved, Closed, Answered, Stated, Charged, Divided)
}
_TUPLES = ("bounds", "guess", "parts", "span")  # JSON has lists only


def encode(record: Record) -> str:
    """The record's canonical text. Floats keep every bit; a number that is none cannot be written.

    ASCII, so that it is the same in a database of any encoding, and survives whatever a receipt goes through.
    """
    body: dict[str, Any] = {"kind": record.kind, "version": VERSION}
    for each in fields(record):
        value = getattr(record, each.name)
        body[each.name] = value.isoformat() if isinstance(value, datetime) else value
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def decode(text: str) -> Record:
    """The record of a text; `BrokenChain` if it is none that this version knows."""
    try:
        body = json.loads(text)
        version, kind = body.pop("version"), body.pop("kind")
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise BrokenChain(f"a record has version {version!r}, which no afresh ever wrote")
        if version > VERSION or kind not in _KINDS:
            raise BrokenChain(
                f"a record has version {version} and kind {kind!r}, which this afresh does not know; upgrade afresh"
            )
        body["at"] = datetime.fromisoformat(body["at"])
        if body["at"].utcoffset() != timedelta(0):
            raise BrokenChain("a record's time is not in UTC")
        if version == 1 and kind == Reserved.kind:
            body |= {"levels": 2 if body.pop("binary") else None, "span": None, "again": None}
        for name in _TUPLES:
            if isinstance(body.get(name), list):
                body[name] = tuple(body[name])
        return _KINDS[kind](**body)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BrokenChain("a record is not one that afresh wrote") from None


def seal(previous: str, text: str) -> str:
    """The hash of a record: SHA-256 of the hash before it, a line feed, and its text."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
