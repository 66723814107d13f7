"""The questions behind `Holdout.score`: a model's mean loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh import checks
from afresh.queries.asked import Asked

if TYPE_CHECKING:
    from afresh.losses import Loss
    from afresh.models.labelled import LabelledRows
    from afresh.models.predictions import Predicted
    from afresh.models.vectors import VectorQuery
    from afresh.results.answer import Answer


def score(
    rows: LabelledRows, predicted: Sequence[Predicted], loss: Loss, analyst: str, precision: float | None = None
) -> list[Answer]:
    """The mean losses of predictions, 1 answer each. All are charged, or none."""
    asked = asked_scores(rows, predicted, loss, precision)
    return [rows.desk.tell(reply) for reply in rows.desk.answer(asked, analyst)]


def asked_scores(
    rows: LabelledRows, predicted: Sequence[Predicted], loss: Loss, precision: float | None = None
) -> list[Asked]:
    """The questions of their mean losses."""
    low, high = loss.bounds
    enough = None if precision is None else checks.precision(precision) / (high - low)
    which = "without a label or a valid prediction" if rows.visibility == "hidden" else "whose label is missing"
    queries = [loss_question(rows, each, loss) for each in predicted]
    return [
        Asked(
            queries=(query,),
            question=query.text,
            bounds=query.bounds,
            about_value=f"the mean {loss.words} of the model; smaller is better",
            about_missing=f"A row {which} has the largest loss.",
            precision=enough,
        )
        for query in queries
    ]


def loss_question(rows: LabelledRows, predicted: Predicted, loss: Loss) -> VectorQuery:
    """The loss of a row."""
    return rows.question(
        f"{loss.words} of {predicted.name}",
        ["loss", loss.words, predicted.digest],
        lambda part: predicted.losses(loss, rows.labels, part),
        levels=2 if loss.binary else None,
        bounds=loss.bounds,
        loss=loss,
    )
