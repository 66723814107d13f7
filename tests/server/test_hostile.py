"""Bodies with one hostile value each: every door takes or refuses them, and no door fails."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from server.hostile import HOSTILE, MARK, good, of_models, places, replaced
from server.running import ROWS, Service, running

BOARD = """
[limits]
requests = 1000000
[boards.spring]
holdout = "churn"
"""
COUNT, SEED = int(os.environ.get("AFRESH_HOSTILE", "25")), 1
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
