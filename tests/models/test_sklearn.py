"""The scorer and the search inside scikit-learn, on its own data and estimators."""

import copy
import pickle
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_regression
from sklearn.ensemble import RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_validate, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.estimator_checks import estimator_checks_generator

import afresh
from afresh.errors import InvalidArgument
from afresh.integrations.sklearn import GuardedSearchCV, scorer, with_holdout
from afresh.losses import Squared

CANCER = load_breast_cancer(as_frame=True)
X_TRAIN, X_HELD, Y_TRAIN, Y_HELD = train_test_split(CANCER.data, CANCER.target, test_size=0.5, random_state=1)
GRID = {"max_depth": [1, 3, 5]}


def held(tmp_path: Path, **more: Any) -> afresh.Holdout:
    arguments = {"questions": 40, "ledger": tmp_path / "ledger.sqlite", "label": "malignant", **more}
    return afresh.holdout(X_HELD, Y_HELD, **arguments)


def test_grid_search_in_one_and_in_several_processes(tmp_path: Path) -> None:
    with held(tmp_path) as holdout:
        X, y, cv = with_holdout(X_TRAIN, Y_TRAIN, holdout)
        assert np.isnan(y[-len(Y_HELD) :]).all()
        tree = DecisionTreeClassifier(random_state=0)
        search = GridSearchCV(tree, GRID, scoring=scorer(holdout), cv=cv, refit=False, error_score="raise").fit(X, y)
        scores = search.cv_results_["mean_test_score"]
        assert holdout.budget.spent == len(set(scores)) == 3
        for params, score in zip(search.cv_results_["params"], scores, strict=True):
            model = tree.set_params(**params).fit(X_TRAIN, Y_TRAIN)
            answer = holdout.score(model)
            assert (answer.charged, 1 - answer.value) == (0, score)
        # two processes, one budget: the three are free now, the fourth is paid for in a worker
        several = GridSearchCV(
            tree,
            {"max_depth": [1, 3, 5, 2]},
            scoring=scorer(holdout, intervals=True),
            cv=cv,
            refit=False,
            n_jobs=2,
            error_score="raise",
        ).fit(X, y)
        assert holdout.budget.spent == 4
        assert several.cv_results_["mean_test_score"][:3] == pytest.approx(scores)
        assert (several.cv_results_["mean_test_low"] < several.cv_results_["mean_test_high"]).all()


def test_halving_and_cross_validation(tmp_path: Path) -> None:
    with held(tmp_path) as holdout:
        X, y, cv = with_holdout(X_TRAIN, Y_TRAIN, holdout)
        forest = RandomForestClassifier(random_state=0)
        HalvingGridSearchCV(
            forest,
            {"max_depth": [1, 3, 6]},
            resource="n_estimators",
            min_resources=2,
            max_resources=6,
            factor=3,
            cv=cv,
            scoring=scorer(holdout),
            refit=False,
            return_train_score=False,
            error_score="raise",
        ).fit(X, y)
        assert 1 <= holdout.budget.spent <= 4
        found = cross_validate(forest, X, y, cv=cv, scoring=scorer(holdout), error_score="raise")
        assert found["test_score"].shape == (1,)
        log = scorer(holdout, loss="log")
        found = cross_validate(forest, X, y, cv=cv, scoring=log, error_score="raise")
        assert -5 <= found["test_score"][0] <= 0


def test_other_data_are_refused(tmp_path: Path) -> None:
    with held(tmp_path) as holdout:
        X, y, cv = with_holdout(X_TRAIN, Y_TRAIN, holdout)
        guarded = scorer(holdout)
        tree = DecisionTreeClassifier(random_state=0).fit(X_TRAIN, Y_TRAIN)
        for other in (X_TRAIN, X_HELD[::-1], X_HELD.iloc[:-1], X_HELD + 1e-9):
            with pytest.raises(InvalidArgument, match="not the guarded holdout"):
                guarded(tree, other, Y_HELD)
        assert holdout.budget.spent == 0
        # whatever the labels say, it does not look at them
        assert guarded(tree, X_HELD, Y_HELD) == guarded(tree, X_HELD, 1 - Y_HELD) == guarded(tree, X_HELD)
        assert holdout.budget.spent == 1
        with pytest.raises(InvalidArgument, match="not the guarded holdout"):
            cross_validate(tree, X_TRAIN, Y_TRAIN, cv=2, scoring=guarded, error_score="raise")
        with pytest.raises(ValueError, match="NaN"):  # the hidden labels cannot be trained on by accident
            GridSearchCV(tree, GRID, scoring=guarded, cv=cv, refit=True, error_score="raise").fit(X, y)


def test_a_scorer_travels(tmp_path: Path) -> None:
    with held(tmp_path) as holdout:
        guarded = scorer(holdout)
        tree = DecisionTreeClassifier(random_state=0).fit(X_TRAIN, Y_TRAIN)
        score = guarded(tree, X_HELD)
        again = pickle.loads(pickle.dumps(guarded))
        assert again(tree, X_HELD) == score
        assert again.holdout.guard.budget.spent == 1
        assert again.holdout is pickle.loads(pickle.dumps(guarded)).holdout
        assert copy.deepcopy(guarded) is guarded
        assert "GuardedScorer" in repr(guarded)
        again.holdout.close()
    with held(tmp_path, ledger=":memory:") as holdout, pytest.raises(TypeError, match="one budget"):
        pickle.dumps(scorer(holdout))


def test_text_labels_and_arrays(tmp_path: Path) -> None:
    data = load_digits()
    names = np.array([f"digit {i}" for i in range(10)])[data.target]
    a, b, ya, yb = train_test_split(data.data, names, test_size=0.5, random_state=1)
    with afresh.holdout(b, yb, questions=20, ledger=":memory:") as holdout:
        X, y, cv = with_holdout(a, ya, holdout)
        model = make_pipeline(StandardScaler(), GaussianNB())
        found = cross_validate(model, X, y, cv=cv, scoring=scorer(holdout), error_score="raise")
        assert found["test_score"][0] > 0.7


def test_guarded_search_is_honest_about_its_winner() -> None:
    """Pure noise: the winner looks good on the rows it was chosen on, and its interval contains the truth."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 20)), rng.integers(0, 2, 3000)
    grid = {"max_depth": [1, 2, 4, 8], "random_state": list(range(5)), "splitter": ["random"]}
    search = GuardedSearchCV(DecisionTreeClassifier(), grid, validation=0.5, random_state=3, n_jobs=1)
    search.fit(X, y)
    assert 0.5 in search.best_interval_
    assert search.best_answer_.left < 20 - 15
    assert search.best_score_ == pytest.approx(1 - search.best_answer_.value)
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    again = clone(search).fit(X, y)
    assert again.best_answer_.charged == 0
    assert again.best_params_ == search.best_params_


def test_guarded_search_on_a_learnable_problem() -> None:
    X, y = make_classification(4000, 10, random_state=0)
    fresh, truth = X[3000:], y[3000:]
    grid = {"C": [1e-4, 1e-2, 1.0]}
    search = GuardedSearchCV(LogisticRegression(), grid, validation=0.5, random_state=0, ledger=":memory:")
    search.fit(pd.DataFrame(X[:3000]).add_prefix("f"), y[:3000])
    fresh_frame = pd.DataFrame(fresh).add_prefix("f")
    assert np.mean(search.predict(fresh_frame) != truth) in search.best_interval_
    assert search.predict_proba(fresh_frame).shape == (1000, 2)
    assert search.score(fresh_frame, truth) > 0.7
    assert search.decision_function(fresh_frame).shape == (1000,)
    assert search.classes_.tolist() == [0, 1]
    assert search.feature_names_in_[0] == "f0"
    assert not hasattr(GuardedSearchCV(DecisionTreeClassifier(), grid), "decision_function")


def test_guarded_search_with_a_holdout_and_random_parameters() -> None:
    X, y = make_regression(2000, 5, noise=20.0, random_state=0)
    with afresh.holdout(X[1000:], y[1000:], loss=Squared(clip=2000), questions=8, ledger=":memory:") as holdout:
        search = GuardedSearchCV(Ridge(), {"alpha": [0.1, 1, 10, 1e5]}, holdout=holdout, n_iter=3, random_state=0)
        search.fit(X[:1000], y[:1000])
        assert search.best_params_["alpha"] < 1e5
        assert search.best_score_ == -search.best_answer_.value
        assert len(search.cv_results_["params"]) == 3
    with pytest.raises(InvalidArgument, match="Squared"):
        GuardedSearchCV(Ridge(), {"alpha": [1]}).fit(X, y)
    with pytest.raises(InvalidArgument, match="validation"):
        GuardedSearchCV(Ridge(), {"alpha": [1]}, validation=2).fit(X, y)
    with pytest.raises(InvalidArgument, match="one mapping"):
        GuardedSearchCV(Ridge(), [{"alpha": [1]}], n_iter=1).fit(X, y)


class Repeated(GuardedSearchCV):
    """Sees every row of scikit-learn's checks many times: most have fewer rows than a guard needs."""

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Any:
        if not issparse(X) and y is not None:
            X, y = (each if hasattr(each, "iloc") else np.asarray(each) for each in (X, y))
            if X.ndim == 2 and len(X) == y.size > 0:
                rows = np.resize(np.arange(len(X)), max(60, 10 * len(X)))
                X, y = _safe_indexing(X, rows), _safe_indexing(y, rows)
        return super().fit(X, y, **fit_params)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("estimator", "grid", "loss"),
    [(LogisticRegression(), {"C": [1.0]}, None), (Ridge(), {"alpha": [1.0]}, Squared(clip=100.0))],
    ids=["classifier", "regressor"],
)
def test_scikit_learn_finds_nothing_wrong(estimator: Any, grid: Any, loss: Any) -> None:
    search = Repeated(estimator, grid, loss=loss, validation=0.5, random_state=0, ledger=":memory:")
    passed, failed = 0, {}
    for made, check in estimator_checks_generator(search):
        try:
            check(made)
            passed += 1
        except SkipTest:  # by scikit-learn itself: array APIs other than numpy's
            assert check.func.__name__ == "check_array_api_input"
        except Exception as error:
            failed[check.func.__name__] = repr(error)[:300]
    assert failed == {}
    assert passed >= 50
