"""Loops that edit, evaluate and keep: simulated agents, and several ways to decide what to keep.

A world holds many runs of one loop side by side. Only a run's counts matter: in each part of the items, how many the
incumbent and the present candidate get right, together and apart. An edit turns failures of the present candidate into
passes and passes into failures, independently for every item, so binomial draws of the counts have the law that items
would have. True accuracies follow the edits' true effects and do not depend on the sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from afresh.errors import InvalidArgument
from afresh.evaluations.open import OF_THE_REST, OPEN
from afresh.mechanisms.fresh import interval_of
from afresh.moments import Moments
from afresh.planning.choose import plan
from afresh.theory.binomial import sign_test
from afresh.theory.checked import node_level
from afresh.theory.symbols import Trail

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
START = 0.6
DIFFER = 0.06
"""The share of items on which an edit changes the score."""
EVERY = 30
"""Steps between milestones."""
ANSWERS = 100
EXAM = OF_THE_REST * (1 - OPEN)
CONFIDENCE = 0.95
_Z = float(ndtri(0.975))


@dataclass(frozen=True, slots=True)
class Edit:
    """What an edit does: its true effect, and how many items of every part it mends and breaks.

    Counts are by run, and by whether the incumbent gets an item right.
    """

    effect: Floats
    mended: list[Counts]
    broken: list[Counts]

    def gain(self, part: int) -> Counts:
        """How many more items of a part become right."""
        found: Counts = (self.mended[part] - self.broken[part]).sum(axis=1)
        return found


class World:
    """Many runs of a loop. `tables[part][run, incumbent right, present right]` counts items."""

    def __init__(self, sizes: Sequence[int], runs: int, agent: str, rng: np.random.Generator) -> None:
        """Parts with these numbers of items; the agent sees the first one."""
        self.sizes, self.runs, self.agent, self.rng = tuple(sizes), runs, AGENTS[agent], rng
        self.truth = np.full(runs, START)
        self.incumbent = self.truth.copy()
        self.tables = [np.zeros((runs, 2, 2), dtype=np.int64) for _ in sizes]
        for table, size in zip(self.tables, sizes, strict=True):
            right = rng.binomial(size, START, runs)
            table[:, 1, 1], table[:, 0, 0] = right, size - right

    def edit(self) -> Edit:
        """The agent's next edit of the present candidate."""
        gain, loss, learnt = self.agent(self.rng, self.truth)
        mended, broken = [], []
        for part, table in enumerate(self.tables):
            failing, passing = table[:, :, 0], table[:, :, 1]
            mend, harm = gain / np.maximum(1 - self.truth, 1e-12), loss / np.maximum(self.truth, 1e-12)
            if part == 0 and self.sizes[0] and learnt is not None:  # by heart: only what it sees gets better
                mend, harm = learnt / np.maximum(1 - self.right(0) / self.sizes[0], learnt), np.zeros(self.runs)
            mended.append(self.rng.binomial(failing, np.minimum(mend, 1.0)[:, None]))
            broken.append(self.rng.binomial(passing, np.minimum(harm, 1.0)[:, None]))
        return Edit(gain - loss, mended, broken)

    def keep(self, which: NDArray[np.bool_], edit: Edit) -> None:
        """Make the edit part of the present candidate, in some of the runs."""
        for table, mended, broken in zip(self.tables, edit.mended, edit.broken, strict=True):
            moved = (mended - broken) * which[:, None]
            table[:, :, 0] -= moved
            table[:, :, 1] += moved
        self.truth = np.where(which, self.truth + edit.effect, self.truth)

    def right(self, part: int) -> Counts:
        """How many items of a part the present candidate gets right."""
        found: Counts = self.tables[part][:, :, 1].sum(axis=1)
        return found

    def incumbent_right(self, part: int) -> Counts:
        """How many of them the incumbent, perhaps another candidate, gets right."""
        found: Counts = self.tables[part][:, 1, :].sum(axis=1)
        return found

    def apart(self, part: int) -> tuple[Counts, Counts]:
        """How many items only the present candidate gets right, and how many only the incumbent."""
        return self.tables[part][:, 0, 1].copy(), self.tables[part][:, 1, 0].copy()

    def promote(self, which: NDArray[np.bool_]) -> None:
        """Make the present candidate the incumbent, in some of the runs."""
        self.incumbent = np.where(which, self.truth, self.incumbent)
        for table in self.tables:
            now = table.sum(axis=1)[which]
            table[which] = 0
            table[which, 0, 0], table[which, 1, 1] = now[:, 0], now[:, 1]


Change = tuple[Floats, Floats, Floats | None]
"""The true shares of items mended and broken, and the share learnt by heart."""


def _mixed(rng: np.random.Generator, truth: Floats) -> Change:
    """Edits that change 6% of items, with a mean true effect of -.5 points and a standard deviation of one point."""
    return _changed(DIFFER, rng.normal(-0.005, 0.01, truth.size), truth)


def _idle(rng: np.random.Generator, truth: Floats) -> Change:
    """Edits that change 6% of items, with no effect on average."""
    return _changed(DIFFER, np.zeros(truth.size), truth)


def _overfitting(rng: np.random.Generator, truth: Floats) -> Change:
    """Edits that memorize 1% of the items the agent sees, and make it worse by a tenth of a point elsewhere."""
    gain, loss, _ = _changed(0.02, np.full(truth.size, -0.001), truth)
    return gain, loss, np.full(truth.size, 0.01)


def _changed(share: float, effect: Floats, truth: Floats) -> Change:
    gain = np.clip((share + effect) / 2, 0.0, np.minimum(share, 1 - truth))
    return gain, np.minimum(share - gain, truth), None


AGENTS: dict[str, Callable[[np.random.Generator, Floats], Change]] = {
    "mixed": _mixed,
    "no effect": _idle,
    "overfitting": _overfitting,
}


@dataclass(frozen=True, slots=True)
class Ended:
    """How the runs of a loop ended."""

    truth: Floats
    """The true accuracy of what was kept."""
    claimed: Floats
    low: Floats
    high: Floats
    kept: Counts
    """How often something was kept: an edit, or a candidate by the gate."""
    wrong: Counts
    """How often that was no improvement."""
    path: list[tuple[int, float, float]] = field(default_factory=list)
    """For the first run, after each step: its number, the true accuracy, and the accuracy the loop believes in."""


def _naive(agent: str, items: int, steps: int, runs: int, rng: np.random.Generator) -> Ended:
    """Keep every edit after which the score on all items is higher."""
    return _on_all(agent, items, steps, runs, rng, lambda edit: edit.gain(0) > 0)


def _significant(agent: str, items: int, steps: int, runs: int, rng: np.random.Generator) -> Ended:
    """Keep every edit whose gain on all items has p < .05 by the sign test."""
    nats = -np.log(0.05)

    def keeps(edit: Edit) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = sign_test(edit.mended[0].sum(axis=1), edit.broken[0].sum(axis=1)) > nats
        return found

    return _on_all(agent, items, steps, runs, rng, keeps)


def _on_all(
    agent: str,
    items: int,
    steps: int,
    runs: int,
    rng: np.random.Generator,
    keeps: Callable[[Edit], NDArray[np.bool_]],
) -> Ended:
    world = World([items], runs, agent, rng)
    kept, wrong = np.zeros((2, runs), dtype=np.int64)
    path = []
    for step in range(1, steps + 1):
        edit = world.edit()
        which = keeps(edit)
        world.keep(which, edit)
        kept += which
        wrong += which & (edit.effect <= 0)
        path.append((step, float(world.truth[0]), float(world.right(0)[0] / items)))
    mean = world.right(0) / items
    half = _Z * np.sqrt(mean * (1 - mean) / items)
    return Ended(world.truth, mean, mean - half, mean + half, kept, wrong, path)


def _compared(agent: str, items: int, steps: int, runs: int, rng: np.random.Generator) -> Ended:
    """Keep every edit whose difference, as the default guard releases it, is above 0: nobody sees an item."""
    mechanism: Any = plan(items, steps + 1).mechanism
    if not mechanism.symbols:
        raise InvalidArgument(f"{steps} edits of {items} items: the default guard would not check guesses here.")
    # The rows that guess are hidden behind noise: an agent that learns by heart sees nothing to learn.
    world = World([0, mechanism.guessing, mechanism.guarded], runs, agent, rng)
    kept, wrong = np.zeros((2, runs), dtype=np.int64)
    told: list[list[Any]] = [[] for _ in range(runs)]

    def ask(run: int, counts: Sequence[tuple[int, int]], levels: int) -> dict[str, float]:
        parts = []
        for size, (better, worse) in zip(world.sizes[1:], counts, strict=True):
            if levels == 2:
                parts.append(Moments(size, better, better))
            else:  # (d + 1)/2
                parts.append(Moments(size, better + (size - better - worse) / 2, better + (size - better - worse) / 4))
        released: dict[str, float] = mechanism.release(parts, float(rng.normal()), levels=levels)(told[run])
        told[run].append(released)
        return released

    for _ in range(steps):
        edit = world.edit()
        which = np.zeros(runs, dtype=bool)
        for run in range(runs):
            counts = [(int(edit.mended[part][run].sum()), int(edit.broken[part][run].sum())) for part in (1, 2)]
            which[run] = mechanism.value(ask(run, counts, 3)) > 0.5
        world.keep(which, edit)
        kept += which
        wrong += which & (edit.effect <= 0)
    last = [ask(run, [(int(world.right(part)[run]), 0) for part in (1, 2)], 2) for run in range(runs)]
    ends = np.array([(mechanism.value(each), *mechanism.interval(each, levels=2)) for each in last])
    return Ended(world.truth, ends[:, 0], ends[:, 1], ends[:, 2], kept, wrong)


def _practised(agent: str, items: int, steps: int, runs: int, rng: np.random.Generator) -> Ended:
    """Keep every edit after which the score on an open half is higher; then take an exam on the other half."""
    opened = items // 2
    world = World([opened, items - opened], runs, agent, rng)
    kept, wrong = np.zeros((2, runs), dtype=np.int64)
    for _ in range(steps):
        edit = world.edit()
        which = edit.gain(0) > 0
        world.keep(which, edit)
        kept += which
        wrong += which & (edit.effect <= 0)
    return Ended(world.truth, *_examined(world.right(1), world.sizes[1], 1 - CONFIDENCE), kept, wrong)


def _gated(agent: str, items: int, steps: int, runs: int, rng: np.random.Generator) -> Ended:
    """Propose every single edit to a gate; publish the exam's number at the end."""
    return _through_gate(agent, items, steps, runs, rng, every=1, tuned=False, answers=max(steps, 2))


def _recommended(agent: str, items: int, steps: int, runs: int, rng: np.random.Generator) -> Ended:
    """Tune on the open part, propose what survived at milestones, publish the exam's number."""
    return _through_gate(agent, items, steps, runs, rng, every=EVERY, tuned=True, answers=ANSWERS)


def _confirmed(agent: str, items: int, steps: int, runs: int, rng: np.random.Generator) -> Ended:
    """Do the same without an exam: the number comes from the guarded part, checked like any other."""
    return _through_gate(agent, items, steps, runs, rng, every=EVERY, tuned=True, answers=ANSWERS, exam=None)


def _through_gate(
    agent: str,
    items: int,
    steps: int,
    runs: int,
    rng: np.random.Generator,
    *,
    every: int,
    tuned: bool,
    answers: int,
    exam: float | None = EXAM,
) -> Ended:
    mechanism: Any = plan(items, answers + (exam is None), CONFIDENCE, open=OPEN, exam=exam).mechanism
    kept_for_exam = 0 if exam is None else mechanism.exam_rows.rows
    world = World([mechanism.guessing, mechanism.guarded, kept_for_exam], runs, agent, rng)
    gate = Ratchet(world, mechanism)
    path = []
    for step in range(1, steps + 1):
        edit = world.edit()
        world.keep(edit.gain(0) > 0 if tuned else np.ones(runs, dtype=bool), edit)
        if step % every == 0 or step == steps:
            accepted = gate.propose()
            if not tuned:  # a rejected edit is undone
                world.keep(~accepted, _undone(edit))
        believed = world.right(0)[0] / world.sizes[0]
        path.append((step, float(world.incumbent[0]), float(believed)))
    if exam is None:
        found = gate.checked()
    else:
        found = _examined(world.incumbent_right(2), kept_for_exam, mechanism.exam_share(1))
    return Ended(world.incumbent, *found, gate.kept, gate.wrong, path)


def _undone(edit: Edit) -> Edit:
    return Edit(-edit.effect, edit.broken, edit.mended)


class Ratchet:
    """What `afresh.evaluations.gate` does, for many runs at once."""

    def __init__(self, world: World, mechanism: Any) -> None:
        """Take a plan with open rows; the world's first two parts are its open and its guarded rows."""
        self.world, self.mechanism = world, mechanism
        self.kept, self.wrong, self.steps, self.events = np.zeros((4, world.runs), dtype=np.int64)
        self._level = lru_cache(None)(lambda steps, events: node_level(mechanism.checking, Trail(steps, events)))

    def propose(self) -> NDArray[np.bool_]:
        """Propose the present candidates; returns which of them were accepted."""
        world, (opened, guarded) = self.world, self.world.sizes[:2]
        up, down = world.apart(0)
        needed = np.sqrt(2 * (self._level(0, 0) + 1) * (up + down) / opened / guarded)
        foretold = (up - down) / opened > needed
        levels = np.array([self._level(*each) for each in zip(self.steps.tolist(), self.events.tolist(), strict=True)])
        accepted: NDArray[np.bool_] = sign_test(*world.apart(1)) >= levels
        self.steps += 1
        self.events += accepted != foretold
        self.kept += accepted
        self.wrong += accepted & (world.truth <= world.incumbent)
        world.promote(accepted)
        return accepted

    def checked(self) -> tuple[Floats, Floats, Floats]:
        """The incumbents' accuracies as the guarded part checks them."""
        found = []
        for run, paths in enumerate(zip(self.steps.tolist(), self.events.tolist(), strict=True)):
            hits = [int(self.world.incumbent_right(part)[run]) for part in (0, 1)]
            parts = [Moments(size, hit, hit) for size, hit in zip(self.world.sizes[:2], hits, strict=True)]
            before = {
                "task": 1.0,
                "passed": 1.0,
                "expected": 1.0,
                "steps": paths[0] - 1,
                "events": paths[1],
                "nats": 0.0,
            }
            released = self.mechanism.release(parts, 0.0, levels=2)([before])
            found.append((self.mechanism.value(released), *self.mechanism.interval(released, levels=2)))
        value, low, high = np.array(found).T
        return value, low, high


def _examined(hits: Counts, rows: int, share: float) -> tuple[Floats, Floats, Floats]:
    """Exact means of fresh rows with their intervals."""
    ends = lru_cache(None)(lambda hit: interval_of({"rows": rows, "total": hit, "squares": hit}, share, 2))
    low, high = np.array([ends(float(hit)) for hit in hits]).T
    return hits / rows, low, high


# Each takes an agent's name, numbers of items, steps and runs, and a generator.
WAYS: dict[str, Callable[[str, int, int, int, np.random.Generator], Ended]] = {
    "naive reuse": _naive,
    "p < .05": _significant,
    "compare, default guard": _compared,
    "practice and exam": _practised,
    "gate, every edit": _gated,
    "milestones, no exam": _confirmed,
    "milestones and exam": _recommended,
}
RECOMMENDED = "milestones and exam"
