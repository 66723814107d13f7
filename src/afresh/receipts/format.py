"""The format of receipts: the fields of every version, written down literally.

`chain.records` holds the ledger's records verbatim, from the first to the last, and `chain.head` the hash they lead to;
everything else in a receipt is there for people to read, and follows from them. A version never changes. A later one
may add fields, and gets its own entry here; a receipt is read, and compared with its records, by the version it states,
so old receipts verify forever. A field that its version does not have is refused.

So every name is written here as text, and every value is taken from the ledger's records: what people see elsewhere (a
transcript, a plan) and the constants that a mechanism has today decide nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from afresh.errors import BrokenChain, InvalidArgument
from afresh.ledger.account import Account
from afresh.planning.plan import Plan
from afresh.results.progress import counted
from afresh.results.reading import read

if TYPE_CHECKING:
    from afresh.ledger.base import Entry
    from afresh.ledger.journal import Sealed
    from afresh.ledger.records import Stated

NAME = "afresh receipt"


@dataclass(frozen=True)
class Facts:
    """What the records of a guard say."""

    account: Account
    records: Sequence[str]
    plan: Plan


def read_chain(records: Sequence[str]) -> Facts:
    """Return the facts of a chain, verified record by record."""
    account = Account()
    account.read((text, None) for text in counted(records, "Following the chain"))
    if account.opened is None or account.limits is None:
        raise BrokenChain("the chain does not begin with the rows and a plan")
    return Facts(account, list(records), Plan.thaw(account.limits))


def texts(chain: Sequence[Sealed]) -> list[str]:
    """Return the records of a chain as a receipt carries them."""
    return [sealed.text for sealed in chain]


@dataclass(frozen=True)
class Format:
    """One version: its fields, and their values in a receipt of these facts."""

    fields: Mapping[str, Any]
    """What each name holds: None is a value, a mapping is an object, a list of one mapping is a list of objects."""
    write: Callable[[Facts], dict[str, Any]]


_FIELDS_1: dict[str, Any] = {
    "format": None,
    "version": None,
    "made_by": None,
    "made_at": None,
    "data": dict.fromkeys(("name", "rows", "new_rows")),
    "simulated": None,
    "plan": dict.fromkeys(
        (
            *("method", "rows", "questions", "answers", "confidence", "information"),
            *("grid", "ends", "constants"),
        )
    ),
    "opened_at": None,
    "spent": dict.fromkeys(("answers", "information", "outside")),
    "questions": [
        dict.fromkeys(
            (
                *("question", "bounds", "value", "low", "high", "charge"),
                *("analyst", "asked_at", "answered_at", "rule", "numbers"),
            )
        )
    ],
    "answers": [
        dict.fromkeys(
            (
                *("number", "question", "bounds", "value", "low", "high", "charge", "coarseness"),
                *("analyst", "asked_at", "answered_at", "digest"),
            )
        )
    ],
    "outside": [dict.fromkeys(("what", "basis", "charge", "at"))],
    "shares": None,
    "chain": dict.fromkeys(("head", "length", "records")),
}
# The fields of `plan.constants`, by method, besides the grid and besides rows and questions, which are in the plan.
_CONSTANTS_1 = {
    "stabilized": ("failure", "v0", "s", "lam", "c", "B", "A", "theta", "H", "most", "cells"),
    "calibrated": ("failure", "t", "T", "noise_failure", "most", "z", "L"),
    "split": ("failure",),
    "guess-and-check": ("failure", "s", "v0", "reach", "growth", "most_growth", "dealt", "guessing"),
}


def _write_1(facts: Facts) -> dict[str, Any]:
    return _written(facts, 1, _CONSTANTS_1)


def _written(facts: Facts, version: int, constants: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    account, plan = facts.account, facts.plan
    opened, limits, spent = account.opened, account.limits, account.spent()
    assert opened is not None
    assert limits is not None
    frozen = dict(limits.plan)
    method = frozen["method"]
    if method not in constants:
        raise InvalidArgument(f"version {version} of the format has no plans by method={method!r}; a later one may.")
    entries = list(account.entries)  # each is made when it is accessed
    answers = [_answer_1(entry) for entry in entries]
    return {
        "data": {"name": opened.data, "rows": opened.rows, "new_rows": opened.new_rows},
        "simulated": opened.simulated,
        "plan": {
            "method": method,
            "rows": opened.rows,
            "questions": limits.questions,
            "answers": limits.answers,
            "confidence": plan.confidence,
            "information": plan.information,
            "grid": limits.grid,
            "ends": limits.ends,
            "constants": {name: frozen.get(name, plan.parameters[name]) for name in constants[method]},
        },
        "opened_at": opened.at.isoformat(),
        "spent": {"answers": spent.answers, "information": spent.information, "outside": spent.outside},
        "questions": _questions_1(entries, answers, list(account.stated.values())),
        "answers": answers,
        "outside": [
            {"what": each.text, "basis": dict(each.basis), "charge": each.charge, "at": each.at.isoformat()}
            for each in account.charged
        ],
        "shares": dict(account.shares),
        "chain": {"head": account.head, "length": account.length, "records": list(facts.records)},
    }


def _questions_1(
    entries: Sequence[Entry], answers: Sequence[Mapping[str, Any]], stated: Sequence[Stated]
) -> list[dict[str, Any]]:
    """List what analysts asked, in order: derived numbers, each placed at its last answer, and all other answers."""
    covered = {part for each in stated for part in each.parts}
    # A part of a number that was never stated, because the search for it broke off, is listed separately.
    alone = [entry.number for entry in entries if entry.own or entry.number not in covered]
    found = [(number, _asked_1(answers[number - 1])) for number in alone]
    found += [(max(each.parts), _derived_1(each, [entries[part - 1] for part in each.parts])) for each in stated]
    return [question for _, question in sorted(found, key=lambda pair: pair[0])]


def _asked_1(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "question": answer["question"],
        "bounds": list(answer["bounds"]),
        "value": answer["value"],
        "low": answer["low"],
        "high": answer["high"],
        "charge": answer["charge"],
        "analyst": answer["analyst"],
        "asked_at": answer["asked_at"],
        "answered_at": answer["answered_at"],
        "rule": None,
        "numbers": [answer["number"]],
    }


def _derived_1(stated: Stated, parts: Sequence[Entry]) -> dict[str, Any]:
    return {
        "question": stated.text,
        "bounds": list(stated.bounds),
        "value": stated.value,
        "low": stated.low,
        "high": stated.high,
        "charge": sum(part.charge for part in parts),
        "analyst": stated.analyst,
        "asked_at": min(part.reserved_at for part in parts).isoformat(),
        "answered_at": stated.at.isoformat(),
        "rule": stated.rule,
        "numbers": [part.number for part in parts],
    }


def _answer_1(entry: Entry) -> dict[str, Any]:
    value, low, high = (None, None, None) if entry.outcome is None else read(entry).own
    return {
        "number": entry.number,
        "question": entry.text,
        "bounds": list(entry.bounds),
        "value": value,
        "low": low,
        "high": high,
        "charge": entry.charge,
        "coarseness": entry.coarseness,
        "analyst": entry.analyst,
        "asked_at": entry.reserved_at.isoformat(),
        "answered_at": None if entry.answered_at is None else entry.answered_at.isoformat(),
        "digest": entry.digest,
    }


# Version 2 states for every answer which of the shuffled rows were opened for its batch, and has more methods.
_FIELDS_2 = {**_FIELDS_1, "answers": [{**_FIELDS_1["answers"][0], "rows": None}]}
_CONSTANTS_2 = {
    **_CONSTANTS_1,
    "rounds": ("failure", "rounds", "final"),
    "symmetrized": ("failure", "s", "D", "q", "bend", "lower", "most", "finest"),
    "checked": (
        *("failure", "guessing", "guarded", "opened", "noise", "reach", "growth"),
        *("none", "calm", "passing"),
    ),
}


def _write_2(facts: Facts) -> dict[str, Any]:
    if facts.plan.exam is not None or facts.plan.mechanism.own:
        raise InvalidArgument("version 2 of the format has no exam, and no development rows; a later one has.")
    return _with_rows(facts, _written(facts, 2, _CONSTANTS_2))


def _with_rows(facts: Facts, found: dict[str, Any]) -> dict[str, Any]:
    for answer, reserved in zip(found["answers"], facts.account.entries.reserved, strict=True):
        answer["rows"] = None if reserved.span is None else list(reserved.span)
    return found


# Version 3 has more constants and methods: for checked answers, how many rows are kept for an exam, with what part of
# the failure probability, and whether the analyst's own rows are used to guess. A plan that lacks a constant gets the
# value that keeps its old meaning.
_CONSTANTS_3 = {
    **_CONSTANTS_2,
    "symmetrized": (*_CONSTANTS_2["symmetrized"], "height"),
    "endless": ("expected", "failure", "s", "slant"),
    "twofold": ("failure", "s", "D", "bend", "lower", "height", "finest"),
    "checked": (*_CONSTANTS_2["checked"], "exam", "exam_failure", "own"),
}


# It also states for an answer which coordinate of which vector it is.
_FIELDS_3 = {**_FIELDS_2, "answers": [{**_FIELDS_2["answers"][0], "vector": None}]}
_VECTOR_3 = ("kind", "size", "answers", "place")


def _write_3(facts: Facts) -> dict[str, Any]:
    if facts.plan.parameters.get("numbers"):
        raise InvalidArgument(
            "version 3 of the format has no numbers of several draws by this method; a later one has."
        )
    return _with_vectors(facts, _with_rows(facts, _written(facts, 3, _CONSTANTS_3)))


def _with_vectors(facts: Facts, found: dict[str, Any]) -> dict[str, Any]:
    for answer, reserved in zip(found["answers"], facts.account.entries.reserved, strict=True):
        vector = reserved.vector
        answer["vector"] = None if vector is None else dict(zip(_VECTOR_3, vector, strict=True))
    return found


# Version 4 has one more constant, the part of the failure probability kept for numbers, whose noise then follows their
# standard deviation; and one more method.
_CONSTANTS_4 = {
    **_CONSTANTS_3,
    **{method: (*_CONSTANTS_3[method], "numbers") for method in ("stabilized", "calibrated")},
    "settled": ("failure", "s", "D", "bend", "lower", "height", "steps"),
}


def _write_4(facts: Facts) -> dict[str, Any]:
    if facts.plan.method not in ("stabilized", "calibrated") and facts.plan.parameters.get("numbers"):
        raise InvalidArgument(
            "version 4 of the format has no numbers of several draws by this method; a later one has."
        )
    return _with_vectors(facts, _with_rows(facts, _written(facts, 4, _CONSTANTS_4)))


# Version 5 has the equivalent for the other methods whose noise is public: the finest noise that a number may have.
_CONSTANTS_5 = {
    **_CONSTANTS_4,
    **{method: (*_CONSTANTS_4[method], "numbers") for method in ("symmetrized", "settled", "endless")},
}


def _write_5(facts: Facts) -> dict[str, Any]:
    return _with_vectors(facts, _with_rows(facts, _written(facts, 5, _CONSTANTS_5)))


# Version 6 states how well the share of a large group would be known, where earlier plans had one constant, and which
# of the two forms of Lemma G is used to compare with a ghost sample, where earlier plans used the first.
# It also states what first draws of numbers count as, for the method whose plans with few questions make them count
# less, and for checked answers whether the mean of a number within a group is one claim.
_CONSTANTS_6 = {
    **_CONSTANTS_5,
    **{method: (*_CONSTANTS_5[method], "grouping") for method in ("stabilized", "calibrated")},
    **{method: (*_CONSTANTS_5[method], "grouping", "concave") for method in ("settled", "endless")},
    "symmetrized": (*_CONSTANTS_5["symmetrized"], "grouping", "concave", "firsts"),
    "checked": (*_CONSTANTS_5["checked"], "groups"),
}


def _write_6(facts: Facts) -> dict[str, Any]:
    return _with_vectors(facts, _with_rows(facts, _written(facts, 6, _CONSTANTS_6)))


FORMATS: dict[int, Format] = {
    1: Format(_FIELDS_1, _write_1),
    2: Format(_FIELDS_2, _write_2),
    3: Format(_FIELDS_3, _write_3),
    4: Format(_FIELDS_3, _write_4),
    5: Format(_FIELDS_3, _write_5),
    6: Format(_FIELDS_3, _write_6),
}


def format_of(document: object) -> Format:
    """Return the format a document states; `InvalidArgument` if this version of afresh cannot read it as a receipt."""
    if not isinstance(document, dict) or document.get("format") != NAME:
        raise InvalidArgument(f'this is not a receipt: it has no "format": "{NAME}".')
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InvalidArgument(f"the receipt has version {version!r}, which no version of afresh ever wrote.")
    if version not in FORMATS:
        raise InvalidArgument(
            f"the receipt has version {version}, but this afresh knows only up to {max(FORMATS)}; upgrade afresh."
        )
    return FORMATS[version]


def check_fields(document: Any, fields: Any, where: str = "the receipt") -> None:
    """Refuse a document that lacks a field of its version, or has an unknown one."""
    if isinstance(fields, list):
        if not isinstance(document, list):
            raise InvalidArgument(f"{where} is not a list")
        names = fields[0].keys() if not any(fields[0].values()) else None
        for place, each in enumerate(document):
            if type(each) is not dict or each.keys() != names:  # nearly all have the right fields, and nothing nested
                check_fields(each, fields[0], f"{where}[{place}]")
    elif fields is not None:
        if not isinstance(document, dict):
            raise InvalidArgument(f"{where} is not an object")
        if missing := fields.keys() - document.keys():
            raise InvalidArgument(f"{where} lacks {', '.join(sorted(missing))}")
        if unknown := document.keys() - fields.keys():
            raise InvalidArgument(f"{where} has fields its version does not know: {', '.join(sorted(unknown))!a}")
        for name, within in fields.items():
            check_fields(document[name], within, name if where == "the receipt" else f"{where}.{name}")


def loads(text: str) -> Any:
    """Parse JSON strictly: a repeated name in an object, or something like NaN, is refused."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise InvalidArgument("this is not a receipt: a name appears twice in one object.")
        return found

    def no_number(name: str) -> Any:
        raise InvalidArgument(f"this is not a receipt: {name} is not a number.")

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument("this is not a receipt: it is not JSON.") from None
