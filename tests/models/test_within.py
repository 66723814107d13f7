"""Spreads and correlations of numbers clipped around their means. Noise is simulated: decided once."""

import itertools
import json
import math
import re
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh import statistics as s
from afresh.errors import BudgetExhausted, InvalidArgument
from afresh.ledger import Entry
from afresh.mechanisms.registry import PLANNERS
from afresh.planning.choose import plan
from afresh.queries.text import number
from afresh.receipts import verify
from afresh.results.answer import Answer, Interval
from afresh.results.reading import Reading
from afresh.results.rules import RULES, scale_of
from afresh.results.spreads import most_correlated
from afresh.statistics import around
from afresh.statistics.around import bounds_around
from afresh.statistics.base import Asker
from afresh.statistics.closer import clipped_width
from afresh.wire.arguments import OF_ROWS, to_argument, to_statistic

PLAN = plan(1000, 10)
SPREADS = "variance", "standard deviation", "covariance", "correlation by sums"
WAYS: list[dict[str, Any]] = [
    *({"questions": 200, "method": each} for each in PLANNERS if each != "rounds"),
    {"questions": 200, "rounds": 20},
    {"questions": None},
]
RNG = np.random.default_rng(8)
_A, _B = RNG.standard_normal((2, 5000))
POPULATION = pd.DataFrame(
    {"x": np.clip(0.5 + 0.05 * _A, 0, 1), "y": np.clip(40 + 5 * (0.6 * _A + 0.8 * _B), 0, 100), "g": _A > _B}
)
POPULATION.loc[:3, "x"] = 1.0  # far away: clipping matters
BOUNDS: tuple[Any, Any] = (0, 1), (0, 100)
WHOLE: dict[str, Any] = {"missing_x": 0, "missing_y": 0}


def releases(way: dict[str, Any]) -> bool:
    """Whether the deviation of a number is released with its mean."""
    return way.get("method") in ("checked", "rounds") or "rounds" in way or "open" in way


def sample(rows: int) -> pd.DataFrame:
    return POPULATION.iloc[RNG.integers(0, len(POPULATION), rows)].reset_index(drop=True)


def clipped_truth(question: str, frame: pd.DataFrame) -> float:
    """The correlation in the population of the numbers that an answer says it is about."""
    (a, b), (c, d) = (map(float, part.strip("[]").split(", ")) for part in question.rsplit(": ", 1)[1].split(" and "))
    return float(np.corrcoef(frame.x.clip(a, b), frame.y.clip(c, d))[0, 1])


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.get("method", "rounds" if "rounds" in way else "endless"))
def test_a_correlation_of_clipped_numbers_is_of_use(way: dict[str, Any]) -> None:
    """At a twentieth of the bounds it is known to a third or better, where that of all values is hardly known."""
    with afresh.open(sample(100_000), simulation_seed=4, made_up=True, **way) as guard:
        statistic = s.Correlation("x", "y", *BOUNDS, **WHOLE)
        assert statistic == s.Correlation("x", "y", *BOUNDS, **WHOLE, within=3)
        price = guard.price(statistic)
        found, plain = guard.measure(statistic), guard.measure(replace(statistic, within=None))
        assert isinstance(found, Answer)
        assert isinstance(plain, Answer)
        if releases(way):
            assert found.charged == 7
            assert price.answers == (7 if "rounds" in way else 11)
        else:
            assert found.charged == 9
            assert price.answers == statistic.price == 17
            assert "Costs about 9 and at most 17 answers" in price.words
        assert found.interval.half_width < min(0.35, 0.6 * plain.interval.half_width)
        assert clipped_truth(found.question, POPULATION) in found.interval
        assert found.question.startswith(price.question + ": [0.3")
        again = guard.measure(statistic)
        assert isinstance(again, Answer)
        assert (again.charged, again.interval, again.question) == (0, found.interval, found.question)
        deviation = guard.measure(s.StandardDeviation("x", BOUNDS[0], missing=0, within=3))
        assert isinstance(deviation, Answer)
        assert deviation.charged == 1  # the square; the rest was asked for the correlation
        assert deviation.interval.half_width < 0.008
        assert 0.0495 in deviation.interval
        product = guard.measure(s.Covariance("x", "y", *BOUNDS, **WHOLE, within=3))
        assert isinstance(product, Answer)
        assert product.charged == 2
        assert 0.6 * 0.05 * 5 * 0.97 in product.interval
        receipt = guard.receipt()
    assert [check.name for check in verify(receipt).checks if not check.passed] == ["real noise"]
    rules = [question["rule"] for question in receipt["questions"]]
    assert rules.count("correlation by sums") == rules.count("correlation") == 1


@pytest.mark.parametrize("times", [100, 1000])
@pytest.mark.parametrize("way", [*WAYS, {"questions": 200, "open": 0.5}], ids=str)
def test_a_correlation_does_not_follow_its_bounds(way: dict[str, Any], times: int) -> None:
    """So many times as far apart, it is known about as well: between bounds as they are it would be worth nothing."""
    near: dict[str, Any] = {"bounds_x": (0.3, 0.7), "bounds_y": (20, 60)}
    far: dict[str, Any] = {"bounds_x": (-0.2 * times, 0.2 * times), "bounds_y": (-20 * times, 20 * times)}
    with afresh.open(sample(100_000), simulation_seed=4, made_up=True, **way) as guard:
        first: Any = guard.measure(s.Correlation("x", "y", **near, **WHOLE | {"missing_x": 0.5, "missing_y": 40}))
        second: Any = guard.measure(s.Correlation("x", "y", **far, **WHOLE))
        given_bounds: Any = guard.measure(s.Correlation("x", "y", **far, **WHOLE, within=None))
        assert second.interval.half_width < 1.5 * first.interval.half_width < 0.5
        assert given_bounds.interval.half_width == 1
        for found in (first, second):
            assert clipped_truth(found.question, POPULATION) in found.interval
        assert second.charged in (7, 9) if releases(way) else 9 < second.charged <= 17


@pytest.mark.parametrize("way", [{"rounds": 20}, {"open": 0.5}, {"method": "checked"}], ids=str)
def test_times_are_numbers_like_others(way: dict[str, Any]) -> None:
    """Milliseconds since 1970, of an hour: their deviation is less than a millionth of the range between the bounds."""
    rows = sample(100_000)
    frame = pd.DataFrame({"t": 1.7e12 + 1e6 * (rows.x - 0.5) / 0.05, "y": rows.y})
    with afresh.open(frame, 200, simulation_seed=4, made_up=True, **way) as guard:
        found: Any = guard.measure(s.Correlation("t", "y", (0, 2e12), (0, 100), missing_x=0, missing_y=0))
        assert 0.5 < found.interval.high < 0.9
        assert found.interval.half_width < 0.35


@pytest.mark.parametrize("way", [{"method": "symmetrized"}, {"method": "calibrated"}, {"rounds": 60}], ids=str)
def test_a_correlation_that_says_little_says_what_would_have_told_more(way: dict[str, Any]) -> None:
    """What is suggested is enough, and is possible: a correlation takes two rounds, and more than one answer."""
    rows = sample(100_000)
    rows["y"] = np.random.default_rng(3).normal(40, 5, len(rows))  # which is independent of x: the widest case
    statistic = s.Correlation("x", "y", *BOUNDS, **WHOLE)
    with afresh.open(rows, 200, simulation_seed=4, made_up=True, **way) as guard:
        found = guard.measure(statistic)
        within_a_group = guard.measure(replace(statistic, where="g"))
    assert isinstance(found, Answer)
    assert isinstance(within_a_group, Answer)
    assert within_a_group.would_tell == ()
    said = " ".join(found.would_tell)
    assert f"To know it to ±0.1, any of these would have been enough: {found.would_tell[0]}, " in " ".join(
        str(found).split()
    )
    others: list[dict[str, Any]] = [{"rounds": int(*re.findall(r"rounds=(\d+)", said))}]
    others.append({"open": float(*re.findall(r"open=([\d.]+)", said))})
    for other in others:
        with afresh.open(rows, 200, simulation_seed=4, made_up=True, **other) as guard:
            narrow = guard.measure(statistic)
        assert isinstance(narrow, Answer)
        assert narrow.interval.half_width <= 0.1
        assert narrow.would_tell == ()
    assert "rows instead of 100,000" in said
    with afresh.open(rows[:700], 200, simulation_seed=4, made_up=True, **way | {"allow_wide": True}) as guard:
        poor = guard.measure(statistic)
    assert isinstance(poor, Answer)
    assert not any("one round" in each or "question" in each for each in poor.would_tell)


@pytest.mark.parametrize("share", [9, 30])
def test_a_repeat_is_free_whatever_others_have_asked_since(share: int) -> None:
    """With a small share it looked for closer bounds once; others look further, and the share may grow."""
    wide: tuple[Any, Any] = (-20, 20), (-2000, 2000)
    statistic = s.Correlation("x", "y", *wide, **WHOLE)
    with afresh.open(sample(50_000), 90, method="symmetrized", simulation_seed=4, made_up=True) as guard:
        guard.divide({"ann": 9, "bob": 40})
        ann, bob = guard.for_analyst("ann"), guard.for_analyst("bob")
        first: Any = ann.measure(statistic)
        assert first.charged == 9
        for name, bounds in zip("xy", wide, strict=True):
            bob.measure(s.Variance(name, bounds, missing=0, within=3))
        guard.divide({"ann": share, "bob": 40})
        for analyst in (ann, bob, guard):
            again: Any = analyst.measure(statistic)
            assert (again.charged, again.question, again.interval) == (0, first.question, first.interval)


@pytest.mark.parametrize("method", ["symmetrized", "checked"])
def test_a_repeat_ends_at_the_closest_bounds_that_were_asked_about(method: str) -> None:
    """Somebody else may have asked about bounds on the way, which were found from the same answers."""
    statistic = s.Variance("x", (-2e5, 2e5), missing=0, within=3)
    with afresh.open(sample(50_000), 90, method=method, simulation_seed=4, made_up=True) as guard:
        first = guard.measure(statistic)
        assert isinstance(first, Answer)
        asker = Asker(guard.desk, "somebody")
        given = statistic._sample(asker.schema)
        look = around._by_deviations if method == "checked" else around._by_distances
        on_the_way = around._closer(given, given, look(asker, given, []), 3)
        around._ask_around_means(asker, on_the_way, around.squares)
        assert sum(len(reply.charged) for reply in asker.replies) == 1  # only the square is new
        again = guard.measure(statistic)
        assert isinstance(again, Answer)
        assert (again.charged, again.question, again.interval) == (0, first.question, first.interval)


def test_a_short_budget_ends_the_search_for_closer_bounds() -> None:
    """What it has paid for is used, and a repeat is free."""
    statistic = s.Correlation("x", "y", (-20, 20), (-2000, 2000), **WHOLE)
    charged = {}
    for questions in (9, 12, 13, 16, 17, 30):
        with afresh.open(sample(50_000), questions, method="symmetrized", simulation_seed=4, made_up=True) as guard:
            found: Any = guard.measure(statistic)
            charged[questions] = found.charged
            again: Any = guard.measure(statistic)
            assert (again.charged, again.question, again.interval) == (0, found.question, found.interval)
    assert charged == {9: 9, 12: 9, 13: 13, 16: 13, 17: 13, 30: 13}


@pytest.mark.parametrize("method", ["settled", "checked", "rounds"])
def test_within_a_group(method: str) -> None:
    with afresh.open(sample(100_000), 200, method=method, simulation_seed=4, made_up=True) as guard:
        statistic = s.Correlation("x", "y", *BOUNDS, where="g", within=3)
        found = guard.measure(statistic)
        assert isinstance(found, Answer)
        assert found.charged <= guard.price(statistic).answers <= statistic.price == 34
        assert clipped_truth(found.question, POPULATION[POPULATION.g]) in found.interval
        # In rounds 0.53 on average over 24 deals, with a deviation of 0.045: 7 of these below the limit.
        assert found.interval.half_width < (0.85 if method == "rounds" else 0.6)


@pytest.mark.parametrize("method", ["calibrated", "stabilized", "settled", "symmetrized", "checked", "rounds"])
def test_all_truths_are_covered(method: str) -> None:
    """Small samples of a coarse population, analyst after analyst; intervals hold at once nine times in ten or more."""
    missed = 0
    for seed in range(6):
        with afresh.open(sample(3000), 60, method=method, confidence=0.9, simulation_seed=seed, made_up=True) as guard:
            for within in (1, 2, 4):
                found = guard.measure(s.Correlation("x", "y", *BOUNDS, **WHOLE, within=within))
                assert isinstance(found, Answer)
                missed += clipped_truth(found.question, POPULATION) not in found.interval
    assert missed == 0


def test_what_cannot_be_finished_is_not_begun() -> None:
    for statistic, questions in (
        (s.Correlation("x", "y", *BOUNDS, **WHOLE, within=3), 8),
        (s.Covariance("x", "y", *BOUNDS, **WHOLE, within=3), 7),
        (s.Variance("x", BOUNDS[0], missing=0, within=3), 3),
        (s.Variance("x", BOUNDS[0], where="g", within=3), 7),
    ):
        with afresh.open(sample(2000), questions, method="stabilized", ledger=":memory:") as guard:
            with pytest.raises(BudgetExhausted):
                guard.measure(statistic)
            assert guard.budget.spent == 0


@pytest.mark.parametrize("within", [0, 0.5, -1, math.nan, math.inf, "3"])
def test_a_wrong_distance(within: Any) -> None:
    with pytest.raises(InvalidArgument, match="within"):
        s.Correlation("x", "y", *BOUNDS, within=within)
    with pytest.raises(InvalidArgument, match="within"):
        s.StandardDeviation("x", BOUNDS[0], within=within)


def test_it_travels() -> None:
    for given_ in (
        s.Correlation("x", "y", *BOUNDS, within=3),
        s.Variance("x", BOUNDS[0], within=2.5),
        s.Variance("x", BOUNDS[0]),
    ):
        assert to_statistic(json.loads(json.dumps(to_argument(given_))), OF_ROWS) == given_
    old = {"kind": "Variance", "expression": "x", "bounds": [0, 1], "where": None, "missing": None}
    assert to_statistic(old, OF_ROWS) == s.Variance("x", (0, 1))


@given(
    low=st.floats(-1e9, 1e9),
    width=st.floats(1e-6, 1e9),
    place=st.floats(0, 1),
    distance=st.floats(0, 1),
    within=st.floats(1, 10),
)
def test_found_bounds(low: float, width: float, place: float, distance: float, within: float) -> None:
    """They contain the mean and what was asked for, within the given bounds, and are short."""
    bounds = low, low + width
    mean = min(max(low + place * width, low), bounds[1])
    far = distance * width
    least, most = bounds_around(bounds, mean, within * 1.2533 * far)
    assert bounds[0] <= least <= mean <= most <= bounds[1]
    assert least < most
    reach = within * 1.2533 * far
    assert least <= max(mean - reach * (1 - 1e-9), bounds[0]) + 1e-9 * abs(mean)
    assert most >= min(mean + reach * (1 - 1e-9), bounds[1]) - 1e-9 * abs(mean)
    assert most - least <= 2.5 * reach + 1e-6 * (abs(low) + width)


def oracle(a: Interval, b: Interval, uneven: float) -> float:
    """The largest correlation on a grid of covariance matrices: variances A + B + D and A + B - D, covariance A - B."""
    found = -1.0
    for p, q in itertools.product(np.linspace(a.low, a.high, 15), np.linspace(b.low, b.high, 15)):
        d = np.linspace(0, uneven, 40)
        d = np.append(d, min(uneven, 2 * math.sqrt(p * q)))
        square = (p + q + d) * (p + q - d)
        possible = (d * d <= 4 * p * q * (1 + 1e-12)) & (square > 0)
        if possible.any():
            found = max(found, float(np.max((p - q) / np.sqrt(square[possible]))))
    return min(found, 1.0)


def test_the_largest_correlation_of_a_box() -> None:
    random = np.random.default_rng(5)
    gaps = []
    for _ in range(400):
        scale = 10 ** random.uniform(-4, 0)
        (a, b, c, d), uneven = np.sort(random.random((2, 2)) * scale, axis=1).ravel(), scale * random.random() ** 3
        said = most_correlated(Interval(a, b), Interval(c, d), uneven)
        found = oracle(Interval(a, b), Interval(c, d), uneven)
        assert found <= said + 1e-9
        gaps.append(said - found)
    assert np.quantile(gaps, 0.9) < 0.01  # nine in ten are as good as sharp
    assert most_correlated(Interval(0, 1), Interval(0, 1), 0.0) == 1.0
    assert most_correlated(Interval(0, 0), Interval(0, 0), 0.0) == 0.0


@pytest.mark.parametrize("known", [False, True], ids=["around released means", "around known numbers"])
def test_the_rules_on_random_laws(known: bool) -> None:
    """Exact moments of laws on a few points, with intervals that contain them and centres that are off."""
    random = np.random.default_rng(6)

    def part(value: float, bounds: tuple[float, float] = (0.0, 1.0)) -> Reading:
        low, high = bounds
        place = (value - low) / (high - low)
        ends = [
            min(max(place + sign * size, 0), 1) for sign, size in zip((-1, 1), random.random(2) * slack, strict=True)
        ]
        entry = Entry(1, "", text, 0.0, datetime(2025, 1, 1), bounds=bounds)
        return Reading(entry, float(random.uniform(*ends)), Interval(*ends))

    text, inside = "", dict.fromkeys(SPREADS, 0)
    for _ in range(3000):
        slack = 10 ** random.uniform(-5, -1)
        points, weights = random.random((4, 2)), random.dirichlet(np.ones(4))
        x, y = points.T
        if random.random() < 0.3:
            y = x + 1e-3 * y
            y /= y.max()
        of_x, of_y = weights @ x, weights @ y
        means = [part(float(of_x)), part(float(of_y))]
        v, w = (float(np.clip(random.normal(mean.value, 0.1), 0, 1)) if known else mean.value for mean in means)
        text = f"(x - {number(v)}) * (y - {number(w)})"
        reach_x, reach_y = max(v, 1 - v), max(w, 1 - w)
        a, b = x - v, y - w
        u, z = a / reach_x, b / reach_y
        square = part(float(weights @ a**2), (0.0, reach_x**2))
        product = [part(float(weights @ np.maximum(sign * a * b, 0)), (0.0, reach_x * reach_y)) for sign in (1, -1)]
        sums = [
            part(float(weights @ (u + z) ** 2 / 4)),
            part(float(weights @ (u - z) ** 2 / 4)),
            part(float(weights @ (u**2 - z**2) / 2), (-0.5, 0.5)),
        ]
        of_one: dict[str, Any] = {"bounds": [0.0, 1.0]}
        of_two: dict[str, Any] = {"x": [0.0, 1.0], "y": [0.0, 1.0]}
        if known:
            of_one, of_two = {**of_one, "around": {"bounds": v}}, {**of_two, "around": {"x": v, "y": w}}
        variances = float(weights @ (x - of_x) ** 2), float(weights @ (y - of_y) ** 2)
        covariance = float(weights @ ((x - of_x) * (y - of_y)))
        asked: dict[str, tuple[list[Reading], Any, float]] = {
            "variance": ([means[0], square], of_one, variances[0]),
            "standard deviation": ([means[0], square], of_one, math.sqrt(variances[0])),
            "covariance": ([*means, *product], of_two, covariance),
            "correlation by sums": ([*means, *sums], of_two, covariance / math.sqrt(math.prod(variances))),
        }
        for rule, (parts, parameters, truth) in asked.items():
            named = parameters.keys() - {"around"}
            found = RULES[rule](parts, parameters, PLAN)
            assert found.low - 1e-9 <= truth <= found.high + 1e-9
            inside[rule] += found.high - found.low < 0.5 * (scale := scale_of(rule, parts, parameters))[1]
            if slack < 1e-4 and rule != "correlation by sums":
                assert found.value == pytest.approx(truth, abs=0.01 * scale[1])
            wrongs: list[dict[str, Any]] = [
                {name: [0.0, 2.0] for name in named},
                {"around": dict.fromkeys(named, (v + 0.123456789) / 2)},
            ]
            for wrong in [*wrongs, {"around": {}}] if known else wrongs:
                with pytest.raises(InvalidArgument, match=r"a parameter (or a mean )?is"):
                    scale_of(rule, parts, {**parameters, **wrong})
    assert min(inside.values()) > 1000


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.get("method", "rounds" if "rounds" in way else "endless"))
def test_a_statistic_that_says_little_suggests_closer_bounds(way: dict[str, Any]) -> None:
    """What it predicts is about what comes out; where much is known already, it suggests nothing."""
    statistics: list[Any] = [
        s.Correlation("x", "y", *BOUNDS, **WHOLE, within=None),
        s.Covariance("x", "y", *BOUNDS, **WHOLE),
        s.Variance("x", BOUNDS[0], missing=0),
        s.StandardDeviation("x", BOUNDS[0], missing=0),
    ]
    suggested = 0
    for rows in (10_000, 100_000):
        for statistic in statistics:
            with afresh.open(sample(rows), simulation_seed=4, made_up=True, allow_wide=True, **way) as guard:
                plain: Any = guard.measure(statistic)
                closer: Any = guard.measure(replace(statistic, within=3))
            assert closer.instead is None
            if not plain.told and closer.interval.half_width < 0.5 * plain.interval.half_width:
                assert plain.instead is not None
            if plain.instead is not None:
                suggested += 1
                assert plain.instead.startswith("within=3 finds closer bounds first, ")
                assert plain.to_dict()["instead"] == plain.instead
                assert plain.instead in " ".join(str(plain).split())
                assert closer.interval.half_width < plain.interval.half_width
                if way["questions"] is None:
                    assert plain.instead.endswith("which should make it narrower")
                    continue
                (said,) = re.findall(r"about ±([\d.e-]+)", plain.instead)
                assert 0.25 * float(said) < closer.interval.half_width < 1.5 * float(said)
    if way.get("method") in ("symmetrized", "settled", "stabilized", "calibrated"):
        assert suggested >= 2


def test_within_a_group_no_width_is_predicted_and_wide_numbers_get_no_suggestion() -> None:
    with afresh.open(sample(100_000), 200, method="symmetrized", simulation_seed=4, made_up=True) as guard:
        within: Any = guard.measure(s.Correlation("x", "y", *BOUNDS, where="g", within=None))
        assert within.instead == "within=3 finds closer bounds first, which should make it narrower"
    frame = pd.DataFrame({"x": RNG.random(3000), "y": 100 * RNG.random(3000)})
    with afresh.open(frame, 100, method="symmetrized", simulation_seed=4, made_up=True) as guard:
        uniform: Any = guard.measure(s.Correlation("x", "y", *BOUNDS, **WHOLE, within=None))
        assert uniform.interval.half_width > 0.5
        assert uniform.instead is None  # three deviations reach beyond the bounds


@given(st.floats(0.001, 1), st.sampled_from(["correlation", "covariance", "variance", "standard deviation"]))
def test_a_predicted_width_follows_the_spread(spread: float, kind: str) -> None:
    def width(mean: float, deviation: float) -> float:
        return 0.1 * deviation + 0.001 * math.sqrt(mean)

    found = clipped_width(width, spread, kind)
    assert found > 0
    if kind in ("covariance", "variance"):
        assert found <= clipped_width(width, min(1.1 * spread, 1.0), kind) * (1 + 1e-9)


@pytest.mark.parametrize("method", ["rounds", "checked", "settled"])
@pytest.mark.parametrize("apart", [0.0, 5e-324, 1e-200, 1e-12])
def test_numbers_that_are_all_alike_need_no_closer_bounds(method: str, apart: float) -> None:
    """Their spread may be exactly zero, or too small to divide by."""
    rows = pd.DataFrame({"x": np.where(np.arange(4000) % 2, 0.0, apart), "y": np.full(4000, 0.25)})
    with afresh.open(rows, 40, method=method, simulation_seed=2, made_up=True, allow_wide=True) as guard:
        for statistic in (
            s.Variance("x", (0, 1), missing=0),
            s.StandardDeviation("x", (0, 1), missing=0),
            s.Covariance("x", "y", (0, 1), (0, 1), missing_x=0, missing_y=0),
            s.Correlation("x", "y", (0, 1), (0, 1), missing_x=0, missing_y=0),
        ):
            found: Any = guard.measure(statistic)
            assert found.interval.low <= 1e-9
            assert str(found)


@pytest.mark.parametrize("way", [{"questions": 200, "rounds": 4}, {"questions": 20, "method": "symmetrized"}], ids=str)
@pytest.mark.parametrize("within", [None, 3.0])
def test_numbers_far_from_zero_have_the_spread_of_the_same_numbers_near_it(way: dict[str, Any], within: Any) -> None:
    """Differences to a bound and to a mean are exact, so only the ends of means are rounded, outward, to 1e-7 here.

    Noise is simulated; intervals of one population miss with probability at most .05, decided once.
    """
    rng = np.random.default_rng(3)
    near = pd.DataFrame({"x": rng.binomial(8, 0.4, 50_000), "y": rng.binomial(8, 0.5, 50_000)}).astype(float)
    near["y"] = np.where(rng.random(50_000) < 0.6, near["x"], near["y"])
    truths = [np.std(near["x"]), np.corrcoef(near["x"], near["y"])[0, 1]]
    widths = []
    for low in (0.0, 1e9):
        with afresh.open(near + low, simulation_seed=4, made_up=True, **way) as guard:
            bounds = low, low + 8
            found = [
                guard.measure(s.StandardDeviation("x", bounds, missing=low, within=within)),
                guard.measure(s.Correlation("x", "y", bounds, bounds, None, low, low, within)),
            ]
        for answer, truth in zip(found, truths, strict=True):
            assert isinstance(answer, Answer)
            assert truth in answer.interval
        widths.append([answer.interval.half_width for answer in found if isinstance(answer, Answer)])
    assert widths[1] == pytest.approx(widths[0], rel=0.05)
