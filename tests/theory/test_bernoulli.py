import math

import mpmath as mp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import entropy, kl, kl_lower, kl_upper

probabilities = st.one_of(
    st.floats(0, 1),
    st.floats(-300, -1).map(lambda x: 10.0**x),
    st.floats(-16, -1).map(lambda x: 1 - 10.0**x),
)
bounds = st.floats(-12, 3).map(lambda x: 10.0**x)


def exact_kl(p: float, q: float) -> mp.mpf:
    with mp.workdps(340):  # enough to tell 1 - 1e-300 from 1
        a, b = mp.mpf(p), mp.mpf(q)
        total = mp.mpf(0)
        for x, y in ((a, b), (1 - a, 1 - b)):
            if x > 0:
                total += mp.inf if y == 0 else x * mp.log(x / y)
        return total


@given(probabilities, probabilities)
def test_kl_against_mpmath(p: float, q: float) -> None:
    expected = exact_kl(p, q)
    if expected == mp.inf:
        assert kl(p, q) == math.inf
    else:
        assert kl(p, q) == pytest.approx(float(expected), rel=1e-12, abs=1e-322)


@given(probabilities, bounds)
def test_upper_inverse_never_below_and_close(p: float, bound: float) -> None:
    q = kl_upper(p, bound)
    assert p <= q <= 1
    if q < 1:
        assert exact_kl(p, q) >= bound * (1 - 1e-13)
        inside = max(q - 1e-13 * q, p)
        assert exact_kl(p, inside) <= mp.mpf(bound) * (1 + mp.mpf(10) ** -6)


@given(probabilities, bounds)
def test_lower_inverse_never_above_and_close(p: float, bound: float) -> None:
    q = kl_lower(p, bound)
    assert 0 <= q <= p
    if q > 1e-300:
        assert exact_kl(p, q) >= bound * (1 - 1e-13)
        inside = min(q * (1 + 1e-13), p)
        assert exact_kl(p, inside) <= mp.mpf(bound) * (1 + mp.mpf(10) ** -6)


@given(st.floats(1e-6, 1 - 1e-6), bounds)
def test_inverses_are_mirror_images(p: float, bound: float) -> None:
    assert kl_lower(p, bound) == pytest.approx(1 - kl_upper(1 - p, bound), abs=1e-12)


def test_ends() -> None:
    assert kl_upper(0.0, 2.0) == pytest.approx(-math.expm1(-2.0), rel=1e-12)
    assert kl_lower(1.0, 2.0) == pytest.approx(math.exp(-2.0), rel=1e-12)
    assert kl_upper(1.0, 2.0) == 1.0
    assert kl_lower(0.0, 2.0) == 0.0
    assert kl_upper(0.3, 0.0) == kl_lower(0.3, 0.0) == 0.3
    assert entropy(0.5) == pytest.approx(math.log(2))


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_refuses_what_is_no_probability(bad: float) -> None:
    with pytest.raises(InvalidArgument, match="must be in"):
        kl(bad, 0.5)
    with pytest.raises(InvalidArgument, match="must be in"):
        kl_upper(bad, 0.5)
    with pytest.raises(InvalidArgument, match="must be in"):
        kl_lower(bad, 0.5)
    with pytest.raises(InvalidArgument, match="must be >="):
        kl_lower(0.5, -1.0)
