"""Where entries' predictions are kept: later entries are compared with them, even after a restart.

Entrants passed them in, so they reveal nothing about the guarded rows. The ledger holds everything that was revealed;
losing a shelf loses comparisons with older entries, and the entries that were still sealed.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """The predictions of an entry."""

    name: str
    entrant: str
    at: str
    digest: str
    """By which questions about them are known."""
    values: NDArray[Any]


class Shelf(Protocol):
    """Entries by name. Those that are sealed wait for a round."""

    def claim(self, entry: Kept, *, sealed: bool) -> bool:
        """Keep an entry unless its name is taken; return whether the name is its own, even if others enter too."""
        ...

    def put(self, entry: Kept, *, sealed: bool) -> None:
        """Keep an entry, in place of one of the same name."""
        ...

    def get(self, name: str) -> Kept | None:
        """An entry, if it was kept."""
        ...

    def sealed(self) -> list[Kept]:
        """The sealed entries, in order of arrival."""
        ...

    def remove(self, name: str) -> None:
        """Forget an entry."""
        ...


class Memory:
    """For as long as the process lives."""

    def __init__(self) -> None:
        """Empty."""
        self._kept: dict[str, tuple[Kept, bool]] = {}

    def claim(self, entry: Kept, *, sealed: bool) -> bool:
        """Keep an entry unless its name is taken."""
        return self._kept.setdefault(entry.name, (entry, sealed))[0].digest == entry.digest

    def put(self, entry: Kept, *, sealed: bool) -> None:
        """Keep an entry."""
        self._kept.pop(entry.name, None)
        self._kept[entry.name] = entry, sealed

    def get(self, name: str) -> Kept | None:
        """An entry, if it was kept."""
        found = self._kept.get(name)
        return None if found is None else found[0]

    def sealed(self) -> list[Kept]:
        """Those that wait."""
        return in_order(entry for entry, waits in self._kept.values() if waits)

    def remove(self, name: str) -> None:
        """Forget an entry."""
        self._kept.pop(name, None)


class Folder:
    """Files next to the ledger's, readable by their owner only: one per entry, written completely or not at all."""

    def __init__(self, place: str) -> None:
        """The folder is made when something is put into it."""
        self._place = place

    def claim(self, entry: Kept, *, sealed: bool) -> bool:
        """Keep an entry unless its name is taken: a link to a file can be made only once."""
        path = self._path(entry.name, sealed)
        part = self._written(entry, path)
        try:
            os.link(part, path)
        except FileExistsError:
            found = self.get(entry.name)
            return found is not None and found.digest == entry.digest
        finally:
            self._drop(part)
        return True

    def put(self, entry: Kept, *, sealed: bool) -> None:
        """Keep an entry."""
        path = self._path(entry.name, sealed)
        os.replace(self._written(entry, path), path)
        self._drop(self._path(entry.name, not sealed))

    def _written(self, entry: Kept, path: str) -> str:
        """The path of a file with an entry, next to its final place."""
        os.makedirs(self._place, mode=0o700, exist_ok=True)
        part = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            write(file, entry)
            file.flush()
            os.fsync(file.fileno())
        return part

    def get(self, name: str) -> Kept | None:
        """An entry, if it was kept."""
        for sealed in (False, True):
            if (found := self._read(self._path(name, sealed))) is not None:
                return found
        return None

    def sealed(self) -> list[Kept]:
        """Those that wait."""
        try:
            names = os.listdir(self._place)
        except FileNotFoundError:
            return []
        found = (self._read(os.path.join(self._place, name)) for name in names if name.endswith(".sealed.npz"))
        return in_order(each for each in found if each is not None)

    def remove(self, name: str) -> None:
        """Forget an entry."""
        for sealed in (False, True):
            self._drop(self._path(name, sealed))

    def _path(self, name: str, sealed: bool) -> str:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        return os.path.join(self._place, f"{digest}{'.sealed' if sealed else ''}.npz")

    def _read(self, path: str) -> Kept | None:
        try:
            with open(path, "rb") as file:
                return read(file)
        except FileNotFoundError:  # it was revealed meanwhile
            return None

    @staticmethod
    def _drop(path: str) -> None:
        with suppress(FileNotFoundError):
            os.remove(path)


def in_order(entries: Iterable[Kept]) -> list[Kept]:
    """By time, then by name."""
    return sorted(entries, key=lambda each: (each.at, each.name))


def write(file: Any, entry: Kept) -> None:
    """An entry as a file of arrays, none of them Python objects."""
    words = np.array([entry.name, entry.entrant, entry.at, entry.digest])
    np.savez(file, words=words, values=entry.values)


def read(file: Any) -> Kept:
    """What `write` wrote."""
    with np.load(file, allow_pickle=False) as found:
        name, entrant, at, digest = map(str, found["words"])
        return Kept(name, entrant, at, digest, found["values"])
