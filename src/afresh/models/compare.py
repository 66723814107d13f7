"""The questions behind `Holdout.compare` and `Holdout.best_of`."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.losses import Custom
from afresh.mechanisms.base import FollowsDisagreement
from afresh.models.labels import Labels
from afresh.models.paired import disagreement_of, resolution, smallest_difference
from afresh.models.score import asked_scores
from afresh.models.vectors import Rows, Values, VectorQuery
from afresh.models.verdicts import Comparison, Identical, Ranking, rank
from afresh.planning.ways import would_tell
from afresh.queries.asked import Asked
from afresh.results.answer import Interval
from afresh.results.rules import noise_of

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.guard.path import Reply
    from afresh.losses import Loss
    from afresh.models.labelled import LabelledRows
    from afresh.models.predictions import Predicted
    from afresh.planning.plan import Plan


def compare(
    rows: LabelledRows, a: Predicted, b: Predicted, loss: Loss, analyst: str, precision: float | None
) -> Comparison | Identical:
    """The difference of the mean losses of two models."""
    desk, plan, simulated = rows.desk, rows.desk.plan, rows.desk.terms.simulated
    check_scale(loss)
    scale = loss.bounds[1] - loss.bounds[0]
    enough = None if precision is None else _precision(loss, precision)
    desk.coarseness(
        enough, _levels(desk, loss)
    )  # refused if all answers have the same noise, even if nothing will be asked
    if identical(rows, a, b):
        return Identical(
            a.name, b.name, loss.words, rows=desk.engine.rows, left=desk.left(analyst), simulated=simulated
        )
    (found,) = _differences(rows, [(a, b)], loss, analyst, enough)
    return Comparison(
        a=a.name,
        b=b.name,
        loss=loss.words,
        value=found.value,
        interval=found.interval,
        smallest_difference=found.smallest,
        would_tell=found.would_tell,
        noise=found.noise,
        confirmed=found.confirmed,
        widened=found.widened,
        fixes=found.fixes,
        bounds=(-scale, scale),
        confidence=plan.confidence,
        rows=desk.engine.rows,
        covers=desk.covers(
            f"The interval covers the difference {desk.target}, together with all others of this guard, {desk.odds}."
        ),
        method=plan.method,
        charged=found.charged,
        left=found.left,
        simulated=simulated,
    )


def identical(rows: LabelledRows, a: Predicted, b: Predicted) -> bool:
    """Whether both make the same predictions, which is public if features are, and secret otherwise."""
    return rows.visibility == "public" and a.digest == b.digest


def check_scale(loss: Loss) -> None:
    """Refuse a loss whose differences have no finite scale."""
    low, high = loss.bounds
    if not math.isfinite(2 * (high - low)):
        raise InvalidArgument(f"{loss.words} is too large to compare; use other units.")


def _precision(loss: Loss, precision: float) -> float:
    """On [0, 1]: a difference lies in [-1, 1] times the scale, an answer in [0, 1]."""
    low, high = loss.bounds
    return checks.precision(precision) / (2 * (high - low))


def coarseness_of(desk: Desk, loss: Loss, precision: float | None) -> float:
    """The multiple of the plan's noise that suffices for a difference, even of models that disagree on every row."""
    return 1.0 if precision is None else desk.coarseness(_precision(loss, precision), _levels(desk, loss))


def _levels(desk: Desk, loss: Loss) -> int | None:
    """The number of values a comparison's questions can take; None if unlimited."""
    return (3 if desk.plan.mechanism.pairs == "shifted" else 2) if loss.binary else None


def best_of(rows: LabelledRows, predicted: Sequence[Predicted], loss: Loss, analyst: str) -> Ranking:
    """The scores of all, and each one's difference to the best."""
    check_scale(loss)
    _check_names(predicted)
    if len(predicted) < 2:
        raise InvalidArgument(f"there are {len(predicted)} models; a ranking needs at least two.")
    if rows.desk.plan.mechanism.batch is not None:
        with suppress(BudgetExhausted):  # then in two rounds, of fewer questions
            return _best_in_one_round(rows, predicted, loss, analyst)
    told_of = rows.desk.answer(asked_scores(rows, predicted, loss), analyst)
    scores, scored_on = [rows.desk.tell(reply) for reply in told_of], [_rows_of(rows, reply) for reply in told_of]
    compared_on: list[object] = [None] * len(predicted)
    leader = min(range(len(scores)), key=lambda place: scores[place].value)
    same = [identical(rows, each, predicted[leader]) for each in predicted]
    others = [place for place in range(len(predicted)) if place != leader and not same[place]]
    to_leader: list[Interval | None] = [None] * len(predicted)
    charged, left = sum(each.charged for each in scores), scores[-1].left
    nearest: dict[str, _Difference] = {}
    try:
        pairs = [(predicted[place], predicted[leader]) for place in others]
        for place, found in zip(others, _differences(rows, pairs, loss, analyst), strict=True):
            to_leader[place], compared_on[place] = found.interval, found.rows
            nearest[predicted[place].name] = found
            charged, left = charged + found.charged, found.left
    except BudgetExhausted:
        pass  # the scores are paid for and give an order by themselves, with more ties
    names = [each.name for each in predicted]
    ranked = tuple(
        replace(each, confirmed=nearest[each.name].confirmed, widened=nearest[each.name].widened)
        if each.name in nearest
        else each
        for each in rank(names, scores, to_leader, leader, same, scored_on, compared_on)
    )
    told = min(nearest.values(), key=lambda each: each.value).would_tell if nearest else ()
    return Ranking(ranked, loss.words, rows.desk.plan.confidence, charged, left, rows.desk.terms.simulated, told)


def examine(rows: LabelledRows, predicted: Sequence[Predicted], loss: Loss, analyst: str) -> Ranking:
    """Scores and all pairwise differences of one or more models, from the exam's rows."""
    check_scale(loss)
    _check_names(predicted)
    if not predicted:
        raise InvalidArgument("there are no models; an exam needs at least one.")
    return _best_in_one_round(rows, predicted, loss, analyst, exam=True)


def _check_names(predicted: Sequence[Predicted]) -> None:
    if len({each.name for each in predicted}) < len(predicted):
        raise InvalidArgument(
            "two models have the same name, or are the same model; leave one out or name them differently."
        )


def _best_in_one_round(
    rows: LabelledRows, predicted: Sequence[Predicted], loss: Loss, analyst: str, *, exam: bool = False
) -> Ranking:
    """The same if questions asked together share fresh rows: all pairs, since the leader is not known in advance."""
    pairs = [
        (i, j)
        for i, j in itertools.combinations(range(len(predicted)), 2)
        if not identical(rows, predicted[i], predicted[j])
    ]
    asked = [asked_difference(rows, predicted[i], predicted[j], loss) for i, j in pairs]
    replies = rows.desk.answer([*asked_scores(rows, predicted, loss), *asked], analyst, exam=exam)
    scores = [rows.desk.tell(reply) for reply in replies[: len(predicted)]]
    ends = {pair: reply.number for pair, reply in zip(pairs, replies[len(predicted) :], strict=True)}
    leader = min(range(len(scores)), key=lambda place: scores[place].value)
    to_leader: list[Interval | None] = [None] * len(predicted)
    behind: list[tuple[float, Reply]] = []
    scored_on = [_rows_of(rows, reply) for reply in replies[: len(predicted)]]
    compared_on: list[object] = [None] * len(predicted)
    for ((i, j), (value, low, high)), reply in zip(ends.items(), replies[len(predicted) :], strict=True):
        if leader == j:
            to_leader[i], compared_on[i] = Interval(low, high), _rows_of(rows, reply)
            behind.append((value, reply))
        elif leader == i:
            to_leader[j], compared_on[j] = Interval(-high, -low), _rows_of(rows, reply)
            behind.append((-value, reply))
    same = [identical(rows, each, predicted[leader]) for each in predicted]
    names = [each.name for each in predicted]
    ranked = tuple(rank(names, scores, to_leader, leader, same, scored_on, compared_on))
    charged, left = 0 if exam else sum(len(reply.charged) for reply in replies), replies[-1].left
    told: tuple[str, ...] = ()
    if behind and not exam:
        _, reply = min(behind, key=lambda each: each[0])
        told = _would_tell(rows.desk.plan, reply, loss.bounds[1] - loss.bounds[0])
    return Ranking(ranked, loss.words, rows.desk.plan.confidence, charged, left, rows.desk.terms.simulated, told, exam)


def _rows_of(rows: LabelledRows, reply: Reply) -> object:
    """Which rows answered, if features are public: a mean over other rows' features has another true value."""
    return rows.desk.plan.rows_of(reply.parts[0].entry) if rows.visibility == "public" else None


class _Difference(NamedTuple):
    """The mean loss of one model minus that of another, in units of the loss."""

    value: float
    interval: Interval
    smallest: float
    """The smallest difference that would be detected."""
    noise: float
    confirmed: bool | None
    widened: float | None
    fixes: str | None
    would_tell: tuple[str, ...]
    rows: object
    """Which rows answered, if that matters."""
    charged: int
    left: int


def _differences(
    rows: LabelledRows,
    pairs: Sequence[tuple[Predicted, Predicted]],
    loss: Loss,
    analyst: str,
    precision: float | None = None,
) -> list[_Difference]:
    """The difference of every pair, first minus second; one or two answers each."""
    plan, scale = rows.desk.plan, loss.bounds[1] - loss.bounds[0]
    replies = rows.desk.answer([asked_difference(rows, a, b, loss, precision) for a, b in pairs], analyst)
    return [
        _Difference(
            reply.number.value,
            Interval(reply.number.low, reply.number.high),
            smallest_difference(plan, *reply.parts) * scale,
            noise_of("difference", reply.parts, scale, plan),
            rows.desk.confirmed(reply.parts),
            rows.desk.widened(reply.parts),
            rows.desk.fixes(reply),
            _would_tell(plan, reply, scale),
            _rows_of(rows, reply),
            len(reply.charged),
            reply.left,
        )
        for reply in replies
    ]


def _would_tell(plan: Plan, reply: Reply, scale: float) -> tuple[str, ...]:
    """What would have detected a difference as large as the released one, if its interval leaves it open."""
    value, low, high = reply.number
    if not low <= 0 <= high or plan.expected is not None:
        return ()
    reach = value - low if value > 0 else high - value
    differ = max(disagreement_of(plan, *reply.parts), 1e-9)
    return would_tell(plan.mechanism, reach / scale, abs(value) / scale, lambda m: m.difference_width(differ))


def asked_difference(
    rows: LabelledRows,
    a: Predicted,
    b: Predicted,
    loss: Loss,
    precision: float | None = None,
    about: Mapping[str, Any] | None = None,
) -> Asked:
    """The question for a pair; the mechanism decides which row functions answer it. `about` is recorded with it."""
    scale = loss.bounds[1] - loss.bounds[0]
    text, sign = rows.words(f"{loss.words} of {a.name} minus that of {b.name}"), 1
    pairs, noise = rows.desk.plan.mechanism.pairs, following(rows, a, b, loss) if precision is None else None
    if noise is not None:
        pairs = "shifted"
    if pairs != "parts" and a.digest > b.digest:  # one question per pair, whichever comes first
        a, b, sign = b, a, -1
    queries: tuple[VectorQuery, ...]
    match pairs:
        case "parts":
            queries = _excess(rows, a, b, loss), _excess(rows, b, a, loss)
        case "squares":
            queries = _square(rows, a, b, loss), shifted(rows, a, b, loss)
        case "shifted":
            queries = (shifted(rows, a, b, loss),)
    return Asked(
        queries=queries,
        question=text,
        bounds=(-scale, scale),
        about_value="the difference of two models' mean losses",
        about_missing="A row without a label has the largest loss for both models.",
        rule="difference",
        parameters={"scale": scale, "sign": sign, **(about or {})},
        precision=precision,
        noise=noise,
    )


def following(rows: LabelledRows, a: Predicted, b: Predicted, loss: Loss) -> float | None:
    """The noise that follows how much two models disagree; None if that is not public, or would not pay."""
    mechanism = rows.desk.plan.mechanism
    if rows.visibility != "public" or not isinstance(mechanism, FollowsDisagreement) or isinstance(loss, Custom):
        return None  # a user's function may give two losses for one prediction
    noise = mechanism.noise_following(min(float(np.mean(np.square(_ranges(rows, a, b, loss)))) * (1 + 1e-9), 1.0))
    return noise if noise < 1 else None


def expected_width(rows: LabelledRows, a: Predicted, b: Predicted, loss: Loss) -> float | None:
    """Roughly the half-width of a comparison, in units of the loss; None if it cannot be known in advance."""
    if rows.visibility != "public" or isinstance(loss, Custom):
        return None
    share = min(float(np.mean(np.square(_ranges(rows, a, b, loss)))), 1.0)
    noise = following(rows, a, b, loss)
    return resolution(rows.desk.plan, share, 1.0 if noise is None else noise) * (loss.bounds[1] - loss.bounds[0])


_MOST_CLASSES = 32


def _ranges(rows: LabelledRows, a: Predicted, b: Predicted, loss: Loss) -> NDArray[np.float64]:
    """How much (1 + d)/2 depends on each row's label, from predictions alone: no label is read.

    Where predictions are equal so are losses, whatever the label; elsewhere every class is tried.
    """
    apart = np.asarray(a.values != b.values).reshape(len(a.values), -1)
    differ: NDArray[np.bool_] = np.logical_or.reduce(apart, axis=1)
    classes = rows.classes(loss)
    if loss.binary or not 0 < len(classes) <= _MOST_CLASSES:
        return differ.astype(np.float64)
    everywhere = slice(None)
    low, high = np.zeros(len(differ)), np.zeros(len(differ))  # both have the largest loss on a missing label, so d is 0
    for each in classes:
        labels = Labels(np.full(len(differ), each), classes)
        d = np.subtract(a.losses(loss, labels, everywhere), b.losses(loss, labels, everywhere), dtype=np.float64)
        np.minimum(low, d, out=low)
        np.maximum(high, d, out=high)
    return np.where(differ, np.minimum((high - low) / 2, 1.0), 0.0)


def _two(loss: Loss) -> int | None:
    return 2 if loss.binary else None


def _excess(rows: LabelledRows, a: Predicted, b: Predicted, loss: Loss) -> VectorQuery:
    """max(loss of A - loss of B, 0)."""
    low, high = loss.bounds
    words = f"excess of the {loss.words} of {a.name} over that of {b.name}"
    function = np.greater if loss.binary else lambda x, y: np.maximum(x - y, 0.0)
    return _of_both(rows, a, b, loss, "excess", words, function, levels=_two(loss), bounds=(0.0, high - low))


def _square(rows: LabelledRows, a: Predicted, b: Predicted, loss: Loss) -> VectorQuery:
    """Phi = (loss of A - loss of B)^2."""
    low, high = loss.bounds
    words = f"squared difference of the {loss.words} of {a.name} and of {b.name}"
    function = np.not_equal if loss.binary else lambda x, y: (x - y) ** 2
    largest = min(max((high - low) * (high - low), sys.float_info.min), sys.float_info.max)  # a number in any units
    return _of_both(rows, a, b, loss, "square", words, function, levels=_two(loss), bounds=(0.0, largest))


def shifted(rows: LabelledRows, a: Predicted, b: Predicted, loss: Loss) -> VectorQuery:
    """Psi = (loss of A - loss of B + 1)/2."""
    low, high = loss.bounds
    words = f"{loss.words} of {a.name} minus that of {b.name}"

    def function(x: Values, y: Values) -> Values:
        return (np.subtract(x, y, dtype=np.float64) + 1) / 2

    levels = 3 if loss.binary else None
    return _of_both(rows, a, b, loss, "difference", words, function, levels=levels, bounds=(low - high, high - low))


def _of_both(
    rows: LabelledRows,
    a: Predicted,
    b: Predicted,
    loss: Loss,
    kind: str,
    words: str,
    function: Callable[[Any, Any], Values],
    **more: Any,
) -> VectorQuery:
    """A question about a function of both models' losses of a row."""

    def values(part: Rows) -> Values:
        return function(*(each.losses(loss, rows.labels, part) for each in (a, b)))

    return rows.question(words, [kind, loss.words, a.digest, b.digest], values, loss=loss, **more)
