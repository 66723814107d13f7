"""Noise that follows a coarse first draw or a hint, charged for the interval that came out (17.10).

A question is answered by y1, its mean with noise c s, which only chooses f, and y2, its mean with noise f s. Both have
one direction, so together they are one answer whose noise s/sqrt(v) has v = 1/c^2 + 1/f^2; with a hint there is no y1.
D' = max D(P) over the interval of y2 bounds d until the first miss. So the answer is charged u = v D'/D of a plain
answer's unit, when it is known, and at least `FLOOR`: the next answers have what is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from afresh.errors import InvalidArgument
from afresh.theory.numbers import FIRST, IN_GROUP, SQUARE, largest_square
from afresh.theory.search import minimize_between
from afresh.theory.symmetrized.common import (
    Common,
    Intervals,
    cell_of,
    cell_pairs,
    farthest,
    of_noise,
    pairs_of,
    rate_of,
)
from afresh.theory.symmetrized.constants import Constants, constants
from afresh.theory.symmetrized.fixed import best_noise, round_noise
from afresh.theory.symmetrized.numbers import (
    EVENTS,
    FIRSTS,
    USUAL_DEVIATION,
    WORTH,
    Shown,
    counted,
    fine_usual,
    first_exponent,
    parts_of,
    shown,
)
from afresh.theory.symmetrized.plain import Point, interpolate
from afresh.theory.symmetrized.steps import COARSEST_NUMBER, MOST_STEPS, PLAIN, SHARE, step_of, step_of_square, times

# The first three are part of the meaning of every plan, and never change.
GRAIN = 2.0**-10  # the part of a unit to which charges are rounded up
FLOOR = 973 * GRAIN  # about .95 of a unit: the least that an answer is charged, so that the last ones are not too many
CAUTION = 0.5  # how many deviations of its noise a first draw is taken to be nearer to one half than it reads
_ROOM = 1.0  # and how many of its own noise an answer to a hint may be
COARSEST = -1  # the step of the coarsest noise, which counts less than FLOOR
_CELLS = 320
_SAFE = 1e-9
_ROOM_FOR_NUMBERS = 0.02  # how much kap may grow for them: about a thousandth of the width
# While the noise is chosen:
_USUAL_LOWER, _LOWERS, _USUAL_STEPS = 0.01, (1e-3, 0.01, 0.03, 0.07, 0.15), 24
_SMALLER_STEPS, _SMALLER_BENDS = (1.4, 1.0, 0.7, 0.5), (0.8, 0.75, 0.7, 0.65, 0.6)  # t and l, with very few questions


def world(
    n: int,
    count: int,
    s: float,
    beta: float,
    steps: int,
    numbers: float = 0.0,
    pairs: float | None = None,
    *,
    concave: bool = False,
) -> Constants:
    """The constants of `count` answers; q has room for all at the finest noise, an answer's own row counted 4 times.

    `numbers` is the finest noise of the last draw of a number; 0 if their noise does not follow their deviation.
    `concave` is the sharper kap of new plans.
    """
    finest, first, events = times(steps), SHARE, count
    if numbers:
        finest, first, events = min(finest, numbers), FIRSTS, EVENTS * count
    row = (count * (first + finest**-2) + 3 * finest**-2) / (4 * n * n * s * s) * (1 + 1e-12)
    least = min(finest, 1.0) * s
    return constants(
        *(n, count, s, beta),
        least=least,
        row=row,
        largest=finest**-2,
        events=events,
        alike=False,
        concave=concave,
        pairs=pairs,
    )


def highest(c: Constants, bend: float, lower: float, *, numbers: bool = False) -> float:
    """The largest ln a: a e^(f(t/c^2)/2) sum_i exp(phi (k - i FLOOR)/2), phi = f(t FLOOR)/FLOOR, is what is left of bm.

    With i answers to come, at most k - i FLOOR units are spent, and f(t u) <= phi u for u >= FLOOR, as f is concave.
    """
    rate = rate_of(bend)

    def exponent(step: float) -> float:
        return math.log1p(rate * step / (1 + step)) / 2

    each, first = exponent(c.step * FLOOR), exponent(c.step * SHARE)
    if numbers:  # an answer meets its own first draws
        first = max(first, first_exponent(c.step, rate))
    total = each / FLOOR * c.count * (1 - FLOOR) + each * (c.count - 1)
    total += math.log(-math.expm1(-each * c.count)) - math.log(-math.expm1(-each))
    return math.log(c.main) + math.log1p(-lower) - first - total - _SAFE


@dataclass(frozen=True)
class Settling:
    """The intervals of a plan, one curve for all noises, and what answers are charged."""

    common: Common
    steps: int
    """The step of the finest noise."""
    numbers: float = 0.0
    """The finest noise of the last draw of a number, in units of s; 0 if it does not follow the deviation."""
    cells: int = _CELLS

    @property
    def s(self) -> float:
        """The noise of one plain answer, which counts one unit."""
        return self.common.constants.s

    @property
    def coarse(self) -> float:
        """The noise of the first draw."""
        return self.s / math.sqrt(SHARE)

    def _table(self, step: int) -> Intervals:
        return of_noise(self.common, self.s * times(step), self.cells)

    def ends(self, value: float, step: int, half_step: float = 0.0) -> tuple[float, float]:
        """The interval of an answer with this noise."""
        return self._table(step).ends(value, half_step)

    def units(self, value: float, step: int, *, hinted: bool, half_step: float = 0.0, inward: float = 0.0) -> float:
        """What the answer is charged before rounding up; `inward` makes its interval that much smaller.

        D(P) grows towards one half, so the end of the interval that is nearest to it decides.
        """
        low, high = self.ends(value, step, half_step)
        nearest = min(max(0.5, low + inward), high - inward)
        return max(self.reserve(step, hinted=hinted) * self._pairs(min(nearest, 1 - nearest)), FLOOR)

    def _pairs(self, truth: float) -> float:
        """D(P)/D from above, for truths up to this one, which is at most one half."""
        c = self.common.constants
        return cell_pairs(c, cell_of(min(truth + 1e-15, 0.5), self.cells), self.cells) / c.pairs

    @staticmethod
    def reserve(step: int, *, hinted: bool) -> float:
        """v: the most it is charged, whatever its mean."""
        return times(step) ** -2 + (0.0 if hinted else SHARE)

    @staticmethod
    def charged(units: float) -> float:
        """Rounded up on the public grid of charges."""
        return math.ceil(units / GRAIN) * GRAIN

    def admitted(self, spent: float, after: int, *, hinted: bool) -> int:
        """The finest step that leaves FLOOR to each of the answers after this one, whatever its mean."""
        left = self.common.constants.count - spent - after * FLOOR - GRAIN
        most = max(left, FLOOR) - (0.0 if hinted else SHARE)
        return min(max(math.floor(step_of_square(most)), COARSEST), self.steps)

    def step_after(self, first: float) -> int:
        """The finest noise at which an answer will probably count one unit, after a first draw."""
        away = CAUTION * self.coarse
        return self._suited(min(min(first, 1 - first) + away, 0.5), hinted=False)

    def step_about(self, mean: float) -> int:
        """The same for a hint."""
        return self._suited(min(mean, 1 - mean), hinted=True)

    def _suited(self, mean: float, *, hinted: bool) -> int:
        low, high = (1 if hinted else 0), self.steps
        while low < high:  # an answer of finer noise counts more
            middle = (low + high + 1) // 2
            end = mean + times(middle) * self.s * (self._width + (_ROOM if hinted else 0.0))
            units = self.reserve(middle, hinted=hinted) * self._pairs(min(end, 0.5))
            low, high = (middle, high) if units <= 1 else (low, middle - 1)
        return low

    @cached_property
    def number_steps(self) -> int:
        """The step of the finest noise of a number."""
        return step_of(self.numbers)

    @cached_property
    def _rate(self) -> float:
        return rate_of(self.common.bend)

    def seen(self, centre: float, square: float, half_step: float) -> Shown:
        """What the first draws of a number have shown."""
        return shown(self.common.constants, centre, square, self.s / math.sqrt(SQUARE), half_step)

    def number_ends(self, value: float, step: int, seen: Shown, half_step: float) -> tuple[float, float]:
        """The interval of a number whose last draw has this noise."""
        return self._table(step).ends(value, half_step, farthest(self.common, self.s * times(step), seen.pairs))

    def number_units(
        self, value: float, step: int, seen: Shown, *, grouped: bool, half_step: float, inward: float = 0.0
    ) -> float:
        """What a number is charged before rounding up; `inward` makes its interval that much smaller."""
        low, high = self.number_ends(value, step, seen, half_step)
        nearest = min(max(0.5, low + inward), high - inward)
        return max(self._number_units(step, seen, self._pairs(min(nearest, 1 - nearest)), grouped), FLOOR)

    def _number_units(self, step: int, seen: Shown, by_mean: float, grouped: bool) -> float:
        most = self.common.constants.pairs
        parts = parts_of(times(step) ** -2, min(seen.pairs / most, by_mean), seen.square / most, grouped=grouped)
        return counted(self.common.constants.step, self._rate, parts)

    def number_admitted(self, spent: float, after: int, seen: Shown, *, grouped: bool) -> int:
        """The finest step of a number that leaves FLOOR to each of the answers after this one, whatever its mean."""
        left = max(self.common.constants.count - spent - after * FLOOR - GRAIN, FLOOR)
        return self._finest(lambda step: self._number_units(step, seen, 1.0, grouped) <= left)

    def number_step(self, centre: float, seen: Shown, *, grouped: bool) -> int:
        """The finest noise at which a number will probably count one unit, by its deviation or by its mean."""
        away = CAUTION * self.s / math.sqrt(IN_GROUP if grouped else FIRST)
        nearest = min(centre, 1 - centre) + away

        def suits(step: int) -> bool:
            by_mean = self._pairs(min(nearest + times(step) * self.s * self._width, 0.5))
            return self._number_units(step, seen, by_mean, grouped) <= 1

        return self._finest(suits)

    def _finest(self, suits: Callable[[int], bool]) -> int:
        low, high = COARSEST_NUMBER, self.number_steps
        while low < high:  # an answer of finer noise counts more
            middle = (low + high + 1) // 2
            low, high = (middle, high) if suits(middle) else (low, middle - 1)
        return low

    def leaves_room(self) -> bool:
        """Whether any number at the coarsest noise counts less than FLOOR."""
        most = Shown(self.common.constants.pairs, self.common.constants.pairs)
        return all(self._number_units(COARSEST_NUMBER, most, 1.0, each) <= FLOOR for each in (False, True))

    def is_worth_it(self, plain: float) -> bool:
        """Whether numbers of the usual deviation are clearly narrower than this."""
        return self.deviation_width(0.5, USUAL_DEVIATION) <= WORTH * plain

    def deviation_width(self, mean: float, deviation: float, step: int | None = None) -> float:
        """Half the length for a number if every noise is zero; at the scale of a step, or what first draws choose."""
        seen = self.seen(mean, min(deviation * deviation / largest_square(mean), 1.0), 0.0)
        step = self.number_step(mean, seen, grouped=False) if step is None else step
        low, high = self.number_ends(mean, step, seen, 0.0)
        return (high - low) / 2

    @cached_property
    def _width(self) -> float:
        """h at the end of an interval that counts one unit, where b^2 is about t."""
        return self.common.width(self.common.constants.reach)

    def half_width(self, mean: float, step: int | None = None) -> float:
        """Half the length if every noise is zero; at the scale of a step, or what the first draw chooses."""
        low, high = self.ends(mean, self.step_after(mean) if step is None else step)
        return (high - low) / 2


@lru_cache(maxsize=64)
def settled_plan(
    n: int, count: int, beta: float, typical: tuple[float, ...], deviation: float | None = None
) -> Settling:
    """The plan with the narrowest answers, in the geometric mean at the typical means.

    It has room for numbers of the usual standard deviation if that costs little, or of a `deviation`.
    """

    # The finest noise is what the rarest of the means needs; noise and cap depend on one another, any cap is valid.
    steps = _USUAL_STEPS

    def width(s: float) -> float:
        nonlocal steps
        found = math.inf
        for _ in range(3):
            before = steps
            try:
                found, _, steps = _best_curve(world(n, count, s, beta, steps, concave=True), _USUAL_LOWER, typical)
            except InvalidArgument:  # one row may matter too much
                steps //= 2
                continue
            if abs(steps - before) <= 1:
                break
        return math.exp(found) if found < math.inf else 1e6 / s

    s = best_noise(n, count, width)
    for _ in range(2):
        width(s)
    _, made = _with_numbers(n, count, s, beta, steps, typical, deviation)
    room = made.leaves_room()
    if room and (deviation is not None or made.is_worth_it(made.half_width(0.5))):
        return made
    c = world(n, count, s, beta, steps, concave=True)
    curve = min((_best_curve(c, lower, typical)[:2] for lower in _LOWERS), key=lambda found: found[0])[1]
    plain = Settling(curve, steps)
    return plain if room else _with_more_noise(plain, typical, deviation) or plain


def _with_numbers(
    n: int,
    count: int,
    s: float,
    beta: float,
    steps: int,
    typical: tuple[float, ...],
    deviation: float | None,
    most_bend: float = 1.0,
) -> tuple[float, Settling]:
    """The narrowest plan of this noise that numbers share, with a bend of at most this, and how wide it is."""
    c = world(n, count, s, beta, steps, concave=True)
    bend = min(_best_curve(c, _USUAL_LOWER, typical)[1].bend, most_bend)
    numbers = _noise_of_numbers(c, bend / (1 - bend), steps, deviation)
    c = world(n, count, s, beta, steps, numbers, concave=True)
    found = (_best_curve(c, lower, typical, numbers=True, most_bend=most_bend)[:2] for lower in _LOWERS)
    width, curve = min(found, key=lambda each: each[0])
    return width, Settling(curve, steps, numbers)


def _with_more_noise(plain: Settling, typical: tuple[float, ...], deviation: float | None) -> Settling | None:
    """The narrowest plan of very few questions with room for the first draws of numbers, if they are worth it.

    First draws need a smaller bend than such a plan has, and more noise suits that.
    """
    c, found = plain.common.constants, []
    for noise in (max(round_noise(math.sqrt(1 / (8 * c.n * step))), c.s) for step in _SMALLER_STEPS):  # D is about 1/2
        for most_bend in _SMALLER_BENDS:  # the first with room is the narrowest
            try:
                made = _with_numbers(c.n, c.count, noise, c.beta, plain.steps, typical, deviation, most_bend)
            except InvalidArgument:
                break
            if made[1].leaves_room():
                found += [made] if deviation is not None or made[1].is_worth_it(plain.half_width(0.5)) else []
                break
    return min(found, key=lambda made: made[0])[1] if found else None


def _noise_of_numbers(c: Constants, rate: float, steps: int, deviation: float | None) -> float:
    """The finest noise that a plan has room for: what such a deviation needs, if it does not make kap grow too much."""
    fine = fine_usual(c, rate, deviation)
    wanted = min(max(math.ceil(step_of_square(max(fine, 1.0))), steps, 0), MOST_STEPS)
    most = math.inf if deviation is not None else c.swap + _ROOM_FOR_NUMBERS
    while wanted > max(steps, 0) and c.swap * (times(steps) / times(wanted)) ** 2 > most:
        wanted -= 1
    return times(wanted)


def _best_curve(
    c: Constants, lower: float, typical: tuple[float, ...], *, numbers: bool = False, most_bend: float = 1.0
) -> tuple[float, Common, int]:
    """The best bend for these constants, with the mean logarithm of about its half-widths and the finest step it needs.

    An answer that counts one unit has b^2 D'/D(P) = t (1 - SHARE D'/D) at its end, so h of b^2 from 0 to t is enough.
    """
    nodes = [math.sin(math.pi / 4 * i / 15) ** 2 for i in range(16)]
    pairs = [pairs_of(c, node, node, 6) / c.pairs for node in nodes]
    parts = [(i / 9) ** 2 for i in range(10)]
    points = [Point(c.swap, math.sqrt(c.step * max(part, 1e-4))) for part in parts]
    log_lower = Common(c, c.count, 0.5, lower, 0.0).log_lower

    def widths(bend: float) -> tuple[float, float]:
        """The mean logarithm, and the finest noise."""
        height = highest(c, bend, lower, numbers=numbers)
        h = [point.least(bend, height, log_lower) for point in points]
        logs, finest = [], PLAIN
        for mean in typical:
            centre, noise = min(mean, 1 - mean), PLAIN
            cautious = centre + CAUTION * c.s / math.sqrt(SHARE)
            for _ in range(8):
                share = interpolate(cautious + noise * c.s * h[-1], nodes, pairs)
                noise = min((1 / share - SHARE) ** -0.5, PLAIN)
            high, low = centre, centre
            for _ in range(5):
                up, down = (interpolate(interpolate(x, nodes, pairs) / noise**2, parts, h) for x in (high, low))
                high, low = centre + noise * c.s * up, max(centre - noise * c.s * down, 0.0)
            logs.append(math.log((high - low) / 2))
            finest = min(finest, noise)
        return math.fsum(logs) / len(logs), finest

    def bend_of(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    most = 4.0 if most_bend >= 1 else math.log(most_bend / (1 - most_bend))
    bend = min(bend_of(minimize_between(lambda x: widths(bend_of(x))[0], -6.0, most, tolerance=0.05)), most_bend)
    found, finest = widths(bend)
    steps = min(max(math.ceil(step_of_square(finest**-2)), 0), MOST_STEPS)
    return found, Common(c, c.count, bend, lower, highest(c, bend, lower, numbers=numbers)), steps
