"""Every way of asking, here and on a service: rounds, exams, claims, contests, deviations, open rows, learning.

The same conversation is held with a desk in this process and with one of a service, over the same rows and plan. What
comes back has the same types, fields and words; only numbers differ, as noise does. And whatever the desk here says is
the same, to the letter, once it has been sent and read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import afresh
from afresh import errors, learn, statistics
from afresh.guard.guard import Guard
from afresh.models.holdout import Holdout
from afresh.wire.results import RESULTS, from_json, to_json
from server.running import Service, running

ROWS = 3000
DATASETS: dict[str, dict[str, Any]] = {
    "rounds": {"questions": 60, "rounds": 3},
    "exam": {"questions": 20, "open": 0.4, "exam": 0.2},
    "checked": {"questions": 40, "method": "checked"},
    "followed": {"questions": 40, "deviation": 0.05},
    "endless": {"questions": None},
    "vectors": {"questions": 40, "method": "symmetrized"},
}
HOLDOUTS: dict[str, dict[str, Any]] = {
    "examined": {"questions": 40, "open": 0.4, "exam": 0.2},
    "claimed": {"questions": 40, "method": "checked"},
}


def wishes(given: dict[str, Any]) -> str:
    told = {key: "no end" if value is None else value for key, value in given.items()}
    return "\n".join(f"{key} = {value!r}" for key, value in told.items())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("ways")
    lines = ['state = "state"', "tick = 0"]
    for number, (name, given) in enumerate({**DATASETS, **HOLDOUTS}.items()):
        chance = np.random.default_rng(number)
        x = chance.normal(size=ROWS)
        table = {"x": x, "y": chance.normal(size=ROWS), "label": x + chance.normal(size=ROWS) > 0}
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
        lines += [f"[{'datasets' if name in DATASETS else 'holdouts'}.{name}]", f'data = "{name}.parquet"']
        lines += [wishes(given), "allow_wide = true", *(['label = "label"'] if name in HOLDOUTS else [])]
        lines += [f"[{'datasets' if name in DATASETS else 'holdouts'}.{name}.columns.y]", "description = 'a number'"]
    (folder / "customers.parquet").touch()  # nothing else is made up
    with running(folder, config="\n".join(lines).replace("{", "{{").replace("}", "}}")) as found:
        yield found


def seen(result: Any) -> Any:
    """What is the same of two results: everything but numbers."""
    if isinstance(result, list | tuple):
        return [seen(each) for each in result]
    if hasattr(result, "to_dict"):
        if type(result).__name__ in RESULTS:
            again = from_json(json.loads(json.dumps(to_json(result))))
            assert (again, repr(again), str(again)) == (result, repr(result), str(result))
        return type(result), sorted(result.to_dict()), masked(repr(result))
    return type(result)


def masked(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"[-+±]?\d[\d.,]*(e-?\d+)?%?", "#", text))


def outcome(work: Callable[[], Any]) -> Any:
    try:
        return seen(work())
    except errors.AfreshError as error:
        return type(error), masked(str(error))


def hold(conversation: Callable[[Any], Iterator[Callable[[], Any]]], here: Any, there: Any) -> None:
    """Ask the same of both, step by step."""
    for number, (local, remote) in enumerate(zip(conversation(here), conversation(there), strict=True)):
        assert outcome(local) == outcome(remote), f"step {number}"


def in_rounds(guard: Guard) -> Iterator[Callable[[], Any]]:
    def one() -> Any:
        with guard.round(rows=900) as round:
            round.ask("label")
            round.ask_many(["x > 0", {"expression": "y", "bounds": (-3, 3)}])
        return round.answers

    yield one
    yield lambda: guard.ask("x > 1")
    yield lambda: guard.round(rows=0)
    yield lambda: guard.ask_many([])
    yield lambda: guard.budget
    yield lambda: guard.price("x > 2")
    yield guard.close_rounds
    yield lambda: guard.ask("x > 3")
    yield lambda: guard.transcript
    yield lambda: guard.exam(["x > 0"])


def with_exam(guard: Guard) -> Iterator[Callable[[], Any]]:
    yield lambda: guard.price("x > 0", exam=2)
    yield lambda: guard.ask("x > 0")
    yield lambda: guard.exam(["x > 0", "label"])
    yield lambda: guard.exam(["x > 0", "label"])
    yield lambda: guard.exam(["x > 7"])
    yield lambda: guard.exam(["nothing > 7"])
    yield lambda: guard.transcript
    yield lambda: guard.budget
    yield lambda: guard.open_rows("table")
    yield guard.close_rounds


def with_claims(guard: Guard) -> Iterator[Callable[[], Any]]:
    yield lambda: guard.detects("label", (0.1, None))
    yield lambda: guard.claim("label", (0.1, None))
    yield lambda: guard.claim("label", (0.1, None))
    yield lambda: guard.claim("y", (None, 1), bounds=(-4, 4), missing=0)
    yield lambda: guard.claim("y", (None, 1))
    yield lambda: guard.claim("label", (0.8, 0.1))
    yield lambda: guard.claim("label", 3)  # type: ignore[arg-type]
    yield lambda: guard.detects("y", (None, 1), (-4, 4), 0, deviation=-1)
    yield lambda: guard.ask("x > 0", guess=(0.5, 0.05))
    yield lambda: guard.detects("label", (0.1, None), where="x > 0", share=0.5)
    yield lambda: guard.claim("label", (0.1, None), where="x > 0")
    yield lambda: guard.claim("label", (0.1, None), where="nothing > 0")
    yield lambda: guard.ask("y", bounds=(-4, 4), missing=0, where="x > 0", guess=(0.0, 0.5))
    yield lambda: guard.ask("label", where="x > 0", guess=(0.5, 0.05))
    yield lambda: guard.transcript


def with_deviations(guard: Guard) -> Iterator[Callable[[], Any]]:
    question: dict[str, Any] = {"expression": "y", "bounds": (-4, 4), "missing": 0}
    yield lambda: guard.price(**question, deviation=1)
    yield lambda: guard.price(**question, deviation=-1)
    spread = statistics.StandardDeviation("y", (-4, 4), missing=0)
    both = statistics.Correlation("x", "y", (-4, 4), (-4, 4), where="label", within=3)
    yield lambda: guard.price(spread, mean=0, deviation=1)
    yield lambda: guard.price(both, mean=(0, 0), deviation=[1, 0.5], share=0.5)
    yield lambda: guard.price(both, deviation=(1, 2, 3))
    yield lambda: guard.price(spread, exam=2)
    yield lambda: guard.ask(**question)
    yield lambda: guard.plan


def without_end(guard: Guard) -> Iterator[Callable[[], Any]]:
    yield lambda: guard.ask("x > 0")
    yield lambda: guard.ask("x > 0")
    yield lambda: guard.budget


def learning(guard: Guard) -> Iterator[Callable[[], Any]]:
    def logistic(**more: Any) -> Any:
        model = learn.LogisticRegression((-4, 4), steps=5).fit_guard(guard, **{"features": ["x", "y"], **more})
        assert model.predict(np.zeros((3, 2))).shape == (3,)
        assert model.charged_ in (0, 6)
        return model.certificate_

    def linear() -> Any:
        model = learn.LinearRegression((-4, 4), target_bounds=(-4, 4), steps=4).fit_guard(guard, ["x"], "y")
        assert model.predict(np.zeros((3, 1))).shape == (3,)
        return model.certificate_

    yield lambda: logistic(label="label", classes=[False, True])
    yield lambda: logistic(label="label", classes=[False, True])
    yield linear
    yield lambda: logistic(label="nothing")
    yield lambda: logistic(label="label", features=["label", "z"])
    yield lambda: logistic(label="label", classes=[1, 1])
    yield lambda: learn.LogisticRegression((-4, 4), steps=500).fit_guard(guard, ["x"], "label")
    yield lambda: learn.LogisticRegression((4, -4)).fit_guard(guard, ["x"], "label")
    yield lambda: guard.ask_vector({"a": "x / 4", "b": "y / 4"}, radius=1.5)
    yield lambda: guard.ask_vector({"a": "x / 4"}, radius=-1)


CONVERSATIONS = {
    "rounds": in_rounds,
    "exam": with_exam,
    "checked": with_claims,
    "followed": with_deviations,
    "endless": without_end,
    "vectors": learning,
}


@pytest.mark.parametrize("name", DATASETS)
def test_guards_say_the_same(service: Service, name: str, tmp_path: Path) -> None:
    given = {**DATASETS[name], "allow_wide": True, "analyst": "sam", "ledger": tmp_path / "ledger"}
    steward = service.token("sam", "steward")
    with (
        afresh.open(service.folder / f"{name}.parquet", **given) as here,
        afresh.connect(service.url, steward).open(name) as there,
    ):
        hold(CONVERSATIONS[name], here, there)
        assert afresh.receipts.verify(there.receipt()).passed
        assert re.sub("[0-9]+ of", "# of", repr(here)) == re.sub("[0-9]+ of", "# of", repr(there))


def with_models(holdout: Holdout) -> Iterator[Callable[[], Any]]:
    good, bad = (lambda X: X["x"] > 0), (lambda X: X["y"] > 0)
    yield lambda: holdout.has_open_rows
    yield lambda: holdout.open_losses([good, bad])
    yield lambda: holdout.exam([good, bad], names=["good", "bad"])
    yield lambda: holdout.exam([good, bad], names=["good", "bad"])
    yield lambda: holdout.exam([bad], names=["another"])
    yield lambda: holdout.compare(good, bad, names=("good", "bad"))
    yield lambda: holdout.score(good, name="good", precision=0.2)
    yield lambda: holdout.claim(good, better_than=bad, names=["good", "bad"])


def with_challenges(holdout: Holdout) -> Iterator[Callable[[], Any]]:
    good, bad = (lambda X: X["x"] > 0), (lambda X: X["y"] > 0)
    yield lambda: holdout.challenge(good)
    yield lambda: holdout.detects(good, better_than=bad)
    yield lambda: holdout.detects(good, better_than=bad, disagreement=2)
    yield lambda: holdout.claim(good, better_than=bad, names=["good", "bad"])
    yield lambda: holdout.claim(good, between=(None, 0.9), names=["good"])
    yield lambda: holdout.claim(good)
    yield lambda: holdout.claim(good, better_than=bad, by=3)
    yield lambda: holdout.challenge(good, incumbent=bad, names=["good", "bad"])
    yield lambda: holdout.challenge(bad, names=["bad"])
    yield lambda: holdout.contest([good, bad], names=["good", "bad"], bins=4)
    yield lambda: holdout.contest([good], incumbent=bad, names=["good", "bad"])
    yield lambda: holdout.contest([good], names=["good"])
    yield lambda: holdout.contest([good, bad], bins=1)
    yield lambda: holdout.has_open_rows
    yield holdout.open_rows
    yield lambda: holdout.open_losses([good])
    yield lambda: holdout.exam([good])


@pytest.mark.parametrize("name", HOLDOUTS)
def test_holdouts_say_the_same(service: Service, name: str, tmp_path: Path) -> None:
    given = {**HOLDOUTS[name], "allow_wide": True, "analyst": "ann", "ledger": tmp_path / "ledger"}
    with (
        afresh.holdout(service.folder / f"{name}.parquet", label="label", **given) as here,
        afresh.connect(service.url, service.token()).holdout(name) as there,
    ):
        hold(with_models if name == "examined" else with_challenges, here, there)


def test_open_rows_are_the_same_wherever_they_are_asked_for(service: Service, tmp_path: Path) -> None:
    with (
        afresh.open(
            service.folder / "exam.parquet", **DATASETS["exam"], allow_wide=True, ledger=tmp_path / "a"
        ) as here,
        afresh.connect(service.url, service.token()).open("exam") as there,
    ):
        assert len(there.open_rows()) == len(here.open_rows()) == 1200
        assert list(there.open_rows().columns) == list(here.open_rows().columns)
        assert there.open_rows("arrow").schema.types == here.open_rows("arrow").schema.types
        all_rows = pq.read_table(service.folder / "exam.parquet").to_pandas()
        assert there.open_rows().equals(all_rows.loc[there.open_rows().index])
    with afresh.connect(service.url, service.token()).holdout("examined") as there_too:
        X, y = there_too.open_rows()
        all_rows = pq.read_table(service.folder / "examined.parquet").to_pandas()
        assert (X["x"] == all_rows.loc[X.index, "x"]).all()
        assert (y == all_rows.loc[X.index, "label"]).all()
        assert there_too.open_losses([lambda X: X["x"] > 0]) == [float(np.mean((X["x"] > 0) != y))]
        assert there_too.open_losses([all_rows["x"] > 0]) == [float(np.mean((X["x"] > 0) != y))]
        with pytest.raises(errors.Forbidden):
            there_too.for_analyst("bob")
    for form, media in {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}.items():
        found = service.get(f"/v1/datasets/exam/open_rows?format={form}")
        assert (found.status_code, found.headers["content-type"].partition(";")[0]) == (200, media)
    viewer = service.token("vera", "viewer")
    assert service.get("/v1/datasets/exam/open_rows", viewer).json()["code"] == "forbidden"
    assert service.post("/v1/datasets/rounds/close_rounds", {}).json()["code"] == "forbidden"
