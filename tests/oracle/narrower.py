"""Independent, slow implementation of sections 13 to 15: exact tails, bets settled row by row, trees by enumeration.

Written from the text of docs/guarantees.md only. Nothing here imports afresh.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

import mpmath as mp

DIGITS = 40
SPREADS = ("0.2", "1", "1.75", "2.5", "3.5", "5")
STAKES = ("0.1", "0.22", "0.3", "0.2", "0.12", "0.06")


def binomial_tail_above(hits: int, rows: int, p: float) -> mp.mpf:
    """Pr(Bin(rows, p) >= hits), by the sum for few rows and by Gauss's continued fraction for many."""
    with mp.workdps(DIGITS):
        q = mp.mpf(p)
        if hits <= 0:
            return mp.mpf(1)
        if rows <= 2000:
            terms = (mp.binomial(rows, h) * q**h * (1 - q) ** (rows - h) for h in range(hits, rows + 1))
            return mp.fsum(terms)
        return _incomplete_beta(mp.mpf(hits), mp.mpf(rows - hits + 1), q)


def binomial_tail_below(hits: int, rows: int, p: float) -> mp.mpf:
    """Pr(Bin(rows, p) <= hits)."""
    with mp.workdps(DIGITS):
        return binomial_tail_above(rows - hits, rows, 1 - mp.mpf(p))


def _incomplete_beta(a: mp.mpf, b: mp.mpf, x: mp.mpf) -> mp.mpf:
    """I_x(a, b) by Lentz's method; for x below the mean, where the fraction converges quickly."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = mp.exp(a * mp.log(x) + b * mp.log(1 - x) - mp.log(a) - mp.loggamma(a) - mp.loggamma(b) + mp.loggamma(a + b))
    c, d = mp.mpf(1), 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10**6):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / (1 + even * d), 1 + even / c
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / (1 + odd * d), 1 + odd / c
        value *= d * c
        if abs(d * c - 1) < mp.mpf(10) ** -25:
            return front * value
    raise ArithmeticError("the continued fraction did not converge")


def log_stake(values: Sequence[tuple[float, float]], rows: int, m: mp.mpf, alpha: float, hint: float | None) -> mp.mpf:
    """ln of what the bets make of a stake of 1; `values` are pairs of a count and a value."""
    nats = mp.log(1 / mp.mpf(alpha))
    bets = [(mp.mpf(w), m * (1 - m) * mp.mpf(4) ** -mp.mpf(g)) for g, w in zip(SPREADS, STAKES, strict=True)]
    if hint is not None:
        bets = [(w * mp.mpf("0.3"), v) for w, v in bets] + [(mp.mpf("0.7"), min(mp.mpf(hint), m * (1 - m)))]
    total = mp.mpf(0)
    for stake, variance in bets:
        a = mp.sqrt(2 * (nats + 1) / (rows * variance))
        lam = min(mp.mpf("0.9") / m, a / (1 + a * min(2 * m, mp.mpf(1)) / 3))
        total += stake * mp.exp(mp.fsum(mp.mpf(c) * mp.log(1 + lam * (mp.mpf(x) - m)) for c, x in values))
    return mp.log(total)


def two_points(rows: int, total: float, squares: float) -> list[tuple[mp.mpf, mp.mpf]]:
    """The law on 0 and S2/S1 with these moments."""
    s1, s2 = mp.mpf(total), mp.mpf(squares)
    heavy = min(s1 * s1 / s2, mp.mpf(rows))
    return [(rows - heavy, mp.mpf(0)), (heavy, s2 / s1)]


def betting_lower(values: Sequence[tuple[float, float]], rows: int, alpha: float, hint: float | None = None) -> float:
    """The smallest m at which the stake stays below 1/alpha: a scan for the first crossing, then bisection."""
    with mp.workdps(DIGITS):
        mean = mp.fsum(mp.mpf(c) * mp.mpf(x) for c, x in values) / rows
        if mean <= 0:
            return 0.0
        need = mp.log(1 / mp.mpf(alpha))

        def stays_below(m: mp.mpf) -> bool:
            return bool(log_stake(values, rows, m, alpha, hint) < need)

        points = [mean * mp.mpf(10) ** -9] + [mean * i / 64 for i in range(1, 64)] + [mean * (1 - mp.mpf(10) ** -20)]
        if stays_below(points[0]):
            return 0.0
        before = points[0]
        for point in points[1:]:
            if stays_below(point):
                low, high = before, point
                for _ in range(80):
                    middle = (low + high) / 2
                    low, high = (low, middle) if stays_below(middle) else (middle, high)
                return float(low)
            before = point
        return float(mean)


def all_counts(rows: int, kinds: int) -> Iterator[tuple[int, ...]]:
    """Every way to have `rows` rows of so many kinds."""
    if kinds == 1:
        yield (rows,)
        return
    for first in range(rows + 1):
        for rest in all_counts(rows - first, kinds - 1):
            yield (first, *rest)


def multinomial(counts: Sequence[int], law: Iterable[float]) -> float:
    """The probability of these counts."""
    ways = math.factorial(sum(counts))
    for c in counts:
        ways //= math.factorial(c)
    return ways * math.prod(float(p) ** c for p, c in zip(law, counts, strict=True))


def sign_tail(better: int, worse: int) -> Fraction:
    """Pr(Bin(better + worse, 1/2) >= better), exactly."""
    n = better + worse
    return Fraction(sum(math.comb(n, w) for w in range(better, n + 1)), 2**n)


def event_paths(steps: int) -> Iterator[tuple[int, ...]]:
    """All paths of events (1) and quiet steps (0) of up to so many steps."""
    for length in range(steps + 1):
        yield from itertools.product((0, 1), repeat=length)


def counted_weight(path: Sequence[int], most: int, w: Callable[[int], float]) -> float:
    """w_f / (most C(j-1, f)) for the node after a path."""
    f = sum(path)
    return w(f) / (most * math.comb(len(path), f))


def gapped_weight(path: Sequence[int]) -> float:
    """prod 1/(g (g+1)) / (f (f+1)) for a path that ends with an event."""
    weight, gap = 1.0, 0
    for step in path:
        gap += 1
        if step:
            weight /= gap * (gap + 1)
            gap = 0
    f = sum(path)
    return weight / (f * (f + 1))
