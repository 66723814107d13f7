"""Every mechanism's interval at confidences up to 1 - 1e-12, against arithmetic of 40 digits or more.

There 1 - failure keeps four digits of the failure: whatever is computed from it is wrong in the fifth. Intervals must
not lie inside the exact ones, and must be nearly as narrow.
"""

import mpmath as mp
import pytest

from afresh.lab.baselines.calibrated_laplace import CalibratedLaplace
from afresh.lab.baselines.fixed_gaussian import FixedGaussian
from afresh.lab.baselines.fixed_laplace import FixedLaplace
from afresh.mechanisms.base import Mechanism
from afresh.mechanisms.calibrated import Calibrated
from afresh.mechanisms.guess_and_check import make_guess_and_check
from afresh.mechanisms.planned_checks import plan_checks
from afresh.mechanisms.registry import MECHANISMS
from afresh.mechanisms.rounds import Rounds
from afresh.mechanisms.split import Split
from afresh.mechanisms.stabilized import Stabilized, plan_stabilized
from afresh.mechanisms.symmetrized import Symmetrized, plan_symmetrized
from afresh.theory.bernoulli import entropy
from afresh.theory.extremes import cvar, cvar_square, cvar_with_square, quantile
from afresh.theory.guess_and_check import Record, released_interval
from afresh.theory.information import log_threshold
from oracle import calibrated as calibrated_oracle
from oracle import narrower
from oracle import stabilized as stabilized_oracle
from oracle import symmetrized as symmetrized_oracle

FAILURES = (0.05, 1e-3, 1e-6, 1e-9, 1e-12)
each = pytest.mark.parametrize("failure", FAILURES)


def binomial_tail(count: int, rows: int, share: mp.mpf) -> mp.mpf:
    """Pr(Bin(rows, share) <= count), term by term."""
    if share == 1:
        return mp.mpf(count >= rows)
    term = (1 - share) ** rows
    total = term
    for x in range(count):
        term *= (rows - x) * share / ((x + 1) * (1 - share))
        total += term
    return total


def is_just_outside(low: float, high: float, exact: tuple[float, float], slack: float) -> bool:
    """Not inside the exact interval, which floats round, and nearly as narrow."""
    rounding = 4e-16
    outward = low <= exact[0] * (1 + rounding) and high >= exact[1] * (1 - rounding)
    return outward and low >= exact[0] * (1 - slack) - 1e-40 and high <= exact[1] * (1 + slack)


@each
@pytest.mark.parametrize(("rows", "questions"), [(40, 40), (370, 10), (20_000, 20)])
def test_split(failure: float, rows: int, questions: int) -> None:
    mechanism = Split(rows, questions, failure)
    block, side = mechanism.block, mechanism.failure / (2 * questions)
    for hits in sorted({0, 1, block // 10, block // 2, block - 1, block} & set(range(block + 1))):
        low, high = mechanism.interval(hits / block, levels=2)
        with mp.workdps(60):
            # Both tails are Pr(Bin <= count) of a share: of hits at the upper end, of misses at the lower.
            for count, share, end in ((hits, mp.mpf(high), high), (block - hits, 1 - mp.mpf(low), low)):
                if count == block:
                    assert share == 1
                    continue
                assert binomial_tail(count, block, share) <= side
                assert binomial_tail(count, block, share - mp.mpf(1e-11) * end) > side
            bound = mp.log(2 * questions / mp.mpf(failure))
            exact = calibrated_oracle.truth_range(hits / block, hits / block, block, bound)
        assert is_just_outside(*mechanism.interval(hits / block), exact, 1e-12)


@each
@pytest.mark.parametrize("look", [1.0, 2.0])
def test_rounds(failure: float, look: float) -> None:
    """Conditions by exact binomials, of which only a single hit has a limit of its own; others by the bets' oracle."""
    mechanism = Rounds(4000, 20, failure, 10, 0.1)
    n, share = mechanism.batch, mechanism.failure / 20 * (0.1 if look == 2 else 0.9)
    for hits in (0, 2, 40, 200, 398, 400):
        released = {"rows": 400.0, "total": float(hits), "squares": float(hits), "look": look}
        low, high = mechanism.interval(released, levels=2)
        with mp.workdps(60):
            for count, at in ((hits, mp.mpf(high)), (n - hits, 1 - mp.mpf(low))):
                if count < n:
                    assert binomial_tail(count, n, at) <= share / 2
                    assert binomial_tail(count, n, at * (1 - mp.mpf(1e-5))) > share / 2
    for total, squares in ((40.0, 10.0), (200.0, 101.0), (390.0, 385.0)):
        low, high = mechanism.interval({"rows": 400.0, "total": total, "squares": squares, "look": look})
        below = narrower.betting_lower(narrower.two_points(n, total, squares), n, share / 2)
        mirrored = narrower.two_points(n, n - total, n - 2 * total + squares)
        assert (low, 1 - high) == pytest.approx((below, narrower.betting_lower(mirrored, n, share / 2)), abs=1e-6)
    single = mechanism.interval({"rows": 400.0, "total": 1.0, "squares": 1.0, "look": look}, levels=2)
    assert single[0] == pytest.approx(share / 2 / n, rel=1e-5)


@each
@pytest.mark.parametrize("kind", [Calibrated, CalibratedLaplace])
def test_calibrated(failure: float, kind: type[Calibrated]) -> None:
    n, k, t, T, b2 = 10**5, 50, 4e4, 1.6e8, failure / 3
    mechanism = kind.of(n, k, failure, t, T, b2)
    charge = (calibrated_oracle.charge if kind is Calibrated else calibrated_oracle.laplace_charge)(t, T, n)
    z = calibrated_oracle.noise_quantile(k, b2) if kind is Calibrated else laplace_quantile(k, b2)
    level = calibrated_oracle.log_threshold(failure - b2, n * k * charge)
    for v in (0.0, 0.003, 0.5, 0.9):
        means = calibrated_oracle.sample_mean_range(v, z, t, T, mechanism.grid / 2)
        exact = calibrated_oracle.truth_range(*means, n, level)
        low, high = mechanism.interval(v)
        assert low <= exact[0] + 1e-13
        assert high >= exact[1] - 1e-13
        assert low >= exact[0] - 2 * mechanism.grid
        assert high <= exact[1] + 2 * mechanism.grid


@each
@pytest.mark.parametrize("kind", [FixedGaussian, FixedLaplace])
def test_fixed(failure: float, kind: type[FixedGaussian] | type[FixedLaplace]) -> None:
    n, k, scale, b2 = 10**5, 50, 0.01, failure / 3
    mechanism = kind(n, k, failure, scale, b2)
    if kind is FixedGaussian:
        nats = stabilized_oracle.fixed_information(n, k, scale)
        level = stabilized_oracle.posterior_level(n, nats, failure - b2)
        reach = stabilized_oracle.cvar_max_normal(k, b2)
    else:
        level = calibrated_oracle.log_threshold(failure - b2, mechanism.information)
        reach = laplace_quantile(k, b2)
    for v in (0.0, 0.003, 0.5, 0.9):
        around = scale * reach + mechanism.grid / 2
        exact = calibrated_oracle.truth_range(max(v - around, 0.0), min(v + around, 1.0), n, level)
        assert is_just_outside(*mechanism.interval(v), exact, 1e-8)


@each
def test_stabilized(failure: float) -> None:
    mechanism = plan_stabilized(2000, 20, failure)
    assert isinstance(mechanism, Stabilized)
    m = mechanism
    bound = stabilized_oracle.H(m.s, m.lam, m.information, m.c, m.B, m.A, m.theta, m.questions, failure)
    assert bound * (1 - 1e-9) <= m.H
    # The positive part of the joint form, for unequal answers, costs a little.
    assert bound * (1 + 1e-3) >= m.H
    for y in (0.0, 0.1, 0.8, m._transform.top):
        exact = stabilized_oracle.interval(y, m.rows, m.lam, m.v0, m.H + m.grid / 2)
        low, high = m.interval(y)
        assert exact[0] - 1e-4 <= low <= exact[0] + 1e-12
        assert exact[1] - 1e-12 <= high <= exact[1] + 1e-4


@each
@pytest.mark.parametrize("answers", [20, 60])
def test_symmetrized(failure: float, answers: int) -> None:
    """Of a truth at an end, the half-width reaches the answer by the oracle's own conditions, and hardly beyond it."""
    m = plan_symmetrized(2000, 20, failure, answers)
    assert isinstance(m, Symmetrized)
    w = symmetrized_oracle.unlike_world(m.rows, m.questions, answers, m.s, failure, m.q, m.numbers, concave=m.concave)
    assert float(w.D) * (1 - 1e-9) <= m.D <= float(w.D) * (1 + 1e-9)
    with mp.workdps(30):
        level = mp.log(w.bm * (1 - mp.mpf(m.lower))) - symmetrized_oracle.curve_sum(w, m.bend, answers)
        if m.numbers:  # which meet their own first draws, of these parts of an answer
            rate, parts = (
                mp.mpf(m.bend) / (1 - mp.mpf(m.bend)),
                [mp.mpf(m.firsts) * part for part in (mp.mpf(1) / 16, mp.mpf(1) / 16, mp.mpf(1) / 8)],
            )
            level -= sum(mp.log1p(rate * w.t * part / (1 + w.t * part)) for part in parts) / 2
        upper = float(level + mp.mpf(m.bend) / (2 * (1 - mp.mpf(m.bend))) * w.tau)
        lower = float(mp.log(w.bm * mp.mpf(m.lower) / answers))
    for value in (0.0, 0.1, 0.5):
        low, high = m.interval(value)
        assert low <= value <= high
        for end in (low, high):
            if not 0 < end < 1:
                continue
            pairs = symmetrized_oracle.unlike_pairs(w, end, 24)
            b = float(mp.sqrt(w.gam * pairs / (4 * w.n * w.s**2)))
            curve = (b, float(w.tau), float(w.kap), [m.bend], [1.0], upper, lower)
            h = (abs(end - value) - m.grid / 2) / m.s
            assert symmetrized_oracle.admits(h * 1.004, *curve)  # the oracle's alphas are a grid
            # The cells of the table, and the bounds on pairs, cost a little.
            assert not symmetrized_oracle.admits(h * 0.95, *curve)


@each
def test_guess_and_check(failure: float) -> None:
    mechanism = make_guess_and_check(10**4, 50, failure)
    rows = mechanism.check_rows
    with mp.workdps(40):  # the first of k questions: r_0 = 6/pi^2 of failure/k
        level = mp.log(2 * 50 * mp.pi**2 / (6 * mp.mpf(failure)))
    for index in (0, 3, 49):
        record = Record(0.5, 0.4, 0.6, 50, index)
        exact = calibrated_oracle.truth_range(index / 50, (index + 1) / 50, rows, level)
        first = mechanism.history([])
        low, high = mechanism.interval(
            {"guess": 0.5, "low": 0.4, "high": 0.6, "bins": 50.0, "bin": float(index)}
            | {"asked": 0.0, "failures": 0.0, "log_bins": first.log_bins}
        )
        assert is_just_outside(low, high, exact, 1e-8)
        assert (low, high) == pytest.approx(released_interval(record, rows, float(level)), rel=1e-9)


@each
def test_checked(failure: float) -> None:
    """The first of 50 questions: the bin of a failed share, at half of a twentieth of failure/50 times its law."""
    mechanism = plan_checks(10**4, 50, failure)
    assert mechanism is not None
    rows = mechanism.guarded
    symbol = {"task": 0.0, "guess": 0.5, "deviation": -1.0, "low": 0.4, "high": 0.6, "cells": 50.0}
    for index in (0, 3, 49):
        released = {**symbol, "values": 0.0, "first": float(index), "last": index + 1.0}
        low, high = mechanism.interval(released | {"steps": 0.0, "events": 0.0, "nats": 0.0})
        with mp.workdps(40):  # no step before the first: its law weighs 1
            side = mp.mpf(failure) / 50 * (1 - mp.mpf(mechanism.passing)) / 2
            edges = rows * mp.mpf(index) / 50, rows * mp.mpf(index + 1) / 50
            below = mp.betainc(edges[0], rows - edges[0] + 1, 0, low, regularized=True) if index else mp.mpf(0)
            above = mp.betainc(edges[1] + 1, rows - edges[1], high, 1, regularized=True) if index < 49 else mp.mpf(0)
        assert below <= side
        assert above <= side
        assert index == 0 or below >= side * (1 - mp.mpf("1e-4"))
        assert index == 49 or above >= side * (1 - mp.mpf("1e-4"))


def test_no_mechanism_is_left_out() -> None:
    tested: set[type[Mechanism]] = {Split, Rounds, Calibrated, Stabilized, Symmetrized}
    # The last three have the curves of Symmetrized; test_common and a test of each by its name try their corners.
    elsewhere = {"guess-and-check", "checked", "endless", "twofold", "settled"}
    assert set(MECHANISMS) == {kind.method for kind in tested} | elsewhere


@each
@pytest.mark.parametrize("k", [1, 100, 10**6])
def test_quantiles_of_the_noise(failure: float, k: int) -> None:
    assert quantile(k, failure) == pytest.approx(calibrated_oracle.noise_quantile(k, failure), rel=1e-13)
    assert cvar(k, failure) == pytest.approx(stabilized_oracle.cvar_max_normal(k, failure), rel=1e-11)
    assert cvar_square(failure) == pytest.approx(stabilized_oracle.cvar_chi_square(failure), rel=1e-12)
    for weight in (0.02, 1.0):
        joint = stabilized_oracle.cvar_joint(1.0, weight, k, failure, share=1 / k)
        assert cvar_with_square(k, failure, weight) == pytest.approx(joint, rel=5e-9)


@each
@pytest.mark.parametrize("share", [0.0, 1e-3, 1.0, 10.0, 1e6])
def test_level_of_little_information(failure: float, share: float) -> None:
    """Where I is about the failure, the level hangs on the entropy of the failure to all its digits."""
    nats = share * failure
    exact = calibrated_oracle.log_threshold(failure, nats)
    found = log_threshold(failure, nats)
    assert exact * (1 - 4e-16) <= found <= exact * (1 + 1e-12)


@pytest.mark.parametrize("p", [0.0, 1e-300, *FAILURES, 0.5, 1 - 1e-9, 1 - 2.0**-53, 1.0])
def test_entropy(p: float) -> None:
    with mp.workdps(400):
        x = mp.mpf(p)
        exact = -sum(y * mp.log(y) for y in (x, 1 - x) if y > 0)
    assert entropy(p) == pytest.approx(float(exact), rel=1e-15, abs=0)


def laplace_quantile(k: int, failure: float) -> float:
    """z with (1 - e^-z)^k = 1 - failure."""
    with mp.workdps(40):
        return float(-mp.log(-mp.expm1(mp.log1p(-mp.mpf(failure)) / k)))
