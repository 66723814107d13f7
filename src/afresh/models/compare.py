"""The questions behind `Holdout.compare` and `Holdout.best_of`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh import checks
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.guard.desk import Wanted
from afresh.models.paired import smallest_difference
from afresh.models.vectors import Rows, Values, VectorQuery
from afresh.models.verdicts import Comparison, Identical, Ranking, rank
from afresh.results import show
from afresh.results.answer import Interval, coverage

if TYPE_CHECKING:
    from afresh.losses import Loss
    from afresh.models.holdout import Holdout
    from afresh.models.predictions import Predicted
    from afresh.results.reading import Reading


def compare(
    holdout: Holdout, a: Any, b: Any, names: Sequence[str] | None, loss: Loss, precision: float | None
) -> Comparison | Identical:
    """The difference of the mean losses of two models."""
    guard = holdout.guard
    first, second = holdout._predict([a, b], names, loss)
    scale = loss.bounds[1] - loss.bounds[0]
    coarseness = coarseness_of(holdout, loss, precision)
    if _identical(holdout, first, second):
        return Identical(
            first.name, second.name, loss.words, rows=holdout.rows, left=guard._left(), simulated=guard._terms.simulated
        )
    ((value, interval, smallest, charged),) = _differences(holdout, [(first, second)], loss, coarseness)
    covers = coverage(
        guard._terms.simulated,
        f"The interval covers the difference {guard._target}, at once with all others of this guard, with probability "
        f"at least {show.percent(guard.plan.confidence)}.",
    )
    return Comparison(
        a=first.name,
        b=second.name,
        loss=loss.words,
        value=value,
        interval=interval,
        smallest_difference=smallest,
        bounds=(-scale, scale),
        confidence=guard.plan.confidence,
        rows=holdout.rows,
        covers=covers,
        method=guard.plan.method,
        charged=charged,
        left=guard._left(),
        simulated=guard._terms.simulated,
    )


def _identical(holdout: Holdout, a: Predicted, b: Predicted) -> bool:
    """Whether both make the same predictions, which anybody can see where features are public, and nobody where not."""
    return holdout.visibility == "public" and a.digest == b.digest


def coarseness_of(holdout: Holdout, loss: Loss, precision: float | None) -> float:
    """How many times the plan's noise is enough for a difference, even of models that disagree on every row."""
    if precision is None:
        return 1.0
    low, high = loss.bounds
    widest = 2 * (high - low)  # a difference lies in [-1, 1] times the scale, an answer in [0, 1]
    return holdout.guard._coarseness(checks.precision(precision) / widest)


def best_of(holdout: Holdout, models: Sequence[Any], names: Sequence[str] | None, loss: Loss) -> Ranking:
    """Scores of all, and the differences of all to the one that scores best."""
    predicted = holdout._predict(models, names, loss)
    if len({each.name for each in predicted}) < len(predicted):
        raise InvalidArgument("two models have one name, or are one; leave one out or name them differently.")
    if len(predicted) < 2:
        raise InvalidArgument(f"there are {len(predicted)} models; it takes two to have an order.")
    scores = holdout._scores(predicted, loss)
    leader = min(range(len(scores)), key=lambda place: scores[place].value)
    same = [_identical(holdout, each, predicted[leader]) for each in predicted]
    others = [place for place in range(len(predicted)) if place != leader and not same[place]]
    to_leader: list[Interval | None] = [None] * len(predicted)
    charged = sum(score.charged for score in scores)
    try:
        pairs = [(predicted[place], predicted[leader]) for place in others]
        for place, (_, interval, _, cost) in zip(others, _differences(holdout, pairs, loss), strict=True):
            to_leader[place] = interval
            charged += cost
    except BudgetExhausted:
        pass  # the scores, which are paid for, give an order of their own, with more ties
    guard = holdout.guard
    ranked = tuple(rank([each.name for each in predicted], scores, to_leader, leader, same))
    return Ranking(ranked, loss.words, guard.plan.confidence, charged, guard._left(), guard._terms.simulated)


def _differences(
    holdout: Holdout, pairs: Sequence[tuple[Predicted, Predicted]], loss: Loss, coarseness: float = 1.0
) -> list[tuple[float, Interval, float, int]]:
    """Of every pair, the value, interval and price of the mean loss of the first minus that of the second, and the
    smallest difference that shows; 2 answers each.
    """
    guard, plan, scale = holdout.guard, holdout.guard.plan, loss.bounds[1] - loss.bounds[0]
    squares = plan.mechanism.squares
    wanted: list[VectorQuery] = []
    for a, b in pairs:
        if squares:
            # One question for a pair, whichever comes first.
            a, b = sorted((a, b), key=lambda each: each.digest)
            wanted += [_square(holdout, a, b, loss), _shifted(holdout, a, b, loss)]
        else:
            wanted += [_excess(holdout, a, b, loss), _excess(holdout, b, a, loss)]
    readings = guard._release([Wanted(query, coarseness, own=False) for query in wanted])
    parts = [readings[2 * place : 2 * place + 2] for place in range(len(pairs))]
    told = guard._record(
        [
            guard._stated(
                holdout._words(f"{loss.words} of {a.name} minus that of {b.name}"),
                "difference",
                {"scale": scale, "sign": -1 if squares and a.digest > b.digest else 1},
                own,
                (-scale, scale),
            )
            for (a, b), own in zip(pairs, parts, strict=True)
        ]
    )
    paid: set[int] = set()
    return [
        (
            each.value,
            Interval(each.low, each.high),
            smallest_difference(plan, *own) * scale,
            _count_new(own, paid),
        )
        for each, own in zip(told, parts, strict=True)
    ]


def _count_new(readings: Sequence[Reading], paid: set[int]) -> int:
    """How many of these were paid for just now, each once."""
    new = {reading.entry.number for reading in readings if reading.entry.new} - paid
    paid |= new
    return len(new)


def _excess(holdout: Holdout, a: Predicted, b: Predicted, loss: Loss) -> VectorQuery:
    """max(loss of A - loss of B, 0)."""
    low, high = loss.bounds
    words = f"excess of the {loss.words} of {a.name} over that of {b.name}"
    function = np.greater if loss.binary else lambda x, y: np.maximum(x - y, 0.0)
    return _of_both(holdout, a, b, loss, "excess", words, function, binary=loss.binary, bounds=(0.0, high - low))


def _square(holdout: Holdout, a: Predicted, b: Predicted, loss: Loss) -> VectorQuery:
    """Phi = (loss of A - loss of B)^2."""
    low, high = loss.bounds
    words = f"squared difference of the {loss.words} of {a.name} and of {b.name}"
    function = np.not_equal if loss.binary else lambda x, y: (x - y) ** 2
    largest = min(max((high - low) * (high - low), sys.float_info.min), sys.float_info.max)  # a number in any units
    return _of_both(holdout, a, b, loss, "square", words, function, binary=loss.binary, bounds=(0.0, largest))


def _shifted(holdout: Holdout, a: Predicted, b: Predicted, loss: Loss) -> VectorQuery:
    """Psi = (loss of A - loss of B + 1)/2."""
    low, high = loss.bounds
    words = f"{loss.words} of {a.name} minus that of {b.name}"

    def function(x: Values, y: Values) -> Values:
        return (np.subtract(x, y, dtype=np.float64) + 1) / 2

    return _of_both(holdout, a, b, loss, "difference", words, function, bounds=(low - high, high - low))


def _of_both(
    holdout: Holdout,
    a: Predicted,
    b: Predicted,
    loss: Loss,
    kind: str,
    words: str,
    function: Callable[[Any, Any], Values],
    **more: Any,
) -> VectorQuery:
    """A question about a function of both models' losses of a row."""

    def values(rows: Rows) -> Values:
        return function(*(each.losses(loss, holdout._labels, rows) for each in (a, b)))

    parts = [kind, loss.words, a.digest, b.digest]
    return holdout._query(words, parts, values, **more)
