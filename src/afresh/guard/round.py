"""A round: questions collected and then asked together."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from afresh.guard.guard import Guard
    from afresh.results.answer import Answer


class Round:
    """Questions that are asked together when the round ends. Made by `Guard.round`."""

    def __init__(self, guard: Guard, rows: int | None) -> None:
        """Not for users."""
        self._guard, self._rows, self._asked = guard, rows, list[Any]()
        self.answers: list[Answer] = []
        """The answers, in the order of the questions, once the round has ended."""

    def ask(self, expression: Any, **arguments: Any) -> None:
        """Add a question to the round.

        Args:
            expression: As in `Guard.ask`.
            **arguments: As in `Guard.ask`.

        Raises:
            QueryError: It cannot be asked of these columns.
        """
        self.ask_many([{"expression": expression, **arguments}])

    def ask_many(self, questions: Iterable[Any]) -> None:
        """Add a list of questions to the round.

        Args:
            questions: As in `Guard.ask_many`.

        Raises:
            QueryError: One of them cannot be asked.
        """
        self._asked += self._guard.checked(questions)

    def __enter__(self) -> Self:
        """Return the round itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Answer the questions, unless the body failed."""
        if kind is None:
            self.answers = self._guard.ask_checked(self._asked, self._rows)
