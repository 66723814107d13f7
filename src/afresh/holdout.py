"""Models scored and compared on rows whose labels stay hidden."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from afresh import display
from afresh.errors import InvalidArgument
from afresh.escaping import visible
from afresh.guard import Guard

if TYPE_CHECKING:
    from afresh.answer import Answer, Budget
    from afresh.comparison import Comparison, Ranking
    from afresh.losses import Loss
    from afresh.predicting import Predicted
    from afresh.queries.vector import VectorQuery
    from afresh.statistics.scores import ModelStatistic

Recipe = dict[str, Any]


def check_holdout(holdout: object) -> Holdout:
    """What `afresh.holdout` makes, or an error."""
    if not isinstance(holdout, Holdout):
        raise InvalidArgument(f"holdout is a {type(holdout).__name__}, must be what afresh.holdout(X, y) makes.")
    return holdout


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

    def compare(
        self,
        a: Any,
        b: Any,
        *,
        names: tuple[str, str] | None = None,
        loss: Any = None,
        precision: float | None = None,
    ) -> Comparison:
        """Whether B is better than A, row by row on the same rows: 2 answers, free if asked before.

        Models that seldom disagree are told apart much better than by two scores. `precision` is a half-width of the
        difference, in units of the loss, that is enough, at a lower charge: promised for models that disagree on every
        row, as the charge must not depend on how often they do; `resolution` tells what it means for others.
        """
        from afresh.comparing import compare

        return compare(self, a, b, names, self._loss(loss), precision)

    def best_of(self, models: Sequence[Any], *, names: Sequence[str] | None = None, loss: Any = None) -> Ranking:
        """Many models in order, tied where the data cannot separate them: at most 3 m - 2 answers for m models.

        One answer a model is its score; two more compare it with the one that scores best.
        """
        from afresh.comparing import best_of

        return best_of(self, models, names, self._loss(loss))

    def measure(self, statistic: ModelStatistic, model: Any, *, name: str | None = None) -> Answer:
        """Precision, recall, F1, calibration error or AUC of a model, at no more than `statistic.price` answers."""
        if isinstance(statistic, type) or not callable(getattr(statistic, "measure_model", None)):
            raise InvalidArgument(f"statistic == {statistic!r}, must be one of afresh.statistics that needs a model.")
        return statistic.measure_model(self, model, name)

    def resolution(self, disagreement: float, *, precision: float | None = None) -> float:
        """What `compare` can tell: the half-width for two models that disagree on this share of rows. Free."""
        from afresh.comparing import coarseness_of
        from afresh.difference import resolution

        if not (isinstance(disagreement, Real) and 0 <= disagreement <= 1):
            raise InvalidArgument(f"disagreement == {disagreement!r}, must be a share of rows, from 0 to 1.")
        low, high = self.loss.bounds
        coarseness = coarseness_of(self, self.loss, precision)
        return resolution(self.guard.plan, disagreement, coarseness) * (high - low)

    def _loss(self, loss: Any) -> Loss:
        from afresh.losses import make_loss

        if loss is None:
            return self.loss
        made = make_loss(loss)
        self._labels.suit(made.kind)  # or it would be found out when the answer is paid
        return made

    def _loss_query(self, predicted: Predicted, loss: Loss) -> VectorQuery:
        from afresh.losses import Custom

        labels, values = self._labels, predicted.values
        return self._query(
            f"{loss.words} of {predicted.name}",
            ["loss", loss.words, predicted.digest],
            lambda rows: loss.rows(values, labels, rows),
            one_thread=isinstance(loss, Custom),
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
        from afresh.predicting import Predicted, is_model, listed, run
        from afresh.queries.vector import keyed_digest

        self.guard._check_open()
        models, names = listed(models, names)
        classes = () if loss.kind == "numbers" else self._labels.classes
        found = []
        for place, model in enumerate(models):
            kind, predictions = "predictions", model
            if is_model(model):
                kind, predictions = run(model, loss, classes, self.features if features is None else features)
            values = prepare(loss, predictions, self._labels)
            if predictions is not model:
                values = values.copy()  # the next model may write into the array that this one returned
            public = [self.label, loss.kind, [repr(each) for each in classes], self._order]
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
        return f"Holdout({visible(self.loss.words)} of {self.label!r}, {self.guard!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """By its data and the place of its ledger: another process opens them again and shares the budget."""
        if self._recipe is None:
            raise TypeError(
                "a holdout on a guard, on a ledger in memory or in a simulation cannot be pickled; open the data in "
                "the other process with a ledger in a file, they share one budget."
            )
        from afresh.opening_holdout import reopen

        return reopen, (self._recipe, self.guard._terms.fingerprint, self._order)

    def __deepcopy__(self, memo: object) -> Holdout:
        """A copy, such as scikit-learn's `clone` makes of parameters, spends from the same guard."""
        return self

    def _blocks(self) -> list[display.Block]:
        facts = {"label": self.label, "loss": self.loss.words}
        if self.classes is not None:
            facts["classes"] = ", ".join(map(str, self.classes))
        return [display.Title("Holdout"), display.Facts(facts), *self.guard._blocks()]
