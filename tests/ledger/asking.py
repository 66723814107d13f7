"""One guard of a hundred answers, and questions to it: the words that the tests of this folder share."""

from __future__ import annotations

from afresh.engines.identity import Identity
from afresh.ledger import Entry, Ledger, Limits, Outcome, Question, Terms, outcome
from afresh.ledger.known import plain
from afresh.ledger.records import Released

DATA = plain("data", 100)
LIMITS = Limits(plan={}, questions=100, answers=100, information=100.0)


def opened(ledger: Ledger, data: Identity = DATA, limits: Limits = LIMITS) -> Terms:
    return ledger.open(data, limits)


def question(name: str, text: str | None = None) -> Question:
    return Question(name, name if text is None else text, 1.0)


def ask(ledger: Ledger, name: str = "a", text: str | None = None, analyst: str = "") -> Entry:
    return ledger.reserve(opened(ledger), [question(name, text)], analyst)[0]


def result(released: Released) -> Outcome:
    """An outcome with this released number, whatever it is."""
    return outcome(released, 0.5, 0.25, 0.75, ends=LIMITS.ends)


def released(entry: Entry) -> Released | None:
    return None if entry.outcome is None else entry.outcome.released
