"""An analyst against charges that are settled after the answer (17.10): learn where noise is fine, then push.

By hand, with more games: PYTHONPATH=src:tests python -m theory.attack.settled 1000

Features are public and labels are fair coins. A question about one of several blocks of rows has a small mean, so its
noise is fine; it learns a direction of its block. Lies about the mean buy finer noise still, while there is budget. In
the end the analyst pushes the likeliest labels of all rows into one question.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.stats import binom

from afresh.theory.symmetrized.common import pairs_within
from afresh.theory.symmetrized.settled import settled_plan
from afresh.theory.symmetrized.steps import SHARE, times

Floats = NDArray[np.float64]


def push(n: int, k: int, beta: float, blocks: int, hinted: bool, runs: int, rng: np.random.Generator) -> Floats:
    """The largest |clip(y) - P|/(f s h(P)) of each game. With `hinted`, every question is said to be the rarest."""
    size, truth = n // blocks, 1 / (2 * blocks)
    found = settled_plan(n, k, beta, (0.5, truth))
    c, s = found.common.constants, found.s
    pairs = {p: float(pairs_within(c, p, p)) for p in (truth, 0.5)}

    def half_width(p: float, step: int) -> float:
        f = times(step)
        return s * f * float(found.common.widths(np.sqrt(c.scaled(pairs[p], s * f)))[0])

    A = hadamard(size)[1:].astype(np.float64)
    worst = np.zeros(runs)
    for run in range(runs):
        sigma = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        mean, spent = np.zeros(n), 0.0
        for place in range(1, k + 1):
            if place < k:
                rows = slice((place - 1) % blocks * size, ((place - 1) % blocks + 1) * size)
                a, p = A[(place - 1) // blocks], truth
            else:
                rows, p = slice(0, n), 0.5
                a = np.where(mean >= 0, 1.0, -1.0)
            sample = p + a @ sigma[rows] / (2 * n)
            first = sample + found.coarse * rng.normal()
            wanted = found.step_about(0.0) if hinted else found.step_after(min(max(first, 0.0), 1.0))
            step = min(wanted, found.admitted(spent, k - place, hinted=hinted))
            y = sample + s * times(step) * rng.normal()
            read = min(max(y, 0.0), 1.0)
            spent += found.charged(found.units(read, step, hinted=hinted))
            worst[run] = max(worst[run], abs(read - p) / half_width(p, step))
            v = times(step) ** -2 + (0.0 if hinted else SHARE)
            both = y if hinted else (y * times(step) ** -2 + first * SHARE) / v
            t = len(a) * v / (4 * n * n * s * s)  # directions are orthogonal
            mean[rows] += t / (1 + t) * 2 * n / len(a) * (both - p) * a
        assert spent <= k
    return worst


CASES = ((4096, 60, 4, False), (4096, 60, 4, True), (16384, 120, 16, False), (16384, 120, 16, True))


def main(runs: int = 1000) -> None:
    """Print the misses at 5, 50 and 80%."""
    rng = np.random.default_rng(2026)
    for beta in (0.05, 0.5, 0.8):
        for case in CASES:
            ratios = push(case[0], case[1], beta, case[2], case[3], runs, rng)
            misses = int((ratios > 1).sum())
            alarm = "ALARM" if binom.sf(misses - 1, runs, beta) < 1e-7 else ""
            print(f"{beta:4} {case}: misses {misses} of {runs}, worst {ratios.max():.3f} {alarm}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
