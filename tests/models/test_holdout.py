"""Scores on a guarded holdout: one budget, one ledger, receipts, and labels that stay hidden."""

import copy
import itertools
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import afresh
from afresh.errors import BudgetExhausted, DataChanged, DataError, GuardClosed, InvalidArgument
from afresh.losses import Custom, Squared
from afresh.mechanisms.registry import PLANNERS
from afresh.models.verdicts import Comparison
from afresh.receipts import verify

N = 4000
RNG = np.random.default_rng(5)
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=N) > 0).astype(int)
GUESS = (X[:, 0] > 0).astype(int)
METHODS = list(PLANNERS)


@pytest.mark.parametrize("method", METHODS)
def test_scores_are_right_and_repeats_free(method: str) -> None:
    """Simulated noise: decided once."""
    with afresh.holdout(X, Y, questions=5, method=method, simulation_seed=2, made_up=True) as holdout:
        answer = holdout.score(GUESS)
        assert np.mean(GUESS != Y) in answer.interval
        assert (answer.charged, answer.left) == (1, 4)
        assert holdout.score(GUESS.astype(float)).charged == 0
        assert holdout.score(GUESS.astype(bool).tolist(), name="again").charged == 0
        brier = holdout.score(np.where(GUESS, 0.8, 0.2), loss="brier")
        assert np.mean((np.where(GUESS, 0.8, 0.2) - Y) ** 2) in brier.interval
        share = holdout.guard.ask("x0 > 0 AND label = 1")
        assert np.mean((X[:, 0] > 0) & (Y == 1)) in share.interval
        assert share.left == 2
        both = holdout.score_many([1 - GUESS, GUESS, 1 - GUESS], names=["a", "b", "c"])
        assert [each.charged for each in both] == [1, 0, 0]
        holdout.score(np.zeros(N))
        with pytest.raises(BudgetExhausted):
            holdout.score(np.ones(N))
        assert holdout.score(GUESS).charged == 0


def test_split_scores_rows_of_its_own_block() -> None:
    with afresh.holdout(X, Y, questions=4, method="rounds", simulation_seed=2, made_up=True) as holdout:
        values = [holdout.score(g).value for g in (GUESS, 1 - GUESS, np.zeros(N), np.ones(N))]
        assert all((value * (N // 4)) % 1 == pytest.approx(0, abs=1e-9) for value in values)
        assert values[0] != pytest.approx(1 - values[1])  # other rows


def test_one_ledger_and_receipts(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with afresh.holdout(frame, Y, label="churned", questions=50, ledger=place) as holdout:
        first = holdout.score(GUESS, name="a model")
        receipt = holdout.guard.receipt()
        assert verify(receipt).passed
        assert receipt["answers"][0]["question"] == "zero-one loss of a model on these rows' features"
    with afresh.open(frame.assign(churned=Y), ledger=place) as guard:  # the same content
        holdout = afresh.holdout(guard, label="CHURNED")
        again = holdout.score(GUESS)
        assert (again.charged, again.value) == (0, first.value)
    with afresh.holdout(frame[::-1], Y[::-1], label="churned", ledger=place) as other:
        assert other.guard.budget.spent == 1  # the same rows, so the same budget
        moved = other.score(GUESS)  # the same numbers, for other rows: another question
        assert moved.charged == 1
        assert moved.low > first.high


def test_another_label_is_another_question() -> None:
    """Of one guard: the same predictions, classes and loss."""
    frame = pd.DataFrame({"x": X[:, 0], "sick": GUESS, "well": 1 - GUESS})

    def right(features: Any) -> Any:
        return features["x"] > 0

    def wrong(features: Any) -> Any:
        return features["x"] <= 0

    with afresh.open(frame, questions=10, simulation_seed=2, made_up=True) as guard:
        sick, well = (afresh.holdout(guard, label=label, features="hidden") for label in ("sick", "well"))
        for holdout, loss in ((sick, 0), (well, 1)):
            assert loss in holdout.score(right, name="right").interval
            compared = holdout.compare(wrong, right, names=("wrong", "right"))
            assert isinstance(compared, Comparison)
            assert 1 - 2 * loss in compared.interval
            assert 1 - loss in holdout.measure(afresh.statistics.Precision(), right, name="right").interval
        again = afresh.holdout(guard, label="SICK", features="hidden")
        assert again.score(right, name="right").charged == 0


def test_a_public_holdout_keeps_one_label() -> None:
    """Of two, each would hand out the other's labels as a feature."""
    frame = pd.DataFrame({"x": X[:, 0], "sick": GUESS, "well": 1 - GUESS})
    declared: list[tuple[str, Any]] = [("sick", "public"), ("well", "public"), ("sick", "hidden")]
    for first, second in itertools.permutations(declared, 2):
        with afresh.open(frame, questions=10, simulation_seed=2, made_up=True) as guard:
            afresh.holdout(guard, label=first[0], features=first[1])
            afresh.holdout(guard, label=first[0], features=first[1])
            with pytest.raises(InvalidArgument, match="reveal"):
                afresh.holdout(guard, label=second[0], features=second[1])


def test_labels_and_losses_never_make_the_digest() -> None:
    """The digest is published; whoever guesses the labels must not be able to check the guess with it."""
    import hashlib

    with afresh.holdout(X, Y, questions=5, ledger=":memory:") as holdout:
        holdout.score(GUESS)
        digest = holdout.guard.transcript.records[0].digest
        text = json.dumps(holdout.guard.receipt())
        assert holdout.guard.desk.terms.seed not in text
    for array in (GUESS != Y, Y, GUESS, (GUESS != Y).astype(float)):
        assert hashlib.sha256(np.ascontiguousarray(array).data).hexdigest() != digest


@pytest.mark.parametrize("kind", ["pandas", "polars", "file"])
def test_a_column_is_the_label(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "sick": Y == 1})
    data: Any = {"pandas": frame, "polars": pl.from_pandas(frame), "file": tmp_path / "data.parquet"}[kind]
    if kind == "file":
        frame.to_parquet(data)
    with afresh.holdout(data, label="sick", questions=10, confidence=1 - 1e-6) as holdout:  # a file cannot be seeded
        assert holdout.classes == (False, True)
        answer = holdout.score(lambda features: features["x"] > 0)
        assert np.mean(GUESS != Y) in answer.interval
        model = LogisticRegression().fit(frame[["x", "z"]], frame.sick)
        assert holdout.score(model).high < 0.5
        chances = model.predict_proba(frame[["x", "z"]])
        assert holdout.score(model, loss="log").charged == 1
        assert holdout.score(chances, loss="log").charged == 0
        assert holdout.score(chances[:, 1], loss="log").charged == 0


def test_mistakes_are_free_and_quote_no_label(tmp_path: Path) -> None:
    with afresh.holdout(X, Y, questions=5, ledger=":memory:") as holdout:
        for bad in (GUESS[:-1], np.where(GUESS, np.nan, 0), ["2"] * N, GUESS + 1, None):
            with pytest.raises(InvalidArgument):
                holdout.score(bad)
        with pytest.raises(InvalidArgument, match="no predict_proba"):
            holdout.score(type("M", (), {"predict": lambda self, x: GUESS})(), loss="log")
        with pytest.raises(InvalidArgument, match="has no predict, and"):
            holdout.score(type("M", (), {"predict_proba": lambda self, x: GUESS})())
        with pytest.raises(InvalidArgument, match="precision"):
            holdout.score(GUESS, precision=-1)
        with pytest.raises(InvalidArgument, match="name"):
            holdout.score(GUESS, name=" ")
        assert holdout.budget.spent == 0
        assert "zero-one" in repr(holdout)
        assert "classes   0, 1" in str(holdout)
        assert "<div" in holdout._repr_html_()
    with pytest.raises(InvalidArgument, match="is also a column"):
        afresh.holdout(pd.DataFrame({"label": X[:, 0]}), Y)
    with pytest.raises(DataError, match="shape"):
        afresh.holdout(X, Y[:-1])
    with pytest.raises(DataError, match="one row per case"):
        afresh.holdout(X[:, 0], Y)
    with pytest.raises(DataError, match="rename one"):  # of a frame, not opened as an array without names
        afresh.holdout(pd.DataFrame(X, columns=["a", "A", "b"]), Y)
    with pytest.raises(DataError, match="several types"):
        afresh.holdout(X, np.array([1, "a"] * (N // 2), dtype=object))
    with pytest.raises(InvalidArgument, match="must be one of the columns"):
        afresh.holdout(pd.DataFrame(X, columns=list("abc")), label="y", simulation_seed=1, made_up=True)
    with pytest.raises(InvalidArgument, match="classes="):
        afresh.holdout(X, X[:, 0], simulation_seed=1, made_up=True)
    with pytest.raises(InvalidArgument, match="label= only"):
        afresh.holdout(afresh.open(pd.DataFrame({"y": Y}), simulation_seed=1, made_up=True), label="y", questions=3)
    with pytest.raises(TypeError, match="share one budget"):
        pickle.dumps(holdout)


def test_what_is_no_list_of_predictions_is_told_what_would_be() -> None:
    with afresh.holdout(X, Y, questions=5, ledger=":memory:") as holdout:
        for bad, words in (
            ((each for each in GUESS), "generator are not an array"),
            ({"a": 1}, "dict are not an array"),
            ([[1]] * (N - 1) + [[1, 2]], "list are not an array"),
            (LogisticRegression, "is a class"),
        ):
            with pytest.raises(InvalidArgument, match=words):
                holdout.score(bad)
        for models, names, words in (
            (LogisticRegression(), None, "models of type LogisticRegression"),
            ({"a": GUESS, "b": 1 - GUESS}, ["c", "d"], "keys of a dict of models are their names"),
            ({1: GUESS, 2: 1 - GUESS}, None, "name == 1"),
            ([GUESS, 1 - GUESS], "ab", "names of type str"),
            ([GUESS, 1 - GUESS], 3, "names of type int"),
        ):
            with pytest.raises(InvalidArgument, match=words):
                holdout.best_of(models, names=names)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="disagreement == 'few'"):
            holdout.resolution("few")  # type: ignore[arg-type]
        assert holdout.budget.spent == 0
        assert len(holdout.score_many((each for each in (GUESS, 1 - GUESS)), names=(n for n in "ab"))) == 2  # type: ignore[arg-type]
    for arguments, words in (
        (("data.parquet", Y), "name the column with label="),
        ((pd.DataFrame({"sick": Y}), "sick"), "label='sick'"),
        ((X,), "pass the labels too"),
        ((X.tolist(),), "pass the labels too"),
    ):
        with pytest.raises(InvalidArgument, match=words):
            afresh.holdout(*arguments)
    with pytest.raises(InvalidArgument, match="at least two values"):
        afresh.holdout(X, Y, classes=[[0], [1]])


def test_a_copy_spends_from_the_same_guard() -> None:
    with afresh.holdout(X, Y, questions=5, ledger=":memory:") as holdout:
        assert copy.deepcopy(holdout) is holdout


def test_a_wrong_label_fixes_no_plan(tmp_path: Path) -> None:
    frame, place = pd.DataFrame({"x": X[:, 0], "sick": Y}), tmp_path / "ledger.sqlite"
    with pytest.raises(InvalidArgument, match="must be one of the columns x, sick"):
        afresh.holdout(frame, label="ill", questions=7, ledger=place)
    with afresh.holdout(frame, label="sick", questions=9, ledger=place) as holdout:
        assert holdout.budget.questions == 9


@pytest.mark.parametrize(
    ("kind", "labels", "loss"),
    [
        ("float64", X[:, 0], "zero-one"),
        ("object", np.where(Y, "yes", "no"), Squared(clip=1)),
        ("category", np.where(Y, "yes", "no"), Squared(clip=1)),
        ("datetime64[ns]", Y, Squared(clip=1)),
    ],
)
def test_a_loss_that_does_not_suit_fixes_no_plan(kind: Any, labels: Any, loss: Any, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": X[:, 0], "label": pd.Series(labels).astype(kind)})
    frame.to_parquet(tmp_path / "data.parquet")
    data: Any
    for data in (frame, tmp_path / "data.parquet"):
        place = tmp_path / f"{type(data).__name__}.sqlite"
        with pytest.raises(InvalidArgument, match="the labels are"):
            afresh.holdout(data, loss=loss, questions=7, ledger=place)
        with afresh.open(data, questions=9, ledger=place) as guard:
            assert guard.budget.questions == 9


def test_numbers_and_classes(tmp_path: Path) -> None:
    target = X @ [1.0, 2.0, 3.0]
    with afresh.holdout(
        X, target, loss=Squared(clip=4), questions=4, simulation_seed=9, made_up=True, answers=8
    ) as holdout:
        guess = X @ [1.0, 2.0, 2.5]
        answer = holdout.score(guess)
        assert answer.bounds == (0, 4)
        assert np.minimum((guess - target) ** 2, 4).mean() in answer.interval
        coarse = holdout.score(guess + 1, precision=1.5)
        assert coarse.charged_information < answer.charged_information
        assert coarse.interval.half_width <= 1.5
        assert holdout.classes is None
        custom = Custom(lambda y, p: np.tanh(np.abs(p - y)), "tanh")
        assert np.tanh(np.abs(guess - target)).mean() in holdout.score(guess, loss=custom).interval
    with afresh.holdout(X, Y.astype(float), classes=[0, 1, 2], questions=4, simulation_seed=9, made_up=True) as holdout:
        assert holdout.classes == (0, 1, 2)
        model = LogisticRegression().fit(X, Y)  # has never seen class 2
        assert holdout.score(model, loss="brier").value < 0.3


def test_somebody_elses_loss_meets_one_thread() -> None:
    callers = set()

    def loss(y: Any, p: Any) -> Any:
        callers.add(threading.get_ident())
        return np.abs(p - y)

    rows = 600_000
    with afresh.holdout(
        np.zeros((rows, 1)), np.ones(rows), loss=Custom(loss, "off"), simulation_seed=9, made_up=True
    ) as holdout:
        assert holdout.score(np.ones(rows)).value < 0.1
        assert holdout.compare(np.ones(rows), np.zeros(rows)).value < -0.9
    assert callers == {threading.get_ident()}


@pytest.mark.parametrize("method", ["stabilized", "rounds"])
def test_rows_keep_their_order(method: str, tmp_path: Path) -> None:
    """More rows than any reader takes at once, from memory and from a file in several row groups."""
    from afresh.engines.embedded.rowwise import read_features, rows_of_span
    from afresh.moments import even_spans

    n = 300_000
    frame = pd.DataFrame({"x": np.arange(n, dtype=float), "label": RNG.integers(0, 3, n)})
    frame.to_parquet(tmp_path / "data.parquet", row_group_size=20_000)
    orders = []
    for data in (frame, tmp_path / "data.parquet"):
        with afresh.holdout(data, questions=3, method=method) as holdout:
            assert (holdout.labelled.labels.codes == frame.label).all()
            engine = holdout.guard.desk.engine
            assert (read_features(engine, ["label"])["x"] == frame.x).all()
            orders.append(holdout.labelled.order)
            if method == "rounds":
                spans = even_spans(n, 3)
                parts = [rows_of_span(engine, span) for span in spans]
                assert sorted(np.concatenate(parts)) == list(range(n))
                # the engine's own sum of x over a span is that of the rows named here
                own = engine.moments([_mean_of_x(holdout, n)], [spans[1]])[0]
                assert own.total == pytest.approx(frame.x.to_numpy()[parts[1]].sum() / n)
    assert len(set(orders)) == 1
    swapped = frame.copy()
    swapped.loc[[0, 1], "label"] = frame.label[[1, 0]].to_numpy()
    with afresh.holdout(swapped.assign(label=swapped.label), questions=3, simulation_seed=1, made_up=True) as holdout:
        assert (holdout.labelled.order == orders[0]) == (frame.label[0] == frame.label[1])


def _mean_of_x(holdout: afresh.Holdout, n: int) -> Any:
    from afresh.queries.query import make_query

    return make_query("x", holdout.guard.desk.engine.schema, bounds=(0, n))


def test_a_loss_that_does_not_suit_the_labels_is_free() -> None:
    off = Custom(lambda y, p: np.abs(p - y), "off")
    with afresh.holdout(X, np.where(Y, "yes", "no"), questions=5, ledger=":memory:") as holdout:
        for ask in (
            lambda: holdout.score(X[:, 0], loss=Squared(clip=4)),
            lambda: holdout.score(X[:, 0], loss=off),
            lambda: holdout.compare(X[:, 0], X[:, 1], loss=off),
            lambda: holdout.best_of([X[:, 0], X[:, 1]], loss=off),
        ):
            with pytest.raises(InvalidArgument, match="the labels are not numbers"):
                ask()
        assert holdout.budget.spent == 0


def test_a_copy_is_of_the_same_rows_by_the_same_analyst(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "ledger.sqlite"
    with (
        afresh.holdout(X, Y, questions=9, ledger=place, analyst="ann") as one,
        afresh.holdout(X[::-1], Y[::-1], ledger=place, analyst="bob") as other,  # the same rows in another order
    ):
        for holdout in (one, other):
            for _ in range(2):  # also after a copy was closed
                with pickle.loads(pickle.dumps(holdout)) as copy:
                    assert (copy.labelled.order, copy.guard.analyst) == (holdout.labelled.order, holdout.guard.analyst)
                    assert copy.labelled.labels.codes.tolist() == holdout.labelled.labels.codes.tolist()
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": X[:, 0], "label": Y}).to_parquet("data.parquet")
    with afresh.holdout("data.parquet", questions=9, ledger="other.sqlite") as holdout:
        sent = pickle.dumps(holdout)
        monkeypatch.chdir("/")
        with pickle.loads(sent) as copy:
            assert copy.rows == N


def test_a_copy_of_data_that_were_changed_is_refused(tmp_path: Path) -> None:
    features, labels = X.copy(), Y.copy()
    with afresh.holdout(features, labels, questions=9, ledger=tmp_path / "ledger.sqlite") as holdout:
        features[:], labels[:] = X[::-1], Y[::-1]
        assert holdout.labelled.labels.codes.tolist() == Y.tolist()  # it has its own
        with pytest.raises(DataChanged, match="in place"):
            pickle.loads(pickle.dumps(holdout))


@pytest.mark.parametrize("kind", ["frame", "file"])
def test_columns_that_no_question_can_use(kind: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": X[:, 0], "raw": [b"0", b"1"] * (N // 2), "label": Y})
    frame.to_parquet(tmp_path / "data.parquet")
    data: Any = frame if kind == "frame" else tmp_path / "data.parquet"
    with afresh.holdout(data, questions=5, ledger=tmp_path / "first.sqlite") as holdout:
        assert holdout.score(lambda features: features["x"] > 0).high < 0.5
    place = tmp_path / "ledger.sqlite"
    with pytest.raises(InvalidArgument, match="must be one of the columns x, label"):  # nobody could tell other labels
        afresh.holdout(data, label="raw", questions=7, ledger=place)
    with afresh.open(data, questions=9, ledger=place) as guard, pytest.raises(InvalidArgument, match="one of"):
        afresh.holdout(guard, label="raw")


def test_models_may_write_into_one_array() -> None:
    room = np.empty(N)

    def constant(number: float) -> Any:
        def model(features: Any) -> Any:
            room[:] = number
            return room

        return model

    with afresh.holdout(
        X, Y.astype(float), loss=Squared(clip=1), questions=9, simulation_seed=2, made_up=True
    ) as holdout:
        half, far = holdout.score_many([constant(0.5), constant(9.0)])
        assert 0.25 in half.interval
        assert 1 in far.interval
        compared = holdout.compare(constant(0.5), constant(9.0))
        assert isinstance(compared, Comparison)
        assert -0.75 in compared.interval
        assert holdout.score(np.full(N, 0.5)).charged == 0


def test_a_closed_holdout_says_so() -> None:
    holdout = afresh.holdout(pd.DataFrame({"x": X[:, 0], "label": Y}), questions=5, ledger=":memory:")
    holdout.close()
    for ask in (holdout.score, lambda model: holdout.compare(model, GUESS)):
        with pytest.raises(GuardClosed):
            ask(lambda features: features["x"] > 0)


def test_what_is_masked_is_missing() -> None:
    hidden = RNG.random(N) < 0.5
    features = np.ma.masked_array(X, mask=np.column_stack([hidden, hidden, hidden]))
    labels = np.ma.masked_array(Y, mask=hidden)
    with afresh.holdout(features, labels, questions=5, simulation_seed=2, made_up=True) as holdout:
        assert hidden.mean() in holdout.score(Y).interval
        missing = holdout.guard.ask("x0 IS NULL AND label IS NULL")
        assert missing.value == pytest.approx(0.5, abs=0.1)
        for loss in ("zero-one", "brier", Squared(clip=1)):
            with pytest.raises(InvalidArgument, match="masked"):
                holdout.score(labels, loss=loss)
            assert holdout.score(np.ma.masked_array(Y), loss=loss).charged == (loss != "zero-one")


def test_a_dict_names_its_models() -> None:
    with afresh.holdout(X, Y, questions=20, ledger=":memory:", allow_wide=True) as holdout:
        ranked = holdout.best_of({"good": GUESS, "bad": 1 - GUESS})
        again = holdout.best_of([GUESS, 1 - GUESS], names=["good", "bad"])
        assert ranked.to_dict() | {"charged": 0} == again.to_dict()
        assert "good" in str(ranked)
        assert len(holdout.score_many({"good": GUESS, "bad": 1 - GUESS})) == 2
