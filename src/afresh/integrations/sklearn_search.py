"""A hyperparameter search whose winner has an interval that holds."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np
from scipy.sparse import issparse
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.model_selection import ParameterGrid, ParameterSampler, train_test_split
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d, indexable

from afresh import checks
from afresh.errors import BudgetExhausted, InvalidArgument, PlanMismatch
from afresh.integrations.rounds import advising, rounds_left
from afresh.integrations.training import TrainingRows, balanced_order
from afresh.losses import ZeroOne
from afresh.models.holdout import check_holdout
from afresh.results.answer import Interval
from afresh.results.progress import waiting

if TYPE_CHECKING:
    from afresh.losses import Loss
    from afresh.models.holdout import Holdout
    from afresh.results.answer import Answer

Method = TypeVar("Method", bound=Callable[..., Any])


def as_score(answer: Answer, loss: Any) -> tuple[float, float, float]:
    """Convert an answer into a score and its interval; greater is better.

    Args:
        answer: A mean loss.
        loss: The loss it is the mean of.

    Returns:
        The accuracy for zero-one loss, otherwise minus the loss; then the ends of its interval.
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

    All candidates are scored together, in one round: exact scores on rows that no earlier question has seen. All
    intervals hold at once, and the winner's holds although it was chosen for its score: `best_interval_`, in the units
    of `best_score_`; `best_answer_` is the answer itself, in the units of the loss. With `factor` the search is
    successive halving, and each rung is a round: one round's scores choose the candidates that advance, which are
    scored again on the next round's fresh rows.

    The ledger remembers what was asked of these rows. Fitting again with the same data and candidates is free; other
    candidates take another round, so plan for it with `rounds` before the first fit. (Another random_state, or None,
    guards other rows, and no ledger can know that they overlap: to try more random parameters on the same rows, pass a
    `holdout`.) `best_estimator_` is the model that was scored; it is not refitted on other rows. Per-row arguments of
    `fit`, such as sample_weight, are for training; scores weigh all rows equally.

    With a holdout that has open rows (`afresh.holdout(X, y, open=0.5)`, or `open=(X_dev, y_dev)`) candidates are
    compared on those for free, and only the winner is confirmed on the guarded rows, for one answer. `best_interval_`
    is the confirmed interval; `best_score_` and `cv_results_` are scores on the open rows, without intervals.

    Results have the names used by GridSearchCV and, with `factor`, by HalvingGridSearchCV; `best_score_` is greater for
    better models.
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        holdout: Holdout | None = None,
        validation: float = 0.25,
        n_iter: int | None = None,
        factor: float | None = None,
        loss: Any = None,
        rounds: int | None = 1,
        questions: int | None = None,
        confidence: float = 0.95,
        ledger: str | os.PathLike[str] | None = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        verbose: int = 0,
    ) -> None:
        """Store the arguments, as scikit-learn expects; `fit` checks them.

        Args:
            estimator: The estimator to tune.
            param_grid: As for GridSearchCV; with `n_iter`, as for RandomizedSearchCV.
            holdout: Guarded validation rows; without it, `validation` of the rows passed to `fit`.
            validation: The share of rows that validates, drawn by `random_state`; the rest trains.
            n_iter: The number of random parameter settings to try, instead of all.
            factor: Successive halving: all candidates train on a few rows, the best 1/factor of them on `factor` times
                as many, and so on; the last ones train on all. None trains every candidate on all rows, once.
            loss: The loss to average; a regressor needs one with bounds.
            rounds: The number of fits with different candidates, among which the validation rows are divided (and, with
                `factor`, among the rungs of each). None opens the guard with its default method, for any number of
                successive fits.
            questions: The number of answers to open the guard for (default: as many as these fits need).
            confidence: The probability that all intervals hold at once.
            ledger: As in `afresh.open`.
            n_jobs: The number of candidates fitted at once.
            random_state: The seed for the validation rows, random parameters, and the rows that rungs train on.
            verbose: 1 shows how many candidates are fitted on how many rows; 2 also shows each one's score.
        """
        self.estimator, self.param_grid, self.holdout, self.validation = estimator, param_grid, holdout, validation
        self.n_iter, self.factor, self.loss, self.rounds, self.questions = n_iter, factor, loss, rounds, questions
        self.confidence, self.ledger, self.n_jobs, self.random_state = confidence, ledger, n_jobs, random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit and score every candidate, and keep the best.

        Args:
            X: Features of the training rows and, without a holdout, of the validation rows.
            y: Their labels.
            **fit_params: Arguments for the estimator's `fit`; those with one entry per row are split like the rows.

        Returns:
            Itself.

        Raises:
            InvalidArgument: An argument is wrong; nothing was charged.
            BudgetExhausted: The scores cost more than is left; nothing was charged.
        """
        if y is None:
            raise InvalidArgument("requires y to be passed, but the target y is None.")
        if issparse(X):
            raise InvalidArgument("sparse features are not supported; pass X.toarray().")
        if not hasattr(X, "columns"):  # a frame may hold values that only the estimator can read
            X = check_array(X, ensure_all_finite=False)
        X, y = indexable(X, column_or_1d(y, warn=True))
        if is_classifier(self.estimator):
            check_classification_targets(y)
        candidates, holdout, own = self._candidates(), self.holdout, self.holdout is None
        train = TrainingRows(X, y, fit_params)
        if holdout is None:
            train, X_validation, y_validation = self._split(train)
            rungs = self._rungs(len(candidates), train.y)
            classes = np.unique(np.concatenate([train.y, y_validation]))
            holdout = self._open(X_validation, y_validation, classes, rungs)
        else:
            if self.questions is not None or self.ledger is not None or self.rounds not in (None, 1):
                raise InvalidArgument(
                    "a holdout already has its plan and its ledger; leave out questions=, rounds= and ledger=."
                )
            rungs = self._rungs(len(candidates), train.y)
        try:
            loss = check_holdout(holdout).settled(None if own else self.loss)
            with advising(holdout, self._advice(own, len(rungs))):
                tried = self._run(rungs, candidates, train, holdout, loss)
        finally:
            if own:
                holdout.close()
        return self._keep(tried, rungs, loss)

    def _run(
        self,
        rungs: Sequence[_Rung],
        candidates: list[dict[str, Any]],
        train: TrainingRows,
        holdout: Holdout,
        loss: Loss,
    ) -> list[_Tried]:
        """Run every candidate of every rung: those of one rung are scored together, and the best advance."""
        tried: list[_Tried] = []
        order = balanced_order(train.y, is_classifier(self.estimator), self.random_state) if len(rungs) > 1 else None
        for place, rung in enumerate(rungs):
            rows = train if order is None or rung.rows == len(train.y) else train.at(order[: rung.rows])
            if self.verbose > 0:
                print(f"Fitting {len(candidates):,} candidates on {len(rows.y):,} rows", flush=True)
            with waiting(f"Fitting {len(candidates):,} candidates"):
                models = Parallel(n_jobs=self.n_jobs)(
                    delayed(_fit)(clone(self.estimator), params, rows.X, rows.y, rows.told) for params in candidates
                )
            if holdout.has_open_rows:
                tried += self._tune(place, rungs, candidates, models, holdout, loss)
                candidates = _going_on(candidates, [each.loss for each in tried[-len(candidates) :]], rungs, place)
                continue
            predicted = holdout.predict(models, None, loss)
            if place == 0 and len(rungs) > 1 and holdout.unscored(predicted, loss):
                _check_affordable(holdout, rungs)
            answers = holdout.score_predicted(predicted, loss)
            last = place + 1 == len(rungs)  # only its models are kept
            tried += [
                _Tried(place, params, model if last else None, answer.value, answer)
                for params, model, answer in zip(candidates, models, answers, strict=True)
            ]
            candidates = _going_on(candidates, [answer.value for answer in answers], rungs, place)
        return tried

    def _tune(
        self,
        place: int,
        rungs: Sequence[_Rung],
        candidates: list[dict[str, Any]],
        models: Sequence[Any],
        holdout: Holdout,
        loss: Loss,
    ) -> list[_Tried]:
        """Rank a rung's candidates by their losses on open rows, for free; the last rung's winner is confirmed."""
        losses, last = holdout.open_losses(models, loss=loss), place + 1 == len(rungs)
        answers: list[Answer | None] = [None] * len(models)
        if last:
            winner = min(range(len(losses)), key=losses.__getitem__)
            (answers[winner],) = holdout.score_predicted(holdout.predict([models[winner]], None, loss), loss)
        return [
            _Tried(place, params, model if last else None, value, answer)
            for params, model, value, answer in zip(candidates, models, losses, answers, strict=True)
        ]

    def _keep(self, tried: list[_Tried], rungs: Sequence[_Rung], loss: Loss) -> Self:
        """Store the results under scikit-learn's names."""
        scores = np.array([_score_of(each, loss) for each in tried])
        last = [i for i, each in enumerate(tried) if each.rung == len(rungs) - 1]
        self.best_index_ = max(last, key=lambda i: (scores[i, 0], -i))
        best = tried[self.best_index_]
        assert best.answer is not None
        self.best_params_, self.best_estimator_, self.best_answer_ = best.params, best.model, best.answer
        value, low, high = map(float, scores[self.best_index_])
        self.best_score_, self.best_interval_ = value, Interval(low, high)
        if self.verbose > 1:
            print(
                *(_line(each, *each_score) for each, each_score in zip(tried, scores, strict=True)),
                sep="\n",
                flush=True,
            )
        self.cv_results_ = _results([each.params for each in tried], scores)
        if self.factor is not None:
            self.cv_results_["iter"] = np.array([each.rung for each in tried])
            self.cv_results_["n_resources"] = np.array([rungs[each.rung].rows for each in tried])
            self.n_iterations_ = len(rungs)
            self.n_candidates_, self.n_resources_ = [each.candidates for each in rungs], [each.rows for each in rungs]
        self.n_splits_ = 1
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.best_estimator_, name):
                setattr(self, name, getattr(self.best_estimator_, name))
        return self

    def _rungs(self, candidates: int, y: Any) -> list[_Rung]:
        """How many candidates train on how many rows; a single rung unless it is successive halving.

        As in HalvingGridSearchCV with min_resources="exhaust": enough rungs that fewer than `factor` candidates are
        left in the last, provided that the first has enough rows to see every class.
        """
        factor, rows = self.factor, len(y)
        if factor is None:
            return [_Rung(candidates, rows)]
        if not (isinstance(factor, Real) and 2 <= float(factor) < math.inf):
            raise InvalidArgument(f"factor == {factor!r}, must be a number of at least 2, or None for no halving.")
        smallest = 2 * len(np.unique(y)) if is_classifier(self.estimator) else 2
        counts = [candidates]
        while factor ** len(counts) <= candidates and rows // factor ** len(counts) >= smallest:
            counts.append(math.ceil(counts[-1] / factor))
        return [
            _Rung(count, int(rows // factor**above))
            for count, above in zip(counts, range(len(counts))[::-1], strict=True)
        ]

    def _advice(self, own: bool, rungs: int) -> str:
        """What to do when rows or answers have run out."""
        each = "one round" if rungs == 1 else f"{rungs} rounds, one per rung,"
        planned = "GuardedSearchCV(..., rounds=2)" if own else f"afresh.holdout(..., rounds={2 * rungs})"
        return (
            f"A fit with other candidates than before takes {each} of the rows that validate. The first fit fixes how "
            f"many there are: plan for two fits with {planned} and questions= for as many candidates as they have, or "
            "validate on new rows."
        )

    def _candidates(self) -> list[dict[str, Any]]:
        if self.n_iter is None:
            found = list(ParameterGrid(self.param_grid))
        elif isinstance(self.param_grid, Mapping):
            found = list(ParameterSampler(self.param_grid, self.n_iter, random_state=self.random_state))
        else:
            raise InvalidArgument("n_iter needs one mapping of parameters to lists or distributions.")
        if not found:
            raise InvalidArgument(
                f"param_grid == {self.param_grid!r}, n_iter == {self.n_iter!r}: there is nothing to try."
            )
        return found

    def _split(self, given: TrainingRows) -> tuple[TrainingRows, Any, Any]:
        """The training rows, the guarded rows and their labels."""
        if not (isinstance(self.validation, Real) and 0 < self.validation < 1):
            raise InvalidArgument(f"validation == {self.validation!r}, must be a share of the rows, between 0 and 1.")
        train, validate = train_test_split(
            np.arange(len(given.y)), test_size=self.validation, random_state=self.random_state
        )
        guarded = given.at(validate)
        return given.at(train), guarded.X, guarded.y

    def _open(self, X: Any, y: Any, values: Any, rungs: Sequence[_Rung]) -> Holdout:
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
        fits = None if self.rounds is None else checks.whole("rounds", self.rounds, 1)
        questions = (fits or 1) * sum(each.candidates for each in rungs)
        try:
            return opened(
                questions=questions if self.questions is None else self.questions,
                rounds=None if fits is None else fits * len(rungs),
            )
        except PlanMismatch:
            if self.questions is not None:
                raise
            found = opened()  # a search for other candidates has opened these rows: its plan is in force
            if fits is not None and fits > max(found.guard.plan.rounds or 0, 1):
                found.close()
                raise
            return found

    @property
    def classes_(self) -> Any:
        """The classes of the best model."""
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
        """The best model's own score, on rows that are not guarded.

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
        """The tags of the estimator being tuned."""
        from sklearn.utils import get_tags

        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags, tags.target_tags = inner.regressor_tags, inner.target_tags
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.target_tags.multi_output = False
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_label = False
        return tags


class _Rung(NamedTuple):
    """How many candidates train on how many rows."""

    candidates: int
    rows: int


class _Tried(NamedTuple):
    """A candidate of a rung, with its answer."""

    rung: int
    params: dict[str, Any]
    model: Any
    loss: float
    """The loss on the rows by which candidates are compared: guarded or open ones."""
    answer: Answer | None
    """None for candidates that were compared on open rows and did not win."""


def _score_of(tried: _Tried, loss: Loss) -> tuple[float, float, float]:
    """The score, greater is better, and the ends of its interval if the guarded rows were asked."""
    top = 1.0 if isinstance(loss, ZeroOne) else 0.0
    _, low, high = (math.nan,) * 3 if tried.answer is None else as_score(tried.answer, loss)
    return top - tried.loss, low, high


def _line(tried: _Tried, value: float, low: float, high: float) -> str:
    """A candidate with its score, for verbose output."""
    params = ", ".join(f"{name}={given}" for name, given in tried.params.items())
    return f"{params}: score={value:.4f}" + ("" if math.isnan(low) else f" [{low:.4f}, {high:.4f}]")


def _going_on(
    candidates: list[dict[str, Any]], losses: Sequence[float], rungs: Sequence[_Rung], place: int
) -> list[dict[str, Any]]:
    """The candidates of the next rung; none after the last."""
    if place + 1 == len(rungs):
        return []
    best = sorted(range(len(losses)), key=losses.__getitem__)[: rungs[place + 1].candidates]
    return [candidates[i] for i in sorted(best)]


def _check_affordable(holdout: Holdout, rungs: Sequence[_Rung]) -> None:
    """Refuse to start a search that cannot be finished; one started before, whose first rung is free, may continue."""
    rounds, budget, wanted = rounds_left(holdout), holdout.budget, sum(each.candidates for each in rungs)
    if wanted <= budget.left and (rounds is None or len(rungs) <= rounds):
        return
    left = f"{budget.left:,} answers" if rounds is None else f"{rounds} rounds and {budget.left:,} answers"
    raise BudgetExhausted(
        asked=wanted,
        spent=budget.spent,
        questions=budget.spent + budget.left,
        message=f"this search takes {len(rungs)} rungs and {wanted:,} answers, but {left} are left. Nothing was "
        "charged; repeats are free.",
    )


def _fit(model: Any, params: dict[str, Any], X: Any, y: Any, fit_params: dict[str, Any]) -> Any:
    return model.set_params(**clone(params, safe=False)).fit(X, y, **fit_params)


def _results(candidates: list[dict[str, Any]], scores: Any) -> dict[str, Any]:
    """Results like GridSearchCV's, with the ends of the intervals."""
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
