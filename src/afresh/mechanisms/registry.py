"""The mechanisms a guard can run, by name. A new one needs its own file, its theory, and a line here.

New plans use only the mechanisms on offer. Retired ones keep working where a ledger has such a plan, and their receipts
verify forever. A mechanism is imported when it is looked up, so a plan that uses one need not wait for the rest.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from afresh.mechanisms.base import Mechanism
from afresh.mechanisms.names import CLAIMING, EXPECTED, GUESSING, HINTED, OFFERED

__all__ = [
    "AT_HALF",
    "AT_ONCE",
    "CLAIMING",
    "ENDLESS",
    "FOLLOWERS",
    "FOLLOWING",
    "FOR_NUMBERS",
    "GUESSING",
    "HINTED",
    "IN_ROUNDS",
    "MECHANISMS",
    "PLANNERS",
    "PROMISING",
    "TUNED",
    "WITH_OPEN_ROWS",
    "Planner",
    "planner_for",
    "planner_for_deviation",
    "planner_with_open",
    "planner_without_end",
]


class Planner(Protocol):
    """Turns rows, questions, failure probability and answers into constants; None if the method is not available."""

    def __call__(self, rows: int, questions: int, failure: float, answers: int | None = None, /) -> Mechanism | None:
        """The constants; `answers` is None if all answers are at full price."""
        ...


# Where to find each: the module, the class and, for those on offer, the planner.
_HOMES = {
    "stabilized": ("stabilized", "Stabilized", "plan_stabilized"),
    "symmetrized": ("symmetrized", "Symmetrized", "plan_symmetrized"),
    "settled": ("settled", "Settled", "plan_settled"),
    "calibrated": ("calibrated", "Calibrated", "plan_calibrated"),
    "rounds": ("rounds", "Rounds", "plan_rounds"),
    "checked": ("checked", "Checked", "planned_checks.plan_checks"),
    # Planned without a number of questions.
    "endless": ("endless", "Endless", "plan_endless"),
    # No new plan uses these; ledgers and receipts that have one continue to use it.
    "split": ("split", "Split", ""),
    "guess-and-check": ("guess_and_check", "GuessAndCheck", ""),
    "twofold": ("twofold", "Twofold", ""),
}


class _Mechanisms(UserDict[str, type[Mechanism]]):
    """The classes, each imported when it is asked for."""

    def __missing__(self, name: str) -> type[Mechanism]:
        module, kind, _ = _HOMES[name]
        self.data[name] = getattr(import_module(f"afresh.mechanisms.{module}"), kind)
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        return name in _HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


def _made_by(module: str, planner: str, *arguments: Any, **wishes: Any) -> Any:
    return getattr(import_module(f"afresh.mechanisms.{module}"), planner)(*arguments, **wishes)


def _planner(name: str) -> Any:
    """The planner of a method, which is imported for the first plan."""
    module, _, planner = _HOMES[name]
    home, _, function = planner.rpartition(".")
    return partial(_made_by, home or module, function)


MECHANISMS: Mapping[str, type[Mechanism]] = _Mechanisms()
PLANNERS: Mapping[str, Planner] = {name: _planner(name) for name in OFFERED}
# The methods a plan chooses from. The others appear in every comparison too, but are used only if named.
PROMISING: Mapping[str, Planner] = {name: PLANNERS[name] for name in PLANNERS if name not in EXPECTED}
# Those whose constants can be chosen for other typical means (`typical=`) than the usual ones.
TUNED: tuple[str, ...] = ("stabilized", "symmetrized", "settled")
# Those whose comparisons of models can follow a public `disagreement=`.
FOLLOWING: tuple[str, ...] = ("symmetrized",)
# The one that releases vectors at once, for less than their numbers would cost one by one.
AT_ONCE = "symmetrized"
# The narrowest guarantee near one half, where there are many questions and answers are narrow.
AT_HALF = "symmetrized"
# The one whose budget never runs out, and its planner, from rows, failure probability and typical means.
ENDLESS, planner_without_end = "endless", _planner("endless")
# The one that `deviation=` opens.
FOR_NUMBERS = "settled"
# Promises whose intervals for numbers follow the standard deviation wherever anything is gained by it.
FOLLOWERS: tuple[str, ...] = ("settled", "stabilized")
# The one whose questions are asked in rounds.
IN_ROUNDS = "rounds"


def planner_for_deviation(rows: int, questions: int, failure: float, deviation: float) -> Mechanism | None:
    """The planner with room for numbers of this standard deviation, as a share of the range between their bounds."""
    made: Mechanism | None = _planner(FOR_NUMBERS)(rows, questions, failure, deviation=deviation)
    return made


def planner_for(rounds: int) -> Planner:
    """The planner for so many rounds."""
    return partial(_made_by, "rounds", "make_rounds", rounds=rounds)


# The one with rows that the analyst holds.
WITH_OPEN_ROWS = "checked"


def planner_with_open(share: float | None, exam: float | None = None, development: int | None = None) -> Planner:
    """The planner with that share of the rows open, or so many of the analyst's own rows, and a share for an exam."""
    if development is not None:
        return partial(_made_by, "planned_checks", "plan_own_rows", development=development, exam=exam)
    if share is None:
        return partial(_made_by, "planned_checks", "plan_checks", exam=exam)
    return partial(_made_by, "planned_checks", "plan_open_rows", share=share, exam=exam)
