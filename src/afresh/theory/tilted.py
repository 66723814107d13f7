"""e_+(P) = ln E exp(lam Theta(Bin(n, P)/n)) / lam, bounded from above and inverted (Theorem T's last step).

By symmetry e_-(P) = Theta(1) - e_+(1 - P), so one function serves both ends of an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from afresh.theory.transform import Transform

Floats = NDArray[np.float64]

_REACH = 9.0  # deviations kept on either side; what lies beyond is bounded, not dropped


@dataclass(frozen=True, slots=True)
class TiltedMean:
    """An upper bound on e_+, tight to less than 0.01/lam, and a lower bound on its inverse.

    The counts 0..n are cut once into cells an eighth of a standard deviation wide (single counts where that is
    less than one). Within a cell the binomial pmf is log-concave, so it lies below a geometric sequence, and
    Theta lies below the line of its largest slope: a cell's sum is at most a geometric series, for every P.
    So nothing is approximated, whatever n; a value costs a few hundred operations.
    """

    n: int
    tilt: float
    transform: Transform
    cells_per_deviation: int = 8
    _edges: Floats = field(init=False, repr=False, compare=False)
    _log_weight: Floats = field(init=False, repr=False, compare=False)
    _log_ratio: Floats = field(init=False, repr=False, compare=False)
    _largest_later_ratio: Floats = field(init=False, repr=False, compare=False)
    _rounding: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Cut the counts into cells and keep what does not depend on P."""
        n, tilt, transform = self.n, self.tilt, self.transform
        # On the scale arcsin(sqrt(m)) the standard deviation is 1/(2 sqrt n) everywhere.
        cells = math.ceil(self.cells_per_deviation * math.pi * math.sqrt(n))
        angles = np.linspace(0.0, math.pi / 2, cells + 1)
        edges = np.unique(np.floor(n * np.sin(angles) ** 2))
        edges = np.append(edges[edges < n], [n, n + 1])  # the count n is a cell of its own
        left = edges[:-1]
        m = left / n
        steepest = np.maximum(transform.slope(m), transform.slope(np.minimum(edges[1:] / n, 1.0)))
        with np.errstate(divide="ignore"):  # the ratio beyond the count n is 0
            log_ratio = np.log(n - left) - np.log(left + 1) + tilt / n * steepest
        log_choose = gammaln(n + 1.0) - gammaln(left + 1) - gammaln(n - left + 1)
        set_field = object.__setattr__
        set_field(self, "_edges", edges)
        set_field(self, "_log_weight", log_choose + tilt * transform(m))
        set_field(self, "_log_ratio", log_ratio)
        set_field(self, "_largest_later_ratio", np.maximum.accumulate(log_ratio[::-1])[::-1])
        # Of the three log-gammas, the powers of p and the tilt, each good to an ulp or two of its size.
        set_field(self, "_rounding", 1e-15 * (n * math.log(n + 2.0) + tilt * transform.top + 1))

    def upper(self, p: float) -> float:
        """An upper bound on e_+(p)."""
        if p <= 0.0:
            return 0.0
        if p >= 1.0:
            return self.transform.top
        return self._upper_and_slope(p)[0]

    def _upper_and_slope(self, p: float) -> tuple[float, float]:
        """The upper bound on e_+(p), and (nearly) its derivative by the angle arcsin(sqrt(p))."""
        n, cells = self.n, self._log_weight.size
        log_odds = math.log(p) - math.log1p(-p)
        angle, deviation = math.asin(math.sqrt(p)), 0.5 / math.sqrt(n)
        # The tilt moves the mode by at most tilt/(4n) on this scale.
        start = n * math.sin(max(angle - _REACH * deviation, 0.0)) ** 2
        stop = n * math.sin(min(angle + _REACH * deviation + self.tilt / (4 * n), math.pi / 2)) ** 2
        first = max(int(self._edges.searchsorted(start)) - 1, 0)
        last = min(int(self._edges.searchsorted(stop)) + 1, cells)
        later = self._largest_later_ratio[last] + log_odds if last < cells else -math.inf
        if later > -1e-6:  # the tail need not decay from here on, so sum it
            last, later = cells, -math.inf
        edges = self._edges[first : last + 1]
        left, size = edges[:-1], edges[1:] - edges[:-1]
        log_term = self._log_weight[first:last] + left * log_odds
        log_cell = log_term + _log_geometric(self._log_ratio[first:last] + log_odds, size)
        peak = float(log_cell.max())
        weights = np.exp(log_cell - peak)
        total = inside = float(weights.sum())
        if last < cells:
            log_next = self._log_weight[last] + self._edges[last] * log_odds
            total += math.exp(log_next - peak) / -math.expm1(later)
        if first > 0:  # going down from the first edge, terms fall at least as fast as the pmf does there
            k = float(left[0])
            down = math.log(k) - math.log(n - k + 1) - log_odds
            total += math.exp(log_term[0] + down - peak) / -math.expm1(down)
        value = (peak + math.log(total) + n * math.log1p(-p) + self._rounding) / self.tilt
        # d/dp ln E = (tilted mean - n p) / (p (1-p)), and dp = 2 sqrt(p (1-p)) d angle.
        tilted = float(weights @ (left + (size - 1) / 2)) / inside
        return value, 2 * (tilted - n * p) / math.sqrt(p * (1 - p)) / self.tilt

    def lower_inverse(self, target: float) -> float:
        """A lower bound on e_+^{-1}(target), whose e_+ falls short of the target by less than 0.003/tilt.

        A p whose upper bound is at most the target is at most e_+^{-1}(target), because e_+ increases. By
        Jensen's inequality e_+ >= Theta, so Theta^{-1}(target) lies above the root. Newton's steps on the
        scale arcsin(sqrt(p)), where e_+ is nearly straight, kept inside that bracket.
        """
        if target <= 0.0:
            return 0.0
        if target >= self.transform.top:  # = e_+(1)
            return 1.0
        low, high = 0.0, math.asin(math.sqrt(self.transform.inverse_at(target)))
        guess = max(high - self.tilt / (8 * self.n), 0.7 * high)
        shortfall = 1e-3 / self.tilt  # aimed for, so that the landing is on the safe side
        for _ in range(60):
            p = math.sin(guess) ** 2
            value, slope = self._upper_and_slope(p) if p < 1.0 else (self.transform.top, 0.0)
            if value <= target:
                low = guess
                if value > target - 3 * shortfall:
                    break
            else:
                high = guess
            aimed = guess + (target - shortfall - value) / slope if slope > 0 else low
            guess = aimed if low < aimed < high else (low + high) / 2
            if high - low < 1e-12:
                break
        return math.sin(low) ** 2


def _log_geometric(log_ratio: Floats, size: Floats) -> Floats:
    """ln(1 + r + ... + r^(size-1)) for any ratio r >= 0 and size >= 1, from above."""
    # For r > 1 sum the series from its other end, so that nothing overflows: r^(size-1) (1 + 1/r + ...).
    # At r = 1 the sum is `size`; keeping |ln r| >= 1e-9 there changes it by less than size * 1e-9.
    steps = np.clip(np.abs(log_ratio), 1e-9, 700.0)
    series = np.log(np.expm1(-steps * size) / np.expm1(-steps))
    total: Floats = series + np.maximum(log_ratio, 0.0) * (size - 1) + 1e-9 * size
    return total
