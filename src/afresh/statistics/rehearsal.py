"""What to expect of a statistic: it is measured on made-up numbers, with the widths that a desk's answers have.

Nothing is asked and no row is read. The numbers have bell curves and are independent; every step, bound and rule is the
statistic's own, so what it makes of its answers need not be worked out a second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from afresh.guard.evaluate import moments_of
from afresh.ledger.base import Entry
from afresh.queries.asked import Asked, make_asked
from afresh.queries.tree import Type
from afresh.results.answer import Answer, Interval
from afresh.results.reading import Number, Reading
from afresh.results.rules import derive
from afresh.statistics.base import Asker, Deviation, OfNumbers, Schema

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.moments import Moments, Vector

FILLS = 6.0
"""A bell curve fills its bounds if they are this many standard deviations apart."""
_QUANTILES = 64  # of each bell curve; all pairs are rows, so that two numbers are independent
# "inside" is for the width of a mean within a group, which no row is asked for.
_SCHEMA: Schema = {"x": Type.NUMBER, "y": Type.NUMBER, "inside": Type.BOOLEAN}
_NEVER = datetime.fromtimestamp(0, UTC)

Width = Callable[[Asked, float, float | None], float]
"""The half-width to expect of a question, given its mean and, for a number, its standard deviation."""


class Bell(NamedTuple):
    """What a number is taken to be like."""

    mean: float
    deviation: float


@contextmanager
def bell_curves() -> Iterator[Engine]:
    """Open rows of two independent numbers, each with mean 0 and standard deviation 1."""
    import pyarrow as pa  # on demand: `import afresh` stays fast

    from afresh.engines import arrow
    from afresh.engines.open import open_engine

    curve = np.array([NormalDist().inv_cdf((i + 0.5) / _QUANTILES) for i in range(_QUANTILES)])
    x, y = np.meshgrid(curve / curve.std(), curve / curve.std())
    engine = open_engine(pa.table({"x": arrow.over(x.ravel()), "y": arrow.over(y.ravel())}))
    try:
        yield engine
    finally:
        engine.close()


@dataclass
class Rehearsal(Asker):
    """Answers a statistic's questions from made-up rows, and gives each answer the width to expect."""

    rows: Engine = field(kw_only=True)
    width: Width = field(kw_only=True)
    grouped: bool = field(kw_only=True)
    """Whether the statistic is about some of the rows; then its means are within a group."""
    numbers: list[Reading] = field(default_factory=list)
    spreads: list[float] = field(default_factory=list)
    """The standard deviations of these numbers."""
    steps: int = 0
    """The number of times it was asked."""
    most: int = 0
    """The largest number of means that it might have been asked for."""

    def half_width(self, statistic: OfNumbers, laws: Sequence[Bell]) -> float:
        """The half-width to expect if the statistic's numbers are like this."""
        columns = zip(("x", "y"), laws, strict=False)
        made = statistic.of(*(f"({law.mean!r} + {law.deviation!r} * {name})" for name, law in columns))
        self.most, found = made.most(self), made.measure(self)
        assert isinstance(found, Answer)
        return found.interval.half_width

    @property
    def schema(self) -> Schema:
        """The made-up columns."""
        return _SCHEMA

    def ask(
        self,
        questions: Sequence[dict[str, Any]],
        *,
        where: str | None = None,
        later: Sequence[str] = (),
        vector: Vector | None = None,
    ) -> list[Number]:
        """The means of the made-up rows, in the middle of the intervals to expect."""
        self.steps += 1
        asked = [make_asked(each, self.schema) for each in questions]
        found = moments_of(self.rows, [query for one in asked for query in one.queries])
        readings = [self._reading(*each) for each in zip(questions, asked, found, strict=True)]
        self.numbers += readings
        scales = (high - low for low, high in (one.bounds for one in asked))
        self.spreads += [math.sqrt(each.variance) * scale for each, scale in zip(found, scales, strict=True)]
        return [reading.own for reading in readings]

    def _reading(self, question: dict[str, Any], asked: Asked, moments: Moments) -> Reading:
        (low, high), (query,) = asked.bounds, asked.queries
        deviation = None if query.levels is not None else math.sqrt(moments.variance) * (high - low)
        within = make_asked({**question, "where": "inside"}, self.schema) if self.grouped else asked
        mean = low + (high - low) * moments.mean
        reach = self.width(replace(within, own=False), mean, deviation) / (high - low)
        interval = Interval(max(moments.mean - reach, 0.0), min(moments.mean + reach, 1.0))
        made_up = Entry(number=0, digest="", text="", charge=0.0, reserved_at=_NEVER, bounds=asked.bounds)
        return Reading(made_up, moments.mean, interval)

    def releases_deviations(self, questions: Sequence[dict[str, Any]], where: str | None) -> bool:
        """Whether this desk would release them, if the statistic is about a group."""
        return super().releases_deviations(questions, "inside" if self.grouped else None)

    @property
    def deviations(self) -> list[Deviation]:
        """Those of the made-up rows."""
        return [Deviation(each, 0.0) for each in self.spreads]

    def answered(self, questions: Sequence[dict[str, Any]], where: str | None) -> bool:
        """Nothing was asked before."""
        return False

    def set_aside(self) -> None:
        """What was asked so far only decided what to ask next."""
        self.numbers, self.spreads = [], []

    def parameters(self, sample: Any) -> dict[str, Any]:
        """Every number is a mean by itself."""
        return {}

    def answer(
        self, question: str, rule: str, parameters: Mapping[str, Any], bounds: tuple[float, float], missing: str
    ) -> Answer:
        """What the rule makes of the numbers to expect; it is not recorded anywhere."""
        plan = self.desk.plan
        value, low, high = derive(rule, self.numbers, parameters, bounds, plan)
        return Answer(
            question=question,
            where=None,
            bounds=bounds,
            value=value,
            interval=Interval(low, high),
            confidence=plan.confidence,
            covers="made-up rows",
            missing=missing,
            method=plan.method,
            charged=0,
            charged_information=0.0,
            left=0,
            simulated=True,
        )
