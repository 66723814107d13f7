"""Guess and check (section 11), replaced by `checked`: old ledgers continue with it, new plans do not use it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from afresh.errors import InvalidArgument
from afresh.mechanisms.base import grid_problems, grid_step
from afresh.mechanisms.parts import DifferenceOfParts, EqualAnswers, NoBatches, NoInformation, NoSymbols
from afresh.mechanisms.stabilized import noisy_transform
from afresh.moments import Moments, Span
from afresh.theory.bernoulli import kl_lower, kl_upper
from afresh.theory.guess_and_check import (
    History,
    Record,
    check,
    check_level,
    released_interval,
    released_value,
    replay,
)
from afresh.theory.special import ndtri
from afresh.theory.transform import Transform


@dataclass(frozen=True)
class GuessAndCheck(NoSymbols, NoBatches, EqualAnswers, NoInformation, DifferenceOfParts):
    """Constants, fixed before data is seen; every method is a pure function of them and of its arguments.

    Validity rests on a union over everything the check part may say; the cost of an answer is in the level of the
    checks that follow it. The guesser's noise s (on the scale of Theta), its variance floor v0, and `reach`, how many
    deviations of guess and check means a claim allows for, only decide how wide answers are. Each failure widens the
    claims that follow by the share `growth`, until they are `most_growth` times as wide: failures cost more than width.
    Guesses are noise added to Theta(mu), on a grid of that scale. Rows are `dealt` into blocks: the first `guessing`
    blocks guess and the others check.
    """

    method: ClassVar[str] = "guess-and-check"
    about: ClassVar[str] = "guesses from some rows, checked on the others; these widths if checks pass"
    unavailable: ClassVar[str] = "more answers than questions"
    promised: ClassVar[bool] = False
    checks_guesses: ClassVar[bool] = True
    proviso: ClassVar[str] = "if checks pass"

    rows: int
    questions: int
    failure: float
    s: float
    v0: float
    reach: float
    growth: float
    most_growth: float
    dealt: int
    guessing: int
    grid: float

    @property
    def guess_rows(self) -> int:
        """The rows that guesses come from."""
        return self.rows // self.dealt * self.guessing

    @property
    def check_rows(self) -> int:
        """The rows that only check."""
        return self.rows // self.dealt * (self.dealt - self.guessing)

    @property
    def shuffles(self) -> bool:
        """True: a file may be sorted."""
        return True

    def spans(self, number: int, own: Span | None) -> tuple[Span, ...]:
        """The rows that guess, and the rows that check."""
        return Span(0, self.guess_rows), Span(self.guess_rows, self.guess_rows + self.check_rows)

    @property
    def accounted(self) -> str:
        """Nothing is charged, whatever is known about the rows that guess."""
        guess, check = self.guess_rows, self.check_rows
        return f"not accounted for: {guess:,} rows guess, and validity rests on the {check:,} that check"

    @property
    def advice(self) -> str:
        """Says that intervals are guaranteed, and widths are not."""
        return (
            f"{self.method} promises that every interval holds, not how wide it is: each guess that fails its check "
            "makes later answers wider."
        )

    @property
    def failure_use(self) -> dict[str, float]:
        """Divided among the tree of everything the check part may say."""
        return {"all checks together": self.failure}

    @cached_property
    def _transform(self) -> Transform:
        return Transform(self.v0)

    def guess(self, moments: Moments, noise: float) -> float:
        """Make a guess from the guess part's moments and one standard normal number, on a public grid in [0, 1]."""
        return self._transform.inverse_at(noisy_transform(self._transform, moments, noise, self.s, self.grid))

    def claim(self, guess: float, history: History) -> tuple[float, float, int]:
        """The low and high end of the claim that goes with a guess, and the number of bins if it fails.

        The claim contains the check interval of every mean within `reach` deviations of the guess.
        """
        margin = self._margin(guess) * min((1 + self.growth) ** history.failures, self.most_growth)
        bound = check_level(self.questions, self.failure, history) / self.check_rows
        low, high = kl_lower(max(guess - margin, 0.0), bound), kl_upper(min(guess + margin, 1.0), bound)
        return low, high, math.ceil(1 / min(margin, 1.0))

    def _margin(self, guess: float) -> float:
        spread = 4 * self.s**2 + 1 / self.guess_rows + 1 / self.check_rows
        return self.reach * math.sqrt(max(guess * (1 - guess), self.v0) * spread)

    def user_claim(self, value: float, half_width: float) -> tuple[float, float, int]:
        """The same for the user's own guess; a failure costs as many bins as the claim is wide."""
        low, high = max(value - half_width, 0.0), min(value + half_width, 1.0)
        return low, high, math.ceil(1 / min(max(half_width, 1e-3), 1.0))

    def release(
        self, moments: tuple[Moments, Moments], noise: float, *, guess: tuple[float, float] | None = None
    ) -> Callable[[Sequence[Any]], dict[str, float]]:
        """What to release, once it is known what came before; `guess` is the user's own value and half-width.

        The guess is made now. The claim and the level of its check depend on how earlier checks went, so they are
        settled in the order in which answers are recorded.
        """
        guessing, checking = moments
        value = self.guess(guessing, noise) if guess is None else min(max(guess[0], 0.0), 1.0)

        def settle(earlier: Sequence[Any]) -> dict[str, float]:
            history = self.trail(earlier)
            claim = self.claim(value, history) if guess is None else self.user_claim(*guess)
            return pack(self.check(checking.mean, value, claim, history), history)

        return settle

    def trail(self, earlier: Sequence[Any]) -> History:
        """What later levels need from earlier releases, read from the last record."""
        if not earlier:
            return History()
        record, before = unpack(earlier[-1])
        return before.after(record)

    def history(self, earlier: Sequence[Any]) -> History:
        """The same, after checking that every record follows from those before it."""
        history = History()
        for each in earlier:
            record, before = unpack(each)
            # The last bits of logarithms differ between processors; what was recorded is what counts.
            counts = (before.asked, before.failures) == (history.asked, history.failures)
            if not counts or not math.isclose(before.log_bins, history.log_bins, rel_tol=1e-9, abs_tol=1e-9):
                raise InvalidArgument("an answer of guess and check does not follow from those before it")
            history = before.after(record)
        return history

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether it is a claim with its bins, and the past that its level follows from."""
        try:
            _, history = unpack(released)
        except (InvalidArgument, KeyError, TypeError, ValueError):
            return False
        return len(released) == 8 and 0 <= history.failures <= history.asked < self.questions

    def value(self, released: Mapping[str, float]) -> float:
        """The guess, or the middle of the bin."""
        return released_value(unpack(released)[0])

    def noise_in(self, released: Mapping[str, float]) -> float:
        """The noise of a guess that passed."""
        value = self.value(released)
        return self.s * 2 * math.sqrt(max(value * (1 - value), self.v0)) if self.confirmed(released) else 0.0

    def check(self, mean: float, guess: float, claim: tuple[float, float, int], history: History) -> Record:
        """What to release, from the check part's mean."""
        low, high, bins = claim
        level = check_level(self.questions, self.failure, history)
        return check(mean, guess, low, high, bins, self.check_rows, level)

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """The claim that passed, or the interval of the bin."""
        record, history = unpack(released)
        level = check_level(self.questions, self.failure, history)
        return released_interval(record, self.check_rows, level)

    def replay(self, records: Iterable[Record]) -> list[tuple[float, float, float]]:
        """Value, low and high of all records, from them alone."""
        return list(replay(records, self.questions, self.failure, self.check_rows))

    def half_width(self, mean: float, history: History | None = None) -> float:
        """The half-width of a guess that reads `mean` and passes; by default, if nothing failed. Not guaranteed."""
        low, high, _ = self.claim(mean, history or History())
        return (high - low) / 2

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """The same after what was released: every failed check makes later claims wider."""
        return self.half_width(mean, self.trail(released))

    def confirmed(self, released: Mapping[str, float]) -> bool:
        """Whether the guess passed its check."""
        return unpack(released)[0].bin is None

    def widened(self, released: Mapping[str, float]) -> float | None:
        """The share by which a failure widens the answers after it."""
        record, before = unpack(released)
        if record.bin is None or before.asked + 1 >= self.questions:
            return None
        passed = replace(record, bin=None)
        return self.half_width(0.5, before.after(record)) / self.half_width(0.5, before.after(passed)) - 1

    def problems(self) -> list[str]:
        """Whatever the other constants are, validity rests on the checks."""
        if not (0 < self.guessing < self.dealt and self.check_rows >= 1):
            return ["there are no rows that check"]
        return grid_problems(self.grid, self.s)


def pack(record: Record, history: History) -> dict[str, float]:
    """A record as a ledger keeps it, with the history that determines its level; bin -1 is a pass."""
    return {
        "guess": record.guess,
        "low": record.low,
        "high": record.high,
        "bins": float(record.bins),
        "bin": -1.0 if record.bin is None else float(record.bin),
        "asked": float(history.asked),
        "failures": float(history.failures),
        "log_bins": history.log_bins,
    }


def unpack(released: Mapping[str, float]) -> tuple[Record, History]:
    """Read the record and its history; refuses anything that no check releases."""
    if not isinstance(released, Mapping):
        raise InvalidArgument("this is not an answer of guess and check")
    passed = released["bin"] == -1.0
    record = Record(
        released["guess"],
        released["low"],
        released["high"],
        int(released["bins"]),
        None if passed else int(released["bin"]),
    )
    claimed = 0 <= record.low <= record.guess <= record.high <= 1 and record.bins >= 1
    if not claimed or (record.bin is not None and not 0 <= record.bin < record.bins):
        raise InvalidArgument("this is not an answer of guess and check")
    return record, History(int(released["asked"]), int(released["failures"]), released["log_bins"])


# Found by a search on simulated attacks (docs/lab.md): noise, failures to expect, growth, and blocks of rows.
_NOISE, _EXPECTED_FAILURES, _GROWTH, _MOST_GROWTH = 0.22, 0.15, 0.05, 4.0
_DEALT, _GUESSING = 5, 3


def plan_guess_and_check(rows: int, questions: int, failure: float, answers: int | None = None) -> GuessAndCheck | None:
    """Constants that did well against the lab's attacks; None if more answers than questions are wanted."""
    return make_guess_and_check(rows, questions, failure) if answers in (None, questions) else None


def make_guess_and_check(rows: int, questions: int, failure: float) -> GuessAndCheck:
    """Noise 0.22 (sqrt(k)/n)^(1/2), three rows in five guess."""
    s = _NOISE * math.sqrt(math.sqrt(questions) / rows)
    reach = -ndtri(min(_EXPECTED_FAILURES / (2 * questions), 0.25))
    v0 = min(5 * math.sqrt(questions) / rows, 0.25)
    growth = _GROWTH, _MOST_GROWTH
    return GuessAndCheck(rows, questions, failure, s, v0, reach, *growth, _DEALT, _GUESSING, grid_step(s))
