"""The format can grow: whatever a later version adds, old receipts verify, and what is unknown is refused."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, make_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import afresh
from afresh.errors import InvalidArgument
from afresh.mechanisms import registry
from afresh.receipts import format, verify
from afresh.results import transcript

SAMPLES = sorted(Path(__file__).with_name("samples").glob("*.json"))
RECEIPTS = {path.stem: json.loads(path.read_text()) for path in SAMPLES}
NEXT = max(format.FORMATS) + 1
each_method = pytest.mark.parametrize("method", registry.PLANNERS)


def receipt_of(method: str | None = None) -> dict[str, Any]:
    frame = pd.DataFrame({"x": np.arange(2000) % 10})
    with afresh.open(frame, 5, method=method, ledger=":memory:", allow_wide=True) as guard:
        guard.ask("x < 5")
        guard.ask("x < 5", where="x > 2")
        return guard.receipt()


def shape(value: Any) -> Any:
    """The names in a document, without what they say."""
    if isinstance(value, dict):
        return {name: shape(part) for name, part in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else None


def all_samples_verify() -> None:
    assert RECEIPTS
    for receipt in RECEIPTS.values():
        outcome = verify(receipt)
        assert outcome.passed, str(outcome)


def test_a_later_version_adds_a_field(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(facts: format.Facts) -> dict[str, Any]:
        return {**newest.write(facts), "records": facts.account.length}

    newest = format.FORMATS[NEXT - 1]
    monkeypatch.setitem(format.FORMATS, NEXT, format.Format({**newest.fields, "records": None}, write))
    all_samples_verify()
    made = receipt_of()
    assert (made["version"], made["records"], verify(made).passed) == (NEXT, made["chain"]["length"], True)
    assert not verify({**made, "records": 1}).passed
    assert not verify({**made, "version": NEXT - 1}).passed  # it has a field that the version before does not know
    for receipt in RECEIPTS.values():
        assert not verify({**receipt, "version": NEXT}).passed  # it lacks a field of the next version


@each_method
def test_a_mechanism_gets_a_constant(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default means what plans without it meant. A version that is older does not show it, a later one may."""
    before = receipt_of(method)
    kind = registry.MECHANISMS[method]
    longer = make_dataclass(kind.__name__, [("bonus", float, 1.0)], bases=(kind,), frozen=True)
    planner = registry.PLANNERS[method]

    def planned(*wanted: Any) -> Any:
        found = planner(*wanted)
        return None if found is None else longer(**asdict(found), bonus=2.0)

    for table, value in ((registry.MECHANISMS, longer), (registry.PLANNERS, planned), (registry.PROMISING, planned)):
        if method in table:
            monkeypatch.setitem(table, method, value)
    all_samples_verify()
    made = receipt_of(method)
    assert json.loads(made["chain"]["records"][1])["plan"]["bonus"] == 2.0
    assert verify(made).passed
    assert shape(made) == shape(before)

    def write(facts: format.Facts) -> dict[str, Any]:
        found = format.FORMATS[NEXT - 1].write(facts)
        assert facts.account.limits is not None
        found["plan"]["constants"]["bonus"] = facts.account.limits.plan.get("bonus", 1.0)
        return found

    monkeypatch.setitem(format.FORMATS, NEXT, format.Format(format.FORMATS[NEXT - 1].fields, write))
    all_samples_verify()
    made = receipt_of(method)
    assert (made["version"], made["plan"]["constants"]["bonus"], verify(made).passed) == (NEXT, 2.0, True)


@each_method
def test_what_people_see_changes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of the transcript gets a field and another shape; receipts stay what they are."""
    before = receipt_of(method)
    longer = make_dataclass("Record", [("bonus", int, 1)], bases=(transcript.Record,), frozen=True)
    monkeypatch.setattr(transcript, "Record", longer)
    all_samples_verify()
    assert shape(receipt_of(method)) == shape(before)
    monkeypatch.delattr(transcript, "transcribed")
    monkeypatch.delattr(transcript, "Record")
    all_samples_verify()


def test_the_fields_of_each_version_are_what_its_samples_have() -> None:
    for receipt in RECEIPTS.values():
        found = shape({**receipt, "outside": receipt["outside"] or [{"what": 1, "basis": 1, "charge": 1, "at": 1}]})
        found["plan"]["constants"] = None
        found["shares"] = None
        found["outside"][0]["basis"] = None
        for part in (*found["questions"], *found["answers"]):
            part["bounds"] = None
            part.pop("numbers", None)
            part.update(dict.fromkeys({"rows"} & part.keys()))
        found["chain"]["records"] = None
        expected = shape(format.FORMATS[receipt["version"]].fields)
        expected["questions"][0].pop("numbers")
        assert found == expected


@each_method
def test_the_newest_version_shows_every_constant(method: str) -> None:
    """Whoever adds a constant to a mechanism writes a new version of the format that shows it."""
    names = {each.name for each in fields(registry.MECHANISMS[method])}
    elsewhere = {"rows", "questions", "grid"}  # of the plan itself
    assert set(receipt_of(method)["plan"]["constants"]) == names - elsewhere


@pytest.mark.parametrize("version", [NEXT, 99, 10**30])
def test_a_newer_version_asks_for_an_upgrade(version: int) -> None:
    with pytest.raises(
        InvalidArgument, match=f"version {version}, but this afresh knows only up to {NEXT - 1}; upgrade afresh"
    ):
        verify({**RECEIPTS["version1-split"], "version": version})


@pytest.mark.parametrize("version", [0, -1, True, 1.0, "1", None, [1]])
def test_what_is_no_version_is_refused(version: object) -> None:
    with pytest.raises(InvalidArgument, match="which no version of afresh ever wrote"):
        verify({**RECEIPTS["version1-split"], "version": version})
