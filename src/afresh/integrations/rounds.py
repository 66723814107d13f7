"""Rounds in other packages: how many are left, and what to do when none is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from afresh.errors import BudgetExhausted

if TYPE_CHECKING:
    from afresh.models.holdout import Holdout


def rounds_left(holdout: Holdout) -> int | None:
    """Count the rounds of the planned size that a holdout has rows for; None if it was not opened in rounds.

    Args:
        holdout: A holdout from `afresh.holdout`.

    Returns:
        The number of rounds left for its analyst.
    """
    rows, batch = holdout.budget.rows_left, holdout.guard.plan.mechanism.batch
    return None if rows is None or batch is None else rows // batch


@contextmanager
def advising(holdout: Holdout, words: str) -> Iterator[None]:
    """Add advice to a refusal from a holdout in rounds.

    Args:
        holdout: The holdout asked in the body.
        words: The advice, added after the refusal.

    Returns:
        A context manager for the questions.

    Raises:
        BudgetExhausted: The body's refusal, with the advice.
    """
    try:
        yield
    except BudgetExhausted as refusal:
        if holdout.guard.plan.rounds is None:
            raise
        asked, spent, questions, analyst = refusal.asked, refusal.spent, refusal.questions, refusal.analyst
        message = f"{refusal} {words}"
        raise BudgetExhausted(asked=asked, spent=spent, questions=questions, analyst=analyst, message=message) from None
