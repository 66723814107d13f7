import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import kl
from afresh.theory.information import (
    correct_pvalue,
    event_probability,
    information,
    log_threshold,
    max_information,
    prob_gen,
    rogers,
    russo_zou,
)
from afresh.theory.stability import calibrated_charge
from oracle import calibrated as oracle

Floats = NDArray[np.float64]

nats = st.one_of(st.just(0.0), st.floats(-14, 4).map(lambda x: 10.0**x))
levels = st.floats(-9, 6).map(lambda x: 10.0**x)
pvalues = st.one_of(
    st.floats(-300, -0.01).map(lambda x: 10.0**x), st.floats(-15, -1).map(lambda x: 1 - 10.0**x), st.just(1.0)
)


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


# The exact kl inversion, and the forms it is compared with


@given(pvalues, nats)
def test_corrected_pvalue_against_mpmath(p: float, information: float) -> None:
    """Never below the largest p' with kl(p' || p) <= I, and within 1e-11 of it."""
    corrected, exact = correct_pvalue(p, information), oracle.adjusted_p_value(p, information)
    if information == 0.0:
        assert corrected == p
    assert max(exact * (1 - 2e-16), p) <= corrected <= 1
    assert corrected == pytest.approx(exact, rel=1e-11)


@given(st.floats(-6, -0.01).map(lambda x: 10.0**x), st.floats(-9, 3).map(lambda x: 10.0**x))
def test_event_probability_inverts_log_threshold(failure: float, information: float) -> None:
    assert float(event_probability(log_threshold(failure, information), information)) == pytest.approx(
        failure, rel=1e-8
    )


@given(levels, nats)
def test_every_other_form_is_weaker(level: float, information: float) -> None:
    exact = float(event_probability(level, information)) * (1 - 1e-9)
    assert exact <= prob_gen(level, information)
    assert exact <= max_information(level, information) <= rogers(level, information)
    if level > math.log(2) * (1 + 1e-9):
        assert exact <= russo_zou(level, information)


@given(st.floats(1, 200), st.floats(0, 50))
def test_rogers_is_the_infimum_in_bits(level: float, information: float) -> None:
    bits = np.linspace(0.01, 1.2 * level / math.log(2) + 8, 8001)
    scan = np.exp(bits * math.log(2) - level) + (information / math.log(2) + 0.54) / bits
    best = float(rogers(level, information))
    assert scan.min() * (1 - 2e-3) <= best <= scan.min() * (1 + 1e-12)


def mutual_information(joint: Floats) -> float:
    """I of a finite joint law, in nats."""
    product = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    mass = joint > 0
    return float((joint[mass] * np.log(joint[mass] / product[mass])).sum())


def leak(size: int, reveal: float) -> Floats:
    """The joint law of S, uniform on `size` values, and M(S): S with probability `reveal`, else any other value."""
    hidden = np.full((size, size), (1 - reveal) / (size - 1))
    np.fill_diagonal(hidden, reveal)
    return hidden / size


@pytest.mark.parametrize("rows", [1, 3, 6])
@pytest.mark.parametrize("reveal", [0.02, 0.3, 0.9, 1.0])
def test_prob_gen_on_the_adversarial_algorithm(rows: int, reveal: float) -> None:
    """`rows` fair bits, all revealed with some probability, the event "M(S) = S": the kl inversion is attained."""
    size = 2**rows
    reveal = max(reveal, 1.5 / size) if size > 2 else max(reveal, 0.6)
    joint = leak(size, reveal)
    nats = mutual_information(joint)
    assert nats == pytest.approx(kl(reveal, 1 / size), abs=1e-12)
    assert float(event_probability(math.log(size), nats)) == pytest.approx(reveal, abs=1e-7)


@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(2, 8), st.floats(0, 30))
def test_prob_gen_on_every_event_of_random_algorithms(seed: int, inputs: int, outputs: int, leakage: float) -> None:
    """Exact enumeration: no event of a finite (S, M(S)) exceeds any of the forms."""
    rng = np.random.default_rng(seed)
    channel = np.exp(leakage * rng.random((inputs, outputs)))
    joint = rng.dirichlet(np.ones(inputs))[:, None] * channel / channel.sum(axis=1, keepdims=True)
    fresh = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    nats = max(mutual_information(joint), 0.0) + 1e-14
    order = np.argsort((fresh / joint).ravel())  # by Neyman and Pearson, the worst events are its prefixes
    real, delta = np.cumsum(joint.ravel()[order])[:-1], np.cumsum(fresh.ravel()[order])[:-1]
    level = np.maximum(-np.log(delta), 1e-12)
    for form in (event_probability, prob_gen, rogers, max_information):
        assert np.all(real <= form(level, nats) + 1e-9)
    small = delta < 0.499
    assert np.all(real[small] <= russo_zou(level[small], nats) + 1e-9)


def test_the_form_of_rogers_is_false_if_its_information_is_in_nats() -> None:
    """Section 'events' puts I in nats next to 2^k: a counterexample, at 50 digits.

    S is uniform on 3^91 values; M reveals it with probability 0.0314. Then I < 3 nats, the event M(S) = S has fresh
    probability 3^-91 and real probability 0.0314, above 2^k 3^-91 + (3 + 0.54)/k = 0.0271 at k = 131.
    """
    with mp.workdps(50):
        delta, real = mp.mpf(3) ** -91, mp.mpf("0.0314")
        nats = real * mp.log(real / delta) + (1 - real) * mp.log((1 - real) / (1 - delta))
        assert nats < 3
        assert 2**131 * delta + mp.mpf("3.54") / 131 < mp.mpf("0.0272") < real
        assert float(rogers(float(-mp.log(delta)), float(nats))) > real


# p-values


def test_corrected_pvalues_of_a_chosen_test_are_valid() -> None:
    """Exact enumeration: the analyst picks, from a leak, the test whose p-value on the very sample is smallest.

    Test y has p-value ((s - y) mod N + 1)/N, uniform if y was fixed. For every alpha, Pr(p' <= alpha) <= alpha.
    """
    size = 200
    rank = (np.arange(size)[:, None] - np.arange(size)[None, :]) % size + 1
    for tilt in (0.0, 0.5, 2.0, 8.0, 40.0):
        channel = np.exp(-tilt * np.log(rank))
        joint = channel / channel.sum(axis=1, keepdims=True) / size
        corrected = np.asarray(correct_pvalue(rank / size, max(mutual_information(joint), 0.0) + 1e-14))
        order = np.argsort(corrected, axis=None)
        assert np.all(np.cumsum(joint.ravel()[order]) <= corrected.ravel()[order] + 1e-9)
        if tilt >= 2:  # left as they are, the p-values would be far off
            assert joint[rank / size <= 0.01].sum() > 0.5


def test_pvalues_are_vectorised_and_their_ends_are_right() -> None:
    corrected = correct_pvalue([0.0, 1e-320, 1e-12, 0.04, 1.0], 2.0)
    assert isinstance(corrected, np.ndarray)
    assert np.all(np.diff(corrected) >= 0)
    assert corrected[-1] == 1.0
    assert corrected[0] == correct_pvalue(0.0, 2.0) > 0  # a smaller number than floats have
    assert isinstance(correct_pvalue(0.04, 2.0), float)
    assert correct_pvalue(1e-3, 10.0) == 1.0  # I >= ln(1/p): nothing can be said
    assert correct_pvalue(0.04, 0.0) == 0.04


@pytest.mark.parametrize(("p", "nats"), [(-0.1, 1), (1.1, 1), (math.nan, 1), (0.1, -1), (0.1, math.nan)])
def test_pvalues_refuse(p: float, nats: float) -> None:
    with pytest.raises(InvalidArgument, match="must be"):
        correct_pvalue(p, nats)


def test_forms_name_the_hypothesis_they_miss() -> None:
    with pytest.raises(InvalidArgument, match="fresh probability < 1/2"):
        russo_zou(0.5, 1.0)
    with pytest.raises(InvalidArgument, match="fresh probability < 1"):
        prob_gen(0.0, 1.0)
    with pytest.raises(InvalidArgument, match="information >= 0"):
        rogers(3.0, -1.0)


# Prop. mi


def gaussian_information(weights: Floats, means: Floats, sds: Floats) -> float:
    """I(C; N(means[C], sds[C]^2)) by quadrature on a fine grid."""
    grid = np.linspace(float((means - 12 * sds).min()), float((means + 12 * sds).max()), 40001)
    density = np.exp(-(((grid - means[:, None]) / sds[:, None]) ** 2) / 2) / (sds[:, None] * math.sqrt(2 * math.pi))
    mixture = weights @ density
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(density > 0, density * np.log(density / mixture), 0.0)
    return float(weights @ np.trapezoid(terms, grid, axis=1))


@pytest.mark.parametrize("n", [2, 3, 5, 12])
@pytest.mark.parametrize("p", [0.5, 0.1])
@pytest.mark.parametrize(("t", "big_t"), [(0.5, 0.2), (2.0, 4.0), (5.0, 2.0), (1.0, 30.0)])
def test_prop_mi_by_quadrature(n: int, p: float, t: float, big_t: float) -> None:
    """One calibrated answer about n 0/1 rows: I <= n E(average leave-one-out KL) <= n B, both computed exactly."""
    count = np.arange(n + 1)
    weights = np.array([math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in count])

    def moments(c: Floats, size: int) -> tuple[Floats, Floats]:
        mean = c / size
        return mean, np.maximum(mean * (1 - mean) / t, 1 / big_t)

    mean, variance = moments(count.astype(float), n)
    average = np.zeros(n + 1)
    for value in (0, 1):
        share = count / n if value else 1 - count / n
        other, spread = moments(np.clip(count - value, 0, n - 1).astype(float), n - 1)
        ratio = variance / spread
        average += share * ((mean - other) ** 2 / (2 * spread) + (ratio - 1 - np.log(ratio)) / 2)
    exact = gaussian_information(weights, mean, np.sqrt(variance))
    assert exact <= information(n, float(weights @ average)) * (1 + 1e-9)
    assert average.max() <= calibrated_charge(t, big_t, n)


def test_prop_mi_needs_independent_rows() -> None:
    """One row copied n times: fixed noise is 1/(8 s^2 n^2)-stable, yet the information is fourteen times n of that."""
    n, s = 50, 0.3
    exact = gaussian_information(np.array([0.5, 0.5]), np.array([0.0, 1.0]), np.array([s, s]))
    assert exact > 14 * information(n, 1 / (8 * s**2 * n**2))
