"""Noise that follows a coarse first draw or a hint, with charges that are settled after each answer (section 17.10)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NoReturn

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import TYPICAL_MEANS, grid_problems, grid_step, round_to_grid
from afresh.mechanisms.ghost import MOST_ROWS, ROUNDING, ByGhost
from afresh.mechanisms.parts import DifferenceOfParts, FromAllRows, NoRowAccount
from afresh.moments import Moments, Span
from afresh.theory.symmetrized.common import Common
from afresh.theory.symmetrized.settled import (
    COARSEST,
    MOST_STEPS,
    SHARE,
    Settling,
    highest,
    settled_plan,
    step_of,
    times,
    world,
)

_NAMES = frozenset(("value", "times", "spent"))
_NEARLY = 1e-9


@dataclass(frozen=True)
class Settled(ByGhost, FromAllRows, NoRowAccount, DifferenceOfParts):
    """A first draw chooses the noise of a second, whose interval says what both are charged: about one unit.

    What is released says how many times s its noise was, and what all answers up to it were charged. An answer may have
    what leaves 0.95 of a unit to each of those to come, so there are as many as were planned, whatever was asked.
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

    @property
    def coarseness(self) -> float:
        """1: by a first draw. With a hint the noise itself, in units of s."""
        return 1.0

    @cached_property
    def settling(self) -> Settling:
        """Its intervals and charges."""
        c = world(self.rows, self.questions, self.s, self.failure, self.steps, pairs=self.D)
        return Settling(Common(c, self.questions, self.bend, self.lower, self.height), self.steps)

    @property
    def answers(self) -> int:
        """As many as questions."""
        return self.questions

    @property
    def charge(self) -> float:
        """Nats, whatever is drawn: noise s tells at most 1/(8 n s^2), as the mean of n rows has variance 1/(4n)."""
        return (SHARE + times(self.steps) ** -2) / (8 * self.rows * self.s**2)

    @property
    def information(self) -> float:
        """The cap on the information of all answers together."""
        return self.questions * self.charge

    @property
    def advice(self) -> str:
        """For what it is narrow."""
        return f"{super().advice} Noise follows the mean of each answer, by a coarse first draw or by about=."

    def release(self, moments: Moments, noise: Any) -> Callable[[Sequence[Any]], dict[str, float]]:
        """The second draw, once it is known what the answers before it were charged."""
        one, two = noise
        first = self._rounded(moments.mean + self.settling.coarse * one)
        return lambda earlier: self._released(moments.mean, two, earlier, self.settling.step_after(first), first)

    def _released(
        self, mean: float, noise: float, earlier: Sequence[Any], wanted: int, first: float | None
    ) -> dict[str, float]:
        step, spent = self._admitted(wanted, earlier, hinted=first is None)
        value = self._rounded(mean + times(step) * self.s * noise)
        units = self.settling.units(value, step, hinted=first is None, half_step=self.grid / 2)
        found = {"value": value, "times": times(step), "spent": spent + self.settling.charged(units)}
        return found if first is None else {"first": first, **found}

    def _admitted(self, wanted: int, earlier: Sequence[Any], *, hinted: bool) -> tuple[int, float]:
        """The step that an answer may have, and what was spent before it."""
        spent = float(earlier[-1]["spent"]) if len(earlier) else 0.0
        after = max(self.questions - len(earlier) - 1, 0)
        return min(wanted, self.settling.admitted(spent, after, hinted=hinted)), spent

    def _rounded(self, noisy: float) -> float:
        return min(max(round_to_grid(noisy, self.grid), 0.0), 1.0)

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Draws in [0, 1] on the grid, a noise that there is, and an account."""
        if not isinstance(released, Mapping) or set(released) not in (_NAMES, _NAMES | {"first"}):
            return False
        on_grid = all(
            0 <= released[name] <= 1 and float(released[name] / self.grid).is_integer()
            for name in ("value", "first")
            if name in released
        )
        noise = released["times"]
        if not (on_grid and times(MOST_STEPS) * 0.99 < noise < 2 and released["spent"] > 0):
            return False
        step = step_of(noise)
        return COARSEST <= step <= self.steps and math.isclose(noise, times(step), rel_tol=ROUNDING)

    def noise_in(self, released: Mapping[str, float]) -> float:
        """That of the second draw."""
        return self.s * released["times"]

    def value(self, released: Mapping[str, float]) -> float:
        """The second draw."""
        return released["value"]

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """All truths whose half-width, at this noise, reaches it."""
        return self.settling.ends(released["value"], step_of(released["times"]), self.grid / 2)

    def half_width(self, mean: float) -> float:
        """If no draw has noise."""
        return self.settling.half_width(mean)

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """With what is left for the next answer."""
        wanted = self.settling.step_after(mean)
        return self.settling.half_width(mean, self._admitted(wanted, released, hinted=False)[0])

    def history(self, earlier: Sequence[Any]) -> None:
        """Every answer had what was left for it, and was charged what its interval says."""
        spent = 0.0
        for place, released in enumerate(earlier, 1):
            if not self.admits(released):
                raise InvalidArgument(f"what was released at place {place} is not an answer of this plan")
            hinted, step = "first" not in released, step_of(released["times"])
            after = max(self.questions - place, 0)
            if step > self.settling.admitted(spent, after, hinted=hinted):
                raise InvalidArgument(f"the noise of the answer at place {place} is finer than what was left allows")
            value, half = released["value"], self.grid / 2
            least = self.settling.units(value, step, hinted=hinted, half_step=half, inward=_NEARLY)
            if released["spent"] < spent + least * (1 - ROUNDING):
                raise InvalidArgument(f"the answer at place {place} was charged less than its interval says")
            spent = float(released["spent"])

    def noise_about(self, mean: float) -> float:
        """How many times s the noise of an answer is, whose mean is said to be about this."""
        return times(self.settling.step_about(mean))

    def coarser(self, coarseness: float) -> Settled:
        """The mechanism of an answer with a hint; no other noise can be chosen."""
        step = step_of(coarseness) if 0 < coarseness < 2 else COARSEST
        if not (1 <= step <= self.steps and math.isclose(coarseness, times(step), rel_tol=ROUNDING)):
            raise InvalidArgument(
                f"precision cannot be chosen with method={self.method!r}; leave it out, or say what the answer is "
                "about (about=)."
            )
        return Hinted(**{each.name: getattr(self, each.name) for each in fields(Settled)}, hint=step)

    def problems(self) -> list[str]:
        """Theorem S asks for room on every row, a bound D that holds, and a curve that is not too high."""
        if not (self.rows >= 2 and 0 < self.s < math.inf and 0 < self.D <= 1):
            return ["the noise or D is out of range"]
        if not (isinstance(self.steps, int) and 0 <= self.steps <= MOST_STEPS):
            return [f"the finest noise is step {self.steps!r}, not one of 0 to {MOST_STEPS}"]
        found = grid_problems(self.grid, min(times(self.steps), 1.0) * self.s)
        if not (0 < self.bend < 1 and 0 < self.lower < 1):
            return [*found, "the bend or the part of lower tails is not within (0, 1)"]
        try:
            least = world(self.rows, self.questions, self.s, self.failure, self.steps)
        except InvalidArgument as refused:
            return [*found, str(refused)]
        if least.pairs * (1 - ROUNDING) > self.D:
            found.append("D is smaller than the bound of Theorem S")
        if self.height > highest(self.settling.common.constants, self.bend, self.lower) + ROUNDING:
            found.append("the curve is so high that its sum over answers exceeds the failure probability")
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
        """How many times s."""
        return times(self.hint)

    def release(self, moments: Moments, noise: Any) -> Callable[[Sequence[Any]], dict[str, float]]:
        """The draw, once it is known what the answers before it were charged."""
        (only,) = noise
        return lambda earlier: self._released(moments.mean, only, earlier, self.hint, None)

    def half_width(self, mean: float) -> float:
        """If the draw has no noise."""
        return self.settling.half_width(mean, self.hint)

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """With what is left for the next answer."""
        return self.settling.half_width(mean, self._admitted(self.hint, released, hinted=True)[0])


@lru_cache(maxsize=256)  # pure, and a guard opened again plans again
def plan_settled(
    rows: int,
    questions: int,
    failure: float,
    answers: int | None = None,
    typical: tuple[float, ...] = TYPICAL_MEANS,
) -> Settled | None:
    """The plan that is narrowest in the geometric mean at the typical means.

    None if one row would matter too much, or where some answers are to be coarser than others.
    """
    if rows > MOST_ROWS or (answers is not None and answers > questions):
        return None
    try:
        made = settled_plan(rows, questions, failure, typical)
    except InvalidArgument:
        return None
    common, c = made.common, made.common.constants
    curve = common.bend, common.lower, common.height
    return Settled(rows, questions, failure, c.s, c.pairs, *curve, made.steps, grid_step(times(made.steps) * c.s))
