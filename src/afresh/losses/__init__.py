"""Losses: what a holdout averages. A loss maps each row to a number; smaller is better.

`holdout(X, y, loss="zero-one")` takes the name of a loss that needs no parameters, or one of these objects. A loss
without natural bounds is clipped: choose the largest loss a row may have without looking at the data, like the bounds
of any question. A row whose label is missing has the largest loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.losses.base import Clipped, Loss
from afresh.losses.custom import Custom
from afresh.losses.of_classes import Brier, Cost, Log, ZeroOne
from afresh.losses.of_numbers import Absolute, Pinball, Squared
from afresh.models.labels import Labels

__all__ = ["Absolute", "Brier", "Cost", "Custom", "Log", "Loss", "Pinball", "Squared", "ZeroOne"]

_NAMED: dict[str, Callable[[], Loss]] = {"zero-one": ZeroOne, "log": Log, "brier": Brier}
_SAME = {  # scikit-learn's names; a score there is a loss here
    "accuracy": "zero-one",
    "zero_one": "zero-one",
    "zero_one_loss": "zero-one",
    "log_loss": "log",
    "neg_log_loss": "log",
    "brier_score": "brier",
    "brier_score_loss": "brier",
    "neg_brier_score": "brier",
}
_INSTEAD = {
    "afresh.losses.Squared(clip=100), where 100 is the largest loss that counts": "mse squared squared_error "
    "mean_squared_error neg_mean_squared_error rmse root_mean_squared_error neg_root_mean_squared_error",
    "afresh.losses.Absolute(clip=100), where 100 is the largest loss that counts": "mae absolute absolute_error "
    "mean_absolute_error neg_mean_absolute_error",
    "afresh.losses.Pinball(clip=100, quantile=0.9)": "pinball mean_pinball_loss quantile",
    "holdout.measure(afresh.statistics.AUC(), model)": "auc roc_auc roc_auc_score",
    "holdout.measure(afresh.statistics.F1(), model)": "f1 f1_score",
    "holdout.measure(afresh.statistics.Precision(), model)": "precision precision_score",
    "holdout.measure(afresh.statistics.Recall(), model)": "recall recall_score",
    "holdout.compare(a, b, loss=afresh.losses.Squared(clip=100)), since R² is not a mean over rows": "r2 r2_score",
}
_OTHERS = {name: instead for instead, names in _INSTEAD.items() for name in names.split()}


def make_loss(loss: Any) -> Loss:
    """The loss with this name, or one of the objects above."""
    if isinstance(loss, str):
        loss = _SAME.get(loss, loss)
        if loss in _OTHERS:
            raise checks.wrong("loss", loss, f"a loss of one row with bounds; write {_OTHERS[loss]}")
        if loss not in _NAMED:
            named = ", ".join(map(repr, _NAMED))
            objects = "an object such as afresh.losses.Squared(clip=100), Absolute, Pinball, Cost or Custom"
            near = checks.meant(loss, (*_NAMED, *_SAME, *_OTHERS))
            raise checks.wrong("loss", loss, f"one of {named}{near}, or {objects}")
        return _NAMED[loss]()
    if isinstance(loss, ZeroOne | Clipped | Brier | Cost | Custom):
        return loss
    raise checks.wrong("loss", loss, "a name or a loss from afresh.losses; wrap a function in Custom")


def settle(loss: Loss, labels: Labels) -> Loss:
    """A loss that suits the labels' type and classes, in its present state; or an error, before any charge."""
    labels.suit(loss.kind)
    if isinstance(loss, Cost) and len(labels.classes) != len(loss.costs):
        raise InvalidArgument(
            f"there are {len(labels.classes)} classes but {len(loss.costs)} rows of costs; give one row per class."
        )
    return loss.tried(labels) if isinstance(loss, Custom) else loss
