"""What was asked and what it cost: the account that makes the intervals honest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from afresh.errors import InvalidArgument
from afresh.ledger.base import Entry, Limits, Outcome, Outside, Question, Spent, Statement, Terms, outcome

if TYPE_CHECKING:
    from afresh.ledger.ledger import Ledger
    from afresh.ledger.memory import Memory

__all__ = [
    "Entry",
    "Ledger",
    "Limits",
    "Outcome",
    "Outside",
    "Question",
    "Spent",
    "Statement",
    "Terms",
    "default_place",
    "open_ledger",
    "outcome",
]


def __getattr__(name: str) -> Any:
    """Import `Ledger` only when it is used: a plan needs the vocabulary alone."""
    if name != "Ledger":
        raise AttributeError(f"module 'afresh.ledger' has no attribute {name!r}")
    from afresh.ledger.ledger import Ledger

    return Ledger


def default_place() -> str:
    """Return where the ledger is by default: $AFRESH_LEDGER, or a file in this user's state directory."""
    chosen = os.environ.get("AFRESH_LEDGER")
    if chosen:
        return chosen
    import platformdirs  # on demand: `import afresh` stays fast

    return os.path.join(platformdirs.user_state_dir("afresh"), "ledger.sqlite")


def is_server(place: str) -> bool:
    """Whether a place is a database server, not a file."""
    return "://" in place


def memory_beside(where: str | os.PathLike[str] | Ledger | None) -> Memory | None:
    """Return the memory of what was opened before with a ledger, which need not be open; None if it keeps none."""
    from afresh.ledger.memory import Memory

    if where is not None and not isinstance(where, str | os.PathLike):
        return getattr(where, "memory", None)
    place = os.fspath(default_place() if where is None else where)
    return None if place == ":memory:" or is_server(place) else Memory(Path(place).expanduser().absolute())


def open_ledger(where: str | os.PathLike[str] | Ledger | None = None) -> Ledger:
    """Open the ledger in a file or a PostgreSQL database, or the default one for None; a ledger is returned unchanged.

    `":memory:"` gives a ledger that ends with the process, for simulations and tests.

    Args:
        where: The path of a file, made if there is none; a postgresql:// address; a ledger; or None.

    Returns:
        The ledger, open; the caller that opened it must close it.

    Raises:
        InvalidArgument: `where` is none of these.
        LedgerError: It cannot be read or written.
    """
    from afresh.ledger.ledger import Ledger

    if isinstance(where, Ledger):
        return where
    if where is None:
        where = default_place()
    if not isinstance(where, str | os.PathLike):
        raise InvalidArgument(f"ledger == {where!r}, must be a path, a postgresql:// address or a ledger")
    place = os.fspath(where)
    if place == ":memory:":
        from afresh.ledger.journal import MemoryJournal

        return Ledger(MemoryJournal())
    if is_server(place):
        scheme = place.split("://", 1)[0]
        if scheme not in ("postgresql", "postgres"):
            raise InvalidArgument(f"ledger == '{scheme}://…', must be the path of a file or a postgresql:// address")
        from afresh.ledger.postgres import PostgresJournal

        return Ledger(PostgresJournal(place))
    from afresh.ledger.sqlite import SqliteJournal

    path = Path(place).expanduser().absolute()
    return Ledger(SqliteJournal(path), memory=memory_beside(path), path=str(path))
