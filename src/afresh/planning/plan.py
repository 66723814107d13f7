"""What can be promised before any data are seen: `plan` and the frozen `Plan` it returns."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.ledger.base import ENDS, Limits
from afresh.mechanisms.base import TYPICAL_MEANS, Mechanism, at_coarseness, geometric_mean
from afresh.mechanisms.guess_and_check import GuessAndCheck
from afresh.mechanisms.registry import MECHANISMS, PLANNERS, PROMISING, Planner
from afresh.planning.request import complement
from afresh.planning.solve import fewest_rows, most_questions
from afresh.results import show
from afresh.theory.references import fixed_questions_half_width, jung_error, main_theorem_error

FEWEST_ROWS = 20


@dataclass(frozen=True, slots=True)
class Method:
    """One line of a plan's comparison: half-widths at the typical means, or why there are none."""

    name: str
    certified: bool
    half_width: Mapping[float, float] | None
    about: str
    promised: bool = True
    """Whether the widths are a promise; those of guess and check are what its guesses claim, and a check may fail."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        widths = None if self.half_width is None else {f"{m:g}": w for m, w in self.half_width.items()}
        told = {"certified": self.certified, "half_width": widths, "about": self.about}
        return {**told, "promised": self.promised}

    @property
    def certificate(self) -> str:
        """In a word."""
        if not self.certified:
            return "reference"
        return "yes" if self.promised else "yes, width not promised"


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
    def in_words(self) -> str:
        """What the first answer fixes, in one line."""
        return f"{self.questions:,} questions at {show.percent(self.confidence)}, by {self.method}"

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
        """The information budget in nats, a hard limit, reached after `questions` answers; None for `split`."""
        return self.mechanism.information

    @property
    def charge(self) -> float:
        """Nats that one answer is charged."""
        return self.mechanism.charge

    def half_width(self, mean: float = 0.5, coarseness: float = 1.0) -> float:
        """Half the length of the interval around an answer that reads `mean`, on the scale [0, 1]."""
        mean = checks.share("mean", mean, ": rescale by the bounds first")
        coarseness = checks.number("coarseness", coarseness, "a number from 1 to 1e6", least=1, most=1e6)
        return self.at(coarseness).half_width(mean)

    def at(self, coarseness: float) -> Mechanism:
        """The mechanism of an answer with so many times the noise; all answers share the plan's certificate."""
        return at_coarseness(self.mechanism, coarseness)

    @cached_property
    def methods(self) -> dict[str, Method]:
        """The certified methods at these rows, questions and confidence, then the reference lines."""
        n, k, failure, answers = self.rows, self.questions, self.mechanism.failure, self.answers
        lines = {}
        for name, planner in PLANNERS.items():
            mechanism = self.mechanism if name == self.method else planner(n, k, failure, answers)
            widths = None if mechanism is None else _widths(mechanism.half_width)
            kind = MECHANISMS[name]
            lines[name] = Method(name, True, widths, kind.about if widths else kind.unavailable, kind.promised)
        for name, width in (
            ("jung", lambda _: jung_error(n, k, failure)),
            ("paper", lambda mean: main_theorem_error(n, k, failure, math.sqrt(mean * (1 - mean)))),
            ("fixed", lambda mean: fixed_questions_half_width(n, k, failure, mean)),
        ):
            lines[name] = Method(name, False, _widths(width), _REFERENCES[name])
        return lines

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
            plan=json.dumps({"method": self.method, **constants}),
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

        Raises `InvalidArgument` if this afresh does not know the method, or its constants.
        """
        constants = json.loads(limits.plan)
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
        """Which method to use, and what it can and cannot promise in advance."""
        if self.method == "guess-and-check":
            return (
                "guess-and-check promises that every interval holds, not how wide it is: each guess that fails its "
                "check makes later answers wider. stabilized promises its width."
            )
        words = (
            "split is the narrowest for so few questions, as every one can have rows of its own."
            if self.method == "split"
            else f"{self.method} promises these widths before any data are seen."
        )
        rival, own = self.methods["guess-and-check"].half_width, self.half_width(0.5)
        if rival is not None and rival[0.5] < own:
            words += (
                f" guess-and-check would be narrower (±{show.width(rival[0.5])} in place of ±{show.width(own)}) "
                "as long as its checks pass, but can promise no width."
            )
        return words

    @property
    def _accounted(self) -> str:
        if self.information is not None:
            return f"{self.information:.4g} nats, {self.charge:.4g} an answer"
        if isinstance(m := self.mechanism, GuessAndCheck):
            return (
                f"not accounted for: {m.guess_rows:,} rows guess, and validity rests on the {m.check_rows:,} that check"
            )
        return "not accounted for: every question has rows of its own"

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
                    + ("" if self.mechanism.promised else ", if checks pass"),
                    "information": self._accounted,
                    "failure": ", ".join(f"{v:.4g} {k}" for k, v in self.failure_use.items()),
                    "constants": ", ".join(
                        f"{k}={v:.6g}" for k, v in self.parameters.items() if k not in _SAID_ELSEWHERE
                    )
                    or "none",
                }
            ),
            show.Table(
                ["method", *(f"±, mean {mean:g}" for mean in TYPICAL_MEANS), "certificate", "what it is"],
                [
                    [
                        name + (" *" if name == self.method else ""),
                        *(show.width(m.half_width[mean]) if m.half_width else "-" for mean in TYPICAL_MEANS),
                        m.certificate,
                        m.about,
                    ]
                    for name, m in self.methods.items()
                ],
            ),
            show.Line(self.advice),
        ]


_SAID_ELSEWHERE = ("rows", "questions", "failure")
_REFERENCES = {
    "jung": "differential privacy transfer (Jung et al. 2020)",
    "paper": "the paper's Main Theorem with eq. (3)",
    "fixed": "questions fixed before the data are seen: no adaptivity",
}


def plan(
    rows: int | None = None,
    questions: int | None = None,
    confidence: float = 0.95,
    *,
    answers: int | None = None,
    width: float | None = None,
    mean: float = 0.5,
    method: str | None = None,
) -> Plan:
    """Plan from any two of rows, questions and width, before any data are seen.

    `width` is a half-width for an answer that reads `mean`. Without it, the method is the one with the smallest
    geometric mean of guaranteed half-widths at means 0.5, 0.1 and 0.01; with it, the one that needs the fewest
    rows or allows the most questions. `method` forces one. `answers`, if more than `questions`, is how many answers
    there may be when some are asked coarser, at a lower charge; it makes every interval a little wider.
    """
    failure = complement(checks.confidence(confidence))
    planners = PROMISING if method is None else {method: PLANNERS[checks.one_of("method", method, PLANNERS)]}
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
    if (rows is None) == (questions is None):
        raise InvalidArgument("with a width, give either rows or questions, not both and not neither.")
    if rows is not None:
        return Plan(most_questions(planners, rows, width, mean, failure))
    assert questions is not None
    return Plan(fewest_rows(planners, questions, width, mean, failure, FEWEST_ROWS, answers))


def _narrowest(
    planners: Mapping[str, Planner], rows: int, questions: int, failure: float, answers: int | None
) -> Mechanism:
    found = [m for p in planners.values() if (m := p(rows, questions, failure, answers)) is not None]
    if not found:
        raise InvalidArgument(
            f"{', '.join(planners)} cannot answer {questions:,} questions from {rows:,} rows; "
            "use method='calibrated', more rows or fewer questions."
        )
    return min(found, key=lambda m: geometric_mean(m.half_width))


def _widths(half_width: Callable[[float], float]) -> dict[float, float]:
    return {mean: half_width(mean) for mean in TYPICAL_MEANS}
