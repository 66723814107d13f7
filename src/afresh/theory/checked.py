"""Checked answers and open rows: claims that follow the spread, checked on rows that only release symbols (section 15).

A claim is an interval that may depend on anything but the checking rows: on guess rows through noise, on open rows that
the analyst holds in full, on the analyst's word. It passes if the checking rows' own limits lie within it, and then
only the claim is released. If it fails, the interval of the checking rows is released, rounded outward to a public grid
(or, for a two-valued question, the bin of their mean). Levels come from the tree of everything that may be released.

A node's share alpha is split: both limits of the test are at passing * alpha, those released after a failure at (1 -
passing) * alpha together. A truth below the claim can pass only if the lower limit is wrong, one above only if the
upper is, so the test needs no second side: passing + (1 - passing) = 1.

Widths here are expected, not guaranteed: validity only needs the plan to be fixed before the checking rows are looked
at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from afresh.errors import InvalidArgument
from afresh.theory.exact import Values, lower_limit, upper_limit
from afresh.theory.search import minimize_simplex
from afresh.theory.special import gammaln, ndtr, ndtri
from afresh.theory.symbols import Trail, level, steady

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


_MOST_GROWTH = 4.0
_MOST_FAILURES = 80  # the most failures that the attack's model follows
_EDGE = 1e-12  # covers the rounding of a mean and of a bin's edges
_LEAST_MARGIN = 1e-6  # on the scale of [0, 1]: a claim is never finer than a millionth


@dataclass(frozen=True, slots=True)
class Checking:
    """How claims are made and checked; all public, fixed before the checking rows are looked at.

    Guesses come from `guess_rows`, and `noise` is the variance of the guesser's noise relative to the question's
    (Figure 1's 1/t; 0 for open rows). A claim allows for `reach` standard deviations of guess and check means
    together; every failure so far widens it by the share `growth`, up to fourfold. `none` is the weight of no failures
    at all and `calm` how many steps one failure is expected in otherwise; `passing` is the share of a node's alpha
    that its test gets.
    """

    guess_rows: int
    check_rows: int
    questions: int
    failure: float
    noise: float
    reach: float
    growth: float
    none: float
    calm: float
    passing: float

    def __post_init__(self) -> None:
        """Refuse invalid constants; validity needs shares between 0 and 1 and a row that checks."""
        within = 0 < self.failure < 1 and 0 < self.none < 1 and 0 < self.passing < 1 and self.calm >= 1
        if not (within and self.noise >= 0 and self.reach >= 0 and self.growth >= 0):
            raise InvalidArgument(f"{self}: shares must be in (0, 1), calm >= 1, the rest >= 0.")
        if not (self.questions >= 1 and self.guess_rows >= 1 and self.check_rows >= 1):
            raise InvalidArgument(
                f"{self.guess_rows} and {self.check_rows} rows for {self.questions} questions: needs rows that guess "
                "and rows that check."
            )


def node_level(plan: Checking, trail: Trail) -> float:
    """L = ln(1/alpha) of the node after `trail`, alpha being beta times its weight; from above."""
    return level(plan.failure, steady(trail, plan.questions, plan.none, plan.calm))


def claim(
    plan: Checking, guess: float, deviation: float | None, trail: Trail, *, values: Values = "two-valued"
) -> tuple[float, float]:
    """The claim that goes with a guess: the test's limits for every check mean within reach of it.

    `deviation` is the guessed standard deviation; None stands for the largest, as of a two-valued question.
    Three-valued questions are guessed and claimed on [-1, 1].
    """
    margin = _margin(plan, guess, deviation, trail, values)
    bottom = -1.0 if values == "three-valued" else 0.0
    low, high = max(guess - margin, bottom), min(guess + margin, 1.0)
    nats = node_level(plan, trail) - math.log(plan.passing)
    n = plan.check_rows
    spread, hint = _check_spread(plan, guess, deviation, values)
    return (
        float(lower_limit(values, n, n * low, n * _second(low, spread, values), nats, hint=hint)),
        float(upper_limit(values, n, n * high, n * _second(high, spread, values), nats, hint=hint)),
    )


def bins(plan: Checking, guess: float, deviation: float | None, trail: Trail, values: Values = "two-valued") -> int:
    """The number of steps in the public grid of a failed claim: one per margin."""
    margin = _margin(plan, guess, deviation, trail, values) / (2 if values == "three-valued" else 1)
    return math.ceil(1 / min(margin, 1.0))


def check_limits(
    plan: Checking,
    total: float,
    squares: float,
    trail: Trail,
    *,
    values: Values = "two-valued",
    guess: float = 0.5,
    deviation: float | None = None,
) -> tuple[float, float]:
    """The limits that a claim is tested against, from the checking rows' moments; never released as such."""
    nats, n = node_level(plan, trail) - math.log(plan.passing), plan.check_rows
    _, hint = _check_spread(plan, guess, deviation, values)
    return (
        float(lower_limit(values, n, total, squares, nats, hint=hint)),
        float(upper_limit(values, n, total, squares, nats, hint=hint)),
    )


def failed_limits(
    plan: Checking,
    total: float,
    squares: float,
    trail: Trail,
    *,
    values: Values = "two-valued",
) -> tuple[float, float]:
    """The limits that are released after a failure, once rounded to the public grid."""
    nats, n = node_level(plan, trail) - math.log((1 - plan.passing) / 2), plan.check_rows
    return (
        float(lower_limit(values, n, total, squares, nats)),
        float(upper_limit(values, n, total, squares, nats)),
    )


def failed_bin_limits(
    plan: Checking, index: int, count: int, trail: Trail, *, values: Values = "two-valued"
) -> tuple[float, float]:
    """The same for a two-valued question, which releases only the bin floor(mean count): the limits of its edges.

    Limits that use only the sum increase with it, so they hold for every mean in the bin.
    """
    if not (0 <= index < count and values in ("two-valued", "nearly two-valued")):
        raise InvalidArgument(f"bin {index} of {count} for values == {values!r}: there is no such bin.")
    nats, n = node_level(plan, trail) - math.log((1 - plan.passing) / 2), plan.check_rows
    left, right = n * max(index / count - _EDGE, 0.0), n * min((index + 1) / count + _EDGE, 1.0)
    return (
        float(lower_limit(values, n, left, left, nats)),
        float(upper_limit(values, n, right, right, nats)),
    )


def expected_half_width(
    plan: Checking,
    mean: float = 0.5,
    deviation: float | None = None,
    trail: Trail | None = None,
    *,
    values: Values = "two-valued",
) -> float:
    """Half the claim's width for a guess of this mean and deviation; by default if nothing failed before."""
    low, high = claim(plan, mean, deviation, trail or Trail(), values=values)
    return (high - low) / 2


class Constants(NamedTuple):
    """What decides a plan's widths; docs/lab.md says how they were searched."""

    noise: float
    """The guesser's standard deviation at a mean of one half, in units of (sqrt(k)/n)^(1/2)."""
    guessing: float
    """The share of rows that guess."""
    misses: float
    """The number of failures to expect by chance."""
    growth: float
    """By how much each failure widens later claims."""
    none: float = 0.7
    """The weight of no failures."""
    passing: float = 0.95
    """The share of a node's alpha that its test gets."""
    failing: float = 10
    """The number of failures to expect if there are any: one in k/failing questions, b of section 15."""


FOUND = Constants(noise=0.22, guessing=0.6, misses=0.15, growth=0.05)


def plan_checked(rows: int, questions: int, failure: float, constants: Constants = FOUND) -> Checking:
    """Plan with constants near those that `search_checked` finds, as functions of rows and questions."""
    guess_rows = math.floor(rows * constants.guessing)
    relative = 4 * constants.noise**2 * math.sqrt(questions) / rows
    return _plan(guess_rows, rows - guess_rows, questions, failure, relative, constants)


def plan_open(guess_rows: int, check_rows: int, questions: int, failure: float) -> Checking:
    """Constants for claims that are exact means of open rows, which the analyst holds; the other rows check."""
    return _plan(guess_rows, check_rows, questions, failure, 0.0, FOUND)


def _plan(
    guess_rows: int, check_rows: int, questions: int, failure: float, relative: float, constants: Constants
) -> Checking:
    reach = -ndtri(min(constants.misses / (2 * questions), 0.25))
    calm = max(questions / constants.failing, 1.0)
    growth, none, passing = constants.growth, constants.none, constants.passing
    return Checking(guess_rows, check_rows, questions, failure, relative, reach, growth, none, calm, passing)


def attacked_half_width(plan: Checking) -> float:
    """The mean half-width at 1/2 if every question with a square number is an attack; a model, by normal laws.

    The attack is the classic one: the vote of all columns asked about so far, each with the sign that its noisy guess
    had. It lifts the guess by Phi(eps sqrt(j)) - 1/2, eps twice the mean gain of a column, and leaves the check as it
    is. The law of the number of failures is followed exactly, question by question.
    """
    from scipy.special import ndtri_exp  # only in the lab's searches

    f = np.arange(_MOST_FAILURES + 1)
    growth = np.minimum((1 + plan.growth) ** f, _MOST_GROWTH)
    spread = 0.5 * math.sqrt(plan.noise + 1 / plan.guess_rows + 1 / plan.check_rows)
    margin = plan.reach * spread * growth
    # What f failures cost: their bins, and (below) their pattern and number.
    symbols = np.concatenate([[0.0], np.cumsum(np.log(np.ceil(1 / np.minimum(margin, 1.0))))[:-1]])
    sampling = 1 / (4 * plan.guess_rows)
    gain = 2 * math.sqrt(2 / math.pi) * sampling / math.sqrt(sampling + plan.noise / 4)
    chance = np.zeros(f.size)
    chance[0] = 1.0
    total = 0.0
    for asked in range(plan.questions):
        log_alpha = math.log(plan.failure) - symbols - _log_paths(plan, asked, f)
        passed = margin - ndtri_exp(log_alpha + math.log(plan.passing)) * 0.5 / math.sqrt(plan.check_rows)
        failed = margin / 2 - ndtri_exp(log_alpha + math.log((1 - plan.passing) / 2)) * 0.5 / math.sqrt(plan.check_rows)
        square = asked > 0 and math.isqrt(asked + 1) ** 2 == asked + 1
        bias = ndtr(gain * math.sqrt(asked)) - 0.5 if square else 0.0
        fails = ndtr((bias - margin) / spread) + ndtr((-bias - margin) / spread)
        total += float((chance * ((1 - fails) * np.minimum(passed, 0.5) + fails * np.minimum(failed, 0.5))).sum())
        moved = chance * fails
        chance = chance - moved
        chance[1:] += moved[:-1]
        chance[-1] += moved[-1]
    return total / plan.questions


def _log_paths(plan: Checking, asked: int, f: NDArray[np.int64]) -> Floats:
    """What `steady` says without symbols, for many numbers of failures at once."""
    met = np.minimum(f, asked)
    mixed = math.log(plan.calm) + gammaln(met + 1) + gammaln(plan.calm + asked - met) - gammaln(plan.calm + asked + 1)
    law = np.where(met == 0, np.log(plan.none + (1 - plan.none) * np.exp(mixed)), math.log(1 - plan.none) + mixed)
    found: Floats = math.log(plan.questions) - law
    return found


def search_checked(
    rows: int, questions: int, failure: float, *, attack: float = 0.8, evaluations: int = 150
) -> tuple[Checking, float, float]:
    """Constants for which calm^(1-attack) attacked^attack, of the half-widths at 1/2, is least; and both half-widths.

    It starts from the constants in use, and searches noise, share of guess rows, honest failures, growth, the weight of
    no failures and the share of a pass.
    """

    def read(point: Sequence[float]) -> Checking:
        noise, misses, growth = (math.exp(min(max(x, -9.0), 2.0)) for x in point[:3])
        guessing, none, passing = (1 / (1 + math.exp(-min(max(x, -6.0), 6.0))) for x in point[3:])
        return plan_checked(rows, questions, failure, Constants(noise, guessing, misses, growth, none, passing))

    def price(point: Sequence[float]) -> float:
        plan = read(point)
        return (1 - attack) * math.log(expected_half_width(plan)) + attack * math.log(attacked_half_width(plan))

    start = [
        *(math.log(x) for x in (FOUND.noise, FOUND.misses, FOUND.growth)),
        *(math.log(x / (1 - x)) for x in (FOUND.guessing, FOUND.none, FOUND.passing)),
    ]
    best, _ = minimize_simplex(price, start, tolerance=1e-3, evaluations=evaluations)
    plan = read(best)
    return plan, expected_half_width(plan), attacked_half_width(plan)


def _margin(plan: Checking, guess: float, deviation: float | None, trail: Trail, values: Values) -> float:
    variance = _largest(guess, values) if deviation is None else min(deviation**2, _largest(guess, values))
    # A rare event's variance is itself uncertain: as if one more row in either part were a hit.
    variance += 1 / min(plan.guess_rows, plan.check_rows)
    spread = variance * (plan.noise + 1 / plan.guess_rows + 1 / plan.check_rows)
    grown = min((1 + plan.growth) ** trail.events, _MOST_GROWTH)
    return max(plan.reach * math.sqrt(spread) * grown, _LEAST_MARGIN)


def _check_spread(plan: Checking, guess: float, deviation: float | None, values: Values) -> tuple[float, float | None]:
    """The variance that the checking rows are expected to show, with one deviation to spare, and the hint for bets."""
    largest = _largest(guess, values)
    if deviation is None:
        return largest, None
    variance = min(deviation**2, largest)
    # Values in [0, 1] have a fourth moment of at most their variance (in [-1, 1], four times that).
    spare = math.sqrt(variance * (4 if values == "three-valued" else 1) / plan.check_rows)
    hint = variance if values in ("number", "three-valued") else None
    return min(variance + spare, largest), hint


def _largest(mean: float, values: Values) -> float:
    return 1 - mean * mean if values == "three-valued" else max(mean * (1 - mean), 0.0)


def _second(mean: float, variance: float, values: Values) -> float:
    """The second moment for this mean and variance, within what the values allow."""
    second = variance + mean * mean
    return min(max(second, abs(mean)), 1.0) if values == "three-valued" else min(second, mean)
