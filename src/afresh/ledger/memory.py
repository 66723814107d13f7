"""Identities of previously opened data, kept next to the ledger, so opening need not hash all rows again.

An entry is found by the whole state of the data: for files, their paths, sizes, inodes and times to the nanosecond; see
`Engine.state`. Besides identities it holds what an engine learned about a file, such as the types of a CSV file. A file
that is damaged, belongs to another user or can be written by others is ignored: rows are read again. Anyone who can
write in the ledger's directory as this user can forge an entry, but could also replace the ledger. The digests are not
keyed, so only the owner may read the file, like the ledger and its seeds.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from afresh.engines.identity import ColumnDigest, Identity

_MOST = 128  # entries, two per CSV file; the oldest go first
_LARGEST = 2**24  # bytes; a table may have thousands of columns


class Memory:
    """What was opened before with one ledger. Nothing here fails: what cannot be stored is forgotten."""

    def __init__(self, ledger: Path) -> None:
        """Make the memory beside this ledger."""
        self._path = ledger.with_name(f"{ledger.name}.opened")

    def find(self, state: str) -> Identity | None:
        """Return the identity of data in this state."""
        key = _key(state)
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            entry = self._entries()[key]
            found = Identity(
                entry["rows"], entry["fingerprint"], tuple(ColumnDigest(**column) for column in entry["columns"])
            )
            return found if entry == _entry(key, found) else None
        return None

    def keep(self, state: str, identity: Identity) -> None:
        """Remember the identity of data in this state."""
        key = _key(state)
        self._put(key, _entry(key, identity))

    def recall(self, state: str) -> Any:
        """Return what an engine learned about data in this state; None if nothing."""
        key = _key(state)
        with suppress(KeyError, TypeError):
            entry = self._entries()[key]
            return entry["learnt"] if entry == _sealed(key, {"learnt": entry["learnt"]}) else None
        return None

    def note(self, state: str, learnt: Any) -> None:
        """Remember what an engine learned about data in this state."""
        key = _key(state)
        self._put(key, _sealed(key, {"learnt": learnt}))

    def _put(self, key: str, entry: dict[str, Any]) -> None:
        entries = {other: found for other, found in self._entries().items() if other != key}
        entries[key] = entry
        text = json.dumps(dict(list(entries.items())[-_MOST:]))
        with suppress(OSError):
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f"{self._path.name}.")
            try:
                with os.fdopen(handle, "w") as file:
                    file.write(text)
                os.replace(name, self._path)  # others read the old one or the new one
            except BaseException:
                os.unlink(name)
                raise

    def _entries(self) -> dict[str, Any]:
        with suppress(OSError, ValueError, RecursionError):
            handle = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(handle, "rb") as file:
                found = os.fstat(handle)
                ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
                if ours and found.st_size <= _LARGEST:
                    entries = json.loads(file.read(_LARGEST + 1))
                    return entries if isinstance(entries, dict) else {}
        return {}


def _key(state: str) -> str:
    return hashlib.sha256(state.encode(errors="surrogatepass")).hexdigest()


def _entry(key: str, identity: Identity) -> dict[str, Any]:
    return _sealed(key, asdict(identity) | {"columns": [asdict(column) for column in identity.columns]})


def _sealed(key: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry as it is stored, with a digest of its contents, so damage is noticed."""
    return entry | {"check": hashlib.sha256(json.dumps([key, entry]).encode()).hexdigest()}
