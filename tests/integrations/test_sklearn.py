"""The scorer and the search inside scikit-learn, on its own data and estimators."""

import copy
import pickle
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, make_classification, make_regression
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV, cross_validate, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.estimator_checks import estimator_checks_generator

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument, PlanMismatch
from afresh.integrations.sklearn import GuardedSearchCV, scorer, with_holdout
from afresh.losses import Squared

CANCER = load_breast_cancer(as_frame=True)
X_TRAIN, X_HELD, Y_TRAIN, Y_HELD = train_test_split(CANCER.data, CANCER.target, test_size=0.5, random_state=1)
GRID = {"max_depth": [1, 3, 5]}


def held(tmp_path: Path, **more: Any) -> afresh.Holdout:
    arguments = {
        "questions": 40,
        "allow_wide": True,
        "ledger": tmp_path / "ledger.sqlite",
        "label": "malignant",
        **more,
    }
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


def test_a_budget_that_ends_in_another_process(tmp_path: Path) -> None:
    with held(tmp_path, questions=2) as holdout:
        X, y, cv = with_holdout(X_TRAIN, Y_TRAIN, holdout)
        tree, grid = DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3, 4]}
        search = GridSearchCV(tree, grid, scoring=scorer(holdout), cv=cv, refit=False, n_jobs=2, error_score="raise")
        with pytest.raises(BudgetExhausted, match="2 of 2 are spent"):
            search.fit(X, y)


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


@pytest.mark.parametrize("kind", ["string", "object", "Int64", "datetime64[ns]"])
def test_missing_features_are_the_same_features(kind: str, tmp_path: Path) -> None:
    values = ["a", "b"] if kind in ("string", "object") else [1, 2]
    frame: Any = pd.DataFrame({"x": pd.Series(values * 200, dtype=kind), "z": np.arange(400.0)})
    frame.loc[::7, "x"] = None
    other, less = frame.copy(), frame.copy()
    other.loc[1, "x"], less.loc[1, "x"] = frame.loc[2, "x"], None
    model = DummyClassifier(strategy="most_frequent").fit(frame, frame.z > 100)
    with afresh.holdout(frame, frame.z > 200, questions=5, ledger=":memory:") as holdout:
        guarded = scorer(holdout)
        assert guarded(model, frame.copy()) == guarded(model, frame)
        for changed in (other, less):
            with pytest.raises(InvalidArgument, match="not the guarded holdout"):
                guarded(model, changed)


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
    with held(tmp_path, ledger=":memory:") as holdout:
        with pytest.raises(TypeError, match="one budget"):
            pickle.dumps(scorer(holdout))
        assert clone(GuardedSearchCV(tree, GRID, holdout=holdout)).holdout is holdout


def test_other_things_than_rows_are_refused_in_words(tmp_path: Path) -> None:
    with held(tmp_path) as holdout:
        tree = DecisionTreeClassifier(random_state=0).fit(X_TRAIN, Y_TRAIN)
        for other in (None, 3, csr_matrix(X_HELD)):
            with pytest.raises(InvalidArgument, match="not the guarded holdout"):
                scorer(holdout)(tree, other)
        with pytest.raises(TypeError, match="sample_weight"):  # not silently left out
            scorer(holdout)(tree, X_HELD, sample_weight=np.ones(len(X_HELD)))  # type: ignore[call-arg]
        for X, y, words in (
            (X_TRAIN, Y_TRAIN[:-1], "one label per row"),
            (X_TRAIN, Y_TRAIN.to_frame(), "one label per row"),
            (X_TRAIN[X_TRAIN.columns[::-1]], Y_TRAIN, "in the same order"),
            (X_TRAIN.iloc[:, 1:], Y_TRAIN, "30 features"),
            (X_TRAIN.to_numpy()[:, 0], Y_TRAIN, "30 features"),
            (csr_matrix(X_TRAIN), Y_TRAIN, "toarray"),
        ):
            with pytest.raises(InvalidArgument, match=words):
                with_holdout(X, y, holdout)
        assert holdout.budget.spent == 0
        for wrong in (lambda: scorer(holdout.guard), lambda: with_holdout(X_TRAIN, Y_TRAIN, holdout.guard)):  # type: ignore[arg-type]
            with pytest.raises(InvalidArgument, match="holdout is a Guard"):
                wrong()


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_frames_stay_frames(kind: str) -> None:
    """Columns have their names and types where a pipeline asks for them, and may miss values."""
    frame = CANCER.data[["mean area", "mean texture"]].assign(size=np.where(CANCER.data["mean area"] > 600, "l", "s"))
    if kind == "pandas":
        frame = frame.astype({"mean texture": "Float64"})
        frame.loc[::7, "mean texture"] = pd.NA
    table: Any = frame if kind == "pandas" else pl.from_pandas(frame)
    columns = make_column_transformer((OneHotEncoder(sparse_output=False), ["size"]), remainder="passthrough")
    columns.set_output(transform=kind)
    model = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=5))
    with afresh.holdout(table[300:], CANCER.target[300:], questions=20, ledger=":memory:", allow_wide=True) as holdout:
        X, y, cv = with_holdout(table[:300], CANCER.target[:300], holdout)
        assert isinstance(X, type(table))
        found = cross_validate(model, X, y, cv=cv, scoring=scorer(holdout), error_score="raise")
        assert found["test_score"][0] > 0.5


def test_text_labels_and_arrays(tmp_path: Path) -> None:
    data = load_digits()
    names = np.array([f"digit {i}" for i in range(10)])[data.target]
    a, b, ya, yb = train_test_split(data.data, names, test_size=0.5, random_state=1)
    with afresh.holdout(b, yb, questions=20, ledger=":memory:", allow_wide=True) as holdout:
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
    assert search.best_interval_.low <= search.best_score_ <= search.best_interval_.high
    assert search.best_interval_.low == 1 - search.best_answer_.high
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.cv_results_["rank_test_score"][search.best_index_] == 1
    again = clone(search).fit(X, y)
    assert again.best_answer_.charged == 0
    assert again.best_params_ == search.best_params_


def test_a_search_says_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = make_classification(400, 10, random_state=0)
    for verbose, lines in ((0, 0), (1, 1), (2, 3)):
        search = GuardedSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, ledger=":memory:", verbose=verbose)
        search.fit(X, y)
        said = capsys.readouterr().out
        assert said.count("\n") == lines
    assert said.startswith("Fitting 2 candidates on 300 rows\nC=0.01: score=0.")


def test_guarded_search_on_a_learnable_problem() -> None:
    X, y = make_classification(4000, 10, random_state=0)
    fresh, truth = X[3000:], y[3000:]
    grid = {"C": [1e-4, 1e-2, 1.0]}
    search = GuardedSearchCV(LogisticRegression(), grid, validation=0.5, random_state=0, ledger=":memory:")
    search.fit(pd.DataFrame(X[:3000]).add_prefix("f"), y[:3000])
    fresh_frame = pd.DataFrame(fresh).add_prefix("f")
    low, high = search.best_interval_.low, search.best_interval_.high
    assert low - 0.05 < np.mean(search.predict(fresh_frame) == truth) < high + 0.05  # 5 deviations of 1000 rows
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


def test_a_search_goes_on_with_the_plan_in_force(tmp_path: Path) -> None:
    X, y = make_classification(2000, 5, random_state=0)

    def search(depths: list[int], **more: Any) -> GuardedSearchCV:
        grid = {"max_depth": depths, "random_state": [0]}
        return GuardedSearchCV(DecisionTreeClassifier(), grid, ledger=tmp_path / "ledger.sqlite", **more).fit(X, y)

    first = search([1, 2, 4, 8])
    assert search([1, 2, 4, 8]).best_answer_.charged == 0  # the same rows are guarded again
    again = search([2, 4])  # fewer candidates; they need not be named a mistake in the plan
    assert again.best_answer_.charged == 0
    assert again.best_answer_.left == first.best_answer_.left
    with pytest.raises(BudgetExhausted):
        search([3, 5, 6, 7, 9])
    with pytest.raises(PlanMismatch, match="questions=3"):
        search([1], questions=3)


def test_equal_candidates_share_their_rank_and_weights_are_split() -> None:
    X, y = make_classification(2000, 5, random_state=0)
    weights = np.where(y == 1, 1e-9, 1.0)
    grid = {"strategy": ["prior", "most_frequent"]}
    search = GuardedSearchCV(DummyClassifier(), grid, ledger=":memory:")
    assert search.fit(X, y, sample_weight=weights).cv_results_["rank_test_score"].tolist() == [1, 1]
    assert not search.predict(X).any()  # the weights of the rows that train, not of others


def test_mistakes_of_a_search() -> None:
    X, y = make_classification(2000, 5, random_state=0)
    with afresh.holdout(X[1000:], y[1000:], questions=5, ledger=":memory:") as holdout:
        for arguments, words in (
            ({"holdout": holdout, "questions": 7}, "leave out questions="),
            ({"holdout": (X, y)}, "holdout is a tuple"),
            ({"n_iter": 0}, "nothing to try"),
            ({"validation": "half"}, "validation == 'half'"),
        ):
            with pytest.raises(InvalidArgument, match=words):
                GuardedSearchCV(DecisionTreeClassifier(), GRID, **arguments).fit(X[:1000], y[:1000])
        assert holdout.budget.spent == 0
        copied = clone(GuardedSearchCV(DecisionTreeClassifier(), GRID, holdout=holdout))
        assert copied.holdout is holdout


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
    ("estimator", "grid", "more"),
    [
        (LogisticRegression(), {"C": [1.0]}, {}),
        (Ridge(), {"alpha": [1.0]}, {"loss": Squared(clip=100.0)}),
        (DecisionTreeClassifier(random_state=0), {"max_depth": [9]}, {}),  # of several labels, which a search is not
        (DecisionTreeClassifier(random_state=0), {"max_depth": [8, 9]}, {"factor": 2}),
    ],
    ids=["classifier", "regressor", "tree", "halving"],
)
def test_scikit_learn_finds_nothing_wrong(estimator: Any, grid: Any, more: dict[str, Any]) -> None:
    search = Repeated(estimator, grid, validation=0.5, random_state=0, ledger=":memory:", **more)
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
