"""The tables of a ledger in SQLite, and the version of their layout."""

from __future__ import annotations

import secrets
import sqlite3

from afresh.errors import LedgerError

VERSION = 3
APPLICATION = 0x61667268  # "afrh", in the file's header: distinguishes a ledger from any other SQLite file

_CHECKPOINTS = """CREATE TABLE afresh_checkpoints (
        guard INTEGER PRIMARY KEY,
        length INTEGER NOT NULL,
        head TEXT NOT NULL,
        hash TEXT NOT NULL
    )"""
# The code never attempts any of this; the triggers are for people who open the file with other tools.
_REFUSED = "CREATE TRIGGER {} BEFORE {} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
_SKETCHES = [
    "CREATE TABLE afresh_key (secret TEXT NOT NULL)",
    """CREATE TABLE afresh_sketches (
        guard INTEGER PRIMARY KEY REFERENCES afresh_guards (id),
        sketch TEXT NOT NULL
    )""",
    *(
        _REFUSED.format(f"afresh_{table}_{name}", f"{event} ON afresh_{table}")
        for table in ("key", "sketches")
        for name, event in {"stays": "DELETE", "is_fixed": "UPDATE"}.items()
    ),
]
_ADDED = {2: [_CHECKPOINTS], 3: _SKETCHES}  # the tables of layouts after the first
_TABLES = [
    """CREATE TABLE afresh_guards (
        id INTEGER PRIMARY KEY,
        seed TEXT NOT NULL,
        length INTEGER NOT NULL,
        head TEXT NOT NULL
    )""",
    """CREATE TABLE afresh_records (
        guard INTEGER NOT NULL REFERENCES afresh_guards (id),
        place INTEGER NOT NULL CHECK (place >= 1),
        record TEXT NOT NULL,
        hash TEXT NOT NULL,
        PRIMARY KEY (guard, place)
    ) WITHOUT ROWID""",
    _CHECKPOINTS,
    *_SKETCHES,
]
_APPEND_ONLY = [
    _REFUSED.format(name, event)
    for name, event in {
        "afresh_guards_stay": "DELETE ON afresh_guards",
        "afresh_guards_are_fixed": "UPDATE OF id, seed ON afresh_guards",
        "afresh_chains_grow": "UPDATE OF length, head ON afresh_guards WHEN NEW.length <= OLD.length",
        "afresh_records_stay": "DELETE ON afresh_records",
        "afresh_records_are_fixed": "UPDATE ON afresh_records",
    }.items()
]

_STATEMENTS = [*_TABLES, *_APPEND_ONLY]


def check(connection: sqlite3.Connection, where: str) -> None:
    """Refuse a file whose layout is neither the current one nor one that `upgrade` knows. Writes nothing."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION:
        raise LedgerError(
            f"{where} is an SQLite database but not a ledger, and was left unchanged; choose another path"
        )
    if not 1 <= found <= VERSION:
        raise LedgerError(
            f"the ledger {where} has layout {found}, but this afresh knows layout {VERSION}; use the afresh that "
            "wrote it"
        )


def upgrade(connection: sqlite3.Connection) -> None:
    """Add what an earlier layout lacks; the chains stay as they are. For a transaction that writes."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    for version in range(found + 1, VERSION + 1):  # none if another process was faster
        for statement in _ADDED[version]:
            connection.execute(statement)
    if found < VERSION:
        _finish(connection)


def is_old(connection: sqlite3.Connection) -> bool:
    """Return whether a ledger has an earlier layout."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(found < VERSION)


def check_health(connection: sqlite3.Connection) -> None:
    """Refuse a file with any damage that SQLite or the tables can show: a guard it hides would be made again."""
    found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    (checked,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    orphans = connection.execute("PRAGMA foreign_key_check").fetchone()
    (count, last) = connection.execute("SELECT count(*), coalesce(max(id), 0) FROM afresh_guards").fetchone()
    (keys,) = connection.execute("SELECT count(*) FROM afresh_key").fetchone()
    if (
        checked != "ok"
        or orphans is not None
        or count != last
        or keys != 1
        or sorted(sql for (sql,) in found) != sorted(_STATEMENTS)
    ):
        raise LedgerError(
            "the ledger is damaged, so it is unknown whether your rows already have a guard; restore it from a copy. A "
            "new ledger would forget what was spent"
        )


def create(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty ledger."""
    for statement in _STATEMENTS:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    _finish(connection)


def _finish(connection: sqlite3.Connection) -> None:
    """Draw the ledger's secret, and say that the tables are those of this version."""
    connection.execute("INSERT INTO afresh_key VALUES (?)", (secrets.token_hex(32),))
    connection.execute(f"PRAGMA user_version = {VERSION}")
