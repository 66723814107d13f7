"""The public clock: the time an answer leaves says as little as possible about how long its scan took.

An answer leaves `tick` seconds after its question came, or twice, four times, ... as long if it was not ready. Scans
that end within the same step leave at the same moment, whatever they did. What is refused behind others' scans leaves
on ticks that do not depend on when it came. What remains is in docs/service.md.
"""

from __future__ import annotations

import math


def leaving(elapsed: float, tick: float) -> float:
    """How many seconds after a question came its answer leaves, if it was ready after `elapsed`."""
    if tick <= 0:
        return elapsed
    steps = max(math.ceil(math.log2(max(elapsed / tick, 1.0))), 0)
    while tick * 2**steps < elapsed:  # the logarithm may be rounded
        steps += 1
    return float(tick * 2**steps)


def next_tick(ready: float, tick: float) -> float:
    """The first moment, at a whole number of ticks, of what is ready then."""
    return ready if tick <= 0 else math.ceil(ready / tick) * tick
