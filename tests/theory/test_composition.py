"""Adding charges up: exact sums, a filter, an odometer, and foreign analyses, on examples small enough to enumerate."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.theory.composition import (
    Filter,
    Odometer,
    compose,
    from_approximate_dp,
    from_kl_stability,
    from_pure_dp,
    from_renyi,
    from_zcdp,
    on_some_rows,
)
from afresh.theory.divergences import finite_kl, gaussian_kl
from afresh.theory.stability import fixed_gaussian_charge, kl_stability

Floats = NDArray[np.float64]
charges = st.one_of(st.just(0.0), st.floats(-18, 3).map(lambda x: 10.0**x))


@given(st.lists(charges, max_size=30))
def test_compose_is_the_least_float_above_the_sum(parts: list[float]) -> None:
    exact = sum(map(Fraction, parts), Fraction(0))
    total = compose(parts)
    assert Fraction(total) >= exact
    assert total == 0 or Fraction(math.nextafter(total, 0)) < exact


@given(st.lists(charges, max_size=30), charges)
def test_filter_admits_what_fits_exactly(parts: list[float], more: float) -> None:
    account = Filter(compose(parts))
    for part in parts:
        assert account.admits(part)
        account = account.after(part)
    assert account.spent == sum(map(Fraction, parts), Fraction(0))
    assert account.admits(account.left)
    if Fraction(more) > Fraction(account.cap) - account.spent:
        assert not account.admits(more)
        with pytest.raises(InvalidArgument, match="spent \\+ charge <= cap"):
            account.after(more)


def test_a_plan_of_equal_charges_is_spent_to_the_last() -> None:
    charge, account = 0.1, Filter(compose([0.1] * 1000))
    for _ in range(1000):
        account = account.after(charge)
    assert not account.admits(charge)
    assert account.left < 1e-13


def response(bit: NDArray[np.int64], eps: float) -> Floats:
    """Randomised response: the bit is told truly with odds e^eps."""
    truth = 1 / (1 + math.exp(-eps))
    return np.stack([np.where(bit == 0, truth, 1 - truth), np.where(bit == 1, truth, 1 - truth)], axis=-1)


def interaction(n: int, cap: float) -> tuple[Floats, list[Floats], Floats]:
    """Everything an adaptive analyst can see of n bits under a filter, by enumeration.

    He asks about parities of two rows, at a charge that depends on the answers so far (dear after a 1), stops by
    himself after three 1s, and is stopped by the filter. Returns the channel, the centres M_i (the
    same analyst answered without row i, by fair coins where i is asked about) and each transcript's charges.
    """
    s = np.indices((2,) * n)
    leaves: list[tuple[Floats, list[Floats], float]] = []

    def walk(mass: Floats, centres: list[Floats], account: Filter, answers: tuple[int, ...]) -> None:
        rows = (len(answers) % n, (len(answers) + 1 + sum(answers)) % n)
        eps = 1.0 if answers[-1:] == (1,) else 0.4
        charge = from_pure_dp(eps)
        if sum(answers) == 3 or len(answers) == 6 or not account.admits(charge):
            leaves.append((mass, centres, float(account.spent)))
            return
        channel = response((s[rows[0]] + s[rows[1]]) % 2 if rows[0] != rows[1] else s[rows[0]], eps)
        for answer in (0, 1):
            other = [c * (0.5 if i in rows else channel[..., answer]) for i, c in enumerate(centres)]
            walk(mass * channel[..., answer], other, account.after(charge), (*answers, answer))

    walk(np.ones((2,) * n), [np.ones((2,) * n) for _ in range(n)], Filter(cap), ())
    channel = np.stack([mass for mass, _, _ in leaves], axis=-1)
    centres = [np.moveaxis(np.stack([c[i] for _, c, _ in leaves], axis=-1), i, 0)[0] for i in range(n)]
    return channel, centres, np.array([spent for _, _, spent in leaves])


@pytest.mark.parametrize("cap", [0.05, 0.3, 0.7, 1.3])
def test_adaptive_charges_under_a_filter(cap: float) -> None:
    """The whole interaction is cap-stable, and on every sample it costs at most the expected sum of charges."""
    channel, centres, spent = interaction(3, cap)
    assert channel.sum(axis=-1) == pytest.approx(1)
    assert spent.max() <= cap
    assert kl_stability(channel, centres) <= cap
    parts = [finite_kl(channel, np.expand_dims(c, i)) for i, c in enumerate(centres)]
    assert (np.mean(parts, axis=0) <= channel @ spent + 1e-12).all()


def test_a_stop_that_depends_on_the_rows_breaks_the_account() -> None:
    """An answer of charge 0, refused when the first row is 1: the refusal tells the row, for free."""
    channel = np.zeros((2, 2, 2))
    channel[0, :, 0] = channel[1, :, 1] = 1
    centres = [channel.mean(axis=i) for i in range(2)]
    assert kl_stability(channel, centres) == pytest.approx(math.log(2) / 2)


@given(st.lists(charges, max_size=20), st.floats(1e-3, 10), st.floats(1.1, 4))
def test_odometer(parts: list[float], base: float, ratio: float) -> None:
    odometer = Odometer(base, ratio)
    m = odometer.reading(parts)
    assert compose(parts) <= odometer.level(m)
    assert m == 0 or odometer.level(m - 1) < compose(parts)


def test_odometer_shares_sum_to_one() -> None:
    odometer = Odometer(1.0)
    head = math.fsum(odometer.share(m) for m in range(10_000))
    assert head < 1
    assert head + 6 / math.pi**2 / 10_000 == pytest.approx(1, abs=1e-8)  # the tail of the sum, by its integral


def test_some_rows() -> None:
    """A mechanism that may look at 2 of 4 rows only: the other two terms of Def. klas are 0."""
    channel = np.broadcast_to(response(np.array([0, 1]), 1.0)[:, None, None, None, :], (2, 2, 2, 2, 2))
    centres = [channel.mean(axis=i) for i in range(4)]
    of_its_own = kl_stability(channel[:, :, 0, 0], [c[:, 0, 0] for c in centres[:2]])
    assert kl_stability(channel, centres) == pytest.approx(on_some_rows(of_its_own, 2, 4))
    with pytest.raises(InvalidArgument, match="rows"):
        on_some_rows(1.0, 5, 4)


@given(st.floats(1e-6, 20), st.lists(st.floats(-1, 1), min_size=2, max_size=6))
def test_pure_privacy(eps: float, exponents: list[float]) -> None:
    """Any two laws within e^eps of each other have KL <= eps tanh(eps/2) <= min(eps, eps^2/2)."""
    q = np.full(len(exponents), 1 / len(exponents))
    p = q * np.exp(eps / 2 * np.array(exponents))
    p /= p.sum()  # every ratio p/q moved by a factor within e^(eps/2), so by e^eps at most
    bound = from_pure_dp(eps)
    assert float(finite_kl(p, q)) <= bound * (1 + 1e-9) + 1e-15
    assert float(finite_kl(q, p)) <= bound * (1 + 1e-9) + 1e-15
    assert bound <= min(eps, eps**2 / 2) * (1 + 1e-14)
    told = response(np.array([0, 1]), eps)  # attained
    assert float(finite_kl(told[0], told[1])) == pytest.approx(bound, rel=1e-6, abs=1e-14)


@given(st.floats(0.01, 100), st.floats(0.01, 100))
def test_concentrated_privacy_of_gaussian_noise(sd: float, sensitivity: float) -> None:
    """Gaussian noise is rho-zCDP with rho = Delta^2/(2 sd^2), which is its KL; Renyi pairs (a, rho a) give no less."""
    rho = sensitivity**2 / (2 * sd**2)
    assert from_zcdp(rho) == pytest.approx(float(gaussian_kl(sensitivity, sd, 0, sd)))
    assert from_renyi([1.0, 2.0, 8.0], [rho, 2 * rho, 8 * rho]) == rho
    assert from_renyi([1.5, 4.0], [1.5 * rho, 4 * rho]) == pytest.approx(1.5 * rho)


def test_replacement_costs_four_times_a_centre() -> None:
    """The paper's corollary replaces a row by a fixed one; the centre 1/2 of our own charge is four times cheaper."""
    n, sd = 50, 0.1
    assert from_zcdp((1 / n) ** 2 / (2 * sd**2)) == pytest.approx(4 * fixed_gaussian_charge(sd, n))


def test_conversions() -> None:
    assert from_kl_stability(0.3) == 0.3
    assert from_zcdp(0.3, 0.1) == pytest.approx(0.4)
    assert from_renyi(math.inf, 0.5) == from_pure_dp(0.5) == from_approximate_dp(0.5, 0.0)
    assert from_pure_dp(0.0) == 0.0


def test_what_bounds_no_divergence_is_refused() -> None:
    """With delta > 0 a mechanism may print everything with probability delta: KL is then infinite."""
    printed, hidden = np.array([0.999, 0.001, 0.0]), np.array([0.999, 0.0, 0.001])
    assert float(finite_kl(printed, hidden)) == math.inf  # (0, 0.001)-private
    with pytest.raises(InvalidArgument, match="delta == 1e-09"):
        from_approximate_dp(1.0, 1e-9)
    with pytest.raises(InvalidArgument, match="approximate zCDP"):
        from_zcdp(1.0, 0.0, 1e-9)
    with pytest.raises(InvalidArgument, match="order below 1"):
        from_renyi(0.5, 1.0)
    for bad in (-1.0, math.inf, math.nan):
        for convert in (from_kl_stability, from_pure_dp, from_zcdp, lambda x: compose([x]), Filter, Odometer):
            with pytest.raises(InvalidArgument):
                convert(bad)
    with pytest.raises(InvalidArgument, match="ratio"):
        Odometer(1.0, 1.0)
