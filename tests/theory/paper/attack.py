"""An analyst that attacks the Main Theorem, simulated exactly where rows are drawn and in vectors where they are not.

Rows have independent fair bits. The analyst asks for the mean of `explore` of them, one by one; its weights are the
released deviations from 1/2, which are correlated with the sample's own. Then it asks for the weighted score,
shrunk into [0, 1], again and again: its sample mean is biased by about tau sd, and every repetition gets fresh noise,
of which the largest adds about tau sd more. Truths are 1/2 by symmetry, and deviations are known exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from afresh.theory.paper.generalization import MainTheorem

Floats = NDArray[np.float64]


def _answers(mean: Floats, variance: Floats, plan: MainTheorem, rng: np.random.Generator) -> Floats:
    """Figure 1."""
    return mean + rng.standard_normal(mean.shape) * np.sqrt(np.maximum(variance / plan.t, 1 / plan.T))


def _score(weights: Floats) -> tuple[Floats, Floats]:
    """The factor that keeps 1/2 + factor * weights @ (x - 1/2) within [0, 1], and that query's true deviation."""
    factor = 1 / np.abs(weights).sum(axis=-1)
    return factor, factor * np.sqrt((weights**2).sum(axis=-1)) / 2


def _ratio(error: Floats, sd: Floats, tau: float) -> Floats:
    return np.abs(error) / np.maximum(tau * sd, tau * tau)


def attack_rows(plan: MainTheorem, explore: int, trials: int, rng: np.random.Generator) -> Floats:
    """One line per trial: the largest ratio of Figure 1's errors, the final query's scaled generalization error
    (S[psi] - P[psi])/max(sd, tau), and its variance ratio (sd(psi(S))/max(sd, tau))^2. Rows are drawn."""
    lines = []
    for _ in range(trials):
        bits = np.unpackbits(rng.integers(0, 256, (plan.n, (explore + 7) // 8), dtype=np.uint8), axis=1)[:, :explore]
        mean = bits.mean(axis=0)
        v = _answers(mean, mean * (1 - mean), plan, rng)
        weights = v - 0.5
        factor, sd = _score(weights)
        score = 0.5 + factor * ((bits @ weights.astype(np.float32)).astype(np.float64) - weights.sum() / 2)
        repeated = _answers(np.full(plan.k - explore, score.mean()), np.asarray(score.var()), plan, rng)
        first = _ratio(v - 0.5, np.asarray(0.5), plan.tau).max()
        last = _ratio(repeated - 0.5, sd, plan.tau).max()
        scale = np.maximum(sd, plan.tau)
        lines.append((max(first, last), (score.mean() - 0.5) / scale, score.var() / scale**2))
    return np.array(lines)


def attack_counts(plan: MainTheorem, explore: int, trials: int, rng: np.random.Generator) -> Floats:
    """The largest ratio of each trial from bit counts alone: the final query's noise uses its true variance."""
    mean = rng.binomial(plan.n, 0.5, (trials, explore)) / plan.n
    v = _answers(mean, mean * (1 - mean), plan, rng)
    weights = v - 0.5
    factor, sd = _score(weights)
    final = 0.5 + factor * (weights * (mean - 0.5)).sum(axis=1)
    repeated = _answers(np.repeat(final[:, None], plan.k - explore, axis=1), sd[:, None] ** 2, plan, rng)
    first = _ratio(v - 0.5, np.asarray(0.5), plan.tau).max(axis=1)
    largest: Floats = np.maximum(first, _ratio(repeated - 0.5, sd[:, None], plan.tau).max(axis=1))
    return largest


def passive(plan: MainTheorem, p: float, trials: int, rng: np.random.Generator) -> Floats:
    """k fixed 0/1 questions with true mean p: what the noise alone does, at any variance."""
    mean = rng.binomial(plan.n, p, (trials, plan.k)) / plan.n
    v = _answers(mean, mean * (1 - mean), plan, rng)
    largest: Floats = _ratio(v - p, np.sqrt(np.asarray(p * (1 - p))), plan.tau).max(axis=1)
    return largest
