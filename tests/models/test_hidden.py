"""Features that are hidden: no call tells of them for free. Features that are public: no answer claims more."""

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import afresh
from afresh import statistics as s
from afresh.errors import AfreshError, InvalidArgument
from afresh.integrations.sklearn import GuardedSearchCV, scorer, with_holdout
from afresh.losses import Custom, Squared
from afresh.mechanisms.registry import PLANNERS
from afresh.models.verdicts import Comparison, Identical

N = 3000
RNG = np.random.default_rng(6)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=N) > 0).astype(int)
FITTED = LogisticRegression().fit(X, Y)
METHODS = list(PLANNERS)
COST = {method: 1 if method in ("rounds", "checked", "calibrated") else 2 for method in METHODS}  # of a comparison


def sign(features: Any) -> Any:
    return (features[:, 0] > 0).astype(int)


def raises(features: Any) -> Any:
    if (features[:, 0] > 2.9).any():
        raise ValueError(f"found {features[:, 0].max()}")
    return sign(features)


def warns(features: Any) -> Any:
    warnings.warn(f"found {features[0, 0]}", stacklevel=1)
    return sign(features)


def raw(features: Any) -> Any:
    return features[:, 0]  # no class: an error would quote the feature


def nearly(features: Any) -> Any:
    return sign(features) ^ (np.abs(features[:, 1]) > 3.5)


def short(features: Any) -> Any:
    return sign(features)[features[:, 0] < 3]


def chances(features: Any) -> Any:
    return features[:, :2]


CALLS: dict[str, Callable[[afresh.Holdout], Any]] = {
    "its features": lambda h: h.features,
    "predictions": lambda h: h.score(Y),
    "short predictions": lambda h: h.score(Y[:-1]),
    "a class": lambda h: h.score(LogisticRegression),
    "not fitted": lambda h: h.score(LogisticRegression()),
    "fitted to other columns": lambda h: h.score(LogisticRegression().fit(X[:, :2], Y)),
    "a failing function": lambda h: h.score(lambda features: features.nothing),
    "a model": lambda h: h.score(FITTED),
    "a name": lambda h: h.score(sign, name="sign"),
    "its repeat": lambda h: h.score(sign, name="sign"),
    "raises on rows": lambda h: h.score(raises, name="raises"),
    "warns": lambda h: h.score(warns),
    "raw features": lambda h: h.score(raw),
    "short on rows": lambda h: h.score(short, name="short"),
    "no probabilities": lambda h: h.score(chances, loss="brier"),
    "raw numbers": lambda h: h.score(lambda f: np.where(f[:, 0] > 3, np.nan, f[:, 0]), loss=Squared(clip=1)),
    "a custom loss": lambda h: h.score(raw, loss=Custom(lambda y, p: np.abs(p - y) / 9, "off")),
    "nearly the same": lambda h: h.compare(sign, nearly),
    "the same": lambda h: h.compare(sign, lambda features: (features[:, 0] > 0).astype(int)),
    "the same by name": lambda h: h.compare(sign, nearly, names=("sign", "nearly")),
    "many": lambda h: h.best_of([sign, nearly, raises]),
    "a statistic": lambda h: h.measure(s.Precision(), short),
    "a curve": lambda h: h.measure(s.AUC((0.5,)), chances),
    "a search": lambda h: with_holdout(X, Y, h),
    "a scorer": lambda h: scorer(h),
    "a question": lambda h: h.guard.ask("x0 > 2.9"),
    "pickled": lambda h: pickle.dumps(h),
}


def outcomes(features: Any, method: str) -> dict[str, Any]:
    """All that a caller sees but released numbers."""
    found: dict[str, Any] = {}
    with (
        afresh.holdout(
            features, Y, features="hidden", questions=200, method=method, ledger=":memory:", allow_wide=True
        ) as holdout,
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        for name, call in CALLS.items():
            try:
                said = call(holdout)
                found[name] = type(said).__name__, said.charged
            except (AfreshError, TypeError) as error:
                found[name] = type(error).__name__, str(error)
            found[name] = *found[name], holdout.budget.spent, len(warned)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_no_call_tells_of_hidden_features_but_by_a_paid_answer(method: str) -> None:
    """Models that agree on all rows, on some or on none; rows that make them fail, or do not."""
    tables = [X, np.clip(X, -2, 2), np.abs(X) + 4, np.full_like(X, 0.5), np.full_like(X, np.nan)]
    first, *others = (outcomes(table, method) for table in tables)
    for other in others:
        assert other == first
    charged = {name: said[1] for name, said in first.items() if isinstance(said[1], int)}
    assert charged["its repeat"] == 0
    assert all(count > 0 for name, count in charged.items() if name != "its repeat")
    assert charged["the same"] == charged["nearly the same"] == COST[method]
    assert not any(repr(value)[:6] in str(first) for value in X[:, 0])


@pytest.mark.parametrize("method", METHODS)
def test_a_small_difference_is_never_excluded(method: str) -> None:
    """A fixed pair, 1000 rows, a true difference of .001: on a third of the samples they agree on all rows.

    Such an interval has a half-width of .01 or more, and at most 14 of 1000 rows differ but with probability 1e-10.
    """
    rng = np.random.default_rng(7)
    agreed = 0
    for run in range(40):
        x = rng.random((1000, 1))
        y = x[:, 0] > 0.5
        with afresh.holdout(
            x, y, features="hidden", questions=4, method=method, simulation_seed=run, made_up=True
        ) as holdout:
            found = holdout.compare(lambda f: f[:, 0] > 0.5, lambda f: (f[:, 0] > 0.5) & (f[:, 0] < 0.999))
            assert isinstance(found, Comparison)
            assert found.charged == COST[method]
            assert found.low < -0.001 < found.high
        with afresh.holdout(x, y, questions=4, method=method, simulation_seed=run, made_up=True) as holdout:
            public = holdout.compare(y, y & (x[:, 0] < 0.999))
            if (x >= 0.999).any():
                assert public.charged == COST[method]
                continue
            agreed += 1
            assert isinstance(public, Identical)
            assert public.interval is public.confidence is None
            assert (public.charged, holdout.budget.spent) == (0, 0)
    assert agreed > 10


def test_a_hidden_model_is_what_it_was_called() -> None:
    with afresh.holdout(X, Y, features="hidden", questions=30, ledger=":memory:") as holdout:
        first = holdout.score(sign, name="sign 1")
        assert holdout.score(sign, name="sign 1") == afresh_free(first)
        assert holdout.score(sign, name="sign 2").charged == 1  # the same predictions
        assert holdout.score(FITTED, name="sign 1").charged == 1  # another model, as made-up rows show
        assert [holdout.score(sign).charged for _ in range(2)] == [1, 1]
        assert holdout.compare(sign, sign, names=("sign 1", "sign 1")).charged > 0
        assert "population" in first.covers
        assert "population" in holdout.compare(sign, FITTED, names=("a", "b")).to_dict()["covers"]
        assert "valid prediction" in first.missing


def afresh_free(answer: Any) -> Any:
    from dataclasses import replace

    return replace(answer, charged=0, charged_information=0, fixes=None)


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "file"])
def test_rows_without_a_prediction_have_the_largest_loss(kind: str, tmp_path: Path) -> None:
    """Rows are dealt afresh, at a confidence that makes a miss rare."""
    frame = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(
        name=np.where(X[:, 1] > 0, "a", "zzz"),
        day=pd.Timestamp("2024-01-01"),
        kind=pd.Categorical(["u", "v"] * (N // 2)),
    )
    given: Any = {"array": X, "pandas": frame, "polars": pl.from_pandas(frame)}.get(kind)
    if kind == "file":
        given = tmp_path / "data.parquet"
        frame.assign(label=Y).to_parquet(given)

    def picky(features: Any) -> Any:
        first = np.asarray(features[:, 0] if kind == "array" else features["x0"])
        if (np.abs(first) > 1).any():
            raise ValueError("no")
        return np.where(first > 0.5, 7, (first > 0).astype(int))  # 7 is no class

    good = (np.abs(X[:, 0]) <= 1) & (X[:, 0] <= 0.5)
    labels = () if kind == "file" else (Y,)
    with afresh.holdout(
        given, *labels, features="hidden", questions=8, confidence=1 - 1e-6, ledger=":memory:"
    ) as holdout:
        answer = holdout.score(picky)
        assert np.where(good, (X[:, 0] > 0) != Y, 1).mean() in answer.interval
        assert answer.low > 0.3
        recall = np.mean(((X[:, 0] > 0) & good)[Y == 1])
        assert recall in holdout.measure(s.Recall(), picky).interval
        with pytest.raises(InvalidArgument, match="hidden"):
            _ = holdout.features


def test_searches_run_on_hidden_features() -> None:
    with afresh.holdout(X, Y, features="hidden", questions=8, ledger=":memory:") as holdout:
        search = GuardedSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, holdout=holdout).fit(X, Y)
        assert search.best_interval_.low > 0.5
        assert holdout.budget.spent == 2


def test_a_copy_hides_what_the_holdout_hides(tmp_path: Path) -> None:
    with afresh.holdout(X, Y, features="hidden", questions=8, ledger=tmp_path / "ledger.sqlite") as holdout:
        holdout.score(sign, name="sign")
        with pickle.loads(pickle.dumps(holdout)) as copy:
            assert copy.visibility == "hidden"
            assert copy.score(sign, name="sign").charged == 0
    with pytest.raises(InvalidArgument, match="features == 'secret'"):
        afresh.holdout(X, Y, features="secret", simulation_seed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", METHODS)
def test_answers_speak_of_these_rows_where_features_are_public(method: str) -> None:
    guess = (X[:, 0] > 0).astype(int)
    with afresh.holdout(X, Y, questions=40, method=method, ledger=":memory:", allow_wide=True) as holdout:
        said = [
            holdout.score(guess).covers,
            holdout.measure(s.Precision(), guess).covers,
            holdout.compare(guess, 1 - guess).to_dict()["covers"],
            holdout.guard.ask("label = 1 AND x0 > 0").covers,
        ]
        for covers in said:
            assert "on the features of" in covers
            assert "labels were drawn anew" in covers
            assert "population" not in covers
        assert all("these rows' features" in each.question for each in holdout.guard.transcript.records[:-1])
        spent = holdout.budget.spent
        for known in ("x0 > 0", "x0 > 0 AND x1 < x2"):
            with pytest.raises(InvalidArgument, match="does not read the label 'label'"):
                holdout.guard.ask(known)
        with pytest.raises(InvalidArgument, match="you hold all other columns"):
            holdout.guard.measure(s.Quantile("x0", 0.5, bounds=(-5, 5)))
        assert holdout.budget.spent == spent
        assert holdout.guard.ask("x0", bounds=(-1, 1), where="label = 1").charged == 2
