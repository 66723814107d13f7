"""The predictions of board entries, in the tables that all workers of a service share."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from afresh.boards.shelf import Kept, in_order, read, write

if TYPE_CHECKING:
    from afresh.server.store import Store


class Stored:
    """A shelf in the tables that all workers of a service share."""

    def __init__(self, store: Store, board: str) -> None:
        """Open the shelf of one board."""
        self._store, self._board = store, board

    def claim(self, entry: Kept, *, sealed: bool) -> bool:
        """Keep an entry unless its name is taken."""
        content = io.BytesIO()
        write(content, entry)
        self._store.run(
            "INSERT INTO afresh_shelf (board, entry, sealed, content) VALUES (?, ?, ?, ?) ON CONFLICT (board, entry) "
            "DO NOTHING",
            (self._board, entry.name, int(sealed), content.getvalue()),
        )
        found = self.get(entry.name)
        return found is not None and found.digest == entry.digest

    def put(self, entry: Kept, *, sealed: bool) -> None:
        """Keep an entry."""
        content = io.BytesIO()
        write(content, entry)
        self._store.run(
            "INSERT INTO afresh_shelf (board, entry, sealed, content) VALUES (?, ?, ?, ?) ON CONFLICT (board, entry) "
            "DO UPDATE SET sealed = excluded.sealed, content = excluded.content",
            (self._board, entry.name, int(sealed), content.getvalue()),
        )

    def get(self, name: str) -> Kept | None:
        """An entry, if it was kept."""
        found = self._store.run("SELECT content FROM afresh_shelf WHERE board = ? AND entry = ?", (self._board, name))
        return read(io.BytesIO(found[0][0])) if found else None

    def sealed(self) -> list[Kept]:
        """The entries that wait to be revealed."""
        found = self._store.run("SELECT content FROM afresh_shelf WHERE board = ? AND sealed = 1", (self._board,))
        return in_order(read(io.BytesIO(content)) for (content,) in found)

    def remove(self, name: str) -> None:
        """Forget an entry."""
        self._store.run("DELETE FROM afresh_shelf WHERE board = ? AND entry = ?", (self._board, name))
