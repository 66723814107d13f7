"""Rounds: fresh rows for questions that are asked together, a final look, and nothing told before a round ends."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta

import afresh
from afresh.engines.embedded.rowwise import rows_of_span
from afresh.errors import BudgetExhausted, InvalidArgument, PlanMismatch, QueryError
from afresh.ledger.base import Limits
from afresh.ledger.records import seal
from afresh.mechanisms.split import Split
from afresh.moments import even_spans
from afresh.planning.plan import Plan
from afresh.receipts import verify
from afresh.results.answer import Answer
from afresh.results.reading import Number, read
from afresh.results.rules import derive, met
from afresh.statistics import (
    Correlation,
    Covariance,
    GroupMeans,
    Histogram,
    Quantile,
    Recall,
    StandardDeviation,
    Variance,
)
from afresh.statistics.base import Measures, Statistic

RNG = np.random.default_rng(15)
N = 6000
FRAME = pd.DataFrame(
    {
        "hit": RNG.random(N) < 0.3,
        "x": RNG.gamma(2.0, 0.5, N),
        "group": RNG.integers(0, 3, N),
        "sorted": np.arange(N) < N / 2,
    }
)


@pytest.fixture
def guard(tmp_path: Path) -> Any:
    with afresh.open(FRAME, questions=100, rounds=6, ledger=tmp_path / "ledger.sqlite") as guard:
        yield guard


def test_questions_asked_together_share_a_round(guard: afresh.Guard) -> None:
    guard.ask_many(["hit", "x < 1", {"expression": "x", "bounds": (0, 10)}])
    guard.ask("group = 1")
    guard.measure(Histogram("x", [0, 1, 2, 10]))
    guard.measure(GroupMeans("hit", "group", [0, 1, 2]))
    assert [record.round for record in guard.transcript] == ["1"] * 3 + ["2"] + ["3"] * 3 + ["4"] * 3
    spans = [entry.span for entry in guard.desk.ledger.entries(guard.desk.terms)]
    assert list(dict.fromkeys(spans)) == [(0, 1000), (1000, 2000), (2000, 3000), (3000, 4000)]
    assert (guard.budget.rows_left, guard.budget.left) == (2000, 90)
    assert "2,000 left for rounds of questions" in str(guard.budget)
    assert "round" in str(guard.transcript)


def test_a_budget_of_rounds_ends_without_a_word_of_information(tmp_path: Path) -> None:
    """Rounds keep no account of it: 0 of 0 nats would be no explanation. Noise does."""
    for how, noted in (({"rounds": 1}, 0), ({"method": "stabilized"}, 1)):
        with afresh.open(FRAME, questions=1, ledger=tmp_path / f"{noted}.sqlite", allow_wide=True, **how) as guard:
            guard.ask("hit")
            with pytest.raises(BudgetExhausted) as caught:
                guard.ask("x < 1")
            assert "1 of 1 are spent" in str(caught.value)
            assert ["nats" in note for note in getattr(caught.value, "__notes__", [])] == [True] * noted


def test_what_would_narrow_a_small_group_counts_its_rows_only(tmp_path: Path) -> None:
    """Over all rows, opening some would be enough for ±0.05; over a fiftieth of them it is far from enough."""
    frame = pd.DataFrame({"hit": np.arange(40_000) % 2 == 0, "group": np.arange(40_000) // 2 % 50})
    with afresh.open(frame, questions=60, rounds=4, ledger=tmp_path / "l.sqlite") as guard:
        said = guard.ask("hit", where="group = 7").would_tell
    assert [change for change in said if "rows instead of" in change]
    assert not [change for change in said if "opening" in change]
    with afresh.open(frame, questions=60, open=0.4, ledger=tmp_path / "o.sqlite") as guard:
        answer = guard.ask("hit", where="group = 7")
    assert answer.high - answer.low > 0.2


def test_means_are_exact_and_of_the_rounds_own_rows(guard: afresh.Guard) -> None:
    """A sorted file is dealt at random: any 1,000 rows hold about half of its first half (4.5 sigma, 1e-5; seeded)."""
    for name in ("sorted", "sorted AND x > 0", "sorted AND x >= 0.0001"):
        answer = guard.ask(name)
        assert answer.value * 1000 == pytest.approx(round(answer.value * 1000))
        assert answer.value == pytest.approx(0.5, abs=0.075)
    side = 0.05 / 100 * 0.9 / 2
    hits = round(answer.value * 1000)
    exact = beta.ppf(side, hits, 1001 - hits), beta.ppf(1 - side, hits + 1, 1000 - hits)
    assert (answer.low, answer.high) == pytest.approx(exact, abs=1e-6)


def test_a_round_is_one_scan(guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    engine, scans = guard.desk.engine, list[int]()
    moments = engine.moments

    def counted(*given: Any) -> Any:
        scans.append(1)
        return moments(*given)

    monkeypatch.setattr(engine, "moments", counted)
    guard.ask_many(["hit", {"expression": "hit", "where": "group = 1"}, {"expression": "x", "bounds": (0, 10)}])
    assert len(scans) == 1


def test_a_mean_within_a_group_is_one_answer_from_its_rows(guard: afresh.Guard) -> None:
    (answer,) = guard.ask_many([{"expression": "hit", "where": "group = 1"}])
    assert answer.charged == 1
    (entry,) = guard.desk.ledger.entries(guard.desk.terms)
    assert entry.outcome is not None
    released = entry.outcome.released
    assert isinstance(released, dict)
    assert 250 < released["rows"] < 420
    assert answer.value == pytest.approx(released["total"] / released["rows"])
    empty = guard.ask("hit", where="group = 7")
    assert (empty.told, empty.low, empty.high) == (False, 0, 1)
    price = guard.price("hit", where="group = 2", share=1 / 3)
    assert price.answers == 1
    # The price is for a share of one half; the width of one of 0.3 +- 0.17 is within this (7 deviations, 1e-11).
    assert price.half_width == pytest.approx(answer.interval.half_width, rel=0.5)


def test_numbers_follow_their_spread_not_their_range(guard: afresh.Guard) -> None:
    narrow, wide = guard.ask_many([{"expression": "x", "bounds": (0, 10)}, {"expression": "x", "bounds": (0, 20)}])
    assert 1.0 in narrow.interval
    assert wide.interval.half_width < 1.4 * narrow.interval.half_width  # where a range of twice would be twice as wide


def test_a_round_of_its_own_size(guard: afresh.Guard) -> None:
    with guard.round(rows=3000) as r:
        r.ask("hit")
        r.ask_many(["x < 1"])
        r.ask("x", bounds=(0, 10))
        assert r.answers == []
        assert len(guard.transcript) == 0
    assert [answer.charged for answer in r.answers] == [1, 1, 1]
    assert guard.budget.rows_left == 3000
    other = guard.ask("x < 1.01")
    assert r.answers[1].interval.half_width < 0.7 * other.interval.half_width
    with guard.round() as nothing:
        pass
    assert nothing.answers == []


def test_a_round_that_fails_asks_nothing(guard: afresh.Guard) -> None:
    def ask(then: Callable[[Any], object]) -> None:
        with guard.round() as r:
            r.ask("hit")
            then(r)

    with pytest.raises(QueryError):
        ask(lambda r: r.ask("hat"))
    with pytest.raises(ZeroDivisionError):
        ask(lambda r: 1 / 0)
    assert (len(guard.transcript), guard.budget.rows_left) == (0, N)


def test_rows_run_out_before_questions_do(guard: afresh.Guard) -> None:
    for i in range(6):
        guard.ask(f"x < {i / 10}")
    with pytest.raises(BudgetExhausted, match="takes 1,000 fresh rows, but 0 are left"):
        guard.ask("hit")
    assert guard.ask("x < 0.1").charged == 0
    assert guard.budget.left == 0  # nothing more can be asked without fresh rows


def test_what_needs_two_rounds_is_not_begun_with_one(guard: afresh.Guard) -> None:
    with guard.round(rows=5000) as r:
        r.ask("hit")
    with pytest.raises(BudgetExhausted, match="takes 2,000 fresh rows"):
        guard.measure(Variance("x", (0, 10)))
    assert (guard.budget.rows_left, guard.budget.spent) == (1000, 1)


def test_a_final_look_has_all_rows_that_were_fresh(guard: afresh.Guard, tmp_path: Path) -> None:
    first = guard.ask_many(["hit", {"expression": "x", "bounds": (0, 10)}])
    second = guard.ask("hit", where="group = 1")
    final = guard.close_rounds()
    assert [answer.question for answer in final] == ["hit", "x within [0, 10]", "hit"]
    for before, after in zip([*first, second], final, strict=True):
        assert before.low <= after.low <= after.value <= after.high <= before.high
        assert after.charged == 0
    assert final[0].value == pytest.approx(FRAME.hit.mean())  # round 1 then has all rows
    assert final[0].interval.half_width < first[0].interval.half_width / 2
    with pytest.raises(BudgetExhausted, match="closed by a final look"):
        guard.ask("x < 1")
    assert guard.ask("hit").value == first[0].value  # what was released stays
    assert [record.round for record in guard.transcript] == ["1", "1", "2", "final", "final", "final"]
    assert guard.close_rounds() == final
    assert verify(guard.receipt()).passed
    with afresh.open(FRAME, ledger=tmp_path / "ledger.sqlite") as later:
        with pytest.raises(InvalidArgument, match="has asked no question about columns"):
            later.close_rounds()
        later.ask("hit")
        (again,) = later.close_rounds()
        assert (again.value, again.interval) == (final[0].value, final[0].interval)


def drawn(rows: int, seed: int) -> pd.DataFrame:
    """Two numbers that go together, and a group that tells of neither."""
    rng = np.random.default_rng(seed)
    x = rng.gamma(2.0, 0.5, rows)
    return pd.DataFrame({"x": x, "y": 0.5 * x + rng.gamma(2.0, 0.3, rows), "group": rng.integers(0, 3, rows)})


PAIRS, MANY = drawn(N, 16), drawn(1_000_000, 17)
BINS = [0.0, 0.5, 1.0, 2.0, 10.0]
BOTH: dict[str, Any] = {"x": "x", "y": "y", "bounds_x": (0, 10), "bounds_y": (0, 10)}
SHARES = [((MANY.x >= a) & (MANY.x < b)).mean() for a, b in pairwise(BINS)]
LOOKED: list[tuple[Statistic, list[float]]] = [
    (Histogram("x", BINS), SHARES),
    (Histogram("x", BINS, where="group = 1"), SHARES),
    (GroupMeans("x", "group", [0, 1, 2], bounds=(0, 10)), [1.0] * 3),
    (Variance("x", (0, 10)), [0.5]),
    (Variance("x", (0, 10), where="group < 2"), [0.5]),
    (StandardDeviation("x", (0, 10)), [0.5**0.5]),
    (Covariance(**BOTH), [0.25]),
    (Correlation(**BOTH, where="group < 2", within=None), [0.25 / (0.5 * 0.305) ** 0.5]),
    (Quantile("x", 0.5, (0, 4), points=31), [float(MANY.x.median())]),
    (Quantile("x", 0.9, (0, 4), points=31, where="group < 2"), [float(MANY.x.quantile(0.9))]),
]


def several(found: Answer | Measures) -> list[Answer]:
    return list(found.answers.values()) if isinstance(found, Measures) else [found]


@pytest.mark.parametrize(("statistic", "truths"), LOOKED, ids=lambda each: type(each).__name__)
def test_a_statistic_of_rows_gets_a_final_look(tmp_path: Path, statistic: Statistic, truths: list[float]) -> None:
    """The truths are known, or those of a million draws: their errors are far below any of these widths."""
    with afresh.open(PAIRS, questions=200, rounds=10, ledger=tmp_path / "l.sqlite") as guard:
        first = several(guard.measure(statistic))
        spent = guard.budget.spent
        final = guard.close_rounds()
        assert [answer.question for answer in final] == [answer.question for answer in first]
        for truth, before, after in zip(truths, first, final, strict=True):
            assert before.low <= after.low <= after.value <= after.high <= before.high
            assert after.interval.half_width < 0.7 * before.interval.half_width
            assert truth in after.interval
            assert after.charged == 0
        assert guard.budget.spent == spent
        assert {record.round for record in guard.transcript if record.number > spent} == {"final"}
        assert len(guard.transcript) == 2 * len(first)
        assert guard.close_rounds() == final
        assert several(guard.measure(statistic))[0].interval == first[0].interval  # what was released stays
        assert verify(guard.receipt()).passed
    with afresh.open(PAIRS, ledger=tmp_path / "l.sqlite") as later:
        with pytest.raises(InvalidArgument, match="has asked no question about columns"):
            later.close_rounds()
        later.measure(statistic)
        again = later.close_rounds()
        assert [(each.value, each.interval) for each in again] == [(each.value, each.interval) for each in final]


def test_clipped_statistics_get_a_final_look_within_the_bounds_they_found(tmp_path: Path) -> None:
    with afresh.open(PAIRS, questions=200, rounds=20, ledger=tmp_path / "l.sqlite") as guard:
        first = [guard.measure(Variance("x", (0, 10), within=4)), guard.measure(Correlation(**BOTH, within=4))]
        final = guard.close_rounds()
        for one, before, after in zip(guard.desk.ledger.stated(guard.desk.terms), first, final, strict=False):
            assert isinstance(before, Answer)
            assert before.question == after.question == one.text
            assert after.interval.half_width < 0.7 * before.interval.half_width
            x = MANY.x.clip(*one.parameters.get("bounds", one.parameters.get("x")))
            truth = x.var() if "bounds" in one.parameters else x.corr(MANY.y.clip(*one.parameters["y"]))
            assert truth in after.interval
        assert verify(guard.receipt()).passed


def test_a_final_look_at_a_bin_follows_from_those_at_all_bins(guard: afresh.Guard) -> None:
    guard.measure(Histogram("x", [0, 1, 10]))
    final = guard.close_rounds()
    low, high = (read(entry).own for entry in guard.desk.ledger.entries(guard.desk.terms)[2:])
    for own, other, answer in ((low, high, final[0]), (high, low, final[1])):
        assert (answer.value, answer.low) == (own.value, own.low)
        assert answer.high == pytest.approx(min(own.high, 1 - other.low))


def test_a_final_look_at_a_variance_knows_around_what_it_was_asked(guard: afresh.Guard) -> None:
    """Var x = E (x - v)^2 - (E x - v)^2 for the v of the first answer: a look at the mean has another value."""
    guard.measure(Variance("x", (0, 10)))
    (final,) = guard.close_rounds()
    desk = guard.desk
    parts = [read(entry) for entry in desk.ledger.entries(desk.terms)]
    mean, _, mean_again, square_again = (part.own for part in parts)
    off = max(mean_again.high - mean.value, mean.value - mean_again.low)
    assert mean.value != mean_again.value
    assert (final.low, final.high) == pytest.approx((square_again.low - off**2, square_again.high))
    stated = desk.ledger.stated(desk.terms)[-1]
    assert (stated.rule, stated.parts) == ("variance, looked at again", (1, 4, 3))

    def derived(*numbers: int) -> Number:
        return derive(stated.rule, [parts[n - 1] for n in numbers], stated.parameters, stated.bounds, desk.plan)

    assert derived(*stated.parts)[1:] == (stated.low, stated.high)
    with pytest.raises(InvalidArgument, match="answer 4 is not the final look at answer 1"):
        derived(1, 3, 4)


def test_public_features_combine_only_answers_about_the_same_rows(tmp_path: Path) -> None:
    """A variance would have answers from two rounds, whose rows have other features and so other truths."""
    y = RNG.integers(0, 2, N)
    with afresh.holdout(FRAME[["x"]].to_numpy(), y, questions=50, rounds=5, ledger=tmp_path / "l.sqlite") as holdout:
        guard = holdout.guard
        for within in (None, 3):
            both = Correlation("label", "x0", (0, 1), (0, 1), within=within)
            for spread in (Variance("label", (0, 1), within=within), both):
                with pytest.raises(InvalidArgument, match=r"takes two rounds.*hidden.*Nothing was charged"):
                    guard.measure(spread)
        assert guard.budget.spent == 0
        first = several(guard.measure(Histogram("label", [0, 0.5, 1], where="x0 < 1")))
        final = guard.close_rounds()
        assert [answer.question for answer in final] == [answer.question for answer in first]
        assert final[0].interval.half_width < first[0].interval.half_width
        assert verify(guard.receipt()).passed


def test_a_model_is_not_looked_at_again(tmp_path: Path) -> None:
    """Under its name it may by then predict what later rounds taught it."""
    y = RNG.integers(0, 2, N)
    with afresh.holdout(FRAME[["x"]].to_numpy(), y, questions=50, rounds=5, ledger=tmp_path / "l.sqlite") as holdout:
        holdout.score(np.zeros(N, int))
        holdout.measure(Recall(), np.ones(N, int))
        with pytest.raises(InvalidArgument, match="no question about columns"):
            holdout.guard.close_rounds()
        holdout.guard.ask("label = 1")
        assert [answer.question for answer in holdout.guard.close_rounds()] == ["label = 1"]


def test_a_share_does_not_end_the_rounds_of_others(guard: afresh.Guard) -> None:
    guard.divide({"bob": 50})
    bob = guard.for_analyst("bob")
    bob.ask("hit")
    with pytest.raises(InvalidArgument, match="bob has only a share"):
        bob.close_rounds()
    guard.ask("x < 1")


@pytest.mark.parametrize("rows", [0, -1, 2.5, True, N + 1, "many"])
def test_a_round_of_no_rows_is_refused_before_it_is_written(guard: afresh.Guard, rows: Any) -> None:
    asked = guard.checked(["hit"])
    with pytest.raises(InvalidArgument, match="rows"):
        guard.ask_checked(asked, rows)
    assert guard.ask("hit").charged == 1


def test_looks_that_do_not_meet_are_told_as_what_holds_both() -> None:
    assert met(0.2, 0.4, 0.3, 0.5) == (0.3, 0.4)
    assert met(0.1, 0.2, 0.3, 0.5) == (0.1, 0.5)


def test_a_final_look_that_was_interrupted_is_completed(guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    guard.ask_many(["hit", "x < 1"])
    with monkeypatch.context() as broken:
        broken.setattr(guard.desk.engine, "moments", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            guard.close_rounds()
    assert len(guard.close_rounds()) == 2
    assert len(guard.transcript.answers) == 4


def test_simultaneous_coverage_of_rounds_and_final_looks() -> None:
    """At 50%: of 100 conversations at most half miss; binomial, more than 73 happen with probability 8e-7; seeded."""
    missed = 0
    for seed in range(100):
        rng = np.random.default_rng([seed, 1])
        frame = pd.DataFrame({"a": rng.random(300) < 0.2, "b": rng.random(300), "c": rng.random(300) < 0.5})
        how: dict[str, Any] = {"simulation_seed": seed, "made_up": True, "allow_wide": True}
        with afresh.open(frame, questions=8, rounds=2, confidence=0.5, **how) as guard:
            answers = guard.ask_many(["a", {"expression": "b", "bounds": (0, 1)}, {"expression": "a", "where": "c"}])
            # chosen after the first round: the side on which the sample seems to err
            side = "b < 0.5" if answers[1].value < 0.5 else "b >= 0.5"
            answers += guard.ask_many([side, {"expression": side, "where": "a"}])
            truths = [0.2, 0.5, 0.2, 0.5, 0.5]
            answers += guard.close_rounds()
        missed += any(t not in each.interval for t, each in zip([*truths, *truths], answers, strict=True))
    assert missed <= 73


def test_models_are_compared_by_one_paired_answer(tmp_path: Path) -> None:
    y = RNG.integers(0, 2, N)
    good, worse = (np.where(RNG.random(N) < wrong, 1 - y, y) for wrong in (0.05, 0.25))
    with afresh.holdout(FRAME[["x"]].to_numpy(), y, questions=100, rounds=2, ledger=tmp_path / "l.sqlite") as holdout:
        ranking = holdout.best_of([good, worse, 1 - y], names=["good", "worse", "worst"])
        assert [model.places for model in ranking.models] == [(1, 1), (2, 2), (3, 3)]
        assert (ranking.charged, holdout.budget.rows_left) == (3 + 3, N / 2)
        assert holdout.compare(good, worse).charged == 0
        assert verify(holdout.guard.receipt()).passed


def test_public_features_ask_of_groups_in_two_answers(tmp_path: Path) -> None:
    """Which rows are in a group is then no draw: the mean over them is another truth in every round."""
    y = RNG.integers(0, 2, N)
    with afresh.holdout(FRAME[["x"]].to_numpy(), y, questions=50, rounds=5, ledger=tmp_path / "l.sqlite") as holdout:
        first = holdout.guard.ask("label = 1", where="x0 < 1")
        assert first.charged == 2
        (final,) = holdout.guard.close_rounds()  # of other rows' features: not within the first one
        entries = holdout.guard.desk.ledger.entries(holdout.guard.desk.terms)
        for entry in entries[2:]:
            assert entry.outcome is not None
            low, high = holdout.guard.plan.mechanism.interval(entry.outcome.released, levels=entry.levels)
            assert (entry.outcome.low, entry.outcome.high) == pytest.approx((low, high), abs=1e-7)
        assert final.covers == first.covers
        assert verify(holdout.guard.receipt()).passed
    with afresh.holdout(
        FRAME[["x"]].to_numpy(), y[::-1], questions=50, rounds=5, features="hidden", ledger=":memory:"
    ) as holdout:
        assert holdout.guard.ask("label = 1", where="x0 < 1").charged == 1


def test_rounds_are_a_part_of_the_plan(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    with afresh.open(FRAME, questions=100, rounds=6, ledger=ledger) as guard:
        guard.ask("hit")
        assert (guard.plan.rounds, guard.plan.in_words) == (6, "100 questions in 6 rounds at 95%, by rounds")
    with pytest.raises(PlanMismatch, match="rounds=6, but you opened it with rounds=7"):
        afresh.open(FRAME, rounds=7, ledger=ledger)
    with afresh.open(FRAME, rounds=6, ledger=ledger) as guard:
        assert guard.budget.rows_left == 5000
    with afresh.open(FRAME, questions=40, method="stabilized", ledger=":memory:") as other:
        for use in (other.round, other.close_rounds):
            with pytest.raises(InvalidArgument, match="no rounds"):
                use()
    for wrong in (0, 1.5, "many", 41, True):
        with pytest.raises(InvalidArgument):
            afresh.open(FRAME, questions=40, rounds=wrong, ledger=":memory:")  # type: ignore[arg-type]


def test_planning_solves_for_rounds() -> None:
    plan = afresh.plan(rows=100_000, questions=1000, width=0.03)
    assert plan.rounds is not None
    assert plan.half_width(0.5) <= 0.03 < afresh.plan(100_000, 1000, rounds=plan.rounds + 1).half_width(0.5)
    fewest = afresh.plan(questions=1000, width=0.02, rounds=10)
    assert fewest.half_width(0.5) <= 0.02 < afresh.plan(int(fewest.rows * 0.99), 1000, rounds=10).half_width(0.5)
    most = afresh.plan(rows=10_000, width=0.06, rounds=5)
    assert most.half_width(0.5) <= 0.06


def test_a_plan_by_splitting_goes_on(tmp_path: Path) -> None:
    """No new plan splits, but ledgers that have one keep it."""
    ledger = tmp_path / "ledger.sqlite"
    with afresh.open(FRAME, questions=4, ledger=ledger, method="stabilized") as guard:
        desk = guard.desk
        limits: Limits = Plan(Split(N, 4, 0.05)).limits
        desk.ledger.open(desk.engine.identity(), limits)
    with afresh.open(FRAME, ledger=ledger) as guard:
        assert guard.plan.method == "split"
        first = guard.ask("hit")
        own = FRAME["hit"].to_numpy()[rows_of_span(guard.desk.engine, even_spans(N, 4)[0])]
        assert first.value == pytest.approx(own.mean())
        assert first.value in first.interval
        assert guard.ask("hit", where="group = 1").charged == 2
        assert verify(guard.receipt()).passed
    with pytest.raises(InvalidArgument, match="must be one of stabilized"):
        afresh.plan(N, 4, method="split")


def test_what_was_recorded_by_version_1_is_read(tmp_path: Path) -> None:
    """A ledger whose records say `binary` and know no spans goes on with version 2."""
    ledger = tmp_path / "ledger.sqlite"
    with afresh.open(FRAME, questions=20, ledger=ledger, method="stabilized") as guard:
        first = guard.ask("hit")
    with closing(sqlite3.connect(ledger, isolation_level=None)) as file:
        for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            file.execute(f"DROP TRIGGER {name}")
        rows = file.execute("SELECT place, record FROM afresh_records ORDER BY place").fetchall()
        head = ""
        for place, text in rows:
            body = json.loads(text) | {"version": 1}
            if body["kind"] == "reserved":
                body["binary"] = body.pop("levels") == 2
                del body["span"], body["again"]
            old = json.dumps(body, sort_keys=True, separators=(",", ":"))
            head = seal(head, old)
            file.execute("UPDATE afresh_records SET record = ?, hash = ? WHERE place = ?", (old, head, place))
        file.execute("UPDATE afresh_guards SET head = ?", (head,))
    with afresh.open(FRAME, ledger=ledger) as guard:
        assert guard.ask("hit").value == first.value
        assert guard.ask("x < 1").charged == 1
        assert verify(guard.receipt()).passed


def test_a_quantile_is_one_round() -> None:
    rng = np.random.default_rng(12)
    frame = pd.DataFrame({"x": rng.random(8000)})
    with afresh.open(frame, 60, rounds=4, ledger=":memory:") as guard:
        found = guard.measure(Quantile("x", 0.5, (0, 1), points=30, missing=0))
        assert isinstance(found, Answer)
        assert (found.charged, guard.budget.rows_left) == (30, 6000)
        assert found.low <= 0.5 <= found.high
        assert found.high - found.low < 0.2
        assert verify(guard.receipt()).passed
