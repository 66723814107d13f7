"""A fit through a guard: what it is told, and what it releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from afresh.results.answer import Answer


@dataclass(frozen=True, slots=True)
class Task:
    """All that a fit is told; JSON-ready."""

    kind: str
    """ "logistic" or "linear"."""
    features: tuple[str, ...]
    label: str
    bounds: Any
    """What features are clipped to: two numbers, or a pair for each."""
    norm: float | None
    """The longest row; by default as `afresh.learn` has it."""
    steps: int
    alpha: float
    classes: tuple[Any, ...] = (0, 1)
    """Of a logistic regression: any other label than the second counts as the first."""
    target: tuple[float, float] = (-1.0, 1.0)
    """Of a linear one: what the label is clipped to."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a fit releases: weights by noisy gradients, and how good they are."""

    weights: tuple[float, ...]
    """For scaled features, the intercept last."""
    certificate: Answer
    charged: int
    """How many answers it was charged."""
