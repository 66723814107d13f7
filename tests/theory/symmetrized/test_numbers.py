"""The numbers of section 17: an independent oracle, the test vectors, the reference widths, monotony."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.errors import InvalidArgument
from afresh.theory.symmetrized.constants import constants, first_argument_upper
from afresh.theory.symmetrized.fixed import (
    constant_interval,
    log_failure,
    plan,
    simple_width,
    solve_width,
)
from afresh.theory.symmetrized.gaussian import (
    hazard,
    inverse_log_excess,
    inverse_slope,
    log_excess,
    slope,
)
from examples import examples
from oracle import symmetrized as oracle

# (n, k, beta, s) and D, t, tau, kap, h of the first draft's test vectors.
VECTORS = [
    ((10**5, 1000, 0.05, 0.0047), (0.5116554508, 0.05797158282, 54.7950283, 0.03300132077, 8.034271)),
    ((10**4, 100, 0.05, 0.0093), (0.53832894, 0.15606904, 13.499976, 0.0239296, 7.7150119)),
    ((10**6, 10**4, 0.01, 0.00234), (0.50387605, None, 224.9821, 0.0525738, 9.4421967)),
    ((2000, 200, 0.05, 0.0274), (0.61274626, None, 18.803608, 0.178005, 7.4126881)),
]
REFERENCE_WIDTHS = [
    (10**4, 100, 0.0717),
    (10**4, 1000, 0.1246),
    (10**5, 100, 0.0220),
    (10**5, 1000, 0.0378),
    (10**5, 10**4, 0.0684),
    (10**6, 1000, 0.0118),
    (10**6, 10**4, 0.0212),
]
EXTREMES = [(10**3, 1, 0.5), (10**3, 10**6, 0.05), (10**9, 10**6, 1e-9), (10**9, 1, 1e-9), (10**5, 1000, 1e-9)]


# --- psi --------------------------------------------------------------------------------------------------------


@given(st.floats(-200, 50))
def test_excess_and_slope_against_mpmath(u: float) -> None:
    with mp.workdps(60):
        exact = mp.npdf(u) + u * mp.ncdf(u)
        assert float(log_excess(u)) == pytest.approx(float(mp.log(exact)), rel=1e-12, abs=1e-12)
        assert float(slope(u)) == pytest.approx(float(mp.ncdf(u) / exact), rel=1e-11)
        assert float(hazard(u)) == pytest.approx(float(mp.npdf(u) / mp.ncdf(u)), rel=1e-11, abs=1e-300)


@given(st.floats(-40, 30))
def test_inverses(u: float) -> None:
    assert float(inverse_log_excess(log_excess(u))) == pytest.approx(u, rel=1e-9, abs=1e-9)
    assert float(inverse_slope(slope(u))) == pytest.approx(u, rel=1e-7, abs=1e-7)


@given(st.floats(0, 1), st.floats(1e-9, 3))
@example(5e-324, 1.0)
def test_first_argument_upper_errs_upward(e: float, bound: float) -> None:
    with mp.workdps(40):
        exact = float(oracle.up(mp.mpf(e), mp.mpf(bound))) if e > 0 else 0.0
    found = first_argument_upper(e, bound)
    assert exact * (1 - 1e-15) <= found <= exact * (1 + 1e-9) + 1e-300


# --- constants and F --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cell", "expected"), VECTORS)
def test_printed_vectors(cell: tuple[int, int, float, float], expected: tuple[float | None, ...]) -> None:
    n, k, beta, s = cell
    c = constants(n, k, s, beta)
    for found, printed in zip((c.pairs, c.step, c.bulk, c.swap), expected, strict=False):
        assert printed is None or found == pytest.approx(printed, rel=2e-6)
    # The printed h sum F_j over blocks by their last answers (but the first one); ours is at most so large.
    assert expected[4] is not None
    width = plan(n, k, beta, s=s).width
    assert expected[4] * (1 - 1e-3) < width < expected[4] * (1 + 1e-5)


def test_printed_vectors_of_the_first_cell() -> None:
    c = constants(10**5, 1000, 0.0047, 0.05)
    assert c.row == pytest.approx(0.001135129018, rel=1e-9)
    assert c.growth == pytest.approx(1.001136419, rel=1e-9)
    assert c.bad == pytest.approx(9.4e-7, rel=1e-9)
    assert c.tilt == pytest.approx(9.509974139, rel=1e-9)
    for j, printed in ((1, -23.783784), (500, -11.799466), (1000, -8.05224)):
        found = float(log_failure(8.039056, c.reach, c.bulk_before(j), c.swap))
        assert printed - 4e-4 < found < printed + 5e-6  # theirs are the minima over a grid
    assert plan(10**5, 1000, 0.05, s=0.0047).width == pytest.approx(8.034271, abs=1e-4)
    equal = plan(10**5, 1000, 0.05, shares="equal", s=0.0047)
    printed_widths = [0.023809, 0.028881, 0.035443, 0.040353]
    assert equal.widths([1, 100, 500, 1000]) * 0.0047 == pytest.approx(printed_widths, rel=3e-5)
    assert simple_width(c, 1000, c.main / 1000) * 0.0047 == pytest.approx(0.042989, abs=1e-6)


def test_block_sums_explain_the_printed_width() -> None:
    """At (1e6, 1e4, .01) the printed h is that of about 150 blocks: 0.08% wider than the exact sum."""
    c = constants(10**6, 10**4, 0.00234, 0.01)
    ends = np.unique(np.append(np.arange(66, 10**4, 66), 10**4))
    sizes = np.diff(np.append(0, ends))
    bulk = (ends - 1) * c.bulk_before(2)
    total = np.exp(log_failure(9.4421967, c.reach, bulk, c.swap)) @ sizes
    assert total == pytest.approx(c.main, rel=3e-3)


@pytest.mark.parametrize(
    ("n", "k", "beta", "s"),
    [
        (10**5, 1000, 0.05, 0.0047),
        (10**3, 10, 0.5, 0.02),
        (2000, 200, 0.8, 0.03),
        (10**9, 10**6, 1e-9, 2e-4),
        (10**3, 3000, 0.01, 0.1),
        (10**6, 1, 0.05, 1e-4),
    ],
)
def test_constants_and_failures_against_the_oracle(n: int, k: int, beta: float, s: float) -> None:
    c, w = constants(n, k, s, beta), oracle.world(n, k, s, beta)
    for ours, exact in ((c.row, w.q), (c.growth, w.gam), (c.pairs, w.D), (c.step, w.t), (c.bulk, w.tau)):
        assert float(exact) * (1 - 1e-14) <= ours <= float(exact) * (1 + 1e-9)
    assert float(w.kap) * (1 - 1e-14) <= c.swap <= float(w.kap) * (1 + 1e-9)
    assert c.tilt == pytest.approx(float(w.x), rel=1e-10)
    for j in sorted({1, (k + 1) // 2, k}):
        share = c.main / k
        h = float(solve_width(math.log(share), c.reach, c.bulk_before(j), c.swap))
        exact = float(oracle.log_failure(w, h, j))
        # Ours is a bound with its own alpha, so it is above the minimum, but not by much.
        assert exact <= math.log(share) + 1e-12
        assert math.log(share) - exact < 0.02


@pytest.mark.parametrize(("n", "k", "printed"), REFERENCE_WIDTHS)
def test_reference_widths(n: int, k: int, printed: float) -> None:
    assert plan(n, k, 0.05).half_width <= printed * 1.01


@pytest.mark.parametrize(("n", "k", "beta"), EXTREMES)
@pytest.mark.parametrize("shares", ["constant width", "equal"])
def test_plans_at_the_edges_of_the_domain(n: int, k: int, beta: float, shares: str) -> None:
    found = plan(n, k, beta, shares=shares)
    assert 0 < found.half_width <= 1
    assert np.all(np.diff(found.widths([1, max(k // 2, 1), k])) >= -1e-9)
    assert found.interval(0.0, k)[0] == 0.0
    assert found.interval(1.0, k)[1] == 1.0


def test_shares_add_up_to_the_failure() -> None:
    """Summed exactly; what is left is the part of G."""
    for found in (plan(10**5, 1000, 0.05), plan(10**4, 100, 0.2, shares="equal"), plan(3000, 17, 0.5)):
        j = np.arange(1, found.constants.count + 1)
        total = math.fsum(np.exp(found.log_share(j)))
        assert total <= found.constants.main * (1 + 1e-12)
        assert total >= found.constants.main * (1 - 1e-6)


def test_a_plan_in_blocks_is_no_narrower_than_one_summed_exactly() -> None:
    found = plan(10**6, 10**4, 0.01)
    total = math.fsum(np.exp(found.log_share(np.arange(1, 10**4 + 1))))
    assert found.constants.main * 0.99 < total <= found.constants.main


# --- properties -------------------------------------------------------------------------------------------------


@given(st.integers(10**3, 10**9), st.integers(1, 10**6), st.floats(1e-9, 0.5))
@examples(0.06)  # four plans each
def test_more_answers_or_less_failure_is_wider(n: int, k: int, beta: float) -> None:
    """The constants, at one noise; and the plan, up to its search."""
    found = plan(n, k, beta)
    s, width = found.constants.s, found.half_width
    here = constants(n, k, s, beta)
    fewer, stricter = constants(n, max(k // 2, 1), s, beta), constants(n, k, s, beta / 2)
    assert fewer.pairs <= here.pairs <= stricter.pairs
    assert fewer.bulk <= here.bulk <= stricter.bulk
    assert fewer.swap <= here.swap <= stricter.swap
    assert plan(n, max(k // 2, 1), beta).half_width <= width * 1.003
    assert plan(n, k, beta / 2).half_width >= width / 1.003
    assert plan(2 * n, k, beta).half_width <= width * 1.003


@given(st.floats(1.0, 30.0), st.floats(0.0, 2.0), st.floats(0.0, 500.0), st.floats(0, 1))
def test_failures_fall_with_the_width_and_grow_with_what_was_revealed(
    h: float, reach: float, bulk: float, swap: float
) -> None:
    here = float(log_failure(h, reach, bulk, swap))
    assert float(log_failure(h * 1.01, reach, bulk, swap)) <= here
    assert float(log_failure(h, reach, bulk * 1.01, swap)) >= here - 1e-12
    assert float(log_failure(h, reach, bulk, swap + 0.1)) == pytest.approx(here + 0.1)


@given(st.floats(-2, 3), st.floats(0, 2), st.floats(0, 0.1))
def test_the_interval_is_around_the_clipped_value(value: float, half_width: float, half_step: float) -> None:
    low, high = constant_interval(value, half_width, half_step)
    centre = min(max(value, 0), 1)
    assert 0 <= low <= centre <= high <= 1
    assert low == 0 or centre - low >= half_width + half_step - 1e-16
    assert high == 1 or high - centre >= half_width + half_step - 1e-16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 10, 0.1, 0.05), "n == 1"),
        ((100, 0, 0.1, 0.05), "count == 0"),
        ((100, 10, 0.0, 0.05), "s == 0"),
        ((100, 10, math.nan, 0.05), "s == nan"),
        ((100, 10, 0.1, 1.0), "beta == 1"),
        ((100, 10, 1e-4, 0.05), "one row"),
        ((100, 10, 6.0, 0.05), "says nothing"),
    ],
)
def test_refuses_nonsense(arguments: tuple[int, int, float, float], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        constants(*arguments)


def test_refuses_answers_that_are_not_in_the_plan() -> None:
    found = plan(10**4, 100, 0.05)
    for j in (0, 101, 1.5):
        with pytest.raises(InvalidArgument, match="not one of"):
            found.widths(j)
