"""Two-point betting: limits on a mean, from count, sum and sum of squares, that follow the spread (section 13).

A bet of lam on "the mean is above m" multiplies its stake by 1 + lam (x - m) on every row. If the mean is m or less
(or, for unequal rows, their average is), the stake is not expected to grow, so it reaches 1/alpha with
probability at most alpha (Markov). With f(x) = ln(1 + lam (x - m)),

    sum_i f(x_i) >= (n - N) f(0) + N f(xi),     N = S1^2/S2,   xi = S2/S1

because f''' > 0: the parabola through f(0) that touches f at xi lies below f, and the law on 0 and xi has the
moments S1 and S2. So three numbers are enough, and no better bound can be obtained from them.

Six bets share the stake. How much each stakes on a row depends on m, n and alpha alone, fixed before the rows:

    v = m (1-m) 4^-g,   a = sqrt(2 (ln(1/alpha) + 1)/(n v)),   lam = min(.9/m, a/(1 + a min(2m, 1)/3))

For these, 1 + lam(m) (x - m) falls as m rises, for any x in [0, 1] (section 13), so the stake does too and the
lower limit is where it crosses 1/alpha: one crossing, found by bracketing, and the end outside is returned.
The upper limit is that of 1 - x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from afresh.errors import InvalidArgument

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


# Which spreads the six bets are for, v = m (1-m) 4^-g, and their shares of the stake: numbers whose variance is a
# fourth to a thirtieth of the largest possible are the common case, differences of models among them.
SPREADS = (0.2, 1.0, 1.75, 2.5, 3.5, 5.0)
STAKES = (0.1, 0.22, 0.3, 0.2, 0.12, 0.06)
HINTED = 0.7
"""The share of the stake on a spread that is known from elsewhere; the six bets share the rest."""

_LOG_HINTED = math.log(HINTED)
_SLACK = 1e-6  # nats; covers the rounding of sums (1e-12 of them) and of logarithms for up to 1e9 rows
_SUMS = 1e-12  # relative error that sums may have
# The bracket's width, as a share of the distance from the mean, at which the search stops. Two processors that stop at
# different places then differ by far less than a receipt's verification tolerates.
_NARROW = 1e-11
_LEAST = 1e-9  # a lower limit below this share of the mean is reported as 0
_NOTHING = 1e-12  # a mean that small has a lower limit of 0
_STEPS = 200


def betting_lower(
    rows: ArrayLike, total: ArrayLike, squares: ArrayLike, nats: ArrayLike, hint: ArrayLike | None = None
) -> Floats:
    """A lower limit of the mean of values in [0, 1], wrong with probability at most e^-nats; never above the exact one.

    `hint` is a variance known before the rows are looked at, for example from other rows. It changes widths, not
    validity.
    """
    n, s1, s2, level = _checked(rows, total, squares, nats)
    s1, s2 = s1 * (1 - _SUMS), s2 * (1 + _SUMS)
    s2 = np.clip(s2, s1 * s1 / n, np.maximum(s1, s1 * s1 / n))
    some = s1 > _NOTHING * n
    far = np.where(some, s2 / np.where(some, s1, 1.0), 1.0)
    heavy = np.where(some, np.minimum(s1 / np.where(some, far, 1.0), n), 0.0)
    limit = _lower_limit(
        n, np.where(some, s1 / n, 0.0), level, _hints(hint, n), (n - heavy, heavy), (np.zeros_like(far), far)
    )
    return np.where(some, limit, 0.0)


def betting_upper(
    rows: ArrayLike, total: ArrayLike, squares: ArrayLike, nats: ArrayLike, hint: ArrayLike | None = None
) -> Floats:
    """The upper limit: 1 minus the lower limit of 1 - x."""
    n, s1, s2, level = _checked(rows, total, squares, nats)
    # The sums' errors do not shrink with these differences, so they are allowed for first, not afterwards.
    mirrored = np.clip(n - s1 - _SUMS * s1, 0.0, n)
    squared = np.clip(n - 2 * s1 + s2 + 3 * _SUMS * s1, mirrored**2 / n, np.maximum(mirrored, mirrored**2 / n))
    return np.minimum(1 - betting_lower(n, mirrored, squared, level, hint) + 1e-16, 1.0)


def betting_interval(
    rows: ArrayLike, total: ArrayLike, squares: ArrayLike, alpha: ArrayLike, hint: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Both limits, each at half of alpha."""
    level = side_nats(alpha)
    return betting_lower(rows, total, squares, level, hint), betting_upper(rows, total, squares, level, hint)


def three_valued_lower(
    rows: ArrayLike, better: ArrayLike, worse: ArrayLike, nats: ArrayLike, hint: ArrayLike | None = None
) -> Floats:
    """A lower limit of the mean of values -1 (`worse` rows), 1 (`better` rows) and 0: the bets are settled exactly.

    Differences of 0/1 losses are of this kind. `hint` is a share of rows that differ, known before the rows are looked
    at.
    """
    counts = (np.asarray(x, dtype=np.float64) for x in (rows, better, worse, nats))
    n, plus, minus, level = np.broadcast_arrays(*counts)
    if not ((plus >= 0) & (minus >= 0) & (plus + minus <= n)).all():
        raise InvalidArgument("better and worse count disjoint rows, must be >= 0 and together at most all rows.")
    _check_nats(level)
    middle = n - plus - minus
    values = tuple(np.full_like(n, x) for x in (0.0, 0.5, 1.0))
    scaled = None if hint is None else np.asarray(hint, dtype=np.float64) / 4
    limit = _lower_limit(n, (plus + middle / 2) / n, level, _hints(scaled, n), (minus, middle, plus), values)
    return np.where(minus < n, 2 * limit - 1, -1.0)


def three_valued_interval(
    rows: ArrayLike, better: ArrayLike, worse: ArrayLike, alpha: ArrayLike, hint: ArrayLike | None = None
) -> tuple[Floats, Floats]:
    """Both limits of the mean difference, each at half of alpha."""
    level = side_nats(alpha)
    return three_valued_lower(rows, better, worse, level, hint), -three_valued_lower(rows, worse, better, level, hint)


def rescaled(
    rows: ArrayLike, total: ArrayLike, squares: ArrayLike, low: float, high: float
) -> tuple[Floats, Floats, Floats]:
    """Count, sum and sum of squares of (x - low)/(high - low), given those of x in [low, high]."""
    if not low < high:
        raise InvalidArgument(f"low == {low}, high == {high}: needs low < high.")
    n, s1, s2 = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (rows, total, squares)))
    width = high - low
    first = np.clip((s1 - n * low) / width, 0.0, n)
    second = np.clip((s2 - 2 * low * s1 + n * low * low) / width**2, first**2 / n, first)
    return n.copy(), first, second


def log_stake(
    m: Floats, n: Floats, nats: Floats, hint: Floats, counts: Sequence[Floats], values: Sequence[Floats]
) -> Floats:
    """ln of what the six bets (and the one on the hint) make of a stake of 1 if the mean were m. Falls as m rises."""
    spreads, stakes = np.array(SPREADS), np.array(STAKES)
    variance = (m * (1 - m))[..., None] * 4.0**-spreads
    share = np.broadcast_to(stakes, variance.shape)
    if not np.isnan(hint).all():
        known = ~np.isnan(hint)[..., None]
        own = np.minimum(np.where(known[..., 0], hint, 0.25), m * (1 - m))[..., None]
        variance = np.concatenate([variance, own], axis=-1)
        share = np.concatenate([share * np.where(known, 1 - HINTED, 1.0), np.where(known, HINTED, 0.0)], axis=-1)
    lam = bets(m[..., None], n[..., None], nats[..., None], variance)
    grown = np.zeros_like(lam)
    for count, value in zip(counts, values, strict=True):
        grown += count[..., None] * np.log1p(lam * (value - m)[..., None])
    most = grown.max(axis=-1)
    total: Floats = most + np.log((share * np.exp(grown - most[..., None])).sum(axis=-1))
    return total


def bets(m: Floats, n: Floats, nats: Floats, variance: Floats) -> Floats:
    """lam for a mean of m, n rows, ln(1/alpha) nats and a variance: below 1/m, and a function of nothing else."""
    with np.errstate(divide="ignore", over="ignore"):
        a = np.sqrt(2 * (nats + 1) / (n * variance))
        damped = 1 / (1 / a + np.minimum(2 * m, 1.0) / 3)
        lam: Floats = np.minimum(0.9 / m, damped)
    return lam


def _lower_limit(
    n: Floats, mean: Floats, nats: Floats, hint: Floats, counts: Sequence[Floats], values: Sequence[Floats]
) -> Floats:
    """The largest m found below the crossing of nats; 0 if there is none above `_LEAST` of the mean."""
    shape = np.broadcast_shapes(n.shape, mean.shape, nats.shape, hint.shape)
    flat = [np.broadcast_to(x, shape).ravel() for x in (n, mean, nats, hint)]
    n, mean, nats, hint = flat
    counts = [np.broadcast_to(x, shape).ravel() for x in counts]
    values = [np.broadcast_to(x, shape).ravel() for x in values]
    if mean.size == 1:  # numpy takes ten times as long on small arrays
        points = [(float(count[0]), float(value[0])) for count, value in zip(counts, values, strict=True)]
        return np.full(shape, _limit_of_one(float(n[0]), float(mean[0]), float(nats[0]), float(hint[0]), points))

    def above(m: Floats, at: NDArray[np.intp]) -> Floats:
        stake = log_stake(m, n[at], nats[at], hint[at], [x[at] for x in counts], [x[at] for x in values])
        return stake - nats[at] - _SLACK

    limit = np.zeros_like(mean)
    at = np.flatnonzero(mean > 0)
    # Start twice as far out as the crossing usually is, or at the bottom where that is not far enough.
    high = np.minimum(mean[at], 1 - 1e-15)  # at m = 1 no bet has a variance to use
    second = sum(count[at] * value[at] ** 2 for count, value in zip(counts, values, strict=True)) / n[at]
    spread = np.maximum(second - mean[at] ** 2, 0.0)
    reach = np.sqrt(2 * (nats[at] + 2) * spread / n[at]) + (nats[at] + 2) / n[at]
    low = np.maximum(mean[at] - 2 * reach, mean[at] * _LEAST)
    at_low = above(low, at)
    short = at_low < 0
    high = np.where(short, low, high)
    low = np.where(short, mean[at] * _LEAST, low)
    at_low[short] = above(low[short], at[short])
    crosses = at_low >= 0
    at, low, high, at_low = at[crosses], low[crosses], high[crosses], at_low[crosses]
    at_high = np.minimum(above(high, at), -1e-300)  # at the mean no bet has won
    last = np.zeros_like(low)
    for step in range(_STEPS):
        done = high - low <= _NARROW * (mean[at] - low) + 1e-16
        if done.any():
            limit[at[done]] = low[done]
            keep = ~done
            at, low, high = at[keep], low[keep], high[keep]
            at_low, at_high, last = at_low[keep], at_high[keep], last[keep]
        if at.size == 0:
            break
        # False position, halved where one end stays (Illinois); every third step halves the bracket outright.
        share = at_low / (at_low - at_high) if step % 3 < 2 else np.full_like(low, 0.5)
        m = low + (high - low) * np.clip(share, 1e-8, 1 - 1e-8)
        value = above(m, at)
        up = value >= 0
        at_high = np.where(up, np.where(last > 0, at_high / 2, at_high), value)
        at_low = np.where(up, value, np.where(last < 0, at_low / 2, at_low))
        low, high = np.where(up, m, low), np.where(up, high, m)
        last = np.where(up, 1.0, -1.0)
    limit[at] = low  # what is left is on the safe side in any case
    return limit.reshape(shape)


def _limit_of_one(n: float, mean: float, nats: float, hint: float, points: Sequence[tuple[float, float]]) -> float:
    """The same search for one limit."""
    if mean <= 0:
        return 0.0
    known, per_nat = not math.isnan(hint), n / (2 * (nats + 1))
    staked = 1 - HINTED if known else 1.0
    # As in `bets`: 1/a is the root of n v/(2 (nats + 1)), and v is a part of m (1-m).
    spreads = [
        (math.sqrt(per_nat * 4.0**-g), math.log(staked * share)) for g, share in zip(SPREADS, STAKES, strict=True)
    ]

    def above(m: float) -> float:
        most, damping, largest = m * (1 - m), min(2 * m, 1.0) / 3, 0.9 / m
        root = math.sqrt(most)
        inverses = [(part * root, log_share) for part, log_share in spreads]
        if known:
            inverses.append((math.sqrt(per_nat * min(hint, most)), _LOG_HINTED))
        grown = []
        for inverse, total in inverses:
            at_zero = inverse + damping
            lam = min(largest, 1 / at_zero) if at_zero > 0 else largest
            for count, x in points:
                total += count * math.log1p(lam * (x - m))
            grown.append(total)
        top = max(grown)
        return top + math.log(sum(math.exp(each - top) for each in grown)) - nats - _SLACK

    second = math.fsum(count * x * x for count, x in points) / n
    reach = math.sqrt(2 * (nats + 2) * max(second - mean * mean, 0.0) / n) + (nats + 2) / n
    low, high = max(mean - 2 * reach, mean * _LEAST), min(mean, 1 - 1e-15)
    at_low = above(low)
    if at_low < 0:
        low, high = mean * _LEAST, low
        at_low = above(low)
        if at_low < 0:
            return 0.0
    at_high, last, wide = min(above(high), -1e-300), 0, high - low
    for step in range(_STEPS):
        width, narrow = high - low, _NARROW * (mean - low) + 1e-16
        if width <= narrow:
            break
        share = at_low / (at_low - at_high)
        if step % 3 == 2:  # Illinois' rule, which halves the bracket outright where it has not done so already
            share, wide = (0.5 if width > wide / 2 else share), width
        # Not nearer to an end than what is left, to close in on the crossing from both sides.
        least = min(0.4 * narrow / width, 0.5)
        m = low + width * min(max(share, least), 1 - least)
        value = above(m)
        if value >= 0:
            low, at_low, at_high, last = m, value, at_high / 2 if last > 0 else at_high, 1
        else:
            high, at_high, at_low, last = m, value, at_low / 2 if last < 0 else at_low, -1
    return low


def _hints(hint: ArrayLike | None, like: Floats) -> Floats:
    """A variance for each; nan where there is none."""
    if hint is None:
        return np.full(like.shape, np.nan)
    found: Floats = np.asarray(hint, dtype=np.float64)
    if not (np.isnan(found) | ((found >= 0) & (found <= 0.25))).all():
        raise InvalidArgument("a hint is a variance of values in [0, 1], must be between 0 and 1/4.")
    return np.broadcast_to(np.maximum(found, 1e-12), np.broadcast_shapes(found.shape, like.shape))


def side_nats(alpha: ArrayLike) -> Floats:
    """ln(2/alpha): the level of each side of an interval at alpha."""
    if isinstance(alpha, float) and 0 < alpha < 1:
        return -math.log(alpha / 2)
    a = np.asarray(alpha, dtype=np.float64)
    if not ((a > 0) & (a < 1)).all():
        raise InvalidArgument(f"alpha contains {a[~((a > 0) & (a < 1))].flat[0]}, must be in (0, 1).")
    level: Floats = -np.log(a / 2)
    return level


def _checked(
    rows: ArrayLike, total: ArrayLike, squares: ArrayLike, nats: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """Arrays of one shape; sums may leave their range only by rounding, and are then cut to it."""
    n, s1, s2, level = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (rows, total, squares, nats)))
    if not (n >= 1).all():
        raise InvalidArgument(f"rows contains {n[~(n >= 1)][0]}, must be >= 1.")
    _check_nats(level)
    room = 1e-6 * n  # far beyond rounding, so no refusal can depend on values that are in range
    if not ((s1 >= -room) & (s1 <= n + room) & (s2 >= s1 * s1 / n - room) & (s2 <= s1 + room)).all():
        raise InvalidArgument("these are not the sum and the sum of squares of values in [0, 1].")
    s1 = np.clip(s1, 0.0, n)
    return n, s1, np.clip(s2, s1 * s1 / n, np.maximum(s1, s1 * s1 / n)), level


def _check_nats(nats: Floats) -> None:
    if not (nats > 0).all():
        raise InvalidArgument(f"nats contains {nats[~(nats > 0)].flat[0]}, must be > 0.")
