"""A holdout whose labels are on a service: models run here, and their predictions are sent there."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from afresh import checks
from afresh.boards.board import Board
from afresh.boards.rules import Rules
from afresh.client.connection import Connection
from afresh.client.desk import RemoteDesk
from afresh.client.guard import RemoteGuard
from afresh.errors import Forbidden, InvalidArgument
from afresh.losses import Brier, Custom, Loss, ZeroOne, make_loss, settle
from afresh.models.holdout import Holdout, Recipe
from afresh.models.labels import Labels
from afresh.models.predictions import Predicted, is_model, listed, run
from afresh.models.verdicts import Comparison, Identical, Ranking
from afresh.results.answer import Answer
from afresh.results.claims import Claimed, Contested
from afresh.wire.arguments import OF_MODELS, STATISTICS, to_argument, to_loss
from afresh.wire.results import from_json

_OF_CHANCES = ("AUC", "CalibrationError")  # statistics of probabilities, not of classes


class Sent(Predicted):
    """Predictions that were made here."""

    def __init__(self, name: str | None, kind: str, values: Any) -> None:
        """`kind` is what the model is called if it has no name."""
        super().__init__(name or kind, "", lambda: (values, None))
        self.given, self.kind = name, kind


class RemoteRows:
    """What is public of labelled rows elsewhere; `features` are fetched when a model first needs them."""

    def __init__(self, desk: RemoteDesk) -> None:
        """Of a holdout that a service has described."""
        told = desk.told
        self.desk, self.label, self.visibility = desk, str(told["label"]), told["features"]
        declared = None if told["classes"] is None else tuple(told["classes"])
        self.labels = Labels(np.empty(0, dtype=told["label_type"]), declared)

    def settle(self, loss: Loss) -> Loss:
        """The loss as it is, if it suits the labels and can be sent."""
        if isinstance(loss, Custom):
            raise InvalidArgument(f"the loss {loss.name!r} is a function, and a service runs no code of yours.")
        return settle(loss, self.labels)

    def classes(self, loss: Loss) -> tuple[Any, ...]:
        """Those that a loss of classes or probabilities is about."""
        return () if loss.kind == "numbers" else self.labels.classes

    @cached_property
    def features(self) -> Any:
        """What models predict from."""
        if not self.desk.told["download"]:
            raise Forbidden(f"the service does not hand out the features of {self.desk.name}; pass predictions.")
        import pyarrow as pa

        content = self.desk.connection.download(f"/v1/holdouts/{self.desk.name}/features?format=arrow")
        return pa.ipc.open_file(content).read_all().to_pandas()

    def predict(
        self, models: Sequence[Any] | Mapping[str, Any], names: Sequence[str] | None, loss: Loss, features: Any = None
    ) -> list[Sent]:
        """What models say, made here; the service checks it."""
        self.desk.check_open()
        models, names = listed(models, names)
        given = [None] * len(models) if names is None else names
        return [self._made(model, name, loss, features) for model, name in zip(models, given, strict=True)]

    def _made(self, model: Any, name: str | None, loss: Loss, features: Any) -> Sent:
        if not is_model(model):
            return Sent(name, "predictions", model)
        kind, values = run(model, loss, self.classes(loss), self.features if features is None else features)
        return Sent(name, kind, np.array(values))


class RemoteHoldout(Holdout):
    """Scores and compares models on rows of a service. Make one with `afresh.connect`."""

    labelled: RemoteRows  # type: ignore[assignment]

    def __init__(self, desk: RemoteDesk, analyst: str) -> None:
        """Not for users: `afresh.connect` makes it."""
        loss = make_loss(to_loss(desk.told["loss"]))
        recipe = None
        if desk.connection.own_token:
            recipe = Recipe(reopen, {"url": desk.connection.url, "name": desk.name})
        super().__init__(RemoteGuard(desk, analyst), RemoteRows(desk), loss, recipe)  # type: ignore[arg-type]
        self.desk = desk

    def for_analyst(self, analyst: str) -> Holdout:
        """Refused: on a service the token says who asks."""
        self.guard.for_analyst(analyst)
        return self

    def score_predicted(
        self, predicted: Sequence[Predicted], loss: Loss, precision: float | None = None
    ) -> list[Answer]:
        """As of any holdout."""
        found = self._sent("score", predicted, loss, precision=precision)
        return [from_json(each) for each in found["answers"]]

    def unscored(self, predicted: Sequence[Predicted], loss: Loss) -> int:
        """As of any holdout."""
        return int(self._sent("unscored", predicted, loss)["unscored"])

    def compare(
        self,
        a: Any,
        b: Any,
        *,
        names: tuple[str, str] | None = None,
        loss: Any = None,
        precision: float | None = None,
    ) -> Comparison | Identical:
        """As of any holdout."""
        used = self.settled(loss)
        found: Comparison | Identical = from_json(
            self._sent("compare", self.predict([a, b], names, used), used, precision=precision)
        )
        return found

    def best_of(
        self, models: Sequence[Any] | Mapping[str, Any], *, names: Sequence[str] | None = None, loss: Any = None
    ) -> Ranking:
        """As of any holdout."""
        used = self.settled(loss)
        found: Ranking = from_json(self._sent("best_of", self.predict(models, names, used), used))
        return found

    def exam(
        self, models: Sequence[Any] | Mapping[str, Any], *, names: Sequence[str] | None = None, loss: Any = None
    ) -> Ranking:
        """As of any holdout."""
        used = self.settled(loss)
        found: Ranking = from_json(self._sent("exam", self.predict(models, names, used), used))
        return found

    @property
    def has_open_rows(self) -> bool:
        """Not here: a service hands out no rows."""
        return False

    def open_rows(self) -> tuple[Any, Any]:
        """Refused: a service hands out no labels."""
        raise InvalidArgument("a service hands out no labels; its steward can give you the open rows.")

    def claim(
        self,
        model: Any,
        *,
        better_than: Any = None,
        by: float = 0.0,
        between: tuple[float | None, float | None] | None = None,
        names: Sequence[str] | None = None,
        loss: Any = None,
    ) -> Claimed:
        """As of any holdout."""
        used = self.settled(loss)
        if (better_than is None) == (between is None):
            raise InvalidArgument("a claim has exactly one of better_than, another model, and between, two ends.")
        models = [model] if better_than is None else [model, better_than]
        ends = None if between is None else list(between)
        found: Claimed = from_json(self._sent("claim", self.predict(models, names, used), used, by=by, between=ends))
        return found

    def challenge(
        self,
        model: Any,
        *,
        incumbent: Any = None,
        by: float = 0.0,
        names: Sequence[str] | None = None,
        loss: Any = None,
    ) -> Claimed:
        """As of any holdout; who was accepted last is remembered here."""
        used = self.settled(loss)
        if incumbent is not None:
            b, a = self.predict([model, incumbent], names, used)
        elif used.words not in self._incumbents:
            raise InvalidArgument(f"there is no incumbent yet for the {used.words}; say incumbent= the first time.")
        else:
            (b,), a = self.predict([model], names, used), self._incumbents[used.words]
        found: Claimed = from_json(self._sent("claim", [b, a], used, by=by, challenge=True))
        if found.passed or incumbent is not None:
            self._incumbents[used.words] = b if found.passed else a
        return found

    def contest(
        self,
        models: Sequence[Any],
        *,
        incumbent: Any = None,
        bins: int | None = None,
        names: Sequence[str] | None = None,
        loss: Any = None,
    ) -> Contested:
        """As of any holdout."""
        used, all_models = self.settled(loss), [*models, *([] if incumbent is None else [incumbent])]
        predicted = self.predict(all_models, names, used)
        found: Contested = from_json(
            self._sent("contest", predicted, used, bins=bins, incumbent=None if incumbent is None else True)
        )
        return found

    def detects(
        self, model: Any, *, better_than: Any, by: float = 0.0, disagreement: float | None = None, loss: Any = None
    ) -> float:
        """As of any holdout."""
        used = self.settled(loss)
        predicted = self.predict([model, better_than], None, used)
        return float(self._sent("detects", predicted, used, by=by, disagreement=disagreement)["detects"])

    def measure(self, statistic: Any, model: Any, *, name: str | None = None) -> Answer:
        """As of any holdout."""
        if type(statistic).__name__ not in OF_MODELS or type(statistic) not in STATISTICS.values():
            raise checks.wrong("statistic", statistic, "one of afresh.statistics that needs a model")
        used = Brier() if type(statistic).__name__ in _OF_CHANCES else ZeroOne()
        predicted = self.predict([model], None if name is None else [name], used)
        found: Answer = from_json(self._sent("measure", predicted, None, statistic=to_argument(statistic)))
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """By its address: another process connects with the token that it finds, and shares the budget."""
        if self._recipe is None:
            raise TypeError("a token is not pickled; set AFRESH_TOKEN for all processes, and connect without token=.")
        return self._recipe.reopen, (self._recipe.arguments,)

    def _sent(self, what: str, predicted: Sequence[Any], loss: Loss | None, **options: Any) -> Any:
        """What a door of this holdout answers to predictions."""
        options["loss"] = None if loss is None else to_argument(loss)
        return self.send(f"/v1/holdouts/{self.desk.name}/{what}", predicted, **options)

    def board_elsewhere(self, name: str, rules: Rules) -> Board:
        """Of the service, which has the board and its rules."""
        from afresh.client.board import open_board

        if rules != Rules():
            raise InvalidArgument(
                "a service's board has its own rules; leave out reveal, against, limit, per and every."
            )
        return open_board(self, name)

    def send(self, path: str, predicted: Sequence[Any], **options: Any) -> Any:
        """What a door answers to predictions; as one array where they are one, else as JSON.

        Args:
            path: The door.
            predicted: What `predict` gave.
            **options: What else the door takes; None is left out.

        Returns:
            The JSON document.
        """
        self.desk.check_open()
        names = [each.given for each in predicted]
        if any(name is None for name in names) and not all(name is None for name in names):
            names = [each.given or each.kind for each in predicted]
        told = {**options, "kinds": [each.kind for each in predicted]}
        told["names"] = names if names and names[0] is not None else None
        told = {name: value for name, value in told.items() if value is not None}
        arrays = [_as_array(each.values) for each in predicted]
        plain = all(each.dtype.kind in "biuf" and each.ndim in (1, 2) for each in arrays)
        if plain and len({(each.dtype.str, each.shape) for each in arrays}) == 1:
            out = io.BytesIO()
            np.save(out, np.stack(arrays), allow_pickle=False)
            return self.desk.connection.send(path, out.getvalue(), "application/x-npy", **told)
        body = {"predictions": [_listed(each.values) for each in predicted], **told}
        return self.desk.connection.post(path, body)


def _as_array(values: Any) -> Any:
    try:
        if np.ma.is_masked(values):
            raise InvalidArgument("some predictions are masked; there must be one for each row.")
        return np.asarray(values)
    except (ValueError, TypeError):
        return np.asarray(None)


def _listed(values: Any) -> Any:
    if hasattr(values, "tolist"):
        return values.tolist()
    if isinstance(values, str) or checks.iterated(values) is None:
        kind = type(values).__name__
        raise InvalidArgument(
            f"predictions of type {kind} are no array; pass an array or a list with one for each row."
        )
    return json.loads(json.dumps(list(values), default=lambda each: each.item()))


def reopen(arguments: dict[str, Any]) -> Holdout:
    """The holdout in another process, which finds its token itself."""
    connection = Connection(arguments["url"])
    return RemoteHoldout(RemoteDesk(connection, arguments["name"]), connection.get("/v1/me")["name"])
