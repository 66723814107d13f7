"""Optuna: trials that spend from a guard, pruned and stopped by what the intervals say.

    from afresh.integrations.optuna import GuardedObjective

    objective = GuardedObjective(holdout, build)                 # build(trial) gives a model or predictions
    study = optuna.create_study(direction="minimize")
    study.optimize(objective, n_trials=500, callbacks=[objective.stop_when_spent])
    objective.best(study)                                        # the answer of the best trial, with its interval

Each trial's value is a mean loss. Its attributes say what was released: `afresh_low`, `afresh_high` (the interval),
`afresh_charged` and `afresh_left` (the budget). A study reads a released value and nothing else of the holdout, so the
intervals of all trials hold at once, the best one's too.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from afresh.errors import BudgetExhausted, InvalidArgument, MissingExtra

try:
    import optuna
except ImportError:
    raise MissingExtra("optuna", "optuna") from None

if TYPE_CHECKING:
    from afresh.answer import Answer
    from afresh.holdout import Holdout

__all__ = ["GuardedObjective"]


class GuardedObjective:
    """An objective for `study.optimize`: the loss of what `build(trial)` makes, on a guarded holdout.

    `build` returns a model or predictions; or it is a generator that yields one after each round of training, each of
    which is scored and costs an answer. A trial is pruned after a round whose model cannot be better than the best
    trial so far: its whole interval lies above that one's. That is certain of this round's model, as all intervals are;
    that later rounds would not have caught up is not.

    When the budget ends, the trial that found out is pruned and the study stops. A study must minimize.
    """

    def __init__(
        self,
        holdout: Holdout,
        build: Callable[[optuna.Trial], Any],
        *,
        loss: Any = None,
        precision: float | None = None,
    ) -> None:
        """`loss` and `precision` are those of `Holdout.score`."""
        self.holdout, self.build = holdout, build
        self.loss, self.precision = loss, precision

    def __call__(self, trial: optuna.Trial) -> float:
        """Build, score, record."""
        if trial.study.directions != [optuna.study.StudyDirection.MINIMIZE]:
            raise InvalidArgument("the study must minimize one value, the loss: create_study(direction='minimize').")
        try:
            return self._run(trial)
        except BudgetExhausted as error:
            trial.set_user_attr("afresh_exhausted", str(error))
            trial.study.stop()
            raise optuna.TrialPruned(str(error)) from None

    def _run(self, trial: optuna.Trial) -> float:
        made = self.build(trial)
        if not isinstance(made, Generator):
            return self._score(trial, made).value
        answer = None
        for step, model in enumerate(made):
            answer = self._score(trial, model)
            trial.report(answer.value, step)
            if self.cannot_be_better(trial.study, answer):
                trial.set_user_attr("afresh_cannot_be_better", True)
                made.close()
                raise optuna.TrialPruned("its interval lies above that of the best trial.")
        if answer is None:
            raise InvalidArgument("the generator yielded no model; yield one after each round of training.")
        return answer.value

    def _score(self, trial: optuna.Trial, model: Any) -> Answer:
        answer = self.holdout.score(model, loss=self.loss, precision=self.precision)
        charged = trial.user_attrs.get("afresh_charged", 0) + answer.charged
        said = {"low": answer.low, "high": answer.high, "charged": charged, "left": answer.left}
        for name, value in said.items():
            trial.set_user_attr(f"afresh_{name}", value)
        return answer

    @staticmethod
    def cannot_be_better(study: optuna.Study, answer: Answer) -> bool:
        """Whether the interval of an answer lies above that of some complete trial."""
        highs = [
            trial.user_attrs["afresh_high"]
            for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
            if "afresh_high" in trial.user_attrs
        ]
        return bool(highs) and answer.low > min(highs)

    def stop_when_spent(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        """A callback: stop once nothing is left, before another model is built for nothing."""
        if self.holdout.budget.left == 0:
            study.stop()

    def best(self, study: optuna.Study) -> dict[str, Any]:
        """Value, interval, parameters and number of the best trial, and which trials may be as good."""
        best = study.best_trial
        complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        low, high = best.user_attrs["afresh_low"], best.user_attrs["afresh_high"]
        least = min(trial.user_attrs["afresh_high"] for trial in complete)
        return {
            "number": best.number,
            "params": best.params,
            "value": best.value,
            "low": low,
            "high": high,
            "confidence": self.holdout.guard.plan.confidence,
            "not_worse": [trial.number for trial in complete if trial.user_attrs["afresh_low"] <= least],
        }
