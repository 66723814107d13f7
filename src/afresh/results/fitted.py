"""A fit through a guard: its input, and what it releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from afresh.results.answer import Answer


@dataclass(frozen=True, slots=True)
class Task:
    """The complete input of a fit; JSON-ready."""

    kind: str
    """ "logistic" or "linear"."""
    features: tuple[str, ...]
    label: str
    bounds: Any
    """The range features are clipped to: two numbers, or a pair for each feature."""
    norm: float | None
    """The length rows are clipped to; by default, the one in `afresh.learn`."""
    steps: int
    alpha: float
    classes: tuple[Any, ...] = (0, 1)
    """For logistic regression: any label other than the second counts as the first."""
    target: tuple[float, float] = (-1.0, 1.0)
    """For linear regression: the range the label is clipped to."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit releases: weights from noisy gradients, and how good they are."""

    weights: tuple[float, ...]
    """For scaled features, the intercept last."""
    certificate: Answer
    charged: int
    """The number of answers charged."""
