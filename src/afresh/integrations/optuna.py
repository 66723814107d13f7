"""Optuna: trials that spend from a guard, pruned and stopped by what the intervals say.

    from afresh.integrations.optuna import GuardedObjective

    objective = GuardedObjective(holdout, build)                 # build(trial) gives a model or predictions
    study = optuna.create_study(direction="minimize")
    study.optimize(objective, n_trials=500, callbacks=[objective.stop_when_spent])
    objective.best(study)                                        # the answer of the best trial, with its interval

    objective.optimize(study, batch=20)                          # on a holdout in rounds: 20 trials a round

Each trial's value is a mean loss. Its attributes hold what was released last: `afresh_value`, `afresh_low` and
`afresh_high` (the interval), `afresh_charged` and `afresh_left` (the budget). A study reads only released values, so
the intervals of all trials hold at once, including the best one's.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from afresh import checks
from afresh.errors import BudgetExhausted, InvalidArgument, MissingExtra
from afresh.integrations.rounds import advising, rounds_left
from afresh.models.holdout import check_holdout

try:
    import optuna
except ImportError:
    raise MissingExtra("optuna", "optuna") from None

if TYPE_CHECKING:
    from afresh.models.holdout import Holdout
    from afresh.results.answer import Answer

__all__ = ["GuardedObjective"]

_PRUNED, _FAILED = optuna.trial.TrialState.PRUNED, optuna.trial.TrialState.FAIL
_ONE_BY_ONE = (
    "study.optimize(objective) scores one trial at a time, each in a round of its own; "
    "objective.optimize(study, batch=20) scores 20 trials in one round."
)


class GuardedObjective:
    """An objective for `study.optimize`: the loss of the model from `build(trial)` on a guarded holdout.

    `build` returns a model or predictions, or is a generator that yields one after each round of training; each is
    scored and costs an answer. A trial is pruned after a round whose model cannot be better than the best trial so far:
    its whole interval lies above the best one's. This is certain for this round's model, as all intervals are, except
    in rounds with public features, which are about the features of different rows; it is not certain that later rounds
    would not have caught up.

    When the budget runs out, the current trial is pruned and the study stops. A study must minimize.

    On a holdout with open rows (`open=0.5`, or `open=(X_dev, y_dev)`) trials are scored on those: nothing is charged,
    and a trial has no interval. `best` then confirms the best trial's model on the guarded rows, for one answer. It
    runs `build` once more, which must make the same model from the same parameters.

    `study.optimize(objective)` scores one trial at a time. On a holdout in rounds each is a separate round;
    `objective.optimize(study, batch=20)` scores 20 trials in one.
    """

    def __init__(
        self,
        holdout: Holdout,
        build: Callable[[optuna.Trial], Any],
        *,
        loss: Any = None,
        precision: float | None = None,
    ) -> None:
        """Check the arguments.

        Args:
            holdout: A holdout from `afresh.holdout`.
            build: A function of a trial, as described above.
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
        if study is not None:
            _check_direction(study)
        try:
            with advising(self.holdout, _ONE_BY_ONE):
                return self._run(trial, study)
        except BudgetExhausted as error:
            if study is None:
                raise
            trial.set_user_attr("afresh_exhausted", str(error))
            with contextlib.suppress(RuntimeError):  # a trial asked for by hand: nothing is running
                study.stop()
            raise optuna.TrialPruned(str(error)) from None

    def optimize(self, study: optuna.Study, *, batch: int, rounds: int | None = None) -> None:
        """Run trials in batches: ask the study for some, build all, score them together, report to the study.

        On a holdout in rounds a batch is one round: exact scores on rows that no earlier trial has seen. If `build` is
        a generator, the trials of a batch advance together, and each step of all of them takes one round. On
        other holdouts a batch is scored in one scan.

        A sampler proposes a whole batch before it sees a value: TPESampler(constant_liar=True) then keeps the trials of
        a batch apart. It ends when rows or answers run out: trials that were proposed but not scored are pruned. If
        `build` fails, they are reported as failed, and the error is raised.

        Args:
            study: The study to continue.
            batch: The number of trials scored together; fewer if fewer answers are left.
            rounds: The number of batches (default: as many as the remaining rows and answers allow).

        Raises:
            InvalidArgument: The study does not minimize, predictions do not suit the loss, or a number is wrong.
        """
        _check_direction(study)
        batch = checks.whole("batch", batch, 1)
        if rounds is None and self.holdout.has_open_rows:
            raise InvalidArgument(
                "trials on open rows are free, so set how many batches to run, for example rounds=10."
            )
        most = self._affordable(batch) if rounds is None else checks.whole("rounds", rounds, 1)
        for _ in range(most):
            if not self._affordable(batch):
                return
            most_now = batch if self.holdout.has_open_rows else min(batch, self.holdout.budget.left)
            trials = [study.ask() for _ in range(most_now)]
            try:
                self._run_together(study, trials)
            except BudgetExhausted as error:  # someone else has spent it in the meantime, or steps took more rounds
                for trial in _unfinished(study, trials):
                    trial.set_user_attr("afresh_exhausted", str(error))
                    study.tell(trial, state=_PRUNED)
                return
            finally:
                for trial in _unfinished(study, trials):
                    study.tell(trial, state=_FAILED)

    def _affordable(self, batch: int) -> int:
        """How many batches the remaining rows and answers allow; the last may be smaller."""
        if self.holdout.has_open_rows:  # tuning is free; one answer confirms
            return _ENOUGH
        rounds, batches = rounds_left(self.holdout), math.ceil(self.holdout.budget.left / batch)
        return batches if rounds is None else min(rounds, batches)

    def _run_together(self, study: optuna.Study, trials: Sequence[optuna.Trial]) -> None:
        """Build and score trials side by side, and report each outcome to the study."""
        running = [(trial, self._models(trial, study)) for trial in trials]
        answers: Sequence[Answer | _Open | None] = [None] * len(running)
        while running:
            models = []
            for (trial, asking), answer in zip(running, answers, strict=True):
                try:
                    models.append((trial, asking, asking.send(answer)))
                except StopIteration as ended:
                    study.tell(trial, ended.value)
                except optuna.TrialPruned:
                    study.tell(trial, state=_PRUNED)
            running = [(trial, asking) for trial, asking, _ in models]
            answers = self._score([model for *_, model in models]) if models else []

    def _run(self, trial: optuna.Trial, study: optuna.Study | None) -> float:
        """Build and score a trial by itself."""
        asking, answer = self._models(trial, study), None
        try:
            while True:
                (answer,) = self._score([asking.send(answer)])
        except StopIteration as ended:
            return float(ended.value)

    def _models(self, trial: optuna.Trial, study: optuna.Study | None) -> Generator[Any, Any, float]:
        """Yields the models of a trial, receives the answer to each, and returns the last one's value."""
        made = self.build(trial)
        if not isinstance(made, Generator):
            answer = yield made
            return _note(trial, answer)
        value = None
        for step, model in enumerate(made):
            answer = yield model
            value = _note(trial, answer)
            trial.report(value, step)
            if study is not None and _above(study, answer):
                trial.set_user_attr("afresh_cannot_be_better", self.cannot_be_better(study, answer))
                made.close()
                raise optuna.TrialPruned("its interval lies above that of the best trial.")
        if value is None:
            raise InvalidArgument("the generator yielded no model; yield one after each training step.")
        return value

    def _score(self, models: Sequence[Any]) -> Sequence[Answer | _Open]:
        if self.holdout.has_open_rows:
            left = self.holdout.budget.left
            return [_Open(value, left) for value in self.holdout.open_losses(models, loss=self.loss)]
        return self.holdout.score_many(models, loss=self.loss, precision=self.precision)

    @property
    def _apart(self) -> bool:
        """Whether every round is about the features of its own rows: trials of different rounds have no order then."""
        return self.holdout.visibility == "public" and self.holdout.guard.plan.rounds is not None

    def cannot_be_better(self, study: optuna.Study, answer: Answer | _Open) -> bool:
        """Whether the interval of an answer lies above that of some complete trial.

        In rounds with public features it is never certain, as each round is about the features of its own rows.

        Args:
            study: The study so far.
            answer: The released answer for a model.

        Returns:
            True if that model is certainly worse, given that all intervals hold.
        """
        return not self._apart and _above(study, answer)

    def stop_when_spent(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        """A callback that stops the study once nothing is left, before another model is built in vain.

        Args:
            study: The study to stop.
            trial: The trial that just ended; ignored.
        """
        if not self._affordable(1):
            study.stop()

    def best(self, study: optuna.Study) -> dict[str, Any]:
        """Return the best trial's value, interval, parameters and number, and the trials that may be as good.

        In rounds with public features any trial may be: `holdout.best_of` compares models on the rows of one round.

        Args:
            study: A study that was run with this objective.

        Returns:
            `number`, `params`, `value`, `low`, `high`, `confidence` and `not_worse` (trial numbers); with open rows
            also `confirmed`, whether the guarded rows agree.

        Raises:
            InvalidArgument: No trial has been scored yet.
        """
        if self.holdout.has_open_rows:
            return self._confirmed(study)
        scored = _scored(study)
        if not scored:
            raise InvalidArgument("no trial of this study has been scored on a guarded holdout yet.")
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
            "not_worse": [each.number for each in scored if self._apart or each.user_attrs["afresh_low"] <= least],
        }

    def _confirmed(self, study: optuna.Study) -> dict[str, Any]:
        """The best trial on the open rows, built again and confirmed on the guarded ones."""
        complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        scored = [trial for trial in complete if "afresh_open" in trial.user_attrs]
        if not scored:
            raise InvalidArgument("no trial of this study has been scored on the open rows of this holdout yet.")
        best = min(scored, key=lambda trial: trial.values[0])
        made = self.build(optuna.trial.FixedTrial(best.params))  # type: ignore[arg-type] # it suggests as a trial does
        model = list(made)[-1] if isinstance(made, Generator) else made
        name = f"trial {best.number}" if self.holdout.visibility == "hidden" else None
        answer = self.holdout.score(model, name=name, loss=self.loss, precision=self.precision)
        return {
            "number": best.number,
            "params": best.params,
            "value": answer.value,
            "low": answer.low,
            "high": answer.high,
            "confidence": self.holdout.guard.plan.confidence,
            "confirmed": answer.confirmed,
            "not_worse": [best.number],
        }


class _Open(NamedTuple):
    """A mean loss on open rows: not an answer, and without an interval."""

    value: float
    left: int


_ENOUGH = 10**9  # batches, of trials that cost nothing


def _check_direction(study: optuna.Study) -> None:
    if study.directions != [optuna.study.StudyDirection.MINIMIZE]:
        raise InvalidArgument("the study must minimize one value, the loss: create_study(direction='minimize').")


def _note(trial: optuna.Trial, answer: Answer | _Open) -> float:
    """Write what was released into a trial's attributes; return its value."""
    if isinstance(answer, _Open):
        trial.set_user_attr("afresh_open", answer.value)
        trial.set_user_attr("afresh_left", answer.left)
        return answer.value
    charged = trial.user_attrs.get("afresh_charged", 0) + answer.charged
    said = {"value": answer.value, "low": answer.low, "high": answer.high, "charged": charged, "left": answer.left}
    for name, value in said.items():
        trial.set_user_attr(f"afresh_{name}", value)
    return answer.value


def _above(study: optuna.Study, answer: Answer | _Open) -> bool:
    """Whether an interval lies above that of some complete trial; a loss on open rows has none."""
    if isinstance(answer, _Open):
        return False
    return any(answer.low > trial.user_attrs["afresh_high"] for trial in _scored(study))


def _unfinished(study: optuna.Study, trials: Sequence[optuna.Trial]) -> list[optuna.Trial]:
    """The trials not yet reported to the study."""
    known = study.get_trials(deepcopy=False)
    return [trial for trial in trials if not known[trial.number].state.is_finished()]


def _scored(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """The complete trials that have an interval; a study may hold others, made by hand or by another objective."""
    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    return [trial for trial in complete if "afresh_high" in trial.user_attrs]
