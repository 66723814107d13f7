"""What was found out about previously opened data, kept next to the ledger, so that it need not be found out again.

Identities save hashing all rows, and deals save sorting them: which row has which place, if a method deals rows.

An entry is found by the whole state of the data: for files, their paths, sizes, inodes and times to the nanosecond; see
`Engine.state`. Besides identities it holds what an engine learned about a file, such as the types of a CSV file. A file
that is damaged, belongs to another user or can be written by others is ignored: rows are read again. Anyone who can
write in the ledger's directory as this user can forge an entry, but could also replace the ledger. The digests are not
keyed, so only the owner may read the file, like the ledger and its seeds. Deals have files of their own in a directory
beside it, under names and with seals that depend on the guard's seed.
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
_MOST_KEPT = 8  # files; those not used for longest go first


class Memory:
    """What was opened before with one ledger. Nothing here fails: what cannot be stored is forgotten."""

    def __init__(self, ledger: Path) -> None:
        """Make the memory beside this ledger."""
        self._path = ledger.with_name(f"{ledger.name}.opened")
        self._dealt = ledger.with_name(f"{ledger.name}.dealt")

    def find(self, state: str) -> Identity | None:
        """Return the identity of data in this state."""
        key = _key(state)
        with suppress(KeyError, TypeError, ValueError, AttributeError):
            entry = self._entries()[key]
            found = Identity(
                entry["rows"],
                entry["fingerprint"],
                tuple(ColumnDigest(**column) for column in entry["columns"]),
                entry["sketch"],
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

    def fetch(self, name: str, size: int) -> bytes | None:
        """Return what was kept under this name, if it has this size."""
        path = self._dealt / name
        found = _read_own(path, size, exact=True)
        if found is not None:
            with suppress(OSError):
                os.utime(path)
        return found

    def store(self, name: str, content: bytes) -> None:
        """Keep this under a name, in a file of its own; of several, only those used last."""
        with suppress(OSError):
            self._dealt.mkdir(mode=0o700, exist_ok=True)
            _replace(self._dealt / name, content)
            kept = sorted(self._dealt.iterdir(), key=lambda path: -path.stat().st_mtime_ns)
            for path in kept[_MOST_KEPT:]:
                path.unlink()

    def _put(self, key: str, entry: dict[str, Any]) -> None:
        entries = {other: found for other, found in self._entries().items() if other != key}
        entries[key] = entry
        with suppress(OSError):
            _replace(self._path, json.dumps(dict(list(entries.items())[-_MOST:])).encode())

    def _entries(self) -> dict[str, Any]:
        with suppress(ValueError, RecursionError):
            entries = json.loads(_read_own(self._path, _LARGEST) or b"{}")
            return entries if isinstance(entries, dict) else {}
        return {}


def _read_own(path: Path, most: int, *, exact: bool = False) -> bytes | None:
    """Return a file of at most, or exactly, so many bytes that belongs to this user and that no other can write."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
            if ours and (found.st_size == most if exact else found.st_size <= most):
                return file.read(most + 1)
    return None


def _replace(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read; others read the old one or the new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def _key(state: str) -> str:
    return hashlib.sha256(state.encode(errors="surrogatepass")).hexdigest()


def _entry(key: str, identity: Identity) -> dict[str, Any]:
    return _sealed(key, asdict(identity) | {"columns": [asdict(column) for column in identity.columns]})


def _sealed(key: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Return an entry as it is stored, with a digest of its contents, so damage is noticed."""
    return entry | {"check": hashlib.sha256(json.dumps([key, entry]).encode()).hexdigest()}
