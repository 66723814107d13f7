"""A question whose answer is reported on another scale than the one on which its row function is computed.

Numbers of size 1 are rounded by 1e-16, numbers near 1e9 by 1e-7: what must hold of every row to the last bit is
computed where it is exact, and only what was released is brought to the units of the analyst.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from afresh.queries.text import number

if TYPE_CHECKING:
    from afresh.engines.base import Engine
    from afresh.moments import Moments, Span
    from afresh.queries.base import RowQuestion


@dataclass(frozen=True, eq=False, slots=True)
class Rescaled:
    """The same row function as `unit`; its 0 and 1 are reported as these bounds."""

    unit: RowQuestion
    bounds: tuple[float, float]

    @property
    def digest(self) -> str:
        """A digest of the row function's and of the scale."""
        return hashlib.sha256(f"{self.unit.digest} as {self.bounds!r}".encode()).hexdigest()

    @property
    def text(self) -> str:
        """The row function, and its scale."""
        low, high = self.unit.bounds
        said = f"[{number(low)}, {number(high)}] as [{number(self.bounds[0])}, {number(self.bounds[1])}]"
        return f"{self.unit.text}, {said}"

    @property
    def missing(self) -> float | None:
        """None: its rows all have a value."""
        return None

    @property
    def levels(self) -> int | None:
        """Those of the row function."""
        return self.unit.levels

    @property
    def columns(self) -> frozenset[str] | None:
        """The columns it reads."""
        return self.unit.columns

    @property
    def alone(self) -> bool:
        """Whether it runs a user's function."""
        return self.unit.alone

    @staticmethod
    def moments_of(engine: Engine, questions: Sequence[Rescaled], spans: Sequence[Span] | None) -> list[Moments]:
        """Return the moments of several row functions of one kind, in one scan."""
        units = [each.unit for each in questions]
        return units[0].moments_of(engine, units, spans)
