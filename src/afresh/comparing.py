"""The questions behind `Holdout.compare` and `Holdout.best_of`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh import display
from afresh.answer import Interval
from afresh.comparison import Comparison, Ranking, rank
from afresh.difference import read_difference
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.guard import Wanted
from afresh.queries.vector import Rows, Values, VectorQuery

if TYPE_CHECKING:
    from afresh.holdout import Holdout
    from afresh.losses import Loss
    from afresh.predicting import Predicted
    from afresh.reading import Reading


def compare(holdout: Holdout, a: Any, b: Any, names: Sequence[str] | None, loss: Loss) -> Comparison:
    """The difference of the mean losses of two models."""
    guard = holdout.guard
    first, second = holdout._predict([a, b], names, loss)
    scale = loss.bounds[1] - loss.bounds[0]
    value, interval, charged = 0.0, Interval(0.0, 0.0), 0
    guard._check_open()
    if first.digest != second.digest:
        ((value, interval, charged),) = _differences(holdout, [(first, second)], loss)
    simulated = guard._terms.simulated
    return Comparison(
        a=first.name,
        b=second.name,
        loss=loss.words,
        value=value * scale,
        interval=_scaled(interval, scale),
        bounds=(-scale, scale),
        confidence=guard.plan.confidence,
        rows=holdout.rows,
        covers="It covers nothing: the noise came from a seed, so that anyone could subtract it."
        if simulated
        else f"The interval covers the difference in the population the {holdout.rows:,} rows were drawn from, at once "
        f"with all others of this guard, with probability at least {display.percent(guard.plan.confidence)}.",
        method=guard.plan.method,
        charged=charged,
        left=guard._left(),
        simulated=simulated,
    )


def best_of(holdout: Holdout, models: Sequence[Any], names: Sequence[str] | None, loss: Loss) -> Ranking:
    """Scores of all, and the differences of all to the one that scores best."""
    predicted = holdout._predict(models, names, loss)
    if len({each.name for each in predicted}) < len(predicted):
        raise InvalidArgument("two models have one name, or are one; leave one out or name them differently.")
    if len(predicted) < 2:
        raise InvalidArgument(f"there are {len(predicted)} models; it takes two to have an order.")
    scores = holdout._scores(predicted, loss)
    leader = min(range(len(scores)), key=lambda place: scores[place].value)
    others = [place for place in range(len(scores)) if place != leader]
    to_leader: list[Interval | None] = [None] * len(scores)
    to_leader[leader] = Interval(0.0, 0.0)
    charged, scale = sum(score.charged for score in scores), loss.bounds[1] - loss.bounds[0]
    try:
        pairs = [(predicted[place], predicted[leader]) for place in others]
        for place, (_, interval, cost) in zip(others, _differences(holdout, pairs, loss), strict=True):
            to_leader[place] = _scaled(interval, scale)
            charged += cost
    except BudgetExhausted:
        pass  # the scores, which are paid for, give an order of their own, with more ties
    guard = holdout.guard
    ranked = tuple(rank([each.name for each in predicted], scores, to_leader))
    return Ranking(ranked, loss.words, guard.plan.confidence, charged, guard._left(), guard._terms.simulated)


def _scaled(interval: Interval, scale: float) -> Interval:
    """From [-1, 1] to the units of the loss, rounded outward."""
    if interval.low == interval.high == 0:
        return interval
    return Interval((interval.low + 1) / 2, (interval.high + 1) / 2).rescaled((-scale, scale))


def _differences(
    holdout: Holdout, pairs: Sequence[tuple[Predicted, Predicted]], loss: Loss
) -> list[tuple[float, Interval, int]]:
    """Value, interval and price of the mean of (loss of the first - loss of the second)/scale; 2 answers each."""
    plan = holdout.guard.plan
    second_moment = plan.method == "calibrated"
    wanted: list[VectorQuery] = []
    for a, b in pairs:
        if second_moment:
            # One question for a pair, whichever comes first.
            a, b = sorted((a, b), key=lambda each: each.digest)
            wanted += [_square(holdout, a, b, loss), _shifted(holdout, a, b, loss)]
        else:
            wanted += [_excess(holdout, a, b, loss), _excess(holdout, b, a, loss)]
    readings = holdout.guard._release([Wanted(query) for query in wanted])
    paid: set[int] = set()
    found = []
    for place, (a, b) in enumerate(pairs):
        own = readings[2 * place : 2 * place + 2]
        value, interval = read_difference(plan, *own)
        if second_moment and a.digest > b.digest:
            value, interval = -value, Interval(-interval.high, -interval.low)
        found.append((value, interval, _count_new(own, paid)))
    return found


def _count_new(readings: Sequence[Reading], paid: set[int]) -> int:
    """How many of these were paid for just now, each once."""
    new = {reading.entry.number for reading in readings if reading.entry.new} - paid
    paid |= new
    return len(new)


def _losses(holdout: Holdout, each: Predicted, loss: Loss, rows: Rows) -> Values:
    return loss.rows(each.values, holdout._labels, rows)


def _excess(holdout: Holdout, a: Predicted, b: Predicted, loss: Loss) -> VectorQuery:
    """max(loss of A - loss of B, 0)."""

    def values(rows: Rows) -> Values:
        more, less = _losses(holdout, a, loss, rows), _losses(holdout, b, loss, rows)
        if loss.binary:
            return np.greater(more, less)
        return np.maximum(more - less, 0.0)

    low, high = loss.bounds
    return holdout._query(
        f"excess of the {loss.words} of {a.name} over that of {b.name}",
        ["excess", loss.words, a.digest, b.digest],
        values,
        binary=loss.binary,
        bounds=(0.0, high - low),
    )


def _square(holdout: Holdout, a: Predicted, b: Predicted, loss: Loss) -> VectorQuery:
    """Phi = (loss of A - loss of B)^2."""

    def values(rows: Rows) -> Values:
        one, other = _losses(holdout, a, loss, rows), _losses(holdout, b, loss, rows)
        return one != other if loss.binary else (one - other) ** 2

    low, high = loss.bounds
    return holdout._query(
        f"squared difference of the {loss.words} of {a.name} and of {b.name}",
        ["square", loss.words, a.digest, b.digest],
        values,
        binary=loss.binary,
        bounds=(0.0, (high - low) ** 2),
    )


def _shifted(holdout: Holdout, a: Predicted, b: Predicted, loss: Loss) -> VectorQuery:
    """Psi = (loss of A - loss of B + 1)/2."""

    def values(rows: Rows) -> Values:
        one, other = (np.asarray(_losses(holdout, each, loss, rows), dtype=np.float64) for each in (a, b))
        return (one - other + 1) / 2

    low, high = loss.bounds
    return holdout._query(
        f"{loss.words} of {a.name} minus that of {b.name}",
        ["difference", loss.words, a.digest, b.digest],
        values,
        bounds=(low - high, high - low),
    )
