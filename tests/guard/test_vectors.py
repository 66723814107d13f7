"""Histograms, group means and vectors in one release (section 18), from the guard's door to the receipt."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh.errors import BrokenChain, BudgetExhausted, InvalidArgument
from afresh.ledger.account import Account
from afresh.ledger.records import START, Reserved, decode, encode, seal
from afresh.mechanisms.base import AimsInGroups, AnswersVectors, at_coordinate, at_levels
from afresh.planning.groups import group_half_width, narrower_one_by_one
from afresh.queries.query import Query, parse_group
from afresh.queries.renamed import Renamed
from afresh.queries.tree import Type
from afresh.receipts import verify
from afresh.results import show
from afresh.results.answer import Interval
from afresh.results.reading import Number
from afresh.results.rules import RULES, within_ends
from afresh.statistics import GroupMeans, Histogram, Measures, Statistic, VectorMean
from engines import oracle
from examples import examples

ROWS = 20_000
EDGES = [float(x) for x in np.linspace(-3, 3, 31)]
GROUPS = list("abcdefgh")


def frame(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.normal(size=ROWS),
            "g": rng.choice(GROUPS, size=ROWS),
            "day": pd.to_datetime("2026-01-01") + pd.to_timedelta(rng.integers(0, 3, size=ROWS), unit="D"),
            "bought": rng.random(ROWS) < 0.3,
        }
    )


@pytest.fixture
def guard(tmp_path: Path) -> afresh.Guard:
    return afresh.open(frame(), questions=100, method="symmetrized", ledger=tmp_path / "ledger.sqlite")


def test_a_histogram_is_charged_once(guard: afresh.Guard) -> None:
    histogram = Histogram("x", EDGES)
    price = guard.price(histogram)
    found = measured(guard, histogram)
    assert price.answers == found.charged == 4
    assert guard.budget.spent == 4
    assert guard.budget.left == 96
    assert measured(guard, histogram).charged == 0
    assert [answer.value for answer in found.answers.values()] == [
        answer.value for answer in measured(guard, histogram).answers.values()
    ]
    assert sum(answer.value for answer in found.answers.values()) == pytest.approx(1, abs=0.2)


def test_a_histogram_within_a_group_is_charged_once(guard: afresh.Guard) -> None:
    """Shares within the group. Rows of which it is not known whether they are in it are outside, as everywhere."""
    histogram = Histogram("x", EDGES, where="CASE WHEN x > 1 THEN NULL ELSE bought END")
    found = measured(guard, histogram)
    assert found.charged == guard.budget.spent == 4
    rows = frame()
    inside = (rows.x <= 1) & rows.bought
    truth = np.histogram(rows.x[inside], EDGES)[0] / inside.sum()
    for share, answer in zip(truth, found.answers.values(), strict=True):
        assert answer.low <= share <= answer.high
    assert measured(guard, histogram).charged == 0
    assert verify(guard.receipt()).passed


@given(st.lists(st.floats(0, 1), min_size=2, max_size=5), st.floats(0, 0.2), st.integers(0, 4))
def test_a_bin_of_a_group_holds_every_share_that_its_parts_admit(weights: list[float], away: float, place: int) -> None:
    """Of true shares, the last one outside of the group, and intervals that hold them."""
    whole = math.fsum(weights) + 0.01
    truths = [each / whole for each in weights]
    *bins, outside = truths
    if outside >= 1:
        return
    parts = [
        SimpleNamespace(own=Number(p, max(p - away * (i % 2), 0.0), min(p + away * (i % 3), 1.0)))
        for i, p in enumerate(truths)
    ]
    bin = place % len(bins)
    value, low, high = RULES["bin of group"](parts, {"bin": bin}, None)  # type: ignore[arg-type] # parts are only read
    assert 0 <= low <= bins[bin] / (1 - outside) <= high <= 1
    assert low <= value <= high


def test_group_means_are_charged_once_where_groups_exclude_one_another(guard: afresh.Guard) -> None:
    assert measured(guard, GroupMeans("bought", "g", GROUPS)).charged == 4
    for mean in measured(guard, GroupMeans("bought", "g", GROUPS)).answers.values():
        assert mean.low <= 0.3 <= mean.high
    # One date may be written in two ways, so it is asked one by one.
    days = ["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"]
    assert guard.price(GroupMeans("bought", "day", days)).answers == 8
    assert guard.price(GroupMeans("bought", "g", ["a", "A", "b", "c"])).answers == 8
    assert guard.price(GroupMeans("bought", "x", [1, 1.0 + 1e-9, 2, 3])).answers == 8  # equal in single precision
    assert guard.price(GroupMeans("bought", "x", [1, 1.5, 2, 3])).answers < 8
    assert guard.price(GroupMeans("bought", "g", ["a"])).answers == 2  # no cheaper at once


@pytest.mark.parametrize(
    ("rows", "questions", "groups", "answers"),
    [(10**6, 1000, 2, 4), (10**6, 1000, 6, 12), (10**6, 1000, 20, 40), (10**5, 100, 4, 8), (10**4, 1000, 6, 4)],
)
def test_means_of_a_number_are_asked_at_once_only_where_that_is_not_clearly_wider(
    rows: int, questions: int, groups: int, answers: int
) -> None:
    """At once they would follow the number's bounds, at 3 or 4 answers; one by one they follow its deviation."""
    mechanism = afresh.plan(rows, questions, method="symmetrized").mechanism
    assert isinstance(mechanism, AnswersVectors)
    vector = mechanism.at_once("shares", 2 * groups)
    assert vector is not None
    part = at_coordinate(mechanism, vector).half_width(0.5 / groups)
    ends = Interval(max(0.5 / groups - part, 0), 0.5 / groups + part)
    at_once, own = within_ends(ends, ends).half_width, at_levels(mechanism, None)
    assert isinstance(own, AimsInGroups)
    apart = group_half_width(own, 0.5, 1 / groups, 0.05)
    one_by_one = narrower_one_by_one(mechanism, vector, groups)
    assert one_by_one == (apart <= 0.95 * at_once)
    assert (2 * groups if one_by_one else vector.answers) == answers


def test_means_of_a_number_in_many_groups_follow_its_deviation(tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(8), 10**6
    data = pa.table({"x": rng.normal(0.5, 0.05, rows).clip(0, 1), "g": rng.integers(0, 6, rows)})
    with afresh.open(data, 1000, method="symmetrized", ledger=tmp_path / "ledger.sqlite") as guard:
        means = GroupMeans("x", "g", list(range(6)), (0, 1), missing=0)
        assert guard.price(means).answers == 12
        found = measured(guard, means)
        assert found.charged == 12
        # +-.015 if nothing happened to be drawn; at once it would be +-.054, whatever the deviation
        assert all(answer.interval.half_width < 0.03 for answer in found.answers.values())
        assert all(answer.low <= 0.5 <= answer.high for answer in found.answers.values())
        assert guard.price(GroupMeans("x > 0.5", "g", list(range(6)))).answers == 4  # a condition
        assert guard.price(GroupMeans("x", "g", list(range(300)), (0, 1), missing=0)).answers == 4  # +-.5 in any case


def test_other_methods_ask_one_by_one() -> None:
    guard = afresh.open(frame(), questions=100, method="stabilized", simulation_seed=1, made_up=True)
    assert guard.price(Histogram("x", EDGES)).answers == 30


def test_all_coordinates_or_none(tmp_path: Path) -> None:
    guard = afresh.open(frame(), questions=3, method="symmetrized", ledger=tmp_path / "ledger.sqlite")
    with pytest.raises(BudgetExhausted):
        measured(guard, Histogram("x", EDGES))
    assert guard.budget.spent == 0
    guard.ask("bought")


def test_receipts_verify_and_transcripts_fold(guard: afresh.Guard) -> None:
    guard.ask("bought")
    measured(guard, Histogram("x", EDGES))
    measured(guard, GroupMeans("bought", "g", GROUPS))
    receipt = guard.receipt()
    assert verify(json.dumps(receipt)).passed
    assert receipt["answers"][1]["vector"] == {"kind": "shares", "size": 30, "answers": 4, "place": 0}
    assert receipt["spent"]["answers"] == 9
    transcript = guard.transcript
    assert [len(record.parts) for record in transcript] == [0, 30, 8]
    assert [record.numbers for record in transcript] == ["1", "2-31", "32-47"]
    assert "9 answers to 3 questions" in str(transcript)
    assert len(transcript.answers) == 47
    assert "share of rows with x in" in transcript.with_parts()
    assert transcript.to_dict()["questions"][1]["parts"][0]["value"] is not None


def measured(guard: afresh.Guard, statistic: Statistic) -> Measures:
    found = guard.measure(statistic)
    assert isinstance(found, Measures)
    return found


def changed(records: list[str], place: int, **fields: Any) -> list[str]:
    record = decode(records[place])
    assert isinstance(record, Reserved)
    return [*records[:place], encode(record._replace(**fields)), *records[place + 1 :]]


def test_forged_vectors_are_refused(guard: afresh.Guard) -> None:
    measured(guard, Histogram("x", EDGES))
    receipt = guard.receipt()
    records = receipt["chain"]["records"]
    first = next(i for i, text in enumerate(records) if '"kind":"reserved"' in text)
    last = first + 29
    assert isinstance(decode(records[last]), Reserved)
    broken = [
        changed(records, first + 1, charge=1e-9),  # a coordinate that is charged by itself
        changed(records, first + 1, vector=("shares", 30, 4, 2)),  # out of its place
        changed(records, first + 1, vector=None),
        changed(records, first + 1, analyst="another"),
        changed(records, last, vector=("shares", 31, 4, 29)),
        changed(records, first, vector=("shares", 30, 0, 0)),
        [*records[:last], *records[last + 1 :]],  # one is missing
        [*records[: first + 5], *records[last + 1 :]],
    ]
    for chain in broken:
        with pytest.raises(BrokenChain):
            Account().read((text, None) for text in chain)
    # A vector that counts as one answer but has the noise and the charge of four.
    for fields in ({"vector": ("shares", 30, 1, 0)}, {"coarseness": 1.0}, {"charge": 1e-6}):
        forged = list(records)
        for place in range(first, last + 1):
            record = decode(forged[place])
            assert isinstance(record, Reserved)
            assert record.vector is not None
            own: dict[str, Any] = dict(fields)
            if "vector" in own:
                own["vector"] = (*record.vector[:2], 1, record.vector[3])
            if place == first or "charge" not in own:
                forged[place] = encode(record._replace(**own))
        head = START
        for text in forged:
            head = seal(head, text)
        said = {**receipt, "chain": {"head": head, "length": len(forged), "records": forged}}
        assert not verify(json.dumps(said)).passed


def test_a_question_that_was_asked_before_is_another_one_as_a_coordinate(guard: afresh.Guard) -> None:
    """A coordinate has another interval than the same question by itself; neither serves the other."""
    guard.ask("x >= -3.0 AND x < -2.8")
    assert measured(guard, Histogram("x", EDGES)).charged == 4


def test_intervals_cover_in_many_conversations() -> None:
    """An analyst that asks a histogram of a relabelling chosen from the last one's answers: no coordinate misses.

    If intervals hold, a miss in two conversations has probability at most .1; the seeds are fixed, and none missed.
    """
    rng = np.random.default_rng(5)
    for seed in range(2):
        data = pd.DataFrame({"u": rng.random(2000), "label": rng.integers(0, 10, size=2000)})
        guard = afresh.open(data, questions=40, method="symmetrized", simulation_seed=seed, made_up=True)
        shift = 0.0
        for _ in range(10):
            expression = f"(u + {shift!r} + label / 10.0) - floor(u + {shift!r} + label / 10.0)"
            found = measured(guard, Histogram(expression, [i / 12 for i in range(13)]))
            values = [answer.value for answer in found.answers.values()]
            assert all(answer.low <= 1 / 12 <= answer.high for answer in found.answers.values())
            shift += (1 + int(np.argmax(values))) / 24


def in_ball(values: Any, radius: float, centre: Any) -> Any:
    away = np.where(np.isfinite(values), values - centre, 0.0)
    return centre + away / np.maximum(1, np.linalg.norm(away, axis=1) / radius)[:, None]


def test_a_vector_in_a_ball_costs_one_answer(tmp_path: Path) -> None:
    """Its rows are moved into the ball one by one; its noise is beyond 7 deviations with probability below 1e-10."""
    rng = np.random.default_rng(2)
    data = pd.DataFrame(rng.normal(size=(ROWS, 5)), columns=list("abcde"))
    data.loc[:50, "b"] = np.nan
    data.loc[51:90, "c"] = np.inf
    data.loc[91:120, "d"] = 1e5
    guard = afresh.open(data, questions=50, method="symmetrized", ledger=tmp_path / "ledger.sqlite")
    centre = [0.0, 0.5, 0.0, -0.5, 0.0]
    assert guard.price(VectorMean(list("abcde"), 2.0, centre)).answers == 1
    found = guard.ask_vector(list("abcde"), 2.0, centre)
    assert found.charged == 1
    assert guard.budget.left == 49
    exact = in_ball(data.to_numpy(), 2.0, np.array(centre)).mean(axis=0)
    for name, mean in zip("abcde", exact, strict=True):
        assert abs(found[name].value - mean) < 3.6 * found[name].noise  # which is 1.96 deviations
    assert guard.ask_vector({name: name for name in "abcde"}, 2.0, centre).charged == 0
    assert verify(guard.receipt()).passed
    assert "a within 2 of (0, 0.5, 0, -0.5, 0)" in guard.transcript.with_parts()


@pytest.mark.parametrize(
    "arguments",
    [
        ("x", 1.0),
        (["x"], 0.0),
        (["x"], float("nan")),
        ([], 1.0),
        (["x", "x"], 1.0),
        (["x"], 1.0, [0.0, 1.0]),
        ([3], 1.0),
    ],
)
def test_what_is_no_ball_is_refused(guard: afresh.Guard, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidArgument):
        guard.ask_vector(*arguments)
    assert guard.budget.spent == 0


def units(vector: VectorMean, schema: Mapping[str, Type | None]) -> list[Query]:
    """The row functions of its coordinates."""
    found = [query for one in vector._asked(schema) for query in one.queries]
    return [each.inner for each in found if isinstance(each, Renamed) and isinstance(each.inner, Query)]


def points(vector: VectorMean, rows: pd.DataFrame, schema: Mapping[str, Type | None]) -> list[list[float]]:
    """The coordinates of each row's point on [0, 1], by what the expressions mean."""
    given = [dict(zip(rows.columns, row, strict=True)) for row in rows.itertuples(index=False)]
    found = [oracle.psi(each, each.expression, None, given) for each in units(vector, schema)]
    return [list(point) for point in zip(*found, strict=True)]


def in_the_ball(point: list[float]) -> bool:
    """Whether it is within 1/2 of (1/2, ..., 1/2), in exact arithmetic: what section 18 needs of every row."""
    square = sum((Fraction(each) - Fraction(1, 2)) ** 2 for each in point)
    return square <= Fraction(1, 4) and all(0 <= each <= 1 for each in point)


@st.composite
def balls(draw: st.DrawFn) -> tuple[VectorMean, pd.DataFrame]:
    """A ball of any allowed size around any center, and rows that lie where rounding is worst."""
    size = draw(st.integers(1, 5))
    radius = draw(st.one_of(st.sampled_from([1e-100, 1e100, 1.0]), st.floats(1e-100, 1e100)))
    share = st.one_of(st.sampled_from([0.0, 1.0, 1e6, -1e6]), st.floats(-1e6, 1e6))
    centres = [each * radius * (1 - 1e-15) for each in draw(st.lists(share, min_size=size, max_size=size))]
    ends = st.sampled_from([math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, 0.0, -0.0])
    steps = st.builds(lambda k, up: k * (1 + up * 2.0**-52), st.sampled_from([-1.0, 0.5, 0.6, 1.0]), st.integers(-3, 3))
    away = st.one_of(steps, st.floats(-3, 3), st.floats(-1e7, 1e7), st.floats(-1e-150, 1e-150))
    cell = st.tuples(st.one_of(st.none(), ends), away)
    drawn = draw(st.lists(st.lists(cell, min_size=size, max_size=size), min_size=1, max_size=8))
    rows = [[c + k * radius if end is None else end for c, (end, k) in zip(centres, row, strict=True)] for row in drawn]
    names = list("abcde"[:size])
    return VectorMean(names, radius, centres), pd.DataFrame(rows, columns=names, dtype=float)


@examples(3)
@given(balls())
def test_no_row_leaves_the_ball(made: tuple[VectorMean, pd.DataFrame]) -> None:
    """If rounding could move a row out of the ball, its coordinates would be several questions for one answer."""
    vector, rows = made
    for point in points(vector, rows, dict.fromkeys(rows.columns, Type.NUMBER)):
        assert in_the_ball(point)


@pytest.mark.parametrize("size", [9, 50])
def test_a_ball_has_room_for_many_coordinates(size: int) -> None:
    """All of one size, so that every rounding of the sum goes the same way."""
    names = [f"x{i}" for i in range(size)]
    each = 1 / math.sqrt(size)
    rows = pd.DataFrame([[each * k] * size for k in (1 - 1e-9, 1 - 1e-16, 1.0, 1 + 1e-15, 7.0, 1e9)], columns=names)
    found = points(VectorMean(names, 1.0), rows, dict.fromkeys(names, Type.NUMBER))
    assert all(map(in_the_ball, found))
    assert sum((each - 0.5) ** 2 for each in found[2]) == pytest.approx(0.25, rel=1e-8)  # it is used


def test_engines_leave_no_row_outside_the_ball() -> None:
    """Each row is a group of one, on rows around the surface of balls with centers of every size."""
    rng = np.random.default_rng(6)
    directions = rng.normal(size=(40, 4))
    directions /= np.linalg.norm(directions, axis=1)[:, None] * rng.choice([1, 1 + 1e-16, 1 - 1e-9, 1e-3], 40)[:, None]
    for radius, centre in ((1.0, 0.0), (1.0, 1e6), (1e-100, 1e-94), (1e100, -1e106), (0.3, 1e5)):
        rows = pd.DataFrame(centre + radius * directions, columns=list("abcd"))
        rows.iloc[:4] = [[np.nan] * 4, [np.inf] * 4, [1.7e308, -1.7e308, 0, 5e-324], [1e16, 1, 1, 1]]
        with afresh.open(rows.assign(id=range(40)), 40, ledger=":memory:", allow_wide=True) as guard:
            schema, engine = dict(guard.desk.schema), guard.desk.engine
            vector = VectorMean(list("abcd"), radius, centre)
            groups = [parse_group(f"id = {row}", schema) for row in range(40)]
            each = [replace(query, group=group) for group in groups for query in units(vector, schema)]
            found = np.reshape([moments.total for moments in engine.moments(each)], (40, 4))
            exact = points(vector, rows, schema)
        assert all(in_the_ball(point) for point in found.tolist())
        assert found.tolist() == [pytest.approx(point, abs=1e-12) for point in exact]


def test_a_ball_too_small_for_the_numbers_near_its_center_is_refused(guard: afresh.Guard) -> None:
    """Around 1.5 there are a dozen numbers within such a radius, and rounding to one of them may leave the ball."""
    ulp = 2.0**-52
    for radius, centre in ((1.5 * ulp, 1.5 + ulp), (0.9e-6, -1.0), (1.0, 1e7), (1e-100, [0.0, 1e-93])):
        with pytest.raises(InvalidArgument, match=r"radius == .*millionth.*subtract.*center be 0"):
            guard.ask_vector(["x", "x + 1"], radius, centre)
    assert guard.budget.spent == 0
    assert guard.ask_vector(["x - 1.5", "x - 2.5"], 1e-9).charged == 1


def test_a_vector_is_told_in_its_own_units(tmp_path: Path) -> None:
    """Far from zero, with a small ball: interval ends are rounded outward there, and hold the exact mean."""
    rng = np.random.default_rng(3)
    data = pd.DataFrame(1e6 + rng.normal(0, 0.3, size=(ROWS, 3)), columns=list("abc"))
    with afresh.open(data, questions=50, method="symmetrized", ledger=tmp_path / "ledger.sqlite") as guard:
        found = guard.ask_vector(list("abc"), 1.0, 1e6)
        exact = in_ball(data.to_numpy(), 1.0, 1e6).mean(axis=0)
        for name, mean in zip("abc", exact, strict=True):
            assert found[name].low <= mean <= found[name].high
            assert found[name].interval.half_width < 0.2
            assert found[name].bounds == (1e6 - 1, 1e6 + 1)
        assert verify(guard.receipt()).passed


WAYS: list[dict[str, Any]] = [
    *({"method": name} for name in ("stabilized", "symmetrized", "settled", "calibrated", "checked")),
    {"open": 0.5},
    {"rounds": 4},
    {"questions": None},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_price_says_how_wide_each_number_will_be(way: dict[str, Any]) -> None:
    quarters = [-9.0, *(float(x) for x in np.quantile(frame()["x"], [0.25, 0.5, 0.75])), 9.0]
    asked: list[Statistic] = [Histogram("x", quarters), GroupMeans("x > 0", by="g", categories=GROUPS)]
    with afresh.open(frame(), ledger=":memory:", **{"questions": 100, **way}) as guard:
        for statistic in asked:
            price = guard.price(statistic)
            assert price.half_width is not None
            assert f"expect about ±{show.width(price.half_width)}" in price.words
            found = [answer.interval.half_width for answer in measured(guard, statistic).answers.values()]
            assert price.half_width == pytest.approx(np.mean(found), rel=0.25)
        assert guard.price(GroupMeans("x", "g", GROUPS, bounds=(-5, 5))).half_width is not None
        inside = Histogram("x", quarters, where="bought")
        price = guard.price(inside, share=float(frame()["bought"].mean()))
        found = [answer.interval.half_width for answer in measured(guard, inside).answers.values()]
        assert price.half_width == pytest.approx(np.mean(found), rel=0.3)
