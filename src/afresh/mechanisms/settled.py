"""Noise that follows a coarse first draw or a hint, with charges settled after each answer (section 17.10)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NoReturn

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import TYPICAL_MEANS, grid_problems, grid_step, own_constants
from afresh.mechanisms.deviations import (
    GROUPING,
    NUMBER,
    OF_GROUPS,
    FollowingDeviation,
    drawn,
    grouped,
    of_number,
    on_grid,
)
from afresh.mechanisms.ghost import MOST_ROWS, ROUNDING, ByGhost
from afresh.mechanisms.parts import DifferenceOfParts, FromAllRows, NoRowAccount
from afresh.moments import Moments, Span
from afresh.theory.numbers import largest_square
from afresh.theory.symmetrized.common import Common
from afresh.theory.symmetrized.constants import Constants
from afresh.theory.symmetrized.numbers import FIRSTS, Shown
from afresh.theory.symmetrized.settled import COARSEST, Settling, highest, settled_plan, world
from afresh.theory.symmetrized.steps import COARSEST_NUMBER, MOST_STEPS, SHARE, step_of, times

_NAMES = frozenset(("value", "times", "spent"))
_NEARLY = 1e-9


@dataclass(frozen=True)
class Settled(ByGhost, FromAllRows, NoRowAccount, DifferenceOfParts):
    """A first draw chooses the noise of a second, whose interval decides what both are charged: about one unit.

    What is released says how many times s its noise was, and what all answers up to it were charged. An answer may use
    what leaves 0.95 of a unit for each of those to come, so there are as many as planned, whatever was asked.
    """

    method: ClassVar[str] = "settled"
    about: ClassVar[str] = "noise that follows the mean, by a coarse first draw or a hint, charged when it is known"
    draws: ClassVar[int] = 2

    rows: int
    questions: int
    failure: float
    s: float
    """The noise of an answer that counts one unit whatever its mean, both draws together."""
    D: float
    """At most this share of pairs differs, for every question, unless something fails that `failure` pays for."""
    bend: float
    lower: float
    height: float
    steps: int
    """The finest noise of a second draw, in sixteenths of an octave."""
    grid: float
    numbers: float = 0.0
    """The finest noise of the last draw of a number, in units of s; 0 in plans whose numbers follow their bounds."""
    grouping: float = 0.0
    """How well the share of a large group would be known; 0 in older plans (`theory.numbers.is_large`)."""
    concave: bool = False
    """Whether kap is the sharper one of Lemma G; not in older plans."""

    @property
    def coarseness(self) -> float:
        """1 if a first draw chooses the noise; with a hint, the noise itself, in units of s."""
        return 1.0

    @cached_property
    def settling(self) -> Settling:
        """The intervals and charges of this plan."""
        c = self._world(self.D)
        return Settling(Common(c, self.questions, self.bend, self.lower, self.height), self.steps, self.numbers)

    def _world(self, pairs: float | None) -> Constants:
        public = self.rows, self.questions, self.s, self.failure, self.steps, self.numbers
        return world(*public, pairs, concave=self.concave)

    @property
    def answers(self) -> int:
        """The same number as questions."""
        return self.questions

    @property
    def charge(self) -> float:
        """Nats, whatever is drawn: noise s reveals at most 1/(8 n s^2), as the mean of n rows has variance 1/(4n)."""
        first, finest = (FIRSTS, self._finest) if self.numbers else (SHARE, times(self.steps))
        return (first + finest**-2) / (8 * self.rows * self.s**2)

    @property
    def _finest(self) -> float:
        return min(times(self.steps), self.numbers or math.inf)

    @property
    def information(self) -> float:
        """The cap on the information of all answers together."""
        return self.questions * self.charge

    @property
    def advice(self) -> str:
        """The questions for which it is narrow."""
        return (
            f"{super().advice} Noise follows the mean of each answer, by a coarse first draw or by about="
            f"{', and of a number its standard deviation' if self.numbers else ''}."
        )

    def release(self, moments: Moments, noise: Any) -> Callable[[Sequence[Any]], dict[str, float]]:
        """Release the second draw, once it is known what the answers before it were charged."""
        one, two = noise
        first = drawn(moments.mean + self.settling.coarse * one, self.grid)
        return lambda earlier: self._released(moments.mean, two, earlier, self.settling.step_after(first), first)

    def _released(
        self, mean: float, noise: float, earlier: Sequence[Any], wanted: int, first: float | None
    ) -> dict[str, float]:
        step, spent = self._admitted(wanted, earlier, hinted=first is None)
        value = drawn(mean + times(step) * self.s * noise, self.grid)
        units = self.settling.units(value, step, hinted=first is None, half_step=self.grid / 2)
        found = {"value": value, "times": times(step), "spent": spent + self.settling.charged(units)}
        return found if first is None else {"first": first, **found}

    def _admitted(self, wanted: int, earlier: Sequence[Any], *, hinted: bool) -> tuple[int, float]:
        """The step that an answer may have, and what was spent before it."""
        spent = float(earlier[-1]["spent"]) if len(earlier) else 0.0
        after = max(self.questions - len(earlier) - 1, 0)
        return min(wanted, self.settling.admitted(spent, after, hinted=hinted)), spent

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether these are draws in [0, 1] on the grid, with a valid noise and an account."""
        if not isinstance(released, Mapping) or set(released) not in (_NAMES, _NAMES | {"first"}):
            return False
        draws = [released[name] for name in ("value", "first") if name in released]
        return all(on_grid(each, self.grid) for each in draws) and self._accounts(released, COARSEST, self.steps)

    def _accounts(self, released: Mapping[str, float], coarsest: int, finest: int) -> bool:
        """Whether it has a valid noise, and says what was spent."""
        noise = released["times"]
        if not (times(MOST_STEPS) * 0.99 < noise < times(coarsest) * 1.01 and released["spent"] > 0):
            return False
        step = step_of(noise)
        return coarsest <= step <= finest and math.isclose(noise, times(step), rel_tol=ROUNDING)

    def noise_in(self, released: Mapping[str, float]) -> float:
        """The noise of the second draw."""
        return self.s * released["times"]

    def value(self, released: Mapping[str, float]) -> float:
        """The second draw."""
        return released["value"]

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """All truths whose half-width, at this noise, reaches it."""
        return self.settling.ends(released["value"], step_of(released["times"]), self.grid / 2)

    def half_width(self, mean: float) -> float:
        """The half-width if the noise in every draw is zero."""
        return self.settling.half_width(mean)

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """The half-width with what is left for the next answer."""
        wanted = self.settling.step_after(mean)
        return self.settling.half_width(mean, self._admitted(wanted, released, hinted=False)[0])

    def history(self, earlier: Sequence[Any]) -> None:
        """Check that every answer used what was left for it, and was charged what its interval says."""
        spent, number = 0.0, self.answering(None)
        for place, released in enumerate(earlier, 1):
            own = number if self.numbers and of_number(released) else self
            if not own.admits(released):
                raise InvalidArgument(f"what was released at place {place} is not an answer of this plan")
            finest, least = own.bounds(released, spent, max(self.questions - place, 0))
            if step_of(released["times"]) > finest:
                raise InvalidArgument(f"the noise of the answer at place {place} is finer than what was left allows")
            if released["spent"] < spent + least * (1 - ROUNDING):
                raise InvalidArgument(f"the answer at place {place} was charged less than its interval says")
            spent = float(released["spent"])

    def bounds(self, released: Mapping[str, float], spent: float, after: int) -> tuple[int, float]:
        """The finest step that such an answer may have had, and the least that it was charged."""
        hinted, step = "first" not in released, step_of(released["times"])
        value, half = released["value"], self.grid / 2
        least = self.settling.units(value, step, hinted=hinted, half_step=half, inward=_NEARLY)
        return self.settling.admitted(spent, after, hinted=hinted), least

    def answering(self, levels: int | None) -> Settled:
        """The mechanism for a question with so many values; for a number, one whose noise follows its deviation."""
        return _Number(**own_constants(self, Settled)) if levels is None and self.numbers else self

    def noise_about(self, mean: float) -> float:
        """The noise, in multiples of s, of an answer whose mean is said to be about this."""
        return times(self.settling.step_about(mean))

    def coarser(self, coarseness: float) -> Settled:
        """The mechanism for an answer with a hint; no other noise can be chosen."""
        step = step_of(coarseness) if 0 < coarseness < 2 else COARSEST
        if not (1 <= step <= self.steps and math.isclose(coarseness, times(step), rel_tol=ROUNDING)):
            raise InvalidArgument(
                f"precision cannot be chosen with method={self.method!r}; leave it out, or say what the answer is "
                "about (about=)."
            )
        return Hinted(**own_constants(self, Settled), hint=step)

    def problems(self) -> list[str]:
        """Theorem S needs room on every row, a bound D that holds, and a curve that is not too high."""
        if not (self.rows >= 2 and 0 < self.s < math.inf and 0 < self.D <= 1):
            return ["the noise or D is out of range"]
        if not (isinstance(self.steps, int) and 0 <= self.steps <= MOST_STEPS):
            return [f"the finest noise is step {self.steps!r}, not one of 0 to {MOST_STEPS}"]
        if self.numbers and not _is_noise(self.numbers):
            return [f"the finest noise of numbers, {self.numbers!r}, is not that of a step"]
        found = grid_problems(self.grid, min(self._finest, 1.0) * self.s)
        if not (0 < self.bend < 1 and 0 < self.lower < 1):
            return [*found, "the bend or the part of lower tails is not within (0, 1)"]
        try:
            least = self._world(None)
        except InvalidArgument as refused:
            return [*found, str(refused)]
        if least.pairs * (1 - ROUNDING) > self.D:
            found.append("D is smaller than the bound of Theorem S")
        c = self.settling.common.constants
        if self.height > highest(c, self.bend, self.lower, numbers=self.numbers > 0) + ROUNDING:
            found.append("the curve is so high that its sum over answers exceeds the failure probability")
        if self.numbers and not self.settling.leaves_room():
            found.append("there is no room for numbers")
        return found

    def charge_outside(self, kind: str, value: float, rows: int, count: int) -> NoReturn:
        """Refused."""
        raise InvalidArgument(
            f"the certificate of method={self.method!r} counts its own draws, and cannot account for this; open data "
            "with method='symmetrized' (for noise_sd=) or method='calibrated'."
        )


@dataclass(frozen=True)
class Hinted(Settled):
    """The same plan's mechanism for an answer whose noise follows a hint: one draw."""

    hint: int = 1
    """The step of its noise."""
    draws: ClassVar[int] = 1

    @property
    def coarseness(self) -> float:
        """The noise, in multiples of s."""
        return times(self.hint)

    def answering(self, levels: int | None) -> Settled:
        """The same mechanism, for a number too: its noise is what the hint says."""
        return self

    def release(self, moments: Moments, noise: Any) -> Callable[[Sequence[Any]], dict[str, float]]:
        """Release the draw, once it is known what the answers before it were charged."""
        (only,) = noise
        return lambda earlier: self._released(moments.mean, only, earlier, self.hint, None)

    def half_width(self, mean: float) -> float:
        """The half-width if the noise in the draw is zero."""
        return self.settling.half_width(mean, self.hint)

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """The half-width with what is left for the next answer."""
        return self.settling.half_width(mean, self._admitted(self.hint, released, hinted=True)[0])


class _Number(FollowingDeviation, Settled):
    """The same plan's mechanism for a number: first draws and a last one, charged once the last is known."""

    @property
    def noise_scale(self) -> float:
        """The noise of the plan."""
        return self.s

    @property
    def reach_scale(self) -> float:
        """The reach at one half."""
        return self._reach

    @cached_property
    def _reach(self) -> float:
        return self.settling.half_width(0.5)

    def _seen(self, released: Mapping[str, float]) -> Shown:
        return self.settling.seen(self.aim(released).centre, released["square"], self.grid / 2)

    def release(self, moments: Moments, noise: Any) -> Callable[[Sequence[Any]], dict[str, float]]:
        """Release the draws, once it is known what the answers before them were charged."""
        found, own = self.first_draws(moments, noise)
        return lambda earlier: self._finished(found, own.mean, noise[2], earlier)

    def _finished(self, found: dict[str, float], mean: float, noise: float, earlier: Sequence[Any]) -> dict[str, float]:
        seen, within = self._seen(found), grouped(found)
        step, spent = self._admits_step(self.aim(found).centre, seen, earlier, grouped=within)
        value = drawn(mean + times(step) * self.s * noise, self.grid)
        units = self.settling.number_units(value, step, seen, grouped=within, half_step=self.grid / 2)
        return {**found, "value": value, "times": times(step), "spent": spent + self.settling.charged(units)}

    def _admits_step(self, centre: float, seen: Shown, earlier: Sequence[Any], *, grouped: bool) -> tuple[int, float]:
        spent = float(earlier[-1]["spent"]) if len(earlier) else 0.0
        after = max(self.questions - len(earlier) - 1, 0)
        wanted = self.settling.number_step(centre, seen, grouped=grouped)
        return min(wanted, self.settling.number_admitted(spent, after, seen, grouped=grouped)), spent

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether these are first draws and a last one in [0, 1] on the grid, with a valid noise and an account."""
        if not of_number(released) or released.keys() - OF_GROUPS != NUMBER | {"spent"}:
            return False
        draws = [released[name] for name in released.keys() - {"times", "spent"}]
        finest = max(self.steps, self.settling.number_steps)
        return all(on_grid(each, self.grid) for each in draws) and self._accounts(released, COARSEST_NUMBER, finest)

    def bounds(self, released: Mapping[str, float], spent: float, after: int) -> tuple[int, float]:
        """The finest step that such an answer may have had, and the least that it was charged."""
        seen, within, step = self._seen(released), grouped(released), step_of(released["times"])
        finest = self.settling.number_admitted(spent, after, seen, grouped=within)
        half = self.grid / 2
        least = self.settling.number_units(
            released["value"], step, seen, grouped=within, half_step=half, inward=_NEARLY
        )
        return finest, least

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """All truths whose half-width, at this noise and given the first draws, reaches the last draw."""
        return self.settling.number_ends(
            released["value"], step_of(released["times"]), self._seen(released), self.grid / 2
        )

    def deviation_width(self, mean: float, deviation: float) -> float:
        """The half-width if the noise in every draw is zero."""
        return self.settling.deviation_width(mean, deviation)

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """The half-width, with what is left for the next answer, for the largest deviation."""
        most = self.settling.seen(mean, min(mean * (1 - mean) / largest_square(mean), 1.0), 0.0)
        step, _ = self._admits_step(mean, most, released, grouped=False)
        return self.settling.deviation_width(mean, math.sqrt(mean * (1 - mean)), step)


def _is_noise(noise: float) -> bool:
    return (
        0 < noise < 2
        and 0 <= step_of(noise) <= MOST_STEPS
        and math.isclose(noise, times(step_of(noise)), rel_tol=ROUNDING)
    )


@lru_cache(maxsize=256)  # pure, and a reopened guard plans again
def plan_settled(
    rows: int,
    questions: int,
    failure: float,
    answers: int | None = None,
    typical: tuple[float, ...] = TYPICAL_MEANS,
    deviation: float | None = None,
) -> Settled | None:
    """The plan that is narrowest in the geometric mean at the typical means, with room for numbers of a `deviation`.

    None if one row would matter too much, or if some answers are to be coarser than others.
    """
    if rows > MOST_ROWS or (answers is not None and answers > questions):
        return None
    try:
        made = settled_plan(rows, questions, failure, typical, deviation)
    except InvalidArgument:
        return None
    common, c = made.common, made.common.constants
    curve = common.bend, common.lower, common.height
    grid = grid_step(min(times(made.steps), made.numbers or 1.0, 1.0) * c.s)
    return Settled(
        rows,
        questions,
        failure,
        c.s,
        c.pairs,
        *curve,
        made.steps,
        grid,
        made.numbers,
        GROUPING if made.numbers else 0.0,
        concave=True,
    )
