"""Whether a plan's constants carry the certificate they claim, from the constants alone: nothing is optimised."""

from __future__ import annotations

import math

from afresh.mechanisms.base import Mechanism
from afresh.mechanisms.calibrated import Calibrated
from afresh.mechanisms.guess_and_check import GuessAndCheck
from afresh.mechanisms.split import Split
from afresh.mechanisms.stabilized import Stabilized
from afresh.theory.envelope import Envelope, holds
from afresh.theory.stabilized import deviation_bound

_ROUNDING = 1e-9


def problems(mechanism: Mechanism) -> list[str]:
    """What is wrong with the constants; empty if the theorem applies to them."""
    if not 0 < mechanism.failure < 1 or mechanism.answers < mechanism.questions or mechanism.questions < 1:
        return ["the numbers of questions and answers and the confidence do not fit together"]
    if isinstance(mechanism, Stabilized):
        return _stabilized(mechanism)
    if isinstance(mechanism, Calibrated):
        return _calibrated(mechanism)
    if isinstance(mechanism, Split):
        return [] if mechanism.block >= 1 else ["there are fewer rows than questions"]
    if isinstance(mechanism, GuessAndCheck):  # whatever the other constants are, validity rests on the checks
        return [] if mechanism.check_rows >= 1 else ["there are no rows that check"]
    return [f"the method {mechanism.method!r} is not known here"]


def _stabilized(m: Stabilized) -> list[str]:
    found = []
    if not ((m.rows - 1) * m.v0 > 1 and 0 < m.v0 <= 0.25 and m.s > 0):
        return ["the variance floor or the noise is out of range"]
    if not m.lam >= 1 / math.sqrt(m.v0):
        found.append("the tilt is smaller than 1/sqrt(v0)")
    eps = m.c - 1
    # The constants may have been chosen for a larger row share than the plan's: they serve every smaller one.
    envelope = Envelope(8 * m.B / (1 + 1 / eps) if eps > 0 else 0.0, m.c, m.B, m.A, m.theta)
    if not (envelope.qb >= m.row_share * (1 - _ROUNDING) and holds(envelope)):
        return [*found, "the inequality (*) of Theorem T does not hold for c, B, A, theta"]
    # Plans of old are for answers of equal noise, for which the bracket need not be cut at 0; that only lowers H.
    if deviation_bound(m.answers, m.failure, m.s, m.lam, m.information, envelope, 1 / m.questions) * (1 - 1e-7) > m.H:
        found.append("H is smaller than the bound of Theorem T")
    return found


def _calibrated(m: Calibrated) -> list[str]:
    if m.cap or not (m.t > 0 and m.T > 0 and 0 < m.noise_failure < m.failure):
        return ["t, T or the share of the failure probability is out of range"]
    return [] if math.isfinite(m.information) else ["the charge is not finite"]
