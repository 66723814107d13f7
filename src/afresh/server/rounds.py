"""What was asked in rounds at any worker, so that each of them can repeat all of it in the final look."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from afresh.errors import BudgetExhausted
from afresh.server.store import Store
from afresh.statistics.base import Asker
from afresh.wire.arguments import OF_ROWS, to_statistic

if TYPE_CHECKING:
    from afresh.guard.guard import Guard
    from afresh.guard.path import Reply
    from afresh.moments import Vector
    from afresh.queries.asked import Asked

Questions = Sequence[Mapping[str, Any]]
Document = Mapping[str, Any]
"""A statistic, as written in JSON."""


class Rounds:
    """The questions of every dataset that is asked in rounds, in their original words."""

    def __init__(self, store: Store) -> None:
        """Keep questions in a store that all workers share."""
        self._store = store

    def keep(self, dataset: str, questions: Questions | Document) -> None:
        """Remember what was asked together, or a statistic, with the bounds that the dictionary filled in."""
        self._store.run(
            "INSERT INTO afresh_rounds (dataset, questions) VALUES (?, ?) ON CONFLICT (dataset, questions) DO NOTHING",
            (dataset, json.dumps(questions)),
        )

    def of(self, dataset: str) -> list[Questions | Document]:
        """Everything that was asked of a dataset in rounds."""
        found = self._store.run("SELECT questions FROM afresh_rounds WHERE dataset = ?", (dataset,))
        return [json.loads(questions) for (questions,) in found]

    def ask_again(self, dataset: str, guard: Guard) -> None:
        """Make this worker's guard know all of it: it was paid for. What was not, in an older ledger, is left alone."""
        for kept in self.of(dataset):
            asker = _Repeating(guard.desk, guard.analyst)
            try:
                if isinstance(kept, Mapping):
                    to_statistic(kept, OF_ROWS).measure(asker)
                else:
                    asker.put(guard.checked(kept))
            except BudgetExhausted:
                continue


class _Repeating(Asker):
    """Asks only what was paid for."""

    def put(self, asked: Sequence[Asked], later: int = 0, vector: Vector | None = None) -> list[Reply]:
        """Refuse anything else, as if nothing were left."""
        desk = self.desk
        if unpaid := desk.ledger.unpaid(desk.terms, desk.questions(desk.arranged(asked))):
            raise BudgetExhausted(asked=len(unpaid), spent=0, questions=0)
        return super().put(asked, later, vector)
