"""Bodies with one hostile value each: every door takes or refuses them, and no door fails."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from afresh.errors import AfreshError
from afresh.server.evaluations import _candidates
from server.hostile import HOSTILE, MARK, good, of_models, places, replaced
from server.running import ROWS, Service, running

BOARD = """
[limits]
requests = 1000000
[boards.spring]
holdout = "churn"
"""
COUNT, SEED = 25, 1  # bodies for each door
NAMES = {"datasets": "customers", "holdouts": "churn", "boards": "spring"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(tmp_path_factory.mktemp("service"), BOARD) as found:
        yield found


def doors(document: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every door that takes a body, with bodies that it takes."""
    schemas = document["components"]["schemas"]
    for path, verbs in document["paths"].items():
        kind = path.split("/")[2]
        for verb, told in verbs.items():
            if "requestBody" not in told or kind == "evaluations":
                continue
            made = of_models(ROWS) if "text/csv" in told["requestBody"]["content"] else good(schemas, told)
            for body in made:
                yield verb, path.replace("{name}", NAMES.get(kind, "")), body


def hostile(document: Any) -> Iterator[tuple[str, str, str]]:
    for verb, path, body in doors(document):
        for place in places(body):
            text = json.dumps(replaced(body, place))
            for value in HOSTILE:
                yield verb, path, text.replace(f'"{MARK}"', value)


def sample(document: Any, count: int, seed: int) -> list[tuple[str, str, str]]:
    """So many bodies for each door; whatever stops a dataset comes last."""
    by_door: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for each in hostile(document):
        by_door.setdefault(each[:2], []).append(each)
    chance = random.Random(seed)
    found = [each for all in by_door.values() for each in chance.sample(all, min(count, len(all)))]
    return sorted(found, key=lambda each: each[1].endswith("/freeze"))


def test_hostile_values_are_taken_or_refused(service: Service) -> None:
    """One at every place, at every door: never a failure, always a document that says what to do."""
    document, failed = httpx.get(f"{service.url}/v1/openapi.json").json(), []
    heads = {"Authorization": f"Bearer {service.token('sam', 'steward')}", "Content-Type": "application/json"}
    with httpx.Client(base_url=service.url, headers=heads, timeout=120) as client:
        for verb, path, text in sample(document, COUNT, SEED):
            found = client.request(verb, path, content=text)
            if found.status_code >= 500 or (found.status_code >= 400 and not _is_refusal(found)):
                failed.append((path, text[-300:], found.status_code, found.text[:300]))
    assert not failed


def _is_refusal(found: httpx.Response) -> bool:
    media = found.headers["content-type"] == "application/problem+json"
    return media and bool(found.json()["code"]) and len(found.json()["detail"].split()) > 3


PREDICTED = {"predictions": {"a": [0, 1] * (ROWS // 2), "b": [1, 0] * (ROWS // 2)}}
VARIANCE = {"kind": "Variance", "expression": "tenure", "bounds": [0, 120]}
ONCE: list[tuple[str, dict[str, Any]]] = [
    ("datasets/customers/measure", {"statistic": {"kind": {}}}),
    ("datasets/customers/price", {"statistic": {"kind": [1]}}),
    ("datasets/customers/price", {"question": {"expression": "churned"}, "mean": 10**400}),
    ("datasets/customers/price", {"question": {"expression": "churned"}, "share": 10**400}),
    ("datasets/customers/price", {"question": {"expression": "amount"}, "deviation": -(10**400)}),
    ("datasets/customers/price", {"statistic": VARIANCE, "mean": 10**400}),
    ("datasets/customers/price", {"statistic": VARIANCE, "mean": 121}),
    ("datasets/customers/fit", {"kind": "logistic", "features": ["tenure"], "label": "churned", "classes": [0, []]}),
    ("holdouts/churn/measure", {**PREDICTED, "statistic": {"kind": ["AUC"]}}),
    ("holdouts/churn/measure", {**PREDICTED, "statistic": VARIANCE}),
    ("holdouts/churn/score", {**PREDICTED, "loss": {"kind": {}}}),
    ("holdouts/churn/claim", {**PREDICTED, "challenge": True, "between": [0.1, None]}),
    ("holdouts/churn/claim", {**PREDICTED, "challenge": "yes"}),
]


@pytest.mark.parametrize(("door", "body"), ONCE, ids=range(len(ONCE)))
def test_what_once_failed_is_refused(service: Service, door: str, body: dict[str, Any]) -> None:
    for who in (service.token(), service.token("cap", cap=5)):
        found = service.call("POST", f"/v1/{door}", who, json=body)
        assert found.status_code == 422, found.text
        assert _is_refusal(found)


def test_a_contest_is_asked_about_as_the_client_does(service: Service) -> None:
    alone, among = (
        service.post("/v1/holdouts/churn/detects", {**PREDICTED, **more}).json()["detects"]
        for more in ({}, {"among": 3, "binned": True})
    )
    assert among > alone > 0


def test_hostile_parameters_are_taken_or_refused(service: Service) -> None:
    """In the address of every door."""
    document, failed = httpx.get(f"{service.url}/v1/openapi.json").json(), []
    values = ("", "-1", "1e999", "9" * 5000, "NaN", "\0", "\u202e", "[[[[", "{}", "null", "a" * 3000)
    with httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {service.token()}"}) as client:
        for path, verbs in document["paths"].items():
            for each in verbs.get("get", {}).get("parameters", []):
                for value in values if each["in"] == "query" else ():
                    place = path.replace("{name}", NAMES.get(path.split("/")[2], "nothing"))
                    found = client.get(place, params={each["name"]: value})
                    if found.status_code >= 500 or (found.status_code >= 400 and not _is_refusal(found)):
                        failed.append((place, each["name"], value[:20], found.text[:200]))
    assert not failed


def test_hostile_candidates_are_read_or_refused() -> None:
    """Without running any: an evaluation takes nothing else from a body."""
    for body in (
        {"candidates": [{"name": "a", "files": {"prompt.txt": "Answer."}}]},
        {"candidates": [{"name": "a", "file": {"a.txt": "QQ=="}, "base64": True}]},
    ):
        for place in places(body):
            for value in HOSTILE:
                text = json.dumps(replaced(body, place)).replace(f'"{MARK}"', value)
                with suppress(AfreshError):
                    _candidates(text.encode(), "application/json", {}, 1, 1000)
