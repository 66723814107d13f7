"""The ledger in one SQLite file: many processes of one machine, nothing to set up."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from sqlalchemy import Connection, Row, bindparam, select, update
from sqlalchemy.dialects.sqlite import insert

from afresh.errors import LedgerError
from afresh.ledger.base import Entry, Question, Terms, check_budget, check_released, check_terms
from afresh.ledger.schema import entries, guards
from afresh.ledger.store import BUSY_SECONDS, Store

_CHUNK = 500  # older SQLite takes 999 parameters in one statement

# Built once: SQLAlchemy then compiles each once, and the driver keeps it prepared.
_TERMS = select(guards).where(guards.c.fingerprint == bindparam("of"), guards.c.simulated == bindparam("as_simulated"))
_OPEN = insert(guards).on_conflict_do_nothing()
_ENTRY_COLUMNS = [column for column in entries.c if column.name != "guard"]
_ENTRIES = select(*_ENTRY_COLUMNS).where(entries.c.guard == bindparam("of")).order_by(entries.c.number)
_ONE = select(*_ENTRY_COLUMNS).where(entries.c.guard == bindparam("of"), entries.c.digest == bindparam("asked"))
_SOME = select(*_ENTRY_COLUMNS).where(
    entries.c.guard == bindparam("of"), entries.c.digest.in_(bindparam("asked", expanding=True))
)
_SINCE = (
    select(entries.c.number, entries.c.charge)
    .where(entries.c.guard == bindparam("of"), entries.c.number > bindparam("last"))
    .order_by(entries.c.number)
)
_RESERVE = insert(entries)
_RECORD = (
    update(entries)
    .where(
        entries.c.guard == bindparam("of"),
        entries.c.number == bindparam("at"),
        entries.c.digest == bindparam("asked"),
        entries.c.released.is_(None),
    )
    .values(released=bindparam("value"), answered_at=bindparam("now"))
)


@dataclass(slots=True)
class _Account:
    """What is known of a guard: its terms never change, and its entries are only added to."""

    guard: int
    terms: Terms
    last: int = 0
    spent: Fraction = Fraction(0)

    def catch_up(self, connection: Connection) -> None:
        """Add what was committed since; before this transaction's own entries, which may be rolled back."""
        for number, charge in connection.execute(_SINCE, {"of": self.guard, "last": self.last}):
            self.last, self.spent = number, self.spent + Fraction(charge)


class SqliteLedger:
    """A `Ledger` in an SQLite file on a local disk, or in memory for simulations and tests.

    Safe to use from many threads and many processes, forked ones included. A network file system is not a
    local disk: machines that share a budget need a ledger on a server.
    """

    def __init__(self, path: str | os.PathLike[str], *, busy_seconds: float = BUSY_SECONDS) -> None:
        """Open the ledger at `path`, or create it; wait up to `busy_seconds` for other processes."""
        self._store = Store(path, busy_seconds=busy_seconds)
        self._accounts: dict[tuple[str, bool], _Account] = {}

    def terms(self, fingerprint: str, *, simulated: bool = False) -> Terms | None:
        """The terms under which these data were first opened, if they ever were."""
        with self._store.transaction(write=False) as connection:
            account = self._find(connection, fingerprint, simulated)
        return account.terms if account else None

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
        check_terms(fingerprint, plan=plan, rows=rows, questions=questions, information=information)
        known = self.terms(fingerprint, simulated=simulated)
        if known is None:
            made = {
                "fingerprint": fingerprint,
                "simulated": simulated,
                "plan": plan,
                "rows": rows,
                "questions": questions,
                "information": float(information),
                "seed": secrets.token_hex(32),
                "created_at": _now().isoformat(),
            }
            with self._store.transaction(write=True) as connection:
                connection.execute(_OPEN, made)
            known = self.terms(fingerprint, simulated=simulated)
        assert known is not None  # guards are never removed
        return known

    def reserve(self, terms: Terms, questions: Sequence[Question]) -> list[Entry]:
        """Pay for the questions, all or none, and return their entries in the same order."""
        asked: dict[str, Question] = {}
        for question in questions:
            asked.setdefault(question.digest, question)
        with self._store.transaction(write=True) as connection:
            account = self._account(connection, terms)
            found = _lookup(connection, account.guard, list(asked))
            new = [question for digest, question in asked.items() if digest not in found]
            if new:
                account.catch_up(connection)
                check_budget(account.terms, count=account.last, spent=account.spent, new=new)
                now = _now()
                rows = []
                for number, question in enumerate(new, start=account.last + 1):
                    charge = float(question.charge)
                    entry = Entry(number, question.digest, question.text, question.detail, charge, now, new=True)
                    found[question.digest] = entry
                    rows.append(
                        {
                            "guard": account.guard,
                            "number": number,
                            "digest": entry.digest,
                            "text": entry.text,
                            "detail": entry.detail,
                            "charge": charge,
                            "reserved_at": now.isoformat(),
                        }
                    )
                connection.execute(_RESERVE, rows)
        return [found[question.digest] for question in questions]

    def record(self, terms: Terms, entry: Entry, released: float) -> Entry:
        """Store the released number unless there is one; return what is stored, the only thing to release."""
        return self.record_many(terms, [(entry, released)])[0]

    def record_many(self, terms: Terms, released: Sequence[tuple[Entry, float]]) -> list[Entry]:
        """Like `record` for many entries, all or none."""
        for _, value in released:
            check_released(value)
        if not released:
            return []
        now = _now().isoformat()
        with self._store.transaction(write=True) as connection:
            guard = self._account(connection, terms).guard
            connection.execute(
                _RECORD,
                [
                    {
                        "of": guard,
                        "at": entry.number,
                        "asked": entry.digest,
                        "value": float(value),
                        "now": now,
                    }
                    for entry, value in released
                ],
            )
            stored = _lookup(connection, guard, [entry.digest for entry, _ in released])
            for entry, _ in released:
                kept = stored.get(entry.digest)
                if kept is None or kept.number != entry.number:
                    raise LedgerError(
                        f"question {entry.number} ({entry.text}) was not reserved in this ledger; reserve it "
                        "first. Nothing was released."
                    )
        return [stored[entry.digest] for entry, _ in released]

    def entries(self, terms: Terms) -> list[Entry]:
        """Everything paid for, by number."""
        with self._store.transaction(write=False) as connection:
            guard = self._account(connection, terms).guard
            return [_entry(row) for row in connection.execute(_ENTRIES, {"of": guard})]

    def spent(self, terms: Terms) -> tuple[int, float]:
        """How many answers were paid for, and their nats."""
        with self._store.transaction(write=False) as connection:
            account = self._account(connection, terms)
            account.catch_up(connection)
            return account.last, float(account.spent)

    def close(self) -> None:
        """Free what the ledger holds. Idempotent."""
        self._store.close()

    def _account(self, connection: Connection, terms: Terms) -> _Account:
        """The account of these terms. Its own caps count, not those of `terms`, which anyone can build."""
        account = self._find(connection, terms.fingerprint, terms.simulated)
        if account is None or account.terms.seed != terms.seed:
            raise LedgerError("these terms were not opened in this ledger; open the data again")
        return account

    def _find(self, connection: Connection, fingerprint: str, simulated: bool) -> _Account | None:
        key = (fingerprint, simulated)
        if key not in self._accounts:
            row = connection.execute(_TERMS, {"of": fingerprint, "as_simulated": simulated}).first()
            if row is None:
                return None
            self._accounts[key] = _Account(row.id, _terms(row))
        return self._accounts[key]


def _lookup(connection: Connection, guard: int, digests: list[str]) -> dict[str, Entry]:
    if len(digests) == 1:  # by far the most frequent, and three times as fast as a list of one
        found = [_entry(row) for row in connection.execute(_ONE, {"of": guard, "asked": digests[0]})]
    else:
        found = [
            _entry(row)
            for start in range(0, len(digests), _CHUNK)
            for row in connection.execute(_SOME, {"of": guard, "asked": digests[start : start + _CHUNK]})
        ]
    return {entry.digest: entry for entry in found}


def _now() -> datetime:
    return datetime.now(UTC)


def _entry(row: Row[*tuple[Any, ...]]) -> Entry:
    number, digest, text, detail, charge, reserved_at, released, answered_at = row
    answered = None if answered_at is None else datetime.fromisoformat(answered_at)
    reserved = datetime.fromisoformat(reserved_at)
    return Entry(number, digest, text, detail, charge, reserved, released, answered)


def _terms(row: Row[*tuple[Any, ...]]) -> Terms:
    return Terms(
        fingerprint=row.fingerprint,
        plan=row.plan,
        rows=row.rows,
        questions=row.questions,
        information=row.information,
        seed=row.seed,
        simulated=row.simulated,
        created_at=datetime.fromisoformat(row.created_at),
    )
