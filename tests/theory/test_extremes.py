import pytest

from afresh.theory.extremes import cvar, cvar_square, cvar_with_square, quantile
from oracle import calibrated as noise_oracle
from oracle import stabilized as oracle

COUNTS = [1, 2, 10, 1000, 10**6]
FAILURES = [1e-6, 0.01, 0.05, 0.5]


@pytest.mark.parametrize("k", COUNTS)
@pytest.mark.parametrize("failure", FAILURES)
def test_maximum_of_normals(k: int, failure: float) -> None:
    assert quantile(k, failure) == pytest.approx(noise_oracle.noise_quantile(k, failure), rel=1e-12)
    assert cvar(k, failure) == pytest.approx(oracle.cvar_max_normal(k, failure), rel=1e-10)


@pytest.mark.parametrize("failure", FAILURES)
def test_square(failure: float) -> None:
    assert cvar_square(failure) == pytest.approx(oracle.cvar_chi_square(failure), rel=1e-11)


@pytest.mark.parametrize("k", COUNTS)
@pytest.mark.parametrize("failure", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("weight", [0.01, 0.3, 4.0])
def test_joint_form(k: int, failure: float, weight: float) -> None:
    exact = oracle.cvar_joint(1.0, weight, k, failure)
    found = cvar_with_square(k, failure, weight)
    assert found >= exact * (1 - 1e-10)
    assert found == pytest.approx(exact, rel=2e-10)
