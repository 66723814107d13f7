"""scikit-learn: a scorer that spends from a guard, and a search that tunes on guarded rows.

    from afresh.integrations.sklearn import scorer, with_holdout

    X, y, cv = with_holdout(X_train, y_train, holdout)
    GridSearchCV(model, grid, scoring=scorer(holdout), cv=cv, refit=False, error_score="raise").fit(X, y)

(Without error_score="raise", scikit-learn turns a refusal into NaN. HalvingGridSearchCV also needs
return_train_score=False and a resource= that is a parameter of the model.)

A score is an answer of the holdout's guard; scoring the same predictions again is free. The scorer accepts only the
features of the guarded holdout. It ignores the labels it receives: a refusal that depended on them would reveal the
hidden ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InvalidArgument, MissingExtra
from afresh.losses import make_loss
from afresh.models.holdout import check_holdout

try:
    import sklearn  # noqa: F401
except ImportError:
    raise MissingExtra("scikit-learn", "sklearn") from None

from scipy.sparse import issparse

from afresh.integrations.rounds import advising
from afresh.integrations.sklearn_search import GuardedSearchCV, as_score

if TYPE_CHECKING:
    from afresh.models.holdout import Holdout

__all__ = ["GuardedScorer", "GuardedSearchCV", "scorer", "with_holdout"]

_ONE_BY_ONE = (
    "A scorer receives one model at a time, and each is a round of its own; GuardedSearchCV(..., holdout=holdout) "
    "scores all candidates in one round."
)


def scorer(holdout: Holdout, *, loss: Any = None, intervals: bool = False) -> GuardedScorer:
    """Make a scorer for scikit-learn: the accuracy for zero-one loss, otherwise minus the loss; greater is better.

    It can be pickled if the holdout was made from data and its ledger is a file or a server: with n_jobs, processes
    share one budget.

    A search holds the rows it scores on, so the holdout's features must be public; for hidden features use
    GuardedSearchCV(holdout=...).

    Args:
        holdout: A holdout from `afresh.holdout`.
        loss: A loss to use instead of the holdout's own.
        intervals: Return score, low and high, which a search treats as three metrics.

    Returns:
        A value for a search's scoring=.

    Raises:
        InvalidArgument: The features are hidden, or the loss does not suit the labels.
    """
    if check_holdout(holdout).visibility == "hidden":
        raise InvalidArgument("a search would hold the hidden features; use GuardedSearchCV(..., holdout=holdout).")
    holdout.settled(loss)  # otherwise it would fail in the middle of a search
    return GuardedScorer(holdout, holdout.loss if loss is None else make_loss(loss), intervals)


class GuardedScorer:
    """The scorer that `scorer` makes: called with a fitted estimator and the holdout's features."""

    def __init__(self, holdout: Holdout, loss: Any, intervals: bool) -> None:
        """Not for users: see `scorer`.

        Args:
            holdout: A holdout from `afresh.holdout`.
            loss: The loss to average.
            intervals: Whether to return three numbers.
        """
        self.holdout, self.loss, self.intervals = holdout, loss, intervals

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float | dict[str, float]:
        """Score a fitted estimator."""
        if not same_rows(X, self.holdout.features):
            raise InvalidArgument(
                f"the scorer was handed data that are not the guarded holdout of {self.holdout.rows:,} rows; let "
                "`with_holdout` make X, y and cv. A search must not score training rows (return_train_score=False, "
                "also for HalvingGridSearchCV) nor subsample rows (resource= a parameter)."
            )
        loss = self.holdout.settled(self.loss)
        predicted = self.holdout.predict([estimator], None, loss, features=X)
        with advising(self.holdout, _ONE_BY_ONE):
            (answer,) = self.holdout.score_predicted(predicted, loss)
        value, low, high = as_score(answer, self.loss)
        return {"score": value, "low": low, "high": high} if self.intervals else value

    def __deepcopy__(self, memo: object) -> Self:
        """A clone of a search spends from the same guard."""
        return self

    def __repr__(self) -> str:
        """One line."""
        return f"GuardedScorer({self.holdout!r})"


def with_holdout(X: Any, y: Any, holdout: Holdout) -> tuple[Any, Any, list[tuple[Any, Any]]]:
    """Join training rows with the holdout's features, and make the split that trains on one and scores on the other.

    The holdout's labels are replaced by NaN or None: a search must not refit on them (refit=False).

    Args:
        X: Training rows.
        y: Their labels.
        holdout: A holdout from `afresh.holdout`.

    Returns:
        X, y and cv for a search.

    Raises:
        InvalidArgument: The columns or the number of labels do not fit.
    """
    labels = np.asarray(y)
    joined = _join(X, check_holdout(holdout).features)
    count = len(joined) - holdout.rows
    if labels.shape != (count,):
        raise InvalidArgument(
            f"there are {count:,} rows and labels of shape {labels.shape}; there must be one label per row."
        )
    hidden: Any = np.full(holdout.rows, np.nan if labels.dtype.kind in "biuf" else None)
    split = np.arange(count), np.arange(count, count + holdout.rows)
    return joined, np.concatenate([labels, hidden]), [split]


def _join(X: Any, features: Any) -> Any:
    """Training rows, then the holdout's, as the one kind of table that the training rows are."""
    if issparse(X):
        raise InvalidArgument("sparse features cannot be joined with the holdout's; pass X.toarray().")
    shape, width = np.shape(X), np.shape(features)[1]
    if len(shape) != 2 or shape[1] != width:
        raise InvalidArgument(
            f"X has shape {shape}, but the holdout has {width} features per row; pass the same features."
        )
    if not hasattr(X, "columns"):
        return np.concatenate([np.asarray(X), np.asarray(features)])
    names = list(X.columns)
    if (held := list(getattr(features, "columns", names))) != names:
        raise InvalidArgument(
            f"X has the columns {names}, but the holdout has {held}; pass the same columns in the same order."
        )
    if hasattr(X, "iloc"):
        import pandas as pd

        return pd.concat([X, pd.DataFrame(features, columns=names)], ignore_index=True)
    import polars as pl

    return pl.concat([X, pl.DataFrame(features, schema=names)], how="vertical_relaxed")


def same_rows(X: Any, features: Any) -> bool:
    """Whether these are the holdout's features, in the same order.

    Args:
        X: The rows a search passes.
        features: The holdout's features.

    Returns:
        True if all cells are equal.
    """
    a, b = _values(X), _values(features)
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "biuf" and b.dtype.kind in "biuf":
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _values(X: Any) -> NDArray[Any]:
    """The values as an array; missing values in a pandas frame become NaN, since NA is neither equal nor different."""
    return np.asarray(X.to_numpy(na_value=np.nan) if hasattr(X, "iloc") else X)
