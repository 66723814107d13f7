"""From a width to rows or questions: the most extreme plan that still keeps the width."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from afresh.checks import MOST
from afresh.errors import ImpossibleWidth
from afresh.mechanisms.base import Mechanism
from afresh.mechanisms.registry import Planner, planner_for
from afresh.results import show


def most_questions(planners: Mapping[str, Planner], rows: int, width: float, mean: float, failure: float) -> Mechanism:
    """Over all methods, the plan with the most questions whose half-width is at most `width`."""
    best = [
        m
        for planner in planners.values()
        if (m := _search(lambda k, p=planner: p(rows, k, failure, None), width, mean, 1, 4.0)) is not None  # type: ignore[misc] # mypy cannot type a lambda's default
    ]
    if not best:
        one = [m for p in planners.values() if (m := p(rows, 1, failure, None)) is not None]
        if not one:
            raise ImpossibleWidth(f"width == {width}: {rows:,} rows are too few for any such plan; use more rows.")
        possible = min(m.half_width(mean) for m in one)
        raise ImpossibleWidth(
            f"width == {width}: {rows:,} rows cannot promise it even for one question; "
            f"the narrowest is ±{show.width(possible)}. Use more rows or a lower confidence."
        )
    return max(best, key=lambda m: m.questions)


def fewest_rows(
    planners: Mapping[str, Planner],
    questions: int,
    width: float,
    mean: float,
    failure: float,
    fewest: int,
    answers: int | None,
) -> Mechanism:
    """Over all methods, the plan with the fewest rows whose half-width is at most `width`."""
    best = [
        m
        for planner in planners.values()
        if (m := _search(lambda n, p=planner: p(n, questions, failure, answers), width, mean, fewest, -2.0)) is not None  # type: ignore[misc] # as above
    ]
    if not best:
        raise ImpossibleWidth(
            f"width == {width}: {questions:,} questions would need more than {MOST:,} rows; "
            "ask for a larger width or fewer questions."
        )
    return min(best, key=lambda m: m.rows)


def most_rounds(rows: int, questions: int, width: float, mean: float, failure: float) -> Mechanism:
    """The plan with the most rounds whose half-width is at most `width`."""

    def planner(rounds: int) -> Mechanism | None:
        return planner_for(rounds)(rows, questions, failure, None)

    found = _search(planner, width, mean, 1, 2.0)
    if found is None:
        one = planner(1)
        assert one is not None
        raise ImpossibleWidth(
            f"width == {width}: {rows:,} rows cannot promise it for {questions:,} questions even if all are asked "
            f"in one round; the narrowest is ±{show.width(one.half_width(mean))}."
        )
    return found


def _search(
    build: Callable[[int], Mechanism | None], width: float, mean: float, fewest: int, power: float
) -> Mechanism | None:
    """The plan at the extreme size (rows or questions) whose half-width is still at most `width`.

    The half-width goes roughly like size^(1/power). If negative, it falls with the size (rows) and the smallest size is
    sought; if positive, it grows (questions) and the largest is. Steps follow that law, corrected by what was seen,
    within a bracket of a size that fits and one that does not, until they meet or the width is used to a thousandth.
    """
    grows = power > 0
    fits: tuple[int, Mechanism] | None = None
    fails: int | None = None
    size, seen = (fewest if grows else 1000), None
    for _ in range(60):
        mechanism = build(size)
        reached = 0.5 if mechanism is None else mechanism.half_width(mean)
        if mechanism is not None and reached <= width:
            fits = size, mechanism
            if reached >= width * (1 - 1e-3) or (not grows and size == fewest):
                break
        else:
            fails = size
            if grows and size == fewest:
                return None
        if fits is not None and fails is not None and abs(fits[0] - fails) == 1:
            break
        here = math.log(size), math.log(reached)
        if seen is not None and reached < 0.49 and abs(here[1] - seen[1]) > 1e-3:
            slope = (here[0] - seen[0]) / (here[1] - seen[1])
            power = slope if slope * power > 0 else power
        seen = here if reached < 0.49 else None
        # Aim a little inside the width; at a useless width the law says nothing, so walk.
        step = power * (math.log(width * (1 - 4e-4)) - here[1]) if reached < 0.49 else (-2.5 if grows else 2.5)
        guess = math.exp(here[0] + min(max(step, -7.0), 7.0))
        if fits is not None and fails is not None:
            low, high = sorted((fits[0], fails))
            if not low < guess < high:
                guess = math.sqrt(low * high)
            size = min(max(round(guess), low + 1), high - 1)
        else:
            outward = 1 if (fits is not None) == grows else -1
            size = max(round(guess), fewest)
            size = size if (size - round(math.exp(here[0]))) * outward > 0 else round(math.exp(here[0])) + outward
            if not fewest <= size <= MOST:
                break
    return None if fits is None else fits[1]
