"""Numbers whose noise follows their deviation without a hint (17.10): proof, oracle, accounts, forgeries, guards."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh.errors import InvalidArgument
from afresh.mechanisms.base import FollowsDeviation, at_levels
from afresh.mechanisms.endless import plan_endless
from afresh.mechanisms.settled import plan_settled
from afresh.mechanisms.symmetrized import plan_symmetrized
from afresh.moments import Grouped, Moments
from afresh.receipts import verify
from afresh.statistics import Correlation
from afresh.theory.numbers import IN_GROUP, LARGE, SQUARE, aim_in_group, is_large
from afresh.theory.symmetrized.common import Intervals, common_plan, farthest
from afresh.theory.symmetrized.constants import constants
from afresh.theory.symmetrized.numbers import (
    EVENTS,
    WORTH,
    counted,
    fine_for,
    parts_of,
    rare,
    room,
    shown,
    together,
    usual_width,
)
from afresh.theory.symmetrized.prices import PRICES, room_for_numbers
from afresh.theory.symmetrized.settled import FLOOR, world
from afresh.theory.symmetrized.steps import times
from oracle import symmetrized as oracle
from theory.attack import numbers as attack

ROWS = 100_000
rng = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {
        "near": np.clip(rng.normal(0.4, 0.05, ROWS), 0, 1),
        "wide": rng.integers(0, 2, ROWS) * 1.0,
        "inside": rng.random(ROWS) < 0.4,
    }
)
FRAME["tied"] = np.clip(FRAME["near"] + rng.normal(0, 0.05, ROWS), 0, 1)


@cache
def planned(name: str, rows: int = ROWS, questions: int = 200) -> Any:
    made: Any = plan_endless(rows, 0.05)
    if name != "endless":
        made = (plan_settled if name == "settled" else plan_symmetrized)(rows, questions, 0.05)
    assert made is not None
    assert made.problems() == []
    return made


each = pytest.mark.parametrize("name", ["settled", "symmetrized", "endless"])


def released(name: str, moments: Moments, noise: list[float], earlier: list[Any]) -> Any:
    found = at_levels(planned(name), None).release(moments, noise)
    return found(earlier) if callable(found) else found


def moments_of(mean: float, deviation: float) -> Moments:
    return Moments(ROWS, ROWS * mean, ROWS * (mean * mean + deviation * deviation))


@pytest.mark.parametrize(("n", "k", "s", "steps"), [(10**5, 1000, 0.0046, 22), (2000, 20, 0.03, 4)])
def test_bounds_against_the_oracle(n: int, k: int, s: float, steps: int) -> None:
    """With the levels, tau and x of the code, whose own oracle is another test's."""
    c = world(n, k, s, 0.05, steps, times(steps))
    w = oracle.settled_world(n, k, s, 0.05, 0.25, times(steps))
    more = math.log(EVENTS)
    assert c.level3 == pytest.approx(float(w.L3) + more, rel=1e-9)
    w = replace(w, L1=w.L1 + more, L3=w.L3 + more, x=mp.mpf(c.tilt), D=mp.mpf(c.pairs))
    w = replace(w, t=mp.mpf(c.step), tau=mp.mpf(c.bulk), kap=mp.mpf(c.swap))
    for square, centre in ((0.0, 0.5), (0.05, 0.3), (0.6, 0.95)):
        noise = s / math.sqrt(1 / 8)
        exact = oracle.shown_pairs(w, centre, square, noise, 1e-6)
        found = shown(c, centre, square, noise, 1e-6)
        for ours, least in zip((found.pairs, found.square), exact, strict=True):
            assert float(least) * (1 - 1e-9) <= ours <= float(least) * 1.08


def test_the_bounds_hold_for_real_samples() -> None:
    """d of real pairs is below D(U) of real draws; levels are e^-20, so no run ever fails."""
    random = np.random.default_rng(2)
    n, c = 20_000, constants(20_000, 100, 0.01, 0.05, events=400, alike=False)
    for deviation in (0.01, 0.1, 0.3):
        own, ghost = (np.clip(random.normal(0.4, deviation, n), 0, 1) for _ in range(2))
        centre = float(np.clip(own.mean() + 0.04 * random.normal(), 0, 1))
        scale = max(centre, 1 - centre) ** 2
        square = float(np.clip(np.mean((own - centre) ** 2) / scale + 0.028 * random.normal(), 0, 1))
        found = shown(c, centre, square, 0.028, 0.0)
        assert np.mean((own - ghost) ** 2) <= found.pairs
        assert np.mean(((own - centre) ** 2 - (ghost - centre) ** 2) ** 2) / scale**2 <= found.square
    assert rare(c) == pytest.approx(float(mp.sqrt(2) * mp.erfinv(1 - 2 * mp.exp(-mp.mpf(c.level3)))), rel=1e-9)


@given(
    st.floats(1e-3, 2.0),
    st.floats(0.01, 20.0),
    st.lists(st.floats(0.0, 0.6), min_size=1, max_size=4),
)
def test_draws_in_several_directions_count_as_one_answer(step: float, rate: float, parts: list[float]) -> None:
    """Lemma M's exponents, their u/(1+u) and the parts themselves: none is more than that of the one answer."""

    def exponent(u: float) -> float:
        return math.log1p(rate * u / (1 + u))

    units = counted(step, rate, parts)
    assert units >= math.fsum(parts) * (1 - 1e-9) - 1e-300
    if units < math.inf:
        t = step * units
        assert exponent(t) >= math.fsum(exponent(step * part) for part in parts) * (1 - 1e-9)
        assert t / (1 + t) >= math.fsum(step * part / (1 + step * part) for part in parts) * (1 - 1e-9)
    left = room(step, rate, parts)
    if left > 0:
        assert together(step, rate, [*parts, left]) <= step / (1 + step) * (1 + 1e-9)
        assert counted(step, rate, [*parts, left]) <= 1 + 1e-6


@pytest.mark.parametrize("grouped", [False, True])
def test_the_last_draw_takes_what_the_first_ones_leave(grouped: bool) -> None:
    for pairs, square in ((1.0, 1.0), (0.1, 0.3)):
        fine = fine_for(0.06, 0.3, pairs, square, grouped=grouped)
        assert counted(0.06, 0.3, parts_of(fine, pairs, square, grouped=grouped)) == pytest.approx(1, rel=1e-6)


@each
def test_plans_carry_their_certificate_and_others_do_not(name: str) -> None:
    made = planned(name)
    assert 0 < made.numbers < 1
    for lie in (-0.1, 1.5, made.numbers / 4):
        assert replace(made, numbers=lie).problems() != []


@each
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_released_is_admitted_and_nothing_finer(name: str, grouped: bool) -> None:
    number, random, earlier = at_levels(planned(name), None), np.random.default_rng(1), list[Any]()
    for mean, deviation in ((0.4, 0.05), (0.5, 0.5), (0.02, 0.03), (0.9, 0.0)) * 2:
        moments = moments_of(mean, deviation)
        if grouped:
            inside = ROWS // 3
            moments = Grouped(ROWS, inside * mean, inside * (mean**2 + deviation**2), inside, bool(len(earlier) % 2))
        made = released(name, moments, random.standard_normal(4).tolist(), earlier)
        earlier.append(made)
        assert number.admits(made)
        low, high = number.interval(made)
        assert 0 <= low <= number.value(made) <= high <= 1
        for lie in ({"times": made["times"] / 2 ** (1 / 32)}, {"first": 0.1234567}, {"more": 1.0}, {"times": 9.0}):
            assert not number.admits({**made, **lie})
        if name != "settled":  # whose account says what was left, see below
            assert not number.admits({**made, "times": made["times"] / 2**3})
        without = {key: value for key, value in made.items() if key != "square"}
        assert not number.admits(without)
    planned(name).history(earlier)


def test_an_account_with_numbers_never_overruns() -> None:
    """Numbers and conditions in any order; each charge is at least what its draws count, and was reserved before."""
    made, random = planned("settled"), np.random.default_rng(4)
    settling, earlier = made.settling, list[Any]()
    for place in range(made.questions):
        if place % 3 == 0:
            whole = Moments(ROWS, ROWS * 0.3, ROWS * 0.3)
            earlier.append(made.release(whole, random.standard_normal(2).tolist())(earlier))
        else:
            earlier.append(
                released(
                    "settled", moments_of(0.5, (0.05, 0.5)[place % 2]), random.standard_normal(4).tolist(), earlier
                )
            )
    made.history(earlier)
    spent = [0.0, *(each["spent"] for each in earlier)]
    assert spent[-1] <= made.questions
    assert all(after - before >= FLOOR for before, after in pairwise(spent))
    assert settling.leaves_room()
    for place, one in enumerate(earlier[:9]):
        less = {**one, "spent": spent[place] + FLOOR / 2}
        with pytest.raises(InvalidArgument, match="charged less"):
            made.history([*earlier[:place], less])
    wide = next(place for place, one in enumerate(earlier) if one["times"] > 1 and "square" in one)
    finest = times(settling.number_steps)
    with pytest.raises(InvalidArgument, match=r"finer than what was left|charged less"):
        made.history([*earlier[:wide], {**earlier[wide], "times": finest}])


@each
def test_widths_follow_the_deviation(name: str) -> None:
    number = at_levels(planned(name), None)
    assert isinstance(number, FollowsDeviation)
    widths = [number.deviation_width(0.5, spread) for spread in (0.02, 0.1, 0.3, 0.5)]
    assert widths == sorted(widths)
    assert widths[0] < 0.5 * widths[-1]
    assert number.deviation_width(0.5, 0.5) == number.half_width(0.5)


@each
def test_a_guard_answers_numbers_by_their_deviation(name: str) -> None:
    """With draws 4.9 deviations off, of a chance of 1e-6, widths are within these."""
    how: dict[str, Any] = {"questions": None} if name == "endless" else {"questions": 200, "method": name}
    with afresh.open(FRAME, ledger=":memory:", **how) as guard:
        price = guard.price("near", bounds=(0, 1), missing=0, mean=0.4, deviation=0.05)
        near, wide = (guard.ask(column, bounds=(0, 1), missing=0) for column in ("near", "wide"))
        assert near.charged == price.answers == 1
        assert near.interval.half_width < 0.75 * wide.interval.half_width
        assert price.half_width == pytest.approx(near.interval.half_width, rel=0.35)
        assert "follow the deviation" not in near.covers
        for answer, column in ((near, "near"), (wide, "wide")):
            assert answer.low <= FRAME[column].mean() <= answer.high
        group = guard.ask("near", bounds=(0, 1), missing=0, where="inside")
        assert group.charged == 2
        assert group.low <= FRAME["near"][FRAME["inside"]].mean() <= group.high
        found: Any = guard.measure(Correlation("near", "tied", (0, 1), (0, 1)))
        assert found.low <= np.corrcoef(FRAME["near"], FRAME["tied"])[0, 1] <= found.high
        receipt = guard.receipt()
    assert verify(receipt).passed
    if name == "symmetrized":  # a number pays its rows for the finest noise; one that says less is found
        records = [dict(each) for each in map(json.loads, receipt["chain"]["records"])]
        rows = {(each["levels"] is None, each["row_charge"]) for each in records if each["kind"] == "reserved"}
        assert len({number for number, _ in rows}) == len(rows)


TIGHT = [(10**4, 1000, 0.84), (10**5, 10**4, 0.68), (10**6, 10**4, 0.36), (10**5, 10, 0.36), (10**4, 5, 0.54)]


@pytest.mark.parametrize("typical", [(0.5, 0.1, 0.01), (0.5,)])
@pytest.mark.parametrize(("rows", "questions", "part"), TIGHT)
def test_numbers_follow_in_plans_with_little_room(
    rows: int, questions: int, part: float, typical: tuple[float, ...]
) -> None:
    """Many questions, where room on a row is dear, and few, where first draws are; plain answers hardly notice."""
    made = plan_symmetrized(rows, questions, 0.05, None, typical)
    assert made is not None
    assert made.problems() == []
    assert made.numbers > 0
    number: Any = at_levels(made, None)
    most = part if len(typical) > 1 else 1.25 * part
    assert number.deviation_width(0.5, 0.05) < most * number.deviation_width(0.5, 0.5)
    assert number.deviation_width(0.5, 0.05) < made.half_width(0.5)
    plain, _ = common_plan(rows, questions, 0.05, typical=typical, concave=True)
    widest = 1.011 if len(typical) > 1 or made.numbers > 1 else 1.0065
    assert made.half_width(0.5) <= widest * sum(Intervals(plain, plain.constants.s).ends(0.5, 0.0)[1:]) - 0.5 * widest
    # All answers may be numbers, on one row as well, and one more may count four times.
    assert questions * number.row_charge <= made.row_share * (1 + 1e-12)
    unit, firsts = made.row_charge, made.firsts * (2 * IN_GROUP + SQUARE)
    assert (questions - 1) * number.row_charge + (firsts + 4 * made.numbers**-2) * unit <= made.q * (1 + 1e-12)
    assert (questions - 1) * number.row_charge + 4 * unit <= made.q * (1 + 1e-12)
    for lie in ({"firsts": 4.0}, {"firsts": 0.0}, {"numbers": made.numbers / 4}, {"numbers": 1.3}, {"concave": False}):
        assert replace(made, **lie).problems() != [] or lie == {"concave": False}


@pytest.mark.parametrize("failure", [0.05, 0.3, 1e-9])
@pytest.mark.parametrize("typical", [(0.5, 0.1, 0.01), (0.5,), (0.02,)])
@pytest.mark.parametrize(("rows", "questions"), [(2000, 1), (10**5, 1), (10**5, 2), (10**9, 1)])
def test_settled_plans_of_very_few_questions_have_room_for_numbers(
    rows: int, questions: int, typical: tuple[float, ...], failure: float
) -> None:
    made = plan_settled(rows, questions, failure, None, typical)
    assert made is not None
    assert made.problems() == []
    number: Any = at_levels(made, None)
    assert number.deviation_width(0.5, 0.05) <= WORTH * made.half_width(0.5)
    moments, random, released = Moments(rows, rows * 0.5, rows * 0.2525), np.random.default_rng(3), list[Any]()
    for _ in range(questions):
        released.append(number.release(moments, random.standard_normal(4).tolist())(released))
    made.history(released)
    assert released[-1]["spent"] <= questions
    assert replace(made, bend=0.95).problems() != []


@pytest.mark.parametrize(
    ("method", "rows", "questions"),
    [("symmetrized", 4096, 1000), ("symmetrized", 2000, 1), ("symmetrized", 2000, 2), ("settled", 2000, 2)],
)
def test_a_guard_that_pays_more_for_numbers(method: str, rows: int, questions: int) -> None:
    """Every answer may be a number, also within a group, and its receipt verifies."""
    with afresh.open(FRAME[:rows], questions, method=method, ledger=":memory:") as guard:
        number = guard.ask("near", bounds=(0, 1), missing=0)
        assert number.interval.half_width < 1.2 * guard.plan.half_width(0.5)  # more, if first draws are unlucky
        assert FRAME["near"].mean() in number.interval
        for place in range(min(questions, 6) - 1):  # within a group for two answers, if there are two left
            group: dict[str, Any] = {"where": "inside"} if questions > 2 and place % 2 else {}
            assert guard.ask(f"near * {0.9 - place / 10}", bounds=(0, 1), missing=0, **group).charged == 1 + len(group)
        assert verify(guard.receipt()).passed


@pytest.mark.parametrize(("rows", "questions"), [(10**5, 10**4), (10**4, 1000), (10**5, 10**5)])
def test_plans_for_one_mean_have_a_grid_that_suits_their_noise(rows: int, questions: int) -> None:
    """The finest noise of the first of these is a little coarser than that of a plain answer."""
    made = plan_settled(rows, questions, 0.05, None, (0.5,))
    assert made is not None
    assert made.problems() == []


DEAR = [(10**5, 10**5), (4096, 1000), (2000, 4), (2000, 1), (10**5, 1), (10**9, 1)]


@pytest.mark.parametrize("typical", [(0.5, 0.1, 0.01), (0.5,)])
@pytest.mark.parametrize(("rows", "questions"), DEAR)
def test_room_for_numbers_has_the_lowest_price_that_gains_anything(
    rows: int, questions: int, typical: tuple[float, ...]
) -> None:
    plain, _ = common_plan(rows, questions, 0.05, typical=typical, concave=True)
    found = room_for_numbers(plain, typical)
    assert found is not None
    widest = farthest(plain, plain.constants.s, plain.constants.pairs)
    assert found.plain <= PRICES[-1] * widest
    assert min(found.of_numbers, usual_width(found.common, found.numbers, found.firsts)) <= WORTH * widest
    made = plan_symmetrized(rows, questions, 0.05, None, typical)
    assert made is not None
    assert made.problems() == []
    assert (made.s, made.bend, made.firsts) == (found.common.constants.s, found.common.bend, found.firsts)
    assert (made.firsts > 1) == (rows == 4096)
    # All answers may be numbers, on one row as well, and one more may count four times.
    number: Any = at_levels(made, None)
    unit, firsts = made.row_charge, made.firsts * (2 * IN_GROUP + SQUARE)
    assert questions * number.row_charge <= made.row_share * (1 + 1e-12)
    assert (questions - 1) * number.row_charge + (firsts + 4 * made.numbers**-2) * unit <= made.q * (1 + 1e-12)
    assert number.row_charge >= (firsts + made.numbers**-2) * unit
    lies: list[dict[str, Any]] = [{"firsts": 4.0}, {"firsts": 0.0}, {"bend": 0.9999}, {"s": made.s * 0.8}]
    for lie in lies:
        assert replace(made, **lie).problems() != []


@pytest.mark.parametrize(("rows", "questions"), [(10**5, 10), (10**4, 30), (10**5, 1000), *DEAR])
@pytest.mark.parametrize("grouped", [False, True])
def test_draws_of_a_number_count_at_most_one_answer_whatever_first_draws_are(
    rows: int, questions: int, grouped: bool
) -> None:
    """By Lemma M's exponents, f(t_i) = ln(1 + R t_i/(1 + t_i)), of the noise that was drawn; the curve pays once."""
    made = plan_symmetrized(rows, questions, 0.05)
    number, random = at_levels(made, None), np.random.default_rng(3)
    assert made is not None
    c, rate = made._constants, made.bend / (1 - made.bend)

    def exponent(part: float) -> float:
        u = c.step * part
        return math.log1p(rate * u / (1 + u))

    for deviation in (0.0, 0.05, 0.3, 0.5):
        inside = rows // 2
        moments = Moments(rows, rows * 0.5, rows * (0.25 + deviation**2))
        if grouped:
            moments = Grouped(rows, inside * 0.5, inside * (0.25 + deviation**2), inside, False)
        drawn: Any = number.release(moments, random.standard_normal(4).tolist())
        seen = number._seen(drawn)  # type: ignore[attr-defined] # of numbers
        first = [made.firsts * IN_GROUP] * (2 if grouped else 0) + [made.firsts * SQUARE * seen.square / made.D]
        own = 0.0 if grouped else made.firsts * IN_GROUP
        parts = [*first, (drawn["times"] ** -2 + own) * seen.pairs / made.D]
        assert math.fsum(map(exponent, parts)) <= exponent(1.0) * (1 + 1e-9)
        assert math.fsum(parts) <= 1 + 1e-9
    own_firsts = math.fsum(exponent(made.firsts * part) for part in (IN_GROUP, IN_GROUP, SQUARE)) / 2
    total = np.logaddexp.reduce(exponent(1.0) / 2 * np.arange(questions))
    paid = math.exp(made.height + own_firsts + total) + c.main * made.lower
    assert paid <= c.main * (1 + 1e-6)


def test_an_analyst_that_learns_by_fine_numbers() -> None:
    """Three games with a fixed seed, where each may miss with .05; 17.11 says how many were played by hand."""
    for case in (("settled", 4096, 40, 0.1, 0.1), ("symmetrized", 2048, 3, 0.05, 0.5), ("settled", 2048, 2, 0.05, 0.5)):
        assert case in attack.CASES
        assert attack.push(case, 0.05, 3, 7).max() <= 1


@given(st.floats(0, 1), st.floats(1e-6, 1), st.floats(0, 1), st.floats(0.01, 1))
def test_a_group_is_large_if_its_share_is_known_well_for_its_mean(
    centre: float, share: float, unsure: float, grouping: float
) -> None:
    inside = centre * share
    found = is_large(unsure, inside, share, grouping)
    assert found == (unsure <= grouping * 4 * (c := min(inside / share, 1.0)) * (1 - c) * share)
    assert is_large(unsure, inside, share, 0.0) == (unsure <= LARGE * share)  # as plans from before have it
    for second in (False, True):  # whichever it is, values stay within [0, 1]
        a, g, d, _ = aim_in_group(inside, share, second=second, large=found)
        ends = [d, a * 0 + g + d, a * 1 + g + d]
        assert -1e-12 <= min(ends) <= max(ends) <= 1 + 1e-12


@each
def test_plans_from_before_keep_their_rule_for_groups(name: str) -> None:
    """A group of a share that the new rule takes for large, and the old one did not; near an end the other way."""
    made = planned(name)
    both: list[Any] = [at_levels(plan, None) for plan in (made, replace(made, grouping=0.0))]
    new, old = both
    share = next(p for p in np.linspace(0.01, 0.9, 400) if new.large(p / 2, p) != old.large(p / 2, p))
    assert new.large(share / 2, share)
    near_an_end = [p for p in np.linspace(0.01, 0.9, 400) if old.large(0.95 * p, p) and not new.large(0.95 * p, p)]
    assert near_an_end
