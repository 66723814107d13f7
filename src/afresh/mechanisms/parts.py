"""Traits that several mechanisms share, one small class each; a mechanism inherits those it has."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import Charges, Heard, Pairs, round_to_grid
from afresh.moments import Moments, Span


def noisy_mean(moments: Moments, noise: float, t: float, T: float, grid: float) -> float:
    """Figure 1: v = mu + xi sqrt(max(sigma^2/t, 1/T)) on the public grid, within [0, 1].

    The floor 1/T is part of the proof, even where sigma = 0.
    """
    scale = math.sqrt(max(moments.variance / t, 1 / T))
    return min(max(round_to_grid(moments.mean + noise * scale, grid), 0.0), 1.0)


class _HasHalfWidth(Protocol):
    def half_width(self, mean: float) -> float: ...


class _HasQuestions(Protocol):
    @property
    def questions(self) -> int: ...


class _HasGrid(Protocol):
    @property
    def grid(self) -> float | None: ...


class _HasInformation(Protocol):
    @property
    def charge(self) -> float: ...

    @property
    def information(self) -> float | None: ...


class Promised:
    """Its widths are guaranteed before any data is seen."""

    method: ClassVar[str]
    proviso: ClassVar[str] = ""

    @property
    def advice(self) -> str:
        """The guarantee."""
        return f"{self.method} promises these widths before any data is seen."


class NoBatches:
    """Questions asked together are answered like any others."""

    @property
    def batch(self) -> None:
        """None: no rows are opened for a batch."""
        return

    def meets_first(self, released: Any) -> bool:
        """False: there are no final looks."""
        return False


class NoSymbols:
    """It answers questions about means, and takes no claims."""

    symbols: ClassVar[bool] = False

    @property
    def open_rows(self) -> None:
        """None: nobody holds any."""
        return

    @property
    def exam_rows(self) -> None:
        """None: there is no exam."""
        return

    def exam_share(self, questions: int) -> float:
        """0: there is no exam."""
        return 0.0

    @property
    def own(self) -> bool:
        """False: nothing is guessed from the analyst's own rows."""
        return False


class NoMemory(NoSymbols):
    """Earlier releases change nothing for later answers."""

    def present_half_width(self: _HasHalfWidth, mean: float, released: Sequence[Any]) -> float:
        """The same as at the start."""
        return self.half_width(mean)

    def history(self, earlier: Sequence[Any]) -> None:
        """None: nothing depends on earlier releases."""
        return

    def confirmed(self, released: Any) -> None:
        """None: nothing is guessed."""
        return

    def widened(self, released: Any) -> None:
        """None: nothing can fail."""
        return


class FromAllRows(NoMemory, NoBatches):
    """Every answer is made from all rows."""

    @property
    def shuffles(self) -> bool:
        """False: the order of rows does not matter."""
        return False

    def spans(self, number: int, own: Span | None) -> tuple[Span, ...]:
        """None: all rows."""
        return ()

    @property
    def accounted(self: _HasInformation) -> str:
        """The budget in nats, and what one answer takes from it."""
        return f"{self.information:.4g} nats, {self.charge:.4g} per answer"


class NoRowAccount:
    """No account is kept of how much all answers depend on one row."""

    @property
    def row_charge(self) -> float:
        """0: there is no such account."""
        return 0.0

    @property
    def row_share(self) -> None:
        """None: there is no such account."""
        return None


class NoInformation:
    """Validity rests on rows that are kept apart, not on a bound on information."""

    method: ClassVar[str]

    @property
    def charge(self) -> float:
        """0: an answer is paid for in another way."""
        return 0.0

    @property
    def information(self) -> None:
        """None: what was released may reveal much about the rows it came from."""
        return None

    def charge_outside(self, kind: str, value: float, rows: int, count: int) -> Charges:
        """Refused."""
        raise InvalidArgument(
            f"the certificate of method={self.method!r} cannot account for this, because it needs rows about which "
            "nothing is known; open data with method='calibrated'."
        )


class DifferenceOfParts:
    """A difference d is read from d+ = max(d, 0) and d- = max(-d, 0), both small where models seldom disagree."""

    pairs: ClassVar[Pairs] = "parts"
    exact_moments: ClassVar[bool] = False

    def difference(self, *parts: Heard) -> tuple[float, tuple[float, float]]:
        """d+ minus d-; all intervals hold at once, so this one does."""
        first, second = parts
        return first.value - second.value, (first.low - second.high, first.high - second.low)

    def disagreement(self, *parts: Heard) -> float:
        """The sum of the two shares."""
        return min(math.fsum(part.value for part in parts), 1.0)

    def difference_width(self: _HasHalfWidth, disagreement: float) -> float:
        """The half-width from two answers that each read half of it."""
        return 2 * self.half_width(disagreement / 2)


class EqualAnswers(NoRowAccount):
    """All answers have the same noise."""

    method: ClassVar[str]

    @property
    def answers(self: _HasQuestions) -> int:
        """The same number as questions."""
        return self.questions

    def coarser(self, coarseness: float) -> Self:
        """Refused."""
        raise InvalidArgument(f"precision cannot be chosen with method={self.method!r}; leave it out.")


class ReleasesMean(ABC):
    """What is released is on the scale of the mean."""

    def value(self, released: float) -> float:
        """The released number itself."""
        return released

    @abstractmethod
    def interval(self, released: float, *, levels: int | None = None) -> tuple[float, float]:
        """The interval, which every mechanism defines itself."""

    def admits(self: _HasGrid, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether it is within [0, 1] and on the grid."""
        number = isinstance(released, float | int) and 0 <= released <= 1
        return number and (self.grid is None or float(released / self.grid).is_integer())

    def half_width(self, mean: float) -> float:
        """Half the length of the interval, valid for every query, around an answer that reads `mean`."""
        low, high = self.interval(mean)
        return (high - low) / 2


class SampleAndNoise:
    """The failure probability is split between the sample and the noise."""

    failure: float
    noise_failure: float

    @property
    def failure_use(self) -> dict[str, float]:
        """Sample and noise each have their share."""
        return {"sample": self.failure - self.noise_failure, "noise": self.noise_failure}
