"""What a guard may still answer: a `Budget`, and how wide coarser answers are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from afresh.results import show
from afresh.results.answer import answers_in_words, simulation_mark, worth_ahead


@dataclass(frozen=True, slots=True)
class Coarser:
    """A coarser answer and its price: `Guard.ask(..., precision=half_width)`."""

    half_width: float
    """The half-width for a share of rows near 1/2, where it is widest."""
    price: float
    """The charge, as a fraction of the full price."""
    left: int
    """How many more of these the budget allows, if nothing else is asked."""


@dataclass(frozen=True, slots=True)
class Budget(show.Told):
    """What a guard may still answer. The limits were fixed before the data was seen and never move."""

    questions: int
    """The number of answers at full price in the plan."""
    answers: int
    """The most answers at any price."""
    spent: int
    left: int
    """How many more answers at full price the budget allows."""
    information: float | None
    spent_information: float
    outside_information: float
    """The part of it charged for what was revealed outside the guard."""
    confidence: float
    method: str
    half_width: dict[float, float]
    """How accurate each further answer will be: half-widths of a share of rows, by its mean."""
    proviso: str
    """What these widths depend on; empty if they are promised."""
    rounds: int | None = None
    """The number of rounds in the plan; None for methods without rounds."""
    rows_left: int | None = None
    """The number of rows left for this analyst's rounds, which no question has seen."""
    exam_rows: int | None = None
    """The number of rows kept for the exam; None without an exam."""
    examined: int = 0
    """The number of questions in the exam; 0 until it is taken."""
    exam_half_width: float | None = None
    """The half-width of a share of rows near 1/2 as the exam's only question, or in the exam that was taken."""
    coarser: tuple[Coarser, ...] = ()
    """How wide coarser answers are, where the plan allows more answers than questions."""
    analyst: str | None = None
    """The analyst whose share `answers`, `spent` and `left` describe; None if the budget is not divided."""
    shares: dict[str, int] = field(default_factory=dict)
    simulated: bool = False
    ahead: tuple[float, float] | None = None
    """For a budget that never runs out: half-widths of the next answer and the hundredth, at a share of one half."""

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
            "proviso": self.proviso,
            "rounds": self.rounds,
            "rows_left": self.rows_left,
            "exam_rows": self.exam_rows,
            "examined": self.examined,
            "exam_half_width": self.exam_half_width,
            "coarser": [asdict(each) for each in self.coarser],
            "analyst": self.analyst,
            "shares": self.shares,
            "simulated": self.simulated,
            "ahead": None if self.ahead is None else list(self.ahead),
        }

    def _nats(self) -> str:
        if self.ahead is not None:  # and no limit that anyone would reach
            return f", {self.spent_information:.4g} nats"
        return "" if self.information is None else f", {self.spent_information:.4g} of {self.information:.4g} nats"

    def _blocks(self) -> list[show.Block]:
        widths = ", ".join(f"±{show.width(w)} at {mean:g}" for mean, w in self.half_width.items())
        facts = {"spent": answers_in_words(self.spent) + self._nats()}
        if self.outside_information:
            facts["outside"] = f"{self.outside_information:.4g} of these nats for what was revealed elsewhere"
        facts["next answer"] = f"{widths} (share of rows), by {self.method}" + (self.proviso and f", {self.proviso}")
        for each in self.coarser:
            width = show.width(each.half_width)
            facts[f"or ±{width}"] = f"at {each.price:.3g} of the charge, {each.left:,} left: precision={width}"
        if self.rows_left is not None:
            facts["fresh rows"] = f"{self.rows_left:,} left for rounds of questions, planned for {self.rounds:,} rounds"
        if self.exam_rows is not None and self.exam_half_width is not None:
            width = f"±{show.width(self.exam_half_width)} at 0.5"
            taken = f"taken, with {self.examined:,} question{'' if self.examined == 1 else 's'} ({width})"
            facts["exam"] = taken if self.examined else f"{self.exam_rows:,} rows, once: {width} for one question"
        if self.ahead is not None:
            facts["ahead"] = worth_ahead(self.ahead)
        facts["repeats"] = "free, even when nothing is left"
        if self.shares:
            facts["shares"] = ", ".join(f"{name} {share:,}" for name, share in self.shares.items())
        share = self.shares.get(self.analyst or "", self.questions - sum(self.shares.values()))
        whose = f" in the share of {self.analyst}" if self.analyst in self.shares else ""
        whose = " for analysts without a share" if self.shares and not whose else whose
        left = f"{self.left:,} of {share:,} answers left"
        if self.ahead is not None and not self.shares:
            left = f"{answers_in_words(self.spent)} so far, and no limit"
        title = f"{left}{whose}, {show.percent(self.confidence)}"
        return [*simulation_mark(self.simulated), show.Title(title), show.Facts(facts)]
