"""What a judge reports about the open items, and before the first proposal."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from afresh.results import show


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried(show.Told):
    """Everything a candidate did on the open items. Free."""

    candidate: str
    open_score: float
    scores: dict[str, float] = field(hash=False)
    """The score of every open item, by id."""
    chance: float
    """How likely the open part makes it that the gate would accept it now."""
    output: str
    """The end of what the evaluator wrote."""

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        chance = "below 1%" if self.chance < 0.01 else "above 99%" if self.chance > 0.99 else f"{self.chance:.0%}"
        scores = f"{self.candidate} scores {self.open_score:.4g} on the open items"
        return f"{scores}; chance that the gate accepts it, if they are not overfitted: {chance}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        names = ("candidate", "verdict", "open_score", "chance", "scores", "output")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        """One line."""
        return f"Tried({self.verdict})"

    def _blocks(self) -> list[show.Block]:
        failed = sum(score < 1 for score in self.scores.values())
        said = f"{failed:,} of {len(self.scores):,} open items have less than the full score. Nothing was charged."
        return [show.Title(self.verdict), show.Line(said)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(show.Told):
    """What an evaluation can detect, and how candidates are confined."""

    items: int
    open: int
    guarded: int
    baseline: float
    """The baseline's mean score on the open items."""
    incumbent: str
    too_few: bool
    """Whether there are too few items to detect a useful improvement; `advice` says how many would be enough."""
    advice: str
    alone: bool
    network: bool
    left: int

    @property
    def confined(self) -> str:
        """How candidates are confined, in words."""
        if self.alone:
            net = "with the network" if self.network else "without a network"
            return f"as another user, in namespaces of their own, {net}"
        return "as this user, with the same access to files; serve the evaluation as root, or on another machine"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "confined": self.confined}

    def __repr__(self) -> str:
        """One line."""
        return f"Checked({self.items:,} items, incumbent {self.incumbent!r})"

    def _blocks(self) -> list[show.Block]:
        facts = {
            "items": f"{self.items:,}, of which {self.open:,} are open and {self.guarded:,} confirm",
            "incumbent": self.incumbent,
            "baseline": f"{self.baseline:.4g} on the open items",
            "candidates run": self.confined,
            "answers left": f"{self.left:,}",
        }
        return [show.Title("The evaluation is ready"), show.Facts(facts), show.Line(self.advice)]
