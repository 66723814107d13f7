"""Checked answers (sections 15 and 16): guesses from some rows, checked on others that release only symbols.

The guarded rows only ever release a path of symbols: a claim passed, a claim failed and here is its cell, a challenger
was accepted, a candidate won. Every symbol is recorded with the path before it, so the levels that follow can be
computed from the records alone, and nothing is recomputed from rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from afresh.errors import InvalidArgument
from afresh.mechanisms import fresh
from afresh.mechanisms.base import Heard, Pairs, grid_problems
from afresh.mechanisms.parts import EqualAnswers, NoBatches, NoInformation, noisy_mean
from afresh.mechanisms.scale import BY_SUM, counts_of, hint_of, limits_of, sums_of, to_native, to_unit, values_of
from afresh.mechanisms.symbols import EXAM, after, check_symbol, path_before, path_of
from afresh.mechanisms.tasks import Claim, Contest, Task
from afresh.moments import Inside, Moments, Span
from afresh.theory.checked import (
    Checking,
    bins,
    check_limits,
    claim,
    expected_half_width,
    failed_bin_limits,
    failed_limits,
    node_level,
)
from afresh.theory.exact import VALUES, Values
from afresh.theory.paired import better
from afresh.theory.symbols import Trail, binned_winner_limits, cell_interval, claim_passes, detectable, outer_cell

_FINEST = 1e-3  # when an analyst's own guess fails, it is taken to be no finer than this
_STEPS = 16  # steps of a guessed deviation, from one to its double
_ROUNDING = 1e-9  # of logarithms, whose last bits differ between processors


@dataclass(frozen=True)
class Checked(NoBatches, EqualAnswers, NoInformation):
    """Constants, fixed before data is seen. Of the shuffled rows, the first `guessing` guess, the next `guarded` check.

    The last `exam` rows are used only for the questions of one exam, a round (section 14) with `exam_failure` of the
    failure probability for itself. `own` means that the rows that guess are the analyst's, and none of these.

    Validity rests on the guarded rows, whatever is known about the others: `opened` says that the analyst holds them,
    and guesses are then their exact means; otherwise guesses are noisy (Figure 1), so that they stay good. All other
    constants decide how wide answers are; `none`, `calm` and `passing` do so by dividing up the failure probability
    (`theory.checked.Checking`).
    """

    method: ClassVar[str] = "checked"
    about: ClassVar[str] = "guesses from some rows, confirmed on the others; these widths while checks pass"
    unavailable: ClassVar[str] = "more answers than questions"
    promised: ClassVar[bool] = False
    checks_guesses: ClassVar[bool] = True
    symbols: ClassVar[bool] = True
    pairs: ClassVar[Pairs] = "shifted"
    exact_moments: ClassVar[bool] = False
    proviso: ClassVar[str] = "if checks pass"

    rows: int
    questions: int
    failure: float
    guessing: int
    guarded: int
    opened: bool
    noise: float
    reach: float
    growth: float
    none: float
    calm: float
    passing: float
    grid: float | None = None
    exam: int = 0
    exam_failure: float = 0.0
    own: bool = False
    groups: bool = False
    """Whether the mean of a number within a group is one claim about the rows in it; not in older plans."""

    @property
    def shuffles(self) -> bool:
        """True: a file may be sorted."""
        return True

    @property
    def open_rows(self) -> Span | None:
        """The rows that the analyst may hold."""
        return Span(0, self.guessing) if self.opened and not self.own else None

    @property
    def exam_rows(self) -> Span | None:
        """The rows of the exam."""
        return Span(self.rows - self.exam, self.rows) if self.exam else None

    def spans(self, number: int, own: Span | None) -> tuple[Span, ...]:
        """The rows that guess, unless they are the analyst's own, and those that check; or the rows of the exam."""
        if own is not None:
            return (own,)
        first = 0 if self.own else self.guessing
        guarded = Span(first, first + self.guarded)
        return (guarded,) if self.own else (Span(0, self.guessing), guarded)

    @property
    def accounted(self) -> str:
        """Nothing is charged, whatever is known about the rows that guess."""
        what = "of your own guess" if self.own else "are open" if self.opened else "guess"
        exam = f"; {self.exam:,} are kept for the exam" if self.exam else ""
        rests = f"validity rests on the {self.guarded:,} that check"
        return f"not accounted for: {self.guessing:,} rows {what}, and {rests}{exam}"

    @property
    def advice(self) -> str:
        """Says that intervals are guaranteed, and widths are not."""
        return (
            f"{self.method} promises that every interval holds, not how wide it is: its widths are expected, and each "
            "guess that fails its check makes later answers wider (promise=True uses only promised widths)."
        )

    @property
    def failure_use(self) -> dict[str, float]:
        """Divided among the tree of everything the guarded rows may say, and the exam."""
        exam = {"exam": self.exam_failure} if self.exam else {}
        return {"all checks together": self.failure - self.exam_failure, **exam}

    @cached_property
    def checking(self) -> Checking:
        """The same constants in the theory's form."""
        shares = self.none, self.calm, self.passing
        return Checking(
            self.guessing,
            self.guarded,
            self.questions,
            self.failure - self.exam_failure,
            self.noise,
            self.reach,
            self.growth,
            *shares,
        )

    def guess(self, moments: Moments, noise: float) -> float:
        """Make a guess from the moments of the rows that guess, and one standard normal number."""
        if self.grid is None:
            return min(max(moments.mean, 0.0), 1.0)
        plan = self._about(self._share(moments))
        return noisy_mean(moments, noise, 1 / plan.noise, 1 / _least_variance(plan), self.grid)

    def _share(self, guessing: Moments) -> float | None:
        """Roughly the share of a group among the rows that guess; None for a mean over all rows."""
        if not isinstance(guessing, Inside):
            return None
        found = max(guessing.n, 1) / self.guessing
        return min(found if self.opened else _few_bits(found, math.floor), 1.0)

    def _about(self, share: float | None) -> Checking:
        """How claims are made about a group of this share, with one deviation of its checking rows' number to spare."""
        if share is None:
            return self.checking
        expected = share * self.guarded
        rows = (math.floor(max(each, 1.0)) for each in (share * self.guessing, expected - math.sqrt(expected)))
        guessing, guarded = rows
        return replace(self.checking, guess_rows=guessing, check_rows=guarded, noise=self.noise / share)

    def _deviation(self, moments: Moments, values: Values) -> float | None:
        """The spread that goes with a guess, on the scale of its values; None if it follows from the mean."""
        if values in BY_SUM:
            return None
        found = math.sqrt(moments.variance) * (2 if values == "three-valued" else 1)
        if self.opened or found < 1e-12:
            return found
        return _few_bits(found, math.ceil)

    def release(
        self,
        moments: Any,
        noise: float,
        *,
        guess: tuple[float, float] | None = None,
        task: Task | None = None,
        levels: int | None = None,
        unequal: bool = False,
        exam: int | None = None,
    ) -> Any:
        """What to release, once it is known what came before: the level of a test depends on how earlier ones went.

        `guess` is the analyst's own value and half-width. `unequal` means that features are public, so rows are not
        alike. In an `exam` of so many questions, exact moments of its rows are released, whatever came before.
        """
        if exam is not None:
            return {"task": EXAM, **fresh.moments_released(moments), "of": float(exam)}
        values = values_of(levels, unequal)
        guessing, guarded = moments
        if isinstance(task, Contest):
            return lambda earlier: self._contest(task, guarded, values, self.trail(earlier))
        if isinstance(task, Claim):
            return lambda earlier: self._claim(task, guarded, guessing, values, self.trail(earlier))
        value = self.guess(guessing, noise) if guess is None else min(max(guess[0], 0.0), 1.0)
        half_width = None if guess is None else guess[1]
        deviation = self._deviation(guessing, values)
        about = self._share(guessing)
        return lambda earlier: self._check(guarded, value, half_width, deviation, values, self.trail(earlier), about)

    def _check(
        self,
        guarded: Moments,
        value: float,
        half_width: float | None,
        deviation: float | None,
        values: Values,
        trail: Trail,
        share: float | None = None,
    ) -> dict[str, float]:
        plan, native = self._about(share), to_native(value, values)
        if half_width is None:
            low, high = to_unit(claim(plan, native, deviation, trail, values=values), values)
            cells = bins(plan, native, deviation, trail, values)
        else:
            low, high = value - half_width, value + half_width
            cells = math.ceil(1 / min(max(half_width, _FINEST), 1.0))
        low, high = max(min(low, value), 0.0), min(max(high, value), 1.0)
        known = {"values": float(VALUES.index(values)), "guess": value, "low": low, "high": high, "cells": float(cells)}
        known["deviation"] = -1.0 if deviation is None else deviation
        if share is not None:
            known["share"] = share
        if claim_passes(
            *self._tested(guarded, values, trail, check_limits, guess=native, deviation=deviation), low, high
        ):
            return {"task": 0.0, **known, "first": -1.0, "last": -1.0, **path_of(trail)}
        if values in BY_SUM:
            first = min(max(int(guarded.mean * cells), 0), cells - 1)
            last = first + 1
        else:
            first, last, _ = outer_cell(*self._tested(guarded, values, trail, failed_limits), cells)
        return {"task": 0.0, **known, "first": float(first), "last": float(last), **path_of(trail)}

    def _tested(
        self, guarded: Moments, values: Values, trail: Trail, limits: Callable[..., tuple[float, float]], **known: Any
    ) -> tuple[float, float]:
        """Limits on [0, 1] from the rows that check; for a group, from the rows in it, which are draws from it (14)."""
        if not guarded.n:
            return 0.0, 1.0
        plan = replace(self.checking, check_rows=guarded.n) if isinstance(guarded, Inside) else self.checking
        low, high = to_unit(limits(plan, *sums_of(guarded, values), trail, values=values, **known), values)
        return max(low, 0.0), min(high, 1.0)

    def _claim(
        self, task: Claim, guarded: Moments, guessing: Moments, values: Values, trail: Trail
    ) -> dict[str, float]:
        nats = node_level(self.checking, trail)
        if task.high >= 1 and task.low > 0:
            passed = self._above(guarded, task.low, values, nats, hint_of(guessing, values), signs=task.signs)
        else:
            ends = limits_of(guarded, values, nats, hint_of(guessing, values))
            passed = claim_passes(*ends, task.low, task.high)
        return {
            "task": 1.0,
            "low": task.low,
            "high": task.high,
            "expected": float(task.expected),
            "passed": float(passed),
            **path_of(trail),
        }

    def _above(
        self, guarded: Moments, least: float, values: Values, nats: float, hint: float | None, *, signs: bool
    ) -> bool:
        """Whether the mean is certainly above `least`; exactly, for a difference of 0/1 losses whose rows are alike."""
        if signs and values == "three-valued" and guarded.n:
            return better(guarded.n, *counts_of(guarded), nats, 2 * least - 1)
        return limits_of(guarded, values, nats, hint)[0] > least

    def _contest(self, task: Contest, guarded: Sequence[Moments], values: Values, trail: Trail) -> dict[str, float]:
        losses, gains = guarded[: task.candidates], guarded[task.candidates :]
        winner = min(range(task.candidates), key=lambda place: (losses[place].total, place))
        nats = self._contest_nats(trail, task.incumbent and task.bins > 0)
        if task.incumbent:
            paired: Values = "three-valued" if values in BY_SUM else "number"
            level = nats + math.log(task.candidates)  # a union over all that might have won
            if not self._above(gains[winner], 0.5, paired, level, None, signs=task.signs):
                winner = -1
        score = 1 - losses[winner].mean
        place = min(max(int(score * task.bins), 0), task.bins - 1) if winner >= 0 and task.bins else -1
        return {
            "task": 2.0,
            "values": float(VALUES.index(values)),
            "candidates": float(task.candidates),
            "incumbent": float(task.incumbent),
            "winner": float(winner),
            "bins": float(task.bins),
            "bin": float(place),
            **path_of(trail),
        }

    def _contest_nats(self, trail: Trail, halved: bool) -> float:
        """Use half of a node's alpha for the improvement and half for the value, where both are certified."""
        return node_level(self.checking, trail) + (math.log(2) if halved else 0.0)

    def trail(self, earlier: Sequence[Any]) -> Trail:
        """The path so far, from the last record; an exam uses other rows."""
        last = next((each for each in reversed(earlier) if each["task"] != EXAM), None)
        return Trail() if last is None else after(last)

    def history(self, earlier: Sequence[Any]) -> Trail:
        """The same, after checking that every record follows from those before it."""
        trail, exam = Trail(), [each for each in earlier if each["task"] == EXAM]
        if any(each["of"] != exam[0]["of"] for each in exam) or (exam and len(exam) > exam[0]["of"]):
            raise InvalidArgument("the exam has more questions than its intervals are made for")
        for each in (each for each in earlier if each["task"] != EXAM):
            before = path_before(each)
            # What was recorded is what counts: sums of logarithms differ between processors.
            same = (before.steps, before.events) == (trail.steps, trail.events)
            if not same or not math.isclose(before.nats, trail.nats, rel_tol=_ROUNDING, abs_tol=_ROUNDING):
                raise InvalidArgument("a checked answer does not follow from those before it")
            trail = after(each)
        return trail

    def admits(self, released: Any, *, levels: int | None = None, span: Span | None = None) -> bool:
        """Whether it is a symbol of its question, with a path that leads to it; in the exam, moments of its rows."""
        try:
            if (released["task"] == EXAM) != (span is not None):
                return False
            if span is not None:
                named = set(released) == {"task", "of", *fresh.NAMES} and span == self.exam_rows
                whole = released["of"] >= 1 and float(released["of"]).is_integer()
                return named and whole and fresh.moments_possible(released, levels, span.rows)
            check_symbol(released, levels, grouped=self.groups)
            before = path_before(released)
            after(released)
        except (InvalidArgument, KeyError, TypeError, ValueError, IndexError, OverflowError):
            return False
        return 0 <= before.events <= before.steps < self.questions and before.nats >= 0

    def value(self, released: Mapping[str, float]) -> float:
        """The guess, the middle of a cell, or the claim; one half if nothing is said about the mean."""
        match released["task"]:
            case 3.0:
                return fresh.mean_of(released)
            case 0.0 if released["first"] < 0:
                return released["guess"]
            case 0.0:
                return (released["first"] + released["last"]) / (2 * released["cells"])
            case 1.0 if released["passed"]:
                one_sided = released["high"] >= 1
                return released["low"] if one_sided else (released["low"] + released["high"]) / 2
            case 2.0 if released["bin"] >= 0:
                return 1 - (released["bin"] + 0.5) / released["bins"]
        return 0.5

    def noise_in(self, released: Mapping[str, float]) -> float:
        """The noise of a guess that passed, if the rows it came from are not open."""
        if self.opened or not self.confirmed(released):
            return 0.0
        plan = self._about(released.get("share"))
        return math.sqrt(max(_guessed_variance(released) * plan.noise, _least_variance(plan)))

    def deviation_in(self, released: Mapping[str, float]) -> float:
        """The deviation that goes with the guess."""
        return math.sqrt(_guessed_variance(released))

    def off_in(self, released: Mapping[str, float]) -> float:
        """The noise of a guess that passed, or half of the cells if it failed; at least what rounding hides."""
        return max((released["last"] - released["first"]) / (2 * released["cells"]), self.noise_in(released), fresh.OFF)

    def interval(self, released: Mapping[str, float], *, levels: int | None = None) -> tuple[float, float]:
        """The claim that passed, or what is certified about a failure's cell or a winner's bin; else all of [0, 1]."""
        if released["task"] == EXAM:
            return fresh.interval_of(released, self.exam_share(int(released["of"])), levels)
        trail = path_before(released)
        match released["task"]:
            case 0.0 if released["first"] < 0:
                return released["low"], released["high"]
            case 0.0:
                first, last, cells = (int(released[name]) for name in ("first", "last", "cells"))
                values = VALUES[int(released["values"])]
                if values in BY_SUM:
                    return failed_bin_limits(self.checking, first, cells, trail, values=values)
                return cell_interval(first, last, cells)
            case 1.0 if released["passed"]:
                return released["low"], released["high"]
            case 2.0 if released["bin"] >= 0:
                count, place = int(released["bins"]), int(released["bin"])
                two_valued = VALUES[int(released["values"])] == "two-valued"
                nats, weight = self._contest_nats(trail, bool(released["incumbent"])), 1 / released["candidates"]
                low, high = binned_winner_limits(place, count, self.guarded, nats, weight, two_valued=two_valued)
                return 1 - high, 1 - low
        return 0.0, 1.0

    def exam_share(self, questions: int) -> float:
        """The failure probability of each of this many exam questions."""
        return self.exam_failure / questions

    def half_width(self, mean: float, trail: Trail | None = None) -> float:
        """The half-width of a confirmed share that reads `mean`; by default, if nothing failed. Not guaranteed."""
        return expected_half_width(self.checking, mean, trail=trail)

    def deviation_width(self, mean: float, deviation: float) -> float:
        """The half-width of a confirmed number with this deviation, if nothing failed before. Not guaranteed."""
        return expected_half_width(self.checking, mean, deviation, values="number")

    def present_half_width(self, mean: float, released: Sequence[Any]) -> float:
        """The same after what was released: every failed check makes later claims wider."""
        trail = self.trail(released)
        return self.half_width(mean, None if trail.steps >= self.questions else trail)

    def difference(self, *parts: Heard) -> tuple[float, tuple[float, float]]:
        """The difference from psi = (d + 1)/2, whose interval follows how often models differ."""
        (psi,) = parts
        return 2 * psi.value - 1, (2 * psi.low - 1, 2 * psi.high - 1)

    def disagreement(self, *parts: Heard) -> float:
        """Roughly the mean of d^2, from the guessed mean and spread; 1, for all rows, if nothing was guessed."""
        released = parts[0].released
        if released["task"] == EXAM:
            return fresh.disagreement_of(released)
        if released["task"] != 0 or released["deviation"] < 0:
            return 1.0
        scale = 1 if VALUES[int(released["values"])] == "three-valued" else 2
        return float(min((released["deviation"] * scale) ** 2 + (2 * released["guess"] - 1) ** 2, 1.0))

    def difference_width(self, disagreement: float) -> float:
        """The half-width of one answer about a difference of 0/1 losses."""
        return expected_half_width(self.checking, 0.0, math.sqrt(disagreement), values="three-valued")

    def confirmed(self, released: Mapping[str, float]) -> bool | None:
        """Whether the guess behind an answer passed its check; None for other symbols."""
        return released["first"] < 0 if released["task"] == 0 else None

    def widened(self, released: Mapping[str, float]) -> float | None:
        """The share by which a failure widens the answers after it; None if nothing failed."""
        if released["task"] == EXAM:
            return None
        before, then = path_before(released), after(released)
        if then.events == before.events or then.steps >= self.questions:
            return None
        quiet = self.half_width(0.5, before.quiet())
        return self.half_width(0.5, then) / quiet - 1

    def detects(
        self,
        trail: Trail,
        mean: float,
        deviation: float | None = None,
        *,
        levels: int | None,
        unequal: bool = False,
        share: float = 1.0,
        among: int = 1,
        binned: bool = False,
    ) -> float:
        """How far inside a claim's ends, on [0, 1], the truth must be to pass nine times in ten after `trail`.

        In a contest `among` so many candidates, `binned` if the winner's value is asked for, as much for the winner.
        """
        rows = max(math.floor(share * self.guarded), 1)
        values = values_of(levels, unequal)
        if trail.steps >= self.questions:
            return 1.0
        scale = 2 if values == "three-valued" else 1
        native = None if deviation is None else deviation * scale
        nats = self._contest_nats(trail, binned) + math.log(among)
        return min(detectable(values, rows, nats, to_native(mean, values), native) / scale, 1.0)

    def problems(self) -> list[str]:
        """Whatever the other constants are, validity rests on the guarded rows and on how beta is divided up."""
        whole = all(isinstance(each, int) for each in (self.guessing, self.guarded, self.exam))
        used = (0 if self.own else self.guessing) + self.guarded + self.exam
        if not (whole and self.guessing >= 1 and self.guarded >= 1 and self.exam >= 0 and used <= self.rows):
            return ["there are no rows that guess, or none that check, or more than there are"]
        if not (0 < self.exam_failure < self.failure if self.exam else self.exam_failure == 0):
            return ["the exam's share of the failure probability is none, or more than there is"]
        if self.own and not self.opened:
            return ["rows of the analyst's own guess, so they are open"]
        try:
            _ = self.checking
        except InvalidArgument as error:
            return [str(error)]
        if self.opened != (self.noise == 0) or self.opened != (self.grid is None):
            return ["rows that guess are either open or noisy"]
        return [] if self.grid is None else grid_problems(self.grid, math.sqrt(_least_variance(self.checking)))


def _guessed_variance(released: Mapping[str, float]) -> float:
    """The variance that goes with a guess, of values in [0, 1]."""
    scale = 2 if VALUES[int(released["values"])] == "three-valued" else 1
    guess, deviation = released["guess"], released["deviation"] / scale
    return guess * (1 - guess) if deviation < 0 else deviation**2


def _least_variance(plan: Checking) -> float:
    """1/T of Figure 1: as if one row of the smaller part had a different value."""
    return plan.noise / min(plan.guess_rows, plan.check_rows)


def _few_bits(found: float, rounded: Callable[[float], int]) -> float:
    """Round, so that guesses reveal little about the rows they come from."""
    return float(2 ** (rounded(math.log2(found) * _STEPS) / _STEPS))
