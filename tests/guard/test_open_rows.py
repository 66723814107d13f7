"""Open rows: held in full by the analyst, the same in every process, and apart from the rows that confirm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import afresh
from afresh.errors import InvalidArgument, PlanMismatch
from afresh.receipts import verify

N = 6000
RNG = np.random.default_rng(5)
FRAME = pd.DataFrame(
    {"i": np.arange(N), "x": RNG.random(N), "g": RNG.integers(0, 5, N), "name": ["a", "b", None] * 2000}
)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet", "csv"])
def test_open_rows_are_of_the_users_kind_and_the_same_everywhere(kind: str, tmp_path: Path) -> None:
    data: Any = {"pandas": FRAME, "polars": pl.from_pandas(FRAME), "arrow": pa.Table.from_pandas(FRAME)}.get(kind)
    if kind == "parquet":
        data = tmp_path / "rows.parquet"
        FRAME.to_parquet(data)
    if kind == "csv":
        data = tmp_path / "rows.csv"
        FRAME.to_csv(data, index=False)
    book = tmp_path / "ledger.sqlite"
    with afresh.open(data, 50, open=0.25, ledger=book) as guard:
        found = guard.open_rows()
        again = guard.open_rows()
        assert (guard.plan.open, guard.plan.method, guard.budget.spent) == (N // 4, "checked", 0)
    assert type(found) is {"polars": pl.DataFrame, "arrow": pa.Table}.get(kind, pd.DataFrame)
    held = found.to_pandas() if kind in ("polars", "arrow") else found
    assert list(held.columns) == list(FRAME.columns)
    places = held["i"].to_numpy()
    assert len(set(places)) == N // 4
    assert 0.3 < places.mean() / N < 0.7  # dealt at random, not the first rows: 12 deviations
    expected = FRAME.iloc[places]
    assert np.allclose(held["x"], expected["x"])
    assert held["name"].fillna("-").tolist() == expected["name"].fillna("-").tolist()
    if kind not in ("polars", "arrow"):
        assert held.index.tolist() == places.tolist()
    with afresh.open(data, ledger=book, analyst="another") as later:
        same = later.open_rows()
    for one in (again, same):
        table = one.to_pandas() if kind in ("polars", "arrow") else one
        assert table["i"].tolist() == places.tolist()


def test_open_rows_fix_the_plan(tmp_path: Path) -> None:
    """Whoever has seen some rows may not have them guard an answer later."""
    book = tmp_path / "ledger.sqlite"
    with afresh.open(FRAME, 50, open=0.5, ledger=book):
        pass
    with afresh.open(FRAME, 50, open=0.25, ledger=book) as guard:  # nothing was handed out yet
        guard.open_rows()
        assert verify(guard.receipt()).passed
    for other in ({"open": 0.5}, {"method": "stabilized"}, {"questions": 10}, {"promise": True}):
        with pytest.raises(PlanMismatch):
            afresh.open(FRAME, ledger=book, **other)
    with afresh.open(FRAME, open=0.25, ledger=book) as guard:
        assert guard.plan.open == N // 4


def test_answers_are_guessed_from_open_rows_and_confirmed_on_the_others() -> None:
    """Dealt by a seed: honest guesses fail one time in some hundred."""
    with afresh.open(FRAME, 50, open=0.5, simulation_seed=1, made_up=True) as guard:
        rows = guard.open_rows()
        honest = guard.ask("x < 0.3")
        assert honest.value == pytest.approx((rows["x"] < 0.3).mean(), abs=1e-9)
        assert honest.confirmed
        assert "Confirmed" in str(honest)
        number = guard.ask("x", bounds=(0, 1), missing=0)
        assert number.value == pytest.approx(rows["x"].mean(), abs=1e-9)
        assert number.interval.half_width < honest.interval.half_width
        named = ", ".join(map(str, rows["i"][:1500]))
        overfitted = guard.ask(f"i IN ({named})")  # true of half of the open rows, and of no other
        assert overfitted.confirmed is False
        assert 0 <= overfitted.low <= overfitted.high < 0.1
        assert "Not confirmed" in str(overfitted)
        assert overfitted.widened is not None
        assert overfitted.widened > 0
        assert guard.ask("x < 0.31").interval.half_width > honest.interval.half_width
        checks = verify(json.dumps(guard.receipt())).checks
        assert [check.name for check in checks if not check.passed] == ["real noise"]


@pytest.mark.parametrize("features", ["public", "hidden"])
def test_a_holdout_opens_features_and_labels(features: Any) -> None:
    X = RNG.normal(size=(N, 3))
    y = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
    for given in (X, pd.DataFrame(X, columns=list("abc"))):
        plan: dict[str, Any] = {"open": 0.5, "questions": 40, "simulation_seed": 1, "made_up": True}
        with afresh.holdout(given, y, features=features, **plan) as holdout:
            dev, labels = holdout.open_rows()
            assert len(dev) == len(labels) == N // 2
            first = np.asarray(dev)
            if features == "public":
                assert type(dev) is type(given)
            places = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in first[:50]]
            assert y[places].tolist() == labels[:50].tolist()
            answer = holdout.score(lambda rows: (np.asarray(rows)[:, 0] > 0).astype(int), name="sign")
            mine = ((first[:, 0] > 0) != labels).mean()
            assert answer.value == pytest.approx(mine, abs=1e-9)
            assert answer.confirmed
            known = {tuple(row): label for row, label in zip(first, labels, strict=True)}

            def memory(rows: Any, known: dict[Any, int] = known) -> Any:
                return np.array([known.get(tuple(row), 0) for row in np.asarray(rows)], dtype=int)

            learnt = holdout.score(memory, name="memory")
            assert learnt.confirmed is False
            assert learnt.low > 0.4
            assert not holdout.claim(memory, better_than=lambda rows: np.ones(len(rows), dtype=int), names=["m", "one"])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"open": 0}, "open"),
        ({"open": 1}, "open"),
        ({"open": "half"}, "open"),
        ({"open": 0.5, "method": "stabilized"}, "has no open rows"),
        ({"open": 0.5, "rounds": 5}, "has no open rows"),
        ({"open": 0.5, "promise": True}, "promises no width"),
        ({"promise": 1}, "promise"),
        ({"open": 0.5, "answers": 80}, "more answers than questions"),
    ],
)
def test_bad_wishes_are_told(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        afresh.open(FRAME, 50, ledger=":memory:", **wrong)


def test_rows_are_not_handed_out_unless_they_are_open() -> None:
    with afresh.open(FRAME, 50, method="checked", ledger=":memory:") as guard:
        with pytest.raises(InvalidArgument, match="without open rows"):
            guard.open_rows()
        assert not guard.desk.ledger.find(guard.desk.engine.identity()).fixed  # type: ignore[union-attr]
