"""Analysts that try to make the intervals of Theorem S miss.

By hand, with more games: PYTHONPATH=src:tests python -m theory.attack.symmetrized 4000

An attack plays `runs` games at once and returns, for each game, the largest |clip(y_j) - P_j|/(s h_j) over its answers:
a miss where it exceeds 1. Every analyst spends its answers on learning the rows along orthogonal directions, which is
what Lemma M says is best, and then pushes along the posterior mean; all truths are known exactly by symmetry.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.stats import binom

from afresh.theory.symmetrized.adaptive import AdaptivePlan, adaptive_plan
from afresh.theory.symmetrized.common import Common, common_plan
from afresh.theory.symmetrized.comparisons import ComparisonPlan, comparison_plan
from afresh.theory.symmetrized.endless import open_half_widths
from afresh.theory.symmetrized.fixed import Plan, log_failure, plan, solve_width
from afresh.theory.symmetrized.unequal import Spent, UnequalPlan, unequal_plan

Floats = NDArray[np.float64]


def far(values: Floats, truths: Floats | float, half_widths: Floats) -> Floats:
    """The largest |clip(y) - P|/H of each game."""
    ratio: Floats = np.max(np.abs(np.clip(values, 0, 1) - truths) / half_widths, axis=1)
    return ratio


def _signs(x: Floats) -> Floats:
    return np.where(x >= 0, 1.0, -1.0)


def push_public(half_widths: Floats, n: int, s: float, runs: int, rng: np.random.Generator, pushes: int = 1) -> Floats:
    """Features public, labels fair coins: orthogonal questions, then the signs of the posterior mean, several times.

    psi_j(i, label) = (1 + a_ij sigma_i)/2, so every truth is 1/2. After each push the mean is corrected along it.
    """
    k = len(half_widths)
    learn = k - pushes
    A = hadamard(n)[1 : learn + 1].astype(np.float64)
    sigma = _signs(rng.normal(size=(runs, n)))
    y = np.empty((runs, k))
    y[:, :learn] = 0.5 + sigma @ A.T / (2 * n) + s * rng.normal(size=(runs, learn))
    t = 1 / (4 * n * s * s)  # |B_l|^2; the directions are orthogonal
    mean = (y[:, :learn] - 0.5) / s @ A / (2 * n * s) / (1 + t)
    for j in range(learn, k):
        a = _signs(mean)
        y[:, j] = 0.5 + (a * sigma).mean(axis=1) / 2 + s * rng.normal(size=runs)
        expected = 0.5 + (a * mean).mean(axis=1) / 2
        mean += (t / (1 + t)) * 2 * (y[:, j] - expected)[:, None] * a
    return far(y, 0.5, half_widths)


def majority(half_widths: Floats, n: int, s: float, runs: int, rng: np.random.Generator, soft: bool = False) -> Floats:
    """Rows of independent fair bits, hidden: ask every bit, then the (soft) majority weighted by the answers."""
    k = len(half_widths)
    y = np.empty((runs, k))
    for run in range(runs):
        bits = rng.integers(0, 2, size=(n, k - 1)) * 2.0 - 1.0
        y[run, :-1] = 0.5 + bits.mean(axis=0) / 2 + s * rng.normal(size=k - 1)
        score = bits @ (y[run, :-1] - 0.5)
        vote = np.clip(0.5 + 0.4 * score / score.std(), 0, 1) if soft else (score > 0) * 1.0
        y[run, -1] = vote.mean() + s * rng.normal()
    return far(y, 0.5, half_widths)


def repeat(half_widths: Floats, n: int, s: float, runs: int, rng: np.random.Generator) -> Floats:
    """One question again and again: the noise alone, and one sample's error."""
    mean = rng.binomial(n, 0.5, size=(runs, 1)) / n
    return far(mean + s * rng.normal(size=(runs, len(half_widths))), 0.5, half_widths)


def rare_union(found: AdaptivePlan, n: int, runs: int, rng: np.random.Generator, last: float) -> Floats:
    """Disjoint rare events, then the union of those that looked most frequent: widths that follow the mean."""
    c = found.constants
    k, s = c.count, c.s
    pick = max(round(last * (k - 1)), 1)
    p = 1 / (k - 1)
    counts = rng.multinomial(n, np.full(k - 1, p), size=runs)
    y = counts / n + s * rng.normal(size=(runs, k - 1))
    top = np.argsort(y, axis=1)[:, -pick:]
    final = np.take_along_axis(counts, top, axis=1).sum(axis=1) / n + s * rng.normal(size=runs)
    truth = np.append(np.full(k - 1, p), pick * p)
    probes = sorted({1, (k - 1) // 2, k - 1})  # h_j(P) takes a moment, so only these and the last answer are judged
    kept = [j - 1 for j in probes]
    half_widths = np.array([s * float(found.width(p, j)[0]) for j in probes] + [s * float(found.width(pick * p, k)[0])])
    return far(np.column_stack([y[:, kept], final]), truth[[*kept, k - 1]], half_widths)


def half_width_at(found: Common, truth: float, times: float = 1.0) -> float:
    """s f h(P) of an answer of noise s f, by the one curve."""
    c = found.constants
    pairs = float(found.pairs_within(truth, truth))
    return c.s * times * float(found.widths(math.sqrt(c.scaled(pairs, c.s * times)))[0])


def rare_union_common(found: Common, runs: int, rng: np.random.Generator, last: float) -> Floats:
    """As rare_union, by the one curve, and every answer is judged."""
    c = found.constants
    n, k, s = c.n, c.count, c.s
    pick, p = max(round(last * (k - 1)), 1), 1 / (k - 1)
    counts = rng.multinomial(n, np.full(k - 1, p), size=runs)
    y = counts / n + s * rng.normal(size=(runs, k - 1))
    top = np.argsort(y, axis=1)[:, -pick:]
    final = np.take_along_axis(counts, top, axis=1).sum(axis=1) / n + s * rng.normal(size=runs)
    truth = np.append(np.full(k - 1, p), pick * p)
    halves = np.append(np.full(k - 1, half_width_at(found, p)), half_width_at(found, pick * p))
    return far(np.column_stack([y, final]), truth, halves)


def push_unlike(found: Common, runs: int, rng: np.random.Generator, coins: float, times: float) -> Floats:
    """Features public; only a part of the labels are coins, the others are known: push where they are not.

    Answers before the last have `times` the noise, and count so much less.
    """
    c = found.constants
    n = c.n
    learn = min(math.floor((c.count - 1) * times**2), found.answers - 1, n - 1)
    size = 1 << (round(coins * n).bit_length() - 1)
    learn = min(learn, size - 1)
    A = hadamard(size)[1 : learn + 1].astype(np.float64)
    sigma = _signs(rng.normal(size=(runs, size)))
    noise = c.s * times
    y = sigma @ A.T / (2 * n) + noise * rng.normal(size=(runs, learn))
    mean = y @ A
    final = (_signs(mean) * sigma).sum(axis=1) / (2 * n) + c.s * rng.normal(size=runs)
    halves = np.append(np.full(learn, half_width_at(found, 0.5, times)), half_width_at(found, 0.5))
    return far(0.5 + np.column_stack([y, final]), 0.5, halves)


def push_unequal(found: UnequalPlan, runs: int, rng: np.random.Generator) -> Floats:
    """As push_public, with noises that jump between s/2 and 2 s and a last answer of the finest that is admitted."""
    c = found.constants
    n = c.n
    spent = Spent()
    noises: list[float] = []
    halves: list[float] = []
    while len(noises) < min(c.count - 1, n - 1):
        s = c.s * (0.5, 1.0, 2.0)[len(noises) % 3]
        if not found.admits(spent, s) or spent.units > c.count - 5:
            break
        judged = len(noises) % 12 < 3  # a half-width takes a moment, so every fourth of each noise is judged
        halves.append(found.half_width(c.pairs, spent, s) if judged else math.inf)
        noises.append(s)
        spent = found.after(spent, s, c.pairs)
    halves.append(found.half_width(c.pairs, spent, c.s / 2))
    noise = np.array(noises)
    A = hadamard(n)[1 : len(noises) + 1].astype(np.float64)
    sigma = _signs(rng.normal(size=(runs, n)))
    y = 0.5 + sigma @ A.T / (2 * n) + noise * rng.normal(size=(runs, len(noises)))
    t = 1 / (4 * n * noise**2)
    mean = ((y - 0.5) / (2 * n * noise**2) / (1 + t)) @ A
    final = 0.5 + (_signs(mean) * sigma).mean(axis=1) / 2 + c.s / 2 * rng.normal(size=runs)
    return far(np.column_stack([y, final]), 0.5, np.array(halves))


def push_comparisons(found: ComparisonPlan, share: float, runs: int, rng: np.random.Generator, best: bool) -> Floats:
    """Models that disagree on a share of public rows: learn the labels there, then disagree where it pays.

    best: questions walk over blocks of rows, and the last pair of models differs on the rows that are known best;
    otherwise all pairs differ on the same rows. d in [-1, 1] has the truth 0.
    """
    n, k = found.constants.n, found.constants.count
    size = round(share * n)
    block = 1 << (size.bit_length() - 1)  # a Hadamard matrix needs a power of two
    blocks = n // block if best else 1
    s = found.noise(block / n)
    half = 2 * s * found.width
    each = (k - 1) // blocks
    H = hadamard(block)[:each].astype(np.float64)
    sigma = _signs(rng.normal(size=(runs, blocks, block)))
    y = sigma @ H.T / n + 2 * s * rng.normal(size=(runs, blocks, each))
    mean = y @ H
    flat, signal = mean.reshape(runs, -1), sigma.reshape(runs, -1)
    top = np.argsort(np.abs(flat), axis=1)[:, -block:]
    chosen = _signs(np.take_along_axis(flat, top, axis=1)) * np.take_along_axis(signal, top, axis=1)
    final = chosen.sum(axis=1) / n + 2 * s * rng.normal(size=runs)
    account, one = np.zeros(n), np.zeros(n)
    one[:block] = 1.0
    account[:block] = (each if best else k - 1) * found.charge(one)[:block]
    assert found.admits(account, one)
    ratio: Floats = np.maximum(np.abs(y).reshape(runs, -1).max(axis=1), np.abs(final)) / half
    return ratio


def functional(n: int, k: int, s: float, target: float, runs: int, rng: np.random.Generator) -> tuple[float, float]:
    """E (|x_k| - h + alpha)_+/alpha of an analyst that is told the pairs, all of which differ; and its standard error.

    D = 1 is then sure, and the theorem says at most F_k(h) = target, for the alpha that it chose (about 1/3).
    """
    q = (k + 3) / (4 * n * n * s * s)
    gam = 1 / (1 - q)
    t = gam / (4 * n * s * s)
    kap = 0.5 * gam * q * (k + 3) / (4 * n * s * s)
    tau = (k - 1) * t / (1 + t)
    h = float(solve_width(math.log(target), math.sqrt(t), tau, kap))
    A = hadamard(n)[1:k].astype(np.float64)
    sigma = _signs(rng.normal(size=(runs, n)))
    z = sigma @ A.T / (2 * n * s) + rng.normal(size=(runs, k - 1))
    mean = z @ A
    x = 2 * (_signs(mean) * sigma).sum(axis=1) / (2 * n * s) + rng.normal(size=runs)
    # Any alpha is a bound of Pr(|x| > h); the least over alphas is what F bounds.
    values = [np.maximum(np.abs(x) - h + a, 0) / a for a in (0.25, 0.35, 0.5, 0.8)]
    least = min(values, key=lambda v: float(v.mean()))
    assert float(log_failure(h, math.sqrt(t), tau, kap)) <= math.log(target) + 1e-9
    return float(least.mean()), float(least.std() / math.sqrt(runs))


def two_draws(
    found: UnequalPlan, spent: Spent, truth: float, ratio: float, rng: np.random.Generator
) -> tuple[float, float]:
    """Noise calibrated by a coarse first draw of noise ratio s: the units charged for both, and the half-width."""
    c = found.constants
    coarse = ratio * c.s
    mean = truth + math.sqrt(truth * (1 - truth) / c.n) * rng.normal()
    guess = min(max(mean + coarse * rng.normal(), coarse / 2), 1 - coarse / 2)
    s = found.noise_for(min(guess, 1 - guess), spent, units=1 / (1 + 1 / ratio**2))
    entered = found.after(spent, coarse, c.pairs, counted=False)
    interval = found.interval(mean + s * rng.normal(), entered, s)
    pairs = found.pairs_of(interval)
    after = found.after(found.after(spent, coarse, pairs, counted=False), s, pairs)
    return after.units - spent.units, (interval[1] - interval[0]) / 2


def games(beta: float, runs: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Every attack on plans of failure beta: name and the worst ratio of each game."""
    found: dict[str, Floats] = {}
    for n, k in ((512, 60), (1024, 200), (2048, 400)):
        for shares in ("constant width", "equal"):
            p: Plan = plan(n, k, beta, shares=shares)
            s, widths = p.constants.s, p.constants.s * p.widths(np.arange(1, k + 1))
            found[f"push {n} {k} {shares}"] = push_public(widths, n, s, runs, rng)
            found[f"push often {n} {k} {shares}"] = push_public(widths, n, s, runs, rng, pushes=k // 3)
            found[f"repeat {n} {k} {shares}"] = repeat(widths, n, s, runs, rng)
            if n <= 512 and runs <= 1000:
                found[f"majority {n} {k} {shares}"] = majority(widths, n, s, runs, rng)
                found[f"soft majority {n} {k} {shares}"] = majority(widths, n, s, runs, rng, soft=True)
    for n, expected in ((1024, 50),):
        widths = open_half_widths(n, 0.03, beta, expected, np.arange(1, 101))
        found[f"push endless {n}"] = push_public(widths, n, 0.03, runs, rng)
    for n, k in ((1024, 41), (2048, 101)):
        adaptive = adaptive_plan(n, k, beta)
        c = adaptive.constants
        for last in (0.02, 0.1, 0.5):
            found[f"rare union {n} {k} {last}"] = rare_union(adaptive, n, runs, rng, last)
        half = np.array([c.s * float(adaptive.width(0.5, j)[0]) for j in (1, k)])
        found[f"push adaptive {n} {k}"] = push_public(np.r_[np.full(k - 1, half.max()), half[1]], n, c.s, runs, rng)
    for n, k in ((1024, 41), (2048, 101)):
        common, _ = common_plan(n, k, beta, answers=3 * k)
        for last in (0.02, 0.1, 0.5):
            found[f"one curve, rare union {n} {k} {last}"] = rare_union_common(common, runs, rng, last)
        for coins, times in ((1.0, 1.0), (0.5, 1.0), (1.0, 1.6)):
            found[f"one curve, push {n} {k} {coins} {times}"] = push_unlike(common, runs, rng, coins, times)
    for n, k in ((1024, 100), (2048, 200)):
        unequal = unequal_plan(n, k, beta, plan(n, k, beta).constants.s)
        found[f"push unequal {n} {k}"] = push_unequal(unequal, runs, rng)
    for n, share in ((4096, 0.125), (2048, 0.25)):
        pairs = comparison_plan(n, 120, beta, share, least=share / 2)
        found[f"comparisons, same rows {n}"] = push_comparisons(pairs, share, runs, rng, best=False)
        found[f"comparisons, best rows {n}"] = push_comparisons(pairs, share, runs, rng, best=True)
    return found


def main(runs: int = 4000) -> None:
    """Print every attack's misses at 5, 50 and 80%, and the functional of the last answer against F."""
    rng = np.random.default_rng(2026)
    for beta in (0.05, 0.5, 0.8):
        for name, ratios in games(beta, runs, rng).items():
            misses = int((ratios > 1).sum())
            alarm = "ALARM" if binom.sf(misses - 1, len(ratios), beta) < 1e-7 else ""
            print(f"{beta:4} {name:32} misses {misses:5} of {len(ratios)}, worst {ratios.max():.3f} {alarm}")
    for target in (0.05, 0.5, 0.8):
        for n, k, s in ((256, 100, 0.08), (1024, 200, 0.04), (1024, 400, 0.05)):
            value, error = functional(n, k, s, target, 5 * runs, rng)
            print(f"F = {target}: {n} {k} found {value:.4f} +- {error:.4f}")
    found = unequal_plan(10**5, 1000, 0.05, 0.0047, typical=(0.5,))
    c = found.constants
    late = Spent(998, 998.0, 998.0, 998 * c.step / (1 + c.step))
    for ratio in (2.0, 3.0, 4.5):
        for truth in (0.5, 0.1, 0.01):
            units, half = np.array([two_draws(found, late, truth, ratio, rng) for _ in range(20)]).T
            print(
                f"two draws, coarse {ratio} s, {truth}: units {units.mean():.2f}, at most {units.max():.2f};"
                f" half-width {half.mean():.4f} ({half.min():.4f} to {half.max():.4f})"
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
