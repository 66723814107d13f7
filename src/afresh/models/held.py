"""The public side of guarded rows with labels: their features, the open rows, and models' predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from afresh.errors import InvalidArgument
from afresh.losses import make_loss
from afresh.results import show
from afresh.results.closing import Closing
from afresh.results.progress import waiting

if TYPE_CHECKING:
    from afresh.guard.guard import Guard
    from afresh.guard.scope import Features
    from afresh.losses import Loss
    from afresh.models.judge import Judge
    from afresh.models.labelled import LabelledRows
    from afresh.models.predictions import Predicted
    from afresh.results.answer import Answer
    from afresh.results.budget import Budget


class Held(show.Shown, Closing):
    """The part of a holdout that gives no verdicts: `Holdout` adds scores, comparisons and claims."""

    def __init__(self, guard: Guard, labelled: LabelledRows, loss: Loss, judge: Judge) -> None:
        """Not for users. The judge has the labels, or asks a service that does."""
        self.guard, self.labelled, self.loss, self._judge = guard, labelled, loss, judge

    @property
    def rows(self) -> int:
        """The number of rows, which is public."""
        return self.guard.rows

    @property
    def label(self) -> str:
        """The column that holds the labels."""
        return self.labelled.label

    @property
    def visibility(self) -> Features:
        """Whether features are "public" or "hidden"."""
        return self.labelled.visibility

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The classes, which are public; None for labels that are numbers."""
        return None if self.loss.kind == "numbers" else self.labelled.labels.classes

    @property
    def features(self) -> Any:
        """What models predict from: the features as passed, or all columns except the label."""
        return self.labelled.features

    @property
    def budget(self) -> Budget:
        """The guard's budget."""
        return self.guard.budget

    def predict(
        self, models: Sequence[Any] | Mapping[str, Any], names: Sequence[str] | None, loss: Loss, features: Any = None
    ) -> list[Predicted]:
        """Make and check models' predictions, for callers that score them in a second step. Free.

        Args:
            models: As in `score`, one after the other.
            names: The models' names in the record.
            loss: A loss that `settled` returned.
            features: The holdout's features in another kind of table, if models need one.

        Returns:
            Predictions for `score_predicted`.

        Raises:
            InvalidArgument: Some predictions do not suit the loss.
        """
        with waiting("Predicting"):
            return self.labelled.predict(models, names, loss, features)

    def score_predicted(
        self, predicted: Sequence[Predicted], loss: Loss, precision: float | None = None
    ) -> list[Answer]:
        """Score predictions: a mean loss each, for 1 answer each. All are charged, or none.

        Args:
            predicted: What `predict` returned for the same loss.
            loss: A loss that `settled` returned.
            precision: As in `score`.

        Returns:
            The answers, in the same order.

        Raises:
            BudgetExhausted: Together they cost more than is left; nothing was charged.
        """
        return self._judge.score(predicted, loss, precision)

    def unscored(self, predicted: Sequence[Predicted], loss: Loss) -> int:
        """Count how many of these scores would be charged. Free.

        Args:
            predicted: What `predict` returned for the same loss.
            loss: A loss that `settled` returned.

        Returns:
            The number that were not asked before.
        """
        return self._judge.unscored(predicted, loss)

    def open_rows(self) -> tuple[Any, Any]:
        """Return the features and labels of the open rows, to fit and tune on. The first call fixes the plan.

        Returns:
            Features of the kind that was passed (unless that was an array or a frame, a pandas frame of all columns
            except the label), and the labels as an array.

        Raises:
            InvalidArgument: The holdout was opened without `open`.
        """
        self.guard.desk.check_open()
        return self._judge.open_rows()

    @property
    def has_open_rows(self) -> bool:
        """Whether there are open rows, or the analyst's own development rows, to tune on for free."""
        return self.guard.plan.open is not None or self.guard.plan.mechanism.own

    def open_losses(self, models: Sequence[Any], *, loss: Any = None) -> list[float]:
        """Compute the mean losses of models on the open rows, without intervals. Free, since you hold these rows.

        Args:
            models: As in `score`; predictions are for the rows of `features`.
            loss: A loss to use instead of the holdout's own.

        Returns:
            A mean loss for each model, in the same order.

        Raises:
            InvalidArgument: The holdout was opened without `open`, or predictions do not suit the loss.
        """
        self.guard.desk.check_open()
        if not self.has_open_rows:
            raise InvalidArgument(
                "this holdout was opened without open rows; open another with, for example, open=0.5."
            )
        used = self.settled(loss)
        return [self.labelled.open_loss(model, used) for model in models]

    def settled(self, loss: Any = None) -> Loss:
        """The loss to use: the given one, in its present state, or the holdout's own.

        Args:
            loss: A loss from `afresh.losses`, its name, or a function.

        Returns:
            A loss that suits the labels.

        Raises:
            InvalidArgument: It does not suit them; nothing was charged.
        """
        return self.labelled.settle(self.loss if loss is None else make_loss(loss))

    def close(self) -> None:
        """Close the guard."""
        self.guard.close()
