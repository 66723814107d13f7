"""What one answer reveals: average leave-one-out KL stability (Def. klas) of one noisy mean.

A charge holds for every sample of n rows and every query into [0, 1] and never depends on data. `average_kl` is what
one sample actually costs: for study and tests only, because it depends on the rows.

Throughout g = T n / (t (n-1)^2), the most by which the noise variance can change when one row is left out.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import exp_gap, exp_gap_each
from afresh.theory.divergences import conditional_mutual_information, finite_kl, scale_term

Floats = NDArray[np.float64]
Noise = Literal["gaussian", "laplace"]


def calibrated_charge(t: float, T: float, n: int) -> float:
    """Stability of one calibrated answer: the proof of Prop. M before it is rounded to zeta.

    B = (2t + (T/t) (n/(n-1))^2 (1 + g/3)) (1 + g) / (4 (n-1)^2) with g = T n / (t (n-1)^2), for every
    sample of n rows and every query into [0, 1]. It never depends on data.
    """
    g = _variance_change(t, T, n)
    return (2 * t + (T / t) * (n / (n - 1)) ** 2 * (1 + g / 3)) * (1 + g) / (4 * (n - 1) ** 2)


def stated_calibrated_charge(t: float, T: float, n: int) -> float:
    """Prop. M as stated: (2t + (T/t)(1 + zeta)) (1 + zeta) / (4 n^2), 1 + zeta = (n/(n-1))^2 (1 + g)."""
    g = _variance_change(t, T, n)
    growth = (n / (n - 1)) ** 2 * (1 + g)
    return (2 * t + (T / t) * growth) * growth / (4 * n**2)


def simple_calibrated_charge(t: float, T: float, n: int) -> float:
    """Prop. M, 'in particular': max{t, T/t} / n^2, for n >= 20 and T/t <= n/10."""
    _variance_change(t, T, n)
    if not (n >= 20 and t * n / 10 >= T):
        raise InvalidArgument(f"n == {n}, T/t == {T / t}: Prop. M's short form needs n >= 20 and T/t <= n/10.")
    return max(t, T / t) / n**2


def interaction_charge(t: float, T: float, n: int, k: int) -> float:
    """Theorem isklas: k adaptive answers are k t / n^2 stable, for n >= 20 and T <= min{t^2, t n/10}."""
    _variance_change(t, T, n)
    if not (n >= 20 and k >= 0 and min(t * t, t * n / 10) >= T):
        raise InvalidArgument(
            f"n == {n}, k == {k}, t == {t}, T == {T}: Theorem isklas needs n >= 20, k >= 0 and "
            f"T <= min(t^2, t n/10) == {min(t * t, t * n / 10)}."
        )
    return k * t / n**2


def laplace_charge(t: float, T: float, n: int) -> float:
    """Stability of one answer with Laplace noise of scale b = sqrt(max(sigma^2/t, 1/T)): Prop. M's analogue.

    B = ((t/2) sqrt(1+g) + (T/t) (n/(n-1))^2 min{1/7, (1 + g/6)/8} (1+g)) / (n-1)^2; ours, proved in
    docs/paper/stability.md from Lemma laplace-kl and the bound of `laplace_kl_sharp_bound`.
    """
    g = _variance_change(t, T, n)
    scale = (T / t) * (n / (n - 1)) ** 2 * min(1 / 7, (1 + g / 6) / 8) * (1 + g)
    return (t / 2 * math.sqrt(1 + g) + scale) / (n - 1) ** 2


def fixed_gaussian_charge(sd: float, n: int) -> float:
    """Gaussian noise of a fixed sd: 1/(8 sd^2 n^2) (Def. klas with M_i's missing value replaced by 1/2)."""
    _check_fixed(sd, n)
    return (1 / (n * sd)) ** 2 / 8


def fixed_laplace_charge(scale: float, n: int) -> float:
    """Laplace noise of a fixed scale b: e^-u - 1 + u at u = 1/(2 n b), the same way."""
    _check_fixed(scale, n)
    return exp_gap(1 / (2 * n * scale))


def average_kl(
    values: ArrayLike,
    t: float,
    T: float,
    *,
    noise: Noise = "gaussian",
    moments: tuple[float, float] | None = None,
) -> float:
    """(1/n) sum_i D(M(s) || M(s_-i)) of Def. klas, exactly, for one sample's query values: the left of Prop. M.

    One pass over the values, given their (mean, variance), by eqs. (mudiff) and (sigmadiff):
    mu - mu_-i = (x_i - mu)/(n-1) and sigma^2 - sigma_-i^2 = ((n/(n-1)) (x_i - mu)^2 - sigma^2)/(n-1).
    """
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not ((x >= 0) & (x <= 1)).all():
        raise InvalidArgument("values must be one row of numbers in [0, 1].")
    n = x.size
    _variance_change(t, T, n)
    mean, variance = (float(x.mean()), float(x.var())) if moments is None else moments
    shift, variance_shift = leave_one_out_changes(x, mean, variance)
    return average_kl_of_changes(variance, shift, variance_shift, t, T, noise=noise)


def leave_one_out_changes(values: Floats, mean: float, variance: float) -> tuple[Floats, Floats]:
    """mu - mu_-i and sigma^2 - sigma_-i^2 for every row i (eqs. (mudiff) and (sigmadiff))."""
    n = values.size
    centred = values - mean
    return centred / (n - 1), (n / (n - 1) * centred**2 - variance) / (n - 1)


def average_kl_of_changes(
    variance: float,
    shift: Floats,
    variance_shift: Floats,
    t: float,
    T: float,
    *,
    noise: Noise = "gaussian",
) -> float:
    """The average KL of any statistic (mu, sigma^2) answered as Figure 1 does, from its leave-one-out changes."""
    own, left_out = max(variance / t, 1 / T), (variance - variance_shift) / t
    other = np.maximum(left_out, 1 / T)
    ratio = own / other
    # Where no maximum switches, the difference of variances comes from the shift, without cancellation.
    steady = (variance / t >= 1 / T) & (left_out >= 1 / T)
    minus_one = np.where(steady, variance_shift / t, own - other) / other
    if noise == "gaussian":
        terms = (shift**2 / other + scale_term(ratio, minus_one)) / 2
    else:
        root = np.sqrt(ratio)  # b/b_-i, and b/b_-i - 1 = (ratio - 1)/(1 + root)
        terms = root * exp_gap_each(np.abs(shift) / math.sqrt(own)) + scale_term(root, minus_one / (1 + root))
    return float(terms.mean())


def kl_stability(channel: ArrayLike, references: list[Floats]) -> float:
    """Def. klas on a finite space: the largest (1/n) sum_i D(M(s) || M_i(s_-i)) over all samples s.

    `channel[s_1, ..., s_n, y]` is Pr(M(s) = y); `references[i]` has the same axes without the i-th.
    """
    channel = np.asarray(channel, dtype=np.float64)
    n = channel.ndim - 1
    if len(references) != n:
        raise InvalidArgument(f"{len(references)} references for {n} rows: needs one M_i per row.")
    parts = [finite_kl(channel, np.expand_dims(reference, i)) for i, reference in enumerate(references)]
    return float(np.mean(parts, axis=0).max())


def information_stability(channel: ArrayLike, law: ArrayLike) -> float:
    """Def. mis at one law of S on a finite space: (1/n) sum_i I(M(S); S_i | S_-i). M is stable if it is for all laws.

    `channel[s_1, ..., s_n, y]` is Pr(M(s) = y); `law[s_1, ..., s_n]` need not be a product.
    """
    channel, law = np.asarray(channel, dtype=np.float64), np.asarray(law, dtype=np.float64)
    n, joint = law.ndim, law[..., None] * channel
    values, outcomes = channel.shape[0], channel.shape[-1]
    conditioned = (np.moveaxis(joint, i, -2).reshape(-1, values, outcomes) for i in range(n))
    return sum(map(conditional_mutual_information, conditioned)) / n


def _variance_change(t: float, T: float, n: int) -> float:
    """g, after checking the conditions that every form of Prop. M needs."""
    if n < 2 or not (t > 0.0 and T > 0.0):
        raise InvalidArgument(f"n == {n}, t == {t}, T == {T}: needs n >= 2, t > 0 and T > 0.")
    g = T * n / (t * (n - 1) ** 2)
    if not math.isfinite(g):
        raise InvalidArgument(f"T n / (t (n-1)^2) is not finite at t == {t}, T == {T}, n == {n}.")
    return g


def _check_fixed(scale: float, n: int) -> None:
    if not (n >= 1 and 0.0 < scale < math.inf):
        raise InvalidArgument(f"n == {n}, noise scale == {scale}: needs n >= 1 and a positive, finite scale.")
