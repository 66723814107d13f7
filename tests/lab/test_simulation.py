"""Repeats are reproducible, resumable and the same in parallel; attacks do what they are known for."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from afresh.errors import InvalidArgument
from afresh.lab.analysts import World
from afresh.lab.baselines.empirical import Empirical
from afresh.lab.population import Bit, Floats, Question
from afresh.lab.simulation import Trial, run, simulate

TRIAL = Trial("calibrated", "squares", "fair", 400, 30)


class TwoQuestions:
    """An analyst of one's own: any object with the two methods."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.heard: list[Floats] = []

    def ask(self) -> Sequence[Question]:
        return [Bit(0), Bit(1)] if not self.heard else []

    def hear(self, answers: Floats) -> None:
        self.heard.append(answers)


class Greedy(TwoQuestions):
    """Never stops."""

    def ask(self) -> Sequence[Question]:
        return [Bit(len(self.heard))]


def test_repeats_are_reproducible_and_independent_of_each_other() -> None:
    whole = run(TRIAL, range(6))
    assert run(TRIAL, [4]) == {name: [column[4]] for name, column in whole.items()}
    assert len(set(whole["last_error"])) > 1
    assert run(Trial("calibrated", "squares", "fair", 400, 30, seed=1), range(6)) != whole


def test_parallel_and_resumed_runs_give_the_same(tmp_path: Path) -> None:
    trials, calls = [TRIAL, Trial("empirical", "last", "p=0.1", 400, 30)], list[int]()
    straight = simulate(trials, 30)
    assert simulate(trials, 30, tmp_path, processes=2, progress=calls.append) == straight
    assert sum(calls) == 60
    files = sorted(tmp_path.glob("*.parquet"))
    assert len(files) == 4  # two parts each
    files[0].unlink()
    kept = {file: file.stat().st_mtime_ns for file in files[1:]}
    assert simulate(trials, 30, tmp_path) == straight
    assert {file: file.stat().st_mtime_ns for file in files[1:]} == kept  # read, not run again
    assert files[0].exists()


def test_any_analyst_and_mechanism_can_be_plugged_in() -> None:
    assert run(Trial(Empirical, TwoQuestions, "fair", 100, 5), range(2))["answers"] == [2, 2]
    with pytest.raises(InvalidArgument, match="Greedy asked more than the 5 questions"):
        run(Trial(Empirical, Greedy, "fair", 100, 5), range(1))


@pytest.mark.parametrize("field", ["mechanism", "analyst", "population"])
def test_unknown_names_are_refused_with_the_known_ones(field: str) -> None:
    nonsense: dict[str, Any] = {field: "nonsense"}
    trial = replace(Trial("empirical", "fixed", "fair", 100, 5), **nonsense)
    with pytest.raises(InvalidArgument, match=f"{field} == 'nonsense', must be one of"):
        run(trial, range(1))


@pytest.mark.parametrize(
    ("analyst", "n", "k", "least"),
    [
        ("selection", 1000, 200, 0.10),
        ("last", 1000, 200, 0.10),
        ("squares", 1000, 200, 0.10),
        ("every-10", 1000, 200, 0.10),
        ("every-50", 1000, 200, 0.10),
        ("boosting", 1000, 200, 0.07),
        ("gambling", 1000, 200, 0.06),
        ("stopping", 1000, 200, 0.03),
        ("repeating", 1000, 400, 0.04),
        ("climbing", 1000, 400, 0.03),
        ("reconstructing", 100, 400, 0.25),
        ("last", 100, 400, 0.30),
    ],
)
def test_every_attack_fools_the_plain_mean(analyst: str, n: int, k: int, least: float) -> None:
    """The last answer is off by at least this much on average over ten fixed seeds; fixed questions by .00."""
    assert np.mean(run(Trial("empirical", analyst, "fair", n, k), range(10))["last_error"]) > least


def test_a_scientist_tunes_a_real_model() -> None:
    pytest.importorskip("sklearn")
    columns = run(Trial("stabilized", "scientist", "fair", 2000, 12), range(1))
    assert columns["answers"] == [12]
    assert columns["misses"] == [0]
    assert 0.5 < columns["last_truth"][0] < 0.8
