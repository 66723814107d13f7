"""A budget that never runs out (17.8): shares, widths against the oracle, and guards opened with questions=None."""

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
from afresh.errors import InvalidArgument, PlanMismatch
from afresh.ledger.records import START, Answered, decode, encode, seal
from afresh.mechanisms.endless import Endless, plan_endless
from afresh.receipts import verify
from afresh.receipts.format import FORMATS, NAME, read_chain
from afresh.theory.symmetrized.common import pairs_within
from afresh.theory.symmetrized.endless import LOWER, EndlessPlan, block, block_share, open_half_width
from oracle import symmetrized as oracle

ROWS = 20_000
FRAME = pd.DataFrame({"x": np.arange(ROWS) % 100, "yes": np.arange(ROWS) % 10 < 3})


@given(st.integers(1, 10**9))
def test_blocks_are_a_partition_in_steps_of_at_most_two_percent(j: int) -> None:
    before, last = block(j)
    assert before < j <= last
    assert block(before + 1) == block(last) == (before, last)
    assert block(last + 1)[0] == last
    assert (last - before - 1) * 64 <= before


@pytest.mark.parametrize("expected", [1, 1000, 10**6])
def test_shares_never_sum_to_more_than_one(expected: int) -> None:
    total, at = 0.0, 0
    while at < 10**8:
        before, last = block(at + 1)
        total += block_share(last, expected) * (last - before)
        at = last
    assert total == pytest.approx(1 - expected / (at + expected), rel=1e-9)


@pytest.mark.parametrize(
    ("n", "s", "beta", "expected", "slant", "j"),
    [
        (10**5, 0.0047, 0.05, 1000, 1.0, 1000),
        (10**5, 0.0037, 0.05, 1000, 0.7, 20),
        (2000, 0.045, 0.5, 50, 1.0, 1),
        (10**6, 0.001, 1e-6, 1000, 0.7, 5000),
    ],
)
def test_widths_against_the_oracle(n: int, s: float, beta: float, expected: int, slant: float, j: int) -> None:
    """Both conditions of 17.7 hold as the text states them for k = j and this share, and 3% less does not do."""
    before, last = block(j)
    share = mp.mpf(expected) / ((before + expected) * (last + expected))
    w = oracle.unlike_world(n, last, last, s, float(beta * share))
    curve = EndlessPlan(n, s, beta, expected, slant).curve(j)
    c, bend = curve.constants, curve.bend
    assert float(w.D) * (1 - 1e-9) <= c.pairs <= float(w.D) * (1 + 1e-6)
    growth = mp.log((1 + w.t / (1 - mp.mpf(bend))) / (1 + w.t)) / 2
    upper = float(mp.log(w.bm * (1 - mp.mpf(LOWER))) - (last - 1) * growth) + bend / (2 * (1 - bend)) * float(w.tau)
    for truth in (0.5, 0.01):
        assert float(oracle.unlike_pairs(w, truth, 24)) * (1 - 1e-9) <= float(pairs_within(c, truth, truth))
        reach = math.sqrt(c.scaled(1.0) * float(pairs_within(c, truth, truth)))
        h = float(curve.widths(reach)[0])
        arguments = (reach, float(w.tau), float(w.kap), [bend], [1.0], upper, float(mp.log(w.bm * mp.mpf(LOWER))))
        assert oracle.admits(h * 1.004, *arguments)  # its alphas are a grid
        assert not oracle.admits(h * 0.97, *arguments)


def test_widths_are_those_of_the_design_and_grow_slowly() -> None:
    m = Endless(10**5, 1000, 0.05, 0.0047, 1.0, 2.0**-19)
    widths = [m.half_width_at(j, 0.5) for j in (100, 1000, 2000, 4000)]
    assert widths == pytest.approx([0.0291, 0.0422, 0.0503, 0.0620], rel=0.005)
    for j, width in zip((100, 1000, 4000), (widths[0], widths[1], widths[3]), strict=True):
        assert width == pytest.approx(open_half_width(10**5, 0.0047, 0.05, 1000, j), rel=0.005)
    assert m.half_width_at(1000, 0.01) < 0.5 * widths[1]
    assert m.half_width_at(m.questions, 0.5) == m.half_width_at(m.questions + 1, 0.5) == 0.5


@pytest.mark.parametrize("rows", [20, 100, 2000, 10**9])
@pytest.mark.parametrize("failure", [1e-9, 0.5])
def test_plans_at_the_corners(rows: int, failure: float) -> None:
    m = plan_endless(rows, failure)
    if m is None:
        assert rows == 20
        return
    assert m.problems() == []
    assert m.questions >= 1000
    for mean in (0.0, 1e-9, 0.5, 1.0):
        low, high = m.interval({"value": mean, "place": 3.0})
        assert 0 <= low <= mean <= high <= 1
    broken = [replace(m, s=0.0), replace(m, slant=2.0), replace(m, grid=0.3), replace(m, s=1e-9 / rows)]
    assert all(each.problems() for each in broken)


def test_a_guard_without_an_end(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    with afresh.open(FRAME, questions=None, ledger=place) as guard:
        assert guard.plan.expected == 1000
        assert guard.plan.method == "endless"
        assert "Any number of questions" in str(guard.plan)
        first = guard.ask("yes")
        assert first.ahead is not None
        assert first.ahead[0] < first.ahead[1]
        assert "never runs out. The next hundred answers will be accurate to ±" in " ".join(str(first).split())
        assert "however many, hold at once" in first.covers
        guard.ask_many([f"x < {k}" for k in range(1, 12)])
        last = guard.ask("x < 50")
        assert last.interval.half_width > first.interval.half_width
        assert guard.ask("yes").charged == 0
        assert guard.budget.ahead == last.ahead
        assert guard.budget.half_width[0.5] == pytest.approx(last.ahead[0] if last.ahead else 0)
        assert "never runs out" in guard.price("x < 51").words
        assert "and no limit" in repr(guard)
        with pytest.raises(InvalidArgument, match="counts the answers before it"):
            guard.charge("a mean in a report", noise_sd=0.1)
        with pytest.raises(InvalidArgument, match="precision cannot be chosen"):
            guard.ask("x < 60", precision=0.2)
        receipt = guard.receipt()
    assert verify(receipt).passed
    with pytest.raises(PlanMismatch, match=r"questions=None, .* opened it with questions=100"):
        afresh.open(FRAME, questions=100, ledger=place)
    for again in ({}, {"questions": None}):
        with afresh.open(FRAME, ledger=place, **again) as guard:  # type: ignore[arg-type] # the empty one has no types
            assert guard.budget.spent == 13


def test_a_receipt_with_another_place_does_not_verify() -> None:
    with afresh.open(FRAME, questions=None, ledger=":memory:") as guard:
        guard.ask_many(["yes", "x < 5", "x < 50"])
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
        newest = max(FORMATS)
        return {"format": NAME, "version": newest, "made_by": "x", "made_at": "2026", **FORMATS[newest].write(facts)}

    assert verify(forged()).passed
    for lie in ({"place": 1.0}, {"place": 300.0}, {"place": 2.5}, {"value": 0.123}, {"more": 1.0}):
        assert not verify(forged(**lie)).passed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rounds": 3}, "no rounds to choose"),
        ({"answers": 300}, "no answers to choose"),
        ({"method": "stabilized"}, "no method to choose"),
        ({"open": 0.5}, "no open to choose"),
        ({"width": 0.1}, "no width to choose"),
    ],
)
def test_what_has_no_meaning_without_an_end_is_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        afresh.plan(ROWS, None, **arguments)


def test_rows_that_are_too_few() -> None:
    with pytest.raises(InvalidArgument, match="too few for a budget that never runs out"):
        afresh.plan(20, None)
    with pytest.raises(InvalidArgument, match=r"answer number 1,000 would be accurate only to ±0\.5"):
        afresh.open(FRAME.head(1000), questions=None, ledger=":memory:")
    with pytest.raises(InvalidArgument, match="needs rows"):
        afresh.plan(questions=None)
    with pytest.raises(InvalidArgument, match="two of rows, questions and width"):
        afresh.plan(ROWS)
