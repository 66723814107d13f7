"""Conversations with rows that release only symbols: claims, challenges, contests, and whether what they say is true.

A `Talk` releases symbols from moments, as a guard does. A `Conversation` holds one about the rows of a sample whose
population is known: its first rows are open, the others are guarded, and anything certified that is false is a miss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from afresh.lab.population import Bits, BitSample, Question, Values
from afresh.mechanisms.checked import Checked
from afresh.mechanisms.scale import hint_of, sums_of, to_unit, values_of
from afresh.mechanisms.tasks import Claim, Contest, Task
from afresh.moments import Moments
from afresh.theory.checked import node_level
from afresh.theory.exact import lower_limit
from afresh.theory.symbols import Trail

_HAIR = 1e-9  # how far beyond the truth a false claim begins
_ROUNDING = 1e-12  # of truths


class Talk:
    """One conversation: everything that was released, in order.

    If it is `forgetful`, every symbol is released as if it were the first: at a level for k questions that were fixed
    in advance, which is what people use, and which does not hold.
    """

    def __init__(self, mechanism: Checked, *, forgetful: bool = False) -> None:
        """Start with nothing released."""
        self.mechanism, self.forgetful, self.records = mechanism, forgetful, list[dict[str, float]]()

    def ask(self, guarded: Any, task: Task, *, guessing: Moments | None = None, **options: Any) -> dict[str, float]:
        """Release the next symbol, from the moments of the guarded rows; those of the open rows are for hints."""
        n = self.mechanism.guessing
        moments = guessing or Moments(n, n / 2, n / 4), guarded
        released: dict[str, float] = self.mechanism.release(moments, 0.0, task=task, **options)(self._before)
        self.records.append(released)
        return released

    @property
    def left(self) -> int:
        """The number of symbols that can still be released."""
        return self.mechanism.questions - len(self.records)

    @property
    def trail(self) -> Trail:
        """The path that decides the level of the next symbol."""
        return self.mechanism.trail(self._before)

    @property
    def _before(self) -> list[dict[str, float]]:
        return [] if self.forgetful else self.records


@dataclass(frozen=True, eq=False)
class Gain:
    """(score of the challenger - score of the incumbent + 1)/2 on every row; without one, over a model that scores 0.

    Its mean is above 1/2 if and only if the challenger is better.
    """

    challenger: Question
    incumbent: Question | None = None

    def values(self, sample: BitSample) -> Values:
        """The gain on every row."""
        against = 0.0 if self.incumbent is None else self.incumbent.values(sample)
        gained: Values = (self.challenger.values(sample) + 1.0 - against) / 2  # a float first: whole numbers wrap
        return gained

    def truth(self, population: Bits) -> float:
        """P[gain]."""
        against = 0.0 if self.incumbent is None else self.incumbent.truth(population)
        return (self.challenger.truth(population) - against + 1.0) / 2


@dataclass(frozen=True, eq=False)
class Loss:
    """1 - score of a model, on every row."""

    model: Question

    def values(self, sample: BitSample) -> Values:
        """The loss on every row."""
        return 1 - self.model.values(sample)

    def truth(self, population: Bits) -> float:
        """P[loss]."""
        return 1 - self.model.truth(population)


def levels_of(question: Question, population: Bits) -> int | None:
    """Count the values a question can have, as a guard knows them: 2 for 0 and 1, 3 with 1/2; None for a number.

    Args:
        question: A bit or a vote, a loss or a gain of one.
        population: Where rows come from.

    Returns:
        2, 3 or None.
    """
    possible = set[float]()
    for weight, _ in population.weights:
        own = {population.centre + weight * (bit - population.centre) for bit in (0, 1)}
        if isinstance(question, Gain):
            own = {(a - b + 1) / 2 for a in own for b in ({0.0} if question.incumbent is None else own)}
        possible |= {1 - each for each in own} if isinstance(question, Loss) else own
    return 2 if possible <= {0, 1} else 3 if possible <= {0, 0.5, 1} else None


class Conversation:
    """Claims and contests about one sample, and whether anything that was certified is false."""

    def __init__(self, talk: Talk, population: Bits, sample: BitSample) -> None:
        """Start with nothing asked; the sample has the rows of the talk's plan."""
        self.talk, self.population, self.sample, self.missed = talk, population, sample, False
        self._last: tuple[Question, tuple[Moments, Moments]] | None = None

    def opened(self, question: Question) -> Values:
        """The question's values on the open rows, which the analyst holds."""
        return question.values(self.sample)[: self.talk.mechanism.guessing]

    def claim(self, question: Question, low: float, high: float = 1.0, *, expected: bool) -> bool:
        """Claim that the mean is above `low` and at most `high`; return whether that passes."""
        task = Claim(low, high, expected=expected, signs=isinstance(question, Gain))
        guessing, guarded = self._moments(question)
        levels = levels_of(question, self.population)
        passed = bool(self.talk.ask(guarded, task, guessing=guessing, levels=levels)["passed"])
        if passed:
            truth = question.truth(self.population)
            self.missed |= truth > high or (truth <= low + _ROUNDING and low > 0)
        return passed

    def claim_beyond(self, question: Question, *, above: bool, expected: bool) -> bool:
        """Claim that the mean is on that side of its truth, by a hair: if that passes, it is a miss."""
        truth = question.truth(self.population)
        if above:
            return self.claim(question, min(truth + _HAIR, 1.0), expected=expected)
        return self.claim(question, 0.0, max(truth - _HAIR, 0.0), expected=expected)

    def challenge(self, challenger: Question, incumbent: Question) -> bool:
        """Claim that one model is better than another, by no more than it really is; if it is not, at all."""
        gain = Gain(challenger, incumbent)
        truth = gain.truth(self.population)
        return self.claim(gain, 0.5 if truth <= 0.5 + _ROUNDING else truth + _HAIR, expected=False)

    def contest(self, candidates: Sequence[Question], incumbent: Question | None = None, bins: int = 0) -> int:
        """Ask which candidate has the smallest mean loss, if it beats the incumbent; return its place, or -1."""
        losses: list[Question] = [Loss(each) for each in candidates]
        gains: list[Question] = [] if incumbent is None else [Gain(each, incumbent) for each in candidates]
        task = Contest(len(losses), bins, incumbent is not None, signs=True)
        guarded = [self._moments(each)[1] for each in (*losses, *gains)]
        levels = 2 if levels_of(losses[0], self.population) == 2 else None  # as a guard knows losses
        released = self.talk.ask(guarded, task, levels=levels)
        winner = int(released["winner"])
        if winner >= 0:
            low, high = self.talk.mechanism.interval(released, levels=levels)
            truth = losses[winner].truth(self.population)
            self.missed |= not low - _ROUNDING <= truth <= high + _ROUNDING
            self.missed |= bool(gains) and gains[winner].truth(self.population) <= 0.5 + _ROUNDING
        return winner

    def end_for(self, question: Question, deviations: float) -> float:
        """Find the end of a claim that passes if the guarded mean is so many deviations above the truth, or more.

        The level is public, and open rows show the spread; so a claim passes or fails wherever an analyst wants it to.
        """
        guessing, _ = self._moments(question)
        n, mechanism = self.talk.mechanism.guarded, self.talk.mechanism
        values = values_of(levels_of(question, self.population), unequal=False)
        mean = min(max(question.truth(self.population) + deviations * self.deviation(question), 0.0), 1.0)
        typical = Moments(n, n * mean, n * min(guessing.variance + mean * mean, mean))
        nats = node_level(mechanism.checking, self.talk.trail)
        limit = float(lower_limit(values, n, *sums_of(typical, values), nats, hint=hint_of(guessing, values)))
        low, _ = to_unit((limit, 1.0), values)
        # A guard takes no claim that says nothing: of a mean above 0, or of a gain above less than 1/2.
        return max(low * (1 - _HAIR), 0.5 if isinstance(question, Gain) else _ROUNDING)

    def deviation(self, question: Question) -> float:
        """The standard deviation of the guarded mean, roughly, from the open rows."""
        guessing, _ = self._moments(question)
        return math.sqrt(max(guessing.variance, 1 / guessing.n) / self.talk.mechanism.guarded)

    def _moments(self, question: Question) -> tuple[Moments, Moments]:
        """Of the open and of the guarded rows; the same question is often asked for them several times in a row."""
        if self._last is None or self._last[0] is not question:
            values, first = question.values(self.sample), self.talk.mechanism.guessing
            both = _of(values[:first]), _of(values[first : first + self.talk.mechanism.guarded])
            self._last = question, both
        return self._last[1]


def _of(values: Values) -> Moments:
    """Exact for 0, 1/2 and 1."""
    exact = values.astype(np.float64)
    return Moments(values.size, float(exact.sum()), float(exact @ exact))
