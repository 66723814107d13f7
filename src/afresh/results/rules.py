"""The rules that derive numbers from answers: pure functions of recorded numbers, public constants and parameters.

Every derived number's record names its rule, so anyone who holds the records can apply it again. Its interval holds
whenever those of its parts do, with the rounding of its own arithmetic added outward. A published rule keeps its name
and its meaning.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import AimsInGroups
from afresh.moments import Aim
from afresh.results.answer import Interval
from afresh.results.reading import Number, Reading, rescaled
from afresh.results.spreads import (
    OUTWARD,
    SQUARES,
    Bounds,
    Parameters,
    correlation,
    correlation_by_sums,
    covariance,
    deviation,
    variance,
)

if TYPE_CHECKING:
    from afresh.planning.plan import Plan

Spread = Callable[[Sequence[Number], Parameters], Number]
Rule = Callable[[Sequence[Reading], Parameters, "Plan"], Number]

_NEARLY_ALL = 0.95  # as a share of the bounds
_IN_95 = 1.96  # standard deviations, for 95 numbers in 100


def derive(rule: str, parts: Sequence[Reading], parameters: Parameters, bounds: Bounds, plan: Plan) -> Number:
    """The number that a rule derives from its parts, clipped to its known bounds."""
    if rule not in RULES:
        raise InvalidArgument(f"unknown rule {rule!r}; it may come from a newer version of afresh")
    value, low, high = RULES[rule](parts, parameters, plan)
    low, high = (min(max(end, bounds[0]), bounds[1]) for end in (low, high))
    return Number(min(max(value, low), high), low, high)


def scale_of(rule: str, parts: Sequence[Reading], parameters: Parameters) -> Bounds:
    """The bounds of a number derived by this rule, from those of its parts; `InvalidArgument` if parameters differ.

    Numbers are clipped to their bounds, so anyone who could choose the bounds could choose an interval.
    """
    step = _step(parameters)
    if rule.removesuffix(_AGAIN) in _CENTRES:
        _check_centres(rule, parts, parameters)
    match rule.removesuffix(_AGAIN):
        case "within" | "entry" | "improvement":
            return parts[0].entry.bounds
        case "group":
            return parts[1].entry.bounds
        case "difference":
            scale = parts[-1].entry.bounds[1]
            _agree(parameters["scale"], scale)
            return -scale, scale
        case "quantile":
            low, high = parameters["bounds"]
            return low, high
        case "variance" | "standard deviation":
            reach = _half(parts[0], parameters["bounds"])
            return 0.0, reach if rule.startswith("standard") else reach**2
        case "covariance":
            most = _half(parts[0], parameters["x"]) * _half(parts[step], parameters["y"])
            return -most, most
        case "correlation" | "correlation by sums":
            _half(parts[0], parameters["x"])
            _half(parts[step], parameters["y"])
            return -1.0, 1.0
    return 0.0, 1.0  # shares, their sums and areas


def _check_centres(rule: str, parts: Sequence[Reading], parameters: Parameters) -> None:
    """Check that the questions around means were asked around the numbers that the rule takes them for."""
    of, step = rule.removesuffix(_AGAIN), _step(parameters)
    means, around = _CENTRES[of] * step, parameters.get("around", {})
    questions = parts[means:-means] if rule.endswith(_AGAIN) else parts[means:]
    names = ("bounds",) if _CENTRES[of] == 1 else ("x", "y")
    for place, (name, mean) in enumerate(zip(names, _numbers(parts[:means], parameters), strict=True)):
        value, (low, high) = around.get(name, mean.value), parameters[name]
        other = (3 - place) * step  # the square of a plain correlation that is about the other number alone
        own = [*questions[:other], *questions[other + step :]] if of == "correlation" else questions
        for text in (part.entry.text for part in own):
            if not any(abs(float(each) - value) <= _NEARLY * (high - low) for each in _SUBTRACTED.findall(text)):
                raise InvalidArgument(f"a parameter or a mean is {value!r}, which {text!r} does not subtract")


def _half(part: Reading, said: Sequence[float]) -> float:
    """Half the distance between the bounds of a mean, which the parameters repeat."""
    low, high = part.entry.bounds
    _agree(list(said), [low, high])
    return (high - low) / 2


def _agree(said: object, found: object) -> None:
    if said != found:
        raise InvalidArgument(f"a parameter is {said!r}, but the parts have {found!r}")


def tells(rule: str | None, low: float, high: float, bounds: Bounds) -> bool:
    """Whether a number is informative, judged by its interval alone.

    It is not if the interval is (nearly) the whole possible range: the group may then have no rows at all, and a value
    would only mislead. Differences of models are read by their sign and do not concern a group.
    """
    return rule == "difference" or high - low < _NEARLY_ALL * (bounds[1] - bounds[0])


def _numbers(parts: Sequence[Reading], parameters: Parameters) -> list[Number]:
    """The parts on their own scales; in pairs if they are means within a group."""
    if parameters.get("grouped"):
        return [within(pair, parameters) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return [part.own for part in parts]


def _step(parameters: Parameters) -> int:
    """How many parts make a number."""
    return 2 if parameters.get("grouped") else 1


def within(parts: Sequence[Reading], parameters: Parameters = {}, plan: Plan | None = None) -> Number:  # noqa: B006 - read only
    """Section 12: E[A | B] from A 1_B and (1 - A) 1_B. 0/0 says nothing: [0, 1]."""
    (entry, v1, n1), (_, v0, n0) = parts
    found = within_ends(n1, n0)
    value = v1 / (v1 + v0) if v1 + v0 > 0 else (found.low + found.high) / 2
    interval = found.rescaled(entry.bounds)
    return Number(rescaled(value, entry.bounds, interval), interval.low, interval.high)


def met(low: float, high: float, first_low: float, first_high: float) -> tuple[float, float]:
    """The intersection of a final look's interval with the first one; if empty, the hull of both.

    Each has its own share of the failure probability, so both hold at once.
    """
    both = max(low, first_low), min(high, first_high)
    return both if both[0] <= both[1] else (min(low, first_low), max(high, first_high))


def within_ends(n1: Interval, n0: Interval) -> Interval:
    """The interval of E[A | B], on [0, 1]."""
    low = n1.low / (n1.low + n0.high) if n1.low + n0.high > 0 else 0.0
    high = n1.high / (n1.high + n0.low) if n1.high + n0.low > 0 else 1.0
    return Interval(low, high)


def _group(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
    """Section 12: E[A | B] from two answers, each the average of its own aim."""
    (_, v, one), (entry, w, other) = parts
    aims = _aims(parts, plan)
    interval = group_ends(aims, one, other).rescaled(entry.bounds)
    found = _corner(aims, v, w)
    value = found[0] / found[1] if found is not None and found[1] > 0 else 0.5
    return Number(rescaled(min(max(value, 0.0), 1.0), entry.bounds, interval), interval.low, interval.high)


def _aims(parts: Sequence[Reading], plan: Plan) -> tuple[Aim, Aim]:
    found = []
    for part in parts:
        mechanism, outcome = plan.of(part.entry), part.entry.outcome
        if not isinstance(mechanism, AimsInGroups) or outcome is None:
            raise InvalidArgument(f"answer {part.entry.number} is not about a group")
        found.append(mechanism.aim(outcome.released))
    first, second = found
    return first, second


def _corner(aims: tuple[Aim, Aim], v: float, w: float) -> tuple[float, float] | None:
    """E[A 1_B] and Pr(B) if the two answers were exactly these; None if they do not determine them."""
    (a, g, d, _), (b, h, e, _) = aims
    whole = _determinant(aims)
    if abs(whole) < 1e-6:
        return None
    return (h * (v - d) - g * (w - e)) / whole, (a * (w - e) - b * (v - d)) / whole


def _determinant(aims: tuple[Aim, Aim]) -> float:
    """How far the two answers are from being redundant; rounding errors are divided by it."""
    (a, g, _, _), (b, h, _, _) = aims
    return a * h - b * g


def group_ends(aims: tuple[Aim, Aim], one: Interval, other: Interval) -> Interval:
    """The interval of E[A | B], on [0, 1]: a ratio of two linear functions is extreme at a corner of the feasible set.

    It is all of [0, 1] if the group may have no rows.
    """
    corners = [_corner(aims, v, w) for v, w in itertools.product((one.low, one.high), (other.low, other.high))]
    if not all(corner is not None and corner[1] > 0 for corner in corners):
        return Interval(0.0, 1.0)
    rounding = OUTWARD / min(abs(_determinant(aims)), 1.0)
    found = [(inside / share, rounding / share) for inside, share in filter(None, corners)]
    return Interval(max(min(x - more for x, more in found), 0.0), min(max(x + more for x, more in found), 1.0))


def _difference(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
    """The mean of a difference in [-1, 1] from its answers (see `afresh.models.paired`), in units of the loss."""
    from afresh.models.paired import read_difference

    value, interval = read_difference(plan, *parts)
    scale, sign = float(parameters["scale"]), int(parameters.get("sign", 1))  # a pair may be asked in either order
    low, high = sorted((sign * interval.low * scale, sign * interval.high * scale))
    for _ in range(2):  # a difference and a product: two roundings
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    return Number(sign * value * scale, low, high)


def _as_it_is(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
    """One answer under its own name: the score of a board's entry, or whether it beat another entry."""
    return parts[0].own


def _bin(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
    """One bin of a histogram: no share can exceed what the others leave."""
    found = _numbers(parts, parameters)
    own = found[int(parameters["bin"])]
    others = math.fsum(each.low for each in found) - own.low
    high = min(own.high, max(1 - others + OUTWARD, own.low))
    return Number(min(own.value, high), own.low, high)


def _bin_of_group(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
    """One bin of a histogram within a group of share W: p/W. Parts are shares of all rows; the last is the share 1 - W.

    p is at least its lower end, and at most its upper end h and what the others leave; h/W falls with W, 1 - L/W grows.
    """
    *bins, outside = (part.own for part in parts)
    own = bins[int(parameters["bin"])]
    others = max(math.fsum(each.low for each in bins) - own.low - OUTWARD, 0.0)
    least, most = max(1 - outside.high, 0.0), 1 - outside.low
    whole = min(max(own.high + others, least), most)
    low = own.low / most - OUTWARD if most > 0 else 0.0
    high = min(own.high, whole - others) / whole + OUTWARD if whole > 0 else 1.0
    value = own.value / (1 - outside.value) if outside.value < 1 else 0.5
    low, high = max(low, 0.0), min(max(high, low), 1.0)
    return Number(min(max(value, low), high), low, high)


_CENTRES = {"variance": 1, "standard deviation": 1, "covariance": 2, "correlation": 2, "correlation by sums": 2}
_AGAIN = ", looked at again"
_SUBTRACTED = re.compile(r" - (-?[\d.]+(?:e[+-]?\d+)?)(?![\w.])")
_NEARLY = 1e-9  # of the range between bounds: far beyond rounding


def again(rule: str, parameters: Parameters) -> tuple[str, int]:
    """The rule for a final look at a number, and how many of its parts, the first ones, it takes as they were.

    These are means around whose released values the others were asked, if they were not asked around numbers that were
    known before. Looks at them follow as the last parts.
    """
    centres = 0 if "around" in parameters else _CENTRES.get(rule, 0)
    return (rule + _AGAIN if centres else rule), centres * _step(parameters)


def _spread(rule: Spread) -> Rule:
    return lambda parts, parameters, plan: rule(_numbers(parts, parameters), parameters)


def _spread_again(rule: Spread, centres: int) -> Rule:
    """From the first answers about the means, looks at the answers around these, and looks at the means.

    The first answer about a mean says what was asked around, the look at it how far from there the mean may be.
    """

    def derived(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
        found, means = _numbers(parts, parameters), centres * _step(parameters)
        for one, look in zip(parts[:means], parts[-means:], strict=True):
            if look.entry.again != one.entry.number:
                raise InvalidArgument(f"answer {look.entry.number} is not the final look at answer {one.entry.number}")
        pairs = zip(found[:centres], found[-centres:], strict=True)
        known = [Number(one.value, look.low, look.high) for one, look in pairs]
        return rule([*known, *found[centres:-centres]], parameters)

    return derived


def _quantile(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
    low, high = parameters["bounds"]
    search = QuantileSearch(low, high, parameters["level"])
    for point, share in zip(parameters["points"], _numbers(parts, parameters), strict=True):
        search.note(point, share)
    return search.number


@dataclass
class QuantileSearch:
    """The quantile is above `low` (or at the lower bound) and at most `high`; undecided points lie between."""

    low: float
    high: float
    level: float
    undecided: list[float] = field(default_factory=list)
    shares: dict[float, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """At the upper bound the share is 1."""
        self.shares = {self.high: 1.0}
        self.bottom = self.low

    def next(self, step: int) -> float | None:
        """The middle of the gap to halve: points until one is undecided, and then the two ends in turn."""
        if not self.undecided:
            a, b = self.low, self.high
        elif step % 2:
            a, b = self.low, min(self.undecided)
        else:
            a, b = max(self.undecided), self.high
        point = a / 2 + b / 2  # a + b may be infinite
        return point if a < point < b else None

    def note(self, point: float, share: Number) -> None:
        """Narrow the search by what one answer proves."""
        self.shares[point] = share.value
        if share.high < self.level:
            self.low = max(self.low, point)
        elif share.low >= self.level:
            self.high = min(self.high, point)
        else:
            self.undecided.append(point)
        self.undecided = [each for each in self.undecided if self.low < each < self.high]

    @property
    def number(self) -> Number:
        """Interpolate linearly between the points whose released shares enclose the level."""
        level = self.level
        below = max((point for point, share in self.shares.items() if share < level), default=self.bottom)
        above = min((point for point, share in self.shares.items() if share >= level and point > below), default=None)
        value = below
        if above is not None:
            start, end = self.shares.get(below, 0.0), self.shares[above]
            line = below + (above - below) * (level - start) / (end - start) if end > start else below / 2 + above / 2
            value = line
        return Number(min(max(value, self.low), self.high), self.low, self.high)


def _share(part: Number, rest: Number, weight: float = 1.0) -> Number:
    """a/(a + w b), which rises with a and falls with b; 0/0 may be anything (section 12)."""

    def ratio(a: float, b: float, otherwise: float) -> float:
        return a / (a + weight * b) if a + weight * b > 0 else otherwise

    low, high = ratio(part.low, rest.high, 0.0), ratio(part.high, rest.low, 1.0)
    value = ratio(part.value, rest.value, (low + high) / 2)
    return Number(value, max(low - SQUARES, 0.0), min(high + SQUARES, 1.0))


def _ratio(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
    part, rest = _numbers(parts, parameters)
    return _share(part, rest, float(parameters.get("weight", 1.0)))


def _calibration(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
    """The sum over bins of the differences between y (1 - p) and (1 - y) p."""
    found = _numbers(parts, parameters)
    value = low = high = 0.0
    for over, under in zip(found[::2], found[1::2], strict=True):
        ends = over.low - under.high, over.high - under.low
        value += abs(over.value - under.value)
        low += 0.0 if ends[0] <= 0 <= ends[1] else min(map(abs, ends))
        high += max(map(abs, ends))
    return Number(value, low - OUTWARD, high + OUTWARD)


def _area(parts: Sequence[Reading], parameters: Parameters, plan: Plan) -> Number:
    """The area under the ROC curve: the value by trapezoids, the interval by staircases.

    Rates fall from threshold to threshold, so a bound on one bounds its neighbours: hence running extremes.
    """
    found = _numbers(parts, parameters)
    pairs = [_share(part, rest) for part, rest in zip(found[::2], found[1::2], strict=True)]
    true, false = pairs[::2], pairs[1::2]

    def ends(rates: Sequence[Number]) -> tuple[list[float], list[float]]:
        low = list(itertools.accumulate((rate.low for rate in reversed(rates)), max))[::-1]
        high = list(itertools.accumulate((rate.high for rate in rates), min))
        return [1.0, *low, 0.0], [1.0, *high, 0.0]

    (r_low, r_high), (f_low, f_high) = ends(true), ends(false)
    low = sum((f - g) * r for (f, g), r in zip(itertools.pairwise(f_high), r_low[1:], strict=True))
    high = sum((f - g) * r for (f, g), r in zip(itertools.pairwise(f_low), r_high[:-1], strict=True))
    rates = [1.0, *(rate.value for rate in true), 0.0]
    steps = itertools.pairwise([1.0, *(rate.value for rate in false), 0.0])
    value = sum((f - g) * (r + s) / 2 for (f, g), (r, s) in zip(steps, itertools.pairwise(rates), strict=True))
    return Number(value, low - OUTWARD, high + OUTWARD)


def noise_of(
    rule: str | None, parts: Sequence[Reading], scale: float, plan: Plan, parameters: Parameters | None = None
) -> float:
    """Roughly how far noise moves a number, 95 times out of 100, on its own scale; 0 where no rule says.

    Noises are independent. A mean within a group is a/(a + b); a difference is a - b, or one answer about (d + 1)/2; a
    bin of a histogram is one of its parts.
    """
    parameters = parameters or {}
    if rule == "bin" and "bin" in parameters:
        step, place = _step(parameters), int(parameters["bin"])
        bins = parts[step * place : step * (place + 1)]
        return noise_of("within" if step == 2 else None, bins, scale, plan)
    if rule == "bin of group" and "bin" in parameters:
        one, outside = parts[int(parameters["bin"])], parts[-1]
        of_one, of_outside = (noise_of(None, [part], 1.0, plan) for part in (one, outside))
        whole = max(1 - outside.value, 1e-9)
        return min(math.hypot(of_one, of_outside * one.value / whole) / whole, _IN_95 / 2) * scale
    mechanisms = [(plan.of(part.entry), part.entry.outcome) for part in parts]
    noises = [m.noise_in(found.released) for m, found in mechanisms if found is not None]
    match rule, noises:
        case None | "entry", [own]:
            found = own
        case "within", [a, b]:
            whole = (parts[0].value + parts[1].value) ** 2
            found = min(math.hypot(parts[1].value * a, parts[0].value * b) / whole, 0.5) if whole else 0.5
        case "group", [a, b]:
            found = _group_noise(parts, plan, a, b)
        case "difference", [only]:
            found = 2 * only
        case "difference", [a, b]:
            found = 2 * b if plan.mechanism.pairs == "squares" else math.hypot(a, b)
        case _:
            found = 0.0
    return _IN_95 * found * scale


def share_of(rule: str | None, parts: Sequence[Reading], plan: Plan) -> float | None:
    """Roughly the share of rows a mean is over; None if the rule is for something else, or the share is unknown."""
    match rule, parts:
        case None, [only]:
            released = None if only.entry.outcome is None else only.entry.outcome.released
            if not isinstance(released, Mapping):
                return 1.0
            if only.entry.span is not None and "rows" in released:  # of a round: its rows in the group, of all its rows
                found = released["rows"] / max(only.entry.span[1] - only.entry.span[0], 1)
            else:
                found = float(released.get("share", 1.0))
        case "within", [first, second]:
            found = first.value + second.value
        case "group", [first, second]:
            corner = _corner(_aims(parts, plan), first.value, second.value)
            found = 0.0 if corner is None else corner[1]
        case _:
            return None
    return min(found, 1.0) if found > 0 else None


def _group_noise(parts: Sequence[Reading], plan: Plan, a: float, b: float) -> float:
    """How far the noise of both answers together moves their ratio; one half if the ratio says nothing."""
    aims, (v, w) = _aims(parts, plan), (part.value for part in parts)
    corners = [_corner(aims, v, w), _corner(aims, v + a, w), _corner(aims, v, w + b)]
    ratios = [inside / share for inside, share in filter(None, corners) if share > 0]
    if len(ratios) < len(corners):
        return 0.5
    return min(math.hypot(ratios[1] - ratios[0], ratios[2] - ratios[0]), 0.5)


_SPREADS: Mapping[str, Spread] = {
    "variance": variance,
    "standard deviation": deviation,
    "covariance": covariance,
    "correlation": correlation,
    "correlation by sums": correlation_by_sums,
}
RULES: Mapping[str, Rule] = {
    "within": within,
    "group": _group,
    "difference": _difference,
    "bin": _bin,
    "bin of group": _bin_of_group,
    "quantile": _quantile,
    **{name: _spread(rule) for name, rule in _SPREADS.items()},
    **{name + _AGAIN: _spread_again(rule, _CENTRES[name]) for name, rule in _SPREADS.items()},
    "ratio": _ratio,
    "calibration error": _calibration,
    "area": _area,
    "entry": _as_it_is,
    "improvement": _as_it_is,
}
