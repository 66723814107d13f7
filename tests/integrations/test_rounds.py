"""Searches and studies in rounds: what is scored together shares fresh rows, and what follows is scored on others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.tree import DecisionTreeClassifier

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument, PlanMismatch
from afresh.integrations.optuna import GuardedObjective
from afresh.integrations.sklearn import GuardedSearchCV, scorer, with_holdout
from afresh.losses import Log, Squared
from afresh.models.vectors import VectorQuery
from afresh.receipts import verify

COMPLETE, PRUNED, FAILED = (optuna.trial.TrialState[name] for name in ("COMPLETE", "PRUNED", "FAIL"))
RNG = np.random.default_rng(7)
X = RNG.normal(size=(2000, 5))
Y = (X[:, 0] + 0.4 * X[:, 1] + 0.4 * RNG.normal(size=2000) > 0.5).astype(int)  # no two models here predict the same

optuna.logging.set_verbosity(optuna.logging.ERROR)


class Guesses(ClassifierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn has no types
    """Says what the first column says, wrong on a share of the rows; more rows to train on change a few guesses."""

    def __init__(self, share: float = 0.5, seed: int = 0) -> None:
        self.share, self.seed = share, seed

    def fit(self, X: Any, y: Any) -> Any:
        self.classes_, self.rows_ = np.unique(y), len(y)
        return self

    def predict(self, X: Any) -> Any:
        says = np.asarray(X)[:, 0]
        stable, changed = (np.random.default_rng([self.seed, x]).random(len(says)) for x in (0, self.rows_))
        wrong = np.where(changed < 0.9, stable, changed * 10 - 9) < self.share
        return np.where(wrong, 1 - says, says).astype(int)


def labelled(rows: int) -> tuple[Any, Any]:
    """A first column that says the label."""
    rng = np.random.default_rng(rows)
    y = rng.integers(0, 2, rows)
    return np.column_stack([y, rng.normal(size=rows)]), y


def noise(rows: int, seed: int) -> tuple[pd.DataFrame, Any]:
    """Columns that say nothing of the label: whatever is guessed is wrong on half of the rows."""
    rng = np.random.default_rng([rows, seed])
    return pd.DataFrame({"a": rng.integers(0, 2, rows), "b": rng.normal(size=rows)}), rng.integers(0, 2, rows)


def spans(holdout: afresh.Holdout) -> list[Any]:
    desk = holdout.guard.desk
    return [entry.span for entry in desk.ledger.entries(desk.terms)]


def trees(depths: list[int]) -> dict[str, Any]:
    return {"max_depth": depths, "random_state": [0]}


# searches


def test_thirty_candidates_of_accuracy_91_are_known_to_six_thousandths() -> None:
    features, y = labelled(100_000)
    grid = {"share": [0.09], "seed": list(range(30))}
    search = GuardedSearchCV(Guesses(), grid, ledger=":memory:").fit(features, y)
    assert search.best_score_ == pytest.approx(0.91, abs=0.01)  # 5.5 standard deviations of the best of 30
    widths = (search.cv_results_["high_test_score"] - search.cv_results_["low_test_score"]) / 2
    assert widths.max() <= 0.006
    assert search.best_interval_.half_width <= 0.006
    noisy = clone(search).set_params(rounds=None).fit(features, y)
    assert noisy.best_answer_.method != "rounds"
    assert noisy.best_interval_.half_width > 2 * search.best_interval_.half_width


def test_a_fit_is_one_round_and_a_further_one_must_be_planned(tmp_path: Path) -> None:
    def search(depths: list[int], ledger: str, **more: Any) -> GuardedSearchCV:
        return GuardedSearchCV(DecisionTreeClassifier(), trees(depths), ledger=tmp_path / ledger, **more).fit(X, Y)

    first = search([1, 2, 4, 8], "one")
    assert first.best_answer_.method == "rounds"
    assert search([1, 2, 4, 8], "one").best_interval_ == first.best_interval_
    assert search([4, 2], "one").best_answer_.charged == 0
    for depths in ([3], [1, 3]):
        with pytest.raises(
            BudgetExhausted, match=r"one round of the rows that validate.*GuardedSearchCV\(..., rounds=2"
        ):
            search(depths, "one")
    with pytest.raises(PlanMismatch, match="rounds=2"):  # too late
        search([3], "one", rounds=2)
    assert search([1, 2], "two", rounds=2).best_answer_.charged == 1
    assert search([2, 4, 8], "two", rounds=2).best_answer_.left == 0  # four answers in two rounds, fixed by the first
    assert search([1, 8], "two").best_answer_.charged == 0  # goes on with the plan in force
    with pytest.raises(BudgetExhausted, match=r"0 are left.*and questions= for as many candidates as they"):
        search([3], "two", rounds=2)
    with pytest.raises(InvalidArgument, match="rounds == 0"):
        search([1], "three", rounds=0)


def test_a_search_on_a_holdout_in_rounds() -> None:
    with afresh.holdout(X[1000:], Y[1000:], questions=40, rounds=2, ledger=":memory:") as holdout:
        search = GuardedSearchCV(DecisionTreeClassifier(), trees([1, 2, 4]), holdout=holdout)
        search.fit(X[:1000], Y[:1000])
        search.set_params(param_grid=trees([3, 5])).fit(X[:1000], Y[:1000])
        assert spans(holdout) == [(0, 500)] * 3 + [(500, 1000)] * 2
        with pytest.raises(BudgetExhausted, match=r"0 are left.*afresh.holdout\(..., rounds=2\)"):
            search.set_params(param_grid=trees([6])).fit(X[:1000], Y[:1000])
        with pytest.raises(InvalidArgument, match="leave out questions=, rounds= and"):
            search.set_params(rounds=2).fit(X[:1000], Y[:1000])
        assert verify(holdout.guard.receipt()).passed


# successive halving


def test_rungs_are_those_of_scikit_learn() -> None:
    grid, split = trees(list(range(1, 13))), [(np.arange(1500), np.arange(1500, 2000))]
    ours = GuardedSearchCV(DecisionTreeClassifier(), grid, factor=3, ledger=":memory:").fit(X, Y)
    theirs = HalvingGridSearchCV(DecisionTreeClassifier(), grid, factor=3, cv=split).fit(X, Y)
    assert (ours.n_candidates_, ours.n_iterations_) == (theirs.n_candidates_, theirs.n_iterations_) == ([12, 4, 2], 3)
    assert ours.n_resources_ == [166, 500, 1500]
    results = ours.cv_results_
    assert results["iter"].tolist() == theirs.cv_results_["iter"].tolist() == [0] * 12 + [1] * 4 + [2] * 2
    assert results["n_resources"].tolist() == [166] * 12 + [500] * 4 + [1500] * 2
    assert set(results) <= set(theirs.cv_results_) | {"low_test_score", "high_test_score"}
    best = max((16, 17), key=lambda i: results["mean_test_score"][i])
    assert (ours.best_index_, ours.best_params_) == (best, results["params"][best])
    assert ours.best_score_ == results["mean_test_score"][best] == pytest.approx(1 - ours.best_answer_.value)
    for rung, count in ((0, 4), (1, 2)):  # who goes on
        places = np.flatnonzero(results["iter"] == rung)
        top = sorted(results["mean_test_score"][places])[-count]
        kept = [results["params"][i] for i in np.flatnonzero(results["iter"] == rung + 1)]
        assert all(results["mean_test_score"][i] >= top for i in places if results["params"][i] in kept)
    assert clone(ours).fit(X, Y).best_answer_.charged > 0  # a ledger in memory is another one


def test_each_rung_is_a_round_of_one_scan_on_fresh_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with afresh.holdout(X[1000:], Y[1000:], questions=40, rounds=3, ledger=tmp_path / "ledger.sqlite") as holdout:
        search = GuardedSearchCV(
            DecisionTreeClassifier(), trees([1, 2, 3, 4, 5, 6, 7, 8, 9]), holdout=holdout, factor=3
        )
        scans, moments_of = list[int](), VectorQuery.moments_of

        def counted(*given: Any) -> Any:
            scans.append(1)
            return moments_of(*given)

        monkeypatch.setattr(VectorQuery, "moments_of", staticmethod(counted))
        search.fit(X[:1000], Y[:1000])
        assert len(scans) == 3
        assert list(dict.fromkeys(spans(holdout))) == [(0, 333), (333, 666), (666, 999)]
        assert holdout.score(search.best_estimator_).interval == search.best_answer_.interval
        again = clone(search).fit(X[:1000], Y[:1000])
        assert again.best_interval_ == search.best_interval_
        assert (again.best_answer_.charged, holdout.budget.rows_left) == (0, 1)
        assert verify(holdout.guard.receipt()).passed


def test_a_search_that_cannot_be_finished_is_not_begun() -> None:
    search = GuardedSearchCV(DecisionTreeClassifier(), trees(list(range(1, 10))), factor=3)
    for questions, rounds in ((40, 2), (12, 3)):
        words = rf"takes 3 rungs and 13 answers, but {rounds} rounds and {questions} answers are left.*rounds=6"
        with afresh.holdout(X[1000:], Y[1000:], questions=questions, rounds=rounds, ledger=":memory:") as holdout:
            with pytest.raises(BudgetExhausted, match=words):
                search.set_params(holdout=holdout).fit(X[:1000], Y[:1000])
            assert holdout.budget.spent == 0
    with afresh.holdout(X[1000:], Y[1000:], questions=12, ledger=":memory:", allow_wide=True) as holdout:
        with pytest.raises(BudgetExhausted, match="but 12 answers are left"):
            search.set_params(holdout=holdout).fit(X[:1000], Y[:1000])
        assert holdout.budget.spent == 0


@pytest.mark.parametrize("factor", [0, 1, 1.9, -3, np.nan, np.inf, "3", True])
def test_factors_that_do_not_halve(factor: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"factor == .*at least 2, or None"):
        GuardedSearchCV(DecisionTreeClassifier(), trees([1, 2]), factor=factor, ledger=":memory:").fit(X, Y)


def test_small_rungs_know_every_class_and_their_own_weights() -> None:
    """A class with 1% of the rows is in the smallest rung, or it could not be given a probability."""
    y = np.where(np.arange(2000) % 100 == 0, 2, Y)
    grid = {**trees(list(range(1, 10))), "min_samples_leaf": [1, 2, 3]}
    search = GuardedSearchCV(DecisionTreeClassifier(), grid, factor=3, loss=Log(), ledger=":memory:")
    assert search.fit(pd.DataFrame(X).add_prefix("f"), y).n_resources_ == [55, 166, 500, 1500]
    dummies = GuardedSearchCV(DummyClassifier(), {"strategy": ["prior", "most_frequent"]}, factor=2, ledger=":memory:")
    dummies.fit(X, Y, sample_weight=np.where(Y == 0, 1e-9, 1.0))
    assert (dummies.n_iterations_, dummies.predict(X).all()) == (2, True)
    few = GuardedSearchCV(DecisionTreeClassifier(), grid, factor=3, ledger=":memory:").fit(X[:80], Y[:80])
    assert few.n_resources_[0] >= 4  # two of every class
    assert few.n_iterations_ < 4
    ridge = GuardedSearchCV(Ridge(), {"alpha": [0.1, 1, 10]}, factor=3, loss=Squared(clip=4), ledger=":memory:")
    assert ridge.fit(X, Y.astype(float)).n_resources_ == [500, 1500]


def test_the_intervals_of_all_rungs_hold_at_once_the_winners_too() -> None:
    """At 50% on pure noise, survivors chosen by their luck: at most half of 100 searches may miss; fixed seeds."""
    searches, most = 100, int(binom.isf(1e-7, 100, 0.5))
    assert binom.sf(most, searches, 0.5) <= 1e-6
    missed = winners = 0
    for seed in range(searches):
        features, y = noise(300, seed)
        how: dict[str, Any] = {"simulation_seed": seed, "made_up": True, "classes": [0, 1]}
        with afresh.holdout(features[60:], y[60:], questions=13, rounds=3, confidence=0.5, **how) as holdout:
            search = GuardedSearchCV(Guesses(), {"seed": list(range(9))}, holdout=holdout, factor=3)
            search.fit(features[:60], y[:60])
        lows, highs = search.cv_results_["low_test_score"], search.cv_results_["high_test_score"]
        missed += bool(((lows > 0.5) | (highs < 0.5)).any())
        winners += 0.5 not in search.best_interval_
    assert 0 < missed <= most  # intervals that never miss would be too wide
    assert winners <= missed


# scikit-learn's own searches


def test_every_score_of_a_scorer_is_a_round_and_the_end_is_clear() -> None:
    tree = DecisionTreeClassifier(random_state=0)
    with afresh.holdout(X[1000:], Y[1000:], questions=40, rounds=4, ledger=":memory:") as holdout:
        joined, labels, cv = with_holdout(X[:1000], Y[:1000], holdout)
        how: dict[str, Any] = {"scoring": scorer(holdout, intervals=True), "cv": cv, "refit": False}
        search = GridSearchCV(tree, {"max_depth": [1, 2, 3]}, error_score="raise", **how).fit(joined, labels)
        assert spans(holdout) == [(0, 250), (250, 500), (500, 750)]
        assert (search.cv_results_["mean_test_low"] < search.cv_results_["mean_test_high"]).all()
        guarded, fitted = scorer(holdout), [clone(tree).set_params(max_depth=d).fit(X[:1000], Y[:1000]) for d in (4, 5)]
        score = guarded(fitted[0], X[1000:])
        with pytest.raises(BudgetExhausted, match=r"0 are left.*one model at a time.*GuardedSearchCV\(..., holdout="):
            guarded(fitted[1], X[1000:])
        assert guarded(fitted[0], X[1000:]) == score  # a repeat is free
        assert holdout.budget.left == 0  # no rows are left for a round


# Optuna


def study(**more: Any) -> optuna.Study:
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), **more)


def threshold(trial: optuna.Trial) -> Any:
    """No two trials predict the same: that would be a repeat."""
    cut = trial.suggest_float("cut", -1, 2)
    return lambda features: (features[:, 0] > cut) ^ (np.arange(len(features)) == trial.number)


def test_a_batch_of_trials_is_a_round() -> None:
    with afresh.holdout(X, Y, questions=40, rounds=4, ledger=":memory:") as holdout:
        objective, made = GuardedObjective(holdout, threshold), study()
        objective.optimize(made, batch=8, rounds=2)
        assert spans(holdout) == [(0, 500)] * 8 + [(500, 1000)] * 8
        assert [trial.state for trial in made.trials] == [COMPLETE] * 16
        for trial in made.trials:
            said = {name: trial.user_attrs[f"afresh_{name}"] for name in ("value", "low", "high", "charged", "left")}
            assert (said["value"], said["charged"]) == (trial.value, 1)
            assert said["low"] <= trial.value <= said["high"]
        assert made.trials[0].user_attrs["afresh_left"] == 32  # that of its batch
        objective.optimize(made, batch=16)  # until answers or rows run out: 24 and 1,000 are left
        assert spans(holdout)[16:] == [(1000, 1500)] * 16 + [(1500, 2000)] * 8
        assert (len(made.trials), holdout.budget.left) == (40, 0)
        objective.optimize(made, batch=4, rounds=3)  # nothing is left, so nothing is built
        assert len(made.trials) == 40
        best = objective.best(made)
        assert best["low"] <= np.mean((X[:, 0] > best["params"]["cut"]) != Y) <= best["high"]


def test_batches_end_with_the_rows_and_without_rounds_with_the_answers() -> None:
    with afresh.holdout(X, Y, questions=40, rounds=3, ledger=":memory:") as holdout:
        objective, made = GuardedObjective(holdout, threshold), study()
        objective.optimize(made, batch=5)
        assert (len(made.trials), holdout.budget.left) == (15, 0)
        made.optimize(objective, n_trials=5, callbacks=[objective.stop_when_spent])
        assert made.trials[-1].state == PRUNED
        assert "one trial at a time" in made.trials[-1].user_attrs["afresh_exhausted"]
        assert len(made.trials) == 16
    with afresh.holdout(X, Y, questions=12, ledger=":memory:") as holdout:
        GuardedObjective(holdout, threshold).optimize(made := study(), batch=5)
        assert [trial.state for trial in made.trials] == [COMPLETE] * 12
    with afresh.holdout(X, Y, questions=12, rounds=3, ledger=":memory:") as holdout:
        objective, made = GuardedObjective(holdout, threshold), study()
        made.optimize(objective, n_trials=9, callbacks=[objective.stop_when_spent])  # a round each
        assert [trial.state for trial in made.trials] == [COMPLETE] * 3


def test_trials_that_were_asked_for_and_not_scored() -> None:
    """Somebody else takes the rows while models are built; then a model cannot be built."""
    with afresh.holdout(X, Y, questions=40, rounds=2, ledger=":memory:") as holdout:
        objective, made = GuardedObjective(holdout, threshold), study()
        objective.optimize(made, batch=3, rounds=1)

        def late(trial: optuna.Trial) -> Any:
            if trial.number == 4:
                raise optuna.TrialPruned
            if trial.number == 5:
                holdout.guard.ask("label = 1")
            return threshold(trial)

        GuardedObjective(holdout, late).optimize(made, batch=3)
        assert [trial.state for trial in made.trials[3:]] == [PRUNED] * 3
        assert ["afresh_exhausted" in trial.user_attrs for trial in made.trials[3:]] == [True, False, True]
        assert "0 are left" in made.trials[3].user_attrs["afresh_exhausted"]
    with afresh.holdout(X, Y, questions=40, rounds=2, ledger=":memory:") as holdout:

        def broken(trial: optuna.Trial) -> Any:
            return threshold(trial) if trial.number < 2 else 1 / 0

        with pytest.raises(ZeroDivisionError):
            GuardedObjective(holdout, broken).optimize(made := study(), batch=4)
        assert [trial.state for trial in made.trials] == [FAILED] * 4
        with pytest.raises(InvalidArgument):
            GuardedObjective(holdout, lambda trial: X[:7, 0]).optimize(made, batch=4)
        assert all(trial.state == FAILED for trial in made.trials)
        assert holdout.budget.spent == 0


def test_generators_of_a_batch_go_on_side_by_side() -> None:
    def steps(trial: optuna.Trial) -> Iterator[Any]:
        flip = trial.suggest_categorical("flip", [False, True])
        for step in range(trial.suggest_int("steps", 1, 3)):
            cut = 0.5 + trial.number / 20 + step / 100
            yield ((X[:, 0] > cut) != flip).astype(int)

    with afresh.holdout(X, Y, questions=40, rounds=6, ledger=":memory:", allow_wide=True) as holdout:
        objective, made = GuardedObjective(holdout, steps), study()
        for flip, count in ((False, 1), (False, 2), (True, 3), (False, 2), (False, 3)):
            made.enqueue_trial({"flip": flip, "steps": count})
        objective.optimize(made, batch=2, rounds=2)  # 2 steps, then 2: the flipped one is pruned after its first
        done = made.trials[:4]
        assert [trial.state for trial in done] == [COMPLETE, COMPLETE, PRUNED, COMPLETE]
        assert [len(trial.intermediate_values) for trial in done] == [1, 2, 1, 2]
        assert [trial.user_attrs["afresh_charged"] for trial in done] == [1, 2, 1, 2]
        assert list(dict.fromkeys(spans(holdout))) == [(0, 333), (333, 666), (666, 999), (999, 1332)]
        objective.optimize(made, batch=1)  # 3 steps, and rows for 2
        assert made.trials[-1].state == PRUNED
        assert made.trials[-1].value == made.trials[-1].user_attrs["afresh_value"]


def test_mistakes_of_batches() -> None:
    with afresh.holdout(X, Y, questions=5, rounds=2, ledger=":memory:") as holdout:
        objective = GuardedObjective(holdout, threshold)
        for batch, rounds, words in ((0, None, "batch == 0"), (2, 1.5, "rounds == 1.5"), (2, 0, "rounds == 0")):
            with pytest.raises(InvalidArgument, match=words):
                objective.optimize(study(), batch=batch, rounds=rounds)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="minimize"):
            objective.optimize(study(direction="maximize"), batch=2)
        assert holdout.budget.spent == 0
