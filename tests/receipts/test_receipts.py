"""Receipts verify without the data; every lie in one is found; old ones verify forever."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afresh
from afresh.errors import InvalidArgument
from afresh.ledger.records import decode, encode, seal
from afresh.receipts import verify
from afresh.receipts.page import as_html, as_markdown
from examples import examples

SAMPLES = sorted(Path(__file__).with_name("samples").glob("*.json"))
RECEIPTS = {path.stem: json.loads(path.read_text()) for path in SAMPLES}
each_sample = pytest.mark.parametrize("name", RECEIPTS)


def test_there_are_samples_of_every_method() -> None:
    methods = {
        1: ("stabilized", "calibrated", "split", "guess-and-check"),
        2: ("stabilized", "symmetrized", "calibrated", "rounds", "checked", "guess-and-check"),
        3: ("stabilized", "symmetrized", "calibrated", "rounds", "checked", "endless", "twofold"),
        4: ("stabilized", "calibrated", "settled"),
        5: ("symmetrized", "settled", "endless"),
        6: ("stabilized", "calibrated", "rounds", "checked", "symmetrized", "settled", "endless"),
    }
    # made later, with what was new by then
    methods[6] += ("tight-symmetrized", "tight-settled", "groups-checked", "looks-rounds")
    methods[6] += ("closer-rounds", "closer-checked", "closer-settled")
    assert set(RECEIPTS) == {f"version{version}-{each}" for version in methods for each in methods[version]}


@each_sample
def test_samples_verify(name: str) -> None:
    outcome = verify(RECEIPTS[name])
    assert outcome.passed, str(outcome)
    names = ["fields", "chain", "plan", "charges", "answers", "derived numbers", "statements", "real noise"]
    assert [check.name for check in outcome.checks] == names
    assert "This proves" in str(outcome)
    assert "independent draws" in str(outcome)


def paths(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from paths(part, (*here, name))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from paths(part, (*here, place))
    else:
        yield here


# Of these a receipt only tells; nothing follows from them.
FREE = {"format", "version", "made_by", "made_at"}


def lie(value: Any, draw: float) -> Any:
    """Something else of the same kind; a number moves by at least a thousandth."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + (1 if isinstance(value, int) else max(abs(value), 1e-3) * (1e-3 + draw))
    if isinstance(value, str):
        return value[:-1] + ("x" if value[-1:] != "x" else "y")
    return 0.5


@each_sample
@examples(0.4)  # of every sample
@given(data=st.data(), draw=st.floats(0, 1))
def test_every_lie_is_found(name: str, data: st.DataObject, draw: float) -> None:
    receipt = copy.deepcopy(RECEIPTS[name])
    told = [p for p in paths(receipt) if p[0] not in FREE]
    path = data.draw(st.sampled_from(told))
    part = receipt
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = lie(part[path[-1]], draw)
    outcome = verify(receipt)
    assert not outcome.passed, path
    assert "does NOT verify" in str(outcome)


def reseal(receipt: dict[str, Any]) -> None:
    """What a forger can do without any secret: make the chain consistent again."""
    head = ""
    for text in receipt["chain"]["records"]:
        head = seal(head, text)
    receipt["chain"]["head"] = head


def edited(receipt: dict[str, Any], place: int, **changes: Any) -> dict[str, Any]:
    receipt = copy.deepcopy(receipt)
    body = json.loads(receipt["chain"]["records"][place])
    body.update(changes)
    receipt["chain"]["records"][place] = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    reseal(receipt)
    return receipt


def first(receipt: dict[str, Any], kind: str) -> int:
    """The place of the first record of a kind."""
    return next(i for i, text in enumerate(receipt["chain"]["records"]) if json.loads(text)["kind"] == kind)


@each_sample
@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("reserved", {"charge": 0.0}, "charge of question 1"),
        ("reserved", {"number": 2}, "number 2"),
        ("reserved", {"version": 99}, "upgrade"),
        ("reserved", {"version": 0}, "which no version of afresh ever wrote"),
        ("reserved", {"version": True}, "which no version of afresh ever wrote"),
        ("reserved", {"kind": "gift"}, "upgrade"),
        ("reserved", {"at": "2020-01-01T00:00:00+00:00"}, "older"),
        ("reserved", {"charge": "much"}, "not one that afresh wrote"),
        ("reserved", {"digest": ""}, "digest is empty"),
        ("planned", {"answers": 10**9}, "limits"),
        ("planned", {"questions": 10**9, "answers": 10**9}, ""),
        ("planned", {"information": 1e9}, "larger than the plan's"),
        ("opened", {"rows": 10**7}, "limits|final look|rows of the exam"),
        ("planned", {"plan": {}}, "does not know|opens the rows"),
        ("answered", {"low": 0.0, "value": 0.0, "high": 2.0**-40}, "of answer 1 is"),
        ("answered", {"low": 1e-7}, "public grid"),
        ("planned", {"ends": 2.0**-20}, "not on the plan's public grid, whose step is 9.5367431640625e-07"),
        ("planned", {"ends": 0.1}, "ends == 0.1, must be a power of two"),
        ("planned", {"grid": 0.1}, "grid == 0.1, must be a power of two"),
        ("stated", {"value": 0.0, "low": 0.0, "high": 0.0}, "but its parts give"),
        ("stated", {"rule": "wishful"}, "unknown rule 'wishful'"),
        ("stated", {"parts": [1, 1]}, ""),
        ("stated", {"parts": [1, 99]}, "do not exist"),
    ],
)
def test_a_consistent_forgery_that_breaks_the_rules_is_found(
    name: str, kind: str, changes: dict[str, Any], words: str
) -> None:
    outcome = verify(edited(RECEIPTS[name], first(RECEIPTS[name], kind), **changes))
    if name.endswith(("split", "rounds", "check", "checked")) and changes == {"charge": 0.0}:
        return  # which is the charge of an answer of theirs
    assert not outcome.passed
    said = " ".join(check.about for check in outcome.checks if not check.passed)
    assert any(each in said for each in words.split("|"))


@pytest.mark.parametrize("method", ["stabilized", "calibrated", "guess-and-check"])
def test_a_grid_that_the_noise_does_not_have_is_found(method: str) -> None:
    receipt = RECEIPTS[f"version1-{method}"]
    grid = receipt["plan"]["grid"]
    coarse = verify(edited(receipt, 1, grid=4 * grid))
    words = f"the grid of released numbers has the step {4 * grid!r}, not a power of two of at most"
    assert words in next(check for check in coarse.checks if check.name == "plan").about
    # A finer one carries the certificate, but these numbers were not released on it: their intervals would be others.
    finer = edited(receipt, 1, grid=grid / 4)
    failed = [check.name for check in verify(finer).checks if not check.passed]
    assert failed == (["statements"] if method == "guess-and-check" else ["answers", "statements"])
    missing = verify(edited(receipt, 1, grid=None))
    assert "which this afresh does not know" in next(check for check in missing.checks if not check.passed).about


def test_splitting_has_no_grid() -> None:
    forged = verify(edited(RECEIPTS["version1-split"], 1, grid=2.0**-20))
    assert "which this afresh does not know" in next(check for check in forged.checks if not check.passed).about


@each_sample
@pytest.mark.parametrize("name_of_grid", ["grid", "ends"])
def test_the_grids_a_receipt_states_are_those_of_its_plan(name: str, name_of_grid: str) -> None:
    receipt = copy.deepcopy(RECEIPTS[name])
    planned = json.loads(receipt["chain"]["records"][1])
    assert receipt["plan"][name_of_grid] == planned[name_of_grid]
    receipt["plan"][name_of_grid] = 2 * (planned[name_of_grid] or 1.0)  # an end moves by 1e-12 at most
    (failed,) = (check for check in verify(receipt).checks if not check.passed)
    assert failed.about.startswith(f"plan.{name_of_grid} is ")


@pytest.mark.parametrize("constant", ["H", "A", "B", "c", "lam", "v0", "s", "failure", "questions", "most"])
def test_constants_that_carry_no_certificate_are_found(constant: str) -> None:
    receipt = RECEIPTS["version1-stabilized"]
    plan = json.loads(receipt["chain"]["records"][1])["plan"]
    better = {"lam": 1.0, "questions": plan["questions"] + 1, "most": 10**6, "c": 1.0001, "failure": 1e-6}
    plan[constant] = better.get(constant, plan[constant] * 0.9)
    outcome = verify(edited(receipt, 1, plan=plan))
    assert not next(check for check in outcome.checks if check.name == "plan").passed


@pytest.mark.parametrize("constant", ["z", "L", "noise_failure", "t", "most", "failure"])
def test_constants_of_calibrated_noise_are_checked_too(constant: str) -> None:
    receipt = RECEIPTS["version1-calibrated"]
    plan = json.loads(receipt["chain"]["records"][1])["plan"]
    better = {"t": plan["t"] * 1.01, "most": plan["most"] + 1}
    plan[constant] = better.get(constant, plan[constant] * 0.99)
    outcome = verify(edited(receipt, 1, plan=plan))
    assert not next(check for check in outcome.checks if check.name == "plan").passed


def test_reordered_and_dropped_records_are_found() -> None:
    records = RECEIPTS["version1-calibrated"]["chain"]["records"]
    swapped = [*records[:2], records[3], records[2], *records[4:]]
    for changed in (records[:-1], records[:2] + records[3:], swapped, []):
        receipt = copy.deepcopy(RECEIPTS["version1-calibrated"])
        receipt["chain"]["records"] = changed
        assert not verify(receipt).passed


def test_records_keep_their_text() -> None:
    for receipt in RECEIPTS.values():
        for text in receipt["chain"]["records"]:
            record = decode(text)
            assert decode(encode(record)) == record
            now = encode(record)
            assert now == text or json.loads(text)["version"] < json.loads(now)["version"]


@pytest.mark.parametrize("content", [[], {}, {"format": "other"}, "x", None, {"format": "afresh receipt"}])
def test_what_is_no_receipt_is_refused(content: object) -> None:
    with pytest.raises(InvalidArgument):
        verify(content)
    assert not verify({"format": "afresh receipt", "version": 1}).passed


def test_simulations_say_so() -> None:
    frame = pd.DataFrame({"x": np.arange(2000) % 10})
    with afresh.open(frame, 5, simulation_seed=1, made_up=True) as guard:
        guard.ask("x < 5")
        receipt = guard.receipt()
    outcome = verify(receipt)
    assert not outcome.passed
    assert [check.name for check in outcome.checks if not check.passed] == ["real noise"]
    assert outcome.simulated
    assert "SIMULATION" in str(outcome)
    assert "SIMULATION" in as_html(receipt)
    assert "SIMULATION" in as_markdown(receipt)


def test_a_guard_that_was_asked_nothing_has_a_receipt() -> None:
    with afresh.open(pd.DataFrame({"x": np.arange(2000) % 10}), 5) as guard:
        receipt = guard.receipt()
    assert verify(receipt).passed
    assert "Nothing has been released yet" in as_html(receipt)


@each_sample
def test_pages_show_every_question_and_fold_what_it_was_made_of(name: str) -> None:
    receipt = copy.deepcopy(RECEIPTS[name])
    receipt["questions"][0]["question"] = "<script>alert('|')</script>"
    page, text = as_html(receipt), as_markdown(receipt)
    assert "<script>" not in page
    numbers_of = [each for each in receipt["questions"] if not each["question"].startswith("claim: ")]
    told = [each for each in numbers_of if each["high"] - each["low"] < 0.95 * np.ptp(each["bounds"])]
    assert page.count("<circle") == len(told)
    assert ("Claims, challenges and contests" in page) == (len(numbers_of) < len(receipt["questions"]))
    derived = [question for question in receipt["questions"] if question["rule"] is not None]
    panels = {tuple(question["bounds"]) for question in numbers_of}
    assert page.count("<details>") == len(derived) + len(panels) > len(panels)
    for question in receipt["questions"]:
        numbers = "+".join(map(str, question["numbers"][:2])) + ("+…" if len(question["numbers"]) > 2 else "")
        assert f"\n| {numbers} | " in text
    for question in derived:
        for number in question["numbers"]:
            assert f"\n| {number} | " in text
    for part in (page, text):
        assert receipt["chain"]["head"] in part
        assert "It is not a privacy guarantee" in part


@each_sample
def test_what_a_version_does_not_know_is_refused(name: str) -> None:
    receipt = RECEIPTS[name]
    for changed in (
        {**receipt, "bonus": 1},
        {**receipt, "data": {**receipt["data"], "bonus": 1}},
        {**receipt, "questions": [{**receipt["questions"][0], "bonus": 1}, *receipt["questions"][1:]]},
        {**receipt, "plan": {**receipt["plan"], "constants": {**receipt["plan"]["constants"], "bonus": 1}}},
        {key: value for key, value in receipt.items() if key != "shares"},
    ):
        assert not verify(changed).passed


def test_json_that_can_be_read_in_two_ways_is_refused() -> None:
    text = json.dumps(RECEIPTS["version1-split"])
    assert verify(text).passed
    with pytest.raises(InvalidArgument, match="twice"):
        verify(text[:-1] + ', "version": 1}')
    with pytest.raises(InvalidArgument, match="is not a number"):
        verify(text.replace('"version": 1', '"version": NaN', 1))
    for broken in ("", "{", "[" * 100_000):
        with pytest.raises(InvalidArgument, match="not a receipt"):
            verify(broken)


@each_sample
def test_a_published_head_is_in_the_chain(name: str) -> None:
    receipt = RECEIPTS[name]
    heads = list(itertools.accumulate(receipt["chain"]["records"], seal, initial=""))[1:]
    for head in (heads[0], heads[len(heads) // 2], heads[-1]):
        assert verify(receipt, head=head).passed
    assert not verify(receipt, head="0" * 64).passed
    shorter = copy.deepcopy(receipt)
    shorter["chain"]["records"].pop()  # an older receipt does not contain what was published later
    reseal(shorter)
    assert "published head" in [check.name for check in verify(shorter, head=head).checks if not check.passed]


def test_the_ledger_begins_with_the_receipt() -> None:
    records = RECEIPTS["version1-calibrated"]["chain"]["records"]
    assert verify(RECEIPTS["version1-calibrated"], ledger=[*records, "more"]).passed
    for other in (records[:-1], [], ["other", *records[1:]]):
        assert not verify(RECEIPTS["version1-calibrated"], ledger=other).passed
