"""Models scored and compared on rows whose labels, and perhaps features, stay hidden."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.escaping import visible
from afresh.guard.guard import Guard
from afresh.models.predictions import is_model
from afresh.results import show

if TYPE_CHECKING:
    from afresh.guard.scope import Features
    from afresh.losses import Loss
    from afresh.models.predictions import Predicted
    from afresh.models.vectors import VectorQuery
    from afresh.models.verdicts import Comparison, Identical, Ranking
    from afresh.results.answer import Answer, Budget
    from afresh.statistics.scores import ModelStatistic


class Recipe(NamedTuple):
    """How another process opens the same holdout: with what function, and which arguments of `afresh.holdout`."""

    reopen: Callable[..., Holdout]
    arguments: dict[str, Any]


def check_holdout(holdout: object) -> Holdout:
    """What `afresh.holdout` makes, or an error."""
    if not isinstance(holdout, Holdout):
        raise InvalidArgument(f"holdout is a {type(holdout).__name__}, must be what afresh.holdout(X, y) makes.")
    return holdout


class Holdout(show.Shown):
    """Scores and compares models on guarded rows. Make one with `afresh.holdout`.

    `visibility` says whether their features are "public" or "hidden".
    """

    def __init__(
        self,
        guard: Guard,
        label: str,
        labels: Any,
        loss: Loss,
        order: str,
        visibility: Features,
        features: Any,
        recipe: Recipe | None,
    ) -> None:
        """Not for users: `afresh.holdout` puts the parts together."""
        self.guard, self.label, self.loss, self.visibility = guard, label, loss, visibility
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

        With public features the same predictions are the same question. With hidden ones only models are taken, and
        one is known by its `name` and what it says of made-up rows, never by its predictions: without a name every
        call is charged; one name, one model. A row on which it fails has the largest loss.
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
        from afresh.guard.evaluate import VectorAsked

        low, high = loss.bounds
        enough = None if precision is None else checks.precision(precision) / (high - low)
        about = f"the mean {loss.words} of the model, the smaller the better"
        which = "without a label or a valid prediction" if self.visibility == "hidden" else "whose label is missing"
        missing = f"A row {which} has the largest loss."
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
    ) -> Comparison | Identical:
        """Whether B is better than A, row by row on the same rows: 2 answers, free if asked before.

        With public features, two models that make the same predictions are said to be identical on these rows: no
        interval and no charge. With hidden ones nothing says so; they are compared like any others.

        Models that seldom disagree are told apart much better than by two scores. `precision` is a half-width of the
        difference, in units of the loss, that is enough, at a lower charge: promised for models that disagree on every
        row, as the charge must not depend on how often they do; `resolution` tells what it means for others.
        """
        from afresh.models.compare import compare

        return compare(self, a, b, names, self._loss(loss), precision)

    def best_of(self, models: Sequence[Any], *, names: Sequence[str] | None = None, loss: Any = None) -> Ranking:
        """Many models in order, tied where the data cannot separate them: at most 3 m - 2 answers for m models.

        One answer a model is its score; two more compare it with the one that scores best.
        """
        from afresh.models.compare import best_of

        return best_of(self, models, names, self._loss(loss))

    def measure(self, statistic: ModelStatistic, model: Any, *, name: str | None = None) -> Answer:
        """Precision, recall, F1, calibration error or AUC of a model, at no more than `statistic.price` answers."""
        if isinstance(statistic, type) or not callable(getattr(statistic, "measure_model", None)):
            raise checks.wrong("statistic", statistic, "one of afresh.statistics that needs a model")
        return statistic.measure_model(self, model, name)

    def resolution(self, disagreement: float, *, precision: float | None = None) -> float:
        """What `compare` can tell: the half-width for two models that disagree on this share of rows. Free."""
        from afresh.models.compare import coarseness_of
        from afresh.models.paired import resolution

        disagreement = checks.share("disagreement", disagreement, ", a share of rows")
        low, high = self.loss.bounds
        coarseness = coarseness_of(self, self.loss, precision)
        return resolution(self.guard.plan, disagreement, coarseness) * (high - low)

    def _loss(self, loss: Any) -> Loss:
        """The loss that is meant, as it is now; found wanting before anything is paid."""
        from afresh.losses import make_loss, settle

        return settle(self.loss if loss is None else make_loss(loss), self._labels)

    def _loss_query(self, predicted: Predicted, loss: Loss) -> VectorQuery:
        labels = self._labels
        return self._query(
            f"{loss.words} of {predicted.name}",
            ["loss", loss.words, predicted.digest],
            lambda rows: predicted.losses(loss, labels, rows),
            binary=loss.binary,
            bounds=loss.bounds,
        )

    def _words(self, text: str) -> str:
        """What is asked, and over what it is a mean."""
        return text + (" on these rows' features" if self.visibility == "public" else "")

    def _query(self, text: str, parts: Sequence[Any], values: Any, **more: Any) -> VectorQuery:
        from afresh.models.vectors import VectorQuery

        text = self._words(text)
        return VectorQuery(self._digest(*parts), text, values, **more)

    def _digest(self, *parts: Any, arrays: Sequence[Any] = ()) -> str:
        from afresh.models.vectors import keyed_digest

        return keyed_digest(self.guard._terms.seed, parts, arrays)

    def _predict(
        self, models: Sequence[Any], names: Sequence[str] | None, loss: Loss, features: Any = None
    ) -> list[Predicted]:
        """The predictions of models. What is wrong with them is told before anything is charged."""
        from afresh.models.predictions import listed

        self.guard._check_open()
        models, names = listed(models, names)
        given = [None] * len(models) if names is None else names
        if self.visibility == "hidden":
            return [self._submit(model, name, loss) for model, name in zip(models, given, strict=True)]
        found = self.features if features is None and any(map(is_model, models)) else features
        return [self._given(model, name, loss, found) for model, name in zip(models, given, strict=True)]

    def _given(self, model: Any, name: str | None, loss: Loss, features: Any) -> Predicted:
        """Public features: a model is the predictions it makes, and an error may quote them."""
        from afresh.models.labels import check_predictions
        from afresh.models.predictions import Predicted, run

        kind, predictions = "predictions", model
        if is_model(model):
            kind, predictions = run(model, loss, self._classes(loss), features)
        values = check_predictions(predictions, loss.kind, self._labels)
        if predictions is not model:
            values = values.copy()  # the next model may write into the array that this one returned
        digest = self._digest("predictions", *self._public(loss), self._order, arrays=[values])
        return Predicted(name or f"{kind} {digest[:8]}", digest, lambda: (values, None))

    def _submit(self, model: Any, name: str | None, loss: Loss) -> Predicted:
        """Hidden features: a model is its name and what it says of made-up rows. It is run when it was paid for.

        Were it known by its predictions, a free repeat would tell that two models agree on all rows.
        """
        from afresh.models import hidden
        from afresh.models.predictions import Predicted

        if not is_model(model) or isinstance(model, type):
            raise InvalidArgument(
                "the features are hidden, so nobody can have made predictions for them; pass a fitted model, or a "
                "function of the features, for the guard to run."
            )
        classes, features = self._classes(loss), self._held()
        said = hidden.try_out(model, loss, classes, features)
        nonce = [] if name is not None else [secrets.token_hex(16)]
        digest = self._digest("model", *self._public(loss), name, *nonce, said)
        kind = getattr(model, "__name__", type(model).__name__)
        return Predicted(name or f"{kind} {digest[:8]}", digest, lambda: hidden.predict(model, loss, classes, features))

    def _classes(self, loss: Loss) -> tuple[Any, ...]:
        return () if loss.kind == "numbers" else self._labels.classes

    def _public(self, loss: Loss) -> list[Any]:
        return [self.label, loss.kind, [repr(each) for each in self._classes(loss)]]

    @property
    def features(self) -> Any:
        """What models predict from: the features as they were passed, or the columns other than the label's."""
        if self.visibility == "hidden":
            raise InvalidArgument(
                "the features of this holdout are hidden; pass models, or functions of the features, to score."
            )
        return self._held()

    def _held(self) -> Any:
        from afresh.engines.embedded.rowwise import read_features

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
        return self._recipe.reopen, (
            self._recipe.arguments,
            self.guard._terms.data,
            self._order,
            self._loss(None).words,
        )

    def __deepcopy__(self, memo: object) -> Holdout:
        """A copy, such as scikit-learn's `clone` makes of parameters, spends from the same guard."""
        return self

    def _blocks(self) -> list[show.Block]:
        facts = {"label": self.label, "features": self.visibility, "loss": self.loss.words}
        if self.classes is not None:
            facts["classes"] = ", ".join(map(str, self.classes))
        return [show.Title("Holdout"), show.Facts(facts), *self.guard._blocks()]
