"""A fit as one task: public parameters go in, weights and a certificate come out. The rows stay with the desk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.learn.descent import Sample, Scale, Slope, centred, descend, scale_of
from afresh.results.fitted import Fitted, Task

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.models.vectors import Values
    from afresh.queries.asked import Asked

Floats = NDArray[np.float64]


def checked(task: Task) -> Task:
    """A task with valid values, or an error."""
    checks.one_of("kind", task.kind, tuple(SLOPES))
    checks.whole("steps", task.steps, 1, 10**6)
    checks.number("alpha", task.alpha, "a number from 0", least=0)
    if len(task.classes) != 2 or task.classes[0] == task.classes[1]:
        raise InvalidArgument(f"classes == {list(task.classes)!r}, must be two different labels.")
    checks.squared_bounds("target_bounds", task.target)
    scale_of(task.bounds, len(task.features), task.norm)
    return task


def fit(desk: Desk, analyst: str, task: Task) -> Fitted:
    """Descend by noisy gradients, and certify the result."""
    logistic = checked(task).kind == "logistic"
    scale = scale_of(task.bounds, len(task.features), task.norm)
    sample = sample_of(desk, analyst, task, scale)
    weights, charged = descend(
        sample, scale.norm, SLOPES[task.kind], 0.25 if logistic else 1.0, task.steps, float(task.alpha)
    )
    (reply,) = desk.answer([_accuracy(sample, task, weights) if logistic else _error(sample, task, weights)], analyst)
    certificate = desk.tell(reply)
    return Fitted(tuple(map(float, weights)), certificate, charged + certificate.charged)


def sample_of(desk: Desk, analyst: str, task: Task, scale: Scale) -> Sample:
    """The rows as this task sees them. Everything a row's numbers depend on is part of the questions' names."""
    features, column = _columns(desk, task)
    logistic = task.kind == "logistic"
    # As text, since a label of numpy is no JSON; with its type, since the labels 1 and '1' are two.
    label = [type(task.classes[1]).__name__, str(task.classes[1])] if logistic else [*map(float, task.target)]
    return Sample(
        desk,
        analyst,
        (*task.features, task.label),
        scale.rows(features),
        _positive(column, task) if logistic else _target(column, task),
        ([*map(float, scale.low), *map(float, scale.high)], scale.norm, [task.kind, *label]),
    )


def _columns(desk: Desk, task: Task) -> tuple[Floats, Any]:
    """Features as numbers, and the label's column as it is."""
    from afresh.engines.embedded.rowwise import read_column

    names = [checks.text("feature", each, "the name of a column") for each in task.features]
    for name in (*names, checks.text("label", task.label, "the name of a column")):
        if name not in desk.schema:
            raise InvalidArgument(f"there is no column {name!r}; there are {', '.join(desk.schema)}.")
    columns = [numbers_of(read_column(desk.engine, name), name) for name in names]
    return np.column_stack(columns), read_column(desk.engine, task.label)


def numbers_of(values: Any, name: str) -> Floats:
    """A column as numbers, NaN where one is missing."""
    if np.ma.getdata(values).dtype.kind not in "biuf":
        raise InvalidArgument(f"the column {name!r} does not hold numbers.")
    found: Floats = np.ma.filled(np.ma.asarray(values).astype(np.float64), np.nan)
    return found


def _positive(column: Any, task: Task) -> Floats:
    found = np.ma.getdata(column) == task.classes[1]
    found &= ~np.ma.getmaskarray(np.ma.asarray(column))
    return np.asarray(found, dtype=np.float64)


def _logistic_slope(t: Floats, y: Floats) -> Floats:
    found: Floats = expit(t) - y
    return found


def _accuracy(sample: Sample, task: Task, weights: Floats) -> Asked:
    right: Values = ((weights @ sample.z) > 0) == (sample.labels > 0)
    return sample.single(
        "accuracy",
        f"accuracy of the logistic regression of {task.label} after {task.steps} steps",
        "the share of rows that the model classifies correctly",
        weights,
        right,
        (0.0, 1.0),
    )


def _target(column: Any, task: Task) -> Floats:
    return centred(numbers_of(column, task.label), *task.target)


def _linear_slope(t: Floats, y: Floats) -> Floats:
    return np.clip(t - y, -1.0, 1.0)


SLOPES: dict[str, Slope] = {"logistic": _logistic_slope, "linear": _linear_slope}


def _error(sample: Sample, task: Task, weights: Floats) -> Asked:
    # Up to half the range, as in the fit: a mean of numbers with a smaller range has a narrower interval.
    error = np.square(np.clip(np.clip(weights @ sample.z, -1.0, 1.0) - sample.labels, -1.0, 1.0))
    low, high = task.target
    return sample.single(
        "squared error",
        f"mean squared error of the linear regression of {task.label} after {task.steps} steps",
        "the mean squared error, where errors count up to half the range of the target",
        weights,
        error,
        (0.0, ((high - low) / 2) ** 2),
    )
