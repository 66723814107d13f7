"""Small numeric searches for planning, over a few plain numbers: importing scipy.optimize would take longer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

_FLAT = 1e-7  # a simplex whose values differ by no more has converged
_GOLDEN = (3 - math.sqrt(5)) / 2


def minimize_simplex(
    f: Callable[[Sequence[float]], float],
    start: Sequence[float],
    *,
    tolerance: float,
    evaluations: int,
    bounds: Sequence[tuple[float, float]] | None = None,
) -> tuple[list[float], float]:
    """The point and value where Nelder and Mead's simplex ends (1965); `tolerance` is on the coordinates."""
    room = bounds or [(-math.inf, math.inf)] * len(start)
    left = evaluations

    def price(point: Sequence[float]) -> tuple[float, list[float]]:
        nonlocal left
        left -= 1
        inside = [min(max(x, low), high) for x, (low, high) in zip(point, room, strict=True)]
        return f(inside), inside

    corners = [list(start)]
    for place, x in enumerate(start):
        high = room[place][1]
        moved = 1.05 * x if x else 0.00025
        corners.append([*start[:place], moved if moved <= high else 2 * high - moved, *start[place + 1 :]])
    simplex = sorted(map(price, corners), key=_value)
    while left > 0:
        best, (worst, last) = simplex[0], simplex[-1]
        near = max(abs(x - y) for _, point in simplex[1:] for x, y in zip(point, best[1], strict=True)) <= tolerance
        if near and worst - best[0] <= _FLAT:
            break
        others = [point for _, point in simplex[:-1]]
        centre = [math.fsum(each) / len(others) for each in zip(*others, strict=True)]
        made = price(_along(centre, last, -1.0))
        if made[0] < best[0]:
            further = price(_along(centre, last, -2.0))
            made = min(made, further, key=_value)
        elif made[0] >= simplex[-2][0]:
            outside = made[0] < worst
            nearer = price(_along(centre, last, -0.5 if outside else 0.5))
            if nearer[0] > made[0] if outside else nearer[0] >= worst:
                simplex[1:] = [price(_along(best[1], point, 0.5)) for _, point in simplex[1:]]
                simplex.sort(key=_value)
                continue
            made = nearer
        simplex[-1] = made
        simplex.sort(key=_value)
    value, point = simplex[0]
    return point, value


def _value(corner: tuple[float, list[float]]) -> float:
    return corner[0]


def _along(centre: Sequence[float], point: Sequence[float], share: float) -> list[float]:
    """The point that lies so many times the way from the centre to the given point."""
    return [c + share * (x - c) for c, x in zip(centre, point, strict=True)]


def root_between(f: Callable[[float], float], low: float, high: float, *, tolerance: float) -> float:
    """Where a decreasing function crosses 0, within the tolerance, or the nearer end; by Illinois' rule.

    False position, in which an end that has stayed twice counts for half (Dowell and Jarratt, 1971).
    """
    at_low, at_high = f(low), f(high)
    if at_low <= 0 or at_high >= 0:
        return low if at_low <= 0 else high
    side = 0
    while high - low > 2 * tolerance:
        point = (low * at_high - high * at_low) / (at_high - at_low)
        point = min(max(point, low + tolerance), high - tolerance)  # so that a root close to an end is enclosed
        found = f(point)
        if found > 0:
            at_high /= 2 if side > 0 else 1
            low, at_low, side = point, found, 1
        else:
            at_low /= 2 if side < 0 else 1
            high, at_high, side = point, found, -1
    return (low + high) / 2


def minimize_between(f: Callable[[float], float], low: float, high: float, *, tolerance: float) -> float:
    """The minimum of a function with one valley, by Brent's method (1973): golden sections, and parabolas if they fit.

    Never closer to an end than the tolerance.
    """
    best = second = third = low + _GOLDEN * (high - low)
    at_best = at_second = at_third = f(best)
    step = before = 0.0
    for _ in range(500):
        middle = (low + high) / 2
        least = 1.5e-8 * abs(best) + tolerance / 3
        if abs(best - middle) <= 2 * least - (high - low) / 2:
            break
        parabola = None
        if abs(before) > least:
            r, q = (best - second) * (at_best - at_third), (best - third) * (at_best - at_second)
            p, q = (best - third) * q - (best - second) * r, 2 * (q - r)
            p, q = (-p if q > 0 else p), abs(q)
            # Inside the interval, and by less than half the step before the last.
            if abs(p) < abs(q * before / 2) and q * (low - best) < p < q * (high - best):
                parabola = p / q
        if parabola is None:
            before = (low if best >= middle else high) - best
            step = _GOLDEN * before
        else:
            before, step = step, parabola
            if min(best + step - low, high - best - step) < 2 * least:
                step = math.copysign(least, middle - best)
        point = best + math.copysign(max(abs(step), least), step)
        found = f(point)
        if found <= at_best:
            low, high = (best, high) if point >= best else (low, best)
            second, at_second, third, at_third = best, at_best, second, at_second
            best, at_best = point, found
        else:
            low, high = (point, high) if point < best else (low, point)
            if found <= at_second or second == best:
                second, at_second, third, at_third = point, found, second, at_second
            elif found <= at_third or third in (best, second):
                third, at_third = point, found
    return best
