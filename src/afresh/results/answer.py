"""What a guard gives back: an `Answer` with its interval, and what it covers."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from afresh.results import show

TOO_FEW = "too few rows"  # in place of a value that would mislead


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends belong to it."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half its length."""
        return (self.high - self.low) / 2

    def __contains__(self, value: float) -> bool:
        """Whether a value lies in it."""
        return self.low <= value <= self.high

    def rescaled(self, bounds: tuple[float, float]) -> Interval:
        """From [0, 1] to the bounds of a question, rounded outward: a bound that is reached is reached exactly."""
        lower, upper = bounds

        def end(x: float, outward: float) -> float:
            if x <= 0.0 or x >= 1.0:
                return lower if x <= 0.0 else upper
            above = (upper - lower) * x
            moved = lower + above
            if lower < 0:  # the sum may be much smaller than what was rounded
                moved += math.copysign(3 * math.ulp(above), outward)
            for _ in range(3):  # three roundings, so three steps
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
    """How many answers of the budget this cost; 0 for a repeat."""
    left: int
    """How many answers are left."""
    simulated: bool = False
    """Whether the noise came from a seed; such an answer promises nothing."""
    told: bool = True
    """Whether it says anything; if not, its group has too few rows, and `value` means nothing."""

    @property
    def low(self) -> float:
        """The interval's lower end."""
        return self.interval.low

    @property
    def high(self) -> float:
        """The interval's upper end."""
        return self.interval.high

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
        }

    def _shown(self) -> tuple[str, str, str]:
        """The value, or why there is none, and the ends of the interval."""
        value, low, high = show.with_interval(self.value, self.low, self.high)
        return value if self.told else TOO_FEW, low, high

    def _one_line(self, said: str = "") -> str:
        value, low, high = self._shown()
        mark = ", simulated" if self.simulated else ""
        return f"{type(self).__name__}({said}{value}, [{low}, {high}] at {show.percent(self.confidence)}{mark})"

    def _lines(self, title: str, *between: show.Block) -> list[show.Block]:
        value, low, high = self._shown()
        bar = [show.Bar(self.value, self.low, self.high, self.bounds)] if self.told else []
        return [
            *simulation_mark(self.simulated),
            show.Title(title),
            show.Title(f"  {value}   [{low}, {high}]   {show.percent(self.confidence)}"),
            *bar,
            *between,
            cost_line(self.charged, self.left),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer(Released):
    """The answer of one question."""

    question: str
    where: str | None
    missing: str
    charged_information: float
    """What it cost, in nats."""
    confirmed: bool | None = None
    """Whether its guess passed its check, with guess and check; None otherwise."""
    fixes: str | None = None
    """The plan that this answer, being the first, has fixed for good, in words."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "question": self.question,
            "where": self.where,
            **Released.to_dict(self),
            "missing": self.missing,
            "charged_information": self.charged_information,
            "confirmed": self.confirmed,
            "fixes": self.fixes,
        }

    def __repr__(self) -> str:
        """The answer in one line, for a prompt or a list of answers."""
        return self._one_line()

    def _blocks(self) -> list[show.Block]:
        title = self.question + (f" where {self.where}" if self.where else "")
        said = [self.covers, self.missing]
        if not self.told:
            said.insert(0, "Too few rows to tell: the interval is all, or nearly all, of what was possible.")
        if self.confirmed is not None:
            said.append(
                "Its guess was confirmed by the rows that check."
                if self.confirmed
                else "Its guess failed its check, so it is coarser, and later answers are a little wider."
            )
        if self.fixes is not None:
            said.append(f"The plan is now fixed: {self.fixes}.")
        return self._lines(title, *map(show.Line, said))


def coverage(simulated: bool, said: str) -> str:
    """What an interval covers: as is said, or nothing."""
    return "Promises nothing: the noise came from a seed, so anyone could subtract it." if simulated else said


def cost_line(charged: int, left: int) -> show.Line:
    """The last line of every result."""
    cost = f"Charged {answers_in_words(charged)}" if charged else "Free, nothing new was asked"
    return show.Line(f"{cost}; {left:,} left.")


def simulation_mark(simulated: bool) -> list[show.Block]:
    """The warning that everything shown from a simulation begins with."""
    return [show.Alert("SIMULATION: the noise comes from a seed, so nothing is promised")] if simulated else []


def answers_in_words(count: int) -> str:
    """1 answer, 2 answers."""
    return f"{count:,} answer" + ("" if count == 1 else "s")


@dataclass(frozen=True, slots=True)
class Coarser:
    """What a coarser answer is worth: `Guard.ask(..., precision=half_width)`."""

    half_width: float
    """Of a share of rows near 1/2, where it is widest."""
    price: float
    """Its charge, as a part of the full price."""
    left: int
    """How many more of these are affordable, if nothing else is asked."""


@dataclass(frozen=True, slots=True)
class Budget(show.Shown):
    """What a guard may still answer. The limits were fixed before the data were seen and never move."""

    questions: int
    """How many answers at full price the plan is made for."""
    answers: int
    """The most answers there may be, of whatever price."""
    spent: int
    left: int
    """How many more answers at full price are affordable."""
    information: float | None
    spent_information: float
    outside_information: float
    """The part of it charged for what was revealed outside of the guard."""
    confidence: float
    method: str
    half_width: dict[float, float]
    """What each further answer is worth: half-widths of a share of rows, by its mean."""
    coarser: tuple[Coarser, ...] = ()
    """What coarser answers are worth, where the plan allows more answers than questions."""
    analyst: str | None = None
    """Whose share `answers`, `spent` and `left` are about; None if the budget is not divided."""
    shares: dict[str, int] = field(default_factory=dict)
    simulated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "questions": self.questions,
            "answers": self.answers,
            "spent": self.spent,
            "left": self.left,
            "information": self.information,
            "spent_information": self.spent_information,
            "outside_information": self.outside_information,
            "confidence": self.confidence,
            "method": self.method,
            "half_width": {f"{mean:g}": width for mean, width in self.half_width.items()},
            "coarser": [asdict(each) for each in self.coarser],
            "analyst": self.analyst,
            "shares": self.shares,
            "simulated": self.simulated,
        }

    def _nats(self) -> str:
        return "" if self.information is None else f", {self.spent_information:.4g} of {self.information:.4g} nats"

    def _blocks(self) -> list[show.Block]:
        widths = ", ".join(f"±{show.width(w)} at {mean:g}" for mean, w in self.half_width.items())
        facts = {"spent": answers_in_words(self.spent) + self._nats()}
        if self.outside_information:
            facts["outside"] = f"{self.outside_information:.4g} nats of these for what was revealed elsewhere"
        promise = ", if its check passes" if self.method == "guess-and-check" else ""
        facts["each further"] = f"{widths} (share of rows), by {self.method}{promise}"
        for each in self.coarser:
            width = show.width(each.half_width)
            facts[f"or ±{width}"] = f"at {each.price:.3g} of the charge, {each.left:,} left: precision={width}"
        facts["repeats"] = "free, whatever is left"
        if self.shares:
            facts["shares"] = ", ".join(f"{name} {share:,}" for name, share in self.shares.items())
        share = self.shares.get(self.analyst or "", self.questions - sum(self.shares.values()))
        whose = f" in the share of {self.analyst}" if self.analyst in self.shares else ""
        whose = " for those without a share" if self.shares and not whose else whose
        title = f"{self.left:,} of {share:,} answers left{whose}, {show.percent(self.confidence)}"
        return [*simulation_mark(self.simulated), show.Title(title), show.Facts(facts)]
