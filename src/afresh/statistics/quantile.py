"""Quantiles by bisection, where every answer is noisy and its interval says what may be concluded."""

from __future__ import annotations

from dataclasses import dataclass

from afresh import checks
from afresh.answer import Answer
from afresh.errors import BudgetExhausted
from afresh.reading import Number
from afresh.rules import QuantileSearch
from afresh.statistics.base import Asker, about_missing, clipped


@dataclass(frozen=True, slots=True)
class Quantile:
    """The smallest number c with P(x <= c) >= level, from at most `answers` answers about shares P(x <= c).

    An answer whose interval lies below the level proves that the quantile is above c; one whose interval is at or above
    the level, that it is at most c. Nothing else is concluded, so the interval holds whenever the answers do. Points
    are halved until one is undecided; from there the two ends are searched in turns.
    """

    expression: str
    level: float
    bounds: tuple[float, float]
    answers: int = 12

    def __post_init__(self) -> None:
        """Check what needs no data."""
        object.__setattr__(self, "level", checks.between_0_and_1("level", self.level))
        object.__setattr__(self, "answers", checks.whole("answers", self.answers, 1))
        object.__setattr__(self, "bounds", checks.bounds("bounds", self.bounds))

    @property
    def price(self) -> int:
        """The most answers; a short budget ends the search earlier, with a wider interval."""
        return self.answers

    def measure(self, asker: Asker) -> Answer:
        """Search, then read the interval off the points that were decided."""
        bounds = self.bounds
        search, points = QuantileSearch(*bounds, level=self.level), []
        for step in range(self.answers):
            point = search.next(step)
            if point is None:
                break
            try:
                (share,) = asker.ask([{"expression": f"{clipped(self.expression, bounds)} <= {point!r}"}])
            except BudgetExhausted:
                if step == 0:
                    raise
                break
            points.append(point)
            search.note(point, Number(share.value, share.low, share.high))
        parameters = {"level": self.level, "bounds": list(bounds), "points": points}
        name = f"{self.level:g} quantile of {self.expression}"
        return asker.answer(name, "quantile", parameters, bounds, about_missing(bounds))
