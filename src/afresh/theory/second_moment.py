"""Low-variance answers: the second-moment certificate (section 7).

Differences of two models have a mean near 1/2 after rescaling, so m(1-m) does not show that their variance is tiny.
A second charged answer about phi = 4 (psi - 1/2)^2, released before psi's, gives S[phi] <= u and P[phi] <= U.
Then psi's variance is at most u/4 - (m - 1/2)^2 on the sample and U/4 - (q - 1/2)^2 in the population.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import kl

_OUTWARD = 4e-15  # covers the rounding of a dozen operations on numbers of order one
_PATIENCE = 4000  # about 100 cells are enough; where the exponent only just grazes the bound, stop early and outside
_NARROW = 1e-9  # the search stops on cells this narrow, relative to the whole, and returns their outer edge


@dataclass(frozen=True, slots=True)
class SecondMoment:
    """What phi's answer says: S[phi] <= `sample` (u, step 1) and P[phi] <= `truth` (U, step 2)."""

    sample: float
    truth: float

    def __post_init__(self) -> None:
        """Both are bounds on means in [0, 1], and the second is the looser one."""
        if not 0 <= self.sample <= self.truth <= 1:
            raise InvalidArgument(f"sample == {self.sample}, truth == {self.truth}: needs 0 <= sample <= truth <= 1.")


def hoeffding_exponent(m: float, q: float, variance: float) -> float:
    """Hoeffding's two-point bound (1963, Theorem 3); Bennett's and Bernstein's are weaker forms of it.

    n values in [0, 1] with mean q and at most this variance V have a sample mean beyond m with probability
    <= exp(-n exponent). With w = |m - q| and c the room on the far side (1 - q upward, q downward) the exponent is
    kl((V + c w)/(V + c^2) || V/(V + c^2)). V = q(1-q) gives Chernoff's kl(m || q).
    """
    if not (0 <= m <= 1 and 0 <= q <= 1 and variance >= 0):
        raise InvalidArgument(f"m == {m}, q == {q}, variance == {variance}: needs m, q in [0, 1], variance >= 0.")
    w, c = (m - q, 1 - q) if m >= q else (q - m, q)
    if w == 0:
        return 0.0
    spread = min(variance, q * (1 - q)) / c  # no law on [0, 1] has more variance than q (1 - q)
    return kl(min((spread + w) / (spread + c), 1.0), spread / (spread + c))


def sample_mean_range(
    v: float, second: SecondMoment, z: float, t: float, T: float, half_step: float = 0.0
) -> tuple[float, float]:
    """Step 1: where the sample mean lies, unless a noise exceeded its quantile z.

    |v - m| <= z sqrt(max((u/4 - (m - 1/2)^2)/t, 1/T)) and |m - 1/2| <= sqrt(u)/2: the hull of an interval and
    of an ellipse's chord, cut. Rounding may have moved v by half a step either way before it was clipped to
    [0, 1]. If nothing is left (a noise did exceed z), the cut point nearest to v.
    """
    if not (z >= 0 and t > 0 and T > 0 and half_step >= 0):
        raise InvalidArgument(f"z == {z}, t == {t}, T == {T}, half_step == {half_step}: out of range.")
    # Around 1/2: x = m - 1/2 in [-edge, edge] and w = v - 1/2 in [first, last].
    edge = math.sqrt(second.sample) / 2
    first, last = max(v - half_step, 0.0) - 0.5, min(v + half_step, 1.0) - 0.5
    flat = z / math.sqrt(T)
    pieces = [(first - flat, last + flat)]
    c = z * z / t
    # (w - x)^2 <= c (edge^2 - x^2): x = (w -+ sqrt(c (edge^2 (1 + c) - w^2))) / (1 + c). The lower root falls
    # until w = -edge and rises from there, the upper one mirrors it.
    widest = edge * math.sqrt(1 + c)
    if first <= widest and last >= -widest:
        roots = []
        for side in (-1, +1):
            w = min(max(side * edge, first, -widest), last, widest)
            roots.append((w + side * math.sqrt(max(c * (widest * widest - w * w), 0.0))) / (1 + c))
        pieces.append((roots[0], roots[1]))
    left = [(max(low, -edge), min(high, edge)) for low, high in pieces if low <= edge and high >= -edge]
    if not left:
        cut = 0.5 + (edge if first > 0 else -edge)
        return cut, cut
    low, high = min(low for low, _ in left), max(high for _, high in left)
    return max(0.5 + low - _OUTWARD, 0.0), min(0.5 + high + _OUTWARD, 1.0)


def truth_range(low: float, high: float, second: SecondMoment, bound: float) -> tuple[float, float]:
    """Step 2: the outermost truths that a sample mean in [low, high] allows, with bound = L/n (or R/n).

    The largest q in [high, 1/2 + sqrt(U)/2] with hoeffding_exponent(high, q, U/4 - (q - 1/2)^2) <= bound, and
    its mirror image. phi is the same for psi and 1 - psi, so one search serves both ends.
    """
    if not (0 <= low <= high <= 1 and bound >= 0):
        raise InvalidArgument(f"low == {low}, high == {high}, bound == {bound}: out of range.")
    return 1 - _highest_truth(1 - low, second.truth, bound), _highest_truth(high, second.truth, bound)


def _highest_truth(m: float, second_moment: float, bound: float) -> float:
    """The largest q >= m that passes, from above; the cut point if none does.

    The worst law with mean q and second moment P[psi^2] = q - kappa, kappa = (1 - U)/4, sits on 0 and
    b(q) = 1 - kappa/q, so the exponent is kl(m/b || q/b). It rises with q and falls with b, and b rises with q:
    over q1 <= q <= q2 it is at least kl(m/b(q2) || q1/b(q2)). The exponent need not be monotone, so cells are
    struck out from the top, halved where undecided, and the first that survives is the answer.
    """
    kappa = max((1 - second_moment) / 4, 0.0)
    edge = math.sqrt(second_moment) / 2
    start, top = max(m, 0.5 - edge), 0.5 + edge
    if start >= top:
        return top
    narrow = max(_NARROW * (top - start), _OUTWARD)
    cells = [(start, top)]
    for _ in range(_PATIENCE):
        if not cells:
            return start
        q1, q2 = cells.pop()
        b = 1 - kappa / q2
        if b <= q1 and q1 > m:  # no law has this mean and second moment
            continue
        if b > q1 and kl(min(m / b, 1.0), min(q1 / b, 1.0)) > bound:
            continue
        if q2 - q1 <= narrow:
            return min(q2 + _OUTWARD, top)
        middle = (q1 + q2) / 2
        cells += [(q1, middle), (middle, q2)]
    return min(cells[-1][1] + _OUTWARD, top)
