"""The public clock: the time an answer leaves reveals as little as possible about how long its scan took.

An answer leaves `tick` seconds after its question came or, if it was not ready, after twice, four times, ... as long.
The answers of scans that end within the same step leave at the same moment, whatever the scans did. A refusal that had
to wait for others' scans leaves on ticks that do not depend on when its question came. docs/service.md says what can
still be learnt.
"""

from __future__ import annotations

import math


def leaving(elapsed: float, tick: float) -> float:
    """The number of seconds from a question's arrival until its answer leaves, if it was ready after `elapsed`."""
    if tick <= 0:
        return elapsed
    steps = max(math.ceil(math.log2(max(elapsed / tick, 1.0))), 0)
    while tick * 2**steps < elapsed:  # the logarithm may be rounded
        steps += 1
    return float(tick * 2**steps)


def next_tick(ready: float, tick: float) -> float:
    """The first moment, at a whole number of ticks, when something ready at this time may leave."""
    return ready if tick <= 0 else math.ceil(ready / tick) * tick
