"""What is behind a guard: the desk in this process, or a service that has one.

`Guard` defines what can be asked and checks what it can without rows; `Doors` is what depends on where the desk is.
`LocalDoors` leads to a desk in this process; `afresh.client.doors` leads to a service.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from afresh.guard.outside import convert
from afresh.results.transcript import Transcript, transcribed

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.guard.tasked import Tasked
    from afresh.results.answer import Answer
    from afresh.results.budget import Budget
    from afresh.results.claims import Claimed
    from afresh.results.fitted import Fitted, Task
    from afresh.results.price import Price
    from afresh.statistics.base import Measures, Statistic

Question = Mapping[str, Any]
"""The arguments of `Guard.ask`, by name."""


def claimed(expression: Any, bounds: Any, missing: Any, where: Any) -> Question:
    """What a claim is about; a service of an older version knows no group."""
    return {"expression": expression, "bounds": bounds, "missing": missing} | (
        {} if where is None else {"where": where}
    )


class Doors(Protocol):
    """Everything a guard needs done, in one analyst's name."""

    def named(self, analyst: str) -> Doors:
        """Return the same doors under another analyst's name."""
        ...

    def checked(self, questions: Iterable[Any]) -> list[Any]:
        """Prepare questions for `answers` and `exam`; every mistake is an error here, and free."""
        ...

    def answers(self, asked: Sequence[Any], rows: int | None) -> list[Answer]:
        """Answer questions that `checked` returned; all are charged, or none. In rounds, use this many fresh rows."""
        ...

    def exam(self, asked: Sequence[Any]) -> list[Answer]:
        """Answer them from the rows kept for the exam."""
        ...

    def price(self, question: Question, expected: Mapping[str, Any]) -> Price:
        """Price a question; `expected` has the other arguments of `Guard.price`."""
        ...

    def price_of(self, statistic: Statistic, expected: Mapping[str, Any]) -> Price:
        """Price a statistic; `expected` has the mean, share and deviation of `Guard.price`."""
        ...

    def measure(self, statistic: Statistic) -> Answer | Measures:
        """Measure a statistic."""
        ...

    def claim(self, question: Question, between: Any) -> Claimed:
        """Test whether a mean lies between two ends."""
        ...

    def detects(self, question: Question, between: Any, **expected: float | None) -> float:
        """Return what such a claim can show."""
        ...

    def fit(self, task: Task) -> Fitted:
        """Fit a model by noisy gradients."""
        ...

    def open_rows(self, kind: str | None) -> Any:
        """Return the open rows as a frame of this kind."""
        ...

    def close_rounds(self) -> list[Answer]:
        """Take the final look."""
        ...

    def charge(self, revealed: str, basis: Mapping[str, Any], rows: int | None, count: int) -> Budget:
        """Record what was revealed elsewhere; `basis` says how it was protected."""
        ...

    def divide(self, shares: Mapping[str, int]) -> Budget:
        """Divide the budget."""
        ...

    def budget(self) -> Budget:
        """Return what is left."""
        ...

    def transcript(self) -> Transcript:
        """Return everything that was released."""
        ...

    def receipt(self) -> dict[str, Any]:
        """Return the same as a document."""
        ...


class LocalDoors:
    """The doors of a desk in this process."""

    def __init__(self, desk: Desk, analyst: str) -> None:
        """Open the doors of this desk in an analyst's name."""
        self._desk, self._analyst = desk, analyst

    def named(self, analyst: str) -> LocalDoors:
        """Return the same doors under another analyst's name."""
        return LocalDoors(self._desk, analyst)

    def checked(self, questions: Iterable[Any]) -> list[Any]:
        """Return the questions in the form the desk takes."""
        from afresh.queries.asked import make_asked  # on demand: `import afresh` stays fast

        return [make_asked(question, self._desk.schema) for question in questions]

    def answers(self, asked: Sequence[Any], rows: int | None) -> list[Answer]:
        """Answer the questions."""
        return [self._desk.tell(reply) for reply in self._desk.answer(asked, self._analyst, rows=rows)]

    def exam(self, asked: Sequence[Any]) -> list[Answer]:
        """Take the exam."""
        return [self._desk.tell(reply) for reply in self._desk.answer(asked, self._analyst, exam=True)]

    def price(self, question: Question, expected: Mapping[str, Any]) -> Price:
        """Price a question."""
        from afresh.guard.pricing import price_of_question

        (asked,) = self.checked([question])
        return price_of_question(self._desk, self._analyst, asked, **expected)

    def price_of(self, statistic: Statistic, expected: Mapping[str, Any]) -> Price:
        """Price a statistic."""
        from afresh.guard.pricing_statistics import Guess, price_of_statistic

        return price_of_statistic(self._desk, self._analyst, statistic, Guess(**expected))

    def measure(self, statistic: Statistic) -> Answer | Measures:
        """Measure a statistic."""
        from afresh.statistics.base import Asker

        return statistic.measure(Asker(self._desk, self._analyst))

    def claim(self, question: Question, between: Any) -> Claimed:
        """Test a claim."""
        from afresh.guard.claims import put

        return put(self._desk, self._analyst, self._claim(question, between))

    def detects(self, question: Question, between: Any, **expected: float | None) -> float:
        """Return what a claim made now can show."""
        from afresh.guard.claims import present

        return present(self._desk, self._claim(question, between), **expected)

    def _claim(self, question: Question, between: Any) -> Tasked:
        from afresh.guard.claims import of_mean, single

        (asked,) = self.checked([question])
        return of_mean(single(asked, public=self._desk.scope.features == "public"), between)

    def fit(self, task: Task) -> Fitted:
        """Fit a model."""
        from afresh.learn.fitting import fit

        return fit(self._desk, self._analyst, task)

    def open_rows(self, kind: str | None) -> Any:
        """Return the open rows, as the kind of frame that was opened unless one is given."""
        from afresh.guard.opened import as_kind, hand_out, places_of

        table, span = hand_out(self._desk, self._analyst)
        return as_kind(self._desk.kind if kind is None else kind, table, lambda: places_of(self._desk, span))

    def close_rounds(self) -> list[Answer]:
        """Answer this desk's questions once more."""
        return [self._desk.tell(reply) for reply in self._desk.look_again(self._analyst)]

    def charge(self, revealed: str, basis: Mapping[str, Any], rows: int | None, count: int) -> Budget:
        """Record the charge."""
        basis = dict(basis)
        if basis["study"] is not None:
            from afresh.receipts.study import spent_by

            head, basis["study"] = spent_by(basis["study"])
            revealed = f"{revealed} (receipt {head})"
        charge = convert(self._desk.plan, revealed, basis, rows, count)
        self._desk.ledger.charge(self._desk.terms, charge, self._analyst)
        return self.budget()

    def divide(self, shares: Mapping[str, int]) -> Budget:
        """Record the division."""
        self._desk.ledger.divide(self._desk.terms, dict(shares), self._analyst)
        return self.budget()

    def budget(self) -> Budget:
        """Return the budget as of now."""
        from afresh.guard.budgeting import budget_of

        return budget_of(self._desk, self._analyst)

    def transcript(self) -> Transcript:
        """Return everything that was released, by any process, in order."""
        ledger, terms, plan = self._desk.ledger, self._desk.terms, self._desk.plan
        entries = transcribed(ledger.entries(terms), ledger.stated(terms), exam=plan.exam is not None)
        return Transcript(entries, plan.confidence, terms.simulated)

    def receipt(self) -> dict[str, Any]:
        """Return the receipt, for `afresh verify`."""
        from afresh.receipts import make_receipt

        return make_receipt(self._desk.ledger.chain(self._desk.terms))
