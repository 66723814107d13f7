"""Noisy gradient descent: every step asks a guard for the mean gradient, one vector in a ball (section 18)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.errors import BudgetExhausted
from afresh.models.vectors import VectorQuery, keyed_digest
from afresh.moments import OUTER
from afresh.queries.asked import Asked
from afresh.results.progress import counted

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.models.vectors import Rows, Values
    from afresh.moments import Vector

Floats = NDArray[np.float64]
Slope = Callable[[Floats, Floats], Floats]
"""From predictions w.z and labels to the derivative of the loss by the prediction, in [-1, 1], row by row."""

VERSION = "afresh-learn-v2"  # part of every digest; changes when the meaning of a question does
_MOMENTUM = 0.9
_KEPT = 0.5  # the part of the steps, the last ones, whose weights are averaged: their noises cancel


def centred(values: Floats, low: Any, high: Any) -> Floats:
    """Numbers from these bounds to [-1, 1], beyond them to their ends; 0 where there is none.

    Only differences between numbers and bounds are rounded, so bounds may be close together and far from zero.
    """
    kept = np.clip(np.where(np.isfinite(values), values, low), low, high)
    return np.where(np.isfinite(values), 2 * ((kept - low) / (high - low)) - 1, 0.0)


@dataclass(frozen=True, eq=False)
class Scale:
    """What is public about the features: bounds of each, and the norm that rows are shortened to."""

    low: Floats
    high: Floats
    norm: float

    def rows(self, features: Floats) -> Floats:
        """Each feature from its bounds to [-1, 1], with a 1 for the intercept: one column a row, not too long."""
        z = np.ones((features.shape[1] + 1, len(features)))
        z[:-1] = centred(features, self.low, self.high).T
        z /= np.maximum(np.sqrt(np.square(z).sum(axis=0)) * (OUTER / self.norm), 1.0)
        return z

    def unscaled(self, weights: Floats) -> tuple[Floats, float]:
        """Coefficients and intercept for features in their own units."""
        half = (self.high - self.low) / 2
        coefficients = weights[:-1] / half
        return coefficients, float(weights[-1] - coefficients @ (self.low / 2 + self.high / 2))


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows behind a guard as a fit sees them, inside the guard only."""

    desk: Desk
    analyst: str
    names: tuple[str, ...]
    """Of the features, and of the label last."""
    z: Floats
    labels: Floats
    about: tuple[Any, ...]
    """What else names its questions: JSON-ready."""

    def digest(self, kind: str, weights: Floats) -> str:
        """The name of a question: keyed, and made from public numbers only."""
        parts = [VERSION, kind, *self.names, *self.about, [float(each).hex() for each in weights]]
        return keyed_digest(self.desk.terms.seed, parts)

    def single(
        self, kind: str, words: str, about_value: str, weights: Floats, values: Values, bounds: tuple[float, float]
    ) -> Asked:
        """A question about one number a row."""

        def at(rows: Rows) -> Values:
            return values[rows]

        levels = 2 if values.dtype == np.bool_ else None
        query = VectorQuery(self.digest(kind, weights), words, at, levels=levels, bounds=bounds)
        return Asked(
            queries=(query,),
            question=words,
            bounds=bounds,
            about_value=about_value,
            about_missing="A missing feature counts as the middle of its bounds.",
        )


@dataclass(frozen=True, eq=False)
class Gradient:
    """The mean gradient at some weights: a question for each coordinate, in a ball of radius `norm` on every row."""

    sample: Sample
    weights: Floats
    norm: float
    slope: Slope

    @cached_property
    def _values(self) -> Floats:
        """On [0, 1], a line for each coordinate; computed once for all of them."""
        z = self.sample.z
        return z * (self.slope(self.weights @ z, self.sample.labels) / (2 * self.norm)) + 0.5

    def questions(self, step: int) -> list[Asked]:
        """One for each coordinate."""
        name = self.sample.digest("gradient", self.weights)
        return [self._question(place, step, name) for place in range(len(self.weights))]

    def _question(self, place: int, step: int, name: str) -> Asked:
        def at(rows: Rows) -> Values:
            return self._values[place, rows]

        of = "the intercept" if place == len(self.weights) - 1 else self.sample.names[place]
        words = f"gradient of step {step} by {of}"
        query = VectorQuery(f"{name} {place}", words, at, bounds=(-self.norm, self.norm))
        return Asked(
            queries=(query,),
            question=words,
            bounds=(-self.norm, self.norm),
            about_value="this mean",
            about_missing="A missing feature counts as the middle of its bounds.",
        )


def descend(
    sample: Sample, norm: float, slope: Slope, curvature: float, steps: int, alpha: float
) -> tuple[Floats, int]:
    """The weights after this many noisy gradients, with momentum, averaged over the last half; and the charge.

    `curvature` bounds the second derivative of the loss by the prediction, so that no step is too long.
    """
    desk, analyst, charged = sample.desk, sample.analyst, 0
    size = len(sample.z)
    vector = desk.at_once("ball", size)
    rate = 1 / (curvature * norm**2 + alpha)
    weights, speed, kept = np.zeros(size), np.zeros(size), list[Floats]()
    for step in counted(range(1, steps + 1), "Fitting"):
        asked = Gradient(sample, weights, norm, slope).questions(step)
        if step == 1:
            _check_budget(sample, asked, vector, steps)
        replies = desk.answer(asked, analyst, vector=vector)
        charged += sum(entry.counts for reply in replies for entry in reply.charged)
        found = np.array([reply.number.value for reply in replies])
        penalty = alpha * np.append(weights[:-1], 0.0)
        speed = _MOMENTUM * speed - rate * (found + penalty)
        weights = weights + speed
        if step > steps * (1 - _KEPT):
            kept.append(weights)
    averaged: Floats = np.mean(kept, axis=0)
    return averaged, charged


def _check_budget(sample: Sample, asked: Sequence[Asked], vector: Vector | None, steps: int) -> None:
    """Refuse a fit that could not be finished, unless it was started before: what was asked then is free."""
    desk, left = sample.desk, sample.desk.left(sample.analyst)
    wanted = steps * (len(asked) if vector is None else vector.answers) + 1
    if wanted > left and desk.ledger.unpaid(desk.terms, desk.questions(asked, vector=vector)):
        spent = desk.spent(sample.analyst).answers
        raise BudgetExhausted(asked=wanted, spent=spent, questions=spent + left)


def scale_of(bounds: Any, columns: int, norm: float | None) -> Scale:
    """The public bounds of every feature, and the norm: by default six tenths of the longest possible row."""
    given: Sequence[Any] = list(bounds) if np.ndim(bounds) == 2 else [bounds] * columns
    if len(given) != columns:
        raise checks.wrong("bounds", bounds, f"two numbers, or {columns} pairs, one for each feature")
    pairs = np.array([checks.bounds("bounds", each) for each in given], dtype=np.float64).reshape(-1, 2)
    most = float(np.sqrt(columns + 1))
    length = 0.6 * most if norm is None else checks.number("norm", norm, "a positive number", least=1e-6, most=1e6)
    return Scale(pairs[:, 0], pairs[:, 1], min(length, most))
