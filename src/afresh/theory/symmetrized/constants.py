"""The constants of Theorem S (section 17): what all answers of a plan share, fixed before any data is seen.

Answers y_j = S[psi_j] + s xi_j. A ghost sample S' is paired with the sample; d_j is the mean square of
psi_j(Z_i+) - psi_j(Z_i-) over the n pairs. With probability >= 1 - eG all d_j <= D; then the law of the transcript is
at most e^kap times that of a Gaussian world, in which the posterior mean of the coins has length about sqrt(tau).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import kl

ALPHA_MIN = 0.2  # the least alpha of 17.2: what a failure of G is divided by
BAD_SHARE = 0.02  # the part of beta that pays for a failure of G
MOST_ROW = 0.9  # q <= .9: beyond this, gam = 1/(1-q) makes every width useless
_UP = 1 + 1e-12  # the arithmetic here is accurate to 1e-14
_SAFE = 1 + 1e-10  # but of differences


@dataclass(frozen=True)
class Constants:
    """What Theorem S fixes in advance for n rows, `count` answers, noise `s` and failure `beta`.

    `main` is the failure left for the answers (bm), `bad` that of G (eG). `row` is q, `growth` gam, `pairs` D, `step`
    the t of one answer, `bulk` tau after all answers, `swap` kap, `tilt` x, `level1` and `level3` L1 and L3.
    """

    n: int
    count: int
    s: float
    beta: float
    main: float
    bad: float
    row: float
    growth: float
    pairs: float
    step: float
    bulk: float
    swap: float
    tilt: float
    level1: float
    level3: float

    @property
    def reach(self) -> float:
        """b = sqrt(t): the length of one answer's direction in the Gaussian world."""
        return math.sqrt(self.step)

    def bulk_before(self, j: float) -> float:
        """tau_j = (j-1) t/(1+t): what the j-1 answers before answer j have revealed."""
        return (j - 1) * self.step / (1 + self.step) * _UP

    def scaled(self, pairs: float, s: float | None = None) -> float:
        """b^2 = gam d/(4 n s^2) of an answer with the bound d and noise s of its own."""
        return self.growth * pairs / (4 * self.n * (self.s if s is None else s) ** 2) * _UP


def constants(
    n: int,
    count: int,
    s: float,
    beta: float,
    *,
    least: float | None = None,
    row: float | None = None,
    largest: float = 1.0,
    events: int | None = None,
    answers: float | None = None,
    alike: bool = True,
    concave: bool = False,
    pairs: float | None = None,
) -> Constants:
    """The constants of section 17, rounded outward.

    Plain answers of equal noise need only the first four. In general `count` caps the sum of s^2/s_l^2 d_l/D over the
    answers, `largest` this quantity for one answer; `row` caps q of the rows' accounts, `least` is the smallest noise,
    `events` the number of scalar answers. There are at most `answers` of them, more than `count` if some are coarser
    than `s`: many coarse answers reveal more than few fine ones of the same sum. Rows that are not `alike` are
    independent, each with its own law. `concave` takes the sharper kap of Lemma G in place of its linear bound. `pairs`
    is a D that was found before, and is used as it is.
    """
    _check(n, count, s, beta)
    least = s if least is None else least
    events = count if events is None else events
    answers = count if answers is None else answers
    if not 0 < least <= s:
        raise InvalidArgument(f"least == {least}, must be in (0, s] with s == {s}.")
    if least * ALPHA_MIN > 1:
        raise InvalidArgument(f"noise s == {least} says nothing about a mean in [0, 1]; must be <= {1 / ALPHA_MIN:g}.")
    mass = count + 3 * largest
    q = (mass / (4 * n * n * s * s) if row is None else row) * _UP
    if not q <= MOST_ROW:
        raise InvalidArgument(
            f"all answers together may depend on one row by q == {q:.4g}, must be <= {MOST_ROW}; "
            "use more noise, fewer answers or more rows."
        )
    growth = 1 / (1 - q) * _UP
    bad = BAD_SHARE * beta * ALPHA_MIN * least / _UP
    level1, level3 = math.log(3 * events / bad) * _UP, math.log(6 * events / bad) * _UP

    def with_pairs(pairs: float) -> Constants:
        step = growth * pairs / (4 * n * s * s) * _UP
        bulk = count * step / (1 + step * count / answers) * _UP  # u/(1+u) is concave
        swap = growth * q * mass * pairs / (8 * n * s * s) * _UP
        if concave:
            swap = min(swap, n * _of_a_pair(min(mass * pairs / (4 * n * n * s * s), q), q, growth) * _SAFE)
        tilt = 2 * math.sqrt(swap + level3) * _UP
        return Constants(
            n=n,
            count=count,
            s=s,
            beta=beta,
            main=(1 - BAD_SHARE) * beta / _UP,
            bad=bad,
            row=q,
            growth=growth,
            pairs=pairs,
            step=step,
            bulk=bulk,
            swap=swap,
            tilt=tilt,
            level1=level1,
            level3=level3,
        )

    if pairs is not None:
        return with_pairs(pairs)
    # Downwards from D = 1: every iterate is valid (17.6), so any number of steps will do.
    found = with_pairs(1.0)
    for _ in range(60):
        next_pairs = min(_largest_pairs(found, alike) * _UP, 1.0)
        if next_pairs >= found.pairs * (1 - 1e-13):
            break
        found = with_pairs(next_pairs)
    return found


def _of_a_pair(square: float, q: float, growth: float) -> float:
    """(ln(1 + gam u) - u)/2 from above: what a pair with |beta|^2 = u <= q adds to kap; concave and growing in u."""
    x = growth * square
    further = math.log1p(x) - x if x > 0.01 else x * x * (x / 3 - 0.5)  # ln(1+x) <= x - x^2/2 + x^3/3
    return max(growth * q * _UP * square + further, 0.0) / 2


def _largest_pairs(c: Constants, alike: bool) -> float:
    """D = up(1/2 + Delta^2/2, L1/n), Delta = sqrt(L3/(2n)) + (sqrt(tau) + x) sqrt(gam D/n); not alike: sqrt(gam/n)."""
    delta = math.sqrt(c.level3 / (2 * c.n)) + drift(c) * (math.sqrt(c.pairs) if alike else 1.0)
    return first_argument_upper(min(0.5 + delta * delta / 2, 1.0), c.level1 / c.n)


def drift(c: Constants) -> float:
    """(sqrt(tau) + x) sqrt(gam/n): |S_j - S'_j| is at most this times sqrt(d_j) (E2)."""
    return (math.sqrt(c.bulk) + c.tilt) * math.sqrt(c.growth / c.n) * _UP


def first_argument_upper(e: float, bound: float) -> float:
    """up(e, c): the largest d >= e with kl(d || e) <= c; never below the exact value."""
    if e <= 0.0:
        return 0.0
    if e >= 1.0 or bound >= -math.log(e):
        return 1.0
    # kl(d || e) >= 2 (d-e)^2 and >= (d-e)^2/(2d), and is convex in d: Newton's steps descend to the root.
    d = min(e + math.sqrt(bound / 2), e + bound + math.sqrt(bound * bound + 2 * e * bound), 1 - 1e-15)
    for _ in range(40):
        ratio = d / e  # inf where e is almost 0
        slope = (math.log(ratio) if ratio < math.inf else math.log(d) - math.log(e)) - math.log1p(-d) + math.log1p(-e)
        step = max((kl(d, e) - bound) / slope, 0.0) if slope > 0 else 0.0
        d = max(d - step, e)
        if step <= 1e-14 * d:
            break
    # If kl is too small there, the root is beyond 1 - 1e-15.
    return 1.0 if kl(d, e) < bound * (1 - 1e-9) else min(d * _UP, 1.0)


def _check(n: int, count: int, s: float, beta: float) -> None:
    if n < 2:
        raise InvalidArgument(f"n == {n}, must be >= 2.")
    if count < 1:
        raise InvalidArgument(f"count == {count}, must be >= 1.")
    if not 0 < s < math.inf:
        raise InvalidArgument(f"s == {s}, must be positive and finite.")
    if not 0 < beta < 1:
        raise InvalidArgument(f"beta == {beta}, must be in (0, 1).")
