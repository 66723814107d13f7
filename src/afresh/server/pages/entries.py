"""Predictions that were scored on a page, kept so that later ones can be compared with them.

Analysts sent them, so they contain nothing about the guarded rows. They are stored where all workers find them.
"""

from __future__ import annotations

import base64
import hashlib
import io
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.errors import NotFound
from afresh.models.predictions import Made

if TYPE_CHECKING:
    from afresh.server.store import Store


@dataclass(frozen=True, slots=True)
class Entry:
    """One model's predictions, scored."""

    id: str
    name: str
    analyst: str
    made: int
    """Seconds since 1970."""
    loss: str
    """Its mean loss with the interval, in words."""
    value: float
    low: float
    high: float

    @property
    def day(self) -> str:
        """When it was scored."""
        return time.strftime("%Y-%m-%d %H:%M", time.gmtime(self.made))


_FIELDS = "id, name, analyst, made, loss, value, low, high"


class Entries:
    """The scored predictions of a service."""

    def __init__(self, store: Store) -> None:
        """Keep entries in the store that all workers share."""
        self._store = store

    def keep(self, dataset: str, name: str, analyst: str, model: Made, score: Any) -> str:
        """Keep what was scored and return its id; the same predictions again, which are free, keep their first name."""
        values = _packed(model.values)
        id = hashlib.sha256(values.encode()).hexdigest()
        value, low, high = score.shown()
        self._store.run(
            f"INSERT INTO afresh_entries (dataset, predictions, {_FIELDS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (dataset, id) DO NOTHING",
            (
                *(dataset, values, id, name, analyst, int(time.time()), f"{value} [{low}, {high}]"),
                *(score.value, score.low, score.high),
            ),
        )
        return id

    def all(self, dataset: str, most: int = 200) -> list[Entry]:
        """The entries of a dataset, newest first."""
        rows = self._store.run(
            f"SELECT {_FIELDS} FROM afresh_entries WHERE dataset = ? ORDER BY made DESC, id LIMIT ?", (dataset, most)
        )
        return [Entry(*row) for row in rows]

    def count(self, dataset: str) -> int:
        """How many entries a dataset has; each comes a moment after its answer, or long after, if that was known."""
        ((found,),) = self._store.run("SELECT count(*) FROM afresh_entries WHERE dataset = ?", (dataset,))
        return int(found)

    def find(self, dataset: str, id: str) -> tuple[str, Made]:
        """The name and the predictions of an entry."""
        rows = self._store.run(
            "SELECT name, predictions FROM afresh_entries WHERE dataset = ? AND id = ?", (dataset, id)
        )
        if not rows:
            raise NotFound(f"there is no entry {id!r} of {dataset} any longer; reload the page.")
        return rows[0][0], Made("predictions", _unpacked(rows[0][1]))


def _packed(values: Any) -> str:
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, values=np.asarray(values))
    return base64.b64encode(out.getvalue()).decode()


def _unpacked(text: str) -> Any:
    with np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False) as found:
        return found["values"]
