"""An analyst against numbers whose noise follows their deviation (17.10): learn where noise is fine, then push.

By hand, with more games: PYTHONPATH=src:tests python -m theory.attack.numbers 1000

Features are public and labels are fair coins. The analyst asks numbers of a small deviation, whose noise is fine, each
of which learns a direction of the labels; in the end it pushes the likeliest labels of all rows into one number, of a
small deviation or of the largest. Everything goes through the mechanisms as a guard runs them.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import hadamard
from scipy.stats import binom

from afresh.mechanisms.base import at_levels
from afresh.mechanisms.endless import plan_endless
from afresh.mechanisms.settled import plan_settled
from afresh.mechanisms.symmetrized import plan_symmetrized
from afresh.moments import Moments

Floats = NDArray[np.float64]
Case = tuple[str, int, int, float, float]
CASES: tuple[Case, ...] = (
    *(
        (method, 32_768, 100, spread, last)
        for method in ("settled", "symmetrized")
        for spread, last in ((0.05, 0.5), (0.05, 0.05))
    ),
    ("endless", 131_072, 100, 0.05, 0.5),
    ("symmetrized", 8_192, 400, 0.05, 0.5),  # where only the certificate follows the deviation, nearly
    ("symmetrized", 8_192, 400, 0.05, 0.05),
    ("symmetrized", 32_768, 10, 0.05, 0.5),  # smaller first draws
    ("symmetrized", 32_768, 10, 0.05, 0.05),
    ("endless", 16_384, 100, 0.05, 0.05),
    ("settled", 4_096, 40, 0.1, 0.1),
    ("symmetrized", 8_192, 2_000, 0.05, 0.5),  # where room for numbers makes plain answers more than 1% wider
    ("symmetrized", 4_096, 1_000, 0.05, 0.05),  # and first draws are larger
    ("symmetrized", 2_048, 3, 0.05, 0.5),  # very few questions: a smaller bend and more noise
    ("symmetrized", 2_048, 3, 0.05, 0.05),
    ("settled", 2_048, 2, 0.05, 0.5),
    ("settled", 2_048, 2, 0.05, 0.05),
)


def planned(method: str, n: int, k: int, beta: float) -> Any:
    """The mechanism of numbers."""
    made: Any = plan_endless(n, beta) if method == "endless" else None
    made = made or (plan_settled if method == "settled" else plan_symmetrized)(n, k, beta)
    found = at_levels(made, None)
    assert found is not made
    return found


def push(case: Case, beta: float, runs: int, seed: int) -> Floats:
    """The largest distance of a truth from its answer, in half-widths, of each game."""
    method, n, k, spread, last = case
    m, rng = planned(method, n, k, beta), np.random.default_rng(seed)
    size = 2 ** int(np.log2(n))
    signs = hadamard(min(size, max(128, 2 ** int(k - 1).bit_length()))).astype(np.float64)[1:]
    worst = np.zeros(runs)
    for run in range(runs):
        sigma = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        mean, released = np.zeros(n), list[Any]()
        for place in range(1, k + 1):
            if place < k:
                a, width = np.tile(signs[place % len(signs)], n // signs.shape[1]), spread
            else:
                a, width = np.where(mean >= 0, 1.0, -1.0), last
            total = float(a @ sigma)
            moments = Moments(n, n / 2 + width * total, n / 4 + width * total + n * width * width)
            drawn = m.release(moments, rng.standard_normal(4).tolist())
            drawn = drawn(released) if callable(drawn) else drawn
            released.append(drawn)
            low, high = m.interval(drawn)
            value = m.value(drawn)
            worst[run] = max(worst[run], (value - 0.5) / (value - low), (0.5 - value) / (high - value))
            noise = m.noise_in(drawn)
            t = width**2 / (n * noise**2)  # directions are orthogonal
            mean += t / (1 + t) * (value - 0.5) / width * a
    return worst


def main(runs: int = 1000) -> None:
    """Print the misses at 5, 50 and 80%."""
    for beta in (0.05, 0.5, 0.8):
        for seed, case in enumerate(CASES):
            ratios = push(case, beta, runs, seed)
            misses = int((ratios > 1).sum())
            alarm = "ALARM" if binom.sf(misses - 1, runs, beta) < 1e-7 else ""
            print(f"{beta:4} {case}: misses {misses} of {runs}, worst {ratios.max():.3f} {alarm}", flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
