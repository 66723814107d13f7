"""The ways to ask, from narrow to wide, and what would have been narrow enough where an interval was not.

Open rows, rounds, and full adaptivity are three ways to use the same rows (docs/which-method.md). All figures here
follow from public constants: rows, questions, confidence, a mean or a disagreement. No row is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from afresh.errors import ImpossibleWidth
from afresh.mechanisms.base import Mechanism
from afresh.mechanisms.registry import IN_ROUNDS, planner_for, planner_with_open
from afresh.results import show

Width = Callable[[Mechanism], float]
"""What a mechanism's half-width is for the question at hand."""
_SHARES = tuple(share / 20 for share in range(1, 20))
_FINE = 100
_ROUNDS = 10  # what "a few rounds" means where nobody says how many
_MOST = 1e15  # rows
_WIDEST_LAW = 0.4  # beyond which widths follow no law of rows or questions


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask, and the half-width that it has."""

    name: str
    how: str
    """What to say when the data are opened."""
    half_width: float
    promised: bool

    @property
    def words(self) -> str:
        """In a line."""
        expected = "" if self.promised else " while checks pass"
        return f"{self.name} ({self.how}): ±{show.width(self.half_width)}{expected}"


@lru_cache(maxsize=256)
def narrowest_share(
    rows: int, questions: int, failure: float, mean: float = 0.5, exam: float | None = None
) -> float | None:
    """The part of the rows to open for the narrowest answers, in steps of a twentieth; None if none can be open."""
    found = {share: m for share in _SHARES if (m := planner_with_open(share, exam)(rows, questions, failure, None))}
    return min(found, key=lambda share: found[share].half_width(mean), default=None)


def largest_share(rows: int, questions: int, failure: float, width: float, mean: float, exam: float | None) -> float:
    """The largest part of the rows that can be open if answers are to be expected within ±width, in hundredths."""
    best = narrowest_share(rows, questions, failure, mean, exam)
    start = 0 if best is None else round(best * _FINE)
    fits = [
        share / _FINE
        for share in range(start, _FINE)
        if (m := planner_with_open(max(share, 1) / _FINE, exam)(rows, questions, failure, None)) is not None
        and m.half_width(mean) <= width
    ]
    if not fits:
        made = None if best is None else planner_with_open(best, exam)(rows, questions, failure, None)
        least = "" if made is None else f"; the narrowest, with {best:g} open, is ±{show.width(made.half_width(mean))}"
        raise ImpossibleWidth(
            f"width == {width}: {questions:,} questions to {rows:,} rows cannot expect it, whatever is open{least}."
        )
    return max(fits)


def ways(mechanism: Mechanism, width: Width) -> list[Way]:
    """The ways to ask as many questions of as many rows, the narrowest first, with the mechanism's own among them."""
    rows, questions, failure = mechanism.rows, mechanism.questions, mechanism.failure
    found = [Way(f"{mechanism.method}, as planned", "this plan", width(mechanism), mechanism.promised)]
    share = narrowest_share(rows, questions, failure)
    opened = None if share is None else planner_with_open(share)(rows, questions, failure, None)
    if opened is not None and mechanism.open_rows is None and not mechanism.own:
        found.append(Way("open rows", f"open={share:g}", width(opened), False))
    rounds = min(_ROUNDS, questions)
    in_rounds = planner_for(rounds)(rows, questions, failure, None)
    if in_rounds is not None and mechanism.method != IN_ROUNDS:
        few = "one round" if rounds == 1 else f"{rounds} rounds"
        found.append(Way(few, f"rounds={rounds}", width(in_rounds), True))
    return sorted(found, key=lambda way: way.half_width)


def recommended(mechanism: Mechanism) -> str:
    """Which way is the narrowest, in words, before anything else that a plan says."""
    best, *others = ways(mechanism, lambda m: m.half_width(0.5))
    if best.how == "this plan":
        rest = f" ({'; '.join(way.words for way in others)})" if others else ""
        return f"This is the narrowest way at a mean of 0.5: ±{show.width(best.half_width)}{rest}."
    need = "if you can hold a part of the rows" if best.name == "open rows" else "if questions come in batches"
    rest = "; ".join(way.words for way in others)
    return f"Recommended, {need}: {best.words}. Otherwise {rest}."


@lru_cache(maxsize=1024)  # every wide answer asks, and plans take milliseconds
def would_tell_mean(mechanism: Mechanism, reach: float, target: float, mean: float) -> tuple[str, ...]:
    """`would_tell` for the share or mean of a number; two digits of `reach` and `mean` are enough."""
    return would_tell(mechanism, reach, target, lambda m: m.half_width(mean))


def would_tell(mechanism: Mechanism, reach: float, target: float, width: Width) -> tuple[str, ...]:
    """What would have told what a half-width of `reach` does not: with a half-width of at most `target`.

    Each is a change of the plan by itself. Rounds and open rows are computed; rows and questions follow the laws that
    widths go by, n^(-1/2), and k^(1/4) where every question may depend on every answer.
    """
    if not (0 < target < reach):
        return ()
    rows, questions, failure = mechanism.rows, mechanism.questions, mechanism.failure
    found = []
    if (rounds := _most_rounds(rows, questions, failure, target, width)) is not None:
        now = mechanism.batch is not None and rows // mechanism.batch <= rounds
        if not now:
            how = "one round" if rounds == 1 else f"at most {rounds:,} rounds"
            found.append(f"asking in {how} (rounds={rounds})")
    share = narrowest_share(rows, questions, failure)
    opened = None if share is None else planner_with_open(share)(rows, questions, failure, None)
    if opened is not None and mechanism.open_rows is None and width(opened) <= target:
        found.append(f"opening {show.percent(share or 0.0)} of the rows (open={share:g}, while checks pass)")
    shrink = target / reach
    adaptive = mechanism.batch is None and not mechanism.symbols and reach < _WIDEST_LAW
    if adaptive and (fewer := math.floor(questions * shrink**4)) >= 1:
        found.append(f"about {fewer:,} questions instead of {questions:,}")
    if (more := rows / shrink**2) <= _MOST:
        found.append(f"about {_rounded_up(more):,} rows instead of {rows:,}")
    return tuple(found)


def _most_rounds(rows: int, questions: int, failure: float, target: float, width: Width) -> int | None:
    """The most rounds whose half-width is at most the target; None if one round is too many."""
    one = planner_for(1)(rows, questions, failure, None)
    if one is None or (least := width(one)) > target:
        return None
    fits, fails = 1, min(math.ceil((target / least) ** 2 * 1.5) + 2, questions + 1, rows + 1)
    while fails - fits > 1:
        middle = (fits + fails) // 2
        made = planner_for(middle)(rows, questions, failure, None)
        fits, fails = (middle, fails) if made is not None and width(made) <= target else (fits, middle)
    return fits


def _rounded_up(needed: float) -> int:
    """Two digits, never fewer than there are."""
    step: int = 10 ** max(len(str(math.floor(needed))) - 2, 0)
    return math.ceil(needed / step) * step
