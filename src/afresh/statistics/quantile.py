"""Quantiles by bisection, where every answer is noisy and its interval says what may be concluded."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real

from afresh.answer import Answer, Interval
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.statistics.base import Asker, about_missing, check_bounds, clipped


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
        if not (isinstance(self.level, Real) and 0 < self.level < 1):
            raise InvalidArgument(f"level == {self.level!r}, must be between 0 and 1.")
        if isinstance(self.answers, bool) or not isinstance(self.answers, int) or self.answers < 1:
            raise InvalidArgument(f"answers == {self.answers!r}, must be a whole number, at least 1.")

    @property
    def price(self) -> int:
        """The most answers; a short budget ends the search earlier, with a wider interval."""
        return self.answers

    def measure(self, asker: Asker) -> Answer:
        """Search, then read the interval off the points that were decided."""
        bounds = check_bounds(self.bounds)
        search = _Search(*bounds)
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
            search.note(point, share, self.level)
        name = f"{self.level:g} quantile of {self.expression}"
        interval = Interval(search.low, search.high)
        return asker.answer(name, search.value(self.level), interval, bounds, about_missing(bounds))


@dataclass
class _Search:
    """The quantile is above `low` (or at the lower bound) and at most `high`; undecided points lie between."""

    low: float
    high: float
    undecided: list[float] = field(default_factory=list)
    shares: dict[float, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shares = {self.high: 1.0}
        self.bottom = self.low

    def next(self, step: int) -> float | None:
        """The middle of the gap to be halved."""
        if not self.undecided:
            a, b = self.low, self.high
        elif step % 2:
            a, b = self.low, min(self.undecided)
        else:
            a, b = max(self.undecided), self.high
        point = a / 2 + b / 2  # a + b may be infinite
        return point if a < point < b else None

    def note(self, point: float, share: Answer, level: float) -> None:
        """Conclude from one answer what it proves."""
        self.shares[point] = share.value
        if share.high < level:
            self.low = max(self.low, point)
        elif share.low >= level:
            self.high = min(self.high, point)
        else:
            self.undecided.append(point)
        self.undecided = [each for each in self.undecided if self.low < each < self.high]

    def value(self, level: float) -> float:
        """Between the points whose released shares lie around the level, by a straight line."""
        below = max((point for point, share in self.shares.items() if share < level), default=self.bottom)
        above = min((point for point, share in self.shares.items() if share >= level and point > below), default=None)
        if above is None:
            return below
        start, end = self.shares.get(below, 0.0), self.shares[above]
        return below + (above - below) * (level - start) / (end - start) if end > start else (below + above) / 2
