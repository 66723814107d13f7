"""What every kind of question looks like to the desk that answers it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.moments import Moments, Span


class RowQuestion(Protocol):
    """A row function psi into [0, 1] of guarantees.md, section 0: an SQL or Ibis expression, a model's losses, ..."""

    @property
    def digest(self) -> str:
        """Its name: two questions with the same digest are the same question."""
        ...

    @property
    def text(self) -> str:
        """What it means, in readable words."""
        ...

    @property
    def bounds(self) -> tuple[float, float]:
        """The scale on which its answer is reported."""
        ...

    @property
    def missing(self) -> float | None:
        """What rows without a value count as."""
        ...

    @property
    def levels(self) -> int | None:
        """The number of evenly spaced values of psi: 2 if it is 0 or 1, 3 if it may also be 1/2; None if unlimited."""
        ...

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns it reads; None if it is a function of the label and of predictions."""
        ...

    @property
    def alone(self) -> bool:
        """Whether it runs a user's function, which may not expect to be called from other threads."""
        ...

    @staticmethod
    def moments_of(engine: Engine, questions: Sequence[Any], spans: Sequence[Span] | None) -> list[Moments]:
        """Return the moments of questions of this kind, each over its own span of rows if `spans` is given."""
        ...
