"""The table of a board from a receipt alone: no data, no ledger, and no trust in the person who shows a table."""

from __future__ import annotations

from typing import Any

from afresh.boards.record import boards_in, read_record
from afresh.boards.table import BoardTable
from afresh.boards.tabulate import table_of
from afresh.errors import InvalidArgument, NotFound
from afresh.receipts.format import format_of, loads, read_chain
from afresh.receipts.verification import verify


def table_from(receipt: Any, board: str | None = None) -> BoardTable:
    """Build the table from a receipt's records, once the receipt is verified.

    Args:
        receipt: The document from `Guard.receipt`, or its text.
        board: The name of one of its boards; may be left out if there is only one.

    Returns:
        The table as it stood when the receipt was made.

    Raises:
        InvalidArgument: It is not a receipt, or it does not verify.
        NotFound: The receipt has no such board.
    """
    document = loads(receipt) if isinstance(receipt, str) else receipt
    format_of(document)
    checked = verify(document)
    wrong = [each for each in checked.checks if not each.passed and each.name != "real noise"]
    if wrong:
        raise InvalidArgument(f"the receipt does not verify: {wrong[0].name}: {wrong[0].about}")
    facts = read_chain(document["chain"]["records"])
    stated = list(facts.account.stated.values())
    names = boards_in(stated)
    if board is None and len(names) == 1:
        board = names[0]
    if board not in names:
        there = ", ".join(map(repr, names)) or "none"
        raise NotFound(f"the receipt has no board {board!r}; there are: {there}." if board else f"name one of {there}.")
    recorded = read_record(board, stated, facts.account.entries, facts.plan)
    reveal: Any = "rounds" if facts.plan.mechanism.batch is not None else "at once"
    if recorded.challenges:
        reveal = "improvements"
    return table_of(recorded, reveal, None, facts.plan.confidence, simulated=checked.simulated)
