"""A chain that somebody wrote again, seals and all, does not verify where it says more than its rules allow."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh import statistics as s
from afresh.ledger import open_ledger
from afresh.receipts import verify
from afresh.receipts.format import FORMATS, NAME, read_chain
from afresh.results.reading import read
from afresh.results.rules import derive

RNG = np.random.default_rng(5)
FRAME = pd.DataFrame({"a": RNG.random(20_000), "b": RNG.random(20_000) < 0.5, "c": RNG.integers(0, 5, 20_000)})
Edit = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module", params=["stabilized", "calibrated"])
def records(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    with afresh.open(FRAME, questions=60, ledger=open_ledger(":memory:"), method=request.param) as guard:
        guard.ask("b", where="c = 1")
        guard.measure(s.Variance("a", (0, 1)))
        guard.measure(s.Histogram("a", [0.0, 0.5, 1.0]))
        guard.measure(s.Correlation("a", "c", (0, 1), (0, 4)))
        guard.charge("a published mean", noise_sd=1.0)
        receipt = guard.receipt()
    assert verify(receipt).passed
    return [json.loads(text) for text in receipt["chain"]["records"]]


def forged(records: list[dict[str, Any]], kind: str, edit: Edit, version: int = 1) -> dict[str, Any]:
    """The receipt of a chain in which every record of a kind was edited."""
    copies = json.loads(json.dumps(records))
    for record in copies:
        if record["kind"] == kind:
            edit(record)
    facts = read_chain([json.dumps(each, sort_keys=True, separators=(",", ":")) for each in copies])
    return {"format": NAME, "version": version, "made_by": "x", "made_at": "2026", **FORMATS[version].write(facts)}


def narrow(record: dict[str, Any]) -> None:
    """Numbers are cut to their bounds, so that forged bounds would be a forged interval."""
    low, high = record["bounds"]
    record["bounds"] = [low + 0.52 * (high - low), low + 0.5201 * (high - low)]
    record["value"] = record["low"] = record["bounds"][0]
    record["high"] = record["bounds"][1]


def test_an_honest_one_verifies(records: list[dict[str, Any]]) -> None:
    outcome = verify(forged(records, "planned", lambda record: None))
    assert outcome.passed, [check.about for check in outcome.checks if not check.passed]


def test_bounds_of_derived_numbers_are_those_of_their_parts(records: list[dict[str, Any]]) -> None:
    assert not verify(forged(records, "stated", narrow)).passed


def test_an_outside_charge_counts_for_its_answers(records: list[dict[str, Any]]) -> None:
    counted = [record["answers"] for record in records if record["kind"] == "charged"]
    outcome = verify(forged(records, "charged", lambda record: record.update(answers=0)))
    assert outcome.passed == (counted == [0])


def test_a_limit_that_the_method_needs_cannot_be_left_out(records: list[dict[str, Any]]) -> None:
    needed = next(record for record in records if record["kind"] == "planned")["row_share"] is not None
    assert verify(forged(records, "planned", lambda record: record.update(row_share=None))).passed != needed


@pytest.mark.parametrize(
    "changes",
    [
        {"rule": "bin", "parameters": {"bin": 7}},
        {"rule": "variance", "parameters": {"bounds": [0]}},
        {"rule": "variance", "parameters": {"bounds": 5}},
        {"rule": "variance", "parameters": {"bounds": [0, 1], "around": [1]}},
        {"rule": "variance", "parameters": {"bounds": [0, 1], "around": {"x": 0.5}}},
        {"rule": "quantile", "parameters": {"bounds": [0, 1], "level": 0.5, "points": []}},
        {"rule": "difference", "parameters": {"scale": "x"}},
        {"rule": "within", "parameters": None},
        {"rule": "within", "parameters": []},
    ],
)
def test_whatever_a_statement_says_is_a_failed_check_and_no_error(
    records: list[dict[str, Any]], changes: dict[str, Any]
) -> None:
    try:
        receipt = forged(records, "stated", lambda record: record.update(changes))
    except afresh.errors.AfreshError:
        return  # no chain of ours can say so
    assert not verify(receipt).passed


@pytest.mark.parametrize(
    "statistic", [s.Variance("a", (-50, 50), within=3), s.Correlation("a", "c", (-50, 50), (0, 90))]
)
def test_numbers_are_around_what_their_questions_say(statistic: Any) -> None:
    """Around another number the interval would be narrower, or elsewhere."""
    with afresh.open(FRAME, questions=60, rounds=5, ledger=open_ledger(":memory:")) as guard:
        guard.measure(statistic)
        receipt, plan = guard.receipt(), guard.plan
    found = [json.loads(text) for text in receipt["chain"]["records"]]
    facts = read_chain(receipt["chain"]["records"])
    (stated,) = facts.account.stated.values()
    parts = [read(facts.account.entries[number - 1]) for number in stated.parts]

    def elsewhere(known: dict[str, float]) -> Edit:
        parameters = {name: value for name, value in stated.parameters.items() if name != "around"}
        parameters |= {"around": known} if known else {}
        value, low, high = derive(stated.rule, parts, parameters, stated.bounds, plan)
        return lambda record: record.update(parameters=parameters, value=value, low=low, high=high)

    around = stated.parameters["around"]
    assert verify(forged(found, "stated", elsewhere(around), receipt["version"])).passed
    others: list[Callable[[float], float]] = [
        lambda v: v + 1e-3,
        lambda v: -v,
        lambda v: float(f"{v:.2g}"),
        lambda v: 0.0,
    ]
    for known in ({}, *({name: other(value) for name, value in around.items()} for other in others)):
        outcome = verify(forged(found, "stated", elsewhere(known), receipt["version"]))
        assert [check.name for check in outcome.checks if not check.passed] == ["derived numbers"]
