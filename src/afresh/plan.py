"""What can be promised before any data are seen: `plan` and the frozen `Plan` it returns."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, SupportsFloat

from afresh import display
from afresh.errors import ImpossibleWidth, InvalidArgument
from afresh.mechanisms.base import TYPICAL_MEANS, Mechanism, geometric_mean
from afresh.mechanisms.calibrated import Calibrated, plan_calibrated
from afresh.mechanisms.split import Split, plan_split
from afresh.mechanisms.stabilized import Stabilized, plan_stabilized
from afresh.theory.references import fixed_questions_half_width, jung_error, main_theorem_error

Planner = Callable[[int, int, float], Mechanism | None]

# The methods that carry a certificate, with the section of docs/guarantees.md that proves it.
PLANNERS: Mapping[str, Planner] = {
    "stabilized": plan_stabilized,
    "calibrated": plan_calibrated,
    "split": plan_split,
}
MECHANISMS: Mapping[str, type[Mechanism]] = {
    "stabilized": Stabilized,
    "calibrated": Calibrated,
    "split": Split,
}
FEWEST_ROWS = 20
_LEAST_FAILURE = 1e-9  # of a probability near 0 or 1, floats and quadratures still know enough
_MOST = 10**10  # rows or questions that a search considers


@dataclass(frozen=True, slots=True)
class Method:
    """One line of a plan's comparison: half-widths at the typical means, or why there are none."""

    name: str
    certified: bool
    half_width: Mapping[float, float] | None
    about: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        widths = None if self.half_width is None else {f"{m:g}": w for m, w in self.half_width.items()}
        return {"certified": self.certified, "half_width": widths, "about": self.about}


@dataclass(frozen=True)
class Plan(display.Shown):
    """Method and constants under which a dataset will be questioned; fixed before the data are seen.

    With probability at least `confidence`, over sample and noise, every interval released over the whole life
    of the guard contains its truth, however the questions were chosen: for rows that are independent draws
    from the population, at most `questions` answers, and an analyst who sees nothing else of the rows.
    """

    mechanism: Mechanism

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
        """k, the most answers that can be released."""
        return self.mechanism.questions

    @property
    def confidence(self) -> float:
        """The probability with which all intervals hold at once."""
        return _complement(self.mechanism.failure)

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

    def half_width(self, mean: float = 0.5) -> float:
        """Half the length of the interval around an answer that reads `mean`, on the scale [0, 1]."""
        if not 0 <= mean <= 1:
            raise InvalidArgument(f"mean == {mean}, must be in [0, 1]: rescale by the bounds first.")
        return self.mechanism.half_width(mean)

    @cached_property
    def methods(self) -> dict[str, Method]:
        """The certified methods at these rows, questions and confidence, then the reference lines."""
        n, k, failure = self.rows, self.questions, self.mechanism.failure
        lines = {}
        for name, planner in PLANNERS.items():
            mechanism = self.mechanism if name == self.method else planner(n, k, failure)
            widths = None if mechanism is None else _widths(mechanism.half_width)
            about = _ABOUT[name] if widths else _UNAVAILABLE[name]
            lines[name] = Method(name, True, widths, about)
        for name, width in (
            ("jung", lambda _: jung_error(n, k, failure)),
            ("paper", lambda mean: main_theorem_error(n, k, failure, math.sqrt(mean * (1 - mean)))),
            ("fixed", lambda mean: fixed_questions_half_width(n, k, failure, mean)),
        ):
            lines[name] = Method(name, False, _widths(width), _ABOUT[name])
        return lines

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, with the comparison."""
        return {
            "method": self.method,
            "rows": self.rows,
            "questions": self.questions,
            "confidence": self.confidence,
            "information": self.information,
            "charge": self.charge,
            "half_width": {f"{mean:g}": self.half_width(mean) for mean in TYPICAL_MEANS},
            "parameters": self.parameters,
            "failure_use": self.failure_use,
            "methods": {name: method.to_dict() for name, method in self.methods.items()},
        }

    def freeze(self) -> str:
        """The plan as a ledger keeps it: the method and its constants."""
        return json.dumps({"method": self.method, **self.parameters})

    @classmethod
    def thaw(cls, frozen: str) -> Plan:
        """The plan a ledger kept; nothing is optimised again, so an upgrade cannot change an interval."""
        constants = json.loads(frozen)
        return cls(MECHANISMS[constants.pop("method")](**constants))

    def _blocks(self) -> list[display.Block]:
        widths = [f"±{display.width(self.half_width(mean))} at {mean:g}" for mean in TYPICAL_MEANS]
        return [
            display.Title(
                f"{self.questions:,} questions to {self.rows:,} rows, {display.percent(self.confidence)}",
            ),
            display.Facts(
                {
                    "method": self.method,
                    "half-width": ", ".join(widths) + " (share of rows)",
                    "information": "not accounted for: every question has rows of its own"
                    if self.information is None
                    else f"{self.information:.4g} nats, {self.charge:.4g} an answer",
                    "failure": ", ".join(f"{v:.4g} {k}" for k, v in self.failure_use.items()),
                    "constants": ", ".join(
                        f"{k}={v:.6g}" for k, v in self.parameters.items() if k not in ("rows", "questions", "failure")
                    )
                    or "none",
                }
            ),
            display.Table(
                ["method", *(f"±, mean {mean:g}" for mean in TYPICAL_MEANS), "certificate", "what it is"],
                [
                    [
                        name + (" *" if name == self.method else ""),
                        *(display.width(m.half_width[mean]) if m.half_width else "-" for mean in TYPICAL_MEANS),
                        "yes" if m.certified else "reference",
                        m.about,
                    ]
                    for name, m in self.methods.items()
                ],
            ),
        ]


_ABOUT = {
    "stabilized": "fixed noise on a variance-stabilised mean",
    "calibrated": "noise calibrated to the variance (the paper's mechanism)",
    "split": "fresh rows for each question",
    "jung": "differential privacy transfer (Jung et al. 2020)",
    "paper": "the paper's Main Theorem with eq. (3)",
    "fixed": "questions fixed before the data are seen: no adaptivity",
}
_UNAVAILABLE = {
    "stabilized": "too few rows for its variance floor",
    "calibrated": "not available",
    "split": "fewer rows than questions",
}


def plan(
    rows: int | None = None,
    questions: int | None = None,
    confidence: float = 0.95,
    *,
    width: float | None = None,
    mean: float = 0.5,
    method: str | None = None,
) -> Plan:
    """Plan from any two of rows, questions and width, before any data are seen.

    `width` is a half-width for an answer that reads `mean`. Without it, the method is the one with the smallest
    geometric mean of guaranteed half-widths at means 0.5, 0.1 and 0.01; with it, the one that needs the fewest
    rows or allows the most questions. `method` forces one.
    """
    failure = _complement(_check_confidence(confidence))
    planners = PLANNERS if method is None else {method: PLANNERS[_check_method(method)]}
    if rows is not None:
        rows = _check_count("rows", rows, FEWEST_ROWS)
    if questions is not None:
        questions = _check_count("questions", questions, 1)
    if width is None:
        if rows is None or questions is None:
            raise InvalidArgument("a plan needs two of rows, questions and width.")
        return Plan(_narrowest(planners, rows, questions, failure))
    if not 0 < width < 0.5:
        raise InvalidArgument(f"width == {width}, must be in (0, 0.5): ±0.5 is promised by saying nothing.")
    if not 0 <= mean <= 1:
        raise InvalidArgument(f"mean == {mean}, must be in [0, 1].")
    if (rows is None) == (questions is None):
        raise InvalidArgument("with a width, give either rows or questions, not both and not neither.")
    if rows is not None:
        return Plan(_most_questions(planners, rows, width, mean, failure))
    assert questions is not None
    return Plan(_fewest_rows(planners, questions, width, mean, failure))


def _narrowest(planners: Mapping[str, Planner], rows: int, questions: int, failure: float) -> Mechanism:
    found = [m for p in planners.values() if (m := p(rows, questions, failure)) is not None]
    if not found:
        raise InvalidArgument(
            f"{', '.join(planners)} cannot answer {questions:,} questions from {rows:,} rows; "
            "use method='calibrated', more rows or fewer questions."
        )
    return min(found, key=lambda m: geometric_mean(m.half_width))


def _most_questions(planners: Mapping[str, Planner], rows: int, width: float, mean: float, failure: float) -> Mechanism:
    """Over all methods, the plan with the most questions whose half-width is at most `width`."""
    best = [
        m
        for planner in planners.values()
        if (m := _search(lambda k, p=planner: p(rows, k, failure), width, mean, 1, 4.0)) is not None  # type: ignore[misc] # mypy cannot type a lambda's default
    ]
    if not best:
        one = [m for p in planners.values() if (m := p(rows, 1, failure)) is not None]
        possible = min(m.half_width(mean) for m in one)
        raise ImpossibleWidth(
            f"width == {width}: {rows:,} rows cannot promise it even for one question; "
            f"the narrowest is ±{display.width(possible)}. More rows, or a lower confidence, would."
        )
    return max(best, key=lambda m: m.questions)


def _fewest_rows(
    planners: Mapping[str, Planner], questions: int, width: float, mean: float, failure: float
) -> Mechanism:
    """Over all methods, the plan with the fewest rows whose half-width is at most `width`."""
    best = [
        m
        for planner in planners.values()
        if (m := _search(lambda n, p=planner: p(n, questions, failure), width, mean, FEWEST_ROWS, -2.0)) is not None  # type: ignore[misc] # as above
    ]
    if not best:
        raise ImpossibleWidth(
            f"width == {width}: {questions:,} questions would need more than {_MOST:,} rows; "
            "ask for a larger width or fewer questions."
        )
    return min(best, key=lambda m: m.rows)


def _search(
    build: Callable[[int], Mechanism | None], width: float, mean: float, fewest: int, power: float
) -> Mechanism | None:
    """The plan at the extreme size (rows or questions) whose half-width is still at most `width`.

    The half-width goes like size^(1/power), about: negative, it falls with the size (rows), and the smallest size is
    sought; positive, it grows (questions), and the largest is. Steps follow that law, corrected by what was seen,
    inside a bracket of a size that fits and one that does not, until they meet or the width is used to a thousandth.
    """
    grows = power > 0
    fits: tuple[int, Mechanism] | None = None
    fails: int | None = None
    size, seen = (fewest if grows else 1000), None
    for _ in range(60):
        mechanism = build(size)
        reached = 0.5 if mechanism is None else mechanism.half_width(mean)
        if mechanism is not None and reached <= width:
            fits = size, mechanism
            if reached >= width * (1 - 1e-3) or (not grows and size == fewest):
                break
        else:
            fails = size
            if grows and size == fewest:
                return None
        if fits is not None and fails is not None and abs(fits[0] - fails) == 1:
            break
        here = math.log(size), math.log(reached)
        if seen is not None and reached < 0.49 and abs(here[1] - seen[1]) > 1e-3:
            slope = (here[0] - seen[0]) / (here[1] - seen[1])
            power = slope if slope * power > 0 else power
        seen = here if reached < 0.49 else None
        # Aim a little inside the width; at a useless width the law says nothing, so walk.
        step = power * (math.log(width * (1 - 4e-4)) - here[1]) if reached < 0.49 else (-2.5 if grows else 2.5)
        guess = math.exp(here[0] + min(max(step, -7.0), 7.0))
        if fits is not None and fails is not None:
            low, high = sorted((fits[0], fails))
            if not low < guess < high:
                guess = math.sqrt(low * high)
            size = min(max(round(guess), low + 1), high - 1)
        else:
            outward = 1 if (fits is not None) == grows else -1
            size = max(round(guess), fewest)
            size = size if (size - round(math.exp(here[0]))) * outward > 0 else round(math.exp(here[0])) + outward
            if not fewest <= size <= _MOST:
                break
    return None if fits is None else fits[1]


def _widths(half_width: Callable[[float], float]) -> dict[float, float]:
    return {mean: half_width(mean) for mean in TYPICAL_MEANS}


def _complement(probability: float) -> float:
    """1 - p as people write it: 0.05 for 0.95, not 0.050000000000000044."""
    return float(1 - Decimal(repr(probability)))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a caller asks of a plan, checked; None leaves it open."""

    questions: int | None
    confidence: float | None
    method: str | None

    def differing(self, plan: Plan) -> str:
        """In words, where a plan is not what is wished; empty if it is."""
        failure = None if self.confidence is None else _complement(self.confidence)
        pairs = (
            ("questions", self.questions, self.questions, plan.questions),
            ("confidence", self.confidence, failure, plan.mechanism.failure),
            ("method", self.method, self.method, plan.method),
        )
        said = [f"{name}={shown!r}" for name, shown, value, kept in pairs if value is not None and value != kept]
        if not said:
            return ""
        kept = f"questions={plan.questions}, confidence={plan.confidence}, method={plan.method!r}"
        return f"These data were first opened with {kept}, and now with {', '.join(said)}."


def check_wishes(questions: int | None, confidence: float | None, method: str | None) -> Wishes:
    """The same checks on a first and on a later opening."""
    return Wishes(
        None if questions is None else _check_count("questions", questions, 1),
        None if confidence is None else _check_confidence(confidence),
        None if method is None else _check_method(method),
    )


def _check_confidence(confidence: float) -> float:
    if isinstance(confidence, bool | str | bytes) or not isinstance(confidence, SupportsFloat):
        raise InvalidArgument(f"confidence == {confidence!r}, must be a number, for example 0.95.")
    value = float(confidence)
    if not 0 < value < 1:
        raise InvalidArgument(f"confidence == {confidence}, must be in (0, 1), for example 0.95.")
    if not _LEAST_FAILURE <= value <= 1 - _LEAST_FAILURE:
        raise InvalidArgument(f"confidence == {confidence}, must be {_LEAST_FAILURE:g} or more away from 0 and 1.")
    return value


def _check_method(method: str) -> str:
    if not isinstance(method, str) or method not in PLANNERS:
        raise InvalidArgument(f"method == {method!r}, must be one of {', '.join(PLANNERS)}.")
    return method


def _check_count(name: str, value: int, fewest: int) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} == {value!r}, must be a whole number.") from None
    if isinstance(value, bool):
        raise InvalidArgument(f"{name} == {value!r}, must be a whole number.")
    if count < fewest:
        raise InvalidArgument(f"{name} == {value}, must be at least {fewest}.")
    if count > _MOST:
        raise InvalidArgument(f"{name} == {value}, must be at most {_MOST:,}.")
    return count
