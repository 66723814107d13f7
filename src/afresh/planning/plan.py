"""What can be promised before any data are seen: `plan` and the frozen `Plan` it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.ledger.base import ENDS, Limits
from afresh.mechanisms.base import TYPICAL_MEANS, Mechanism, at_coarseness, geometric_mean
from afresh.mechanisms.registry import IN_ROUNDS, MECHANISMS, PLANNERS, PROMISING, Planner, planner_for
from afresh.planning.request import complement
from afresh.planning.solve import fewest_rows, most_questions, most_rounds
from afresh.planning.table import Method, advise, compare, table
from afresh.results import show

FEWEST_ROWS = 20


@dataclass(frozen=True)
class Plan(show.Shown):
    """Method and constants under which a dataset will be questioned; fixed before the data are seen.

    With probability at least `confidence`, over sample and noise, every interval released over the whole life
    of the guard contains its truth, however the questions were chosen: for rows that are independent draws
    from the population, at most `questions` answers, and an analyst who sees nothing else of the rows.
    """

    mechanism: Mechanism
    ends: float = field(default_factory=lambda: ENDS)
    """The step of the public grid of [0, 1] to which ends of intervals are rounded outward."""

    @property
    def method(self) -> str:
        """The mechanism's name."""
        return self.mechanism.method

    @property
    def rows(self) -> int:
        """n, the number of rows."""
        return self.mechanism.rows

    @property
    def questions(self) -> int:
        """k, how many answers at full price can be released."""
        return self.mechanism.questions

    @property
    def answers(self) -> int:
        """The most answers that can be released if some are asked coarser; at least `questions`."""
        return self.mechanism.answers

    @property
    def confidence(self) -> float:
        """The probability with which all intervals hold at once."""
        return complement(self.mechanism.failure)

    @property
    def rounds(self) -> int | None:
        """How many rounds of questions have rows of their own; None for methods without rounds."""
        batch = self.mechanism.batch
        return None if batch is None else int(self.parameters["rounds"])

    @property
    def in_words(self) -> str:
        """What the first answer fixes, in one line."""
        rounds = "" if self.rounds is None else f" in {self.rounds:,} round{'' if self.rounds == 1 else 's'}"
        return f"{self.questions:,} questions{rounds} at {show.percent(self.confidence)}, by {self.method}"

    @property
    def parameters(self) -> dict[str, float]:
        """The mechanism's public constants."""
        return asdict(self.mechanism)

    @property
    def failure_use(self) -> dict[str, float]:
        """How the failure probability 1 - confidence is used."""
        return self.mechanism.failure_use

    @property
    def information(self) -> float | None:
        """The information budget in nats, a hard limit, reached after `questions` answers; None without one."""
        return self.mechanism.information

    @property
    def charge(self) -> float:
        """Nats that one answer is charged."""
        return self.mechanism.charge

    def half_width(self, mean: float = 0.5, coarseness: float = 1.0) -> float:
        """Half the length of the interval around an answer that reads `mean`, on the scale [0, 1].

        Args:
            mean: Where the answer lies, as a share of the range between the bounds.
            coarseness: How many times the plan's noise it has; 1 for an answer at full price.

        Returns:
            Half the interval's length; for a method that promises no width, what it is if checks pass.

        Raises:
            InvalidArgument: A mean outside [0, 1], or a coarseness the method does not offer.
        """
        mean = checks.share("mean", mean, ": rescale by the bounds first")
        coarseness = checks.number("coarseness", coarseness, "a number from 1 to 1e6", least=1, most=1e6)
        return self.at(coarseness).half_width(mean)

    def at(self, coarseness: float) -> Mechanism:
        """The mechanism of an answer with so many times the noise; all answers share the plan's certificate.

        Args:
            coarseness: How many times the plan's noise; 1 is the plan's own mechanism.

        Returns:
            The mechanism with the charge and the intervals of such an answer.

        Raises:
            InvalidArgument: The method gives all answers the same noise, or cannot certify that much.
        """
        return at_coarseness(self.mechanism, coarseness)

    @cached_property
    def methods(self) -> dict[str, Method]:
        """The certified methods at these rows, questions and confidence, then the reference lines."""
        return compare(self.mechanism)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with the comparison."""
        return {
            "method": self.method,
            "rows": self.rows,
            "questions": self.questions,
            "answers": self.answers,
            "confidence": self.confidence,
            "information": self.information,
            "charge": self.charge,
            "half_width": {f"{mean:g}": self.half_width(mean) for mean in TYPICAL_MEANS},
            "parameters": self.parameters,
            "ends": self.ends,
            "failure_use": self.failure_use,
            "methods": {name: method.to_dict() for name, method in self.methods.items()},
        }

    @property
    def limits(self) -> Limits:
        """The plan as a ledger keeps it: the method with its constants, the caps, and both grids."""
        constants = {name: value for name, value in self.parameters.items() if name != "grid"}
        return Limits(
            plan={"method": self.method, **constants},
            questions=self.questions,
            answers=self.answers,
            information=self.information or 0.0,
            row_share=self.mechanism.row_share,
            grid=self.mechanism.grid,
            ends=self.ends,
        )

    @classmethod
    def thaw(cls, limits: Limits) -> Plan:
        """The plan a ledger kept; nothing is derived or optimised again, so an upgrade cannot change an interval.

        Args:
            limits: As `limits` gave them.

        Returns:
            The same plan.

        Raises:
            InvalidArgument: This afresh does not know the method, or its constants.
        """
        constants = dict(limits.plan)
        if limits.grid is not None:
            constants["grid"] = limits.grid
        method = constants.pop("method", None)
        try:
            return cls(MECHANISMS[method](**constants), limits.ends)
        except (KeyError, TypeError):
            raise InvalidArgument(
                f"the plan is by method={method!r} with the constants {', '.join(constants)}, which this afresh does "
                "not know; use the afresh that made it, or a later one."
            ) from None

    @property
    def advice(self) -> str:
        """What the method can and cannot promise in advance, and which other would be narrower."""
        return advise(self.mechanism, self.methods)

    def _blocks(self) -> list[show.Block]:
        widths = [f"±{show.width(self.half_width(mean))} at {mean:g}" for mean in TYPICAL_MEANS]
        return [
            show.Title(
                f"{self.questions:,} questions to {self.rows:,} rows, {show.percent(self.confidence)}",
            ),
            show.Facts(
                {
                    "method": self.method,
                    "half-width": ", ".join(widths)
                    + " (share of rows)"
                    + (self.mechanism.proviso and f", {self.mechanism.proviso}"),
                    "information": self.mechanism.accounted,
                    "failure": ", ".join(f"{v:.4g} {k}" for k, v in self.failure_use.items()),
                    "constants": ", ".join(
                        f"{k}={v:.6g}" for k, v in self.parameters.items() if k not in _SAID_ELSEWHERE
                    )
                    or "none",
                }
            ),
            table(self.methods, self.method),
            show.Line(self.advice),
        ]


_SAID_ELSEWHERE = ("rows", "questions", "failure")


def plan(
    rows: int | None = None,
    questions: int | None = None,
    confidence: float = 0.95,
    *,
    answers: int | None = None,
    width: float | None = None,
    mean: float = 0.5,
    method: str | None = None,
    rounds: int | None = None,
) -> Plan:
    """Plan from any two of rows, questions and width, before any data are seen.

    Without a width, the method is the one with the smallest geometric mean of guaranteed half-widths at means 0.5,
    0.1 and 0.01; with one, that which needs the fewest rows or allows the most questions. With rows, questions and a
    width it is a plan for as many rounds of questions as keep it.

    Args:
        rows: How many rows the data have, at least 20.
        questions: How many answers at full price there may be.
        confidence: The probability with which all intervals hold at once.
        answers: The most answers if some are coarser and cheaper; more than `questions` makes all a little wider.
        width: The half-width that is needed, in place of `rows` or `questions`; below 0.5, on the scale [0, 1].
        mean: Where an answer lies when it must be that narrow; intervals are widest at 0.5.
        method: The name of a method, to force it.
        rounds: In how many rounds questions will be asked, each on fresh rows: questions that are asked together, in
            one `ask_many` for example, are one round. With rows, questions and width, the most rounds are found.

    Returns:
        The plan, with the comparison of all methods in `methods` and words about the choice in `advice`.

    Raises:
        InvalidArgument: Not exactly two of rows, questions and width, or a value out of range.
        ImpossibleWidth: No method reaches the width under these limits.
    """
    failure = complement(checks.confidence(confidence))
    planners = _planners(method, rounds)
    if rows is not None:
        rows = checks.whole("rows", rows, FEWEST_ROWS)
    if questions is not None:
        questions = checks.whole("questions", questions, 1)
    if answers is not None:
        if questions is None:
            raise InvalidArgument("answers needs questions, of which it is at least as many.")
        answers = checks.whole("answers", answers, questions)
    if width is None:
        if rows is None or questions is None:
            raise InvalidArgument("a plan needs two of rows, questions and width.")
        return Plan(_narrowest(planners, rows, questions, failure, answers))
    must_be = "a number in (0, 0.5): ±0.5 is promised by saying nothing"
    width, mean = checks.number("width", width, must_be, above=0, below=0.5), checks.share("mean", mean)
    if rows is not None and questions is not None and rounds is None and method in (None, IN_ROUNDS):
        return Plan(most_rounds(rows, questions, width, mean, failure))
    if (rows is None) == (questions is None):
        raise InvalidArgument("with a width, give exactly one of rows and questions.")
    if rows is not None:
        return Plan(most_questions(planners, rows, width, mean, failure))
    assert questions is not None
    return Plan(fewest_rows(planners, questions, width, mean, failure, FEWEST_ROWS, answers))


def _planners(method: str | None, rounds: int | None) -> Mapping[str, Planner]:
    """Those to choose from: the one that is named or that has rounds, or all that promise their widths."""
    if rounds is None:
        return PROMISING if method is None else {method: PLANNERS[checks.one_of("method", method, PLANNERS)]}
    rounds = checks.whole("rounds", rounds, 1)
    if method not in (None, IN_ROUNDS):
        raise InvalidArgument(f"rounds == {rounds}, but method={method!r} has no rounds; leave one of them out.")
    return {IN_ROUNDS: planner_for(rounds)}


def _narrowest(
    planners: Mapping[str, Planner], rows: int, questions: int, failure: float, answers: int | None
) -> Mechanism:
    found = [m for p in planners.values() if (m := p(rows, questions, failure, answers)) is not None]
    if not found:
        why = " and ".join(MECHANISMS[name].unavailable for name in planners)
        able = [f"method={name!r}" for name, p in PROMISING.items() if p(rows, questions, failure, answers) is not None]
        raise InvalidArgument(
            f"{', '.join(planners)} cannot answer {questions:,} questions from {rows:,} rows ({why}); use "
            f"{', '.join([*able, 'more rows'])} or fewer questions."
        )
    return min(found, key=lambda m: geometric_mean(m.half_width))
