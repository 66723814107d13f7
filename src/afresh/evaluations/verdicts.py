"""What an evaluation says: the conclusion first, in words, then the numbers, then what exactly is guaranteed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from afresh.results import show
from afresh.results.answer import Difference, Released, cost_line, exam_line, simulation_mark

_DO_NOT = "do not report this as an improvement"
_BEFORE = show.Line(
    "Asked before: this is about the results first given under this name. Those given now were not read; give other "
    "results another name."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored(Released):
    """The mean score of a candidate with its simultaneous interval."""

    candidate: str
    items: int
    open_score: float
    """Its exact mean on the open part, which may be overfitted; the interval is not about it."""

    @property
    def verdict(self) -> str:
        """In words."""
        _, low, high = self.shown()
        return f"{self.candidate} scores between {low} and {high}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        own = ("candidate", "verdict", "items", "open_score", "confirmed", "widened")
        return {**{name: getattr(self, name) for name in own}, **Released.to_dict(self)}

    def __repr__(self) -> str:
        """One line."""
        return self._one_line(f"{self.candidate}: ")

    def _blocks(self) -> list[show.Block]:
        said = [show.Line(f"Mean of the open part, which may be overfitted: {self.open_score:.4g}.")]
        if self.confirmed is False:
            wider = "" if self.widened is None else f" Later answers are {max(self.widened, 0.001):.1%} wider."
            said.append(
                show.Line(f"The guarded part does not agree with the open part, which may be overfitted.{wider}")
            )
        return self._lines(self.verdict, *_again(self.charged), *said, show.Line(self.covers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Difference):
    """The mean score of B minus that of A, with its simultaneous interval: above 0, B is better."""

    items: int
    open_difference: float
    """The exact difference on the open part, which may be overfitted."""

    @property
    def verdict(self) -> str:
        """In words."""
        if self.better is None:
            return f"cannot tell whether {self.b} is better than {self.a}: {_DO_NOT}"
        first, second = (self.b, self.a) if self.better == "B" else (self.a, self.b)
        _, low, high = show.with_interval(self.value, self.low, self.high)
        ends = (low, high) if self.better == "B" else (high.removeprefix("-"), low.removeprefix("-"))
        return f"{first} is better than {second} by {ends[0]} to {ends[1]}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        own = ("a", "b", "verdict", "better", "items", "open_difference", "confirmed")
        return {**{name: getattr(self, name) for name in own}, **Released.to_dict(self)}

    def __repr__(self) -> str:
        """One line."""
        return self._one_line(f"{self.verdict}: ")

    def _blocks(self) -> list[show.Block]:
        said = show.Line(f"Difference on the open part, which may be overfitted: {self.open_difference:+.4g}.")
        return self._lines(self.verdict, *_again(self.charged), said, show.Line(self.covers))


def _again(charged: int) -> list[show.Block]:
    """What a free repeat is about."""
    return [] if charged else [_BEFORE]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed(show.Told):
    """Whether a gate accepted a candidate. It is true if it did: `if gate.propose(...)`."""

    candidate: str
    incumbent: str
    """The candidate it was compared with."""
    margin: float
    accepted: bool
    detects: float | None
    """Roughly how large a true improvement had to be to be accepted nine times in ten; None for a repeat."""
    open_difference: float | None
    """The exact difference on the open part, which may be overfitted; None for a repeat."""
    confidence: float
    covers: str
    charged: int
    left: int
    simulated: bool = False

    def __bool__(self) -> bool:
        """Whether it was accepted."""
        return self.accepted

    @property
    def verdict(self) -> str:
        """In words."""
        by = f" by more than {self.margin:g}" if self.margin else ""
        who = self.candidate if self.charged else f"{self.candidate}, as first proposed,"
        if self.accepted:
            return f"accepted: {who} is better than {self.incumbent}{by}"
        return f"not accepted: {who} is not certainly better than {self.incumbent}{by}, {_DO_NOT}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        names = ("candidate", "incumbent", "margin", "accepted", "verdict", "detects", "open_difference")
        more = ("confidence", "covers", "charged", "left", "simulated")
        return {name: getattr(self, name) for name in (*names, *more)}

    def __repr__(self) -> str:
        """One line."""
        return f"Proposed({self.verdict})"

    def _blocks(self) -> list[show.Block]:
        said = []
        if self.open_difference is not None and self.detects is not None:
            said.append(f"Difference on the open part, which may be overfitted: {self.open_difference:+.4g}.")
            enough = f"A true improvement of {self.margin + self.detects:.3g} or more is accepted about 9 times in 10."
            said.append(enough if self.detects < 1 else "These items cannot detect an improvement reliably.")
        if not self.accepted:
            said.append("It may still be better: nothing else was released.")
        return [
            *simulation_mark(self.simulated),
            show.Title(self.verdict),
            *_again(self.charged),
            *map(show.Line, (*said, self.covers)),
            cost_line(self.charged, self.left),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined(show.Told):
    """The result of the exam: the number to publish."""

    score: Scored
    gain: Compared | None
    """The gain over the start, if one was given."""

    @property
    def verdict(self) -> str:
        """In words."""
        return self.score.verdict + ("" if self.gain is None else f"; {self.gain.verdict}")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        gain = None if self.gain is None else self.gain.to_dict()
        return {"verdict": self.verdict, "score": self.score.to_dict(), "gain": gain}

    def __repr__(self) -> str:
        """One line."""
        return f"Examined({self.verdict})"

    def _blocks(self) -> list[show.Block]:
        rows = []
        for what, each in (("score", self.score), ("gain", self.gain)):
            if each is not None:
                value, low, high = each.shown()
                rows.append([what, value, f"{low} to {high}"])
        return [
            *simulation_mark(self.score.simulated),
            show.Title(self.verdict),
            show.Table(["", "exact on the exam", f"guaranteed, {show.percent(self.score.confidence)}"], rows),
            show.Line(self.score.covers),
            exam_line(self.score.left),
        ]
