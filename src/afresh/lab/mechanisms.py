"""Every mechanism by name, with the constants it plays with at n rows, k questions and failure probability beta."""

from __future__ import annotations

from collections.abc import Callable

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
from afresh.mechanisms.calibrated import plan_calibrated
from afresh.mechanisms.guess_and_check import plan_guess_and_check
from afresh.mechanisms.split import plan_split
from afresh.mechanisms.stabilized import plan_stabilized

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


MECHANISMS: dict[str, Make] = {
    "stabilized": _certified("stabilized", plan_stabilized),
    "calibrated": _certified("calibrated", plan_calibrated),
    "calibrated-laplace": _certified("calibrated-laplace", plan_calibrated_laplace),
    "fixed-gaussian": _certified("fixed-gaussian", plan_fixed_gaussian),
    "fixed-laplace": _certified("fixed-laplace", plan_fixed_laplace),
    "split": _certified("split", plan_split),
    "guess-and-check": _certified("guess-and-check", plan_guess_and_check),
    "guess-and-check-calibrated": _certified("guess-and-check-calibrated", plan_calibrated_guesses),
    "empirical": Empirical,
    "thresholdout": Thresholdout,
    "ladder": Ladder,
    "ladder-free": ParameterFreeLadder,
    "stable-median": StableMedian,
    "subsampling": Subsampling,
}
