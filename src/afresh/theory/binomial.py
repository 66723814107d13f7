"""Limits on a mean from a count or a sum: exact binomial, Chernoff, Hoeffding and Bentkus, the sign test (section 13).

Rows that a question does not depend on give its mean exactly. These limits use only the sum, so all of them increase
with it; a contest's winner relies on that (section 15). Each is one-sided with its own failure probability `alpha`,
broadcasts over arrays, and errs outward.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import kl_each, kl_lower_each, kl_upper_each
from afresh.theory.beta import lower_quantile, one_lower_quantile, one_upper_quantile, upper_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


# The incomplete beta function and its inverse agree to 2e-7 of alpha for up to 1e9 rows; this is five times that.
_ALPHA = 1 - 1e-6
_OUTWARD = 1e-13
# A sum of floats may miss a whole number through rounding. Bentkus's bound is log-linear between whole numbers, so
# taking 3.0000000001 for 3 costs a share of alpha far below 1e-6.
_WHOLE = 1e-9
_QUARTER = 0.25
_LEAST = 1e-290  # smaller probabilities are left to Chernoff's bound


def clopper_pearson_lower(hits: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The p at which Pr(Bin(rows, p) >= hits) = alpha, from below; 0 without hits.

    Between whole numbers it is continued by the beta quantile, which increases with hits.
    """
    h, n, a = _checked(hits, rows, alpha)
    inside = h > 0
    found = lower_quantile(np.where(inside, h, 1.0), n - np.where(inside, h, 1.0) + 1, a * _ALPHA)
    return np.where(inside, found * (1 - _OUTWARD), 0.0)


def clopper_pearson_upper(hits: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The p at which Pr(Bin(rows, p) <= hits) = alpha, from above; 1 if every row is a hit."""
    h, n, a = _checked(hits, rows, alpha)
    inside = h < n
    found = upper_quantile(np.where(inside, h, 0.0) + 1, np.where(inside, n - h, n), a * _ALPHA)
    return np.where(inside, np.minimum(found * (1 + _OUTWARD), 1.0), 1.0)


def unequal_lower(hits: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The same for rows that are independent but not alike, whose mean probability it bounds (section 13).

    By Hoeffding (1956) the sum's tail from one above its mean on is largest for equal rows. At alpha <= 1/4 only a
    single hit can lie nearer to the mean, and its tail is at most the sum of all probabilities.
    """
    h, n, a = _checked(hits, rows, alpha)
    exact = clopper_pearson_lower(h, n, a)
    single = np.where(h <= 1 + _WHOLE, np.minimum(exact, a * _ALPHA / n), exact)
    return np.where(a <= _QUARTER, single, hoeffding_bentkus_lower(h, n, a))


def unequal_upper(hits: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The same upward: a hit that is missing is a hit of the complement."""
    h, n, a = _checked(hits, rows, alpha)
    exact = clopper_pearson_upper(h, n, a)
    single = np.where(n - h <= 1 + _WHOLE, np.maximum(exact, 1 - a * _ALPHA / n), exact)
    return np.where(a <= _QUARTER, single, hoeffding_bentkus_upper(h, n, a))


def one_lower(hits: float, rows: float, alpha: float, *, unequal: bool) -> float | None:
    """`clopper_pearson_lower`, or `unequal_lower`, of one; None where it needs more than a quantile in a tail."""
    if not (0 <= hits <= rows and rows >= 1 and 0 < alpha <= _QUARTER):
        return None
    if hits == 0:
        return 0.0
    found = one_lower_quantile(hits, rows - hits + 1, alpha * _ALPHA)
    if found is None:
        return None
    exact = found * (1 - _OUTWARD)
    return min(exact, alpha * _ALPHA / rows) if unequal and hits <= 1 + _WHOLE else exact


def one_upper(hits: float, rows: float, alpha: float, *, unequal: bool) -> float | None:
    """The same upward."""
    if not (0 <= hits <= rows and rows >= 1 and 0 < alpha <= _QUARTER):
        return None
    if hits == rows:
        return 1.0
    found = one_upper_quantile(hits + 1, rows - hits, alpha * _ALPHA)
    if found is None:
        return None
    exact = min(found * (1 + _OUTWARD), 1.0)
    return max(exact, 1 - alpha * _ALPHA / rows) if unequal and rows - hits <= 1 + _WHOLE else exact


def chernoff_lower(total: ArrayLike, rows: ArrayLike, nats: ArrayLike) -> Floats:
    """The smallest q <= total/rows with rows kl(total/rows || q) <= nats; at alpha = e^-nats, however small."""
    x, n, level = _in_nats(total, rows, nats)
    return kl_lower_each(x / n, level * (1 + _OUTWARD) / n)


def chernoff_upper(total: ArrayLike, rows: ArrayLike, nats: ArrayLike) -> Floats:
    """The largest q >= total/rows with rows kl(total/rows || q) <= nats."""
    x, n, level = _in_nats(total, rows, nats)
    return kl_upper_each(x / n, level * (1 + _OUTWARD) / n)


def hoeffding_bentkus_lower(total: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The better of Chernoff and Bentkus (2004), for values in [0, 1] of which only the sum is used.

    Pr(sum >= x) <= min(exp(-n kl), e Pr(Bin(n, q) >= floor x)): both bound one and the same tail, so taking the minimum
    costs nothing.
    """
    x, n, a = _checked(total, rows, alpha)
    exact = clopper_pearson_lower(np.minimum(np.floor(x + _WHOLE), n), n, a / math.e)
    return np.maximum(chernoff_lower(x, n, -np.log(a)), exact)


def hoeffding_bentkus_upper(total: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The same upward: Pr(sum <= x) <= min(exp(-n kl), e Pr(Bin(n, q) <= ceil x))."""
    x, n, a = _checked(total, rows, alpha)
    exact = clopper_pearson_upper(np.maximum(np.ceil(x - _WHOLE), 0.0), n, a / math.e)
    return np.minimum(chernoff_upper(x, n, -np.log(a)), exact)


def sign_test(better: ArrayLike, worse: ArrayLike) -> Floats:
    """-ln Pr(Bin(better + worse, 1/2) >= better), from below: how surprising so many wins are if neither is better.

    Given which rows differ, each is a win with one probability, at most 1/2 if the true difference is not positive.
    Where the probability is too small for a float, Chernoff's bound of it.
    """
    from scipy.special import betaincc  # comparisons of models only

    wins = np.asarray(better, dtype=np.float64)
    losses = np.asarray(worse, dtype=np.float64)
    if not ((wins >= 0) & (losses >= 0) & (wins == np.floor(wins)) & (losses == np.floor(losses))).all():
        raise InvalidArgument("better and worse are counts of rows, must be whole numbers >= 0.")
    # Pr(Bin(n, 1/2) >= wins) = I_1/2(wins, losses + 1) = 1 - I_1/2(losses + 1, wins), in which nothing cancels.
    tail = np.where(wins > 0, betaincc(losses + 1, np.maximum(wins, 1.0), 0.5), 1.0)
    n = np.maximum(wins + losses, 1.0)
    bound = np.where(wins > losses, n * kl_each(wins / n, 0.5) * (1 - _OUTWARD), 0.0)
    return np.where(tail > _LEAST, np.maximum(-np.log(np.maximum(tail / _ALPHA, _LEAST)), 0.0), bound)


def _in_nats(total: ArrayLike, rows: ArrayLike, nats: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Three float arrays of one shape, in range."""
    level = np.asarray(nats, dtype=np.float64)
    if not (level > 0).all():
        raise InvalidArgument(f"nats contains {level[~(level > 0)].flat[0]}, must be > 0.")
    x, n, _ = _checked(total, rows, 0.5)
    x, n, level = np.broadcast_arrays(x, n, level)
    return x, n, level


def _checked(total: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """Three float arrays of one shape, in range."""
    x, n, a = np.broadcast_arrays(*(np.asarray(y, dtype=np.float64) for y in (total, rows, alpha)))
    if not (n >= 1).all():
        raise InvalidArgument(f"rows contains {n[~(n >= 1)][0]}, must be >= 1.")
    room = 1e-6 * n  # far beyond rounding, so no refusal can depend on values that are in range
    inside = (x >= -room) & (x <= n + room)
    if not inside.all():
        raise InvalidArgument(f"a total of {x[~inside][0]} is not between 0 and the rows.")
    if not ((a > 0) & (a < 1)).all():
        raise InvalidArgument(f"alpha contains {a[~((a > 0) & (a < 1))][0]}, must be in (0, 1).")
    return np.clip(x, 0.0, n), n, a
