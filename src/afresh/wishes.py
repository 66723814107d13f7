"""What a caller asks of a plan: the checks are the same on a first and on a later opening."""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, SupportsFloat

from afresh.errors import InvalidArgument
from afresh.mechanisms.guess_and_check import GUESSERS, GuessAndCheck

if TYPE_CHECKING:
    from afresh.plan import Plan

MOST = 10**10  # rows or questions that a plan considers
_LEAST_FAILURE = 1e-9  # of a probability near 0 or 1, floats and quadratures still know enough


def complement(probability: float) -> float:
    """1 - p as people write it: 0.05 for 0.95, not 0.050000000000000044."""
    return float(1 - Decimal(repr(probability)))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a caller asks of a plan, checked; None leaves it open."""

    questions: int | None
    confidence: float | None
    method: str | None
    answers: int | None
    guesser: str | None

    @property
    def given(self) -> bool:
        """Whether anything is asked for."""
        wishes = self.questions, self.confidence, self.method, self.answers, self.guesser
        return any(wish is not None for wish in wishes)

    def differing(self, plan: Plan) -> str:
        """In words, where a plan is not what is wished; empty if it is."""
        failure = None if self.confidence is None else complement(self.confidence)
        pairs = (
            ("questions", self.questions, self.questions, plan.questions),
            ("confidence", self.confidence, failure, plan.mechanism.failure),
            ("method", self.method, self.method, plan.method),
            ("answers", self.answers, self.answers, plan.answers),
            ("guesser", self.guesser, self.guesser, plan.guesser),
        )
        said = [f"{name}={shown!r}" for name, shown, value, kept in pairs if value is not None and value != kept]
        if not said:
            return ""
        kept = f"questions={plan.questions}, confidence={plan.confidence}, method={plan.method!r}"
        if plan.answers != plan.questions:
            kept += f", answers={plan.answers}"
        if plan.guesser is not None:
            kept += f", guesser={plan.guesser!r}"
        return f"The plan of these data is {kept}, and now they are opened with {', '.join(said)}."


def check_wishes(
    questions: int | None,
    confidence: float | None,
    method: str | None,
    answers: int | None,
    guesser: str | None,
    methods: Collection[str],
) -> Wishes:
    """What is wished, or `InvalidArgument`."""
    return Wishes(
        None if questions is None else check_count("questions", questions, 1),
        None if confidence is None else check_confidence(confidence),
        None if method is None else check_method(method, methods),
        None if answers is None else check_count("answers", answers, questions or 1),
        None if guesser is None else check_guesser(guesser, GuessAndCheck.method if method is None else method),
    )


def check_confidence(confidence: float) -> float:
    """A probability, not too near 0 or 1."""
    if isinstance(confidence, bool | str | bytes) or not isinstance(confidence, SupportsFloat):
        raise InvalidArgument(f"confidence == {confidence!r}, must be a number, for example 0.95.")
    value = float(confidence)
    if not 0 < value < 1:
        raise InvalidArgument(f"confidence == {confidence}, must be in (0, 1), for example 0.95.")
    if not _LEAST_FAILURE <= value <= 1 - _LEAST_FAILURE:
        raise InvalidArgument(f"confidence == {confidence}, must be {_LEAST_FAILURE:g} or more away from 0 and 1.")
    return value


def check_method(method: str, methods: Collection[str]) -> str:
    """One of the methods."""
    if not isinstance(method, str) or method not in methods:
        raise InvalidArgument(f"method == {method!r}, must be one of {', '.join(methods)}.")
    return method


def check_guesser(guesser: str, method: str | None) -> str:
    """One of the mechanisms that can guess, where there is something to guess."""
    if not isinstance(guesser, str) or guesser not in GUESSERS:
        raise InvalidArgument(f"guesser == {guesser!r}, must be one of {', '.join(GUESSERS)}.")
    if method != GuessAndCheck.method:
        raise InvalidArgument(
            f"guesser == {guesser!r} goes with method={GuessAndCheck.method!r} only; say so, or leave it out."
        )
    return guesser


def check_count(name: str, value: int, fewest: int) -> int:
    """A whole number that is not too small."""
    try:
        count = operator.index(value)
    except TypeError:
        raise InvalidArgument(f"{name} == {value!r}, must be a whole number.") from None
    if isinstance(value, bool):
        raise InvalidArgument(f"{name} == {value!r}, must be a whole number.")
    if count < fewest:
        raise InvalidArgument(f"{name} == {value}, must be at least {fewest}.")
    if count > MOST:
        raise InvalidArgument(f"{name} == {value}, must be at most {MOST:,}.")
    return count
