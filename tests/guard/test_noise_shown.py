"""Noise is shown beside the guarantee: a value may look far more precise than it is."""

import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.mechanisms.registry import PLANNERS
from afresh.models.verdicts import Comparison
from afresh.statistics import GroupMeans, Histogram

RNG = np.random.default_rng(7)
N = 20_000
ALIKE = 8  # columns of each kind, so that a guard has several numbers of each to tell
FRAME = pd.DataFrame(
    {f"hit{i}": RNG.random(N) < 0.3 for i in range(ALIKE)}
    | {f"x{i}": RNG.random(N) for i in range(ALIKE)}
    | {f"group{i}": RNG.integers(0, 3, N) for i in range(ALIKE)}
)


def asked(i: int) -> list[Any]:
    return [
        f"hit{i}",
        f"x{i} < 0.02",
        {"expression": f"x{i}", "bounds": (0, 1)},
        {"expression": f"hit{i}", "where": f"group{i} = 1"},
    ]


def truths(i: int) -> list[float]:
    hit, x, group = (FRAME[f"{name}{i}"] for name in ("hit", "x", "group"))
    return [hit.mean(), (x < 0.02).mean(), x.mean(), hit[group == 1].mean()]


@pytest.mark.parametrize("method", PLANNERS)
def test_the_noise_that_is_told_is_about_that_of_the_values(method: str) -> None:
    """The spread of values about the sample's mean is at most what is told, and of that order: 15 seeds, 8 columns.

    The mean square of 120 normal numbers is within a factor of 2 with probability 1 - 1e-8; seeds are fixed.
    """
    sample = np.array([truths(i) for i in range(ALIKE)])
    errors: list[Any] = []
    told: list[Any] = []
    for seed in range(15):
        with afresh.open(FRAME, questions=50, method=method, simulation_seed=seed, made_up=True) as guard:
            answers = guard.ask_many([question for i in range(ALIKE) for question in asked(i)])
        errors.extend(np.reshape([a.value for a in answers], sample.shape) - sample)
        told.extend(np.reshape([a.noise for a in answers], sample.shape))
    if not np.any(told):  # means of a round's own rows are exact
        assert method == "rounds"
        return
    found, said = 1.96 * np.sqrt(np.mean(np.square(errors), axis=0)), np.mean(told, axis=0)
    if method == "checked":  # guesses are noisy means of three rows in five
        found = np.sqrt(np.maximum(found**2 - (1.96**2) * (2 / 3) * np.array([0.21, 0.0196, 0.083, 0.63]) / N, 0))
    assert (found <= 1.45 * said).all()
    assert (found[[0, 1, 3]] >= said[[0, 1, 3]] / 3).all()


def test_it_is_shown_beside_the_guarantee() -> None:
    with afresh.open(FRAME, questions=50, method="stabilized", simulation_seed=1, made_up=True) as guard:
        answer = guard.ask("hit0")
        assert f"{answer.shown()[0]} (noise ±" in str(answer)
        assert f"guaranteed {answer.shown()[1]} to {answer.shown()[2]}" in str(answer)
        assert 0 < json.loads(answer.to_json())["noise"] < answer.interval.half_width
        empty = guard.ask("hit0", where="group0 = 9")
        assert "(noise" not in str(empty)
    with afresh.open(FRAME, questions=50, rounds=2, simulation_seed=1, made_up=True) as guard:
        assert "(noise" not in str(guard.ask("hit0"))
    y = RNG.integers(0, 2, N)
    with afresh.holdout(
        FRAME[["x0"]].to_numpy(), y, questions=50, method="calibrated", simulation_seed=1, made_up=True
    ) as h:
        compared = h.compare(y, np.where(RNG.random(N) < 0.1, 1 - y, y))
        assert isinstance(compared, Comparison)
        assert compared.noise > 0
        assert "(noise ±" in str(compared)


@pytest.mark.parametrize("method", ["stabilized", "symmetrized", "settled", "calibrated", "checked"])
def test_tables_of_several_answers_show_it_too(method: str) -> None:
    with afresh.open(FRAME, questions=100, method=method, simulation_seed=1, made_up=True) as guard:
        several = guard.ask_many(["hit0", {"expression": "x0", "bounds": (0, 1)}])
        bins = guard.measure(Histogram("x1", [0, 0.25, 0.5, 1]))
        some = guard.measure(Histogram("x1", [0, 0.25, 0.5, 1], where="group0 = 1"))
        means = guard.measure(GroupMeans("hit1", by="group1", categories=[0, 1, 2]))
    tables: list[Any] = [several, bins, some, means]
    for table in tables:
        found = list(table.answers.values()) if hasattr(table, "answers") else list(table)
        assert all(0 < each.noise < each.interval.half_width for each in found)
        for each in found:
            assert re.search(rf"{re.escape(each.shown()[0])} +±0\.\d+ +{re.escape(each.shown()[1])}", str(table))
    models = {name: RNG.integers(0, 2, N) for name in "abc"}
    with afresh.holdout(
        FRAME[["x0"]].to_numpy(), models["a"], questions=50, method=method, simulation_seed=1, made_up=True
    ) as h:
        assert re.search(r" b +0\.\d+ +±0\.\d+ +\[", str(h.best_of(models)))


def test_exact_means_have_no_column_for_it() -> None:
    with afresh.open(FRAME, questions=50, rounds=2, simulation_seed=1, made_up=True) as guard:
        assert "±" not in str(guard.ask_many(["hit0", "hit1"]))
