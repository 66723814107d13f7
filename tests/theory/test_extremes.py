import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, optimize, special

from afresh.theory.extremes import cvar, cvar_square, cvar_with_square, quantile
from examples import examples
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
    exact = oracle.cvar_joint(1.0, weight, k, failure, share=1 / k)
    found = cvar_with_square(k, failure, weight)
    assert found >= exact * (1 - 1e-10)
    assert found == pytest.approx(exact, rel=2e-10)


def _survival(t: float, k: int, weight: float, share: float) -> float:
    """Pr(M + w (1 + ((pi/2) M^2 - 1)_+ share) Z^2 > t), by adaptive quadrature over M."""

    def density(m: float) -> float:
        return k * math.erf(m / math.sqrt(2)) ** (k - 1) * math.sqrt(2 / math.pi) * math.exp(-m * m / 2)

    def beyond(m: float) -> float:
        scale = weight * (1 + max(math.pi / 2 * m * m - 1, 0.0) * share)
        return density(m) * math.erfc(math.sqrt(max(t - m, 0.0) / (2 * scale)))

    kinks = sorted({math.sqrt(2 / math.pi), *(t - d for d in (0.0, 0.01, 0.1, 1.0) if 0 < t - d < 12)})
    edges = [0.0, *kinks, *(x for x in (2.0, 3.0, 4.0, 5.0, 7.0) if x > kinks[-1]), 12.0]
    pairs = itertools.pairwise(sorted(set(edges)))
    return math.fsum(integrate.quad(beyond, a, b, epsabs=1e-13, epsrel=1e-11, limit=200)[0] for a, b in pairs)


@pytest.mark.parametrize(("k", "share"), [(1, 1.0), (1, 0.3), (7, 1 / 7), (7, 0.5), (1000, 0.001), (1000, 0.02)])
@pytest.mark.parametrize(("failure", "weight"), [(0.05, 0.3), (0.01, 2.0)])
def test_joint_form_with_a_largest_share(k: int, share: float, failure: float, weight: float) -> None:
    """C_b(X) = q + (integral of Pr(X > t) from q on)/b, where Pr(X > q) = b: another way than the code's."""
    cut = optimize.brentq(lambda t: _survival(t, k, weight, share) - failure, 0.0, 500.0, xtol=1e-10)
    step, rest, low = 1.0, 0.0, cut
    while True:
        part, _ = integrate.quad(_survival, low, low + step, args=(k, weight, share), epsabs=1e-11, epsrel=1e-8)
        rest, low, step = rest + part, low + step, 2 * step
        if part < 1e-10:
            break
    exact = cut + rest / failure
    found = cvar_with_square(k, failure, weight, share)
    assert found >= exact * (1 - 1e-7)
    assert found == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize(("k", "share"), [(5, 0.2), (5, 0.9), (50, 0.1)])
def test_joint_form_by_simulation(k: int, share: float) -> None:
    """400,000 draws; the mean of the largest 5 % misses by 6 of its standard errors with probability < 1e-6."""
    rng, draws, failure, weight = np.random.default_rng(11), 400_000, 0.05, 0.4
    largest = special.ndtri((1 + rng.random(draws) ** (1 / k)) / 2)  # Pr(M <= m) = (2 Phi(m) - 1)^k
    factor = 1 + np.maximum(np.pi / 2 * largest**2 - 1, 0) * share
    x = largest + weight * factor * rng.standard_normal(draws) ** 2
    cut = np.quantile(x, 1 - failure)
    excess = np.maximum(x - cut, 0) / failure
    error = excess.std() / math.sqrt(len(x))
    assert abs(cut + excess.mean() - cvar_with_square(k, failure, weight, share)) < 6 * error


@given(k=st.integers(1, 10**5), share=st.floats(1e-5, 1.0), more=st.floats(0, 1), weight=st.floats(0.005, 10.0))
@examples(0.15)
def test_joint_form_grows_with_the_share_and_the_number(k: int, share: float, more: float, weight: float) -> None:
    """So caps on both are enough, whatever is really asked."""
    found = cvar_with_square(k, 0.05, weight, share)
    assert cvar_with_square(k, 0.05, weight, min(share + more, 1.0)) >= found * (1 - 1e-9)
    assert cvar_with_square(k + 1, 0.05, weight, share) >= found * (1 - 1e-9)
