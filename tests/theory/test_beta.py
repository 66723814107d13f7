"""Quantiles of the beta distribution, against mpmath, and against scipy where arrays are large."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.special import betaincinv

from afresh.theory import beta

LEVELS = (0.4, 0.05, 1e-3, 5e-5, 1e-9, 1e-30)


def cases(rows: int) -> list[tuple[float, float, float]]:
    """Hits of every kind, whole or not, at every level."""
    hits = {1.0, 2.0, rows // 100 + 1.0, rows // 10 + 0.3, rows / 2, rows * 0.9, float(rows)}
    return [(hit, rows - hit + 1, level) for hit in sorted(hits) if 0 < hit <= rows for level in LEVELS]


@pytest.mark.parametrize("rows", [1, 2, 20, 500])
def test_quantiles_have_their_probability(rows: int) -> None:
    """Within 1e-10 of it, in both tails."""
    with mp.workdps(30):
        for a, b, level in cases(rows):
            one = np.array([a]), np.array([b]), np.array([level])
            low, high = float(beta.lower_quantile(*one)[0]), float(beta.upper_quantile(*one)[0])
            assert abs(mp.betainc(a, b, 0, low, regularized=True) / level - 1) < 1e-10 + 1e-15 * b / (1 - low + 1e-300)
            # 1 - I_x(a, b) = I_{1-x}(b, a); a float cannot say how near 1 a limit is: so much is lost.
            lost = 1e-15 * (a / high + b / max(1 - high, 1e-300))
            assert abs(mp.betainc(b, a, 0, 1 - mp.mpf(high), regularized=True) / level - 1) < 1e-10 + lost


@pytest.mark.parametrize("rows", [40_000, 10**6, 10**9])
def test_very_many_rows(rows: int) -> None:
    """As scipy has it: mpmath does not come that far."""
    for a, b, level in cases(rows):
        one = np.array([a]), np.array([b]), np.array([level])
        assert float(beta.lower_quantile(*one)[0]) == pytest.approx(float(betaincinv(a, b, level)), rel=1e-9)


def test_few_and_many_agree() -> None:
    """Few are found here and many by scipy; a limit does not depend on which."""
    a, b, level = (np.array(each) for each in zip(*cases(2000), strict=True))
    assert a.size > 32
    for function in (beta.lower_quantile, beta.upper_quantile):
        singly = [float(function(*(np.array([x]) for x in each))[0]) for each in zip(a, b, level, strict=True)]
        np.testing.assert_allclose(singly, function(a, b, level), rtol=1e-10)
