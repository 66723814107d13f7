"""The guard's own mechanisms in the lab: the same release and the same intervals, without an engine or a ledger."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from afresh.lab.session import Answers, Floats, Releasing, Session, Values, means, moments
from afresh.mechanisms.base import AnswersNumbers, AnswersVectors, DrawsSeveral, at_levels
from afresh.mechanisms.checked import Checked
from afresh.mechanisms.endless import Endless
from afresh.mechanisms.guess_and_check import GuessAndCheck, pack
from afresh.mechanisms.rounds import Rounds
from afresh.mechanisms.settled import Settled
from afresh.moments import Moments
from afresh.theory.guess_and_check import History, Record, released_value
from afresh.theory.symmetrized.vectors import SHARES

_NODES_PER_WIDTH = 400


class InwardTable:
    """Intervals looked up on a fine lattice of released numbers, rounded **inward**.

    Both ends increase with the released number, so the low end of the next node above and the high end of the next
    below make an interval that the real one contains: what the lab finds covered is covered. Nodes are computed when
    first needed, and narrow the interval by about 1/400.
    """

    def __init__(self, mechanism: Releasing) -> None:
        """Set the lattice by the mechanism's width in the middle."""
        self._mechanism = mechanism
        self._step = 2.0 ** math.floor(math.log2(mechanism.half_width(0.5) / _NODES_PER_WIDTH))
        self._known: dict[int, tuple[float, float]] = {}

    def __call__(self, released: Floats) -> Answers:
        """Values and intervals of released numbers."""
        values, lows, highs = np.empty((3, released.size))
        for i, y in enumerate(released.tolist()):
            at = y / self._step
            values[i] = self._mechanism.value(y)
            lows[i], highs[i] = self._ends(math.ceil(at))[0], self._ends(math.floor(at))[1]
        return Answers(values, lows, highs)

    def _ends(self, node: int) -> tuple[float, float]:
        if node not in self._known:
            self._known[node] = self._mechanism.interval(node * self._step)
        return self._known[node]


@dataclass(frozen=True)
class Certified:
    """A guard's mechanism, or a similar one: most remember nothing, so a conversation is k releases."""

    mechanism: Releasing
    certified: ClassVar[bool] = True

    @property
    def method(self) -> str:
        """The guard's name for it."""
        return self.mechanism.method

    @property
    def open_rows(self) -> int:
        """The number of rows, counted from the first, that an analyst may hold."""
        if isinstance(self.mechanism, Checked) and self.mechanism.own:
            return self.mechanism.guessing
        span = getattr(self.mechanism, "open_rows", None)
        return 0 if span is None else int(span.rows)

    def start(self, rng: np.random.Generator) -> Session:
        """Start a conversation about a new sample."""
        if isinstance(self.mechanism, Rounds):
            return _InRounds(self.mechanism)
        if isinstance(self.mechanism, Checked):
            return Checking(self.mechanism, rng)
        if isinstance(self.mechanism, Endless | Settled):
            return _OneByOne(self.mechanism, rng)
        if isinstance(self.mechanism, GuessAndCheck):
            return Guessing(self.mechanism, rng)
        return _Vectors(self, rng) if isinstance(self.mechanism, AnswersVectors) else _Noisy(self, rng)


@lru_cache(maxsize=32)  # shared by all conversations with one mechanism
def _table(mechanism: Releasing) -> InwardTable:
    return InwardTable(mechanism)


class _Noisy:
    def __init__(self, constants: Certified, rng: np.random.Generator) -> None:
        self._constants, self._rng = constants, rng

    def answer(self, values: Values) -> Answers:
        mechanism, of_each = self._constants.mechanism, moments(values)
        if values.dtype != np.uint8 and isinstance(mechanism, AnswersNumbers):
            number = at_levels(mechanism, None)
            if isinstance(number, DrawsSeveral):
                return _several(number, of_each, self._rng)
        release = mechanism.release
        noise = self._rng.standard_normal(len(of_each))
        released = np.array([release(m, float(xi)) for m, xi in zip(of_each, noise, strict=True)])
        return _table(self._constants.mechanism)(released)


class _Vectors(_Noisy):
    """The same, but questions that exclude one another are released at once."""

    def price(self, size: int) -> int:
        vector = self._mechanism.at_once(SHARES, size)
        return size if vector is None else vector.answers

    def answer_at_once(self, values: Values) -> Answers:
        vector = self._mechanism.at_once(SHARES, len(values))
        if vector is None:
            return self.answer(values)
        coordinate, noise = self._mechanism.coordinate(vector), self._rng.standard_normal(len(values))
        of_each = zip(moments(values), noise, strict=True)
        return _table(coordinate)(np.array([coordinate.release(m, float(xi)) for m, xi in of_each]))

    @property
    def _mechanism(self) -> AnswersVectors:
        mechanism = self._constants.mechanism
        assert isinstance(mechanism, AnswersVectors)
        return mechanism


class _OneByOne:
    """Several draws per answer, or answers that depend on those before them."""

    def __init__(self, mechanism: Endless | Settled, rng: np.random.Generator) -> None:
        self._mechanism, self._rng, self._records = mechanism, rng, list[Any]()

    def answer(self, values: Values) -> Answers:
        mechanism, found = self._mechanism, []
        if values.dtype != np.uint8:
            mechanism = at_levels(mechanism, None)  # type: ignore[assignment] # of the same kind
        for each in moments(values):
            draws = mechanism.draws if isinstance(mechanism, DrawsSeveral) else None
            made = mechanism.release(each, self._noise(draws))
            released = made(self._records) if callable(made) else made
            self._records.append(released)
            found.append((mechanism.value(released), *mechanism.interval(released)))
        return Answers(*np.array(found).T)

    def _noise(self, draws: int | None) -> Any:
        return float(self._rng.standard_normal()) if draws is None else self._rng.standard_normal(draws).tolist()


def _several(mechanism: Any, of_each: Sequence[Moments], rng: np.random.Generator) -> Answers:
    """Answers of several draws each."""
    found = []
    for each in of_each:
        released = mechanism.release(each, rng.standard_normal(mechanism.draws).tolist())
        found.append((mechanism.value(released), *mechanism.interval(released)))
    return Answers(*np.array(found).T)


class _InRounds:
    """Fresh rows for each question or, where a plan has fewer rounds, for all that are asked at once."""

    def __init__(self, rounds: Rounds) -> None:
        self._rounds, self._opened = rounds, 0

    def answer(self, values: Values) -> Answers:
        if self._rounds.rounds == self._rounds.questions:  # questions asked together could also be asked one by one
            own = np.stack([values[i, self._next()] for i in range(len(values))])
        else:
            own = values[:, self._next()]
        levels = 2 if values.dtype == np.uint8 else None
        found = []
        for each in moments(own):
            released = self._rounds.release(each, 0.0)
            found.append((self._rounds.value(released), *self._rounds.interval(released, levels=levels)))
        return Answers(*np.array(found).T)

    def _next(self) -> slice:
        start, self._opened = self._opened, self._opened + self._rounds.batch
        return slice(start, self._opened)


@dataclass
class Guessing:
    """Guess and check: the first rows guess, the others check; everything released is kept."""

    constants: GuessAndCheck
    rng: np.random.Generator
    history: History = field(default_factory=History)
    records: list[Record] = field(default_factory=list)

    def answer(self, values: Values) -> Answers:
        """Make one guess and one check for each question."""
        rule = self.constants
        ends = rule.guess_rows, rule.guess_rows + rule.check_rows
        guessing, checking = moments(values[:, : ends[0]]), means(values[:, ends[0] : ends[1]])
        out = np.empty((len(values), 3))
        for i, (of_guess, check_mean) in enumerate(zip(guessing, checking, strict=True)):
            guess = rule.guess(of_guess, float(self.rng.standard_normal()))
            record = rule.check(float(check_mean), guess, rule.claim(guess, self.history), self.history)
            out[i] = released_value(record), *rule.interval(pack(record, self.history))
            self.history = self.history.after(record)
            self.records.append(record)
        return Answers(*out.T)


@dataclass
class Checking:
    """Checked answers as a guard makes them: the first rows guess and the next check.

    If the analyst's own rows guess, they come first. If rows are kept for an exam, they come last, and the last
    question is the exam's only one.
    """

    constants: Checked
    rng: np.random.Generator
    records: list[dict[str, float]] = field(default_factory=list)

    def answer(self, values: Values) -> Answers:
        """Answer with one symbol for each question, or with the exact moments of the exam's rows."""
        rule, levels = self.constants, 2 if values.dtype == np.uint8 else None
        ends = rule.guessing, rule.guessing + rule.guarded
        guessing, checking = moments(values[:, : ends[0]]), moments(values[:, ends[0] : ends[1]])
        out = np.empty((len(values), 3))
        for i, both in enumerate(zip(guessing, checking, strict=True)):
            if rule.exam and len(self.records) == rule.questions - 1:
                (kept,) = moments(values[i : i + 1, -rule.exam :])
                released = rule.release(kept, 0.0, levels=levels, exam=1)
            else:
                released = rule.release(both, float(self.rng.standard_normal()), levels=levels)(self.records[-1:])
            out[i] = rule.value(released), *rule.interval(released, levels=levels)
            self.records.append(released)
        return Answers(*out.T)
