"""Guess and check (Rogers et al. 2020), made variance-adaptive: section 11.

Rows are split once. Guesses come from one part, or from anywhere else; the other part only checks them. A guess is
an interval, its claim. If the check part's own interval lies within the claim, the claim is released and nothing else;
if not, the index of the bin that holds the check part's mean, and nothing else. So given the guess side, what the check
part can say is a tree: a pass has one child, a failure as many as there were bins. The failure probability is divided
among the nodes of that tree, and a union over them makes all intervals hold at once.

Everything here is a pure function of released records and public constants, so anyone with the records can compute the
intervals again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from afresh.errors import InvalidArgument
from afresh.theory.bernoulli import kl_lower, kl_upper

_OUTWARD = 1e-12  # covers the rounding of logarithms, of a mean and of a bin's edges


@dataclass(frozen=True, slots=True)
class History:
    """Everything later levels need from the past: questions asked, failures, and the logarithm of all their bins."""

    asked: int = 0
    failures: int = 0
    log_bins: float = 0.0

    def after(self, record: Record) -> History:
        """The history after a record was released."""
        if record.bin is None:
            return History(self.asked + 1, self.failures, self.log_bins)
        return History(self.asked + 1, self.failures + 1, self.log_bins + math.log(record.bins))


@dataclass(frozen=True, slots=True)
class Record:
    """What is released about one question: the claim, and either that it passed or the bin of the check mean.

    `guess`, `low` and `high` are the claim and how it reads, `bins` the number of bins a failure chose from, all
    functions of the guess side and of earlier records; `bin` is None for a pass.
    """

    guess: float
    low: float
    high: float
    bins: int
    bin: int | None = None


def log_share(k: int, history: History) -> float:
    """ln(beta_j / beta): q_j r_f / (C(j-1, f) prod_i bins_i), with q_j = 1/k and r_f = 6/(pi^2 (f+1)^2).

    The nodes before question j with f failures are C(j-1, f) patterns times the bins chosen; r_f sums to 1 over f.
    """
    before, f = history.asked, history.failures
    if not (0 <= f <= before < k):
        raise InvalidArgument(f"{before} questions asked with {f} failures: needs f <= asked < k == {k}.")
    patterns = math.lgamma(before + 1) - math.lgamma(f + 1) - math.lgamma(before - f + 1)
    return math.log(6) - 2 * math.log(math.pi * (f + 1)) - math.log(k) - patterns - history.log_bins


def check_level(k: int, failure: float, history: History) -> float:
    """ln(2/beta_j), from above: the next check interval is n_check kl(mean || P) <= this."""
    if not 0 < failure < 1:
        raise InvalidArgument(f"failure == {failure}, must be in (0, 1).")
    level = math.log(2 / failure) - log_share(k, history)
    return level * (1 + _OUTWARD) + _OUTWARD


def check_interval(mean: float, rows: int, level: float) -> tuple[float, float]:
    """Chernoff's interval of the check part's mean. It is never released as such."""
    return kl_lower(mean, level / rows), kl_upper(mean, level / rows)


def bin_of(mean: float, bins: int) -> int:
    """floor(mean * bins), the last bin closed."""
    return min(max(int(mean * bins), 0), bins - 1)


def bin_interval(index: int, bins: int, rows: int, level: float) -> tuple[float, float]:
    """[lo(left edge), hi(right edge)]: holds whenever the interval of a mean in the bin does."""
    left, right = max(index / bins - _OUTWARD, 0.0), min((index + 1) / bins + _OUTWARD, 1.0)
    return kl_lower(left, level / rows), kl_upper(right, level / rows)


def check(mean: float, guess: float, low: float, high: float, bins: int, rows: int, level: float) -> Record:
    """What to release about a question whose check part has this mean."""
    if not (0 <= low <= guess <= high <= 1) or bins < 1:
        raise InvalidArgument(
            f"guess {guess} in [{low}, {high}] with {bins} bins: needs 0 <= low <= guess <= high <= 1."
        )
    least, most = check_interval(mean, rows, level)
    passed = low <= least and most <= high
    return Record(guess, low, high, bins, None if passed else bin_of(mean, bins))


def released_interval(record: Record, rows: int, level: float) -> tuple[float, float]:
    """The interval that goes with a record: the claim, or the bin's interval."""
    if record.bin is None:
        return record.low, record.high
    return bin_interval(record.bin, record.bins, rows, level)


def released_value(record: Record) -> float:
    """How the answer reads: the guess, or the middle of the bin."""
    return record.guess if record.bin is None else (record.bin + 0.5) / record.bins


def replay(records: Iterable[Record], k: int, failure: float, rows: int) -> Iterator[tuple[float, float, float]]:
    """Value, low and high of every record, from the records alone; refuses impossible records."""
    history = History()
    for number, record in enumerate(records, start=1):
        claimed = 0 <= record.low <= record.guess <= record.high <= 1 and record.bins >= 1
        if not claimed or (record.bin is not None and not 0 <= record.bin < record.bins):
            raise InvalidArgument(f"record {number} == {record}, which no check releases.")
        level = check_level(k, failure, history)
        yield released_value(record), *released_interval(record, rows, level)
        history = history.after(record)
