"""What was asked and what it cost: the account that makes the intervals honest."""

from __future__ import annotations

import os
from pathlib import Path

from afresh.errors import InvalidArgument
from afresh.ledger.base import Entry, Ledger, Question, Terms

__all__ = ["Entry", "Ledger", "Question", "Terms", "default_path", "open_ledger"]


def default_path() -> Path:
    """Where the ledger is unless told otherwise: $AFRESH_LEDGER, else this user's state directory."""
    chosen = os.environ.get("AFRESH_LEDGER")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs  # on demand: `import afresh` stays fast

    return Path(platformdirs.user_state_dir("afresh")) / "ledger.sqlite"


def open_ledger(where: str | os.PathLike[str] | Ledger | None = None) -> Ledger:
    """The ledger at a path, the default one for None; a ledger is returned as it is.

    `":memory:"` gives a ledger that ends with the process, for simulations and tests.
    """
    if where is None:
        where = default_path()
    if not isinstance(where, str | os.PathLike):
        if not hasattr(where, "reserve"):
            raise InvalidArgument(f"ledger == {where!r}, must be a path or a ledger")
        return where
    if "://" in os.fspath(where):
        raise InvalidArgument(f"ledger == {os.fspath(where)!r}, must be the path of a file, not a URL")
    from afresh.ledger.sqlite import SqliteLedger  # on demand: SQLAlchemy is slow to import

    return SqliteLedger(where)
