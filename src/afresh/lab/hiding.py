"""An analyst who hides adaptivity inside a round: it watches errors and times, and asks what they suggest.

Questions of a round must not depend on its rows. Nothing about a round is released before it ends, so a cheat can only
use what comes back while questions are asked: an error, or how long it takes. This one asks questions that divide by
zero, overflow or cast only on rows where a fair column is 1, takes every error and every longer pause as a sign that
the column is often 1, and lets all columns vote that way in the last question of the same round. The true value of the
vote is one half. `python -m afresh.lab.hiding` prints how often its interval misses, for a guard on real rows.
"""

from __future__ import annotations

import statistics
import time
from contextlib import suppress

import numpy as np

from afresh.errors import AfreshError
from afresh.guard.open import open as open_guard
from afresh.lab.coverage import clopper_pearson, markdown

TRAPS = (
    "CASE WHEN {c} = 1 THEN 1.0 / ({c} - {c}) ELSE 0.5 END",
    "CASE WHEN {c} = 1 THEN exp(1000.0 * {c}) ELSE 0.5 END",
    "CASE WHEN {c} = 1 THEN sqrt(0.0 - {c}) ELSE 0.5 END",
)
HEADER = ("analyst", "n", "k", "confidence", "conversations", "with a miss", "coverage at least")


def conversation(rows: int, columns: int, failure: float, rng: np.random.Generator) -> bool:
    """Play one round; return whether the interval of its last question misses.

    Args:
        rows: The number of rows of the dataset, all of which the round gets.
        columns: The number of fair columns; odd, so that their vote is never a tie.
        failure: The probability with which anything may miss.
        rng: Makes the rows.

    Returns:
        True if one half, the truth, is not in the interval.
    """
    import pandas as pd

    bits = rng.integers(0, 2, (rows, columns))
    frame = pd.DataFrame(bits, columns=[f"c{i}" for i in range(columns)])
    plan = {"questions": columns + 1, "rounds": 1, "confidence": 1 - failure, "allow_wide": True}
    with open_guard(frame, ledger=":memory:", **plan) as guard, guard.round() as asked:  # type: ignore[arg-type]
        times, failed = list[float](), list[bool]()
        for i in range(columns):
            began, sign = time.perf_counter(), True
            with suppress(AfreshError):
                asked.ask(TRAPS[i % len(TRAPS)].format(c=f"c{i}"), bounds=(0, 1), missing=0)
                sign = False
            times.append(time.perf_counter() - began)
            failed.append(sign or bool(asked.answers))
        slow = statistics.median(times)
        signs = ["" if error or took > slow else "1 - " for error, took in zip(failed, times, strict=True)]
        votes = " + ".join(f"({sign}c{i})" for i, sign in enumerate(signs))
        asked.ask(f"{votes} > {columns // 2}")
    return 0.5 not in asked.answers[-1].interval


def table(rows: int, columns: int, failure: float, repeats: int, seed: int = 2018) -> str:
    """Show how often it missed, as Markdown.

    Args:
        rows: As in `conversation`.
        columns: As in `conversation`.
        failure: As in `conversation`.
        repeats: The number of conversations.
        seed: The seed of the rows.

    Returns:
        A table with one line.
    """
    missed = sum(conversation(rows, columns, failure, np.random.default_rng([seed, i])) for i in range(repeats))
    low, _ = clopper_pearson(repeats - missed, repeats)
    numbers = f"{rows:,}", f"{columns + 1:,}", f"{1 - failure:.0%}", f"{repeats:,}", f"{missed:,}", f"{low:.3f}"
    return markdown(HEADER, [("hiding", *numbers)])


if __name__ == "__main__":
    print(table(600, 41, 0.05, 40))
