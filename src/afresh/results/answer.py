"""What a guard returns: an `Answer` with its interval, and what the interval is about."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from afresh.escaping import visible
from afresh.results import show

NARROW, WIDE = 0.05, 0.1
"""Half-widths, as shares of the range: above WIDE an answer decides little, and says what NARROW would have taken."""
TOO_FEW = "too few rows"  # shown instead of a value that would mislead


@dataclass(frozen=True, slots=True)
class Interval:
    """A closed interval: it contains both its ends."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the interval's length."""
        return (self.high - self.low) / 2

    def __contains__(self, value: float) -> bool:
        """Whether a value lies in the interval."""
        return self.low <= value <= self.high

    def rescaled(self, bounds: tuple[float, float]) -> Interval:
        """Convert from [0, 1] to a question's bounds, rounded outward; an end that reaches a bound equals it exactly.

        Args:
            bounds: The smallest and largest values of the question, which 0 and 1 represent.

        Returns:
            The interval on that scale, never narrower than on [0, 1].
        """
        lower, upper = bounds

        def end(x: float, outward: float) -> float:
            if x <= 0.0 or x >= 1.0:
                return lower if x <= 0.0 else upper
            above = (upper - lower) * x
            moved = lower + above
            if lower < 0:  # the sum may be much smaller than the terms that were rounded
                moved += math.copysign(3 * math.ulp(above), outward)
            for _ in range(3):  # three roundings, hence three steps
                moved = math.nextafter(moved, outward)
            return min(max(moved, lower), upper)

        return Interval(end(self.low, -math.inf), end(self.high, math.inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(show.Told):
    """A released value with its simultaneous interval.

    With probability at least `confidence`, over the draw of the rows and the noise, this interval and all others
    that the guard ever releases contain their true values, however the questions were chosen.
    """

    value: float
    interval: Interval
    bounds: tuple[float, float]
    confidence: float
    covers: str
    method: str
    charged: int
    """The number of answers charged to the budget; 0 for a repeat."""
    left: int
    """The number of answers left."""
    simulated: bool = False
    """Whether the noise came from a seed; such an answer guarantees nothing."""
    told: bool = True
    """Whether the answer is informative; if not, its group has too few rows and `value` is meaningless."""
    confirmed: bool | None = None
    """Whether the checking rows confirmed the guess; None where nothing is guessed."""
    widened: float | None = None
    """How much wider its failed check makes later answers, as a share; None if no check failed."""
    noise: float = 0.0
    """Roughly how far noise moves the value, 95 times out of 100; 0 if none was added. The interval allows for it."""
    fixes: str | None = None
    """The plan, in words, that this answer fixed for good if it was the first."""

    @property
    def low(self) -> float:
        """The interval's lower end."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The interval's upper end."""
        return self.interval.high

    @property
    def details(self) -> show.Said:
        """What exactly is guaranteed, and how rows without a value were treated."""
        return show.Said([show.Title(self._about()), *map(show.Line, self._guarantee())])

    def _about(self) -> str:
        """The method and the confidence, in a line."""
        return f"{self.method}, {show.percent(self.confidence)}"

    def _guarantee(self) -> list[str]:
        """What exactly is guaranteed, in sentences."""
        return [self.covers]

    def _folded(self) -> show.Fold:
        """The same for a page; in text it is shown on demand."""
        return show.Fold("What exactly is guaranteed", list(map(show.Line, self._guarantee())), brief=True)

    def __float__(self) -> float:
        """The value; NaN where it would mislead."""
        return self.value if self.told else math.nan

    def __format__(self, spec: str) -> str:
        """The value in a format such as .3f; without a format, everything that is shown."""
        return format(float(self), spec) if spec else str(self)

    def __lt__(self, other: object) -> bool:
        """Refuse to compare; the message says what to compare instead."""
        raise self._no_order(other)

    __le__ = __gt__ = __ge__ = __lt__

    def _no_order(self, other: object) -> TypeError:
        """Released values do not settle an order: the true values may be the other way round."""
        if isinstance(other, Released):
            certain = (
                "a.high < b.low means that a is certainly smaller; a.value < b.value only compares released values"
            )
            better = "; to compare two models, Holdout.compare(a, b) is sharper than two scores"
        else:
            certain = (
                "answer.high < x means that the truth is certainly below x; answer.value < x compares what was released"
            )
            better = "; Interval has `in`: x in answer.interval"
        return TypeError(f"an answer is an interval and has no order: {certain}{better}.")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "bounds": list(self.bounds),
            "confidence": self.confidence,
            "covers": self.covers,
            "method": self.method,
            "charged": self.charged,
            "left": self.left,
            "simulated": self.simulated,
            "told": self.told,
            "noise": self.noise,
            "confirmed": self.confirmed,
            "widened": self.widened,
        }

    def shown(self) -> tuple[str, str, str]:
        """The value, or why there is none, and the ends of the interval, with their meaningful digits.

        Returns:
            Three strings.
        """
        value, low, high = show.with_interval(self.value, self.low, self.high)
        return value if self.told else TOO_FEW, low, high

    def _one_line(self, said: str = "") -> str:
        value, low, high = self.shown()
        mark = ", simulated" if self.simulated else ""
        return f"{type(self).__name__}({said}{value}, [{low}, {high}] at {show.percent(self.confidence)}{mark})"

    def _noise(self) -> str:
        """The noise, shown next to a value that may look far more precise than it is."""
        return f" (noise ±{show.width(self.noise)})" if self.noise and self.told else ""

    def _check(self) -> list[str]:
        """Whether the guess was confirmed, if there was one."""
        if self.confirmed is None:
            return []
        if self.confirmed:
            return ["Confirmed: the rows kept for checking agree with the guess."]
        cost = "a little" if self.widened is None else f"{max(self.widened, 0.001):.1%}"
        return [f"Not confirmed: the guess failed its check. This answer is coarser, and later ones are {cost} wider."]

    def _fixed(self) -> list[str]:
        """The plan that it fixed, if it was the first."""
        return [] if self.fixes is None else [f"The plan is now fixed: {self.fixes}."]

    def _lines(self, title: str, *between: show.Block) -> list[show.Block]:
        value, low, high = self.shown()
        bar = [show.Bar(self.value, self.low, self.high, self.bounds)] if self.told else []
        return [
            *simulation_mark(self.simulated),
            show.Title(title),
            show.Title(f"  {value}{self._noise()}   guaranteed {low} to {high}   {show.percent(self.confidence)}"),
            *bar,
            *between,
            self._cost(),
        ]

    def _cost(self) -> show.Line:
        return cost_line(self.charged, self.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference(Released):
    """How much better B is than A; above 0, B is better."""

    a: str
    b: str

    @property
    def better(self) -> str | None:
        """'A' or 'B', or None if the interval leaves it open."""
        if self.low > 0:
            return "B"
        return "A" if self.high < 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Released):
    """The answer to one question."""

    question: str
    where: str | None
    missing: str
    charged_information: float
    """The charge in nats."""
    exam: bool = False
    """Whether it comes from the exam, which costs no answers."""
    would_tell: tuple[str, ...] = ()
    """If the interval is too wide to be useful, the changes to the plan that would have given a tenth of the range,
    each sufficient by itself."""
    instead: str | None = None
    """If the interval says little, what to ask for in the same plan instead, in words."""
    ahead: tuple[float, float] | None = None
    """For a budget that never runs out: half-widths of the next answer and the hundredth, at a share of one half."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "question": self.question,
            "where": self.where,
            **Released.to_dict(self),
            "missing": self.missing,
            "charged_information": self.charged_information,
            "exam": self.exam,
            "would_tell": list(self.would_tell),
            "instead": self.instead,
            "fixes": self.fixes,
            "ahead": None if self.ahead is None else list(self.ahead),
        }

    def __repr__(self) -> str:
        """The answer in one line, for a prompt or a list."""
        return self._one_line()

    def _blocks(self) -> list[show.Block]:
        title = self.question + (f" where {self.where}" if self.where else "")
        said = []
        if not self.told:
            said.append("Too few rows to say: the interval covers all, or nearly all, of the possible range.")
        said += self._check()
        if self.would_tell:
            said.append(in_words(self.would_tell, f"To know it to ±{NARROW * self._range:g}"))
        if self.instead is not None:
            said.append(f"For a narrower interval from these rows: {self.instead}.")
        said += self._fixed()
        return self._lines(title, *map(show.Line, said), self._folded())

    def _about(self) -> str:
        return self.question + (f" where {self.where}" if self.where else "")

    def _guarantee(self) -> list[str]:
        return [self.covers, self.missing]

    @property
    def _range(self) -> float:
        return self.bounds[1] - self.bounds[0]

    def _cost(self) -> show.Line:
        if self.exam:
            return exam_line(self.left)
        if self.ahead is None:
            return cost_line(self.charged, self.left)
        return show.Line(f"{cost_in_words(self.charged)}; the budget never runs out. {worth_ahead(self.ahead)}")


def said_of_all(answers: Mapping[str, Released]) -> list[show.Block]:
    """What a table of answers, by name, says below: whether guesses were confirmed, and which plan is now fixed."""
    said = checks_in_words({name: (each.confirmed, each.widened) for name, each in answers.items()})
    fixed = next((each.fixes for each in answers.values() if each.fixes is not None), None)
    if fixed is not None:
        said.append(f"The plan is now fixed: {fixed}.")
    return [show.Line(each) for each in said]


def checks_in_words(checks: Mapping[str, tuple[bool | None, float | None]]) -> list[str]:
    """Whether the guesses behind several answers, by name, were confirmed; if not, what their failures cost."""
    told = {name: each for name, each in checks.items() if each[0] is not None}
    if not told:
        return []
    failed = [name for name, (confirmed, _) in told.items() if not confirmed]
    if not failed:
        return [f"Confirmed: the rows kept for checking agree with {'all guesses' if len(told) > 1 else 'the guess'}."]
    # Answers that share a failed part have the same cost, which counts once.
    costs = {told[name][1] for name in failed} - {None}
    cost = math.prod(1 + each for each in costs if each is not None) - 1
    wider = f"{max(cost, 0.001):.1%}" if costs else "a little"
    names = ", ".join(map(visible, failed[:_NAMED])) + (
        f" and {more:,} more" if (more := len(failed) - _NAMED) > 0 else ""
    )
    return [
        f"Not confirmed: {len(failed):,} of {len(told):,} ({names}), whose guesses failed a check. Those answers are "
        f"coarser, and later ones are {wider} wider."
    ]


_NAMED = 4  # of the answers that were not confirmed


def noise_column(answers: Iterable[Released]) -> list[str]:
    """The noise of each, for a column of a table; empty if there is none at all."""
    found = [f"±{show.width(each.noise)}" if each.noise and each.told else "" for each in answers]
    return found if any(found) else []


def in_words(would_tell: tuple[str, ...], what: str) -> str:
    """What the plan would have needed, as a sentence."""
    if len(would_tell) == 1:
        return f"{what}, another plan would have been enough: {would_tell[0]}."
    return f"{what}, any of these would have been enough: {', '.join(would_tell[:-1])}, or {would_tell[-1]}."


def coverage(simulated: bool, said: str) -> str:
    """What an interval covers: the given words, or nothing for a simulation."""
    return "Guarantees nothing: the noise came from a seed, so anyone could subtract it." if simulated else said


def cost_in_words(charged: int) -> str:
    """The charge in words."""
    return f"Charged {answers_in_words(charged)}" if charged else "Free: asked before"


def worth_ahead(ahead: tuple[float, float]) -> str:
    """How accurate the next hundred answers of a budget that never runs out will be."""
    now, later = map(show.width, ahead)
    return f"The next hundred answers will be accurate to ±{now} to ±{later} at a share of 0.5."


def cost_line(charged: int, left: int) -> show.Line:
    """The last line of every result."""
    return show.Line(f"{cost_in_words(charged)}; {left:,} left.")


def exam_line(left: int) -> show.Line:
    """The last line of an exam's results, which cost no answers."""
    return show.Line(f"From the exam, which is taken once and costs no answers; {left:,} left.")


def simulation_mark(simulated: bool) -> list[show.Block]:
    """The warning at the top of everything shown from a simulation."""
    return [show.Alert("SIMULATION: the noise comes from a seed, so nothing is guaranteed")] if simulated else []


def answers_in_words(count: int) -> str:
    """1 answer, 2 answers."""
    return f"{count:,} answer" + ("" if count == 1 else "s")
