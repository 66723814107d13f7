"""The exam: rows that a few final questions touch, once, and nothing else; its own share of the failure probability."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument, PlanMismatch, QueryError
from afresh.mechanisms.planned_checks import plan_checks, plan_open_rows, plan_own_rows
from afresh.moments import Moments
from afresh.receipts import verify

N = 4000
RNG = np.random.default_rng(7)
FRAME = pd.DataFrame({"i": np.arange(N), "b": RNG.random(N) < 0.3, "x": RNG.random(N), "g": RNG.integers(0, 4, N)})
QUESTIONS = ["b", {"expression": "x", "bounds": (0, 1), "missing": 0}, {"expression": "b", "where": "g = 1"}]


def test_the_parts_are_disjoint_and_the_exam_is_exact(tmp_path: Path) -> None:
    with afresh.open(FRAME, 50, open=0.5, exam=0.1, ledger=tmp_path / "ledger.sqlite") as guard:
        mine = set(guard.open_rows()["i"])
        assert (guard.plan.open, guard.plan.exam, len(mine)) == (N // 2, N // 10, N // 2)
        guard.ask("b")
        share, mean, within = guard.exam(QUESTIONS)
        assert guard.budget.spent == 1  # the exam costs no answer
        rest = FRAME[~FRAME.i.isin(mine)]
        kept = guard.plan.mechanism.exam_rows
        assert kept is not None
        from afresh.engines.embedded.rowwise import rows_of_span

        own = FRAME.iloc[rows_of_span(guard.desk.engine, kept)]
        assert set(own.i) <= set(rest.i)
        assert share.value == pytest.approx(own.b.mean())
        assert mean.value == pytest.approx(own.x.mean())
        assert within.value == pytest.approx(own[own.g == 1].b.mean())
        assert all(each.exam and each.charged == 0 and each.question.startswith("exam: ") for each in (share, mean))
        assert "exam" in str(guard.budget)
        assert guard.budget.examined == 3
        n, hits, side = len(own), int(own.b.sum()), 0.025 / 3 / 2  # Clopper and Pearson
        low, high = beta.ppf(side, hits, n - hits + 1), beta.isf(side, hits + 1, n - hits)
        assert (share.low, share.high) == pytest.approx((low, high), abs=1e-7)  # rounded outward


def test_it_is_taken_once_by_whoever_opened_the_data(tmp_path: Path) -> None:
    book = tmp_path / "ledger.sqlite"
    with afresh.open(FRAME, 50, open=0.5, exam=0.1, ledger=book, analyst="ann") as guard:
        guard.divide({"bob": 10})
        with pytest.raises(InvalidArgument, match="share"):
            guard.for_analyst("bob").exam(["b"])
        with pytest.raises(QueryError):
            guard.exam(["nothing"])
        with pytest.raises(InvalidArgument, match="guess"):
            guard.exam([{"expression": "b", "guess": (0.3, 0.01)}])
        assert guard.budget.examined == 0  # mistakes do not take it
        found = guard.exam(["b", "g = 1"])
        with pytest.raises(BudgetExhausted, match="taken, with 2 questions"):
            guard.exam(["g = 2"])
        with pytest.raises(BudgetExhausted, match="taken"):
            guard.exam(["b", "g = 2"])
        assert guard.ask("b").charged == 1  # another question than the exam's
    with afresh.open(FRAME, ledger=book, analyst="ann") as later:
        assert [each.value for each in later.exam(["g = 1", "b"])] == [found[1].value, found[0].value]
        with pytest.raises(InvalidArgument, match="has no rounds"):
            later.close_rounds()


def test_plans_and_wishes(tmp_path: Path) -> None:
    book = tmp_path / "ledger.sqlite"
    for wrong, words in (
        ({"exam": 0.0}, "exam == 0.0"),
        ({"exam": 1.0}, "exam == 1.0"),
        ({"open": 0.6, "exam": 0.4}, "leave no rows to check with"),
        ({"exam": 0.1, "rounds": 5}, "a last round"),
        ({"exam": 0.1, "method": "stabilized"}, "has no exam"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            afresh.open(FRAME, 50, ledger=book, **wrong)
    with afresh.open(FRAME, 50, exam=0.1, ledger=book) as guard:  # without open rows: guesses through noise
        assert guard.plan.mechanism.open_rows is None
        expected = guard.price("g < 2", exam=2).half_width
        assert guard.exam(["g < 2", "b"])[0].interval.half_width == pytest.approx(expected, 0.1)
    with pytest.raises(PlanMismatch, match="rows kept for the exam"):
        afresh.open(FRAME, exam=0.2, ledger=book)
    with (
        afresh.open(FRAME, open=0.5, ledger=":memory:") as plain,
        pytest.raises(InvalidArgument, match="without an exam"),
    ):
        plain.exam(["b"])


@pytest.mark.parametrize("planner", [plan_checks, plan_open_rows])
def test_the_tree_and_the_exam_share_the_failure_probability(planner: object) -> None:
    plan = planner(10_000, 100, 0.05, exam=0.2)  # type: ignore[operator]
    assert sum(plan.failure_use.values()) == pytest.approx(0.05)
    assert plan.checking.failure == pytest.approx(0.025)
    assert plan.problems() == []
    assert plan.spans(1, None)[-1].stop <= plan.exam_rows.start
    own = plan_own_rows(10_000, 100, 0.05, development=500, exam=0.2)
    assert own is not None
    assert (own.problems(), own.guarded, own.spans(1, None)) == ([], 8000, ((0, 8000),))


def test_exam_answers_hold_at_their_level() -> None:
    """Whatever was asked before: 400 exams of 3 final questions, each level 1/3 of .5. A miss has probability <= .5."""
    plan = plan_open_rows(400, 20, 0.999, share=0.25, exam=0.5)
    assert plan is not None
    rng, missed = np.random.default_rng(3), 0
    for _ in range(400):
        truths = rng.uniform(0.1, 0.9, 3)
        found = [float(rng.binomial(200, p)) for p in truths]
        ends = [plan.interval(plan.release(Moments(200, f, f), 0.0, exam=3), levels=2) for f in found]
        missed += any(not low <= p <= high for p, (low, high) in zip(truths, ends, strict=True))
    assert missed > 0  # the level is used
    assert binom.sf(missed - 1, 400, 0.4995) > 1e-6


def test_receipts_of_exams_verify_and_forgeries_do_not(tmp_path: Path) -> None:
    with afresh.open(FRAME, 50, open=0.5, exam=0.1, ledger=tmp_path / "ledger.sqlite") as guard:
        guard.ask("b")
        guard.exam(["b", "g = 1"])
        guard.ask("g = 2")
        receipt = guard.receipt()
    assert receipt["plan"]["constants"]["exam"] == N // 10
    assert verify(receipt).passed
    changes: tuple[Callable[[Any], object], ...] = (
        lambda body: body["kind"] == "answered" and "of" in str(body["released"]) and body["released"].update(of=1.0),
        lambda body: body["kind"] == "planned" and body["plan"].update(exam_failure=0.049),
        lambda body: body["kind"] == "reserved" and body["span"] and body.update(span=[0, 400]),
    )
    for change in changes:
        forged = copy.deepcopy(receipt)
        records = [json.loads(text) for text in forged["chain"]["records"]]
        for body in records:
            change(body)
        forged["chain"]["records"] = [json.dumps(b, sort_keys=True, separators=(",", ":")) for b in records]
        assert not verify(forged).passed
        from afresh.ledger.records import START, seal

        head = START
        for text in forged["chain"]["records"]:
            head = seal(head, text)
        forged["chain"]["head"] = head
        assert not verify(forged).passed


def test_models_take_it_too(tmp_path: Path) -> None:
    X = RNG.normal(size=(3000, 2))
    y = (X[:, 0] + 0.3 * RNG.normal(size=3000) > 0).astype(int)
    fine, rough = (X[:, 0] > 0).astype(int), (X[:, 0] > 1).astype(int)
    with afresh.holdout(X, y, questions=40, open=0.4, exam=0.4, ledger=tmp_path / "l.sqlite") as holdout:
        found = holdout.exam([rough, fine], names=["rough", "fine"])
        assert (found.best, found.charged, found.exam) == (("fine",), 0, True)
        assert found.to_dict()["exam"] is True
        assert holdout.exam([rough, fine], names=["rough", "fine"]).models[0].score.value == found.models[0].score.value
        with pytest.raises(BudgetExhausted, match="taken, with 3"):
            holdout.exam([1 - fine])
        with pytest.raises(InvalidArgument, match="no models"):
            holdout.exam([])
        assert verify(holdout.guard.receipt()).passed
