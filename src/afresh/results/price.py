"""What a question would cost, shown before it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from afresh.results import show


@dataclass(frozen=True, slots=True, kw_only=True)
class Price(show.Told):
    """The price of a question and what it would buy. Getting a price is free and reads no rows."""

    question: str
    answers: int
    """The number of answers it would be charged; for a statistic, at most."""
    charge: float
    """The charge in nats."""
    half_width: float | None
    """The half-width to expect, in the answer's units: for a histogram, group means or a vector, that of each number;
    for other statistics, if numbers have about a bell curve. For a group whose share of the rows you do not give, it
    assumes one half of them: see `half_widths`. None for a statistic of your own that does not say what it is like."""
    mean: float | None
    """The mean at which this half-width is expected, in the answer's units."""
    left: int
    """The number of answers at full price left before the question is asked."""
    rounds: int = 0
    """The number of rounds it takes, each on fresh rows; 0 for methods without rounds."""
    half_widths: dict[float, float] = field(default_factory=dict)
    """The half-width by the group's share of rows, since the size of a group is not known before you pay."""
    ways: Mapping[str, float] = field(default_factory=dict)
    """The half-widths of other plans for the same questions and rows, by the arguments to open the data with."""
    words: str
    """The price in one sentence."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return told | {
            "half_widths": {f"{share:g}": width for share, width in self.half_widths.items()},
            "ways": dict(self.ways),
        }

    def _blocks(self) -> list[show.Block]:
        others = ", ".join(f"{how}: ±{show.width(width)}" for how, width in self.ways.items())
        more = [show.Line(f"Other plans for the same number of questions: {others}.")] if others else []
        return [show.Title(self.question), show.Line(self.words), *more]
