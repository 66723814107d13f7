"""Print the table of scikit-learn's bundled data in docs/models.md: python docs/figures/bundled.py

A third of the rows trains, a third is guarded, a third stays fresh. All candidates are scored on the guarded rows in
one round (simulated, so that no ledger is kept).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import ParameterGrid, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import afresh
from afresh.integrations.sklearn import GuardedSearchCV

SEED = 0
SQUARED = afresh.losses.Squared(clip=20_000)
CASES: list[tuple[str, Any, Any, dict[str, Any], Any]] = [
    (
        "breast cancer",
        load_breast_cancer,
        DecisionTreeClassifier(random_state=SEED),
        {"max_depth": [1, 2, 3, 5, 8], "min_samples_leaf": [1, 5]},
        "zero-one",
    ),
    (
        "digits",
        load_digits,
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
        {"logisticregression__C": np.logspace(-4, 2, 10)},
        "zero-one",
    ),
    ("diabetes", load_diabetes, Ridge(), {"alpha": np.logspace(-3, 2, 10)}, SQUARED),
]


def losses(loss: Any, predictions: Any, y: Any) -> float:
    """The exact mean loss."""
    if loss == "zero-one":
        return float(np.mean(predictions != y))
    return float(np.minimum((predictions - y) ** 2, loss.clip).mean())


def main() -> None:
    """Every set."""
    print("| data | guarded rows | best loss | its 95% interval | that model on fresh rows |")
    print("|---|---|---|---|---|")
    for name, load, estimator, grid, loss in CASES:
        X, y = load(return_X_y=True)
        X_train, X, y_train, y = train_test_split(X, y, test_size=2 / 3, random_state=SEED)
        X_held, X_fresh, y_held, y_fresh = train_test_split(X, y, test_size=1 / 2, random_state=SEED)
        plan: dict[str, Any] = {"questions": len(ParameterGrid(grid)), "rounds": 1}
        with afresh.holdout(X_held, y_held, loss=loss, simulation_seed=SEED, made_up=True, **plan) as holdout:
            search = GuardedSearchCV(estimator, grid, holdout=holdout).fit(X_train, y_train)
        answer, fresh = search.best_answer_, losses(loss, search.predict(X_fresh), y_fresh)
        print(f"| {name} | {len(y_held)} | {answer.value:.3g} | {answer.low:.3g} to {answer.high:.3g} | {fresh:.3g} |")


if __name__ == "__main__":
    main()
