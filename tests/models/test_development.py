"""Development rows of the analyst's own guess, all guarded rows confirm; tuning on open rows costs nothing."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import afresh
from afresh.errors import InvalidArgument, PlanMismatch
from afresh.integrations.optuna import GuardedObjective
from afresh.integrations.sklearn import GuardedSearchCV
from afresh.receipts import verify


def made(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)


(X, Y), DEV, (XT, YT) = made(3000, 1), made(800, 2), made(600, 3)


def fine(features: Any) -> Any:
    return (np.asarray(features)[:, 0] > 0).astype(int)


def rough(features: Any) -> Any:
    return (np.asarray(features)[:, 0] > 0.8).astype(int)


@pytest.mark.parametrize("features", ["public", "hidden"])
@pytest.mark.parametrize("frame", [False, True])
def test_own_rows_guess_and_all_others_confirm(features: Any, frame: bool, tmp_path: Path) -> None:
    given: Any = (pd.DataFrame(X), pd.DataFrame(DEV[0])) if frame else (X, DEV[0])
    if frame:
        for each in given:
            each.columns = ["u", "v"]
    book = tmp_path / "ledger.sqlite"
    with afresh.holdout(given[0], Y, open=(given[1], DEV[1]), questions=30, features=features, ledger=book) as holdout:
        plan = holdout.guard.plan
        assert (plan.parameters["guarded"], plan.parameters["guessing"], plan.open) == (3000, 800, None)
        answer = holdout.score(fine, name="fine")
        assert answer.value == pytest.approx((fine(DEV[0]) != DEV[1]).mean())  # the guess, exactly
        assert answer.confirmed is True
        assert (fine(X) != Y).mean() in answer.interval
        compared: Any = holdout.compare(rough, fine, names=("rough", "fine"))
        assert compared.confirmed is True
        assert holdout.claim(fine, better_than=rough, names=["fine", "rough"])
        assert len(holdout.open_rows()[1]) == 800
        assert holdout.open_losses([fine]) == [pytest.approx((fine(DEV[0]) != DEV[1]).mean())]
        assert verify(holdout.guard.receipt()).passed
        if features == "public":
            assert holdout.score(fine(holdout.features)).charged == 0  # the same predictions, the same question
            with pytest.raises(InvalidArgument, match=r"3,?800"):
                holdout.score(fine(X))
            column = "u" if frame else "x0"
            assert holdout.guard.ask(f"label = 1 AND {column} > 0").confirmed is True
            with pickle.loads(pickle.dumps(holdout)) as same:
                assert same.score(fine, name="fine").charged == 0
    with pytest.raises(InvalidArgument, match="development data of your own"):
        afresh.holdout(given[0], Y, ledger=book)
    with pytest.raises(PlanMismatch):
        afresh.holdout(given[0], Y, open=0.5, ledger=book)


def test_misleading_development_rows_fail_their_checks_and_nothing_else() -> None:
    """Rows of another population guess wrongly: the answer says so, and its interval holds all the same."""
    with afresh.holdout(X, Y, open=(DEV[0], 1 - DEV[1]), questions=30, ledger=":memory:") as holdout:
        answer = holdout.score(fine)
        assert answer.confirmed is False
        assert answer.widened is not None
        assert answer.widened > 0
        assert "Not confirmed" in str(answer)
        assert (fine(X) != Y).mean() in answer.interval
        assert answer.to_dict()["confirmed"] is False
        compared = holdout.compare(rough, fine)
        assert "onfirmed" in str(compared)
        assert "onfirmed" in compared._repr_html_()


def test_guarded_rows_are_no_development_data() -> None:
    """In whatever order: whoever holds the rows that check has nothing to be checked by."""
    for order in (slice(None), slice(None, None, -1)):
        with pytest.raises(InvalidArgument, match="are the guarded rows themselves"):
            afresh.holdout(X, Y, questions=20, open=(X[order], Y[order]), ledger=":memory:")


def test_development_data_that_share_some_rows_are_refused_by_their_public_features() -> None:
    """Whatever their labels, of which a refusal must not tell; features that repeat anyway tell nothing."""
    mixed = np.concatenate([DEV[0], X[5:8]])
    for labels in (Y[5:8], 1 - Y[5:8]):
        brought = mixed, np.concatenate([DEV[1], labels])
        with pytest.raises(InvalidArgument, match=rf"3 of the {len(mixed):,} development rows have the features"):
            afresh.holdout(X, Y, questions=20, open=brought, ledger=":memory:")
        afresh.holdout(X, Y, questions=20, open=brought, features="hidden", ledger=":memory:").close()
    few, others = np.round(X).clip(-1, 1), np.round(DEV[0]).clip(-1, 1)
    afresh.holdout(few, Y, questions=20, open=(others, DEV[1]), ledger=":memory:").close()


def test_what_is_wrong_with_development_data_is_said() -> None:
    cases: tuple[tuple[Any, str], ...] = (
        ((DEV[0],), "X_dev, y_dev"),
        ((DEV[0][:, :1], DEV[1]), "columns"),
        ((DEV[0], DEV[1][:-1]), "one label per row"),
    )
    for wrong, words in cases:
        with pytest.raises(afresh.errors.AfreshError, match=words):
            afresh.holdout(X, Y, open=wrong, ledger=":memory:")


@pytest.mark.parametrize("open", [0.5, DEV])
def test_a_search_tunes_on_open_rows_and_confirms_the_winner(open: Any) -> None:
    with afresh.holdout(X, Y, open=open, questions=30, ledger=":memory:") as holdout:
        grid = {"max_depth": [1, 2, 6], "min_samples_leaf": [1, 20]}
        search = GuardedSearchCV(DecisionTreeClassifier(random_state=0), grid, holdout=holdout).fit(XT, YT)
        assert holdout.budget.spent == 1  # the winner
        assert search.best_answer_.confirmed is True
        features, labels = holdout.open_rows()
        scores = search.cv_results_["mean_test_score"]
        assert search.best_score_ == max(scores)
        assert search.best_score_ == pytest.approx(search.best_estimator_.score(features, labels))
        assert np.isfinite(search.cv_results_["low_test_score"]).sum() == 1
        halved = GuardedSearchCV(DecisionTreeClassifier(random_state=0), grid, holdout=holdout, factor=2).fit(XT, YT)
        assert holdout.budget.spent <= 2
        assert halved.best_interval_.low <= (halved.predict(X) == Y).mean() <= halved.best_interval_.high


def test_a_study_tunes_on_open_rows_and_confirms_the_winner() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with afresh.holdout(X, Y, open=0.5, questions=30, ledger=":memory:") as holdout:

        def build(trial: Any) -> Any:
            return DecisionTreeClassifier(max_depth=trial.suggest_int("depth", 1, 6), random_state=0).fit(XT, YT)

        objective = GuardedObjective(holdout, build)
        study = optuna.create_study(direction="minimize", sampler=optuna.samplers.RandomSampler(seed=0))
        with pytest.raises(InvalidArgument, match="no trial"):
            objective.best(study)
        study.optimize(objective, n_trials=4)
        with pytest.raises(InvalidArgument, match="rounds=10"):
            objective.optimize(study, batch=2)
        objective.optimize(study, batch=2, rounds=1)
        assert len(study.trials) == 6
        assert holdout.budget.spent == 0
        found = objective.best(study)
        assert holdout.budget.spent == 1
        assert found["confirmed"] is True
        assert found["low"] <= study.best_value <= found["high"]
