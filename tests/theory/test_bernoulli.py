"""kl and its inverses against exact arithmetic, over p, q from 1e-300 to 1 - 1e-16."""

import math
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import (
    entropy,
    exp_gap,
    exp_gap_each,
    kl,
    kl_each,
    kl_lower,
    kl_lower_each,
    kl_upper,
    kl_upper_each,
    log_gap,
    log_gap_each,
)
from examples import examples
from work import work

probabilities = st.one_of(
    st.floats(0, 1),
    st.floats(-300, -1).map(lambda x: 10.0**x),
    st.floats(-16, -1).map(lambda x: 1 - 10.0**x),
)
bounds = st.one_of(st.floats(-300, 3), st.floats(-20, 2)).map(lambda x: 10.0**x)
signed_powers = st.tuples(st.sampled_from([-1, 1]), st.floats(-15, 0.3)).map(lambda sx: sx[0] * 10.0 ** sx[1])
# Independent pairs, and pairs whose p/q or (1-p)/(1-q) is near 1, where naive formulas cancel.
pairs = st.one_of(
    st.tuples(probabilities, probabilities),
    st.tuples(probabilities, signed_powers).map(lambda pe: (pe[0], min(max(pe[0] * (1 + pe[1]), 0.0), 1.0))),
    st.tuples(probabilities, signed_powers).map(lambda pe: (pe[0], min(max(1 - (1 - pe[0]) * (1 + pe[1]), 0.0), 1.0))),
)


def exact_kl(p: float, q: float) -> mp.mpf:
    with mp.workdps(340):  # enough to tell 1 - 1e-300 from 1
        a, b = mp.mpf(p), mp.mpf(q)
        total = mp.mpf(0)
        for x, y in ((a, b), (1 - a, 1 - b)):
            if x > 0:
                total += mp.inf if y == 0 else x * mp.log(x / y)
        return total


@examples(10)
@given(pairs)
@example((7e-200, 6.3e-200))
@example((1 - 1e-15, 1 - 1.1e-15))
@example((5e-324, 1.0 - 2**-53))
@example((0.99, 5e-324))
@example((0.99, 2.2250738585e-313))
@example((0.3, math.nextafter(0.3, 1)))
def test_kl_against_exact_arithmetic(pair: tuple[float, float]) -> None:
    p, q = pair
    expected = exact_kl(p, q)
    assert kl(p, q) == pytest.approx(float(expected), rel=3e-15, abs=1e-310)
    assert float(kl_each(p, q)) == pytest.approx(kl(p, q), rel=1e-15, abs=1e-310)


@examples(5)
@given(probabilities, bounds)
@example(0.5, 1e-40)  # the gap is far below the resolution of q
@example(2.8e-153, 4.2e-172)
@example(1 - 1e-16, 1e-30)
@example(1e-300, 1e-300)
@example(0.0, 1e-300)
def test_upper_inverse_never_below_and_within_1e_12(p: float, bound: float) -> None:
    q = kl_upper(p, bound)
    assert p <= q <= 1
    if q < 1:
        assert exact_kl(p, q) >= bound
    inside = q * (1 - 1e-12)
    assert inside <= p or exact_kl(p, inside) <= bound
    assert float(kl_upper_each(p, bound)) == pytest.approx(q, rel=1e-14)


@examples(5)
@given(probabilities, bounds)
@example(0.5, 1e-40)
@example(7e-195, 4.7e-166)  # q underflows to 0
@example(2.2e-313, 1.0)
@example(1.0, 690.0)
@example(0.087, 39.5)
@example(2.8e-153, 4.2e-172)
def test_lower_inverse_never_above_and_within_1e_12(p: float, bound: float) -> None:
    q = kl_lower(p, bound)
    assert 0 <= q <= p
    if q > 1e-300:
        assert exact_kl(p, q) >= bound
        inside = q * (1 + 1e-12)
        assert inside >= p or exact_kl(p, inside) <= bound
    assert float(kl_lower_each(p, bound)) == pytest.approx(q, rel=1e-12)


@given(st.floats(1e-6, 1 - 1e-6), bounds)
def test_inverses_are_mirror_images(p: float, bound: float) -> None:
    assert kl_lower(p, bound) == pytest.approx(1 - kl_upper(1 - p, bound), abs=1e-13)


@given(st.floats(-1, 10), st.floats(0, 10))
@example(1e-9, 1e-9)
@example(-1.0, 0.0)
@example(0.35, 0.5)
@example(-0.25, math.nextafter(0.5, 0))
def test_gaps_against_mpmath(u: float, w: float) -> None:
    with mp.workdps(60):
        exact_log = mp.inf if u == -1 else mp.mpf(u) - mp.log(1 + mp.mpf(u))
        exact_exp = mp.exp(-mp.mpf(w)) - 1 + mp.mpf(w)
    assert log_gap(u) == pytest.approx(float(exact_log), rel=3e-15)
    assert exp_gap(w) == pytest.approx(float(exact_exp), rel=3e-15)
    assert float(log_gap_each(u)) == pytest.approx(log_gap(u), rel=1e-15)
    assert float(exp_gap_each(w)) == pytest.approx(exp_gap(w), rel=1e-15)


def test_arrays_broadcast_and_keep_the_ends() -> None:
    p, bound = np.array([0.0, 0.3, 1.0])[:, None], np.array([0.0, 1e-3, 2.0, math.inf])
    upper, lower = kl_upper_each(p, bound), kl_lower_each(p, bound)
    for i, x in enumerate(p.ravel()):
        for j, b in enumerate(bound):
            assert upper[i, j] == pytest.approx(kl_upper(float(x), float(b)), rel=1e-14)
            assert lower[i, j] == pytest.approx(kl_lower(float(x), float(b)), rel=1e-14)
    assert kl_each([0.0, 1.0, 0.5, 0.5, 0.5], [0.0, 1.0, 0.0, 1.0, 0.5]).tolist() == [0, 0, math.inf, math.inf, 0]


def test_ends() -> None:
    assert kl_upper(0.0, 2.0) == pytest.approx(-math.expm1(-2.0), rel=1e-12)
    assert kl_lower(1.0, 2.0) == pytest.approx(math.exp(-2.0), rel=1e-12)
    assert kl_upper(1.0, 2.0) == 1.0
    assert kl_lower(0.0, 2.0) == 0.0
    assert kl_upper(0.3, 0.0) == kl_lower(0.3, 0.0) == 0.3
    assert entropy(0.5) == pytest.approx(math.log(2))


def test_an_inversion_takes_few_steps() -> None:
    """At most 43 calls, about 10 microseconds; halving an interval down to the last bit would take hundreds."""
    for p in (1e-6, 0.01, 0.1, 0.5, 0.99):
        for b in (1e-6, 1e-3, 0.1):
            assert work(partial(kl_lower, p, b)) < 100
            assert work(partial(kl_upper, p, b)) < 100


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_refuses_what_is_no_probability(bad: float) -> None:
    for call in (kl, kl_upper, kl_lower, kl_each, kl_upper_each, kl_lower_each):
        with pytest.raises(InvalidArgument, match="must be in"):
            call(bad, 0.5)
    for call in (kl_upper, kl_lower, kl_upper_each, kl_lower_each):
        with pytest.raises(InvalidArgument, match="must be >="):
            call(0.5, -1.0)
