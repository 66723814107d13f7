"""`afresh lab boards --rules`: boards with rules, climbed on purpose, and whether what they say is true.

In rounds, a week's entries are scored and compared on that week's own rows, and the best so far compete again. With
improvements only, an entry learns only whether it certainly beats the leader. Climbers enter one good model again and
again with different guesses for the coins, and at the end the vote of all guesses, weighted by what they learnt about
each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.boards.order import Constraints, Order
from afresh.boards.pairing import round_pairs
from afresh.boards.rules import AGAINST
from afresh.lab.climbing import FAILURE, Bits, World, entered, world
from afresh.lab.coverage import clopper_pearson, markdown
from afresh.lab.symbols import Talk
from afresh.mechanisms.planned_checks import plan_open_rows
from afresh.mechanisms.rounds import Rounds, make_rounds
from afresh.mechanisms.tasks import Claim
from afresh.moments import Moments

WEEKS, EACH, AGAIN, ANSWERS = 10, 20, 20, 1200
"""The number of rounds, new entries per round, how many of the best compete again, and the total number of answers."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """Many runs of one rule."""

    rule: str
    runs: int
    false: int
    """The number of runs in which some order or place is false."""
    missed: int
    """The number of runs in which some interval misses."""
    ordered: float
    """The mean number of pairs that are called ordered."""
    pairs: float
    """The number of pairs that share a table."""
    climbed: int
    """The number of runs in which the climbers' vote is called better than the model it is made from."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def ruled(
    rule: str, runs: int, seed: int = 2018, progress: Callable[[int], None] = lambda done: None, rows: int = 50_000
) -> Ruled:
    """Play a rule many times.

    Args:
        rule: One of `RULES`.
        runs: The number of runs.
        seed: The seed of everything random.
        progress: Called whenever a run is done.
        rows: The number of rows of the holdout.

    Returns:
        What was said, and whether it was true.
    """
    found = []
    for run in range(runs):
        rng = np.random.default_rng([seed, 1 + list(RULES).index(rule), run])
        found.append(RULES[rule](world(rng, rows), rng))
        progress(1)
    false, missed, ordered, pairs, climbed = np.array(found, dtype=float).T
    means = float(ordered.mean()), float(pairs.mean())
    return Ruled(rule, runs, int(false.sum()), int(missed.sum()), *means, int(climbed.sum()))


def _in_rounds(of: World, rng: np.random.Generator) -> tuple[float, ...]:
    """Play weeks with fresh rows; a third of all entries climb."""
    rows = len(of.labels)
    m = make_rounds(rows, ANSWERS, FAILURE, None, WEEKS)
    assert m is not None
    guesses, said, best = list[Bits](), list[float](), list[Bits]()
    false = missed = climbed = False
    ordered = pairs = 0
    for week in range(WEEKS):
        own = slice(week * m.batch, (week + 1) * m.batch)
        entries = [entered(of, rng, climbs=place % 3 == 0) for place in range(EACH)]
        if week == WEEKS - 1:
            entries[0] = _vote(of, guesses, said)
        again = [each for each in best if not any(np.array_equal(each, other) for other in entries)]
        models = [*entries, *again]
        values, order = _week(m, of, own, models, len(entries))
        truths = np.array([_truth(of, own, each) for each in models])
        false |= _false(order, truths)
        missed |= bool(((truths < order.low - 1e-12) | (truths > order.high + 1e-12)).any())
        ordered, pairs = ordered + order.separated, pairs + len(models) * (len(models) - 1) // 2
        guesses += [each[of.coins] for each in entries[::3]]
        said += values[: len(entries) : 3]
        best = [models[i] for i in np.flatnonzero(order.tiers == 1)[:AGAIN]]
        if week == WEEKS - 1:
            climbed = bool(order.better[0] == 0 and order.worse[0] == len(models) - 1)
    return float(false), float(missed), float(ordered), float(pairs), float(climbed)


def _week(m: Rounds, of: World, own: slice, models: Sequence[Bits], new: int) -> tuple[list[float], Order]:
    """The scores of a round, and what follows from them and from the comparisons that a board asks for."""
    wrong = [(each[own] != of.labels[own]) for each in models]
    graph, values = Constraints(len(models)), []
    for place, each in enumerate(wrong):
        hits = float(each.sum())
        released = m.release(Moments(m.batch, hits, hits), 0.0)
        values.append(m.value(released))
        graph.score(place, *m.interval(released, levels=2))
    for i, j in round_pairs(new, len(models) - new, ANSWERS // WEEKS, ANSWERS // WEEKS, AGAINST):
        better, worse = int((wrong[i] & ~wrong[j]).sum()), int((wrong[j] & ~wrong[i]).sum())
        low, high = m.interval(m.release(_difference_of(m.batch, better, worse), 0.0), levels=3)
        graph.difference(i, j, 2 * low - 1, 2 * high - 1)
    return values, graph.solve()


def _improvements(of: World, rng: np.random.Generator, entries: int = 200) -> tuple[float, ...]:
    """Show only whether an entry certainly beats the leader; a third of all entries climb, and their vote is last."""
    rows = len(of.labels)
    m = plan_open_rows(rows, entries, FAILURE, share=0.5)
    assert m is not None
    talk, own = Talk(m), slice(rows - m.guarded, rows)
    base = of.best.copy()
    leader = base ^ (rng.random(rows) < 0.2)
    accepted, false, climbed = 1, False, False
    guesses, said = list[Bits](), list[float]()
    for place in range(entries):
        last = place == entries - 1
        mine = _vote(of, guesses, said) if last else entered(of, rng, climbs=place % 3 == 0)
        wrong, theirs = mine[own] != of.labels[own], leader[own] != of.labels[own]
        gain = _difference_of(m.guarded, int((theirs & ~wrong).sum()), int((wrong & ~theirs).sum()))
        passed = bool(talk.ask(gain, Claim(0.5, 1.0, expected=False), levels=3)["passed"])
        if not last and place % 3 == 0:
            guesses.append(mine[of.coins])
            said.append(-float(passed))
        if passed:
            gained = _truth(of, own, leader) - _truth(of, own, mine)
            false |= gained <= 1e-12
            climbed |= last
            leader, accepted = mine, accepted + 1
    pairs = (entries + 1) * entries / 2  # of all, for those that were not accepted are in no order
    return float(false), 0.0, accepted * (accepted - 1) / 2, pairs, float(climbed)


def _difference_of(n: int, better: int, worse: int) -> Moments:
    """The moments of (d + 1)/2, with d = 1 on so many rows and -1 on so many others."""
    halves = n - better - worse
    return Moments(n, better + halves / 2, better + halves / 4)


def _vote(of: World, guesses: Sequence[Bits], said: Sequence[float]) -> Bits:
    last = of.best.copy()
    if guesses:
        weights = np.mean(said) - np.array(said)
        last[of.coins] = weights @ (np.array(guesses, dtype=np.float64) - 0.5) > 0
    return last


def _truth(of: World, own: slice, predictions: Bits) -> float:
    """The mean loss over some rows if their labels were drawn again."""
    chances = of.chances[own]
    return float(np.where(predictions[own], 1 - chances, chances).mean())


def _false(order: Order, truths: NDArray[np.float64]) -> bool:
    """Whether a true rank, with ties broken in any way, leaves its place."""
    places = np.array(order.places)
    first = 1 + (truths[None, :] < truths[:, None] - 1e-12).sum(axis=1)
    last = (truths[None, :] <= truths[:, None] + 1e-12).sum(axis=1)
    return bool(((first < places[:, 0]) | (last > places[:, 1])).any())


RULES: dict[str, Callable[[World, np.random.Generator], tuple[float, ...]]] = {
    "rounds on fresh rows": _in_rounds,
    "improvements only": _improvements,
}
HEADER = ("rule", "a false order or place", "a missed interval", "pairs ordered", "the vote is called better")


def table(found: Sequence[Ruled]) -> str:
    """Format the runs as Markdown.

    Args:
        found: Runs of several rules.

    Returns:
        A table.
    """

    def of(count: int, runs: int) -> str:
        low, high = clopper_pearson(count, runs)
        return f"{count}/{runs} ({100 * low:.1f}-{100 * high:.1f}%)"

    lines = [
        (
            each.rule,
            of(each.false, each.runs),
            of(each.missed, each.runs),
            f"{each.ordered:,.0f} of {each.pairs:,.0f}",
            of(each.climbed, each.runs),
        )
        for each in found
    ]
    return markdown(HEADER, lines)
