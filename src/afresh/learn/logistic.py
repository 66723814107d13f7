"""Logistic regression through a guard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from afresh.learn.base import LABEL, Guarded

if TYPE_CHECKING:
    from afresh.guard.guard import Guard

Floats = NDArray[np.float64]


class LogisticRegression(ClassifierMixin, Guarded):  # type: ignore[misc]  # scikit-learn publishes no types
    """Logistic regression of two classes, fitted by noisy gradients: one answer of the guard per step.

    Features are clipped to public bounds and scaled to [-1, 1]; rows longer than `norm` are shortened to it. Choose
    both without looking at the data. The accuracy of the fitted model is certified by one more answer.

    Args:
        bounds: The range features are clipped to: two numbers for all, or a pair for each.
        norm: The length of scaled rows, with a 1 for the intercept, beyond which they are shortened (default: 0.6 times
            the root of features + 1).
        steps: The number of gradients to ask for, one answer each.
        alpha: The strength of the ridge penalty, for scaled features.
        confidence: The probability that the certificate holds.
        ledger: Where answers are recorded (default: as in `afresh.open`).

    Attributes:
        coef_: Coefficients for features in their own units, for rows that are not shortened.
        intercept_: The intercept.
        classes_: The two classes.
        certificate_: The accuracy on new rows, an `Answer`.
        charged_: The number of answers charged for the fit.
    """

    def __init__(
        self,
        bounds: Any = (-3.0, 3.0),
        *,
        norm: float | None = None,
        steps: int = 50,
        alpha: float = 0.0,
        confidence: float = 0.95,
        ledger: Any = None,
    ) -> None:
        """Only keep them, as scikit-learn wants it."""
        self.bounds, self.norm, self.steps = bounds, norm, steps
        self.alpha, self.confidence, self.ledger = alpha, confidence, ledger

    def fit(self, X: Any, y: Any) -> Self:
        """Open a guard on these rows and fit through it. Repeating a fit is free and gives the same model.

        Args:
            X: Features.
            y: Labels of two classes. The two classes are considered public; the rows' labels are not.

        Returns:
            Itself.

        Raises:
            InvalidArgument: There are not two classes, or too few rows for this many steps.
            BudgetExhausted: The budget of these rows, from an earlier plan, is too small.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        classes = np.unique(y)
        if len(classes) != 2:
            raise ValueError(f"Only binary classification is supported, and y has {len(classes)} class(es).")
        guard, names = self._opened(X, y == classes[1])
        with guard:
            self._fit(guard, names, LABEL, classes=(False, True))
        self.classes_ = classes
        return self

    def fit_guard(self, guard: Guard, features: Sequence[str], label: str, classes: Sequence[Any] = (0, 1)) -> Self:
        """Fit to columns of a guard's rows; nothing else is read.

        Args:
            guard: Made by `afresh.open(..., method="symmetrized")`, with room for `steps` + 1 answers.
            features: Columns of numbers.
            label: A column with two classes.
            classes: The two classes, the positive one second; any other label counts as the first.

        Returns:
            Itself.

        Raises:
            InvalidArgument: There is no such column, or a feature does not hold numbers.
            BudgetExhausted: The guard has no room for it; nothing was charged.
        """
        self._fit(guard, features, label, classes=tuple(classes))
        self.classes_, self.n_features_in_ = np.asarray(classes), len(features)
        return self

    @property
    def _kind(self) -> str:
        return "logistic"

    def _unscaled(self, coefficients: Floats, intercept: float) -> None:
        self.coef_, self.intercept_ = coefficients[None, :], np.array([intercept])

    def decision_function(self, X: Any) -> Floats:
        """Compute the log-odds of the second class.

        Args:
            X: Features.

        Returns:
            One number per row.
        """
        check_is_fitted(self)
        return self._predicted(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the likelier class of every row.

        Args:
            X: Features.

        Returns:
            One class per row.
        """
        second = self.decision_function(X) > 0
        found: NDArray[Any] = self.classes_[second.astype(int)]
        return found

    def predict_proba(self, X: Any) -> Floats:
        """Predict the probabilities of both classes.

        Args:
            X: Features.

        Returns:
            One row per input row, with two columns.
        """
        second = expit(self.decision_function(X))
        return np.column_stack([1 - second, second])

    def __sklearn_tags__(self) -> Any:
        """Mark two classes, and poor scores on few rows: the noise depends on the number of rows."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = True
        return tags
