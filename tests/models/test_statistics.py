"""More than means: intervals that contain the truth, prices that are kept. Noise is simulated: decided once."""

import json
import math
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

import afresh
from afresh import statistics as s
from afresh.errors import AfreshError, BudgetExhausted, InvalidArgument
from afresh.ledger import Entry
from afresh.mechanisms.registry import PLANNERS
from afresh.planning.choose import plan
from afresh.receipts import verify
from afresh.results.answer import Answer, Interval
from afresh.results.reading import Number, Reading
from afresh.results.rules import QuantileSearch, _area

N = 50_000
RNG = np.random.default_rng(3)
U = RNG.random(N)
W = 0.6 * U + 0.4 * RNG.random(N)
FRAME = pd.DataFrame(
    {"u": 10 * U, "w": 4 * W, "x": RNG.normal(5, 0.2, N), "c": RNG.choice(["a'", "b"], N, p=[0.3, 0.7])}
)
FRAME["z"] = FRAME.u.where(RNG.random(N) < 0.5)
PLAN, ENTRY = plan(1000, 10), Entry(1, "", "", 0.0, datetime(2025, 1, 1))
METHODS = list(PLANNERS)
# the truth in the population, in closed form
VAR_U, VAR_W, COV = 100 / 12, 16 * (0.36 + 0.16) / 12, 40 * 0.6 / 12
TRUTH: list[tuple[Any, float]] = [
    (s.Variance("u", bounds=(0, 10)), VAR_U),
    (s.StandardDeviation("u", bounds=(0, 10)), math.sqrt(VAR_U)),
    (s.StandardDeviation("x", bounds=(0, 10)), 0.2),
    (s.Covariance("u", "w", (0, 10), (0, 4)), COV),
    (s.Covariance("u", "-w", (0, 10), (-4, 0)), -COV),
    (s.Correlation("u", "w", (0, 10), (0, 4)), COV / math.sqrt(VAR_U * VAR_W)),
    (s.Quantile("u", 0.5, bounds=(0, 10)), 5.0),
    (s.Quantile("u", 0.99, bounds=(0, 10), points=8), 9.9),
    (s.Quantile("x", 0.5, bounds=(0, 10)), 5.0),
    (s.Variance("u", bounds=(0, 10), missing=0), VAR_U),
    (s.Variance("z", bounds=(0, 10)), VAR_U),
    (s.Variance("z", bounds=(0, 10), missing=0), 100 / 6 - 6.25),  # half of it is 0: E x^2 = 50/3, E x = 5/2
    (s.StandardDeviation("z", bounds=(0, 10), where="c = 'b'"), math.sqrt(VAR_U)),
    (s.Covariance("z", "w", (0, 10), (0, 4), where="c = 'b'"), COV),
    (s.Correlation("z", "w", (0, 10), (0, 4)), COV / math.sqrt(VAR_U * VAR_W)),
    (s.Quantile("z", 0.5, bounds=(0, 10), where="c = 'b'"), 5.0),
    (s.Quantile("z", 0.25, bounds=(0, 10), missing=10), 5.0),
]


def reading(mean: float, slack: float = 0.0) -> Reading:
    return Reading(ENTRY, mean, Interval(max(mean - slack, 0.0), min(mean + slack, 1.0)))


@pytest.mark.parametrize("method", METHODS)
def test_truths_are_covered_and_prices_kept(method: str) -> None:
    with afresh.open(FRAME, questions=250, method=method, simulation_seed=5, made_up=True) as guard:
        for statistic, truth in TRUTH:
            price = guard.price(statistic)
            assert price.answers <= statistic.price
            found = guard.measure(statistic)
            assert isinstance(found, Answer)
            assert truth in found.interval, statistic
            assert found.value in found.interval
            assert found.charged <= price.answers
            assert found.question.startswith(price.question)  # and says what numbers were clipped to
            again = guard.measure(statistic)
            assert isinstance(again, Answer)
            assert (again.charged, again.interval) == (0, found.interval)
            assert "follows from" in found.covers or found.simulated
        guard.measure(s.Histogram("z", (0, 5, 10), where="c = 'b'"))
        made = guard.receipt()
    failed = [check.name for check in verify(made).checks if not check.passed]
    assert failed == ["real noise"]  # a simulation; all numbers follow again from the answers


def test_intervals_are_of_use() -> None:
    with afresh.open(FRAME, questions=100, simulation_seed=5, made_up=True) as guard:
        sd = guard.measure(s.StandardDeviation("u", bounds=(0, 10)))
        narrow = guard.measure(s.StandardDeviation("x", bounds=(0, 10)))
        median = guard.measure(s.Quantile("u", 0.5, bounds=(0, 10)))
        correlation = guard.measure(s.Correlation("u", "w", (0, 10), (0, 4)))
    for found, width in ((sd, 0.6), (narrow, 1.0), (median, 0.6), (correlation, 0.35)):
        assert isinstance(found, Answer)
        assert found.interval.half_width < width, found.question


@pytest.mark.parametrize("method", METHODS)
def test_tables(method: str) -> None:
    groups = s.GroupMeans("u", "c", ["a'", "b", "none"], bounds=(0, 10))
    bins = s.Histogram("u", [0, 2, 5, 10])
    assert (groups.price, bins.price) == (6, 3)
    with afresh.open(FRAME, questions=9, method=method, simulation_seed=6, made_up=True) as guard:
        means, histogram = guard.measure(groups), guard.measure(bins)
        assert isinstance(means, s.Measures)
        assert isinstance(histogram, s.Measures)
        charged = {"rounds": 3, "checked": 3}.get(method, 6)
        assert (means.charged, histogram.charged) == (charged, 3)
        assert 5 in means["a'"].interval
        assert 5 in means["b"].interval
        assert means["none"].interval.half_width > 2  # nothing is known of a group without rows
        assert list(histogram) == ["[0, 2)", "[2, 5)", "[5, 10]"]
        for name, share in zip(histogram, (0.2, 0.3, 0.5), strict=True):
            assert share in histogram[name].interval
        assert sum(histogram[name].low for name in histogram) <= 1
        assert "[5, 10]" in str(histogram)
        assert "low" in means._repr_html_()
        assert json.loads(means.to_json())["answers"]["b"]["charged"] == {"rounds": 1, "checked": 1}.get(method, 2)
        assert len(means) == 3
        if method not in ("rounds", "checked"):  # which have three answers left
            with pytest.raises(BudgetExhausted):
                guard.measure(s.Variance("u", bounds=(0, 10)))


def test_a_short_budget_ends_a_search_early() -> None:
    # In rounds all points are one batch, of 50, 25, 12, 6 or 3; otherwise one is asked after the other.
    for method, spent in ("rounds", 3), ("stabilized", 4):
        with afresh.open(FRAME, questions=4, method=method, simulation_seed=6, made_up=True) as guard:
            found = guard.measure(s.Quantile("u", 0.5, bounds=(0, 10), points=50))
            assert isinstance(found, Answer)
            assert (found.charged, found.left) == (spent, 4 - spent)
            assert 5 in found.interval
            again = guard.measure(s.Quantile("u", 0.5, bounds=(0, 10), points=50))
            assert isinstance(again, Answer)
            assert (again.value, again.charged) == (found.value, 0)
            guard.ask_many([f"u > {i}" for i in range(4 - spent)])
            with pytest.raises(BudgetExhausted):
                guard.measure(s.Quantile("w", 0.5, bounds=(0, 10)))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: s.Quantile("u", 1.0, (0, 1)), "level"),
        (lambda: s.Quantile("u", 0.5, (0, 1), points=0), "points"),
        (lambda: s.Histogram("u", [1, 1]), "edges"),
        (lambda: s.Histogram("u", [1]), "edges"),
        (lambda: s.GroupMeans("u", "c", "ab"), "categories"),
        (lambda: s.GroupMeans("u", "c", []), "categories"),
        (lambda: s.GroupMeans("u", "c", ["b", "a", "b"]), "different"),
        (lambda: s.AUC(thresholds=(0.5, 0.5)), "thresholds"),
        (lambda: s.AUC(thresholds=()), "thresholds"),
        (lambda: s.CalibrationError(edges=(0.0, 0.5)), "edges"),
        (lambda: s.Quantile("u", "half", (0, 1)), "level"),  # type: ignore[arg-type]
        (lambda: s.Histogram("u", ["low", "high"]), "edges"),  # type: ignore[list-item]
        (lambda: s.Histogram("u", 10), "edges"),  # type: ignore[arg-type]
        (lambda: s.GroupMeans("u", "c", 3), "categories"),  # type: ignore[arg-type]
        (lambda: s.AUC(thresholds=0.5), "thresholds"),  # type: ignore[arg-type]
    ],
)
def test_bad_statistics(make: Any, said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        make()


def test_arrays_of_cuts_are_fine() -> None:
    assert s.CalibrationError(edges=np.linspace(0.1, 0.9, 9)).price == 20  # type: ignore[arg-type]
    assert s.AUC(thresholds=np.array([0.2, 0.5])).price == 8  # type: ignore[arg-type]
    assert s.Histogram("u", np.arange(4)).price == 3  # type: ignore[arg-type]


@pytest.mark.parametrize("category", [None, math.nan])
def test_a_category_is_a_text_or_a_number(category: Any) -> None:
    with pytest.raises(InvalidArgument, match="category"):
        s.GroupMeans("u", "c", [category], (0, 1))


def test_bad_statistics_are_free() -> None:
    with afresh.open(FRAME, questions=9, simulation_seed=6, made_up=True) as guard:
        for bad in (
            s.Variance("u", (1, 0)),
            s.Variance(3, (0, 1)),  # type: ignore[arg-type]
            7,
            s.AUC(),
            s.Variance,
        ):
            with pytest.raises(InvalidArgument):
                guard.measure(bad)  # type: ignore[arg-type]
        assert guard.budget.spent == 0


@pytest.mark.parametrize(
    ("statistic", "questions"),
    [
        (s.Variance("u", (0, 10)), 3),
        (s.Variance("u", (0, 10), missing=0), 1),
        (s.Variance("u", (0, 10), missing=0, where="c = 'b'"), 3),
        (s.Covariance("u", "w", (0, 10), (0, 4)), 7),
        (s.Covariance("u", "w", (0, 10), (0, 4), missing_x=0, missing_y=0), 3),
        (s.Correlation("u", "w", (0, 10), (0, 4)), 17),
        (s.Correlation("u", "w", (0, 10), (0, 4), missing_x=0, missing_y=0), 8),
        (s.Correlation("u", "w", (0, 10), (0, 4), within=None), 11),
        (s.Correlation("u", "w", (0, 10), (0, 4), missing_x=0, missing_y=0, within=None), 5),
        (s.Histogram("u", (0, 5, 10), where="c = 'b'"), 3),
        (s.GroupMeans("u", "c", ["a'", "b"], (0, 10)), 3),
        (s.Variance("u", (0, 10), where="c"), 9),  # no condition
        (s.Quantile("u", 0.5, (0, 10), missing=11), 9),  # not within the bounds
        (s.Variance("u, w", (0, 10)), 9),  # no expression, though it could be two arguments
        (s.Quantile("u, w", 0.5, (0, 10)), 9),
        (s.Variance("u", (-1e200, 1e200)), 9),
        (s.StandardDeviation("u", (0, 1e-200)), 9),
        (s.Covariance("u", "w", (0, 1e200), (0, 1)), 9),
        (s.Variance("abs(1 + " * 22 + "u" + ")" * 22, (0, 10)), 9),  # its square is nested too deeply
        (
            s.Variance(f"CASE WHEN u IN ({', '.join(map(str, range(1500)))}) THEN u END", (0, 10)),
            9,
        ),  # and of this too long
    ],
)
def test_what_cannot_be_finished_is_not_begun(statistic: Any, questions: int) -> None:
    with afresh.open(FRAME, questions=questions, method="stabilized", simulation_seed=6, made_up=True) as guard:
        with pytest.raises(AfreshError):
            guard.measure(statistic)
        assert guard.budget.spent == 0


def test_what_was_begun_is_finished_from_what_is_left() -> None:
    with afresh.open(FRAME, questions=4, method="stabilized", simulation_seed=6, made_up=True) as guard:
        guard.measure(s.Variance("u", (0, 10)))
        for statistic in (s.Variance("u", (0, 10)), s.StandardDeviation("u", (0, 10))):
            again = guard.measure(statistic)
            assert isinstance(again, Answer)
            assert (again.charged, again.left) == (0, 0)


@pytest.mark.parametrize("scale", [1e-90, 1e-80, 1e80, 1e140])
def test_correlation_does_not_depend_on_the_units(scale: float) -> None:
    found = []
    for unit in (1.0, scale):
        with afresh.open(
            FRAME.assign(u=FRAME.u * unit, w=FRAME.w * unit), questions=20, simulation_seed=6, made_up=True
        ) as guard:
            found.append(guard.measure(s.Correlation("u", "w", (0, 10 * unit), (0, 4 * unit))))
    plain, scaled = found
    assert isinstance(plain, Answer)
    assert isinstance(scaled, Answer)
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx((plain.value, plain.low, plain.high), abs=0.02)


def test_bins_and_groups_have_names_of_their_own() -> None:
    frame = pd.DataFrame({"t": 1e6 + FRAME.u})
    with afresh.open(frame, questions=20, simulation_seed=6, made_up=True) as guard:
        found = guard.measure(s.Histogram("t", [1e6, 1e6 + 2, 1e6 + 5, 1e6 + 10]))
        assert isinstance(found, s.Measures)
        assert list(found) == ["[1000000, 1000002)", "[1000002, 1000005)", "[1000005, 1000010]"]
        assert found.charged == 3
        median = guard.measure(s.Quantile("t", 0.5, (1_000_000, 1_000_010), points=3))
        assert isinstance(median, Answer)
        assert "are left out; numbers are clipped to [1000000, 1000010]" in median.missing


def test_quantiles_between_huge_bounds() -> None:
    frame = pd.DataFrame({"t": 1e308 + 5e306 * FRAME.u})
    with afresh.open(frame, questions=20, simulation_seed=6, made_up=True) as guard:
        found = guard.measure(s.Quantile("t", 0.5, (1e308, 1.5e308)))
        assert isinstance(found, Answer)
        assert found.charged > 0
        assert 1.25e308 in found.interval
        assert found.interval.half_width < 1e307
        assert "95%" in str(found)


def test_a_perfect_model_may_have_an_area_of_one() -> None:
    """Without noise; the stairs' heights add up to 1 but for rounding, which must go outward."""
    rates = [k / 59 for k in (54, 48, 35, 28, 11, 10, 4, 4, 3)]
    parts = [reading(share) for rate in rates for share in (0.5, 0.0, rate / 2, (1 - rate) / 2)]
    assert _area(parts, {}, PLAN).high >= 1.0


# -- of models

LABEL = RNG.random(N) < 1 / (1 + np.exp(-6 * (U - 0.5)))
MODEL_CHANCE = np.clip(U, 0, 1)
MODEL = U > 0.4


@pytest.mark.parametrize("method", METHODS)
def test_models(method: str) -> None:
    bins = np.digitize(MODEL_CHANCE, [0.2, 0.4, 0.6, 0.8])
    gaps = [abs(np.mean((LABEL - MODEL_CHANCE) * (bins == b))) for b in range(5)]
    truths: list[tuple[Any, Any, float]] = [
        (s.Precision(), MODEL, metrics.precision_score(LABEL, MODEL)),
        (s.Recall(), MODEL, metrics.recall_score(LABEL, MODEL)),
        (s.F1(), MODEL, metrics.f1_score(LABEL, MODEL)),
        (s.Precision(positive=False), MODEL, metrics.precision_score(~LABEL, ~MODEL)),
        (s.Recall(positive=False), MODEL, metrics.recall_score(~LABEL, ~MODEL)),
        (s.CalibrationError(), MODEL_CHANCE, sum(gaps)),
        (s.AUC(), MODEL_CHANCE, metrics.roc_auc_score(LABEL, MODEL_CHANCE)),
        (s.AUC(positive=False), MODEL_CHANCE, metrics.roc_auc_score(LABEL, MODEL_CHANCE)),
    ]
    with afresh.holdout(U[:, None], LABEL, questions=160, method=method, simulation_seed=8, made_up=True) as holdout:
        for statistic, model, truth in truths:
            found = holdout.measure(statistic, model, name="m")
            assert truth in found.interval, statistic
            assert found.value in found.interval
            assert found.charged <= statistic.price
            assert holdout.measure(statistic, model).charged == 0
        one = holdout.measure(s.AUC(thresholds=(0.5,)), MODEL_CHANCE)  # asked before, as one of nine
        assert one.charged == (4 if method == "rounds" else 0)  # there, what is combined is answered together
        with pytest.raises(InvalidArgument, match="needs a model"):
            holdout.measure(s.Variance("x0", (0, 1)), MODEL)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="must be one of"):
            holdout.measure(s.Precision(positive="yes"), MODEL)


def test_more_than_two_classes() -> None:
    label = RNG.integers(0, 3, N)
    guess = np.where(RNG.random(N) < 0.5, label, 2)
    with afresh.holdout(U[:, None], label, questions=50, simulation_seed=8, made_up=True) as holdout:
        truth = metrics.precision_score(label, guess, labels=[2], average="macro")
        assert truth in holdout.measure(s.Precision(positive=2), guess).interval
        chances = (guess[:, None] == np.arange(3)) * 0.7 + 0.1
        area = metrics.roc_auc_score(label == 2, chances[:, 2])
        assert area in holdout.measure(s.AUC(positive=2), chances).interval
        with pytest.raises(InvalidArgument, match="positive="):
            holdout.measure(s.Precision(), guess)


@given(
    st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=4, max_size=60).filter(
        lambda rows: len({y for _, y in rows}) == 2
    ),
    st.sets(st.integers(1, 10), min_size=1),
    st.floats(0, 0.3),
)
def test_the_area_lies_between_the_stairs(rows: list[tuple[int, bool]], cuts: set[int], slack: float) -> None:
    scores, labels = np.array([p for p, _ in rows]), np.array([y for _, y in rows])

    above = [scores >= cut for cut in sorted(cuts)]
    cells = [float(np.mean(of & part)) for each in above for of in (labels, ~labels) for part in (each, ~each)]
    value, low, high = _area([reading(cell, slack) for cell in cells], {}, PLAN)
    truth = metrics.roc_auc_score(labels, scores)
    assert low - 1e-12 <= truth <= high + 1e-12
    assert low - 1e-12 <= value <= high + 1e-12


@given(st.floats(0.01, 0.99), st.floats(0, 0.2), st.integers(1, 30))
def test_a_search_never_loses_the_quantile(level: float, slack: float, steps: int) -> None:
    """P(x <= c) = c on [0, 1]; every answer is off by up to `slack`, against the search, and knows it."""
    for sign in (-1, 1):
        search = QuantileSearch(0.0, 1.0, level)
        for step in range(steps):
            point = search.next(step)
            if point is None:
                break
            value = min(max(point + sign * slack, 0.0), 1.0)
            search.note(point, Number(value, value - slack, value + slack))
            assert search.low - 1e-9 <= level <= search.high + 1e-9
        if steps >= 25:
            assert search.high - search.low < 4.5 * slack + 0.01
