"""The tables of a ledger in SQLite, the version of their layout, and the way from older ones.

Layout 1 had the tables `guards` and `entries`, without a chain. Layout 2 has chains; a ledger of layout 1 becomes
one when it is opened, in one transaction, and every record of it keeps its number, charge, time and answer.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from datetime import datetime
from typing import Any

from afresh.errors import LedgerError
from afresh.ledger.records import START, Answered, Opened, Record, Reserved, encode, seal

VERSION = 2
APPLICATION = 0x61667268  # "afrh", in the file's header: tells a ledger from any other SQLite file

_TABLES = [
    """CREATE TABLE afresh_guards (
        id INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL,
        simulated INTEGER NOT NULL,
        seed TEXT NOT NULL,
        length INTEGER NOT NULL,
        head TEXT NOT NULL,
        UNIQUE (fingerprint, simulated)
    )""",
    """CREATE TABLE afresh_records (
        guard INTEGER NOT NULL REFERENCES afresh_guards (id),
        place INTEGER NOT NULL CHECK (place >= 1),
        record TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (guard, place)
    ) WITHOUT ROWID""",
]
# The code never tries any of this; the triggers are for whoever opens the file with other tools.
_APPEND_ONLY = [
    f"CREATE TRIGGER {name} BEFORE {event} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
    for name, event in {
        "afresh_guards_stay": "DELETE ON afresh_guards",
        "afresh_guards_are_fixed": "UPDATE OF id, fingerprint, simulated, seed ON afresh_guards",
        "afresh_chains_grow": "UPDATE OF length, head ON afresh_guards WHEN NEW.length <= OLD.length",
        "afresh_records_stay": "DELETE ON afresh_records",
        "afresh_records_are_fixed": "UPDATE ON afresh_records",
    }.items()
]


def version(connection: sqlite3.Connection, where: str) -> int:
    """The file's layout, 0 if it is empty. Call it in a transaction; it writes nothing."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application == APPLICATION:
        if found > VERSION:
            raise LedgerError(
                f"the ledger {where} has layout {found}, but this afresh knows layouts up to {VERSION}; "
                "upgrade afresh: it was written by a newer one"
            )
        return int(found)
    if found or application or connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise LedgerError(f"{where} is an SQLite database but not a ledger, and was left as it is; choose another path")
    return 0


def bring_up_to_date(connection: sqlite3.Connection, where: str) -> None:
    """Create the tables, or convert older ones, within the caller's transaction."""
    found = version(connection, where)
    if found == VERSION:
        return
    for statement in _TABLES:
        connection.execute(statement)
    if found == 1:
        _convert(connection)
    for statement in _APPEND_ONLY:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _convert(connection: sqlite3.Connection) -> None:
    """Layout 1 to 2."""
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    for guard in cursor.execute("SELECT * FROM guards ORDER BY id").fetchall():
        entries = cursor.execute("SELECT * FROM entries WHERE guard = ? ORDER BY number", (guard["id"],)).fetchall()
        head, rows = START, []
        for place, record in enumerate(_chain(guard, entries), 1):
            text = encode(record)
            head = seal(head, text)
            rows.append((guard["id"], place, text, head))
        cursor.execute(
            "INSERT INTO afresh_guards VALUES (?, ?, ?, ?, ?, ?)",
            (guard["id"], guard["fingerprint"], guard["simulated"], guard["seed"], len(rows), head),
        )
        cursor.executemany("INSERT INTO afresh_records VALUES (?, ?, ?, ?)", rows)
    for table in ("entries", "guards"):  # with their triggers; nothing in them was left out
        cursor.execute(f"DROP TABLE {table}")


def _chain(guard: Any, entries: list[Any]) -> list[Record]:
    """The records of a guard of layout 1, in the order of time."""
    opened = Opened(
        at=_time(guard["created_at"]),
        analyst="",
        fingerprint=guard["fingerprint"],
        simulated=bool(guard["simulated"]),
        rows=guard["rows"],
        plan=guard["plan"],
        questions=guard["questions"],
        answers=guard["questions"],
        information=guard["information"],
        row_share=None,  # every answer of such a plan has the same noise, so it follows from the information
        seed_digest=hashlib.sha256(guard["seed"].encode()).hexdigest(),
    )
    method = json.loads(guard["plan"])["method"]
    events: list[Any] = []
    latest = opened.at
    for entry in entries:  # by number, which is the order of reservation; clocks may have gone backwards
        latest = max(latest, _time(entry["reserved_at"]))
        events.append(
            Reserved(
                at=latest,
                analyst="",
                number=entry["number"],
                digest=entry["digest"],
                text=entry["text"],
                detail=entry["detail"],
                method=method,
                coarseness=1.0,
                charge=entry["charge"],
                row_charge=0.0,
            )
        )
        if entry["released"] is not None:
            answered = max(latest, _time(entry["answered_at"]))
            events.append(Answered(at=answered, number=entry["number"], released=entry["released"]))
    # A stable sort by time keeps the reservations in order, and each answer after its reservation.
    return [opened, *sorted(events, key=lambda event: event.at)]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
