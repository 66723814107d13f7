"""What a price says of a statistic, against what measuring it gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import afresh
from afresh.errors import InvalidArgument
from afresh.results import show
from afresh.statistics import (
    Correlation,
    Covariance,
    GroupMeans,
    Histogram,
    Quantile,
    StandardDeviation,
    Variance,
    VectorMean,
)

ROWS, X, Y, BOUNDS = 100_000, (40.0, 8.0), (60.0, 10.0), (0.0, 120.0)
ONE: dict[str, Any] = {"bounds": BOUNDS, "missing": 0}
BOTH: dict[str, Any] = {"bounds_x": BOUNDS, "bounds_y": BOUNDS, "missing_x": 0, "missing_y": 0}
WAYS: dict[str, dict[str, Any]] = {
    "checked": {"method": "checked"},
    "rounds": {"rounds": 40},
    "open": {"open": 0.5},
    "symmetrized": {"method": "symmetrized"},
    "settled": {"method": "settled"},
    "calibrated": {"method": "calibrated"},
}


def rows() -> pa.Table:
    """Bell curves, and a group of three in ten rows."""
    rng = np.random.default_rng(3)
    columns = {name: rng.normal(*law, ROWS).clip(*BOUNDS) for name, law in (("x", X), ("y", Y))}
    return pa.table({**columns, "g": rng.random(ROWS) < 0.3})


@pytest.fixture(scope="module", params=WAYS)
def guard(request: pytest.FixtureRequest) -> Iterator[afresh.Guard]:
    with afresh.open(rows(), 1000, simulation_seed=1, made_up=True, **WAYS[request.param]) as opened:
        yield opened


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (Variance("x", **ONE), {}),
        (StandardDeviation("x", **ONE), {}),
        (Variance("x", **ONE, within=3), {}),
        (StandardDeviation("x", **ONE, where="g"), {"share": 0.3}),
        (Covariance("x", "y", **BOTH), {"mean": (X[0], Y[0]), "deviation": (X[1], Y[1])}),
        (Correlation("x", "y", **BOTH, within=3), {"mean": (X[0], Y[0]), "deviation": (X[1], Y[1])}),
        (Quantile("x", 0.5, **ONE), {}),
        (Quantile("x", 0.9, **ONE), {}),
        (Quantile("x", 0.5, **ONE, where="g"), {"share": 0.3}),
    ],
    ids=lambda each: type(each).__name__ if not isinstance(each, dict) else "",
)
def test_a_statistic_is_about_as_wide_as_its_price_says(
    guard: afresh.Guard, statistic: Any, expected: dict[str, Any]
) -> None:
    """The seed fixes rows and noise. Noise and bisection move a width by less than half of it here."""
    spent = guard.budget.spent
    price = guard.price(statistic, **{"mean": X[0], "deviation": X[1], **expected})
    assert guard.budget.spent == spent
    assert price.half_width is not None
    found = guard.measure(statistic)
    assert isinstance(found, afresh.Answer)
    assert 0.6 < found.interval.half_width / price.half_width < 1.7
    assert f"±{show.width(price.half_width)} for numbers" in price.words or "share" in expected


def test_numbers_that_come_together_have_the_width_of_each(guard: afresh.Guard) -> None:
    """At a mean and share that are given; widths of a number in the middle of its ball are about the largest."""
    bins = guard.price(Histogram("x", [0, 20, 40, 60, 80, 120]), mean=0.49).half_width
    means = guard.price(GroupMeans("x", "g", [True], **ONE), mean=40, share=0.3, deviation=8).half_width
    ball = guard.price(VectorMean(["x", "y"], 30, [40, 60])).half_width
    assert None not in (bins, means, ball)
    found = guard.measure(Histogram("x", [0, 20, 40, 60, 80, 120]))
    assert 0.6 < found["[20, 40)"].interval.half_width / bins < 1.7  # type: ignore[index,operator]
    found = guard.measure(GroupMeans("x", "g", [True], **ONE))
    assert 0.4 < found["True"].interval.half_width / means < 2.5  # type: ignore[index,operator]
    found = guard.measure(VectorMean(["x", "y"], 30, [40, 60]))
    assert found["x"].interval.half_width / ball < 1.7  # type: ignore[index,operator]


def test_a_price_says_how_many_rounds_it_takes() -> None:
    with afresh.open(rows(), 1000, rounds=40, simulation_seed=1, made_up=True) as guard:
        for statistic in (Variance("x", **ONE), Variance("y", **ONE, within=3), Quantile("y", 0.5, **ONE)):
            price, before = guard.price(statistic), guard.budget.rows_left
            assert before is not None
            guard.measure(statistic)
            assert before - (guard.budget.rows_left or 0) == price.rounds * guard.plan.mechanism.batch  # type: ignore[operator]
        assert "2 rounds of 2,500 fresh rows; " in guard.price(Variance("x + y", **ONE)).words
        assert guard.price("x > 1").rounds == 1
    with afresh.open(rows(), 1000, rounds=1, simulation_seed=1, made_up=True) as guard:
        assert "which is not enough" in guard.price(Variance("x", **ONE)).words


def test_the_words_say_what_is_assumed(guard: afresh.Guard) -> None:
    words = guard.price(Correlation("x", "y", **BOTH)).words
    assert "for numbers with about a bell curve, means 60 and 60 and standard deviations 20 and 20." in words
    grouped = guard.price(StandardDeviation("x", **ONE, where="g"))
    assert set(grouped.half_widths) == {0.5, 0.1, 0.01}
    assert "if the group has half of the rows" in grouped.words


@pytest.mark.parametrize(
    ("statistic", "expected", "told"),
    [
        (Variance("x", **ONE), {"deviation": 61}, "deviation == 61"),
        (Variance("x", **ONE), {"mean": -1}, "mean == -1"),
        (Variance("x", **ONE), {"mean": "much"}, "mean == 'much'"),
        (Variance("x", **ONE), {"mean": (1, 2)}, "must be one number, or 1"),
        (Correlation("x", "y", **BOTH), {"deviation": (1, 2, 3)}, "must be one number, or 2, one for each"),
        (Variance("x", **ONE), {"share": 0}, "share == 0"),
        (Variance("x", **ONE), {"bounds": (0, 1)}, "no more than mean=, share= and deviation="),
        (Variance("x", **ONE), {"exam": 2}, "no more than mean=, share= and deviation="),
        (Histogram("x", [0, 1]), {"deviation": 1}, "deviation = 1 is for a number"),
    ],
)
def test_a_wrong_guess_is_refused(guard: afresh.Guard, statistic: Any, expected: dict[str, Any], told: str) -> None:
    spent = guard.budget.spent
    with pytest.raises(InvalidArgument, match=told.replace("(", r"\(")):
        guard.price(statistic, **expected)
    assert guard.budget.spent == spent


@settings(max_examples=20, deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.floats(0.02, 0.98), st.floats(0, 1))
def test_a_price_follows_the_units(scale: float, start: float, mean: float, spread: float) -> None:
    """A variance of numbers in other units is as many squared units wide."""
    with afresh.open(rows().slice(0, 5000), 100, simulation_seed=1, made_up=True) as guard:
        most = spread * (mean * (1 - mean)) ** 0.5
        unit = guard.price(Variance("x", (0, 1), missing=0), mean=mean, deviation=most).half_width
        own = guard.price(
            Variance("x", (start, start + scale), missing=start),
            mean=min(max(start + scale * mean, start), start + scale),
            deviation=scale * most * (1 - 1e-9),
        ).half_width
        assert unit is not None
        assert own == pytest.approx(unit * scale**2, rel=1e-2, abs=1e-6 * scale**2)
