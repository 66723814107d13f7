"""Analysts: they ask, hear the answers, and ask again.

Any object with the two methods of `Analyst` can be used. A new one is made for every repeat, from a `World` and a
generator for its own coins. It knows everything about the population, but nothing about the sample except the answers
it hears.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from afresh import checks
from afresh.lab.histograms import Histograms
from afresh.lab.population import Bit, Bits, Function, Question, Universe
from afresh.lab.scientist import Scientist

Floats = NDArray[np.float64]
Found = TypeVar("Found")


@dataclass(frozen=True)
class World:
    """What an analyst knows before the first question."""

    population: Any
    n: int
    k: int
    price: Callable[[int], int] = int
    """The number of answers that this many mutually exclusive questions count as if asked at once."""


class Analyst(Protocol):
    """Asks a batch of questions, hears the answers, and so on; an empty batch ends the conversation."""

    def ask(self) -> Sequence[Question]:
        """Choose the next questions from what was heard so far."""
        ...

    def hear(self, answers: Floats) -> None:
        """Take the released values, in the order of the questions."""
        ...


Start = Callable[[World, np.random.Generator], Analyst]


class Fixed:
    """Never adapts: k bits, all at once."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        """Decide everything now."""
        self._left = [Bit(j) for j in range(world.k)]

    def ask(self) -> Sequence[Question]:
        """Ask all questions in one batch."""
        questions, self._left = self._left, []
        return questions

    def hear(self, answers: Floats) -> None:
        """Learn nothing."""


class Aggregation:
    """Votes with the signs of all earlier answers at given turns, and asks a new bit at all others.

    The votes follow accidents of the sample, so plain means get them wrong (Rogers et al. 2020). `keep` decides which
    answers get a vote, by their distance from the truth; `both` whether low ones vote downwards.
    """

    def __init__(
        self,
        world: World,
        rng: np.random.Generator,
        at: Callable[[int, int], bool],
        keep: Callable[[Floats, int], NDArray[np.bool_]] | None = None,
        both: bool = True,
    ) -> None:
        """`at(j, k)` says whether to attack at turn j, counted from 1."""
        self.world, self._keep, self._both = world, keep, both
        self._attacks = [at(j, world.k) for j in range(1, world.k + 1)]
        self._expected = Bit(0).truth(world.population)
        self.excess = np.zeros(world.k)  # for the bits heard so far
        self.bits = self.turn = 0
        self._asked_bits = False

    def ask(self) -> Sequence[Question]:
        """Ask the bits up to the next attack, or the attack itself."""
        if self.turn == self.world.k:
            return []
        stop = self.turn
        while stop < self.world.k and not self._attacks[stop]:
            stop += 1
        self._asked_bits = stop > self.turn
        if self._asked_bits:
            return [Bit(self.bits + i) for i in range(stop - self.turn)]
        return [self.world.population.vote(self.signs())]

    def signs(self) -> NDArray[np.int8]:
        """How each bit heard so far votes."""
        excess = self.excess[: self.bits]
        signs = np.where(excess >= 0, 1, -1 if self._both else 0).astype(np.int8)
        if self._keep is not None:
            signs[~self._keep(excess, self.world.n)] = 0
        return signs

    def hear(self, answers: Floats) -> None:
        """Remember on which side of the truth each bit seemed to be."""
        self.turn += answers.size
        if self._asked_bits:
            self.excess[self.bits : self.bits + answers.size] = answers - self._expected
            self.bits += answers.size


def at_last(j: int, k: int) -> bool:
    """Attack once, at the end."""
    return j == k


def at_squares(j: int, k: int) -> bool:
    """Attack at 4, 9, 16, ..., and at the end."""
    return j > 1 and (math.isqrt(j) ** 2 == j or j == k)


def at_every(step: int, j: int, k: int) -> bool:
    """Attack at every multiple of `step`, and at the end."""
    return j > 1 and (j % step == 0 or j == k)


def at_last_five(j: int, k: int) -> bool:
    """Ask everything first, then attack five times."""
    return j > max(k - 5, 1)


def outliers(excess: Floats, n: int) -> NDArray[np.bool_]:
    """Feature selection: keep only answers that seem off by at least one standard deviation of a fair bit."""
    kept: NDArray[np.bool_] = np.abs(excess) >= 0.5 / math.sqrt(n)
    return kept if kept.any() else np.ones_like(kept)


class Stopping(Aggregation):
    """Attacks at every tenth turn, and stops as soon as an attack seems to have worked."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        """Attack as at every tenth turn."""
        super().__init__(world, rng, at=partial(at_every, 10))

    def hear(self, answers: Floats) -> None:
        """Stop when an attack is two deviations off: nothing that follows could help."""
        super().hear(answers)
        if not self._asked_bits and answers[0] > self._expected + 1 / math.sqrt(self.world.n):
            self.turn = self.world.k


class Gambling(Aggregation):
    """Bets at every other turn: a random half of the bits votes, and winners are more likely to vote again."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        """Let the coins decide which bits vote."""
        super().__init__(world, rng, at=partial(at_every, 2))
        self._rng, self._stake = rng, np.zeros(world.k)
        self._bet: NDArray[np.int8] = np.zeros(0, dtype=np.int8)

    def signs(self) -> NDArray[np.int8]:
        """A bit's chance to vote grows with what it won so far."""
        chance = 1 / (1 + np.exp(-self._stake[: self.bits]))
        signs = super().signs() * (self._rng.random(self.bits) < chance)
        self._bet = (signs if signs.any() else super().signs()).astype(np.int8)
        return self._bet

    def hear(self, answers: Floats) -> None:
        """Count a bet that came out above the truth as won."""
        betting = not self._asked_bits
        super().hear(answers)
        if betting:
            won = 0.3 if answers[0] > self._expected else -0.3
            self._stake[: self._bet.size] += won * np.abs(self._bet)


class Repeating:
    """Asks a few bits many times each, so that noise averages out, then lets them vote, also many times."""

    def __init__(self, world: World, rng: np.random.Generator, times: int = 10) -> None:
        """Use nine tenths of the questions for the bits."""
        self.world, self.bits = world, max(world.k * 9 // (10 * times), 1)
        self._times, self._phase = min(times, world.k), 0
        self._mean: Floats = np.zeros(self.bits)

    def ask(self) -> Sequence[Question]:
        """Ask all bits again and again, then the vote for the rest of the questions."""
        if self._phase < self._times:
            return [Bit(j) for j in range(self.bits)][: self.world.k - self._phase * self.bits]
        if self._phase > self._times:
            return []
        signs = np.where(self._mean >= 0, 1, -1).astype(np.int8)
        return [self.world.population.vote(signs)] * (self.world.k - self._times * self.bits)

    def hear(self, answers: Floats) -> None:
        """Add up the answers."""
        if self._phase < self._times:
            self._mean[: answers.size] += answers - Bit(0).truth(self.world.population)
        self._phase += 1


class Overfitting:
    """Holds the open rows: every vote uses the sides on which other bits happen to lie there.

    Without open rows it votes at random.
    """

    def __init__(self, world: World, rng: np.random.Generator, voters: int = 201) -> None:
        """Prepare to look before asking."""
        self.world, self._rng, self._voters, self._turn = world, rng, voters, 0
        self._signs = rng.choice(np.array([-1, 1], dtype=np.int8), size=3 * voters)

    def look(self, values: Callable[[Question], NDArray[Any]]) -> None:
        """Note the side of every bit among the open rows."""
        expected = Bit(0).truth(self.world.population)
        for j in range(self._signs.size):
            seen = values(Bit(j))
            if seen.size:
                self._signs[j] = 1 if seen.mean() >= expected else -1

    def ask(self) -> Sequence[Question]:
        """Ask for a vote of some of the bits."""
        if self._turn == self.world.k:
            return []
        chosen = self._rng.choice(self._signs.size, size=self._voters, replace=False)
        signs = np.zeros_like(self._signs)
        signs[chosen] = self._signs[chosen]
        return [self.world.population.vote(signs)]

    def hear(self, answers: Floats) -> None:
        """Learn nothing new."""
        self._turn += 1


class Climbing:
    """Hill climbing on a noisy objective: turn a few of the voters, keep the change if the answer is better."""

    def __init__(self, world: World, rng: np.random.Generator, voters: int = 201, turned: int = 9) -> None:
        """Start from random voters."""
        self.world, self._rng, self._turned, self._turn = world, rng, turned, 0
        self._best = rng.choice(np.array([-1, 1], dtype=np.int8), size=voters)
        self._height = -math.inf
        self._step = self._best

    def ask(self) -> Sequence[Question]:
        """Ask about one step."""
        if self._turn == self.world.k:
            return []
        self._step = self._best.copy()
        self._step[self._rng.integers(0, self._best.size, size=self._turned)] *= -1
        return [self.world.population.vote(self._step)]

    def hear(self, answers: Floats) -> None:
        """Keep what seems better."""
        self._turn += 1
        if answers[0] > self._height:
            self._best, self._height = self._step, float(answers[0])


class Reconstructing:
    """Asks about random sets of rows to learn which rows are in the sample, then asks for exactly those.

    On a `Universe` of about n rows and with k > n exact answers, nothing stays hidden (Dinur & Nissim 2003). At the end
    it asks five times for the half of all rows that seems to be drawn most often.
    """

    LAST = 5

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        """Draw random halves of all rows."""
        self.world, self._phase = world, 0
        self._last = min(self.LAST, world.k - 1)
        self._sets = rng.random((world.k - self._last, world.population.size)) < 0.5
        self._likely = np.zeros(world.population.size)

    @staticmethod
    def own_population(n: int, like: Bits) -> Universe:
        """A universe with as many rows to tell apart as are drawn."""
        return Universe("list of rows", n).shaded(like)

    def ask(self) -> Sequence[Question]:
        """Ask for random sets, then the likely half."""
        if self._phase == 0:
            return [Function(chosen) for chosen in self._sets]
        if self._phase == 1:
            return [Function(self._likely >= np.median(self._likely))] * self._last
        return []

    def hear(self, answers: Floats) -> None:
        """Estimate how often each row was drawn, by ridge regression of the answers on the sets."""
        if self._phase == 0:
            shown = self.world.population.seen(self._sets)
            design = shown - self.world.population.seen(np.array(0.5))
            excess = answers - shown.mean(axis=1)
            size = self._sets.shape[1]
            self._likely = np.linalg.solve(design.T @ design + 0.02 * size * np.eye(size), design.T @ excess)
        self._phase += 1


ANALYSTS: dict[str, Start] = {
    "fixed": Fixed,
    "selection": partial(Aggregation, at=at_last_five, keep=outliers),
    "last": partial(Aggregation, at=at_last),
    "squares": partial(Aggregation, at=at_squares),
    "every-10": partial(Aggregation, at=partial(at_every, 10)),
    "boosting": partial(Aggregation, at=at_last_five, both=False),
    "gambling": Gambling,
    "stopping": Stopping,
    "repeating": Repeating,
    "climbing": Climbing,
    "reconstructing": Reconstructing,
    "scientist": Scientist,
}
# Made for rows that an analyst holds; harmless elsewhere.
LOOKING: dict[str, Start] = {"overfitting": Overfitting}
# Made for methods that release vectors at once; others answer bin by bin.
BINNING: dict[str, Start] = {"histograms": Histograms}


def find_analyst(name: str) -> Start:
    """The analyst of that name; `every-M`, for any M, attacks at every M-th question."""
    if match := re.fullmatch(r"every-([1-9]\d{0,8})", name if isinstance(name, str) else ""):
        return partial(Aggregation, at=partial(at_every, int(match[1])))
    return find("analyst", name, ANALYSTS | LOOKING | BINNING)


def find(kind: str, name: str, known: dict[str, Found]) -> Found:
    """The item with that name, or an error that lists all names."""
    return known[checks.one_of(kind, name, known)]
