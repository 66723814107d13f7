"""Simulated loops: their law is that of items, the gate is the real one, and the recommended way keeps its promises."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import afresh
from afresh.cli.app import app
from afresh.errors import InvalidArgument
from afresh.lab.looping import AGENTS, RECOMMENDED, START, WAYS, Ratchet, World
from afresh.lab.loops import MAIN, Loop, cells, draw, holds, loop, table, write

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"


@pytest.fixture(scope="module")
def main() -> dict[tuple[str, str], Loop]:
    """All fast ways and all agents at 5,000 items and 300 steps, 400 runs."""
    fast = [way for way in WAYS if way != "compare, default guard"]
    return {(way, agent): loop(way, agent, *MAIN, 400) for way in fast for agent in AGENTS}


def test_the_recommended_way_keeps_what_was_promised(main: dict[tuple[str, str], Loop]) -> None:
    """At least 90% of the naive loop's true gain, an interval that holds of at most ±.03, and no run below its start.

    Seeded. The gain's standard error is .1 points of 36. A miss of the interval has probability .025 by the exact
    binomial of the exam, so more than 30 of 400 have one below 1e-6; an acceptance that is none, one below .025 a run.
    """
    best, naive = main[RECOMMENDED, "mixed"], main["naive reuse", "mixed"]
    assert best.truth - START >= 0.9 * (naive.truth - START)
    for agent in AGENTS:
        each = main[RECOMMENDED, agent]
        assert each.widest <= 0.03
        assert each.held >= 370
        assert each.below_start == 0
        assert holds(each)


def test_naive_loops_claim_what_is_not_true(main: dict[tuple[str, str], Loop]) -> None:
    for way in ("naive reuse", "p < .05"):
        for agent in AGENTS:
            assert not holds(main[way, agent])
    fooled = main["naive reuse", "overfitting"]
    assert fooled.truth < START - 0.03
    assert fooled.claimed > 0.99
    assert main["practice and exam", "overfitting"].below_start == 400  # the number is right, what was kept is not


def test_gates_are_wrong_no_more_often_than_they_say(main: dict[tuple[str, str], Loop]) -> None:
    for (way, _), each in main.items():
        if way in ("gate, every edit", "milestones, no exam", RECOMMENDED):
            assert binom.sf(round(each.wrong * 400) - 1, 400, 0.05) > 1e-6
            assert holds(each)


def test_counts_have_the_law_of_items() -> None:
    """Edits of counts against edits of single items: means and deviations of what is right, 6 standard errors."""
    runs, size, steps = 4000, 200, 5
    world = World([size], runs, "mixed", np.random.default_rng(1))
    for _ in range(steps):
        edit = world.edit()
        world.keep(edit.gain(0) > 0, edit)
    rng = np.random.default_rng(2)
    right, truth = rng.random((runs, size)) < START, np.full(runs, START)
    for _ in range(steps):
        gain, loss, _ = AGENTS["mixed"](rng, truth)
        chance = np.where(right, (loss / truth)[:, None], (gain / (1 - truth))[:, None])
        after = right ^ (rng.random((runs, size)) < chance)
        kept = after.sum(1) > right.sum(1)
        right, truth = np.where(kept[:, None], after, right), np.where(kept, truth + gain - loss, truth)
    for mine, theirs in ((world.right(0), right.sum(1)), (world.truth, truth)):
        error = np.sqrt((mine.var() + theirs.var()) / runs)
        assert abs(mine.mean() - theirs.mean()) < 6 * error
        assert abs(mine.std() / theirs.std() - 1) < 6 / np.sqrt(2 * runs) * 1.5


def test_the_gate_of_the_lab_is_the_real_one() -> None:
    """One loop, item by item, through an evaluation; its verdicts are those of the lab's rule."""
    n = 2000
    ids = [f"q{i}" for i in range(n)]
    rng = np.random.default_rng(5)
    with afresh.evaluation(ids, ledger=":memory:") as evaluation:
        start = (rng.random(n) < START).astype(float)
        with pytest.warns(afresh.errors.FewItems):
            gate = evaluation.gate(dict(zip(ids, start, strict=True)))
        dealt, order = evaluation.dealt, {id: i for i, id in enumerate(ids)}
        at = np.array([order[id] for id in dealt.ids])
        parts = [at[dealt.open], at[dealt.guarded], at[dealt.exam]]
        world = World([len(each) for each in parts], 1, "mixed", rng)
        lab = Ratchet(world, evaluation.guard.plan.mechanism)
        incumbent = start
        for step, gain in enumerate((0.02, 0.4, 0.0, 0.5, 0.1, -0.3)):
            flips = rng.random(n) < abs(gain)
            now = np.where(flips, float(gain > 0), incumbent)
            for table, part in zip(world.tables, parts, strict=True):
                pairs = np.stack([incumbent[part], now[part]]).astype(int)
                table[0] = [[np.sum((pairs[0] == i) & (pairs[1] == j)) for j in (0, 1)] for i in (0, 1)]
            real = gate.propose(dict(zip(ids, now, strict=True)), f"step {step}")
            assert bool(lab.propose()[0]) == real.accepted
            incumbent = now if real.accepted else incumbent
        released = evaluation.guard.desk.ledger.released(evaluation.guard.desk.terms)
        trail = evaluation.guard.plan.mechanism.trail(released)  # type: ignore[attr-defined]
        assert (trail.steps, trail.events) == (lab.steps[0], lab.events[0])
        assert len(gate.accepted) == lab.kept[0] > 0


def test_the_real_compare_runs(tmp_path: Path) -> None:
    each = loop("compare, default guard", "mixed", 1000, 100, 2)
    assert each.runs == 2
    assert each.half_width > 0.05
    assert draw(tmp_path, 500, 30).stat().st_size > 10_000


def test_tables_go_between_the_marks(tmp_path: Path) -> None:
    found = [loop(way, agent, *MAIN, 2) for way in (RECOMMENDED, "naive reuse") for agent in AGENTS]
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- afresh lab loops: begin -->\nold\n<!-- afresh lab loops: end -->\nb\n")
    write(page, table(found))
    assert "old" not in page.read_text()
    assert "**milestones and exam**" in page.read_text()
    assert page.read_text().startswith("a\n")
    assert page.read_text().endswith("end -->\nb\n")
    page.write_text("no marks")
    with pytest.raises(InvalidArgument, match="no place for the tables"):
        write(page, "x")
    with pytest.raises(InvalidArgument, match="there is no 'hopeful'"):
        loop("hopeful", "mixed", 500, 10, 1)


def test_the_page_has_all_loops() -> None:
    told = PAGE.read_text()
    for way in WAYS:
        assert f"{way}" in told
    sizes = re.findall(r"^\| ([\d,]+) \| ([\d,]+) \|", told, re.MULTILINE)
    assert {(int(n.replace(",", "")), int(k.replace(",", ""))) for n, k in sizes} == {cell[2:] for cell in cells()}


def test_the_command(tmp_path: Path) -> None:
    """As docs/agents.md has it, at one small size."""
    page = tmp_path / "page.md"
    page.write_text("<!-- afresh lab loops: begin -->\n<!-- afresh lab loops: end -->\n")
    options = ["--items", "1000", "--steps", "100", "--runs", "2", "--out", str(tmp_path), "--page", str(page)]
    done = CliRunner().invoke(app, ["lab", "loops", *options])
    assert done.exit_code == 0, done.output
    assert "| 1,000 | 100 | 0." in done.stdout
    assert done.stdout.strip() in page.read_text()
    assert (tmp_path / "loops.png").exists()
    wrong = CliRunner().invoke(app, ["lab", "loops", "--items", "5"])
    assert isinstance(wrong.exception, InvalidArgument)
