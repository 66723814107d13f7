"""The constants of checked answers, searched under all analysts: how wide answers get when someone attacks them.

Every setting meets the same samples, noises and analysts, so that differences between settings are little affected by
chance. `python -m afresh.lab.constants` screens all settings, then repeats the best with new samples.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from afresh.lab import batches
from afresh.lab.certified import Certified
from afresh.lab.coverage import markdown
from afresh.lab.session import Floats
from afresh.lab.simulation import Trial, run
from afresh.mechanisms.planned_checks import plan_checks
from afresh.theory.checked import FOUND, Constants, expected_half_width, plan_checked

ANALYSTS = (*batches.ANALYSTS, "overfitting")
SETTINGS = (
    FOUND,
    Constants(0.24, 0.55, 0.2, 0.03),
    FOUND._replace(failing=20),
    Constants(0.28, 0.55, 0.15, 0.05, failing=15),
    Constants(0.24, 0.55, 0.2, 0.08, failing=15),
    Constants(0.3, 0.6, 0.1, 0.06, failing=15),
    # One step from those in use.
    FOUND._replace(noise=0.2),
    FOUND._replace(noise=0.24),
    FOUND._replace(guessing=0.55),
    FOUND._replace(guessing=0.65),
    FOUND._replace(misses=0.1),
    FOUND._replace(misses=0.25),
    FOUND._replace(growth=0.03),
    FOUND._replace(growth=0.08),
    FOUND._replace(failing=5),
)
SIZES = ((2000, 200, 4), (10_000, 1000, 1))  # rows, questions and, as small ones are fast, how often repeats are made
HEADER = (
    *("noise, rows that guess, honest failures, growth, b", "n", "k", "repeats", "no failures"),
    *("worst", "by", "worst / that of those in use", "with a miss"),
)
_FINALISTS = 3  # besides the constants in use
_WIDER = 1.02  # a finalist's answers are hardly wider than now while nothing fails
_CLOSE = 0.95  # analysts who get this share of the worst width from any setting meet the finalists


@dataclass(frozen=True)
class Played:
    """Conversations of one setting with every analyst."""

    constants: Constants
    calm: float
    """The half-width at one half if nothing fails."""
    widths: dict[str, Floats]
    """The mean half-width of every conversation, by analyst."""
    missed: int
    """The number of conversations in which any interval missed."""

    @property
    def worst(self) -> str:
        """The analyst with the largest mean half-width."""
        return max(self.widths, key=self.mean)

    def mean(self, analyst: str) -> float:
        """The mean half-width under this analyst."""
        return float(self.widths[analyst].mean())


def play(
    constants: Constants, analysts: Sequence[str], n: int, k: int, repeats: range, failure: float = 0.05
) -> Played:
    """Hold the same conversations as with any other constants, on fair bits.

    Args:
        constants: What to plan with.
        analysts: Names of the lab's analysts.
        n: The number of rows.
        k: The number of questions.
        repeats: The numbers of the repeats; each has its own sample, noises and analysts' coins.
        failure: The probability with which any interval of a conversation may miss.

    Returns:
        How wide answers were.
    """
    make = partial(_make, constants)
    found = {name: run(Trial(make, name, "fair", n, k, failure), repeats) for name in analysts}
    return Played(
        constants,
        expected_half_width(plan_checked(n, k, failure, constants)),
        {name: np.array(columns["mean_half_width"]) for name, columns in found.items()},
        sum(misses > 0 for columns in found.values() for misses in columns["misses"]),
    )


def _make(constants: Constants, rows: int, questions: int, failure: float) -> Certified:
    planned = plan_checks(rows, questions, failure, constants=constants)
    assert planned is not None
    return Certified(planned)


def search(
    repeats: int, again: int, n: int, k: int, settings: Sequence[Constants] = SETTINGS
) -> Iterator[list[Played]]:
    """Screen all settings, then play the best again with new samples, against the analysts that matter.

    Args:
        repeats: The number of conversations with each analyst in the screening.
        again: The number for the best; 0 only screens.
        n: The number of rows.
        k: The number of questions.
        settings: What to choose from; the first are the constants in use.

    Returns:
        First all settings; then, if wanted, the one in use and those with the least worst width whose answers are at
        most 2% wider while nothing fails.
    """
    screened = [play(each, ANALYSTS, n, k, range(repeats)) for each in settings]
    yield screened
    if not again:
        return
    used, *others = screened
    narrow = [each for each in others if each.calm <= _WIDER * used.calm]
    best = sorted(narrow, key=lambda each: each.mean(each.worst))[:_FINALISTS]
    close = [
        name for name in ANALYSTS if any(each.mean(name) >= _CLOSE * each.mean(each.worst) for each in (used, *best))
    ]
    yield [play(each.constants, close, n, k, range(repeats, repeats + again)) for each in (used, *best)]


def lines(found: Sequence[Played], n: int, k: int) -> list[tuple[str, ...]]:
    """Format what was played as text, one tuple per line.

    Args:
        found: All settings of one size; the first are the constants in use.
        n: The number of rows.
        k: The number of questions.

    Returns:
        A tuple under `HEADER` for each.
    """
    used = found[0].widths[found[0].worst]
    return [
        (
            *(text(each.constants), f"{n:,}", f"{k:,}", f"{used.size}", f"{each.calm:.4f}"),
            *(f"{each.mean(each.worst):.4f}", each.worst, _against(each.widths[each.worst], used), f"{each.missed}"),
        )
        for each in found
    ]


def _against(widths: Floats, used: Floats) -> str:
    """The ratio of means, with its standard error: repeats are pairs."""
    ratio = float(widths.mean() / used.mean())
    if used.size < 2:
        return f"{ratio:.3f}"
    error = float(np.std(widths - ratio * used, ddof=1)) / math.sqrt(used.size) / float(used.mean())
    return f"{ratio:.3f} ± {error:.3f}"


def text(constants: Constants) -> str:
    """Write the constants that were searched as in the docs.

    Args:
        constants: All of them.

    Returns:
        One line.
    """
    decimals = (f"{x:g}".removeprefix("0") for x in (constants.noise, constants.guessing, constants.misses))
    return ", ".join((*decimals, f"{constants.growth:.0%}", f"k/{constants.failing:g}"))


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="conversations with each analyst in the screening")
    parser.add_argument("--again", type=int, default=40, help="conversations with the best, at the larger size")
    wanted = parser.parse_args()
    for n, k, times in SIZES:
        for found in search(wanted.repeats * times, wanted.again if times == 1 else 0, n, k):
            print(markdown(HEADER, lines(found, n, k)), end="\n\n", flush=True)
            for each in found:
                widths = ", ".join(f"{name} {each.mean(name):.4f}" for name in each.widths)
                print(f"{text(each.constants)}: {widths}")
            print(flush=True)


if __name__ == "__main__":
    _main()
