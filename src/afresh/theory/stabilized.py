"""Theorem T: simultaneous intervals for fixed noise on the variance-stabilized mean (section 10).

Noise s on Theta(mu), at most k answers, tilt lam. With probability >= 1 - beta, for all answers at once,
e_-(P) - H <= y <= e_+(P) + H. Here are its accounts (G, I, qb) and its bound H.
"""

from __future__ import annotations

from afresh.errors import InvalidArgument
from afresh.theory.envelope import Envelope
from afresh.theory.extremes import cvar, cvar_square, cvar_with_square


def leave_one_out_growth(n: int, v0: float) -> float:
    """G = 1/(1 - 1/((n-1) v0)): how much max(m(1-m), v0) can shrink when one row is left out (step a)."""
    if not (n - 1) * v0 > 1:
        raise InvalidArgument(f"(n-1) v0 == {(n - 1) * v0}, must be > 1.")
    return 1 / (1 - 1 / ((n - 1) * v0))


def stabilized_charge(n: int, v0: float, s: float) -> float:
    """Nats of information one answer may reveal: G n / (8 (n-1)^2 s^2) (step b)."""
    return leave_one_out_growth(n, v0) * n / (8 * (n - 1) ** 2 * s**2)


def row_share(n: int, v0: float, information: float) -> float:
    """qb = 2 I / (n v0): the cap on how much all answers together may depend on one row (step b)."""
    return 2 * information / (n * v0)


def remainder(envelope: Envelope, failure: float) -> float:
    """What (*) leaves besides the parabola, per nat: 2 B + A theta^2 / beta (step c)."""
    return 2 * envelope.B + envelope.A * envelope.theta**2 / failure


def deviation_bound(
    k: int,
    failure: float,
    s: float,
    tilt: float,
    information: float,
    envelope: Envelope,
    share: float | None = None,
) -> float:
    """H: how far any answer may lie from the tilted means (step f), before rounding to the grid.

    At most k answers, each with at most `share` (default 1/k) of the information. An answer with noise s_j >= s has
    the bound H s_j / s, in any mix.
    """
    parabola = envelope.c * information / tilt
    together = s * cvar_with_square(k, failure, parabola / s, share)
    apart = s * cvar(k, failure) + parabola * cvar_square(failure)
    bound = min(together, apart) + remainder(envelope, failure) * information / tilt
    return bound * (1 + 1e-8)  # the quadrature is accurate to 1e-9
