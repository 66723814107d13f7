"""`afresh.connect`: what a service offers to the holder of a token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from afresh.client.connection import Connection
from afresh.client.desk import RemoteDesk
from afresh.client.doors import guard_at
from afresh.errors import InvalidArgument
from afresh.guard.guard import Guard
from afresh.models.holdout import Holdout
from afresh.results import show
from afresh.results.closing import Closing
from afresh.wire.addresses import split_address

if TYPE_CHECKING:
    from afresh.boards.board import Board
    from afresh.client.evaluation import RemoteJudge


class Service(show.Shown, Closing):
    """A service, as one token sees it. Make it with `afresh.connect`."""

    def __init__(self, connection: Connection) -> None:
        """Not for users."""
        self._connection = connection
        self._caller: dict[str, Any] = connection.get("/v1/me")

    @property
    def analyst(self) -> str:
        """The analyst the token belongs to."""
        return str(self._caller["name"])

    @property
    def datasets(self) -> dict[str, dict[str, Any]]:
        """The available datasets by name: kind ("dataset" or "holdout"), description, rows."""
        found = self._connection.get("/v1/datasets")["datasets"]
        return {each["name"]: each for each in found}

    def open(self, name: str) -> Guard:
        """Open the guard of a dataset, or of a holdout's rows.

        Args:
            name: A name in `datasets`.

        Returns:
            A guard with the methods, results and errors of a local one.

        Raises:
            NotFound: There is no such dataset for this token.
        """
        return guard_at(RemoteDesk(self._connection, name), self.analyst)

    def holdout(self, name: str) -> Holdout:
        """Open a holdout, to score and compare models. Models run here; their predictions are sent.

        Args:
            name: A name in `datasets` that is a holdout.

        Returns:
            A holdout with the methods, results and errors of a local one.

        Raises:
            NotFound: There is no such holdout for this token.
            InvalidArgument: It is a dataset without labels.
        """
        from afresh.client.holdout import RemoteHoldout

        desk = RemoteDesk(self._connection, name)
        if desk.told["kind"] != "holdout":
            raise InvalidArgument(
                f"{name!r} is a dataset without labels, so it cannot score models; use open({name!r})."
            )
        return RemoteHoldout(desk, self.analyst)

    @property
    def boards(self) -> dict[str, dict[str, Any]]:
        """The available boards by name: holdout, description, rules."""
        return {each["name"]: each for each in self._connection.get("/v1/boards")["boards"]}

    def board(self, name: str) -> Board:
        """Open a board, to enter predictions and see what is certain about their order.

        Args:
            name: A name in `boards`.

        Returns:
            A board with the methods, results and errors of a local one.

        Raises:
            NotFound: There is no such board for this token.
        """
        from afresh.client.board import RemoteBoard
        from afresh.client.holdout import RemoteHoldout

        told = self._connection.get(f"/v1/boards/{quote(name, safe='')}")
        return RemoteBoard(RemoteHoldout(RemoteDesk(self._connection, told["holdout"]), self.analyst), told)

    @property
    def evaluations(self) -> dict[str, dict[str, Any]]:
        """The available evaluations by name: description, items."""
        found = self._connection.get("/v1/evaluations")["evaluations"]
        return {each["name"]: each for each in found}

    def evaluation(self, name: str) -> RemoteJudge:
        """Open an evaluation, to try and propose candidates; they are sent to the service and run there.

        Args:
            name: A name in `evaluations`.

        Returns:
            A judge that runs candidates, with the methods and results of a local one.

        Raises:
            NotFound: There is no such evaluation for this token.
        """
        from afresh.client.evaluation import RemoteJudge

        return RemoteJudge(self._connection, name)

    def close(self) -> None:
        """Close the connection; nothing is lost."""
        self._connection.close()

    def __repr__(self) -> str:
        """One line."""
        return f"Service({self._connection.url!r}, {self.analyst!r})"

    def _blocks(self) -> list[show.Block]:
        found = [*self.datasets.values(), *self.evaluations.values()]
        rows = [[each["name"], each["kind"], f"{each['rows']:,}", each["description"]] for each in found]
        title = f"{self._connection.url}, as {self.analyst} ({self._caller['role']})"
        return [show.Title(title), show.Table(["name", "kind", "rows", "description"], rows)]


def connect(url: str, token: str | None = None) -> Service:
    """Connect to a service (`afresh serve`), which keeps the rows, the ledger and the noise.

    Args:
        url: The service's address, such as https://host.
        token: Identifies the analyst; by default from $AFRESH_TOKEN or the file $AFRESH_TOKEN_FILE.

    Returns:
        A service, with `datasets`, `open(name)`, `holdout(name)`, `evaluations` and `evaluation(name)`.

    Raises:
        NotAllowed: The token is missing, unknown, expired or revoked.
        Unreachable: The service did not answer.
    """
    return Service(Connection(url, token))


def judge_address(address: str) -> RemoteJudge:
    """Open the evaluation at an address such as https://host/qa."""
    url, name = split_address(address)
    return connect(url).evaluation(name)


def open_address(address: str) -> Guard:
    """Open the guard at an address such as https://host/customers."""
    url, name = split_address(address)
    return connect(url).open(name)


def hold_address(address: str) -> Holdout:
    """Open the holdout at an address such as https://host/churn."""
    url, name = split_address(address)
    return connect(url).holdout(name)
