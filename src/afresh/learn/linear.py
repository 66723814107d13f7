"""Linear regression through a guard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from afresh import checks
from afresh.learn.base import LABEL, Guarded

if TYPE_CHECKING:
    from afresh.guard.guard import Guard

Floats = NDArray[np.float64]


class LinearRegression(RegressorMixin, Guarded):  # type: ignore[misc]  # scikit-learn publishes no types
    """Least squares, fitted by noisy gradients: one answer of the guard per step.

    Features and target are clipped to public bounds and scaled to [-1, 1]; rows longer than `norm` are shortened to it,
    and residuals count up to half the target's range, as in Huber's regression. Choose the bounds without looking at
    the data. The mean squared error of the fitted model, clipped in the same way, is certified by one more answer.

    Args:
        bounds: The range features are clipped to: two numbers for all, or a pair for each.
        target_bounds: The range the target is clipped to.
        norm: The length of scaled rows, with a 1 for the intercept, beyond which they are shortened (default: 0.6 times
            the root of features + 1).
        steps: The number of gradients to ask for, one answer each.
        alpha: The strength of the ridge penalty, for scaled features and target.
        confidence: The probability that the certificate holds.
        ledger: Where answers are recorded (default: as in `afresh.open`).

    Attributes:
        coef_: Coefficients for features in their own units, for rows that are not shortened.
        intercept_: The intercept.
        certificate_: The mean squared error on new rows, an `Answer`.
        charged_: The number of answers charged for the fit.
    """

    def __init__(
        self,
        bounds: Any = (-3.0, 3.0),
        target_bounds: tuple[float, float] = (-1.0, 1.0),
        *,
        norm: float | None = None,
        steps: int = 50,
        alpha: float = 0.0,
        confidence: float = 0.95,
        ledger: Any = None,
    ) -> None:
        """Only keep them, as scikit-learn wants it."""
        self.bounds, self.target_bounds, self.norm, self.steps = bounds, target_bounds, norm, steps
        self.alpha, self.confidence, self.ledger = alpha, confidence, ledger

    def fit(self, X: Any, y: Any) -> Self:
        """Open a guard on these rows and fit through it. Repeating a fit is free and gives the same model.

        Args:
            X: Features.
            y: The target.

        Returns:
            Itself.

        Raises:
            InvalidArgument: The bounds are wrong, or there are too few rows for this many steps.
            BudgetExhausted: The budget of these rows, from an earlier plan, is too small.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        guard, names = self._opened(X, np.asarray(y, dtype=np.float64))
        with guard:
            self._fit(guard, names, LABEL, target=self._target)
        return self

    def fit_guard(self, guard: Guard, features: Sequence[str], label: str) -> Self:
        """Fit to columns of a guard's rows; nothing else is read.

        Args:
            guard: Made by `afresh.open(..., method="symmetrized")`, with room for `steps` + 1 answers.
            features: Columns of numbers.
            label: The target, a column of numbers; a missing one counts as the middle of its bounds.

        Returns:
            Itself.

        Raises:
            InvalidArgument: There is no such column, or it does not hold numbers.
            BudgetExhausted: The guard has no room for it; nothing was charged.
        """
        self._fit(guard, features, label, target=self._target)
        self.n_features_in_ = len(features)
        return self

    @property
    def _kind(self) -> str:
        return "linear"

    @property
    def _target(self) -> tuple[float, float]:
        return checks.squared_bounds("target_bounds", self.target_bounds)

    def _unscaled(self, coefficients: Floats, intercept: float) -> None:
        low, high = self._target
        self.coef_ = coefficients * (high - low) / 2
        self.intercept_ = intercept * (high - low) / 2 + (low + high) / 2

    def predict(self, X: Any) -> Floats:
        """Predict the target, within its bounds.

        Args:
            X: Features.

        Returns:
            One number per row.
        """
        check_is_fitted(self)
        low, high = self._target
        return (low + high) / 2 + np.clip(self._predicted(X), -1.0, 1.0) * (high - low) / 2

    def __sklearn_tags__(self) -> Any:
        """Mark poor scores on few rows: the noise depends on the number of rows."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = True
        return tags
