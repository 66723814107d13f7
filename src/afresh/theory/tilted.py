"""e_+(P) = ln E exp(lam Theta(Bin(n, P)/n)) / lam, bounded from above and inverted (Theorem T's last step).

By symmetry e_-(P) = Theta(1) - e_+(1 - P), so one function serves both ends of an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from afresh.theory.special import distinct, gammaln
from afresh.theory.transform import Transform

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_REACH = 9.0  # deviations kept on either side; anything beyond is bounded, not dropped


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
        """Cut the counts into cells and compute what does not depend on P."""
        n, tilt, transform = self.n, self.tilt, self.transform
        # On the scale arcsin(sqrt(m)) the standard deviation is 1/(2 sqrt n) everywhere.
        cells = math.ceil(self.cells_per_deviation * math.pi * math.sqrt(n))
        angles = np.linspace(0.0, math.pi / 2, cells + 1)
        edges = distinct(np.floor(n * np.sin(angles) ** 2))
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
        # For the three log-gammas, the powers of p and the tilt, each accurate to an ulp or two of its size.
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
        shortfall = 1e-3 / self.tilt  # the aim, so that the result is on the safe side
        for _ in range(60):
            p = math.sin(guess) ** 2
            value, slope = self._upper_and_slope(p) if 0.0 < p < 1.0 else (self.upper(p), 0.0)
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

    def lower_inverse_each(self, targets: Floats) -> Floats:
        """`lower_inverse` of many targets, to within about 1e-11: for checking, not for releasing.

        It takes the same steps, with sums only over the cells around the mode; NaN where that is not enough.
        """
        found = np.where(targets <= 0.0, 0.0, np.where(targets >= self.transform.top, 1.0, np.nan))
        inside = np.flatnonzero(np.isnan(found) & ~np.isnan(targets))
        windows = _Windows.of(self, _NEAR * self.cells_per_deviation)
        for some in np.array_split(inside, max(inside.size // _AT_ONCE, 1)):
            if windows is not None and some.size:
                found[some] = self._lower_inverse_each(targets[some], windows)
        return found

    def _lower_inverse_each(self, targets: Floats, windows: _Windows) -> Floats:
        low = np.zeros(targets.size)
        high = np.arcsin(np.sqrt(self.transform.inverse(targets)))
        guess = np.maximum(high - self.tilt / (8 * self.n), 0.7 * high)
        shortfall, going = 1e-3 / self.tilt, np.arange(targets.size)
        for _ in range(60):
            at = guess[going]
            value, slope = windows.upper_and_slope(np.sin(at) ** 2)
            fits = value <= targets[going]
            low[going[fits]], high[going[~fits]] = at[fits], at[~fits]
            landed = fits & (value > targets[going] - 3 * shortfall)
            below, above = low[going], high[going]
            aimed = np.where(slope > 0, at + (targets[going] - shortfall - value) / slope, below)
            guess[going] = np.where((below < aimed) & (aimed < above), aimed, (below + above) / 2)
            going = going[~(landed | (above - below < 1e-12))]
            if not going.size:
                break
        return np.where(np.isnan(guess), np.nan, np.sin(low) ** 2)


_AT_ONCE = 512
_NEAR, _FAR = 7, 21  # deviations on either side of the mode: nearly always enough, and always
_LOST = 1e-9  # the share of the sum that a cell at the end of a run may have


@dataclass(frozen=True)
class _Windows:
    """The cells of a `TiltedMean` by where a run of them begins, for sums over many runs at once."""

    tilted: TiltedMean
    half: int
    log_weight: Floats
    log_ratio: Floats
    left: Floats
    size: Floats

    @classmethod
    def of(cls, tilted: TiltedMean, half: int) -> _Windows | None:
        """None where the sum may have more than one mode."""
        log_ratio, edges = tilted._log_ratio, tilted._edges
        if not np.all(np.diff(log_ratio) <= 0):
            return None

        def runs(values: Floats, beyond: float) -> Floats:
            padded = np.concatenate([np.full(half, beyond), values, np.full(half, beyond)])
            return np.lib.stride_tricks.sliding_window_view(padded, 2 * half)

        beyond = -1e300  # exp of it is 0, and nothing is infinite less infinite
        return cls(
            tilted,
            half,
            runs(tilted._log_weight, beyond),
            runs(np.maximum(log_ratio, -700.0), -1.0),
            runs(edges[:-1], 0.0),
            runs(np.diff(edges), 1.0),
        )

    @cached_property
    def wide(self) -> _Windows | None:
        """The same with longer runs, unless these are the longest."""
        half = _FAR * self.tilted.cells_per_deviation
        return _Windows.of(self.tilted, half) if half > self.half else None

    def upper_and_slope(self, p: Floats) -> tuple[Floats, Floats]:
        """`TiltedMean._upper_and_slope` of each, to within rounding; NaN where a run is too short."""
        n, tilt = self.tilted.n, self.tilted.tilt
        log_odds = np.log(p) - np.log1p(-p)
        # Terms grow up to the cell where the ratio of neighbours falls below 1.
        mode = np.minimum(np.searchsorted(-self.tilted._log_ratio, log_odds), self.tilted._log_ratio.size - 1)
        peak = self.tilted._log_weight[mode] + self.tilted._edges[mode] * log_odds
        left, size = self.left[mode], self.size[mode]
        ratio = self.log_ratio[mode] + log_odds[:, None]
        ratio[np.abs(ratio) < 1e-9] = 1e-9
        weights = np.exp(self.log_weight[mode] + left * log_odds[:, None] - peak[:, None])
        weights *= (np.exp(ratio * size) - 1) / (np.exp(ratio) - 1)  # like `_log_geometric`, with fewer digits
        weights *= 1 + 1e-9 * size
        tail = self._bound_tail(p, log_odds, peak, mode, weights)
        inside = weights.sum(axis=1)
        total = inside + tail
        cut = np.maximum(weights[:, 0], weights[:, -1]) > _LOST * total
        value = (peak + np.log(total) + n * np.log1p(-p) + self.tilted._rounding) / tilt
        mean = np.einsum("ij,ij->i", weights, left + (size - 1) / 2) / inside
        slope = 2 * (mean - n * p) / np.sqrt(p * (1 - p)) / tilt
        if cut.any():
            longer = (np.nan, np.nan) if self.wide is None else self.wide.upper_and_slope(p[cut])
            value[cut], slope[cut] = longer
        return value, slope

    def _bound_tail(self, p: Floats, log_odds: Floats, peak: Floats, mode: Places, weights: Floats) -> Floats:
        """What the plain way adds for the last cells, which it bounds instead of summing; their weights become 0."""
        tilted, cells = self.tilted, self.tilted._log_weight.size
        angle = np.arcsin(np.sqrt(p)) + _REACH * 0.5 / math.sqrt(tilted.n) + tilted.tilt / (4 * tilted.n)
        stop = tilted.n * np.sin(np.minimum(angle, math.pi / 2)) ** 2
        last = np.minimum(tilted._edges.searchsorted(stop) + 1, cells)
        beyond = np.minimum(last, cells - 1)
        later = tilted._largest_later_ratio[beyond] + log_odds
        log_next = tilted._log_weight[beyond] + tilted._edges[beyond] * log_odds
        bounded = (last < cells) & (later <= -1e-6)
        near = np.flatnonzero(bounded & (last < mode + self.half))
        weights[near] *= np.arange(-self.half, self.half) + mode[near, None] < last[near, None]
        return np.where(bounded, np.exp(log_next - peak) / -np.expm1(np.minimum(later, -1e-6)), 0.0)


def _log_geometric(log_ratio: Floats, size: Floats) -> Floats:
    """ln(1 + r + ... + r^(size-1)) for any ratio r >= 0 and size >= 1, from above."""
    # For r > 1 sum the series from its other end, so that nothing overflows: r^(size-1) (1 + 1/r + ...).
    # At r = 1 the sum is `size`; keeping |ln r| >= 1e-9 there changes it by less than size * 1e-9.
    steps = np.clip(np.abs(log_ratio), 1e-9, 700.0)
    series = np.log(np.expm1(-steps * size) / np.expm1(-steps))
    total: Floats = series + np.maximum(log_ratio, 0.0) * (size - 1) + 1e-9 * size
    return total
