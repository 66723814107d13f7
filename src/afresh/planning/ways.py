"""The ways to ask, from narrow to wide, and what would have been narrow enough when an interval was not.

Open rows, rounds and full adaptivity are three ways to use the same rows (docs/which-method.md). All figures here
follow from public constants: rows, questions, confidence, a mean or a disagreement. No row is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from afresh.errors import ImpossibleWidth
from afresh.mechanisms.base import TYPICAL_MEANS, FollowsDeviation, Mechanism, at_levels, geometric_mean
from afresh.mechanisms.names import EXPECTED
from afresh.mechanisms.registry import (
    AT_HALF,
    ENDLESS,
    FOLLOWERS,
    IN_ROUNDS,
    PLANNERS,
    TUNED,
    Planner,
    planner_for,
    planner_with_open,
)
from afresh.results import show

Width = Callable[[Mechanism], float]
"""A mechanism's half-width for the question at hand."""
THIS = "this plan"
_SHARES = tuple(share / 20 for share in range(1, 20))
_FINE = 100
_ROUNDS = 10  # what "a few rounds" means when no number is given
_MOST = 1e15  # rows
_WIDEST_LAW = 0.4  # beyond this, widths follow no law of rows or questions


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask, and its half-width."""

    name: str
    """What it requires of you."""
    how: str
    """The arguments to open the data with."""
    half_width: float
    promised: bool

    @property
    def words(self) -> str:
        """What it requires, and what the width depends on."""
        return f"{self.name} ({self.how})" + ("" if self.promised else ", as long as checks pass")


@lru_cache(maxsize=256)
def narrowest_share(
    rows: int, questions: int, failure: float, mean: float = 0.5, exam: float | None = None
) -> float | None:
    """The share of rows to open for the narrowest answers, in steps of a twentieth; None if none can be open."""
    found = {share: m for share in _SHARES if (m := planner_with_open(share, exam)(rows, questions, failure, None))}
    return min(found, key=lambda share: found[share].half_width(mean), default=None)


def planner_with_best_share(mean: float, exam: float | None) -> Planner:
    """The planner with open rows that finds their share for the rows and questions it is given."""

    def planner(rows: int, questions: int, failure: float, answers: int | None = None, /) -> Mechanism | None:
        share = narrowest_share(rows, questions, failure, mean, exam)
        return None if share is None else planner_with_open(share, exam)(rows, questions, failure, answers)

    return planner


def largest_share(rows: int, questions: int, failure: float, width: float, mean: float, exam: float | None) -> float:
    """The largest share of rows that can be open with expected widths within ±width, in hundredths."""
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
            f"width == {width}: {questions:,} questions about {rows:,} rows cannot expect it, whatever is open{least}."
        )
    return max(fits)


def at_half(mechanism: Mechanism) -> float:
    """The half-width of a share of rows near one half, where it is widest."""
    return mechanism.half_width(0.5)


def ways(mechanism: Mechanism, width: Width = at_half, *, number: bool = False) -> list[Way]:
    """The ways to ask this many questions of this many rows, the narrowest first, including the mechanism's own.

    For a number, they include a narrower promise that follows its standard deviation, if the mechanism's own does not.
    """
    rows, questions, failure = mechanism.rows, mechanism.questions, mechanism.failure
    found = [Way(_own(mechanism), THIS, width(mechanism), mechanism.promised)]
    share = narrowest_share(rows, questions, failure)
    opened = None if share is None else planner_with_open(share)(rows, questions, failure, None)
    if opened is not None and mechanism.open_rows is None and not mechanism.own:
        name = f"if you can look at {show.percent(share or 0)} of rows"
        found.append(Way(name, f"open={share:g}", width(opened), False))
    if number and follows_bounds(mechanism):
        found += _followers(mechanism, width)
    rounds = min(_ROUNDS, questions)
    in_rounds = planner_for(rounds)(rows, questions, failure, None)
    if in_rounds is not None and mechanism.method != IN_ROUNDS:
        few = "one round" if rounds == 1 else f"{rounds} rounds"
        found.append(Way(f"if you can ask in {few}", f"rounds={rounds}", width(in_rounds), True))
    if not mechanism.promised:
        promise = promised_at_half(rows, questions, failure) if width is at_half else None
        if promise is None:
            tuned_planners = tuned({name: PLANNERS[name] for name in TUNED}, (0.5,)).values()
            promises = (planner(rows, questions, failure, None) for planner in tuned_planners)
            promise = min((width(each) for each in promises if each is not None), default=None)
        if promise is not None:
            found.append(Way("for any questions, promised in advance", "promise=True, typical=0.5", promise, True))
    return sorted(found, key=lambda way: way.half_width)


_MANY, _NARROW = 100, 0.1


@lru_cache(maxsize=256)
def promised_at_half(rows: int, questions: int, failure: float) -> float | None:
    """The narrowest promise for shares near one half, if it is known without planning the others.

    With many questions and narrow answers it is `symmetrized`: over rows from 100 to 10^8, up to 10^5 questions and
    failures from 0.0001 to 0.5, `settled` was 1.02 to 1.03 times as wide there, and `stabilized` at least 1.07 times.
    A plan itself never rests on this; only which plan is shown or preferred does.
    """
    if questions < _MANY:
        return None
    planner = tuned({AT_HALF: PLANNERS[AT_HALF]}, (0.5,))[AT_HALF]
    made = planner(rows, questions, failure, None)
    found = None if made is None else made.half_width(0.5)
    return found if found is not None and found <= _NARROW else None


def least_promise(at_half: float) -> float:
    """A lower bound on any promise's geometric mean at the typical means, given the least width at one half.

    Widths of `stabilized` follow the deviation at the mean; those of the others follow, at best, the deviation at an
    interval's end. As measured over the sizes above, all were at least 1.01 times as wide as this.
    """

    def at_end(mean: float) -> float:
        width = 0.0
        for _ in range(30):
            end = min(mean + width, 0.5)
            width = 2 * at_half * math.sqrt(end * (1 - end))
        return width

    by_deviation = geometric_mean(lambda mean: 2 * at_half * math.sqrt(mean * (1 - mean)))
    return min(1.2 * by_deviation, geometric_mean(at_end))


def tuned(planners: Mapping[str, Planner], typical: tuple[float, ...]) -> Mapping[str, Planner]:
    """The same planners, tuned to these means where a method can be tuned."""
    if typical == TYPICAL_MEANS:
        return planners
    return {name: partial(p, typical=typical) if name in TUNED else p for name, p in planners.items()}  # type: ignore[call-arg] # those in TUNED take it


def _own(mechanism: Mechanism) -> str:
    """What a plan requires of the person who opens data with it."""
    if mechanism.batch is not None:
        count = mechanism.rows // mechanism.batch
        return "in one round" if count == 1 else f"in {count:,} rounds"
    if (span := mechanism.open_rows) is not None:
        return f"with {show.percent(round(span.rows / mechanism.rows, 3))} of rows open"
    return "for any questions"


USUAL_DEVIATION, _LARGEST_DEVIATION = 0.05, 0.5  # of the distance between the bounds
CLEARLY = 0.95


@lru_cache(maxsize=256)  # every answer about a number asks for it
def follows_bounds(mechanism: Mechanism) -> bool:
    """Whether its intervals for numbers follow their bounds, however small the standard deviation.

    So they do where noise follows the deviation, but there is so much of it that this shows almost nothing.
    """
    own = at_levels(mechanism, None)
    if not isinstance(own, FollowsDeviation):
        return True
    if mechanism.half_width(0.5) <= _NARROW:  # so little noise hides no deviation
        return False
    usual, largest = (own.deviation_width(0.5, each) for each in (USUAL_DEVIATION, _LARGEST_DEVIATION))
    return usual > CLEARLY * largest


def _followers(mechanism: Mechanism, width: Width) -> list[Way]:
    """The narrowest promise that follows the deviation of numbers, and checked answers; where narrower."""
    found: list[Way] = []
    for names in (FOLLOWERS, EXPECTED):
        made = {name: PLANNERS[name](mechanism.rows, mechanism.questions, mechanism.failure, None) for name in names}
        fit = {name: width(each) for name, each in made.items() if each is not None and not follows_bounds(each)}
        best = min(fit, key=fit.__getitem__, default=None)
        if best is not None and fit[best] < width(mechanism):
            promised = names is FOLLOWERS
            found.append(Way("following the deviation", f"method={best!r}", fit[best], promised))
    return found


def _of_usual_number(mechanism: Mechanism) -> float:
    own = at_levels(mechanism, None)
    if isinstance(own, FollowsDeviation):
        return own.deviation_width(0.5, USUAL_DEVIATION)
    return mechanism.half_width(0.5)


@lru_cache(maxsize=256)  # every answer about a number says it
def about_numbers(mechanism: Mechanism) -> tuple[str, str]:
    """Where numbers follow their bounds: what a plan says about it, and what an answer says; nothing elsewhere."""
    if not follows_bounds(mechanism):
        return "", ""
    what = "In this plan the width of a number follows its bounds, however small its standard deviation"
    refused = "So questions about numbers are refused, unless the dataset is opened with allow_wide=True."
    if mechanism.method == ENDLESS:
        return f"{what}. {refused}", "the width follows the bounds"
    own = _of_usual_number(mechanism)
    better = [way for way in ways(mechanism, _of_usual_number, number=True) if way.half_width < own]
    told = f"{what}: it is about ±{show.width(own)} of the distance between them. "
    if better:
        gives = (f"{way.how} gives ±{show.width(way.half_width)}" for way in better)
        told += f"With a deviation of {USUAL_DEVIATION:g} of that distance, {', '.join(gives)}. "
    instead = f"; with {' or '.join(way.how for way in better)} it would follow the deviation" if better else ""
    return f"{told}{refused}", f"the width follows the bounds{instead}"


def recommended(mechanism: Mechanism) -> str:
    """The ways to ask with their widths at a mean of one half, in a sentence, the narrowest first."""
    found = ways(mechanism)
    return "; ".join(f"±{show.width(way.half_width)} {way.words}" for way in found) + "."


@lru_cache(maxsize=1024)  # every wide answer needs this, and planning takes milliseconds
def would_tell_mean(
    mechanism: Mechanism, reach: float, target: float, mean: float, share: float = 1.0
) -> tuple[str, ...]:
    """`would_tell` for a share or mean, perhaps over part of the rows; two digits of each number are enough."""
    return would_tell(mechanism, reach, target, lambda m: min(m.half_width(mean) / math.sqrt(share), 0.5))


def would_tell(
    mechanism: Mechanism, reach: float, target: float, width: Width, *, answers: int = 1, steps: int = 1
) -> tuple[str, ...]:
    """What would have decided a question that a half-width of `reach` left open: a half-width of at most `target`.

    Each is a single change to the plan. Rounds and open rows are computed; rows and questions follow the laws that
    widths obey, n^(-1/2), and k^(1/4) where every question may depend on every answer. It takes so many `answers`, and
    in rounds so many `steps`.
    """
    if not (0 < target < reach):
        return ()
    rows, questions, failure = mechanism.rows, mechanism.questions, mechanism.failure
    found = []
    if (rounds := _most_rounds(rows, questions, failure, target, width)) is not None:
        now = mechanism.batch is not None and rows // mechanism.batch <= rounds
        if not now and rounds >= steps:
            how = "one round" if rounds == 1 else f"at most {rounds:,} rounds"
            found.append(f"asking in {how} (rounds={rounds})")
    share = narrowest_share(rows, questions, failure)
    opened = None if share is None else planner_with_open(share)(rows, questions, failure, None)
    if opened is not None and mechanism.open_rows is None and width(opened) <= target:
        found.append(f"opening {show.percent(share or 0.0)} of the rows (open={share:g}, while checks pass)")
    shrink = target / reach
    adaptive = mechanism.batch is None and not mechanism.symbols and reach < _WIDEST_LAW
    if adaptive and (fewer := math.floor(questions * shrink**4)) >= answers:
        asked = "one question" if fewer == 1 else f"about {fewer:,} questions"
        found.append(f"{asked} instead of {questions:,}")
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
    """Rounded up to two digits."""
    step: int = 10 ** max(len(str(math.floor(needed))) - 2, 0)
    return math.ceil(needed / step) * step
