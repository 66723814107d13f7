"""A search for hyper-parameters whose winner has an interval that holds."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sized
from numbers import Real
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from scipy.sparse import issparse
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler, train_test_split
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, indexable

from afresh.errors import InvalidArgument, PlanMismatch
from afresh.losses import ZeroOne
from afresh.models.holdout import check_holdout

if TYPE_CHECKING:
    from afresh.models.holdout import Holdout
    from afresh.results.answer import Answer

Method = TypeVar("Method", bound=Callable[..., Any])


def as_score(answer: Answer, loss: Any) -> tuple[float, float, float]:
    """Value and interval of an answer, greater is better.

    Args:
        answer: A mean loss.
        loss: Which.

    Returns:
        The accuracy for zero-one loss, else minus the loss; then the ends of its interval.
    """
    top = 1.0 if isinstance(loss, ZeroOne) else 0.0
    return top - answer.value, top - answer.high, top - answer.low


def _has(name: str) -> Callable[[Method], Method]:
    def check(self: GuardedSearchCV) -> bool:
        getattr(getattr(self, "best_estimator_", self.estimator), name)
        return True

    return available_if(check)  # type: ignore[no-any-return]


class GuardedSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Tries parameters like GridSearchCV, scores each once on guarded validation rows, and keeps the best.

    Every score is an answer of a guard, so all intervals hold at once, and the winner's holds although it was chosen
    for its score: `best_interval_`, in the units of the loss. The ledger remembers what was asked of these rows:
    fitting again with the same data and candidates is free, with others it spends what is left. (Another random_state,
    or None, guards other rows, and no ledger can know that they overlap: to try more random parameters on the same
    rows, pass a `holdout`.) `best_estimator_` is the model that was scored; it is not fitted again on other rows. What
    `fit` is told of every row, such as sample_weight, is for training; scores weigh all rows alike.

    The names of results are those of GridSearchCV; `best_score_` is greater for better models.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        holdout: Holdout | None = None,
        validation: float = 0.25,
        n_iter: int | None = None,
        loss: Any = None,
        questions: int | None = None,
        confidence: float = 0.95,
        ledger: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        """Keep what was passed, as scikit-learn wants it; `fit` checks it.

        Args:
            estimator: What to tune.
            param_grid: As for GridSearchCV; with `n_iter`, as for RandomizedSearchCV.
            holdout: Guarded validation rows; without it, `validation` of the rows passed to `fit`.
            validation: A share of the rows, drawn by `random_state`; the rest trains.
            n_iter: Tries so many random parameters instead of all.
            loss: What to average; a regressor needs one with bounds.
            questions: For how many answers to open the guard (default: as many as there are candidates).
            confidence: The probability with which all intervals hold at once.
            ledger: As in `afresh.open`.
            n_jobs: How many candidates are fitted at once.
            random_state: Draws the validation rows and random parameters.
        """
        self.estimator, self.param_grid, self.holdout, self.validation = estimator, param_grid, holdout, validation
        self.n_iter, self.loss, self.questions, self.confidence = n_iter, loss, questions, confidence
        self.ledger, self.n_jobs, self.random_state = ledger, n_jobs, random_state

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit every candidate, score it, keep the best.

        Args:
            X: Features of the rows that train, and of those that validate unless there is a holdout.
            y: Their labels.
            **fit_params: What the estimator's `fit` is told; what has an entry for each row is split like the rows.

        Returns:
            Itself.

        Raises:
            InvalidArgument: Something that was passed is wrong; nothing was charged.
            BudgetExhausted: Scores cost more than is left; nothing was charged.
        """
        if y is None:
            raise InvalidArgument("requires y to be passed, but the target y is None.")
        if issparse(X):
            raise InvalidArgument("sparse features are not supported; pass an array: X.toarray().")
        if not hasattr(X, "columns"):  # a frame may hold what only the estimator knows to read
            X = check_array(X, ensure_all_finite=False)
        X, y = indexable(X, column_or_1d(y, warn=True))
        if is_classifier(self.estimator):
            check_classification_targets(y)
        candidates = self._candidates()
        holdout, own = self.holdout, self.holdout is None
        if holdout is None:
            X, X_validation, y, y_validation, fit_params = self._split(X, y, fit_params)
            holdout = self._open(X_validation, y_validation, np.unique(np.concatenate([y, y_validation])), candidates)
        elif self.questions is not None or self.ledger is not None:
            raise InvalidArgument("a holdout has its plan and its ledger already; leave out questions= and ledger=.")
        try:
            loss = check_holdout(holdout).settled(None if own else self.loss)
            models = Parallel(n_jobs=self.n_jobs)(
                delayed(_fit)(clone(self.estimator), params, X, y, fit_params) for params in candidates
            )
            answers = holdout.score_many(models, loss=loss)
        finally:
            if own:
                holdout.close()
        scores = np.array([as_score(answer, loss) for answer in answers])
        self.best_index_ = int(np.argmax(scores[:, 0]))
        self.best_params_, self.best_estimator_ = candidates[self.best_index_], models[self.best_index_]
        self.best_score_, self.best_answer_ = float(scores[self.best_index_, 0]), answers[self.best_index_]
        self.best_interval_ = self.best_answer_.interval
        self.cv_results_ = _results(candidates, scores)
        self.n_splits_ = 1
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _candidates(self) -> list[dict[str, Any]]:
        if self.n_iter is None:
            found = list(ParameterGrid(self.param_grid))
        elif isinstance(self.param_grid, Mapping):
            found = list(ParameterSampler(self.param_grid, self.n_iter, random_state=self.random_state))
        else:
            raise InvalidArgument("n_iter needs one mapping of parameters to lists or distributions.")
        if not found:
            raise InvalidArgument(f"param_grid == {self.param_grid!r}, n_iter == {self.n_iter!r}: nothing to try.")
        return found

    def _split(self, X: Any, y: Any, fit_params: dict[str, Any]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Rows that train, rows that are guarded, their labels, and what `fit` is told of the rows that train."""
        if not (isinstance(self.validation, Real) and 0 < self.validation < 1):
            raise InvalidArgument(f"validation == {self.validation!r}, must be a share of the rows, between 0 and 1.")
        by_row = [
            name
            for name, value in fit_params.items()
            if isinstance(value, Sized) and not isinstance(value, str | Mapping) and len(value) == len(y)
        ]
        told = [fit_params[name] for name in by_row]
        parts = train_test_split(X, y, *told, test_size=self.validation, random_state=self.random_state)
        return *parts[:4], {**fit_params, **dict(zip(by_row, parts[4::2], strict=True))}

    def _open(self, X: Any, y: Any, values: Any, candidates: list[dict[str, Any]]) -> Holdout:
        from afresh.models.open import holdout

        classifier = is_classifier(self.estimator)
        if not classifier and self.loss is None:
            raise InvalidArgument("a regressor needs a loss with bounds, such as afresh.losses.Squared(clip=100).")
        opened = functools.partial(
            holdout,
            X,
            y,
            loss="zero-one" if self.loss is None else self.loss,
            classes=values.tolist() if classifier and len(values) > 1 else None,
            confidence=self.confidence,
            ledger=self.ledger,
            allow_wide=True,  # the winner comes with its interval, however wide
        )
        try:
            return opened(questions=len(candidates) if self.questions is None else self.questions)
        except PlanMismatch:
            if self.questions is not None:
                raise
            return opened()  # a search for other candidates has opened these rows: its plan is in force

    @property
    def classes_(self) -> Any:
        """Of the best model."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.classes_

    @_has("predict")
    def predict(self, X: Any) -> Any:
        """What the best model says.

        Args:
            X: Features.

        Returns:
            As the estimator's own.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict(X)

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Any:
        """What the best model says.

        Args:
            X: Features.

        Returns:
            As the estimator's own.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.predict_proba(X)

    @_has("decision_function")
    def decision_function(self, X: Any) -> Any:
        """What the best model says.

        Args:
            X: Features.

        Returns:
            As the estimator's own.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.decision_function(X)

    @_has("score")
    def score(self, X: Any, y: Any) -> Any:
        """The best model's own score on rows that are not guarded.

        Args:
            X: Features.
            y: Labels.

        Returns:
            As the estimator's own.
        """
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.score(X, y)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a best model."""
        return hasattr(self, "best_estimator_")

    def __sklearn_tags__(self) -> Any:
        """Those of the estimator that is tuned."""
        from sklearn.utils import get_tags

        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags, tags.target_tags = inner.regressor_tags, inner.target_tags
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.target_tags.multi_output = False
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        return tags


def _fit(model: Any, params: dict[str, Any], X: Any, y: Any, fit_params: dict[str, Any]) -> Any:
    return model.set_params(**clone(params, safe=False)).fit(X, y, **fit_params)


def _results(candidates: list[dict[str, Any]], scores: Any) -> dict[str, Any]:
    """Like GridSearchCV's, with the ends of the intervals."""
    names = sorted({name for params in candidates for name in params})
    masked = {
        f"param_{name}": np.ma.MaskedArray(
            np.array([params.get(name) for params in candidates], dtype=object),
            mask=[name not in params for params in candidates],
        )
        for name in names
    }
    return {
        **masked,
        "params": candidates,
        "mean_test_score": scores[:, 0],
        "low_test_score": scores[:, 1],
        "high_test_score": scores[:, 2],
        "rank_test_score": rankdata(-scores[:, 0], method="min").astype(np.int32),
    }
