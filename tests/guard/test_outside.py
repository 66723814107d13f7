"""What was revealed elsewhere: charged where the certificate admits it, refused with an explanation where not."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh.errors import BudgetExhausted, GuardClosed, InvalidArgument
from afresh.guard.guard import Guard

N = 2000
KINDS: dict[str, float] = {"kl": 1e-6, "zcdp": 1e-6, "pure_dp": 1e-3, "noise_sd": 1.0}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(N) % 10})


@contextmanager
def opened(frame: pd.DataFrame, method: str, **options: Any) -> Iterator[Guard]:
    with afresh.open(frame, 20, method=method, ledger=":memory:", **options) as guard:
        yield guard


class TestCalibrated:
    """Section 2: what is eps-stable on m of n rows adds m eps to the information."""

    @pytest.mark.parametrize(
        ("kind", "value", "stability"),
        [
            ("kl", 3e-7, 3e-7),
            ("zcdp", 3e-7, 3e-7),
            ("pure_dp", 1e-3, float(mpmath.mpf("1e-3") * mpmath.tanh(mpmath.mpf("5e-4")))),
            ("noise_sd", 0.7, None),
        ],
    )
    @pytest.mark.parametrize("rows", [None, 100])
    def test_admits_all_that_has_a_stability(
        self, frame: pd.DataFrame, kind: str, value: float, stability: float | None, rows: int | None
    ) -> None:
        m = rows or N
        with opened(frame, "calibrated") as guard:
            budget = guard.charge("something", **{kind: value}, rows=rows, count=3)
        expected = 3 * m * (1 / (8 * value**2 * m**2) if stability is None else stability)
        assert budget.outside_information == pytest.approx(expected, rel=1e-12)
        assert budget.spent_information == budget.outside_information
        assert (budget.spent, budget.answers) == (0, 20)  # nats, but no noisy answers of its own

    def test_leaves_less_for_questions(self, frame: pd.DataFrame) -> None:
        with opened(frame, "calibrated") as guard:
            price = guard.plan.charge
            assert guard.charge("half of everything", kl=9.5 * price / N).left == 10
            for i in range(10):
                guard.ask(f"x < {i}")
            with pytest.raises(BudgetExhausted, match="repeats of earlier questions are free"):
                guard.ask("x < 10")
            assert guard.ask("x < 3").charged == 0


class TestStabilized:
    """Section 10: of foreign releases only means with fixed Gaussian noise, as answers with the floor 1/4."""

    @pytest.mark.parametrize("rows", [None, 500])
    def test_admits_means_with_noise(self, frame: pd.DataFrame, rows: int | None) -> None:
        m, sd = rows or N, 0.4
        with opened(frame, "stabilized", answers=40) as guard:
            budget = guard.charge("a mean", noise_sd=sd, rows=rows, count=2)
            row = [guard.desk.ledger.spent(guard.desk.terms).row_left, guard.desk.terms.limits.row_share]
        growth = 1 / (1 - 4 / (m - 1))
        charge = growth * m / (8 * (m - 1) ** 2 * sd**2)
        assert budget.outside_information == pytest.approx(2 * charge, rel=1e-12)
        assert budget.spent == 2  # each counts as an answer
        assert row[0] is not None
        assert row[1] is not None
        assert row[1] * (1 + 1e-9) - row[0] == pytest.approx(2 * 2 * charge / (m / 4), rel=1e-6)

    def test_a_mean_of_few_rows_uses_up_what_one_row_may_matter(self, frame: pd.DataFrame) -> None:
        """The nats would allow more, and so `left` must not say them."""
        with opened(frame, "stabilized", answers=1000) as guard:
            n, v0 = N, guard.plan.parameters["v0"]
            sd = math.sqrt(1 / guard.plan.charge)  # on 10 rows, 10/(8 81) 9/5 = .028 of the charge
            nats = 10 / (8 * 81 * sd**2) / (1 - 4 / 9)
            row = 2 * nats / (10 / 4)
            whole = 20 * 2 * guard.plan.charge / (n * v0)
            count = math.floor(whole / row) - 1
            assert count * nats < 20 * guard.plan.charge / 2
            budget = guard.charge("means of ten rows", noise_sd=sd, rows=10, count=count)
            assert budget.left < 19
            for i in range(budget.left):
                guard.ask(f"x < {i}")
            with pytest.raises(BudgetExhausted):
                guard.ask("x > 8")

    @pytest.mark.parametrize("kind", ["kl", "zcdp", "pure_dp"])
    def test_refuses_what_has_no_bound_of_its_kind(self, frame: pd.DataFrame, kind: str) -> None:
        with opened(frame, "stabilized") as guard:
            with pytest.raises(InvalidArgument, match=r"noise_sd=.*method='calibrated'"):
                guard.charge("something", **{kind: KINDS[kind]})  # type: ignore[arg-type]
            assert guard.budget.spent_information == 0

    def test_refuses_a_larger_charge_than_its_own_and_says_which_noise_would_do(self, frame: pd.DataFrame) -> None:
        with opened(frame, "stabilized") as guard:
            with pytest.raises(InvalidArgument, match="at least") as refusal:
                guard.charge("a mean", noise_sd=1e-4)
            found = re.search(r"at least ([\d.e+-]+)\.$", str(refusal.value))
            assert found
            least = float(found[1])
            with pytest.raises(InvalidArgument, match="at least"):
                guard.charge("a mean", noise_sd=0.998 * least)
            assert guard.charge("a mean", noise_sd=least).spent == 1

    def test_needs_more_than_five_rows(self, frame: pd.DataFrame) -> None:
        with opened(frame, "stabilized") as guard, pytest.raises(InvalidArgument, match=r"rows == 5"):
            guard.charge("a mean", noise_sd=10.0, rows=5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["rounds", "checked"])
def test_methods_that_need_untouched_rows_admit_nothing(frame: pd.DataFrame, method: str, kind: str) -> None:
    with opened(frame, method) as guard:
        with pytest.raises(InvalidArgument, match=f"'{method}' cannot account for this.*method='calibrated'"):
            guard.charge("something", **{kind: KINDS[kind]})  # type: ignore[arg-type]
        assert guard.ask("x < 5").charged == 1


@pytest.mark.parametrize("method", ["calibrated", "stabilized"])
class TestAny:
    def test_the_same_is_charged_once(self, frame: pd.DataFrame, method: str) -> None:
        with opened(frame, method) as guard:
            first = guard.charge("a mean in a report", noise_sd=2.0)
            assert guard.charge("a mean in a report", noise_sd=2.0) == first
            assert guard.charge("another mean", noise_sd=2.0).outside_information > first.outside_information
            assert guard.charge("a mean in a report", noise_sd=2.1).outside_information > first.outside_information

    def test_more_than_is_left_is_refused_and_said_to_be_harmful(self, frame: pd.DataFrame, method: str) -> None:
        with opened(frame, method) as guard:
            least = 1.001 * math.sqrt(N / (8 * (N - 1) ** 2 * guard.plan.charge) / (1 - 4 / (N - 1)))
            with pytest.raises(BudgetExhausted, match=r"more than is left.*do not hold: ask other data"):
                guard.charge("very much", noise_sd=least, count=40)
            budget = guard.budget
            assert (budget.spent_information, budget.left) == (0.0, 20)

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ({}, "exactly one of"),
            ({"kl": 0.1, "zcdp": 0.1}, "got kl, zcdp"),
            ({"noise_sd": 0.0}, "positive"),
            ({"noise_sd": -1.0}, "positive"),
            ({"noise_sd": math.nan}, "positive"),
            ({"noise_sd": math.inf}, "positive"),
            ({"noise_sd": True}, "positive"),
            ({"noise_sd": "1"}, "positive"),
            ({"noise_sd": 1.0, "rows": 0}, "rows == 0"),
            ({"noise_sd": 1.0, "rows": N + 1}, f"rows == {N + 1}"),
            ({"noise_sd": 1.0, "rows": 1.5}, "rows == 1.5"),
            ({"noise_sd": 1.0, "count": 0}, "count == 0"),
            ({"noise_sd": 1.0, "count": 1.5}, "count == 1.5"),
            ({"noise_sd": 1.0, "revealed": " "}, "text"),
            ({"noise_sd": 1.0, "revealed": 7}, "text"),
            ({"noise_sd": 1.0, "revealed": "\ud800"}, "must be text"),
            ({"noise_sd": 1e-200}, "."),
            ({"noise_sd": 5e-324}, "."),
            ({"noise_sd": 1.0, "count": 10**400}, "."),
            ({"noise_sd": 1.0, "count": 2**63}, "."),
            ({"kl": 1.7e308}, "."),
            ({"pure_dp": 1.7e308, "rows": 7}, "."),
            ({"noise_sd": 10**400}, "must be a positive number"),
        ],
    )
    def test_what_cannot_be_meant_is_refused_and_free(
        self, frame: pd.DataFrame, method: str, wrong: dict[str, Any], words: str
    ) -> None:
        with opened(frame, method) as guard:
            with pytest.raises((InvalidArgument, BudgetExhausted), match=words):
                guard.charge(**{"revealed": "a mean", **wrong})
            assert guard.budget.spent_information == 0
            assert len(guard.desk.ledger.chain(guard.desk.terms)) == 2

    def test_a_closed_guard_says_so(self, frame: pd.DataFrame, method: str) -> None:
        with opened(frame, method) as guard:
            pass
        with pytest.raises(GuardClosed):
            guard.charge("a mean", noise_sd=1.0)


@given(
    kind=st.sampled_from(sorted(KINDS)),
    value=st.floats(1e-12, 1e12),
    rows=st.integers(6, N),
    count=st.integers(1, 10**6),
    method=st.sampled_from(["calibrated", "stabilized", "rounds"]),
)
def test_a_charge_is_refused_or_within_the_caps(kind: str, value: float, rows: int, count: int, method: str) -> None:
    from afresh.guard.outside import convert
    from afresh.ledger import open_ledger
    from afresh.ledger.known import plain

    plan = afresh.plan(N, 20, method=method)
    ledger = open_ledger(":memory:")
    terms = ledger.open(plain("data", N), plan.limits)
    try:
        outside = convert(plan, "something", {kind: value}, rows, count)
        ledger.charge(terms, outside)
    except (InvalidArgument, BudgetExhausted):
        assert ledger.spent(terms).information == 0
        return
    spent = ledger.spent(terms)
    assert plan.information is not None
    assert 0 < spent.information == outside.charge <= plan.information * (1 + 1e-9)
    assert spent.answers <= 20
    assert spent.row_left is None or spent.row_left >= 0
