"""Rounds as people use them: every batch of an analyst's questions gets fresh rows, and a final look ends it all.

In `afresh lab coverage` every question of `rounds` has its own rows. Here all questions that an analyst asks together
are one round; when rows run out it must stop, and then every question is answered once more from all rows that were
fresh for it. `python -m afresh.lab.batches` prints how often all intervals of both looks held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from afresh.lab.analysts import World, find_analyst
from afresh.lab.coverage import clopper_pearson, markdown
from afresh.lab.population import POPULATIONS, Question, evaluate
from afresh.lab.session import Floats, Values, moments
from afresh.mechanisms.rounds import Rounds, make_rounds

_VOTING = ("selection", "last", "squares", "every-10", "boosting", "gambling", "stopping")
ANALYSTS = ("fixed", *_VOTING, "repeating", "climbing")
HEADER = (
    *("analyst", "population", "n", "k", "rounds", "confidence", "conversations", "with a miss", "coverage at least"),
    *("± mean", "± at the end"),
)


class Looked(NamedTuple):
    """One conversation."""

    missed: bool
    """Whether any interval missed, of either look."""
    first: float
    """The mean half-width of the first looks."""
    final: float
    """The mean half-width of what is known after the final look."""


def conversation(
    analyst: str, population: str, n: int, k: int, rounds: int, failure: float, seed: Sequence[int]
) -> Looked:
    """Play one conversation in rounds, with a final look.

    Args:
        analyst: A name of the lab's analysts.
        population: A name of the lab's populations.
        n: The number of rows.
        k: The most questions.
        rounds: The number of rounds; who asks more often must stop.
        failure: The probability with which any interval may miss.
        seed: The seed of rows and of the analyst.

    Returns:
        Whether any interval missed, and how wide they were.
    """
    of_sample, of_analyst = (
        np.random.Generator(np.random.SFC64(each)) for each in np.random.SeedSequence(seed).spawn(2)
    )
    drawn = POPULATIONS[population]
    sample, mechanism = drawn.draw(n, of_sample), make_rounds(n, k, failure, None, rounds)
    assert mechanism is not None
    asking = find_analyst(analyst)(World(drawn, n, k, int), of_analyst)
    begun: list[tuple[int, Values, Floats, Floats]] = []
    for start in range(0, rounds * mechanism.batch, mechanism.batch):
        questions: Sequence[Question] = asking.ask()
        if not questions:
            break
        values = evaluate(questions, sample)
        own = values[:, start : start + mechanism.batch]
        found = _looks(mechanism, own, look=1)
        begun.append((start, values, np.array([each.truth(drawn) for each in questions]), found))
        asking.hear(found[:, 0])
    missed, first, final = False, list[float](), list[float]()
    for start, values, truth, found in begun:
        again = _looks(mechanism, values[:, start:], look=3)
        low, high = found[:, 1], found[:, 2]
        both = np.maximum(low, again[:, 1]), np.minimum(high, again[:, 2])
        missed |= bool(((truth < both[0]) | (truth > both[1])).any())
        first += list((high - low) / 2)
        final += list((both[1] - both[0]) / 2)
    return Looked(missed, float(np.mean(first)), float(np.mean(final)))


def _looks(mechanism: Rounds, values: Values, look: int) -> Floats:
    """The value and both ends of each question, from these rows."""
    levels = 2 if values.dtype == np.uint8 else None
    released = [mechanism.release(each, 0.0, look=look) for each in moments(values)]
    return np.array([(mechanism.value(each), *mechanism.interval(each, levels=levels)) for each in released])


def table(repeats: int, n: int = 2000, k: int = 200, rounds: int = 40, failure: float = 0.05, seed: int = 2018) -> str:
    """Play every analyst with every population.

    Args:
        repeats: The number of conversations of each.
        n: The number of rows.
        k: The most questions.
        rounds: The number of rounds.
        failure: The probability with which any interval may miss.
        seed: The seed of everything.

    Returns:
        Markdown.
    """
    lines = []
    for analyst in ANALYSTS:
        for population in POPULATIONS:
            found = [
                conversation(analyst, population, n, k, rounds, failure, (seed, repeat)) for repeat in range(repeats)
            ]
            missed = sum(each.missed for each in found)
            least = clopper_pearson(repeats - missed, repeats)[0]
            first, final = (float(np.mean([each[place] for each in found])) for place in (1, 2))
            lines.append(
                (
                    *(analyst, population, f"{n:,}", f"{k:,}", f"{rounds}", f"{1 - failure:.0%}", f"{repeats}"),
                    *(f"{missed}", f"{least:.3f}", f"{first:.4f}", f"{final:.4f}"),
                )
            )
    return markdown(HEADER, lines)


if __name__ == "__main__":
    print(table(40))
