"""What a statistic would cost and how wide it would be, found without reading a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from afresh.errors import InvalidArgument
from afresh.guard.expected import check_deviation, check_mean, expected_half_width, shares, widths_in_words
from afresh.guard.pricing import in_words, rounds_taken
from afresh.queries.asked import Asked
from afresh.results.price import Price
from afresh.statistics.base import AtOnce, Like, OfAlike, OfNumbers, Statistic
from afresh.statistics.rehearsal import FILLS, Bell, Rehearsal, bell_curves

if TYPE_CHECKING:
    from afresh.guard.desk import Desk
    from afresh.moments import Vector

Each = float | Sequence[float]
"""A number for all, or one for each number of a statistic."""


class Guess(NamedTuple):
    """What is expected of the numbers and of the rows; None where nothing is."""

    mean: Each | None = None
    share: float | None = None
    deviation: Each | None = None


class _Expected(NamedTuple):
    """What to expect of a statistic."""

    half_widths: dict[float, float]
    """By the share of rows it is about."""
    mean: float | None
    words: str
    steps: int = 1
    """The number of times it asks; in rounds, the rounds it takes."""
    answers: tuple[int, int] | None = None
    """About how many it takes, and how many at most, if that depends on how this desk asks for means."""


def price_of_statistic(desk: Desk, analyst: str, statistic: Statistic, guess: Guess) -> Price:
    """Return the price of a statistic; earlier questions are free, so it may cost less."""
    schema = desk.schema
    answers, vector = statistic.cost(schema), None
    if isinstance(statistic, AtOnce) and (shape := statistic.coordinates(schema)) is not None:
        vector = desk.at_once(*shape)
        answers = answers if vector is None else vector.answers
    if isinstance(statistic, OfAlike):
        found = _alike(desk, statistic.like(schema), vector, guess)
    elif isinstance(statistic, OfNumbers):
        found = _rehearsed(desk, analyst, statistic, guess)
    else:
        found = _Expected({}, None, "")
    about, answers = (answers, answers) if found.answers is None else found.answers
    most = "at most " if about >= answers else f"about {about:,} and at most "
    charge = answers * desk.plan.charge
    return Price(
        question=statistic.text(schema),
        answers=answers,
        charge=charge,
        half_width=next(iter(found.half_widths.values()), None),
        half_widths=found.half_widths,
        mean=found.mean,
        rounds=rounds_taken(desk, found.steps),
        left=desk.left(analyst),
        words=f"{in_words(desk, analyst, answers, charge, found.steps, most)} {found.words}".rstrip(),
    )


def _alike(desk: Desk, like: Like, vector: Vector | None, guess: Guess) -> _Expected:
    """Return what to expect of each of several numbers that are much alike."""
    (asked,), share = desk.arranged([like.question]), like.share if guess.share is None else guess.share
    mean = check_mean(_one("mean", guess.mean) if guess.mean is not None else like.mean, asked.bounds)
    deviation, grouped = _one("deviation", guess.deviation), asked.where is not None
    sizes = shares(share, grouped=grouped)
    widths = {each: expected_half_width(desk, asked, mean, each, deviation, vector) for each in sizes}
    told = widths_in_words(widths, f"at a mean of {mean:g}", share, grouped=grouped, skips=asked.skips)
    return _Expected(widths, mean, f"Of each number expect about {told}. {desk.hides(asked.queries)}")


def _rehearsed(desk: Desk, analyst: str, statistic: OfNumbers, guess: Guess) -> _Expected:
    """Return what to expect of a statistic of numbers with bell curves, which fill their bounds unless it is known."""
    laws, group = _bells(statistic, guess), statistic.group(desk.schema)
    grouped, asked = statistic.where is not None, list[Asked]()
    widths, steps = dict[float, float](), 0
    with bell_curves() as rows:
        for share in shares(guess.share, grouped=grouped):
            asked.clear()  # every time the same is asked, and only its widths differ

            def width(one: Asked, mean: float, deviation: float | None, share: float = share) -> float:
                asked.extend(desk.arranged([one]))
                return expected_half_width(desk, asked[-1], mean, share, deviation)

            rehearsal = Rehearsal(desk, analyst, rows=rows, width=width, grouped=group is not None)
            widths[share] = rehearsal.half_width(statistic, laws)
            steps = max(steps, rehearsal.steps)
    at = f"for numbers with about a bell curve, {_laws_in_words(laws)}"
    told = widths_in_words(widths, at, guess.share, grouped=grouped, skips=group is not None)
    refused = desk.hides(query for one in asked for query in one.queries)
    answers = sum(len(one.queries) for one in asked), len(asked[0].queries) * rehearsal.most
    return _Expected(widths, laws[0].mean, f"Expect about {told}. {refused}", steps, answers)


def _bells(statistic: OfNumbers, guess: Guess) -> list[Bell]:
    ranges = statistic.ranges
    means = [check_mean(*each) for each in zip(_each("mean", guess.mean, len(ranges)), ranges, strict=True)]
    bells = []
    for (low, high), mean, given in zip(ranges, means, _each("deviation", guess.deviation, len(ranges)), strict=True):
        unit = (mean - low) / (high - low)
        fills = min(high - low, 2 * (high - mean), 2 * (mean - low)) / FILLS
        bells.append(Bell(mean, fills if given is None else check_deviation(given, unit, high - low)))
    return bells


def _laws_in_words(laws: Sequence[Bell]) -> str:
    means, deviations = (" and ".join(f"{each:g}" for each in column) for column in zip(*laws, strict=True))
    several = "s" if len(laws) > 1 else ""
    return f"mean{several} {means} and standard deviation{several} {deviations}"


def _each(name: str, given: Each | None, count: int) -> list[float | None]:
    """Return a number for each of so many."""
    if given is None or isinstance(given, str) or not isinstance(given, Sequence):
        return [given] * count  # what is no number is refused by the check of each
    if len(given) != count:
        raise InvalidArgument(f"{name} = {list(given)!r}, must be one number, or {count}, one for each")
    return list(given)


def _one(name: str, given: Each | None) -> float | None:
    (found,) = _each(name, given, 1)
    return found
