"""Noise calibrated to the variance of each question: the paper's Figure 1, with the interval of section 6."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import (
    Charges,
    Heard,
    Pairs,
    geometric_mean,
    grid_problems,
    grid_step,
    own_constants,
)
from afresh.mechanisms.deviations import OF_GROUPS, group_draws
from afresh.mechanisms.parts import FromAllRows, NoRowAccount, Promised, ReleasesMean, SampleAndNoise, noisy_mean
from afresh.mechanisms.stabilized import noisy_transform, on_transformed_grid
from afresh.moments import Aim, Grouped, Moments, Span
from afresh.theory.bernoulli import kl_lower, kl_lower_each, kl_upper, kl_upper_each
from afresh.theory.composition import from_pure_dp, from_zcdp, on_some_rows
from afresh.theory.extremes import quantile
from afresh.theory.information import information, log_threshold
from afresh.theory.numbers import (
    IN_GROUP,
    LARGE,
    MEAN,
    aim_in_group,
    farthest_mean,
    is_large,
    largest_square,
    mean_square,
    plain_noise,
    rare_noise,
    square_floor,
    square_noise,
)
from afresh.theory.search import minimize_simplex
from afresh.theory.second_moment import SecondMoment, sample_mean_range, truth_range
from afresh.theory.stability import calibrated_charge, fixed_gaussian_charge
from afresh.theory.transform import Transform

Floats = NDArray[np.float64]
_STABILITIES: dict[str, Callable[[float], float]] = {"kl": lambda eps: eps, "zcdp": from_zcdp, "pure_dp": from_pure_dp}


_KEPT_FOR_NUMBERS = 1e-3
_GROUPING = 0.48  # for new plans, chosen by measurement (12)
_NAMES = ({"value", "square"}, *({name, "first", "value", "square"} for name in sorted(OF_GROUPS)))
_ROUNDING = 1e-9  # of z and L, whose last bits differ between processors


@dataclass(frozen=True)
class Calibrated(Promised, FromAllRows, NoRowAccount, ReleasesMean, SampleAndNoise):
    """v = mu + xi sqrt(max(sigma^2/t, 1/T)); `noise_failure` is b2, the share of beta that the noise may use.

    Make one with `of`; its other constants follow from the given ones, and are kept with them.
    """

    method: ClassVar[str] = "calibrated"
    about: ClassVar[str] = "noise calibrated to the variance (the paper's mechanism)"
    unavailable: ClassVar[str] = "not available"
    promised: ClassVar[bool] = True
    checks_guesses: ClassVar[bool] = False
    exact_moments: ClassVar[bool] = False

    rows: int
    questions: int
    failure: float
    t: float
    T: float
    noise_failure: float
    most: int
    """The most answers if some are coarser; at least `questions`."""
    grid: float
    """The step of the public grid on which v lies."""
    z: float
    """The quantile that no answer's noise exceeds, except with probability b2."""
    L: float
    """-ln of the fresh probability that follows from the plan's information and the rest of beta (section 5)."""
    numbers: float = 0.0
    """The part of b2 kept for the squares of numbers, whose intervals then follow their deviation."""
    grouping: float = 0.0
    """How well the share of a large group would be known; 0 in older plans (`theory.numbers.is_large`)."""

    @classmethod
    def of(
        cls,
        rows: int,
        questions: int,
        failure: float,
        t: float,
        T: float,
        noise_failure: float,
        most: int = 0,
        numbers: float = 0.0,
    ) -> Self:
        """Make one with the matching grid, z and L; `most` == 0 means as many answers as questions."""
        grid = grid_step(1 / math.sqrt(T))
        chosen = cls(rows, questions, failure, t, T, noise_failure, most or questions, grid, 0, 0, numbers)
        grouping = _GROUPING if numbers else 0.0
        return replace(chosen, z=chosen._smallest_z, L=chosen._smallest_L, grouping=grouping)

    @property
    def pairs(self) -> Pairs:
        """One answer about (d + 1)/2 where numbers follow their deviation; without that, d^2 is asked before it."""
        return "shifted" if self.numbers else "squares"

    def answering(self, levels: int | None) -> Calibrated:
        """The mechanism for a question with so many values; a number or a difference also gets a draw of a square."""
        return _Number(**own_constants(self, Calibrated)) if levels not in (1, 2) and self.numbers else self

    @property
    def answers(self) -> int:
        """The most answers if some are coarser."""
        return self.most

    @cached_property
    def charge(self) -> float:
        """n B(t, T, n) nats, for every sample and query (Prop. M before rounding)."""
        return information(self.rows, calibrated_charge(self.t, self.T, self.rows))

    @property
    def information(self) -> float:
        """I: the cap on the information of all answers together."""
        return self.questions * self.charge

    @property
    def _smallest_z(self) -> float:
        return quantile(self.answers, self.noise_failure * (1 - self.numbers))

    @property
    def _smallest_L(self) -> float:
        return log_threshold(self.failure - self.noise_failure, self.information)

    def release(self, moments: Moments, noise: float) -> float:
        """v on the public grid, within [0, 1]."""
        return noisy_mean(moments, noise, self.t, self.T, self.grid)

    def sample_mean_range(self, v: float) -> tuple[float, float]:
        """Step 1: where the sample mean lies, unless a noise exceeded its quantile.

        sigma^2 <= mu(1-mu), so |v - mu| <= z sqrt(max(mu(1-mu)/t, 1/T)): the hull of both roots' ranges.
        """
        c, half_step = self.z**2 / self.t, self.grid / 2
        flat = self.z / math.sqrt(self.T)

        def end(v: float, side: int) -> float:
            # Rounding may have moved v by half a step either way before it was clipped to [0, 1].
            v = min(max(v + side * half_step, 0.0), 1.0)
            root = math.sqrt(c * c + 4 * c * v * (1 - v))
            return v + side * max(flat, side * ((2 * v + c + side * root) / (2 * (1 + c)) - v))

        return max(end(v, -1), 0.0), min(end(v, +1), 1.0)

    def interval(self, released: float, *, levels: int | None = None) -> tuple[float, float]:
        """Step 2: from the sample mean to the truth, by Chernoff's bound at the level the information allows."""
        low, high = self.sample_mean_range(released)
        bound = self.L / self.rows
        return kl_lower(low, bound), kl_upper(high, bound)

    def read_each(self, released: Floats) -> tuple[Floats, ...]:
        """Value, low and high of many released numbers on the grid, for checking."""
        known = (released >= 0) & (released <= 1) & (released % self.grid == 0)
        v = np.where(known, released, 0.0)
        c, flat, bound = self.z**2 / self.t, self.z / math.sqrt(self.T), self.L / self.rows

        def end(side: int) -> Floats:
            moved = np.clip(v + side * self.grid / 2, 0.0, 1.0)
            root = np.sqrt(c * c + 4 * c * moved * (1 - moved))
            out = moved + side * np.maximum(flat, side * ((2 * moved + c + side * root) / (2 * (1 + c)) - moved))
            return np.asarray(np.clip(out, 0.0, 1.0))

        ends = kl_lower_each(end(-1), bound), kl_upper_each(end(+1), bound)
        return tuple(np.where(known, each, np.nan) for each in (v, *ends))

    def coarser(self, coarseness: float) -> Self:
        """t/f^2 and T/f^4: both terms of the charge fall like 1/f^2, and the cap on their sum stays (section 3).

        So do the grid, z and L, which belongs to that cap.
        """
        if not coarseness >= 1:
            raise InvalidArgument(f"coarseness == {coarseness}, must be at least 1.")
        return replace(self, t=self.t / coarseness**2, T=self.T / coarseness**4)

    def problems(self) -> list[str]:
        """Sample and noise each need a share of the failure; the charge must be finite, and z and L large enough."""
        if not (self.t > 0 and self.T > 0 and 0 < self.noise_failure < self.failure and 0 <= self.numbers < 1):
            return ["t, T or a share of the failure probability is out of range"]
        if not math.isfinite(self.information):
            return ["the charge is not finite"]
        found = grid_problems(self.grid, 1 / math.sqrt(self.T))
        if not self._smallest_z * (1 - _ROUNDING) <= self.z:
            found.append("z is smaller than the quantile of this many noises")
        if not self._smallest_L * (1 - _ROUNDING) <= self.L:
            found.append("L is smaller than the information of all answers makes it")
        return found

    def noise_in(self, released: float) -> float:
        """The noise for a 0/1 question with this mean; for a number with less variance it is smaller."""
        return math.sqrt(max(released * (1 - released) / self.t, 1 / self.T))

    def charge_outside(self, kind: str, value: float, rows: int, count: int) -> Charges:
        """Every answer is charged its KL stability (section 2), and so is anything else that has one.

        The value of a study is the nats it spent, which is what its rows' stability adds up to, however many they are.
        """
        if kind == "study":
            return Charges(value * count)
        stability = fixed_gaussian_charge(value, rows) if kind == "noise_sd" else _STABILITIES[kind](value)
        return Charges(count * self.rows * on_some_rows(stability, rows, self.rows))

    def difference(self, *parts: Heard) -> tuple[float, tuple[float, float]]:
        """From phi = d^2 and psi = (d + 1)/2, by the second-moment certificate if phi was released before psi.

        Otherwise the first miss could be psi's, and phi's bound would not be known to hold.
        """
        first, second = parts[0], parts[-1]
        low, high = 2 * second.low - 1, 2 * second.high - 1
        if first.number < second.number:
            low, high = _by_second_moment(first.mechanism, first.released, second.mechanism, second.released)
        return min(max(2 * second.value - 1, low), high), (low, high)

    def disagreement(self, *parts: Heard) -> float:
        """The mean of d^2 itself."""
        if len(parts) == 1:
            return min(4 * float(parts[0].mechanism.square_about_half(parts[0].released)), 1.0)
        return parts[0].value

    def difference_width(self, disagreement: float) -> float:
        """The half-width by the second-moment certificate."""
        if isinstance(number := self.answering(3), _Number):
            return 2 * number.deviation_width(0.5, math.sqrt(disagreement) / 2)
        low, high = _by_second_moment(self, disagreement, self, 0.5)
        return (high - low) / 2


class _Number(Calibrated):
    """The same for a number, in draws that together reveal no more than one answer (section 7, numbers).

    One draw is of its mean, and one of its mean square about that, which bounds its variance in sample and population.
    Within a group the centre must be known first, and takes two coarse draws: of the share of its rows and of the
    number's mean over all rows.
    """

    draws: ClassVar[int] = 4
    read_each = None  # type: ignore[assignment] # each has several numbers

    @cached_property
    def _by_mean(self) -> Calibrated:
        return Calibrated(**own_constants(self, Calibrated)).coarser(1 / math.sqrt(MEAN))

    @cached_property
    def _in_group(self) -> Calibrated:
        return Calibrated(**own_constants(self, Calibrated)).coarser(1 / math.sqrt(MEAN - 2 * IN_GROUP))

    @cached_property
    def _transform(self) -> Transform:
        return Transform(square_floor(self.rows))

    @cached_property
    def _square_noise(self) -> float:
        return square_noise(self.charge, self.rows)

    def aim(self, released: Mapping[str, float]) -> Aim:
        """What was averaged, and roughly where it lies."""
        if not (of := OF_GROUPS & released.keys()):
            return Aim(1.0, 0.0, 0.0, released["value"])
        (name,) = of
        share, first = (self._transform.inverse_at(released[each]) for each in (name, "first"))
        return Aim(*aim_in_group(first, share, second=name == "group", large=self.large(first, share)))

    def large(self, inside: float, share: float) -> bool:
        """Whether a group of this share is so large that its share would be known well."""
        return is_large(self._by_mean.half_width(share), inside, share, self.grouping, before=2 * LARGE)

    def release(self, moments: Moments, noise: Sequence[float]) -> dict[str, float]:  # type: ignore[override] # as `draws` says
        """The draws, on the public grid."""
        own, plain, drawn = moments, self._by_mean, dict[str, float]()
        if isinstance(moments, Grouped):
            drawn = group_draws(self, moments, noise)
            own, plain = moments.of(self.aim(drawn)), self._in_group
        drawn["value"] = plain.release(own, noise[0])
        about = mean_square(own.mean, own.squares / own.n, self.aim(drawn).centre)
        return {**drawn, "square": self._draw(about, noise[1], self._square_noise)}

    def rough(self, moments: Grouped, noise: Sequence[float]) -> tuple[float, float]:
        """Rough draws of a group's share and of E[A 1_B], transformed."""
        scale = plain_noise(self.charge, self.rows) / math.sqrt(IN_GROUP)
        return self._draw(moments.inside / moments.n, noise[2], scale), self._draw(moments.mean, noise[3], scale)

    def _draw(self, mean: float, xi: float, scale: float) -> float:
        # Figure 1's own noise would need the variance of phi, that is, fourth moments.
        of = Moments(self.rows, mean * self.rows, 0.0)
        return noisy_transform(self._transform, of, xi, scale, self.grid)

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether it is two or four numbers on the grid, perhaps at the end to which they were clipped."""
        if not isinstance(released, Mapping) or set(released) not in _NAMES:
            return False
        transformed = [released[name] for name in released if name != "value"]
        fits = all(on_transformed_grid(each, self._transform, self.grid) for each in transformed)
        return fits and self._by_mean.admits(released["value"])

    def value(self, released: Mapping[str, float]) -> float:  # type: ignore[override] # as it releases
        """The draw of the mean."""
        return released["value"]

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:  # type: ignore[override] # as it releases
        """The truths that section 6 and the square admit."""
        return self._ends(released["value"], released["square"], self.aim(released).centre, self._plain(released))

    def _plain(self, released: Mapping[str, float]) -> Calibrated:
        return self._in_group if "first" in released else self._by_mean

    @lru_cache(maxsize=4096)  # noqa: B019 - a few plans a process
    def _ends(self, value: float, square: float, centre: float, plain: Calibrated) -> tuple[float, float]:
        bound = self.L / self.rows
        low, high = plain.interval(value)
        rare = rare_noise(self.answers, self.noise_failure * self.numbers)
        above = min(square + rare * self._square_noise + self.grid / 2, self._transform.top)
        scale, most = largest_square(centre), min(self._transform.inverse_at(above) * (1 + 1e-12), 1.0)
        c, variance = plain.z**2 / plain.t, scale * most
        about = centre == value  # then the mean's own distance from the centre is part of the square
        near = max(plain.z / math.sqrt(plain.T), math.sqrt(c * variance / (1 + c if about else 1))) + self.grid / 2
        near = (min(near, math.sqrt(variance)) if about else near) * (1 + 1e-12)
        largest = min(scale * kl_upper(most, bound) * (1 + 1e-12), 0.25)
        low = max(low, value - near - farthest_mean(largest, 1 - low, bound))
        return low, min(high, value + near + farthest_mean(largest, high, bound))

    def noise_in(self, released: Mapping[str, float]) -> float:  # type: ignore[override] # as it releases
        """The noise, from the square that was released."""
        square = self._transform.inverse_at(released["square"])
        variance, plain = min(largest_square(self.aim(released).centre) * square, 0.25), self._plain(released)
        return math.sqrt(max(variance / plain.t, 1 / plain.T))

    def square_about_half(self, released: Mapping[str, float]) -> float:
        """Roughly the mean of (psi - 1/2)^2."""
        value = released["value"]
        return largest_square(value) * self._transform.inverse_at(released["square"]) + (value - 0.5) ** 2

    def half_width(self, mean: float) -> float:
        """The half-width for the number with the largest deviation that this mean allows."""
        return self.deviation_width(mean, math.sqrt(mean * (1 - mean)))

    def deviation_width(self, mean: float, deviation: float) -> float:
        """Half the interval's length for a number with this mean and standard deviation, as shares of its range."""
        square = mean_square(mean, mean * mean + deviation * deviation, mean)
        low, high = self._ends(mean, float(self._transform(np.asarray(square))), mean, self._by_mean)
        return (high - low) / 2


def _by_second_moment(first: Calibrated, phi: float, second: Calibrated, psi: float) -> tuple[float, float]:
    """Section 7: the mean of d from the released numbers about d^2 and (d + 1)/2, each with its mechanism."""
    moment = SecondMoment(sample=first.sample_mean_range(phi)[1], truth=first.interval(phi)[1])
    noise = second.z, second.t, second.T, second.grid / 2
    low, high = truth_range(*sample_mean_range(psi, moment, *noise), moment, second.L / second.rows)
    return 2 * low - 1, 2 * high - 1


_Kind = TypeVar("_Kind", bound=Calibrated)

# T = share * t^2 raises the charge by share/2 over what the variance alone costs, and in return gives a small noise for
# rare events and small differences.
_FLOOR_SHARES = (0.05, 0.1, 0.2)


@lru_cache(maxsize=256)  # pure, and a reopened guard plans again
def plan_calibrated(rows: int, questions: int, failure: float, answers: int | None = None) -> Calibrated:
    """The narrowest plan over t, T and the split of the failure probability, by the planner's yardstick."""

    return narrowest(Calibrated, rows, questions, failure, answers)


def narrowest(kind: type[_Kind], rows: int, questions: int, failure: float, answers: int | None = None) -> _Kind:
    """The same for any shape of noise."""
    most = questions if answers is None else answers
    numbers = _KEPT_FOR_NUMBERS if kind is Calibrated else 0.0  # section 7 is about Figure 1's own noise

    def candidate(point: Sequence[float], share: float) -> _Kind:
        t = math.exp(min(max(point[0], -20.0), 40.0))
        noise_failure = failure / (1 + math.exp(min(max(point[1], -20.0), 20.0)))
        return kind.of(rows, questions, failure, t, max(share * t * t, 1e-12), noise_failure, most, numbers)

    # t ~ n sqrt(ln k / k) is the paper's own choice; most of beta goes to the sample.
    start: Sequence[float] = [math.log(rows * math.sqrt(2 * math.log(2 * questions) / questions) / 3), 2.0]
    found = []
    for share in _FLOOR_SHARES:
        start, width = minimize_simplex(
            lambda point, share=share: geometric_mean(candidate(point, share).half_width),  # type: ignore[misc]
            start,
            tolerance=0.01,
            evaluations=80,
        )
        found.append((width, candidate(start, share)))
    return min(found, key=lambda pair: pair[0])[1]
