"""Optuna: trials that spend from a guard, pruned and stopped by what the intervals say.

    from afresh.integrations.optuna import GuardedObjective

    objective = GuardedObjective(holdout, build)                 # build(trial) gives a model or predictions
    study = optuna.create_study(direction="minimize")
    study.optimize(objective, n_trials=500, callbacks=[objective.stop_when_spent])
    objective.best(study)                                        # the answer of the best trial, with its interval

Each trial's value is a mean loss. Its attributes say what was released last: `afresh_value`, `afresh_low` and
`afresh_high` (the interval), `afresh_charged` and `afresh_left` (the budget). A study reads a released value and
nothing else of the holdout, so the intervals of all trials hold at once, the best one's too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from afresh.errors import BudgetExhausted, InvalidArgument, MissingExtra
from afresh.models.holdout import check_holdout

try:
    import optuna
except ImportError:
    raise MissingExtra("optuna", "optuna") from None

if TYPE_CHECKING:
    from afresh.models.holdout import Holdout
    from afresh.results.answer import Answer

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
        """Check what was passed.

        Args:
            holdout: What `afresh.holdout` makes.
            build: A function of a trial, as above.
            loss: As in `Holdout.score`.
            precision: As in `Holdout.score`.
        """
        if not callable(build):
            raise InvalidArgument(f"build == {build!r}, must be a function of a trial.")
        self.holdout, self.build = check_holdout(holdout), build
        self.loss, self.precision = loss, precision

    def __call__(self, trial: optuna.Trial) -> float:
        """Build, score, record."""
        study = getattr(trial, "study", None)  # a FixedTrial has none, nor a FrozenTrial such as study.best_trial
        if study is not None and study.directions != [optuna.study.StudyDirection.MINIMIZE]:
            raise InvalidArgument("the study must minimize one value, the loss: create_study(direction='minimize').")
        try:
            return self._run(trial, study)
        except BudgetExhausted as error:
            if study is None:
                raise
            trial.set_user_attr("afresh_exhausted", str(error))
            with contextlib.suppress(RuntimeError):  # a trial that was asked for by hand: nothing runs
                study.stop()
            raise optuna.TrialPruned(str(error)) from None

    def _run(self, trial: optuna.Trial, study: optuna.Study | None) -> float:
        made = self.build(trial)
        if not isinstance(made, Generator):
            return self._score(trial, made).value
        answer = None
        for step, model in enumerate(made):
            answer = self._score(trial, model)
            trial.report(answer.value, step)
            if study is not None and self.cannot_be_better(study, answer):
                trial.set_user_attr("afresh_cannot_be_better", True)
                made.close()
                raise optuna.TrialPruned("its interval lies above that of the best trial.")
        if answer is None:
            raise InvalidArgument("the generator yielded no model; yield one after each round of training.")
        return answer.value

    def _score(self, trial: optuna.Trial, model: Any) -> Answer:
        answer = self.holdout.score(model, loss=self.loss, precision=self.precision)
        charged = trial.user_attrs.get("afresh_charged", 0) + answer.charged
        said = {"value": answer.value, "low": answer.low, "high": answer.high, "charged": charged, "left": answer.left}
        for name, value in said.items():
            trial.set_user_attr(f"afresh_{name}", value)
        return answer

    @staticmethod
    def cannot_be_better(study: optuna.Study, answer: Answer) -> bool:
        """Whether the interval of an answer lies above that of some complete trial.

        Args:
            study: The study so far.
            answer: What was released of a model.

        Returns:
            True if that model is worse, as surely as all intervals hold.
        """
        return any(answer.low > trial.user_attrs["afresh_high"] for trial in _scored(study))

    def stop_when_spent(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        """A callback: stop once nothing is left, before another model is built for nothing.

        Args:
            study: Which to stop.
            trial: The one that just ended; not looked at.
        """
        if self.holdout.budget.left == 0:
            study.stop()

    def best(self, study: optuna.Study) -> dict[str, Any]:
        """Value, interval, parameters and number of the best trial, and which trials may be as good.

        Args:
            study: A study that was run with this objective.

        Returns:
            `number`, `params`, `value`, `low`, `high`, `confidence`, and `not_worse`, numbers of trials.

        Raises:
            InvalidArgument: No trial was scored yet.
        """
        scored = _scored(study)
        if not scored:
            raise InvalidArgument("no trial of this study was scored on a guarded holdout yet.")
        best = min(scored, key=lambda trial: trial.values[0])
        low, high = best.user_attrs["afresh_low"], best.user_attrs["afresh_high"]
        least = min(trial.user_attrs["afresh_high"] for trial in scored)
        return {
            "number": best.number,
            "params": best.params,
            "value": best.value,
            "low": low,
            "high": high,
            "confidence": self.holdout.guard.plan.confidence,
            "not_worse": [trial.number for trial in scored if trial.user_attrs["afresh_low"] <= least],
        }


def _scored(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The complete trials that have an interval; a study may hold others, made by hand or by another objective."""
    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    return [trial for trial in complete if "afresh_high" in trial.user_attrs]
