"""A budget that never runs out: answers with fixed noise, each with its own constants (section 17.8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import TYPICAL_MEANS, Charges, grid_problems, grid_step, own_constants
from afresh.mechanisms.deviations import (
    GROUPING,
    NUMBER,
    OF_GROUPS,
    FollowingDeviation,
    allowed_step,
    drawn,
    grouped,
    of_number,
    on_grid,
)
from afresh.mechanisms.ghost import MOST_ROWS, ByGhost
from afresh.mechanisms.parts import DifferenceOfParts, EqualAnswers, NoBatches, NoSymbols
from afresh.moments import Moments, Span
from afresh.theory.numbers import SQUARE, largest_square
from afresh.theory.symmetrized.common import Intervals, farthest
from afresh.theory.symmetrized.endless import (
    NUMBER_SHARE,
    SLANTS,
    EndlessPlan,
    block,
    endless_plan,
    intervals_of,
    last_answer,
)
from afresh.theory.symmetrized.numbers import Shown, plainly_fine, shown
from afresh.theory.symmetrized.steps import COARSEST_FINE, finest_step, step_of, times

EXPECTED = 1000
_NAMES = ("value", "place")


@dataclass(frozen=True)
class Endless(ByGhost, EqualAnswers, NoBatches, NoSymbols, DifferenceOfParts):
    """y = clip(round(mu + s xi)), and its position j among all answers, which its interval depends on.

    Answer j has the share K/((j+K)(j+K-1)) of the failure probability, where K is how many are `expected`: widths are
    best near there, and grow slowly for ever. `slant` decides for which means the curves are bent.
    """

    method: ClassVar[str] = "endless"
    about: ClassVar[str] = "fixed noise, and a budget that never runs out: widths grow slowly"
    unavailable: ClassVar[str] = "too few rows"

    rows: int
    expected: int
    failure: float
    s: float
    slant: float
    grid: float
    numbers: float = 0.0
    """The finest noise of the last draw of a number, in units of s; 0 where numbers follow their bounds."""
    grouping: float = 0.0
    """How well the share of a large group would be known; 0 in older plans (`theory.numbers.is_large`)."""
    concave: bool = False
    """Whether kap is the sharper one of Lemma G; not in older plans."""

    @property
    def questions(self) -> int:
        """Where Theorem S itself ends, because one row may matter too much: long after widths have become useless."""
        return last_answer(self.rows, self.s, self.numbers)

    def answering(self, levels: int | None) -> Endless:
        """The mechanism for a question with so many values; for a number, one whose noise follows its deviation."""
        return _Number(**own_constants(self, Endless)) if levels is None and self.numbers else self

    @property
    def charge(self) -> float:
        """1/(8 n s^2) nats: the mean of n rows has a variance of at most 1/(4n)."""
        return 1 / (8 * self.rows * self.s**2)

    @property
    def information(self) -> float:
        """The information of all answers up to the last."""
        return self.questions * self.charge

    @property
    def accounted(self) -> str:
        """What an answer reveals; the only limit is that of the last answer."""
        return f"{self.charge:.4g} nats per answer, and no limit"

    @property
    def advice(self) -> str:
        """What a budget that never runs out costs."""
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
        """Release y, once it is known how many answers came before it."""
        value = drawn(moments.mean + self.s * noise, self.grid)
        return lambda earlier: {"value": value, "place": float(len(earlier) + 1)}

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether it is a number in [0, 1] on the grid, with a valid position."""
        if not isinstance(released, Mapping) or set(released) != set(_NAMES):
            return False
        return on_grid(released["value"], self.grid) and self._has_place(released["place"])

    def _has_place(self, place: float) -> bool:
        return 1 <= place <= self.questions and float(place).is_integer()

    def noise_in(self, released: Mapping[str, float]) -> float:
        """The noise is fixed."""
        return self.s

    def value(self, released: Mapping[str, float]) -> float:
        """y."""
        return released["value"]

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """All truths whose half-width, at this position, reaches y."""
        return self._ends(released["value"], int(released["place"]))

    def _ends(self, value: float, place: int) -> tuple[float, float]:
        return self._table(place).ends(value, self.grid / 2)

    def _table(self, place: int, times: float = 1.0) -> Intervals:
        plan = EndlessPlan(self.rows, self.s, self.failure, self.expected, self.slant, self.numbers, self.concave)
        return intervals_of(plan, block(place)[1], times)

    def half_width(self, mean: float) -> float:
        """The half-width of answer number `expected`."""
        return self.half_width_at(self.expected, mean)

    def half_width_at(self, place: int, mean: float) -> float:
        """Half the length of the interval of the answer at this position, if it reads `mean`."""
        low, high = self._ends(mean, min(place, self.questions))
        return (high - low) / 2

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """The half-width of the next answer."""
        return self.half_width_at(len(released) + 1, mean)

    def history(self, earlier: Sequence[Any]) -> None:
        """Only the number of answers, which each of them records."""
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
        """Every s, K and slant supports the certificate, as long as one row cannot matter too much."""
        if not (self.rows >= 2 and 0 < self.s <= 1 and self.expected >= 1 and self.slant in SLANTS):
            return ["the noise, the expected number of answers or the slant is out of range"]
        if not 0 <= self.numbers <= COARSEST_FINE:
            return [f"the finest noise of numbers is not within [0, {COARSEST_FINE:.3g}]"]
        found = grid_problems(self.grid, self.s * min(self.numbers or 1.0, 1.0))
        return found if self.questions >= 1 else [*found, "one row may matter more than q = .9 with the first answer"]

    def charge_outside(self, kind: str, value: float, rows: int, count: int) -> Charges:
        """Refused."""
        raise InvalidArgument(
            "a budget without end cannot account for this: each interval counts the answers before it, and nothing "
            "else; open data with questions= a number and method='symmetrized' (for noise_sd=) or 'calibrated'."
        )


class _Number(FollowingDeviation, Endless):
    """The same for a number, whose draws together count as one answer (17.10)."""

    @property
    def noise_scale(self) -> float:
        """The noise of the plan."""
        return self.s

    @cached_property
    def reach_scale(self) -> float:
        """The reach of answer number `expected`, at one half."""
        low, high = self._table(self.expected).ends(0.5, 0.0)
        return (high - low) / 2

    def _seen(self, centre: float, square: float, place: int, half_step: float) -> Shown:
        c = self._table(place).common.constants
        return shown(c, centre, square, self.s / math.sqrt(SQUARE), half_step)

    def _shown(self, released: Mapping[str, float], place: int) -> Shown:
        return self._seen(self.aim(released).centre, released["square"], place, self.grid / 2)

    def _step(self, seen: Shown, place: int, *, grouped: bool) -> int:
        """The finest noise with which the number counts as one answer."""
        most = self._table(place).common.constants.pairs
        fine = plainly_fine(seen.pairs / most, seen.square / most, grouped=grouped, most=NUMBER_SHARE)
        return finest_step(fine, self.numbers)

    def release(self, moments: Moments, noise: Any) -> Callable[[Sequence[Any]], dict[str, float]]:
        """Release the draws, once it is known how many answers came before."""
        found, own = self.first_draws(moments, noise)

        def placed(earlier: Sequence[Any]) -> dict[str, float]:
            place = len(earlier) + 1
            f = times(self._step(self._shown(found, place), place, grouped=grouped(found)))
            value = drawn(own.mean + f * self.s * noise[2], self.grid)
            return {**found, "value": value, "times": f, "place": float(place)}

        return placed

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether these are draws in [0, 1] on the grid, with a valid position and a noise that the first allow."""
        if not of_number(released) or released.keys() - OF_GROUPS != NUMBER | {"place"}:
            return False
        draws = [released[name] for name in released.keys() - {"times", "place"}]
        if not (all(on_grid(each, self.grid) for each in draws) and self._has_place(released["place"])):
            return False
        step, place = allowed_step(released["times"]), int(released["place"])
        return step is not None and step <= self._step(self._shown(released, place), place, grouped=grouped(released))

    def noise_in(self, released: Mapping[str, float]) -> float:
        """The noise of the last draw."""
        return self.s * released["times"]

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """All truths whose half-width, at this position and noise and given the first draws, reaches the last draw."""
        place = int(released["place"])
        seen = self._shown(released, place)
        return self._number_ends(released["value"], place, step_of(released["times"]), seen.pairs, self.grid / 2)

    def _number_ends(self, value: float, place: int, step: int, pairs: float, half_step: float) -> tuple[float, float]:
        table = self._table(place, times(step))
        return table.ends(value, half_step, farthest(table.common, table.s, pairs))

    def deviation_width(self, mean: float, deviation: float) -> float:
        """The half-width of answer number `expected`, if the noise in every draw is zero."""
        return self._width_at(self.expected, mean, deviation)

    def half_width_at(self, place: int, mean: float) -> float:
        """The half-width for the largest deviation that this mean allows."""
        return self._width_at(place, mean, math.sqrt(mean * (1 - mean)))

    def _width_at(self, place: int, mean: float, deviation: float) -> float:
        place = min(place, self.questions)
        seen = self._seen(mean, min(deviation**2 / largest_square(mean), 1.0), place, 0.0)
        step = self._step(seen, place, grouped=False)
        low, high = self._number_ends(mean, place, step, seen.pairs, 0.0)
        return (high - low) / 2


@lru_cache(maxsize=64)
def plan_endless(
    rows: int, failure: float, typical: tuple[float, ...] = TYPICAL_MEANS, expected: int = EXPECTED
) -> Endless | None:
    """The plan whose answer number `expected` is narrowest at the typical means; None with too few rows."""
    if rows > MOST_ROWS:
        return None
    try:
        s, slant, numbers = endless_plan(rows, failure, expected, typical)
        grid, grouping = grid_step(s * min(numbers or 1.0, 1.0)), GROUPING if numbers else 0.0
        found = Endless(rows, expected, failure, s, slant, grid, numbers, grouping, concave=True)
        found.half_width(0.5)
    except InvalidArgument:
        return None
    return None if found.problems() else found
