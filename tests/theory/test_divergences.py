"""KL divergences against quadrature and 50 digits, and the inequalities the paper rests on."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.theory.divergences import (
    conditional_mutual_information,
    donsker_varadhan,
    finite_kl,
    gaussian_kl,
    gaussian_kl_bound,
    laplace_kl,
    laplace_kl_bound,
    laplace_kl_sharp_bound,
    mean_bound,
    mixture,
    mutual_information,
)
from examples import examples

Floats = NDArray[np.float64]

means = st.floats(-1e3, 1e3)
scales = st.floats(-6, 6).map(lambda x: 10.0**x)
# ratios of the two scales, dense around 1 where the divergence vanishes
ratios = st.one_of(
    st.floats(-6, 6).map(lambda x: 10.0**x),
    st.tuples(st.sampled_from([-1, 1]), st.floats(-9, -0.5)).map(lambda sx: 1 + sx[0] * 10.0 ** sx[1]),
)


def exact_gaussian(m: float, s: float, m2: float, s2: float) -> mp.mpf:
    with mp.workdps(50):
        r = (mp.mpf(s) / mp.mpf(s2)) ** 2
        return (mp.mpf(m) - mp.mpf(m2)) ** 2 / (2 * mp.mpf(s2) ** 2) + (r - 1 - mp.log(r)) / 2


def exact_laplace(m: float, b: float, m2: float, b2: float) -> mp.mpf:
    with mp.workdps(50):
        x, u = mp.mpf(b) / mp.mpf(b2), abs(mp.mpf(m) - mp.mpf(m2)) / mp.mpf(b)
        return x * (mp.exp(-u) - 1 + u) + x - 1 - mp.log(x)


@examples(3)
@given(means, means, scales, ratios)
@example(0.0, 0.0, 1.0, 1.0)
@example(1.0, 1.0, 1.0, 1 + 1e-9)
def test_closed_forms_against_50_digits(m: float, m2: float, s: float, ratio: float) -> None:
    s2 = s * ratio
    assert float(gaussian_kl(m, s, m2, s2)) == pytest.approx(float(exact_gaussian(m, s, m2, s2)), rel=1e-13)
    assert float(laplace_kl(m, s, m2, s2)) == pytest.approx(float(exact_laplace(m, s, m2, s2)), rel=1e-13)


@pytest.mark.parametrize(("m", "s", "m2", "s2"), [(0, 1, 0.5, 1), (0.3, 0.7, -0.4, 1.9), (0, 2, 1, 0.8)])
def test_lemmas_against_quadrature(m: float, s: float, m2: float, s2: float) -> None:
    """The lemmas are statements about integrals of densities."""

    def normal(x: mp.mpf, mean: float, sd: float) -> mp.mpf:
        return mp.npdf(x, mean, sd)

    def laplace(x: mp.mpf, mean: float, b: float) -> mp.mpf:
        return mp.exp(-abs(x - mean) / b) / (2 * b)  # the paper prints exp(+|.|), which is no density

    for density, value in ((normal, gaussian_kl(m, s, m2, s2)), (laplace, laplace_kl(m, s, m2, s2))):
        edges = [-80, *sorted({m, m2}), 80]
        integral = mp.quad(lambda x, f=density: f(x, m, s) * mp.log(f(x, m, s) / f(x, m2, s2)), edges)
        assert float(value) == pytest.approx(float(integral), rel=1e-9)


@examples(5)
@given(means, means, scales, ratios)
@example(0.0, 0.0, 1.0, 1e-6)
@example(0.0, 0.0, 1.0, 0.5)  # sigma^2/sigma'^2 = 4, where Corollary KLG's minimum switches
@example(0.0, 0.0, 1.0, 1 / math.sqrt(13 / 7))  # where our Laplace minimum switches
def test_bounds_hold(m: float, m2: float, s: float, ratio: float) -> None:
    arguments = (m, s, m2, s * ratio)
    assert float(gaussian_kl(*arguments)) <= float(gaussian_kl_bound(*arguments)) * (1 + 1e-13)
    exact, sharp, stated = (float(f(*arguments)) for f in (laplace_kl, laplace_kl_sharp_bound, laplace_kl_bound))
    assert exact <= sharp * (1 + 1e-13)
    assert sharp <= stated * (1 + 1e-13)


def test_how_tight_the_scale_bounds_are() -> None:
    """At equal means: the paper's Laplace constant could be 1/7.296; ours is exact at r = 1."""
    x = np.geomspace(0.2, 20, 200_001)  # sigma/sigma'
    r = x * x
    laplace = laplace_kl(0, x, 0, 1)
    needed = np.divide(laplace * r, (r - 1) ** 2, out=np.zeros_like(r), where=abs(x - 1) > 1e-3)
    assert 1 / needed.max() == pytest.approx(7.296, abs=0.001)
    near = 1 + 1e-4
    assert float(laplace_kl(0, near, 0, 1) / laplace_kl_sharp_bound(0, near, 0, 1)) > 1 - 1e-7
    assert float(laplace_kl(0, near, 0, 1) / laplace_kl_bound(0, near, 0, 1)) == pytest.approx(7 / 8, abs=1e-3)
    assert float(gaussian_kl(0, near, 0, 1) / gaussian_kl_bound(0, near, 0, 1)) > 1 - 1e-7


def test_steps_of_the_laplace_proof() -> None:
    """The two polynomial inequalities behind `laplace_kl_sharp_bound`, and the derivatives they come from."""
    x = np.geomspace(1e-3, 1e3, 100_001)
    assert ((x + 1) * (2 * x**4 + 5 * x**2 + 5) >= 24 * x**2 * (1 - 1e-14)).all()
    assert (2 * x**3 - 5 * x**2 + 2 * x + 2 > 0).all()

    def sharp_gap(x: mp.mpf) -> mp.mpf:
        return (x * x - 1) ** 2 * (5 + x * x) / (48 * x * x) - (x - 1 - mp.log(x))

    def stated_gap(x: mp.mpf) -> mp.mpf:
        return (x * x - 1) ** 2 / (7 * x * x) - (x - 1 - mp.log(x))

    for point in (0.1, 0.7, 1.0, 1.3, 4.0):
        y = mp.mpf(point)
        sharp = (y - 1) / y * ((y + 1) * (2 * y**4 + 5 * y**2 + 5) / (24 * y**2) - 1)
        stated = (y - 1) / (7 * y**3) * (2 * y**3 - 5 * y**2 + 2 * y + 2)
        assert float(mp.diff(sharp_gap, y)) == pytest.approx(float(sharp), abs=1e-10)
        assert float(mp.diff(stated_gap, y)) == pytest.approx(float(stated), abs=1e-10)


def laws(size: int, *, zeros: bool = True) -> st.SearchStrategy[Floats]:
    low = 0.0 if zeros else 1e-6
    weights = st.lists(st.floats(low, 1), min_size=size, max_size=size).filter(lambda w: sum(w) > 1e-3)
    return weights.map(lambda w: np.array(w) / sum(w))


@given(laws(4), laws(4, zeros=False), st.lists(st.floats(-20, 20), min_size=4, max_size=4))
def test_donsker_varadhan_never_exceeds_the_divergence(p: Floats, q: Floats, f: list[float]) -> None:
    divergence = float(finite_kl(p, q))
    assert donsker_varadhan(f, p, q) <= divergence + 1e-12
    best = np.log(np.maximum(p, 1e-300)) - np.log(q)
    assert donsker_varadhan(best, p, q) == pytest.approx(divergence, abs=1e-12)


@given(laws(5), laws(5, zeros=False), st.floats(-4, 3).map(lambda x: 10.0**x))
def test_change_of_measure(p: Floats, q: Floats, t: float) -> None:
    """Corollary MGF-KL for X ~ p and Y ~ q on five points of [0, 1]."""
    x = np.linspace(0, 1, 5)
    log_mgf = float(np.log(np.sum(q * np.exp(t * (x - 1)))) + t)
    assert float(p @ x) <= float(mean_bound(finite_kl(p, q), log_mgf, t)) + 1e-12


def test_change_of_measure_is_attained_by_tilting() -> None:
    t = np.geomspace(1e-3, 1e3, 20_001)
    m, shift = 0.2, 0.7  # N(m + shift, 1) against N(m, 1): D = shift^2/2, attained at t = shift
    best = mean_bound(shift**2 / 2, m * t + t * t / 2, t).min()
    assert float(best) == pytest.approx(m + shift, rel=1e-6)


@given(laws(3), laws(3, zeros=False), laws(3), laws(3, zeros=False), st.floats(0, 1))
def test_convexity_and_the_mean_as_minimiser(p0: Floats, q0: Floats, p1: Floats, q1: Floats, t: float) -> None:
    """Lemma klconv; Lemma klmin: the mixture beats any other centre, by exactly its own divergence from it."""
    mixed = float(finite_kl((1 - t) * p0 + t * p1, (1 - t) * q0 + t * q1))
    assert mixed <= (1 - t) * float(finite_kl(p0, q0)) + t * float(finite_kl(p1, q1)) + 1e-12
    weights, family = np.array([1 - t, t]), np.stack([p0, p1])
    centre = mixture(weights, family)
    with np.errstate(invalid="ignore"):  # what has no weight may be infinitely far away
        at_centre, elsewhere = (
            float(np.where(weights > 0, weights * finite_kl(family, c), 0.0).sum()) for c in (centre, q0)
        )
    assert at_centre + float(finite_kl(centre, q0)) == pytest.approx(elsewhere, abs=1e-12)


@given(laws(24))
@example(np.array([0.0] * 7 + [0.5, 1e-309] + [0.0] * 11 + [0.5] + [0.0] * 3))
def test_chain_rules(flat: Floats) -> None:
    """Lemma KLchain and Lemma MIchain, on three variables with 2, 3 and 4 values."""
    joint = flat.reshape(2, 3, 4)  # x, y, z
    xz = joint.sum(axis=1)
    whole = mutual_information(joint.reshape(6, 4))
    assert whole == pytest.approx(mutual_information(xz) + conditional_mutual_information(joint), abs=1e-12)
    assert mutual_information(xz) == pytest.approx(mutual_information(xz.T), abs=1e-12)
    other = np.full((2, 12), 1 / 24)
    rows = joint.reshape(2, 12)
    share = rows.sum(axis=1)
    inner = sum(w * float(finite_kl(row / w, np.full(12, 1 / 12))) for w, row in zip(share, rows, strict=True) if w > 0)
    total = float(finite_kl(rows.reshape(-1), other.reshape(-1)))
    assert total == pytest.approx(float(finite_kl(share, [0.5, 0.5])) + inner, abs=1e-12)


def test_finite_kl_at_the_ends() -> None:
    assert float(finite_kl([0, 1], [0.5, 0.5])) == pytest.approx(math.log(2))
    assert float(finite_kl([0.5, 0.5], [0, 1])) == math.inf
    assert float(finite_kl([1.0, 0.0], [1e-200, 1.0])) == pytest.approx(200 * math.log(10))
    assert finite_kl(np.eye(3), np.full(3, 1 / 3)).shape == (3,)


def test_hypotheses_are_checked() -> None:
    for f in (gaussian_kl, gaussian_kl_bound, laplace_kl, laplace_kl_bound, laplace_kl_sharp_bound):
        with pytest.raises(InvalidArgument, match="must be positive"):
            f(0, 0, 0, 1)  # Lemma KLG is stated for every real sigma, but has no meaning at 0
        with pytest.raises(InvalidArgument, match="must be positive"):
            f(0, 1, 0, -1)
    with pytest.raises(InvalidArgument, match="t =="):
        mean_bound(1, 1, 0)
    with pytest.raises(InvalidArgument, match="divergence"):
        mean_bound(-1, 1, 1)
    with pytest.raises(InvalidArgument, match="sum to 1"):
        finite_kl([0.5, 0.6], [0.5, 0.5])
