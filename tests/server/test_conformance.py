"""One suite for a guard and a holdout here, and for those of a service: the same results, words and errors."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import afresh
from afresh import errors, losses, statistics
from afresh.client.connection import Connection
from afresh.guard.guard import Guard
from afresh.models.holdout import Holdout
from server.running import Service, running


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("remote")) as found:
        yield found


@pytest.fixture(params=["here", "there"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def guard(place: str, remote: Service, tmp_path: Path) -> Iterator[Guard]:
    """The same rows: here on a ledger of their own, there on the service's."""
    if place == "there":
        with afresh.connect(remote.url, remote.token()).open("customers") as found:
            yield found
    else:
        with afresh.open(remote.folder / "customers.parquet", questions=400, analyst="ann") as found:
            found.desk.hidden = frozenset({"secret"})
            yield found


@pytest.fixture
def holdout(place: str, remote: Service, tmp_path: Path) -> Iterator[Holdout]:
    if place == "there":
        with afresh.connect(remote.url, remote.token()).holdout("churn") as found:
            yield found
    else:
        data = remote.folder / "churn.parquet"
        with afresh.holdout(data, label="churned", questions=400, analyst="ann") as found:
            yield found


def test_what_is_public(guard: Guard, remote: Service) -> None:
    assert guard.rows == 4000
    assert "secret" not in guard.columns
    assert guard.columns["amount"] == "number"
    assert guard.plan.questions == 400
    assert repr(guard).startswith("Guard(4,000 rows, ")
    assert "Guard" in str(guard)
    assert guard.analyst == "ann"
    assert guard.for_analyst("ann").rows == 4000


def test_answers(guard: Guard) -> None:
    first = guard.ask("churned AND tenure < 30")
    again = guard.ask("churned AND tenure < 30")
    assert type(first) is afresh.Answer
    assert again.charged == 0
    assert (first.value, first.interval) == (again.value, again.interval)
    assert first.left == again.left
    answers = guard.ask_many(["tenure < 5", {"expression": "tenure", "bounds": (0, 120), "missing": 0}])
    assert [each.bounds for each in answers] == [(0.0, 1.0), (0.0, 120.0)]
    within = guard.ask("churned", where="country = 'CH'", precision=0.2) if guard.plan.answers > 400 else first
    assert within.confidence == 0.95
    record = next(each for each in guard.transcript if each.question == first.question)
    assert (record.value, record.analyst) == (first.value, "ann")
    assert len(guard.transcript.answers) == guard.budget.spent
    assert guard.price("churned AND tenure < 30").answers == 0
    assert guard.price("tenure < 77").answers == 1
    assert afresh.receipts.verify(guard.receipt()).passed


def test_ibis_expressions(guard: Guard) -> None:
    ibis = pytest.importorskip("ibis")
    table = ibis.table({"churned": "boolean", "tenure": "int64"}, name="t")
    answer = guard.ask(table.churned & (table.tenure < 12))
    assert guard.ask("churned AND tenure < 12").value == answer.value


def test_statistics(guard: Guard) -> None:
    histogram = guard.measure(statistics.Histogram("tenure", (0, 60, 120)))
    assert isinstance(histogram, statistics.Measures)
    again = guard.measure(statistics.Histogram("tenure", (0, 60, 120)))
    assert isinstance(again, statistics.Measures)
    assert [again[name].value for name in again] == [histogram[name].value for name in histogram]
    vector = guard.ask_vector({"a": "tenure / 120", "b": "amount / 500"}, radius=1.5)
    assert list(vector) == ["a", "b"]
    variance = guard.measure(statistics.Variance("tenure", (0, 120), missing=0))
    assert isinstance(variance, afresh.Answer)
    assert guard.price(statistics.Variance("tenure", (0, 120), missing=0)).answers == 2


MISTAKES: list[tuple[Any, type[Exception]]] = [
    (lambda guard: guard.ask("nothing > 3"), errors.QueryError),
    (lambda guard: guard.ask("secret > 3"), errors.QueryError),
    (lambda guard: guard.ask("tenure"), errors.QueryError),
    (lambda guard: guard.ask("tenure", bounds=(3, 1)), errors.InvalidArgument),
    (lambda guard: guard.ask_many("churned"), errors.QueryError),
    (lambda guard: guard.ask_many([{"expression": "churned", "colour": 1}]), errors.InvalidArgument),
    (lambda guard: guard.ask_many([f"tenure < {i} AND amount < 3" for i in range(500)]), errors.BudgetExhausted),
    (lambda guard: guard.ask("churned", guess=(3, 0.1)), errors.InvalidArgument),
    (lambda guard: guard.claim("churned", (0.8, 0.1)), errors.InvalidArgument),
    (lambda guard: guard.measure("median"), errors.InvalidArgument),
    (lambda guard: guard.measure(statistics.Quantile("nothing", 0.5, (0, 1))), errors.QueryError),
    (lambda guard: guard.open_rows(), errors.InvalidArgument),
    (lambda guard: guard.round(), errors.InvalidArgument),
    (lambda guard: pickle.dumps(guard), TypeError),
]


def test_errors_are_the_same(remote: Service, tmp_path: Path) -> None:
    with (
        afresh.open(remote.folder / "customers.parquet", questions=400, analyst="ann") as here,
        afresh.connect(remote.url, remote.token()).open("customers") as there,
    ):
        here.desk.hidden = frozenset({"secret"})
        for wrong, kind in MISTAKES:
            before = there.budget.spent
            with pytest.raises(kind) as local:
                wrong(here)
            with pytest.raises(kind) as distant:
                wrong(there)
            assert type(local.value) is type(distant.value)
            if kind is errors.BudgetExhausted:
                assert (distant.value.asked, distant.value.questions) == (500, 400)  # type: ignore[attr-defined]
            else:
                assert str(local.value) == str(distant.value)
            assert there.budget.spent == before


def test_models(holdout: Holdout) -> None:
    # Always wrong where the other is right: the lower end lies 7 deviations of noise and deal above 0 (2e-12).
    good, bad = (lambda X: X["x0"] > 0), (lambda X: X["x0"] <= 0)
    answer = holdout.score(good, name="good")
    assert holdout.score(good, name="good").charged == 0
    assert 0 < answer.value < 0.5
    found = holdout.compare(bad, good, names=("bad", "good"))
    assert found.better == "B"
    assert found.verdict == "B is better"
    assert holdout.compare(good, good).verdict == "identical on these rows"
    ranking = holdout.best_of([good, bad], names=["good", "bad"])
    assert ranking.best == ("good",)
    chances = np.clip(0.5 + 0.2 * holdout.features["x0"].to_numpy(), 0, 1)
    assert 0 < holdout.score(chances, loss="brier").value < 0.5
    assert holdout.measure(statistics.Recall(), good).confidence == 0.95
    assert holdout.measure(statistics.AUC((0.5,)), chances).value > 0.5
    assert holdout.resolution(0.1) > 0
    assert holdout.classes == (False, True)
    assert repr(holdout).startswith("Holdout(zero-one loss of 'churned', Guard(4,000 rows")
    assert holdout.features.shape == (4000, 4)
    texts = np.where(holdout.features["x0"] > 0, "yes", "no")
    with pytest.raises(errors.InvalidArgument, match="not one of the classes"):
        holdout.score(texts)
    with pytest.raises(errors.InvalidArgument, match="one per row"):
        holdout.score([True, False])
    with pytest.raises(errors.InvalidArgument, match="2 classes but 3 rows of costs"):
        holdout.score(good, loss=losses.Cost(((0, 1, 1), (1, 0, 1), (1, 1, 0))))


def test_names_of_unnamed_models_are_their_classes(holdout: Holdout) -> None:
    model = LogisticRegression().fit(holdout.features[["x0", "x1"]], np.arange(4000) % 2 == 0)
    answer = holdout.score(lambda X: model.predict(X[["x0", "x1"]]))
    assert "of <lambda> " in answer.question


def test_searches(holdout: Holdout, remote: Service, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    optuna = pytest.importorskip("optuna")
    from afresh.integrations.optuna import GuardedObjective
    from afresh.integrations.sklearn import GuardedSearchCV, scorer, with_holdout

    chance = np.random.default_rng(3)
    X, y = holdout.features.iloc[:200], chance.random(200) < 0.5
    joined, labels, cv = with_holdout(X, y, holdout)
    grid = {"logisticregression__C": [0.1, 1.0]}
    numbers = ColumnTransformer([("numbers", "passthrough", ["x0", "x1", "x2"])])
    model = make_pipeline(numbers, LogisticRegression())
    search = GridSearchCV(model, grid, scoring=scorer(holdout), cv=cv, refit=False, error_score="raise")
    search.fit(joined, labels == 1)
    assert 0 <= search.best_score_ <= 1
    own = GuardedSearchCV(model, grid, holdout=holdout)
    own.fit(X, y)
    assert own.best_interval_.low <= own.best_score_ <= own.best_interval_.high

    def build(trial: Any) -> Any:
        cut = trial.suggest_float("cut", -1, 1)
        return lambda features: features["x0"] > cut

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="minimize")
    objective = GuardedObjective(holdout, build)
    study.optimize(objective, n_trials=3)
    assert objective.best(study)["confidence"] == 0.95


def test_the_token_says_who_asks(remote: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with afresh.connect(remote.url, remote.token()) as service:
        assert "customers" in str(service)
        with pytest.raises(errors.Forbidden):
            service.open("customers").for_analyst("bob")
        with pytest.raises(errors.NotFound):
            service.open("nothing")
        with pytest.raises(errors.InvalidArgument):
            service.holdout("customers")
        with pytest.raises(errors.Forbidden):
            service.open("customers").divide({"ann": 400})
    monkeypatch.delenv("AFRESH_TOKEN", raising=False)
    place = tmp_path / "token"
    monkeypatch.setenv("AFRESH_TOKEN_FILE", str(place))
    with pytest.raises(errors.NotAllowed, match="there is no token"):
        afresh.open(f"{remote.url}/customers")
    place.write_text(remote.token())
    with pytest.raises(errors.NotAllowed, match="chmod 600"):
        afresh.open(f"{remote.url}/customers")
    os.chmod(place, 0o600)
    with afresh.open(f"{remote.url}/customers") as guard:
        assert guard.ask("churned").confidence == 0.95
    with afresh.holdout(f"{remote.url}/churn") as holdout:
        assert pickle.loads(pickle.dumps(holdout)).rows == 4000
    with pytest.raises(errors.InvalidArgument, match="the service keeps"):
        afresh.open(f"{remote.url}/customers", questions=5)
    with pytest.raises(errors.InvalidArgument, match="https"):
        afresh.connect("http://example.org", "x")
    monkeypatch.setenv("AFRESH_TOKEN", "wrong")
    with pytest.raises(errors.NotAllowed):
        afresh.open(f"{remote.url}/customers")
    with pytest.raises(errors.Unreachable):
        afresh.connect("http://127.0.0.1:9", "x")
    odd: list[Any] = ["", "two words", "line\nbreak", "töken", 5]
    for token in odd:
        with pytest.raises(errors.InvalidArgument, match="afresh token new"):
            afresh.connect(remote.url, token)
    with pytest.raises(errors.ServiceError, match="not JSON"):
        Connection(remote.url, remote.token()).get("/sign-in")
