"""A board on a service: predictions are sent there, and tables come back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from afresh import checks
from afresh.boards.board import Board
from afresh.boards.table import BoardTable, Submitted
from afresh.client.sending import send
from afresh.errors import InvalidArgument
from afresh.losses import make_loss
from afresh.wire.arguments import to_loss
from afresh.wire.boards import rules_from_json
from afresh.wire.results import from_json

if TYPE_CHECKING:
    from afresh.client.holdout import RemoteHoldout

_MOST = 100_000  # entries in one response


class RemoteBoard(Board):
    """Entries to a holdout of a service. Make one with `afresh.connect(...).board` or `afresh.board`."""

    holdout: RemoteHoldout

    def __init__(self, holdout: RemoteHoldout, told: dict[str, Any]) -> None:
        """Not for users; `told` is the service's description of the board."""
        self.holdout, self.name, self.rules = holdout, str(told["name"]), rules_from_json(told["rules"])
        self.loss = make_loss(to_loss(told["loss"]))
        self.clock = lambda: datetime.now(UTC)
        self._connection = holdout.desk.connection

    def submit(self, name: str, predictions: Any, *, entrant: str | None = None) -> Submitted:
        """See `Board.submit`; the token identifies the entrant."""
        checks.text("name", name, "a name for the entry")
        if entrant not in (None, self.holdout.guard.analyst):
            raise InvalidArgument(
                f"entrant == {entrant!r}: on a service the token identifies the entrant; leave it out."
            )
        predicted = self.holdout.predict([predictions], [name], self.loss)
        found: Submitted = from_json(send(self.holdout.desk, f"/v1/boards/{self.name}/submit", predicted))
        return found

    def table(self, round: int | None = None) -> BoardTable:
        """See `Board.table`."""
        query = {} if round is None else {"round": checks.whole("round", round, 1)}
        found: BoardTable = from_json(self._connection.get(f"/v1/boards/{self.name}/table", count=_MOST, **query))
        return found

    def reveal(self) -> BoardTable:
        """See `Board.reveal`; for stewards."""
        self._connection.post(f"/v1/boards/{self.name}/reveal", {})
        return self.table()

    def final(self, names: Sequence[str] | None = None) -> BoardTable:
        """See `Board.final`; for stewards. All entries that may be the best take part."""
        if names is not None:
            raise InvalidArgument(
                "on a service all entries that may be the best take part in the final; leave out names."
            )
        self._connection.post(f"/v1/boards/{self.name}/final", {})
        return self.table()


def open_board(holdout: RemoteHoldout, name: str) -> RemoteBoard:
    """Open a board of this holdout."""
    told = holdout.desk.connection.get(f"/v1/boards/{quote(name, safe='')}")
    if told["holdout"] != holdout.desk.name:
        raise InvalidArgument(f"the board {name!r} is on the holdout {told['holdout']}.")
    return RemoteBoard(holdout, told)
