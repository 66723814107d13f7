"""Checked answers, claims, challenges and contests as one mechanism: by enumeration of all samples of small worlds."""

import math
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from afresh.errors import InvalidArgument
from afresh.mechanisms.checked import Checked
from afresh.mechanisms.planned_checks import plan_checks, plan_open_rows
from afresh.mechanisms.symbols import after, path_before
from afresh.mechanisms.tasks import Claim, Contest, Task
from afresh.moments import Inside, Moments
from afresh.theory.checked import node_level
from afresh.theory.symbols import Trail
from oracle import narrower as oracle

ROWS, STEPS, FAILURE = 9, 4, 0.6
# Six row functions of rows of four kinds.
TABLE = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]], dtype=float)
SMALL = Checked(2 * ROWS, STEPS, FAILURE, ROWS, ROWS, True, 0.0, 0.6, 0.1, 0.5, 1.0, 0.8)
PARTS = ("check", "number", "claim", "better", "challenge", "contest")
GROUPED = replace(SMALL, groups=True)


class Wild:
    """An analyst without sense: what it asks next is a fixed random function of all that was released."""

    def __init__(
        self, seed: int, law: NDArray[np.float64], counts: NDArray[np.int64], parts: tuple[str, ...] = PARTS
    ) -> None:
        self.seed, self.law, self.counts, self.path, self.parts = seed, law, counts, "", parts

    def moments(self, x: NDArray[np.float64]) -> Moments:
        return Moments(ROWS, float(self.counts @ x), float(self.counts @ x**2))

    def step(self, mechanism: Checked, earlier: list[Any]) -> bool:
        """Ask, hear; whether what was certified is wrong."""
        rng = np.random.default_rng(zlib.crc32(f"{self.seed} {self.path}".encode()))
        kind = self.parts[rng.integers(len(self.parts))]
        x, y = TABLE[rng.integers(6)], TABLE[rng.integers(6)]
        truth, difference = float(x @ self.law), (x - y + 1) / 2
        task: Task | None = None
        options: dict[str, Any] = {"levels": 2, "unequal": bool(rng.integers(2))}
        if kind == "contest":
            some = [TABLE[i] for i in rng.permutation(6)[:3]]
            task = Contest(3, int(rng.integers(0, 5)), bool(rng.integers(2)), bool(rng.integers(2)))
            gains = [(y - each + 1) / 2 for each in some] if task.incumbent else []
            own: Any = [self.moments(each) for each in (*some, *gains)]
        elif kind in ("better", "challenge"):
            task = Claim(0.5 + 0.1 * rng.integers(2), 1.0, expected=kind == "better", signs=bool(rng.integers(2)))
            own, options["levels"] = self.moments(difference), 3
        elif kind == "claim":
            low = float(rng.uniform(0, 0.6))
            task, own = Claim(low, low + float(rng.uniform(0.1, 0.4))), self.moments(x)
        else:
            options["guess"] = (float(np.clip(truth + rng.normal(0, 0.2), 0, 1)), float(rng.uniform(0.05, 0.5)))
            x = x if kind == "check" else difference
            own, truth = self.moments(x), float(x @ self.law)
            options["levels"] = 2 if kind == "check" else (3 if rng.integers(2) else None)
        guessing = Moments(ROWS, ROWS / 2, ROWS / 3)
        if kind == "group":  # a number within the rows where y is 1, of which there may be none
            a, group = 0.2 + 0.6 * x, self.counts * y
            own, truth = Inside(int(group.sum()), float(group @ a), float(group @ a**2)), float(self.law * y @ a)
            truth /= float(self.law @ y)
            guessing, options["levels"], options["unequal"] = Inside(4, 2.0, 1.2), None, False
            if rng.integers(2):
                options["guess"] = (truth, float(rng.uniform(0.01, 0.3)))
            else:
                del options["guess"]
        if kind.startswith("claim of a"):  # within the rows where y is 1, about a condition or a number
            condition = kind.endswith("condition")
            a, group = x if condition else 0.2 + 0.6 * x, self.counts * y
            own, truth = Inside(int(group.sum()), float(group @ a), float(group @ a**2)), float(self.law * y @ a)
            truth /= float(self.law @ y)
            low = float(rng.uniform(0, 0.6))
            task = Claim(low, 1.0 if rng.integers(2) else low + float(rng.uniform(0.1, 0.4)))
            options = {"levels": 2 if condition else None}
            guessing = Inside(*((4, 2.0, 1.2) if rng.integers(2) else (0, 0.0, 0.0)))
        released = mechanism.release((guessing, own), 0.0, task=task, **options)(earlier)
        assert mechanism.admits(released, levels=options["levels"])
        earlier.append(released)
        self.path += repr(sorted(released.items()))
        low, high = mechanism.interval(released)
        assert 0 <= low <= mechanism.value(released) <= high <= 1
        if isinstance(task, Contest):
            winner = int(released["winner"])
            if winner < 0:
                return False
            beaten = task.incumbent and float(some[winner] @ self.law) >= float(y @ self.law)
            return bool(beaten or not low <= float(some[winner] @ self.law) <= high)
        if isinstance(task, Claim) and options["levels"] == 3:
            return bool(released["passed"] and float(difference @ self.law) <= task.low)
        return not low - 1e-9 <= truth <= high + 1e-9


def chances(seed: int, mechanism: Checked, reset: bool = False, parts: tuple[str, ...] = PARTS) -> tuple[float, float]:
    """Of a wrong certificate, over all samples; and of one among those of an analyst who asks one step of four."""
    law = np.random.default_rng(1000 + seed).dirichlet(np.full(4, 0.7))
    wrong = own = 0.0
    for counts in oracle.all_counts(ROWS, 4):
        analyst = Wild(seed, law, np.array(counts), parts)
        earlier: list[Any] = []
        missed = [analyst.step(mechanism, [] if reset else earlier) for _ in range(STEPS)]
        chance = oracle.multinomial(counts, law)
        wrong += chance * any(missed)
        # who asks when depends on the past: here right after the first event, or at the last step
        events = [0] if reset else [int(after(each).events) for each in earlier]
        place = next((i + 1 for i, f in enumerate(events[:-1]) if f), STEPS - 1)
        own += chance * missed[min(place, STEPS - 1)]
    return wrong, own


@pytest.mark.parametrize("seed", [0, 4, 6, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(7, 20))])
def test_whatever_is_asked_of_the_tree_holds(seed: int) -> None:
    """Checks, claims, challenges and contests in any order, adaptively; all samples of nine rows of four kinds."""
    wrong, own = chances(seed, SMALL)
    assert wrong <= FAILURE
    assert own <= FAILURE / STEPS  # whose share of the answers is a quarter has a quarter of beta


@pytest.mark.parametrize("seed", [1, 2, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(3, 16))])
def test_means_within_groups_hold_whichever_rows_are_in_them(seed: int) -> None:
    """Claims about numbers in groups that may be empty, among others, adaptively; all samples of nine rows."""
    wrong, own = chances(seed, GROUPED, parts=("group", "group", "number", "check"))
    assert wrong <= FAILURE
    assert own <= FAILURE / STEPS


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(9, 19))])
@pytest.mark.parametrize("mechanism", [SMALL, GROUPED], ids=["older plan", "plan"])
def test_claims_within_groups_hold_whichever_rows_are_in_them(mechanism: Checked, seed: int) -> None:
    """The same for what an analyst claims about conditions and numbers in groups; plans from before have them too."""
    wrong, own = chances(seed, mechanism, parts=("claim of a condition", "claim of a number", "check", "claim"))
    assert wrong <= FAILURE
    assert own <= FAILURE / STEPS


def chance_of_a_pass(law: NDArray[np.float64], a: NDArray[np.float64], y: NDArray[np.float64], copies: int) -> float:
    """That a mean within the rows where y is 1 passes as above its true value by a hair, each row counted so often."""
    truth = float(law * y @ a / (law @ y))
    chance = 0.0
    for counts in oracle.all_counts(ROWS, 4):
        group = copies * np.array(counts) * y
        own = Inside(int(group.sum()), float(group @ a), float(group @ a**2))
        levels = 2 if set(a) <= {0.0, 1.0} else None
        task = Claim(min(truth + 1e-9, 1.0), 1.0)
        released = SMALL.release((Inside(4, 2.0, 1.2), own), 0.0, task=task, levels=levels)([])
        chance += released["passed"] * oracle.multinomial(counts, law)
    return chance


def test_what_is_false_of_a_group_passes_as_rarely_as_its_level_says() -> None:
    """The worst claim there is, over all samples; counting rows more than once would be seen."""
    level, worst, wrong = math.exp(-node_level(SMALL.checking, Trail())), 0.0, 0.0
    for seed in range(6):
        random = np.random.default_rng(seed)
        law, x, y = random.dirichlet(np.full(4, 0.7)), TABLE[seed], TABLE[(seed + 1 + seed % 2) % 6]
        for a in (x, 0.2 + 0.6 * x):
            worst = max(worst, chance_of_a_pass(law, a, y, 1))
            wrong = max(wrong, chance_of_a_pass(law, a, y, 9))
    assert worst <= level < wrong


@pytest.mark.parametrize("opened", [False, True])
def test_a_group_says_its_share_and_nothing_else_of_the_rows_that_check(opened: bool) -> None:
    mechanism = plan_open_rows(20_000, 50, 0.05, share=0.5) if opened else plan_checks(20_000, 50, 0.05)
    assert mechanism is not None
    guarded = Inside(2400, 2400 * 0.7, 2400 * (0.49 + 0.0025))
    found = []
    for rows in (3010, 3020):
        guessing = Inside(rows, rows * 0.7, rows * (0.49 + 0.0025))
        released = mechanism.release((guessing, guarded), 0.0)([])
        assert mechanism.confirmed(released)
        assert mechanism.admits(released)
        assert mechanism.interval(released)[1] - mechanism.interval(released)[0] < 0.03
        assert mechanism.noise_in(released) < 0.01
        found.append(released["share"])
        assert not replace(mechanism, groups=False).admits(released)  # a plan from before, which had no such answers
        for lie in (0.0, 1.5, -1.0):
            assert not mechanism.admits({**released, "share": lie})
        assert not mechanism.admits(released, levels=2)
        with_more = mechanism.release((guessing, Inside(2401, 2401 * 0.7, 2401 * (0.49 + 0.0025))), 0.0)([])
        assert with_more == released
    assert (found[0] == found[1]) is not opened  # few bits, unless the analyst holds the rows
    nobody = mechanism.release((Inside(0, 0.0, 0.0), Inside(0, 0.0, 0.0)), 0.0)([])
    assert mechanism.interval(nobody) == (0.0, 1.0)
    assert mechanism.admits(nobody)


def test_levels_that_forget_the_past_would_not_hold() -> None:
    """What the enumeration can see: such an analyst against tests at nearly any level, and steps that cost nothing."""
    careless = replace(SMALL, questions=1, failure=0.95, none=0.99)
    assert chances(7, careless, reset=True)[0] > FAILURE


def symbols(mechanism: Checked, task: Task | None, levels: int | None) -> list[float]:
    """The nats of every symbol that can follow, by trying many samples."""
    found = {}
    n = mechanism.guarded
    for hits in range(n + 1):
        for spread in (0.0, 0.5, 1.0):
            mean = hits / n
            second = n * (mean**2 + spread * mean * (1 - mean))
            m = Moments(n, float(hits), float(hits) if levels == 2 else second)
            own: Any = m
            if isinstance(task, Contest):
                own = [Moments(n, (hits * (i + 1)) % (n + 1), 0.0) for i in range(2 * task.candidates)]
                own = [Moments(n, each.total, each.total) for each in own]
            released = mechanism.release(
                (Moments(n, n / 2, n / 3), own), 0.3, task=task, levels=levels, guess=None if task else (0.5, 0.1)
            )([])
            found[repr(sorted(released.items()))] = after(released)
    return [math.exp(-each.nats) for each in found.values() if each.events]


@pytest.mark.parametrize(
    ("task", "levels"),
    [(None, 2), (None, None), (Claim(0.2, 0.6), 2), (Contest(3), 2), (Contest(3, 4), 2), (Contest(2, 5, True), 2)],
)
def test_the_weights_of_an_events_symbols_sum_to_at_most_one(task: Task | None, levels: int | None) -> None:
    mechanism = replace(SMALL, guessing=30, guarded=30, rows=60)
    assert sum(symbols(mechanism, task, levels)) <= 1 + 1e-9


def test_levels_follow_the_path() -> None:
    mechanism = plan_checks(10_000, 100, 0.05)
    assert mechanism is not None
    trail = Trail()
    levels = [node_level(mechanism.checking, trail)]
    for step in range(6):
        trail = trail.event(2.0) if step % 2 else trail.quiet()
        levels.append(node_level(mechanism.checking, trail))
    assert levels == sorted(levels)
    assert levels[2] - levels[1] > 2.0


@given(
    mean=st.floats(0, 1),
    spread=st.floats(0, 1),
    noise=st.floats(-8, 8),
    levels=st.sampled_from([2, 3, None]),
    unequal=st.booleans(),
    opened=st.booleans(),
)
def test_a_symbol_reads_inside_its_interval(
    mean: float, spread: float, noise: float, levels: int | None, unequal: bool, opened: bool
) -> None:
    mechanism = plan_open_rows(500, 20, 0.05, share=0.5) if opened else plan_checks(500, 20, 0.05)
    assert mechanism is not None
    parts = []
    for n in (mechanism.guessing, mechanism.guarded):
        if levels == 3:
            ones, halves = round(mean * n), round(spread * (n - round(mean * n)))
            parts.append(Moments(n, ones + halves / 2, ones + halves / 4))
        elif levels == 2:
            parts.append(Moments(n, float(round(mean * n)), float(round(mean * n))))
        else:
            parts.append(Moments(n, mean * n, n * (mean**2 + spread * mean * (1 - mean))))
    earlier: list[Any] = []
    for _ in range(2):
        released = mechanism.release(tuple(parts), noise, levels=levels, unequal=unequal)(earlier)
        low, high = mechanism.interval(released, levels=levels)
        assert 0 <= low <= mechanism.value(released) <= high <= 1
        assert mechanism.admits(released, levels=levels)
        assert not mechanism.admits(released, levels=2 if levels is None else None)
        earlier.append(released)
    assert mechanism.history(earlier) == mechanism.trail(earlier)


def test_open_rows_guess_exactly_and_others_through_noise() -> None:
    opened, noisy = plan_open_rows(1000, 50, 0.05, share=0.4), plan_checks(1000, 50, 0.05)
    assert noisy is not None
    assert opened is not None
    assert (opened.guessing, opened.guarded, opened.open_rows) == (400, 600, (0, 400))
    assert noisy.open_rows is None
    m = Moments(400, 100.0, 90.0)
    assert opened.guess(m, 3.0) == 0.25
    assert noisy.guess(m, 3.0) != noisy.guess(m, -3.0)


@pytest.mark.parametrize(
    "broken",
    [
        *({"guarded": 0}, {"guessing": 0}, {"rows": 10}, {"none": 1.0}, {"calm": 0.0}, {"passing": 1.0}),
        *({"opened": True}, {"grid": None}, {"grid": 0.25}, {"guarded": 450.5}, {"failure": 1.0}),
    ],
)
def test_constants_that_carry_no_certificate_are_found(broken: dict[str, Any]) -> None:
    mechanism = plan_checks(1000, 50, 0.05)
    assert mechanism is not None
    assert mechanism.problems() == []
    assert replace(mechanism, **broken).problems() != []


def test_records_that_do_not_follow_are_refused() -> None:
    mechanism = plan_checks(1000, 50, 0.05)
    assert mechanism is not None
    m = Moments(mechanism.guessing, 100.0, 100.0), Moments(mechanism.guarded, 400.0, 400.0)
    earlier: list[Any] = []
    for _ in range(4):
        earlier.append(mechanism.release(m, 0.0, levels=2)(earlier))
    assert path_before(earlier[-1]).events == 3
    mechanism.history(earlier)
    for lie in ([*earlier[1:]], [earlier[0], earlier[2]], [*earlier, earlier[-1]], [{**earlier[0], "nats": 1.0}]):
        with pytest.raises(InvalidArgument):
            mechanism.history(lie)
    for junk in (
        None,
        0.5,
        {},
        {**earlier[0], "cells": 0.0},
        {**earlier[0], "first": 0.5},
        {**earlier[0], "steps": -1.0},
    ):
        assert not mechanism.admits(junk, levels=2)


@given(
    mean=st.floats(0, 1),
    part=st.floats(0, 1),
    noise=st.floats(-3, 3),
    off=st.floats(-0.5, 0.5),
    levels=st.sampled_from([None, 2]),
    opened=st.booleans(),
)
def test_the_deviation_in_an_answer_tells_how_far_numbers_are_from_it(
    mean: float, part: float, noise: float, off: float, levels: int | None, opened: bool
) -> None:
    """Of the rows that guess; of those that check, whose mean is elsewhere, if the guess was wrong."""
    mechanism = plan_open_rows(20_000, 200, 0.05) if opened else plan_checks(20_000, 200, 0.05)
    assert mechanism is not None
    part = 1.0 if levels == 2 else part

    def moments(rows: int, at: float) -> Moments:
        return Moments(rows, rows * at, rows * (part * at * (1 - at) + at**2))

    checked = min(max(mean + off, 0.0), 1.0)
    pair = moments(mechanism.guessing, mean), moments(mechanism.guarded, checked)
    released = mechanism.release(pair, noise, levels=levels)([])
    found, value = math.hypot(mechanism.deviation_in(released), mechanism.off_in(released)), mechanism.value(released)
    assert 0 < found <= 1.2
    if mechanism.confirmed(released):
        assert found >= 0.9 * math.sqrt(pair[0].variance) - 1e-6
        assert abs(value - mean) <= 3 * found + 1e-6
    else:
        assert abs(value - checked) <= found + 1e-6  # half of the cell that it is known to be in
