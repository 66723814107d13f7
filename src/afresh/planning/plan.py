"""What can be promised before any data are seen: `plan` and the frozen `Plan` it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from types import EllipsisType
from typing import Any, Protocol

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.ledger.base import ENDS, Limits
from afresh.mechanisms.base import (
    TYPICAL_MEANS,
    Mechanism,
    NeverEnds,
    at_coarseness,
    at_coordinate,
    at_levels,
    geometric_mean,
)
from afresh.mechanisms.registry import (
    DEVIATING,
    ENDLESS,
    FOLLOWING,
    IN_ROUNDS,
    MECHANISMS,
    PLANNERS,
    PROMISING,
    TUNED,
    WITH_OPEN_ROWS,
    Planner,
    planner_for,
    planner_for_deviation,
    planner_with_open,
    planner_without_end,
)
from afresh.moments import Vector
from afresh.planning.request import check_deviation, check_parts, complement
from afresh.planning.solve import fewest_rows, most_questions, most_rounds
from afresh.planning.table import Method, advise, compare, table
from afresh.planning.ways import Way, largest_share, narrowest_share, recommended, ways
from afresh.results import show

FEWEST_ROWS = 20


class Paid(Protocol):
    """What of an answer decides how it is made."""

    @property
    def coarseness(self) -> float:
        """How many times the plan's noise."""
        ...

    @property
    def levels(self) -> int | None:
        """How many values the question has; None if any."""
        ...

    @property
    def vector(self) -> tuple[str, int, int, int] | None:
        """Which coordinate of which vector."""
        ...


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
    def expected(self) -> int | None:
        """For about how many answers a budget that never ends is made; None for those with an end."""
        return self.mechanism.expected if isinstance(self.mechanism, NeverEnds) else None

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
    def open(self) -> int | None:
        """How many rows are open, for the analyst to hold; None where none are."""
        span = self.mechanism.open_rows
        return None if span is None else span.rows

    @property
    def exam(self) -> int | None:
        """How many rows are kept for the exam; None where none are."""
        span = self.mechanism.exam_rows
        return None if span is None else span.rows

    @property
    def in_words(self) -> str:
        """What the first answer fixes, in one line."""
        rounds = "" if self.rounds is None else f" in {self.rounds:,} round{'' if self.rounds == 1 else 's'}"
        widths = "" if self.mechanism.promised else ", whose widths are expected and not promised"
        exam = "" if self.exam is None else f", {self.exam:,} rows kept for an exam"
        said = f"{self._count}{rounds} at {show.percent(self.confidence)}, by {self.method}"
        return f"{said}{widths}{exam}"

    @property
    def _count(self) -> str:
        return f"{self.questions:,} questions" if self.expected is None else "questions without end"

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

    def of(self, paid: Paid) -> Mechanism:
        """The mechanism of an answer that was paid for, whatever its noise and whether it is a vector's coordinate.

        Args:
            paid: An entry of the ledger, or the record of its reservation.

        Returns:
            The mechanism with its charge and its interval.
        """
        vector = paid.vector
        if vector is not None:
            return at_coordinate(self.mechanism, Vector(*vector))
        return at_levels(self.at(paid.coarseness), paid.levels)

    @cached_property
    def ways(self) -> list[Way]:
        """The ways to ask as many questions of as many rows, the narrowest at a mean of one half first."""
        return [] if self.expected is not None else ways(self.mechanism, lambda m: m.half_width(0.5))

    @property
    def recommendation(self) -> str:
        """Which way to ask is the narrowest, in words; empty for a budget without end."""
        return "" if self.expected is not None else recommended(self.mechanism)

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
            "recommendation": self.recommendation,
            "ways": [asdict(way) for way in self.ways],
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
            show.Title(f"{self._count} to {self.rows:,} rows, {show.percent(self.confidence)}"),
            *([show.Line(self.recommendation)] if self.recommendation else []),
            show.Facts(
                {
                    "method": self.method,
                    "half-width": ", ".join(widths)
                    + " (share of rows)"
                    + (self.mechanism.proviso and f", {self.mechanism.proviso}"),
                    "information": self.mechanism.accounted,
                    "failure": ", ".join(f"{v:.4g} {k}" for k, v in self.failure_use.items()),
                    "constants": ", ".join(
                        f"{k}={v:.6g}" for k, v in self.parameters.items() if k not in _SAID_ELSEWHERE and v is not None
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
    questions: int | EllipsisType | None = ...,
    confidence: float = 0.95,
    *,
    answers: int | None = None,
    width: float | None = None,
    mean: float = 0.5,
    method: str | None = None,
    rounds: int | None = None,
    typical: float | Sequence[float] | None = None,
    disagreement: float | None = None,
    open: float | None = None,
    exam: float | None = None,
    development: int | None = None,
    promise: bool = False,
    deviation: float | None = None,
) -> Plan:
    """Plan from any two of rows, questions and width, before any data are seen.

    Without a width, the method and its constants are those with the smallest geometric mean of guaranteed half-widths
    at the `typical` means, 0.5, 0.1 and 0.01 unless you say otherwise; with one, that which needs the fewest rows or
    allows the most questions. With rows, questions and a width it is a plan for as many rounds of questions as keep it.

    Args:
        rows: How many rows the data have, at least 20.
        questions: How many answers at full price there may be; None for a budget that never ends, whose answers are a
            little wider, and grow wider slowly.
        confidence: The probability with which all intervals hold at once.
        answers: The most answers if some are coarser and cheaper; more than `questions` makes all a little wider.
        width: The half-width that is needed, in place of `rows` or `questions`; below 0.5, on the scale [0, 1].
        mean: Where an answer lies when it must be that narrow; intervals are widest at 0.5.
        method: The name of a method, to force it.
        rounds: In how many rounds questions will be asked, each on fresh rows: questions that are asked together, in
            one `ask_many` for example, are one round. With rows, questions and width, the most rounds are found.
        typical: The means that answers will have, one or several, as shares of the range between the bounds. All
            intervals hold whatever the means are; they are narrowest near these. With a width, it is `mean`; with a
            disagreement, 0.5.
        disagreement: On what share of rows models will disagree that are compared where features are public. A
            comparison then costs one answer, and its noise follows how often the two do disagree.
        open: What part of the rows the analyst will hold; answers are guessed from these and confirmed on the others.
            True finds the part: with rows, questions and width the largest that keeps the width, otherwise the one
            with the narrowest answers.
        exam: What part of the rows is kept for a few final questions (`Guard.exam`).
        development: In place of `open`, how many development rows of their own the analyst holds (`afresh.holdout(X, y,
            open=(X_dev, y_dev))`); all `rows` but the exam's then confirm.
        promise: Chooses among methods that promise their widths in advance, and leaves out those that expect them.
        deviation: The standard deviation that numbers will have, as a part of the range between their bounds. Noise
            then follows the standard deviation that each of them has, and answers are narrowest about this one.

    Returns:
        The plan, with the comparison of all methods in `methods` and words about the choice in `advice`.

    Raises:
        InvalidArgument: Not exactly two of rows, questions and width, or a value out of range.
        ImpossibleWidth: No method reaches the width under these limits.
    """
    failure = complement(checks.confidence(confidence))
    if open is True and isinstance(rows, int) and isinstance(questions, int):
        open, width = _solved_share(rows, questions, failure, width, mean, exam), None
    if questions is None:
        clash: dict[str, object] = {"answers": answers, "width": width, "rounds": rounds, "disagreement": disagreement}
        clash |= {"open": open, "exam": exam, "development": development, "deviation": deviation}
        return _endless(rows, failure, None if method == ENDLESS else method, typical, clash)
    if questions is ...:
        questions = None
    if deviation is not None:
        clash = {"answers": answers, "width": width, "rounds": rounds, "disagreement": disagreement, "open": open}
        clash |= {"typical": typical, "exam": exam, "development": development}
        clash["method"] = None if method == DEVIATING else method
        return _deviating(rows, questions, failure, check_deviation(deviation), clash)
    planners = _following(_planners(method, rounds, open, exam, development), method, disagreement)
    if disagreement is not None and typical is None:
        typical = 0.5
    means = TYPICAL_MEANS if typical is None else checks.means("typical", typical)
    promise = checks.flag("promise", promise)
    if promise and not all(MECHANISMS[name].promised for name in planners):
        raise InvalidArgument(
            f"promise == True, but {' and '.join(planners)} promises no width; leave one of them out."
        )
    if rows is not None:
        rows = checks.whole("rows", rows, FEWEST_ROWS)
    if questions is not None:
        questions = checks.whole("questions", questions, 1)
        if rounds is not None and rounds > questions:
            raise InvalidArgument(f"rounds == {rounds}, but there are {questions} questions; a round has at least one.")
    if answers is not None:
        if questions is None:
            raise InvalidArgument("answers needs questions, of which it is at least as many.")
        answers = checks.whole("answers", answers, questions)
    if width is None:
        if rows is None or questions is None:
            raise InvalidArgument("a plan needs two of rows, questions and width.")
        narrowest = _narrowest(_tuned(planners, means), rows, questions, failure, answers, means)
        return Plan(narrowest if promise or planners is not PROMISING else default(narrowest, answers, means))
    must_be = "a number in (0, 0.5): ±0.5 is promised by saying nothing"
    width, mean = checks.number("width", width, must_be, above=0, below=0.5), checks.share("mean", mean)
    if rows is not None and questions is not None and rounds is None and method in (None, IN_ROUNDS):
        return Plan(most_rounds(rows, questions, width, mean, failure))
    planners = _tuned(planners, (mean,) if typical is None else means)
    if (rows is None) == (questions is None):
        raise InvalidArgument("with a width, give exactly one of rows and questions.")
    if rows is not None:
        return Plan(most_questions(planners, rows, width, mean, failure))
    assert questions is not None
    return Plan(fewest_rows(planners, questions, width, mean, failure, FEWEST_ROWS, answers))


def _endless(
    rows: int | None, failure: float, method: str | None, typical: object, clash: Mapping[str, object]
) -> Plan:
    """The plan without an end, which needs rows and nothing else."""
    if rows is None:
        raise InvalidArgument("questions == None is a budget that never ends; a plan for it needs rows.")
    for name, value in {"method": method, **clash}.items():
        if value is not None:
            raise InvalidArgument(
                f"questions == None is a budget that never ends, which has no {name} to choose; leave out {name}= or "
                "give a number of questions."
            )
    means = TYPICAL_MEANS if typical is None else checks.means("typical", typical)
    rows = checks.whole("rows", rows, FEWEST_ROWS)
    made = planner_without_end(rows, failure, means)
    if made is None:
        raise InvalidArgument(
            f"{rows:,} rows are too few for a budget that never ends; give a number of questions, or more rows."
        )
    return Plan(made)


def _deviating(
    rows: int | None, questions: int | None, failure: float, deviation: float, clash: Mapping[str, object]
) -> Plan:
    """The plan for numbers with about this standard deviation."""
    for name, value in clash.items():
        if value is not None:
            raise InvalidArgument(f"deviation == {deviation:g} leaves no {name} to choose; leave one of them out.")
    if rows is None or questions is None:
        raise InvalidArgument("a plan for a deviation needs rows and questions.")
    rows, questions = checks.whole("rows", rows, FEWEST_ROWS), checks.whole("questions", questions, 1)
    made = planner_for_deviation(rows, questions, failure, deviation)
    if made is None:
        raise InvalidArgument(
            f"{rows:,} rows are too few for {questions:,} answers by {DEVIATING}; use more rows or fewer questions."
        )
    return Plan(made)


def _solved_share(
    rows: int, questions: int, failure: float, width: float | None, mean: float, exam: float | None
) -> float | None:
    """The part of the rows to open, where the planner is to find it."""
    rows, questions = checks.whole("rows", rows, FEWEST_ROWS), checks.whole("questions", questions, 1)
    if width is not None:
        return largest_share(rows, questions, failure, width, mean, exam)
    return narrowest_share(rows, questions, failure, mean, exam)


WORTH_EXPECTING = 1.4


def default(narrowest: Mechanism, answers: int | None, typical: tuple[float, ...] = TYPICAL_MEANS) -> Mechanism:
    """The narrowest promise, or a method whose *expected* widths are at least 1.4 times narrower.

    By the planner's yardstick, the geometric mean of half-widths at the typical means. Whoever needs the promise says
    promise=True.
    """
    found, promised = narrowest, geometric_mean(narrowest.half_width, typical)
    for name, planner in PLANNERS.items():
        if not MECHANISMS[name].promised:
            expected = planner(narrowest.rows, narrowest.questions, narrowest.failure, answers)
            if expected is not None and geometric_mean(expected.half_width, typical) * WORTH_EXPECTING <= promised:
                found = expected
    return found


def _planners(
    method: str | None, rounds: int | None, open: float | None, exam: float | None, development: int | None
) -> Mapping[str, Planner]:
    """Those to choose from: the one that is named, or has rounds or open rows, or all that promise their widths."""
    share, kept = check_parts(open, exam)
    if development is not None:
        development = checks.whole("development", development, 1)
    if open is not None or exam is not None or development is not None:
        if open is not None and development is not None:
            raise InvalidArgument("open rows are a part of these rows, or development rows of your own: not both.")
        if rounds is not None or method not in (None, WITH_OPEN_ROWS):
            name, value, what = ("exam", exam, "exam") if open is None else ("open", open, "open rows")
            other = f"method={method!r}" if rounds is None else f"rounds={rounds!r}"
            instead = "" if rounds is None or open is not None else ": keep rows for a last round, which is the same"
            raise InvalidArgument(f"{name} == {value}, but {other} has no {what}; leave one of them out{instead}.")
        return {WITH_OPEN_ROWS: planner_with_open(share, kept, development)}
    if rounds is None:
        return PROMISING if method is None else {method: PLANNERS[checks.one_of("method", method, PLANNERS)]}
    rounds = checks.whole("rounds", rounds, 1)
    if method not in (None, IN_ROUNDS):
        raise InvalidArgument(f"rounds == {rounds}, but method={method!r} has no rounds; leave one of them out.")
    return {IN_ROUNDS: planner_for(rounds)}


def _following(
    planners: Mapping[str, Planner], method: str | None, disagreement: float | None
) -> Mapping[str, Planner]:
    """Those of them whose comparisons follow a public disagreement, if there is one."""
    if disagreement is None:
        return planners
    share = checks.number("disagreement", disagreement, "a share of rows, above 0 and at most 1", above=0, most=1)
    found = {name: partial(p, disagreement=share) for name, p in planners.items() if name in FOLLOWING}  # type: ignore[call-arg] # those in FOLLOWING take it
    if not found:
        those = " or ".join(f"method={name!r}" for name in FOLLOWING)
        raise InvalidArgument(
            f"disagreement == {share:g} can be followed with {those} only; leave it or {method!r} out."
        )
    return found


def _tuned(planners: Mapping[str, Planner], typical: tuple[float, ...]) -> Mapping[str, Planner]:
    """The same, with constants for these means where a method can be tuned."""
    if typical == TYPICAL_MEANS:
        return planners
    return {name: partial(p, typical=typical) if name in TUNED else p for name, p in planners.items()}  # type: ignore[call-arg] # those in TUNED take it


def _narrowest(
    planners: Mapping[str, Planner],
    rows: int,
    questions: int,
    failure: float,
    answers: int | None,
    typical: tuple[float, ...],
) -> Mechanism:
    found = [m for p in planners.values() if (m := p(rows, questions, failure, answers)) is not None]
    if not found:
        why = " and ".join(MECHANISMS[name].unavailable for name in planners)
        able = [f"method={name!r}" for name, p in PROMISING.items() if p(rows, questions, failure, answers) is not None]
        raise InvalidArgument(
            f"{', '.join(planners)} cannot answer {questions:,} questions from {rows:,} rows ({why}); use "
            f"{', '.join([*able, 'more rows'])} or fewer questions."
        )
    return min(found, key=lambda m: geometric_mean(m.half_width, typical))
