"""The records of a guard's chain, and the hash that links them.

A guard is nothing but its chain: what was fixed when the data were opened, every question paid for, every number
released, every charge from outside, every division of the budget, in order. A record is written once, as canonical
JSON; the hash of a record covers its text and the hash before it, so that editing, dropping or reordering any
record changes every hash after it, up to the head that receipts and the guard's own row carry.

How records may evolve. A later version may add kinds, and add fields, each with a meaning for the records that
lack it; it removes none, renames none and changes the meaning of none, because the old text is what the hashes
cover. A record of a version that this code does not know is refused, never skipped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from typing import Any, ClassVar

from afresh.errors import BrokenChain

Released = float | Mapping[str, float]
"""What a mechanism releases: one number, or a few named ones."""

VERSION = 1
START = ""  # the hash before the first record


@dataclass(frozen=True, slots=True)
class Opened:
    """The first record: what stays in force for good."""

    kind: ClassVar[str] = "opened"
    at: datetime
    analyst: str
    fingerprint: str
    simulated: bool
    rows: int
    plan: str
    """JSON: the method and its public constants."""
    questions: int
    """How many answers at full price the caps are made for; shares are counted in these."""
    answers: int
    """The cap on the number of answers, of whatever price."""
    information: float
    """The cap on the sum of charges, in nats."""
    row_share: float | None
    """The cap on the sum of row charges; None where the method keeps no such account, or it follows from the other."""
    seed_digest: str
    """SHA-256 of the seed that deals the rows for splitting; the seed itself stays with the guard."""


@dataclass(frozen=True, slots=True)
class Reserved:
    """A question, paid for."""

    kind: ClassVar[str] = "reserved"
    at: datetime
    analyst: str
    number: int
    """1, 2, ... in order of reservation, never reused: splitting takes it as its block."""
    digest: str
    """SHA-256 of the canonical query; one digest is one question."""
    text: str
    """The canonical query, readable."""
    detail: str
    """JSON: the rest of what is needed to understand the question and to recompute its interval."""
    method: str
    coarseness: float
    """How many times the plan's noise; with the plan's constants, the mechanism's parameters for this answer."""
    charge: float
    """Nats."""
    row_charge: float


@dataclass(frozen=True, slots=True)
class Answered:
    """What was released for a question: the only thing in a chain that depends on the rows."""

    kind: ClassVar[str] = "answered"
    at: datetime
    number: int
    released: Released = field(hash=False)


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


Record = Opened | Reserved | Answered | Charged | Divided
_KINDS: dict[str, type[Record]] = {kind.kind: kind for kind in (Opened, Reserved, Answered, Charged, Divided)}


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
        if version > VERSION or kind not in _KINDS:
            raise BrokenChain(
                f"a record has version {version} and kind {kind!r}, which this afresh does not know; upgrade afresh"
            )
        body["at"] = datetime.fromisoformat(body["at"])
        if body["at"].utcoffset() != timedelta(0):
            raise BrokenChain("a record's time is not in UTC")
        return _KINDS[kind](**body)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BrokenChain("a record is not one that afresh wrote") from None


def seal(previous: str, text: str) -> str:
    """The hash of a record: SHA-256 of the hash before it, a line feed, and its text."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
