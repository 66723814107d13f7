"""What both estimators have in common: where the rows come from, and the guard that keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.learn.descent import Sample, Scale, scale_of
from afresh.mechanisms.registry import AT_ONCE

if TYPE_CHECKING:
    from afresh.guard.guard import Guard
    from afresh.queries.asked import Asked
    from afresh.results.answer import Answer

Floats = NDArray[np.float64]
LABEL = "label"


class Guarded(BaseEstimator):  # type: ignore[misc]  # scikit-learn publishes no types
    """An estimator that is fitted by noisy gradients."""

    bounds: Any
    norm: float | None
    steps: int
    alpha: float
    confidence: float
    ledger: Any
    certificate_: Answer

    @property
    def score_interval_(self) -> tuple[float, float]:
        """The ends of the certified score or loss."""
        return self.certificate_.low, self.certificate_.high

    def _opened(self, X: Floats, y: Any) -> tuple[Guard, list[str]]:
        """A guard of these rows, planned for one fit."""
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

    def _sample(self, guard: Guard, features: Sequence[str], label: str, scale: Scale) -> tuple[Sample, Any]:
        """The rows as a fit sees them, and the label's column as it is."""
        from afresh.engines.embedded.rowwise import read_column

        names = [checks.text("feature", each, "the name of a column") for each in features]
        for name in (*names, checks.text("label", label, "the name of a column")):
            if name not in guard.desk.schema:
                raise InvalidArgument(f"there is no column {name!r}; there are {', '.join(guard.desk.schema)}.")
        engine = guard.desk.engine
        matrix = np.column_stack([numbers_of(read_column(engine, name), name) for name in names])
        about = ([*map(float, scale.low), *map(float, scale.high)], scale.norm, self._about())
        sample = Sample(guard, (*names, label), scale.rows(matrix), np.empty(0), about)
        return sample, read_column(engine, label)

    def _about(self) -> list[Any]:
        """What else names its questions."""
        raise NotImplementedError

    def _certified(
        self, guard: Guard, asked: Asked, before: int, weights: Floats, scale: Scale
    ) -> tuple[Floats, float]:
        """Ask for the certificate, keep what every fit ends with, and give coefficients and intercept."""
        (reply,) = guard.desk.answer([asked], guard.analyst)
        self.certificate_ = guard.desk.tell(reply)
        self.charged_ = guard.budget.spent - before
        self.weights_, self.n_iter_ = weights, self._steps
        return scale.unscaled(weights)

    def _scaled(self, columns: int) -> Scale:
        return scale_of(self.bounds, columns, self.norm)

    def _predicted(self, X: Any) -> Floats:
        """w.z of rows that are nobody's secret."""
        X = validate_data(self, X, reset=False, dtype=np.float64)
        found: Floats = self.weights_ @ self._scaled(X.shape[1]).rows(X)
        return found


def numbers_of(values: Any, name: str) -> Floats:
    """A column as numbers, NaN where one is missing."""
    if np.ma.getdata(values).dtype.kind not in "biuf":
        raise InvalidArgument(f"the column {name!r} has no numbers.")
    found: Floats = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
    return found
