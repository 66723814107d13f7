"""Figure 2: the interaction of an analyst with a mechanism, and the monitors of the main proof.

`interact` is a pure fold: sample and noise are arguments, so two calls with the same arguments are the same
interaction, and the caller of a simulation owns the randomness. Queries are vectorised: a query maps rows to their
values in [0, 1], one number per row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InvalidArgument

if TYPE_CHECKING:
    from afresh.moments import Moments

Floats = NDArray[np.float64]
Rows = NDArray[Any]  # rows of any kind, along the first axis
Query = Callable[[Rows], Floats]  # psi: X -> [0, 1], row by row

_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Transcript:
    """(psi_1, ..., psi_j, v_1, ..., v_j): everything an analyst ever sees."""

    queries: tuple[Query, ...] = ()
    answers: tuple[float, ...] = ()

    def __len__(self) -> int:
        """The number of answers so far."""
        return len(self.answers)

    def after(self, query: Query, answer: float) -> Transcript:
        """The transcript one round later."""
        return Transcript((*self.queries, query), (*self.answers, answer))


class Analyst(Protocol):
    """A: chooses the next query from the transcript (and coins fixed in advance), or None to stop."""

    def __call__(self, past: Transcript, /) -> Query | None:
        """The next query."""
        ...


class Answerer(Protocol):
    """M: one answer from the values of one query on the sample and one standard normal number."""

    def __call__(self, values: Floats, noise: float, /) -> float:
        """The answer that the analyst sees."""
        ...


class Releasing(Protocol):
    """What `answering` needs from one of the product's mechanisms."""

    def release(self, moments: Moments, noise: float) -> float:
        """The released number."""
        ...

    def value(self, released: float) -> float:
        """The released number on the scale of the mean."""
        ...


def calibrated_answer(t: float, T: float) -> Answerer:
    """Figure 1: v = mu + xi sqrt(max(sigma^2/t, 1/T)), as in the paper (neither rounded nor clipped)."""
    if not (t > 0 and T > 0):
        raise InvalidArgument(f"t == {t}, T == {T}: needs t > 0 and T > 0.")

    def answer(values: Floats, noise: float, /) -> float:
        return float(values.mean()) + noise * math.sqrt(max(float(values.var()) / t, 1 / T))

    return answer


def answering(mechanism: Releasing) -> Answerer:
    """One of the product's mechanisms as the M of Figure 2: it answers with the value that people are shown."""
    from afresh.moments import Moments

    def answer(values: Floats, noise: float, /) -> float:
        moments = Moments(values.size, float(values.sum()), float(values @ values))
        return mechanism.value(mechanism.release(moments, noise))

    return answer


def interact(analyst: Analyst, mechanism: Answerer, sample: Rows, noise: Iterable[float]) -> Transcript:
    """Figure 2: the transcript of A and M on this sample, one round for each number of the noise.

    The analyst sees the transcript and nothing else; it may stop early. A query whose values leave [0, 1] is
    refused: the paper's stability does not hold for it.
    """
    past = Transcript()
    for xi in noise:
        query = analyst(past)
        if query is None:
            break
        values = query(sample)
        if values.shape != sample.shape[:1] or not (values.min() >= 0 and values.max() <= 1):
            raise InvalidArgument(f"query {len(past) + 1} must map every row to a number in [0, 1].")
        past = past.after(query, mechanism(values, xi))
    return past


@dataclass(frozen=True, slots=True)
class Population:
    """A finite population P: its points and their probabilities, so that P[psi] and sd(psi(P)) are sums."""

    points: Rows
    weights: Floats

    def __post_init__(self) -> None:
        """Check that probabilities are nonnegative and sum to 1."""
        if self.weights.shape != self.points.shape[:1]:
            raise InvalidArgument(f"{self.weights.size} weights for {self.points.shape[0]} points.")
        if self.weights.min() < 0 or abs(float(self.weights.sum()) - 1) > _TOLERANCE:
            raise InvalidArgument(f"weights sum to {float(self.weights.sum())}; must be >= 0 and sum to 1.")

    def mean(self, query: Query) -> float:
        """P[psi]."""
        return float(self.weights @ query(self.points))

    def sd(self, query: Query) -> float:
        """sd(psi(P))."""
        values = query(self.points)
        return math.sqrt(float(self.weights @ (values - self.weights @ values) ** 2))


@dataclass(frozen=True, slots=True)
class Monitored:
    """The query a monitor picks out, its answer, the round, and the (scaled) error that was the largest."""

    query: Query
    answer: float
    index: int
    error: float


def worst_query(transcript: Transcript, population: Population) -> Monitored:
    """f_*: the query whose answer is furthest from the truth, argmax_j |v_j - P[psi_j]|."""
    errors = [abs(v - population.mean(psi)) for psi, v in zip(transcript.queries, transcript.answers, strict=True)]
    worst = _argmax(errors)
    return Monitored(transcript.queries[worst], transcript.answers[worst], worst, errors[worst])


def worst_scaled_query(transcript: Transcript, population: Population, tau: float) -> Monitored:
    """f_{tau,P}: argmax_j |v_j - P[psi_j]| / max(sd(psi_j(P)), tau), flipped so that its error is positive.

    Returns (psi, v), or (1 - psi, 1 - v) where v fell below the truth, as (psi_*, v_*) in the main proof.
    """
    if not tau > 0:
        raise InvalidArgument(f"tau == {tau}, must be > 0.")
    errors = [
        abs(v - population.mean(psi)) / max(population.sd(psi), tau)
        for psi, v in zip(transcript.queries, transcript.answers, strict=True)
    ]
    worst = _argmax(errors)
    query, answer = transcript.queries[worst], transcript.answers[worst]
    if answer >= population.mean(query):
        return Monitored(query, answer, worst, errors[worst])
    return Monitored(lambda rows: 1 - query(rows), 1 - answer, worst, errors[worst])


def _argmax(errors: list[float]) -> int:
    """The first index of the largest; an empty transcript has none."""
    if not errors:
        raise InvalidArgument("the transcript is empty: it has no worst query.")
    return max(range(len(errors)), key=errors.__getitem__)
