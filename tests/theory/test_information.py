import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import calibrated as oracle

from afresh.errors import InvalidArgument
from afresh.theory.information import log_threshold
from afresh.theory.stability import calibrated_charge


@given(st.floats(-8, -0.01).map(lambda x: 10.0**x), st.floats(-9, 4).map(lambda x: 10.0**x))
def test_log_threshold_never_below_the_oracle(failure: float, information: float) -> None:
    level, exact = log_threshold(failure, information), oracle.log_threshold(failure, information)
    assert level >= exact * (1 - 1e-15)
    assert level == pytest.approx(exact, rel=1e-9)
    assert level <= (information + math.log(2)) / failure * (1 + 1e-12)  # Lemma prob-gen, the weaker form


@given(
    st.integers(2, 10**7),
    st.floats(-3, 9).map(lambda x: 10.0**x),
    st.floats(-3, 12).map(lambda x: 10.0**x),
)
def test_charge_against_mpmath(n: int, t: float, big_t: float) -> None:
    assert calibrated_charge(t, big_t, n) == pytest.approx(oracle.charge(t, big_t, n), rel=1e-12)


@pytest.mark.parametrize(("t", "big_t", "n"), [(0, 1, 10), (1, 0, 10), (1, 1, 1), (1e-300, 1e300, 10)])
def test_charge_refuses_what_has_no_proof(t: float, big_t: float, n: int) -> None:
    with pytest.raises(InvalidArgument):
        calibrated_charge(t, big_t, n)


@pytest.mark.parametrize(("failure", "information"), [(0, 1), (1, 1), (0.1, -1), (0.1, math.nan)])
def test_log_threshold_refuses(failure: float, information: float) -> None:
    with pytest.raises(InvalidArgument):
        log_threshold(failure, information)
