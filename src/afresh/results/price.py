"""What a question would cost, as people read it before they ask."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from afresh.results import show


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(show.Told):
    """The price of a question and what it would buy. Saying it is free and touches no row."""

    question: str
    answers: int
    """How many answers it would be charged; of a statistic, at most."""
    charge: float
    """In nats."""
    half_width: float | None
    """Of the interval to expect, in the answer's units; None for a statistic, where it depends on the answers."""
    mean: float | None
    """The mean at which it is expected, in the answer's units."""
    left: int
    """How many answers at full price are left before it is asked."""
    words: str
    """All of it in one sentence."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {name: getattr(self, name) for name in self.__slots__}

    def _blocks(self) -> list[show.Block]:
        return [show.Title(self.question), show.Line(self.words)]
