"""Coarser answers at a lower charge: what they cost, how wide they are, and that no mix overspends."""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument, PlanMismatch
from afresh.ledger import Question, open_ledger
from afresh.ledger.known import plain
from afresh.mechanisms.base import coarseness_for
from afresh.planning.plan import Plan
from examples import examples

METHODS = ["stabilized", "calibrated"]
each_method = pytest.mark.parametrize("method", METHODS)
coarsenesses = st.integers(0, 16).map(lambda steps: 2 ** (steps / 4))


@cache
def planned(method: str, rows: int = 5000, questions: int = 20, answers: int = 60) -> Plan:
    return afresh.plan(rows, questions, answers=answers, method=method)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(5000) % 10})


def charges(plan: Plan, f: float) -> list[float]:
    """Charge and row charge of an answer with f times the noise, from the formulas of sections 2 and 10."""
    n, p = plan.rows, plan.parameters
    if plan.method == "stabilized":
        charge = n / (8 * (n - 1) ** 2 * (p["s"] * f) ** 2) / (1 - 1 / ((n - 1) * p["v0"]))
        return [charge, 2 * charge / (n * p["v0"])]
    t, big_t = p["t"] / f**2, p["T"] / f**4
    g = big_t * n / (t * (n - 1) ** 2)
    stability = (2 * t + big_t / t * (n / (n - 1)) ** 2 * (1 + g / 3)) * (1 + g) / (4 * (n - 1) ** 2)
    return [n * stability, 0.0]


@each_method
@given(mix=st.lists(coarsenesses, min_size=1, max_size=80))
@examples(0.3)
def test_no_mix_overspends_either_account(method: str, mix: list[float]) -> None:
    plan, ledger = planned(method), open_ledger(":memory:")
    terms = ledger.open(plain("data", plan.rows), plan.limits)
    nats, row, asked = Fraction(0), Fraction(0), 0
    for number, coarseness in zip(count(), mix, strict=False):
        one = plan.at(coarseness)
        expected = charges(plan, coarseness)
        assert [one.charge, one.row_charge] == pytest.approx(expected)
        try:
            ledger.reserve(terms, [Question(f"{number}", "", one.charge, one.row_charge, coarseness)])
        except BudgetExhausted:
            # Refused for a reason: one more would exceed a cap.
            whole, rows = plan.information, plan.mechanism.row_share
            assert whole is not None
            assert (
                asked == plan.answers or nats + Fraction(one.charge) > whole or (row + one.row_charge > (rows or 9e9))
            )
            continue
        nats, row, asked = nats + Fraction(one.charge), row + Fraction(one.row_charge), asked + 1
    slack = 1 + Fraction(1, 10**9)
    assert asked <= plan.answers
    assert nats <= Fraction(plan.information or 0.0) * slack
    if plan.mechanism.row_share is not None:
        assert row <= Fraction(plan.mechanism.row_share) * slack
    assert ledger.spent(terms).information == float(nats)


@each_method
@given(
    rows=st.sampled_from([200, 5000, 100_000]),
    questions=st.sampled_from([5, 300]),
    coarseness=coarsenesses,
    mean=st.floats(0, 1),
)
@examples(0.6)
def test_the_mean_one_half_has_the_widest_interval(
    method: str, rows: int, questions: int, coarseness: float, mean: float
) -> None:
    """So what `precision` promises there holds everywhere."""
    try:
        plan = planned(method, rows, questions, 2 * questions)
        widest = plan.half_width(0.5, coarseness)
    except InvalidArgument:
        assume(False)
    assert plan.half_width(mean, coarseness) <= widest * (1 + 1e-6)


@each_method
@given(wish=st.floats(0, 0.5, exclude_max=True))
def test_the_half_width_is_kept_at_the_lowest_charge(method: str, wish: float) -> None:
    plan = planned(method)
    best = plan.half_width(0.5)
    if wish < best:
        with pytest.raises(InvalidArgument, match="finer than this plan"):
            coarseness_for(plan.mechanism, wish)
        return
    coarseness = coarseness_for(plan.mechanism, wish)
    assert plan.half_width(0.5, coarseness) <= wish
    with suppress(InvalidArgument):  # beyond what the certificate covers
        assert plan.half_width(0.5, coarseness * 2**0.25) > wish


@each_method
def test_a_coarser_answer_has_its_noise_and_its_interval(method: str) -> None:
    """4,000 answers to one question: their spread is the coarser noise to 6 of its standard errors (< 1e-6)."""
    from afresh.moments import Moments

    plan, rng = planned(method), np.random.default_rng(5)
    coarse = plan.at(2.0)
    moments = Moments(plan.rows, 0.5 * plan.rows, 0.5 * plan.rows)
    released = np.array([coarse.release(moments, xi) for xi in rng.standard_normal(4000)])
    p = plan.parameters
    noise = 2 * p["s"] if method == "stabilized" else 2 * math.sqrt(0.25 / p["t"])
    assert released.std() == pytest.approx(noise, rel=6 / math.sqrt(2 * 4000))
    intervals = [coarse.interval(float(y)) for y in released[:50]]
    assert all((high - low) / 2 <= coarse.half_width(0.5) * (1 + 1e-6) for low, high in intervals)


class TestGuard:
    @each_method
    def test_a_repeat_is_free_if_it_is_coarser_and_charged_if_finer(self, frame: pd.DataFrame, method: str) -> None:
        with afresh.open(frame, 20, answers=60, method=method, ledger=":memory:") as guard:
            best = guard.plan.half_width()
            coarse = guard.ask("x < 3", precision=3 * best)
            assert coarse.charged == 1
            assert 0 < coarse.charged_information < guard.plan.charge / 4
            assert best < coarse.interval.half_width <= 3 * best
            coarser = guard.ask("x < 3", precision=3.5 * best)
            assert (coarser.charged, coarser.value, coarser.interval) == (0, coarse.value, coarse.interval)
            fine = guard.ask("x < 3")
            assert fine.charged_information == guard.plan.charge
            assert fine.interval.half_width <= best
            again = guard.ask("x < 3", precision=3 * best)
            assert (again.charged, again.value, again.interval) == (0, fine.value, fine.interval)
            assert guard.budget.spent == 2

    @each_method
    def test_the_budget_says_what_coarser_answers_are_worth(self, frame: pd.DataFrame, method: str) -> None:
        with afresh.open(frame, 20, answers=60, method=method, ledger=":memory:") as guard:
            guard.ask("x < 1")
            budget = guard.budget
            assert (budget.left, budget.answers) == (19, 60)
            for each in budget.coarser:
                assert each.left == min(59, math.floor(19 / each.price * (1 + 1e-6)))
            two = budget.coarser[1]
            answers = guard.ask_many([{"expression": f"x = {i}", "precision": two.half_width} for i in range(10)])
            assert sum(a.charged_information for a in answers) == pytest.approx(10 * two.price * guard.plan.charge)
            assert all(a.interval.half_width <= two.half_width for a in answers)
            assert f"precision={two.half_width:.2}"[:13] in str(budget)

    def test_it_is_in_the_units_of_the_question(self, frame: pd.DataFrame) -> None:
        with afresh.open(frame, 20, answers=60, ledger=":memory:") as guard:
            best = guard.plan.half_width()
            answer = guard.ask("x", bounds=(-10, 190), missing=0, precision=600 * best)
            assert answer.interval.half_width <= 600 * best
            with pytest.raises(InvalidArgument, match="precision"):
                guard.ask("x > 2", precision=0.9 * best)
            with pytest.raises(InvalidArgument, match="precision"):
                guard.ask("x", bounds=(-10, 190), missing=0, precision=0.9 * 200 * best)
            assert guard.budget.spent == 1

    @pytest.mark.parametrize("precision", [0, -0.1, math.nan, math.inf, "wide", True, 0.5, 7.0, [0.2]])
    def test_what_is_no_half_width_is_refused_and_free(self, frame: pd.DataFrame, precision: Any) -> None:
        with afresh.open(frame, 20, answers=60, ledger=":memory:") as guard:
            with pytest.raises(InvalidArgument, match="precision"):
                guard.ask("x < 3", precision=precision)
            assert guard.budget.spent == 0

    @pytest.mark.parametrize("rows", [20, 30, 100, 1000])
    @each_method
    def test_a_budget_can_be_shown_for_few_rows_too(self, method: str, rows: int) -> None:
        """Where some coarseness is beyond what the certificate covers."""
        few = pd.DataFrame({"x": np.arange(rows)})
        try:
            guard = afresh.open(few, 2, answers=9, method=method, ledger=":memory:", allow_wide=True)
        except InvalidArgument:
            assert rows < 100
            return
        with guard:
            budget = guard.budget
            assert all(each.half_width <= 0.5 for each in budget.coarser)
            assert str(budget)


class TestAnswers:
    @each_method
    def test_more_answers_cost_a_little_width(self, method: str) -> None:
        narrow, wide = planned(method, answers=20), planned(method, answers=2000)
        assert (narrow.answers, wide.answers, wide.questions) == (20, 2000, 20)
        assert narrow.half_width() < wide.half_width() < 1.35 * narrow.half_width()
        assert Plan.thaw(wide.limits) == wide

    @pytest.mark.parametrize("answers", [0, 19, 2.5, "30", True, 10**11])
    def test_it_is_a_number_of_at_least_the_questions(self, answers: Any, frame: pd.DataFrame) -> None:
        for make in (
            lambda: afresh.plan(5000, 20, answers=answers),
            lambda: afresh.open(frame, 20, answers=answers, ledger=":memory:"),
        ):
            with pytest.raises(InvalidArgument, match="answers =="):
                make()

    def test_it_is_fixed_by_the_first_answer(self, frame: pd.DataFrame) -> None:
        with afresh.open(frame, 20, answers=60) as guard:
            assert guard.plan.answers == 60
            guard.ask("x < 3")
        for answers in (20, 61):
            with pytest.raises(PlanMismatch, match=f"answers=60, but you opened it with answers={answers}"):
                afresh.open(frame, answers=answers)
        with afresh.open(frame) as guard:
            assert guard.budget.answers == 60

    def test_split_has_as_many_as_questions(self, frame: pd.DataFrame) -> None:
        with pytest.raises(InvalidArgument):
            afresh.plan(5000, 20, answers=21, method="rounds")
        with afresh.open(frame, 20, method="rounds", ledger=":memory:") as guard:
            with pytest.raises(InvalidArgument, match="leave it out"):
                guard.ask("x < 3", precision=0.45)
            assert guard.budget.spent == 0
