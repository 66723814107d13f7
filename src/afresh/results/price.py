"""What a question would cost, as people read it before they ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
    """Of the interval to expect, in the answer's units; None for a statistic, where it depends on the answers.
    Within a group whose share of the rows you do not say, it is for one half of them: see `half_widths`."""
    mean: float | None
    """The mean at which it is expected, in the answer's units."""
    left: int
    """How many answers at full price are left before it is asked."""
    half_widths: dict[float, float] = field(default_factory=dict)
    """The same by the share of rows that the mean is over, since how large a group is cannot be told before you pay."""
    ways: Mapping[str, float] = field(default_factory=dict)
    """What other plans would make of as many questions to as many rows: half-widths, by what to open the data with."""
    words: str
    """All of it in one sentence."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return told | {
            "half_widths": {f"{share:g}": width for share, width in self.half_widths.items()},
            "ways": dict(self.ways),
        }

    def _blocks(self) -> list[show.Block]:
        others = ", ".join(f"{how}: ±{show.width(width)}" for how, width in self.ways.items())
        more = [show.Line(f"Other plans for as many questions: {others}.")] if others else []
        return [show.Title(self.question), show.Line(self.words), *more]
