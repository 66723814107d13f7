"""Limits of a mean from a count or a sum: exact binomial, Chernoff, Hoeffding and Bentkus, the sign test (section 13).

Rows that a question does not depend on give its mean exactly. These limits see the sum alone, so all of them
increase with it; a contest's winner relies on that (section 15). Each is one-sided at a failure probability of its
own, `alpha`, broadcasts over arrays, and errs outward.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincc, betainccinv, betaincinv

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import kl_lower_each, kl_upper_each

Floats = NDArray[np.float64]

# The incomplete beta function and its inverse agree to 2e-7 of alpha for up to 1e9 rows; this is five times that.
_ALPHA = 1 - 1e-6
_OUTWARD = 1e-13
# A sum of floats may miss a whole number by its rounding. Bentkus's bound is log-linear between whole numbers, so
# that taking 3.0000000001 for 3 costs a share of alpha far below 1e-6.
_WHOLE = 1e-9


def clopper_pearson_lower(hits: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The p at which Pr(Bin(rows, p) >= hits) = alpha, from below; 0 without hits.

    Between whole numbers it is continued by the beta quantile, which increases with hits.
    """
    hits, rows, alpha = _checked(hits, rows, alpha)
    inside = hits > 0
    found = betaincinv(np.where(inside, hits, 1.0), rows - np.where(inside, hits, 1.0) + 1, alpha * _ALPHA)
    return np.where(inside, found * (1 - _OUTWARD), 0.0)


def clopper_pearson_upper(hits: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The p at which Pr(Bin(rows, p) <= hits) = alpha, from above; 1 if every row is a hit."""
    hits, rows, alpha = _checked(hits, rows, alpha)
    inside = hits < rows
    found = betainccinv(np.where(inside, hits, 0.0) + 1, np.where(inside, rows - hits, rows), alpha * _ALPHA)
    return np.where(inside, np.minimum(found * (1 + _OUTWARD), 1.0), 1.0)


def chernoff_lower(total: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The smallest q <= total/rows with rows kl(total/rows || q) <= ln(1/alpha)."""
    total, rows, alpha = _checked(total, rows, alpha)
    return kl_lower_each(total / rows, -np.log(alpha) * (1 + _OUTWARD) / rows)


def chernoff_upper(total: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The largest q >= total/rows with rows kl(total/rows || q) <= ln(1/alpha)."""
    total, rows, alpha = _checked(total, rows, alpha)
    return kl_upper_each(total / rows, -np.log(alpha) * (1 + _OUTWARD) / rows)


def hoeffding_bentkus_lower(total: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The better of Chernoff and Bentkus (2004), for values in [0, 1] of which only the sum is used.

    Pr(sum >= x) <= min(exp(-n kl), e Pr(Bin(n, q) >= floor x)): both bound one and the same tail, so that the
    minimum is free.
    """
    total, rows, alpha = _checked(total, rows, alpha)
    exact = clopper_pearson_lower(np.floor(total + _WHOLE), rows, alpha / math.e)
    return np.maximum(chernoff_lower(total, rows, alpha), exact)


def hoeffding_bentkus_upper(total: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> Floats:
    """The same upward: Pr(sum <= x) <= min(exp(-n kl), e Pr(Bin(n, q) <= ceil x))."""
    total, rows, alpha = _checked(total, rows, alpha)
    exact = clopper_pearson_upper(np.maximum(np.ceil(total - _WHOLE), 0.0), rows, alpha / math.e)
    return np.minimum(chernoff_upper(total, rows, alpha), exact)


def sign_test(better: ArrayLike, worse: ArrayLike) -> Floats:
    """Pr(Bin(better + worse, 1/2) >= better), from above: how surprising so many wins are if neither model is better.

    Given which rows differ, each is a win with one probability, at most 1/2 if the true difference is not positive.
    """
    wins = np.asarray(better, dtype=np.float64)
    losses = np.asarray(worse, dtype=np.float64)
    if not ((wins >= 0) & (losses >= 0) & (wins == np.floor(wins)) & (losses == np.floor(losses))).all():
        raise InvalidArgument("better and worse are counts of rows, must be whole numbers >= 0.")
    # Pr(Bin(n, 1/2) >= wins) = I_1/2(wins, losses + 1) = 1 - I_1/2(losses + 1, wins), in which nothing cancels.
    tail = betaincc(losses + 1, np.maximum(wins, 1.0), 0.5)
    return np.where(wins > 0, np.minimum(tail / _ALPHA, 1.0), 1.0)


def fewest_wins(differ: int, alpha: float) -> int | None:
    """The fewest wins among `differ` rows that the sign test accepts at alpha, or None if not even all of them do."""
    if not differ >= 0:
        raise InvalidArgument(f"differ == {differ}, must be >= 0.")
    if differ == 0 or float(sign_test(differ, 0)) > alpha:
        return None
    low, high = 0, differ  # the test rejects at high and, since Pr(Bin >= 0) = 1, not at low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if float(sign_test(middle, differ - middle)) <= alpha else (middle, high)
    return high


def _checked(total: ArrayLike, rows: ArrayLike, alpha: ArrayLike) -> tuple[Any, Any, Any]:
    """Three float arrays of one shape, in range."""
    total, rows, alpha = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in (total, rows, alpha)))
    if not (rows >= 1).all():
        raise InvalidArgument(f"rows contains {rows[~(rows >= 1)][0]}, must be >= 1.")
    if not ((total >= 0) & (total <= rows)).all():
        raise InvalidArgument(
            f"a total of {total[~((total >= 0) & (total <= rows))][0]} is not between 0 and the rows."
        )
    if not ((alpha > 0) & (alpha < 1)).all():
        raise InvalidArgument(f"alpha contains {alpha[~((alpha > 0) & (alpha < 1))][0]}, must be in (0, 1).")
    return total, rows, alpha
