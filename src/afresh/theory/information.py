"""From information to probability: what a bounded leak can do to a rare event (Section 'events')."""

from __future__ import annotations

import math

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import entropy


def log_threshold(failure: float, information: float) -> float:
    """L such that an event of fresh probability <= exp(-L) has real probability <= `failure`.

    Data processing gives kl(failure || delta) <= I for any event of fresh probability delta (the step before
    Lemma prob-gen rounds it), so L = -ln sup{d <= failure : kl(failure || d) >= I}. Errs upward.
    """
    if not 0.0 < failure < 1.0 or not information >= 0.0:
        raise InvalidArgument(
            f"failure == {failure}, information == {information}: needs 0 < failure < 1, information >= 0."
        )
    # kl(failure || exp(-L)) is convex in L and (I + h)/failure lies right of the root: Newton descends to it.
    h = entropy(failure)
    level = (information + h) / failure
    for _ in range(200):
        d = math.exp(-level)
        value = failure * level - h - (1.0 - failure) * math.log1p(-d) - information
        slope = failure - (1.0 - failure) * d / -math.expm1(-level)
        step = value / slope if slope > 0.0 else 0.0
        if not step > 1e-15 * level:
            break
        level -= step
    return max(level, -math.log(failure)) * (1.0 + 1e-14)


def information(rows: int, stability: float) -> float:
    """Prop. mi: I(S; M(S)) <= n eps for an eps-stable interaction with n independent rows."""
    return rows * stability
