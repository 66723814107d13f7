"""An analyst that asks for histograms: of new bits, and of rows ordered by what those revealed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from afresh.lab.population import Bits, BitSample, Coordinates, Question, Values

Floats = NDArray[np.float64]

WIDE = 3  # bits per histogram, so it has eight bins


@dataclass(frozen=True, slots=True)
class Pattern:
    """Are three neighbouring bits these? As bits of one group and one number, it is a group's mean, times its size."""

    start: int
    reads: int

    def values(self, sample: BitSample) -> Values:
        """The row's weight where they do, otherwise 0."""
        return sample.weighed((_codes(sample, self.start) == self.reads).view(np.uint8))

    def truth(self, population: Bits) -> float:
        """Exactly."""
        return population.weight * float(_chances(population.p)[self.reads])


class Worth:
    """The worth of each pattern of every histogram so far, 1 or -1: one line per histogram, one column per pattern."""

    def __init__(self, lines: NDArray[np.int8]) -> None:
        """Compute the sums of a sample's rows once, for all bins."""
        self.lines = lines
        self._summed: tuple[BitSample, NDArray[np.int16]] | None = None

    def sums(self, sample: BitSample) -> NDArray[np.int16]:
        """The total worth of each row's patterns."""
        if self._summed is None or self._summed[0] is not sample:
            total = np.zeros(sample.n, dtype=np.int16)
            for j, line in enumerate(self.lines):
                total += line[_codes(sample, WIDE * j)]
            self._summed = sample, total
        return self._summed[1]

    def law(self, p: float) -> Floats:
        """The law of a row's sum, from -len(lines) on; patterns are independent."""
        mass, chances = np.ones(1), _chances(p)
        for line in self.lines:
            up = float(chances[line > 0].sum())
            mass = np.convolve(mass, [1 - up, 0.0, up])
        return mass


@dataclass(frozen=True, slots=True, eq=False)
class Rank:
    """Is the total worth of a row's patterns above low, and at most high?"""

    worth: Worth
    low: int
    high: int

    def values(self, sample: BitSample) -> Values:
        """The row's weight where it is, otherwise 0."""
        sums = self.worth.sums(sample)
        return sample.weighed(((sums > self.low) & (sums <= self.high)).view(np.uint8))

    def truth(self, population: Bits) -> float:
        """Exactly."""
        mass, size = self.worth.law(population.p), len(self.worth.lines)
        at = np.arange(-size, size + 1)
        return population.weight * float(mass[(at > self.low) & (at <= self.high)].sum())


def _codes(sample: BitSample, start: int) -> NDArray[np.intp]:
    """So many bits of each row, read as a number."""
    return sum((sample.bit(start + i).astype(np.intp) << i for i in range(WIDE)), np.zeros(sample.n, np.intp))


def _chances(p: float) -> Floats:
    """The probability of every pattern."""
    ones = np.array([reads.bit_count() for reads in range(2**WIDE)])
    chances: Floats = p**ones * (1 - p) ** (WIDE - ones)
    return chances


class Histograms:
    """Asks for histograms of eight bins, one after the other; every fifth, and the last, bins rows by what was heard.

    A pattern that came out too often has worth 1, others -1, and rows are binned by the sum, so the upper bins hold
    what happens to be over-represented in the sample.
    """

    def __init__(self, world: Any, rng: np.random.Generator, every: int = 5) -> None:
        """Plan as many histograms as the price of one admits."""
        self.world, self._turn = world, 0
        self._attacks = [turn % every == 0 or turn == self._most for turn in range(1, self._most + 1)]
        self._worth: NDArray[np.int8] = np.zeros((0, 2**WIDE), dtype=np.int8)

    @property
    def _most(self) -> int:
        return int(self.world.k // self.world.price(2**WIDE))

    def ask(self) -> Sequence[Question]:
        """Ask for one histogram."""
        if self._turn == self._most:
            return []
        if self._attacks[self._turn] and len(self._worth):
            return Coordinates(self._ranks())
        return Coordinates(Pattern(WIDE * len(self._worth), reads) for reads in range(2**WIDE))

    def hear(self, answers: Floats) -> None:
        """Note which patterns came out too often."""
        if not (self._attacks[self._turn] and len(self._worth)):
            expected = self.world.population.weight * _chances(self.world.population.p)
            worth = np.where(answers > expected, 1, -1).astype(np.int8)
            self._worth = np.vstack([self._worth, worth])
        self._turn += 1

    def _ranks(self) -> list[Question]:
        """Bins of about the same mass."""
        worth, size = Worth(self._worth), len(self._worth)
        below = np.cumsum(worth.law(self.world.population.p))
        inner = [int(np.searchsorted(below, i / 2**WIDE)) - size for i in range(1, 2**WIDE)]
        return [Rank(worth, low, high) for low, high in pairwise([-size - 1, *inner, size])]
