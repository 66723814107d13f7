"""A retired method whose noise follows the standard deviation of numbers (17.10), and guards opened with deviation=."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import mpmath as mp
import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import InvalidArgument
from afresh.mechanisms.twofold import Twofold, plan_twofold
from afresh.moments import Moments
from afresh.receipts import verify
from afresh.theory.symmetrized.common import highest, pairs_within
from afresh.theory.symmetrized.twofold import COARSE, DRAWS, PRICE, number_pairs, units_of, world
from oracle import symmetrized as oracle

ROWS = 50_000
rng = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {"near": np.clip(rng.normal(0.4, 0.05, ROWS), 0, 1), "wide": rng.random(ROWS), "rare": rng.random(ROWS) < 0.01}
)


def planned() -> Twofold:
    found = plan_twofold(ROWS, 200, 0.05, 0.05)
    assert found is not None
    return found


def test_the_steps_of_the_proof_on_random_rows() -> None:
    """e = S[phi] + P[phi] - 2 mean b^2 - 2 mean b (psi - p) exactly, and |phi - phi'| <= 2 M |psi - psi'|."""
    random = np.random.default_rng(8)
    for _ in range(300):
        n, m = 12, 3
        values, laws = random.random((n, m)) ** random.choice([0.1, 1.0, 9.0]), random.dirichlet(np.ones(m), size=n)
        centre = random.random()
        p, squares = (laws * values).sum(axis=1), (laws * (values - centre) ** 2).sum(axis=1)
        own = np.array([row[random.choice(m, p=law)] for row, law in zip(values, laws, strict=True)])
        e = np.mean([(law @ (x - row) ** 2) for law, x, row in zip(laws, own, values, strict=True)])
        b = p - centre
        found = np.mean((own - centre) ** 2) + np.mean(squares) - 2 * np.mean(b * b) - 2 * np.mean(b * (own - p))
        assert float(e) == pytest.approx(float(found), abs=1e-12)
        other = random.random(n)
        phi = (own - centre) ** 2 - (other - centre) ** 2
        assert np.all(np.abs(phi) <= 2 * max(centre, 1 - centre) * np.abs(own - other) + 1e-12)


@pytest.mark.parametrize(("n", "k", "s", "finest"), [(10**5, 1000, 0.005, 0.3), (2000, 20, 0.03, 0.6)])
def test_constants_and_pairs_against_the_oracle(n: int, k: int, s: float, finest: float) -> None:
    c = world(n, k, s, 0.05, finest)
    row = (k * (PRICE - 1 + 1 / finest**2) + 3 / finest**2) / (4 * n * n * s * s)
    w = oracle.unlike_world(n, units_of(k), DRAWS * k, s, 0.05, row)
    # The oracle's noise is the plan's; the finest one makes levels a little larger.
    extra = -math.log(finest)
    assert c.level3 == pytest.approx(float(w.L3) + extra, rel=1e-9)
    w = replace(w, L1=w.L1 + extra, L3=w.L3 + extra, x=mp.mpf(c.tilt), D=mp.mpf(c.pairs))
    w = replace(w, t=mp.mpf(c.step), tau=mp.mpf(c.bulk), kap=mp.mpf(c.swap))
    for square, centre in ((1e-4, 0.5), (0.01, 0.3), (0.2, 0.9), (1.0, 0.5)):
        exact = float(oracle.number_pairs(w, square, centre))
        assert exact * (1 - 1e-9) <= number_pairs(c, square, centre) <= exact * 1.06
    assert number_pairs(c, 1.0, 0.5) <= c.pairs


def test_every_last_draw_costs_at_most_one_plain_answer() -> None:
    """f^2 D is at least the bound of d that both intervals give, whatever was drawn, and rows have room for it."""
    m = planned()
    followed = m.followed
    c = followed.common.constants
    random = np.random.default_rng(3)
    drawn = [*random.random((6, 2)).tolist(), *(random.random((6, 2)) ** 6).tolist()]
    for first, square in [*drawn, (0.0, 0.0), (1.0, 1.0), (0.5, 0.0)]:
        low, high = followed.coarse.ends(first, 0.0)
        most = followed.coarse.ends(square, 0.0)[1]
        f = followed.noise(first, square)
        bound = min(float(pairs_within(c, low, high)), number_pairs(c, most, first))
        assert m.finest <= f <= 1
        assert f * f * c.pairs >= bound * (1 - 1e-9)
        assert c.scaled(f * f * c.pairs, f * m.s) <= c.step * (1 + 1e-9)
        own = followed.ends(first, square, min(first + 0.01, 1.0))
        assert low <= own[0] <= own[1] <= high
    account = m.questions * (2 / COARSE**2 + 1 / m.finest**2) + 3 / m.finest**2
    assert account / (4 * m.rows**2 * m.s**2) <= c.row
    assert m.height <= highest(c, DRAWS * m.questions, m.bend, m.lower) + 1e-9
    sure = [1 / (8 * m.rows * (times * m.s) ** 2) for times in (COARSE, COARSE, m.finest)]  # for p-values and studies
    assert m.information == pytest.approx(m.questions * sum(sure))


def test_the_interval_follows_the_deviation_and_not_the_range() -> None:
    """The figures of 17.10: a number of sd .05 on [0, 1], against ±.0378 and ±.0118 of a plain answer."""
    for n, k, most in ((10**5, 1000, 0.0146), (10**6, 1000, 0.0028)):
        m = plan_twofold(n, k, 0.05, 0.05)
        assert m is not None
        assert m.deviation_width(0.5, 0.05) <= most
        assert m.deviation_width(0.5, 0.05) < m.deviation_width(0.5, 0.15) < 0.6 * m.half_width(0.5)
        assert m.half_width(0.5) >= 2.9 * m.deviation_width(0.5, 0.05)


def test_a_guard_that_follows_the_deviation() -> None:
    with afresh.open(FRAME, 200, deviation=0.05, ledger=":memory:") as guard:
        before = guard.price("near", bounds=(0, 1), missing=0, mean=0.4, deviation=0.05)
        near = guard.ask("near", bounds=(0, 1), missing=0)
        wide = guard.ask("wide < 0.5")
        rare = guard.ask("rare")
        assert near.charged == wide.charged == rare.charged == 1
        # The noise is real: with draws 4.9 deviations off, of a chance of 1e-6, widths are within these.
        assert before.half_width == pytest.approx(near.interval.half_width, rel=0.5)
        assert near.interval.half_width < 0.75 * wide.interval.half_width
        assert near.noise < 0.75 * wide.noise
        for answer, truth in ((near, FRAME.near.mean()), (wide, 0.5), (rare, 0.01)):
            assert answer.low <= truth <= answer.high
        with pytest.raises(InvalidArgument, match="counts its own draws"):
            guard.charge("a mean in a report", noise_sd=0.1)
        with pytest.raises(InvalidArgument, match="must be from 0 to"):
            guard.price("near", bounds=(0, 1), missing=0, deviation=0.9)
        receipt = guard.receipt()
    assert verify(receipt).passed
    # So few rows for so many questions that a method of fixed charges has no room for numbers.
    with afresh.open(FRAME[:10_000], 10_000, method="symmetrized", ledger=":memory:", allow_wide=True) as plain:
        with pytest.raises(InvalidArgument, match="is for a number"):
            plain.price("rare", deviation=0.05)
        price = plain.price("near", bounds=(0, 1), missing=0, deviation=0.05)
        assert price.ways["method='settled'"] < (price.half_width or 0)
        assert "would follow the deviation" in plain.ask("near", bounds=(0, 1), missing=0).covers


def test_forged_draws_and_constants() -> None:
    m = planned()
    right: dict[str, Any] = m.release(Moments(ROWS, 0.4 * ROWS, 0.1625 * ROWS), [0.5, -0.3, 1.0])
    assert m.admits(right)
    for lie in ({"first": 1.5}, {"square": 1e-9}, {"more": 0.5}):
        assert not m.admits({**right, **lie})
    assert not m.admits(0.5)
    assert m.problems() == []
    broken = [{"D": 0.3}, {"height": m.height + 0.01}, {"finest": 0.01}, {"grid": 0.1}, {"bend": 2.0}, {"rows": 100}]
    assert all(replace(m, **each).problems() for each in broken)  # type: ignore[arg-type] # floats and whole numbers


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"deviation": 0.6}, "at most 0.5"),
        ({"deviation": 0.1, "rounds": 3}, "leaves no rounds"),
        ({"deviation": 0.1, "method": "stabilized"}, "leaves no method"),
        ({"deviation": 0.1, "typical": 0.5}, "leaves no typical"),
    ],
)
def test_what_does_not_go_with_it_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        afresh.plan(ROWS, 200, **arguments)
    with pytest.raises(InvalidArgument, match="needs rows and questions"):
        afresh.plan(ROWS, deviation=0.1)
    with pytest.raises(InvalidArgument, match="too few"):
        afresh.plan(20, 10**6, deviation=0.1)


def test_pushing_along_what_was_heard_stays_inside() -> None:
    """Columns of sd .05 whose true mean is 1/2, and then their sum with the signs of what was heard; fixed seed.

    With fresh seeds each conversation would miss with probability at most .05, and in fact far less often.
    """
    n, k = 1500, 12
    m = plan_twofold(n, k, 0.05, 0.05)
    assert m is not None
    random = np.random.default_rng(4)
    for _ in range(8):
        rows = np.clip(0.5 + 0.05 * random.standard_normal((n, k - 1)), 0, 1)
        signs = np.zeros(k - 1)
        for j in range(k):
            values = rows[:, j] if j < k - 1 else 0.5 + (rows - 0.5) @ signs / math.sqrt(k - 1)
            moments = Moments(n, float(values.sum()), float((values * values).sum()))
            released = m.release(moments, random.standard_normal(DRAWS).tolist())
            low, high = m.interval(released)
            assert low <= 0.5 <= high
            if j < k - 1:
                signs[j] = 1.0 if m.value(released) > 0.5 else -1.0
