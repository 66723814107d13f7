"""`afresh.holdout`: models scored and compared on rows whose labels stay hidden."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from afresh import display
from afresh.errors import DataError, InvalidArgument
from afresh.guard import Guard

if TYPE_CHECKING:
    from afresh.answer import Answer, Budget
    from afresh.comparison import Comparison, Ranking
    from afresh.ledger import Ledger
    from afresh.losses import Loss
    from afresh.predicting import Predicted
    from afresh.queries.vector import VectorQuery
    from afresh.statistics.scores import ModelStatistic

Recipe = dict[str, Any]


def holdout(
    data: Any,
    y: Any = None,
    *,
    label: str = "label",
    loss: Any = "zero-one",
    classes: Sequence[Any] | None = None,
    questions: int | None = None,
    confidence: float | None = None,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    method: str | None = None,
    answers: int | None = None,
    analyst: str | None = None,
    must_exist: bool = False,
    simulation_seed: int | None = None,
) -> Holdout:
    """Put a guard before a holdout: features and labels (`X, y`), data with a column named `label`, or a guard of such.

    Features are an array with a row a case (its columns are called x0, x1, ...) or a frame; data are whatever
    `afresh.open` takes. The arguments from `questions` on are those of `afresh.open`: plan, ledger and budget are the
    guard's, and `holdout.guard.ask("x0 > 3")` spends from the same budget as a score.

    `loss` is what scores average, see `afresh.losses`. `classes` says which classes there are; left out, they are the
    different labels, which become public by that: leave it out only where they are no secret.

    The guarantee needs models that are functions of one row's features and were not made from these rows in any other
    way than through answers: predictions that were tuned row by row, or on features of the holdout, have no population
    to speak of. docs/models.md says what holds then.
    """
    from afresh.engines.rowwise import order_of, read_column
    from afresh.labels import Labels, check_classes
    from afresh.ledger import default_place
    from afresh.losses import make_loss
    from afresh.opening import open as open_guard

    made, declared = make_loss(loss), check_classes(classes)
    opening = {
        "questions": questions,
        "confidence": confidence,
        "method": method,
        "answers": answers,
        "analyst": analyst,
        "must_exist": must_exist,
        "simulation_seed": simulation_seed,
    }
    features, recipe = None, None
    if not isinstance(data, Guard) and simulation_seed is None and isinstance(ledger, str | os.PathLike | None):
        place = default_place() if ledger is None else os.fspath(ledger)
        recipe = None if place == ":memory:" else {"data": data, "y": y, "ledger": _absolute(place)}
    if recipe is not None:
        recipe |= {"label": label, "loss": made, "classes": classes}
    if isinstance(data, Guard):
        if y is not None or ledger is not None or any(value not in (None, False) for value in opening.values()):
            raise InvalidArgument("a guard has its labels in a column and its plan already; give label= only.")
        guard = data
    elif y is None:
        guard = open_guard(data, ledger=ledger, **opening)  # type: ignore[arg-type]
    else:
        features, table = data, _with_label(data, y, label)
        guard = open_guard(table, ledger=ledger, **opening)  # type: ignore[arg-type]
    names = {name.lower(): name for name in guard.columns}
    if not isinstance(label, str) or label.lower() not in names:
        raise InvalidArgument(f"label == {label!r}, must be one of the columns {', '.join(guard.columns)}.")
    column = names[label.lower()]
    if recipe is not None:
        recipe["analyst"] = guard.analyst
    labels = Labels(read_column(guard._engine, column), declared)
    _ = labels.numbers if made.kind == "numbers" else labels.codes  # a loss that does not suit them is told now
    return Holdout(guard, column, labels, made, order_of(guard._engine), features, recipe)


_REOPENED: dict[tuple[str, str], Holdout] = {}  # in another process, for as long as it lives


def reopen(recipe: Recipe, fingerprint: str) -> Holdout:
    """The holdout of another process, on the same ledger; its plan is the one in force."""
    key = (fingerprint, repr((recipe["ledger"], recipe["label"], recipe["loss"].words, recipe["classes"])))
    if key not in _REOPENED:
        _REOPENED[key] = holdout(**recipe, must_exist=True)
    return _REOPENED[key]


def _absolute(place: str) -> str:
    from afresh.ledger import is_server

    return place if is_server(place) else os.path.abspath(os.path.expanduser(place))


def _with_label(features: Any, y: Any, label: str) -> Any:
    """Features and labels as one Arrow table."""
    import pyarrow as pa  # on demand: `import afresh` stays fast

    from afresh.engines.sources import as_arrow

    if hasattr(features, "toarray"):
        raise DataError("sparse features cannot be opened; pass an array: X.toarray().")
    try:
        table = as_arrow(features)
    except DataError:
        array = np.asarray(features)
        if array.ndim != 2 or array.dtype.kind not in "biuf":
            raise DataError(
                f"features of the shape {array.shape} and type {array.dtype} cannot be opened: they must be a frame, "
                "or an array of numbers with a row a case."
            ) from None
        table = pa.table({f"x{i}": np.ascontiguousarray(array[:, i]) for i in range(array.shape[1])})
    values = np.asarray(y)
    if values.ndim != 1 or len(values) != table.num_rows:
        raise DataError(f"there are {table.num_rows:,} rows and labels of the shape {values.shape}; each needs one.")
    if label.lower() in (name.lower() for name in table.column_names):
        raise InvalidArgument(f"label == {label!r} is a column of the features as well; give the labels another name.")
    try:
        return table.append_column(label, pa.array(values, from_pandas=True))
    except (pa.ArrowException, TypeError, ValueError):
        pass  # what pyarrow says would quote labels
    raise DataError("the labels mix values of several types; give them one type before opening them.")


class Holdout(display.Shown):
    """Scores and compares models on guarded rows. Make one with `afresh.holdout`."""

    def __init__(
        self, guard: Guard, label: str, labels: Any, loss: Loss, order: str, features: Any, recipe: Recipe | None
    ) -> None:
        """Not for users: `afresh.holdout` puts the parts together."""
        self.guard, self.label, self.loss = guard, label, loss
        self._labels, self._order, self._features, self._recipe = labels, order, features, recipe

    @property
    def rows(self) -> int:
        """The number of rows, which is public."""
        return self.guard.rows

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The classes, which are public; None for labels that are numbers."""
        found: tuple[Any, ...] | None = None if self.loss.kind == "numbers" else self._labels.classes
        return found

    @property
    def budget(self) -> Budget:
        """The guard's."""
        return self.guard.budget

    def score(self, model: Any, *, name: str | None = None, loss: Any = None, precision: float | None = None) -> Answer:
        """The mean loss of a model, or of predictions, with an interval that holds: 1 answer, free if asked before.

        A model has `predict` (or `predict_proba`, for losses of probabilities), or is a function of the features.
        Predictions are one for each row, in the rows' order. `name` is what to call it in the record. `precision` is a
        half-width that is enough, in units of the loss; the answer then costs less (see `Guard.ask`).
        """
        return self.score_many([model], names=None if name is None else [name], loss=loss, precision=precision)[0]

    def score_many(
        self,
        models: Sequence[Any],
        *,
        names: Sequence[str] | None = None,
        loss: Any = None,
        precision: float | None = None,
    ) -> list[Answer]:
        """The mean losses of several models, 1 answer each. All are charged, or none."""
        used = self._loss(loss)
        return self._scores(self._predict(models, names, used), used, precision)

    def _scores(self, predicted: Sequence[Predicted], loss: Loss, precision: float | None = None) -> list[Answer]:
        from afresh.evaluation import VectorAsked
        from afresh.queries.asked import check_precision

        low, high = loss.bounds
        enough = None if precision is None else check_precision(precision) / (high - low)
        about = f"the mean {loss.words} of the model, the smaller the better"
        missing = "A row whose label is missing has the largest loss."
        return self.guard._answer_all(
            [VectorAsked((self._loss_query(each, loss),), about, missing, enough) for each in predicted]
        )

    def compare(self, a: Any, b: Any, *, names: tuple[str, str] | None = None, loss: Any = None) -> Comparison:
        """Whether B is better than A, row by row on the same rows: 2 answers, free if asked before.

        Models that seldom disagree are told apart much better than by two scores.
        """
        from afresh.comparing import compare

        return compare(self, a, b, names, self._loss(loss))

    def best_of(self, models: Sequence[Any], *, names: Sequence[str] | None = None, loss: Any = None) -> Ranking:
        """Many models in order, tied where the data cannot separate them: at most 3 m - 2 answers for m models.

        One answer a model is its score; two more compare it with the one that scores best.
        """
        from afresh.comparing import best_of

        return best_of(self, models, names, self._loss(loss))

    def measure(self, statistic: ModelStatistic, model: Any, *, name: str | None = None) -> Answer:
        """Precision, recall, F1, calibration error or AUC of a model, at no more than `statistic.price` answers."""
        if not callable(getattr(statistic, "measure_model", None)):
            raise InvalidArgument(f"statistic == {statistic!r}, must be one of afresh.statistics that needs a model.")
        return statistic.measure_model(self, model, name)

    def resolution(self, disagreement: float) -> float:
        """What `compare` can tell: the half-width for two models that disagree on this share of rows. Free."""
        from afresh.difference import resolution

        if not 0 <= disagreement <= 1:
            raise InvalidArgument(f"disagreement == {disagreement!r}, must be a share of rows, from 0 to 1.")
        low, high = self.loss.bounds
        return resolution(self.guard.plan, disagreement) * (high - low)

    def _loss(self, loss: Any) -> Loss:
        from afresh.losses import make_loss

        return self.loss if loss is None else make_loss(loss)

    def _loss_query(self, predicted: Predicted, loss: Loss) -> VectorQuery:
        labels, values = self._labels, predicted.values
        return self._query(
            f"{loss.words} of {predicted.name}",
            ["loss", loss.words, predicted.digest],
            lambda rows: loss.rows(values, labels, rows),
            binary=loss.binary,
            bounds=loss.bounds,
        )

    def _query(self, text: str, parts: Sequence[Any], values: Any, **more: Any) -> VectorQuery:
        from afresh.queries.vector import VectorQuery, keyed_digest

        return VectorQuery(keyed_digest(self.guard._terms.seed, parts), text, values, **more)

    def _predict(
        self, models: Sequence[Any], names: Sequence[str] | None, loss: Loss, features: Any = None
    ) -> list[Predicted]:
        """The predictions of models, checked before anything is charged."""
        from afresh.ledger.base import check_text
        from afresh.losses import prepare
        from afresh.predicting import Predicted, is_model, run
        from afresh.queries.vector import keyed_digest

        if names is not None and len(names) != len(models):
            raise InvalidArgument(f"there are {len(models)} models and {len(names)} names; each needs one.")
        classes = () if loss.kind == "numbers" else self._labels.classes
        found = []
        for place, model in enumerate(models):
            kind, predictions = "predictions", model
            if is_model(model):
                kind, predictions = run(model, loss, classes, self.features if features is None else features)
            values = prepare(loss, predictions, self._labels)
            public = [loss.kind, [repr(each) for each in classes], self._order]
            digest = keyed_digest(self.guard._terms.seed, ["predictions", *public], [values])
            name = f"{kind} {digest[:8]}" if names is None else names[place]
            if not isinstance(name, str) or not name.strip():
                raise InvalidArgument(f"name == {name!r}, must be words.")
            check_text("name", name)
            found.append(Predicted(name, values, digest))
        return found

    @property
    def features(self) -> Any:
        """What models predict from: the features as they were passed, or the columns other than the label's."""
        from afresh.engines.rowwise import read_features

        if self._features is None:
            self._features = read_features(self.guard._engine, self.label)
        return self._features

    def close(self) -> None:
        """Close the guard."""
        self.guard.close()

    def __enter__(self) -> Holdout:
        """A holdout is its own context."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        """One line."""
        return f"Holdout({self.loss.words} of {self.label!r}, {self.guard!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """By its data and the place of its ledger: another process opens them again and shares the budget."""
        if self._recipe is None:
            raise TypeError(
                "a holdout on a guard, on a ledger in memory or in a simulation cannot be pickled; open the data in "
                "the other process with a ledger in a file, they share one budget."
            )
        return reopen, (self._recipe, self.guard._terms.fingerprint)

    def _blocks(self) -> list[display.Block]:
        facts = {"label": self.label, "loss": self.loss.words}
        if self.classes is not None:
            facts["classes"] = ", ".join(map(str, self.classes))
        return [display.Title("Holdout"), display.Facts(facts), *self.guard._blocks()]
