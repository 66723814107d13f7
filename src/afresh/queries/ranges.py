"""Ranges of numbers, and how operations map them: interval arithmetic.

Rounding is monotone, so the arithmetic of ends, rounded as the engine rounds, bounds the arithmetic of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, slots=True)
class Range:
    """Every value lies in [low, high] (none does if low > high), or is NULL if it `may_be_null`."""

    low: float
    high: float
    may_be_null: bool = True


Rule = Callable[..., Range]
ANYTHING = Range(-math.inf, math.inf)
NOTHING = Range(math.inf, -math.inf)


def anything(*_: Range) -> Range:
    """The range of a number about which nothing is known."""
    return ANYTHING


def counts(*_: Range) -> Range:
    """The range of a number that is not negative."""
    return Range(0.0, math.inf)


def union(*given: Range) -> Range:
    """The range of values that lie in one of the ranges."""
    return Range(
        min(each.low for each in given),
        max(each.high for each in given),
        any(each.may_be_null for each in given),
    )


def first(*given: Range) -> Range:
    """The rule of coalesce: operands after one that is never NULL do not matter."""
    surely = next((i for i, each in enumerate(given) if not each.may_be_null), None)
    taken = union(*(given if surely is None else given[: surely + 1]))
    return Range(taken.low, taken.high, surely is None)


def least(*given: Range) -> Range:
    """The rule of least: NULL operands are skipped, so only an operand that is never NULL limits the others."""
    every, sure = union(*given), [each for each in given if not each.may_be_null]
    return Range(every.low, min([every.high, *(each.high for each in sure)]), not sure)


def greatest(*given: Range) -> Range:
    """The rule of greatest: like `least`, with the ends swapped."""
    every, sure = union(*given), [each for each in given if not each.may_be_null]
    return Range(max([every.low, *(each.low for each in sure)]), every.high, not sure)


def opposite(one: Range) -> Range:
    """The range with its sign reversed."""
    return Range(-one.high, -one.low, one.may_be_null)


def absolute(one: Range) -> Range:
    """The range of absolute values."""
    largest = max(abs(one.low), abs(one.high))
    smallest = 0.0 if one.low <= 0 <= one.high else min(abs(one.low), abs(one.high))
    return Range(smallest, largest, one.may_be_null)


def corners(compute: Callable[[float, float], float]) -> Rule:
    """The rule of an operation that is monotone in each operand; NULL where it overflows."""

    def apply(one: Range, other: Range) -> Range:
        ends = []
        for x, y in product((one.low, one.high), (other.low, other.high)):
            try:
                end = compute(x, y)
            except (OverflowError, ValueError, ZeroDivisionError):
                end = math.nan
            if math.isnan(end):
                return ANYTHING
            ends.append(end)
        finite = all(map(math.isfinite, ends))
        return Range(min(ends), max(ends), not finite or one.may_be_null or other.may_be_null)

    return apply


# an end that is infinite is not a value
times = corners(lambda x, y: 0.0 if 0.0 in (x, y) else x * y)
_over = corners(lambda x, y: 0.0 if math.isinf(y) else x / y)
_power = corners(math.pow)


def divide(one: Range, other: Range) -> Range:
    """The rule of division; anything is possible if the divisor's range may hold zero."""
    if other.low == other.high == 0:
        return NOTHING
    return ANYTHING if other.low <= 0 <= other.high else _over(one, other)


def modulo(one: Range, other: Range) -> Range:
    """The rule of modulo: nearer to zero than both operands, with the sign of the first."""
    most = min(max(abs(other.low), abs(other.high)), max(abs(one.low), abs(one.high)))
    return Range(-most if one.low < 0 else 0.0, most if one.high > 0 else 0.0)


def power(one: Range, other: Range) -> Range:
    """The rule of powers, for a base that is never negative or a constant whole exponent."""
    found = ANYTHING
    if one.low > 0 or (one.low == 0 and other.low >= 0):
        found = _power(one, other)
    elif other.low == other.high and other.low >= 0 and other.low.is_integer():
        found = _power(one if other.low % 2 else absolute(one), other)
    return Range(found.low, found.high)


def rising(compute: Callable[[float], float], lowest: float = -math.inf) -> Rule:
    """The rule of an increasing function of one number, NULL below `lowest`."""

    def apply(one: Range) -> Range:
        if one.high < lowest:
            return NOTHING
        ends = []
        for end in (max(one.low, lowest), one.high):
            try:
                ends.append(float(compute(end)))
            except OverflowError:
                ends.append(math.copysign(math.inf, end))
            except ValueError:
                ends.append(-math.inf)  # ln(0)
        finite = all(map(math.isfinite, ends)) and one.low >= lowest
        return Range(ends[0], ends[1], one.may_be_null or not finite)

    return apply
