"""The seconds that several ways to do one thing take, in turns, so that other work on the machine affects all alike."""

import time
from collections.abc import Callable, Mapping


def side_by_side(
    ways: Mapping[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """The shortest time of each, after a round that does not count unless it is the only one.

    There are this many rounds, or up to ten times as many if they take less than three seconds.
    In a round each has two goes, as the first finds what another left in the processor's caches.
    """
    best, turn, begun = dict.fromkeys(ways, float("inf")), 0, time.perf_counter()
    while turn <= rounds or (turn <= 10 * rounds and time.perf_counter() - begun < 3):
        for name in (name for name in ways for _ in range(2)):
            start = clock()
            ways[name]()
            if turn or not rounds:
                best[name] = min(best[name], clock() - start)
        turn += 1
    return best
