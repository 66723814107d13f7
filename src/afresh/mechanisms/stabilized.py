"""Fixed noise on a variance-stabilising transform of the mean (section 10, Theorem T). The default."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import (
    TYPICAL_MEANS,
    Charges,
    geometric_mean,
    grid_problems,
    grid_step,
    own_constants,
    round_to_grid,
)
from afresh.mechanisms.deviations import OF_GROUPS, group_draws
from afresh.mechanisms.parts import DifferenceOfParts, FromAllRows, Promised
from afresh.moments import Aim, Grouped, Moments, Span
from afresh.theory.envelope import LARGEST_QB, Envelope, choose_envelope, holds, rough_envelope
from afresh.theory.extremes import cvar_with_square
from afresh.theory.numbers import (
    FIRST,
    IN_GROUP,
    LAST,
    SQUARE,
    aim_in_group,
    is_large,
    kept_part,
    mean_square,
    rare_noise,
    rare_slack,
    spread_shown,
)
from afresh.theory.search import minimize_between
from afresh.theory.stabilized import deviation_bound, remainder, row_share, stabilized_charge
from afresh.theory.tilted import TiltedMean
from afresh.theory.transform import Transform

Floats = NDArray[np.float64]

# The variance floors a plan chooses from; the narrowest at the typical means wins.
FLOORS = (
    *(0.25, 0.15, 0.1, 0.06, 0.04, 0.03, 0.02, 0.015, 0.012, 0.01, 0.008),
    *(0.007, 0.006, 0.005, 0.004, 0.003, 0.002, 0.001),
)

MOST_ROWS = 10**10  # beyond this, the cells of e_+ would fill the memory


def noisy_transform(transform: Transform, moments: Moments, noise: float, s: float, grid: float) -> float:
    """Section 10: y = clip(round(Theta(mu) + s xi)), on the public grid, within [0, Theta(1)]."""
    transformed = float(transform(np.asarray(min(max(moments.mean, 0.0), 1.0))))
    return min(max(round_to_grid(transformed + s * noise, grid), 0.0), transform.top)


def on_transformed_grid(released: object, transform: Transform, grid: float) -> bool:
    """Whether `noisy_transform` could have returned it."""
    if not isinstance(released, float | int) or not 0 <= released <= transform.top * (1 + 1e-12):
        return False
    # Theta(1) is an arcsine, whose last bits differ between processors.
    return math.isclose(released, transform.top, rel_tol=1e-12) or float(released / grid).is_integer()


_ROUNDING = 1e-9
_LAST_IN_GROUP = 1 - SQUARE - 2 * IN_GROUP
_GROUPING = 0.3  # for new plans, chosen by measurement (12)
_MOST_CELLS = 64  # a plan with more would only exhaust a verifier's memory


@dataclass(frozen=True)
class Stabilized(Promised, FromAllRows, DifferenceOfParts):
    """y = clip(round(Theta(mu) + s xi)): variance floor v0, noise s, tilt lam, envelope c, B, A, theta, bound H.

    Interval ends depend on every constant, down to the cells, so all are part of a plan.
    """

    method: ClassVar[str] = "stabilized"
    about: ClassVar[str] = "fixed noise on a variance-stabilized mean"
    unavailable: ClassVar[str] = "too few rows for its variance floor"
    promised: ClassVar[bool] = True
    checks_guesses: ClassVar[bool] = False

    rows: int
    questions: int
    failure: float
    v0: float
    s: float
    lam: float
    c: float
    B: float
    A: float
    theta: float
    H: float
    most: int
    """The most answers if some are coarser; at least `questions`."""
    grid: float
    """gamma, the step of the public grid on which y lies."""
    cells: int
    """Cells per standard deviation in the bound on e_+."""
    numbers: float = 0.0
    """The part of the failure probability kept for numbers, whose noise then follows their deviation."""
    grouping: float = 0.0
    """How well the share of a large group would be known; 0 in older plans (`theory.numbers.is_large`)."""

    @cached_property
    def _transform(self) -> Transform:
        return Transform(self.v0)

    @cached_property
    def _tilted(self) -> TiltedMean:
        return TiltedMean(self.rows, self.lam, self._transform, cells_per_deviation=self.cells)

    @property
    def answers(self) -> int:
        """The most answers if some are coarser."""
        return self.most

    @property
    def charge(self) -> float:
        """G n / (8 (n-1)^2 s^2) nats, for every sample and query."""
        return stabilized_charge(self.rows, self.v0, self.s)

    @property
    def information(self) -> float:
        """I: the cap on the information of all answers together."""
        return self.questions * self.charge

    @property
    def row_charge(self) -> float:
        """2 charge / (n v0): how much one answer may depend on one row."""
        return row_share(self.rows, self.v0, self.charge)

    @property
    def row_share(self) -> float:
        """qb: the cap on how much all answers together may depend on one row."""
        return self.questions * self.row_charge

    @property
    def failure_use(self) -> dict[str, float]:
        """One event covers noise and sample; a tiny part is kept for numbers."""
        kept = self.failure * self.numbers
        found = {"noise and sample together": self.failure - kept}
        return {**found, "deviations of numbers": kept} if kept else found

    def release(self, moments: Moments, noise: float) -> float:
        """y: noise of fixed scale on the transformed mean, on the public grid, within [0, Theta(1)]."""
        return noisy_transform(self._transform, moments, noise, self.s, self.grid)

    def admits(self, released: object, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether it is on the grid, or at the end to which it was clipped."""
        return on_transformed_grid(released, self._transform, self.grid)

    def noise_in(self, released: float) -> float:
        """The effect on the mean of noise s on the scale of Theta."""
        low, high = (min(max(released + end, 0.0), self._transform.top) for end in (-self.s, self.s))
        return (self._transform.inverse_at(high) - self._transform.inverse_at(low)) / 2

    def value(self, released: float) -> float:
        """v = Theta^{-1}(y)."""
        return self._transform.inverse_at(released)

    def interval(self, released: float, *, levels: int | None = None) -> tuple[float, float]:
        """[e_+^{-1}(y - H), e_-^{-1}(y + H)], the same for every kind of query."""
        reach = self.H + self.grid / 2
        low = self._tilted.lower_inverse(released - reach)
        high = 1 - self._tilted.lower_inverse(self._transform.top - (released + reach))
        return low, high

    def read_each(self, released: Floats) -> tuple[Floats, ...]:
        """Value, low and high of many released numbers on the grid, for checking."""
        top, reach = self._transform.top, self.H + self.grid / 2
        y = np.where((released >= 0) & (released <= top) & (released % self.grid == 0), released, np.nan)
        low = self._tilted.lower_inverse_each(y - reach)
        high = 1 - self._tilted.lower_inverse_each(top - (y + reach))
        return self._transform.inverse(y), low, high

    def half_width(self, mean: float) -> float:
        """Half the interval's length around an answer that reads `mean`."""
        low, high = self.interval(float(self._transform(np.asarray(mean))))
        return (high - low) / 2

    def coarser(self, coarseness: float) -> Stabilized:
        """Noise s_j = s f, tilt lam s/s_j, bound H s_j/s on the same grid (section 10, unequal answers)."""
        lam = self.lam / coarseness
        if not coarseness >= 1 or lam < 1 / math.sqrt(self.v0):
            raise InvalidArgument(
                f"coarseness == {coarseness}, must be between 1 and {self.lam * math.sqrt(self.v0):.4g}."
            )
        return replace(self, s=self.s * coarseness, lam=lam, H=math.nextafter(self.H * coarseness, math.inf))

    def problems(self) -> list[str]:
        """Theorem T needs a floor, a tilt, the envelope (*) and a bound H that is large enough."""
        if not ((self.rows - 1) * self.v0 > 1 and 0 < self.v0 <= 0.25 and self.s > 0):
            return ["the variance floor or the noise is out of range"]
        found = grid_problems(self.grid, self.s)
        if not 1 <= self.cells <= _MOST_CELLS:
            found.append(f"there are {self.cells} cells per deviation, not 1 to {_MOST_CELLS}")
        if not self.lam >= 1 / math.sqrt(self.v0):
            found.append("the tilt is smaller than 1/sqrt(v0)")
        eps = self.c - 1
        # The constants may have been chosen for a larger row share than the plan's: they are valid for every smaller
        # one.
        envelope = Envelope(8 * self.B / (1 + 1 / eps) if eps > 0 else 0.0, self.c, self.B, self.A, self.theta)
        if not (envelope.qb >= self.row_share * (1 - _ROUNDING) and holds(envelope)):
            return [*found, "the inequality (*) of Theorem T does not hold for c, B, A, theta"]
        if not 0 <= self.numbers < 1 or (self.numbers and not _leaves_room(self)):
            return [*found, "the part of the failure probability for numbers is out of range, or their tilt is"]
        if _bound(self, envelope) * (1 - 1e-7) > self.H:
            found.append("H is smaller than the bound of Theorem T")
        return found

    def answering(self, levels: int | None) -> Stabilized:
        """The mechanism for a question with so many values; for a number, one whose noise follows its deviation."""
        return _Number(**own_constants(self, Stabilized)) if levels is None and self.numbers else self

    def charge_outside(self, kind: str, value: float, rows: int, count: int) -> Charges:
        """Plain fixed noise is Theta with the floor v0 = 1/4, where Theta(m) = m (section 10, unequal answers)."""
        if kind != "noise_sd":
            raise InvalidArgument(
                f"the certificate of method={self.method!r} cannot account for this: it bounds more than the stability "
                "of its answers, which other releases do not have. Means with Gaussian noise can be charged to it "
                "(noise_sd=); for anything else, open data with method='calibrated'."
            )
        if not (rows - 1) / 4 > 1:
            raise InvalidArgument(f"rows == {rows}, must be more than 5 for a mean with noise to be charged.")
        charge = stabilized_charge(rows, 0.25, value)
        if charge > self.charge:
            least = 1.001 * math.sqrt(stabilized_charge(rows, 0.25, 1.0) / self.charge)  # rounded up
            raise InvalidArgument(
                f"noise_sd == {value}: the plan admits no answer of a larger charge than its own, {self.charge:.4g} "
                f"nats, and this is {charge:.4g}; the noise would have to be at least {least:.4g}."
            )
        return Charges(count * charge, count * row_share(rows, 0.25, charge), count)


class _Number(Stabilized):
    """The same for a number, in draws that together reveal no more than one answer (section 10, numbers).

    The first ones, of its mean and of its mean square about that, decide whether the last one's noise follows the
    deviation or what the mean allows, whichever interval is narrower. Within a group the centre takes two draws, of the
    share of its rows and of the number's mean over all rows.
    """

    draws: ClassVar[int] = 4
    read_each = None  # type: ignore[assignment] # each has several numbers

    @cached_property
    def _by_mean(self) -> Stabilized:
        return self._plain(LAST)

    @cached_property
    def _in_group(self) -> Stabilized:
        return self._plain(_LAST_IN_GROUP)

    def _plain(self, part: float) -> Stabilized:
        return Stabilized(**own_constants(self, Stabilized)).coarser(1 / math.sqrt(part))

    @cached_property
    def _rare(self) -> float:
        # A row less moves Theta(S[phi]) by at most so many deviations of its noise.
        return rare_noise(self.answers, self.failure * self.numbers) + math.sqrt(SQUARE * self.row_charge)

    def aim(self, released: Mapping[str, float]) -> Aim:
        """What was averaged, and roughly where it lies."""
        first = self._transform.inverse_at(released["first"])
        if not (of := OF_GROUPS & released.keys()):
            return Aim(1.0, 0.0, 0.0, first)
        (name,) = of
        share = self._transform.inverse_at(released[name])
        return Aim(*aim_in_group(first, share, second=name == "group", large=self.large(first, share)))

    def rough(self, moments: Grouped, noise: Sequence[float]) -> tuple[float, float]:
        """Rough draws of a group's share and of E[A 1_B], transformed."""
        return self._draw(moments.inside / moments.n, noise[3], IN_GROUP), self._draw(moments.mean, noise[0], IN_GROUP)

    def _draw(self, mean: float, xi: float, part: float) -> float:
        of = Moments(self.rows, mean * self.rows, 0.0)
        return noisy_transform(self._transform, of, xi / math.sqrt(part), self.s, self.grid)

    def large(self, inside: float, share: float) -> bool:
        """Whether a group of this share is so large that its share would be known well."""
        unsure = 2 * math.sqrt(max(share * (1 - share), self.v0)) * _score(self._by_mean)
        return is_large(unsure, inside, share, self.grouping)

    def _following(self, released: Mapping[str, float]) -> tuple[float, float] | None:
        """The noise of the last draw and its reach; None if what the mean allows is narrower."""
        return self._decided(self.aim(released).centre, released["square"], bool(OF_GROUPS & released.keys()))

    @lru_cache(maxsize=4096)  # noqa: B019 - a few plans a process; release, value and interval ask for the same
    def _decided(self, centre: float, square: float, grouped: bool = False) -> tuple[float, float] | None:
        part, plain = (_LAST_IN_GROUP, self._in_group) if grouped else (LAST, self._by_mean)
        most = min(square + self._rare * self.s / math.sqrt(SQUARE) + self.grid / 2, self._transform.top)
        sample, public = self._transform.inverse_at(most), (self.rows, self.v0, self.lam, self.H)
        found = spread_shown(centre, sample, *public, part)
        reach = found.reach + self.grid / 2
        # To first order, what the mean allows would reach this far; any public rule would do.
        other = 2 * math.sqrt(max(centre * (1 - centre), self.v0)) * _score(plain)
        return (found.noise * self.s / math.sqrt(part), reach) if reach < other else None

    def _otherwise(self, released: Mapping[str, float]) -> Stabilized:
        """The mechanism of the last draw where its noise does not follow the deviation."""
        return self._in_group if OF_GROUPS & released.keys() else self._by_mean

    def release(self, moments: Moments, noise: Sequence[float]) -> dict[str, float]:  # type: ignore[override] # as `draws` says
        """The draws, each on the public grid."""
        if isinstance(moments, Grouped):
            drawn = group_draws(self, moments, noise)
        else:
            drawn = {"first": self._draw(moments.mean, noise[0], FIRST)}
        aim = self.aim(drawn)
        own = moments.of(aim) if isinstance(moments, Grouped) else moments
        drawn["square"] = self._draw(mean_square(own.mean, own.squares / own.n, aim.centre), noise[1], SQUARE)
        following = self._following(drawn)
        if following is None:
            return {**drawn, "last": self._otherwise(drawn).release(own, noise[2])}
        last = min(max(round_to_grid(own.mean + following[0] * noise[2], self.grid), 0.0), 1.0)
        return {**drawn, "last": last}

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether these are three or four numbers, each where its draw may lie."""
        if not isinstance(released, Mapping) or set(released) - OF_GROUPS != {"first", "square", "last"}:
            return False
        if released.keys() >= OF_GROUPS:
            return False
        if not all(self._by_mean.admits(released[name]) for name in released if name != "last"):
            return False
        last = released["last"]
        if self._following(released) is None:
            return self._by_mean.admits(last)
        return isinstance(last, float | int) and 0 <= last <= 1 and float(last / self.grid).is_integer()

    def noise_in(self, released: Mapping[str, float]) -> float:  # type: ignore[override] # as it releases
        """The noise of the last draw."""
        following = self._following(released)
        return self._otherwise(released).noise_in(released["last"]) if following is None else following[0]

    def value(self, released: Mapping[str, float]) -> float:  # type: ignore[override] # as it releases
        """The last draw, on the scale of the mean."""
        return (
            self._otherwise(released).value(released["last"]) if self._following(released) is None else released["last"]
        )

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:  # type: ignore[override] # as it releases
        """The interval around the last draw, as wide as the first ones say."""
        following, last = self._following(released), released["last"]
        if following is None:
            return self._otherwise(released).interval(last)
        return max(last - following[1], 0.0), min(last + following[1], 1.0)

    def half_width(self, mean: float) -> float:
        """The half-width for the number with the largest deviation that this mean allows."""
        return self.deviation_width(mean, math.sqrt(mean * (1 - mean)))

    def deviation_width(self, mean: float, deviation: float) -> float:
        """Half the interval's length for a number with this mean and standard deviation, as shares of its range."""
        square = mean_square(mean, mean * mean + deviation * deviation, mean)
        following = self._decided(mean, float(self._transform(np.asarray(square))))
        return self._by_mean.half_width(mean) if following is None else following[1]


@lru_cache(maxsize=256)  # pure, and a reopened guard plans again
def plan_stabilized(
    rows: int,
    questions: int,
    failure: float,
    answers: int | None = None,
    floor: float | None = None,
    typical: tuple[float, ...] = TYPICAL_MEANS,
) -> Stabilized | None:
    """The narrowest plan over noise, tilt and (unless given) the variance floor; None if no floor works."""
    most = questions if answers is None else answers
    floors = [v0 for v0 in (FLOORS if floor is None else (floor,)) if (rows - 1) * v0 > 1.5]
    if not floors or rows > MOST_ROWS:
        return None

    @cache
    def draft(index: int) -> tuple[float, Stabilized | None]:
        found = _draft(rows, questions, most, failure, floors[index])
        return (_yardstick(found, typical), found) if found is not None else (math.inf, None)

    # The yardstick has one valley along the floors: walk down into it instead of visiting them all.
    index = min(FLOORS.index(0.01), len(floors) - 1)
    while True:
        near = [i for i in (index - 1, index, index + 1) if 0 <= i < len(floors)]
        best = min(near, key=lambda i: draft(i)[0])
        if best == index:
            break
        index = best
    chosen = draft(index)[1]
    return None if chosen is None else _finish(chosen)


@lru_cache(maxsize=64)  # the same for all typical means
def _draft(n: int, k: int, most: int, failure: float, v0: float) -> Stabilized | None:
    """Noise and tilt for one floor, with an unverified envelope: good for comparing, not for releasing."""
    joint = _joint_cvar(most, 1 / k, failure)

    def candidate(log_s: float) -> Stabilized:
        s = math.exp(log_s)
        information = k * stabilized_charge(n, v0, s)
        envelope = rough_envelope(row_share(n, v0, information), failure)
        return _with_best_tilt(n, k, most, failure, v0, s, envelope, joint)

    # The best noise is near (sqrt(k)/n)^(1/2) / 4; less than `least` would let one row matter too much.
    least = math.sqrt(k * stabilized_charge(n, v0, 1.0) * 2 / (n * v0 * LARGEST_QB))
    low = math.log(max(0.02 * math.sqrt(math.sqrt(k) / n), least))
    chosen = candidate(minimize_between(lambda log_s: _score(candidate(log_s)), low, low + 5, tolerance=0.01))
    return chosen if _score(chosen) < 10 else None  # Theta(1) < 2 unless the floor is tiny


def _score(m: Stabilized) -> float:
    """H + lam/(8n): the half-width on the scale of Theta, to first order."""
    return m.H + m.lam / (8 * m.rows)


def _yardstick(m: Stabilized, typical: tuple[float, ...]) -> float:
    """The geometric mean of the half-widths at the typical means, with coarse cells: good for comparing."""
    transform = Transform(m.v0)
    tilted = TiltedMean(m.rows, m.lam, transform, cells_per_deviation=2)

    def half_width(mean: float) -> float:
        y = float(transform(np.asarray(mean)))
        return (1 - tilted.lower_inverse(transform.top - y - m.H) - tilted.lower_inverse(y - m.H)) / 2

    return geometric_mean(half_width, typical)


def _with_best_tilt(
    n: int, k: int, most: int, failure: float, v0: float, s: float, envelope: Envelope, joint: Chebyshev
) -> Stabilized:
    """The mechanism at noise s whose tilt minimises H + lam/(8n), with H from the interpolated joint form."""
    information = k * stabilized_charge(n, v0, s)
    rest = remainder(envelope, failure)
    smallest = 1 / math.sqrt(v0)  # for a smaller tilt exp(lam Theta) is not convex
    low, high = joint.domain

    def bound(lam: float) -> float:
        weight = envelope.c * information / (lam * s)
        inside = min(max(math.log(weight), low), high)
        # Beyond the interpolated range the form is at most linear in the weight.
        return s * math.exp(joint(inside)) * max(weight / math.exp(high), 1.0) + rest * information / lam

    # lam/(8n) balances (c w + rest) I / lam at the square root; w, the price of c, is settled by iteration.
    lam = math.sqrt(8 * n * information * (3 * envelope.c + rest))
    for _ in range(4):
        weight = math.log(envelope.c * information / (lam * s))
        inside = min(max(weight, low), high)
        elasticity = joint.deriv()(inside)
        price = max(math.exp(joint(inside) - inside) * elasticity, 0.1)
        lam = max(math.sqrt(8 * n * information * (price * envelope.c + rest)), smallest)
    constants = envelope.c, envelope.B, envelope.A, envelope.theta, bound(lam)
    # Very many rows would mean very many cells, and coarser ones cost less than 1e-4 of the width.
    cells = 8 if n <= 10**7 else 2
    return Stabilized(n, k, failure, v0, s, lam, *constants, most, grid_step(s), cells)


@lru_cache(maxsize=32)
def _joint_cvar(k: int, share: float, failure: float) -> Chebyshev:
    """ln C_b(M + w (...) Z^2) as a function of ln w, good to about 1e-4 where plans are."""
    return Chebyshev.interpolate(
        lambda points: np.array([math.log(cvar_with_square(k, failure, math.exp(x), share)) for x in points]),
        20,
        domain=[math.log(0.005), math.log(20.0)],
    )


def _finish(draft: Stabilized) -> Stabilized | None:
    """The draft with a verified envelope, the tilt that suits it, and H computed in full."""
    n, k, most, failure = draft.rows, draft.questions, draft.answers, draft.failure
    joint = _joint_cvar(most, 1 / k, failure)
    inside = min(max(math.log(draft.c * draft.information / (draft.lam * draft.s)), joint.domain[0]), joint.domain[1])
    weight = float(math.exp(joint(inside) - inside) * joint.deriv()(inside))
    envelope = choose_envelope(draft.row_share, failure, weight)
    if envelope is None:
        return None
    final = _with_best_tilt(n, k, most, failure, draft.v0, draft.s, envelope, joint)
    if _leaves_room(final):
        final = replace(final, numbers=kept_part(n, final.lam, final.H), grouping=_GROUPING)
    return replace(final, H=_bound(final, envelope))


def _leaves_room(m: Stabilized) -> bool:
    """Whether the last draw of a number, which is a little coarser, still has a tilt that suits Theta."""
    return m.lam * math.sqrt(_LAST_IN_GROUP) >= 1 / math.sqrt(m.v0)


def _bound(m: Stabilized, envelope: Envelope) -> float:
    """H of Theorem T, and what numbers add to it."""
    failure, share = m.failure * (1 - m.numbers), 1 / m.questions
    bound = deviation_bound(m.answers, failure, m.s, m.lam, m.information, envelope, share)
    return bound + rare_slack(m.rows, m.lam, m.numbers)
