"""Every error afresh raises on purpose, drawn in one place.

    AfreshError
    ├── InvalidArgument    a value that no plan, question or guard accepts
    ├── ImpossibleWidth    a width that no certified method can reach
    ├── QueryError         a question that is not a row expression; found before anything runs, free
    ├── DataError          data that cannot be opened
    │   ├── DataChanged    the data changed after it was opened
    │   └── SameRows       the ledger knows these rows, or some of their columns, from another table
    ├── GuardClosed        the guard was closed
    ├── PlanMismatch       a dataset opened with a plan other than the one its first answer fixed
    ├── BudgetExhausted    the question would cost more than is left; nothing was charged
    ├── EngineError        the engine failed; says nothing about the rows
    ├── LedgerError        the ledger cannot be read or written; nothing was released
    │   └── BrokenChain    its records were changed, dropped or reordered
    ├── EvaluatorFailed    a candidate could not be run on the open items; nothing was charged
    ├── NotScored          a run was not given what it was promised; nothing was charged or recorded
    ├── MissingExtra       an optional part is not installed
    └── ServiceError       a service refused, or could not be reached
        ├── NotAllowed     the token is missing, unknown, expired or revoked
        ├── Forbidden      the token does not allow this
        ├── NotFound       nothing of this name is visible to this token
        ├── Frozen         the steward has frozen the dataset
        ├── TooLarge       more than the service accepts at once
        ├── TooMany        more requests than a token may make
        ├── TimedOut       it took longer than the service waits
        └── Unreachable    no answer came; asking again is safe

and one warning, FewItems: a gate has too few items to detect a useful improvement.

A message says what was wrong, with the value, and what would be right. It never quotes a row. `KINDS` names every error
by its code, which is the same in Python, in a shell and over HTTP, and never changes.
"""

from __future__ import annotations

from typing import Any, ClassVar

from afresh.escaping import visible


class AfreshError(Exception):
    """Base of every error afresh raises on purpose."""

    code: ClassVar[str] = "error"
    """The error's name for programs."""
    status: ClassVar[int] = 500
    """The HTTP status."""
    exit_code: ClassVar[int] = 1
    """The exit code in a shell."""

    def __str__(self) -> str:
        """What was wrong, made safe to print: a message may quote a question or a name."""
        return visible(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message and attributes, whatever the constructor took: errors come back from other processes."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[AfreshError], args: tuple[Any, ...]) -> AfreshError:
    return kind.__new__(kind, *args)


class InvalidArgument(AfreshError, ValueError):
    """A value that no plan, question or guard accepts."""

    code = "invalid-argument"
    status = 422
    exit_code = 2


class ImpossibleWidth(InvalidArgument):
    """A width no certified method can reach under the given limits."""

    code = "impossible-width"
    status = 422


class QueryError(AfreshError, ValueError):
    """The question is not a row expression over the dataset's columns. Free: nothing ran."""

    code = "query-error"
    status = 422
    exit_code = 3


class DataError(AfreshError):
    """The data cannot be opened."""

    code = "data-error"
    status = 500


class DataChanged(DataError):
    """The data changed after it was opened."""

    code = "data-changed"
    status = 503


class SameRows(DataError):
    """The ledger knows another dataset that shares columns or rows with this one. Rows have one budget, even edited."""

    code = "same-rows"
    status = 409


class GuardClosed(AfreshError):
    """The guard was closed; its answers are safe in the ledger."""

    code = "guard-closed"
    status = 503


class PlanMismatch(AfreshError):
    """Another plan is in force, fixed by the first answer."""

    code = "plan-mismatch"
    status = 409
    exit_code = 5


class BudgetExhausted(AfreshError):
    """The question would cost more than is left. Nothing was charged."""

    code = "budget-exhausted"
    status = 409
    exit_code = 4

    def __init__(
        self, *, asked: int, spent: int, questions: int, analyst: str | None = None, message: str | None = None
    ) -> None:
        """`asked` answers were wanted; `spent` of `questions` are gone, from the share of `analyst` if one is named."""
        self.asked, self.spent, self.questions, self.analyst = asked, spent, questions, analyst
        self.left = questions - spent
        super().__init__(
            message
            or f"this needs {asked:,} answer{'s' if asked != 1 else ''}, but {spent:,} of "
            f"{f'the {questions:,} in the share of {analyst}' if analyst else f'{questions:,}'} are spent "
            f"and {self.left:,} {'is' if self.left == 1 else 'are'} left; repeats of earlier questions are free. "
            + (
                "The steward can change a share, within the whole budget."
                if analyst
                else "The limit was fixed before the data was seen: raising it now would void the intervals "
                "already released."
            )
        )


class EngineError(AfreshError):
    """The engine failed. The message never repeats what the engine said about rows."""

    code = "engine-error"
    status = 500


class LedgerError(AfreshError):
    """The ledger cannot be read or written. Nothing was released."""

    code = "ledger-error"
    status = 503


class BrokenChain(LedgerError):
    """Something other than afresh changed, dropped or reordered records; the guard can no longer be trusted."""

    code = "broken-chain"
    status = 503


class EvaluatorFailed(AfreshError):
    """A candidate could not be run on the open items. Nothing was charged."""

    code = "evaluator-failed"
    status = 422

    def __init__(self, message: str, output: str = "") -> None:
        """`output` is the end of what the evaluator wrote, about open items only."""
        self.output = output
        super().__init__(message)


class NotScored(AfreshError):
    """A run could not be started, or its machine failed it: nothing to do with the candidate. Nothing was charged."""

    code = "not-scored"
    status = 503

    def __init__(self, why: str) -> None:
        """`why` says what happened, and what to do about it."""
        super().__init__(f"the run was not scored: {why} Nothing was charged or recorded; ask again afterwards.")


class MissingExtra(AfreshError, ImportError):
    """An optional dependency is not installed."""

    code = "missing-extra"
    status = 501

    def __init__(self, package: str, extra: str) -> None:
        """`package` is missing; the extra `extra` installs it."""
        super().__init__(f"this needs {package}; install it with: pip install 'afresh[{extra}]'")


class ServiceError(AfreshError):
    """A service refused, or could not be reached. Nothing was charged without being answered."""

    code = "service-error"
    status = 500


class NotAllowed(ServiceError):
    """The token is missing, unknown, expired or revoked."""

    code = "not-allowed"
    status = 401


class Forbidden(ServiceError):
    """The token is valid, but does not allow this."""

    code = "forbidden"
    status = 403


class NotFound(ServiceError):
    """Nothing of this name is visible to this token."""

    code = "not-found"
    status = 404


class Frozen(ServiceError):
    """The steward has frozen the dataset: what was released can be read, but nothing new is answered."""

    code = "frozen"
    status = 409


class TooLarge(ServiceError):
    """More than the service accepts at once. Nothing was charged."""

    code = "too-large"
    status = 413


class TooMany(ServiceError):
    """More requests than the token may make. Nothing was charged."""

    code = "too-many-requests"
    status = 429
    after: float = 1.0
    """How many seconds to wait before asking again."""


class TimedOut(ServiceError):
    """It took longer than the service waits. Asking again completes what was paid for, for free."""

    code = "timed-out"
    status = 504


class Unreachable(ServiceError):
    """No answer came. Asking again is safe: a question answered in the meantime is free."""

    code = "unreachable"
    status = 502


def _all(kind: type[AfreshError]) -> list[type[AfreshError]]:
    return [kind, *(each for below in kind.__subclasses__() for each in _all(below))]


KINDS = {kind.code: kind for kind in _all(AfreshError)}
"""Every error by its code."""


class FewItems(UserWarning):
    """A gate has too few items to detect a useful improvement; the warning says how many would be enough."""
