"""Claims, challenges and contests of models: symbols, from rows that release only symbols."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.guard.claims import ask_task, before, detectable, of_mean, put
from afresh.guard.tasked import Tasked
from afresh.mechanisms.tasks import Claim, Contest
from afresh.models.compare import shifted
from afresh.models.score import loss_question
from afresh.queries.text import number
from afresh.results.answer import Interval
from afresh.results.claims import Claimed, Contested

if TYPE_CHECKING:
    from afresh.losses import Loss
    from afresh.models.labelled import LabelledRows
    from afresh.models.predictions import Predicted

MOST_BINS = 1000


def claim_score(rows: LabelledRows, model: Predicted, between: Any, loss: Loss, analyst: str) -> Claimed:
    """Claim that a model's mean loss lies between two ends."""
    return put(rows.desk, analyst, of_mean(loss_question(rows, model, loss), between))


def claim_better(
    rows: LabelledRows, b: Predicted, a: Predicted, by: float, loss: Loss, analyst: str, *, challenge: bool = False
) -> Claimed:
    """Claim that B's mean loss is smaller than A's by more than `by`."""
    tasked = better(rows, b, a, by, loss, challenge=challenge)
    return put(rows.desk, analyst, tasked, differing(rows, [(a, b)], loss))


def better(rows: LabelledRows, b: Predicted, a: Predicted, by: float, loss: Loss, *, challenge: bool = False) -> Tasked:
    """The claim as a question."""
    scale = loss.bounds[1] - loss.bounds[0]
    by = checks.number("by", by, f"a number from 0 to {number(scale)}, in units of the loss", least=0, below=scale)
    query = shifted(rows, a, b, loss)
    more = f" by more than {number(by)}" if by else ""
    kind = "challenge" if challenge else "claim"
    text = rows.words(f"{kind}: {b.name} has a smaller {loss.words} than {a.name}{more}")
    task = Claim(0.5 + by / scale / 2, 1.0, expected=not challenge, signs=_alike(rows))
    return Tasked((query,), task, text, query.bounds, query.levels)


def differing(rows: LabelledRows, pairs: Sequence[tuple[Predicted, Predicted]], loss: Loss) -> float | None:
    """The largest possible standard deviation of the differences, if it is public which rows' predictions differ."""
    if rows.visibility != "public":
        return None
    scale = loss.bounds[1] - loss.bounds[0]
    share = max(float(np.mean(_differ(a.values, b.values))) for a, b in pairs)
    return float(np.sqrt(share)) * scale


def contest(
    rows: LabelledRows,
    models: Sequence[Predicted],
    incumbent: Predicted | None,
    bins: int | None,
    loss: Loss,
    analyst: str,
) -> Contested:
    """Which of the models has the smallest mean loss, if it certainly beats the incumbent."""
    names = [each.name for each in models]
    if len(set(names)) < len(names) or (incumbent is not None and incumbent.name in names):
        raise InvalidArgument(
            "two models have the same name, or are the same model; leave one out or name them differently."
        )
    if len(models) + (incumbent is not None) < 2:
        raise InvalidArgument(
            f"there are {len(models)} models; a contest needs two, or one and an incumbent. To score one, use score."
        )
    count = 0 if bins is None else checks.whole("bins", bins, 2, MOST_BINS)
    task = Contest(len(models), count, incumbent is not None, _alike(rows))
    losses = [loss_question(rows, each, loss) for each in models]
    gains = [] if incumbent is None else [shifted(rows, incumbent, each, loss) for each in models]
    against = "" if incumbent is None else f", against {incumbent.name}"
    text = rows.words(f"contest: the smallest {loss.words} of {', '.join(names)}{against}")
    tasked = Tasked((*losses, *gains), task, text, loss.bounds, losses[0].levels)
    reply = ask_task(rows.desk, analyst, tasked, "a contest")
    outcome = reply.parts[0].entry.outcome
    assert outcome is not None
    released: Any = outcome.released
    winner = int(released["winner"])
    told = released["bin"] >= 0
    desk = rows.desk
    certified, detects = [], None
    if incumbent is not None:
        claim = better(rows, models[0], incumbent, 0.0, loss)
        deviation = differing(rows, [(incumbent, each) for each in models], loss)
        held = {"among": len(models), "binned": count > 0}
        detects = detectable(desk, claim, before(released), deviation, **held)
        certified.append("A winner has a smaller mean loss than the incumbent")
    if count:
        certified.append("the winner's mean loss lies in the stated range" if certified else "The value holds")
    said = " and ".join(certified) or "Nothing is certified about the winner"
    covers = f"{said} {desk.target}, together with everything else this guard certifies, {desk.odds}."
    return Contested(
        models=tuple(names),
        winner=None if winner < 0 else winner,
        incumbent=None if incumbent is None else incumbent.name,
        loss=loss.words,
        value=Interval(reply.number.low, reply.number.high) if told else None,
        detects=detects,
        confidence=desk.plan.confidence,
        covers=desk.covers(covers) if certified else f"{said}.",
        method=desk.plan.method,
        charged=len(reply.charged),
        left=reply.left,
        simulated=desk.terms.simulated,
    )


def _alike(rows: LabelledRows) -> bool:
    """Whether rows are draws from one population, so that the sign test decides which of two models is better.

    With public features rows differ, and which losses differ may depend on the labels: there, bets decide.
    """
    return rows.visibility == "hidden"


def _differ(a: Any, b: Any) -> Any:
    found = np.asarray(a) != np.asarray(b)
    return found.any(axis=tuple(range(1, found.ndim))) if found.ndim > 1 else found
