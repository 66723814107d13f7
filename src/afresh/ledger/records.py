"""The records of a guard's chain, and the hash that links them.

A guard is nothing but its chain: whose rows they are, the plan, every question paid for, every number released with
its interval, every number derived from those, every charge from outside, every division of the budget, in order. A
record is written once, as canonical JSON; the hash of a record covers its text and the hash before it, so
editing, dropping or reordering any record changes every hash after it, up to the head that receipts and the guard's
own row carry. From then on, what was released is read back from its record and never computed again: elementary
functions differ between processors in their last bits.

How records may evolve. A later version may add kinds, and add fields, each with a meaning for the records that
lack it; it removes none, renames none and changes the meaning of none, because the hashes cover the old text. A
record of a version that this code does not know is refused, never skipped.

Version 2 states for a question how many values it has, where version 1 stated whether it has two (`binary`), and
which rows were opened for its batch, where version 1 opened none; a chain can be closed, and its questions then
looked at again.

Version 3 states for a question whether it is a coordinate of a vector that is released at once.

Versions 4 and 5 are of first records alone: 4 states by which rule rows are dealt, 5 a digest of the rows' sketch, and
encrypts the names of columns, which a service may hide.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from afresh.errors import BrokenChain

Released = float | Mapping[str, float]
"""What a mechanism releases: one number, or a few named ones."""

VERSION = 3
OF_OPENED = 5  # the version of first records
DEALING = 2
"""The rule by which rows get their places: alike wherever and however they are stored. Rule 1 depended on that."""
START = ""  # the hash before the first record


class Opened(NamedTuple):
    """The first record: whose rows they are. Everything derived from the rows themselves is keyed."""

    at: datetime
    analyst: str
    data: str
    """A keyed hash of the rows' fingerprint. The key, the guard's seed, stays in the ledger: if only a few tables are
    possible, a plain hash would reveal which one it is."""
    columns: Sequence[Mapping[str, str | None]]
    """Keyed hashes of single columns, by which rows are recognized after a table was edited."""
    names: str
    """The names of these columns, encrypted with the seed; empty in records before version 5."""
    new_rows: str | None
    """Why rows that look like others in this ledger are different, in the words of the analyst who opened them."""
    simulated: bool
    rows: int
    seed_digest: str
    """SHA-256 of the seed that shuffles rows and keys hashes; the seed itself stays with the guard."""
    dealing: int = DEALING
    """The rule by which rows get their places, if the method deals them; 1 in records before version 4."""
    sketch: str | None = None
    """A keyed hash of the sketch of the rows and the ledger's key, which stay in the ledger; None before version 5."""


class Planned(NamedTuple):
    """The plan. A later one replaces it until the first answer, outside charge or division, which fixes it for good."""

    at: datetime
    analyst: str
    plan: Mapping[str, Any]
    """The method and its public constants."""
    questions: int
    """The number of answers at full price the caps are made for; shares are counted in these."""
    answers: int
    """The cap on the number of answers at any price."""
    information: float
    """The cap on the sum of charges, in nats."""
    row_share: float | None
    """The cap on the sum of row charges; None if the method keeps no such account."""
    grid: float | None
    """The step of the public grid on which noise lands, a power of two; None if the method adds none."""
    ends: float
    """The step of the public grid of [0, 1] to which the ends of intervals are rounded outward, a power of two."""


class Reserved(NamedTuple):
    """A question, paid for."""

    at: datetime
    analyst: str
    number: int
    """1, 2, ... in order of reservation, never reused: splitting uses it as the block's number."""
    digest: str
    """A hash of the canonical query; one digest is one question."""
    text: str
    """What the question means, in readable words."""
    bounds: tuple[float, float]
    """The scale of the question; what is released is on [0, 1]."""
    levels: int | None
    """How many evenly spaced values the question has between its bounds; None if it may have any value."""
    own: bool
    """Whether it was asked in its own right, and not as part of a `Stated` number."""
    coarseness: float
    """The multiple of the plan's noise; with the plan's constants, this gives the mechanism's parameters."""
    charge: float
    """Nats."""
    row_charge: float
    guess: tuple[float, float] | None
    """The analyst's own guess, on [0, 1]: a value and a half-width."""
    span: tuple[int, int] | None
    """The rows that were opened for its batch, by their places after the shuffle; None if the method opens none."""
    again: int | None
    """For a final look, the number of the answer that it repeats, on all rows opened with that answer or later."""
    vector: tuple[str, int, int, int] | None
    """If it is a coordinate of a vector, which is charged once, with its first coordinate: the kind of the vector, its
    size, how many answers it counts as, and the coordinate's place. Coordinates are recorded one after the other."""


class Closed(NamedTuple):
    """No more questions: from here on, only final looks at those that were asked."""

    at: datetime
    analyst: str


class Answered(NamedTuple):
    """What was released for a question. Only this and what is `Stated` depend on the rows."""

    at: datetime
    number: int
    released: Released
    value: float
    """What was released, on [0, 1]; both ends lie on the plan's grid of `ends`."""
    low: float
    high: float


class Stated(NamedTuple):
    """A number released to an analyst, derived from answers: a mean within a group, a difference, a quantile."""

    at: datetime
    analyst: str
    text: str
    """What it is, in readable words."""
    rule: str
    """The name of the rule that derives it from its parts."""
    parameters: Mapping[str, Any]
    parts: tuple[int, ...]
    """The numbers of the answers it follows from, in the rule's order."""
    bounds: tuple[float, float]
    value: float
    low: float
    high: float


class Charged(NamedTuple):
    """Something revealed outside the guard, if the guard's certificate admits it."""

    at: datetime
    analyst: str
    text: str
    """What was revealed, in the words of the person who recorded it."""
    basis: Mapping[str, float]
    """What the charge was computed from."""
    answers: int
    """The number of noisy answers it counts as."""
    charge: float
    row_charge: float


class Divided(NamedTuple):
    """How many full-price answers each named analyst may have in total; all others share the rest."""

    at: datetime
    analyst: str
    shares: Mapping[str, int]


Record = Opened | Planned | Reserved | Closed | Answered | Stated | Charged | Divided
KINDS: dict[str, type[Record]] = {
    "opened": Opened,
    "planned": Planned,
    "reserved": Reserved,
    "closed": Closed,
    "answered": Answered,
    "stated": Stated,
    "charged": Charged,
    "divided": Divided,
}
_NAMES = {kind: name for name, kind in KINDS.items()}
_TUPLES = ("bounds", "guess", "parts", "span", "vector")  # JSON has only lists


def kind_of(record: Record) -> str:
    """Return the name of the record's kind in its text."""
    return _NAMES[type(record)]


_as_json = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def encode(record: Record) -> str:
    """Return the record's canonical text. Floats keep every bit; NaN and infinities cannot be written.

    It is ASCII, so it is the same in a database of any encoding and survives whatever a receipt goes through.
    """
    kind = kind_of(record)
    body: dict[str, Any] = {"kind": kind, "version": _version(kind), **record._asdict()}
    body["at"] = record.at.isoformat()
    return _as_json(body)


def _version(kind: str) -> int:
    """Return the version in which records of a kind are written."""
    return OF_OPENED if kind == "opened" else VERSION


# Nearly all records of a long chain are questions and answers. Those that look as `encode` writes them, with nothing
# escaped in their texts and floats for numbers, take a shortcut; all others are read as JSON.
_TEXT, _WHOLE = r"[ !#-\[\]-~]*", r"(?:0|[1-9][0-9]*)"
_FLOAT = rf"-?{_WHOLE}(?:\.[0-9]+(?:e[-+][0-9]+)?|e[-+][0-9]+)"
_REST = r"[^\"]*"  # values without texts
_RESERVED = re.compile(
    rf'{{("again":{_REST}"analyst":"{_TEXT}"),"at":"({_TEXT})",("bounds":{_REST}"charge":{_REST}"coarseness":{_REST})'
    rf'"digest":"({_TEXT})",("guess":{_REST}"kind":"reserved","levels":{_REST})"number":({_WHOLE}),'
    rf'("own":{_REST}"row_charge":{_REST}"span":{_REST})"text":"({_TEXT})","vector":null,"version":{VERSION}}}'
).fullmatch
_ANSWERED = re.compile(
    rf'{{"at":"({_TEXT})","high":({_FLOAT}),"kind":"answered","low":({_FLOAT}),"number":({_WHOLE}),'
    rf'"released":({_FLOAT}),"value":({_FLOAT}),"version":{VERSION}}}'
).fullmatch
_ALIKE: dict[tuple[str, ...], Reserved] = {}
_MOST_ALIKE = 1024
_make = tuple.__new__  # what `Reserved(...)` does, without a call in between


def decode(text: str) -> Record:
    """Return the record of a text; `BrokenChain` if it is not one that this version knows."""
    try:
        if (found := _ANSWERED(text)) is not None:
            at, high, low, number, released, value = found.groups()
            return _make(Answered, (_time(at), int(number), float(released), float(value), float(low), float(high)))
        if (found := _RESERVED(text)) is not None:
            return _reserved(text, found)
        return _decode(text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BrokenChain("a record is not one that afresh wrote") from None


def _reserved(text: str, found: re.Match[str]) -> Record:
    """Read a question from one that differs only in time, number, digest and words: JSON gives the rest unchanged."""
    who, at, scale, digest, guess, number, own, words = found.groups()
    alike = _ALIKE.get(rest := (who, scale, guess, own))
    if alike is None:
        record = _decode(text)
        if isinstance(record, Reserved):
            if len(_ALIKE) >= _MOST_ALIKE:
                _ALIKE.clear()
            _ALIKE[rest] = record
        return record
    return _make(Reserved, (_time(at), alike[1], int(number), digest, words, *alike[5:]))


def _decode(text: str) -> Record:
    body = json.loads(text)
    version, kind = body.pop("version"), body.pop("kind")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BrokenChain(f"a record has version {version!r}, which no version of afresh ever wrote")
    if version > _version(kind) or kind not in KINDS:
        raise BrokenChain(
            f"a record has version {version} and kind {kind!r}, which this afresh does not know; upgrade afresh"
        )
    body["at"] = _time(body["at"])
    if version == 1 and kind == "reserved":
        body |= {"levels": 2 if body.pop("binary") else None, "span": None, "again": None}
    if version < 3 and kind == "reserved":
        body["vector"] = None
    if version < 4 and kind == "opened":
        body["dealing"] = 1
    if version < OF_OPENED and kind == "opened":
        body["names"] = ""
    for name in _TUPLES:
        if isinstance(body.get(name), list):
            body[name] = tuple(body[name])
    return KINDS[kind](**body)


_ANSWERS = re.compile(
    rf'{{"at":"{_TEXT}","high":{_REST}"kind":"answered","low":{_REST}"number":({_WHOLE}),"released":'
).match


def answers(text: str) -> int | None:
    """Return the number of the question that a record answers, from a quick look; None if that is not enough."""
    found = _ANSWERS(text)
    return None if found is None else int(found[1])


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    if time.tzinfo is not UTC and time.utcoffset() != timedelta(0):
        raise BrokenChain("a record's time is not in UTC")
    return time


def seal(previous: str, text: str) -> str:
    """Return the hash of a record: SHA-256 of the hash before it, a line feed, and its text."""
    return hashlib.sha256(f"{previous}\n{text}".encode()).hexdigest()
