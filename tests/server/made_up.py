"""Requests that are made up from an OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi import checks as specs

from server.running import Service

CHECKS = (
    specs.status_code_conformance,
    specs.content_type_conformance,
    specs.response_schema_conformance,
)


def try_out(
    service: Service, cases: st.SearchStrategy[Any], path: str, seen: set[int], names: Sequence[str], role: str
) -> None:
    """None breaks the service, and every response has the status, the type and the fields that the document says."""

    @given(case=cases, name=st.sampled_from(names))
    @settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    def check(case: Any, name: str) -> None:
        case.path_parameters = {"name": name} if "{name}" in path else {}
        case.headers = {"Authorization": f"Bearer {service.token('sam' if role == 'steward' else 'ann', role)}"}
        found = case.call(base_url=service.url, timeout=120)
        seen.add(found.status_code)
        assert found.status_code < 500, (path, found.text)
        case.validate_response(found, checks=[*CHECKS])
        if found.status_code >= 400:
            assert found.headers["content-type"][0] == "application/problem+json"
            assert found.json()["code"]

    check()
