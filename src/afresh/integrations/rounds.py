"""Rounds as other packages meet them: how many are left, and what to do when there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from afresh.errors import BudgetExhausted

if TYPE_CHECKING:
    from afresh.models.holdout import Holdout


def rounds_left(holdout: Holdout) -> int | None:
    """How many rounds of the planned size a holdout has rows for; None if it was not opened in rounds.

    Args:
        holdout: What `afresh.holdout` makes.

    Returns:
        A number of rounds for its analyst.
    """
    rows, batch = holdout.budget.rows_left, holdout.guard.plan.mechanism.batch
    return None if rows is None or batch is None else rows // batch


@contextmanager
def advising(holdout: Holdout, words: str) -> Iterator[None]:
    """A refusal of a holdout in rounds also says what to do about it.

    Args:
        holdout: Which is asked in the body.
        words: What to do; what was refused is said before them.

    Returns:
        A context for the questions.

    Raises:
        BudgetExhausted: As the body did, with more words.
    """
    try:
        yield
    except BudgetExhausted as refusal:
        if holdout.guard.plan.rounds is None:
            raise
        asked, spent, questions, analyst = refusal.asked, refusal.spent, refusal.questions, refusal.analyst
        message = f"{refusal} {words}"
        raise BudgetExhausted(asked=asked, spent=spent, questions=questions, analyst=analyst, message=message) from None
