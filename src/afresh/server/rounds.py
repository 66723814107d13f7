"""What was asked in rounds at any worker, so that each of them can repeat all of it in the final look."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from afresh.server.store import Store

if TYPE_CHECKING:
    from afresh.guard.guard import Guard

Questions = Sequence[Mapping[str, Any]]


class Rounds:
    """The questions of every dataset that is asked in rounds, in their original words."""

    def __init__(self, store: Store) -> None:
        """Keep questions in a store that all workers share."""
        self._store = store

    def keep(self, dataset: str, questions: Questions) -> None:
        """Remember what was asked together, with the bounds that the dictionary filled in."""
        self._store.run(
            "INSERT INTO afresh_rounds (dataset, questions) VALUES (?, ?) ON CONFLICT (dataset, questions) DO NOTHING",
            (dataset, json.dumps(questions)),
        )

    def of(self, dataset: str) -> list[Questions]:
        """Everything that was asked of a dataset in rounds."""
        found = self._store.run("SELECT questions FROM afresh_rounds WHERE dataset = ?", (dataset,))
        return [json.loads(questions) for (questions,) in found]

    def ask_again(self, dataset: str, guard: Guard) -> None:
        """Make this worker's guard know all of it: it was paid for. What was not, in an older ledger, is left alone."""
        inner = guard.desk
        for questions in self.of(dataset):
            asked = guard.checked(questions)
            if not inner.ledger.unpaid(inner.terms, inner.questions(map(inner.arranged, asked))):
                guard.ask_checked(asked)
