"""The whole path: open, ask, charge, record, answer, reopen."""

import decimal
import json
import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import afresh
from afresh.errors import (
    BudgetExhausted,
    DataChanged,
    DataError,
    EngineError,
    GuardClosed,
    InvalidArgument,
    PlanMismatch,
    QueryError,
    SameRows,
)
from afresh.ledger import open_ledger
from afresh.mechanisms.registry import PLANNERS
from afresh.results.answer import Interval

METHODS = list(PLANNERS)
BY_ROWS_IN_GROUPS = ("rounds", "checked")  # where the mean of a number within a group is one answer
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    n = 6000
    frame = pd.DataFrame(
        {
            "churned": rng.random(n) < 0.3,
            "tenure": rng.integers(0, 10, n),
            "amount": rng.gamma(2.0, 60.0, n),
            "country": rng.choice(["CH", "DE", "FR"], n),
        }
    )
    frame.loc[::3, "amount"] = np.nan
    return frame


@each_method
def test_answers_hold_for_every_method(frame: pd.DataFrame, method: str) -> None:
    """Simulated noise, so decided once; with fresh noise each method may fail with probability 5%."""
    with afresh.open(frame, questions=8, method=method, simulation_seed=5, made_up=True) as guard:
        share = guard.ask("churned AND tenure < 5")
        mean = guard.ask("amount", bounds=(0, 500))
        low = guard.ask("amount", bounds=(0, 500), missing=0)
        high = guard.ask("amount", bounds=(0, 500), missing=500)
        group = guard.ask("churned", where="country = 'CH'")
    assert 0.15 in share.interval
    assert share.value in share.interval
    assert 119 in mean.interval  # a third is missing, and left out
    assert 79 in low.interval  # a third counts as 0
    assert 246 in high.interval  # a third counts as 500
    assert 0.3 in group.interval
    condition, number = 1 if method == "rounds" else 2, 1 if method in BY_ROWS_IN_GROUPS else 2
    assert [answer.charged for answer in (share, mean, low, high, group)] == [1, number, 1, 1, condition]
    assert group.left == 8 - 3 - number - condition
    assert {a.method for a in (share, mean, low, high, group)} == {method}


def test_an_answer_says_everything(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=10, method="stabilized") as guard:
        answer = guard.ask("amount", bounds=(0, 500), where="tenure < 5", missing=100)
        share = guard.ask("churned")
    assert answer.confidence == 0.95
    assert (answer.charged, answer.left) == (2, 8)
    assert answer.charged_information == pytest.approx(2 * guard.plan.charge)
    assert "the mean of this within the group" in answer.covers
    assert "6,000 rows" in answer.covers
    assert "95%" in answer.covers
    assert answer.missing.startswith("NULL, NaN and infinite values count as 100; numbers are clipped to [0, 500]")
    assert answer.question == "amount within [0, 500], missing as 100"
    assert share.missing == "NULL counts as false."
    assert "share of rows" in share.covers
    assert not answer.simulated
    told = json.loads(answer.to_json())
    assert told["value"] == answer.value
    assert (told["low"], told["high"]) == (answer.low, answer.high)
    assert 0 <= answer.low <= answer.value <= answer.high <= 500
    for text in (str(answer), answer._repr_html_()):
        assert "95%" in text
        assert "Charged 2 answers; 8 left." in text
    assert "within the group" not in str(answer)  # short, and the rest on demand
    assert "within the group" in str(answer.details)
    assert "within the group" in answer._repr_html_()
    assert "<svg" in answer._repr_html_()
    assert repr(answer).startswith("Answer(")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("churned AND tenure < 3", "tenure<3   and\n CHURNED"),
        ("tenure BETWEEN 2 AND 4", "tenure >= 2 AND 4 >= tenure"),
        ("country IN ('CH')", "'CH' = country"),
        ("NOT NOT churned", "((churned))"),
    ],
)
def test_the_same_question_again_is_free(frame: pd.DataFrame, first: str, second: str) -> None:
    with afresh.open(frame, questions=5) as guard:
        paid, repeat = guard.ask(first), guard.ask(second)
    assert (paid.charged, repeat.charged) == (1, 0)
    assert paid.left == repeat.left == 4
    assert (paid.value, paid.interval) == (repeat.value, repeat.interval)


def test_bounds_are_said_or_inferred(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=5) as guard:
        assert guard.ask("churned").bounds == (0, 1)
        assert guard.ask("CASE WHEN churned THEN 5 ELSE 2 END").bounds == (2, 5)
        with pytest.raises(QueryError, match="has no bounds"):
            guard.ask("amount")
        assert guard.budget.spent == 2


def test_other_bounds_or_missing_make_another_question(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=6, method="stabilized") as guard:
        asked = [
            guard.ask("amount", bounds=(0, 500)),
            guard.ask("amount", bounds=(0, 400)),
            guard.ask("amount", bounds=(0, 500), missing=0),
            guard.ask("amount", bounds=(0, 500), missing=1),
        ]
    assert [answer.charged for answer in asked] == [2, 2, 1, 1]


@each_method
def test_ask_many_equals_asking_one_by_one(frame: pd.DataFrame, method: str) -> None:
    questions: list[Any] = [
        "churned",
        {"expression": "amount", "bounds": (0, 300), "where": "country = 'DE'"},
        "tenure < 4",
        "4 > tenure",
    ]
    with afresh.open(frame, questions=9, method=method, simulation_seed=1, made_up=True) as guard:
        together = guard.ask_many(questions)
    with afresh.open(frame, questions=9, method=method, simulation_seed=1, made_up=True) as guard:
        alone = [guard.ask(**(q if isinstance(q, dict) else {"expression": q})) for q in questions]
    if method == "rounds":  # one round has the rows of one
        assert ([a.charged for a in together], together[0].value) == ([1, 1, 1, 0], alone[0].value)
        return
    assert [a.charged for a in together] == [1, 1 if method in BY_ROWS_IN_GROUPS else 2, 1, 0]
    assert [a.value for a in together] == pytest.approx([a.value for a in alone], rel=1e-12)
    assert [a.interval for a in together] == [a.interval for a in alone]


def test_budget_runs_out_without_charging_or_answering(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=3, method="stabilized") as guard:
        first = guard.ask("churned")
        guard.ask("tenure < 2")
        with pytest.raises(BudgetExhausted, match=r"needs 2 answers, but 2 of 3 are spent and 1 is left") as refused:
            guard.ask("churned", where="tenure < 2")
        assert (refused.value.asked, refused.value.spent, refused.value.left) == (2, 2, 1)
        with pytest.raises(BudgetExhausted):
            guard.ask_many(["tenure = 1", "tenure = 2"])
        assert guard.budget.left == 1
        guard.ask("tenure = 3")
        with pytest.raises(BudgetExhausted, match="repeats of earlier questions are free"):
            guard.ask("tenure = 4")
        assert guard.ask("churned").value == first.value
        assert (guard.budget.spent, guard.budget.left) == (3, 0)
        assert guard.budget.spent_information == pytest.approx(guard.budget.information)


@pytest.mark.parametrize(
    "question",
    [
        {"expression": "nonsense"},
        {"expression": "amount >"},
        {"expression": "avg(amount)"},
        {"expression": "amount", "bounds": (1, 0)},
        {"expression": "amount", "bounds": (0, float("nan"))},
        {"expression": "amount", "bounds": (0, 10**400)},
        {"expression": "amount", "bounds": "09"},
        {"expression": "amount", "bounds": {0, 1}},
        {"expression": "amount", "missing": b"1"},
        {"expression": "amount", "missing": 7},
        {"expression": "churned", "bounds": (0, 2)},
        {"expression": "churned", "where": "country"},
        {"expression": "country"},
        {"wher": "churned"},
    ],
)
def test_mistakes_are_free(frame: pd.DataFrame, question: dict[str, Any]) -> None:
    with afresh.open(frame, questions=3) as guard:
        with pytest.raises((QueryError, InvalidArgument)):
            guard.ask_many(["churned", question])
        assert guard.budget.spent == 0


def sources(frame: pd.DataFrame, folder: Path) -> dict[str, Callable[[], Any]]:
    """The same content in every form a guard takes."""
    import duckdb

    frame.to_parquet(folder / "data.parquet")
    frame.to_csv(folder / "data.csv", index=False)
    table = pa.Table.from_pandas(frame)
    pq.write_table(table, folder / "zipped.parquet", compression="zstd", row_group_size=777)
    shuffled = frame.sample(frac=1.0, random_state=1)[["country", "amount", "tenure", "churned"]]
    shuffled.to_parquet(folder / "shuffled.parquet", index=False)
    with duckdb.connect(folder / "data.duckdb") as connection:
        connection.execute("CREATE TABLE holdout AS SELECT * FROM frame")
    return {
        "parquet": lambda: folder / "data.parquet",
        "csv": lambda: str(folder / "data.csv"),
        "duckdb": lambda: folder / "data.duckdb",
        "zipped": lambda: folder / "zipped.parquet",
        "shuffled": lambda: folder / "shuffled.parquet",
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "arrow": lambda: table,
        "ibis": lambda: ibis.memtable(frame),
    }


@each_method
def test_renaming_copying_or_reencoding_does_not_reset_the_budget(
    frame: pd.DataFrame, tmp_path: Path, method: str
) -> None:
    first = None
    for name, source in sources(frame, tmp_path).items():
        with afresh.open(source(), questions=12, method=method) as guard:
            answer = guard.ask("churned AND tenure < 3")
            guard.ask(f"tenure < {len(name)} OR country = '{name}'")
        if first is None:
            first = answer
        else:
            assert answer.charged == 0, name
            assert answer.value == first.value
    with afresh.open(frame) as guard:
        assert guard.budget.spent == len(guard.transcript) == 10


def test_changed_content_is_another_dataset(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=12) as guard:
        guard.ask("churned")
    frame["tenure"] = frame["tenure"].where(frame.index > 0, -1)
    with pytest.raises(SameRows, match=r"'amount'.*with one of 6,000 rows.*new_rows="):
        afresh.open(frame, questions=5)
    with afresh.open(frame, questions=5, new_rows="drawn a year later") as guard:
        assert guard.budget.spent == 0
        assert guard.receipt()["data"]["new_rows"] == "drawn a year later"


@pytest.mark.parametrize("other", [{"questions": 6}, {"confidence": 0.9}, {"method": "calibrated"}])
def test_another_plan_is_refused(frame: pd.DataFrame, other: dict[str, Any]) -> None:
    with afresh.open(frame, questions=5, confidence=0.95, method="stabilized") as guard:
        guard.ask("churned")
    with pytest.raises(
        PlanMismatch, match=r"The plan of this dataset is questions=5, confidence=0.95, method='stabilized'"
    ):
        afresh.open(frame, **other)
    with afresh.open(frame) as guard:
        assert guard.budget.left == 4


def test_defaults_and_never_opened(frame: pd.DataFrame) -> None:
    with pytest.raises(DataError, match="never opened"):
        afresh.open(frame, must_exist=True)
    with afresh.open(frame) as guard:
        assert (guard.plan.questions, guard.plan.confidence) == (100, 0.95)
    with afresh.open(frame, must_exist=True) as guard:
        assert guard.budget.left == 100


def test_transcript_and_guard_tell_the_rest(frame: pd.DataFrame) -> None:
    with afresh.open(frame, questions=5, method="stabilized") as guard:
        assert str(guard.transcript) == "Nothing has been asked yet."
        answer = guard.ask("amount", bounds=(-100, 300))
        guard.ask("churned", where="country = 'CH'")
        (first, *rest) = guard.transcript.records
        assert (first.value, first.low, first.high) == pytest.approx((answer.value, answer.low, answer.high))
        assert [(record.number, record.numbers) for record in rest] == [(4, "3+4")]
        assert "country = 'CH'" in str(guard.transcript)
        told = json.loads(json.dumps(guard.transcript.to_dict()))["questions"]
        assert told[0]["question"] == "amount within [-100, 300]"
        assert json.loads(json.dumps(guard.budget.to_dict()))["left"] == 1
        assert repr(guard) == f"Guard(6,000 rows, 1 of 5 answers left, {guard.plan.method})"
        assert "amount (number)" in str(guard)
        assert "<table" in guard._repr_html_()
        assert guard.columns["country"] == "text"


def test_noise_is_fresh_unless_simulated(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Answers lie on a grid, so that two coincide with a probability of about 1/45 (measured); five at once: 1e-8."""

    def ask(ledger: str | None, **how: Any) -> list[afresh.Answer]:
        with afresh.open(frame, questions=5, ledger=ledger and tmp_path / ledger, **how) as guard:
            return guard.ask_many(["churned", *(f"tenure < {bound}" for bound in (3, 4, 5, 6))])

    first, second = ([answer.value for answer in ask(ledger)] for ledger in "ab")
    assert first != second
    seeded = [ask(None, simulation_seed=seed, made_up=True)[0] for seed in (4, 4, 5)]
    assert seeded[0].value == seeded[1].value != seeded[2].value
    assert all(answer.simulated for answer in seeded)
    assert "SIMULATION" in str(seeded[0])
    assert "simulated" in repr(seeded[0])
    assert seeded[0].to_dict()["simulated"] is True


def test_a_simulation_is_kept_apart_and_marked_everywhere(frame: pd.DataFrame, private_ledger: Path) -> None:
    with afresh.open(frame, questions=5, simulation_seed=1, made_up=True) as guard:
        answer = guard.ask("churned")
        assert "Guarantees nothing" in answer.covers
        for shown in (answer, guard.budget, guard.transcript):
            assert shown.to_dict()["simulated"] is True
            assert str(shown).startswith("SIMULATION")
        assert "simulated" in repr(guard)
    assert not private_ledger.exists()
    with pytest.raises(InvalidArgument, match="keeps no ledger"):
        afresh.open(frame, questions=5, simulation_seed=1, made_up=True, ledger=private_ledger)
    with pytest.raises(InvalidArgument, match="whole number"):
        afresh.open(frame, questions=5, simulation_seed=1.5, made_up=True)  # type: ignore[arg-type]


def test_a_simulation_takes_only_rows_that_were_made_up(frame: pd.DataFrame, tmp_path: Path) -> None:
    """Whatever could be guarded, in whatever ledger, would give its exact means away."""
    paths = [tmp_path / f"data.{suffix}" for suffix in ("parquet", "csv", "duckdb")]
    frame.to_parquet(paths[0])
    frame.to_csv(paths[1], index=False)
    with duckdb.connect(str(paths[2])) as database:
        database.execute("CREATE TABLE t AS SELECT * FROM frame")
    table, lazy = ibis.memtable(frame), pl.scan_parquet(paths[0])
    for data in (*paths, str(paths[0]), "postgresql://localhost/x", table, lazy):
        with pytest.raises(InvalidArgument, match="cannot run on a file"):
            afresh.open(data, questions=5, simulation_seed=1, made_up=True)
    for data in (table, lazy):
        with pytest.raises(InvalidArgument, match="cannot run on a file"):
            afresh.holdout(data, np.zeros(len(frame)), questions=5, simulation_seed=1, made_up=True)
    for data in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        with pytest.raises(InvalidArgument, match="made_up=True"):
            afresh.open(data, questions=5, simulation_seed=1)
        with afresh.open(data, questions=5, simulation_seed=1, made_up=True) as guard:
            assert guard.ask("churned").simulated
    with pytest.raises(InvalidArgument, match="only a simulation"):
        afresh.open(frame, questions=5, made_up=True)


def test_new_rows_are_words(frame: pd.DataFrame) -> None:
    for words in ("", "  ", True, 3):
        with pytest.raises(InvalidArgument, match="must be text"):
            afresh.open(frame, questions=5, new_rows=words)  # type: ignore[arg-type]
    afresh.open(frame, questions=5, new_rows="drawn in March").close()


def test_a_file_that_changes_is_refused_before_anything_is_charged(frame: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    frame.to_parquet(path)
    with afresh.open(path, questions=5) as guard:
        guard.ask("churned")
        frame.head(5000).to_parquet(path)
        with pytest.raises(DataChanged):
            guard.ask("tenure < 3")
        assert guard.budget.spent == 1


def test_a_failing_engine_keeps_the_reservation_and_asking_again_completes_it(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    with afresh.open(frame, questions=5) as guard:
        real = guard.desk.engine.moments

        def fail(*_: Any) -> Any:
            raise EngineError("the engine failed")

        monkeypatch.setattr(guard.desk.engine, "moments", fail)
        with pytest.raises(EngineError):
            guard.ask("churned")
        assert guard.budget.spent == 1
        assert guard.transcript.records[0].value is None
        monkeypatch.setattr(guard.desk.engine, "moments", real)
        answer = guard.ask("churned")
        assert (answer.charged, answer.left) == (0, 4)


def test_ends_are_exact_at_the_bounds_and_rounded_outward_within() -> None:
    constant = pd.DataFrame({"x": [0.4] * 500})
    with afresh.open(constant, questions=5) as guard:
        answer = guard.ask("x", bounds=(-32, 0.4))
        assert answer.high == 0.4
        assert 0.4 in answer.interval
        assert guard.transcript.records[0].high == 0.4
        for shown in (repr(answer), str(answer)):
            low = re.findall(r"\[(-?[\d.,]+), (-?[\d.,]+)\]", shown)[0]
            assert float(low[0].replace(",", "")) <= answer.low
            assert float(low[1].replace(",", "")) >= answer.high


@pytest.mark.parametrize("method", METHODS[:4])
def test_no_row_makes_numpy_complain(method: str) -> None:
    """In a process that asked it for errors."""
    frame = pd.DataFrame({"x": np.arange(500) % 2.0, "y": np.arange(500.0)})
    with afresh.open(frame, questions=27, method=method, allow_wide=True) as guard, np.errstate(all="raise"):
        for bounds in ((0, 1e308), (-1e-300, 1e300), (0, 1)):
            guard.ask("x", bounds=bounds)
        guard.ask_many([f"y < {k}" for k in range(0, 501, 25)])
        assert len(guard.transcript.records) == 24


@pytest.mark.parametrize(("bound", "digits"), [(1e40, 28), (1e300, 28), (3e-300, 28), (1234567.0, 4)])
def test_answers_are_shown_at_any_scale(bound: float, digits: int) -> None:
    """Whatever precision the process has chosen for decimals of its own."""
    with afresh.open(pd.DataFrame({"x": [0.0] * 500}), questions=5) as guard, decimal.localcontext(prec=digits):
        answer = guard.ask("x", bounds=(-bound, bound))
        for shown in (repr(answer), str(answer), answer._repr_html_(), str(guard.transcript)):
            assert "95%" in shown
        low, high = re.findall(r"\[(-[\d.,]+), ([\d.,]+)\]", repr(answer))[0]
        assert float(low.replace(",", "")) <= answer.low
        assert float(high.replace(",", "")) >= answer.high


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9), st.fractions(0, 1))
@example(-1e9, 1e9 + 1, Fraction(999999999, 1000000000))
@example(-3.0, 3.0000001, Fraction(9999999, 10000000))
def test_intervals_on_any_scale_hold_what_they_held_on_the_unit_scale(low: float, width: float, x: Fraction) -> None:
    high = low + width
    assume(low < high)
    unit = float(x)
    exact = Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(unit)
    found = Interval(unit, unit).rescaled((low, high))
    assert Fraction(found.low) <= exact <= Fraction(found.high)
    assert found.high - found.low <= 1e-14 * max(abs(low), abs(high))


def test_a_closed_guard_says_so_and_leaves_a_borrowed_ledger_open(frame: pd.DataFrame, tmp_path: Path) -> None:
    ledger = open_ledger(tmp_path / "shared.sqlite")
    one = afresh.open(frame, questions=5, ledger=ledger)
    two = afresh.open(frame.head(3000), questions=5, ledger=ledger, new_rows="to have two guards")
    one.close()
    one.close()
    with pytest.raises(GuardClosed, match="open the data again"):
        one.ask("churned")
    with pytest.raises(GuardClosed):
        _ = one.budget
    assert repr(one) == "Guard(6,000 rows, closed)"
    assert two.ask("churned").charged == 1
    with pytest.raises(TypeError, match="share one budget"):
        pickle.dumps(two)
    two.close()
    ledger.close()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"questions": 2.5}, "questions == 2.5, must be a whole number"),
        ({"questions": "5"}, "must be a whole number"),
        ({"confidence": "0.95"}, "must be a number"),
        ({"confidence": 1e-20}, "away from both ends"),
        ({"confidence": 2}, r"must be a number in \(0, 1\)"),
        ({"method": ["rounds"]}, "must be one of"),
        ({"ledger": 5}, "must be a path, a postgresql"),
    ],
)
def test_bad_arguments_are_refused_alike_on_first_and_later_opening(
    frame: pd.DataFrame, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        afresh.open(frame, **arguments)
    afresh.open(frame, questions=np.int64(5), confidence=np.float64(0.95)).close()  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=message):
        afresh.open(frame, **arguments)


@pytest.mark.parametrize("confidence", [0.30000000000000004, 0.012345678901234567, 0.1 + 0.2])
def test_any_confidence_agrees_with_itself(frame: pd.DataFrame, confidence: float) -> None:
    for _ in range(2):
        afresh.open(frame, questions=5, confidence=confidence).close()


@pytest.mark.parametrize("questions", ["churned", {"expression": "churned"}, b"churned", None, 5])
def test_ask_many_takes_a_list(frame: pd.DataFrame, questions: Any) -> None:
    with afresh.open(frame, questions=5) as guard:
        with pytest.raises(QueryError, match="takes a list"):
            guard.ask_many(questions)
        with pytest.raises(QueryError):
            guard.ask_many([5])


def test_too_few_rows() -> None:
    with pytest.raises(DataError, match="at least 20"):
        afresh.open(pd.DataFrame({"x": range(19)}))


columns = st.sampled_from(["amount", "tenure"])
conditions = st.one_of(
    st.just("churned"),
    st.builds("{} {} {}".format, columns, st.sampled_from(["<", ">=", "=", "<>"]), st.integers(-2, 12)),
    st.builds("country = '{}'".format, st.sampled_from(["CH", "XX", "it''s"])),
)
numbers = st.builds("{} {} {}".format, columns, st.sampled_from("+-*/%"), st.integers(-3, 3))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, afresh.Guard]:
    rng = np.random.default_rng(1)
    n = 500
    frame = pd.DataFrame(
        {
            "churned": rng.random(n) < 0.3,
            "tenure": rng.integers(0, 10, n),
            "amount": np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 100, n)),
            "country": rng.choice(["CH", "DE"], n),
        }
    )
    how: dict[str, Any] = {"simulation_seed": 1, "made_up": True, "allow_wide": True}
    return {m: afresh.open(frame, questions=400, method=m, **how) for m in METHODS}


@each_method
@given(
    expression=st.one_of(conditions, numbers),
    where=st.one_of(st.none(), conditions),
    lower=st.floats(-1e6, 1e6),
    width=st.floats(1e-3, 1e6),
    missing=st.floats(0, 1),
)
def test_any_question_gets_a_sound_answer(
    shared: dict[str, afresh.Guard],
    method: str,
    expression: str,
    where: str | None,
    lower: float,
    width: float,
    missing: float,
) -> None:
    guard = shared[method]
    condition = any(sign in expression for sign in ("<", ">", "=", "churned"))
    bounds = (0.0, 1.0) if condition else (lower, lower + width)
    filler = None if condition else min(bounds[0] + missing * width, bounds[1])
    spent = guard.budget.spent
    try:
        answer = guard.ask(expression, bounds, where, filler)
    except BudgetExhausted:
        assert guard.budget.spent == spent
        assert spent + (1 if where is None else 2) > 400
        return
    assert bounds[0] <= answer.low <= answer.value <= answer.high <= bounds[1]
    assert guard.budget.spent == spent + answer.charged
    assert answer.charged <= (1 if where is None else 2)
    again = guard.ask(expression, bounds, where, filler)
    assert again.charged == 0
    assert (again.value, again.interval) == (answer.value, answer.interval)


# -- what a question means, costs and tells


@pytest.fixture
def patients() -> pd.DataFrame:
    """Half of `cured` is NULL, a quarter true."""
    rng = np.random.default_rng(5)
    cured = rng.choice(np.array([True, False, None, None], dtype=object), 4000)
    dose = np.where(rng.random(4000) < 0.4, np.nan, rng.uniform(0, 10, 4000))
    return pd.DataFrame({"cured": pd.array(cured, dtype="boolean"), "dose": dose, "id": np.arange(4000)})


MEANT: list[tuple[dict[str, Any], str]] = [
    ({"expression": "cured", "missing": 1}, "cured (NULL counts as true)"),
    ({"expression": "cured", "missing": 1, "where": "dose > 1"}, "cured (NULL counts as true) where dose > 1"),
    ({"expression": "dose", "bounds": (0, 10)}, "dose within [0, 10]"),
    ({"expression": "dose", "bounds": (0, 10), "missing": 3}, "dose within [0, 10], missing as 3"),
    ({"expression": "dose", "bounds": (0, 10), "where": "cured"}, "dose within [0, 10] where cured"),
]


def test_what_was_meant_shows_everywhere(patients: pd.DataFrame) -> None:
    from afresh.receipts import verify
    from afresh.receipts.page import as_html, as_markdown

    statistic = afresh.statistics.Variance("dose", (0, 10), where="cured", missing=2)
    texts = [text for _, text in MEANT] + ["variance of dose within [0, 10], missing as 2 where cured"]
    with afresh.open(patients, questions=20) as guard:
        for arguments, text in MEANT:
            assert guard.price(**arguments).question == text
            answer = guard.ask(**arguments)
            assert answer.question + (f" where {answer.where}" if answer.where else "") == text
            assert guard.price(**arguments).answers == 0
        assert guard.price(statistic).question == texts[-1]
        guard.measure(statistic)
        assert [record.question for record in guard.transcript] == texts
        receipt = guard.receipt()
        assert verify(receipt).passed
        assert [question["question"] for question in receipt["questions"]] == texts
        shown = [str(guard.transcript), as_markdown(receipt), as_html(receipt).replace("&gt;", ">")]
        assert all(text in page for text in texts for page in shown)


@each_method
def test_the_price_is_what_is_charged(patients: pd.DataFrame, method: str) -> None:
    with afresh.open(patients, questions=12, method=method) as guard:
        for arguments, _ in MEANT:
            price = guard.price(**arguments)
            before = guard.budget
            answer = guard.ask(**arguments)
            assert (price.answers, price.left) == (answer.charged, before.left)
            assert price.charge == pytest.approx(answer.charged_information)
            assert price.half_width is not None
            assert price.half_width > 0
            assert f"Costs {price.answers} answer" in price.words
            assert price.words in str(price).replace("\n ", "")
            assert json.loads(price.to_json())["answers"] == price.answers


def test_the_half_width_to_expect(frame: pd.DataFrame) -> None:
    """At the mean and the share of rows that there are it is about what comes; noise moves it by less than a half."""
    with afresh.open(frame, questions=10, method="stabilized", simulation_seed=3, made_up=True) as guard:
        for arguments, mean, share in (
            ({"expression": "churned"}, 0.3, 1),
            ({"expression": "amount", "bounds": (0, 500), "missing": 0}, 79, 1),
            ({"expression": "amount", "bounds": (0, 500)}, 119, 2 / 3),
            ({"expression": "churned", "where": "country = 'CH'"}, 0.3, 1 / 3),
        ):
            price = guard.price(**arguments, mean=mean, share=share)
            found = guard.ask(**arguments)
            assert price.half_width == pytest.approx(found.interval.half_width, rel=0.5)


@pytest.mark.parametrize("options", [{}, {"rounds": 2}, {"open": 0.4}, {"open": 0.4, "exam": 0.2}])
def test_the_width_within_a_group_is_told_by_its_size(frame: pd.DataFrame, options: dict[str, Any]) -> None:
    """Nobody may look how large it is, so a price speaks of three sizes, or of the one that is expected."""
    with afresh.open(frame, questions=10, ledger=":memory:", allow_wide=True, **options) as guard:
        for exam in (None, 2) if "exam" in options else (None,):
            price = guard.price("churned", where="country = 'CH'", exam=exam)
            assert list(price.half_widths) == [0.5, 0.1, 0.01]
            assert price.half_width == price.half_widths[0.5] < price.half_widths[0.1] <= price.half_widths[0.01]
            assert "if the group has half of the rows, ±" in price.words
            assert not price.ways
            one = guard.price("churned", where="country = 'CH'", share=0.1, exam=exam)
            assert one.half_widths == {0.1: price.half_widths[0.1]}
            assert "over 10% of the rows" in one.words
        whole = guard.price("amount", bounds=(0, 500))
        assert list(whole.half_widths) == [1.0]
        assert "if every row has the number" in whole.words


@pytest.mark.parametrize(
    "bad",
    [
        {"expression": "no_column"},
        {"expression": "amount"},
        {"expression": "churned", "mean": 2},
        {"expression": "churned", "mean": "half"},
        {"expression": "churned", "share": 0},
        {"expression": "churned", "share": 1.5},
        {"expression": "churned", "guess": (0.5, 0.1)},
        {"expression": afresh.statistics.Variance("country", (0, 1))},
    ],
)
def test_a_price_of_what_cannot_be_asked_is_refused(frame: pd.DataFrame, bad: dict[str, Any]) -> None:
    with afresh.open(frame, questions=5) as guard:
        with pytest.raises((QueryError, InvalidArgument)):
            guard.price(**bad)
        assert guard.budget.spent == 0


def test_a_price_touches_no_row(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    with afresh.open(frame, questions=5, method="stabilized") as guard:
        monkeypatch.setattr(guard.desk.engine, "moments", None)
        assert guard.price("churned").answers == 1
        assert guard.price(afresh.statistics.Variance("amount", (0, 5))).answers == 4
        assert len(guard.transcript) == 0
        monkeypatch.undo()
        guard.ask_many([f"tenure = {k}" for k in range(4)])
        assert "not enough" in guard.price("churned", where="country = 'CH'").words


@each_method
def test_a_group_without_rows_tells_nothing(patients: pd.DataFrame, method: str) -> None:
    from afresh.receipts.page import as_html, as_markdown

    with afresh.open(patients, questions=20, method=method) as guard:
        answers = [
            guard.ask("cured", where="id = 7"),
            guard.ask("dose", bounds=(0, 10), where="id < 0"),
            guard.measure(afresh.statistics.Variance("dose", (0, 10), where="id = 7")),
        ]
        groups = guard.measure(afresh.statistics.GroupMeans("cured", "id", [8, 9]))
        all_rows = guard.ask("cured", where="id >= 0")
        receipt = guard.receipt()
        log = str(guard.transcript)
    for answer in answers:
        assert isinstance(answer, afresh.Answer)
        assert not answer.told
        assert json.loads(answer.to_json())["told"] is False
        for shown in (str(answer), repr(answer), answer._repr_html_()):
            assert "too few rows" in shown.lower()
        assert "●" not in str(answer)
    assert all_rows.told
    assert "too few rows" not in str(all_rows)
    assert str(groups).count("too few rows") == 2
    assert log.count("too few rows") == 5
    parts = 2 if method in BY_ROWS_IN_GROUPS else 0  # those of the variance are means within the group
    assert as_markdown(receipt).count("too few rows") == 5 + parts
    assert as_html(receipt).count("too few rows") == 10 + parts  # in the plot, and in its table
