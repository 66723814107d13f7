"""Odd values in every public argument: an error of ours that names the argument, nothing charged, or a right answer."""

import itertools
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import afresh
from afresh import checks, losses, statistics
from afresh.errors import AfreshError, InvalidArgument
from afresh.lab.coverage import coverage, trials
from examples import examples


class Unspeakable:
    """Neither a number nor anything that can be printed, compared or looked into."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("no words")

    __repr__ = __float__ = __index__ = __int__ = __len__ = __iter__ = __eq__ = __lt__ = __bool__ = _fail
    __hash__ = object.__hash__


class Unspeakably(float):
    """A float of which the type's own code fails."""

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def make_odd() -> list[Any]:
    """Anew for every use, as some can be read but once."""
    return [
        *(10**400, -(10**400), 10**5000, 2**63, -(2**63) - 1, 10**18, 0, -1, True, False),
        *(math.inf, -math.inf, math.nan, -0.0, 5e-324, 1e308, -1e308, 1e-3000),
        *(Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1e9999"), Decimal("0.5"), Decimal(3)),
        *(Fraction(1, 3), Fraction(10**400, 3), 1j, "3", b"3", "", "\ud800", "a\x1b[2J\u202e", "x" * 10**5),
        *([], [1, 2, 3], {}, {1, 2}, (1,), (1, 2), (None, None), (10**5000, 1), [[1, 2], [3]], [0.5, math.nan]),
        *(np.float32(0.5), np.float64("nan"), np.float16("inf"), np.int8(3), np.uint64(2**64 - 1), np.bool_(True)),
        *(
            np.array(0.5),
            np.array([0.5]),
            np.array([1, 2]),
            np.array([]),
            np.datetime64("NaT", "s"),
            np.zeros((3000, 2)),
        ),
        *(np.longdouble("1e4000"), np.array(["a"]), np.array([None, 1]), pd.NA, pd.NaT, pd.Series([0.2, 0.4])),
        *(object(), Unspeakable(), Unspeakably(0.5), (Unspeakable(), 1), [Unspeakable()], {"a": Unspeakable()}),
        *(print, itertools.count(), (x for x in (0, 1)), float, ...),
    ]


def only_ours(call: Callable[[], object], name: str) -> bool:
    """Whether it was answered; any other error than ours comes out."""
    error = None
    try:
        call()
    except AfreshError as ours:
        error = ours
    if error is not None:
        assert len(str(error)) < 900
        assert str(error).isprintable()
        assert not isinstance(error, InvalidArgument) or name in str(error)
    return error is None


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({"a": rng.random(3000), "b": rng.random(3000) < 0.3})


def opened(frame: pd.DataFrame, **options: Any) -> Any:
    return afresh.open(frame, ledger=":memory:", analyst="x", allow_wide=True, **options)


@pytest.fixture(scope="module")
def guard(frame: pd.DataFrame) -> Iterator[Any]:
    with opened(frame, questions=5000, answers=10000, method="calibrated") as guard:
        yield guard


@pytest.fixture(scope="module")
def guessing(frame: pd.DataFrame) -> Iterator[Any]:
    with opened(frame, questions=500, method="guess-and-check") as guard:
        yield guard


@pytest.fixture(scope="module")
def holdout(frame: pd.DataFrame) -> Iterator[Any]:
    options: Any = {"questions": 20, "answers": 200, "method": "calibrated", "ledger": ":memory:"}
    with afresh.holdout(frame[["a"]], frame["b"], **options) as holdout:
        yield holdout


# The first word of each is the name that the error must carry.
Of = Callable[[Any, Any], object]
BOTH = {
    "precision": lambda guard, x: guard.ask("b", precision=x),
    "guess": lambda guard, x: guard.ask("b", guess=x),
    "guess value": lambda guard, x: guard.ask("b", guess=(x, 0.1)),
    "guess width": lambda guard, x: guard.ask("b", guess=(0.3, x)),
}
ASKED: dict[str, Of] = {
    **BOTH,
    "bounds": lambda guard, x: guard.ask("a", bounds=x),
    "bounds low": lambda guard, x: guard.ask("a", bounds=(x, 1)),
    "bounds high": lambda guard, x: guard.ask("a", bounds=(0, x)),
    "missing": lambda guard, x: guard.ask("a", bounds=(0, 1), missing=x),
    "missing truth": lambda guard, x: guard.ask("b", missing=x),
    " expression": lambda guard, x: guard.ask(x),
    " where": lambda guard, x: guard.ask("b", where=x),
    " questions": lambda guard, x: guard.ask_many(x),
    " question": lambda guard, x: guard.ask_many([{"expression": "b", "bounds": x}]),
    "revealed": lambda guard, x: guard.charge(x, kl=1e-9),
    "kl": lambda guard, x: guard.charge("x", kl=x),
    "zcdp": lambda guard, x: guard.charge("x", zcdp=x),
    "pure_dp": lambda guard, x: guard.charge("x", pure_dp=x),
    "noise_sd": lambda guard, x: guard.charge("x", noise_sd=x),
    "receipt": lambda guard, x: guard.charge("x", study=x),
    "rows": lambda guard, x: guard.charge("x", kl=1e-9, rows=x),
    "count": lambda guard, x: guard.charge("x", kl=1e-9, count=x),
    "mean": lambda guard, x: guard.plan.half_width(x),
    "coarseness": lambda guard, x: guard.plan.half_width(0.5, x),
    "level": lambda guard, x: guard.measure(statistics.Quantile("a", x, bounds=(0, 1), points=2)),
    "bounds of a quantile": lambda guard, x: guard.measure(statistics.Quantile("a", 0.5, bounds=x, points=2)),
    "points": lambda guard, x: guard.measure(statistics.Quantile("a", 0.5, bounds=(0, 1), points=x)),
    "bounds of a variance": lambda guard, x: guard.measure(statistics.Variance("a", bounds=(x, 1))),
    "bounds of two": lambda guard, x: guard.measure(statistics.Correlation("a", "a", (0, 1), x)),
    "edges": lambda guard, x: guard.measure(statistics.Histogram("a", x)),
    "edges inside": lambda guard, x: guard.measure(statistics.Histogram("a", [0, x, 1])),
    "categor": lambda guard, x: guard.measure(statistics.GroupMeans("b", "a", x)),
    "category": lambda guard, x: guard.measure(statistics.GroupMeans("b", "a", [x])),
    "bounds of groups": lambda guard, x: guard.measure(statistics.GroupMeans("a", "b", [True], x)),
    " expression of a variance": lambda guard, x: guard.measure(statistics.Variance(x, bounds=(0, 1))),
    "statistic": lambda guard, x: guard.measure(x),
}


def check_guard(guard: Any, call: Of, argument: str, value: Any) -> None:
    before = guard.budget
    answered = only_ours(lambda: call(guard, value), argument.split(" ")[0])
    after = guard.budget
    assert answered or (before.spent, before.spent_information) == (after.spent, after.spent_information)


@pytest.mark.parametrize("argument", ASKED)
def test_of_a_guard(guard: Any, argument: str) -> None:
    for value in make_odd():
        check_guard(guard, ASKED[argument], argument, value)


@pytest.mark.parametrize("argument", BOTH)
def test_of_a_guess(guessing: Any, argument: str) -> None:
    for value in make_odd():
        check_guard(guessing, BOTH[argument], argument, value)


anything = st.one_of(st.deferred(lambda: st.sampled_from(make_odd())), st.floats(), st.integers(), st.decimals())


@given(argument=st.sampled_from(sorted(ASKED)), value=st.one_of(anything, st.tuples(anything, anything)))
@examples(1.5, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_of_a_guard_at_random(guard: Any, argument: str, value: Any) -> None:
    if value is not guard and isinstance(value, float | int) and argument == "answers":
        return  # any number that is small enough is right, and spends
    check_guard(guard, ASKED[argument], argument, value)


def test_of_shares(frame: pd.DataFrame) -> None:
    with opened(frame, questions=20) as guard:
        for value in make_odd():
            only_ours(lambda: guard.divide({"ann": value}), "ann")  # noqa: B023 - called at once
            only_ours(lambda: guard.divide(value), "")  # noqa: B023
            assert guard.budget.spent == 0


PLANNED = ("rows", "questions", "confidence", "answers", "width", "mean", "method")


@pytest.mark.parametrize("argument", PLANNED)
def test_of_a_plan(argument: str) -> None:
    good: dict[str, Any] = {"rows": 500, "questions": 10}
    if argument in ("width", "mean"):
        good = {"rows": 500, "width": 0.2}
    for value in make_odd():
        only_ours(lambda: afresh.plan(**{**good, argument: value}), argument)  # noqa: B023 - called at once


OPENED = ("questions", "confidence", "answers", "method", "analyst", "new_rows", "simulation_seed")


@pytest.mark.parametrize("argument", OPENED)
def test_of_opening(frame: pd.DataFrame, argument: str) -> None:
    more: dict[str, Any] = {"ledger": ":memory:", "method": "calibrated"}
    if argument == "simulation_seed":
        more = {"made_up": True}
    for value in make_odd():
        options = {**more, argument: value}
        only_ours(lambda: afresh.open(frame, **options).close(), argument)  # noqa: B023 - called at once
        only_ours(lambda: afresh.holdout(frame[["a"]], frame["b"], **options).close(), argument)  # noqa: B023


HELD: dict[str, Of] = {
    "disagreement": lambda holdout, x: holdout.resolution(x),
    "precision": lambda holdout, x: holdout.resolution(0.1, precision=x),
    "precision of a score": lambda holdout, x: holdout.score([True] * 3000, precision=x),
    "precision of two": lambda holdout, x: holdout.compare([True] * 3000, [False] * 3000, precision=x),
    "name": lambda holdout, x: holdout.score([True] * 3000, name=x),
    "loss": lambda holdout, x: holdout.score([True] * 3000, loss=x),
    "statistic": lambda holdout, x: holdout.measure(x, [True] * 3000),
    "positive": lambda holdout, x: holdout.measure(statistics.Recall(positive=x), [True] * 3000),
}


@pytest.mark.parametrize("argument", HELD)
def test_of_a_holdout(holdout: Any, argument: str) -> None:
    for value in make_odd():
        check_guard(holdout, HELD[argument], argument, value)


@pytest.mark.parametrize("argument", ["label", "classes", "features", "loss"])
def test_of_opening_a_holdout(frame: pd.DataFrame, argument: str) -> None:
    for value in make_odd():
        options: Any = {"ledger": ":memory:", argument: value}
        only_ours(lambda: afresh.holdout(frame[["a"]], frame["b"], **options).close(), argument)  # noqa: B023


MADE: dict[str, Callable[[Any], object]] = {
    "edges": lambda x: statistics.CalibrationError(edges=x),
    "thresholds": lambda x: statistics.AUC(thresholds=x),
    "clip": lambda x: losses.Squared(clip=x),
    "quantile": lambda x: losses.Pinball(clip=1, quantile=x),
    "costs": lambda x: losses.Cost(x),
    "costs inside": lambda x: losses.Cost(((0, x), (1, 0))),
    "function": lambda x: losses.Custom(x, name="mine"),
    "name": lambda x: losses.Custom(print, name=x),
    "kind": lambda x: losses.Custom(print, name="mine", kind=x),
    "version": lambda x: losses.Custom(print, name="mine", version=x),
    "pvalue": lambda x: afresh.correct_pvalue(x, 0.5),
    "information": lambda x: afresh.correct_pvalue(0.5, x),
    "information of several": lambda x: afresh.correct_pvalue([0.5, 0.1, 0.2], x),
    "n": lambda x: trials(x, 10, ["stabilized"], ["last"], ["fair"]),
    "k": lambda x: trials(10, x, ["stabilized"], ["last"], ["fair"]),
    "failure": lambda x: trials(100, 10, ["stabilized"], ["last"], ["fair"], x),
    "seed": lambda x: trials(100, 10, ["stabilized"], ["last"], ["fair"], 0.1, x),
    "repeats": lambda x: coverage((), x),
    "processes": lambda x: coverage((), 1, processes=x),
}


@pytest.mark.parametrize("argument", MADE)
def test_of_what_is_made(argument: str) -> None:
    for value in make_odd():
        only_ours(lambda: MADE[argument](value), argument.split()[0])  # noqa: B023 - called at once


@given(anything)
def test_what_a_message_shows_is_short(value: Any) -> None:
    assert len(checks.shown(value)) <= 100
    assert len(checks.shown([value] * 1000)) <= 600


@given(st.one_of(st.floats(), st.integers(), st.decimals(allow_nan=False), st.fractions()))
def test_a_number_is_what_was_given(value: Any) -> None:
    try:
        found = checks.number("x", value, "finite")
    except InvalidArgument:
        assert math.isnan(value) or not abs(value) < 1e308
    else:
        assert type(found) is float
        assert found == float(value)
        assert math.copysign(1, found) == 1 or found < 0  # there is no -0.0


@given(value=st.one_of(anything, st.integers(-5, 25)), least=st.integers(-5, 5), size=st.integers(0, 20))
def test_a_whole_number_is_what_was_given(value: Any, least: int, size: int) -> None:
    try:
        found = checks.whole("x", value, least, least + size)
    except InvalidArgument:
        assert type(value) is not int or not least <= value <= least + size
    else:
        assert type(found) is int
        assert found == value
        assert least <= found <= least + size
