"""`afresh.evaluation`: combines items, a plan and a ledger into an evaluation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh import checks
from afresh.errors import PlanMismatch
from afresh.evaluations.candidates import Dealt
from afresh.evaluations.evaluation import Evaluation
from afresh.evaluations.items import read_items
from afresh.evaluations.keeping import Keeping
from afresh.guard.guard import Guard
from afresh.guard.open import Opening, check_opening, open_desk, opened_engine
from afresh.guard.scope import Scope

if TYPE_CHECKING:
    from afresh.ledger import Ledger

OPEN = 0.5
OF_THE_REST = 0.6
"""The share of the others kept for the exam: with `OPEN`, the parts of the recommended loop in docs/agents.md."""


def evaluation(
    items: Any,
    *,
    id: str = "id",
    open: float | None = None,
    exam: float | None = None,
    questions: int | None = None,
    confidence: float | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    analyst: str | None = None,
    must_exist: bool = False,
    new_rows: str | None = None,
) -> Evaluation:
    """Split the items of an evaluation into an open part, to tune on, and a guarded part that confirms.

    They are split once, by a hash whose key is in the ledger: the same items are the same evaluation, in any order,
    with one budget. Certified results hold whatever was done with the open part. They require that candidates depend on
    the guarded items only through answers, and that items are independent draws from one population.

    Args:
        items: The path of a .jsonl, .json, .csv or .parquet file, a frame, a list of dicts, or a list of ids.
        id: The name of the id field.
        open: The share of items that are open (default 0.5).
        exam: The share of items kept for `Evaluation.exam` (default 0.3, or three fifths of what is not open; 0 for
            none). All others confirm.
        questions: The most answers the guarded part may ever give (default 100); a proposal to a gate is one.
        confidence: The probability that everything certified holds at once (default 0.95).
        ledger: As in `afresh.open`, like everything below.
        analyst: As in `afresh.open`.
        must_exist: As in `afresh.open`.
        new_rows: As in `afresh.open`.

    Returns:
        An evaluation. It is a context manager; closing it loses nothing.

    Raises:
        InvalidArgument: An argument is wrong; no plan was fixed.
        DataError: The items cannot be read, or an id appears twice.
        PlanMismatch: Another plan is in force for these items.
    """
    from afresh.engines.embedded.rowwise import rows_of_span

    checks.text("id", id, "the name of the items' id")
    part = "a share of the items, from 0 to below 1, such as 0.3"
    given = None if exam is None else checks.number("exam", exam, part, least=0, below=1)
    found = read_items(items, id)
    table = found.table(id)

    def opening(open: float | None, exam: float | None) -> Opening:
        return check_opening(
            table,
            ... if questions is None else questions,  # open rows need a number of them
            confidence,
            ledger,
            open=open,
            exam=exam or None,
            analyst=analyst,
            must_exist=must_exist,
            allow_wide=True,  # a gate and an exam work even if single scores are wide, and the gate says what it needs
            new_rows=new_rows,
        )

    share = OPEN if open is None else checks.between_0_and_1("open", open)
    rest = OF_THE_REST * (1 - share) if given is None else given
    wanted = opening(open, given) if must_exist else opening(share, rest)
    with opened_engine(table) as engine:
        try:
            desk = open_desk(engine, wanted)
        except PlanMismatch:  # anything left out is as in the plan in force
            if open is not None and exam is not None:
                raise
            desk = open_desk(engine, opening(open, given))
        guard = Guard(desk, wanted.analyst)
    try:
        span = desk.plan.mechanism.open_rows
        if span is None:
            raise checks.wrong("items", "these items", "opened with open=, but they were opened differently before")
        desk.declare(Scope("hidden", called="items"))
        kept = desk.plan.mechanism.exam_rows
        exam_places = np.zeros(0, np.int64) if kept is None else rows_of_span(engine, kept)
        dealt = Dealt(found.ids, rows_of_span(engine, span), exam_places, desk.terms.seed)
        return Evaluation(guard, found, dealt, id, Keeping(_folder(ledger, desk.terms.data)))
    except BaseException:
        guard.close()
        raise


def _folder(ledger: Any, data: str) -> str | None:
    """Where a gate keeps its incumbent's scores: next to the ledger's file, if it is one."""
    from afresh.ledger import default_place, is_server

    if not isinstance(ledger, str | os.PathLike | None):
        return None
    place = default_place() if ledger is None else os.fspath(ledger)
    if place == ":memory:" or is_server(place):
        return None
    return os.path.join(os.path.abspath(os.path.expanduser(place)) + ".gates", data)
