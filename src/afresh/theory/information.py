"""From information to probability: what a bounded leak can do to a rare event (Section 'events').

An event on (sample, output) has probability delta = exp(-level) if the sample is replaced by a fresh one, and p in
truth. Data processing gives kl(p || delta) <= I. `event_probability` inverts that exactly and is attained: no
function of (delta, I) alone can be smaller. The other forms are those it is compared with; all are in nats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, overload

from afresh import checks
from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import entropy, exp_gap, exp_gap_each, log_gap, log_gap_each

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np


_ROGERS_BITS = 0.54  # Rogers et al. round (log2 e)/e = 0.5307 bits up


def require(holds: bool | np.bool_, hypothesis: str, **values: object) -> None:
    """Refuse values outside a result's hypotheses, naming both."""
    if not holds:
        given = ", ".join(f"{name} == {checks.shown(value)}" for name, value in values.items())
        raise InvalidArgument(f"{given}: needs {hypothesis}.")


def information(rows: int, stability: float) -> float:
    """Prop. mi: I(S; M(S)) <= n eps for an eps-stable interaction with n independent rows."""
    require(rows >= 1 and stability >= 0.0, "rows >= 1 and stability >= 0", rows=rows, stability=stability)
    return rows * stability


def log_threshold(failure: float, information: float) -> float:
    """L such that an event of fresh probability <= exp(-L) has real probability <= `failure`.

    Data processing gives kl(failure || delta) <= I for any event of fresh probability delta (the step before
    Lemma prob-gen rounds it), so L = -ln sup{d <= failure : kl(failure || d) >= I}. Errs upward.
    """
    require(
        0.0 < failure < 1.0 and information >= 0.0,
        "0 < failure < 1, information >= 0",
        failure=failure,
        information=information,
    )
    # With w = L + ln(failure), kl = f (w - 1 + e^-w) + (1-f) (u - ln(1+u)), u = f (1 - e^-w)/(1-f): no term cancels.
    # It is convex in w and (I + h)/f lies right of the root, so Newton's steps descend to it.
    base, rest = -math.log(failure), 1.0 - failure
    w = (information + entropy(failure)) / failure * (1.0 + 1e-9) - base  # the entropy is rounded
    for _ in range(200):
        u = -failure * math.expm1(-w) / rest
        excess = failure * exp_gap(w) + rest * log_gap(u) - information
        step = excess * (1.0 + u) / u if u > 0.0 else 0.0
        if not step > 1e-15 * w:
            break
        w -= step
    return (base + max(w, 0.0)) * (1.0 + 1e-14)


def event_probability(level: ArrayLike, information: ArrayLike) -> Floats:
    """Lemma prob-gen before it is rounded: the largest p with kl(p || exp(-level)) <= I. Errs upward.

    Inverse of `log_threshold`. Attained: draw S uniformly from N values and let M(S) be S with some probability,
    another value otherwise; for the event M(S) = S, delta = 1/N and I(S; M(S)) = kl(p || 1/N).
    """
    level, info = _check(level, information)
    # The same in s = -ln p: kl falls from `level` at s = 0 to 0 at s = level. Newton's steps, kept in the bracket.
    low, high = np.zeros_like(level), level
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # level = 0 and I = 0 are settled below
        s = np.clip(np.log(level / (info + math.log(2))), np.minimum(level / 2, 0.01), 0.75 * level)
        for _ in range(110):
            p, rest, gap = np.exp(-s), -np.expm1(-s), -np.exp(-s) * np.expm1(s - level)
            excess = p * exp_gap_each(level - s) + rest * log_gap_each(gap / rest) - info
            low, high = np.where(excess >= 0.0, s, low), np.where(excess >= 0.0, high, s)
            aimed = s + excess / (p * (level - s + np.log1p(gap / rest)))
            aimed = np.where((low <= aimed) & (aimed <= high), aimed, (low + high) / 2)
            moved, s = np.abs(aimed - s), aimed
            if not np.any((moved > 1e-13) & (info < level)):
                break
    outward = 1.0 + 1e-12 + 1e-15 * level / np.maximum(level - s, 1.0)  # near delta, s is only good to an ulp of level
    p = np.minimum(np.exp(-s) * outward, 1.0)
    return np.where(info >= level, 1.0, np.where(info == 0.0, np.exp(-level), p))


def prob_gen(level: ArrayLike, information: ArrayLike) -> Floats:
    """Lemma prob-gen as stated: p <= (I + ln 2) / ln(1/delta)."""
    level, info = _check(level, information)
    require(np.all(level > 0.0), "fresh probability < 1", level=level)
    return (info + math.log(2)) / level


def russo_zou(level: ArrayLike, information: ArrayLike) -> Floats:
    """The form implicit in Russo and Zou 2016: p <= delta + sqrt(I / ln(1/(2 delta))), for delta < 1/2."""
    level, info = _check(level, information)
    require(np.all(level > math.log(2)), "fresh probability < 1/2", level=level)
    return np.exp(-level) + np.sqrt(info / (level - math.log(2)))


def rogers(level: ArrayLike, information: ArrayLike) -> Floats:
    """Rogers et al. 2016: p <= inf_k 2^k delta + (I + 0.54)/k **in bits**; I is given in nats and converted.

    Section 'events' quotes it next to an I in nats, which would make it false (docs/paper/generalization.md).
    """
    level, info = _check(level, information)
    return _best_cut(level, info + _ROGERS_BITS * math.log(2))


def max_information(level: ArrayLike, information: ArrayLike) -> Floats:
    """The same with its sharp constant: p <= inf_u e^u delta + (I + 1/e)/u.

    The log-likelihood ratio Z of (S, M(S)) against (S', M(S)) has E Z = I and E max(-Z, 0) <= 1/e, because
    -r ln r <= 1/e; so Pr(Z > u) <= (I + 1/e)/u by Markov's inequality, and below u the event grows by e^u at most.
    """
    level, info = _check(level, information)
    return _best_cut(level, info + math.exp(-1.0))


def _best_cut(level: Floats, total: Floats) -> Floats:
    """The minimum over u of exp(u - level) + total/u: u^2 e^u = total/delta, solved by Wright's omega."""
    from scipy.special import wrightomega

    u = 2 * wrightomega((np.log(total) + level) / 2 - math.log(2))
    best: Floats = np.exp(u - level) + total / u
    return best


@overload
def correct_pvalue(pvalue: float, information: float) -> float: ...
@overload
def correct_pvalue(pvalue: ArrayLike, information: ArrayLike) -> float | Floats: ...
def correct_pvalue(pvalue: ArrayLike, information: ArrayLike) -> float | Floats:
    """The p-value of a test that was chosen after exploring the same data: the largest p' with kl(p' || p) <= I.

    `pvalue` is computed as if the test had been fixed in advance; `information` is the cap of the plan, in nats,
    under which it was chosen (not what was spent). Then for every alpha, Pr(null is true and p' <= alpha) <= alpha:
    the event has fresh probability at most the p whose correction is alpha (Lemma prob-gen before rounding).

    It is valid for **one** test chosen from released answers. For the smallest of m chosen tests, pass
    min(m * pvalue, 1). A p-value computed on the guarded rows is exact and has not been charged: once it is shown, no
    further question may be asked about them. Either it is the last thing released, or it is computed from released
    answers. p' >= I/ln(1/p) roughly, so the p-value must be small exponentially in I/alpha to survive.

    Args:
        pvalue: One p-value, or an array of them.
        information: The cap in nats, one for all or an array of the same shape.

    Returns:
        The corrected p-value, never smaller than `pvalue`; an array for arrays.

    Raises:
        InvalidArgument: A p-value outside [0, 1], negative nats, or arrays of different shapes.
    """
    p = checks.array("pvalue", pvalue, "a number from 0 to 1, or an array of them", 0.0, 1.0)
    nats = checks.array("information", information, "a number of nats, at least 0, or an array of them", 0.0)
    if nats.ndim and p.ndim and nats.shape != p.shape:
        raise checks.wrong("information", information, f"one number, or an array of shape {p.shape}")
    tiny = np.finfo(np.float64).tiny  # smaller p-values round to zero
    corrected = np.maximum(event_probability(-np.log(np.maximum(p, tiny)), nats), p)
    corrected = np.where(nats == 0.0, p, corrected)
    return float(corrected) if corrected.ndim == 0 else corrected


def _check(level: ArrayLike, information: ArrayLike) -> tuple[Floats, Floats]:
    """Both as arrays of one shape; level = -ln delta >= 0 and I >= 0."""
    levels, nats = np.broadcast_arrays(np.asarray(level, dtype=np.float64), np.asarray(information, dtype=np.float64))
    require(
        np.all((levels >= 0.0) & (levels < np.inf) & (nats >= 0.0)),
        "0 <= level < inf (level = -ln delta) and information >= 0",
        level=level,
        information=information,
    )
    return levels, nats
