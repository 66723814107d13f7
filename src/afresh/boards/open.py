"""`afresh.board`: a board on a holdout."""

from __future__ import annotations

import hashlib
import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from afresh import checks
from afresh.boards.asking import check_board
from afresh.boards.board import Board
from afresh.boards.rules import AGAINST, Reveal, check_rules
from afresh.boards.shelf import Folder, Memory, Shelf
from afresh.models.holdout import check_holdout

if TYPE_CHECKING:
    from afresh.models.holdout import Holdout


def board(
    holdout: Holdout,
    name: str = "board",
    *,
    reveal: Reveal = "at once",
    against: int = AGAINST,
    limit: int | None = None,
    per: str | timedelta | None = None,
    every: str | timedelta | None = None,
    loss: Any = None,
    keep: str | os.PathLike[str] | None = None,
) -> Board:
    """Open a board on a holdout: entrants submit predictions, and a table shows what is certain about their order.

    Everything that is revealed is an answer of the holdout's guard: charged, recorded, and covered by its certificate,
    however entries were chosen after seeing tables. The table follows from the ledger, so it survives a restart.

    Args:
        holdout: A holdout from `afresh.holdout`, or a service's.
        name: The board's name; a holdout may have several.
        reveal: "at once"; "rounds", sealed until `Board.reveal` or the clock, each round on fresh rows (the holdout
            is opened with `rounds=`); or "improvements", only whether an entry certainly beats the leader (the holdout
            takes claims).
        against: The most other entries a new one is compared with row by row; each costs 1 or 2 answers.
        limit: The most entries an entrant may submit, in total or in every `per`.
        per: The period in which they are counted, such as "1 day".
        every: The length of a round, such as "7 days".
        loss: A loss to rank by instead of the holdout's own.
        keep: A folder for the entries' predictions, with which later ones are compared; by default next to the ledger's
            file, or in memory if there is no file.

    Returns:
        The board, with all earlier entries.

    Raises:
        InvalidArgument: An argument is wrong, or the holdout's plan does not suit the rules.
    """
    given = check_holdout(holdout)
    checks.text("name", name, "the board's name")
    rules = check_rules(reveal, against, limit, per, every)
    if (elsewhere := getattr(given, "board_elsewhere", None)) is not None:
        found: Board = elsewhere(name, rules)
        return found
    used = given.settled(loss)
    check_board(given, rules, used)
    return Board(given, name, rules, used, _shelf(given, name, keep))


def _shelf(holdout: Holdout, name: str, keep: str | os.PathLike[str] | None) -> Shelf:
    desk = holdout.guard.desk
    if holdout.visibility != "public":
        return Memory()
    place = desk.ledger.path
    if keep is None and place is None:
        return Memory()
    root = os.path.abspath(os.path.expanduser(os.fspath(keep))) if keep is not None else f"{place}.boards"
    own = hashlib.sha256(f"{desk.terms.data}\n{name}".encode(errors="surrogatepass")).hexdigest()
    return Folder(os.path.join(root, own))
