"""A desk's rows with a label: turns a model's predictions into questions."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh.errors import InvalidArgument
from afresh.losses import Custom, settle
from afresh.models import hidden
from afresh.models.labels import Labels, check_predictions
from afresh.models.predictions import Made, Predicted, is_model, listed, run
from afresh.models.vectors import Rows, Values, VectorQuery, keyed_digest

if TYPE_CHECKING:
    from collections.abc import Callable

    from afresh.guard.desk import Desk
    from afresh.guard.scope import Features
    from afresh.losses import Loss


class LabelledRows:
    """Rows whose labels stay hidden, and their features too if `visibility` says so."""

    def __init__(
        self,
        desk: Desk,
        label: str,
        labels: Labels,
        order: str,
        visibility: Features,
        features: Any = None,
        own: tuple[Any, Any] | None = None,
    ) -> None:
        """`order` is a secret digest of the row order; features that are not given are read when needed.

        `own` are features and labels of development rows, which precede all others in features and labels.
        """
        self.desk, self.label, self.labels, self.order, self.visibility = desk, label, labels, order, visibility
        self._given, self._own = features, own
        self._offset = 0 if own is None else len(own[1])

    def opened(self) -> tuple[Any, Any]:
        """Features and labels of the open rows, in the order of the data."""
        from afresh.engines.embedded.rowwise import read_column, rows_of_span

        if self._own is not None:
            return self._own
        span, engine = self.desk.plan.mechanism.open_rows, self.desk.engine
        assert span is not None
        places = rows_of_span(engine, span)
        features = self._features
        chosen = features.iloc[places] if hasattr(features, "iloc") else features[places]
        return chosen, read_column(engine, self.label)[places]

    def settle(self, loss: Loss) -> Loss:
        """The loss in its present state; a wrong one is refused before anything is charged."""
        return settle(loss, self.labels)

    def classes(self, loss: Loss) -> tuple[Any, ...]:
        """Those that a loss of classes or probabilities is about."""
        return () if loss.kind == "numbers" else self.labels.classes

    @property
    def features(self) -> Any:
        """What models predict from, if it is public."""
        if self.visibility == "hidden":
            raise InvalidArgument(
                "the features of this holdout are hidden; pass models, or functions of the features, to score."
            )
        return self._features

    @cached_property
    def _features(self) -> Any:
        from afresh.engines.embedded.rowwise import read_features

        hidden_columns = {self.label, *self.desk.hidden}
        given = read_features(self.desk.engine, hidden_columns) if self._given is None else self._given
        if self.desk.development is None or self._own is None:
            return given
        mine = read_features(self.desk.development, hidden_columns) if self._given is None else self._own[0]
        return stacked(mine, given)

    def open_loss(self, model: Any, loss: Loss) -> float:
        """The mean loss of a model on the open rows, which the analyst holds: free, and without an interval."""
        return loss_on(model, loss, self.classes(loss), *self._opened, lambda: self._places)

    @cached_property
    def _opened(self) -> tuple[Any, Any]:
        from afresh.guard.opened import hand_out

        if self._own is None:
            hand_out(self.desk, "")  # fixes the plan, as handing out rows does
        return self.opened()

    @cached_property
    def _places(self) -> Any:
        """Of the open rows in the order of predictions."""
        from afresh.engines.embedded.rowwise import rows_of_span

        span = self.desk.plan.mechanism.open_rows
        return np.arange(self._offset) if span is None else rows_of_span(self.desk.engine, span)

    def predict(
        self, models: Sequence[Any] | Mapping[str, Any], names: Sequence[str] | None, loss: Loss, features: Any = None
    ) -> list[Predicted]:
        """The predictions of models. Mistakes in them are reported before anything is charged."""
        self.desk.check_open()
        models, names = listed(models, names)
        given = [None] * len(models) if names is None else names
        if self.visibility == "hidden":
            return [self._submit(model, name, loss) for model, name in zip(models, given, strict=True)]
        found = self.features if features is None and any(map(is_model, models)) else features
        return [self._predictions(model, name, loss, found) for model, name in zip(models, given, strict=True)]

    def _predictions(self, model: Any, name: str | None, loss: Loss, features: Any) -> Predicted:
        """Public features: a model is the predictions it makes, and an error may quote them."""
        kind, predictions = "predictions", model
        if isinstance(model, Made):
            kind, predictions = model
        elif is_model(model):
            kind, predictions = run(model, loss, self.classes(loss), features)
        values = check_predictions(predictions, loss.kind, self.labels)
        if predictions is not model:
            values = values.copy()  # the next model may write into the array that this one returned
        digest = self._digest("predictions", *self._public(loss), self.order, arrays=[values])
        return Predicted(name or f"{kind} {digest[:8]}", digest, lambda: (values, None))

    def _submit(self, model: Any, name: str | None, loss: Loss) -> Predicted:
        """Hidden features: a model is its name and its predictions for made-up rows. It runs once it is paid for.

        If it were known by its predictions, a free repeat would reveal that two models agree on all rows.
        """
        if not is_model(model) or isinstance(model, type):
            raise InvalidArgument(
                "the features are hidden, so predictions cannot be made outside; pass a fitted model, or a "
                "function of the features, for the guard to run."
            )
        classes, features = self.classes(loss), self._features
        said = hidden.try_out(model, loss, classes, features)
        nonce = [] if name is not None else [secrets.token_hex(16)]
        digest = self._digest("model", *self._public(loss), name, *nonce, said)
        kind = getattr(model, "__name__", type(model).__name__)
        return Predicted(name or f"{kind} {digest[:8]}", digest, lambda: hidden.predict(model, loss, classes, features))

    def _public(self, loss: Loss) -> list[Any]:
        return [self.label, loss.kind, [repr(each) for each in self.classes(loss)]]

    def words(self, text: str) -> str:
        """What is asked, and over what it is a mean."""
        return text + (" on these rows' features" if self.visibility == "public" else "")

    def question(
        self,
        text: str,
        parts: Sequence[Any],
        values: Callable[[Rows], Values],
        *,
        levels: int | None = None,
        bounds: tuple[float, float] = (0.0, 1.0),
        loss: Loss | None = None,
    ) -> VectorQuery:
        """A question about one number per row, identified by JSON-ready parts."""
        alone = isinstance(loss, Custom)
        return VectorQuery(
            self._digest(*parts),
            self.words(text),
            values,
            levels=levels,
            bounds=bounds,
            offset=self._offset,
            alone=alone,
        )

    def _digest(self, *parts: Any, arrays: Sequence[Any] = ()) -> str:
        return keyed_digest(self.desk.terms.seed, parts, arrays)


def stacked(first: Any, second: Any) -> Any:
    """The features of two sets of rows as one, of their common kind."""
    if hasattr(first, "iloc") and hasattr(second, "iloc"):
        import pandas as pd

        return pd.concat([first, second], ignore_index=True)
    if type(first).__module__.startswith("polars"):
        import polars as pl

        return pl.concat([first, second])
    if isinstance(first, np.ma.MaskedArray) or isinstance(second, np.ma.MaskedArray):
        return np.ma.concatenate([first, second])  # type: ignore[no-untyped-call]
    return np.concatenate([np.asarray(first), np.asarray(second)])


def loss_on(
    model: Any, loss: Loss, classes: tuple[Any, ...], features: Any, values: Any, places: Callable[[], Any]
) -> float:
    """The mean loss of a model on rows with their labels; of predictions for more rows, `places` says which to take."""
    labels = Labels(values, classes if loss.kind != "numbers" else None)
    if is_model(model):
        _, predictions = run(model, loss, classes, features)
    else:
        predictions = np.asarray(model)[places()]
    made = check_predictions(predictions, loss.kind, labels)
    low, high = loss.bounds
    return float(np.mean(loss.rows(made, labels, slice(None)), dtype=np.float64)) * (high - low) + low
