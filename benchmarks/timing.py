"""Seconds of several ways to do one thing, taken in turns so that other work on the machine meets all alike."""

import time
from collections.abc import Callable, Mapping


def side_by_side(
    ways: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The shortest time of each over the rounds, after one that does not count."""
    best = dict.fromkeys(ways, float("inf"))
    for turn in range(rounds + 1):
        for name, work in ways.items():
            start = clock()
            work()
            if turn:
                best[name] = min(best[name], clock() - start)
    return best
