"""A holdout whose labels are on a service: models run here, and their predictions are sent there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh import checks
from afresh.boards.board import Board
from afresh.boards.rules import Rules
from afresh.client.connection import Connection
from afresh.client.desk import RemoteDesk
from afresh.client.doors import guard_at
from afresh.client.sending import Sent, send
from afresh.errors import Forbidden, InvalidArgument
from afresh.losses import Brier, Custom, Loss, ZeroOne, make_loss, settle
from afresh.models.holdout import Holdout, Recipe
from afresh.models.labelled import loss_on
from afresh.models.labels import Labels
from afresh.models.predictions import Predicted, is_model, listed, run
from afresh.wire.arguments import OF_MODELS, to_argument, to_loss
from afresh.wire.results import from_json

if TYPE_CHECKING:
    from afresh.models.verdicts import Comparison, Identical, Ranking
    from afresh.results.answer import Answer
    from afresh.results.claims import Claimed, Contested
    from afresh.statistics.scores import ModelStatistic

_OF_CHANCES = ("AUC", "CalibrationError")  # statistics of probabilities, not of classes


class RemoteRows:
    """The public side of labelled rows elsewhere; `features` are fetched when a model first needs them."""

    def __init__(self, desk: RemoteDesk) -> None:
        """Describe the rows of a holdout from what its service says."""
        told = desk.told
        self.desk, self.label, self.visibility = desk, str(told["label"]), told["features"]
        declared = None if told["classes"] is None else tuple(told["classes"])
        self.labels = Labels(np.empty(0, dtype=told["label_type"]), declared)

    def settle(self, loss: Loss) -> Loss:
        """Return the loss unchanged if it suits the labels and can be sent."""
        if isinstance(loss, Custom):
            raise InvalidArgument(f"the loss {loss.name!r} is a function, and a service does not run your code.")
        return settle(loss, self.labels)

    def classes(self, loss: Loss) -> tuple[Any, ...]:
        """The classes that a loss of classes or probabilities refers to."""
        return () if loss.kind == "numbers" else self.labels.classes

    @cached_property
    def features(self) -> Any:
        """The features that models predict from."""
        if not self.desk.told["download"]:
            raise Forbidden(f"the service does not hand out the features of {self.desk.name}; pass predictions.")
        return self.desk.frame("features", "holdouts")

    def opened(self) -> tuple[Any, Any]:
        """Features and labels of the open rows; the service hands out both."""
        return self._opened

    @cached_property
    def _opened(self) -> tuple[Any, Any]:
        frame = self.desk.frame("open_rows", "holdouts")
        values, missing = frame[self.label].to_numpy(), frame[self.label].isna().to_numpy()
        labels = np.ma.array(values, mask=missing) if missing.any() else values
        return frame.drop(columns=[self.label]), labels

    def open_loss(self, model: Any, loss: Loss) -> float:
        """The mean loss of a model on the open rows; asks nothing of the service."""
        features, labels = self._opened
        return loss_on(model, loss, self.classes(loss), features, labels, lambda: features.index.to_numpy())

    def predict(
        self, models: Sequence[Any] | Mapping[str, Any], names: Sequence[str] | None, loss: Loss, features: Any = None
    ) -> list[Sent]:
        """The models' predictions, made here; the service checks them."""
        self.desk.check_open()
        models, names = listed(models, names)
        given = [None] * len(models) if names is None else names
        return [self._made(model, name, loss, features) for model, name in zip(models, given, strict=True)]

    def _made(self, model: Any, name: str | None, loss: Loss, features: Any) -> Sent:
        if not is_model(model):
            return Sent(name, "predictions", model)
        kind, values = run(model, loss, self.classes(loss), self.features if features is None else features)
        return Sent(name, kind, np.array(values))


class RemoteJudge:
    """Sends predictions to a service, which has the labels."""

    def __init__(self, rows: RemoteRows) -> None:
        """Ask in the name of the token's owner."""
        self._rows, self._desk = rows, rows.desk

    def score(self, predicted: Sequence[Predicted], loss: Loss, precision: float | None) -> list[Answer]:
        """The models' mean losses."""
        found = self._sent("score", predicted, loss, precision=precision)
        return [from_json(each) for each in found["answers"]]

    def unscored(self, predicted: Sequence[Predicted], loss: Loss) -> int:
        """How many of these scores would be charged."""
        return int(self._sent("unscored", predicted, loss)["unscored"])

    def compare(self, a: Predicted, b: Predicted, loss: Loss, precision: float | None) -> Comparison | Identical:
        """Whether B is better than A."""
        found: Comparison | Identical = from_json(self._sent("compare", [a, b], loss, precision=precision))
        return found

    def best_of(self, predicted: Sequence[Predicted], loss: Loss) -> Ranking:
        """Many models in order."""
        found: Ranking = from_json(self._sent("best_of", predicted, loss))
        return found

    def exam(self, predicted: Sequence[Predicted], loss: Loss) -> Ranking:
        """Score the final models on the rows that are kept for the exam."""
        found: Ranking = from_json(self._sent("exam", predicted, loss))
        return found

    def claim_score(self, model: Predicted, between: Any, loss: Loss) -> Claimed:
        """Whether a mean loss lies between two ends."""
        ends = list(between) if isinstance(between, tuple) else between
        found: Claimed = from_json(self._sent("claim", [model], loss, between=ends))
        return found

    def claim_better(self, b: Predicted, a: Predicted, by: float, loss: Loss, *, challenge: bool) -> Claimed:
        """Whether B's mean loss is smaller than A's by more than this."""
        found: Claimed = from_json(self._sent("claim", [b, a], loss, by=by, challenge=challenge or None))
        return found

    def contest(
        self, models: Sequence[Predicted], incumbent: Predicted | None, bins: int | None, loss: Loss
    ) -> Contested:
        """The model with the smallest mean loss, if it certainly beats the incumbent."""
        last = [] if incumbent is None else [incumbent]
        sent = self._sent("contest", [*models, *last], loss, bins=bins, incumbent=bool(last) or None)
        found: Contested = from_json(sent)
        return found

    def detects(
        self, b: Predicted, a: Predicted, by: float, disagreement: float | None, loss: Loss, among: int, *, binned: bool
    ) -> float:
        """What a claim that B is better can show, or a contest among so many."""
        held = {"among": among if among > 1 else None, "binned": binned or None}
        return float(self._sent("detects", [b, a], loss, by=by, disagreement=disagreement, **held)["detects"])

    def measure(self, statistic: ModelStatistic, model: Any, name: str | None) -> Answer:
        """A statistic of a model."""
        document = to_argument(statistic)
        if document["kind"] not in OF_MODELS:
            raise checks.wrong("statistic", statistic, "a statistic from afresh.statistics that needs a model")
        loss = Brier() if document["kind"] in _OF_CHANCES else ZeroOne()
        predicted = self._rows.predict([model], None if name is None else [name], loss)
        found: Answer = from_json(self._sent("measure", predicted, None, statistic=document))
        return found

    def open_rows(self) -> tuple[Any, Any]:
        """Features and labels of the open rows."""
        return self._rows.opened()

    def _sent(self, what: str, predicted: Sequence[Any], loss: Loss | None, **options: Any) -> Any:
        """Send predictions to a door of this holdout, and return the response."""
        options["loss"] = None if loss is None else to_argument(loss)
        return send(self._desk, f"/v1/holdouts/{self._desk.name}/{what}", predicted, **options)


class RemoteHoldout(Holdout):
    """Scores and compares models on a service's rows. Make one with `afresh.connect`."""

    def __init__(self, desk: RemoteDesk, analyst: str) -> None:
        """Not for users: `afresh.connect` makes it."""
        rows: Any = RemoteRows(desk)
        loss = make_loss(to_loss(desk.told["loss"]))
        recipe = None
        if desk.connection.own_token:
            recipe = Recipe(reopen, {"url": desk.connection.url, "name": desk.name})
        super().__init__(guard_at(desk, analyst), rows, loss, recipe, RemoteJudge(rows))
        self.desk = desk

    def for_analyst(self, analyst: str) -> Holdout:
        """Refused: on a service the token identifies the analyst."""
        self.guard.for_analyst(analyst)
        return self

    @property
    def has_open_rows(self) -> bool:
        """Whether the service hands out open rows."""
        return self.guard.plan.open is not None and bool(self.desk.told["download"])

    def board_elsewhere(self, name: str, rules: Rules) -> Board:
        """The service's board, which has its own rules."""
        from afresh.client.board import open_board

        if rules != Rules():
            raise InvalidArgument(
                "a service's board has its own rules; leave out reveal, against, limit, per and every."
            )
        return open_board(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the address: another process connects with the token it finds, and shares the budget."""
        if self._recipe is None:
            raise TypeError(
                "a token cannot be pickled; set AFRESH_TOKEN for all processes, and connect without token=."
            )
        return self._recipe.reopen, (self._recipe.arguments,)


def reopen(arguments: dict[str, Any]) -> Holdout:
    """Reopen the holdout in another process, which finds its own token."""
    connection = Connection(arguments["url"])
    return RemoteHoldout(RemoteDesk(connection, arguments["name"]), connection.get("/v1/me")["name"])
