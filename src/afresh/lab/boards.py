"""`afresh lab boards`: what boards claim when some entrants climb on purpose, and whether it is true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from afresh.lab.climbing import BOARDS, ENTRIES, ROWS, Exact, play, world
from afresh.lab.coverage import clopper_pearson, markdown
from afresh.lab.loops import write_between

_Z = 1.959964  # the usual interval around an exact mean


@dataclass(frozen=True, slots=True)
class Climbed:
    """Many runs of one board."""

    board: str
    runs: int
    claimed: float
    """The leader's displayed mean loss, averaged over runs."""
    truth: float
    """The leader's true mean loss."""
    worse: int
    """The number of runs in which the leader is worse than the upper end of its interval."""
    false: int
    """The number of runs in which some pair is falsely called ordered."""
    missed: int
    """The number of runs in which some interval misses."""
    separated: float
    """The mean number of pairs called ordered."""
    pairs: int
    group: float
    """How many entries may be the best, on average."""
    has_best: int
    """The number of runs in which the truly best entry is one of these."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def climb(name: str, runs: int, seed: int = 2018, progress: Callable[[int], None] = lambda done: None) -> Climbed:
    """Play a board many times.

    Args:
        name: One of `BOARDS`.
        runs: The number of runs.
        seed: The seed of everything random.
        progress: Called whenever a run is done.

    Returns:
        What the board claimed, and what was true.
    """
    rows = []
    for run in range(runs):
        rng = np.random.default_rng([seed, list(BOARDS).index(name), run])
        of = world(rng)
        board = BOARDS[name](of, rng)
        truths = play(board, of, rng)
        rows.append(_naive(board, truths) if isinstance(board, Exact) else _certified(board, truths))
        progress(1)
    claimed, truth, worse, false, missed, separated, group, has_best = np.array(rows, dtype=float).T
    return Climbed(
        board=name,
        runs=runs,
        claimed=float(claimed.mean()),
        truth=float(truth.mean()),
        worse=int(worse.sum()),
        false=int(false.sum()),
        missed=int(missed.sum()),
        separated=float(separated.mean()),
        pairs=ENTRIES * (ENTRIES - 1) // 2,
        group=float(group.mean()),
        has_best=int(has_best.sum()),
    )


def _naive(board: Exact, truths: Any) -> tuple[float, ...]:
    """A strict order, and the interval that textbooks give for one model that was chosen in advance."""
    values = np.array(board.values)
    reach = _Z * np.sqrt(values * (1 - values) / ROWS)
    leader, best = int(values.argmin()), int(truths.argmin())
    ordered = values[:, None] < values[None, :]
    wrong = ordered & (truths[:, None] > truths[None, :] + 1e-12)
    return (
        values[leader],
        truths[leader],
        truths[leader] > values[leader] + reach[leader],
        wrong.any(),
        (np.abs(truths - values) > reach).any(),
        ordered.sum(),
        1,
        truths[leader] <= truths[best] + 1e-12,
    )


def _certified(board: Any, truths: Any) -> tuple[float, ...]:
    order, values = board.order(), np.array(board.values)
    leader, best = int(values.argmin()), float(truths.min())
    places = np.array(order.places)
    # A place is false if the true rank, with ties broken in any way, leaves it.
    first = 1 + (truths[None, :] < truths[:, None] - 1e-12).sum(axis=1)
    last = (truths[None, :] <= truths[:, None] + 1e-12).sum(axis=1)
    false = (first < places[:, 0]) | (last > places[:, 1])
    may_lead = order.tiers == 1
    return (
        values[leader],
        truths[leader],
        truths[leader] > order.high[leader] + 1e-12,
        false.any(),
        ((truths < order.low - 1e-12) | (truths > order.high + 1e-12)).any(),
        order.separated,
        may_lead.sum(),
        (may_lead & (truths <= best + 1e-12)).any(),
    )


HEADER = (
    *("board", "leader's value", "its truth", "worse than claimed", "a false order or place", "a missed interval"),
    *("pairs ordered", "may be the best", "truly best among them"),
)


def lines(found: Sequence[Climbed]) -> list[tuple[str, ...]]:
    """Format a line for every board.

    Args:
        found: Their runs.

    Returns:
        Cells as text.
    """
    return [
        (
            f"**{each.board}**" if each.board == "afresh" else each.board,
            f"{each.claimed:.4f}",
            f"{each.truth:.4f}",
            _of(each.worse, each.runs),
            _of(each.false, each.runs),
            _of(each.missed, each.runs),
            f"{each.separated:,.0f} of {each.pairs:,}",
            f"{each.group:.1f}",
            _of(each.has_best, each.runs),
        )
        for each in found
    ]


def _of(count: int, runs: int) -> str:
    low, high = clopper_pearson(count, runs)
    return f"{count}/{runs} ({100 * low:.1f}-{100 * high:.1f}%)"


def table(found: Sequence[Climbed]) -> str:
    """Format the runs as Markdown.

    Args:
        found: Runs of several boards.

    Returns:
        A table.
    """
    return markdown(HEADER, lines(found))


def write(page: Path, text: str, command: str = "boards") -> None:
    """Put the table into a page, between its two marks.

    Args:
        page: A Markdown file.
        text: The table to put there.
        command: The command of `afresh lab` that the marks name.

    Raises:
        InvalidArgument: The page has no such marks.
    """
    begin, end = (f"<!-- afresh lab {command}: {which} -->" for which in ("begin", "end"))
    write_between(page, text, (begin, end))
