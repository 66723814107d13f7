"""Every mechanism by name, with the constants it plays with at n rows, k questions and failure probability beta."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from afresh.errors import InvalidArgument
from afresh.lab.baselines.calibrated_guesses import plan_calibrated_guesses
from afresh.lab.baselines.calibrated_laplace import plan_calibrated_laplace
from afresh.lab.baselines.empirical import Empirical
from afresh.lab.baselines.fixed_gaussian import plan_fixed_gaussian
from afresh.lab.baselines.fixed_laplace import plan_fixed_laplace
from afresh.lab.baselines.ladder import Ladder
from afresh.lab.baselines.ladder_free import ParameterFreeLadder
from afresh.lab.baselines.median import StableMedian
from afresh.lab.baselines.subsampling import Subsampling
from afresh.lab.baselines.thresholdout import Thresholdout
from afresh.lab.certified import Certified
from afresh.lab.session import Interactive, Releasing
from afresh.mechanisms.endless import plan_endless
from afresh.mechanisms.guess_and_check import plan_guess_and_check
from afresh.mechanisms.planned_checks import plan_open_rows, plan_own_rows
from afresh.mechanisms.registry import PLANNERS

Make = Callable[[int, int, float], Interactive]


def _certified(name: str, planner: Callable[[int, int, float], Releasing | None]) -> Make:
    def make(rows: int, questions: int, failure: float) -> Interactive:
        planned = planner(rows, questions, failure)
        if planned is None:
            raise InvalidArgument(
                f"{name} has no plan for {questions:,} questions to {rows:,} rows; give it more rows."
            )
        return Certified(planned)

    return make


# The guard's mechanisms, and those of the lab that also have a certificate.
_PLANNERS: dict[str, Callable[[int, int, float], Releasing | None]] = {
    **PLANNERS,
    "endless": lambda rows, questions, failure: plan_endless(rows, failure, expected=questions),
    "calibrated-laplace": plan_calibrated_laplace,
    "fixed-gaussian": plan_fixed_gaussian,
    "fixed-laplace": plan_fixed_laplace,
    "guess-and-check": plan_guess_and_check,  # `checked` is its successor
    "guess-and-check-calibrated": plan_calibrated_guesses,
    "open-half": partial(plan_open_rows, share=0.5),
    # Half of the rows are the analyst's own, and a fifth is kept for an exam: the last question.
    "development": lambda n, k, failure: plan_own_rows(n - n // 2, k, failure, development=n // 2),
    "exam": partial(plan_open_rows, share=0.4, exam=0.2),
}
CERTIFIED = tuple(_PLANNERS)
MECHANISMS: dict[str, Make] = {
    **{name: _certified(name, planner) for name, planner in _PLANNERS.items()},
    "empirical": Empirical,
    "thresholdout": Thresholdout,
    "ladder": Ladder,
    "ladder-free": ParameterFreeLadder,
    "stable-median": StableMedian,
    "subsampling": Subsampling,
}
