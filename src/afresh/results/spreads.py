"""The rules of variances, covariances and correlations: their parts are means, and then means around these.

The numbers around a mean were asked with its released value v in their questions, so a rule reads v from that answer.
Or they were asked together with the mean, around numbers that were known before: these are the parameter `around`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from afresh.results.answer import Interval
from afresh.results.reading import Number

Bounds = tuple[float, float]
Parameters = Mapping[str, Any]

OUTWARD = 1e-13  # covers the rounding of about a hundred operations on numbers of order one
SQUARES = 1e-14  # covers a dozen


@dataclass(frozen=True, slots=True)
class Centre:
    """What is known about the mean of a bounded number: x - v is small where the variance is."""

    bounds: Bounds
    mean: Number
    around: float
    """v: the value that was released for the mean, or a number close to it."""

    @property
    def error(self) -> float:
        """How far the mean may be from v."""
        return max(self.mean.high - self.around, self.around - self.mean.low)

    @property
    def off(self) -> float:
        """How far the value that was released for the mean is from v."""
        return self.mean.value - self.around

    @property
    def reach(self) -> float:
        """The largest |x - v|."""
        return max(self.bounds[1] - self.around, self.around - self.bounds[0])

    def variance(self, square: Number) -> Interval:
        """Var x = E (x - v)^2 - (E x - v)^2, from the answer to E (x - v)^2."""
        most, slack = ((self.bounds[1] - self.bounds[0]) / 2) ** 2, SQUARES * self.reach**2
        return Interval(min(max(square.low - self.error**2 - slack, 0.0), most), min(square.high + slack, most))


def _centre(name: str, mean: Number, parameters: Parameters) -> Centre:
    """What is known about the mean of the number whose bounds have this name."""
    around = parameters.get("around", {})
    return Centre(tuple(parameters[name]), mean, around.get(name, mean.value))


def variance(found: Sequence[Number], parameters: Parameters) -> Number:
    """The mean square around a released mean, less what that mean may be off."""
    mean, square = found
    x = _centre("bounds", mean, parameters)
    interval = x.variance(square)
    return Number(square.value - x.off**2, interval.low, interval.high)


def deviation(found: Sequence[Number], parameters: Parameters) -> Number:
    """The root of the variance."""
    value, low, high = variance(found, parameters)
    value = min(max(value, low), high)
    outward = 1 + 1e-15
    return Number(math.sqrt(value), math.sqrt(low) / outward, math.sqrt(high) * outward)


def covariance(found: Sequence[Number], parameters: Parameters) -> Number:
    """From both means, and the positive and the negative part of the product around them."""
    first, second, positive, negative = found[:4]
    x, y = _centre("x", first, parameters), _centre("y", second, parameters)
    # Cov(x, y) = E (x - v)(y - w) - (E x - v)(E y - w), with the product split into its positive and negative parts.
    slack = x.error * y.error + SQUARES * x.reach * y.reach
    low, high = positive.low - negative.high - slack, positive.high - negative.low + slack
    return Number(positive.value - negative.value - x.off * y.off, low, high)


def correlation(found: Sequence[Number], parameters: Parameters) -> Number:
    """From a covariance and both variances."""
    value, low, high = covariance(found, parameters)
    first, second, _, _, *squares = found
    a = _centre("x", first, parameters).variance(squares[0])
    b = _centre("y", second, parameters).variance(squares[1])
    roots = [math.sqrt(a.low) * math.sqrt(b.low), math.sqrt(a.high) * math.sqrt(b.high)]
    if roots[0] == 0:  # there may be no spread at all: then nothing can be said
        low, high = -1.0, 1.0
    else:
        ratios = [
            math.copysign(1.0, end) if abs(end) >= root else end / root
            for end, root in itertools.product((low, high), roots)
        ]
        low, high = min(ratios) - SQUARES, max(ratios) + SQUARES
    middle = math.sqrt(squares[0].value) * math.sqrt(squares[1].value)
    return Number(value / middle if middle > 0 else 0.0, low, high)


def correlation_by_sums(found: Sequence[Number], parameters: Parameters) -> Number:
    """Section 12: from the mean squares of (u + w)/2 and (u - w)/2, u and w in [-1, 1], and of (u^2 - w^2)/2."""
    first, second, plus, minus, rest = found
    x, y = _centre("x", first, parameters), _centre("y", second, parameters)
    e, f = x.error / x.reach, y.error / y.reach
    off = ((e + f) / 2) ** 2 + SQUARES
    a, b = (Interval(max(each.low - off, 0.0), each.high + SQUARES) for each in (plus, minus))
    uneven = max(rest.high + f * f / 2, e * e / 2 - rest.low) + SQUARES
    low, high = -most_correlated(b, a, uneven), most_correlated(a, b, uneven)
    u, w = x.off / x.reach, y.off / y.reach
    both = plus.value + minus.value - (u * u + w * w) / 2
    square = both**2 - (rest.value - (u * u - w * w) / 2) ** 2
    value = (plus.value - minus.value - u * w) / math.sqrt(square) if square > 0 else 0.0
    return Number(value, low - OUTWARD, high + OUTWARD)


def most_correlated(a: Interval, b: Interval, uneven: float) -> float:
    """The largest (A - B)/sqrt((A + B)^2 - D^2) with A and B in these intervals, |D| <= uneven and D^2 <= 4 A B."""
    if a.high <= b.low:  # at most 0, and least in size for D = 0
        return (a.high - b.low) / (a.high + b.low) if b.low > 0 else 0.0
    found = []
    for most in (max(a.low, b.low), a.high):  # it falls with B; in A it is largest at an end
        if 4 * most * b.low <= uneven**2:
            return 1.0
        found.append((most - b.low) / math.sqrt((most + b.low) ** 2 - uneven**2))
    return min(max(found), 1.0)
