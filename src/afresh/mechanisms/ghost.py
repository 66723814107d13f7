"""What mechanisms share whose answers are compared with those of a ghost sample (section 17, Theorem S)."""

from __future__ import annotations

from typing import ClassVar

from afresh.mechanisms.parts import Promised
from afresh.theory.symmetrized.constants import BAD_SHARE

MOST_ROWS = 10**12
ROUNDING = 1e-9
"""How much a plan's constants may differ from those computed on another processor."""


class ByGhost(Promised):
    """Public Gaussian noise on means, and guaranteed widths."""

    unavailable: ClassVar[str] = "too few rows for so many answers"
    promised: ClassVar[bool] = True
    checks_guesses: ClassVar[bool] = False

    failure: float

    @property
    def failure_use(self) -> dict[str, float]:
        """One part is for pairs that differ more than D says, the rest for noise and sample together."""
        bad = BAD_SHARE * self.failure
        return {"noise and sample together": self.failure - bad, "pairs that differ": bad}
