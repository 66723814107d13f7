"""The mechanisms that a guard can run, by name. A new one is a file of its own, its theory, and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Protocol

from afresh.mechanisms.base import Mechanism
from afresh.mechanisms.calibrated import Calibrated, plan_calibrated
from afresh.mechanisms.guess_and_check import GuessAndCheck, plan_guess_and_check
from afresh.mechanisms.rounds import Rounds, make_rounds, plan_rounds
from afresh.mechanisms.split import Split
from afresh.mechanisms.stabilized import Stabilized, plan_stabilized


class Planner(Protocol):
    """From rows, questions, failure probability and answers to constants; None where the method is not available."""

    def __call__(self, rows: int, questions: int, failure: float, answers: int | None = None, /) -> Mechanism | None:
        """The constants; `answers` is None where all answers are at full price."""
        ...


_OFFERED: tuple[tuple[type[Mechanism], Planner], ...] = (
    (Stabilized, plan_stabilized),
    (Calibrated, plan_calibrated),
    (Rounds, plan_rounds),
    (GuessAndCheck, plan_guess_and_check),
)
# No new plan is made for these; ledgers and receipts that have one go on with it.
_RETIRED: tuple[type[Mechanism], ...] = (Split,)
MECHANISMS: Mapping[str, type[Mechanism]] = {kind.method: kind for kind in (*(k for k, _ in _OFFERED), *_RETIRED)}
PLANNERS: Mapping[str, Planner] = {kind.method: planner for kind, planner in _OFFERED}
# Those a plan chooses from. The others stand in every comparison too, but are used only if asked for by name.
PROMISING: Mapping[str, Planner] = {name: PLANNERS[name] for name in PLANNERS if MECHANISMS[name].promised}
# The one whose questions are asked in so many rounds.
IN_ROUNDS = Rounds.method


def planner_for(rounds: int) -> Planner:
    """The planner of so many rounds."""
    return partial(make_rounds, rounds=rounds)


# Those that check a guess of the analyst's own.
GUESSING: tuple[str, ...] = tuple(name for name in PLANNERS if MECHANISMS[name].checks_guesses)
