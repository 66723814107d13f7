"""Claims of a guard: pass or fail and nothing else, recorded like any answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import BudgetExhausted, InvalidArgument, LedgerError, QueryError
from afresh.guard.claims import single
from afresh.mechanisms import registry
from afresh.mechanisms.guess_and_check import make_guess_and_check
from afresh.mechanisms.symbols import path_before
from afresh.planning.plan import Plan
from afresh.queries.asked import make_asked
from afresh.receipts import verify

N = 20_000
RNG = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {"x": RNG.integers(0, 100, N), "y": RNG.random(N), "z": np.where(RNG.random(N) < 0.5, 0.3, np.nan)}
)


@pytest.fixture
def guard() -> Iterator[afresh.Guard]:
    with afresh.open(FRAME, 40, method="checked", ledger=":memory:") as guard:
        yield guard


def released(guard: afresh.Guard) -> list[Any]:
    records = [json.loads(text) for text in guard.receipt()["chain"]["records"]]
    return [record["released"] for record in records if record["kind"] == "answered"]


def test_a_claim_passes_or_fails_and_says_nothing_else(guard: afresh.Guard) -> None:
    """x < 30 has a share of .3 with a deviation of .0048 among the rows that check: both ends are 8 of them away."""
    right = guard.claim("x < 30", between=(0.26, 0.34))
    wrong = guard.claim("x < 30", between=(0.34, 0.4))
    near = guard.claim("x < 30", between=(0.2999, 0.3001))
    assert [bool(each) for each in (right, wrong, near)] == [True, False, False]
    assert (right.charged, right.left, guard.claim("x < 30", between=(0.26, 0.34)).charged) == (1, 39, 0)
    assert right.to_dict()["verdict"] == "certified"
    assert "not certified" in str(wrong)
    assert [record.value for record in guard.transcript][1:] == [0.5, 0.5]
    assert guard.claim("x < 30", between=(0.01, None))
    told_of = [line.split()[1] for line in str(guard.transcript).splitlines() if " claim: " in line]
    assert told_of == ["passed", "failed", "failed", "passed"]
    told = released(guard)[:3]
    assert [set(each) for each in told] == [
        {"task", "low", "high", "expected", "passed", "steps", "events", "nats"}
    ] * 3
    assert [each["events"] for each in told] == [0, 0, 1]
    outcome = verify(json.dumps(guard.receipt()))
    assert outcome.passed, str(outcome)


def test_claims_of_numbers_follow_their_spread_and_may_be_one_sided(guard: afresh.Guard) -> None:
    assert guard.claim("y", between=(0.48, 0.52), bounds=(0, 1), missing=0)
    assert guard.claim("y", between=(0.45, None), bounds=(-10, 10), missing=0)
    assert guard.claim("x < 1", between=(None, 0.02))
    narrow = guard.detects("y", between=(0.4, 0.6), bounds=(0, 1), missing=0, deviation=0.29)
    assert narrow < guard.detects("y", between=(0.4, 0.6), bounds=(0, 1), missing=0)


@pytest.mark.parametrize("way", [{"method": "checked"}, {"open": 0.5}])
def test_claims_within_a_group(way: dict[str, Any]) -> None:
    """One answer each, pass or fail, from the rows in the group; of an empty group nothing is certified."""
    with afresh.open(FRAME, 40, ledger=":memory:", **way) as guard:
        # y < 0.3 among x < 50: a share of .3 with a deviation of .0073 or less; both ends are at least 8 of them away
        right = guard.claim("y < 0.3", between=(0.24, 0.36), where="x < 50")
        assert (bool(right), right.charged, right.left) == (True, 1, 39)
        assert guard.claim("y < 0.3", between=(0.24, 0.36), where="x < 50").charged == 0
        assert "where x < 50 is between 0.24 and 0.36" in right.claim
        other = guard.claim("y < 0.3", between=(0.24, 0.36), where="x < 49")
        assert (bool(other), other.charged) == (True, 1)
        assert not guard.claim("y < 0.3", between=(0.4, None), where="x < 50")
        assert not guard.claim("y < 0.3", between=(0.01, None), where="x < 0")
        assert not guard.claim("y < 0.3", between=(None, 0.99), where="x < 0")
        assert guard.claim("y", between=(0.2, 0.3), bounds=(0, 1), missing=0, where="y < 0.5")
        assert guard.claim("z", between=(0.29, 0.31), bounds=(0, 1))  # over the rows that have it
        least = [guard.detects("y", (0.2, 0.3), (0, 1), 0, where="y < 0.5", share=share) for share in (None, 0.5, 0.01)]
        assert least == sorted(least)
        assert least[0] < least[1]
        told = released(guard)
        assert {frozenset(each) for each in told} == {
            frozenset({"task", "low", "high", "expected", "passed", "steps", "events", "nats"})
        }
        assert [line.split()[1] for line in str(guard.transcript).splitlines() if " claim: " in line] == [
            *("passed", "passed", "failed", "failed", "failed", "passed", "passed")
        ]
        assert verify(guard.receipt()).passed


def test_a_claim_within_a_group_of_public_features_is_refused(guard: afresh.Guard) -> None:
    asked = make_asked({"expression": "x < 30", "where": "y < 0.5"}, guard.desk.schema)
    assert single(asked, public=False).levels == 2
    with pytest.raises(InvalidArgument, match="features are public"):
        single(asked, public=True)


def test_a_guess_within_a_group_is_one_claim_about_a_number(guard: afresh.Guard) -> None:
    question: dict[str, Any] = {"bounds": (0, 1), "missing": 0, "where": "y < 0.5"}
    price = guard.price("y", **question, guess=(0.25, 0.02))
    found = guard.ask("y", **question, guess=(0.25, 0.02))
    assert price.answers == found.charged == 1
    assert (found.low, found.high) == pytest.approx((0.23, 0.27))
    assert guard.ask("y", **question, guess=(0.25, 0.02)).charged == 0
    wrong = guard.ask("y", **question, guess=(0.75, 0.02))
    assert not wrong.confirmed
    assert 0.25 in wrong.interval
    with pytest.raises(InvalidArgument, match="claim"):  # a share within a group takes two answers
        guard.ask("x < 30", where="y < 0.5", guess=(0.3, 0.1))
    assert guard.budget.spent == 2
    assert verify(guard.receipt()).passed


def test_what_a_claim_detects_is_known_before_and_shrinks_with_failures(guard: afresh.Guard) -> None:
    before = guard.detects("x < 30", between=(0.2, 0.4))
    assert guard.claim("x < 30", between=(0.2, 0.4)).detects == pytest.approx(before)
    assert 0.01 < before < 0.03
    for i in range(4):
        guard.claim("x < 30", between=(0.5, 0.6 + i / 100))
    assert guard.detects("x < 31", between=(0.2, 0.4)) > 1.2 * before
    assert guard.budget.half_width[0.5] > 1.2 * guard.plan.half_width(0.5)


def test_bad_claims_are_free(guard: afresh.Guard) -> None:
    for between in ((0.5, 0.4), (0.5, 0.5), (-1, 0.5), (0.5,), 0.5, (None, None), ("a", "b"), (float("nan"), 0.5)):
        with pytest.raises(InvalidArgument, match="between"):
            guard.claim("x < 30", between=between)  # type: ignore[arg-type]
    with pytest.raises(QueryError):
        guard.claim("x < 30", between=(0.2, 0.3), where="nothing > 3")
    with pytest.raises(QueryError):
        guard.claim("x < 30", between=(0.2, 0.3), where="y + 1")
    with pytest.raises(InvalidArgument, match="all rows count"):
        guard.detects("x < 30", between=(0.2, 0.3), share=0.3)
    for share in (0, 1.5, "half"):
        with pytest.raises(InvalidArgument, match="share"):
            guard.detects("x < 30", between=(0.2, 0.3), where="y < 0.5", share=share)  # type: ignore[arg-type]
    with pytest.raises(QueryError):
        guard.claim("nothing > 3", between=(0.2, 0.3))
    with afresh.open(FRAME, 40, method="stabilized", ledger=":memory:") as other:
        for call in (other.claim, other.detects):
            with pytest.raises(InvalidArgument, match="need method='checked'"):
                call("x < 30", between=(0.2, 0.3))
        assert other.budget.spent == 0
    assert guard.budget.spent == 0


def test_a_claim_is_paid_for_like_an_answer() -> None:
    with afresh.open(FRAME, 2, method="checked", ledger=":memory:") as guard:
        guard.claim("x < 30", between=(0.2, 0.4))
        guard.ask("x < 40")
        with pytest.raises(BudgetExhausted):
            guard.claim("x < 50", between=(0.2, 0.4))
        assert guard.claim("x < 30", between=(0.2, 0.4)).charged == 0


def test_what_was_paid_for_and_not_recorded_is_settled_in_the_order_of_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after SIGKILL between the two: others go on meanwhile, and their failures count for what is completed."""
    book = tmp_path / "ledger.sqlite"
    with afresh.open(FRAME, 40, method="checked", ledger=book) as guard:
        with monkeypatch.context() as patched:

            def die(*_: Any, **__: Any) -> None:
                raise LedgerError("killed")

            patched.setattr(guard.desk.ledger, "record_each", die)
            for call in (lambda: guard.claim("x < 30", between=(0.2, 0.4)), lambda: guard.ask("y < 0.3")):
                with pytest.raises(LedgerError):
                    call()
        assert released(guard) == []
    with afresh.open(FRAME, ledger=book, analyst="another") as other:
        assert not other.claim("x < 30", between=(0.4, 0.5))
        assert not other.claim("x < 30", between=(0.5, 0.6))
    with afresh.open(FRAME, ledger=book) as guard:
        assert guard.ask("y < 0.3").charged == 0
        assert guard.claim("x < 30", between=(0.2, 0.4))
        paths = [path_before(each) for each in released(guard)]
        assert [(path.steps, path.events) for path in paths] == [(0, 0), (1, 1), (2, 2), (3, 2)]
        assert guard.budget.spent == 4
        assert verify(guard.receipt()).passed


def test_many_threads_walk_one_path(tmp_path: Path) -> None:
    book, failed = tmp_path / "ledger.sqlite", []
    with afresh.open(FRAME, 200, method="checked", ledger=book) as guard:

        def work(place: int) -> None:
            try:
                with afresh.open(FRAME, ledger=book, analyst=f"analyst {place}") as own:
                    for i in range(8):
                        for face in (own, guard.for_analyst(f"thread {place}")):
                            face.claim(f"x < {20 + place}", between=(0.1 + i / 100, 0.3 + i / 100))
                            face.ask(f"y < {(place * 8 + i + 1) / 100}")
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failed
        paths = [path_before(each) for each in released(guard)]
        assert [path.steps for path in paths] == list(range(len(paths)))
        assert len(paths) == 64  # each question once, whoever asked it first
        assert verify(guard.receipt()).passed


def test_an_old_ledger_of_guess_and_check_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """New plans do not use it; those that there are keep their intervals, and verify."""
    book = tmp_path / "ledger.sqlite"
    with pytest.raises(InvalidArgument, match="method == 'guess-and-check', must be one of"):
        afresh.open(FRAME, 40, method="guess-and-check", ledger=book)
    with monkeypatch.context() as patched:
        patched.setattr("afresh.guard.open.plan", lambda *_, **__: Plan(make_guess_and_check(N, 40, 0.05)))
        with afresh.open(FRAME, 40, ledger=book) as guard:
            told = guard.ask("x < 30"), guard.ask("x < 30", guess=(0.9, 0.01))
    with afresh.open(FRAME, ledger=book) as guard:
        assert guard.plan.method == "guess-and-check"
        assert guard.ask("x < 30").interval == told[0].interval
        assert guard.ask("x < 40").charged == 1
        assert told[1].widened is not None
        with pytest.raises(InvalidArgument, match="claims, challenges and contests need"):
            guard.claim("x < 30", between=(0.2, 0.4))
        assert verify(guard.receipt()).passed
    assert "guess-and-check" in registry.MECHANISMS
    assert "guess-and-check" not in registry.PLANNERS
