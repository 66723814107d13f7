"""Results in Python: numbers, formats, refusals to be ordered, tables, frames and pictures."""

import importlib
import json
import math
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import afresh
from afresh.errors import InvalidArgument, MissingExtra
from afresh.results import show
from afresh.results.answers import Answers
from afresh.statistics import Histogram

RNG = np.random.default_rng(4)
ROWS = {
    "churned": RNG.random(4000) < 0.3,
    "amount": RNG.random(4000) * 100,
    "country": RNG.choice(["CH", "DE"], 4000),
}


@pytest.fixture(scope="module")
def guard() -> Iterator[afresh.Guard]:
    import pandas as pd

    with afresh.open(pd.DataFrame(ROWS), questions=60, ledger=":memory:") as found:
        yield found


@pytest.fixture(scope="module")
def holdout() -> Iterator[afresh.Holdout]:
    y = RNG.integers(0, 2, 4000)
    with afresh.holdout(RNG.normal(size=(4000, 2)), y, questions=60, ledger=":memory:") as found:
        yield found


def test_an_answer_is_a_number_where_one_is_wanted(guard: afresh.Guard) -> None:
    answer = guard.ask("churned")
    assert float(answer) == answer.value
    assert f"{answer:.3f}" == f"{answer.value:.3f}"
    assert f"{answer}" == str(answer)
    assert np.isclose(np.array([answer], dtype=float)[0], answer.value)
    assert math.isnan(float(guard.ask("churned", where="amount < -5")))


def test_answers_have_no_order(guard: afresh.Guard) -> None:
    a, b = guard.ask_many(["churned", "amount < 50"])
    for refused in (
        lambda: a < b,
        lambda: a >= b,
        lambda: a > 0.5,
        lambda: a > 0.5,
        lambda: max([a, b]),
        lambda: sorted([a, b]),
    ):
        with pytest.raises(TypeError, match=r"interval and has no order.*certainly"):
            refused()
    assert a == guard.ask_many(["churned", "amount < 50"])[0] or a.charged  # equality is that of records
    assert a.value in a.interval


def test_many_answers_are_a_list_and_a_table(guard: afresh.Guard) -> None:
    found = guard.ask_many(["churned", {"expression": "amount < 50", "where": "country = 'CH'"}])
    assert isinstance(found, list)
    assert isinstance(found, Answers)
    assert [each.question for each in found] == ["churned", "amount < 50"]
    text = repr(found)
    assert "2 answers, all intervals hold at once at 95%" in text
    assert "amount < 50 where country = 'CH'" in text
    assert "●" in text
    assert "<svg" in found._repr_html_()
    for frame in (found.to_pandas(), found.to_polars().to_pandas(), found.to_arrow().to_pandas()):
        assert frame["value"].tolist() == [each.value for each in found]
    assert found.to_csv().startswith("question,where,value")
    assert len(found.plot().get_yticklabels()) == 2
    assert repr(Answers()) == "No answers."
    with pytest.raises(InvalidArgument, match="one scale"):
        guard.ask_many(["churned", {"expression": "amount", "bounds": (0, 100)}]).plot()


def test_bars_of_histograms(guard: afresh.Guard) -> None:
    found: Any = guard.measure(Histogram("amount", edges=[0, 25, 50, 75, 100]))
    assert "<rect" in found._repr_html_()
    axes = found.plot()
    assert len(axes.patches) == 4
    assert len(found.to_pandas()) == 4
    assert "<svg" not in str(found)


def test_transcripts_plans_comparisons_and_rankings_are_drawn(guard: afresh.Guard, holdout: afresh.Holdout) -> None:
    guard.ask("country = 'DE'")
    guard.ask("amount", bounds=(0, 100))
    log = guard.transcript
    assert log.to_pandas()["question"].tolist() == [each.question for each in log]
    assert log.to_polars().height == len(log)
    with pytest.raises(InvalidArgument, match="standardized=True"):
        log.plot()
    axes = log.plot(standardized=True)
    assert axes.get_xlim()[0] == pytest.approx(-0.01)
    assert guard.plan.plot().get_xscale() == "log"
    y = holdout.labelled.labels
    assert y is not None
    a, b, c = (RNG.integers(0, 2, 4000) for _ in range(3))
    assert holdout.compare(a, b).plot().get_xlabel().startswith("zero-one loss, A minus B")  # type: ignore[union-attr]
    ranking = holdout.best_of([a, b, c], names=["a", "b", "c"])
    assert set(ranking.to_pandas()["name"]) == {"a", "b", "c"}
    import matplotlib.pyplot as plt

    _, own = plt.subplots()
    assert ranking.plot(own) is own
    own.figure.canvas.draw()
    plt.close("all")
    with pytest.raises(InvalidArgument, match="nothing to draw"):
        replace(log, records=()).plot()


def test_what_is_missing_is_said(guard: afresh.Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtra, match=r"afresh\[plot\]"):
        guard.plan.plot()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"afresh\[frames\]"):
        guard.transcript.to_pandas()


def test_whatever_has_a_dict_has_json(guard: afresh.Guard, holdout: afresh.Holdout) -> None:
    """No class is left out, and what the documentation names is JSON that every parser reads."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} is not JSON")

    for module in pkgutil.walk_packages(afresh.__path__, "afresh."):
        if not module.name.startswith(("afresh.lab", "afresh.demo")) and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    kinds = list(show.Shown.__subclasses__())
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert not hasattr(kind, "to_dict") or issubclass(kind, show.Told), kind
    answers = guard.ask_many(["churned", "amount < 20"])
    models = [RNG.integers(0, 2, 4000) for _ in range(2)]
    told: list[show.Told] = [guard.transcript, guard.plan, guard.plan.details, guard.budget, answers[0], answers]
    told += [guard.price("churned"), holdout.best_of(models), holdout.compare(*models), afresh.plan(10**5, 100)]
    for each in told:
        assert json.loads(each.to_json(), parse_constant=refuse) == json.loads(json.dumps(each.to_dict()))
