"""Guess and check (section 11): guesses from one part of the rows, checked on the other."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from afresh.engines.base import Moments
from afresh.mechanisms.base import grid_step, round_to_grid
from afresh.mechanisms.session import Answers, Values, means, moments
from afresh.theory.guess_and_check import (
    History,
    Record,
    check,
    check_interval,
    check_level,
    released_interval,
    released_value,
    replay,
)
from afresh.theory.transform import Transform

_MOST_GROWTH = 4.0


@dataclass(frozen=True)
class GuessAndCheck:
    """Constants, fixed before data are seen; every method is a pure function of them and of its arguments.

    Validity rests on the check part alone; the guesser's noise s (on the scale of Theta), its variance floor v0, and
    `reach`, how many deviations of guess and check means a claim allows for, only decide how wide answers are. Each
    failure widens the claims that follow by the share `growth`, up to fourfold: failures cost more than width.
    `stabilized` guesses add noise to Theta(mu); `calibrated` ones are Figure 1's with t = 1/(4 s^2), T = t/v0.
    """

    method: ClassVar[str] = "guess-and-check"
    certified: ClassVar[bool] = True

    rows: int
    questions: int
    failure: float
    guess_rows: int
    s: float
    v0: float
    reach: float
    growth: float
    calibrated: bool = False

    @property
    def check_rows(self) -> int:
        """The rows that only check."""
        return self.rows - self.guess_rows

    @cached_property
    def _transform(self) -> Transform:
        return Transform(self.v0)

    def guess(self, moments: Moments, noise: float) -> float:
        """A guess from the guess part's moments and one standard normal number, on a public grid in [0, 1]."""
        if self.calibrated:
            scale = 2 * self.s * math.sqrt(max(moments.variance, self.v0))
            step = grid_step(2 * self.s * math.sqrt(self.v0))
            return min(max(round_to_grid(moments.mean + noise * scale, step), 0.0), 1.0)
        transformed = float(self._transform(np.asarray(min(max(moments.mean, 0.0), 1.0))))
        y = round_to_grid(transformed + self.s * noise, grid_step(self.s))
        return self._transform.inverse_at(min(max(y, 0.0), self._transform.top))

    def claim(self, guess: float, history: History) -> tuple[float, float, int]:
        """Low and high end of the claim that goes with a guess, and the number of bins should it fail.

        The claim holds the check interval of every mean within `reach` deviations of the guess.
        """
        margin = self._margin(guess) * min((1 + self.growth) ** history.failures, _MOST_GROWTH)
        level = check_level(self.questions, self.failure, history)
        low, _ = check_interval(max(guess - margin, 0.0), self.check_rows, level)
        _, high = check_interval(min(guess + margin, 1.0), self.check_rows, level)
        return low, high, math.ceil(1 / min(margin, 1.0))

    def _margin(self, guess: float) -> float:
        spread = 4 * self.s**2 + 1 / self.guess_rows + 1 / self.check_rows
        return self.reach * math.sqrt(max(guess * (1 - guess), self.v0) * spread)

    def user_claim(self, value: float, half_width: float) -> tuple[float, float, int]:
        """The same for a guess of the user's own; a failure costs as many bins as the claim is wide."""
        low, high = max(value - half_width, 0.0), min(value + half_width, 1.0)
        return low, high, math.ceil(1 / min(max(half_width, 1e-3), 1.0))

    def check(self, mean: float, guess: float, claim: tuple[float, float, int], history: History) -> Record:
        """What to release, from the check part's mean."""
        low, high, bins = claim
        level = check_level(self.questions, self.failure, history)
        return check(mean, guess, low, high, bins, self.check_rows, level)

    def interval(self, record: Record, history: History) -> tuple[float, float]:
        """The simultaneous interval of a record; `history` is what came before it."""
        level = check_level(self.questions, self.failure, history)
        return released_interval(record, self.check_rows, level)

    def replay(self, records: Iterable[Record]) -> list[tuple[float, float, float]]:
        """Value, low and high of all records, from them alone."""
        return list(replay(records, self.questions, self.failure, self.check_rows))

    def half_width(self, mean: float, history: History | None = None) -> float:
        """Of a guess that reads `mean` and passes; by default if nothing failed before. Not a promise."""
        low, high, _ = self.claim(mean, history or History())
        return (high - low) / 2

    def start(self, rng: np.random.Generator) -> Conversation:
        """A conversation in the lab: the first rows guess, the others check."""
        return Conversation(self, rng)


@dataclass
class Conversation:
    """Guess and check on one sample in memory, with all that was released."""

    constants: GuessAndCheck
    rng: np.random.Generator
    history: History = field(default_factory=History)
    records: list[Record] = field(default_factory=list)

    def answer(self, values: Values) -> Answers:
        """One guess and one check a question."""
        rule = self.constants
        guessing, checking = moments(values[:, : rule.guess_rows]), means(values[:, rule.guess_rows :])
        out = np.empty((len(values), 3))
        for i, (of_guess, check_mean) in enumerate(zip(guessing, checking, strict=True)):
            guess = rule.guess(of_guess, float(self.rng.standard_normal()))
            record = rule.check(float(check_mean), guess, rule.claim(guess, self.history), self.history)
            out[i] = released_value(record), *rule.interval(record, self.history)
            self.history = self.history.after(record)
            self.records.append(record)
        return Answers(*out.T)


# Found by a search on simulated attacks (docs/lab.md): share of rows that guess, noise, failures to expect, growth.
_GUESS_SHARE, _NOISE, _EXPECTED_FAILURES, _GROWTH = 0.6, 0.22, 0.15, 0.05


def plan_guess_and_check(rows: int, questions: int, failure: float) -> GuessAndCheck:
    """Constants that did well against the lab's attacks: noise 0.22 (sqrt(k)/n)^(1/2), three rows in five guess."""
    s = _NOISE * math.sqrt(math.sqrt(questions) / rows)
    guess_rows = min(max(round(_GUESS_SHARE * rows), 1), rows - 1)
    reach = float(-ndtri(min(_EXPECTED_FAILURES / (2 * questions), 0.25)))
    v0 = min(5 * math.sqrt(questions) / rows, 0.25)
    return GuessAndCheck(rows, questions, failure, guess_rows, s, v0, reach, _GROWTH)
