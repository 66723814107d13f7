"""The half-widths of the narrower ways of asking, where theory alone gives them (sections 13 to 16).

Half-widths at 95% and, unless said otherwise, at a mean of 1/2. Those of checked answers and of open rows are
expected while checks pass; the attacked ones follow from a model (`attacked_half_width`). The lab measures what its
analysts do to them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from afresh.theory.checked import attacked_half_width, expected_half_width, plan_checked, plan_open
from afresh.theory.exact import half_width
from afresh.theory.rounds import capped_share, equal_rounds

FAILURE = 0.05


@dataclass(frozen=True, slots=True)
class Figure:
    """One task: the largest half-width it may have, and the half-width it has."""

    task: str
    most: float
    found: float

    @property
    def reached(self) -> bool:
        """Whether the half-width is within its limit."""
        return self.found <= self.most


def figures() -> list[Figure]:
    """All figures, in a fixed order."""
    return [*_rounds(), *_checked(), *_open_rows(), *_delays(), *_comparisons()]


def _rounds() -> list[Figure]:
    def conditions(rows: int, questions: int, rounds: int, mean: float = 0.5) -> float:
        each = capped_share(FAILURE, questions)
        return float(half_width("two-valued", equal_rounds(rows, rounds), each, mean))

    return [
        Figure("1e5 rows, 1000 conditions in 10 rounds", 0.021, conditions(10**5, 1000, 10)),
        Figure("1e4 rows, 1000 conditions in 10 rounds", 0.067, conditions(10**4, 1000, 10)),
        Figure("5000 rows, 5 rounds of 200 conditions", 0.067, conditions(5000, 1000, 5)),
        Figure(
            "grid search: 30 candidates, 25,000 rows, accuracy .91, one round", 0.006, conditions(25_000, 30, 1, 0.91)
        ),
    ]


def _checked() -> list[Figure]:
    found = []
    for rows, calm, attacked in ((10**5, 0.030, 0.037), (10**4, 0.094, 0.118)):
        plan = plan_checked(rows, 1000, FAILURE)
        found += [
            Figure(f"checked, {rows:,} rows, 1000 questions, no failures", calm, expected_half_width(plan)),
            Figure(f"checked, {rows:,} rows, 1000 questions, attacked (model)", attacked, attacked_half_width(plan)),
        ]
    return found


def _open_rows() -> list[Figure]:
    tasks = ((10**5, 1000, 0.0235), (10**4, 1000, 0.074), (2000, 300, 0.15))
    return [
        Figure(
            f"open half, {rows:,} rows, {questions} questions, claims pass",
            most,
            expected_half_width(plan_open(rows // 2, rows - rows // 2, questions, FAILURE)),
        )
        for rows, questions, most in tasks
    ]


def _delays() -> list[Figure]:
    """A mean delay in minutes: values from -60 to 300, mean 12.6, standard deviation 44."""
    rows, questions, reach = 336_776, 100, 360.0
    mean, deviation = (12.6 + 60) / reach, 44 / reach
    checked = expected_half_width(plan_checked(rows, questions, FAILURE), mean, deviation, values="number")
    each = capped_share(FAILURE, questions)
    in_rounds = float(half_width("number", equal_rounds(rows, 5), each, mean, deviation))
    return [
        Figure("mean delay (range 360, deviation 44), 336,776 rows, 100 questions, checked", 1.2, reach * checked),
        Figure("the same in 5 rounds", 0.75, reach * in_rounds),
    ]


def _comparisons() -> list[Figure]:
    def one_round(rows: int, comparisons: int, differ: float) -> float:
        each = capped_share(FAILURE, comparisons)
        return float(half_width("three-valued", rows, each, 0.0, math.sqrt(differ)))

    opened = expected_half_width(plan_open(5000, 5000, 100, FAILURE), 0.0, math.sqrt(0.05), values="three-valued")
    return [
        Figure(
            "best of 21 models, 200,000 rows, 4% differ, one round, each pair", 0.0022, one_round(200_000, 210, 0.04)
        ),
        Figure("models that differ on 5% of 10,000 rows, 100 comparisons, open half", 0.029, opened),
        Figure("the same in one round", 0.010, one_round(10_000, 100, 0.05)),
    ]
