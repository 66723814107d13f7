"""What was released reads the same on every processor, whose elementary functions differ in their last bits.

Here every logarithm, exponential, quantile, ... that afresh calls is off by two units in the last place, upward,
downward or at random. That is more than numpy's kernels for AVX2, AVX-512 and AArch64 differ by.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import scipy.special

import afresh
from afresh.mechanisms.base import at_coarseness, coarseness_for
from afresh.planning.plan import Plan
from afresh.receipts import verify
from afresh.statistics import Quantile, Variance
from afresh.theory import beta, special

ULPS = 2
ELEMENTARY = ("log", "log1p", "log2", "exp", "expm1", "asin", "lgamma", "erf", "erfc")
OF_NUMPY = ("log", "log1p", "exp", "expm1", "arcsin", "sin", "cos", "arctan")
OF_SCIPY = ("betaincinv", "betainccinv", "betaincc", "ndtri_exp", "wrightomega")
SPECIAL = ("ndtr", "ndtri", "log_ndtr", "erfc", "erfcx", "gammaln", "stirling_rest", "log_sum_exp")
QUANTILES = ("lower_quantile", "upper_quantile")
WAYS = ("up", "down", "any")
METHODS = ("stabilized", "symmetrized", "calibrated", "rounds", "checked")


def perturbed(function: Callable[..., Any], way: str) -> Callable[..., Any]:
    """The function with a result that is off by a little; a number stays a number, an array an array."""

    def other(*arguments: Any, **options: Any) -> Any:
        value = function(*arguments, **options)
        if options.get("out") is not None or not isinstance(value, float | np.floating | np.ndarray):
            return value
        side = {"up": math.inf, "down": -math.inf}.get(way)
        if side is None:  # as if at random, but the same every time
            side = math.inf if int(np.asarray(value, dtype=float).view(np.uint64).sum()) % 3 else -math.inf
        moved = np.asarray(value, dtype=float)
        for _ in range(ULPS):
            moved = np.nextafter(moved, side)
        moved = np.where(np.isfinite(value) & (np.asarray(value) != 0), moved, value)
        return type(value)(moved) if isinstance(value, float | np.floating) else moved

    return other


@contextmanager
def another_processor(way: str) -> Iterator[None]:
    """All of afresh computes with perturbed functions."""
    replaced: dict[Any, Any] = {}
    elementary: dict[str, Any] = {name: perturbed(getattr(math, name), way) for name in ELEMENTARY}
    with mock.patch.multiple(math, **elementary):
        for module, names in ((np, OF_NUMPY), (scipy.special, OF_SCIPY), (special, SPECIAL), (beta, QUANTILES)):
            for name in names:
                if hasattr(module, name):
                    replaced[getattr(module, name)] = perturbed(getattr(module, name), way)
        patches = [mock.patch.object(np, name, replaced[getattr(np, name)]) for name in OF_NUMPY]
        for module_name, module in list(sys.modules.items()):
            if module_name.startswith("afresh."):
                for name, value in list(vars(module).items()):
                    if getattr(value, "__hash__", None) and callable(value) and _known(value, replaced):
                        patches.append(mock.patch.object(module, name, replaced[value]))
        for patch in patches:
            patch.start()
        at_coarseness.cache_clear()
        coarseness_for.cache_clear()
        try:
            yield
        finally:
            for patch in reversed(patches):
                patch.stop()
            at_coarseness.cache_clear()
            coarseness_for.cache_clear()


def _known(value: Any, replaced: dict[Any, Any]) -> bool:
    try:
        return value in replaced
    except TypeError:
        return False


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    n = 20_000
    return pd.DataFrame(
        {
            "hit": rng.random(n) < 0.3,
            "rare": rng.random(n) < 0.002,
            "x": rng.gamma(2.0, 1.0, n),
            "g": rng.integers(0, 4, n),
        }
    )


def ask_all(guard: afresh.Guard) -> list[Any]:
    answers: list[Any] = [
        *guard.ask_many(["hit", "rare", "g < 9", {"expression": "x", "bounds": (0, 10)}]),
        guard.ask("hit", where="g = 2"),
        guard.measure(Variance("x", (0, 10))),
        guard.measure(Quantile("x", 0.5, (0, 10), points=4)),
    ]
    return [(answer.value, answer.low, answer.high) for answer in answers]


def opened(frame: pd.DataFrame, method: str, ledger: Path) -> afresh.Guard:
    return afresh.open(frame, questions=40, method=method, ledger=ledger, allow_wide=True)


def test_the_functions_are_perturbed() -> None:
    before = math.log(3), float(np.exp(1.5)), afresh.plan(10**5, 100, method="stabilized").half_width(0.3)
    with another_processor("up"):
        after = math.log(3), float(np.exp(1.5)), afresh.plan(10**5, 100, method="stabilized").half_width(0.3)
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert math.log(3) == before[0]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", METHODS)
def test_what_was_released_reads_the_same_bit_by_bit(
    frame: pd.DataFrame, tmp_path: Path, method: str, way: str
) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with opened(frame, method, ledger) as guard:
        told, log, receipt = ask_all(guard), guard.transcript.to_dict(), guard.receipt()
    with another_processor(way), afresh.open(frame, ledger=ledger) as guard:
        assert ask_all(guard) == told
        assert guard.transcript.to_dict() == log
        again = guard.receipt()
        assert {name: again[name] for name in ("questions", "answers", "chain")} == {
            name: receipt[name] for name in ("questions", "answers", "chain")
        }
        assert guard.budget.left == 40 - len(log_numbers(log))
        guard.ask("hit AND g = 1")  # and goes on, whatever came before
        assert verify(json.dumps(guard.receipt())).passed
    with afresh.open(frame, ledger=ledger) as guard:
        assert ask_all(guard) == told
        outcome = verify(json.dumps(guard.receipt()))
        assert outcome.passed, str(outcome)


def log_numbers(log: dict[str, Any]) -> set[int]:
    return {part["number"] for record in log["questions"] for part in record["parts"] or [record]}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", METHODS)
def test_ends_move_far_less_than_verify_tolerates(method: str, way: str) -> None:
    """The figure that the comment on `TOLERANCE` states."""
    frozen = [afresh.plan(n, k, c, method=method).limits for n, k, c in CELLS if method != "rounds" or k <= n]

    def ends() -> list[float]:
        found: list[float] = []
        for limits in frozen:
            mechanism = Plan.thaw(limits).mechanism
            for mean in (0.0, 1e-4, 0.01, 0.3, 0.5, 0.99, 1.0):
                if method == "checked":
                    place = float(min(int(mean * 40), 39))
                    cell = {"guess": mean, "deviation": -1.0, "low": 0.0, "high": 1.0, "cells": 40.0}
                    path = {"steps": 7.0, "events": 2.0, "nats": 6.5, "first": place, "last": place + 1}
                    low, high = mechanism.interval({"task": 0.0, "values": 0.0, **cell, **path})
                elif method == "rounds":
                    n = mechanism.batch or 0
                    sums = {"rows": float(n), "total": mean * n, "squares": mean * n * 0.7, "look": 1.0}
                    sums["squares"] = max(sums["squares"], mean * mean * n)
                    low, high = mechanism.interval(sums)
                else:
                    released = mean * (mechanism._transform.top if method == "stabilized" else 1)  # type: ignore[attr-defined]
                    low, high = mechanism.interval(released)
                found += [low, high]
        return found

    here = ends()
    with another_processor(way):
        there = ends()
    assert max(abs(a - b) for a, b in zip(here, there, strict=True)) <= 1e-11


CELLS = [(1000, 10, 0.95), (10**5, 1000, 0.95), (10**6, 100, 0.999), (10**8, 10_000, 0.95), (2000, 50, 1 - 1e-9)]
