"""Print the table of scikit-learn's bundled data in docs/models.md: python docs/figures/bundled.py

A third of the rows trains, a third is guarded, a third stays fresh. Each candidate is scored once on the guarded rows:
by its exact loss, and by the guard's answer (with simulated noise, so that the run repeats).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
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
    print("| data | guarded rows | best exact loss | on fresh rows | best answer | its 95 % interval | on fresh rows |")
    print("|---|---|---|---|---|---|---|")
    for name, load, estimator, grid, loss in CASES:
        X, y = load(return_X_y=True)
        X_train, X, y_train, y = train_test_split(X, y, test_size=2 / 3, random_state=SEED)
        X_held, X_fresh, y_held, y_fresh = train_test_split(X, y, test_size=1 / 2, random_state=SEED)
        count = len(ParameterGrid(grid))
        with afresh.holdout(X_held, y_held, loss=loss, questions=count, simulation_seed=SEED, made_up=True) as holdout:
            search = GuardedSearchCV(estimator, grid, holdout=holdout).fit(X_train, y_train)
        models = [clone(estimator).set_params(**params).fit(X_train, y_train) for params in ParameterGrid(grid)]
        naive = min(models, key=lambda model: losses(loss, model.predict(X_held), y_held))
        exact, truth = losses(loss, naive.predict(X_held), y_held), losses(loss, naive.predict(X_fresh), y_fresh)
        answer, fresh = search.best_answer_, losses(loss, search.predict(X_fresh), y_fresh)
        told = f"{answer.value:.3g} | {answer.low:.3g} to {answer.high:.3g} | {fresh:.3g}"
        print(f"| {name} | {len(y_held)} | {exact:.3g} | {truth:.3g} | {told} |")


if __name__ == "__main__":
    main()
