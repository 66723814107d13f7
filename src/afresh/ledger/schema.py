"""The tables of an SQL ledger, and the version of their layout."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from afresh.errors import LedgerError

VERSION = 1
APPLICATION = 0x61667268  # "afrh", in the file's header: tells a ledger from any other SQLite file

metadata = MetaData()

guards = Table(
    "guards",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("plan", Text, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("questions", Integer, nullable=False),
    Column("information", Float, nullable=False),
    Column("seed", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    UniqueConstraint("fingerprint", "simulated"),
)

entries = Table(
    "entries",
    metadata,
    Column("guard", ForeignKey("guards.id"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("digest", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("charge", Float, nullable=False),
    Column("reserved_at", Text, nullable=False),
    Column("released", Float),
    Column("answered_at", Text),
    UniqueConstraint("guard", "digest"),
    CheckConstraint("number >= 1"),
    CheckConstraint("charge >= 0"),
    CheckConstraint("(released IS NULL) = (answered_at IS NULL)"),
    sqlite_with_rowid=False,
)

# The code below never tries any of this; the triggers are for whoever opens the file with other tools.
_APPEND_ONLY = [
    f"CREATE TRIGGER {name} BEFORE {event} BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
    for name, event in {
        "guards_stay": "DELETE ON guards",
        "guards_are_fixed": "UPDATE ON guards",
        "entries_stay": "DELETE ON entries",
        "entries_are_fixed": "UPDATE OF guard, number, digest, text, detail, charge, reserved_at ON entries",
        "answers_are_fixed": "UPDATE OF released, answered_at ON entries WHEN OLD.released IS NOT NULL",
    }.items()
]


def is_current(connection: Connection, where: str) -> bool:
    """Whether the file has this layout; False if it is empty. Call it in a transaction; it writes nothing."""
    version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    application = connection.exec_driver_sql("PRAGMA application_id").scalar_one()
    if application == APPLICATION:
        if version > VERSION:
            raise LedgerError(
                f"the ledger {where} has layout {version}, but this afresh knows layouts up to {VERSION}; "
                "upgrade afresh: it was written by a newer one"
            )
        return True
    if version or application or connection.exec_driver_sql("SELECT 1 FROM sqlite_master").first():
        raise LedgerError(f"{where} is an SQLite database but not a ledger, and was left as it is; choose another path")
    return False


def create(connection: Connection) -> None:
    """Create the tables, within the caller's transaction."""
    metadata.create_all(connection, checkfirst=False)
    for statement in _APPEND_ONLY:
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION}")
    connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")
