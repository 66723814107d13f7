"""Every error afresh raises on purpose, drawn in one place.

    AfreshError
    ├── InvalidArgument    a value no plan, question or guard can take
    ├── ImpossibleWidth    a width no certified method can reach
    ├── QueryError         a question that is not a row expression; found before anything runs, free
    ├── DataError          data that cannot be opened
    │   ├── DataChanged    the data are no longer those that were opened
    │   └── SameRows       the ledger knows these rows, or some columns of them, in another table
    ├── GuardClosed        the guard was closed
    ├── PlanMismatch       data opened with another plan than the one their first answer has fixed
    ├── BudgetExhausted    the question would cost more than is left; nothing was charged
    ├── EngineError        the engine failed; says nothing about the rows
    ├── LedgerError        the ledger cannot be read or written; nothing was released
    │   └── BrokenChain    its records were changed, dropped or reordered
    └── MissingExtra       an optional part is not installed

and one warning, FewItems: a gate has too few items to notice a useful improvement.

A message says what was wrong, with the value, and what would be right. It never quotes a row.
"""

from __future__ import annotations

from typing import Any

from afresh.escaping import visible


class AfreshError(Exception):
    """Base of every error afresh raises on purpose."""

    def __str__(self) -> str:
        """What was wrong, in words that are safe to print: they may quote a question or a name."""
        return visible(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """By its words and what it carries, whatever it was made from: errors come back from other processes."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[AfreshError], args: tuple[Any, ...]) -> AfreshError:
    return kind.__new__(kind, *args)


class InvalidArgument(AfreshError, ValueError):
    """A value no plan, question or guard can take."""


class ImpossibleWidth(InvalidArgument):
    """A width no certified method can reach under the given limits."""


class QueryError(AfreshError, ValueError):
    """The question is not a row expression over the data's columns. Free: nothing ran."""


class DataError(AfreshError):
    """The data cannot be opened."""


class DataChanged(DataError):
    """The data are no longer the ones that were opened."""


class SameRows(DataError):
    """The ledger has a guard of other data that share columns with these: rows have one budget, however edited."""


class GuardClosed(AfreshError):
    """The guard was closed; what it answered is kept."""


class PlanMismatch(AfreshError):
    """Another plan is in force, fixed by the first answer."""


class BudgetExhausted(AfreshError):
    """The question would cost more than is left. Nothing was charged."""

    def __init__(
        self, *, asked: int, spent: int, questions: int, analyst: str | None = None, message: str | None = None
    ) -> None:
        """`asked` answers were wanted, `spent` of `questions` are gone: of the share of `analyst`, if one is named."""
        self.asked, self.spent, self.questions, self.analyst = asked, spent, questions, analyst
        self.left = questions - spent
        affordable = (
            f"{self.left} more answer{'s are' if self.left > 1 else ' is'} affordable"
            if self.left
            else "only repeats of earlier questions are affordable: they are free"
        )
        super().__init__(
            message
            or f"this needs {asked} answer{'s' if asked != 1 else ''}, but {spent} of {questions} are spent "
            f"and {self.left} left{f' in the share of {analyst}' if analyst else ''}; {affordable}. "
            + (
                "A share can be changed by whoever divides the budget, within the whole."
                if analyst
                else "The limit was fixed before the data were seen: raising it now would void the intervals "
                "already released."
            )
        )


class EngineError(AfreshError):
    """The engine failed. The message never carries what the engine said about rows."""


class LedgerError(AfreshError):
    """The ledger cannot be read or written. Nothing was released."""


class BrokenChain(LedgerError):
    """Records were changed, dropped or reordered by something else than afresh; nothing in the guard can be trusted."""


class MissingExtra(AfreshError, ImportError):
    """An optional part is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        """`package` is missing; `extra` brings it."""
        super().__init__(f"this needs {package}; install it with: pip install 'afresh[{extra}]'")


class FewItems(UserWarning):
    """A gate has too few items to notice a useful improvement; it says how many would be enough."""
