"""An analyst that learns where noise is fine, against settled charges; more games by hand in `settled.py`.

Seeds are fixed. If the theorem holds, a miss rate is at most beta, and a case fails here with probability below 1e-8.
"""

import numpy as np
import pytest
from scipy.stats import binom

from theory.attack.settled import push

RUNS = 25


@pytest.mark.parametrize("beta", [0.05, 0.5, 0.8])
@pytest.mark.parametrize("hinted", [False, True])
def test_settled_charges_under_attack(beta: float, hinted: bool) -> None:
    ratios = push(4096, 40, beta, 4, hinted, RUNS, np.random.default_rng(round(100 * beta)))
    misses = int((ratios > 1).sum())
    assert binom.sf(misses - 1, RUNS, beta) > 1e-8
    assert ratios.max() > 0.4  # it is no straw man
