"""Evidence that a mean is above zero, from all values instead of two moments: a mixture of bets (section 13).

A bet of lam multiplies its stake by 1 + lam d_i on every row, d_i in [-1, 1]. If the average mean of independent rows
is at most 0, the stake is not expected to grow (arithmetic and geometric means; lam must not depend on the rows), nor
is that of several bets together: E is an e-value, and 1/E a p-value. Count, sum and sum of squares lose part of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    from afresh.lazy import np

MIXED = 12
"""How many bets share the stake equally."""
_LARGEST = 0.95
_ROUNDING = 1e-9  # nats for the rounding of sums of logarithms, a row


def stakes(rows: int, nats: float) -> Floats:
    """The bets for so many rows, and a level of about e^-nats: those that deviations of 2/3 and less call for."""
    least = min(1.5 * math.sqrt(2 * nats / rows), 0.6)
    found: Floats = np.linspace(math.sqrt(least), math.sqrt(_LARGEST), MIXED) ** 2
    return found


def mixture(differences: Floats, nats: float) -> Floats:
    """ln E of each row of an array of differences, from below."""
    rows = differences.shape[-1]
    grown = np.stack([np.log1p(lam * differences).sum(axis=-1) for lam in stakes(rows, nats)])
    most = grown.max(axis=0)
    found: Floats = most + np.log(np.exp(grown - most).mean(axis=0)) - _ROUNDING
    return found


def holm(nats: Floats, alpha: float) -> Iterator[int]:
    """Which of several hypotheses fall at alpha, whatever their dependence, given -ln of their p-values (Holm 1979)."""
    order = np.argsort(-nats, kind="stable")
    for fallen, place in enumerate(order.tolist()):
        if not nats[place] >= math.log((len(nats) - fallen) / alpha):
            return
        yield place
