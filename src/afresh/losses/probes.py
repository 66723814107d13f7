"""Made-up predictions and labels on which a loss shows which loss it is. Nothing here knows any data.

The numbers come from Python's Mersenne Twister with a fixed seed, whose sequence Python keeps for good, and are scaled
by powers of two, so they are the same on every machine.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.models.labels import Kind

COUNT = 4096
GRID = 1e-6
"""Losses on probes are rounded to this before hashing: processors differ in the last bits of a logarithm."""
_SEED = 2018


def probes(kind: Kind, classes: tuple[Any, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Predictions and labels. For up to 64 classes they are all possible pairs."""
    if kind == "numbers":
        return _numbers()
    names = np.asarray(classes)
    if kind == "classes":
        given, truth = _pairs(len(classes)).T
        return names[given], names[truth]
    return _probabilities(len(classes)), np.resize(names, COUNT)


def digest(losses: NDArray[np.float64]) -> str:
    """A digest of losses on probes, by which a loss is recognized: 128 bits, since people read it too.

    A loss near an edge of the grid may cost a repeat, never an answer.
    """
    return hashlib.sha256(np.rint(losses / GRID).astype("<i8").tobytes()).hexdigest()[:32]


@functools.cache
def _numbers() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Labels from 2^-10 to 2^20 and predictions that are off by as various numbers; some are whole, or 0, 1, or equal.

    Where the size of a label says nothing about that of the error, a threshold for either is crossed by some.
    """
    draw, found = random.Random(_SEED), []
    for i in range(COUNT):
        label = (2 * draw.random() - 1) * 2.0 ** draw.randint(-10, 20)
        off = (2 * draw.random() - 1) * 2.0 ** draw.randint(-10, 20)
        pair = [
            (label + off, label),
            (2 * draw.random() - 1, 2 * draw.random() - 1),
            (draw.random(), float(draw.random() < 0.5)),
            (float(draw.randint(-12, 12)), float(draw.randint(-12, 12))),
            (16 * draw.random(), 16 * draw.random()),
            (label, label),
        ][i % 6]
        found.append(pair)
    given, truth = np.array(found).T.copy()
    return given, truth


@functools.lru_cache(maxsize=64)
def _pairs(count: int) -> NDArray[np.int64]:
    draw, every = random.Random(_SEED), itertools.product(range(count), repeat=2)
    chosen = every if count**2 <= COUNT else (_pair(draw, count) for _ in range(COUNT))
    return np.array(list(chosen))


def _pair(draw: random.Random, count: int) -> tuple[int, int]:
    first = draw.randrange(count)
    return first, first if draw.random() < 0.25 else draw.randrange(count)


@functools.lru_cache(maxsize=64)
def _probabilities(count: int) -> NDArray[np.float64]:
    """Of two classes the second's, from 0 to 1; of more a row that adds up to 1, some of them nearly certain."""
    draw = random.Random(_SEED)
    if count == 2:
        return np.array([round(draw.random()) if i % 16 == 0 else draw.random() for i in range(COUNT)], dtype=float)
    weights = np.array([[draw.random() ** (1 + i % 8) for _ in range(count)] for i in range(COUNT)])
    found: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return found
