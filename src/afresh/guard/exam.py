"""The exam: a few final questions about rows that nothing else touches, answered once and exactly."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from afresh.errors import InvalidArgument
from afresh.mechanisms import fresh

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.ledger.base import Question
    from afresh.planning.plan import Plan
    from afresh.queries.asked import Asked

PREFIX = "exam: "


def of_exam(question: Question) -> Question:
    """Return a question as the exam asks it: distinct from the same question to the checking rows, and free."""
    assert question.guess is None
    digest = hashlib.sha256(f"{question.digest} exam".encode()).hexdigest()
    return replace(question, digest=digest, text=f"{PREFIX}{question.text}", charge=0.0, row_charge=0.0)


def in_exam(asked: Asked) -> Asked:
    """Return a question with the wording used in the exam's answer and record."""
    if asked.guess is not None:
        raise InvalidArgument("the exam gives exact means of its rows and checks no guess; leave out guess=.")
    return replace(asked, question=f"{PREFIX}{asked.question}")


def check_exam(plan: Plan) -> None:
    """Refuse if the plan keeps no rows for an exam."""
    if plan.mechanism.exam_rows is None:
        raise InvalidArgument(
            "this dataset was opened without an exam; an exam must be planned before the first "
            "answer: afresh.open(data, open=0.5, exam=0.1), for example."
        )


def exam_width(desk: Desk, mean: float, questions: int) -> float:
    """Return the half-width, on [0, 1], of a share of rows in an exam with this many questions."""
    kept = desk.plan.mechanism.exam_rows
    assert kept is not None
    return fresh.condition_width(kept.rows, desk.plan.mechanism.exam_share(questions), mean)
