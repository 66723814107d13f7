"""The results of claims, challenges and contests: a symbol, and what it certifies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from afresh.results import show
from afresh.results.answer import Interval, cost_line, simulation_mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed(show.Told):
    """Whether a claim passed. A pass certifies the claim; a failure says only that it was not certified.

    It is true if the claim passed: `if guard.claim(...)`.
    """

    claim: str
    passed: bool
    detects: float
    """Roughly how far inside the claim the truth must lie to pass nine times in ten; known before asking."""
    confidence: float
    covers: str
    method: str
    charged: int
    left: int
    simulated: bool = False

    def __bool__(self) -> bool:
        """Whether it passed."""
        return self.passed

    @property
    def verdict(self) -> str:
        """In words."""
        return "certified" if self.passed else "not certified"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        names = ("claim", "passed", "verdict", "detects", "confidence", "covers", "method", "charged", "left")
        return {name: getattr(self, name) for name in (*names, "simulated")}

    def __repr__(self) -> str:
        """One line."""
        return f"Claimed({self.verdict}: {self.claim})"

    def _blocks(self) -> list[show.Block]:
        reach = show.width(self.detects)
        said = [f"Passes about nine times in ten if the truth lies {reach} or more inside the claim; known in advance."]
        if not self.passed:
            said.append("It may still be true; nothing else was released.")
        return [
            *simulation_mark(self.simulated),
            show.Title(f"{self.verdict}: {self.claim}"),
            *map(show.Line, (*said, self.covers)),
            cost_line(self.charged, self.left),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contested(show.Told):
    """The winner of a contest, if there is one."""

    models: tuple[str, ...]
    winner: int | None
    """The winner's position among the models; None if no improvement on the incumbent was certified."""
    incumbent: str | None
    """The incumbent that the winner is certified to beat."""
    loss: str
    value: Interval | None
    """The winner's mean loss, if bins were requested."""
    detects: float | None = None
    """With an incumbent, roughly how much better a model had to be to win nine times in ten, which was known in
    advance; None without one, where the smallest mean loss wins."""
    confidence: float
    covers: str
    method: str
    charged: int
    left: int
    simulated: bool = False

    @property
    def verdict(self) -> str:
        """In words."""
        if self.winner is None:
            return "no certified improvement"
        return f"{self.models[self.winner]} wins" + (f" and beats {self.incumbent}" if self.incumbent else "")

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        names = (
            "winner",
            "verdict",
            "incumbent",
            "loss",
            "detects",
            "confidence",
            "covers",
            "method",
            "charged",
            "left",
        )
        value = None if self.value is None else [self.value.low, self.value.high]
        told = {name: getattr(self, name) for name in (*names, "simulated")}
        return {"models": list(self.models), **told, "value": value}

    def __repr__(self) -> str:
        """One line."""
        return f"Contested({self.verdict})"

    def _blocks(self) -> list[show.Block]:
        told = [self.covers]
        if self.value is not None:
            told.insert(0, f"Its mean {self.loss} is between {self.value.low:.4g} and {self.value.high:.4g}.")
        if self.detects is not None:
            least = show.width(self.detects)
            told.insert(
                0, f"A model that is better by {least} wins about nine times in ten, which was known in advance."
            )
        return [
            *simulation_mark(self.simulated),
            show.Title(f"{self.verdict}: {self.loss} of {len(self.models)} models"),
            *map(show.Line, told),
            cost_line(self.charged, self.left),
        ]
