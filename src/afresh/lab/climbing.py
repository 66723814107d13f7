"""Boards climbed on purpose: a world of entries, the boosting attack, and three boards to attack.

Every row's label has its own probability, and the true value of an entry is its mean loss if labels were drawn again.
Some rows are coins: nobody can know their labels, so an entry that gets them right because of what a board revealed is
right only about old labels. Climbers enter one good model again and again with different guesses for the coins, and
finally the vote of all their guesses, weighted by the board's score for each (Blum and Hardt's boosting attack, on top
of a good model).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from afresh.boards.order import Constraints, Order
from afresh.boards.pairing import LOOKED_AT, candidates, worth
from afresh.boards.rules import AGAINST
from afresh.errors import InvalidArgument
from afresh.mechanisms.symmetrized import Symmetrized, plan_symmetrized
from afresh.moments import Moments
from afresh.theory.binomial import clopper_pearson_lower, clopper_pearson_upper
from afresh.theory.symmetrized.fixed import constant_interval

ROWS, ENTRIES, CLIMBERS, ANSWERS, FAILURE = 50_000, 200, 80, 800, 0.05
COINS = 0.3  # of rows
CLEAR = 0.9  # how certain the label of any other row is
DISAGREEMENT = 0.1  # what the plan is made for
Bits = NDArray[np.bool_]


@dataclass(frozen=True)
class World:
    """Rows with labels, for entrants to predict."""

    chances: NDArray[np.float64]
    labels: Bits
    coins: NDArray[np.int64]
    """Which rows are coins."""

    @property
    def best(self) -> Bits:
        """What a perfect model predicts, with any guess for coins."""
        return self.chances > 0.5

    def truth(self, predictions: Bits) -> float:
        """The mean loss if labels were drawn again."""
        return float(np.where(predictions, 1 - self.chances, self.chances).mean())


def world(rng: np.random.Generator, rows: int = ROWS) -> World:
    """Draw a world.

    Args:
        rng: The source of randomness.
        rows: The number of rows.

    Returns:
        Rows, three in ten of which are coins.
    """
    coin, positive = rng.random(rows) < COINS, rng.random(rows) < 0.5
    chances = np.where(coin, 0.5, np.where(positive, CLEAR, 1 - CLEAR))
    return World(chances, rng.random(rows) < chances, np.flatnonzero(coin))


class Board(Protocol):
    """Takes entries, and reveals something about each one's mean loss."""

    def enter(self, predictions: Bits) -> float:
        """Enter predictions; returns the value that the board shows."""
        ...


@dataclass
class Exact:
    """The usual board: exact means over the same rows, for any number of entries."""

    world: World
    values: list[float] = field(default_factory=list)

    def enter(self, predictions: Bits) -> float:
        """The mean loss on these rows."""
        self.values.append(float((predictions != self.world.labels).mean()))
        return self.values[-1]


@dataclass
class Splits:
    """Separate rows for every entry, and Bonferroni's share of the failure probability."""

    world: World
    entries: int = ENTRIES
    failure: float = FAILURE
    values: list[float] = field(default_factory=list)
    ends: list[tuple[float, float]] = field(default_factory=list)

    def enter(self, predictions: Bits) -> float:
        """The mean loss on the entry's own rows, with an exact interval."""
        size = len(self.world.labels) // self.entries
        own = slice(size * len(self.values), size * (len(self.values) + 1))
        missed, share = int((predictions[own] != self.world.labels[own]).sum()), self.failure / self.entries / 2
        low, high = clopper_pearson_lower(missed, size, share), clopper_pearson_upper(missed, size, share)
        self.values.append(missed / size)
        self.ends.append((float(low), float(high)))
        return self.values[-1]

    def order(self) -> Order:
        """What follows."""
        graph = Constraints(len(self.values))
        for place, (low, high) in enumerate(self.ends):
            graph.score(place, low, high)
        return graph.solve()


@lru_cache
def mechanism(rows: int, answers: int, failure: float) -> Symmetrized:
    """The mechanism that guards our board.

    Args:
        rows: The number of rows of the holdout.
        answers: The number of answers for entries and comparisons.
        failure: The probability with which anything at all may miss.

    Returns:
        The mechanism of `method="symmetrized"`.

    Raises:
        InvalidArgument: There are too few rows.
    """
    found = plan_symmetrized(rows, answers, failure, disagreement=DISAGREEMENT)
    if found is None:
        raise InvalidArgument(f"there is no plan for {answers:,} answers and {rows:,} rows.")
    return found


@dataclass
class Guarded:
    """Our board: the mechanism, the choice of comparisons and the conclusions of `afresh.boards`, without a ledger."""

    world: World
    rng: np.random.Generator
    answers: int = ANSWERS
    failure: float = FAILURE
    values: list[float] = field(default_factory=list)
    spent: int = 0
    _row: float = 0.0
    _entered: list[Bits] = field(default_factory=list)
    _graph: Constraints = field(default_factory=lambda: Constraints(ENTRIES))

    def enter(self, predictions: Bits) -> float:
        """Give a noisy score, then make comparisons with the leader and the nearest while they pay off."""
        rows, own = len(self.world.labels), len(self.values)
        m = mechanism(rows, self.answers, self.failure)
        wrong = predictions != self.world.labels
        count = int(wrong.sum())
        self._pay(m.row_charge)
        y = m.release(Moments(rows, count, count), float(self.rng.standard_normal()))
        self.values.append(y)
        self._entered.append(predictions)
        self._graph.score(own, *m.interval(y))
        compared: list[int] = []
        while len(compared) < AGAINST and self.spent < self.answers - 1:
            found = self._opponent(own, compared)
            if found is None:
                break
            other, times = found
            if self._row + m.row_charge / times**2 > m.row_share:
                break
            d = wrong.astype(np.int8) - (self._entered[other] != self.world.labels)
            total = (int(d.sum(dtype=np.int64)) + rows) / 2
            noisy = m.s * times * float(self.rng.standard_normal())
            low, high = finer_interval(m, times, total / rows + noisy)
            self._pay(m.row_charge / times**2)
            self._graph.difference(own, other, 2 * low - 1, 2 * high - 1)
            compared.append(other)
        return y

    def _pay(self, row: float) -> None:
        if self.spent >= self.answers:
            raise InvalidArgument(f"the board's {self.answers:,} answers are spent.")
        self.spent += 1
        self._row += row

    def _opponent(self, own: int, compared: list[int]) -> tuple[int, float] | None:
        m = mechanism(len(self.world.labels), self.answers, self.failure)
        low, high = (ends[: own + 1] for ends in self._graph.around(own))
        for place in candidates(np.array(self.values), own, low, high)[:LOOKED_AT]:
            if place in compared:
                continue
            differ = float((self._entered[place] != self._entered[own]).mean())
            times = m.noise_following(min(differ * (1 + 1e-9), 1.0))
            if differ and times < 1 and worth(2 * finer_reach(m, times), low[place], high[place]):
                return place, times
        return None

    def order(self) -> Order:
        """What follows."""
        return self._graph.solve()


@lru_cache
def _reach(m: Symmetrized) -> float:
    half = m.coarser(0.5)  # a comparison's half-width is in proportion to its noise (17.9)
    return (half.difference_width(0.0) - m.grid) / 2 / 0.5


def finer_reach(m: Symmetrized, times: float) -> float:
    """The half-width of (1 + d)/2 with so many times the plan's noise, up to the grid.

    Args:
        m: The plan's mechanism.
        times: The multiple of the plan's noise; below 1 when the noise follows a public disagreement.

    Returns:
        A half-width on [0, 1].
    """
    return _reach(m) * times


def finer_interval(m: Symmetrized, times: float, noisy: float) -> tuple[float, float]:
    """The interval for (1 + d)/2 from a comparison with so many times the plan's noise.

    Args:
        m: The plan's mechanism.
        times: The multiple of the plan's noise; below 1 when the noise follows a public disagreement.
        noisy: The mean with its noise.

    Returns:
        Both ends, on [0, 1].
    """
    y = min(max(round(noisy / m.grid) * m.grid, 0.0), 1.0)
    return constant_interval(y, finer_reach(m, times), m.grid / 2)


def play(board: Board, of: World, rng: np.random.Generator, entries: int = ENTRIES, climbers: int = CLIMBERS) -> Any:
    """Let honest entrants and climbers enter in random order, with the climbers' vote last.

    Args:
        board: Where they enter.
        of: The rows.
        rng: The seed of everything random.
        entries: The total number of entries.
        climbers: How many of them climb.

    Returns:
        The truths of all entries, as an array.
    """
    kinds = rng.permutation(np.arange(entries - 1) < climbers - 1)
    truths, guesses, said = [], [], []
    base = of.best.copy()
    for climbs in kinds:
        predictions = entered(of, rng, climbs=bool(climbs))
        truths.append(of.truth(predictions))
        value = board.enter(predictions)
        if climbs:
            guesses.append(predictions[of.coins])
            said.append(value)
    vote = np.array(guesses, dtype=np.float64) - 0.5
    weights = np.mean(said) - np.array(said)  # a smaller loss than the others' counts as a vote for its guesses
    last = base.copy()
    last[of.coins] = weights @ vote > 0
    truths.append(of.truth(last))
    board.enter(last)
    return np.array(truths)


def entered(of: World, rng: np.random.Generator, *, climbs: bool) -> Bits:
    """Make an entry: a climber's (the best model with different guesses for the coins) or an honest one's.

    Args:
        of: The rows.
        rng: The source of randomness.
        climbs: Whether it is a climber's.

    Returns:
        Its predictions.
    """
    predictions = of.best.copy()
    if climbs:
        predictions[of.coins] = rng.random(len(of.coins)) < 0.5
    else:
        flips = rng.random(len(predictions)) < _share(rng)
        predictions[flips] ^= True
    return predictions


def _share(rng: np.random.Generator) -> float:
    """The share of rows that an honest model gets wrong: half of the models are close to the best, half far behind."""
    return float(rng.uniform(0, 0.03) if rng.random() < 0.5 else rng.uniform(0.03, 0.45))


BOARDS: dict[str, Callable[[World, np.random.Generator], Any]] = {
    "naive": lambda of, rng: Exact(of),
    "Bonferroni on splits": lambda of, rng: Splits(of),
    "afresh": Guarded,
}
