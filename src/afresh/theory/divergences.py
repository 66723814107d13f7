"""KL divergences (the paper's section on KL divergence): Gaussian, Laplace and finite laws, change of measure.

Everything broadcasts over arrays. Scales are standard deviations for Gaussians and `b` of exp(-|x - m|/b)/(2b)
for Laplace laws (the paper prints that density without its minus sign).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import exp_gap_each, relative_term_each
from afresh.theory.special import log_sum_exp

Floats = NDArray[np.float64]


def gaussian_kl(mean: ArrayLike, sd: ArrayLike, other_mean: ArrayLike, other_sd: ArrayLike) -> Floats:
    """Lemma KLG: D(N(m, s^2) || N(m', s'^2)) = (m-m')^2/(2 s'^2) + (r - 1 - ln r)/2 with r = s^2/s'^2.

    The lemma is stated for all real s, s'; it needs s s' != 0, as its corollary says.
    """
    s, other = _positive("sd", sd), _positive("other_sd", other_sd)
    shift = np.subtract(mean, other_mean) / other
    return shift**2 / 2 + scale_term((s / other) ** 2, _square_ratio_minus_one(s, other)) / 2


def gaussian_kl_bound(mean: ArrayLike, sd: ArrayLike, other_mean: ArrayLike, other_sd: ArrayLike) -> Floats:
    """Corollary KLG: ((m-m')^2/s^2 + (1/r - 1)^2 min{1, (2 + r)/6}) r / 2 with r = s^2/s'^2."""
    s, other = _positive("sd", sd), _positive("other_sd", other_sd)
    shift = np.subtract(mean, other_mean) / other  # (m-m')^2/s^2 times r
    r, u = (s / other) ** 2, _square_ratio_minus_one(s, other)
    return (shift**2 + u / r * u * np.minimum(1.0, (2 + r) / 6)) / 2


def laplace_kl(mean: ArrayLike, scale: ArrayLike, other_mean: ArrayLike, other_scale: ArrayLike) -> Floats:
    """Lemma laplace-kl: x (e^-u - 1 + u) + x - 1 - ln x with x = b/b' and u = |m-m'|/b."""
    b, other = _positive("scale", scale), _positive("other_scale", other_scale)
    u = np.abs(np.subtract(mean, other_mean)) / b
    return b / other * exp_gap_each(u) + scale_term(b / other, (b - other) / other)


def laplace_kl_bound(mean: ArrayLike, scale: ArrayLike, other_mean: ArrayLike, other_scale: ArrayLike) -> Floats:
    """Lemma laplace-kl as stated: (m-m')^2/(2 b b') + (1/r - 1)^2 r / 7 with r = b^2/b'^2."""
    return _laplace_bound(mean, scale, other_mean, other_scale, sharp=False)


def laplace_kl_sharp_bound(mean: ArrayLike, scale: ArrayLike, other_mean: ArrayLike, other_scale: ArrayLike) -> Floats:
    """(m-m')^2/(2 b b') + (1/r - 1)^2 r min{1/7, (5 + r)/48}: ours, exact to third order at r = 1.

    Proved in docs/paper/stability.md: the derivative of the gap in x = sqrt(r) has the sign of x - 1, because
    (x+1)(2x^4 + 5x^2 + 5) >= 24 x^2 by the weighted AM-GM inequality, and 2x^3 - 5x^2 + 2x + 2 > 0.
    """
    return _laplace_bound(mean, scale, other_mean, other_scale, sharp=True)


def _laplace_bound(
    mean: ArrayLike, scale: ArrayLike, other_mean: ArrayLike, other_scale: ArrayLike, *, sharp: bool
) -> Floats:
    b, other = _positive("scale", scale), _positive("other_scale", other_scale)
    r, u = (b / other) ** 2, _square_ratio_minus_one(b, other)
    constant = np.minimum(1 / 7, (5 + r) / 48) if sharp else 1 / 7
    gap = np.subtract(mean, other_mean)
    return gap / b * (gap / other) / 2 + u / r * u * constant


def mean_bound(divergence: ArrayLike, log_mgf: ArrayLike, t: ArrayLike) -> Floats:
    """Corollary MGF-KL: E[X] <= (D(X || Y) + ln E e^{tY}) / t for every t > 0.

    Broadcasts over t, so that the smallest entry is the best bound of those tried.
    """
    d = np.asarray(divergence, dtype=np.float64)
    if not (d >= 0).all():
        raise InvalidArgument(f"divergence == {divergence!r}, must be >= 0.")
    bound: Floats = (d + np.asarray(log_mgf, dtype=np.float64)) / _positive("t", t)
    return bound


def donsker_varadhan(f: ArrayLike, p: ArrayLike, q: ArrayLike) -> float:
    """Lemma sup: E_P f - ln E_Q e^f on a finite space, never above D(P || Q) and equal to it at f = ln(P/Q)."""
    p, q, f = _law("p", p), _law("q", q), np.asarray(f, dtype=np.float64)
    return float((p * f).sum() - log_sum_exp(f, q))


def finite_kl(p: ArrayLike, q: ArrayLike) -> Floats:
    """D(P || Q) = sum P ln(P/Q) over the last axis; infinite unless Q > 0 wherever P > 0."""
    p, q = np.broadcast_arrays(_law("p", p), _law("q", q))
    total: Floats = relative_term_each(p, q, q - p).sum(axis=-1)  # all nonnegative: nothing cancels
    return total


def mixture(weights: ArrayLike, laws: ArrayLike) -> Floats:
    """P_Q = E_{Y~Q} P_Y: by Lemma klmin the law R that minimises E_{Y~Q} D(P_Y || R). `laws` has one per row."""
    mixed: Floats = _law("weights", weights) @ _law("laws", laws)
    return mixed


def mutual_information(joint: ArrayLike) -> float:
    """I(X; Y) = D(P(x,y) || P(x) x P(y)) of a joint law given as a matrix (Def. Mutual Information)."""
    table = np.asarray(joint, dtype=np.float64)
    _law("joint", table.reshape(-1))
    # = E_x D(P(y|x) || P(y)): unlike P(x) P(y), none of these is lost where both are tiny.
    table = table[table.sum(axis=1) > 0]
    share = table.sum(axis=1)
    return float(share @ finite_kl(table / share[:, None], table.sum(axis=0) / share.sum()))


def conditional_mutual_information(joint: ArrayLike) -> float:
    """I(X; Y | Z) = E_z I(X | Z=z; Y | Z=z) of a joint law indexed [z, x, y]."""
    joint = np.asarray(joint, dtype=np.float64)
    share = joint.sum(axis=(1, 2))
    return float(sum(w * mutual_information(part / w) for w, part in zip(share, joint, strict=True) if w > 0))


def scale_term(x: Floats, minus_one: Floats) -> Floats:
    """x - 1 - ln x >= 0, given x and x - 1: the latter keeps x near 1 exact, as x itself keeps small x exact."""
    return relative_term_each(np.ones_like(x), x, minus_one)


def _square_ratio_minus_one(s: Floats, other: Floats) -> Floats:
    """s^2/s'^2 - 1, exact to rounding even where s is near s'."""
    ratio: Floats = (s - other) / other * ((s + other) / other)
    return ratio


def _positive(name: str, value: ArrayLike) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if not ((array > 0) & np.isfinite(array)).all():
        raise InvalidArgument(f"{name} == {value!r}, must be positive and finite.")
    return array


def _law(name: str, value: ArrayLike) -> Floats:
    array = np.asarray(value, dtype=np.float64)
    if not ((array >= 0).all() and np.allclose(array.sum(axis=-1), 1.0, rtol=0, atol=1e-12)):
        raise InvalidArgument(f"{name} must be nonnegative and sum to 1 over its last axis.")
    return array
