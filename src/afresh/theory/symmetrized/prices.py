"""What plain answers pay so that the noise of numbers can follow their standard deviation (17.10).

Numbers need room on every row, events of G, and a curve that pays for their first draws, all of which make plain
answers wider. The usual plan makes them at most 1% wider. Where that is not enough, they become wider by as much as it
takes: the lowest of `PRICES` at which a number of the usual deviation is clearly narrower than a plain answer without
any room. Where no price is enough, there is no room, and numbers follow their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from afresh.errors import InvalidArgument
from afresh.theory.symmetrized.common import Common, best_curve, farthest, highest, rate_of, typical_width
from afresh.theory.symmetrized.constants import Constants, constants
from afresh.theory.symmetrized.fixed import round_noise
from afresh.theory.symmetrized.numbers import (
    EVENTS,
    LEAST,
    MOST_FIRSTS,
    WORTH,
    fine_usual,
    finest_affordable,
    first_exponent,
    is_worth_it,
    leaves_room,
    row_room,
    suited_firsts,
    usual_width,
)

USUAL, OF_ONE_MEAN = 1.01, 1.006
"""How much wider plain answers become in most plans, and in those for one mean."""
PRICES = (1.01, 1.02, 1.03, 1.05, 1.075, 1.1, 1.15, 1.2, 1.3)
"""How much wider they may become elsewhere."""
# What is tried there. With very few questions a plan's own bend l is near 1, where nothing is left of an answer after
# its first draws; a smaller one leaves room for them, and more noise suits it.
_LESS_NOISE = 0.85
_NOISES, _STEPS = (_LESS_NOISE, math.sqrt(2), 2.0), (8.0, 2.0)  # times the plan's noise, and the t of others
_MOST_RATE, _RATES = 16.0, (1.0, 0.7, 0.5, 0.25)
_FIRSTS = (1.0, 1 / 2, 1 / 4, 1 / 16, 1 / 64, 1 / 256)
_FINENESSES = 5


@dataclass(frozen=True, slots=True)
class Room:
    """A plan with room for numbers: its curve, the finest noise of their last draw, and what first draws count for."""

    common: Common
    numbers: float
    firsts: float

    @property
    def plain(self) -> float:
        """How far a truth may be from a plain answer."""
        return _plain(self.common)

    @property
    def of_numbers(self) -> float:
        """The same for a number of the usual deviation, if its centre is as far from its mean as is usual."""
        return usual_width(self.common, self.numbers, self.firsts, away=1.0)


def room_for_numbers(found: Common, typical: tuple[float, ...]) -> Room | None:
    """The same plan with room for numbers, at the lowest price; None if they gain nothing at any."""
    return _at_the_usual_price(found, typical) or _at_a_higher_price(found, typical)


def highest_with_firsts(common: Common, firsts: float) -> float:
    """The largest ln a; an answer about a number also meets its own first draws, which count this much."""
    c, bend = common.constants, common.bend
    return highest(c, common.answers, bend, common.lower) - first_exponent(c.step, rate_of(bend), firsts)


def _plain(common: Common) -> float:
    return farthest(common, common.constants.s, common.constants.pairs)


def _world(found: Common, s: float, numbers: float, firsts: float) -> Constants:
    """The constants of a plan with this noise and with room for numbers."""
    c, most = found.constants, found.answers
    row, least = row_room(c.count, numbers, firsts=firsts) / (4 * c.n**2 * s**2), min(numbers, 1.0) * s
    of_plan = {"events": EVENTS * most, "answers": most}
    if s == c.s:
        row = max(c.row, row)
    return constants(c.n, c.count, s, c.beta, least=least, row=row, **of_plan, alike=False, concave=True)


def _at_the_usual_price(found: Common, typical: tuple[float, ...]) -> Room | None:
    """The same noise, with the finest noise of numbers that is affordable."""
    c, rate, plain = found.constants, rate_of(found.bend), _plain(found)
    dear = USUAL if len(typical) > 1 else OF_ONE_MEAN
    if not (firsts := suited_firsts(c, rate)):
        return None

    @cache
    def with_room(numbers: float) -> Room:
        curve = best_curve(_world(found, c.s, numbers, firsts), found.answers, typical)
        return Room(replace(curve, height=highest_with_firsts(curve, firsts)), numbers, firsts)

    def affordable(numbers: float) -> bool:
        return with_room(numbers).plain <= (dear if numbers <= 1 else USUAL) * plain  # beyond 1, of events alone

    numbers = finest_affordable(c, rate, affordable, firsts)
    worth = numbers and is_worth_it(with_room(numbers).common, numbers, plain, firsts)
    return with_room(numbers) if worth else None


def _at_a_higher_price(found: Common, typical: tuple[float, ...]) -> Room | None:
    """The narrowest for numbers at the lowest price that is enough."""
    plain, usual = _plain(found), typical_width(found, typical)
    best, least, lowest = None, math.inf, PRICES[-1]
    for start in _starts(found):
        for each in _of_each_fineness(start, lowest * plain, WORTH * plain):
            width = each.of_numbers
            if width > WORTH * plain or each.plain > lowest * plain:
                continue
            paid = max(each.plain / plain, typical_width(each.common, typical) / usual)
            price = next((price for price in PRICES if paid <= price), math.inf)
            if (price, width) < (lowest, least):
                best, least, lowest = each, width, price
    return best


@dataclass(frozen=True, slots=True)
class _Start:
    """A plan's noise, bend and first draws, before it has room for numbers."""

    plan: Common
    s: float
    bend: float
    firsts: float

    def with_room(self, numbers: float) -> Room | None:
        """The plan with room for numbers of this noise; None if there is none."""
        try:
            c = _world(self.plan, self.s, numbers, self.firsts)
        except InvalidArgument:  # one row may matter too much
            return None
        if not leaves_room(c, rate_of(self.bend), self.firsts):
            return None
        curve = Common(c, self.plan.answers, self.bend, self.plan.lower, 0.0)
        return Room(replace(curve, height=highest_with_firsts(curve, self.firsts)), numbers, self.firsts)


def _starts(found: Common) -> Iterator[_Start]:
    """With few questions, also plans with more noise, a smaller bend and smaller first draws."""
    c, rate = found.constants, rate_of(found.bend)
    if suited_firsts(c, rate) == 1:  # many questions, whose bend suits numbers
        for s in (c.s, round_noise(c.s * _LESS_NOISE)):
            for firsts in (1.0, MOST_FIRSTS):
                yield _Start(found, s, found.bend, firsts)
        return
    other = *_NOISES, *(math.sqrt(c.step / each) for each in _STEPS)
    for s in (c.s, *(round_noise(c.s * each) for each in other)):
        for bend in (_bend(min(rate, _MOST_RATE) * each) for each in _RATES):
            for firsts in _FIRSTS:
                yield _Start(found, s, bend, firsts)


def _of_each_fineness(start: _Start, dearest: float, widest: float) -> Iterator[Room]:
    """Room for numbers down to the noise that the usual deviation needs, or to more; none if it cannot be worth it."""
    coarsest = start.with_room(LEAST**-0.5)
    if coarsest is None or coarsest.plain > dearest:
        return
    if usual_width(coarsest.common, 0.0, start.firsts, away=1.0) > widest:  # even if finer noise cost no room
        return
    yield coarsest
    needed = fine_usual(coarsest.common.constants, rate_of(start.bend), firsts=start.firsts)
    for i in range(1, _FINENESSES + 1 if needed > LEAST else 1):
        each = start.with_room((LEAST * (needed / LEAST) ** (i / _FINENESSES)) ** -0.5)
        if each is not None:
            yield each


def _bend(rate: float) -> float:
    return rate / (1 + rate)
