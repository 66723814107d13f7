"""The special functions, against mpmath."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from afresh.theory import special

FROM_0 = np.concatenate([np.linspace(0, 7, 150), np.geomspace(7, 90, 40)])
BOTH = np.concatenate([-np.linspace(0, 8, 60), np.linspace(0, 26, 120), [1e-300, 1e-9, 0.5, 1.0]])
CASES: list[tuple[str, Callable[[Any], Any], Iterable[float], float]] = [
    ("erfc", mp.erfc, BOTH, 1e-15),
    (
        "erfcx",
        lambda x: mp.exp(x * x) * mp.erfc(x),
        np.concatenate([np.linspace(0, 7, 150), np.geomspace(7, 90, 40)]),
        1e-15,
    ),
    ("ndtr", mp.ncdf, np.linspace(-37, 8, 150), 3e-13),  # x/sqrt(2) is rounded, as it is anywhere
    ("log_ndtr", lambda x: mp.log(mp.ncdf(x)), np.linspace(-37, 8, 150), 2e-14),
    ("gammaln", mp.loggamma, np.concatenate([np.geomspace(2.5, 1e10, 150), np.arange(3, 40)]), 4e-15),
    ("gammaln", mp.loggamma, np.geomspace(1e-3, 0.8, 40), 4e-15),
]


@pytest.mark.parametrize(("name", "exact", "points", "close"), CASES)
def test_is_as_good_as_it_says(name: str, exact: Callable[[Any], Any], points: Any, close: float) -> None:
    """Numbers and arrays alike, far into the tails."""
    function = getattr(special, name)
    singly = [function(float(x)) for x in points]
    together = singly if name == "log_ndtr" else function(np.asarray(points, dtype=float)).tolist()
    with mp.workdps(40):
        for x, one, other in zip(points, singly, together, strict=True):
            truth = exact(mp.mpf(float(x)))
            assert abs(mp.mpf(one) - truth) <= close * abs(truth)
            assert abs(mp.mpf(other) - truth) <= close * abs(truth)


def test_far_out() -> None:
    """Where the series take over, and where nothing is left."""
    with mp.workdps(40):
        for x in (1e3, 1e6, 1e9):
            z = 1 / (2 * mp.mpf(x) ** 2)
            assert special.erfcx(x) == pytest.approx(float((1 - z + 3 * z * z) / (x * mp.sqrt(mp.pi))), rel=2e-15)
    assert special.erfc(np.array([40.0, -40.0])).tolist() == [0.0, 2.0]
    assert special.ndtr(np.array([-50.0, 50.0])).tolist() == [0.0, 1.0]


def test_ndtri() -> None:
    """Phi of it is p, as nearly as a float can say: an ulp of z moves Phi by about z^2 ulps."""
    with mp.workdps(40):
        for p in [*np.geomspace(1e-300, 0.5, 120), *(1 - np.geomspace(1e-15, 0.49, 60))]:
            z, truth = special.ndtri(float(p)), mp.mpf(float(p))
            assert abs(mp.ncdf(mp.mpf(z)) - truth) <= 1e-15 * max(1.0, z * z) * min(truth, 1 - truth)
    assert (special.ndtri(0.0), special.ndtri(1.0)) == (-math.inf, math.inf)
    assert math.isnan(special.ndtri(1.5))


def test_stirling_rest_and_log_sum_exp() -> None:
    """What Stirling's formula leaves, and a sum of exponentials that would overflow."""
    with mp.workdps(40):
        for x in np.geomspace(0.1, 1e9, 80):
            z = mp.mpf(float(x))
            rest = mp.loggamma(z) - ((z - 0.5) * mp.log(z) - z + mp.log(2 * mp.pi) / 2)
            assert special.stirling_rest(float(x)) == pytest.approx(float(rest), abs=1e-14)
    assert special.log_sum_exp([1000.0, 1000.0, 5.0], [1.0, 3.0, 0.0]) == pytest.approx(1000 + math.log(4), rel=1e-15)
    assert special.log_sum_exp([3.0], [0.0]) == -math.inf
