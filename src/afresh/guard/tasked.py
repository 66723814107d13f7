"""A question with a task: rows that release only symbols are asked for a symbol instead of a mean."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from afresh.guard.evaluate import moments_of

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.mechanisms.tasks import Task
    from afresh.moments import Span
    from afresh.queries.base import RowQuestion


@dataclass(frozen=True, eq=False, slots=True)
class Tasked:
    """A question for one symbol that depends on the means of one or several row functions."""

    inner: tuple[RowQuestion, ...]
    task: Task
    text: str
    bounds: tuple[float, float] = (0.0, 1.0)
    levels: int | None = None
    missing: float | None = None

    @property
    def digest(self) -> str:
        """The digest of what is averaged and of the task: a different claim is a different question."""
        names = [query.digest for query in self.inner]
        return hashlib.sha256(f"{' '.join(names)} {self.task!r}".encode()).hexdigest()

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns of all row functions; None if one of them reads none."""
        found = [query.columns for query in self.inner]
        known = [each for each in found if each is not None]
        return frozenset().union(*known) if len(known) == len(found) else None

    @property
    def alone(self) -> bool:
        """Whether one of the row functions is a user's function."""
        return any(query.alone for query in self.inner)

    @staticmethod
    def moments_of(engine: Engine, questions: Sequence[Tasked], spans: Sequence[Span] | None) -> list[Any]:
        """Return the moments of all its row functions: a list, or the only one."""
        inner = [query for each in questions for query in each.inner]
        own = None if spans is None else [s for each, s in zip(questions, spans, strict=True) for _ in each.inner]
        found = iter(moments_of(engine, inner, own))
        parts = [[next(found) for _ in each.inner] for each in questions]
        return [part[0] if len(part) == 1 else part for part in parts]


def task_of(query: RowQuestion) -> Task | None:
    """Return the task, if something other than a mean is asked for."""
    return query.task if isinstance(query, Tasked) else None
