"""What a guard may still answer, compiled from its desk."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from afresh.guard.exam import exam_width
from afresh.mechanisms.base import TYPICAL_MEANS
from afresh.results.budget import Budget, Coarser

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.ledger import Spent
    from afresh.planning.plan import Plan

_COARSER = (2**0.5, 2.0, 4.0)  # precisions a budget shows besides the full price


def budget_of(desk: Desk, analyst: str) -> Budget:
    """Return what was spent, what is left for this analyst, and how accurate an answer is."""
    plan = desk.plan
    spent, shares = desk.spent(analyst), desk.ledger.shares(desk.terms)
    released = desk.ledger.released(desk.terms)
    examined = 0 if plan.exam is None else desk.ledger.examined(desk.terms)
    return Budget(
        questions=plan.questions,
        answers=spent.cap_answers,
        spent=spent.answers,
        left=desk.left_of(spent, analyst),
        information=None if plan.information is None else spent.cap_information,
        spent_information=spent.information,
        outside_information=spent.outside,
        confidence=plan.confidence,
        method=plan.method,
        half_width={mean: plan.mechanism.present_half_width(mean, released) for mean in TYPICAL_MEANS},
        proviso=plan.mechanism.proviso,
        rounds=plan.rounds,
        rows_left=None if plan.rounds is None else desk.ledger.rows_left(desk.terms, analyst),
        exam_rows=plan.exam,
        examined=examined,
        exam_half_width=None if plan.exam is None else exam_width(desk, 0.5, max(examined, 1)),
        coarser=tuple(_coarser(plan, spent)),
        analyst=analyst if shares else None,
        shares=shares,
        simulated=desk.terms.simulated,
        ahead=desk.ahead(),
    )


def _coarser(plan: Plan, spent: Spent) -> Iterable[Coarser]:
    if plan.answers > plan.questions:
        for factor in _COARSER:
            coarse = plan.at(factor)
            left = spent.affordable(coarse.charge, coarse.row_charge)
            yield Coarser(coarse.half_width(0.5), coarse.charge / plan.charge, left)
