"""Where samples come from, and the true answer to every question about them.

`Bits` are rows of independent bits, as many as an analyst asks for. `Universe` is a finite list of rows,
drawn with replacement: every function of a row can be asked, and its truth is its mean over the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Values = NDArray[Any]  # one row per question, one column per row of the sample; numbers in [0, 1]

_BLOCK = 64  # bits are made this many at a time, when first asked for


class Question(Protocol):
    """A function of one row, known by its values on a sample and its mean over the population."""

    def values(self, sample: Any) -> Values:
        """The question's value on every row of the sample."""
        ...

    def truth(self, population: Any) -> float:
        """P[psi]."""
        ...


class Coordinates(tuple[Question, ...]):
    """Questions that are asked at once, and exclude one another on every row: at least 0, with a sum of at most 1."""


class Population(Protocol):
    """A law of rows, from which samples are drawn."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        ...

    def draw(self, n: int, rng: np.random.Generator) -> Any:
        """n independent rows."""
        ...


@dataclass(frozen=True)
class Bits:
    """Independent bits, 1 with probability p, each seen through its row's weight u as c + u (bit - c).

    Weight 1 shows the bit itself. With c = 0 and u in {0, 1} most rows always say 0: rare events, which few rows say
    anything about. With c = 1/2 they always say 1/2: small differences between two models. Uneven weights give a few
    rows most of the say in every question.
    """

    name: str
    p: float = 0.5
    centre: float = 0.0
    weights: tuple[tuple[float, float], ...] = ((1.0, 1.0),)  # pairs of weight and probability

    def draw(self, n: int, rng: np.random.Generator) -> BitSample:
        """n rows; their bits are made when a question needs them."""
        return BitSample(self, n, rng)

    @property
    def weight(self) -> float:
        """The mean weight of a row."""
        return sum(u * probability for u, probability in self.weights)

    def seen(self, mean: float) -> float:
        """The truth of a question whose plain 0/1 form has this mean."""
        return self.centre + self.weight * (mean - self.centre)

    def vote(self, signs: NDArray[np.int8]) -> Vote:
        """The vote whose truth is nearest to p: everything public about the population may be used."""
        ups, downs = int((signs > 0).sum()), int((signs < 0).sum())
        return Vote(signs, _threshold(ups, downs, self.p))


class BitSample:
    """n rows of `Bits`: a weight for each, and columns that are made when first asked for."""

    def __init__(self, population: Bits, n: int, rng: np.random.Generator) -> None:
        """Draw the weights; the bits come later, from the same generator."""
        self.population, self.n, self._rng = population, n, rng
        self._blocks: list[NDArray[np.uint8]] = []
        self._voted: NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        self._score: NDArray[np.int32] = np.zeros(n, dtype=np.int32)
        weights, probabilities = zip(*population.weights, strict=True)
        self._weight: Floats | None = None
        if set(weights) != {1.0}:
            self._weight = rng.choice(np.array(weights), size=n, p=np.array(probabilities))

    def bit(self, j: int) -> NDArray[np.uint8]:
        """The j-th bit of every row."""
        while j >= _BLOCK * len(self._blocks):
            self._blocks.append(self._draw_block())
        column: NDArray[np.uint8] = self._blocks[j // _BLOCK][j % _BLOCK]
        return column

    def score(self, signs: NDArray[np.int8]) -> NDArray[np.int32]:
        """sum_j signs_j bit_j of every row. Only what changed since the last call is added up."""
        voted = np.zeros(max(signs.size, self._voted.size), dtype=np.int8)
        voted[: self._voted.size] = self._voted
        wanted = np.zeros_like(voted)
        wanted[: signs.size] = signs
        change = wanted.astype(np.int16) - voted
        for block in range(-(-change.size // _BLOCK)):
            part = change[block * _BLOCK : (block + 1) * _BLOCK]
            changed = np.flatnonzero(part)
            if changed.size > _BLOCK // 4:
                self.bit(block * _BLOCK)
                self._score += np.einsum("i,ij->j", part, self._blocks[block][: part.size])
            else:
                for i in changed:
                    self._score += part[i] * self.bit(block * _BLOCK + int(i)).astype(np.int16)
        self._voted = wanted
        return self._score

    def seen(self, plain: Values) -> Values:
        """Plain 0/1 values as the rows' weights show them."""
        if self._weight is None:
            return plain
        centre = self.population.centre
        return centre + self._weight * (plain - centre)

    def weighed(self, plain: Values) -> Values:
        """Plain 0/1 values times the rows' weights, so that they still exclude one another."""
        return plain if self._weight is None else self._weight * plain

    def _draw_block(self) -> NDArray[np.uint8]:
        if self.population.p == 0.5:
            raw = np.frombuffer(self._rng.bytes(-(-_BLOCK * self.n // 8)), dtype=np.uint8)
            return np.unpackbits(raw)[: _BLOCK * self.n].reshape(_BLOCK, self.n)
        cut = round(self.population.p * 2**16)  # p must be a multiple of 2^-16; `bits` makes sure of it
        return (self._rng.integers(0, 2**16, size=(_BLOCK, self.n), dtype=np.uint16) < cut).view(np.uint8)


def bits(name: str, p: float = 0.5, **options: Any) -> Bits:
    """`Bits` whose p is rounded to 16 binary digits, so that what is drawn has exactly the stated truth."""
    return Bits(name, round(p * 2**16) / 2**16, **options)


@dataclass(frozen=True, slots=True)
class Bit:
    """Is the j-th bit 1?"""

    j: int

    def values(self, sample: BitSample) -> Values:
        """The bit, as the rows' weights show it."""
        return sample.seen(sample.bit(self.j))

    def truth(self, population: Bits) -> float:
        """p, as the weights show it."""
        return population.seen(population.p)


@dataclass(frozen=True, slots=True, eq=False)
class Vote:
    """Do the bits, with these signs, sum to more than the threshold?"""

    signs: NDArray[np.int8]
    threshold: int

    def values(self, sample: BitSample) -> Values:
        """1 where the vote is won."""
        return sample.seen((sample.score(self.signs) > self.threshold).view(np.uint8))

    def truth(self, population: Bits) -> float:
        """The exact truth, from two binomials."""
        ups, downs = int((self.signs > 0).sum()), int((self.signs < 0).sum())
        return population.seen(float(_beyond(ups, downs, population.p)[self.threshold + downs]))


def _beyond(ups: int, downs: int, p: float) -> Floats:
    """Pr(A - B > c) for c = -downs .. ups, A ~ Bin(ups, p) and B ~ Bin(downs, p) independent."""
    return _tail(ups + downs, 0, p) if p == 0.5 else _tail(ups, downs, p)  # a fair downs - B has B's law


@lru_cache(maxsize=4096)
def _tail(ups: int, downs: int, p: float) -> Floats:
    mass = _binomial(ups, p)
    if downs:
        from scipy.signal import fftconvolve

        mass = np.maximum(fftconvolve(mass, _binomial(downs, p)[::-1]), 0.0)
    beyond: Floats = np.append(np.cumsum(mass[::-1])[::-1][1:], 0.0)
    return np.minimum(beyond, 1.0)


@lru_cache(maxsize=4096)
def _binomial(count: int, p: float) -> Floats:
    from scipy.stats import binom

    mass: Floats = binom.pmf(np.arange(count + 1), count, p)
    return mass


@lru_cache(maxsize=4096)
def _threshold(ups: int, downs: int, p: float) -> int:
    return int(np.abs(_beyond(ups, downs, p) - p).argmin()) - downs


@dataclass(frozen=True)
class Universe:
    """`size` rows, from which samples are drawn with replacement; only the questions know what a row is.

    With `like`, questions are seen through weights of the rows as in `Bits`: rare events, small differences.
    """

    name: str
    size: int
    rows: Any = field(default=None, compare=False, repr=False)
    like: Bits | None = None

    def shaded(self, like: Bits) -> Universe:
        """The same rows with that population's weights; unchanged if every row has its full say."""
        plain = {weight for weight, _ in like.weights} == {1.0}
        return self if plain else replace(self, name=f"{self.name}, {like.name}", like=like)

    def draw(self, n: int, rng: np.random.Generator) -> Drawn:
        """The sample, as positions in the list."""
        return Drawn(self, rng.integers(0, self.size, size=n))

    def seen(self, table: Values) -> Values:
        """The values on all rows of the list (its last axis), as their weights show them."""
        if self.like is None:
            return table
        shown: Floats = self.like.centre + self._weight * (table - self.like.centre)
        return shown

    @cached_property
    def _weight(self) -> Floats:
        assert self.like is not None
        weights, shares = zip(*self.like.weights, strict=True)
        of_rows: Floats = np.repeat(weights, np.diff(np.round(np.cumsum([0.0, *shares]) * self.size).astype(int)))
        return of_rows


class Drawn(NamedTuple):
    """A sample of a `Universe`."""

    universe: Universe
    positions: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Function:
    """A question to a `Universe`: its value in [0, 1] on every row of the list."""

    table: Values

    def values(self, sample: Drawn) -> Values:
        """The values of the rows drawn."""
        looked_up: Values = sample.universe.seen(self.table)[sample.positions]
        return looked_up.view(np.uint8) if looked_up.dtype == np.bool_ else looked_up

    def truth(self, population: Universe) -> float:
        """The mean over the whole list."""
        return float(population.seen(self.table).mean(dtype=np.float64))


def evaluate(questions: Sequence[Question], sample: Any) -> Values:
    """The values of all questions, one row each."""
    return np.stack([question.values(sample) for question in questions])


POPULATIONS: dict[str, Bits] = {
    population.name: population
    for population in (
        bits("fair"),
        bits("p=0.1", 0.1),
        bits("p=0.01", 0.01),
        bits("rare", weights=((1.0, 0.02), (0.0, 0.98))),
        bits("differences", centre=0.5, weights=((1.0, 0.1), (0.0, 0.9))),
        bits("uneven", centre=0.5, weights=((1.0, 0.02), (0.1, 0.98))),
    )
}
