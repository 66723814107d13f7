"""A budget that never ends: answers of fixed noise, each with constants of its own (section 17.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import TYPICAL_MEANS, Charges, grid_problems, grid_step, round_to_grid
from afresh.mechanisms.ghost import MOST_ROWS, ByGhost
from afresh.mechanisms.parts import DifferenceOfParts, EqualAnswers, NoBatches, NoSymbols
from afresh.moments import Moments, Span
from afresh.theory.symmetrized.endless import SLANTS, block, endless_plan, intervals_of, last_answer

EXPECTED = 1000
_NAMES = ("value", "place")


@dataclass(frozen=True)
class Endless(ByGhost, EqualAnswers, NoBatches, NoSymbols, DifferenceOfParts):
    """y = clip(round(mu + s xi)), and its place j among all answers, which its interval depends on.

    Answer j has the failure K/((j+K)(j+K-1)) of all, K being how many are `expected`: widths are best about there, and
    grow slowly for ever. `slant` says for which means the curves are bent.
    """

    method: ClassVar[str] = "endless"
    about: ClassVar[str] = "fixed noise, and a budget that never ends: widths grow slowly"
    unavailable: ClassVar[str] = "too few rows"

    rows: int
    expected: int
    failure: float
    s: float
    slant: float
    grid: float

    @property
    def questions(self) -> int:
        """Where Theorem S itself ends, because one row may matter too much: long after widths are useless."""
        return last_answer(self.rows, self.s)

    @property
    def charge(self) -> float:
        """1/(8 n s^2) nats: the mean of n rows has a variance of at most 1/(4n)."""
        return 1 / (8 * self.rows * self.s**2)

    @property
    def information(self) -> float:
        """Of all answers up to the last."""
        return self.questions * self.charge

    @property
    def accounted(self) -> str:
        """What an answer tells; there is no limit but the last answer's."""
        return f"{self.charge:.4g} nats an answer, and no limit"

    @property
    def advice(self) -> str:
        """What never ending costs."""
        return (
            f"{super().advice} They are those of answer number {self.expected:,}; earlier ones are narrower, later "
            "ones wider. With questions= a number, all are as narrow as the plan for that number says."
        )

    @property
    def shuffles(self) -> bool:
        """False: the order of rows does not matter."""
        return False

    def spans(self, number: int, own: Span | None) -> tuple[Span, ...]:
        """None: all rows."""
        return ()

    def release(self, moments: Moments, noise: float) -> Callable[[Sequence[Any]], dict[str, float]]:
        """y, once it is known how many answers there are before it."""
        value = min(max(round_to_grid(moments.mean + self.s * noise, self.grid), 0.0), 1.0)
        return lambda earlier: {"value": value, "place": float(len(earlier) + 1)}

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """A number in [0, 1] on the grid, and a place that there is."""
        if not isinstance(released, Mapping) or set(released) != set(_NAMES):
            return False
        value, place = (released[name] for name in _NAMES)
        on_grid = 0 <= value <= 1 and float(value / self.grid).is_integer()
        return on_grid and 1 <= place <= self.questions and float(place).is_integer()

    def noise_in(self, released: Mapping[str, float]) -> float:
        """Fixed."""
        return self.s

    def value(self, released: Mapping[str, float]) -> float:
        """y."""
        return released["value"]

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """All truths whose half-width, at this place, reaches y."""
        return self._ends(released["value"], int(released["place"]))

    def _ends(self, value: float, place: int) -> tuple[float, float]:
        last = block(place)[1]
        found = intervals_of(self.rows, self.s, self.failure, self.expected, self.slant, last)
        return found.ends(value, self.grid / 2)

    def half_width(self, mean: float) -> float:
        """Of answer number `expected`."""
        return self.half_width_at(self.expected, mean)

    def half_width_at(self, place: int, mean: float) -> float:
        """Half the length of the interval of the answer at this place, if it reads `mean`."""
        low, high = self._ends(mean, min(place, self.questions))
        return (high - low) / 2

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """Of the next answer."""
        return self.half_width_at(len(released) + 1, mean)

    def history(self, earlier: Sequence[Any]) -> None:
        """Nothing but their number, which each of them says."""
        for place, released in enumerate(earlier, 1):
            if not isinstance(released, Mapping) or released.get("place") != place:
                raise InvalidArgument(f"the answer at place {place} says that it is at another one")

    def confirmed(self, released: Any) -> None:
        """None: nothing is guessed."""
        return

    def widened(self, released: Any) -> None:
        """None: nothing can fail."""
        return

    def problems(self) -> list[str]:
        """Every s, K and slant carries the certificate, while one row may not matter too much."""
        if not (self.rows >= 2 and 0 < self.s <= 1 and self.expected >= 1 and self.slant in SLANTS):
            return ["the noise, the expected number of answers or the slant is out of range"]
        found = grid_problems(self.grid, self.s)
        return found if self.questions >= 1 else [*found, "one row may matter more than q = .9 with the first answer"]

    def charge_outside(self, kind: str, value: float, rows: int, count: int) -> Charges:
        """Refused."""
        raise InvalidArgument(
            "a budget without end cannot account for this: each interval counts the answers before it, and nothing "
            "else; open data with questions= a number and method='symmetrized' (for noise_sd=) or 'calibrated'."
        )


@lru_cache(maxsize=64)
def plan_endless(
    rows: int, failure: float, typical: tuple[float, ...] = TYPICAL_MEANS, expected: int = EXPECTED
) -> Endless | None:
    """The plan whose answer number `expected` is narrowest at the typical means; None with too few rows."""
    if rows > MOST_ROWS:
        return None
    try:
        s, slant = endless_plan(rows, failure, expected, typical)
        found = Endless(rows, expected, failure, s, slant, grid_step(s))
        found.half_width(0.5)
    except InvalidArgument:
        return None
    return None if found.problems() else found
