"""Mechanisms as the lab uses them: a conversation about one sample, in memory.

Every mechanism can hold one, including those that remember (Thresholdout, the Ladder, guess and check) and those
without a certificate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from afresh.moments import Moments
from afresh.theory.bernoulli import kl_lower, kl_lower_each, kl_upper, kl_upper_each

Floats = NDArray[np.float64]
Values = NDArray[Any]  # one row per question, one column per row of the sample; numbers in [0, 1]


@dataclass(frozen=True, slots=True)
class Answers:
    """Released values with the interval that goes with each."""

    value: Floats
    low: Floats
    high: Floats


class Releasing(Protocol):
    """What the lab needs from a mechanism with a certificate; a guard needs more (`mechanisms.base.Mechanism`)."""

    method: ClassVar[str]

    def release(self, moments: Any, noise: float) -> Any:
        """What to release, given one standard normal number."""
        ...

    def value(self, released: Any) -> float:
        """The released number on the scale of the mean."""
        ...

    def interval(self, released: Any, *, levels: int | None = None) -> tuple[float, float]:
        """The simultaneous interval."""
        ...

    def half_width(self, mean: float) -> float:
        """Half the length of the interval for a released number that reads `mean`."""
        ...

    def __hash__(self) -> int:
        """A hash of its constants."""
        ...


class Session(Protocol):
    """One conversation: questions in order, as their values on all rows of one sample."""

    def answer(self, values: Values) -> Answers:
        """Answer the next questions, one per row of `values`."""
        ...


@runtime_checkable
class AtOnce(Protocol):
    """A conversation in which questions that exclude one another are released at once, for less (section 18)."""

    def price(self, size: int) -> int:
        """The number of answers that this many of them count as."""
        ...

    def answer_at_once(self, values: Values) -> Answers:
        """Answer them, one per row of `values`."""
        ...


class Interactive(Protocol):
    """Public constants of a mechanism that can hold conversations; a frozen dataclass."""

    @property
    def method(self) -> str:
        """Its name."""
        ...

    @property
    def certified(self) -> bool:
        """Do its intervals come with a proof?"""
        ...

    def start(self, rng: np.random.Generator) -> Session:
        """Start a new conversation about a new sample. The generator makes the noise: for simulations only."""
        ...


@dataclass(frozen=True)
class Uncertified:
    """What baselines without a certificate share: the interval that fixed questions would have got.

    It is what people report when they forget that questions were chosen after seeing answers.
    """

    method: ClassVar[str]
    certified: ClassVar[bool] = False

    rows: int
    questions: int
    failure: float

    def claim(self, values: Floats, rows: int | None = None) -> Answers:
        """Chernoff's bound around each value, as if of a mean of `rows` rows, Bonferroni over all questions."""
        return chernoff(values, math.log(2 * self.questions / self.failure) / (self.rows if rows is None else rows))


def chernoff(values: Floats, bound: float) -> Answers:
    """Values, cut to [0, 1], with all P for which kl(value || P) <= bound."""
    value = np.clip(values, 0.0, 1.0)
    if value.size < 64:  # numpy is slow on small arrays
        ends = [(kl_lower(v, bound), kl_upper(v, bound)) for v in value.tolist()]
        return Answers(value, *np.array(ends).T)
    return Answers(value, kl_lower_each(value, bound), kl_upper_each(value, bound))


def means(values: Values) -> Floats:
    """The mean of each question over the rows given."""
    if values.dtype == np.uint8:  # zeros and ones; whole sums are exact, and fast
        mean: Floats = values.sum(axis=1, dtype=np.uint32) / values.shape[1]
    else:
        mean = values.mean(axis=1, dtype=np.float64)
    return mean


def moments(values: Values) -> list[Moments]:
    """The moments of each question over the rows given."""
    n = values.shape[1]
    totals = means(values) * n
    squares = totals if values.dtype == np.uint8 else np.einsum("ij,ij->i", values, values)
    return [Moments(n, float(total), float(square)) for total, square in zip(totals, squares, strict=True)]
