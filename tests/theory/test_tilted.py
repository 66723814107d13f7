import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from afresh.theory.tilted import TiltedMean
from afresh.theory.transform import Transform
from examples import examples
from oracle import stabilized as oracle

FLOORS = [0.25, 0.1, 0.008, 0.001]


@given(st.floats(0, 1), st.sampled_from(FLOORS))
def test_theta_and_its_inverse(m: float, v0: float) -> None:
    transform = Transform(v0)
    y = float(transform(np.asarray(m)))
    assert y == pytest.approx(oracle.theta(m, v0), abs=1e-14)
    assert transform.inverse_at(y) == pytest.approx(m, abs=1e-13)


@pytest.mark.parametrize("v0", FLOORS)
def test_slope_is_the_derivative(v0: float) -> None:
    transform = Transform(v0)
    m = np.linspace(0.001, 0.999, 97)
    numeric = (transform(m + 1e-7) - transform(m - 1e-7)) / 2e-7
    assert np.allclose(numeric, transform.slope(m), rtol=1e-5)


@examples(0.6)
@given(
    st.integers(20, 3000),
    st.sampled_from([0.25, 0.1, 0.06]),
    st.floats(0.0, 2.5),
    st.one_of(st.floats(0.0, 1.0), st.floats(-9, -1).map(lambda x: 10.0**x)),
)
def test_upper_bound_is_one_and_tight(n: int, v0: float, log_tilt: float, p: float) -> None:
    tilt = 10**log_tilt / v0**0.5
    if not 0 < p < 1:
        return
    exact = oracle.e_plus(p, n, tilt, v0)
    bound = TiltedMean(n, tilt, Transform(v0)).upper(p)
    assert bound >= exact - 1e-13
    assert (bound - exact) * tilt < 0.02


@pytest.mark.parametrize(("n", "tilt", "v0"), [(10**5, 10364.3891, 0.005), (10**6, 32796.0, 0.008)])
def test_upper_bound_at_scale(n: int, tilt: float, v0: float) -> None:
    tilted = TiltedMean(n, tilt, Transform(v0))
    for p in (1e-7, 1e-4, 0.002, 0.01, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6):
        exact = oracle.e_plus(p, n, tilt, v0)
        assert exact - 1e-12 <= tilted.upper(p) <= exact + 0.01 / tilt


@examples(0.6)
@given(st.integers(20, 3000), st.sampled_from([0.25, 0.1, 0.06]), st.floats(0.0, 1.5), st.floats(-0.2, 1.2))
@example(20, 0.25, 0.0, 5e-324)
def test_inverse_is_safe_and_close(n: int, v0: float, log_tilt: float, share: float) -> None:
    tilt, transform = 10**log_tilt / v0**0.5, Transform(v0)
    target = share * transform.top
    p = TiltedMean(n, tilt, transform).lower_inverse(target)
    assert 0 <= p <= 1
    if target <= 0:
        assert p == 0
        return
    if p > 0:
        assert oracle.e_plus(p, n, tilt, v0) <= target + 1e-12
    beyond = min(p + 0.05 / n**0.5, 1 - 1e-12)
    if target < transform.top:
        assert oracle.e_plus(beyond, n, tilt, v0) >= target - 0.01 / tilt
