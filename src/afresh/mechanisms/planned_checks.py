"""Plans for checked answers, with guesses through noise, from open rows, or from the analyst's own rows."""

from __future__ import annotations

import math

from afresh.mechanisms.base import grid_step
from afresh.mechanisms.checked import Checked
from afresh.theory.checked import FOUND, Checking, Constants, plan_checked, plan_open

EXAM_SHARE = 0.5
"""The exam's share of the failure probability: it costs checks 3% of width, and the exam's few questions need it."""


def plan_checks(
    rows: int,
    questions: int,
    failure: float,
    answers: int | None = None,
    *,
    exam: float | None = None,
    constants: Constants = FOUND,
) -> Checked | None:
    """Plan guesses through noise, checked on about half of the rows; None if more answers than questions are wanted."""
    kept = _exam_rows(rows, exam)
    if answers not in (None, questions) or kept is None or rows - kept < 2:
        return None
    found = plan_checked(rows - kept, questions, _for_checks(failure, kept), constants)
    return _of(found, rows, failure, kept, opened=False)


def plan_open_rows(
    rows: int,
    questions: int,
    failure: float,
    answers: int | None = None,
    *,
    share: float = 0.5,
    exam: float | None = None,
) -> Checked | None:
    """Plan the same with a share of the rows open, which guess without noise."""
    kept, opened = _exam_rows(rows, exam), math.floor(rows * share)
    if answers not in (None, questions) or kept is None or not 1 <= opened < rows - kept:
        return None
    found = plan_open(opened, rows - kept - opened, questions, _for_checks(failure, kept))
    return _of(found, rows, failure, kept, opened=True)


def plan_own_rows(
    rows: int,
    questions: int,
    failure: float,
    answers: int | None = None,
    *,
    development: int,
    exam: float | None = None,
) -> Checked | None:
    """Plan the same with so many of the analyst's own rows to guess: all others except the exam's check."""
    kept = _exam_rows(rows, exam)
    if answers not in (None, questions) or kept is None or not (kept < rows and development >= 1):
        return None
    found = plan_open(development, rows - kept, questions, _for_checks(failure, kept))
    return _of(found, rows, failure, kept, opened=True, own=True)


def _exam_rows(rows: int, exam: float | None) -> int | None:
    """The number of rows for the exam: 0 without an exam, None if it would get none."""
    return 0 if exam is None else math.floor(rows * exam) or None


def _for_checks(failure: float, exam: int) -> float:
    return failure * (1 - EXAM_SHARE) if exam else failure


def _of(found: Checking, rows: int, failure: float, exam: int, *, opened: bool, own: bool = False) -> Checked:
    least = found.noise / min(found.guess_rows, found.check_rows)
    return Checked(
        rows=rows,
        questions=found.questions,
        failure=failure,
        guessing=found.guess_rows,
        guarded=found.check_rows,
        opened=opened,
        noise=found.noise,
        reach=found.reach,
        growth=found.growth,
        none=found.none,
        calm=found.calm,
        passing=found.passing,
        grid=None if opened else grid_step(math.sqrt(least)),
        exam=exam,
        exam_failure=failure - found.failure if exam else 0.0,
        own=own,
        groups=True,
    )
