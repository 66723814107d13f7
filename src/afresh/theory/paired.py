"""Two 0/1 outcomes on the same rows: exact verdicts and intervals of their difference (section 13).

Row i has d_i = 1 where B alone is right (a win), -1 where A alone is (a loss) and 0 elsewhere; theta = E d,
pi = Pr(d != 0), T = wins - losses. Each value theta0 has one test, fixed beforehand, at the full alpha:

- for -c < theta0 <= 0 the sign test; c = ln(1/alpha)/n, or -margin if a margin in (-c, 0) was fixed beforehand;
- for every other theta0 Berger and Boos's p-value (1994): gamma, and the largest Pr(T >= observed) over pi up to its
  upper limit at gamma = alpha/20. With theta0 fixed and pi <= 1/2 that probability rises with pi from
  t >= (n-1) theta0 + 2 on, so the largest is at the limit: T is then a sum of independent 0/1 variables, whose mode is
  within 1 of its mean (Darroch 1964). Nearer to the mean the p-value is 1. Beyond one half, cells cover pi.

The lower limit is the infimum of what is not rejected, so limit and verdict agree, and the verdict is the sign test's.
(Only if -c itself is not rejected does the sign test not decide: no such counts are known from 15 to 5,000 rows.)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from afresh.errors import InvalidArgument
from afresh.theory.binomial import clopper_pearson_upper, sign_test, unequal_lower

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np

GAMMA = 1 / 20
"""The share of alpha for the limit of pi."""

_ALPHA = 1 - 1e-6  # the incomplete beta function is good to 2e-7 (theory/binomial.py)
_REST = 14.0  # nats below alpha from which on the number of rows that differ is bounded, not summed
_CELL = 0.05  # of sqrt(pi/n): how finely pi is covered beyond one half; at 0.1 the sign test would not always decide
_NARROW = 1e-9
_STEPS = 100
_FAR = 300.0


def better(rows: int, wins: int, losses: int, nats: float, margin: float = 0.0) -> bool:
    """Whether theta is certainly above a margin from -1 to 1 that was fixed beforehand; wrong at most e^-nats often.

    For pass and fail alone, where no limit is shown beside it: for a margin of 0 the sign test decides by itself.
    """
    _check(rows, wins, losses, nats, margin)
    if margin == 0:
        return bool(sign_test(wins, losses) >= nats)
    return p_value(rows, wins, losses, margin, nats) <= math.exp(-nats)


def fewest_wins(rows: int, differ: int, nats: float, margin: float = 0.0) -> int | None:
    """The fewest wins among `differ` rows that are certainly above the margin; None if not even all of them are."""
    if not better(rows, differ, 0, nats, margin):
        return None
    low, high = -1, differ  # accepted at high, and not at low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if better(rows, middle, differ - middle, nats, margin) else (middle, high)
    return high


def lower(rows: int, wins: int, losses: int, nats: float, margin: float = 0.0) -> float:
    """A number that theta is above, except with probability e^-nats; -1 if nothing is known."""
    _check(rows, wins, losses, nats, margin)
    signs_from = max(-nats / rows, margin) if margin < 0 else -nats / rows
    limit = _limit(rows, wins, losses, nats)
    if limit < signs_from:
        return limit
    return max(0.0, limit) if sign_test(wins, losses) >= nats else signs_from


def interval(rows: int, wins: int, losses: int, alpha: float) -> tuple[float, float]:
    """Both limits, each at half of alpha."""
    nats = -math.log(alpha / 2)
    return lower(rows, wins, losses, nats), -lower(rows, losses, wins, nats)


def lower_where_public(rows: int, wins: int, losses: int, nats: float) -> float:
    """The same where it is public which rows differ, and one of the two is right on each: two classes, all labelled.

    Rows need not be alike: on those that differ a win is a coin of its own, and by Hoeffding (1956) the sign test and
    Clopper and Pearson's limits hold for the coins' average q. theta = (differ/rows) (2 q - 1), and no more is unknown.
    """
    _check(rows, wins, losses, nats, 0.0)
    differ = wins + losses
    if differ == 0:
        return -math.ulp(0.0)  # theta is 0, so it is above no more than that
    return differ / rows * (2 * float(unequal_lower(wins, differ, math.exp(-nats))) - 1)


def p_value(rows: int, wins: int, losses: int, theta: float, nats: float) -> float:
    """Berger and Boos's p-value of "the difference is at most theta", for a level of e^-nats fixed beforehand."""
    if nats > _FAR:  # from there on floats run out
        return 1.0
    t, gamma = wins - losses, GAMMA * math.exp(-nats)
    most = max(float(clopper_pearson_upper(wins + losses, rows, gamma)), abs(theta))
    tail = _tail(rows, t, *_split(min(most, max(0.5, abs(theta))), theta), nats)
    if most > 0.5:
        tail = max(tail, _beyond(rows, t, theta, most, nats))
    # Decided last: the time that it takes should say little about the rows.
    return 1.0 if t < (rows - 1) * theta + 2 else min(gamma + tail / _ALPHA, 1.0)


def _limit(rows: int, wins: int, losses: int, nats: float) -> float:
    """Where the p-value crosses e^-nats, from below; it rises with theta."""
    mean = (wins - losses) / rows
    differ = min((wins + losses + nats) / rows, 1.0)
    spread = math.sqrt(max(differ - mean * mean, 1 / rows) / rows)

    def above(theta: float) -> float:
        return math.log(p_value(rows, wins, losses, theta, nats)) + nats

    high, step = mean, 1.2 * math.sqrt(2 * nats) * spread
    low = max(mean - step, -1.0)
    while (at_low := above(low)) > 0:
        if low <= -1.0:
            return -1.0
        high, low = low, max(low - step / 4, -1.0)
    at_high, last = max(above(high), 1e-300), 0
    for turn in range(_STEPS):
        if high - low <= _NARROW * max(mean - low, 1e-6):
            break
        share = at_low / (at_low - at_high) if turn % 3 < 2 else 0.5
        middle = low + (high - low) * min(max(share, 1e-6), 1 - 1e-6)
        value = above(middle)
        if value <= 0:
            low, at_low, at_high, last = middle, value, at_high / 2 if last < 0 else at_high, -1
        else:
            high, at_high, at_low, last = middle, value, at_low / 2 if last > 0 else at_low, 1
    return low


def _split(pi: float, theta: float) -> tuple[float, float]:
    """The probabilities of a win and a loss."""
    return (pi + theta) / 2, (pi - theta) / 2


def _beyond(rows: int, t: int, theta: float, most: float, nats: float) -> float:
    """The largest tail over pi from one half to `most`, by cells; only cells that may hold it are made small.

    Within [a, b] the tail is at most that with as many wins as b allows and as few losses as a does.
    """
    start = max(0.5, abs(theta))
    best, cells = 0.0, [(start, most)]

    def bound(a: float, b: float) -> float:
        minus = max((a - theta) / 2, 0.0)
        return _tail(rows, t, min((b + theta) / 2, 1 - minus), minus, nats)

    while cells:
        a, b = cells.pop()
        tail = bound(a, b)
        if tail <= best:
            continue
        if b - a <= _CELL * math.sqrt(a / rows):
            best = tail
        else:
            middle = (a + b) / 2
            cells += [(a, middle), (middle, b)]  # the upper one is looked at first: there the tail is larger
    return best


def _tail(rows: int, t: int, plus: float, minus: float, nats: float) -> float:
    """Pr(wins - losses >= t), from above: a sum over how many rows differ, of exact binomial tails."""
    from scipy.special import betainc, gammaln

    pi = min(plus + minus, 1.0)
    if t <= -rows or pi <= 0:
        return 1.0 if t <= (0 if pi <= 0 else -rows) else 0.0
    rest, variance = nats + _REST, rows * pi * (1 - pi)
    reach = rest / 3 + math.sqrt(rest * rest / 9 + 2 * rest * variance)  # Bernstein: e^-rest on each side
    first, last = max(math.floor(rows * pi - reach), 0), min(math.ceil(rows * pi + reach), rows)
    first = max(first, t)  # fewer rows cannot give so many more wins
    if first > last:
        return 2 * math.exp(-rest)
    m = np.arange(first, last + 1, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = gammaln(rows + 1) - gammaln(m + 1) - gammaln(rows - m + 1) + m * math.log(pi)
        logs = logs + ((rows - m) * math.log1p(-pi) if pi < 1 else np.where(m == rows, 0.0, -np.inf))
    wins = np.ceil((m + t) / 2)
    inside = np.clip(wins, 1, m)
    share = min(plus / pi, 1.0)
    enough = np.where(wins <= 0, 1.0, np.where(wins > m, 0.0, betainc(inside, m - inside + 1, share)))
    total = float(np.exp(logs) @ enough)
    return min(total + 2 * math.exp(-rest), 1.0)


def _check(rows: int, wins: int, losses: int, nats: float, margin: float) -> None:
    if not (wins >= 0 and losses >= 0 and wins + losses <= rows and rows >= 1):
        raise InvalidArgument(f"{wins} wins and {losses} losses of {rows} rows: counts, together at most the rows.")
    if not (nats > 0 and -1 <= margin <= 1):
        raise InvalidArgument(f"nats == {nats}, margin == {margin}: needs nats > 0 and a margin from -1 to 1.")
