"""One line of a benchmark, and how it is printed: a ratio of two things measured side by side, and its limit."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Measured:
    """A ratio; at most `limit`, or at least that if `least`. Without a limit it is for information."""

    name: str
    ratio: float
    limit: float | None = None
    told: str = ""
    """The two things, as they were measured."""
    least: bool = False

    @property
    def holds(self) -> bool:
        """Whether the limit does, if there is one."""
        if self.limit is None:
            return True
        return self.ratio >= self.limit if self.least else self.ratio <= self.limit

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """The columns of the table."""
        limit = "" if self.limit is None else f"{'at least ' if self.least else ''}{self.limit:g}"
        holds = "" if self.limit is None else "yes" if self.holds else "**no**"
        return self.name, f"{self.ratio:.2f}", limit, holds, self.told


def ms(seconds: float) -> str:
    """A time for people."""
    return f"{1000 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def compared(
    name: str, ours: float, base: float, limit: float | None = None, what: str = "", *, least: bool = False
) -> Measured:
    """The ratio of two times."""
    return Measured(name, ours / base, limit, f"{ms(ours)} to {ms(base)}{what and ', '}{what}", least)


def show(lines: Iterable[Measured], found: list[Measured]) -> None:
    """Print lines as they come, for those who wait, and collect them."""
    for line in lines:
        found.append(line)
        name, ratio, limit, holds, told = line.cells
        print(f"  {name:<72}{ratio:>8} {limit:>14} {holds.strip('*'):<4} {told}", file=sys.stderr, flush=True)


def table(found: Sequence[Measured]) -> str:
    """All of them, in Markdown."""
    head = ["| | ratio | limit | holds? | measured |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(f"| {' | '.join(line.cells)} |" for line in found)])
