"""What a guard needs from a mechanism."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self, runtime_checkable

from afresh.errors import InvalidArgument
from afresh.moments import Aim, Grouped, Span, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from afresh.lazy import np


# The three means at which plans are compared, unless the user gives typical ones.
TYPICAL_MEANS = (0.5, 0.1, 0.01)


Pairs = Literal["parts", "squares", "shifted"]


class Charges(NamedTuple):
    """The charges for something revealed outside the guard."""

    charge: float
    row_charge: float = 0.0
    answers: int = 0
    """The number of noisy answers it counts as."""


class Heard(NamedTuple):
    """One released answer from which a difference is read; value and ends on [0, 1]."""

    mechanism: Any  # of its coarseness, and of the plan's kind
    number: int  # its place in the order of answers
    released: Any
    value: float
    low: float
    high: float


class Mechanism(Protocol):
    """Public constants, fixed before data is seen, and three pure functions of them.

    The charge never depends on data. `release` turns moments and one standard normal number into what is released,
    which lies on a public grid; everything afterwards is a function of it alone.
    """

    method: ClassVar[str]
    """Its name."""
    about: ClassVar[str]
    """A description for its line in the comparison of methods."""
    proviso: ClassVar[str]
    """What its widths depend on besides the plan, in words to put after them; empty if widths are guaranteed."""
    unavailable: ClassVar[str]
    """Why there may be no plan for some rows and questions; shown instead of that line."""
    promised: ClassVar[bool]
    """Whether widths are guaranteed in advance."""
    checks_guesses: ClassVar[bool]
    """Whether an analyst may pass their own guess."""
    exact_moments: ClassVar[bool]
    """Whether exact moments of rows are released, so one answer is enough for the mean within a group."""
    symbols: ClassVar[bool]
    """Whether it takes claims and contests, which release only symbols."""
    __dataclass_fields__: ClassVar[dict[str, Any]]  # a frozen dataclass: its fields are its constants

    @property
    def pairs(self) -> Pairs:
        """How a difference d of models is asked: as max(d, 0) and max(-d, 0), d^2 and (d + 1)/2, or (d + 1)/2 alone."""
        ...

    @property
    def rows(self) -> int:
        """The number of rows it was planned for."""
        ...

    @property
    def questions(self) -> int:
        """The number of answers at full price it may release."""
        ...

    @property
    def answers(self) -> int:
        """The most answers it may release if some are coarser; at least `questions`."""
        ...

    @property
    def failure(self) -> float:
        """beta: the probability with which any interval at all may miss."""
        ...

    @property
    def charge(self) -> float:
        """The nats of information charged for one answer."""
        ...

    @property
    def information(self) -> float | None:
        """The information budget of all answers together, in nats; None if the method keeps no such account."""
        ...

    @property
    def row_charge(self) -> float:
        """What one answer adds to the bound on how much all answers depend on one row; 0 without such an account."""
        ...

    @property
    def row_share(self) -> float | None:
        """The cap on the sum of row charges; None if the method keeps no such account."""
        ...

    @property
    def accounted(self) -> str:
        """What answers are charged, or why nothing is, in words."""
        ...

    @property
    def advice(self) -> str:
        """What it guarantees in advance, and when to choose it, in a sentence."""
        ...

    @property
    def failure_use(self) -> dict[str, float]:
        """How the failure probability is divided up; the parts add up to at most `failure`."""
        ...

    def __hash__(self) -> int:
        """A hash of its constants."""
        ...

    @property
    def grid(self) -> float | None:
        """The step of the public grid on which noisy answers lie, including coarser ones; None if there is no noise."""
        ...

    @property
    def shuffles(self) -> bool:
        """Whether answers use only some of the rows, so that rows must be shuffled."""
        ...

    @property
    def batch(self) -> int | None:
        """The number of rows reserved for the questions of one batch; None if batches do not matter."""
        ...

    @property
    def open_rows(self) -> Span | None:
        """Which of the shuffled rows the analyst may hold in full; None if none."""
        ...

    @property
    def exam_rows(self) -> Span | None:
        """Which of the shuffled rows are kept for an exam; None if none."""
        ...

    def exam_share(self, questions: int) -> float:
        """The failure probability of each of this many exam questions; 0 if there is no exam."""
        ...

    @property
    def own(self) -> bool:
        """Whether guesses come from the analyst's own rows, whose moments precede those of `spans`."""
        ...

    def spans(self, number: int, own: Span | None) -> tuple[Span, ...]:
        """Which of the shuffled rows the answer with this number uses: None for all, several spans for several moments.

        `own` are the rows that were opened for its batch.
        """
        ...

    # One number is released, or a few named ones; guess and check makes it only once it knows what came before.
    def release(self, moments: Any, noise: Any) -> Any:
        """What to release about a query with these moments, given one standard normal number, or `draws` of them."""
        ...

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether this could have been released from the rows opened for it: a number on the grid, for example."""
        ...

    def meets_first(self, released: Any) -> bool:
        """Whether it is a final look with the same truth as the first look, whose interval then holds for it too."""
        ...

    def noise_in(self, released: Any) -> float:
        """Roughly the largest standard deviation of the noise in `value`; 0 if it is exact or a part of the range."""
        ...

    def value(self, released: Any) -> float:
        """The released number on the scale of the mean, in [0, 1]."""
        ...

    def interval(self, released: Any, *, levels: int | None = None) -> tuple[float, float]:
        """The simultaneous interval; `levels` is the number of values the query can take, if they are few."""
        ...

    def half_width(self, mean: float) -> float:
        """Half the interval's length for a released number that reads `mean`."""
        ...

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """The same for the next answer, given what was released so far; the last release is all it needs."""
        ...

    def history(self, earlier: Sequence[Any]) -> Any:
        """What later answers need from earlier releases; `InvalidArgument` if these are impossible."""
        ...

    def confirmed(self, released: Any) -> bool | None:
        """Whether the guess behind an answer passed its check; None for mechanisms that guess nothing."""
        ...

    def widened(self, released: Any) -> float | None:
        """How much wider an answer whose check failed makes later ones, as a share; None if nothing failed."""
        ...

    def coarser(self, coarseness: float) -> Self:
        """The mechanism of the same plan for an answer with that multiple of the noise, at a lower charge.

        All answers of one plan share its certificate, in any mix. Raises `InvalidArgument` where that does not hold.
        """
        ...

    def problems(self) -> list[str]:
        """Why these constants do not support the certificate; empty if they do. Nothing is optimized."""
        ...

    def charge_outside(self, kind: str, value: float, rows: int, count: int) -> Charges:
        """The charges of `count` releases made elsewhere about this many rows, protected in the way `kind` names.

        Raises `InvalidArgument` if the certificate cannot account for them.
        """
        ...

    def difference(self, *parts: Heard) -> tuple[float, tuple[float, float]]:
        """The mean of d in [-1, 1], the loss of one model minus that of another, with the ends of its interval."""
        ...

    def disagreement(self, *parts: Heard) -> float:
        """Roughly the mean of |d|, from the same answers."""
        ...

    def difference_width(self, disagreement: float) -> float:
        """The half-width on the mean of d for 0/1 losses that differ on this share of rows, equally often."""
        ...


class _ByType(type(Protocol)):  # type: ignore[misc]  # the metaclass of protocols, whatever it is called
    """For a protocol that is checked with every answer: either all mechanisms of a type satisfy it, or none.

    Going through a protocol's members would take longer than most of the work on an answer.
    """

    def __instancecheck__(cls, instance: object) -> bool:
        known = _KNOWN.get((cls, type(instance)))
        if known is None:
            known = _KNOWN[cls, type(instance)] = bool(super().__instancecheck__(instance))
        return known


_KNOWN: dict[tuple[type, type], bool] = {}


@runtime_checkable
class FollowsDisagreement(Protocol, metaclass=_ByType):
    """A mechanism whose noise can follow how often two models disagree, if that is public."""

    def noise_following(self, disagreement: float) -> float:
        """The share of the plan's noise that an answer about (1 + d)/2 then needs, at the price of one; at most 1."""
        ...


@runtime_checkable
class DrawsSeveral(Protocol, metaclass=_ByType):
    """A mechanism whose answers need several standard normal numbers, which `release` gets as a sequence."""

    @property
    def draws(self) -> int:
        """The number of draws."""
        ...


@runtime_checkable
class FollowsDeviation(Protocol, metaclass=_ByType):
    """A mechanism whose noise follows the standard deviation of a number."""

    def deviation_width(self, mean: float, deviation: float) -> float:
        """Half the interval's length for a number with this mean and standard deviation, on [0, 1]."""
        ...


@runtime_checkable
class ReleasesDeviation(Protocol, metaclass=_ByType):
    """A mechanism that releases roughly the standard deviation of a number together with its mean."""

    def deviation_in(self, released: Any) -> float:
        """The standard deviation of a number on [0, 1]."""
        ...

    def off_in(self, released: Any) -> float:
        """Roughly how far off its mean and its deviation may be: by noise, by failed guesses or by rounding."""
        ...


@runtime_checkable
class FollowsHint(Protocol, metaclass=_ByType):
    """A mechanism whose noise can follow an analyst's rough idea of the answer."""

    def noise_about(self, mean: float) -> float:
        """The multiple of the plan's noise that such an answer has near a mean in [0, 1]."""
        ...


@runtime_checkable
class AnswersNumbers(Protocol, metaclass=_ByType):
    """A mechanism that answers numbers differently from conditions, at the same price."""

    def answering(self, levels: int | None) -> Mechanism:
        """The mechanism for a question with this many values; None means any number of values."""
        ...


@runtime_checkable
class AimsInGroups(Protocol, metaclass=_ByType):
    """A mechanism for numbers that chooses, for a mean within a group, what to average according to the group."""

    def aim(self, released: Any) -> Aim:
        """What was averaged."""
        ...

    def rough(self, moments: Grouped, noise: Sequence[float]) -> tuple[float, float]:
        """Rough draws of the group's share and of E[A 1_B], which both answers release and by which they are aimed."""
        ...

    def large(self, inside: float, share: float) -> bool:
        """Whether a group of this share is so large that its share would be known well; `inside` is E[A 1_B]."""
        ...

    def deviation_width(self, mean: float, deviation: float) -> float:
        """The same as in `FollowsDeviation`."""
        ...


@runtime_checkable
class ClaimsInGroups(Protocol, metaclass=_ByType):
    """A mechanism that may check the mean of a number within a group on the rows in that group."""

    @property
    def groups(self) -> bool:
        """Whether its plan says so."""
        ...


@runtime_checkable
class NeverEnds(Protocol, metaclass=_ByType):
    """A mechanism without a practical limit on answers: each is a little wider than the one before."""

    @property
    def expected(self) -> int:
        """Roughly how many answers its constants were chosen for."""
        ...

    def half_width_at(self, place: int, mean: float) -> float:
        """Half the interval's length for the answer at this position in the order of answers, if it reads `mean`."""
        ...


@runtime_checkable
class ReadsMany(Protocol, metaclass=_ByType):
    """A mechanism that can read many released numbers at once, for checking a long chain."""

    def read_each(self, released: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """`value` and both ends of `interval` for numbers it admits, for any levels, to within 1e-10.

        NaN where it cannot read the number, or does not admit it.
        """
        ...


@runtime_checkable
class AnswersVectors(Protocol, metaclass=_ByType):
    """A mechanism that can release several numbers at once for less than their prices one by one (section 18)."""

    def at_once(self, kind: str, size: int) -> Vector | None:
        """The vector of so many coordinates with about the plan's noise; None if it would not be cheaper."""
        ...

    def coordinate(self, vector: Vector) -> Coordinate:
        """The mechanism of one coordinate; the first one carries the charge of all."""
        ...


class Coordinate(Mechanism, Protocol):
    """The mechanism of a coordinate, with its own noise."""

    @property
    def coarseness(self) -> float:
        """The multiple of the plan's noise."""
        ...


def own_constants(mechanism: Any, kind: type[Any]) -> dict[str, Any]:
    """The constants that every mechanism of this kind has, without those that a subclass adds."""
    return {each.name: getattr(mechanism, each.name) for each in fields(kind)}


_STEPS_PER_NOISE = 1024


def grid_step(noise_scale: float) -> float:
    """The step for new plans: a power of two, because the low-order bits of a float sum could reveal the mean.

    A plan keeps the step it was made with, so this may change without changing any plan.
    """
    _, exponent = math.frexp(noise_scale)  # exact on every processor, unlike a logarithm
    return math.ldexp(1.0, exponent - 11)


def grid_problems(grid: float, noise_scale: float) -> list[str]:
    """Why a plan with this noise cannot have this grid; empty if it can.

    Every interval is wider by half a step, so a coarse grid makes no interval wrong, only useless.
    """
    most = noise_scale / _STEPS_PER_NOISE
    if grid > 0 and math.frexp(grid)[0] == 0.5 and grid <= most:
        return []
    return [f"the grid of released numbers has the step {grid!r}, not a power of two of at most {most:.6g}"]


def round_to_grid(value: float, step: float) -> float:
    """The nearest multiple of a power of two, exactly."""
    return round(value / step) * step


def geometric_mean(half_width: Callable[[float], float], typical: Sequence[float] = TYPICAL_MEANS) -> float:
    """The planner's measure: the geometric mean of the half-widths at the typical means."""
    return math.exp(math.fsum(math.log(half_width(mean)) for mean in typical) / len(typical))


_STEPS = 4  # coarseness is a power of 2^(1/4), so that equal requests are equal questions
_MOST_STEPS = 80


@lru_cache(maxsize=256)  # pure; the constants of a coarser mechanism's interval take milliseconds
def at_coarseness(mechanism: Mechanism, coarseness: float) -> Mechanism:
    """The mechanism of one answer of a plan."""
    return mechanism if coarseness == 1.0 else mechanism.coarser(coarseness)


@lru_cache(maxsize=512)
def at_levels(mechanism: Mechanism, levels: int | None) -> Mechanism:
    """The mechanism for a question with so many values."""
    return mechanism.answering(levels) if isinstance(mechanism, AnswersNumbers) else mechanism


@lru_cache(maxsize=1024)
def at_coordinate(mechanism: Mechanism, vector: Vector) -> Coordinate:
    """The mechanism of one coordinate of a vector."""
    if not isinstance(mechanism, AnswersVectors):
        raise InvalidArgument(f"method={mechanism.method!r} releases no vectors at once.")
    return mechanism.coordinate(vector)


@lru_cache(maxsize=256)
def coarseness_for(mechanism: Mechanism, half_width: float) -> float:
    """The largest coarseness whose half-width, at the mean 1/2 where it is widest, is at most `half_width`."""
    mechanism.coarser(1.0)  # refuses where all answers must have the same noise
    best = mechanism.half_width(0.5)
    if half_width < best:
        raise InvalidArgument(
            f"precision == {half_width:.6g} of the range between the bounds is finer than this plan's answers, which "
            f"are accurate to ±{best:.4g} of that range; leave precision out for the most accurate answer, or ask for "
            f"{best:.4g} times the range or more."
        )
    if half_width >= 0.5:
        raise InvalidArgument(
            f"precision == {half_width:.6g} of the range between the bounds says nothing: every mean is within "
            f"±0.5 of the middle. Give a half-width from {best:.4g} to below 0.5."
        )
    fits, fails = 0, _MOST_STEPS
    while fails - fits > 1:
        middle = (fits + fails) // 2
        try:
            narrow = at_coarseness(mechanism, 2 ** (middle / _STEPS)).half_width(0.5) <= half_width
        except InvalidArgument:  # beyond what the certificate covers
            narrow = False
        fits, fails = (middle, fails) if narrow else (fits, middle)
    return float(2 ** (fits / _STEPS))
