"""Comparisons of models whose features are public (17.9): one answer each, noise set by the public disagreement.

Row i has its own law; the truth is the mean of the rows' expectations of psi_j = (1 + d_j)/2. r_ij is the range of
psi_j(i, .) over labels, public, 0 where the models agree; rbar_j is the mean of r_ij^2. Then d_j <= D(rbar_j) for all j
except with the probability that the plan sets aside, and noise s_j^2 = gam D(rbar_j)/(4 n t) keeps every answer at the
same t: nothing in 17.5 depends on what was seen. The row accounts are exact, public and capped by q.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from afresh.errors import InvalidArgument
from afresh.theory.search import minimize_between
from afresh.theory.symmetrized.constants import ALPHA_MIN, BAD_SHARE, MOST_ROW, Constants, drift
from afresh.theory.symmetrized.fixed import width_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


_UP = 1 + 1e-12


@dataclass(frozen=True)
class ComparisonPlan:
    """Constants of up to `constants.count` comparisons; `least` is the smallest disagreement that the noise follows."""

    constants: Constants
    least: float
    width: float

    def pairs(self, disagreement: float) -> float:
        """D(rbar)."""
        return public_pairs(self.constants, max(disagreement, self.least))

    def noise(self, disagreement: float) -> float:
        """s_j of psi = (1 + d)/2, a function of the public mean of r_ij^2 alone."""
        if not 0 <= disagreement <= 1:
            raise InvalidArgument(f"disagreement == {disagreement}, must be in [0, 1].")
        c = self.constants
        return math.sqrt(c.growth * self.pairs(disagreement) / (4 * c.n * c.step)) * _UP

    def half_width(self, disagreement: float) -> float:
        """The half-width of the difference d in [-1, 1]: 2 s_j h."""
        return min(2 * self.noise(disagreement) * self.width * (1 + 1e-9), 2.0)

    def charge(self, ranges: ArrayLike) -> Floats:
        """How much each row's account grows: r_ij^2/(4 n^2 s_j^2)."""
        squares = np.square(np.asarray(ranges, dtype=np.float64))
        if np.any(squares > 1) or len(squares) != self.constants.n:
            raise InvalidArgument(f"needs {self.constants.n} ranges in [0, 1], one per row.")
        charge: Floats = squares / (4 * self.constants.n**2 * self.noise(float(squares.mean())) ** 2) * _UP
        return charge

    def admits(self, account: ArrayLike, ranges: ArrayLike) -> bool:
        """Whether the next answer keeps every row within q, its own part counted four times; to be checked first."""
        return bool(np.all(np.asarray(account) + 4 * self.charge(ranges) <= self.constants.row))


@lru_cache(maxsize=64)
def comparison_plan(
    n: int, count: int, beta: float, disagreement: float, *, least: float | None = None, row: float | None = None
) -> ComparisonPlan:
    """The plan with the narrowest comparison at this disagreement.

    `least` (default: a quarter of it) is the smallest disagreement that noise will follow; `row` caps the accounts, by
    default so that all comparisons may disagree on the same rows.
    """
    least = disagreement / 4 if least is None else least
    if not 0 < least <= disagreement <= 1:
        raise InvalidArgument(f"least == {least}, disagreement == {disagreement}: need 0 < least <= disagreement <= 1.")

    def trial(step: float) -> ComparisonPlan | None:
        cap = row
        if cap is None:  # 4 n^2 s^2 = n gam D/t and D >= rbar/2; D falls as q does, so one step is enough
            cap = (count + 3) * 2 * step / (n * disagreement)
            if cap > MOST_ROW:
                return None
            cap = min(
                (count + 3) * step / (n * public_pairs(_constants(n, count, beta, step, cap, least), disagreement)), cap
            )
        if cap > MOST_ROW:
            return None
        c = _constants(n, count, beta, step, cap, least)
        return ComparisonPlan(c, least, width_of(c, "constant width", rough=True))

    def half_width(log_step: float) -> float:
        found = trial(math.exp(log_step))
        return math.inf if found is None else math.log(found.half_width(disagreement))

    steps = np.geomspace(1e-4, 2.0, 14)
    values = [half_width(math.log(x)) for x in steps]
    i = int(np.argmin(values))
    if math.isinf(values[i]):
        raise InvalidArgument(f"{count} comparisons at disagreement {disagreement} are too many for n == {n} rows.")
    low, high = math.log(steps[max(i - 1, 0)]), math.log(steps[min(i + 1, len(steps) - 1)])
    best = trial(math.exp(minimize_between(lambda x: min(half_width(x), 50.0), low, high, tolerance=5e-3)))
    best = best or trial(float(steps[i]))
    assert best is not None
    return ComparisonPlan(best.constants, least, width_of(best.constants, "constant width"))


def _constants(n: int, count: int, beta: float, step: float, row: float, least: float) -> Constants:
    """The constants for answers that all have t = step; they have no common D or s."""
    growth = 1 / (1 - row) * _UP
    smallest = math.sqrt(growth * (least / 2) / (4 * n * step))  # D(least) >= least/2
    bad = BAD_SHARE * beta * ALPHA_MIN * min(smallest, 1 / ALPHA_MIN)
    swap = row * (count + 3) * step / 2 * _UP
    level1, level3 = math.log(3 * count / bad) * _UP, math.log(6 * count / bad) * _UP
    return Constants(
        n=n,
        count=count,
        s=smallest,
        beta=beta,
        main=(1 - BAD_SHARE) * beta / _UP,
        bad=bad,
        row=row,
        growth=growth,
        pairs=least / 2,
        step=step,
        bulk=count * step / (1 + step) * _UP,
        swap=swap,
        tilt=2 * math.sqrt(swap + level3) * _UP,
        level1=level1,
        level3=level3,
    )


def public_pairs(c: Constants, disagreement: float) -> float:
    """D(rbar) of 17.9, rbar the mean square of the public ranges; never more than rbar.

    rbar/2 + R^2 (1-2g)^2/(2 (1-3g)) + g (sqrt(rbar) + 2a)^2/2 + a^2/(2g) - 2a^2 and at least rbar/2 + R^2/2, R the
    drift of E2 and a = sqrt(L1/(2n)). Any g in (0, 1/3) is valid; the steps here find about the best.
    """
    r, a = drift(c), math.sqrt(c.level1 / (2 * c.n)) * _UP
    top = math.sqrt(disagreement) + 2 * a
    bound, under = 1.0, top * top
    for _ in range(4):
        g = min(a / math.sqrt(under), 0.3) if under > 0 else 0.3
        away = r * r * (1 - 2 * g) ** 2 / (2 * (1 - 3 * g)) + g * top * top / 2 + a * a / (2 * g) - 2 * a * a
        bound = min(bound, max(away, r * r / 2))
        u = r * (1 - 2 * g) / (1 - 3 * g)
        under = top * top + 3 * u * u - 4 * u * r
    return min(disagreement, (disagreement / 2 + bound) * _UP)
