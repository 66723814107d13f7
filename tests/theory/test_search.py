"""The small searches, against scipy's and closed forms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from scipy.optimize import minimize_scalar

from afresh.theory.search import minimize_between, minimize_simplex, root_between


@pytest.mark.parametrize("centre", [-4.9, -1.3, 0.0, 0.7, 4.0, 9.0])
def test_between(centre: float) -> None:
    """The bottom of a valley, or nearly the end that is nearest to it; step by step as scipy's."""

    def f(x: float) -> float:
        return math.cosh(x - centre) + 0.1 * x

    found = minimize_between(f, -5.0, 5.0, tolerance=1e-4)
    assert found == pytest.approx(min(centre - math.asinh(0.1), 5.0), abs=1e-3)
    theirs = minimize_scalar(f, bounds=(-5, 5), method="bounded", options={"xatol": 1e-4})
    assert found == pytest.approx(theirs.x, abs=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_simplex(size: int) -> None:
    """To the bottom, within its evaluations; never outside of bounds."""
    centre = [(-1.0) ** i * (i + 0.4) for i in range(size)]
    seen: list[list[float]] = []

    def f(point: Sequence[float]) -> float:
        seen.append(list(point))
        return sum((i + 1) * (x - c) ** 2 for i, (x, c) in enumerate(zip(point, centre, strict=True)))

    point, value = minimize_simplex(f, [1.0] * size, tolerance=1e-4, evaluations=600)
    assert value < 1e-4
    assert point == pytest.approx(centre, abs=0.02)
    assert len(seen) <= 600
    seen.clear()
    minimize_simplex(f, [0.0] * size, tolerance=1e-4, evaluations=50, bounds=[(-0.2, 0.2)] * size)
    assert len(seen) <= 50 + size
    assert all(-0.2 <= x <= 0.2 for each in seen for x in each)


@pytest.mark.parametrize("root", [-0.999, -0.2, 0.0, 0.5, 0.99])
def test_root(root: float) -> None:
    """Where it crosses, be it steep or flat; an end where it does not."""
    for f in (lambda x: math.exp(-9 * x) - math.exp(-9 * root), lambda x: root - x, lambda x: (root - x) ** 3):
        assert root_between(f, -1.0, 1.0, tolerance=1e-9) == pytest.approx(root, abs=1e-5)
    assert root_between(lambda x: -1.0 - x, -1.0, 1.0, tolerance=1e-9) == -1.0
    assert root_between(lambda x: 2.0 - x, -1.0, 1.0, tolerance=1e-9) == 1.0
