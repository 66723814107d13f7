"""A plan is frozen with everything that later answers and intervals depend on: an upgrade changes none of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import InvalidArgument
from afresh.guard import desk
from afresh.mechanisms import calibrated, planned_checks, registry, settled, stabilized, symmetrized
from afresh.mechanisms.base import grid_step
from afresh.planning import choose
from afresh.planning import plan as planning
from afresh.planning.plan import Plan
from afresh.receipts import verify

each_method = pytest.mark.parametrize("method", registry.PLANNERS)
FIRST, LATER = [f"x < {i}" for i in range(1, 9)], [f"x > {i}" for i in range(1, 13)]
# All that a planner finds by a search, a root, a quantile, or a rule of thumb.
DERIVATIONS = {
    stabilized: "grid_step choose_envelope rough_envelope deviation_bound cvar_with_square minimize_between",
    symmetrized: "grid_step common_plan",
    settled: "grid_step settled_plan",
    calibrated: "grid_step quantile log_threshold minimize_simplex",
    planned_checks: "grid_step plan_checked plan_open",
}


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    return pd.DataFrame({"x": rng.integers(0, 14, 4000), "y": rng.random(4000)})


def forget() -> None:
    stabilized.plan_stabilized.cache_clear()
    calibrated.plan_calibrated.cache_clear()
    symmetrized.plan_symmetrized.cache_clear()
    settled.plan_settled.cache_clear()


@contextmanager
def another_afresh() -> Iterator[None]:
    """A program that derives finer grids for noise and a coarser one for ends."""
    with mock.patch.object(planning, "ENDS", 2.0**-24):
        patches = [mock.patch.object(each, "grid_step", lambda s: grid_step(s) / 8) for each in DERIVATIONS]
        for patch in patches:
            patch.start()
        forget()
        try:
            yield
        finally:
            for patch in patches:
                patch.stop()
            forget()


def program(another: bool) -> AbstractContextManager[None]:
    return another_afresh() if another else nullcontext()


def answered(receipt: dict[str, Any]) -> list[dict[str, Any]]:
    bodies = [json.loads(text) for text in receipt["chain"]["records"]]
    return [body for body in bodies if body["kind"] == "answered"]


def numbers(guard: afresh.Guard, questions: list[str]) -> list[tuple[float, float, float]]:
    return [(answer.value, answer.low, answer.high) for answer in guard.ask_many(questions)]


@each_method
@pytest.mark.parametrize("first_is_another", [True, False])
def test_the_grids_of_a_plan_stay(frame: pd.DataFrame, tmp_path: Path, method: str, first_is_another: bool) -> None:
    """Frozen by one program, gone on with by the other: answers, repeats, receipts and verify use what is frozen.

    That 12 numbers on the finer grid all lie on the coarser one, or 20 pairs of ends, has probability 8^-12 < 1e-10.
    """
    ledger = tmp_path / "ledger.sqlite"
    usual = afresh.plan(4000, 40, method=method)
    expected = (usual.mechanism.grid, usual.ends)
    if first_is_another:
        expected = (None if expected[0] is None else expected[0] / 8, 2.0**-24)

    with program(first_is_another), afresh.open(frame, 40, method=method, ledger=ledger, allow_wide=True) as guard:
        assert (guard.plan.mechanism.grid, guard.plan.ends) == expected
        plan, told, before = guard.plan, numbers(guard, FIRST), guard.receipt()
        assert verify(before).passed
    with program(not first_is_another), afresh.open(frame, ledger=ledger) as guard:
        new = afresh.plan(4000, 40, method=method)
        assert new.ends != plan.ends
        assert new.mechanism.grid is None or new.mechanism.grid != plan.mechanism.grid
        assert guard.plan == plan
        assert numbers(guard, FIRST) == told
        numbers(guard, LATER)
        assert numbers(guard, FIRST) == told
        after = guard.receipt()
        for receipt in (before, after):
            assert (receipt["plan"]["grid"], receipt["plan"]["ends"]) == expected
            outcome = verify(receipt)
            assert outcome.passed, str(outcome)
    assert verify(after).passed
    assert after["chain"]["records"][: len(before["chain"]["records"])] == before["chain"]["records"]
    check_grids(answered(after)[len(FIRST) :], *expected, numbers_on_it=method in ("stabilized", "calibrated"))


def check_grids(records: list[dict[str, Any]], grid: float | None, ends: float, numbers_on_it: bool) -> None:
    """Every number lies on its grid, and not all on one that is coarser."""
    assert len(records) == len(LATER)
    found = [record[end] for record in records for end in ("low", "high") if 0 < record[end] < 1]
    assert all((end / ends).is_integer() for end in found)
    assert not all((end / ends / 2**16).is_integer() for end in found)
    if numbers_on_it:
        assert grid is not None
        released = [record["released"] / grid for record in records if 0 < record["value"] < 1]
        assert all(number.is_integer() for number in released)
        assert not all((number / 8).is_integer() for number in released)


@each_method
def test_an_opening_derives_nothing(frame: pd.DataFrame, tmp_path: Path, method: str) -> None:
    """Every constant is read back: a later program may search, round and rule otherwise, or not at all."""
    ledger = tmp_path / "ledger.sqlite"
    answers = 60 if method in ("stabilized", "calibrated") else None
    with afresh.open(frame, 40, method=method, answers=answers, ledger=ledger, allow_wide=True) as guard:
        told = numbers(guard, FIRST)
    patches = [
        mock.patch.object(module, name, side_effect=AssertionError(f"{name} was derived again"))
        for module, names in DERIVATIONS.items()
        for name in names.split()
    ]
    patches += [mock.patch.object(choose, "plan", side_effect=AssertionError("planned again"))]
    # What another plan would have told is advice, computed anew; nothing that was promised depends on it.
    patches += [mock.patch.object(desk, "would_tell_mean", return_value=())]
    for patch in patches:
        patch.start()
    try:
        with afresh.open(frame, ledger=ledger) as guard:
            assert numbers(guard, FIRST) == told
            numbers(guard, LATER)
            if answers:
                guard.ask("y < 0.5", precision=0.45)
            assert guard.budget.spent == 20 + bool(answers)
            receipt = guard.receipt()
    finally:
        for patch in patches:
            patch.stop()
    outcome = verify(receipt)
    assert outcome.passed, str(outcome)


@each_method
def test_a_plan_comes_back_whole(method: str) -> None:
    plan = replace(afresh.plan(4000, 40, method=method), ends=2.0**-30)
    assert Plan.thaw(plan.limits) == plan
    assert Plan.thaw(plan.limits).limits == plan.limits
    assert plan.to_dict()["ends"] == 2.0**-30


@pytest.mark.parametrize(
    "changes",
    [{"plan": {"method": "oracle"}}, {"plan": {}}, {"grid": None}, {"plan": {"method": "split", "luck": 1}}],
)
def test_a_plan_of_a_later_afresh_is_refused_in_words(changes: dict[str, Any]) -> None:
    limits = replace(afresh.plan(4000, 40, method="stabilized").limits, **changes)
    with pytest.raises(InvalidArgument, match=r"method=.* which this afresh does not know; use the afresh that made"):
        Plan.thaw(limits)


@pytest.mark.parametrize("method", ["stabilized", "calibrated", "checked"])
def test_coarser_answers_and_the_plan_share_a_grid(method: str) -> None:
    mechanism = afresh.plan(4000, 40, method=method).mechanism
    if method != "checked":
        assert mechanism.coarser(1.7).grid == mechanism.grid
    assert mechanism.problems() == []
    for factor, fits in ((0.25, True), (0.75, False), (2, False), (0, False), (-1, False)):
        assert (replace(mechanism, grid=mechanism.grid * factor).problems() == []) == fits  # type: ignore[operator]
