"""`afresh.evaluation`: items, a plan and a ledger put together into an evaluation."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from afresh import checks
from afresh.evaluations.candidates import Dealt
from afresh.evaluations.evaluation import Evaluation
from afresh.evaluations.items import read_items
from afresh.guard.guard import Guard
from afresh.guard.open import check_opening, open_desk, opened_engine
from afresh.guard.scope import Scope

if TYPE_CHECKING:
    from afresh.ledger import Ledger

OPEN = 0.5


def evaluation(
    items: Any,
    *,
    id: str = "id",
    open: float | None = None,
    questions: int | None = None,
    confidence: float | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    analyst: str | None = None,
    must_exist: bool = False,
    allow_wide: bool = False,
    new_rows: str | None = None,
) -> Evaluation:
    """Deal the items of an evaluation into an open part, for whoever tunes, and a guarded part that confirms.

    They are dealt once, by a hash whose key is in the ledger: the same items are the same evaluation, in whatever
    order, with one budget. What is certified holds whatever was done with the open part; it needs that candidates
    depend on the guarded items through answers only, and that items are independent draws from one population.

    Args:
        items: The path of a .jsonl, .json, .csv or .parquet file, a frame, a list of dicts, or a list of ids.
        id: The name of the id.
        open: What part of the items is open (default 0.5).
        questions: How many answers the guarded part may ever give (default 100); a proposal to a gate is one.
        confidence: The probability with which all that is certified holds at once (default 0.95).
        ledger: As in `afresh.open`, like all that follow.
        analyst: As in `afresh.open`.
        must_exist: As in `afresh.open`.
        allow_wide: As in `afresh.open`.
        new_rows: As in `afresh.open`.

    Returns:
        An evaluation. It is a context manager; closing it loses nothing.

    Raises:
        InvalidArgument: An argument is wrong; no plan was fixed.
        DataError: The items cannot be read, or an id is there twice.
        PlanMismatch: Another plan is in force for these items.
    """
    from afresh.engines.embedded.rowwise import rows_of_span

    checks.text("id", id, "the name of the items' id")
    found = read_items(items, id)
    table = found.table(id)
    wanted = check_opening(
        table,
        ... if questions is None else questions,  # open rows need a number of them
        confidence,
        ledger,
        open=OPEN if open is None and not must_exist else open,
        analyst=analyst,
        must_exist=must_exist,
        allow_wide=allow_wide,
        new_rows=new_rows,
    )
    with opened_engine(table) as engine:
        guard = Guard(open_desk(engine, wanted), wanted.analyst)
    try:
        desk = guard.desk
        span = desk.plan.mechanism.open_rows
        if span is None:
            raise checks.wrong("items", "these items", "opened with open=, and they were opened otherwise before")
        desk.declare(Scope("hidden", called="items"))
        dealt = Dealt(found.ids, rows_of_span(engine, span), desk.terms.seed)
        return Evaluation(guard, found, dealt, id, _folder(ledger, desk.terms.data))
    except BaseException:
        guard.close()
        raise


def _folder(ledger: Any, data: str) -> str | None:
    """Where a gate keeps its incumbent's scores: beside the ledger's file, if it is one."""
    from afresh.ledger import default_place, is_server

    if not isinstance(ledger, str | os.PathLike | None):
        return None
    place = default_place() if ledger is None else os.fspath(ledger)
    if place == ":memory:" or is_server(place):
        return None
    return os.path.join(os.path.abspath(os.path.expanduser(place)) + ".gates", data[:32])
