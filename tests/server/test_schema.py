"""Requests made up from the OpenAPI document: none breaks the service, and every refusal is as described."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from server.running import Service

DOORS = [
    ("POST", "/v1/datasets/{name}/ask"),
    ("POST", "/v1/datasets/{name}/ask_many"),
    ("POST", "/v1/datasets/{name}/price"),
    ("POST", "/v1/datasets/{name}/measure"),
    ("POST", "/v1/datasets/{name}/claim"),
    ("GET", "/v1/datasets/{name}/transcript"),
    ("GET", "/v1/datasets/{name}"),
    ("POST", "/v1/holdouts/{name}/score"),
    ("GET", "/v1/holdouts/{name}/features"),
    ("POST", "/v1/tokens"),
]


@pytest.mark.parametrize("method", ["positive", "negative"])
def test_made_up_requests_are_answered_or_refused(service: Service, method: str) -> None:
    document = schemathesis.openapi.from_dict(httpx.get(f"{service.url}/v1/openapi.json").json())
    mode = GenerationMode.POSITIVE if method == "positive" else GenerationMode.NEGATIVE
    seen: set[int] = set()
    for verb, path in DOORS:
        if method == "positive" or verb == "POST":  # what takes nothing can be asked for nothing wrong
            try_out(service, document[path][verb].as_strategy(generation_mode=mode), path, seen)
    assert len(seen) > 1


def try_out(service: Service, cases: st.SearchStrategy[Any], path: str, seen: set[int]) -> None:
    @given(case=cases, name=st.sampled_from(["customers", "churn"]))
    @settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    def check(case: Any, name: str) -> None:
        case.path_parameters = {"name": name} if "{name}" in path else {}
        case.headers = {"Authorization": f"Bearer {service.token()}"}
        found = case.call(base_url=service.url)
        seen.add(found.status_code)
        assert found.status_code < 500, (path, found.text)
        if found.status_code >= 400:
            assert found.headers["content-type"][0] == "application/problem+json"
            assert found.json()["code"]

    check()
