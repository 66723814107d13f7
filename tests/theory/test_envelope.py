from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from afresh.theory.envelope import Envelope, choose_envelope, holds
from examples import examples
from oracle import stabilized as oracle


@pytest.mark.parametrize("failure", [0.05, 0.01])
@pytest.mark.parametrize("qb", [1e-5, 3e-4, 3e-3, 0.08, 0.5, 2.0])
def test_chosen_envelopes_hold_for_the_oracle_too(qb: float, failure: float) -> None:
    envelope = choose_envelope(qb, failure, 3.0)
    assert envelope is not None
    assert envelope.qb >= qb
    assert oracle.star_margin(envelope.c, envelope.B, envelope.A, envelope.theta, envelope.qb) > 0


def test_a_little_less_does_not_hold() -> None:
    envelope = choose_envelope(0.08, 0.05, 3.0)
    assert envelope is not None
    assert holds(envelope)
    for smaller in (
        replace(envelope, A=envelope.A * 0.99),
        replace(envelope, B=envelope.B * 0.99),
        replace(envelope, c=envelope.c * 0.99),
        replace(envelope, qb=envelope.qb * 1.05),
    ):
        assert not holds(smaller)


@examples(0.4)
@given(
    st.floats(-3, 0.5).map(lambda x: 10.0**x),
    st.floats(0.01, 3.0),
    st.floats(1.05, 40.0),
    st.floats(-8, 1).map(lambda x: 10.0**x),
)
def test_what_passes_the_cells_passes_the_oracle(qb: float, eps: float, theta: float, A: float) -> None:
    B = (1 + 1 / eps) * qb / 8
    if holds(Envelope(qb, 1 + eps, B, A, theta)):
        assert oracle.star_margin(1 + eps, B, A, theta, qb) >= 0


def test_the_printed_constants_hold() -> None:
    # Section 10's test vector.
    assert holds(Envelope(qb=0.08358057, c=1.13701609, B=0.08670693, A=3.5860835e-4, theta=8.346261))
