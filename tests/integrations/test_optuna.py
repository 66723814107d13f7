"""Studies that spend from a guard."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import optuna
import pytest

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.integrations.optuna import GuardedObjective

N = 4000
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 2))
Y = (X[:, 0] > 0.5).astype(int)
COMPLETE, PRUNED = optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED

optuna.logging.set_verbosity(optuna.logging.ERROR)


def study(**more: Any) -> optuna.Study:
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), **more)


def threshold(trial: optuna.Trial) -> Any:
    cut = trial.suggest_float("cut", -2, 2)
    return lambda features: (features[:, 0] > cut).astype(int)


def test_trials_record_and_the_budget_ends() -> None:
    with afresh.holdout(X, Y, questions=12, ledger=":memory:") as holdout:
        objective, made = GuardedObjective(holdout, threshold), study()
        made.optimize(objective, n_trials=50, callbacks=[objective.stop_when_spent])
        assert [trial.state for trial in made.trials] == [COMPLETE] * 12
        left = [trial.user_attrs["afresh_left"] for trial in made.trials]
        assert left == list(range(11, -1, -1))
        for trial in made.trials:
            attributes = trial.user_attrs
            assert attributes["afresh_low"] <= trial.value <= attributes["afresh_high"]
            assert attributes["afresh_value"] == trial.value
            assert attributes["afresh_charged"] == 1
        best = objective.best(made)
        truth = np.mean((X[:, 0] > best["params"]["cut"]) != Y)
        assert best["low"] <= truth <= best["high"]
        assert best["number"] in best["not_worse"]


@pytest.mark.parametrize("features", ["public", "hidden"])
def test_trials_of_rounds_with_public_features_are_not_ordered(features: Any) -> None:
    """Each is about the features of its own rows, however far apart their intervals are. Pruning is free to guess."""

    def predictions(wrong: bool) -> Any:
        return lambda x: (x[:, 0] > 0.5).astype(int) ^ wrong

    def steps(trial: optuna.Trial) -> Iterator[Any]:
        yield predictions(trial.suggest_categorical("wrong", [False, True]))

    for build in (steps, lambda trial: predictions(trial.suggest_categorical("wrong", [False, True]))):
        with afresh.holdout(X, Y, questions=12, rounds=4, features=features, ledger=":memory:") as holdout:
            objective, made = GuardedObjective(holdout, build), study()
            for wrong in (False, True):
                made.enqueue_trial({"wrong": wrong})
            made.optimize(objective, n_trials=2)
            if build is steps:
                assert [trial.state for trial in made.trials] == [COMPLETE, PRUNED]
                assert made.trials[1].user_attrs["afresh_cannot_be_better"] is (features == "hidden")
            else:
                assert objective.best(made)["not_worse"] == ([0, 1] if features == "public" else [0])


def test_without_the_callback_the_last_trial_is_pruned() -> None:
    with afresh.holdout(X, Y, questions=3, ledger=":memory:") as holdout:
        made = study()
        made.optimize(GuardedObjective(holdout, threshold), n_trials=50)
        assert [trial.state for trial in made.trials] == [COMPLETE] * 3 + [PRUNED]
        assert "afresh_exhausted" in made.trials[-1].user_attrs
        assert holdout.budget.left == 0


def test_pruning_is_certain() -> None:
    def rounds(trial: optuna.Trial) -> Iterator[Any]:
        flip = trial.suggest_categorical("flip", [False, True])
        for cut in (0.6, 0.55, 0.5):
            yield ((X[:, 0] > cut) != flip).astype(int)

    with afresh.holdout(X, Y, questions=40, simulation_seed=3, made_up=True) as holdout:
        objective, made = GuardedObjective(holdout, rounds), study()
        for flip in (False, True, False):
            made.enqueue_trial({"flip": flip})
        made.optimize(objective, n_trials=3)
        assert [trial.state for trial in made.trials] == [COMPLETE, PRUNED, COMPLETE]
        worse, best = made.trials[1], made.trials[0]
        assert worse.user_attrs["afresh_low"] > best.user_attrs["afresh_high"]
        assert worse.user_attrs["afresh_cannot_be_better"]
        assert len(worse.intermediate_values) == 1
        assert [trial.user_attrs["afresh_charged"] for trial in made.trials] == [3, 1, 0]
        assert objective.best(made)["not_worse"] == [0, 2]


def test_trials_outside_of_a_study() -> None:
    """As Optuna's tutorials have it: to try an objective out, to run the best trial again, to ask and tell."""
    with afresh.holdout(X, Y, questions=2, ledger=":memory:") as holdout:
        objective, made = GuardedObjective(holdout, threshold), study()
        made.optimize(objective, n_trials=1)
        assert objective(made.best_trial) == made.best_value  # type: ignore[arg-type]
        value = objective(optuna.trial.FixedTrial({"cut": 0.5}))  # type: ignore[arg-type]
        assert (value, holdout.budget.left) == (objective(optuna.trial.FixedTrial({"cut": 0.5})), 0)  # type: ignore[arg-type]
        with pytest.raises(BudgetExhausted):
            objective(optuna.trial.FixedTrial({"cut": 0.7}))  # type: ignore[arg-type]
        trial = made.ask()
        with pytest.raises(optuna.TrialPruned, match="2 of 2 are spent"):
            objective(trial)
        assert "afresh_exhausted" in trial.user_attrs


def test_trials_of_others_have_no_interval() -> None:
    with afresh.holdout(X, Y, questions=5, ledger=":memory:") as holdout:
        objective, made = GuardedObjective(holdout, threshold), study()
        made.add_trial(optuna.trial.create_trial(value=-1.0))
        with pytest.raises(InvalidArgument, match="no trial"):
            objective.best(made)
        made.optimize(objective, n_trials=2)
        best = objective.best(made)
        assert best["value"] == min(trial.values[0] for trial in made.trials[1:])
        assert set(best["not_worse"]) <= {1, 2}


def test_mistakes() -> None:
    with afresh.holdout(X, Y, questions=5, ledger=":memory:") as holdout:
        with pytest.raises(InvalidArgument, match="minimize"):
            study(direction="maximize").optimize(GuardedObjective(holdout, threshold), n_trials=1)
        with pytest.raises(InvalidArgument, match="yielded no model"):
            study().optimize(GuardedObjective(holdout, lambda trial: (each for each in list[int]())), n_trials=1)
        with pytest.raises(InvalidArgument, match="holdout is a Guard"):
            GuardedObjective(holdout.guard, threshold)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="build == 3"):
            GuardedObjective(holdout, 3)  # type: ignore[arg-type]
        assert holdout.budget.spent == 0
