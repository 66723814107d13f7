"""Quantiles by bisection, where every answer is noisy and its interval decides what may be concluded."""

from __future__ import annotations

from dataclasses import dataclass, replace

from afresh import checks
from afresh.errors import BudgetExhausted
from afresh.results.answer import Answer
from afresh.results.rules import QuantileSearch
from afresh.statistics.base import Asker, OfRows, Sample, Schema, check_where, grouped, variable, where_text


@dataclass(frozen=True, slots=True)
class Quantile(OfRows):
    """The smallest number c with P(x <= c) >= level, from the shares P(x <= c) at up to `points` points c.

    A share whose interval lies below the level proves that the quantile is above c; one whose interval is at or above
    the level proves that it is at most c. Nothing else is concluded, so the interval holds whenever the answers do. The
    range is halved until a point is undecided; then the two ends are searched in turn. With rounds, all points are
    asked in one round, evenly spaced between the bounds; more points cost answers but no rows. If rows are left out, by
    `where` or because a value is missing, a point costs two answers instead of one.

    Args:
        expression: A number, in SQL.
        level: Between 0 and 1; one half is the median.
        bounds: The range to search.
        points: The most shares to ask for.
        where: A condition in SQL; only rows where it is true count.
        missing: What rows without the number count as; by default they are left out.
    """

    expression: str
    level: float
    bounds: tuple[float, float]
    points: int = 12
    where: str | None = None
    missing: float | None = None

    def __post_init__(self) -> None:
        """Check what needs no data."""
        object.__setattr__(self, "level", checks.between_0_and_1("level", self.level))
        object.__setattr__(self, "points", checks.whole("points", self.points, 1))
        object.__setattr__(self, "bounds", checks.bounds("bounds", self.bounds))

    @property
    def _means(self) -> int:
        """One mean per point; a short budget ends the search earlier, with a wider interval."""
        return self.points

    @property
    def _grouped(self) -> bool:
        return grouped(self.where, self.missing)

    @property
    def ranges(self) -> tuple[tuple[float, float], ...]:
        """Its bounds."""
        return (self.bounds,)

    def of(self, *numbers: str) -> Quantile:
        """The same of another number, over all rows.

        Args:
            *numbers: The number, in SQL.

        Returns:
            A statistic with the same bounds and points.
        """
        (expression,) = numbers
        return replace(self, expression=expression, where=None, missing=self.bounds[0])

    def most(self, asker: Asker) -> int:
        """The number of points.

        Args:
            asker: How means are asked for.

        Returns:
            A number of means.
        """
        return self.points

    def _sample(self, schema: Schema) -> Sample:
        given = variable(self.expression, self.bounds, self.missing, schema)
        return Sample((given,), check_where(self.where, schema))

    def text(self, schema: Schema) -> str:
        """What is measured, in words."""
        words = self._sample(schema).variables[0].text
        return f"{self.level!r} quantile of {words}{where_text(self.where, schema)}"

    def _at_once(self, asker: Asker, sample: Sample, search: QuantileSearch) -> list[float]:
        """With rounds, all points form one batch, evenly spaced, from the fresh rows of a single round.

        With a short budget it asks half as many, and so on: not as many as are left, or a repeat would not be free.
        """
        (x,) = sample.variables
        low, high = x.bounds
        count = self.points
        while True:
            points = sorted({low + (high - low) * (i + 1) / (count + 1) for i in range(count)} - {low, high})
            asked = [{"expression": f"{x.sql} <= {point!r}"} for point in points]
            try:
                shares = asker.ask(asked, where=sample.group)
                break
            except BudgetExhausted:
                if count == 1:
                    raise
                count //= 2
        for point, share in zip(points, shares, strict=True):
            search.note(point, share)
        return points

    def measure(self, asker: Asker) -> Answer:
        """Search, then read the interval from the decided points."""
        sample, text = self._sample(asker.schema), self.text(asker.schema)
        (x,) = sample.variables
        search, points = QuantileSearch(*x.bounds, level=self.level), list[float]()
        if asker.desk.plan.mechanism.batch is not None:
            points = self._at_once(asker, sample, search)
        for step in range(0 if points else self.points):
            point = search.next(step)
            if point is None:
                break
            try:
                (share,) = asker.ask([{"expression": f"{x.sql} <= {point!r}"}], where=sample.group)
            except BudgetExhausted:
                if step == 0:
                    raise
                break
            points.append(point)
            search.note(point, share)
        parameters = {
            "level": float(self.level),
            "bounds": list(x.bounds),
            "points": points,
            **asker.parameters(sample),
        }
        return asker.answer(text, "quantile", parameters, x.bounds, sample.about_missing)
