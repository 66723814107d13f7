"""One sentence for each result: what may and may not be concluded from it."""

from __future__ import annotations

from typing import Any

from afresh.errors import ServiceError
from afresh.results import show
from afresh.results.answer import Answer
from afresh.results.budget import Budget
from afresh.wire.results import RESULTS, from_json

_DO_NOT = "do not report this as an improvement"


def conclude(document: Any) -> str:
    """The sentence for a document of the service; empty if the document only describes something."""
    if not isinstance(document, dict):
        return ""
    if isinstance(document.get("answers"), list):
        return " ".join(conclude(each) for each in document["answers"])
    if document.get("kind") not in RESULTS or "records" in document:
        return ""
    try:
        found = from_json(document)
    except ServiceError:  # from a newer service
        return ""
    return _of(found)


def _of(found: Any) -> str:
    if isinstance(found, Answer):
        value, low, high = found.shown()
        within = f" where {found.where}" if found.where else ""
        told = f"{found.question}{within} lies between {low} and {high}, best guess {value}"
        wide = "" if found.told else " This is too wide to conclude anything."
        return f"{told} ({show.percent(found.confidence)}, together with all other answers): report the range.{wide}"
    if isinstance(found, Budget):
        return f"{found.left:,} answers are left; repeats are free."
    if (said := getattr(found, "words", None)) is not None:
        return str(said)
    names = {"A": getattr(found, "a", "A"), "B": getattr(found, "b", "B")}
    verdict = str(getattr(found, "verdict", ""))
    if hasattr(found, "loss") and hasattr(found, "better"):
        if found.better is None:
            return f"Cannot tell whether {names['B']} is better than {names['A']}: {_DO_NOT}."
        other = "A" if found.better == "B" else "B"
        return f"{names[found.better]} is better than {names[other]}{_sure(found)}."
    certain = getattr(found, "accepted", None) or getattr(found, "better", None)
    return f"{verdict[:1].upper()}{verdict[1:]}{_sure(found) if certain else ''}." if verdict else ""


def _sure(found: Any) -> str:
    """How sure a conclusion is."""
    if found.simulated:
        return " (a simulation: nothing is guaranteed)"
    return f" ({show.percent(found.confidence)}, together with all other answers)"
