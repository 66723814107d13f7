"""Half-widths on plain floats are those of arrays, and the ends that are found cell by cell those of whole tables."""

import math
import random

import mpmath as mp
import numpy as np
import pytest

from afresh.errors import InvalidArgument
from afresh.theory.symmetrized.common import Common, Intervals, cell_of, common_plan, edge_of, highest, pairs_within
from afresh.theory.symmetrized.constants import constants
from afresh.theory.symmetrized.plain import excess, interpolate, inverse_log_excess, inverse_slope


@pytest.mark.parametrize("u", [-1e4, -200.0, -31.0, -29.0, -7.2, -7.0, -1.0, -1e-9, 0.0, 1e-9, 0.5, 3.0, 40.0])
def test_against_mpmath(u: float) -> None:
    with mp.workdps(40):
        mass = mp.ncdf(u) if u > -30 else mp.erfc(-mp.mpf(u) / mp.sqrt(2)) / 2
        bell = mp.npdf(u)
        total = bell + u * mass
        wanted = mp.log(total), mass / total, bell / mass
        for found, exact in zip(excess(u), wanted, strict=True):
            assert found == pytest.approx(float(exact), rel=2e-12, abs=2e-13)
    log, slope, _ = excess(u)
    assert inverse_slope(slope) == pytest.approx(u, rel=1e-9, abs=1e-9)
    assert inverse_log_excess(log) == pytest.approx(u, rel=1e-9, abs=1e-9)


def _curves(count: int) -> list[Common]:
    """Of all sizes."""
    chance, found = random.Random(3), list[Common]()
    while len(found) < count:
        n, k = round(10 ** chance.uniform(2, 9)), round(10 ** chance.uniform(0, 5))
        s = (k / 50) ** 0.25 / math.sqrt(2.5 * n) * math.exp(chance.uniform(-1.5, 1.5))
        try:
            c = constants(n, k, s, 10 ** chance.uniform(-9, -0.3), alike=False)
        except InvalidArgument:
            continue
        bend, lower = 1 / (1 + math.exp(chance.uniform(-7, 7))), 10 ** chance.uniform(-3, -0.5)
        found.append(Common(c, k, bend, lower, highest(c, k, bend, lower)))
    return found


def test_one_width_is_that_of_many() -> None:
    """The search over tangents ends at the best one, as the array of all of them does."""
    for common in _curves(300):
        reach = common.constants.reach * np.linspace(0.01, 1.0, 4)
        for one, h in zip(reach, common.widths(reach, -0.7), strict=True):
            assert common.width(float(one), -0.7) == pytest.approx(h, rel=1e-11)


@pytest.mark.parametrize("most", [math.inf, 0.01])
def test_ends_are_those_of_the_whole_table(most: float) -> None:
    """The largest P of all cells that an answer admits, for every cell at once, as arrays have it."""
    plans = [common_plan(*sizes)[0] for sizes in ((10**5, 1000, 0.05), (500, 20, 0.5), (10**4, 3000, 1e-6))]
    for common in (*plans, *_curves(12)):
        c = common.constants
        for s in (c.s, 3.1 * c.s):
            cells = 64
            edges = np.array([edge_of(cell, cells) for cell in range(cells + 1)])
            half = pairs_within(c, edges[: cells // 2], edges[1 : cells // 2 + 1])
            away = np.minimum(s * common.widths(np.sqrt(c.scaled(1.0, s) * half)), most)
            away = np.concatenate([away, away[::-1]])
            assert np.all(np.diff(away[: cells // 2]) >= -1e-12 * away[0])  # what the search relies on
            intervals = Intervals(common, s, cells)
            for value in (0.0, 1e-6, 0.003, 0.02, 0.1, 0.3, 0.49, 0.5, 0.52, 0.8, 0.999, 1.0):
                reach = value + away + 1e-4
                top = np.minimum(edges[1:], reach)[edges[:-1] <= reach].max()
                low, high = intervals.ends(value, 1e-4, most)
                assert min(top, 1.0) <= high == pytest.approx(max(min(top, 1.0), value), rel=1e-8, abs=1e-12)
                mirrored = intervals.ends(1 - value, 1e-4, most)
                assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-9)


def test_cells() -> None:
    for cells in (2, 64, 640):
        for cell in range(cells):
            assert cell_of(edge_of(cell, cells), cells) == cell
            assert cell_of((edge_of(cell, cells) + edge_of(cell + 1, cells)) / 2, cells) == cell
        assert cell_of(1.0, cells) == cells - 1


def test_interpolation() -> None:
    xs, ys = [0.0, 0.1, 0.5], [3.0, 1.0, 2.0]
    for x in (-1.0, 0.0, 0.05, 0.1, 0.3, 0.5, 9.0):
        assert interpolate(x, xs, ys) == pytest.approx(float(np.interp(x, xs, ys)))
