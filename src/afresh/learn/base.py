"""What both estimators have in common: where the rows come from, and the guard in front of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from afresh import checks
from afresh.learn.descent import Scale, scale_of
from afresh.learn.fitting import checked
from afresh.mechanisms.registry import AT_ONCE
from afresh.results.fitted import Task

if TYPE_CHECKING:
    from afresh.guard.guard import Guard
    from afresh.results.answer import Answer

Floats = NDArray[np.float64]
LABEL = "label"


class Guarded(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn publishes no types
    """An estimator that is fitted by noisy gradients."""

    bounds: Any
    norm: float | None
    steps: int
    alpha: float
    confidence: float
    ledger: Any
    certificate_: Answer
    weights_: Floats

    @property
    def score_interval_(self) -> tuple[float, float]:
        """The ends of the certified score or loss."""
        return self.certificate_.low, self.certificate_.high

    def _opened(self, X: Floats, y: Any) -> tuple[Guard, list[str]]:
        """A guard on these rows, planned for one fit."""
        import pyarrow as pa

        import afresh

        names = [f"x{place}" for place in range(X.shape[1])]
        columns = {name: pa.array(X[:, place]) for place, name in enumerate(names)}
        guard = afresh.open(
            pa.table({**columns, LABEL: pa.array(np.asarray(y).tolist())}),
            questions=self._steps + 1,
            confidence=self.confidence,
            method=AT_ONCE,
            ledger=self.ledger,
            allow_wide=True,
        )
        return guard, names

    @property
    def _steps(self) -> int:
        return checks.whole("steps", self.steps, 1, 10**6)

    def _fit(self, guard: Guard, features: Sequence[str], label: str, **more: Any) -> None:
        """Fit where the rows are, and keep the result."""
        kind, scale = self._kind, self._scaled(len(features))
        fitted = guard.fit(
            checked(Task(kind, tuple(features), label, self.bounds, self.norm, self._steps, float(self.alpha), **more))
        )
        self.certificate_, self.charged_ = fitted.certificate, fitted.charged
        self.weights_, self.n_iter_ = np.array(fitted.weights), self._steps
        self._unscaled(*scale.unscaled(self.weights_))

    @property
    @abstractmethod
    def _kind(self) -> str:
        """Of its task."""

    @abstractmethod
    def _unscaled(self, coefficients: Floats, intercept: float) -> None:
        """Keep `coef_` and `intercept_`, in their own units."""

    def _scaled(self, columns: int) -> Scale:
        return scale_of(self.bounds, columns, self.norm)

    def _predicted(self, X: Any) -> Floats:
        """w.z of rows that are nobody's secret."""
        X = validate_data(self, X, reset=False, dtype=np.float64)
        found: Floats = self.weights_ @ self._scaled(X.shape[1]).rows(X)
        return found
