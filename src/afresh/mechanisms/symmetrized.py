"""Public Gaussian noise on the mean, certified by comparison with a ghost sample (section 17, Theorem S)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, make_dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import (
    TYPICAL_MEANS,
    Charges,
    Heard,
    grid_problems,
    grid_step,
    own_constants,
    round_to_grid,
)
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
from afresh.mechanisms.ghost import MOST_ROWS, ROUNDING, ByGhost
from afresh.mechanisms.parts import DifferenceOfParts, FromAllRows, ReleasesMean
from afresh.moments import Moments, Span, Vector
from afresh.theory.numbers import SQUARE, largest_square
from afresh.theory.symmetrized.common import (
    Common,
    Intervals,
    common_plan,
    farthest,
    highest,
    of_noise,
    rate_of,
)
from afresh.theory.symmetrized.comparisons import public_pairs
from afresh.theory.symmetrized.constants import Constants, constants
from afresh.theory.symmetrized.fixed import constant_interval
from afresh.theory.symmetrized.numbers import (
    EVENTS,
    MOST_FIRSTS,
    Shown,
    fine_for,
    leaves_room,
    row_units,
    shown,
)
from afresh.theory.symmetrized.prices import highest_with_firsts, room_for_numbers
from afresh.theory.symmetrized.steps import COARSEST_FINE, finest_step, step_of, times
from afresh.theory.symmetrized.vectors import BALL, SHARES, Batch, batch, price

_MOST_OF_A_VECTOR = {SHARES: 4, BALL: 1}  # 4 (1 - 1/m) (1 + t), or 1 + t, is beyond it only in plans of few questions


@dataclass(frozen=True)
class Symmetrized(ByGhost, FromAllRows, ReleasesMean, DifferenceOfParts):
    """y = clip(round(mu + s xi)): noise s, bound D on the pairs that differ, cap q on one row, and one curve.

    The curve has the bend l, and spends the part `lower` on lower tails; it gives every answer its interval, whatever
    the mean, the noise and the number of the answer. Ends depend on every constant, so all are part of a plan.
    """

    method: ClassVar[str] = "symmetrized"
    about: ClassVar[str] = "fixed noise on the mean, compared with a ghost sample"

    rows: int
    questions: int
    failure: float
    s: float
    D: float
    """At most this share of pairs differs, for every question, unless something fails that `failure` pays for."""
    q: float
    """The cap on how much all answers together may depend on one row."""
    bend: float
    lower: float
    most: int
    """The most answers if some are coarser; at least `questions`."""
    finest: float
    """The least noise, as a share of s, for a difference that is 0 on most of the rows, whose features are public."""
    grid: float
    """The step of the public grid on which y lies."""
    height: float = 0.0
    """ln a of the curve; 0 in plans made before it was kept, which sum over answers in a coarser way."""
    numbers: float = 0.0
    """The finest noise of the last draw of a number, in units of s; 0 where numbers follow their bounds."""
    grouping: float = 0.0
    """How well the share of a large group would be known; 0 in older plans (`theory.numbers.is_large`)."""
    concave: bool = False
    """Whether kap is the sharper one of Lemma G; not in older plans."""
    firsts: float = 1.0
    """What first draws of a number count for, in units of the usual; less with few questions, more with very many."""

    @property
    def coarseness(self) -> float:
        """An answer's noise, in multiples of the plan's."""
        return 1.0

    @cached_property
    def _constants(self) -> Constants:
        return self._world(self.D)

    def _world(self, pairs: float | None) -> Constants:
        return constants(
            self.rows,
            self.questions,
            self.s,
            self.failure,
            least=self._least * self.s,
            row=self.q,
            events=self.most * (EVENTS if self.numbers else 1),
            answers=self.most,
            alike=False,
            concave=self.concave,
            pairs=pairs,
        )

    @property
    def _least(self) -> float:
        """The least noise of any answer, as a share of s."""
        return min(self.finest, self.numbers or 1.0)

    @cached_property
    def _common(self) -> Common:
        height = self.height or highest(self._constants, self.most, self.bend, self.lower, first=True)
        return Common(self._constants, self.most, self.bend, self.lower, height)

    @cached_property
    def _intervals(self) -> Intervals:
        return Intervals(self._common, self.s * self.coarseness)

    @property
    def answers(self) -> int:
        """The most answers if some are coarser."""
        return self.most

    @property
    def charge(self) -> float:
        """D/(4 n s^2) nats: a row's part of an answer has at most half the variance of its pair."""
        return self.D / (4 * self.rows * self.s**2)

    @property
    def information(self) -> float:
        """The cap on the information of all answers together."""
        return self.questions * self.D / (4 * self.rows * self.s**2)

    @property
    def row_charge(self) -> float:
        """1/(4 n^2 s^2): how much one answer may depend on one row."""
        return self._row_unit / self.coarseness**2

    @property
    def row_share(self) -> float:
        """How much all answers together may depend on one row; an answer's own row counts four times in q."""
        return self.q - 3 * self._row_unit / self._least**2

    @property
    def _row_unit(self) -> float:
        return 1 / (4 * self.rows**2 * self.s**2)

    @property
    def advice(self) -> str:
        """The guarantee, and where it is narrow."""
        return f"{super().advice} They are narrowest for means not near 0 or 1, and hardly grow with the confidence."

    def release(self, moments: Moments, noise: float) -> float:
        """y: noise of fixed scale on the mean, on the public grid, within [0, 1]."""
        noisy = moments.mean + self.s * self.coarseness * noise
        return min(max(round_to_grid(noisy, self.grid), 0.0), 1.0)

    def noise_in(self, released: float) -> float:
        """The noise is fixed."""
        return self.s * self.coarseness

    def interval(self, released: float, *, levels: int | None = None) -> tuple[float, float]:
        """All truths whose half-width reaches y, the same for every kind of query; rounding costs half a step."""
        return self._intervals.ends(released, self.grid / 2)

    def coarser(self, coarseness: float) -> Symmetrized:
        """Noise s f on the same curve, grid and accounts: coarser (17.7), or finer for a public difference (17.9)."""
        if not self.finest <= coarseness < math.inf:
            raise InvalidArgument(f"coarseness == {coarseness}, must be at least {self.finest:.4g}.")
        kind = _of_other_noise(type(self), _Coarser if coarseness >= 1 else _Finer)
        return kind(**asdict(self), times=coarseness)

    def answering(self, levels: int | None) -> Symmetrized:
        """The mechanism for a question with so many values; for a number, one whose noise follows its deviation.

        An exception is a public difference of models, whose noise follows the number of rows on which they differ.
        """
        if levels is not None or not self.numbers or self.coarseness < 1:
            return self
        return _of_other_noise(Symmetrized, _Number)(**own_constants(self, Symmetrized), times=self.coarseness)

    def at_once(self, kind: str, size: int) -> Vector | None:
        """The vector, which counts as many answers as its noise costs, rounded, but at most four or one."""
        found = Vector(kind, size, min(max(round(price(self._common, kind, size)), 1), _MOST_OF_A_VECTOR[kind]))
        return found if found.answers < size else None

    def coordinate(self, vector: Vector) -> Symmetrized:
        """The mechanism with the vector's noise, and its part of the share that the vector's answers have."""
        made = batch(self._common, vector.kind, vector.size, vector.answers)
        kind = _of_other_noise(type(self), _Coordinate)
        return kind(**asdict(self), times=made.times, vector=vector)

    def noise_following(self, disagreement: float) -> float:
        """f: an answer about (1 + d)/2 with noise s f counts as one, if d is 0 on all but this share of public rows."""
        share = math.sqrt(public_pairs(self._constants, disagreement) / self.D) * (1 + 1e-12)
        return min(max(share, self.finest), 1.0)

    def difference(self, *parts: Heard) -> tuple[float, tuple[float, float]]:
        """The difference from its two parts, or from the one answer about (1 + d)/2."""
        if len(parts) == 2:
            return super().difference(*parts)
        (only,) = parts
        return 2 * only.value - 1, (2 * only.low - 1, 2 * only.high - 1)

    def disagreement(self, *parts: Heard) -> float:
        """The sum of the two shares; for one answer, roughly what its noise followed."""
        if len(parts) == 2:
            return super().disagreement(*parts)
        return min(2 * self.D * float(parts[0].mechanism.coarseness) ** 2, 1.0)

    def problems(self) -> list[str]:
        """Theorem S needs room on every row, a bound D that holds, and a curve."""
        if not (self.rows >= 2 and 0 < self.s < math.inf and 0 < self.D <= 1 and 0 < self.q < 1):
            return ["the noise, D or the cap on one row is out of range"]
        found = grid_problems(self.grid, self._least * self.s)
        if not 0 <= self.numbers <= COARSEST_FINE or (self.numbers and not self.height):
            return [*found, f"the finest noise of numbers is not within [0, {COARSEST_FINE:.3g}]"]
        if not (0 < self.bend < 1 and 0 < self.lower < 1 and 0 < self.finest <= 1):
            return [*found, "the bend, the part of lower tails or the finest noise is not within (0, 1]"]
        if self.row_share < self.questions * self._row_unit * (1 - ROUNDING):
            found.append("one row may matter more than q says")
        try:
            least = self._world(None).pairs
        except InvalidArgument as refused:
            return [*found, str(refused)]
        if least * (1 - ROUNDING) > self.D:
            found.append("D is smaller than the bound of Theorem S")
        firsts = self.firsts if self.numbers else 0.0
        if self.height and self.height > highest_with_firsts(self._common, firsts) + ROUNDING:
            found.append("the curve is so high that its sum over answers exceeds the failure probability")
        within = 0 < self.firsts <= MOST_FIRSTS
        if self.numbers and not (within and leaves_room(self._constants, self._rate, self.firsts)):
            found.append("there is no room for numbers")
        return found

    @property
    def _rate(self) -> float:
        return rate_of(self.bend)

    def charge_outside(self, kind: str, value: float, rows: int, count: int) -> Charges:
        """A mean of numbers in [0, 1] with Gaussian noise is an answer; with fewer rows, all pairs may differ."""
        if kind != "noise_sd":
            raise InvalidArgument(
                f"the certificate of method={self.method!r} cannot account for this: it compares the law of the "
                "answers themselves, which other releases do not have. Means with Gaussian noise can be charged to it "
                "(noise_sd=); for anything else, open data with method='calibrated'."
            )
        share = rows / self.rows

        def units(noise: float) -> float:
            """The charge in answers: by its noise if it uses all rows; otherwise what kap and one row admit."""
            pairs = 1.0 if rows == self.rows else max(1 / (share * self.D), 1 / share**2)
            return float(pairs * (self.s / noise) ** 2)

        if units(value) > 1:
            raise InvalidArgument(
                f"noise_sd == {value}: the plan admits no answer that tells more than one of its own; the noise would "
                f"have to be at least {1.001 * self.s * math.sqrt(units(self.s)):.4g}."
            )
        return Charges(count * units(value) * self.charge, count * units(value) * self.row_charge, count)


class _Coarser(Symmetrized):
    """The same plan's mechanism for an answer with more noise."""

    times: float

    @property
    def coarseness(self) -> float:
        return self.times

    @property
    def charge(self) -> float:
        return super().charge / self.times**2


class _Finer(Symmetrized):
    """The same for an answer about a public difference: its pairs differ less, in step with its noise (17.9)."""

    times: float

    @property
    def coarseness(self) -> float:
        return self.times

    @cached_property
    def _reach(self) -> float:
        return self.s * self.times * self._common.width(self._constants.reach)

    def interval(self, released: float, *, levels: int | None = None) -> tuple[float, float]:
        return constant_interval(released, self._reach, self.grid / 2)

    def difference_width(self, disagreement: float) -> float:
        return 2 * self._reach + self.grid


class _Coordinate(Symmetrized):
    """The same for a coordinate of a vector that is released at once; the first one has the charge of all (18)."""

    times: float
    vector: Vector

    @property
    def coarseness(self) -> float:
        return self.times

    @cached_property
    def _batch(self) -> Batch:
        return batch(self._common, self.vector.kind, self.vector.size, self.vector.answers)

    @cached_property
    def _intervals(self) -> Intervals:
        return _shared_intervals(self._batch, self._common)

    @property
    def charge(self) -> float:
        return 0.0 if self.vector.place else self.vector.answers * super().charge

    @property
    def row_charge(self) -> float:
        return 0.0 if self.vector.place else self.vector.answers * self._row_unit


class _Number(FollowingDeviation, Symmetrized):
    """The same for a number: its draws together count as one answer of its coarseness (17.10)."""

    times: float

    @property
    def coarseness(self) -> float:
        return self.times

    @property
    def charge(self) -> float:
        return super().charge / self.times**2

    @property
    def row_charge(self) -> float:
        return row_units(self.numbers, self.firsts) * self._row_unit / self.times**2

    def coarser(self, coarseness: float) -> Symmetrized:
        """The same number in a coarser answer."""
        plain = Symmetrized(**own_constants(self, Symmetrized))
        return plain.coarser(self.times * coarseness).answering(None)

    @property
    def noise_scale(self) -> float:
        """The noise of a plain answer of its coarseness."""
        return self.s * self.times

    @cached_property
    def reach_scale(self) -> float:
        """The reach at one half."""
        low, high = self._intervals.ends(0.5, 0.0)
        return (high - low) / 2

    def _seen(self, released: Mapping[str, float]) -> Shown:
        return self._after(self.aim(released).centre, released["square"], self.grid / 2)

    def _after(self, centre: float, square: float, half_step: float) -> Shown:
        return shown(self._constants, centre, square, self.noise_scale / math.sqrt(SQUARE * self.firsts), half_step)

    def _step(self, seen: Shown, *, grouped: bool) -> int:
        """The finest noise with which the number counts as one answer."""
        step, parts = self._constants.step / self.times**2, (seen.pairs / self.D, seen.square / self.D)
        return finest_step(fine_for(step, self._rate, *parts, grouped=grouped, firsts=self.firsts), self.numbers)

    def release(self, moments: Moments, noise: Any) -> dict[str, float]:  # type: ignore[override] # as `draws` says
        """The draws, each on the public grid and within [0, 1]."""
        found, own = self.first_draws(moments, noise)
        f = times(self._step(self._seen(found), grouped=grouped(found)))
        return {**found, "value": drawn(own.mean + f * self.noise_scale * noise[2], self.grid), "times": f}

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether these are draws in [0, 1] on the grid, with a noise that is not finer than the first ones allow."""
        if not of_number(released) or released.keys() - OF_GROUPS != NUMBER:
            return False
        if not all(on_grid(released[name], self.grid) for name in released if name != "times"):
            return False
        step = allowed_step(released["times"])
        return step is not None and step <= self._step(self._seen(released), grouped=grouped(released))

    def noise_in(self, released: Mapping[str, float]) -> float:  # type: ignore[override] # as it releases
        """The noise of the last draw."""
        return self.noise_scale * released["times"]

    def value(self, released: Mapping[str, float]) -> float:  # type: ignore[override] # as it releases
        """The last draw."""
        return released["value"]

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:  # type: ignore[override] # as it releases
        """All truths whose half-width, at this noise and given the first draws, reaches the last draw."""
        seen = self._seen(released)
        return self._ends(released["value"], step_of(released["times"]), seen.pairs, self.grid / 2)

    def _ends(self, value: float, step: int, pairs: float, half_step: float) -> tuple[float, float]:
        return of_noise(self._common, self.noise_scale * times(step)).ends(
            value, half_step, farthest(self._common, self.noise_scale * times(step), pairs)
        )

    def deviation_width(self, mean: float, deviation: float) -> float:
        """The half-width if the noise in every draw is zero."""
        seen = self._after(mean, min(deviation**2 / largest_square(mean), 1.0), 0.0)
        low, high = self._ends(mean, self._step(seen, grouped=False), seen.pairs, 0.0)
        return (high - low) / 2


@lru_cache(maxsize=64)
def _shared_intervals(made: Batch, common: Common) -> Intervals:
    """One table for all coordinates."""
    return made.intervals(common)


@cache
def _of_other_noise(plan: type[Symmetrized], answer: type[Symmetrized]) -> Callable[..., Symmetrized]:
    """A plan's constants, the multiple of its noise that an answer has, and the vector of which it is a coordinate."""
    further: list[Any] = [("times", float, 1.0)]
    if answer is _Coordinate:
        further.append(("vector", Vector, None))
    return make_dataclass(answer.__name__, further, bases=(answer, plan), frozen=True)


@lru_cache(maxsize=256)  # pure, and a reopened guard plans again
def plan_symmetrized(
    rows: int,
    questions: int,
    failure: float,
    answers: int | None = None,
    typical: tuple[float, ...] = TYPICAL_MEANS,
    disagreement: float | None = None,
) -> Symmetrized | None:
    """The plan that is narrowest in the geometric mean at the typical means; None if one row would matter too much.

    With a `disagreement`, models whose features are public can be compared at the price of one answer.
    """
    most = questions if answers is None else answers
    if rows > MOST_ROWS:
        return None
    try:
        found, finest = common_plan(
            rows, questions, failure, answers=most, typical=typical, disagreement=disagreement, concave=True
        )
    except InvalidArgument:
        return None
    numbers, firsts = 0.0, 1.0
    # With a disagreement, comparisons take the room, and it is their widths that would grow.
    if disagreement is None and (made := room_for_numbers(found, typical)) is not None:
        found, numbers, firsts = made.common, made.numbers, made.firsts
    c, curve = found.constants, (found.bend, found.lower)
    grid = grid_step(min(finest, numbers or 1.0) * c.s)
    own = finest, grid, found.height, numbers, GROUPING if numbers else 0.0
    return Symmetrized(rows, questions, failure, c.s, c.pairs, c.row, *curve, most, *own, concave=True, firsts=firsts)
