"""`afresh lab loops`: how loops of edits end, depending on how they decide what to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from afresh.errors import InvalidArgument
from afresh.lab.coverage import clopper_pearson, markdown
from afresh.lab.looping import AGENTS, RECOMMENDED, START, WAYS
from afresh.lab.pictures import save, subplots

ITEMS = (500, 1000, 5000, 20_000)
STEPS = (100, 300, 1000)
MAIN = (5000, 300)
_SLOW = "compare, default guard"  # it asks the real mechanism step by step: an eighth of the runs, 20 at most
_MARKS = "<!-- afresh lab loops: begin -->", "<!-- afresh lab loops: end -->"


@dataclass(frozen=True, slots=True)
class Loop:
    """Many runs of one loop."""

    way: str
    agent: str
    items: int
    steps: int
    runs: int
    truth: float
    """The mean true accuracy at the end."""
    worst: float
    """The smallest true accuracy at the end."""
    claimed: float
    half_width: float
    """The mean half-width of the interval that the loop ends with."""
    widest: float
    held: int
    """The number of runs in which that interval held."""
    kept: float
    """How often something was kept, on average."""
    wrong: float
    """How often that was no improvement."""
    below_start: int
    """The number of runs that ended below their start."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)


def loop(way: str, agent: str, items: int, steps: int, runs: int, seed: int = 2018) -> Loop:
    """Run a loop many times.

    Args:
        way: A name of `WAYS`.
        agent: A name of `AGENTS`.
        items: The number of items of the evaluation.
        steps: The number of the agent's edits.
        runs: The number of runs; fewer for slow ways.
        seed: The seed of everything random.

    Returns:
        How the runs ended.

    Raises:
        InvalidArgument: There is no such way or agent.
    """
    for name, known in ((way, WAYS), (agent, AGENTS)):
        if name not in known:
            raise InvalidArgument(f"there is no {name!r}; it must be one of {', '.join(known)}.")
    runs = min(max(runs // 8, 2), 20) if way == _SLOW else runs
    # The position of a name in its table, because hashes of strings differ between processes.
    rng = np.random.default_rng([seed, list(WAYS).index(way), list(AGENTS).index(agent), items, steps])
    found = WAYS[way](agent, items, steps, runs, rng)
    half = (found.high - found.low) / 2
    return Loop(
        way=way,
        agent=agent,
        items=items,
        steps=steps,
        runs=runs,
        truth=float(found.truth.mean()),
        worst=float(found.truth.min()),
        claimed=float(found.claimed.mean()),
        half_width=float(half.mean()),
        widest=float(half.max()),
        held=int(((found.low <= found.truth) & (found.truth <= found.high)).sum()),
        kept=float(found.kept.mean()),
        wrong=float(found.wrong.mean()),
        below_start=int((found.truth < START - 1e-12).sum()),
    )


def loops(
    wanted: Sequence[tuple[str, str, int, int]],
    runs: int = 40,
    most_runs: int = 400,
    seed: int = 2018,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Loop]:
    """Run several loops.

    Args:
        wanted: Way, agent, items and steps of each.
        runs: The number of runs of a loop.
        most_runs: The number of runs of loops at 5,000 items and 300 steps.
        seed: The seed of everything random.
        progress: Called whenever a loop is done.

    Returns:
        The loops.
    """
    found = []
    for way, agent, items, steps in wanted:
        found.append(loop(way, agent, items, steps, most_runs if (items, steps) == MAIN else runs, seed))
        progress(1)
    return found


def cells(items: Sequence[int] = ITEMS, steps: Sequence[int] = STEPS) -> list[tuple[str, str, int, int]]:
    """List way, agent, items and steps of every loop: all agents at 5,000 items and 300 steps, mixed edits elsewhere.

    Args:
        items: Sizes of evaluations.
        steps: Lengths of loops.

    Returns:
        One of each for every way.
    """
    sizes = [(n, k) for n in items for k in steps]
    first = [(way, agent, *MAIN) for agent in AGENTS for way in WAYS if MAIN in sizes]
    return [*first, *((way, "mixed", n, k) for n, k in sizes for way in WAYS if (n, k) != MAIN)]


HEADER = ("way", "true accuracy", "worst run", "claimed", "±", "held", "kept", "no improvement", "below the start")


def lines(found: Sequence[Loop]) -> list[tuple[str, ...]]:
    """Format one line per way.

    Args:
        found: Loops of one agent and size.

    Returns:
        Cells as text.
    """
    return [
        (
            f"**{each.way}**" if each.way == RECOMMENDED else each.way,
            f"{each.truth:.3f}",
            f"{each.worst:.3f}",
            f"{each.claimed:.3f}",
            f"{each.half_width:.3f}",
            f"{each.held}/{each.runs}",
            f"{each.kept:.1f}",
            f"{each.wrong:.1f}",
            f"{each.below_start}",
        )
        for each in found
    ]


def table(found: Sequence[Loop]) -> str:
    """Format as Markdown: every agent at 5,000 items and 300 steps, then true accuracies and intervals at all sizes.

    Args:
        found: Loops.

    Returns:
        Tables with titles.
    """
    parts = []
    for agent in AGENTS:
        chosen = [each for each in found if each.agent == agent and (each.items, each.steps) == MAIN]
        if chosen:
            parts.append(f"{_TITLES[agent]}\n\n{markdown(HEADER, lines(chosen))}")
    sizes = list(dict.fromkeys((each.items, each.steps) for each in found if each.agent == "mixed"))
    rows = []
    for items, steps in sorted(sizes):
        cell = {each.way: each for each in found if (each.agent, each.items, each.steps) == ("mixed", items, steps)}
        told = [f"{cell[way].truth:.3f} ({_rate(cell[way])})" if way in cell else "" for way in WAYS]
        rows.append((f"{items:,}", f"{steps:,}", *told))
    if rows and (len(rows) > 1 or not parts):
        title = "Mixed edits at all sizes: the true accuracy reached, and how often the final interval held."
        parts.append(f"{title}\n\n{markdown(('items', 'steps', *WAYS), rows)}")
    return "\n\n".join(parts)


_TITLES = {
    "mixed": "**Mixed edits**: each changes 6% of items; true effects are -0.5 points on average, deviation 1 point.",
    "no effect": "**Edits without effect**: each changes 6% of items and improves nothing.",
    "overfitting": (
        "**Overfitting on purpose**: each edit learns 1% of the visible items by heart and loses 0.1 points elsewhere."
    ),
}


def _rate(found: Loop) -> str:
    return f"{found.held / found.runs:.0%}"


def holds(found: Loop, confidence: float = 0.95) -> bool:
    """Whether its intervals may hold as often as claimed: they do not certainly hold less often.

    Args:
        found: Many runs.
        confidence: How often they are claimed to hold.

    Returns:
        Whether the upper limit of the rate, at 95%, reaches the confidence.
    """
    return clopper_pearson(found.held, found.runs)[1] >= confidence


def draw(folder: Path, items: int = 5000, steps: int = 300, seed: int = 2018) -> Path:
    """Draw one run of the same loop, naive and guarded: what it believes, and what is true.

    Args:
        folder: Where the picture goes.
        items: The number of items of the evaluation.
        steps: The number of steps of the loop.
        seed: The seed of everything random.

    Returns:
        Its path.
    """
    figure, axes = subplots(1, 2, (10, 3.6))
    ways = (("naive reuse", "tab:red"), (RECOMMENDED, "tab:blue"))
    for axis, agent in zip(axes[0], ("mixed", "overfitting"), strict=True):
        for way, colour in ways:
            found = WAYS[way](agent, items, steps, 1, np.random.default_rng(seed))
            at, truth, believed = np.array(found.path).T
            if way == RECOMMENDED:
                claimed, low, high = (float(each[0]) for each in (found.claimed, found.low, found.high))
                axis.errorbar(
                    [steps + 6], [claimed], [[claimed - low], [high - claimed]], color=colour, fmt="o", capsize=3
                )
            else:
                axis.plot(at, believed, color=colour, linestyle=":", label=f"{way}: what it claims")
            axis.plot(at, truth, color=colour, label=f"{way}: true accuracy")
        axis.axhline(START, color="grey", linewidth=0.6)
        axis.set_title({"mixed": "Mixed edits", "overfitting": "Overfitting on purpose"}[agent], fontsize=10)
        axis.set_xlabel("edits")
        axis.set_ylabel("accuracy")
    axes[0][0].plot([], [], "o", color="tab:blue", label="the exam's number, 95%")
    axes[0][0].legend(fontsize=7, loc="lower right")
    return save(figure, folder / "loops.png")


def write(page: Path, text: str) -> None:
    """Put the tables into a page, between its two marks.

    Args:
        page: A Markdown file.
        text: What goes there.

    Raises:
        InvalidArgument: It has no such marks.
    """
    write_between(page, text, _MARKS)


def write_between(page: Path, text: str, marks: tuple[str, str]) -> None:
    """Put a text into a page, between two lines of it.

    Args:
        page: A Markdown file.
        text: What goes there.
        marks: The two lines.

    Raises:
        InvalidArgument: It has no such lines.
    """
    begin, end = marks
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise InvalidArgument(f"{page} has no place for the tables: it needs the lines {begin} and {end}.")
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}")
