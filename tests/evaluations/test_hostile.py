"""Whatever is passed to an evaluation, out comes an answer or one of our errors, which is short and free."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import afresh
from afresh.evaluations import read
from test_checks import make_odd, only_ours

IDS = [f"q{i}" for i in range(100)]
HALF = {id: i % 2 for i, id in enumerate(IDS)}


@pytest.fixture(scope="module")
def gate() -> Iterator[afresh.Gate]:
    with afresh.evaluation(IDS, ledger=":memory:", questions=10_000) as evaluation:
        with pytest.warns(afresh.errors.FewItems):
            gate = evaluation.gate(HALF)
        yield gate


CALLS: dict[str, Callable[[afresh.Gate, Any], object]] = {
    "results": lambda gate, x: gate.evaluation.score(x),
    "results of one item": lambda gate, x: gate.evaluation.open_scores({**HALF, "q1": x}),
    "name": lambda gate, x: gate.evaluation.score(HALF, name=x),
    "names": lambda gate, x: gate.evaluation.compare(HALF, HALF, names=x),
    "name of the second": lambda gate, x: gate.evaluation.compare(HALF, HALF, names=["a", x]),
    "names of an exam": lambda gate, x: gate.evaluation.exam(HALF, names=x),
    "margin": lambda gate, x: gate.evaluation.gate(HALF, margin=x),
    "name of a proposal": lambda gate, x: gate.propose(HALF, x),
    "results of a proposal": lambda gate, x: gate.propose(x, "x"),
    "disagreement": lambda gate, x: gate.detects(disagreement=x),
    "proposals": lambda gate, x: gate.detects(proposals=x),
    "acceptances": lambda gate, x: gate.detects(proposals=5, acceptances=x),
}


@pytest.mark.filterwarnings("ignore::afresh.errors.FewItems")
@pytest.mark.parametrize("argument", CALLS)
def test_of_an_evaluation(gate: afresh.Gate, argument: str) -> None:
    for value in make_odd():
        before = gate.evaluation.budget.spent
        answered = only_ours(lambda: CALLS[argument](gate, value), "")  # noqa: B023 - called at once
        assert answered or gate.evaluation.budget.spent == before


@pytest.mark.parametrize("argument", ["items", "id", "open", "exam", "questions", "confidence", "analyst"])
def test_of_opening(argument: str) -> None:
    for value in make_odd():
        options = {"items": IDS, "ledger": ":memory:", argument: value}
        only_ours(lambda: afresh.evaluation(options.pop("items"), **options).close(), "")  # noqa: B023


@pytest.mark.parametrize("argument", ["id", "score"])
def test_of_reading(argument: str) -> None:
    for value in make_odd():
        only_ours(lambda: read([{"id": "a", "score": 1}], **{argument: value}), "")  # noqa: B023
