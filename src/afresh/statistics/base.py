"""What statistics have in common: a price, questions, and an answer made of answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from afresh import checks, display
from afresh.answer import Answer, Interval, answers_in_words, cost_line, coverage, simulation_mark
from afresh.queries.asked import make_asked
from afresh.queries.text import number

if TYPE_CHECKING:
    from afresh.evaluation import AnyAsked
    from afresh.guard import Guard
    from afresh.reading import Reading


class Statistic(Protocol):
    """Something to measure of a guard's rows."""

    @property
    def price(self) -> int:
        """The most answers it costs; what was asked before is free."""
        ...

    def measure(self, asker: Asker) -> Answer | Measures:
        """Ask for its means and put them together."""
        ...


@dataclass
class Asker:
    """Asks a guard for means and adds up what they cost."""

    guard: Guard
    asked: list[Answer] = field(default_factory=list)
    parts: list[Reading] = field(default_factory=list)

    def ask(self, questions: Sequence[dict[str, Any]], *, later: Sequence[str] = ()) -> list[Answer]:
        """Means of row expressions, given by `Guard.ask`'s arguments.

        Expressions like the `later` ones will be asked when these are answered: nothing is paid unless all can be.
        """
        schema = self.guard._engine.schema
        for expression in later:
            make_asked({"expression": expression, "bounds": (0.0, 1.0)}, schema)
        return self.ask_prepared([make_asked(one, schema) for one in questions], len(later))

    def ask_prepared(self, asked: Sequence[AnyAsked], later: int = 0) -> list[Answer]:
        """Means of questions that were checked."""
        found = self.guard._answered(asked, later, own=False)
        self.asked += [answer for answer, _ in found]
        self.parts += [part for _, parts in found for part in parts]
        return [answer for answer, _ in found]

    def answer(
        self, question: str, rule: str, parameters: Mapping[str, Any], bounds: tuple[float, float], missing: str
    ) -> Answer:
        """The answer of a statistic, which follows by a rule from all that was asked."""
        plan, simulated = self.guard.plan, self.guard._terms.simulated
        (stated,) = self.guard._record([self.guard._stated(question, rule, parameters, self.parts, bounds)])
        covers = (
            f"It covers this, {self.guard._target}: it follows from "
            f"{answers_in_words(len(self.parts))}, which hold at once with all others of this guard, with probability "
            f"at least {display.percent(plan.confidence)}, however the questions were chosen."
        )
        return Answer(
            question=question,
            where=None,
            bounds=bounds,
            value=stated.value,
            interval=Interval(stated.low, stated.high),
            confidence=plan.confidence,
            covers=coverage(simulated, covers),
            missing=missing,
            method=plan.method,
            charged=sum(answer.charged for answer in self.asked),
            charged_information=sum(answer.charged_information for answer in self.asked),
            left=self.guard._left(),
            simulated=simulated,
            confirmed=_all_confirmed(self.asked),
            fixes=next((answer.fixes for answer in self.asked if answer.fixes), None),
        )


def _all_confirmed(answers: Sequence[Answer]) -> bool | None:
    found = [answer.confirmed for answer in answers]
    return None if None in found else all(found)


@dataclass(frozen=True, slots=True)
class Measures(display.Told):
    """Several answers with names, such as the bins of a histogram."""

    title: str
    answers: dict[str, Answer]

    def __getitem__(self, name: str) -> Answer:
        """One of them."""
        return self.answers[name]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self.answers)

    def __len__(self) -> int:
        """How many there are."""
        return len(self.answers)

    @property
    def charged(self) -> int:
        """What all of them cost."""
        return sum(answer.charged for answer in self.answers.values())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"title": self.title, "answers": {name: answer.to_dict() for name, answer in self.answers.items()}}

    def _blocks(self) -> list[display.Block]:
        last = list(self.answers.values())[-1]
        rows = [
            [name, *display.with_interval(answer.value, answer.low, answer.high)]
            for name, answer in self.answers.items()
        ]
        return [
            *simulation_mark(last.simulated),
            display.Title(f"{self.title}, {display.percent(last.confidence)}"),
            display.Table(["", "value", "low", "high"], rows),
            display.Line("All intervals hold at once, with all others of this guard."),
            cost_line(self.charged, last.left),
        ]


def clipped(expression: str, bounds: tuple[float, float]) -> str:
    """SQL of a number within its bounds; NULL is the lower one, since greatest() skips it."""
    checks.text("expression", expression, "SQL, as text")
    return f"least(greatest(({expression}), {bounds[0]!r}), {bounds[1]!r})"


def about_missing(bounds: tuple[float, float]) -> str:
    """What became of rows without a value."""
    low, high = map(number, bounds)
    return f"NULL, NaN and infinite values count as {low}, others are clipped to [{low}, {high}]."
