"""Numbers by methods that add noise: their interval follows the standard deviation, at the price of one answer."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh.errors import InvalidArgument
from afresh.mechanisms.base import DrawsSeveral, FollowsDeviation, at_levels
from afresh.mechanisms.calibrated import plan_calibrated
from afresh.mechanisms.registry import PLANNERS as METHODS
from afresh.mechanisms.stabilized import plan_stabilized
from afresh.moments import Aim, Grouped, Moments
from afresh.receipts import verify
from afresh.results.answer import Interval
from afresh.results.rules import group_ends
from oracle import numbers as oracle
from oracle import stabilized as theta

COARSE = ("calibrated", "stabilized", "symmetrized")
PLANNERS = {"stabilized": plan_stabilized, "calibrated": plan_calibrated}
SIZES = [(10**5, 1000), (2000, 40), (336_776, 100)]
each = pytest.mark.parametrize("method", PLANNERS)


def number(method: str, rows: int, questions: int) -> Any:
    planned: Any = PLANNERS[method](rows, questions, 0.05)
    assert planned.problems() == []
    found = at_levels(planned, None)
    assert isinstance(found, DrawsSeveral)
    assert isinstance(found, FollowsDeviation)
    assert (found.charge, found.row_charge) == (planned.charge, planned.row_charge)
    return found


def drawn(m: Any, mean: float, deviation: float, noise: list[float]) -> dict[str, float]:
    n = m.rows
    released: dict[str, float] = m.release(Moments(n, mean * n, (mean**2 + deviation**2) * n), noise)
    assert m.admits(released)
    return released


@pytest.mark.parametrize(("rows", "questions"), SIZES)
def test_stabilized_against_mpmath(rows: int, questions: int) -> None:
    m = number("stabilized", rows, questions)
    random = np.random.default_rng(7)
    for mean, deviation in ((0.5, 0.05), (0.5, 0.0), (0.2, 0.1), (0.5, 0.5)):
        released = drawn(m, mean, deviation, random.normal(size=4).tolist())
        constants = {name: getattr(m, name) for name in ("answers", "failure", "v0", "s", "lam", "H", "numbers")}
        f, reach = oracle.stabilized_number(
            released["first"], released["square"], n=rows, half_step=m.grid / 2, **constants
        )
        low, high = m.interval(released)
        centre = theta.theta_inverse(released["first"], m.v0)
        rho = 13 / 16
        coarse = m.H / math.sqrt(rho) + m.lam * math.sqrt(rho) / (8 * rows)
        if reach < 2 * math.sqrt(max(centre * (1 - centre), m.v0)) * coarse:
            assert m.noise_in(released) == pytest.approx(f * m.s / math.sqrt(rho), rel=1e-9)
            ends = max(released["last"] - reach, 0.0), min(released["last"] + reach, 1.0)
            assert (low, high) == pytest.approx(ends, abs=1e-9)
        else:
            plain = plan_stabilized(rows, questions, 0.05)
            assert plain is not None
            ends = plain.coarser(1 / math.sqrt(rho)).interval(released["last"])
            assert (low, high) == pytest.approx(ends, abs=1e-12)
        assert low <= m.value(released) <= high


@pytest.mark.parametrize(("rows", "questions"), SIZES)
def test_calibrated_against_mpmath(rows: int, questions: int) -> None:
    m = number("calibrated", rows, questions)
    random = np.random.default_rng(8)
    for mean, deviation in ((0.5, 0.05), (0.5, 0.0), (0.2, 0.1), (0.99, 0.05)):
        released = drawn(m, mean, deviation, random.normal(size=4).tolist())
        names = ("answers", "noise_failure", "numbers", "t", "T", "z", "L", "charge")
        constants = {name: getattr(m, name) for name in names}
        plain = plan_calibrated(rows, questions, 0.05).coarser(math.sqrt(4 / 3)).interval(released["value"])
        exact = oracle.calibrated_number(
            released["value"], released["square"], plain, n=rows, half_step=m.grid / 2, **constants
        )
        assert m.interval(released) == pytest.approx(exact, abs=1e-9)
        assert exact[0] <= m.value(released) <= exact[1]


@each
def test_widths_follow_the_deviation_and_not_the_range(method: str) -> None:
    """Also the delay of flights: a range of 360 minutes, a deviation of 44, 336,776 rows and 100 questions."""
    most = {"stabilized": (0.016, 0.0032, 1.9), "calibrated": (0.0205, 0.0042, 2.9)}[method]
    for (rows, questions), limit in zip([(10**5, 1000), (10**6, 1000)], most[:2], strict=True):
        m = number(method, rows, questions)
        plain = PLANNERS[method](rows, questions, 0.05)
        assert plain is not None
        widths = [m.deviation_width(0.5, sd) for sd in (0.01, 0.05, 0.15, 0.3, 0.5)]
        assert widths == sorted(widths)
        assert widths[1] <= limit
        assert widths[1] < 0.3 * plain.half_width(0.5)
        assert widths[-1] <= 1.08 * plain.half_width(0.5)  # what a number costs that has no small deviation
    assert 360 * number(method, 336_776, 100).deviation_width(0.19, 44 / 360) <= most[2]


@each
def test_forged_numbers_and_constants(method: str) -> None:
    m = number(method, 20_000, 50)
    released = drawn(m, 0.4, 0.05, [0.5, -0.3, 1.0, 0.2])
    for name in released:
        assert not m.admits({**released, name: released[name] + m.grid / 3})
        assert not m.admits({**released, name: -m.grid})
        assert not m.admits({key: value for key, value in released.items() if key != name})
    assert not m.admits(0.5)
    plan: Any = PLANNERS[method](20_000, 50, 0.05)
    assert plan.problems() == []
    for lie in (1.5, -0.1, 0.4):  # more is kept than H or z has room for
        assert replace(plan, numbers=lie).problems()
    assert at_levels(replace(plan, numbers=0.0), None) == replace(plan, numbers=0.0)  # as old ledgers have it


def frame(rows: int) -> pd.DataFrame:
    random = np.random.default_rng(3)
    delay = np.clip(random.gamma(0.35, 20, rows) * 3 - 12, -60, 300)
    near = np.clip(random.normal(0.4, 0.05, rows), 0, 1)
    return pd.DataFrame(
        {"near": near, "delay": delay, "twin": np.clip(near + random.normal(0, 0.02, rows), 0, 1), "wide": near < 0.4}
    )


@each
def test_a_guard_whose_numbers_follow_their_deviation(method: str) -> None:
    """End to end: price, answer, repeat, receipt; and statistics that are made of numbers."""
    data = frame(60_000)
    with afresh.open(data, 60, method=method, simulation_seed=2, made_up=True) as guard:
        price = guard.price("near", bounds=(0, 1), missing=0, mean=0.4, deviation=0.05)
        near, share = guard.ask_many([{"expression": "near", "bounds": (0, 1), "missing": 0}, "wide"])
        assert price.answers == near.charged == share.charged == 1
        assert near.interval.half_width == pytest.approx(price.half_width, rel=0.5)
        assert near.interval.half_width < 0.4 * share.interval.half_width
        assert near.low <= data.near.mean() <= near.high
        assert near.noise < share.noise
        delay = guard.ask("delay", bounds=(-60, 300), missing=0)
        assert delay.interval.half_width < 0.5 * 360 * guard.plan.half_width(0.18)
        assert delay.low <= data.delay.mean() <= delay.high
        again = guard.ask("near", bounds=(0, 1), missing=0)
        assert (again.charged, again.interval) == (0, near.interval)
        of_two = afresh.statistics.Correlation("near", "twin", (0, 1), (0, 1), missing_x=0, missing_y=0)
        found = guard.measure(of_two)
        assert isinstance(found, afresh.Answer)
        assert found.low <= data.near.corr(data.twin) <= found.high
        receipt = guard.receipt()
    assert [check.name for check in verify(receipt).checks if not check.passed] == ["real noise"]


@each
def test_means_of_numbers_within_groups(method: str) -> None:
    """They follow the deviation within a large group, at two answers as before; of a small one the halves are asked."""
    random = np.random.default_rng(4)
    rows = 100_000
    group = random.random(rows) < 0.3
    x = np.clip(random.normal(np.where(group, 0.7, 0.3), 0.05), 0, 1)
    data = pd.DataFrame({"x": x, "large": group, "small": random.random(rows) < 0.02, "y": x < 0.7})
    with afresh.open(data, 100, method=method, simulation_seed=2, made_up=True) as guard:
        price = guard.price("x", (0, 1), "large", missing=0, mean=0.7, share=0.3, deviation=0.05)
        large = guard.ask("x", (0, 1), "large", missing=0)
        assert price.answers == large.charged == 2
        assert large.interval.half_width == pytest.approx(price.half_width, rel=0.5)
        assert large.low <= x[group].mean() <= large.high
        condition = guard.ask("y", where="large")  # a number with the largest deviation, so to say
        assert condition.charged == 2
        assert large.interval.half_width < 0.6 * condition.interval.half_width
        small = guard.ask("x", (0, 1), "small", missing=0)
        assert small.low <= x[data.small].mean() <= small.high
        assert small.interval.half_width < 0.45
        nobody = guard.ask("x", (0, 1), "large AND NOT large", missing=0)
        assert not nobody.told
        assert guard.ask("x", (0, 1), "large", missing=0).charged == 0
        by = afresh.statistics.GroupMeans("x", by="large", categories=[True, False], bounds=(0, 1), missing=0)
        table = guard.measure(by)
        assert isinstance(table, afresh.statistics.base.Measures)
        assert table["False"].low <= x[~group].mean() <= table["False"].high
        assert table["False"].interval.half_width < 0.04
        spread = guard.measure(afresh.statistics.StandardDeviation("x", (0, 1), where="large", missing=0))
        assert isinstance(spread, afresh.Answer)
        assert spread.low <= 0.05 <= spread.high
        receipt = guard.receipt()
    assert [check.name for check in verify(receipt).checks if not check.passed] == ["real noise"]
    stated = [each for each in receipt["questions"] if each["rule"] == "group"]
    forged = [{**each, "low": each["low"] + 1e-6} if each in stated[:1] else each for each in receipt["questions"]]
    assert sum(not check.passed for check in verify({**receipt, "questions": forged}).checks) == 2


@each
def test_draws_of_a_group_are_of_what_they_aim_at(method: str) -> None:
    m, random = number(method, 20_000, 50), np.random.default_rng(6)
    for share in (0.5, 0.004):
        group = random.random(20_000) < share
        a = np.clip(random.normal(0.6, 0.1, 20_000), 0, 1)
        for second in (False, True):
            moments = Grouped(20_000, (a * group).sum(), (a * a * group).sum(), int(group.sum()), second)
            released = m.release(moments, random.normal(size=4).tolist())
            assert m.admits(released)
            aim = m.aim(released)
            values = aim.inside * a * group + aim.share * group + aim.constant
            own = moments.of(aim)
            assert (own.mean, own.variance) == pytest.approx((values.mean(), values.var()), abs=1e-9)
            assert values.min() >= 0
            assert values.max() <= 1
            low, high = m.interval(released)
            assert low <= values.mean() <= high
            assert not m.admits({**released, "share": 0.0, "group": 0.0})


def test_corners_hold_every_group_that_two_answers_admit() -> None:
    """By brute force over x = E[A 1_B] and p = Pr(B), for every mix of what two answers may aim at."""
    random = np.random.default_rng(9)
    for _ in range(400):
        p = random.random() ** 2
        x, c, reach = p * random.random(), random.random(), random.random(2) * random.choice([0.3, 0.01])
        one = Aim(0, 1, 0, 0) if random.random() < 0.5 else Aim(1, 0, 0, 0)
        aims = one, Aim(1, -c, c, 0) if random.random() < 0.5 else Aim(-1, 1, 0, 0)
        both = [aim.inside * x + aim.share * p + aim.constant for aim in aims]
        ends = [Interval(max(v - r, 0.0), min(v + r, 1.0)) for v, r in zip(both, reach, strict=True)]
        found = group_ends(aims, *ends)
        assert found.low <= x / p <= found.high
        inside = [aim.inside * X + aim.share * P + aim.constant for aim in aims]
        fits = [(v >= end.low) & (v <= end.high) for v, end in zip(inside, ends, strict=True)]
        ratios = (X / P)[fits[0] & fits[1]]
        if ratios.size:
            assert found.low <= ratios.min() + 1e-12
            assert found.high >= ratios.max() - 1e-12


@given(
    x=st.floats(0, 1),
    p=st.floats(1e-6, 1),
    c=st.floats(1e-6, 1),
    small=st.booleans(),
    large=st.booleans(),
)
def test_ends_of_a_group_lie_outside_of_the_exact_ones(x: float, p: float, c: float, small: bool, large: bool) -> None:
    """Exact rationals, for intervals of one float; where answers nearly tell the same, rounding is large."""
    one = Aim(1, 0, 0, 0) if small else Aim(0, 1, 0, 0)
    aims = one, Aim(1, -c, c, 0) if large else Aim(-1, 1, 0, 0)
    both = [float(aim.inside * x * p + aim.share * p + aim.constant) for aim in aims]
    found = group_ends(aims, *(Interval(v, v) for v in both))
    (a, g, d), (b, h, e) = (tuple(map(Fraction, aim[:3])) for aim in aims)
    v, w = map(Fraction, both)
    inside, share = (h * (v - d) - g * (w - e)), (a * (w - e) - b * (v - d))
    if (whole := a * h - b * g) != 0 and share / whole > 0:
        exact = max(min(inside / share, Fraction(1)), Fraction(0))
        assert Fraction(found.low) <= exact <= Fraction(found.high)


P, X = np.meshgrid(np.linspace(1e-3, 1, 150), np.linspace(0, 1, 150))
X *= P


@each
def test_a_forged_receipt_of_a_number_is_found(method: str, tmp_path: Any) -> None:
    """A square that was made smaller would give a narrower interval; the chain and the recomputation say so."""
    data, place = frame(5000), tmp_path / "ledger.sqlite"
    with afresh.open(data, 20, method=method, ledger=place) as guard:
        near = guard.ask("near", bounds=(0, 1), missing=0)
        guard.ask("near", bounds=(0, 1), where="delay > 0", missing=0)
        receipt = guard.receipt()
    with afresh.open(data, ledger=place) as guard:  # as another process would
        assert guard.ask("near", bounds=(0, 1), missing=0).interval == near.interval
    assert verify(receipt).passed
    assert receipt["version"] >= 4
    assert receipt["plan"]["constants"]["numbers"] > 0
    for lie in ({"low": 0.399}, {"value": 0.41}):
        forged = {**receipt, "answers": [{**receipt["answers"][0], **lie}, *receipt["answers"][1:]]}
        assert not verify(forged).passed
    plan = receipt["plan"]
    assert not verify({**receipt, "plan": {**plan, "constants": {**plan["constants"], "numbers": 0.0}}}).passed


@pytest.mark.parametrize("method", ["stabilized", "symmetrized", "settled", "calibrated", None])
def test_both_answers_about_a_group_are_aimed_alike(method: str | None) -> None:
    """At about the size from which a group is large: if each decided for itself, some would be of no use together."""
    rng = np.random.default_rng(5)
    inside = rng.random(100_000) < 0.2
    frame = pd.DataFrame({"x": np.clip(rng.normal(np.where(inside, 0.5, 0.2), 0.04), 0, 1), "g": inside})
    way: dict[str, Any] = {"questions": None} if method is None else {"questions": 1000, "method": method}
    with afresh.open(frame, simulation_seed=5, made_up=True, **way) as guard:
        mechanism: Any = at_levels(guard.plan.mechanism, None)
        for place in range(20):
            asked = {"expression": f"x + {place} * 0", "bounds": (0, 1), "missing": 0}
            guard.ask_many([asked | {"where": group} for group in ("g", "not g")])  # and are not confused
            entries = guard.desk.ledger.entries(guard.desk.terms)[-4:]
            found: list[Any] = [entry.outcome.released for entry in entries if entry.outcome is not None]
            for first, second in (found[:2], found[2:]):
                assert (first["share"], first["first"]) == (second["group"], second["first"])
                assert first["square"] != second["square"]
                assert (mechanism.aim(first).inside == 0) == (mechanism.aim(second).inside == 1)
            assert found[0]["share"] != found[2]["share"]
        failed = [check.name for check in verify(guard.receipt()).checks if not check.passed]
    assert failed == ["real noise"]


@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_precision_of_a_number_can_be_chosen_or_is_refused(method: str) -> None:
    """At a lower charge, over all rows and within a group; where all answers have the same noise it says so, free."""
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({"x": np.clip(rng.normal(0.5, 0.1, 20_000), 0, 1), "g": rng.random(20_000) < 0.5})
    with afresh.open(frame, questions=100, answers=300 if method in COARSE else None, method=method) as guard:
        for where in (None, "g"):
            asked: dict[str, Any] = {
                "expression": "x",
                "bounds": (0, 1),
                "missing": 0,
                "where": where,
                "precision": 0.2,
            }
            if method not in COARSE:
                for call in (guard.price, guard.ask):
                    with pytest.raises(InvalidArgument, match="precision cannot be chosen with"):
                        call(**asked)
                assert guard.budget.spent == 0
                continue
            price, found = guard.price(**asked), guard.ask(**asked)
            best = guard.price("x", (0, 1), where, 0)
            assert price.charge < best.charge
            assert price.half_width is not None
            assert best.half_width is not None
            assert price.half_width > best.half_width
            assert 0.5 in found.interval
            assert where is not None or found.interval.half_width <= 0.2
        assert verify(guard.receipt()).passed
