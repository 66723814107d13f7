"""What is counted against the caps of tokens while it is asked for, and made exact even if the server is killed.

A hold is written before anything is paid for: how many answers it may take, and which questions. When they are
answered, what was charged is counted and the hold ends, in one transaction. The hold of a process that is gone is
settled by whoever starts next, or runs into the cap: the ledger knows which of its questions were paid for.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from afresh.errors import BudgetExhausted
from afresh.ledger.base import counted
from afresh.server.store import Run, Store

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.server.tokens import Caller


@dataclass(frozen=True, slots=True)
class Hold:
    """Answers that a request may be charged for."""

    id: str
    token: str
    dataset: str
    analyst: str
    after: int
    """How many questions of the dataset had been paid for."""
    answers: int


class Holds:
    """The holds of all workers."""

    def __init__(self, store: Store, find: Callable[[str], Desk | None]) -> None:
        """Keep holds in a store that all workers share; `find` gives the desk of a dataset that is served."""
        self._store, self._find = store, find

    def take(self, caller: Caller, dataset: str, answers: int, questions: Iterable[str] = ()) -> Hold | None:
        """Count answers against a token's cap before they are asked for, or refuse; None if there is nothing to count.

        `questions` are the digests that are known already.
        """
        desk = self._find(dataset)
        if caller.cap is None or caller.id is None or not answers or desk is None:
            return None
        with desk.ledger.reading(desk.terms) as account:
            after = len(account.entries)
        hold = Hold(secrets.token_hex(16), caller.id, dataset, caller.name, after, answers)
        if not self._taken(hold, questions):
            self.settle()
            if not self._taken(hold, questions):
                raise self._exhausted(caller, caller.cap, answers)
        return hold

    def _taken(self, hold: Hold, questions: Iterable[str]) -> bool:
        mine = self._store.mine()
        values = (hold.id, mine, hold.token, hold.dataset, hold.analyst, hold.after, hold.answers, _listed(questions))

        def take(run: Run) -> bool:
            found = run(
                "UPDATE afresh_tokens SET spent = spent + ? WHERE id = ? AND spent + ? <= cap RETURNING id",
                (hold.answers, hold.token, hold.answers),
            )
            if found:
                run(
                    "INSERT INTO afresh_holds (id, holder, token, dataset, analyst, after, answers, questions) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    values,
                )
            return bool(found)

        return self._store.transact(take)

    def _exhausted(self, caller: Caller, cap: int, answers: int) -> BudgetExhausted:
        (row,) = self._store.run("SELECT spent FROM afresh_tokens WHERE id = ?", (caller.id,))
        spent = int(row[0])
        said = f"this may need {answers} answers, but {spent} of this token's {cap} are spent. Nothing was charged. "
        said += "The steward can issue another token."
        return BudgetExhausted(asked=answers, spent=spent, questions=cap, message=said)

    def note(self, hold: Hold, questions: Iterable[str]) -> None:
        """Write down more questions of a request, before they are paid for."""
        self._store.run(
            "UPDATE afresh_holds SET questions = questions || ? WHERE id = ?", (_listed(questions), hold.id)
        )

    def end(self, hold: Hold, charged: int) -> None:
        """Count what was charged, and nothing else; only the first end of a hold counts."""

        def end(run: Run) -> None:
            if run("DELETE FROM afresh_holds WHERE id = ? RETURNING id", (hold.id,)):
                run("UPDATE afresh_tokens SET spent = spent - ? WHERE id = ?", (hold.answers - charged, hold.token))

        self._store.transact(end)

    def end_as_paid(self, hold: Hold) -> None:
        """Count what the ledger says was paid for: the request failed, or its process is gone."""
        desk = self._find(hold.dataset)
        rows = self._store.run("SELECT questions FROM afresh_holds WHERE id = ?", (hold.id,))
        if desk is not None and rows:  # of what is no longer served, nobody can tell
            self.end(hold, paid(desk, hold, frozenset(str(rows[0][0]).split())))

    def settle(self) -> None:
        """End the holds of processes that are gone."""
        rows: list[Any] = self._store.run(
            "SELECT holder, id, token, dataset, analyst, after, answers FROM afresh_holds"
        )
        gone = {holder for holder in {row[0] for row in rows} if self._store.is_gone(holder)}
        for holder, *values in rows:
            if holder in gone:
                self.end_as_paid(Hold(*values))


def paid(desk: Desk, hold: Hold, questions: frozenset[str]) -> int:
    """How many answers the analyst has paid for these questions since the hold was taken."""
    with desk.ledger.reading(desk.terms) as account:
        new = account.entries.reserved[hold.after :]
        return sum(counted(each) for each in new if each.digest in questions and each.analyst == hold.analyst)


def _listed(questions: Iterable[str]) -> str:
    return "".join(f"{each} " for each in questions)
