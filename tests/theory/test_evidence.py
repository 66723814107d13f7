"""Mixtures of bets and Holm's method: by enumeration, and against the definitions."""

from __future__ import annotations

import math
from itertools import product

import mpmath
import numpy as np
import pytest

from afresh.theory.evidence import MIXED, holm, mixture, stakes

VALUES = np.array([-1.0, -0.5, 0.0, 0.25, 1.0])


@pytest.mark.parametrize("rows", [2, 4, 6])
def test_no_evidence_is_expected_where_there_is_none(rows: int) -> None:
    """All samples of rows with laws of their own, whose means add up to 0: E is at most 1 on average."""
    dice = np.random.default_rng(3)
    samples = np.array(list(product(range(len(VALUES)), repeat=rows)))
    found = np.exp(mixture(VALUES[samples], 3.0))
    for _ in range(50):
        laws = dice.dirichlet(np.full(len(VALUES), 0.4), rows)
        excess = (laws @ VALUES).mean()
        if excess > 0:  # move mass to -1 until the average mean is 0
            laws = laws * (1 - excess / (1 + excess)) + np.eye(len(VALUES))[0] * excess / (1 + excess)
        assert (laws @ VALUES).mean() < 1e-12
        chance = np.prod([law[samples[:, row]] for row, law in enumerate(laws)], axis=0)
        assert chance @ found <= 1 + 1e-9


def test_against_exact_products() -> None:
    values = np.random.default_rng(5).uniform(-1, 1, (3, 40))
    for row, found in zip(values, mixture(values, 8.0), strict=True):
        with mpmath.workdps(40):
            bets = [mpmath.fprod(1 + mpmath.mpf(lam) * mpmath.mpf(d) for d in row) for lam in stakes(40, 8.0).tolist()]
            exact = mpmath.log(mpmath.fsum(bets) / MIXED)
        assert found == pytest.approx(float(exact), abs=1e-8)
        assert found <= exact


def test_stakes_are_bets() -> None:
    for rows, nats in product((1, 10, 1000, 10**7), (0.1, 5.0, 40.0)):
        assert ((stakes(rows, nats) > 0) & (stakes(rows, nats) < 1)).all()


def test_values_tell_more_than_nothing() -> None:
    """A gap of 0.03 with a deviation of 0.19 on 1,000 rows at 7.6 nats is seen in eight of ten runs.

    That 30 of 60 runs or fewer see it then has a probability below 1e-7.
    """
    dice = np.random.default_rng(7)
    found = mixture(np.clip(dice.normal(0.03, 0.19, (60, 1000)), -1, 1), math.log(2000))
    assert (found >= math.log(2000)).mean() > 0.5


def _textbook(p: list[float], alpha: float) -> set[int]:
    """Step down: reject the smallest while p <= alpha/(m - k)."""
    fallen: set[int] = set()
    while len(fallen) < len(p):
        smallest = min((q, place) for place, q in enumerate(p) if place not in fallen)
        if smallest[0] > alpha / (len(p) - len(fallen)):
            break
        fallen.add(smallest[1])
    return fallen


def test_holm() -> None:
    dice = np.random.default_rng(1979)
    for _ in range(300):
        p = (dice.random(dice.integers(1, 12)) ** 4).tolist()
        assert set(holm(-np.log(p), 0.1)) == _textbook(p, 0.1)
    assert list(holm(np.array([]), 0.1)) == []
