"""The mechanisms that a guard can run, by name. A new one is a file of its own, its theory, and a line here.

New plans are made by those that are offered. Those that are retired go on where a ledger has a plan of theirs, and
their receipts verify for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from afresh.mechanisms.base import Mechanism
from afresh.mechanisms.calibrated import Calibrated, plan_calibrated
from afresh.mechanisms.checked import Checked
from afresh.mechanisms.endless import Endless, plan_endless
from afresh.mechanisms.guess_and_check import GuessAndCheck
from afresh.mechanisms.planned_checks import plan_checks, plan_open_rows, plan_own_rows
from afresh.mechanisms.rounds import Rounds, make_rounds, plan_rounds
from afresh.mechanisms.settled import Settled, plan_settled
from afresh.mechanisms.split import Split
from afresh.mechanisms.stabilized import Stabilized, plan_stabilized
from afresh.mechanisms.symmetrized import Symmetrized, plan_symmetrized
from afresh.mechanisms.twofold import Twofold


class Planner(Protocol):
    """From rows, questions, failure probability and answers to constants; None where the method is not available."""

    def __call__(self, rows: int, questions: int, failure: float, answers: int | None = None, /) -> Mechanism | None:
        """The constants; `answers` is None where all answers are at full price."""
        ...


_OFFERED: tuple[tuple[type[Mechanism], Planner], ...] = (
    (Stabilized, plan_stabilized),
    (Symmetrized, plan_symmetrized),
    (Settled, plan_settled),
    (Calibrated, plan_calibrated),
    (Rounds, plan_rounds),
    (Checked, plan_checks),
)
# No new plan is made for these; ledgers and receipts that have one go on with it.
_RETIRED: tuple[type[Mechanism], ...] = (Split, GuessAndCheck, Twofold)
# Those that are planned from something else than rows, questions and failure: no number of questions.
_SPECIAL: tuple[type[Mechanism], ...] = (Endless,)
MECHANISMS: Mapping[str, type[Mechanism]] = {
    kind.method: kind for kind in (*(k for k, _ in _OFFERED), *_SPECIAL, *_RETIRED)
}
PLANNERS: Mapping[str, Planner] = {kind.method: planner for kind, planner in _OFFERED}
# Those a plan chooses from. The others stand in every comparison too, but are used only if asked for by name.
PROMISING: Mapping[str, Planner] = {name: PLANNERS[name] for name in PLANNERS if MECHANISMS[name].promised}
# Those whose constants can be chosen for other typical means (`typical=`) than the usual ones.
TUNED: tuple[str, ...] = (Stabilized.method, Symmetrized.method, Settled.method)
# Those whose comparisons of models can follow a public `disagreement=`.
FOLLOWING: tuple[str, ...] = (Symmetrized.method,)
# Those whose noise can follow a hint (`about=`).
HINTED: tuple[str, ...] = (Settled.method,)
# The one that releases vectors at once, for less than their numbers one by one.
AT_ONCE = Symmetrized.method
# The one whose budget never ends, and its planner, from rows, failure probability and typical means.
ENDLESS, planner_without_end = Endless.method, plan_endless
# The promise that is narrowest for numbers: their intervals follow the standard deviation whatever else is asked.
FOR_NUMBERS, planner_for_numbers = Settled.method, plan_settled


def planner_for_deviation(rows: int, questions: int, failure: float, deviation: float) -> Mechanism | None:
    """The plan with room for numbers of this standard deviation, a part of the range between their bounds."""
    return plan_settled(rows, questions, failure, deviation=deviation)


# The one whose questions are asked in so many rounds.
IN_ROUNDS = Rounds.method


def planner_for(rounds: int) -> Planner:
    """The planner of so many rounds."""
    return partial(make_rounds, rounds=rounds)


# The one with rows that the analyst holds.
WITH_OPEN_ROWS = Checked.method


def planner_with_open(share: float | None, exam: float | None = None, development: int | None = None) -> Planner:
    """The planner with that share of the rows open, or so many of the analyst's own, and a share for an exam."""
    if development is not None:
        return partial(plan_own_rows, development=development, exam=exam)
    return partial(plan_checks, exam=exam) if share is None else partial(plan_open_rows, share=share, exam=exam)


# Those that check a guess of the analyst's own.
GUESSING: tuple[str, ...] = tuple(name for name in PLANNERS if MECHANISMS[name].checks_guesses)
# Those that take claims, challenges and contests.
CLAIMING: tuple[str, ...] = tuple(name for name in PLANNERS if MECHANISMS[name].symbols)
