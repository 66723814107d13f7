"""Noise that follows a first draw or a hint, and charges that are settled (17.10): proof, oracle, guards (about=)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh.errors import InvalidArgument
from afresh.ledger.records import START, Answered, decode, encode, seal
from afresh.mechanisms.settled import Settled, plan_settled
from afresh.moments import Moments
from afresh.receipts import verify
from afresh.receipts.format import FORMATS, NAME, read_chain
from afresh.theory.symmetrized.common import pairs_within
from afresh.theory.symmetrized.settled import COARSEST, FLOOR, GRAIN, highest, world
from afresh.theory.symmetrized.steps import SHARE, step_of, times
from examples import examples
from oracle import symmetrized as oracle

ROWS = 100_000
rng = np.random.default_rng(5)
FRAME = pd.DataFrame({"even": rng.random(ROWS) < 0.5, "tenth": rng.random(ROWS) < 0.1, "rare": rng.random(ROWS) < 0.01})


def planned(rows: int = ROWS, questions: int = 200, failure: float = 0.05) -> Settled:
    found = plan_settled(rows, questions, failure)
    assert found is not None
    return found


def moments(rows: int, mean: float) -> Moments:
    return Moments(rows, rows * mean, rows * mean)


def test_two_draws_of_one_question_are_one_answer_of_the_noise_of_both() -> None:
    """For every coin vector: the density of (y1, y2) is a factor without the coins times that of their mean."""
    random = np.random.default_rng(1)
    for _ in range(20):
        c, f, y1, y2 = 1 + 3 * random.random(), 0.2 + random.random(), *random.normal(size=2)
        square = 1 / (c**-2 + f**-2)
        both = square * (y1 / c**2 + y2 / f**2)
        means = np.array([random.random(6) @ (1 - 2 * np.array(list(np.binary_repr(i, 6)), int)) for i in range(64)])
        logs = -((y1 - means) ** 2) / (2 * c**2) - (y2 - means) ** 2 / (2 * f**2) + (both - means) ** 2 / (2 * square)
        assert np.ptp(logs) < 1e-9


@pytest.mark.parametrize(
    ("n", "k", "s", "beta", "steps"),
    [(10**5, 1000, 0.0046, 0.05, 21), (2000, 40, 0.02, 0.5, 4), (10**6, 10**4, 0.0023, 1e-6, 30)],
)
def test_constants_sum_and_widths_against_the_oracle(n: int, k: int, s: float, beta: float, steps: int) -> None:
    c, finest = world(n, k, s, beta, steps), times(steps)
    w = oracle.settled_world(n, k, s, beta, SHARE, finest)
    for ours, exact in ((c.pairs, w.D), (c.swap, w.kap), (c.bulk, w.tau), (c.row, w.q), (c.tilt, w.x)):
        assert float(exact) * (1 - 1e-9) <= ours <= float(exact) * (1 + 1e-6)
    for truth in (0.5, 0.1, 0.003):
        assert float(oracle.unlike_pairs(w, truth, 24)) * (1 - 1e-9) <= float(pairs_within(c, truth, truth))
    for bend, lower in ((0.2, 0.001), (0.6, 0.05)):
        exact = float(mp.log(w.bm * (1 - mp.mpf(lower))) - oracle.settled_sum(w, bend, SHARE, FLOOR))
        assert exact - 1e-6 <= highest(c, bend, lower) <= exact


@given(st.lists(st.floats(0, 1), min_size=12, max_size=12), st.sampled_from([0.05, 0.3, 0.9]))
def test_no_order_of_charges_has_a_larger_sum(wishes: list[float], bend: float) -> None:
    """However an analyst spends: each answer at least FLOOR, and FLOOR is left to each of the others."""
    k = len(wishes)
    c = world(2000, k, 0.02, 0.05, 8)
    rate = bend / (1 - bend)

    def exponent(units: float) -> float:
        t = c.step * units
        return math.log1p(rate * t / (1 + t)) / 2

    spent, before, total = 0.0, 0.0, 0.0
    for place, wish in enumerate(wishes, 1):
        total += math.exp(before + exponent(SHARE))
        most = k - spent - (k - place) * FLOOR
        units = FLOOR + wish * (most - FLOOR)
        spent, before = spent + units, before + exponent(units)
    assert spent <= k + 1e-9
    assert highest(c, bend, 0.01) + math.log(total) <= math.log(c.main * 0.99)


def played(m: Settled, means: list[float], hints: list[float | None], seed: int) -> list[Any]:
    random, released = np.random.default_rng(seed), list[Any]()
    for mean, hint in zip(means, hints, strict=True):
        each = m if hint is None else m.coarser(m.noise_about(hint))
        made = each.release(moments(m.rows, mean), random.standard_normal(each.draws).tolist())
        released.append(made(released))
    return released


@examples(0.25)  # each is 25 answers
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.003, 0.05, 0.3, 0.5, 0.97]), st.sampled_from([None, 0.001, 0.5]))),
    st.integers(0, 10**6),
)
def test_an_account_never_overruns_and_charges_what_intervals_say(
    asked: list[tuple[float, float | None]], seed: int
) -> None:
    asked = (asked * 25)[:25]
    m = planned(20_000, 25)
    c, k = m.settling.common.constants, m.questions
    released = played(m, [mean for mean, _ in asked], [hint for _, hint in asked], seed)
    m.history(released)
    spent = 0.0
    for place, each in enumerate(released, 1):
        assert m.admits(each)
        v = each["times"] ** -2 + (SHARE if "first" in each else 0.0)
        low, high = m.interval(each)
        truths = np.linspace(low, high, 40)
        most = float(pairs_within(c, truths, truths).max())
        assert c.pairs * (each["spent"] - spent) >= v * most * (1 - 1e-9)  # what is charged is at least v D(P)/D
        assert each["spent"] - spent >= FLOOR
        assert spent + max(v, FLOOR) + (k - place) * FLOOR <= k + 1e-9  # and was reserved before
        spent = each["spent"]
        assert times(m.steps) * (1 - 1e-9) <= each["times"] <= times(COARSEST) * (1 + 1e-9)
    assert spent <= k


def length(m: Settled, released: Any) -> float:
    low, high = m.interval(released)
    return high - low


def test_a_wrong_hint_costs_the_others_a_little_width_and_nothing_else() -> None:
    """A hundred wrong hints; widths of all later answers stay within 6% of those of a plan that has all."""
    m = planned(questions=300)
    wrong = played(m, [0.5] * 100, [0.01] * 100, 3)
    right = played(m, [0.5] * 100, [None] * 100, 3)
    assert length(m, wrong[0]) < 0.9 * length(m, right[0])  # it got what it asked for
    assert wrong[0]["spent"] > 4
    for each in wrong[20:]:
        assert length(m, each) <= 1.06 * 2 * m.half_width(0.5)
        assert m.interval(each)[0] <= 0.5 <= m.interval(each)[1]
    assert m.present_half_width(0.5, wrong) <= 1.06 * m.half_width(0.5)
    assert m.present_half_width(0.5, []) == m.half_width(0.5)


def test_figures_of_the_docs() -> None:
    """Geometric means at .5, .1 and .01 against those of section 10, and an answer to a right hint."""
    for n, k, most in ((10**5, 100, 0.0130), (10**5, 1000, 0.0240), (10**6, 1000, 0.0066)):
        m = planned(n, k)
        widths = [m.half_width(mean) for mean in (0.5, 0.1, 0.01)]
        assert math.exp(sum(map(math.log, widths)) / 3) <= most
        hinted = m.coarser(m.noise_about(0.01))
        assert hinted.half_width(0.01) <= widths[2] * 1.001
        assert m.half_width(0.99) == pytest.approx(m.half_width(0.01))


@pytest.mark.parametrize("rows", [20, 100, 2000, 10**9])
@pytest.mark.parametrize("failure", [1e-9, 0.5])
@pytest.mark.parametrize("questions", [1, 50, 10**6])
def test_plans_at_the_corners(rows: int, failure: float, questions: int) -> None:
    m = plan_settled(rows, questions, failure)
    if m is None:
        assert rows <= 2000
        return
    assert m.problems() == []
    for mean in (0.0, 1e-9, 0.5, 1.0):
        for noise in (-6.0, 6.0):
            released = m.release(moments(rows, mean), [noise, noise])([])
            low, high = m.interval(released)
            assert 0 <= low <= released["value"] <= high <= 1
    broken = [replace(m, s=0.0), replace(m, steps=99), replace(m, grid=0.3), replace(m, height=m.height + 0.01)]
    broken += [replace(m, D=0.9 * m.D), replace(m, bend=1.0), replace(m, s=1e-9 / rows)]
    assert all(each.problems() for each in broken)


def test_what_was_released_must_follow_from_what_was_released_before() -> None:
    m = planned(20_000, 25)
    released = played(m, [0.5, 0.01, 0.3], [None, None, 0.1], 7)
    for place, lie in (
        (0, {"spent": released[0]["spent"] - 2 * GRAIN}),
        (1, {"times": times(m.steps + 1)}),
        (1, {"times": 0.5}),
        (2, {"spent": released[1]["spent"] + 0.5}),
        (2, {"spent": released[1]["spent"] + 0.94}),
        (1, {"value": 0.5}),  # whose interval would cost more
    ):
        forged = [{**each, **(lie if at == place else {})} for at, each in enumerate(released)]
        with pytest.raises(InvalidArgument, match=r"place \d"):
            m.history(forged)
    finest = {**released[0], "times": times(m.steps), "spent": 25.0}
    with pytest.raises(InvalidArgument, match="finer than what was left"):
        m.history([finest, {**finest, "spent": 40.0}])
    for odd in (0.5, {"value": 0.5}, {**released[0], "more": 1.0}, {**released[0], "value": 0.1 + 1e-9}):
        assert not m.admits(odd)


def test_a_guard_that_follows_the_mean(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    with afresh.open(FRAME, 200, promise=True, ledger=place) as guard:
        assert guard.plan.method == "settled"  # the narrowest promise at so many rows
        even, rare = guard.ask_many(["even", "rare"])
        tenth = guard.ask("tenth", about=0.1)
        # With draws 4.9 deviations off, of a chance of 1e-6, widths are within these.
        assert rare.interval.half_width < 0.75 * even.interval.half_width
        assert rare.noise < 0.8 * even.noise
        for answer, truth in ((even, 0.5), (rare, 0.01), (tenth, 0.1)):
            assert answer.low <= truth <= answer.high
            assert answer.charged == 1
        assert guard.ask("tenth").charged == guard.ask("tenth", about=0.1).charged == 0
        assert guard.ask("rare", about=0.01).charged == 1  # what was asked before had no hint
        assert guard.price("rare", mean=0.01).answers == 0
        price = guard.price("rare AND even", about=0.005)
        assert price.mean == pytest.approx(0.005)
        assert price.answers == 1
        assert price.half_width is not None
        assert price.half_width < rare.interval.half_width * 1.2
        assert guard.budget.half_width[0.01] < 0.5 * guard.budget.half_width[0.5]
        within = guard.ask("tenth", where="even")
        assert within.charged == 2
        for bad, words in (
            ({"about": 2}, "about == 2, must be within the bounds"),
            ({"about": 0.1, "where": "even"}, "leave out where"),
            ({"about": 0.1, "precision": 0.2}, "leave one of them out"),
            ({"precision": 0.2}, "precision cannot be chosen"),
        ):
            with pytest.raises(InvalidArgument, match=words):
                guard.ask("rare OR even", **bad)
        with pytest.raises(InvalidArgument, match="counts its own draws"):
            guard.charge("a mean in a report", noise_sd=0.1)
        spent = guard.budget.spent
        receipt = guard.receipt()
    assert verify(receipt).passed
    with afresh.open(FRAME, ledger=place) as guard:  # goes on where it was
        assert guard.budget.spent == spent == 6
        guard.ask("even AND tenth")
        assert verify(guard.receipt()).passed
    with (
        afresh.open(FRAME, 200, method="stabilized", ledger=":memory:") as guard,
        pytest.raises(InvalidArgument, match="only with method='settled'"),
    ):
        guard.ask("rare", about=0.01)


def test_hints_are_in_the_units_of_the_answer() -> None:
    frame = pd.DataFrame({"amount": np.full(20_000, 3.0)})
    with afresh.open(frame, 20, method="settled", ledger=":memory:") as guard:
        answer = guard.ask("amount", bounds=(0, 300), missing=0, about=3)
        other = guard.ask("amount + 150", bounds=(0, 300), missing=0, about=150)
        assert answer.noise < 0.9 * other.noise


def test_a_receipt_whose_account_was_changed_does_not_verify() -> None:
    with afresh.open(FRAME, 40, method="settled", ledger=":memory:") as guard:
        guard.ask_many(["even", "tenth", "rare"])
        texts: list[str] = guard.receipt()["chain"]["records"]

    def forged(**said: float) -> dict[str, Any]:
        last = decode(texts[-1])
        assert isinstance(last, Answered)
        assert isinstance(last.released, Mapping)
        made = [*texts[:-1], encode(last._replace(released={**last.released, **said}))]
        head = START
        for text in made:
            head = seal(head, text)
        facts = read_chain(made)
        return {"format": NAME, "version": 5, "made_by": "x", "made_at": "2026", **FORMATS[5].write(facts)}

    assert verify(forged()).passed
    for lie in ({"spent": 2.0}, {"times": 0.2}, {"times": times(2)}, {"value": 0.123}, {"more": 1.0}):
        assert not verify(forged(**lie)).passed


def test_the_planner_weighs_by_typical_means_and_says_why() -> None:
    usual = afresh.plan(10**5, 1000, promise=True)
    assert usual.method == "settled"
    assert "narrowest promise, ±0.0239 on average (stabilized: ±0.0270)" in usual.advice
    assert afresh.plan(10**5, 1000, promise=True, typical=0.5).method == "symmetrized"
    assert afresh.plan(10**5, 1000, promise=True, typical=0.002).method in ("stabilized", "settled")
    assert afresh.plan(10**4, 100, promise=True).method == "stabilized"
    assert plan_settled(10**5, 100, 0.05, 300) is None  # all answers have one price
    assert afresh.plan(10**5, 100, answers=300, promise=True).method == "stabilized"


def test_steps() -> None:
    assert [step_of(times(step)) for step in range(COARSEST, 81)] == list(range(COARSEST, 81))
    assert times(0) ** -2 + SHARE == pytest.approx(1)
    assert times(COARSEST) ** -2 + SHARE <= FLOOR
    assert times(0) ** -2 <= FLOOR
