"""Copies of what a service must not lose: its ledger, and its tokens."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from afresh.errors import InvalidArgument, LedgerError
from afresh.server.config import Config


def back_up(config: Config, folder: str | os.PathLike[str]) -> list[Path]:
    """Copy the ledger and the tokens into a new folder while the service runs. Each copy is of one moment."""
    if "://" in config.ledger:
        raise InvalidArgument("the ledger is in PostgreSQL; copy that database with pg_dump, tables afresh_*.")
    place = Path(folder)
    try:
        place.mkdir(mode=0o700, parents=True)
    except FileExistsError:
        raise InvalidArgument(f"{place} already exists; name a new folder, so that no copy is lost.") from None
    sources = (Path(config.ledger), Path(config.state) / "service.sqlite")
    made = [_copied(source, place / source.name) for source in sources if source.exists()]
    if not made:
        raise LedgerError(f"there is no ledger at {config.ledger} yet; nothing was copied.")
    return made


def _copied(source: Path, target: Path) -> Path:
    target.touch(mode=0o600)
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(target)) as new,
        ):
            old.backup(new)
            new.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing beside it
    except sqlite3.Error as error:
        raise LedgerError(f"{source} cannot be copied ({type(error).__name__}); check the disk.") from None
    return target
